//! The one resend of a request whose kept connection was closed.

use tidegate_core::{
    outcome::{Outcome, OutcomeKind},
    resend::{ConnectionAge, SendFailure, SendVerdict},
};

use crate::bed::{Bed, ok};

const REUSED: ConnectionAge = ConnectionAge::Reused;
const FAILED: SendVerdict = SendVerdict::Failed(Outcome::unanswered(OutcomeKind::Transport));

#[test]
fn a_request_is_sent_again_once_where_its_kept_connection_was_closed() {
    for failure in [SendFailure::NotSent, SendFailure::Broken] {
        let mut bed = Bed::of(&["a"]);
        let mut held = bed.take("a");
        assert_eq!(held.permit.send_failed(REUSED, failure), SendVerdict::Resend);
        assert_eq!(held.permit.send_failed(REUSED, failure), FAILED, "only once");
        assert!(held.permit.is_resent());
    }
}

#[test]
fn a_fresh_connection_that_fails_and_an_answer_that_is_no_http_are_failures() {
    let mut bed = Bed::of(&["a"]);
    for (age, failure) in [
        (ConnectionAge::Fresh, SendFailure::NotSent),
        (ConnectionAge::Fresh, SendFailure::Broken),
        (REUSED, SendFailure::Malformed),
    ] {
        let mut held = bed.take("a");
        assert_eq!(held.permit.send_failed(age, failure), FAILED, "{age:?} {failure:?}");
        assert!(!held.permit.is_resent());
    }
}

#[test]
fn nothing_is_sent_again_after_a_response_head() {
    let mut bed = Bed::of(&["a"]);
    let mut held = bed.take("a");
    held.permit.head(bed.now, &mut bed.notes);
    assert_eq!(held.permit.send_failed(REUSED, SendFailure::Broken), FAILED);
}

#[test]
fn a_resend_is_no_hop_and_charges_nothing_but_is_recorded() {
    let mut bed = Bed::of(&["a", "b"]);
    let mut plan = bed.begin("main", &Default::default());
    let mut permit = bed.next_permit(&mut plan);
    assert_eq!(permit.send_failed(REUSED, SendFailure::NotSent), SendVerdict::Resend);
    plan.report(bed.now, permit, &ok(), &mut bed.notes);
    let resent: Vec<bool> = plan.attempts().iter().map(|it| it.is_resent).collect();
    assert_eq!(resent, [true]);
    assert_eq!(bed.snap("a").consecutive_failures, 0);
}
