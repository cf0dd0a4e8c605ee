//! The engine: a virtual clock, a heap of events, and the production core in the middle.
//!
//! ```text
//!   arrival ─▶ core.begin ─▶ plan.next ─▶ course ─▶ head, content, end ─▶ plan.report ─▶ …
//!                               ▲                                              │
//!                               └──────────── next attempt ◀──────────────────┘
//! ```
//! Rules kept here:
//! - Every event has a moment and a number; equal moments go by number. So one seed is one story.
//! - Draws come from four streams (arrivals, backends, clients, core), so that a change of one
//!   part's script does not reshuffle the others.
//! - New requests stop at the end of the timeline; those under way are played to their end, so
//!   that every request counts. "At the end" means the end of the timeline.
//! - In steady state nothing is allocated per request: calls live in a slab, notes are reused.

mod attempts;
mod bus;
mod clients;
mod conversions;
mod observe;
mod patience;
mod probes;
mod replay;
mod replica;

pub(super) use observe::why;

use std::{cmp::Reverse, collections::BinaryHeap, sync::Arc};

use tidegate_core::{
    breaker::State,
    outcome::Outcome,
    permit::Permit,
    plan::Plan,
    probe::ProbeOutcome,
    resend::ConnectionAge,
    route::Route,
    time::{Millis, Now},
    transition::Notes,
};

use super::{
    course::More,
    painter::View,
    plot::Plot,
    tally::Tally,
    trace::{KeyPin, Tracer},
};
use crate::{
    audit::{AuditedAttempt, FleetAuditor, Violation},
    rng::Rng,
};
use bus::Bus;
use clients::Arrivals;
use replica::Replica;

/// How much of a run is written down.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RunOptions {
    /// Whether the invariants are checked.
    pub(super) audit: bool,
    /// Whether the view is traced, too.
    pub(super) trace: bool,
    /// The span of time that is shown; absent: all of it.
    pub(super) view: Option<View>,
}

/// What a run gave.
#[derive(Debug)]
pub(super) struct TimelineRun {
    pub(super) tally: Tally,
    pub(super) violations: Vec<Violation>,
    pub(super) tracer: Tracer,
    /// The state of each backend at the end of the timeline: the worst that a replica sees.
    pub(super) states: Vec<State>,
    /// The same by replica, in fleets.
    pub(super) replica_states: Vec<Vec<State>>,
    /// The decision of each recorded request, as a line.
    pub(super) decisions: Vec<String>,
}

/// What happens at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum EngineEvent {
    /// A phase of a backend begins.
    Phase { backend: u32, phase: u32 },
    /// The next thing of an attempt: head, content or end. `turn` tells a stale event.
    Call { slot: u32, turn: u32 },
    /// A client tries again.
    Retry { slot: u32 },
    /// A probe may be due.
    ProbeTick { replica: u32, endpoint: u32 },
    /// A probe ends.
    ProbeEnd { replica: u32, endpoint: u32, outcome: ProbeOutcome },
    /// A replica hears what another one told.
    Hear { replica: u32, message: u32 },
    /// A replica that was cut off from the others is back.
    Reunion { replica: u32 },
    /// A recorded request arrives.
    Arrive { arrival: u32 },
    /// The core is asked for the next choice of a recorded request.
    Choose { slot: u32, turn: u32 },
    /// A recorded probe ends.
    Probed { probe: u32 },
    /// An operator acts.
    Act { action: u32 },
}

/// A moment, a number, an event: the least comes first.
type QueuedEvent = Reverse<(Now, u64, EngineEvent)>;

/// One client's request, from its arrival to its last answer.
#[derive(Debug)]
struct Call {
    plan: Option<Plan>,
    permit: Option<Permit>,
    audited: Option<AuditedAttempt>,
    /// Attempts that were left and whose reports wait for another target's answer.
    unsettled: Vec<Unsettled>,
    /// Moves on with every event, so that an event of an attempt that was cut off is stale.
    turn: u32,
    /// The place of its route among the engine's.
    route: u16,
    /// The number of the recorded request; `NONE_RECORDED` = none.
    recorded: u32,
    session: u32,
    /// The replica that it reached.
    replica: u32,
    is_stream: bool,
    retries: u8,
    /// When the client first asked.
    began: Now,
    attempt: Ongoing,
}

/// An attempt that was left and is not reported yet.
#[derive(Debug)]
struct Unsettled {
    /// Its number among the request's attempts.
    attempt: usize,
    backend: usize,
    audited: Option<AuditedAttempt>,
}

/// The attempt under way: what is still to come of it.
#[derive(Clone, Copy, Debug)]
struct Ongoing {
    backend: usize,
    began: Now,
    /// Moments that have not come yet.
    head: Option<Now>,
    content: Option<Now>,
    /// The events with content that follow, of which the core hears while the answer is held.
    more: More,
    /// When the next of them comes, or the hold ends; `None` unless the answer is held.
    held_until: Option<Now>,
    end: Now,
    /// `None` if the request's deadline ends it: the core says what that means.
    outcome: Option<Outcome>,
    has_head: bool,
    connection: ConnectionAge,
    /// From when on bytes without content keep coming, if they do.
    pings_from: Option<Now>,
    /// The attempt of the record that it repeats, if it does so exactly.
    exact: Option<u16>,
}

/// A route that requests ask for.
#[derive(Debug)]
struct AskedRoute {
    /// Its index in the settings.
    index: usize,
    /// The backend of each candidate.
    candidates: Vec<usize>,
}

/// No recorded request.
const NONE_RECORDED: u32 = u32::MAX;

/// The connections to one backend that are kept for the next requests.
#[derive(Clone, Copy, Debug, Default)]
struct IdleConnections {
    open: u32,
    /// Closed by the backend, which the gateway finds out when it uses them.
    closed: u32,
}

struct Engine<'a> {
    plot: &'a Plot,
    replicas: Vec<Replica>,
    /// What lies between them, in a fleet.
    bus: Option<Bus>,
    /// The route that requests ask for, and further ones of a recording.
    routes: Vec<AskedRoute>,
    notes: Notes,
    heap: BinaryHeap<QueuedEvent>,
    number: u64,
    calls: Vec<Call>,
    free: Vec<u32>,
    sessions: Vec<String>,
    /// The target of each session's pin, as far as it was seen.
    pinned: Vec<u16>,
    /// The key that each session was last seen pinned to, where targets have several.
    key_pins: Vec<Option<KeyPin>>,
    /// Attempts under way, by backend.
    busy: Vec<u32>,
    backend_draws: Rng,
    client_draws: Rng,
    core_draws: Rng,
    tally: Tally,
    tracer: Tracer,
    states: Vec<State>,
    replica_states: Vec<Vec<State>>,
    /// The decision of each recorded request.
    decisions: Vec<String>,
}

/// Plays a plot.
pub(super) fn run(plot: &Plot, seed: u64, options: &RunOptions) -> TimelineRun {
    let mut streams = Rng::new(seed);
    let arrivals = Arrivals::new(plot, Rng::new(streams.draw()));
    let mut engine = Engine::new(plot, &mut streams, options);
    match &plot.recording {
        Some(recording) => engine.replay(recording),
        None => engine.play(Some(arrivals)),
    }
    TimelineRun {
        violations: engine.violations(),
        decisions: std::mem::take(&mut engine.decisions),
        tally: engine.tally,
        tracer: engine.tracer,
        states: engine.states,
        replica_states: engine.replica_states,
    }
}

/// Numbers of events that were not recorded begin here.
const SIMULATED: u64 = 1 << 62;

/// No session, or a session whose pin was never seen.
const NONE: u16 = u16::MAX;

impl<'a> Engine<'a> {
    fn new(plot: &'a Plot, streams: &mut Rng, options: &RunOptions) -> Self {
        let world = &plot.world;
        let recorded = plot.recording.as_deref();
        let asked = |index: usize| AskedRoute {
            index,
            candidates: world.members(index).into_iter().map(|(backend, _)| backend).collect(),
        };
        let routes = [world.route].iter().chain(&world.more_routes).map(|it| asked(*it)).collect();
        let sessions: Vec<String> = match recorded {
            Some(it) => it.sessions.iter().map(|(_, session)| session.clone()).collect(),
            None => (0..plot.traffic.sessions).map(|it| format!("s{it}")).collect(),
        };
        let backends = world.settings.backends.len();
        let replicas: Vec<Replica> = (0..plot.replicas())
            .map(|number| Replica::new(plot, number, streams, options.audit))
            .collect();
        let view = options.view.unwrap_or(View { from: Now::ZERO, to: Now(plot.lasts.0) });
        let draws = [(); 3].map(|()| Rng::new(streams.draw()));
        let [backend_draws, client_draws, core_draws] = draws;
        let bus = plot.fleet.as_ref().map(|fleet| {
            let auditor = options.audit.then(|| FleetAuditor::new(&world.settings, world.route));
            Bus::new(fleet, Rng::new(streams.draw()), auditor)
        });
        Self {
            plot,
            bus,
            routes,
            notes: Notes::default(),
            heap: BinaryHeap::new(),
            number: 0,
            calls: Vec::new(),
            free: Vec::new(),
            pinned: vec![NONE; sessions.len()],
            key_pins: vec![None; sessions.len()],
            sessions,
            busy: vec![0; backends],
            backend_draws,
            client_draws,
            core_draws,
            tally: Tally::new(plot, view),
            tracer: Tracer::new(options.trace.then_some(view), plot.fleet.is_some()),
            states: Vec::new(),
            replica_states: Vec::new(),
            replicas,
            decisions: Vec::new(),
        }
    }

    fn play(&mut self, mut arrivals: Option<Arrivals>) {
        let end = Now(self.plot.lasts.0);
        self.set_the_stage();
        let mut now = Now::ZERO;
        loop {
            let event_at = self.heap.peek().map(|Reverse((at, ..))| *at);
            let arrival_at = arrivals.as_ref().and_then(Arrivals::next);
            let is_arrival = match (arrival_at, event_at) {
                (None, None) => break,
                (Some(arrival), Some(event)) => arrival < event,
                (arrival, None) => arrival.is_some(),
                (None, Some(_)) => false,
            };
            let at = if is_arrival { arrival_at } else { event_at };
            now = at.unwrap_or(now);
            if now > end && self.states.is_empty() {
                self.look_around(end);
            }
            if is_arrival && let Some(arrivals) = &mut arrivals {
                let session = arrivals.take();
                self.arrive(now, session);
            } else if let Some(Reverse((at, _, event))) = self.heap.pop() {
                self.happen(at, event);
            }
        }
        if self.states.is_empty() {
            self.look_around(end);
        }
        for replica in &mut self.replicas {
            if let Some(auditor) = &mut replica.auditor {
                auditor.at_end(now, &replica.core);
            }
        }
    }

    /// What was broken, by replica, then between them.
    fn violations(&self) -> Vec<Violation> {
        let mut all = Vec::new();
        for (number, replica) in self.replicas.iter().enumerate() {
            let found = replica.auditor.as_ref().map_or(&[][..], |it| it.violations());
            all.extend(found.iter().map(|it| match self.bus {
                None => it.clone(),
                Some(_) => {
                    let sentence = format!("replica {}: {}", number + 1, it.sentence);
                    Violation { sentence, ..it.clone() }
                }
            }));
        }
        let between = self.bus.as_ref().and_then(|it| it.auditor.as_ref());
        all.extend(between.map_or(&[][..], |it| it.violations()).iter().cloned());
        all
    }

    /// Phases and first probes.
    fn set_the_stage(&mut self) {
        let plot = self.plot;
        for (backend, script) in plot.world.scripts.iter().enumerate() {
            let phases = script.phases.iter().enumerate().skip(1);
            for (phase, it) in phases.filter(|(_, it)| it.at.0 <= plot.lasts.0) {
                let (backend, phase) = (backend as u32, phase as u32);
                self.schedule(it.at, EngineEvent::Phase { backend, phase });
            }
        }
        let is_recorded = plot.recording.as_ref().is_some_and(|it| it.probes.is_some());
        for replica in (0..self.replicas.len() as u32).filter(|_| !is_recorded) {
            for endpoint in 0..plot.world.probes.len() {
                self.schedule_probe(replica, endpoint);
            }
        }
        self.schedule_reunions();
    }

    fn happen(&mut self, now: Now, event: EngineEvent) {
        match event {
            EngineEvent::Phase { backend, phase } => {
                self.change_phase(now, backend as usize, phase as usize);
            }
            EngineEvent::Call { slot, turn } => {
                if self.calls[slot as usize].turn == turn {
                    self.go_ahead(now, slot);
                }
            }
            EngineEvent::Retry { slot } => self.ask(now, slot),
            EngineEvent::ProbeTick { replica, endpoint } => {
                self.probe_tick(now, replica, endpoint as usize);
            }
            EngineEvent::ProbeEnd { replica, endpoint, outcome } => {
                self.probe_end(now, replica, endpoint as usize, outcome);
            }
            EngineEvent::Hear { replica, message } => self.hear(now, replica, message),
            EngineEvent::Reunion { replica } => self.reunite(now, replica),
            EngineEvent::Arrive { arrival } => self.arrive_recorded(now, arrival),
            EngineEvent::Choose { slot, turn } => {
                if self.calls[slot as usize].turn == turn {
                    self.go_on(now, slot);
                }
            }
            EngineEvent::Probed { probe } => self.probed(now, probe),
            EngineEvent::Act { action } => self.act(now, action),
        }
    }

    fn schedule(&mut self, at: Now, event: EngineEvent) {
        self.number += 1;
        // Of one millisecond, what was recorded comes first, in its own order.
        self.heap.push(Reverse((at, SIMULATED + self.number, event)));
    }

    /// The route of a call, in the core of its replica.
    fn route_of(&self, slot: u32) -> (&Arc<Route>, &AskedRoute) {
        let call = &self.calls[slot as usize];
        let place = usize::from(call.route);
        (&self.replicas[call.replica as usize].routes[place], &self.routes[place])
    }

    /// What the end of the timeline looks like.
    fn look_around(&mut self, end: Now) {
        for tally in &mut self.tally.backends {
            tally.is_healthy_at_end = true;
        }
        for replica in &self.replicas {
            let snapshot = replica.core.snapshot(end);
            let states: Vec<State> = snapshot.backends.iter().map(|it| it.state).collect();
            for (tally, backend) in self.tally.backends.iter_mut().zip(&snapshot.backends) {
                tally.is_healthy_at_end &= backend.healthy;
            }
            if self.states.is_empty() {
                self.states = states.clone();
            }
            for (worst, state) in self.states.iter_mut().zip(&states) {
                *worst = (*worst).max(*state);
            }
            self.replica_states.push(states);
        }
    }
}

/// The time from one moment to another.
fn between(from: Now, to: Now) -> Millis {
    to.since(from)
}
