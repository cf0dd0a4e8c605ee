//! Transitions as an operator reads them.

use std::sync::Arc;

use tidegate_config::file::{LogFormat, LogLevel};
use tidegate_core::{outcome::Outcome, transition::Notes};

use super::*;
use crate::test_bed::{self, log_lines as lines};

fn breaker(breaker: BreakerChange, evidence: Option<OutcomeKind>, status: Option<u16>) -> Change {
    Change::Breaker { breaker, generation: 1, evidence, status }
}

fn opened(cause: OpenCause) -> BreakerChange {
    BreakerChange::Opened { from: State::Closed, until: Now(30_000), reopens: 0, cause }
}

fn check(change: &Change, expected: &str) {
    let told = describe(change);
    let said =
        format!("{:?} {} → {} [{}] {}", told.weight, told.from, told.to, told.reason, told.detail);
    assert_eq!(said, expected);
}

#[test]
fn every_change_has_its_words_and_its_weight() {
    let overloaded = Some(OutcomeKind::Overloaded);
    check(
        &breaker(opened(OpenCause::ConsecutiveFailures(3)), overloaded, Some(529)),
        "Degraded closed → open [consecutive_failures] 3 × 529 overloaded in a row",
    );
    check(
        &breaker(opened(OpenCause::ConsecutiveFailures(3)), None, None),
        "Degraded closed → open [consecutive_failures] 3 × probe failed in a row",
    );
    check(
        &breaker(opened(OpenCause::FailureRatio { failed: 11, samples: 20 }), overloaded, None),
        "Degraded closed → open [failure_ratio] 11 of 20 attempts failed, last overloaded",
    );
    let closed =
        BreakerChange::Closed { from: State::HalfOpen, cause: CloseCause::TrialsPassed(3) };
    check(
        &breaker(closed, None, None),
        "News half_open → closed [trials_passed] 3 of 3 trials passed",
    );
    check(
        &breaker(BreakerChange::Extended { until: Now(1) }, None, None),
        "Detail open → open [probe_failed] a probe failed",
    );
    let key = Some(Arc::from("one#2"));
    let (until, status) = (Now(30_000), Some(429));
    let marked = Change::Marked { key, until, reason: MarkReason::RateLimited, status };
    check(&marked, "News usable → window [rate_limited] 429 rate limited (key one#2)");
    let (reason, status) = (MarkReason::AuthRejected, Some(401));
    let marked = Change::Marked { key: None, until, reason, status };
    check(&marked, "Degraded usable → excluded [auth_rejected] 401 our key was rejected");
    let healed = Change::Healed { reason: MarkReason::Manual };
    check(&healed, "News off → usable [manual] switched on by an operator");
}

/// Fails a target until its breaker opens, and tells of it.
fn trip(format: LogFormat) -> (Vec<String>, String) {
    let gateway = test_bed::gateway(test_bed::TWO_PROVIDERS);
    let live = gateway.live.load();
    let mut notes = Notes::default();
    let route = live.core.route("slow").expect("it is in the config");
    for _ in 0..3 {
        let mut plan = live.core.begin(route, Now(0), &Default::default());
        let step = plan.next(Now(0), 0, &mut notes);
        let tidegate_core::plan::Step::Attempt(permit) = step else { panic!("{step:?}") };
        plan.report(Now(0), permit, &Outcome::answered(529), &mut notes);
    }
    let said = lines(format, LogLevel::Info, || transitions(&gateway, &notes.transitions));
    (said, gateway.metrics.render(&live, Now(0)))
}

#[test]
fn an_opening_breaker_is_one_line_and_one_count() {
    let (said, metrics) = trip(LogFormat::Text);
    assert_eq!(said.len(), 1, "{said:?}");
    let line = &said[0];
    let expected = " two/large  closed → open     3 × 529 overloaded in a row; half-open at ";
    assert!(line.get(8..).is_some_and(|line| line.starts_with(expected)), "{line}");
    let counted = "tidegate_transitions_total{backend=\"two/large\",from=\"closed\",\
                   reason=\"consecutive_failures\",to=\"open\"} 1";
    assert!(metrics.contains(counted), "{metrics}");
}

#[test]
fn one_recovery_is_one_line_however_many_breakers_it_closes() {
    let gateway = test_bed::gateway(test_bed::TWO_PROVIDERS);
    let cause = CloseCause::ProbePassed(1);
    let closed = BreakerChange::Closed { from: State::Open, cause };
    let transition = |(backend, scope): (&str, Scope)| Transition {
        at: Now(0),
        backend: backend.into(),
        scope,
        is_heard: false,
        change: breaker(closed, None, None),
    };
    let told = |backends: &[(&str, Scope)]| {
        let all: Vec<Transition> = backends.iter().copied().map(transition).collect();
        lines(LogFormat::Text, LogLevel::Info, || transitions(&gateway, &all))
    };
    let said = told(&[
        ("two", Scope::Endpoint),
        ("two/large", Scope::Backend),
        ("two/spare", Scope::Backend),
        ("two/*", Scope::Backend),
    ]);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains(" two  open → closed "), "{said:?}");
    assert_eq!(told(&[("two/large", Scope::Backend), ("two/*", Scope::Backend)]).len(), 1);
}

#[test]
fn a_machine_gets_the_same_change_as_fields() {
    let (said, _) = trip(LogFormat::Json);
    let line: serde_json::Value = serde_json::from_str(&said[0]).expect("JSON");
    for (field, expected) in [
        ("level", "warn"),
        ("message", "a backend changed state"),
        ("backend", "two/large"),
        ("scope", "backend"),
        ("from", "closed"),
        ("to", "open"),
        ("reason", "consecutive_failures"),
    ] {
        assert_eq!(line[field], expected);
    }
    assert!(line["until"].as_str().is_some_and(|until| until.ends_with('Z')), "{line}");
}

#[test]
fn s1_no_secret_is_in_a_line() {
    for format in [LogFormat::Text, LogFormat::Json] {
        let (said, metrics) = trip(format);
        assert!(!said.concat().contains("canary") && !metrics.contains("canary"));
    }
}
