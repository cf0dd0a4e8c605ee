//! The metrics as a scraper sees them.

use std::io::Write;
use std::process::{Command, Stdio};

use tidegate_core::{
    attempt::End,
    choice::PinUse,
    outcome::OutcomeKind,
    time::{Millis, Now},
};

use super::*;
use crate::test_bed;

fn filled() -> (Metrics, crate::live::Live) {
    let live = test_bed::live(test_bed::TWO_PROVIDERS);
    let metrics = Metrics::new();
    metrics.follow(&live);
    metrics.attempt_started("one/small");
    metrics.attempt("fast", "one/small", OutcomeKind::Overloaded);
    metrics.failover("fast", "one/small", "two/large", OutcomeKind::Overloaded);
    metrics.attempt_started("two/large");
    metrics.attempt("fast", "two/large", OutcomeKind::Success);
    metrics.first_content("two/large", Millis(420));
    metrics.tokens("fast", "two/large", 10, 20, 5);
    metrics.request("fast", 200, Some(End::Answered), Millis(1500));
    metrics.request("fast", 503, Some(End::NothingLeft), Millis(10));
    metrics.hold_overflow("two/large");
    metrics.resend("two/large");
    metrics.relaxed("fast", 2);
    metrics.budget_spent("fast");
    metrics.session_moved(PinUse::Declined);
    metrics.probed("one", ProbeResult::Failed);
    let (from, to, reason) = ("closed", "open", "consecutive_failures");
    metrics.transition(ChangeLabels { backend: "one/small", from, to, reason });
    (metrics, live)
}

fn check(text: &str, line: &str) {
    assert!(text.lines().any(|it| it == line), "no line `{line}` in:\n{text}");
}

#[test]
fn every_event_is_counted_where_a_board_looks_for_it() {
    let (metrics, live) = filled();
    let text = metrics.render(&live, Now(1000));
    for line in [
        r#"tidegate_attempts_total{outcome="overloaded",route="fast",target="one/small"} 1"#,
        r#"tidegate_attempts_total{outcome="success",route="fast",target="one/small"} 0"#,
        r#"tidegate_attempts_started_total{target="two/large"} 1"#,
        r#"tidegate_attempts_finished_total{target="two/large"} 1"#,
        r#"tidegate_requests_total{result="ok",route="fast"} 1"#,
        r#"tidegate_requests_total{result="failed",route="fast"} 1"#,
        r#"tidegate_client_failures_total{reason="nothing_left",route="fast"} 1"#,
        concat!(
            r#"tidegate_failovers_total{from="one/small",reason="overloaded","#,
            r#"route="fast",to="two/large"} 1"#
        ),
        r#"tidegate_first_token_seconds_bucket{target="two/large",le="0.5"} 1"#,
        r#"tidegate_request_seconds_count{route="fast"} 2"#,
        r#"tidegate_tokens_total{kind="cached",route="fast",target="two/large"} 5"#,
        r#"tidegate_hold_overflow_total{target="two/large"} 1"#,
        r#"tidegate_resends_total{target="two/large"} 1"#,
        r#"tidegate_relaxed_total{rank="2",route="fast"} 1"#,
        r#"tidegate_budget_spent_total{route="fast"} 1"#,
        r#"tidegate_sessions_moved_total{reason="declined"} 1"#,
        r#"tidegate_probes_total{backend="one",result="failed"} 1"#,
        r#"tidegate_backend_state{backend="one",state="closed"} 1"#,
        r#"tidegate_backend_state{backend="one/small",state="open"} 0"#,
        r#"tidegate_inflight{target="one/small"} 0"#,
        r#"tidegate_sessions{route="fast"} 0"#,
        r#"tidegate_config_info{sha="f1"} 1"#,
    ] {
        check(&text, line);
    }
}

#[test]
fn s53_a_million_names_from_outside_add_no_series() {
    let (metrics, live) = filled();
    let count = |metrics: &Metrics| metrics.render(&live, Now(1)).lines().count();
    let strange = |metrics: &Metrics, number: u32| {
        let name = format!("strange-{number}\"\n");
        metrics.attempt_started(&name);
        metrics.attempt(&name, &name, OutcomeKind::Success);
        metrics.attempt("fast", &name, OutcomeKind::Success);
        metrics.first_content(&name, Millis(1));
        metrics.request(&name, 404, None, Millis(1));
        metrics.failover(&name, &name, &name, OutcomeKind::Timeout);
        metrics.tokens(&name, &name, 1, 1, 1);
        metrics.hold_overflow(&name);
        metrics.resend(&name);
        metrics.relaxed(&name, number as u8);
        metrics.budget_spent(&name);
    };
    // Every rank once, so that the closed sets are all there.
    (0..8).for_each(|number| strange(&metrics, number));
    let before = count(&metrics);
    (8..100_000).for_each(|number| strange(&metrics, number));
    assert_eq!(count(&metrics), before);
    let text = metrics.render(&live, Now(1));
    assert!(!text.contains("strange"), "a caller's word became a label");
    check(&text, r#"tidegate_requests_total{result="refused",route="other"} 100000"#);
}

#[test]
fn a_reload_brings_its_series_keeps_the_counts_and_drops_what_is_gone() {
    let (metrics, _) = filled();
    // A name of the config may be any word, also one that a family knows.
    let next = test_bed::live_as(
        "providers: {one: {api: fake}, three: {api: fake}}\n\
         routes: {new: {tiers: [[three/a]]}, fast: {tiers: [[one/small], [three/a]]}}\n",
        "f2",
    );
    metrics.request("unknown", 404, None, Millis(1));
    metrics.transition(ChangeLabels { backend: "two#1", from: "a", to: "b", reason: "c" });
    metrics.transition(ChangeLabels { backend: "one#1", from: "a", to: "b", reason: "c" });
    metrics.follow(&next);
    metrics.attempt("new", "three/a", OutcomeKind::Success);
    let text = metrics.render(&next, Now(1));
    for kept in [
        r#"tidegate_attempts_total{outcome="success",route="new",target="three/a"} 1"#,
        r#"tidegate_attempts_total{outcome="overloaded",route="fast",target="one/small"} 1"#,
        r#"tidegate_requests_total{result="ok",route="fast"} 1"#,
        r#"tidegate_requests_total{result="refused",route="other"} 1"#,
        r#"tidegate_request_seconds_count{route="fast"} 2"#,
        r#"tidegate_probes_total{backend="one",result="failed"} 1"#,
        r#"tidegate_sessions_moved_total{reason="declined"} 1"#,
        r#"tidegate_transitions_total{backend="one#1",from="a",reason="c",to="b"} 1"#,
    ] {
        check(&text, kept);
    }
    let stale: Vec<&str> =
        text.lines().filter(|line| line.contains("two") || line.contains("slow")).collect();
    assert!(stale.is_empty(), "series of what is gone: {stale:#?}");
    metrics.follow(&test_bed::live(test_bed::TWO_PROVIDERS));
    metrics.attempt("fast", "two/large", OutcomeKind::Overloaded);
    let text = metrics.render(&test_bed::live(test_bed::TWO_PROVIDERS), Now(1));
    check(&text, r#"tidegate_attempts_total{outcome="success",route="fast",target="two/large"} 0"#);
}

#[test]
fn routes_and_targets_that_nobody_uses_have_no_series() {
    let (metrics, live) = (Metrics::new(), test_bed::live(test_bed::TWO_PROVIDERS));
    metrics.follow(&live);
    let unused = metrics.render(&live, Now(1));
    for name in ["tidegate_requests_total", "tidegate_attempts_total", "tidegate_tokens_total"] {
        let series = unused.lines().filter(|line| line.starts_with(name));
        let known: Vec<&str> = series.filter(|line| !line.contains("\"other\"")).collect();
        assert!(known.is_empty(), "{known:#?}");
    }
    metrics.request("fast", 200, None, Millis(1));
    let used = metrics.render(&live, Now(1));
    // All of a route's series are there from its first request on, so that a first failure is an
    // increase.
    check(&used, r#"tidegate_requests_total{result="ok",route="fast"} 1"#);
    check(&used, r#"tidegate_requests_total{result="failed",route="fast"} 0"#);
}

#[test]
fn absurd_usage_does_not_wrap_a_counter() {
    let (metrics, live) = filled();
    metrics.tokens("fast", "one/small", u64::MAX, u64::MAX, 0);
    metrics.tokens("fast", "one/small", 1, 0, 0);
    let text = metrics.render(&live, Now(1));
    let expected = (1_u64 << 32) + 1;
    let line = r#"tidegate_tokens_total{kind="input",route="fast",target="one/small"}"#;
    check(&text, &format!("{line} {expected}"));
}

/// Runs where promtool is installed; elsewhere there is nothing to run.
#[test]
fn promtool_accepts_the_text() {
    let (metrics, live) = filled();
    let command = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut promtool) = command else { return };
    let mut stdin = promtool.stdin.take().expect("it is piped");
    stdin.write_all(metrics.render(&live, Now(1)).as_bytes()).expect("promtool reads");
    drop(stdin);
    let done = promtool.wait_with_output().expect("promtool ends");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success() && said.is_empty(), "promtool says: {said}");
}
