//! The plain cache semantics: what a simple health cache does, had by settings alone.

use tidegate_core::{
    breaker::State,
    settings::HealthSettings,
    time::{Millis, Now},
};

use crate::bed::{Bed, ok, probed, refused, status};

fn plain(health: &mut HealthSettings) {
    health.failure_threshold = 2;
    health.open_for = Millis::seconds(60);
    health.recovery_threshold = 1;
    health.strike_memory = Millis::ZERO;
    health.failure_ratio = 0.0;
}

fn cache() -> Bed {
    Bed::of(&["a b"]).endpoint("host", "a b").health(plain)
}

fn probe(bed: &mut Bed, passed: bool) {
    bed.core.endpoint_probed(bed.now, "host", probed(passed), true, &mut bed.notes);
}

#[test]
fn an_unknown_backend_is_healthy() {
    let snap = cache().snap("a");
    assert!(snap.healthy);
    assert_eq!((snap.state, snap.last_error, snap.last_check), (State::Closed, None, None));
}

#[test]
fn the_first_failure_does_not_trip() {
    let mut bed = cache();
    bed.hit("a", status(500));
    let snap = bed.snap("a");
    assert_eq!((snap.healthy, snap.consecutive_failures), (true, 1));
    assert!(snap.last_error.is_some(), "but it is remembered");
}

#[test]
fn the_threshold_trips_for_the_whole_window() {
    let mut bed = cache();
    bed.hit("a", status(500));
    bed.wait(10 * 365 * 86_400_000);
    bed.hit("a", status(500));
    assert_eq!(bed.snap("a").deadline, Some(bed.now.after(Millis::seconds(60))));
    bed.wait(59_999);
    assert!(!bed.snap("a").healthy);
}

#[test]
fn a_threshold_of_one_trips_at_once() {
    let mut bed = cache().health(|it| it.failure_threshold = 1);
    bed.hit("a", refused());
    assert_eq!(bed.state("a"), State::Open);
}

#[test]
fn a_success_clears_error_and_count() {
    let mut bed = cache();
    bed.hit("a", status(500));
    bed.hit("a", ok());
    let snap = bed.snap("a");
    assert_eq!((snap.consecutive_failures, snap.last_error), (0, None));
    bed.hit("a", status(500));
    assert!(bed.snap("a").healthy, "it counts from the beginning");
}

#[test]
fn it_is_half_open_after_the_window() {
    let mut bed = cache();
    bed.hit("a", status(500));
    bed.hit("a", status(500));
    bed.wait(60_000);
    assert_eq!(bed.state("a"), State::HalfOpen);
}

#[test]
fn a_failing_probe_inside_the_window_extends_it() {
    let mut bed = cache();
    bed.hit("a", status(500));
    bed.hit("a", status(500));
    bed.wait(20_000);
    probe(&mut bed, false);
    assert_eq!(bed.snap("a").deadline, Some(Now(80_000)));
}

#[test]
fn one_success_of_a_trial_resets_all() {
    let mut bed = cache();
    bed.hit("a", status(500));
    bed.hit("a", status(500));
    bed.wait(60_000);
    bed.hit("a", ok());
    let snap = bed.snap("a");
    assert_eq!((snap.state, snap.deadline, snap.last_error), (State::Closed, None, None));
}

#[test]
fn one_success_of_a_probe_inside_the_window_resets_all() {
    let mut bed = cache();
    bed.hit("a", status(500));
    bed.hit("a", status(500));
    bed.wait(1_000);
    probe(&mut bed, true);
    let snap = bed.snap("a");
    assert_eq!((snap.state, snap.deadline, snap.last_error), (State::Closed, None, None));
    assert_eq!(snap.consecutive_failures, 0);
}

#[test]
fn recovery_is_reported_once() {
    let mut bed = cache();
    bed.hit("a", status(500));
    bed.hit("a", status(500));
    bed.wait(60_000);
    for _ in 0..5 {
        bed.hit("a", ok());
        probe(&mut bed, true);
    }
    assert_eq!(bed.turns(), (1, 1));
}

#[test]
fn a_snapshot_is_a_copy() {
    let mut bed = cache();
    let before = bed.core.snapshot(bed.now);
    let kept = before.clone();
    bed.hit("a", status(500));
    bed.hit("a", status(500));
    assert_eq!(before, kept);
    assert_ne!(bed.core.snapshot(bed.now), kept);
}

#[test]
fn expected_names_are_present_before_any_evidence() {
    let snapshot = cache().core.snapshot(Now::ZERO);
    let names: Vec<&str> = snapshot.backends.iter().map(|it| it.id.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(snapshot.endpoints.len(), 1);
}

#[test]
fn bad_settings_are_refused_by_name() {
    type Break = fn(&mut HealthSettings);
    let rows: [(&str, Break); 10] = [
        ("failure_threshold", |it| it.failure_threshold = 0),
        ("recovery_threshold", |it| it.recovery_threshold = 0),
        ("min_samples", |it| it.min_samples = 0),
        ("trial_permits", |it| it.trial_permits = 0),
        ("open_growth", |it| it.open_growth = 0.99),
        ("open_growth", |it| it.open_growth = f64::NAN),
        ("failure_ratio", |it| it.failure_ratio = 1.01),
        ("failure_ratio", |it| it.failure_ratio = -0.1),
        ("open_jitter", |it| it.open_jitter = f64::INFINITY),
        ("open_max", |it| it.open_max = Millis(59_999)),
    ];
    for (key, break_it) in rows {
        let mut health = HealthSettings::default();
        plain(&mut health);
        assert_eq!(health.problems(), Vec::new());
        break_it(&mut health);
        let keys: Vec<&str> = health.problems().iter().map(|it| it.key).collect();
        assert_eq!(keys, [key]);
    }
}

#[test]
fn a_setting_at_exactly_its_limit_is_allowed() {
    let mut health = HealthSettings::default();
    (health.failure_threshold, health.recovery_threshold) = (1, 1);
    (health.min_samples, health.trial_permits) = (1, 1);
    (health.open_growth, health.failure_ratio, health.open_jitter) = (1.0, 1.0, 1.0);
    health.open_max = health.open_for;
    assert_eq!(health.problems(), Vec::new());
}
