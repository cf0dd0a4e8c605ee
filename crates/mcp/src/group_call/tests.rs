//! One call through a group of two: where it goes, what it leaves behind, what the client hears.

use super::*;
use crate::{
    call::Action,
    cause::Delivery,
    health::{
        Failure, Reply, charge,
        tests::{GROUP, TIMED_OUT, core_of},
    },
    link::{Link, Want},
};

const LIMIT: Millis = Millis::seconds(60);
const REFUSED: Failure = Failure::of(Cause::ConnectionRefused, OutcomeKind::Transport);
const BROKEN: Failure = Failure {
    delivery: Delivery::Maybe,
    ..Failure::of(Cause::ConnectionBroken, OutcomeKind::Transport)
};
const FAULT: Failure = Failure {
    delivery: Delivery::Maybe,
    ..Failure::of(Cause::Status(502), OutcomeKind::ServerError)
};

/// How a member treats whatever is sent to it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    Answers,
    /// Nobody listens, and connections that were there break.
    Dead,
    /// Answers with an internal error.
    Troubled,
    /// Fails requests without ending the conversation.
    Failing,
}

/// A group of `a` and `b`, a ready link to each, and a clock that a test moves.
struct Bench {
    core: Core,
    links: [Link; 2],
    manners: [Manner; 2],
    /// Requests that reached each member.
    reached: [u32; 2],
    now: Now,
    notes: Notes,
}

impl Bench {
    fn new(manners: [Manner; 2]) -> Self {
        let ready = || {
            let mut link = Link::new();
            let Want::Connect(first) = link.want() else { panic!("a new link connects") };
            link.connected(first);
            link
        };
        Self {
            core: core_of(&["a", "b"]),
            links: [ready(), ready()],
            manners,
            reached: [0, 0],
            now: Now::ZERO,
            notes: Notes::default(),
        }
    }

    fn call(&mut self, replayability: Replayability, stays_at: Option<&str>) -> (GroupCall, End) {
        let group_call = GroupCall::new(GROUP, replayability, self.now, LIMIT);
        let mut group_call = group_call.staying_at(stays_at.map(Into::into));
        loop {
            match group_call.next(&self.core, self.now, 0, &mut self.notes) {
                GroupStep::Over(end) => return (group_call, end),
                GroupStep::At(server, mut call) => {
                    let end = self.carry(usize::from(&*server == "b"), &mut call);
                    if let Some(end) = group_call.ended(call, end) {
                        return (group_call, end);
                    }
                }
            }
        }
    }

    fn carry(&mut self, member: usize, call: &mut Call) -> End {
        let (link, now, notes) = (&mut self.links[member], self.now, &mut self.notes);
        let manner = self.manners[member];
        let mut next = call.go(link, now, notes);
        loop {
            next = match next {
                Action::Connect(generation) if manner == Manner::Dead => {
                    link.failed(generation, REFUSED);
                    call.connect_failed(link, now, &REFUSED, notes)
                }
                Action::Connect(generation) => {
                    link.connected(generation);
                    call.connected(link, now, notes)
                }
                Action::Send(_) => {
                    self.reached[member] += 1;
                    match manner {
                        Manner::Answers => {
                            call.answered(link, now, Reply::Ended(OutcomeKind::Success), notes)
                        }
                        Manner::Troubled => {
                            call.answered(link, now, Reply::Ended(OutcomeKind::ServerError), notes)
                        }
                        Manner::Dead => call.broken(link, now, &BROKEN, notes),
                        Manner::Failing => call.broken(link, now, &FAULT, notes),
                    }
                }
                Action::End(end) => return end,
                Action::Wait(_) | Action::Nothing => panic!("nothing else is under way"),
            };
        }
    }

    fn failures(&self) -> Vec<u32> {
        let backends = self.core.snapshot(self.now).backends;
        backends.iter().map(|it| it.consecutive_failures).collect()
    }

    fn in_flight(&self) -> u32 {
        self.core.snapshot(self.now).backends.iter().map(|it| it.in_flight).sum()
    }
}

fn visited(group_call: &GroupCall) -> Vec<&str> {
    group_call.attempts().iter().map(|it| &*it.server).collect()
}

fn heard(end: &End) -> String {
    match end {
        End::Answered => "an answer".to_owned(),
        End::Connected => "a connection".to_owned(),
        End::Unavailable(it) => format!("{} ({})", it.message(), it.code.word()),
    }
}

#[test]
fn the_first_member_is_used_while_it_is_well() {
    let mut bench = Bench::new([Manner::Answers, Manner::Answers]);
    let (group_call, end) = bench.call(Replayability::Once, None);
    assert_eq!((visited(&group_call), end), (vec!["a"], End::Answered));
    assert_eq!(group_call.stays().as_deref(), Some("a"));
}

#[test]
fn a_safe_call_goes_on_at_the_next_member_after_any_failure() {
    for manner in [Manner::Dead, Manner::Troubled, Manner::Failing] {
        let mut bench = Bench::new([manner, Manner::Answers]);
        let (group_call, end) = bench.call(Replayability::Repeatable, None);
        assert_eq!((visited(&group_call), end), (vec!["a", "b"], End::Answered));
        assert_eq!(group_call.stays().as_deref(), Some("b"));
        assert_eq!((bench.failures(), bench.in_flight()), (vec![1, 0], 0));
    }
}

#[test]
fn a_call_that_may_have_been_carried_out_stays_where_it_was_sent() {
    for (manner, code) in
        [(Manner::Dead, "result is unknown"), (Manner::Failing, "result is unknown")]
    {
        let mut bench = Bench::new([manner, Manner::Answers]);
        let (group_call, end) = bench.call(Replayability::Once, None);
        assert_eq!(visited(&group_call), ["a"]);
        assert!(heard(&end).contains(code), "{}", heard(&end));
        assert!(heard(&end).starts_with("backend \"all\" unavailable"), "{}", heard(&end));
        assert_eq!(bench.reached, [1, 0]);
    }
    let mut bench = Bench::new([Manner::Troubled, Manner::Answers]);
    let (group_call, end) = bench.call(Replayability::Once, None);
    assert_eq!((visited(&group_call), end), (vec!["a"], End::Answered));
}

#[test]
fn an_unsafe_call_that_was_not_delivered_goes_on() {
    let mut bench = Bench::new([Manner::Dead, Manner::Answers]);
    bench.links[0] = Link::new();
    let (group_call, end) = bench.call(Replayability::Once, None);
    assert_eq!((visited(&group_call), end), (vec!["a", "b"], End::Answered));
    assert_eq!(bench.reached, [0, 1]);
}

#[test]
fn a_member_whose_breaker_is_open_is_not_asked() {
    let mut bench = Bench::new([Manner::Answers, Manner::Answers]);
    (0..2).for_each(|_| charge(&bench.core, "a", bench.now, &TIMED_OUT, &mut bench.notes));
    let (group_call, _) = bench.call(Replayability::Once, None);
    assert_eq!(visited(&group_call), ["b"]);
}

#[test]
fn a_session_stays_at_its_member_when_a_better_one_returns_and_leaves_it_when_it_fails() {
    let mut bench = Bench::new([Manner::Answers, Manner::Answers]);
    let (group_call, _) = bench.call(Replayability::Once, Some("b"));
    assert_eq!(visited(&group_call), ["b"], "both are well");
    bench.now = Now(3_600_000);
    assert_eq!(visited(&bench.call(Replayability::Once, Some("b")).0), ["b"], "an hour later too");
    (0..2).for_each(|_| charge(&bench.core, "b", bench.now, &TIMED_OUT, &mut bench.notes));
    let (group_call, _) = bench.call(Replayability::Once, Some("b"));
    assert_eq!((visited(&group_call), group_call.stays().as_deref()), (vec!["a"], Some("a")));
}

#[test]
fn if_no_member_answers_the_last_cause_is_heard_once_under_the_groups_name() {
    let mut bench = Bench::new([Manner::Failing, Manner::Dead]);
    let (group_call, end) = bench.call(Replayability::Repeatable, None);
    assert_eq!(visited(&group_call), ["a", "b"]);
    let expected = "backend \"all\" unavailable: connection refused (backend_unavailable)";
    assert_eq!(heard(&end), expected);
    assert_eq!((bench.failures(), bench.in_flight()), (vec![1, 1], 0));
}

#[test]
fn an_error_that_a_member_answered_is_better_than_none() {
    let mut bench = Bench::new([Manner::Troubled, Manner::Dead]);
    let (group_call, end) = bench.call(Replayability::Repeatable, None);
    assert_eq!((visited(&group_call), end), (vec!["a", "b"], End::Answered));
    assert_eq!(group_call.stays(), None);
}

#[test]
fn with_every_breaker_open_nobody_is_asked_and_the_first_return_is_told() {
    let mut bench = Bench::new([Manner::Answers, Manner::Answers]);
    (0..2).for_each(|_| charge(&bench.core, "a", bench.now, &TIMED_OUT, &mut bench.notes));
    bench.now = Now(1000);
    (0..2).for_each(|_| charge(&bench.core, "b", bench.now, &TIMED_OUT, &mut bench.notes));
    let (group_call, end) = bench.call(Replayability::Repeatable, None);
    assert!(group_call.attempts().is_empty());
    let End::Unavailable(it) = end else { panic!("{end:?}") };
    assert_eq!((it.cause, it.retry_after), (Cause::CircuitOpen, Some(Millis::seconds(29))));
    assert_eq!(bench.in_flight(), 0);
}

#[test]
fn an_errand_to_connect_takes_the_first_member_that_can_be_reached() {
    let mut bench = Bench::new([Manner::Dead, Manner::Answers]);
    bench.links = [Link::new(), Link::new()];
    let (group_call, end) = bench.call(Replayability::Connect, None);
    assert_eq!((visited(&group_call), end), (vec!["a", "b"], End::Connected));
    assert_eq!(group_call.stays().as_deref(), Some("b"));
}

#[test]
fn a_member_that_is_closing_is_passed_by_without_blame() {
    let mut bench = Bench::new([Manner::Answers, Manner::Answers]);
    bench.links[0].close();
    let (group_call, end) = bench.call(Replayability::Once, None);
    assert_eq!((visited(&group_call), end), (vec!["a", "b"], End::Answered));
    assert_eq!(bench.failures(), [0, 0]);
}

#[test]
fn of_twenty_calls_that_share_a_failed_connect_one_is_charged_and_all_go_on() {
    let mut bench = Bench::new([Manner::Dead, Manner::Answers]);
    bench.links[0] = Link::new();
    let mut group_calls: Vec<_> = (0..20)
        .map(|_| {
            let mut group_call = GroupCall::new(GROUP, Replayability::Once, bench.now, LIMIT);
            let step = group_call.next(&bench.core, bench.now, 0, &mut bench.notes);
            let GroupStep::At(_, mut call) = step else { panic!("{step:?}") };
            call.go(&mut bench.links[0], bench.now, &mut bench.notes);
            (group_call, call)
        })
        .collect();
    bench.links[0].failed(bench.links[0].generation(), REFUSED);
    for (group_call, mut call) in group_calls.drain(..) {
        let mut group_call = group_call;
        let link = &mut bench.links[0];
        let next = call.connect_failed(link, bench.now, &REFUSED, &mut bench.notes);
        let Action::End(end) = next else { panic!("{next:?}") };
        assert_eq!(group_call.ended(call, end), None);
        let step = group_call.next(&bench.core, bench.now, 0, &mut bench.notes);
        let GroupStep::At(server, _) = step else { panic!("{step:?}") };
        assert_eq!(&*server, "b");
    }
    assert_eq!(bench.failures(), [1, 0]);
}

#[test]
fn a_group_that_left_the_config_is_closing() {
    let core = core_of(&["a"]);
    let mut group_call = GroupCall::new("gone", Replayability::Once, Now::ZERO, LIMIT);
    let step = group_call.next(&core, Now::ZERO, 0, &mut Notes::default());
    let GroupStep::Over(end) = step else { panic!("{step:?}") };
    assert_eq!(heard(&end), "backend \"gone\" unavailable: closing (backend_unavailable)");
}

#[test]
fn a_member_without_a_free_turn_is_passed_by_without_blame_and_costs_no_time() {
    let mut bench = Bench::new([Manner::Answers, Manner::Answers]);
    let mut group_call = GroupCall::new(GROUP, Replayability::Once, bench.now, LIMIT);
    let GroupStep::At(server, mut call) =
        group_call.next(&bench.core, bench.now, 0, &mut bench.notes)
    else {
        panic!("the first member is well")
    };
    assert_eq!((&*server, group_call.patience()), ("a", LIMIT));
    bench.now = bench.now.after(LIMIT);
    group_call.waited(LIMIT);
    call.waited(LIMIT);
    let Action::End(end) = call.no_turn(bench.now) else { panic!("it is over here") };
    assert!(heard(&end).ends_with("unavailable: too many calls at once (busy)"), "{end:?}");
    assert_eq!(group_call.ended(call, end), None, "it goes on");
    assert_eq!(group_call.patience(), Millis::ZERO, "all waiting together has one limit");
    let GroupStep::At(server, mut call) =
        group_call.next(&bench.core, bench.now, 0, &mut bench.notes)
    else {
        panic!("the second member is well")
    };
    assert_eq!((&*server, call.deadline()), ("b", bench.now.after(LIMIT)));
    let end = bench.carry(1, &mut call);
    assert_eq!(group_call.ended(call, end), Some(End::Answered));
    let failures = bench.core.snapshot(bench.now).backends[0].consecutive_failures;
    assert_eq!((failures, bench.reached), (0, [0, 1]));
}

#[test]
fn a_group_without_a_free_turn_is_busy() {
    let mut bench = Bench::new([Manner::Answers, Manner::Answers]);
    let mut group_call = GroupCall::new(GROUP, Replayability::Repeatable, bench.now, LIMIT);
    let end = loop {
        match group_call.next(&bench.core, bench.now, 0, &mut bench.notes) {
            GroupStep::Over(end) => break end,
            GroupStep::At(_, mut call) => {
                let Action::End(end) = call.no_turn(bench.now) else { panic!("it is over here") };
                if let Some(end) = group_call.ended(call, end) {
                    break end;
                }
            }
        }
    };
    let End::Unavailable(it) = end else { panic!("{end:?}") };
    assert_eq!(
        (it.code, it.cause, visited(&group_call)),
        (Code::Busy, Cause::Busy, vec!["a", "b"])
    );
}
