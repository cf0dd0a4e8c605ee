//! What the journal keeps, gives out and forgets.

use tidegate_core::{attempt::End, outcome::OutcomeKind};

use super::*;
use crate::{decision::Decision, mcp::McpCall, result::ClientVerdict};

fn journal() -> Journal {
    Journal::new(Clock::start(), "f1")
}

fn decision(at: u64, status: u16) -> Decision {
    let end = (status == 200).then_some(End::Answered);
    Decision {
        end,
        verdict: ClientVerdict::of(status, end),
        caller: "ci".into(),
        ..Decision::refused(RequestId::new(), Now(at), Millis(1), status, "invalid_request")
    }
}

fn transition(backend: &str, from: &'static str, to: &'static str) -> EventBody {
    EventBody::Transition(Arc::new(TransitionRecord {
        at: Now(0),
        backend: backend.into(),
        scope: "backend",
        from,
        to,
        reason: "consecutive_failures",
        detail: "3 × 529 overloaded in a row".to_owned(),
        until: Some(Now(30_000)),
        weight: "degraded",
        generation: Some(1),
        evidence: Some(OutcomeKind::Overloaded),
        status: Some(529),
        key: None,
        is_breaker: true,
    }))
}

fn all() -> Question {
    Question { limit: 1000, ..Question::default() }
}

#[test]
fn a_decision_can_be_read_at_once_and_once() {
    let journal = journal();
    let inbox = journal.inbox();
    let plain = decision(0, 200);
    let id = plain.id;
    journal.record(&inbox, plain);
    journal.record(&inbox, decision(1, 400));
    let (found, has_more) = journal.decisions(&all());
    assert_eq!((found.len(), has_more), (2, false));
    assert_eq!(found.iter().map(|(n, _)| *n).collect::<Vec<_>>(), [2, 1], "newest first");
    assert_eq!(journal.find(id).map(|(n, _)| n), Some(1));
    assert_eq!(journal.find(RequestId::new()).map(|(n, _)| n), None);
    let totals = journal.with_stats(|stats| stats.totals(Now(1)));
    assert_eq!((totals.requests, totals.ok, totals.refused), (2, 1, 1));
}

#[test]
fn calls_that_a_server_could_not_be_asked_for_are_its_failures() {
    let journal = journal();
    let inbox = journal.inbox();
    let caller = "ci".into();
    let call = || McpCall::new(Now(0), &caller, "s", "files", ("tools/call", Some("read")));
    let mut answered = call();
    answered.attempt("files", (Now(0), Now(1)), Some(OutcomeKind::Success), None, 1);
    journal.record(&inbox, answered.answered(Now(1)));
    let mut refused = call();
    refused.attempt("files", (Now(0), Now(1)), None, Some("circuit open"), 0);
    journal.record(&inbox, refused.unavailable(Now(1), "backend_unavailable", "circuit open"));
    let mut left = call();
    left.attempt("files", (Now(0), Now(1)), None, None, 1);
    journal.record(&inbox, left.cancelled(Now(1)));
    let stats = journal.with_stats(|stats| stats.backend(Now(1), "mcp:files"));
    assert_eq!((stats.attempts, stats.answers, stats.failures), (3, 1, 1));
    assert_eq!(stats.ok_percent, Some(50.0));
    let [requests, failed, _] = journal.with_stats(|stats| stats.request_lanes(Now(1)));
    assert_eq!((requests.iter().sum::<u64>(), failed.iter().sum::<u64>()), (3, 1));
}

#[test]
fn what_a_thread_recorded_is_there_after_its_end() {
    let journal = journal();
    let inbox = journal.inbox();
    journal.record(&inbox, decision(0, 200));
    drop(inbox);
    assert_eq!(journal.decisions(&all()).0.len(), 1);
    assert_eq!(journal.inboxes.lock().map(|it| it.len()).ok(), Some(0));
}

#[test]
fn a_page_ends_where_the_next_begins() {
    let journal = journal();
    let inbox = journal.inbox();
    (0..10)
        .for_each(|at| journal.record(&inbox, decision(at, if at % 3 == 0 { 400 } else { 200 })));
    let mut below = None;
    let mut seen = Vec::new();
    loop {
        let (page, has_more) = journal.decisions(&Question { below, limit: 3, ..all() });
        seen.extend(page.iter().map(|(n, _)| *n));
        below = page.last().map(|(n, _)| *n);
        if !has_more {
            break;
        }
    }
    assert_eq!(seen, (1..=10).rev().collect::<Vec<_>>());
}

#[test]
fn questions_leave_out_what_does_not_fit() {
    let journal = journal();
    let inbox = journal.inbox();
    journal.record(&inbox, decision(5, 200));
    journal.record(&inbox, decision(6, 400));
    let mut call = McpCall::new(Now(7), &"ops".into(), "s", "github", ("tools/call", Some("x")));
    call.attempt("github", (Now(7), Now(9)), Some(OutcomeKind::Transport), Some("refused"), 1);
    journal.record(&inbox, call.unavailable(Now(9), "backend_unavailable", "refused"));
    let count = |question: Question| journal.decisions(&question).0.len();
    let text = |it: &str| Some(it.to_owned());
    assert_eq!(count(all()), 3);
    assert_eq!(count(Question { kind: text("mcp"), ..all() }), 1);
    assert_eq!(count(Question { caller: text("ci"), ..all() }), 2);
    assert_eq!(count(Question { result: text("failed"), ..all() }), 1);
    assert_eq!(count(Question { is_notable: true, ..all() }), 2);
    assert_eq!(count(Question { backend: text("mcp:github"), ..all() }), 1);
    let same = Question { backend: text("mcp:github"), outcome: text("timeout"), ..all() };
    assert_eq!(count(same), 0);
    assert_eq!(count(Question { since: Some(Now(6)), until: Some(Now(7)), ..all() }), 1);
    assert_eq!(count(Question { session: SessionOf::of("s"), ..all() }), 1);
}

use crate::request_id::SessionFingerprint as SessionOf;

#[test]
fn plain_answers_cannot_push_an_outage_out_and_bytes_are_bounded() {
    let journal = journal();
    let inbox = journal.inbox();
    let failed = decision(0, 503);
    let id = failed.id;
    journal.record(&inbox, failed);
    journal.event(Now(0), transition("a/b", "closed", "open"));
    for at in 0..40_000 {
        journal.record(&inbox, decision(at / 100, 200));
    }
    let size = journal.size();
    assert!(size.bytes <= PLAIN_BYTES + NOTABLE_BYTES + EVENT_BYTES, "{size:?}");
    assert!(size.decisions < 40_000, "{size:?}");
    assert!(size.complete_since > Now::ZERO);
    assert_eq!(size.dropped, 0);
    assert!(journal.find(id).is_some());
    assert!(matches!(journal.events_after(0), EventsAfter::All(events) if events.len() == 2));
}

#[test]
fn events_are_numbered_without_a_gap_and_one_that_is_too_old_is_told() {
    let journal = journal();
    for _ in 0..3 {
        journal.event(Now(0), transition("a/b", "closed", "open"));
    }
    let seqs = |after: u64| match journal.events_after(after) {
        EventsAfter::All(events) => events.iter().map(|it| it.seq).collect::<Vec<_>>(),
        EventsAfter::Gap => panic!("nothing is gone"),
    };
    assert_eq!(seqs(0), [1, 2, 3]);
    assert_eq!(seqs(2), [3]);
    assert_eq!(seqs(3), [0_u64; 0]);
    assert!(matches!(journal.events_after(4), EventsAfter::Gap), "of another process");
    for _ in 0..8_000 {
        journal.event(Now(0), transition("a/b", "open", "closed"));
    }
    assert!(matches!(journal.events_after(1), EventsAfter::Gap), "too old");
    let last = journal.last_seq();
    assert_eq!(seqs(last - 2), [last - 1, last]);
    let (_, before) = journal.events();
    assert_eq!(before.len(), 1, "what a lane began with is remembered");
}

#[test]
fn notable_decisions_beyond_so_many_a_second_are_counted_and_kept() {
    let journal = journal();
    let inbox = journal.inbox();
    (0..50).for_each(|_| journal.record(&inbox, decision(0, 503)));
    assert_eq!(journal.last_seq(), u64::from(STREAMED_PER_SECOND));
    assert_eq!(journal.omitted(), 30);
    assert_eq!(journal.decisions(&all()).0.len(), 50);
}

#[test]
fn a_thread_whose_decisions_nobody_collects_drops_them_and_says_so() {
    let journal = journal();
    let inbox = journal.inbox();
    let busy = journal.state.lock().expect("nobody panicked");
    (0..5_000).for_each(|at| journal.record(&inbox, decision(at, 200)));
    drop(busy);
    let size = journal.size();
    assert_eq!((size.decisions, size.dropped), (4096, 5_000 - 4096));
}

#[test]
fn the_last_change_of_each_kind_is_remembered() {
    let journal = journal();
    journal.event(Now(0), transition("a/b", "closed", "open"));
    journal.event(Now(1), transition("a/b", "open", "open"));
    let latest = journal.latest("a/b").breaker.expect("it changed");
    assert_eq!((latest.from, latest.to), ("closed", "open"));
    assert!(journal.latest("a/b").mark.is_none());
    assert!(journal.latest("c/d").breaker.is_none());
}
