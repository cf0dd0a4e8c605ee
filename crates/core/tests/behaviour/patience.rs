//! The client's patience: when a silent attempt is left, committed or given up, and what its
//! silence teaches.

use tidegate_core::{
    attempt::{Answer, End},
    breaker::State,
    commit::CommitCause,
    outcome::OutcomeKind,
    permit::Permit,
    plan::{PatienceVerdict, Plan, RequestSpec, Step},
    time::{Millis, Now},
};

use crate::bed::{Bed, ok, status};

/// A streaming request of a client that waits so long.
fn patient(ms: u64) -> RequestSpec<'static> {
    RequestSpec { is_stream: true, patience: Some(Millis(ms)), ..RequestSpec::default() }
}

/// Begins a request on `main` and sends its first attempt.
fn sent(bed: &mut Bed, ask: &RequestSpec<'_>) -> (Plan, Permit) {
    let mut plan = bed.begin("main", ask);
    let permit = sent_next(bed, &mut plan);
    (plan, permit)
}

fn sent_next(bed: &mut Bed, plan: &mut Plan) -> Permit {
    let mut permit = bed.next_permit(plan);
    permit.sent(bed.now);
    permit
}

/// Moves the clock to the moment the plan names, and asks there.
fn wake(bed: &mut Bed, plan: &Plan, permit: &mut Permit) -> (u64, PatienceVerdict) {
    bed.now = plan.wake_at(permit).expect("the client has a patience");
    (bed.now.0, plan.check_patience(bed.now, permit, &mut bed.notes))
}

/// One answer of `target` after so long, as a stream or not.
fn answer_after(bed: &mut Bed, target: &str, is_stream: bool, ms: u64) {
    let mut plan = bed.begin(target, &RequestSpec { is_stream, ..RequestSpec::default() });
    let mut permit = bed.next_permit(&mut plan);
    permit.content(bed.now, Millis(ms), &mut bed.notes);
    plan.report(bed.now, permit, &ok(), &mut bed.notes);
}

/// The outcome of the attempt with this number.
fn outcome(plan: &Plan, number: usize) -> Option<OutcomeKind> {
    plan.attempts().iter().nth(number)?.outcome.map(|it| it.kind)
}

fn strikes(bed: &Bed, target: &str) -> u32 {
    bed.snap(target).consecutive_failures
}

#[test]
fn a_silent_attempt_is_left_at_its_share_of_the_patience_that_remained() {
    let mut bed = Bed::of(&["a", "b", "c"]);
    let (mut plan, mut permit) = sent(&mut bed, &patient(10_000));
    assert_eq!(wake(&mut bed, &plan, &mut permit), (6_000, PatienceVerdict::Leave));
    plan.leave(bed.now, permit, &mut bed.notes);
    let mut permit = sent_next(&mut bed, &mut plan);
    assert_eq!(**permit.backend().id(), *"b");
    assert_eq!(wake(&mut bed, &plan, &mut permit), (8_400, PatienceVerdict::Leave));
    plan.leave(bed.now, permit, &mut bed.notes);
    let mut permit = sent_next(&mut bed, &mut plan);
    assert_eq!(wake(&mut bed, &plan, &mut permit), (9_360, PatienceVerdict::GoOn), "c is the last");
    assert_eq!(wake(&mut bed, &plan, &mut permit), (9_800, PatienceVerdict::GiveUp));
}

#[test]
fn the_share_is_the_routes() {
    let mut bed = Bed::of(&["a", "b"]).route(|it| it.patience_share = 0.25);
    let (plan, mut permit) = sent(&mut bed, &patient(10_000));
    assert_eq!(wake(&mut bed, &plan, &mut permit), (2_500, PatienceVerdict::Leave));
}

#[test]
fn a_request_without_patience_is_never_asked_about() {
    let mut bed = Bed::of(&["a", "b"]);
    let (plan, permit) = sent(&mut bed, &RequestSpec { is_stream: true, ..RequestSpec::default() });
    assert_eq!(plan.wake_at(&permit), None);
}

#[test]
fn an_attempt_is_not_left_before_the_usual_time_of_its_target() {
    let mut bed = Bed::of(&["a", "b"]);
    answer_after(&mut bed, "a", true, 7_000);
    let (plan, mut permit) = sent(&mut bed, &patient(10_000));
    assert_eq!(wake(&mut bed, &plan, &mut permit), (7_000, PatienceVerdict::Leave));
}

#[test]
fn the_usual_time_of_answers_says_nothing_about_streams() {
    let mut bed = Bed::of(&["a", "b"]);
    answer_after(&mut bed, "a", false, 7_000);
    let (plan, mut permit) = sent(&mut bed, &patient(10_000));
    assert_eq!(wake(&mut bed, &plan, &mut permit).0, 6_000);
    bed.now = Now::ZERO;
    let (plan, mut permit) = sent(&mut bed, &RequestSpec { is_stream: false, ..patient(10_000) });
    assert_eq!(wake(&mut bed, &plan, &mut permit).0, 7_000);
}

#[test]
fn the_usual_time_does_not_decay_when_it_is_read() {
    let mut bed = Bed::of(&["a", "b"]);
    answer_after(&mut bed, "a", true, 7_000);
    bed.wait(3_600_000);
    let (plan, mut permit) = sent(&mut bed, &patient(10_000));
    assert_eq!(wake(&mut bed, &plan, &mut permit).0, 3_607_000);
}

#[test]
fn an_attempt_goes_on_while_nothing_of_rank_0_is_left() {
    let mut bed = Bed::of(&["a", "b"]);
    bed.trip("b");
    let (plan, mut permit) = sent(&mut bed, &patient(10_000));
    assert_eq!(wake(&mut bed, &plan, &mut permit), (6_000, PatienceVerdict::GoOn));
    assert_eq!(wake(&mut bed, &plan, &mut permit), (9_800, PatienceVerdict::GiveUp));
}

#[test]
fn an_attempt_goes_on_where_no_hop_is_allowed() {
    let mut bed = Bed::of(&["a", "b"]).route(|it| it.max_hops = 0);
    let (plan, mut permit) = sent(&mut bed, &patient(10_000));
    assert_eq!(wake(&mut bed, &plan, &mut permit).1, PatienceVerdict::GoOn, "the limit");

    let mut bed =
        Bed::of(&["a", "b", "c"]).route(|it| (it.budget.ratio, it.budget.floor) = (0.0, 0));
    let (mut plan, permit) = sent(&mut bed, &patient(10_000));
    plan.report(bed.now, permit, &status(500), &mut bed.notes);
    let mut permit = sent_next(&mut bed, &mut plan);
    assert_eq!(wake(&mut bed, &plan, &mut permit).1, PatienceVerdict::GoOn, "the budget");
}

#[test]
fn signs_of_life_keep_an_attempt_until_they_stop_for_fifteen_seconds() {
    let mut bed = Bed::of(&["a", "b"]);
    let (plan, mut permit) = sent(&mut bed, &patient(100_000));
    bed.wait(59_000);
    permit.body_bytes(bed.now, 1);
    bed.wait(1_000);
    let verdict = plan.check_patience(bed.now, &mut permit, &mut bed.notes);
    assert_eq!(verdict, PatienceVerdict::GoOn);
    assert_eq!(wake(&mut bed, &plan, &mut permit), (74_000, PatienceVerdict::Leave));
}

#[test]
fn an_attempt_whose_body_has_begun_is_committed_when_patience_ends() {
    let mut bed = Bed::of(&["a", "b"]);
    let (mut plan, mut permit) = sent(&mut bed, &patient(4_000));
    permit.body_bytes(bed.now, 1);
    assert_eq!(wake(&mut bed, &plan, &mut permit), (3_800, PatienceVerdict::Commit));
    permit.commit(bed.now, CommitCause::Patience, &mut bed.notes);
    assert_eq!(plan.wake_at(&permit), None, "patience does not bound what makes progress");
    plan.report(bed.now, permit, &status(500), &mut bed.notes);
    let Step::Finish(finish) = bed.next(&mut plan) else { panic!("nothing follows a commit") };
    assert_eq!(finish.end, End::Broken);
}

#[test]
fn content_ends_patience() {
    let mut bed = Bed::of(&["a", "b"]);
    let (plan, mut permit) = sent(&mut bed, &patient(4_000));
    permit.content(Now(100), Millis(100), &mut bed.notes);
    assert_eq!(plan.wake_at(&permit), None);
    bed.wait(60_000);
    let verdict = plan.check_patience(bed.now, &mut permit, &mut bed.notes);
    assert_eq!(verdict, PatienceVerdict::GoOn);
}

#[test]
fn a_client_whose_patience_ends_gets_a_504() {
    let mut bed = Bed::of(&["a"]);
    for (patience, expected) in [(1_000, OutcomeKind::Cancelled), (20_000, OutcomeKind::Timeout)] {
        bed.now = Now::ZERO;
        let (mut plan, mut permit) = sent(&mut bed, &patient(patience));
        while wake(&mut bed, &plan, &mut permit).1 != PatienceVerdict::GiveUp {}
        assert_eq!(bed.now, Now(patience - 200));
        let outcome = plan.abandoned(bed.now, &permit);
        assert_eq!(outcome.kind, expected);
        plan.report(bed.now, permit, &outcome, &mut bed.notes);
        let Step::Finish(finish) = bed.next(&mut plan) else { panic!("there is no time left") };
        assert_eq!((finish.end, finish.status), (End::OutOfPatience, 504));
        assert_eq!(finish.answer, Answer::OutOfTime);
    }
}

#[test]
fn an_error_that_comes_when_no_time_is_left_is_shown() {
    let mut bed = Bed::of(&["a", "b"]);
    let (mut plan, permit) = sent(&mut bed, &patient(4_000));
    bed.wait(3_900);
    plan.report(bed.now, permit, &status(500), &mut bed.notes);
    let Step::Finish(finish) = bed.next(&mut plan) else { panic!("there is no time left") };
    assert_eq!((finish.end, finish.status), (End::OutOfPatience, 500));
}

#[test]
fn a_silence_of_slow_after_is_a_timeout_whoever_ended_it() {
    for (usual, waited, expected) in [
        (None, 9_999, OutcomeKind::Cancelled),
        (None, 10_000, OutcomeKind::Timeout),
        (Some(1_000), 3_999, OutcomeKind::Cancelled),
        (Some(1_000), 4_000, OutcomeKind::Timeout),
        (Some(20_000), 39_999, OutcomeKind::Cancelled),
        (Some(20_000), 40_000, OutcomeKind::Timeout),
    ] {
        let mut bed = Bed::of(&["a"]);
        if let Some(usual) = usual {
            answer_after(&mut bed, "a", true, usual);
        }
        let held = bed.take("a");
        let mut permit = held.permit;
        permit.sent(bed.now);
        bed.wait(waited);
        assert_eq!(held.plan.abandoned(bed.now, &permit).kind, expected, "{usual:?} {waited}");
    }
}

#[test]
fn an_attempt_that_was_not_sent_or_is_alive_or_has_content_is_cancelled() {
    let mut bed = Bed::of(&["a"]);
    let held = bed.take("a");
    bed.wait(60_000);
    assert_eq!(held.plan.abandoned(bed.now, &held.permit).kind, OutcomeKind::Cancelled);

    let mut held = bed.take("a");
    held.permit.sent(bed.now);
    bed.wait(60_000);
    held.permit.body_bytes(bed.now, 1);
    bed.wait(14_999);
    assert_eq!(held.plan.abandoned(bed.now, &held.permit).kind, OutcomeKind::Cancelled);
    bed.wait(1);
    assert_eq!(held.plan.abandoned(bed.now, &held.permit).kind, OutcomeKind::Timeout);

    bed.content(&mut held);
    bed.wait(60_000);
    assert_eq!(held.plan.abandoned(bed.now, &held.permit).kind, OutcomeKind::Cancelled);
}

#[test]
fn a_half_open_trial_that_waited_two_seconds_has_failed() {
    for (waited, expected) in [(1_999, State::HalfOpen), (2_000, State::Open)] {
        let mut bed = Bed::of(&["a"]);
        bed.trip("a");
        bed.wait(30_000);
        let mut held = bed.trial("a");
        held.permit.sent(bed.now);
        bed.wait(waited);
        let outcome = held.plan.abandoned(bed.now, &held.permit);
        bed.report(held, outcome);
        assert_eq!(bed.state("a"), expected, "{waited}");
        if expected == State::HalfOpen {
            drop(bed.trial("a"));
        }
    }
}

#[test]
fn an_attempt_that_was_left_is_charged_when_another_target_answers() {
    let mut bed = Bed::of(&["a", "b"]);
    let (mut plan, mut permit) = sent(&mut bed, &patient(10_000));
    assert_eq!(wake(&mut bed, &plan, &mut permit).1, PatienceVerdict::Leave);
    assert_eq!(plan.leave(bed.now, permit, &mut bed.notes), None, "it waits");
    assert_eq!((strikes(&bed, "a"), outcome(&plan, 0)), (0, Some(OutcomeKind::Cancelled)));
    let mut permit = sent_next(&mut bed, &mut plan);
    bed.wait(300);
    permit.content(bed.now, Millis(300), &mut bed.notes);
    plan.answered(bed.now, &mut bed.notes);
    assert_eq!((strikes(&bed, "a"), outcome(&plan, 0)), (1, Some(OutcomeKind::Timeout)));
    plan.report(bed.now, permit, &ok(), &mut bed.notes);
    assert_eq!(strikes(&bed, "a"), 1, "once");
    assert_eq!(bed.snap("a").in_flight, 0);
}

#[test]
fn an_attempt_that_was_left_says_nothing_when_no_other_target_answers() {
    let mut bed = Bed::of(&["a", "b"]);
    let (mut plan, mut permit) = sent(&mut bed, &patient(10_000));
    assert_eq!(wake(&mut bed, &plan, &mut permit).1, PatienceVerdict::Leave);
    plan.leave(bed.now, permit, &mut bed.notes);
    let permit = sent_next(&mut bed, &mut plan);
    plan.report(bed.now, permit, &status(500), &mut bed.notes);
    drop(plan);
    assert_eq!((strikes(&bed, "a"), strikes(&bed, "b")), (0, 1));
    assert_eq!(bed.snap("a").in_flight, 0);
}

#[test]
fn an_attempt_that_was_left_early_is_not_charged() {
    // 0.6 of 3 s is less than two seconds.
    let mut bed = Bed::of(&["a", "b"]);
    let (mut plan, mut permit) = sent(&mut bed, &patient(3_000));
    assert_eq!(wake(&mut bed, &plan, &mut permit), (1_800, PatienceVerdict::Leave));
    plan.leave(bed.now, permit, &mut bed.notes);
    let permit = sent_next(&mut bed, &mut plan);
    plan.report(bed.now, permit, &ok(), &mut bed.notes);
    assert_eq!((strikes(&bed, "a"), outcome(&plan, 0)), (0, Some(OutcomeKind::Cancelled)));
}

#[test]
fn an_attempt_that_was_left_after_slow_after_is_charged_at_once() {
    let mut bed = Bed::of(&["a", "b"]);
    answer_after(&mut bed, "a", true, 100);
    let (mut plan, mut permit) = sent(&mut bed, &patient(10_000));
    assert_eq!(wake(&mut bed, &plan, &mut permit).1, PatienceVerdict::Leave);
    let outcome = plan.leave(bed.now, permit, &mut bed.notes);
    assert_eq!(outcome.map(|it| it.kind), Some(OutcomeKind::Timeout));
    assert_eq!(strikes(&bed, "a"), 1);
}

#[test]
fn a_report_that_waited_longer_than_its_lease_changes_no_breaker() {
    let mut bed = Bed::of(&["a", "b"]);
    let (mut plan, mut permit) = sent(&mut bed, &patient(10_000));
    assert_eq!(wake(&mut bed, &plan, &mut permit).1, PatienceVerdict::Leave);
    plan.leave(bed.now, permit, &mut bed.notes);
    let permit = sent_next(&mut bed, &mut plan);
    bed.now = Now(121_000);
    plan.report(bed.now, permit, &ok(), &mut bed.notes);
    assert_eq!(strikes(&bed, "a"), 0);
}

#[test]
fn a_hanging_first_choice_opens_after_three_impatient_clients() {
    let mut bed = Bed::of(&["a", "b"]);
    for _ in 0..3 {
        let (mut plan, mut permit) = sent(&mut bed, &patient(10_000));
        assert_eq!(**permit.backend().id(), *"a");
        assert_eq!(wake(&mut bed, &plan, &mut permit).1, PatienceVerdict::Leave);
        plan.leave(bed.now, permit, &mut bed.notes);
        let permit = sent_next(&mut bed, &mut plan);
        plan.report(bed.now, permit, &ok(), &mut bed.notes);
    }
    assert_eq!(bed.state("a"), State::Open);
}

#[test]
fn a_deadline_that_ends_a_silent_attempt_is_a_504_too() {
    let mut bed = Bed::of(&["a"]);
    let (mut plan, permit) =
        sent(&mut bed, &RequestSpec { is_stream: true, ..RequestSpec::default() });
    bed.wait(600_000);
    let outcome = plan.abandoned(bed.now, &permit);
    plan.report(bed.now, permit, &outcome, &mut bed.notes);
    let Step::Finish(finish) = bed.next(&mut plan) else { panic!("there is no time left") };
    assert_eq!(
        (outcome.kind, finish.end, finish.status),
        (OutcomeKind::Timeout, End::Deadline, 504)
    );
}
