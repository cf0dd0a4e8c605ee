//! What is printed, byte by byte, and the schema of the JSON.

mod support;

use support::{run, sound};
use tidegate_sim::{
    builtin,
    scenario::{Format, RenderOptions},
    sequence::trace::schema_text,
};

/// Everything a picture can hold: hops, errors, a pin, no session, an inactive service, advances.
const FULL: &str = r#"
rule_uuid: everything
affinity_secs: 1800
services:
  - { provider: alpha, model: one }
  - { provider: beta, model: two, tier: 4 }
  - { provider: gamma, model: three, tier: 4, inactive: true }
faults:
  alpha/one:
    steps:
      - { status: 500 }
      - { error: connect }
      - { error: truncate }
      - { status: 529, retry_after: 90 }
program:
  - { request: session1 }
  - { request: a-long-session-name }
  - { advance: 1m30s }
  - { request: "" }
  - { request: session1 }
  - { advance: 500ms }
  - { request: session1 }
expect: { final_status: 503, breaker: { alpha/one: open } }
"#;

fn picture(text: &str, format: Format, ascii: bool) -> String {
    let options = RenderOptions { format, ascii, ..RenderOptions::default() };
    sound(text).run(0).render(&options)
}

#[test]
fn the_graph_is_drawn_as_documented() {
    insta::assert_snapshot!(picture(FULL, Format::Graph, false));
}

#[test]
fn the_graph_can_do_without_unicode() {
    let ascii = picture(FULL, Format::Graph, true);
    assert!(ascii.is_ascii());
    insta::assert_snapshot!(ascii);
}

#[test]
fn the_table_has_a_row_per_request() {
    insta::assert_snapshot!(picture(FULL, Format::Table, false));
}

#[test]
fn the_json_has_exactly_the_documented_keys() {
    let json = run(FULL, 0).to_json();
    insta::assert_snapshot!(format!("{json:#}"));
    assert_eq!(picture(FULL, Format::Json, false), format!("{json}\n"));
}

#[test]
fn the_story_that_sim_prints_without_arguments() {
    let cascade = builtin::get("cascade").expect("an example").text;
    insta::assert_snapshot!(picture(cascade, Format::Graph, false));
}

/// The sample of the documentation: same services, same spacing.
#[test]
fn the_documented_sample_comes_out_byte_by_byte() {
    let text = "
rule_uuid: cascade
affinity_secs: 1800
services: [{provider: openai, model: gpt-5.4}, {provider: openai, model: gpt-5.5, tier: 1}]
faults: {openai/gpt-5.4: [500]}
program: [{request: session1}, {advance: 31s}]
";
    let expected = "\
LB scenario \"cascade\"  tactic=tier  affinity=1800s
services: openai/gpt-5.4 (T0)  openai/gpt-5.5 (T1)
legend:   ✓=2xx committed   ✗=non-2xx (buffered/terminal)   →=in-request failover hop

#1  session1 openai/gpt-5.4 ✗500  →  openai/gpt-5.5 ✓200   →  client=200
       state: openai/gpt-5.4=closed/healthy   openai/gpt-5.5=closed/healthy   pin=openai/gpt-5.4
        ⋯ advance 31s (breaker + health clocks move) ⋯
";
    assert_eq!(picture(text, Format::Graph, false), expected);
}

#[test]
fn a_name_from_a_file_cannot_drive_the_terminal() {
    let text = r#"
name: "a\e[2J\nb"
services: [{provider: a, model: "x\ty"}]
program: [{request: "s\n"}]
"#;
    for format in [Format::Graph, Format::Table, Format::Json] {
        let picture = picture(text, format, false);
        assert!(!picture.contains(|c: char| c.is_control() && c != '\n'), "{picture}");
        assert!(picture.contains("s?") || format == Format::Json, "{picture}");
    }
}

#[test]
fn the_schema_that_is_checked_in_is_fresh() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/sim-trace.schema.json");
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    assert!(kept == schema_text(), "stale: run `cargo xtask docs`");
}
