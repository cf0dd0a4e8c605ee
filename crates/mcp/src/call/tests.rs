//! One call, or twenty, over one link: what is sent again, what is charged, what the client hears.

use super::*;
use crate::health::{
    Standing, standing,
    tests::{core_of, open_core},
};

const LIMIT: Millis = Millis::seconds(60);
const BROKEN: Failure = Failure {
    delivery: Delivery::Maybe,
    ..Failure::of(Cause::ConnectionBroken, OutcomeKind::Transport)
};
const REFUSED: Failure = Failure::of(Cause::ConnectionRefused, OutcomeKind::Transport);

/// A core with one server, a link to it, and a clock that a test moves.
struct Bench {
    core: Core,
    link: Link,
    now: Now,
    notes: Notes,
}

impl Bench {
    fn new(core: Core) -> Self {
        Self { core, link: Link::new(), now: Now::ZERO, notes: Notes::default() }
    }

    /// With a connection that is ready.
    fn ready() -> Self {
        let mut bench = Self::new(core_of(&["a"]));
        let Want::Connect(first) = bench.link.want() else { panic!("a new link connects") };
        bench.link.connected(first);
        bench
    }

    fn begin(&mut self, replayability: Replayability) -> (Call, Action) {
        let mut call = Call::new("a", replayability, self.now, LIMIT);
        let next = call.begin(&self.core, &mut self.link, self.now, 0, &mut self.notes);
        (call, next)
    }

    /// Twenty calls that have been sent over a ready link.
    fn twenty(&mut self, replayability: Replayability) -> Vec<Call> {
        let begun = (0..20).map(|_| self.begin(replayability));
        begun
            .map(|(call, next)| {
                assert_eq!(next, Action::Send(Generation(1)));
                call
            })
            .collect()
    }

    fn broken(&mut self, call: &mut Call, failure: &Failure) -> Action {
        call.broken(&mut self.link, self.now, failure, &mut self.notes)
    }

    fn connected(&mut self, call: &mut Call) -> Action {
        call.connected(&mut self.link, self.now, &mut self.notes)
    }

    fn connect_failed(&mut self, call: &mut Call) -> Action {
        call.connect_failed(&mut self.link, self.now, &REFUSED, &mut self.notes)
    }

    fn answered(&mut self, call: &mut Call, reply: Reply) -> Action {
        call.answered(&mut self.link, self.now, reply, &mut self.notes)
    }

    /// Failures since the last success, as the core counts them.
    fn failures(&self) -> u32 {
        self.core.snapshot(self.now).backends[0].consecutive_failures
    }

    fn in_flight(&self) -> u32 {
        self.core.snapshot(self.now).backends[0].in_flight
    }
}

fn unavailable(next: Action) -> (String, Code) {
    match next {
        Action::End(End::Unavailable(it)) => (it.cause.to_string(), it.code),
        other => panic!("not unavailable: {other:?}"),
    }
}

#[test]
fn a_first_call_connects_sends_and_is_a_success() {
    let mut bench = Bench::new(core_of(&["a"]));
    let (mut call, next) = bench.begin(Replayability::Once);
    assert_eq!(next, Action::Connect(Generation(1)));
    bench.link.connected(Generation(1));
    assert_eq!(bench.connected(&mut call), Action::Send(Generation(1)));
    let reply = Reply::Ended(OutcomeKind::Success);
    assert_eq!(bench.answered(&mut call, reply), Action::End(End::Answered));
    assert_eq!((bench.failures(), bench.in_flight()), (0, 0));
}

#[test]
fn an_open_breaker_answers_at_once_and_touches_no_link() {
    let mut bench = Bench::new(open_core());
    let (_, next) = bench.begin(Replayability::Once);
    assert_eq!(bench.link.generation(), Generation(0));
    let Action::End(End::Unavailable(it)) = next else { panic!("{next:?}") };
    assert_eq!((it.cause, it.retry_after), (Cause::CircuitOpen, Some(Millis::seconds(30))));
}

#[test]
fn twenty_calls_on_a_lost_session_cause_one_reinitialise_and_no_charge() {
    let mut bench = Bench::ready();
    let mut calls = bench.twenty(Replayability::Once);
    let lost = Reply::SessionLost;
    let next: Vec<Action> = calls.iter_mut().map(|call| bench.answered(call, lost)).collect();
    assert_eq!(next[0], Action::Connect(Generation(2)));
    assert!(next[1..].iter().all(|it| *it == Action::Wait(Generation(2))));
    bench.link.connected(Generation(2));
    for call in &mut calls {
        assert_eq!(bench.connected(call), Action::Send(Generation(2)));
        let reply = Reply::Ended(OutcomeKind::Success);
        assert_eq!(bench.answered(call, reply), Action::End(End::Answered));
    }
    assert_eq!(bench.link.reinitialised(), 1);
    assert_eq!((bench.failures(), bench.in_flight()), (0, 0));
}

#[test]
fn a_reinitialise_that_fails_is_one_failure_shared_by_all_who_waited() {
    let mut bench = Bench::ready();
    let mut calls = bench.twenty(Replayability::Repeatable);
    for call in &mut calls {
        bench.broken(call, &BROKEN);
    }
    bench.link.failed(Generation(2), REFUSED);
    for call in &mut calls {
        let next = bench.connect_failed(call);
        assert_eq!(unavailable(next), ("connection refused".to_owned(), Code::BackendUnavailable));
    }
    assert_eq!((bench.failures(), bench.in_flight()), (1, 0));
    assert_eq!(standing(&bench.core, "a", bench.now), Standing::Healthy);
}

#[test]
fn a_call_without_hints_that_may_have_arrived_is_never_sent_again() {
    let mut bench = Bench::ready();
    let (mut call, _) = bench.begin(Replayability::Once);
    assert_eq!(bench.broken(&mut call, &BROKEN), Action::Connect(Generation(2)));
    let early = call.verdict().expect("what the client hears is known already");
    assert_eq!(
        early.message(),
        "backend \"a\" unavailable: connection broken; the result is unknown"
    );
    bench.link.connected(Generation(2));
    let next = bench.connected(&mut call);
    assert_eq!(unavailable(next), ("connection broken".to_owned(), Code::ResultUnknown));
    assert_eq!((call.times_sent(), bench.failures(), bench.in_flight()), (1, 0, 0));
}

#[test]
fn a_call_with_a_hint_is_sent_again_once_and_only_once() {
    let mut bench = Bench::ready();
    let (mut call, _) = bench.begin(Replayability::Repeatable);
    bench.broken(&mut call, &BROKEN);
    assert_eq!(call.verdict(), None);
    bench.link.connected(Generation(2));
    assert_eq!(bench.connected(&mut call), Action::Send(Generation(2)));
    let next = bench.broken(&mut call, &BROKEN);
    assert_eq!(unavailable(next), ("connection broken".to_owned(), Code::BackendUnavailable));
    assert_eq!((call.times_sent(), bench.failures()), (2, 1));
}

#[test]
fn a_second_break_of_an_undelivered_call_leaves_its_result_unknown() {
    let mut bench = Bench::ready();
    let (mut call, _) = bench.begin(Replayability::Once);
    bench.answered(&mut call, Reply::SessionLost);
    bench.link.connected(Generation(2));
    assert_eq!(bench.connected(&mut call), Action::Send(Generation(2)));
    let next = bench.broken(&mut call, &BROKEN);
    assert_eq!(unavailable(next), ("connection broken".to_owned(), Code::ResultUnknown));
}

#[test]
fn a_late_observer_of_an_old_loss_uses_the_new_connection() {
    let mut bench = Bench::ready();
    let mut calls = bench.twenty(Replayability::Repeatable);
    bench.broken(&mut calls[0], &BROKEN);
    bench.link.connected(Generation(2));
    assert_eq!(bench.broken(&mut calls[1], &BROKEN), Action::Send(Generation(2)));
    assert_eq!(bench.link.generation(), Generation(2));
}

#[test]
fn a_timeout_is_charged_and_never_sent_again() {
    let after = "timed out after 60s".to_owned();
    for (replayability, code) in [
        (Replayability::Once, Code::ResultUnknown),
        (Replayability::Repeatable, Code::BackendUnavailable),
    ] {
        let mut bench = Bench::ready();
        let (mut call, _) = bench.begin(replayability);
        bench.now = call.deadline();
        let next = call.timed_out(&mut bench.link, bench.now, &mut bench.notes);
        assert_eq!(unavailable(next), (after.clone(), code));
        assert_eq!((call.times_sent(), bench.failures()), (1, 1));
        assert_eq!(bench.link.generation(), Generation(1), "slow is not lost");
    }
}

#[test]
fn of_calls_that_time_out_waiting_for_a_connect_only_the_leader_is_charged() {
    let mut bench = Bench::new(core_of(&["a"]));
    let (mut leader, _) = bench.begin(Replayability::Once);
    let (mut waiter, next) = bench.begin(Replayability::Once);
    assert_eq!(next, Action::Wait(Generation(1)));
    bench.now = leader.deadline();
    for call in [&mut waiter, &mut leader] {
        let next = call.timed_out(&mut bench.link, bench.now, &mut bench.notes);
        assert_eq!(unavailable(next).1, Code::BackendUnavailable);
    }
    assert_eq!((bench.failures(), bench.in_flight()), (1, 0));
}

#[test]
fn a_fault_of_the_server_that_leaves_the_conversation_is_charged_per_call() {
    let mut bench = Bench::ready();
    let (mut call, _) = bench.begin(Replayability::Once);
    let fault =
        Failure { status: Some(500), ..Failure::of(Cause::Status(500), OutcomeKind::ServerError) };
    let next = bench.broken(&mut call, &fault);
    assert_eq!(
        unavailable(next),
        ("answered with status 500".to_owned(), Code::BackendUnavailable)
    );
    assert_eq!((bench.failures(), bench.link.generation()), (1, Generation(1)));
}

#[test]
fn errors_of_the_callers_making_count_for_nothing_and_are_answers() {
    let mut bench = Bench::ready();
    let (mut call, _) = bench.begin(Replayability::Once);
    let next = bench.answered(&mut call, Reply::Ended(OutcomeKind::ClientFault));
    assert_eq!(next, Action::End(End::Answered));
    let (mut call, _) = bench.begin(Replayability::Once);
    bench.answered(&mut call, Reply::Ended(OutcomeKind::ServerError));
    assert_eq!(bench.failures(), 1);
}

#[test]
fn an_errand_to_connect_is_a_trial_that_closes_the_breaker() {
    let mut bench = Bench::new(open_core());
    bench.now = Now(30_000);
    let (mut call, next) = bench.begin(Replayability::Connect);
    assert!(call.is_trial());
    assert_eq!(next, Action::Connect(Generation(1)));
    bench.link.connected(Generation(1));
    assert_eq!(bench.connected(&mut call), Action::End(End::Connected));
    assert_eq!(standing(&bench.core, "a", bench.now), Standing::Healthy);
}

#[test]
fn news_that_come_too_late_change_nothing() {
    let mut bench = Bench::ready();
    let (mut call, _) = bench.begin(Replayability::Once);
    assert_eq!(bench.connected(&mut call), Action::Nothing);
    assert_eq!(bench.connect_failed(&mut call), Action::Nothing);
    bench.answered(&mut call, Reply::Ended(OutcomeKind::Success));
    assert_eq!(call.reported(), Some(Outcome::unanswered(OutcomeKind::Success)));
    assert_eq!(bench.answered(&mut call, Reply::SessionLost), Action::Nothing);
    assert_eq!(bench.broken(&mut call, &BROKEN), Action::Nothing);
    assert_eq!(call.timed_out(&mut bench.link, bench.now, &mut bench.notes), Action::Nothing);
}

#[test]
fn a_call_over_a_closed_link_ends() {
    let mut bench = Bench::ready();
    bench.link.close();
    let (_, next) = bench.begin(Replayability::Once);
    assert_eq!(unavailable(next), ("closing".to_owned(), Code::BackendUnavailable));
    assert_eq!(bench.in_flight(), 0);
}

#[test]
fn an_answer_that_is_too_large_charges_nobody_and_is_asked_of_nobody_else() {
    for replayability in [Replayability::Once, Replayability::Repeatable] {
        let mut bench = Bench::ready();
        let (mut call, _) = bench.begin(replayability);
        let plain = Failure::of(Cause::TooLarge, OutcomeKind::ClientFault);
        let failure = Failure { delivery: Delivery::Maybe, ..plain };
        let (cause, _) = unavailable(bench.broken(&mut call, &failure));
        assert_eq!((cause.as_str(), call.may_go_on()), ("answer too large", false));
        assert_eq!((bench.failures(), bench.in_flight()), (0, 0));
        let (_, next) = bench.begin(replayability);
        assert_eq!(next, Action::Send(Generation(1)), "the connection goes on");
    }
}

#[test]
fn the_clock_of_a_call_starts_when_its_turn_has_come() {
    let mut bench = Bench::ready();
    let (mut call, _) = bench.begin(Replayability::Once);
    let before = call.deadline();
    call.waited(Millis::seconds(7));
    assert_eq!(call.deadline(), before.after(Millis::seconds(7)));
}

#[test]
fn too_many_programs_is_busy() {
    let mut bench = Bench::new(core_of(&["a"]));
    let (mut call, _) = bench.begin(Replayability::Once);
    let full = Failure::of(Cause::TooManyChildren, OutcomeKind::Cancelled);
    bench.link.failed(Generation(1), full);
    let next = call.connect_failed(&mut bench.link, bench.now, &full, &mut bench.notes);
    assert_eq!(unavailable(next), ("too many child processes".to_owned(), Code::Busy));
    assert_eq!(bench.failures(), 0);
}

/// When the client is told to come back.
fn retry_after(next: Action) -> Option<Millis> {
    match next {
        Action::End(End::Unavailable(it)) => it.retry_after,
        other => panic!("not unavailable: {other:?}"),
    }
}

#[test]
fn a_call_of_unknown_result_says_when_a_server_that_refuses_to_connect_asks_to_come_back() {
    let mut bench = Bench::ready();
    let (mut call, _) = bench.begin(Replayability::Once);
    bench.broken(&mut call, &BROKEN);
    let soon = Some(Millis::seconds(7));
    let busy = Failure { retry_after: soon, ..REFUSED };
    let next = call.connect_failed(&mut bench.link, bench.now, &busy, &mut bench.notes);
    assert_eq!(retry_after(next), soon);
}

#[test]
fn the_core_hears_how_long_a_server_asks_to_be_left_alone() {
    let mut bench = Bench::ready();
    let (mut call, _) = bench.begin(Replayability::Once);
    let limited = Failure {
        status: Some(429),
        retry_after: Some(Millis::seconds(7)),
        ..Failure::of(Cause::Status(429), OutcomeKind::RateLimited)
    };
    bench.broken(&mut call, &limited);
    assert_eq!(call.reported().and_then(|it| it.retry_after), Some(Millis::seconds(7)));
}
