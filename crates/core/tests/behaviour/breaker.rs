//! The breaker at work: streaks, ratio, open periods, trials, probation, leases, the hold.

use tidegate_core::{
    breaker::{BreakerChange, OpenCause, State},
    outcome::OutcomeKind,
    time::{Millis, Now},
    transition::Change,
};

use crate::bed::{Bed, come_back, ended, of_kind, ok, refused, status};

/// A breaker that has just become half-open.
fn half_open() -> Bed {
    let mut bed = Bed::of(&["a"]);
    bed.trip("a");
    bed.wait(30_000);
    assert_eq!(bed.state("a"), State::HalfOpen);
    bed
}

fn last_opening(bed: &Bed) -> (Now, u32, OpenCause) {
    let opening = bed.notes.transitions.iter().rev().find_map(|it| match it.change {
        Change::Breaker {
            breaker: BreakerChange::Opened { until, reopens, cause, .. }, ..
        } => Some((until, reopens, cause)),
        _ => None,
    });
    opening.expect("it opened")
}

#[test]
fn the_third_failure_in_a_row_opens() {
    let mut bed = Bed::of(&["a"]);
    bed.hit("a", status(500));
    bed.hit("a", status(500));
    assert_eq!((bed.state("a"), bed.snap("a").consecutive_failures), (State::Closed, 2));
    bed.hit("a", status(500));
    assert_eq!((bed.state("a"), bed.snap("a").consecutive_failures), (State::Open, 3));
    assert_eq!(last_opening(&bed).2, OpenCause::ConsecutiveFailures(3));
}

#[test]
fn a_success_ends_both_streaks() {
    let mut bed = Bed::of(&["a"]);
    for _ in 0..5 {
        bed.hit("a", status(500));
        bed.hit("a", ended(OutcomeKind::Truncated));
        bed.hit("a", status(500));
        bed.hit("a", ok());
    }
    assert_eq!(bed.state("a"), State::Closed);
}

#[test]
fn the_first_content_ends_the_streak_before_content_only() {
    let mut bed = Bed::of(&["a"]);
    for _ in 0..2 {
        let mut held = bed.take("a");
        bed.content(&mut held);
        bed.report(held, ended(OutcomeKind::Timeout));
        bed.hit("a", status(500));
    }
    assert_eq!(bed.state("a"), State::Closed);
    bed.hit("a", status(500));
    let mut third = bed.take("a");
    bed.content(&mut third);
    bed.report(third, ended(OutcomeKind::Truncated));
    assert_eq!(last_opening(&bed).2, OpenCause::BrokenAnswers(3));
}

#[test]
fn a_truncated_answer_ends_the_streak_before_content_even_if_nobody_reported_the_content() {
    let mut bed = Bed::of(&["a"]);
    bed.hit("a", status(500));
    bed.hit("a", status(500));
    bed.hit("a", of_kind(OutcomeKind::Truncated, 200));
    bed.hit("a", status(500));
    assert_eq!(bed.state("a"), State::Closed);
}

#[test]
fn an_answer_that_breaks_leaves_the_failures_that_came_after_its_content() {
    let mut bed = Bed::of(&["a"]);
    let mut stream = bed.take("a");
    bed.content(&mut stream);
    bed.hit("a", status(500));
    bed.hit("a", status(500));
    bed.report(stream, ended(OutcomeKind::Truncated));
    bed.hit("a", status(500));
    assert_eq!(last_opening(&bed).2, OpenCause::ConsecutiveFailures(3));
}

#[test]
fn a_strike_is_forgotten_when_it_is_ten_minutes_old() {
    let mut bed = Bed::of(&["a"]);
    bed.hit("a", status(500));
    bed.wait(1);
    bed.hit("a", status(500));
    bed.wait(599_999);
    bed.hit("a", status(500));
    assert_eq!(bed.state("a"), State::Closed, "the first strike is exactly ten minutes old");
    bed.hit("a", status(500));
    assert_eq!(bed.state("a"), State::Open);
}

#[test]
fn a_strike_memory_of_zero_never_forgets() {
    let mut bed = Bed::of(&["a"]).health(|it| it.strike_memory = Millis::ZERO);
    for _ in 0..3 {
        bed.hit("a", status(500));
        bed.wait(1_000_000_000_000);
    }
    assert_eq!(last_opening(&bed).2, OpenCause::ConsecutiveFailures(3));
}

#[test]
fn half_of_twenty_samples_failed_opens() {
    let mut bed = Bed::of(&["a"]);
    for _ in 0..9 {
        bed.hit("a", status(500));
        bed.hit("a", ok());
    }
    bed.hit("a", ok());
    assert_eq!(bed.state("a"), State::Closed, "nineteen samples are too few");
    bed.hit("a", status(500));
    assert_eq!(last_opening(&bed).2, OpenCause::FailureRatio { failed: 10, samples: 20 });
}

#[test]
fn the_ratio_is_judged_at_a_failure_only() {
    let mut bed = Bed::of(&["a"]).health(|it| it.failure_threshold = 100);
    for _ in 0..15 {
        bed.hit("a", status(500));
    }
    for _ in 0..5 {
        bed.hit("a", ok());
    }
    assert_eq!(bed.state("a"), State::Closed, "fifteen of twenty, but the last ones succeeded");
    bed.hit("a", status(500));
    assert_eq!(bed.state("a"), State::Open);
}

#[test]
fn a_ratio_is_reached_at_exactly_its_value_whatever_the_fraction() {
    for (ratio, failures, samples) in [(0.55, 11, 20), (0.35, 7, 20), (0.07, 7, 100)] {
        let mut bed = Bed::of(&["a"]).health(|it| {
            it.failure_threshold = 1000;
            it.failure_ratio = ratio;
            it.min_samples = samples;
        });
        for _ in 0..samples - failures {
            bed.hit("a", ok());
        }
        for _ in 0..failures {
            assert_eq!(bed.state("a"), State::Closed, "{ratio}");
            bed.hit("a", status(500));
        }
        assert_eq!(bed.state("a"), State::Open, "{ratio}");
    }
}

#[test]
fn a_ratio_of_zero_is_off() {
    let mut bed = Bed::of(&["a"]).health(|it| {
        it.failure_ratio = 0.0;
        it.failure_threshold = 1000;
    });
    for _ in 0..500 {
        bed.hit("a", status(500));
    }
    assert_eq!(bed.state("a"), State::Closed);
}

#[test]
fn a_sample_exactly_thirty_seconds_old_is_out() {
    for (wait, expected) in [(29_999, State::Open), (30_000, State::Closed)] {
        let mut bed = Bed::of(&["a"]).health(|it| it.failure_threshold = 100);
        bed.hit("a", status(500));
        bed.wait(wait);
        for _ in 0..10 {
            bed.hit("a", ok());
        }
        for _ in 0..9 {
            bed.hit("a", status(500));
        }
        assert_eq!(bed.state("a"), expected, "after {wait} ms");
    }
}

#[test]
fn neither_neutral_outcomes_nor_trials_nor_last_resorts_are_samples() {
    let mut bed = Bed::of(&["a"]).health(|it| {
        it.recovery_threshold = 1;
        it.min_samples = 4;
        it.failure_ratio = 0.7;
    });
    for _ in 0..3 {
        bed.hit("a", status(400));
        bed.hit("a", come_back(429, 1));
    }
    bed.trip("a");
    bed.hit("a", ok());
    bed.wait(30_000);
    bed.hit("a", ok());
    assert_eq!(bed.state("a"), State::Closed, "the trial closed it");
    bed.hit("a", status(500));
    bed.hit("a", status(500));
    bed.hit("a", ok());
    assert_eq!(bed.state("a"), State::Closed);
    bed.hit("a", status(500));
    assert_eq!(last_opening(&bed).2, OpenCause::FailureRatio { failed: 3, samples: 4 });
}

#[test]
fn closing_clears_samples_and_strikes() {
    let mut bed = half_open();
    for _ in 0..3 {
        bed.hit("a", ok());
    }
    bed.hit("a", status(500));
    bed.hit("a", status(500));
    assert_eq!(bed.state("a"), State::Closed);
}

#[test]
fn it_is_half_open_at_exactly_its_deadline_and_reading_changes_nothing() {
    let mut bed = Bed::of(&["a"]);
    bed.trip("a");
    assert_eq!(bed.snap("a").deadline, Some(Now(30_000)));
    let before = bed.snap("a").generation;
    bed.wait(29_999);
    assert_eq!(bed.state("a"), State::Open);
    bed.wait(1);
    for _ in 0..10 {
        assert_eq!((bed.state("a"), bed.snap("a").generation), (State::HalfOpen, before));
    }
    assert_eq!(bed.turns(), (1, 0));
}

#[test]
fn re_opens_grow_the_period_up_to_its_limit_and_closing_starts_over() {
    let mut bed = Bed::of(&["a"]).health(|it| {
        it.open_growth = 2.0;
        it.open_max = Millis::seconds(100);
        it.recovery_threshold = 1;
    });
    bed.trip("a");
    for (reopens, period) in [(1, 60_000), (2, 100_000), (3, 100_000)] {
        bed.now = last_opening(&bed).0;
        let trial = bed.trial("a");
        bed.report(trial, status(500));
        let until = bed.now.after(Millis(period));
        assert_eq!(last_opening(&bed), (until, reopens, OpenCause::TrialFailed));
    }
    bed.now = last_opening(&bed).0;
    bed.hit("a", ok());
    bed.trip("a");
    assert_eq!(last_opening(&bed).0, bed.now.after(Millis(30_000)));
}

#[test]
fn jitter_adds_up_to_its_share_and_differs_between_openings() {
    let mut bed = Bed::of(&["a"]).health(|it| it.open_jitter = 0.5);
    let mut seen = std::collections::BTreeSet::new();
    bed.trip("a");
    for _ in 0..20 {
        let period = last_opening(&bed).0.since(bed.now).0;
        assert!((30_000..=45_000).contains(&period), "{period}");
        seen.insert(period);
        bed.now = last_opening(&bed).0;
        bed.hit("a", status(500));
    }
    assert!(seen.len() > 10, "{seen:?}");
}

#[test]
fn one_slot_admits_one_trial_and_the_next_comes_after_it_ended() {
    let mut bed = half_open();
    let trial = bed.trial("a");
    assert!(bed.take("a").permit.is_last_resort());
    bed.report(trial, ok());
    let _second = bed.trial("a");
}

#[test]
fn three_trial_successes_close_it_and_recovery_is_told_once() {
    let mut bed = half_open();
    for _ in 0..3 {
        assert_eq!(bed.state("a"), State::HalfOpen);
        let trial = bed.trial("a");
        bed.report(trial, ok());
    }
    let snap = bed.snap("a");
    assert_eq!((snap.state, snap.consecutive_failures), (State::Closed, 0));
    assert_eq!(snap.closed_since, Some(bed.now));
    bed.hit("a", ok());
    assert_eq!(bed.turns(), (1, 1));
}

#[test]
fn one_trial_failure_re_opens_with_a_fresh_timer_and_the_count_starts_over() {
    let mut bed = half_open();
    for _ in 0..2 {
        let trial = bed.trial("a");
        bed.report(trial, ok());
    }
    bed.wait(500);
    let trial = bed.trial("a");
    bed.report(trial, refused());
    assert_eq!(bed.snap("a").deadline, Some(Now(60_500)));
    bed.wait(30_000);
    for _ in 0..2 {
        let trial = bed.trial("a");
        bed.report(trial, ok());
    }
    assert_eq!(bed.state("a"), State::HalfOpen);
}

#[test]
fn whatever_charges_nothing_gives_the_slot_back_and_keeps_the_successes() {
    use OutcomeKind::*;
    let neutral = [
        ended(ClientFault),
        ended(AuthRejected),
        ended(Exhausted),
        ended(ModelGone),
        ended(Cancelled),
        come_back(429, 1),
    ];
    for outcome in neutral {
        let mut bed = half_open();
        for _ in 0..2 {
            let trial = bed.trial("a");
            bed.report(trial, ok());
        }
        let trial = bed.trial("a");
        bed.report(trial, outcome);
        assert_eq!(bed.state("a"), State::HalfOpen, "{outcome:?}");
        let trial = bed.trial("a");
        bed.report(trial, ok());
        assert_eq!(bed.turns(), (1, 1), "{outcome:?}");
    }
}

#[test]
fn a_dropped_trial_gives_its_slot_back() {
    let mut bed = half_open();
    drop(bed.trial("a"));
    drop(bed.trial("a"));
    assert_eq!(bed.turns(), (1, 0));
    assert_eq!(bed.snap("a").in_flight, 0);
}

#[test]
fn a_trial_succeeds_and_frees_its_slot_at_its_first_content() {
    let mut bed = half_open();
    let mut streams = Vec::new();
    for _ in 0..3 {
        let mut trial = bed.trial("a");
        bed.content(&mut trial);
        bed.content(&mut trial);
        streams.push(trial);
    }
    assert_eq!(bed.turns(), (1, 1), "three long streams do not hold up recovery");
    assert_eq!(bed.state("a"), State::Closed);
}

#[test]
fn a_stream_on_probation_re_opens_the_breaker_that_has_closed_since() {
    let mut bed = half_open();
    let mut first = bed.trial("a");
    bed.content(&mut first);
    for _ in 0..2 {
        let trial = bed.trial("a");
        bed.report(trial, ok());
    }
    assert_eq!(bed.state("a"), State::Closed);
    bed.wait(3_600_000);
    bed.report(first, ended(OutcomeKind::Truncated));
    assert_eq!(bed.state("a"), State::Open);
    assert_eq!(bed.snap("a").closed_since, None);
    let (_, reopens, cause) = last_opening(&bed);
    assert_eq!((reopens, cause), (1, OpenCause::TrialFailed));
}

#[test]
fn a_trial_that_fails_before_content_re_opens_the_breaker_that_has_closed_since() {
    let mut bed = Bed::of(&["a"]).health(|it| {
        it.trial_permits = 2;
        it.recovery_threshold = 1;
    });
    bed.trip("a");
    bed.wait(30_000);
    let (slow, quick) = (bed.trial("a"), bed.trial("a"));
    bed.report(quick, ok());
    assert_eq!(bed.state("a"), State::Closed);
    bed.report(slow, status(500));
    assert_eq!(bed.state("a"), State::Open);
}

#[test]
fn probation_ends_when_another_trial_re_opened_it_in_between() {
    let mut bed = half_open();
    let mut stream = bed.trial("a");
    bed.content(&mut stream);
    let trial = bed.trial("a");
    bed.report(trial, status(500));
    let before = bed.snap("a");
    bed.wait(1_000);
    bed.report(stream, ended(OutcomeKind::Truncated));
    assert_eq!((bed.snap("a").deadline, bed.turns()), (before.deadline, (2, 0)));
}

#[test]
fn a_report_of_an_old_generation_changes_no_breaker_but_still_sets_the_rest() {
    let mut bed = Bed::of(&["a"]);
    let late: Vec<_> = (0..3).map(|_| bed.take("a")).collect();
    bed.trip("a");
    bed.wait(7);
    let [rate_limited, failed, succeeded] = late.try_into().ok().expect("three were taken");
    bed.report(failed, status(500));
    let snap = bed.snap("a");
    assert_eq!((snap.consecutive_failures, snap.deadline), (3, Some(Now(30_000))));
    assert_eq!((snap.last_error.map(|it| it.at), snap.last_check), (Some(Now(7)), Some(Now(7))));
    bed.report(rate_limited, come_back(429, 50_000));
    assert_eq!(bed.snap("a").deadline, Some(Now(50_007)), "the window is set");
    bed.report(succeeded, ok());
    assert_eq!(bed.state("a"), State::Open);
    assert_eq!(bed.snap("a").last_error, None);
}

#[test]
fn the_lease_is_the_longest_wait_for_first_content_and_a_second() {
    let mut bed = half_open();
    let vanished = bed.trial("a");
    bed.wait(120_999);
    assert!(bed.take("a").permit.is_last_resort(), "the lease still runs");
    bed.wait(1);
    let successor = bed.trial("a");
    bed.report(vanished, status(500));
    assert_eq!(bed.state("a"), State::HalfOpen, "a report on an expired lease changes no breaker");
    bed.report(successor, ok());
}

#[test]
fn a_slow_answer_in_time_is_never_stale() {
    let mut bed = half_open();
    let mut stream = bed.trial("a");
    bed.wait(120_000);
    bed.content(&mut stream);
    bed.wait(36_000_000);
    bed.report(stream, ended(OutcomeKind::Truncated));
    assert_eq!(bed.state("a"), State::Open);
}

#[test]
fn an_expired_trial_gives_back_no_slot_that_is_another_s() {
    let mut bed = half_open();
    let vanished = bed.trial("a");
    bed.wait(121_000);
    let _successor = bed.trial("a");
    drop(vanished);
    assert!(bed.take("a").permit.is_last_resort());
}

#[test]
fn the_lease_follows_the_request_s_own_deadline() {
    let mut bed = half_open();
    let ask = tidegate_core::plan::RequestSpec {
        is_stream: true,
        within: Some(Millis(5_000)),
        ..Default::default()
    };
    let mut plan = bed.begin("a", &ask);
    let _vanished = bed.next_permit(&mut plan);
    bed.wait(6_000);
    let _successor = bed.trial("a");
}

#[test]
fn a_last_resort_reports_to_no_breaker() {
    let mut bed = Bed::of(&["a"]).health(|it| it.recovery_threshold = 1);
    bed.trip("a");
    bed.wait(1_000);
    bed.hit("a", status(500));
    let snap = bed.snap("a");
    assert_eq!((snap.deadline, snap.consecutive_failures), (Some(Now(30_000)), 3));
    bed.hit("a", ok());
    assert_eq!((bed.state("a"), bed.snap("a").last_error), (State::Open, None));
    bed.hit("a", come_back(429, 90_000));
    assert_eq!(bed.snap("a").deadline, Some(Now(91_000)), "a window it sets");
    bed.hit("a", status(401));
    bed.hit("a", ok());
    assert_eq!(bed.core.snapshot(bed.now).keys, Vec::new(), "an exclusion it heals");
}

#[test]
fn an_opening_told_once_and_a_closing_told_once() {
    let mut bed = Bed::of(&["a"]);
    for _ in 0..20 {
        bed.hit("a", status(500));
    }
    assert_eq!(bed.turns(), (1, 0));
}

#[test]
fn ten_years_in_one_step_and_time_standing_still_break_nothing() {
    let mut bed = Bed::of(&["a", "b"]);
    bed.trip("a");
    bed.hit("b", come_back(429, 3_600_000));
    bed.wait(10 * 365 * 86_400_000);
    assert_eq!(bed.state("a"), State::HalfOpen);
    assert!(bed.snap("b").healthy);
    for _ in 0..1_000 {
        bed.hit("a", ok());
    }
    assert_eq!(bed.state("a"), State::Closed);
    bed.core.check_invariants(bed.now);
}

#[test]
fn a_trial_that_ends_after_the_breaker_closed_is_no_sample() {
    let mut bed = Bed::of(&["a"]).health(|it| {
        it.recovery_threshold = 1;
        it.min_samples = 2;
        it.failure_ratio = 0.5;
    });
    bed.trip("a");
    bed.wait(30_000);
    let mut trial = bed.trial("a");
    bed.content(&mut trial);
    assert_eq!(bed.state("a"), State::Closed, "its content closed the breaker");
    bed.report(trial, ok());
    bed.hit("a", status(500));
    assert_eq!(bed.state("a"), State::Closed, "one failure is one sample");
    bed.hit("a", status(500));
    assert_eq!(bed.state("a"), State::Open, "two failures are two");
}
