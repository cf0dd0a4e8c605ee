//! The commit rule: when an answer that is held back goes to its client.

use tidegate_core::{
    commit::{AnswerForm, CommitCause},
    outcome::OutcomeKind,
    permit::Permit,
    settings::{HoldLimits, HoldSettings},
    time::{Millis, Now},
};

use crate::bed::{Bed, Held};

/// One target, whose streams are held like this.
fn holding(events: u32, time_ms: u64) -> Bed {
    let hold = HoldSettings { events, time: Millis(time_ms) };
    Bed::of(&["a", "b"]).route(|it| it.hold = hold).with(|settings| {
        settings.hold_limits = HoldLimits { stream_bytes: 100, answer_bytes: 50 };
        settings.routes[1].hold = hold;
    })
}

/// An attempt of `a` whose answer has begun to arrive.
fn answering(bed: &mut Bed, form: AnswerForm) -> Held {
    let mut held = bed.take("a");
    held.permit.sent(bed.now);
    held.permit.head(bed.now, &mut bed.notes);
    held.permit.answers_as(form);
    held
}

/// The cause after each of so many events with content, 10 ms apart.
fn causes(bed: &mut Bed, permit: &mut Permit, events: usize) -> Vec<Option<CommitCause>> {
    let mut next = || {
        bed.wait(10);
        permit.content_event(bed.now);
        permit.commit_due(bed.now)
    };
    (0..events).map(|_| next()).collect()
}

#[test]
fn a_stream_is_committed_at_its_first_content() {
    let mut bed = holding(0, 0);
    let mut held = answering(&mut bed, AnswerForm::Events);
    held.permit.body_bytes(bed.now, 100);
    assert_eq!(held.permit.commit_due(bed.now), None, "what only announces is held");
    let causes = causes(&mut bed, &mut held.permit, 1);
    assert_eq!(causes, [Some(CommitCause::FirstContent)]);
}

#[test]
fn a_route_holds_a_stream_until_so_many_events_or_so_much_time() {
    let mut bed = holding(3, 0);
    let mut held = answering(&mut bed, AnswerForm::Events);
    let found = causes(&mut bed, &mut held.permit, 3);
    assert_eq!(found, [None, None, Some(CommitCause::HeldEvents)]);

    let mut bed = holding(0, 20);
    let mut held = answering(&mut bed, AnswerForm::Events);
    assert_eq!(held.permit.hold_ends_at(), None, "the time begins with the first content");
    let found = causes(&mut bed, &mut held.permit, 3);
    assert_eq!(found, [None, None, Some(CommitCause::HeldTime)]);
    assert_eq!(held.permit.hold_ends_at(), Some(Now(30)));

    let mut bed = holding(2, 1_000);
    let mut held = answering(&mut bed, AnswerForm::Events);
    let found = causes(&mut bed, &mut held.permit, 2);
    assert_eq!(found, [None, Some(CommitCause::HeldEvents)], "the first limit that is reached");
}

#[test]
fn no_more_is_held_than_the_limits_say() {
    for (form, limit) in [(AnswerForm::Events, 100), (AnswerForm::Whole, 50)] {
        let mut bed = holding(3, 0);
        let mut held = answering(&mut bed, form);
        held.permit.body_bytes(bed.now, limit - 1);
        held.permit.body_bytes(bed.now, 1);
        assert_eq!(held.permit.commit_due(bed.now), None, "{form:?}");
        held.permit.body_bytes(bed.now, 1);
        assert_eq!(held.permit.commit_due(bed.now), Some(CommitCause::HoldFull), "{form:?}");
    }
}

#[test]
fn an_answer_that_is_converted_is_committed_only_when_it_is_complete() {
    let mut bed = holding(0, 0);
    let mut held = answering(&mut bed, AnswerForm::Converted);
    held.permit.body_bytes(bed.now, 1 << 30);
    assert_eq!(held.permit.commit_due(bed.now), None);
    bed.wait(70);
    held.permit.commit(bed.now, CommitCause::Complete, &mut bed.notes);
    assert_eq!(held.permit.time_to_content(), Some(Millis(70)));
}

#[test]
fn a_body_that_nobody_reads_is_committed_at_its_first_bytes() {
    let mut bed = holding(3, 1_000);
    let mut held = answering(&mut bed, AnswerForm::AsItComes);
    assert_eq!(held.permit.commit_due(bed.now), None);
    held.permit.body_bytes(bed.now, 1);
    assert_eq!(held.permit.commit_due(bed.now), Some(CommitCause::FirstContent));

    let mut held = answering(&mut bed, AnswerForm::Whole);
    held.permit.body_bytes(bed.now, 1);
    held.permit.answers_as(AnswerForm::AsItComes);
    assert_eq!(held.permit.commit_due(bed.now), Some(CommitCause::FirstContent), "read before");
}

#[test]
fn health_learns_of_content_at_the_commit_with_the_time_of_the_first() {
    let mut bed = holding(3, 0);
    let mut held = answering(&mut bed, AnswerForm::Events);
    causes(&mut bed, &mut held.permit, 3);
    assert!(!held.permit.has_content() && !held.permit.is_released());
    held.permit.commit(bed.now, CommitCause::HeldEvents, &mut bed.notes);
    assert!(held.permit.has_content() && held.permit.is_released());
    assert_eq!(held.permit.time_to_content(), Some(Millis(10)));
    assert_eq!(held.permit.committed(), Some(CommitCause::HeldEvents));
    assert_eq!((held.permit.commit_due(bed.now), held.permit.hold_ends_at()), (None, None));
}

#[test]
fn a_whole_answer_is_content_when_it_is_complete_or_too_long_but_not_for_impatience() {
    for (cause, expected) in [
        (CommitCause::Complete, Some(Millis(70))),
        (CommitCause::HoldFull, Some(Millis(70))),
        (CommitCause::Patience, None),
    ] {
        let mut bed = holding(0, 0);
        let mut held = answering(&mut bed, AnswerForm::Whole);
        bed.wait(70);
        held.permit.commit(bed.now, cause, &mut bed.notes);
        assert_eq!(held.permit.time_to_content(), expected, "{cause:?}");
        assert!(held.permit.is_released());
    }
}

#[test]
fn a_break_before_the_commit_fails_over_and_after_it_ends_the_request() {
    let mut bed = holding(3, 0);
    let mut plan = bed.begin("main", &Default::default());
    let mut permit = bed.next_permit(&mut plan);
    permit.answers_as(AnswerForm::Events);
    permit.content_event(bed.now);
    let outcome = permit.broken(Some(200));
    assert_eq!(outcome.kind, OutcomeKind::Transport);
    plan.report(bed.now, permit, &outcome, &mut bed.notes);
    assert!(!plan.is_over(), "content that is held was never released");

    let mut permit = bed.next_permit(&mut plan);
    permit.commit(bed.now, CommitCause::Patience, &mut bed.notes);
    let outcome = permit.broken(Some(200));
    assert_eq!(outcome.kind, OutcomeKind::Truncated);
    plan.report(bed.now, permit, &outcome, &mut bed.notes);
    assert!(plan.is_over());
    let committed: Vec<_> = plan.attempts().iter().map(|it| it.committed).collect();
    assert_eq!(committed, [None, Some(CommitCause::Patience)]);
    assert_eq!(bed.snap("b").consecutive_failures, 1);
}

#[test]
fn every_cause_has_a_word_of_its_own() {
    let words: std::collections::BTreeSet<_> =
        CommitCause::ALL.iter().map(|it| it.word()).collect();
    assert_eq!(words.len(), CommitCause::ALL.len());
}
