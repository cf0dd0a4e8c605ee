//! Clients with a patience of their own: a target that hangs is left and learnt, one that is merely
//! slow is not blamed. Every run is audited, also those of the built-in timelines.

use tidegate_config::source::Source;
use tidegate_sim::{builtin, scenario::load};

/// Runs a timeline of two targets for a few seeds: every expectation and every invariant holds.
fn check(clients: &str, first: &str, expect: &str) {
    let text = format!(
        "for: 4m\n\
         traffic: {{ rate: 2/s, sessions: 20, {clients} }}\n\
         config: {{ probe: {{ every: 0s }} }}\n\
         backends:\n\
         \x20 a/m: [{first}]\n\
         \x20 b/m: [{{ at: 0s, do: ok, latency: 400ms, tokens: 5 }}]\n\
         expect: {{ {expect} }}\n"
    );
    let (scenario, problems) = load(&Source::new("t.yaml", &text));
    assert!(problems.is_empty(), "{problems:?}\n{text}");
    let scenario = scenario.expect("a file without problems is a scenario");
    for seed in 0..10 {
        let failures = scenario.run(seed).failures().to_vec();
        assert!(failures.is_empty(), "seed {seed}: {failures:?}\n{text}");
    }
}

#[test]
fn a_first_choice_that_turns_silent_is_left_and_opens() {
    check(
        "patience: 10s, stream: 70%",
        "{ at: 0s, do: ok, latency: 400ms }, { at: 30s, do: hang }",
        "client_failures: { max: 0 }, opens: { a/m: { after: 30s, before: 45s } }, \
         wait: { max: 7s }",
    );
}

#[test]
fn a_first_choice_that_was_never_heard_of_is_left_and_opens() {
    check(
        "patience: 10s, stream: 70%",
        "{ at: 0s, do: hang }",
        "client_failures: { max: 0 }, opens: { a/m: { before: 15s } }",
    );
}

#[test]
fn a_target_that_is_slow_but_answers_in_time_is_neither_left_nor_blamed() {
    check(
        "patience: 10s, stream: 70%",
        "{ at: 0s, do: ok, latency: 5s, tokens: 20 }",
        "client_failures: { max: 0 }, hops: { max: 0 }, \
         shares: { a/m: { min: 100% } }, opens: { a/m: { max: 0 } }",
    );
}

#[test]
fn a_target_is_not_blamed_by_clients_in_a_hurry() {
    // 0.6 of three seconds is too short a silence to say anything.
    check(
        "patience: 3s, stream: 70%",
        "{ at: 0s, do: ok, latency: 2500ms, tokens: 1 }",
        "client_failures: { max: 0 }, first_shares: { a/m: { min: 100% } }, \
         opens: { a/m: { max: 0 } }, healthy_at_end: [a/m, b/m]",
    );
}

#[test]
fn an_answer_of_comments_alone_is_handed_on_and_the_target_learnt() {
    check(
        "patience: 4s",
        "{ at: 0s, do: comments_only }",
        "opens: { a/m: { after: 30s, before: 3m } }, hops: { max: 1000 }",
    );
}

#[test]
fn every_built_in_timeline_keeps_the_invariants_with_impatient_clients() {
    // Its expectations are about patient clients and do not count here.
    let mut count = 0;
    for example in builtin::all().filter(|it| it.text.contains("traffic: {")) {
        count += 1;
        for patience in ["1s", "3s", "12s"] {
            let clients = format!("traffic: {{ patience: {patience},");
            let text = example.text.replace("traffic: {", &clients);
            let (scenario, problems) = load(&Source::new("t.yaml", &text));
            let scenario = scenario.unwrap_or_else(|| panic!("{problems:?}\n{text}"));
            for seed in 0..3 {
                let report = scenario.run(seed);
                let broken =
                    report.failures().iter().find(|it| it.expectation.starts_with("invariant "));
                assert!(broken.is_none(), "{} seed {seed} {patience}: {broken:?}", example.name);
            }
        }
    }
    assert!(count >= 12);
}
