//! Files that are wrong: every problem is found, at its place, and nothing panics or hangs.

use tidegate_config::source::Source;
use tidegate_sim::scenario::load;

/// A sound file to put a wrong line after.
const SOUND: &str = "services: [{provider: a, model: x}, {provider: b, model: x}]\n";

/// `line:column code message` of each problem of a text.
fn problems(text: &str) -> Vec<String> {
    let source = Source::new("t.yaml", text);
    let (scenario, problems) = load(&source);
    let has_error = problems.iter().any(|it| it.is_error());
    assert_eq!(scenario.is_none(), has_error, "{text}");
    let place = |it: &tidegate_config::diagnostic::Diagnostic| {
        let place = it.span.map(|span| source.place(span.start));
        place.map_or_else(|| "-".to_owned(), |at| format!("{}:{}", at.line, at.column))
    };
    problems.iter().map(|it| format!("{} {} {}", place(it), it.code.id, it.message)).collect()
}

fn check(text: &str, expected: &[&str]) {
    assert_eq!(problems(text), expected, "{text}");
}

/// A sound file with one more line.
fn line(text: &str, expected: &[&str]) {
    check(&format!("{SOUND}{text}\n"), expected);
}

#[test]
fn the_file_to_start_from_is_sound() {
    line("", &[]);
}

#[test]
fn unknown_keys_are_named_everywhere() {
    line("porgram: []", &["2:1 TG010 unknown key `porgram`"]);
    line("expect: {finl_status: 1}", &["2:10 TG010 unknown key `finl_status` in `expect`"]);
    line(
        "faults: {a/x: {steps: [{sttus: 200}]}}",
        &["2:25 TG010 unknown key `sttus` in `faults.a/x.steps[0]`"],
    );
    line("program: [{wait: 1s}]", &["2:12 TG010 unknown key `wait`"]);
    line("policy: {probe: {}}", &["2:10 TG010 unknown key `probe` in `policy`"]);
    check(
        "services: [{provider: a, model: x, teir: 1}]\n",
        &["1:36 TG010 unknown key `teir` in `services[0]`"],
    );
}

#[test]
fn ids_that_no_service_has_are_problems_everywhere() {
    let unknown =
        |section: &str| format!("TG103 `{section}` names a service that does not exist: `a/y`");
    let rows = [
        ("faults: {a/y: [200]}", "2:10", "faults"),
        ("seed_pin: {session: s, provider: a, model: y}", "2:44", "seed_pin"),
        ("expect: {attempts: [a/x, a/y]}", "2:26", "expect.attempts"),
        ("expect: {attempts_contain: [a/y]}", "2:29", "expect.attempts_contain"),
        ("expect: {attempts_exclude: [a/y]}", "2:29", "expect.attempts_exclude"),
        ("expect: {distinct_first_attempts: [a/y]}", "2:36", "expect.distinct_first_attempts"),
        ("expect: {pin: a/y}", "2:15", "expect.pin"),
        ("expect: {pins: {s: a/y}}", "2:20", "expect.pins"),
        ("expect: {breaker: {a/y: open}}", "2:20", "expect.breaker"),
        ("expect: {health: {a/y: healthy}}", "2:19", "expect.health"),
    ];
    for (text, place, section) in rows {
        line(text, &[&format!("{place} {}", unknown(section))]);
    }
    line("expect: {pin: '', pins: {s: ''}}", &[]);
}

#[test]
fn a_wrong_id_gets_a_suggestion() {
    let source = Source::new("t.yaml", &format!("{SOUND}faults: {{a/xx: [500]}}\n"));
    assert_eq!(load(&source).1[0].help, ["did you mean `a/x`?"]);
}

#[test]
fn services_must_be_there_once_and_have_names() {
    for text in ["services: []\n", "services:\n", "services: ~\n"] {
        check(text, &["1:1 TG104 `services` is empty"]);
    }
    check(
        "services: [{provider: a, model: x}, {provider: b, model: y}, {provider: a, model: x}]\n",
        &["1:83 TG102 the service `a/x` stands twice"],
    );
    check(
        "services: [{provider: '', model: x}]\n",
        &["1:23 TG111 `services[0].provider` is empty"],
    );
    check("services: [{provider: a}]\n", &["1:12 TG013 `services[0]` has no key `model`"]);
    check("services: {a: 1}\n", &["1:1 TG012 `services`: expected a list, found a map"]);
    check(
        "services: [{provider: a, model: x, tier: -1}]\n",
        &["1:42 TG015 `services[0].tier`: `-1` is too small: the least is 0"],
    );
}

#[test]
fn a_bad_list_of_services_does_not_make_every_id_unknown() {
    check(
        "services: [{provider: [a], model: x}]\nfaults: {a/x: [999]}\n",
        &[
            "1:13 TG012 `services[0].provider`: expected text, found a list",
            "2:16 TG105 `faults.a/x[0]`: `999` is not a usable HTTP status",
        ],
    );
}

#[test]
fn fault_scripts_are_checked_step_by_step() {
    line("faults: {a/x: []}", &["2:10 TG104 `faults.a/x` is empty"]);
    line("faults: {a/x: {steps: []}}", &["2:16 TG104 `faults.a/x.steps` is empty"]);
    line("faults: {a/x: {on_exhaust: loop}}", &["2:10 TG013 `faults.a/x` has no key `steps`"]);
    line("faults: {a/x: 500}", &["2:15 TG012 `faults.a/x`: expected a list or a map, found `500`"]);
    line(
        "faults: {a/x: [100, 0, 200, 599, 600]}",
        &[
            "2:16 TG105 `faults.a/x[0]`: `100` is not a usable HTTP status",
            "2:34 TG105 `faults.a/x[4]`: `600` is not a usable HTTP status",
        ],
    );
    line(
        "faults: {a/x: {steps: [{status: 500, error: reset}]}}",
        &["2:45 TG106 `faults.a/x.steps[0]` has both `status` and `error`"],
    );
    line(
        "faults: {a/x: {steps: [{error: refused}]}}",
        &["2:32 TG014 `faults.a/x.steps[0].error`: `refused` is not one of the choices"],
    );
    line(
        "faults: {a/x: {steps: [{}], on_exhaust: Loop}}",
        &["2:41 TG014 `faults.a/x.on_exhaust`: `Loop` is not one of the choices"],
    );
    line(
        "faults: {a/x: {steps: [{retry_after: -0.5}, {retry_after: x}]}}",
        &[
            "2:38 TG016 `faults.a/x.steps[0].retry_after`: a duration cannot be negative: `-0.5`",
            "2:59 TG016 `faults.a/x.steps[1].retry_after`: `x` is not a duration: write a \
             number before `x`, as in `30s` or `1h30m`",
        ],
    );
}

#[test]
fn absurd_durations_are_refused() {
    let rows = [
        ("-5s", "a duration cannot be negative: `-5s`"),
        ("1e400", "`1e400` has an unknown unit `e`: use `ms`, `s`, `m`, `h` or `d`"),
        ("\"\"", "an empty text is not a duration"),
        ("31", "`31` has no unit: write `31s`"),
        ("1000000d", "`1000000d` is longer than 100 years"),
    ];
    for (written, message) in rows {
        let expected = format!("2:21 TG016 `program[0].advance`: {message}");
        line(&format!("program: [{{advance: {written}}}]"), &[&expected]);
    }
    line(
        "program: [{advance: }]",
        &["2:12 TG012 `program[0].advance`: expected a duration such as `30s`, found nothing"],
    );
}

#[test]
fn a_step_of_the_program_has_exactly_one_key() {
    line(
        "program: [{request: s, advance: 1s}]",
        &["2:11 TG012 `program[0]`: expected exactly one of `request` or `advance`, found a map"],
    );
    line(
        "program: [{}]",
        &["2:11 TG012 `program[0]`: expected exactly one of `request` or `advance`, found a map"],
    );
    line("program: {request: s}", &["2:1 TG012 `program`: expected a list, found a map"]);
}

#[test]
fn policy_values_that_make_no_sense_are_named() {
    line(
        "policy: {failure_threshold: 0, open_growth: 0.5, open_jitter: 1.5}",
        &[
            "2:29 TG031 `policy.failure_threshold` must be at least 1",
            "2:45 TG031 `policy.open_growth` must be at least 1",
            "2:63 TG031 `policy.open_jitter` must be between 0 and 1",
        ],
    );
    line("policy: {open_for: 1h}", &[]);
    line(
        "policy: {open_for: 1h, open_max: 59m}",
        &["2:34 TG031 `policy.open_max` must not be shorter than open_for"],
    );
    line(
        "policy: {retry_budget: {ratio: -0.5}}",
        &["2:32 TG015 `policy.retry_budget.ratio`: `-0.5` is too small: the least is 0"],
    );
}

#[test]
fn names_and_tactics_are_checked() {
    line("rule_uuid: a\nname: b", &["3:7 TG109 both `rule_uuid` and `name` are written"]);
    line("tactic: teir", &["2:9 TG107 `tactic`: `teir` is not a tactic"]);
    line("affinity_secs: -1", &["2:16 TG015 `affinity_secs`: `-1` is too small: the least is 0"]);
    line("affinity_secs: 1.5", &["2:16 TG015 `affinity_secs`: `1.5` is not a whole number"]);
    line(
        "within_tier_tactic: adaptive",
        &["2:21 TG108 `within_tier_tactic`: `adaptive` is not known, `random` is used"],
    );
}

#[test]
fn all_problems_come_at_once() {
    let text = "tactic: x\nservices: [{provider: a, model: x, y: 1}]\nfaults: {a/z: [700]}\n\
                program: [{advance: -1s}]\nexpect: {breaker: {a/x: ajar}}\n";
    let codes: Vec<String> =
        problems(text).iter().filter_map(|it| it.split(' ').nth(1).map(str::to_owned)).collect();
    assert_eq!(codes, ["TG107", "TG010", "TG103", "TG105", "TG016", "TG014"]);
}

#[test]
fn what_is_no_modest_yaml_is_refused_quickly() {
    let bomb: String = (0..20)
        .map(|level| match level {
            0 => "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned(),
            _ => format!(
                "a{level}: &a{level} [{}]\n",
                vec![format!("*a{}", level - 1); 10].join(", ")
            ),
        })
        .collect();
    assert!(problems(&format!("{bomb}{SOUND}"))[0].contains("TG007"));
    assert!(problems(&"[".repeat(100_000))[0].contains("TG007"));
    assert!(problems("services: [\n")[0].contains("TG004"));
    assert!(problems("services: \"\u{0}\"\n")[0].contains("TG004"));
    assert!(problems("- a\n")[0].contains("TG100"));
}

#[test]
fn a_trace_that_would_not_fit_into_memory_is_refused() {
    let services: String =
        (0..2000).map(|index| format!("  - {{provider: p, model: m{index}}}\n")).collect();
    let requests = "  - {request: s}\n".repeat(501);
    let text = format!("services:\n{services}program:\n{requests}");
    assert_eq!(problems(&text).len(), 1);
    assert!(problems(&text)[0].contains("TG110 501 requests of 2000 services"));
    let services: String =
        (0..5000).map(|index| format!("  - {{provider: p, model: m{index}}}\n")).collect();
    assert!(problems(&format!("services:\n{services}"))[0].contains("TG110 5000 services"));
}
