//! What each outcome does: go on or end, charge, mark, and the meaning of `healthy`.

use tidegate_core::{
    attempt::End,
    breaker::State,
    mark::MarkReason,
    outcome::{Outcome, OutcomeKind},
    settings::OnAuthError,
    snapshot::Reason,
    time::{Millis, Now},
};

use crate::bed::{Bed, come_back, ended, of_kind, ok, refused, status};

/// Whether a request whose first target answers `outcome` goes on to the second.
fn goes_on(outcome: Outcome) -> bool {
    let mut bed = Bed::of(&["a", "b"]);
    let told = bed.request(|target| if target == "a" { outcome } else { ok() });
    told.visited.len() == 2
}

/// Whether three of `outcome` open the breaker.
fn charges(outcome: Outcome) -> bool {
    let mut bed = Bed::of(&["a"]);
    for _ in 0..3 {
        bed.hit("a", outcome);
    }
    bed.state("a") == State::Open
}

#[test]
fn every_class_goes_on_or_ends_as_the_table_says() {
    use OutcomeKind::*;
    for kind in OutcomeKind::ALL {
        let expected = !matches!(kind, Success | Truncated | ClientFault | Cancelled);
        assert_eq!(goes_on(ended(kind)), expected, "{}", kind.word());
    }
}

#[test]
fn every_class_charges_the_breaker_or_not_as_the_table_says() {
    use OutcomeKind::*;
    for kind in OutcomeKind::ALL {
        let expected = matches!(
            kind,
            RateLimited | Overloaded | ServerError | Timeout | Transport | Truncated
        );
        assert_eq!(charges(ended(kind)), expected, "{}", kind.word());
    }
}

#[test]
fn a_429_that_says_when_charges_nothing_and_its_window_lasts_until_then() {
    assert!(!charges(come_back(429, 1)));
    let mut bed = Bed::of(&["a"]);
    bed.hit("a", come_back(429, 2_000));
    let snap = bed.snap("a");
    assert_eq!((snap.healthy, snap.deadline), (false, Some(Now(2_000))));
    assert_eq!(snap.reason, Some(Reason::Mark(MarkReason::RateLimited)));
    bed.wait(1_999);
    assert!(!bed.snap("a").healthy);
    bed.wait(1);
    assert!(bed.snap("a").healthy, "at exactly its end a window has ended");
}

#[test]
fn a_429_whose_time_is_zero_says_nothing() {
    assert!(charges(come_back(429, 0)));
    let mut bed = Bed::of(&["a"]);
    bed.hit("a", come_back(429, 0));
    assert_eq!(bed.snap("a").deadline, Some(Now(30_000)));
}

#[test]
fn a_window_is_at_most_an_hour() {
    let mut bed = Bed::of(&["a"]);
    bed.hit("a", come_back(429, u64::MAX));
    assert_eq!(bed.snap("a").deadline, Some(Now(3_600_000)));
}

#[test]
fn a_later_429_may_only_extend_the_window() {
    let mut bed = Bed::of(&["a"]);
    bed.hit("a", come_back(429, 60_000));
    bed.wait(1_000);
    bed.hit("a", come_back(429, 5_000));
    assert_eq!(bed.snap("a").deadline, Some(Now(60_000)));
    bed.hit("a", come_back(429, 70_000));
    assert_eq!(bed.snap("a").deadline, Some(Now(71_000)));
}

#[test]
fn a_success_inside_the_window_does_not_clear_it() {
    let mut bed = Bed::of(&["a"]);
    bed.hit("a", come_back(429, 60_000));
    bed.hit("a", ok());
    assert_eq!(bed.snap("a").deadline, Some(Now(60_000)));
}

#[test]
fn retry_after_on_a_5xx_sets_a_window_and_charges() {
    for code in [500, 503, 520, 529] {
        let mut bed = Bed::of(&["a"]);
        bed.hit("a", come_back(code, 5_000));
        let snap = bed.snap("a");
        assert_eq!(snap.deadline, Some(Now(5_000)), "{code}");
        assert_eq!(snap.reason, Some(Reason::Mark(MarkReason::RetryAfter)), "{code}");
        assert!(charges(come_back(code, 5_000)), "{code}");
    }
}

#[test]
fn retry_after_elsewhere_sets_no_window() {
    for outcome in [
        come_back(302, 5_000),
        come_back(424, 5_000),
        come_back(408, 5_000),
        come_back(400, 5_000),
        come_back(501, 5_000),
        Outcome {
            retry_after: Some(Millis(5_000)),
            ..Outcome::error(OutcomeKind::ServerError, 200)
        },
    ] {
        let mut bed = Bed::of(&["a"]);
        bed.hit("a", outcome);
        assert!(bed.snap("a").healthy, "{outcome:?}");
    }
}

#[test]
fn a_5xx_without_retry_after_sets_no_window() {
    let mut bed = Bed::of(&["a"]);
    bed.hit("a", status(503));
    assert!(bed.snap("a").healthy);
}

#[test]
fn a_used_up_key_is_excluded_for_five_minutes_and_a_refused_one_for_half_a_minute() {
    let rows = [(402, 300_000, MarkReason::Exhausted), (401, 30_000, MarkReason::AuthRejected)];
    for (code, until, reason) in rows {
        let mut bed = Bed::of(&["a"]);
        bed.hit("a", status(code));
        let snap = bed.snap("a");
        assert_eq!((snap.healthy, snap.deadline), (false, Some(Now(until))), "{code}");
        assert_eq!(snap.reason, Some(Reason::Mark(reason)), "{code}");
        bed.wait(until);
        assert!(bed.snap("a").healthy, "{code}: it heals by time");
    }
}

#[test]
fn a_key_exclusion_heals_by_a_success() {
    for code in [401, 402, 403] {
        let mut bed = Bed::of(&["a"]);
        bed.hit("a", status(code));
        bed.hit("a", ok());
        assert!(bed.snap("a").healthy, "{code}");
    }
}

#[test]
fn a_later_exclusion_never_shortens_an_earlier_one() {
    let mut bed = Bed::of(&["a"]);
    bed.hit("a", status(402));
    bed.hit("a", status(401));
    let snap = bed.snap("a");
    assert_eq!(snap.deadline, Some(Now(300_000)));
    assert_eq!(snap.reason, Some(Reason::Mark(MarkReason::Exhausted)));
}

#[test]
fn a_gone_model_excludes_the_target_and_heals_by_time_success_or_reload() {
    let gone = of_kind(OutcomeKind::ModelGone, 404);
    let mut by_time = Bed::of(&["a"]);
    by_time.hit("a", gone);
    assert_eq!(by_time.snap("a").reason, Some(Reason::Mark(MarkReason::ModelGone)));
    by_time.wait(299_999);
    assert!(!by_time.snap("a").healthy);
    by_time.wait(1);
    assert!(by_time.snap("a").healthy);

    let mut by_success = Bed::of(&["a"]);
    by_success.hit("a", gone);
    by_success.hit("a", ok());
    assert!(by_success.snap("a").healthy);

    let mut by_reload = Bed::of(&["a"]);
    by_reload.hit("a", gone);
    by_reload.reload(|_| ());
    assert!(by_reload.snap("a").healthy);
}

#[test]
fn a_rejected_key_ends_the_request_where_the_route_surfaces_it() {
    let mut bed = Bed::of(&["a", "b"])
        .keys("k0 k1", "a")
        .route(|route| route.on_auth_error = OnAuthError::Surface);
    let told = bed.request(|_| status(403));
    assert_eq!(told.visited, ["a#0"]);
    assert_eq!((told.finish.end, told.finish.status), (End::AuthSurfaced, 403));
}

#[test]
fn surfacing_rejected_keys_leaves_used_up_ones_to_fail_over() {
    let mut bed = Bed::of(&["a", "b"]).route(|route| route.on_auth_error = OnAuthError::Surface);
    let told = bed.request(|target| if target == "a" { status(402) } else { ok() });
    assert_eq!(told.visited, ["a", "b"]);
}

#[test]
fn nothing_is_tried_again_after_content_was_released() {
    use OutcomeKind::*;
    for kind in [Timeout, Transport, ServerError, Truncated, RateLimited] {
        let mut bed = Bed::of(&["a", "b"]);
        let mut plan = bed.begin("main", &tidegate_core::plan::RequestSpec::default());
        let mut permit = bed.next_permit(&mut plan);
        permit.content(bed.now, Millis(1), &mut bed.notes);
        plan.report(bed.now, permit, &of_kind(kind, 200), &mut bed.notes);
        assert!(plan.is_over(), "{}", kind.word());
    }
}

#[test]
fn a_dropped_permit_ends_the_request_like_a_cancellation() {
    let mut bed = Bed::of(&["a", "b"]);
    let mut plan = bed.begin("main", &tidegate_core::plan::RequestSpec::default());
    drop(bed.next_permit(&mut plan));
    match bed.next(&mut plan) {
        tidegate_core::plan::Step::Finish(finish) => assert_eq!(finish.end, End::Cancelled),
        tidegate_core::plan::Step::Attempt(permit) => panic!("another attempt: {permit:?}"),
    }
}

#[test]
fn failures_make_a_backend_unhealthy_only_by_opening_a_breaker() {
    let mut bed = Bed::of(&["a"]);
    bed.hit("a", status(500));
    bed.hit("a", refused());
    assert!(bed.snap("a").healthy);
    bed.hit("a", ended(OutcomeKind::Timeout));
    assert!(!bed.snap("a").healthy);
}

#[test]
fn a_half_open_backend_is_healthy() {
    let mut bed = Bed::of(&["a"]);
    bed.trip("a");
    bed.wait(30_000);
    let snap = bed.snap("a");
    assert_eq!((snap.state, snap.healthy, snap.deadline), (State::HalfOpen, true, None));
}

#[test]
fn the_last_error_is_set_by_any_failure_and_null_after_a_success() {
    let mut bed = Bed::of(&["a"]);
    assert_eq!(bed.snap("a").last_error, None);
    bed.wait(5);
    bed.hit("a", status(500));
    let error = bed.snap("a").last_error.expect("a failure was reported");
    assert_eq!((error.at, error.outcome), (Now(5), Some(OutcomeKind::ServerError)));
    bed.wait(5);
    bed.hit("a", status(400));
    let snap = bed.snap("a");
    assert_eq!(snap.last_error.map(|it| it.at), Some(Now(5)), "a client fault is none");
    assert_eq!(snap.last_check, Some(Now(10)));
    bed.hit("a", ok());
    assert_eq!(bed.snap("a").last_error, None);
}

/// After the commit nobody can be told that the time is up: no other answer follows.
#[test]
fn a_released_answer_that_is_cancelled_late_ends_as_cancelled() {
    let mut bed = Bed::of(&["a", "b"]).route(|it| it.deadline = Millis(1_000));
    let ask = tidegate_core::plan::RequestSpec { is_stream: true, ..Default::default() };
    let mut plan = bed.begin("main", &ask);
    let mut permit = bed.next_permit(&mut plan);
    permit.content(bed.now, Millis(1), &mut bed.notes);
    bed.wait(2_000);
    plan.report(bed.now, permit, &ended(OutcomeKind::Cancelled), &mut bed.notes);
    match bed.next(&mut plan) {
        tidegate_core::plan::Step::Finish(finish) => assert_eq!(finish.end, End::Cancelled),
        tidegate_core::plan::Step::Attempt(permit) => panic!("another attempt: {permit:?}"),
    }
}
