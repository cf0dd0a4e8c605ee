//! Bad MCP scenarios: every problem is found at once, with its code and a hint, and nothing panics.

use tidegate_config::{render, source::Source};
use tidegate_sim::scenario::load;

/// `code message` of each problem of a file that is refused.
fn problems(text: &str) -> Vec<String> {
    let source = Source::new("t.yaml", text);
    let (scenario, problems) = load(&source);
    assert!(scenario.is_none(), "{text}");
    let look = render::Look { color: false, ascii: true };
    assert!(!render::render_all(&source, &problems, look).is_empty());
    problems.iter().map(|it| format!("{} {}", it.code.id, it.message)).collect()
}

/// The first help of the first problem.
fn help(text: &str) -> String {
    let (_, problems) = load(&Source::new("t.yaml", text));
    problems[0].help.first().cloned().unwrap_or_default()
}

fn one(program: &str) -> String {
    format!("servers: {{ a: {{ tools: [x] }} }}\nprogram:\n{program}")
}

#[test]
fn all_problems_are_told_at_once() {
    let text = "servers:\n  a: { tools: [x, x], idempotent: [z] }\n  b: { toolz: [y] }\n\
                program:\n  - { open: s1 }\n  - { call: { session: s2, tool: a_x } }\n\
                \x20 - { crash: c }\n  - { close: s1 }\n  - { list: s1 }\n\
                \x20 - { open: s3, expect: { ok: true, tools: [nope] } }\n\
                expect: { breaker: { d: open }, list_changed: { s9: 1 } }\n";
    let mut found = problems(text);
    found.sort();
    assert_eq!(
        found,
        [
            "TG010 unknown key `toolz` in `servers.b`",
            "TG102 the tool `x` stands twice",
            "TG180 `expect.breaker.d` names a server that does not exist: `d`",
            "TG180 `program[2].crash` names a server that does not exist: `c`",
            "TG181 the session `s1` has been closed",
            "TG181 the session `s2` is not open",
            "TG181 the session `s9` never opens",
            "TG182 `servers.a.idempotent[0]` names a tool that the server never has: `z`",
            "TG182 no server has a tool `nope`",
            "TG183 `program[5].expect.ok` cannot come true",
        ]
    );
}

#[test]
fn a_typo_is_answered_with_the_nearest_name() {
    let cases = [
        (one("  - { opne: s1 }\n"), "did you mean `open`?"),
        (one("  - { open: s1 }\n  - { call: { session: s1, tool: y } }\n"), "`x`"),
        (one("  - { open: alice }\n  - { list: alcie }\n"), "did you mean `alice`?"),
        (
            "servers: { github: { tools: [x] } }\nprogram: [{ crash: gihub }]\n".to_owned(),
            "did you mean `github`?",
        ),
    ];
    for (text, hint) in cases {
        assert!(help(&text).contains(hint), "{text}: {}", help(&text));
    }
}

#[test]
fn a_step_has_one_action_and_only_what_goes_with_it() {
    let cases = [
        ("  - {}\n", "TG183 `program[0]` does nothing"),
        ("  - { expect: { ok: true } }\n", "TG183 `program[0]` does nothing"),
        ("  - { open: s, crash: a }\n", "TG183 `program[0]` has several actions: `open`, `crash`"),
        ("  - { open: s, after: 1s }\n", "TG183 `program[0]` cannot be put off"),
        (
            "  - { crash: a, expect: { tools: [] } }\n",
            "TG183 `program[0].expect.tools` cannot come true",
        ),
        ("  - { open: \"\" }\n", "TG111 `program[0].open` is empty"),
        ("  - { open: s }\n  - { open: s }\n", "TG181 the session `s` is open already"),
    ];
    for (program, expected) in cases {
        assert_eq!(problems(&one(program)), [expected], "{program}");
    }
}

#[test]
fn what_would_run_for_hours_is_refused() {
    let far = "servers: { a: { keepalive: { every: 1s } } }\n\
               program: [{ open: s }, { advance: 10000h }]\n";
    assert!(problems(far)[0].starts_with("TG110 "), "{:?}", problems(far));
    let many = one("  - { open: s }\n  - { call: { session: s, tool: x, at_once: 5000 } }\n");
    assert_eq!(problems(&many), ["TG110 `program[1].call.at_once` must be between 1 and 1000"]);
}

#[test]
fn settings_that_make_no_sense_have_the_codes_of_the_config_file() {
    let text = "servers: { a: { tools: [x], keepalive: { method: tool, every: 0s } } }\n\
                health: { failure_threshold: 0 }\nprogram: [{ open: s }]\n";
    let found = problems(text);
    for message in [
        "`servers.a.keepalive` uses `method: tool` and names no tool",
        "`servers.a.keepalive.every` is zero",
        "`health.failure_threshold` must be at least 1",
    ] {
        assert!(found.iter().any(|it| it.ends_with(message)), "{message}\n{found:?}");
    }
}

#[test]
fn empty_files_of_the_form_are_refused_and_probes_are_bounded() {
    let empty = problems("servers: {}\nprogram: []\n");
    assert_eq!(empty, ["TG104 `servers` is empty", "TG104 `program` is empty"]);
    let text = format!("health: {{ probe: {{ every: 1s }} }}\n{}", one("  - { open: s }\n"));
    let (scenario, found) = load(&Source::new("t.yaml", &text));
    assert!(scenario.is_some());
    assert_eq!(found, []);
    let long = "servers: { a: { tools: [x] } }\nhealth: { probe: { every: 1ms } }\n\
                program: [{ advance: 1h }]\n";
    let found = problems(long);
    assert!(found.iter().any(|it| it.contains("probes: the most is")), "{found:?}");
}

#[test]
fn a_client_comes_back_only_with_what_it_was_asked_and_in_the_way_of_its_era() {
    let check = |steps: &str, message: &str| {
        let found = problems(&one(steps));
        assert!(found.iter().any(|it| it.contains(message)), "{message}\n{found:?}");
    };
    check("  - { open: s }\n  - { answer: s }\n", "`s` was asked nothing");
    check("  - { stateless: c }\n  - { answer: c }\n", "does not go with `c`");
    check("  - { open: s }\n  - { retry: s }\n", "does not go with `s`");
    check("  - { retry: nobody }\n", "the session `nobody` is not open");
    check("  - { era: { server: nobody, is: sse } }\n", "names a server that does not exist");
    check("  - { probe: nobody }\n", "names a server that does not exist");
}
