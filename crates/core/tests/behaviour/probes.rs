//! What probes do to breakers. (When they are due is `probe.rs` of the core and its own tests.)

use tidegate_core::{
    breaker::State,
    mark::MarkReason,
    outcome::{Outcome, OutcomeKind},
    probe::ProbeOutcome,
    snapshot::{BackendSnapshot, Reason},
    time::{Millis, Now},
    transition::Change,
};

use crate::bed::{Bed, ok, probed, refused, status};

fn probe(bed: &mut Bed, id: &str, passed: bool) {
    probe_ended(bed, id, if passed { ok() } else { refused() });
}

/// A probe of a server ended like this; the next one comes half a minute later.
fn probe_ended(bed: &mut Bed, id: &str, outcome: Outcome) {
    let (now, next_in) = (bed.now, Millis(33_000));
    assert!(bed.core.server_probed(now, id, &outcome, next_in, &mut bed.notes), "{id} is listed");
}

fn probe_endpoint(bed: &mut Bed, passed: bool, heals: bool) {
    assert!(bed.core.endpoint_probed(bed.now, "host", probed(passed), heals, &mut bed.notes));
}

#[test]
fn a_failing_probe_counts_like_a_failure_of_traffic() {
    let mut bed = Bed::of(&["mcp:a"]);
    probe(&mut bed, "mcp:a", false);
    bed.hit("mcp:a", refused());
    probe(&mut bed, "mcp:a", false);
    assert_eq!(bed.state("mcp:a"), State::Open);
}

#[test]
fn a_failing_probe_inside_the_window_moves_the_deadline_to_a_period_from_now() {
    let mut bed = Bed::of(&["mcp:a"]);
    bed.trip("mcp:a");
    bed.wait(10_000);
    probe(&mut bed, "mcp:a", false);
    assert_eq!(bed.snap("mcp:a").deadline, Some(Now(40_000)));
    assert_eq!(bed.turns(), (1, 0), "an extension is no new opening");
}

#[test]
fn failing_probes_never_move_the_deadline_past_open_max_after_it_opened() {
    let mut bed = Bed::of(&["mcp:a"]).health(|it| it.open_max = Millis(45_000));
    bed.trip("mcp:a");
    for _ in 0..4 {
        bed.wait(10_000);
        probe(&mut bed, "mcp:a", false);
        assert!(bed.snap("mcp:a").deadline <= Some(Now(45_000)));
    }
    assert_eq!(bed.snap("mcp:a").deadline, Some(Now(45_000)));
    bed.wait(5_000);
    let _traffic_gets_its_trial = bed.trial("mcp:a");
}

#[test]
fn traffic_gets_its_trial_even_where_the_probe_s_path_is_dead() {
    for every in [1, 999, 10_000, 30_000, 30_001] {
        let mut bed = Bed::of(&["mcp:a"]);
        bed.trip("mcp:a");
        let mut trials = 0;
        while bed.now < Now(3_600_000) {
            bed.wait(every);
            probe(&mut bed, "mcp:a", false);
            let held = bed.take("mcp:a");
            trials += u32::from(held.permit.is_trial());
            if bed.state("mcp:a") == State::Closed {
                break;
            }
            bed.report(held, ok());
        }
        assert!(trials >= 3, "a probe every {every} ms: {trials} trials in an hour");
        assert_eq!(bed.turns().1, 1, "a probe every {every} ms: traffic alone closes it");
    }
}

#[test]
fn a_passing_probe_is_a_trial_success_also_before_the_deadline() {
    let mut bed = Bed::of(&["mcp:a"]);
    bed.trip("mcp:a");
    for _ in 0..2 {
        probe(&mut bed, "mcp:a", true);
        assert_eq!(bed.state("mcp:a"), State::Open);
    }
    probe(&mut bed, "mcp:a", true);
    let snap = bed.snap("mcp:a");
    assert_eq!((snap.state, snap.deadline, snap.last_error), (State::Closed, None, None));
}

#[test]
fn probe_and_traffic_successes_count_together() {
    let mut bed = Bed::of(&["mcp:a"]);
    bed.trip("mcp:a");
    probe(&mut bed, "mcp:a", true);
    bed.wait(30_000);
    for _ in 0..2 {
        let trial = bed.trial("mcp:a");
        bed.report(trial, ok());
    }
    assert_eq!(bed.state("mcp:a"), State::Closed);
}

#[test]
fn a_failing_probe_while_open_starts_the_count_of_successes_over() {
    let mut bed = Bed::of(&["mcp:a"]);
    bed.trip("mcp:a");
    for passed in [true, true, false, true, true] {
        probe(&mut bed, "mcp:a", passed);
    }
    assert_eq!(bed.state("mcp:a"), State::Open);
}

#[test]
fn a_failing_probe_in_half_open_re_opens() {
    let mut bed = Bed::of(&["mcp:a"]);
    bed.trip("mcp:a");
    bed.wait(30_000);
    let trial = bed.trial("mcp:a");
    probe(&mut bed, "mcp:a", false);
    assert_eq!(bed.snap("mcp:a").deadline, Some(Now(60_000)));
    bed.report(trial, ok());
    assert_eq!((bed.state("mcp:a"), bed.turns()), (State::Open, (2, 0)), "the trial is void");
}

#[test]
fn a_provider_s_probe_charges_and_heals_its_endpoint() {
    let mut bed = Bed::of(&["a b"]).endpoint("host", "a b");
    for _ in 0..3 {
        probe_endpoint(&mut bed, false, false);
    }
    assert_eq!((bed.state("a"), bed.state("b")), (State::Open, State::Open));
    assert_eq!(bed.snap("a").consecutive_failures, 0, "its own breaker heard nothing");
    for _ in 0..3 {
        probe_endpoint(&mut bed, true, false);
    }
    assert_eq!(bed.state("a"), State::Closed);
}

#[test]
fn a_provider_s_probe_does_not_close_what_real_failures_opened() {
    let mut bed = Bed::of(&["a"]).endpoint("host", "a");
    bed.trip("a");
    for _ in 0..10 {
        probe_endpoint(&mut bed, true, false);
        bed.wait(1_000);
    }
    assert_eq!(bed.state("a"), State::Open);
    for _ in 0..3 {
        probe_endpoint(&mut bed, true, true);
    }
    assert_eq!(bed.state("a"), State::Closed, "unless it heals");
}

#[test]
fn a_healing_probe_s_failure_goes_to_the_targets_of_its_provider_only() {
    let mut bed = Bed::of(&["a other"]).endpoint("host", "a");
    probe_endpoint(&mut bed, false, true);
    assert_eq!(bed.snap("a").consecutive_failures, 1);
    assert_eq!(bed.snap("other").consecutive_failures, 0);
}

#[test]
fn a_passing_probe_ends_the_streaks_of_a_closed_breaker() {
    let mut bed = Bed::of(&["mcp:a"]);
    for _ in 0..5 {
        bed.hit("mcp:a", status(500));
        bed.hit("mcp:a", status(500));
        probe(&mut bed, "mcp:a", true);
    }
    assert_eq!((bed.state("mcp:a"), bed.snap("mcp:a").last_error), (State::Closed, None));
}

#[test]
fn a_probe_sets_the_last_check() {
    let mut bed = Bed::of(&["mcp:a"]);
    bed.wait(9);
    probe(&mut bed, "mcp:a", false);
    let snap = bed.snap("mcp:a");
    assert_eq!(snap.last_check, Some(Now(9)));
    assert_eq!(
        snap.last_error.map(|it| (it.at, it.outcome)),
        Some((Now(9), Some(OutcomeKind::Transport)))
    );
}

#[test]
fn a_probe_that_is_refused_for_its_credentials_excludes_the_server_until_the_next_one() {
    let mut bed = Bed::of(&["mcp:a"]);
    for round in 1..=4 {
        probe_ended(&mut bed, "mcp:a", status(401));
        let snap = bed.snap("mcp:a");
        assert!(!snap.healthy, "round {round}");
        assert_eq!(snap.reason, Some(Reason::Mark(MarkReason::AuthRejected)));
        let told = snap.last_error.map(|it| (it.outcome, it.status));
        assert_eq!(told, Some((Some(OutcomeKind::AuthRejected), Some(401))));
        bed.wait(32_999);
        assert!(!bed.snap("mcp:a").healthy, "it stands until something else is known");
    }
    assert_eq!(bed.state("mcp:a"), State::Closed, "nobody is charged");
    probe_ended(&mut bed, "mcp:a", ok());
    assert!(bed.snap("mcp:a").healthy);
}

#[test]
fn a_probe_that_is_told_when_to_come_back_sets_a_window_and_opens_nothing() {
    let mut bed = Bed::of(&["mcp:a"]);
    for _ in 0..5 {
        let told = Outcome { retry_after: Some(Millis(60_000)), ..status(429) };
        probe_ended(&mut bed, "mcp:a", told);
    }
    assert_eq!(bed.state("mcp:a"), State::Closed);
    let snap = bed.snap("mcp:a");
    assert_eq!((snap.healthy, snap.reason), (false, Some(Reason::Mark(MarkReason::RateLimited))));
    bed.wait(60_000);
    assert!(bed.snap("mcp:a").healthy);
    for _ in 0..3 {
        probe_ended(&mut bed, "mcp:a", status(429));
    }
    assert_eq!(bed.state("mcp:a"), State::Open, "without a time it is a failure");
}

#[test]
fn probing_what_is_not_there_says_so() {
    let mut bed = Bed::of(&["a"]);
    assert!(!bed.core.server_probed(bed.now, "nobody", &ok(), Millis::ZERO, &mut bed.notes));
    assert!(!bed.core.endpoint_probed(bed.now, "nobody", probed(true), true, &mut bed.notes));
}

#[test]
fn a_target_whose_host_no_probe_reaches_tells_the_hosts_error() {
    let mut bed = Bed::of(&["a"]).endpoint("host", "a");
    bed.hit("a", ok());
    assert_eq!(bed.snap("a").last_error, None);
    bed.wait(1_000);
    for _ in 0..3 {
        probe_endpoint(&mut bed, false, false);
    }
    let snap = bed.snap("a");
    assert_eq!((snap.reason, snap.state), (Some(Reason::EndpointOpen), State::Open));
    let error = snap.last_error.expect("something is wrong");
    assert_eq!((error.at, error.outcome), (bed.now, None));
    assert_eq!(snap.last_check, Some(bed.now));
    // Once the host is reached again, its trouble is not the target's any more.
    bed.wait(1_000);
    for _ in 0..3 {
        probe_endpoint(&mut bed, true, false);
    }
    assert_eq!(bed.snap("a").last_error, None);
}

#[test]
fn a_targets_snapshot_has_its_hosts_probes_also_while_nothing_tripped() {
    let mut bed = Bed::of(&["a b"]).endpoint("host", "a b");
    bed.wait(5);
    probe_endpoint(&mut bed, true, false);
    let snap = bed.snap("a");
    assert_eq!((snap.last_check, snap.last_error), (Some(Now(5)), None));
    bed.wait(5);
    probe_endpoint(&mut bed, false, false);
    let snap = bed.snap("a");
    assert_eq!((snap.last_check, snap.healthy), (Some(Now(10)), true));
    assert_eq!(snap.last_error.map(|it| it.at), Some(Now(10)), "also one that does not trip");
    bed.wait(5);
    probe_endpoint(&mut bed, true, false);
    assert_eq!(bed.snap("a").last_error, None, "null after a success");
    // A call is news of the called target alone.
    bed.wait(5);
    bed.hit("b", refused());
    assert_eq!((bed.snap("a").last_error, bed.snap("a").last_check), (None, Some(Now(15))));
    assert_eq!(bed.snap("b").last_check, Some(Now(20)));
}

#[test]
fn a_healing_probe_closes_targets_only_with_a_2xx() {
    for (code, expected) in [(200, State::Closed), (204, State::Closed), (503, State::Open)] {
        let mut bed = Bed::of(&["a"]).endpoint("host", "a").health(|it| it.recovery_threshold = 1);
        bed.trip("a");
        let outcome = ProbeOutcome::Answered(code);
        bed.core.endpoint_probed(bed.now, "host", outcome, true, &mut bed.notes);
        assert_eq!(bed.state("a"), expected, "{code}");
    }
}

#[test]
fn any_other_answer_to_a_healing_probe_says_nothing_about_targets() {
    for code in [301, 401, 404, 429, 500, 503] {
        let mut bed = Bed::of(&["a"]).endpoint("host", "a");
        bed.hit("a", status(500));
        bed.hit("a", status(500));
        let before = bed.snap("a");
        bed.wait(5);
        for _ in 0..9 {
            let outcome = ProbeOutcome::Answered(code);
            bed.core.endpoint_probed(bed.now, "host", outcome, true, &mut bed.notes);
        }
        let checked = BackendSnapshot { last_check: Some(bed.now), ..before };
        assert_eq!(bed.snap("a"), checked, "{code}");
        assert_eq!(bed.endpoint_snap("host").last_error, None, "it was reached: {code}");
    }
}

/// BEHAVIOUR 3: probes pause where nobody uses the backend; its host is used with it.
#[test]
fn traffic_to_a_target_is_contact_with_its_endpoint() {
    let mut bed = Bed::of(&["a", "b"]).endpoint("host", "a");
    bed.wait(5_000);
    bed.hit("a", ok());
    assert_eq!(bed.core.contact("host").used_at, Some(bed.now));
    assert_eq!(bed.core.contact("b").used_at, None);
    bed.hit("b", ok());
    assert_eq!(bed.core.contact("b").used_at, Some(bed.now));
}

#[test]
fn an_exclusion_that_probes_find_again_and_again_is_told_once() {
    let mut bed = Bed::of(&["mcp:a"]);
    for _ in 0..3 {
        probe_ended(&mut bed, "mcp:a", status(401));
        bed.wait(30_000);
    }
    let is_mark = |change: &Change| matches!(change, Change::Marked { .. });
    let told = bed.notes.transitions.iter().filter(|it| is_mark(&it.change)).count();
    assert_eq!(told, 1);
}
