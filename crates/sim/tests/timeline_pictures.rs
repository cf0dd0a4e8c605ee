//! The report of a timeline, as it is printed.

mod timelines;

use tidegate_core::time::Now;
use tidegate_sim::{
    builtin,
    scenario::{Format, RenderOptions},
};
use timelines::{changed, sound};

fn drawn(options: &RenderOptions) -> String {
    let brownout = builtin::get("brownout").and_then(builtin::Builtin::scenario);
    brownout.expect("an example").run(7).render(options)
}

fn at_width(width: usize) -> String {
    drawn(&RenderOptions { width, ..RenderOptions::default() })
}

#[test]
fn a_report_of_60_columns() {
    insta::assert_snapshot!(at_width(60));
}

#[test]
fn a_report_of_80_columns() {
    insta::assert_snapshot!(at_width(80));
}

#[test]
fn a_report_of_120_columns() {
    insta::assert_snapshot!(at_width(120));
}

#[test]
fn a_report_in_ascii() {
    let text = drawn(&RenderOptions { ascii: true, ..RenderOptions::default() });
    assert!(text.is_ascii(), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn a_table_has_a_row_per_backend() {
    let options = RenderOptions { format: Format::Table, ..RenderOptions::default() };
    insta::assert_snapshot!(drawn(&options));
}

#[test]
fn a_trace_tells_transitions_and_hops_between_two_moments() {
    let (from, to) = (Now(170_000), Now(205_000));
    let options = RenderOptions { trace: true, from, to, ..RenderOptions::default() };
    insta::assert_snapshot!(drawn(&options));
}

#[test]
fn a_trace_in_json_is_a_line_per_entry() {
    let (format, from, to) = (Format::Json, Now(170_000), Now(180_000));
    let options = RenderOptions { format, trace: true, from, to, ..RenderOptions::default() };
    let text = drawn(&options);
    for line in text.lines() {
        let entry: serde_json::Value = serde_json::from_str(line).expect("a line is JSON");
        assert!(entry.get("transition").is_some() || entry.get("request").is_some(), "{line}");
    }
    insta::assert_snapshot!(text);
}

#[test]
fn a_closer_view_shows_more_of_less() {
    let (from, to) = (Now(150_000), Now(210_000));
    let options = RenderOptions { from, to, ..RenderOptions::default() };
    insta::assert_snapshot!(drawn(&options));
}

#[test]
fn a_failed_expectation_is_marked_and_told_how_to_replay() {
    let scenario = changed("gray", "client_failures: { max: 40 }", "client_failures: { max: 2 }");
    insta::assert_snapshot!(scenario.run(3).render(&RenderOptions::default()));
}

#[test]
fn the_json_report_has_its_documented_keys() {
    let text = "scenario: small\nfor: 10s\ntraffic: { rate: 1/s, arrivals: even }\n\
                backends: { a/b: [{ at: 5s, do: refuse }] }\n\
                expect: { client_failures: { max: 9 } }\n";
    let json = sound(text).run(0).to_json();
    insta::assert_snapshot!(serde_json::to_string_pretty(&json).expect("it is JSON"));
}

#[test]
fn no_line_of_a_report_is_wider_than_asked_for() {
    for builtin in builtin::all() {
        let scenario = builtin.scenario().expect("an example");
        if !matches!(scenario, tidegate_sim::scenario::Scenario::Timeline(_)) {
            continue;
        }
        let report = scenario.run(0);
        for width in [60, 80, 120] {
            for ascii in [false, true] {
                let options = RenderOptions { width, ascii, ..RenderOptions::default() };
                for line in report.render(&options).lines() {
                    assert!(line.chars().count() <= width, "{width}: {line}");
                }
            }
        }
    }
}
