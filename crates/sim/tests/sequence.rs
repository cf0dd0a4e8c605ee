//! Form 1, rule by rule: what a file means, and what a run of it gives.

mod support;

use support::run;
use tidegate_core::outcome::OutcomeKind;
use tidegate_sim::sequence::trace::{RequestTrace, StepTrace};

/// A request as one line: `a/x:500 b/x:200 = 200 @a/x` (attempts, what the client saw, the pin).
fn line(request: &RequestTrace) -> String {
    let attempts = request.attempts.iter().zip(&request.statuses);
    let mut words: Vec<String> = attempts.map(|(id, status)| format!("{id}:{status}")).collect();
    words.push(format!("= {}", request.final_status));
    if !request.pin_after.is_empty() {
        words.push(format!("@{}", request.pin_after));
    }
    words.join(" ")
}

/// The steps of a run with seed 0, a line each.
fn story(text: &str) -> Vec<String> {
    let report = run(text, 0);
    let step = |step: &StepTrace| match step {
        StepTrace::Trace(request) => line(request),
        StepTrace::Advance(span) => format!("+{span}"),
    };
    report.trace().steps.iter().map(step).collect()
}

/// Services `a/x` (tier 0) and `b/x` (tier 1), with these faults and this program.
fn two(faults: &str, program: &str) -> String {
    format!(
        "services: [{{provider: a, model: x}}, {{provider: b, model: x, tier: 1}}]\n\
         faults: {faults}\nprogram: {program}\n"
    )
}

fn check(text: &str, expected: &[&str]) {
    assert_eq!(story(text), expected, "{text}");
}

/// One request to a single service that answers with `status`.
fn one_answer(step: &str) -> (u16, OutcomeKind, u16) {
    let text = format!(
        "services: [{{provider: a, model: x}}]\nfaults: {{a/x: {{steps: [{step}]}}}}\n\
         program: [{{request: ''}}]\n"
    );
    let report = run(&text, 0);
    let request = report.trace().requests().next().expect("one request");
    (request.statuses[0], request.outcomes[0].0, request.final_status)
}

#[test]
fn a_status_alone_says_how_an_attempt_ended_and_what_the_client_sees() {
    use OutcomeKind::*;
    let rows = [
        (200, Success, 200),
        (204, Success, 204),
        (301, ServerError, 502),
        (400, ClientFault, 400),
        (401, AuthRejected, 401),
        (402, Exhausted, 402),
        (403, AuthRejected, 403),
        (404, ClientFault, 404),
        (408, Timeout, 408),
        (424, ServerError, 424),
        (429, RateLimited, 429),
        (500, ServerError, 500),
        (501, ClientFault, 501),
        (503, Overloaded, 503),
        (505, ClientFault, 505),
        (529, Overloaded, 529),
        (599, ServerError, 599),
    ];
    for (status, kind, seen) in rows {
        assert_eq!(one_answer(&format!("{{status: {status}}}")), (status, kind, seen));
    }
}

#[test]
fn an_error_has_no_status_and_a_truncated_answer_commits_200() {
    use OutcomeKind::*;
    for error in ["connect", "reset"] {
        assert_eq!(one_answer(&format!("{{error: {error}}}")), (0, Transport, 503));
    }
    assert_eq!(one_answer("{error: timeout}"), (0, Timeout, 503));
    assert_eq!(one_answer("{error: timeout, status: 0}"), (0, Timeout, 503));
    assert_eq!(one_answer("{error: truncate}"), (200, Truncated, 200));
}

#[test]
fn status_0_or_absent_is_200_and_repeat_below_one_is_one() {
    let steps =
        "{steps: [{status: 0, repeat: 0}, {status: 404, repeat: -7}, {repeat: 2}, {status: 410}]}";
    check(
        &two(
            &format!("{{a/x: {steps}}}"),
            "[{request: ''}, {request: ''}, {request: ''}, {request: ''}, {request: ''}]",
        ),
        &["a/x:200 = 200", "a/x:404 = 404", "a/x:200 = 200", "a/x:200 = 200", "a/x:410 = 410"],
    );
    check(
        &two("{a/x: [0, 404]}", "[{request: ''}, {request: ''}]"),
        &["a/x:200 = 200", "a/x:404 = 404"],
    );
}

#[test]
fn a_script_that_is_over_clamps_loops_or_is_gone() {
    let requests = "[{request: ''}, {request: ''}, {request: ''}]";
    let script =
        |word: &str| format!("{{a/x: {{steps: [{{}}, {{status: 404}}], on_exhaust: {word}}}}}");
    check(&two(&script("clamp"), requests), &["a/x:200 = 200", "a/x:404 = 404", "a/x:404 = 404"]);
    check(&two(&script("loop"), requests), &["a/x:200 = 200", "a/x:404 = 404", "a/x:200 = 200"]);
    check(&two(&script("fail"), requests), &["a/x:200 = 200", "a/x:404 = 404", "a/x:410 = 410"]);
}

#[test]
fn a_truncated_answer_ends_the_request_and_three_open_the_breaker() {
    let text = two(
        "{a/x: {steps: [{error: truncate}]}}",
        "[{request: ''}, {request: ''}, {request: ''}, {request: ''}]",
    );
    check(&text, &["a/x:200 = 200", "a/x:200 = 200", "a/x:200 = 200", "b/x:200 = 200"]);
}

#[test]
fn two_services_of_one_provider_share_neither_endpoint_nor_key() {
    for fault in ["{steps: [{error: connect}]}", "[401]"] {
        let text = format!(
            "services: [{{provider: a, model: x}}, {{provider: a, model: y, tier: 1}}]\n\
             faults: {{a/x: {fault}}}\n\
             program: [{{request: ''}}, {{request: ''}}, {{request: ''}}, {{request: ''}}]\n\
             expect: {{attempts: [a/y], health: {{a/x: unhealthy, a/y: healthy}}}}\n"
        );
        assert_eq!(run(&text, 0).failures(), [], "{fault}");
    }
}

#[test]
fn our_keys_trouble_is_shown_only_if_there_is_nothing_else() {
    check(&two("{a/x: [500], b/x: [401]}", "[{request: ''}]"), &["a/x:500 b/x:401 = 500"]);
    check(&two("{a/x: [402], b/x: [401]}", "[{request: ''}]"), &["a/x:402 b/x:401 = 401"]);
}

#[test]
fn retry_after_is_a_number_of_seconds_or_a_duration() {
    for written in ["2", "2.0", "2s", "2000ms"] {
        let fault = format!("{{a/x: {{steps: [{{status: 429, retry_after: {written}}}, {{}}]}}}}");
        let program =
            "[{request: ''}, {advance: 1999ms}, {request: ''}, {advance: 1ms}, {request: ''}]";
        let expected =
            ["a/x:429 b/x:200 = 200", "+1999ms", "b/x:200 = 200", "+1ms", "a/x:200 = 200"];
        check(&two(&fault, program), &expected);
    }
}

#[test]
fn policy_reaches_route_and_breakers() {
    let with = |policy: &str, faults: &str| {
        format!("policy: {policy}\n{}", two(faults, "[{request: ''}, {request: ''}]"))
    };
    check(&with("{max_hops: 0}", "{a/x: [500, 200]}"), &["a/x:500 = 500", "a/x:200 = 200"]);
    check(&with("{on_auth_error: surface}", "{a/x: [401]}"), &["a/x:401 = 401", "b/x:200 = 200"]);
    check(
        &with("{failure_threshold: 1}", "{a/x: [500]}"),
        &["a/x:500 b/x:200 = 200", "b/x:200 = 200"],
    );
}

#[test]
fn a_spent_budget_ends_a_request_at_its_second_hop() {
    let text = "
policy: {retry_budget: {window: 10s, ratio: 0, floor: 1}}
services:
  - {provider: a, model: x}
  - {provider: b, model: x, tier: 1}
  - {provider: c, model: x, tier: 2}
faults: {a/x: [500], b/x: [503]}
program: [{request: ''}, {request: ''}, {advance: 10s}, {request: ''}]
";
    check(
        text,
        &[
            "a/x:500 b/x:503 c/x:200 = 200",
            "a/x:500 b/x:503 = 503",
            "+10s",
            "a/x:500 b/x:503 c/x:200 = 200",
        ],
    );
}

#[test]
fn tier_numbers_order_the_tiers_and_are_printed_as_written() {
    let text = "services: [{provider: a, model: x, tier: 7}, \
                {provider: b, model: x, tier: 3, inactive: true}, \
                {provider: c, model: x, tier: 5}]\nprogram: [{request: ''}]\n";
    check(text, &["c/x:200 = 200"]);
    assert_eq!(run(text, 0).trace().services, ["a/x (T7)", "b/x (T3,inactive)", "c/x (T5)"]);
}

#[test]
fn a_route_of_inactive_services_answers_503_without_an_attempt() {
    check(
        "services: [{provider: a, model: x, inactive: true}]\nprogram: [{request: s}]\n",
        &["= 503"],
    );
}

#[test]
fn a_flat_route_ignores_tier_numbers_but_not_breakers() {
    let text = "
tactic: ' Random '
within_tier_tactic: least_busy
services: [{provider: a, model: x, tier: 9}, {provider: b, model: x}]
faults: {a/x: [500]}
policy: {failure_threshold: 1}
program: [{request: ''}, {request: ''}]
";
    check(text, &["a/x:500 b/x:200 = 200", "b/x:200 = 200"]);
    assert_eq!(run(text, 0).trace().tactic, "random");
}

#[test]
fn latency_feeds_least_latency() {
    let text = "
within_tier_tactic: LEAST_LATENCY
services: [{provider: a, model: x}, {provider: b, model: x}]
faults: {a/x: {steps: [{latency: 900ms}]}, b/x: {steps: [{latency: 20ms}]}}
program: [{request: ''}, {request: ''}, {request: ''}, {request: ''}, {request: ''}]
expect: {attempts: [b/x], distinct_first_attempts: [a/x, b/x]}
";
    for seed in 0..20 {
        assert_eq!(run(text, seed).failures(), [], "seed {seed}");
    }
}

#[test]
fn an_unknown_tactic_inside_a_tier_is_random() {
    let text = |word: &str| {
        format!(
            "within_tier_tactic: {word}\n\
             services: [{{provider: a, model: x}}, {{provider: b, model: x}}]\n\
             program: [{{request: ''}}, {{request: ''}}, {{request: ''}}, {{request: ''}}]\n"
        )
    };
    for seed in 0..5 {
        let random = run(&text("random"), seed);
        let retired = run(&text("token_based"), seed);
        assert_eq!(random.to_json(), retired.to_json());
    }
}

#[test]
fn a_seeded_pin_lives_one_hour_and_needs_affinity() {
    let text = |affinity: u32| {
        format!(
            "affinity_secs: {affinity}\nwithin_tier_tactic: least_busy\n\
             services: [{{provider: a, model: x}}, {{provider: b, model: x}}]\n\
             seed_pin: {{session: s, provider: b, model: x}}\n\
             program: [{{request: s}}, {{advance: 1h}}, {{request: s}}, {{advance: 1ms}}, \
             {{request: s}}]\n"
        )
    };
    let expected =
        ["b/x:200 = 200 @b/x", "+1h", "b/x:200 = 200 @b/x", "+1ms", "a/x:200 = 200 @a/x"];
    check(&text(60), &expected);
    check(&text(0), &["a/x:200 = 200", "+1h", "a/x:200 = 200", "+1ms", "a/x:200 = 200"]);
}

#[test]
fn pin_is_judged_at_the_end_and_pins_right_after_the_sessions_last_request() {
    let text = |expect: &str| {
        format!(
            "affinity_secs: 60\nservices: [{{provider: a, model: x}}]\n\
             program: [{{request: s}}, {{advance: 61s}}]\nexpect: {expect}\n"
        )
    };
    assert_eq!(run(&text("{pin: '', pins: {s: a/x}}"), 0).failures(), []);
    let failures = run(&text("{pin: a/x, pins: {s: '', t: ''}}"), 0).failures().to_vec();
    let sentences: Vec<&str> = failures.iter().map(|it| it.sentence.as_str()).collect();
    assert_eq!(
        sentences,
        [
            "pin: at the end, after request 1 (session `s`): wanted `a/x`, got no pin",
            "pins: after request 1, the last of session `s`: wanted no pin, got `a/x`",
            "pins: wanted no pin for session `t`, but it never asked",
        ]
    );
}

#[test]
fn every_expectation_about_the_last_request_fails_without_one() {
    let text = "services: [{provider: a, model: x}]\nexpect: {final_status: 200, attempts: [], \
                attempts_contain: [a/x], attempts_exclude: [a/x], pin: '', \
                distinct_first_attempts: []}\n";
    let failures = run(text, 0).failures().to_vec();
    let keys: Vec<&str> = failures.iter().map(|it| it.expectation.as_str()).collect();
    assert_eq!(keys, ["final_status", "attempts", "attempts_contain", "attempts_exclude", "pin"]);
    assert!(failures[0].sentence.contains("no request"), "{failures:?}");
}

#[test]
fn every_expectation_can_fail() {
    let text = two("{a/x: [500]}", "[{request: s}]")
        + "expect: {final_status: 500, attempts: [a/x], attempts_contain: [a/x, b/x], \
           attempts_exclude: [b/x], breaker: {a/x: open, b/x: closed}, \
           health: {a/x: unhealthy, b/x: healthy}, distinct_first_attempts: [b/x]}\n";
    let failures = run(&text, 0).failures().to_vec();
    let keys: Vec<&str> = failures.iter().map(|it| it.expectation.as_str()).collect();
    assert_eq!(
        keys,
        [
            "final_status",
            "attempts",
            "attempts_exclude b/x",
            "breaker a/x",
            "health a/x",
            "distinct_first_attempts"
        ]
    );
    assert_eq!(failures[0].sentence, "final_status: request 1 (session `s`): wanted 500, got 200");
}

#[test]
fn ten_years_at_once_and_no_time_at_all_break_nothing() {
    check(
        &two(
            "{a/x: [500, 500, 500, 200]}",
            "[{request: 1}, {request: 1}, {request: 1}, {advance: 3650d}, {advance: 0s}, \
             {request: 1}]",
        ),
        &[
            "a/x:500 b/x:200 = 200",
            "a/x:500 b/x:200 = 200",
            "a/x:500 b/x:200 = 200",
            "+3650d",
            "+0s",
            "a/x:200 = 200",
        ],
    );
}

#[test]
fn the_longest_affinity_and_the_largest_weight_are_no_overflow() {
    let text = format!(
        "affinity_secs: {}\nwithin_tier_tactic: weighted\npolicy: {{max_hops: 4294967295}}\n\
         services: [{{provider: a, model: x, weight: 4294967295}}, \
         {{provider: b, model: x, weight: 4294967295}}]\n\
         program: [{{request: s}}, {{advance: 100d}}, {{request: s}}]\n",
        u64::MAX
    );
    let lines = story(&text);
    assert_eq!(lines[0], lines[2]);
}
