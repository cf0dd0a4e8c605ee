//! What holds for every call through a group, whatever its members do and whoever else calls.
//!
//! Several calls share the links to one to four members that die, return, forget sessions and fail
//! at any moment; a script of drawn bytes says who is next and what happens to it.

use std::sync::Arc;

use proptest::prelude::*;
use tidegate_core::{
    core::Core,
    outcome::OutcomeKind,
    settings::{Abilities, BackendSettings, HealthSettings, Settings},
    time::{Millis, Now},
    transition::Notes,
};
use tidegate_mcp::{
    call::{Action, Call, Code, End, Replayability},
    cause::{Cause, Delivery},
    group_call::{GroupCall, GroupStep},
    health::{Failure, Reply, backend_id, route},
    link::{Generation, Link, LinkState},
};

use crate::support::cases;

const GROUP: &str = "group";
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

fn core_of(members: usize) -> Core {
    let backends = (0..members).map(|at| BackendSettings {
        id: backend_id(&at.to_string()),
        identity: at.to_string(),
        endpoint: None,
        keys: Vec::new(),
        health: HealthSettings { failure_threshold: 2, ..HealthSettings::default() },
        first_content_within: LIMIT,
        answer_within: LIMIT,
        abilities: Abilities::default(),
        fleet_names: Vec::new(),
    });
    let indexes: Vec<usize> = (0..members).collect();
    let settings = Settings {
        backends: backends.collect(),
        routes: vec![route(GROUP, &indexes)],
        ..Settings::default()
    };
    Core::new(&settings, 0)
}

/// A member, as far as calls notice it.
#[derive(Default)]
struct Member {
    link: Link,
    is_dead: bool,
}

/// A call at work.
struct Running {
    replayability: Replayability,
    group_call: GroupCall,
    at: Option<(usize, Call)>,
    pending: Option<Action>,
    /// How often it reached a member that may have carried it out.
    delivered: u32,
    /// How often it was sent to each member it visited.
    sent: Vec<(usize, u32)>,
    end: Option<End>,
}

struct World {
    core: Core,
    members: Vec<Member>,
    calls: Vec<Running>,
    now: Now,
    notes: Notes,
}

impl World {
    fn new(members: usize, errands: &[Replayability]) -> Self {
        let begin = |replayability: &Replayability| Running {
            replayability: *replayability,
            group_call: GroupCall::new(GROUP, *replayability, Now::ZERO, LIMIT),
            at: None,
            pending: None,
            delivered: 0,
            sent: Vec::new(),
            end: None,
        };
        Self {
            core: core_of(members),
            members: (0..members).map(|_| Member::default()).collect(),
            calls: errands.iter().map(begin).collect(),
            now: Now::ZERO,
            notes: Notes::default(),
        }
    }

    /// One thing happens to one call, or to one member.
    fn step(&mut self, who: u8, what: u8) {
        self.now = self.now.after(Millis(u64::from(what)));
        if what.is_multiple_of(8) {
            let at = usize::from(who) % self.members.len();
            self.members[at].is_dead = !self.members[at].is_dead;
        } else {
            let at = usize::from(who) % self.calls.len();
            self.advance(at, what / 8);
        }
    }

    fn advance(&mut self, at: usize, what: u8) {
        let call = &mut self.calls[at];
        if call.end.is_some() {
            return;
        }
        let Some((member, mut machine)) = call.at.take() else {
            match call.group_call.next(&self.core, self.now, u64::from(what), &mut self.notes) {
                GroupStep::Over(end) => call.end = Some(end),
                GroupStep::At(server, mut machine) => {
                    let member: usize = server.parse().expect("members are numbers");
                    let visited = call.sent.iter().any(|it| it.0 == member);
                    assert!(!visited, "a member was asked twice");
                    call.sent.push((member, 0));
                    let link = &mut self.members[member].link;
                    let next = machine.go(link, self.now, &mut self.notes);
                    self.settle(at, member, machine, next);
                }
            }
            return;
        };
        let pending = call.pending.take().expect("a call that is somewhere waits for something");
        let next = match pending {
            Action::Connect(generation) => self.connect(member, generation, &mut machine),
            Action::Wait(generation) => self.wait(member, generation, &mut machine),
            Action::Send(generation) => self.send(at, member, generation, &mut machine, what),
            Action::Nothing | Action::End(_) => unreachable!("taken care of when it was said"),
        };
        match next {
            Some(next) => self.settle(at, member, machine, next),
            None => {
                self.calls[at].pending = Some(pending);
                self.calls[at].at = Some((member, machine));
            }
        }
    }

    fn settle(&mut self, at: usize, member: usize, machine: Call, next: Action) {
        let call = &mut self.calls[at];
        match next {
            Action::End(end) => call.end = call.group_call.ended(machine, end),
            Action::Nothing => panic!("the machine is told only what it waits for"),
            next => {
                call.pending = Some(next);
                call.at = Some((member, machine));
            }
        }
    }

    fn connect(&mut self, at: usize, generation: Generation, call: &mut Call) -> Option<Action> {
        let Member { link, is_dead } = &mut self.members[at];
        Some(if *is_dead {
            link.failed(generation, REFUSED);
            call.connect_failed(link, self.now, &REFUSED, &mut self.notes)
        } else {
            link.connected(generation);
            call.connected(link, self.now, &mut self.notes)
        })
    }

    /// `None`: it waits on.
    fn wait(&mut self, at: usize, generation: Generation, call: &mut Call) -> Option<Action> {
        let link = &mut self.members[at].link;
        if link.state() == LinkState::Connecting && link.generation() == generation {
            return None;
        }
        Some(match link.failure(generation) {
            Some(failure) => call.connect_failed(link, self.now, &failure, &mut self.notes),
            None => call.connected(link, self.now, &mut self.notes),
        })
    }

    fn send(
        &mut self,
        at: usize,
        member: usize,
        generation: Generation,
        call: &mut Call,
        what: u8,
    ) -> Option<Action> {
        let Member { link, is_dead } = &mut self.members[member];
        let (now, notes) = (self.now, &mut self.notes);
        let running = &mut self.calls[at];
        let sent = running.sent.last_mut().expect("it was noted when it went there");
        sent.1 += 1;
        assert!(sent.1 <= 2, "sent three times to one member");
        let is_stale = link.generation() != generation || link.state() != LinkState::Ready;
        // Refused before anything was written, or unread.
        if is_stale || (*is_dead && what.is_multiple_of(2)) || what % 7 == 1 {
            return Some(if *is_dead {
                call.broken(link, now, &REFUSED, notes)
            } else {
                call.answered(link, now, Reply::SessionLost, notes)
            });
        }
        running.delivered += 1;
        Some(match what % 7 {
            _ if *is_dead => call.broken(link, now, &BROKEN, notes),
            2 => call.broken(link, now, &BROKEN, notes),
            3 => call.broken(link, now, &FAULT, notes),
            4 => call.answered(link, now, Reply::Ended(OutcomeKind::ServerError), notes),
            5 => call.answered(link, now, Reply::Ended(OutcomeKind::ClientFault), notes),
            _ => call.answered(link, now, Reply::Ended(OutcomeKind::Success), notes),
        })
    }

    fn in_flight(&self) -> u32 {
        self.core.snapshot(self.now).backends.iter().map(|it| it.in_flight).sum()
    }
}

fn replayability() -> impl Strategy<Value = Replayability> {
    prop::sample::select(vec![
        Replayability::Once,
        Replayability::Once,
        Replayability::Repeatable,
        Replayability::Connect,
    ])
}

/// How a member treats everything, for a whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    Well,
    /// Nobody listens.
    Dead,
    /// Connects, and breaks at every request.
    Breaking,
    /// Connects, and fails every request.
    Failing,
    /// Answers with internal errors.
    Troubled,
}

/// One safe call through members of these manners; the last answer's class, if there is one.
fn safe_call(core: &Core, links: &mut [Link], manners: &[Manner], now: Now) -> Option<OutcomeKind> {
    let mut notes = Notes::default();
    let mut group_call = GroupCall::new(GROUP, Replayability::Repeatable, now, LIMIT);
    let mut answer = None;
    loop {
        let (member, mut call) = match group_call.next(core, now, 0, &mut notes) {
            GroupStep::At(server, call) => (server.parse::<usize>().expect("a number"), call),
            GroupStep::Over(End::Answered) => return answer,
            GroupStep::Over(_) => return None,
        };
        let (link, manner) = (&mut links[member], manners[member]);
        let mut next = call.go(link, now, &mut notes);
        let end = loop {
            next = match (next, manner) {
                (Action::Connect(generation), Manner::Dead) => {
                    link.failed(generation, REFUSED);
                    call.connect_failed(link, now, &REFUSED, &mut notes)
                }
                (Action::Connect(generation), _) => {
                    link.connected(generation);
                    call.connected(link, now, &mut notes)
                }
                (Action::Send(_), Manner::Failing) => call.broken(link, now, &FAULT, &mut notes),
                (Action::Send(_), Manner::Breaking | Manner::Dead) => {
                    call.broken(link, now, &BROKEN, &mut notes)
                }
                (Action::Send(_), Manner::Well | Manner::Troubled) => {
                    let is_well = manner == Manner::Well;
                    let kind =
                        if is_well { OutcomeKind::Success } else { OutcomeKind::ServerError };
                    answer = Some(kind);
                    call.answered(link, now, Reply::Ended(kind), &mut notes)
                }
                (Action::End(end), _) => break end,
                (other @ (Action::Wait(_) | Action::Nothing), _) => {
                    panic!("alone, and yet {other:?}")
                }
            };
        };
        match group_call.ended(call, end) {
            Some(End::Answered) => return answer,
            Some(_) => return None,
            None => {}
        }
    }
}

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn a_call_that_may_change_something_is_never_delivered_twice(
        members in 1..5_usize,
        errands in prop::collection::vec(replayability(), 1..6),
        script in prop::collection::vec((any::<u8>(), any::<u8>()), 0..200),
    ) {
        let mut world = World::new(members, &errands);
        for (who, what) in script {
            world.step(who, what);
        }
        // Let everything come to its end, with servers that answer.
        world.members.iter_mut().for_each(|it| it.is_dead = false);
        for _ in 0..64 {
            (0..world.calls.len()).for_each(|at| world.advance(at, 6));
        }
        for call in &world.calls {
            let end = call.end.as_ref().expect("every call ends");
            let is_unknown = matches!(end, End::Unavailable(it) if it.code == Code::ResultUnknown);
            if call.replayability == Replayability::Once {
                prop_assert!(call.delivered <= 1, "delivered {} times", call.delivered);
                prop_assert!(!is_unknown || call.delivered == 1);
                let is_silent = matches!(end, End::Unavailable(_)) && !is_unknown;
                prop_assert!(!is_silent || call.delivered == 0, "delivered, and not told: {end:?}");
            }
            prop_assert!(!is_unknown || call.replayability == Replayability::Once);
        }
        prop_assert_eq!(world.in_flight(), 0);
    }

    #[test]
    fn a_safe_call_succeeds_if_any_member_is_well(
        others in prop::collection::vec(
            prop::sample::select(vec![
                Manner::Well, Manner::Dead, Manner::Breaking, Manner::Failing, Manner::Troubled,
            ]),
            0..4,
        ),
        place in any::<prop::sample::Index>(),
        gaps in prop::collection::vec(0..40_000_u64, 1..24),
    ) {
        let mut manners = others;
        manners.insert(place.index(manners.len() + 1), Manner::Well);
        let core = core_of(manners.len());
        let mut links: Vec<Link> = manners.iter().map(|_| Link::new()).collect();
        let mut now = Now::ZERO;
        for gap in gaps {
            now = now.after(Millis(gap));
            let answer = safe_call(&core, &mut links, &manners, now);
            prop_assert_eq!(answer, Some(OutcomeKind::Success), "{:?} at {:?}", manners, now);
        }
    }

    #[test]
    fn a_session_stays_where_its_state_is_while_that_member_is_well(
        members in 2..5_usize,
        home in any::<prop::sample::Index>(),
        gaps in prop::collection::vec(0..10_000_000_u64, 1..8),
    ) {
        let core = core_of(members);
        let home: Arc<str> = home.index(members).to_string().into();
        let mut now = Now::ZERO;
        for gap in gaps {
            now = now.after(Millis(gap));
            let group_call = GroupCall::new(GROUP, Replayability::Once, now, LIMIT);
            let mut group_call = group_call.staying_at(Some(Arc::clone(&home)));
            match group_call.next(&core, now, gap, &mut Notes::default()) {
                GroupStep::At(server, _) => prop_assert_eq!(&server, &home),
                GroupStep::Over(end) => prop_assert!(false, "{:?}", end),
            }
        }
    }
}
