//! What an operator does to a breaker by hand, and how it ends by itself.

use tidegate_core::{
    breaker::{BreakerChange, OpenCause, State},
    explain::{Obstacle, obstacles_of},
    route::Needs,
    snapshot::Reason,
    time::{Millis, Now},
    transition::Change,
};

use crate::bed::{Bed, ok};

fn state(bed: &Bed) -> (State, Option<Reason>, Option<Now>) {
    let snapshot = bed.core.snapshot(bed.now);
    let backend = &snapshot.backends[0];
    (backend.state, backend.reason, backend.deadline)
}

fn held(bed: &mut Bed, time: Millis) -> Now {
    let until = bed.now.after(time);
    assert!(bed.core.hold(bed.now, "a", until, &mut bed.notes));
    bed.core.check_invariants(bed.now);
    until
}

#[test]
fn a_breaker_that_is_held_open_gets_no_traffic_and_is_half_open_when_the_hold_ends() {
    let mut bed = Bed::of(&["a", "b"]);
    let until = held(&mut bed, Millis::minutes(10));
    assert_eq!(state(&bed), (State::Open, Some(Reason::Held), Some(until)));
    assert_eq!(bed.request(|_| ok()).visited, ["b"]);
    bed.now = Now(until.0 - 1);
    assert_eq!(bed.request(|_| ok()).visited, ["b"]);
    bed.now = until;
    assert_eq!(state(&bed), (State::HalfOpen, None, None));
    let visited: Vec<_> = (0..20).flat_map(|_| bed.request(|_| ok()).visited).collect();
    assert!(visited.iter().any(|id| id == "a"), "trials come back to it: {visited:?}");
    assert_eq!(state(&bed).0, State::Closed);
}

#[test]
fn a_hold_is_told_once_with_its_cause() {
    let mut bed = Bed::of(&["a", "b"]);
    bed.notes.transitions.clear();
    let until = held(&mut bed, Millis::minutes(1));
    let [told] = &bed.notes.transitions[..] else { panic!("{:?}", bed.notes.transitions) };
    let Change::Breaker { breaker, .. } = &told.change else { panic!("{told:?}") };
    let (from, cause) = (State::Closed, OpenCause::Held);
    assert_eq!(*breaker, BreakerChange::Opened { from, until, reopens: 0, cause });
}

#[test]
fn a_later_hold_never_shortens_an_earlier_one_nor_an_open_period() {
    let mut bed = Bed::of(&["a", "b"]);
    let long = held(&mut bed, Millis::minutes(10));
    held(&mut bed, Millis::seconds(1));
    assert_eq!(state(&bed).2, Some(long));
    let longer = held(&mut bed, Millis::minutes(20));
    assert_eq!(state(&bed).2, Some(longer));
}

#[test]
fn a_hold_is_a_last_resort_where_nothing_else_is_left() {
    let mut bed = Bed::of(&["a"]);
    held(&mut bed, Millis::minutes(10));
    let told = bed.request(|_| ok());
    assert_eq!(told.visited, ["a"]);
    assert_eq!(state(&bed).0, State::Open, "a last resort closes nothing");
}

#[test]
fn no_probe_closes_a_breaker_that_is_held_and_a_failing_one_counts_from_its_end() {
    use tidegate_core::{breaker::Breaker, settings::HealthSettings};
    let settings = HealthSettings { recovery_threshold: 1, ..HealthSettings::default() };
    let mut breaker = Breaker::new(settings, 0);
    let until = Now(600_000);
    breaker.hold(Now(0), until);
    assert_eq!(breaker.probe_passed(Now(1_000)), None);
    assert_eq!(breaker.state(Now(1_000)), State::Open);
    assert_eq!(breaker.probe_failed(Now(2_000)), None, "the hold is longer");
    assert_eq!(breaker.deadline(), Some(until));
    // A probe that fails just before the end moves it on, as it would any deadline.
    assert!(breaker.probe_failed(Now(590_000)).is_some());
    assert_eq!(breaker.deadline(), Some(Now(620_000)));
    assert!(breaker.probe_passed(Now(610_000)).is_some(), "the hold is over: probes count again");
    assert_eq!(breaker.state(Now(610_000)), State::Closed);
}

#[test]
fn a_reset_ends_a_hold() {
    let mut bed = Bed::of(&["a", "b"]);
    held(&mut bed, Millis::minutes(10));
    assert!(bed.core.reset(bed.now, "a", &mut bed.notes));
    assert_eq!(state(&bed), (State::Closed, None, None));
    assert!(!bed.core.hold(bed.now, "nobody", bed.now, &mut bed.notes));
}

#[test]
fn a_breaker_that_opened_by_itself_is_not_said_to_be_held() {
    let mut bed = Bed::of(&["a"]);
    bed.trip("a");
    assert_eq!(bed.snap("a").reason, Some(Reason::BreakerOpen));
    bed.core.hold(bed.now, "a", bed.now.after(Millis::minutes(5)), &mut bed.notes);
    assert_eq!(bed.snap("a").reason, Some(Reason::Held));
}

#[test]
fn the_record_of_a_decision_names_what_stands_against_a_member() {
    let mut bed = Bed::of(&["a", "b"]);
    bed.trip("a");
    let route = bed.core.route("main").expect("every bed has it");
    let found = |candidate| obstacles_of(route, candidate, bed.now, &Needs::default());
    assert!(matches!(found(0)[..], [Obstacle::Breaker { state: State::Open, .. }]));
    assert_eq!(found(1), []);
}
