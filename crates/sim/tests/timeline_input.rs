//! Timelines that are wrong: each problem by code, place and words, all of a file at once.

use tidegate_config::source::Source;
use tidegate_sim::scenario::load;

const SOUND: &str = "for: 1m\ntraffic: { rate: 1/s }\nbackends:\n  a/b: []\n  a/c: []\n";

/// `line:column code message` of each problem; with an error there must be no scenario.
fn problems(text: &str) -> Vec<String> {
    let source = Source::new("t.yaml", text);
    let (scenario, problems) = load(&source);
    let has_error = problems.iter().any(|it| it.is_error());
    assert_eq!(scenario.is_none(), has_error, "{text}\n{problems:?}");
    let line = |it: &tidegate_config::diagnostic::Diagnostic| {
        let place = it.span.map(|span| source.place(span.start));
        let place = place.map_or("-".to_owned(), |it| format!("{}:{}", it.line, it.column));
        format!("{place} {} {}", it.code.id, it.message)
    };
    problems.iter().map(line).collect()
}

fn check(text: &str, expected: &[&str]) {
    assert_eq!(problems(text), expected, "{text}");
}

#[test]
fn the_sound_file_is_sound() {
    check(SOUND, &[]);
}

#[test]
fn rates_that_are_none_are_refused() {
    for rate in ["5", "''", "-5/s", "1e400/s", "5/y", "NaN/s", "/s", "x/s"] {
        let text = SOUND.replace("1/s", rate);
        let found = problems(&text);
        assert_eq!(found.len(), 1, "{rate}: {found:?}");
        assert!(found[0].starts_with("2:18 TG017 `traffic.rate`: "), "{found:?}");
    }
}

#[test]
fn durations_that_are_none_are_refused() {
    for (written, words) in [
        ("-5s", "1:6 TG016 `for`: a duration cannot be negative: `-5s`"),
        (
            "1e400",
            "1:6 TG016 `for`: `1e400` has an unknown unit `e`: use `ms`, `s`, `m`, `h` or `d`",
        ),
        ("\"\"", "1:6 TG016 `for`: an empty text is not a duration"),
    ] {
        check(&SOUND.replace("1m", written), &[words]);
    }
}

#[test]
fn a_run_that_would_take_hours_is_refused_before_it_starts() {
    let text = SOUND.replace("1m", "87600h").replace("1/s", "20/s");
    check(&text, &["1:6 TG152 this takes 6307200000 requests, more than 50000000"]);
    let text = format!("{SOUND}config: {{ probe: {{ every: 1ms }} }}\n");
    check(&text, &[]);
    let text = text.replace("for: 1m", "for: 24h");
    check(&text, &["1:6 TG152 this takes more than 20000000 probes"]);
}

#[test]
fn unknown_names_are_refused_wherever_they_stand() {
    let text = format!(
        "{SOUND}config: {{ tiers: [[a/b], [a/c, a/d]], weights: {{ a/e: 1 }} }}\n\
         expect:\n  opens: {{ a/bb: {{ before: 1s }} }}\n  healthy_at_end: [c]\n"
    );
    check(
        &text,
        &[
            "6:32 TG150 `config.tiers[1][1]`: no backend is called `a/d`",
            "6:55 TG150 `config.weights.a/e`: no backend is called `a/e`",
            "8:12 TG150 `expect.opens.a/bb`: no backend is called `a/bb`",
            "9:20 TG150 `expect.healthy_at_end[0]`: no backend is called `c`",
        ],
    );
}

#[test]
fn phases_that_make_no_sense_are_refused_all_at_once() {
    let text = "for: 1m\ntraffic: { rate: 1/s }\nbackends:\n  a/b:\n\
                \x20   - { at: 5s, do: slow }\n\
                \x20   - { at: 5s, do: status }\n\
                \x20   - { at: 6s, do: status, status: 200 }\n\
                \x20   - { at: 7s, do: hang, factor: 2 }\n\
                \x20   - { at: 8s, do: slow, factor: -1 }\n\
                \x20   - { at: 9s, do: brake }\n";
    let others = [
        "5:21 TG151 `backends.a/b[0]`: `do: slow` needs a `factor`",
        "6:13 TG151 `backends.a/b[1].at`: `5s` is not after the phase before it",
        "6:21 TG151 `backends.a/b[1]`: `do: status` needs a `status`",
        "7:37 TG151 `backends.a/b[2].status`: `200` is not between 300 and 599",
        "8:27 TG151 `backends.a/b[3]`: `factor` means nothing with `do: hang`",
        "9:35 TG151 `backends.a/b[4].factor`: `-1` is not above 0",
    ];
    let unknown = "10:21 TG014 `backends.a/b[5].do`: `brake` is not one of the choices";
    check(text, &[&others[..], &[unknown]].concat());
    let stray = "10:25 TG151 `backends.a/b[5]`: `share` means nothing with `do: ok`";
    check(&text.replace("brake", "ok, share: 20%"), &[&others[..], &[stray]].concat());
}

#[test]
fn tiers_hold_every_backend_once() {
    let text = format!("{SOUND}config: {{ tiers: [[a/b], [a/b]] }}\n");
    check(
        &text,
        &[
            "5:3 TG153 `a/c` has a script but stands in no tier",
            "6:27 TG153 `config.tiers[1][0]`: `a/b` stands twice in the tiers",
        ],
    );
}

#[test]
fn settings_that_make_no_sense_are_refused_in_place() {
    let text = format!("{SOUND}config: {{ health: {{ trial_permits: 0, open_jitter: 2 }} }}\n");
    check(
        &text,
        &[
            "6:36 TG017 `config.health.trial_permits` must be at least 1",
            "6:52 TG017 `config.health.open_jitter` must be between 0 and 1",
        ],
    );
}

#[test]
fn a_patience_that_the_gateway_would_ignore_or_spend_at_once_is_refused() {
    let short = SOUND.replace("traffic: {", "traffic: { patience: 999ms,");
    let [problem] = &problems(&short)[..] else { panic!("{:?}", problems(&short)) };
    assert!(problem.contains("`traffic.patience` is less than a second"), "{problem}");
    let none = format!("{SOUND}config: {{ patience_share: 0% }}\n");
    let [problem] = &problems(&none)[..] else { panic!("{:?}", problems(&none)) };
    assert!(problem.contains("`config.patience_share` of 0%"), "{problem}");
}

#[test]
fn a_backend_is_named_after_provider_and_model() {
    check(
        "for: 1m\ntraffic: { rate: 1/s }\nbackends: { solo: [] }\n",
        &["3:13 TG017 `solo` is not `provider/model`"],
    );
    let none = "for: 1m\ntraffic: { rate: 1/s }\nbackends: {}\n";
    check(none, &["3:1 TG017 `backends`: a timeline needs at least one backend"]);
}

#[test]
fn a_config_file_that_cannot_be_used_is_named() {
    let text = format!("{SOUND}config: nowhere.yaml\n");
    check(
        &text,
        &["6:9 TG154 `config`: `nowhere.yaml` cannot be used: `nowhere.yaml` does not exist"],
    );
}

#[test]
fn unknown_keys_and_missing_keys_are_told_together() {
    check(
        "four: 1m\ntraffic: { rat: 1/s }\nbackends: { a/b: [] }\n",
        &[
            "1:1 TG010 unknown key `four`",
            "1:1 TG013 the file has no key `for`",
            "2:1 TG013 `traffic` has no key `rate`",
            "2:12 TG010 unknown key `rat` in `traffic`",
        ],
    );
}

#[test]
fn a_bad_phase_keeps_no_other_phase_of_its_backend_from_being_checked() {
    let text = SOUND.replace(
        "a/b: []",
        "a/b: [{ at: 0s, do: okk }, { do: ok }, { at: 5s }, { at: 9s, do: status, status: 7 }, \
         { at: 8s, do: slow }]",
    );
    let codes: Vec<String> = problems(&text)
        .iter()
        .map(|it| it.split(' ').skip(1).take(2).collect::<Vec<_>>().join(" "))
        .collect();
    let expected = [
        "TG014 `backends.a/b[0].do`:",
        "TG013 `backends.a/b[1]`",
        "TG013 `backends.a/b[2]`",
        "TG151 `backends.a/b[3].status`:",
        "TG151 `backends.a/b[4].at`:",
        "TG151 `backends.a/b[4]`:",
    ];
    assert_eq!(codes, expected);
}

#[test]
fn fleets_that_make_no_sense_are_refused() {
    check(
        &format!("replicas: 0\n{SOUND}"),
        &["1:11 TG017 `replicas`: `0` is not between 1 and 1000"],
    );
    check(
        &format!("bus: {{ delay: 5ms }}\nspread: session\n{SOUND}"),
        &[
            "1:1 TG155 `bus` means nothing for one replica",
            "2:1 TG155 `spread` means nothing for one replica",
        ],
    );
    check(
        &format!("replicas: 2\nspread: session\n{SOUND}"),
        &["2:9 TG155 `spread: session` needs sessions"],
    );
    check(
        &format!("replicas: 3\nbus: {{ cut: [{{ at: 1s, for: 1s, replica: 4 }}] }}\n{SOUND}"),
        &["2:42 TG155 `bus.cut[0].replica`: there is no replica 4"],
    );
    check(
        &format!("replicas: 3\nbus: {{ cut: [{{ at: 2m, for: 1s, replica: 1 }}] }}\n{SOUND}"),
        &["2:20 TG155 `bus.cut[0].at` is after the end of the timeline"],
    );
    check(
        &SOUND.replace("a/b: []", "a/b: [{ at: 1s, do: refuse, replica: 2 }]"),
        &["4:40 TG155 `backends.a/b[0].replica`: there is no replica 2"],
    );
    check(
        &format!("replicas: 2\nbus: {{ dealy: 5ms, loss: 101% }}\n{SOUND}"),
        &[
            "2:8 TG010 unknown key `dealy` in `bus`",
            "2:26 TG017 `bus.loss`: `101%` is more than all of it: the most is `100%`",
        ],
    );
}

#[test]
fn an_expectation_about_hits_says_how_many() {
    let expect = |hits: &str| format!("{SOUND}expect: {{ hits: {{ {hits} }} }}\n");
    check(&expect("a/b: { max: 5, after: 1s }"), &[]);
    check(&expect("a/b: { after: 1s }"), &["6:19 TG017 `expect.hits.a/b` wants nothing"]);
    check(
        &expect("a/x: { max: 1 }"),
        &["6:19 TG150 `expect.hits.a/x`: no backend is called `a/x`"],
    );
}
