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
mod clients;
mod observe;
mod patience;
mod probes;

pub(super) use observe::why;

use std::{cmp::Reverse, collections::BinaryHeap, sync::Arc};

use tidegate_core::{
    core::Core,
    outcome::Outcome,
    permit::Permit,
    plan::Plan,
    probe::{ProbeClock, ProbeOutcome},
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
    audit::{Auditor, Ticket, Violation},
    rng::Rng,
};
use clients::Arrivals;

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
    /// The state of each backend at the end of the timeline.
    pub(super) states: Vec<tidegate_core::breaker::State>,
}

/// What happens at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum EngineEvent {
    /// A backend's next phase begins.
    Phase { backend: u32 },
    /// The next thing of an attempt: head, content or end. `turn` tells a stale event.
    Call { slot: u32, turn: u32 },
    /// A client tries again.
    Retry { slot: u32 },
    /// A probe may be due.
    ProbeTick { endpoint: u32 },
    /// A probe ends.
    ProbeEnd { endpoint: u32, outcome: ProbeOutcome },
}

/// A moment, a number, an event: the least comes first.
type QueuedEvent = Reverse<(Now, u64, EngineEvent)>;

/// One client's request, from its arrival to its last answer.
#[derive(Debug)]
struct Call {
    plan: Option<Plan>,
    permit: Option<Permit>,
    ticket: Option<Ticket>,
    /// Attempts that were left and whose reports wait for another target's answer.
    unsettled: Vec<Unsettled>,
    /// Moves on with every event, so that an event of an attempt that was cut off is stale.
    turn: u32,
    session: u32,
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
    ticket: Option<Ticket>,
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
}

/// The connections to one backend that are kept for the next requests.
#[derive(Clone, Copy, Debug, Default)]
struct IdleConnections {
    open: u32,
    /// Closed by the backend, which the gateway finds out when it uses them.
    closed: u32,
}

struct Engine<'a> {
    plot: &'a Plot,
    core: Core,
    route: Arc<Route>,
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
    /// The backend of each candidate.
    candidates: Vec<usize>,
    /// The phase each backend is in.
    phases: Vec<usize>,
    /// Attempts under way, by backend.
    busy: Vec<u32>,
    connections: Vec<IdleConnections>,
    /// Deadlines of the breakers, those of the backends first; `None` = closed.
    open_until: Vec<Option<Now>>,
    probes: Vec<ProbeClock>,
    backend_draws: Rng,
    client_draws: Rng,
    core_draws: Rng,
    auditor: Option<Auditor>,
    tally: Tally,
    tracer: Tracer,
    states: Vec<tidegate_core::breaker::State>,
}

/// Plays a plot.
pub(super) fn run(plot: &Plot, seed: u64, options: &RunOptions) -> TimelineRun {
    let mut streams = Rng::new(seed);
    let arrivals = Arrivals::new(plot, Rng::new(streams.draw()));
    let mut engine = Engine::new(plot, &mut streams, options);
    engine.play(arrivals);
    TimelineRun {
        violations: engine.auditor.map(|it| it.violations().to_vec()).unwrap_or_default(),
        tally: engine.tally,
        tracer: engine.tracer,
        states: engine.states,
    }
}

/// No session, or a session whose pin was never seen.
const NONE: u16 = u16::MAX;

impl<'a> Engine<'a> {
    fn new(plot: &'a Plot, streams: &mut Rng, options: &RunOptions) -> Self {
        let world = &plot.world;
        let core = Core::new(&world.settings, streams.draw());
        let route = Arc::clone(&core.routes()[world.route]);
        let backends = world.settings.backends.len();
        let endpoints = world.settings.endpoints.len();
        let probes =
            world.probes.iter().map(|it| ProbeClock::new(*it, streams.draw(), Now::ZERO)).collect();
        let view = options.view.unwrap_or(View { from: Now::ZERO, to: Now(plot.lasts.0) });
        let audit = options.audit.then(|| Auditor::new(&world.settings, world.route));
        Self {
            plot,
            core,
            route,
            notes: Notes::default(),
            heap: BinaryHeap::new(),
            number: 0,
            calls: Vec::new(),
            free: Vec::new(),
            sessions: (0..plot.traffic.sessions).map(|it| format!("s{it}")).collect(),
            pinned: vec![NONE; plot.traffic.sessions as usize],
            key_pins: vec![None; plot.traffic.sessions as usize],
            candidates: world.cast().into_iter().map(|(backend, _)| backend).collect(),
            phases: vec![0; backends],
            busy: vec![0; backends],
            connections: vec![IdleConnections::default(); backends],
            open_until: vec![None; backends + endpoints],
            probes,
            backend_draws: Rng::new(streams.draw()),
            client_draws: Rng::new(streams.draw()),
            core_draws: Rng::new(streams.draw()),
            auditor: audit,
            tally: Tally::new(backends, view),
            tracer: Tracer::new(options.trace.then_some(view)),
            states: Vec::new(),
        }
    }

    fn play(&mut self, mut arrivals: Arrivals) {
        let end = Now(self.plot.lasts.0);
        self.set_the_stage();
        let mut now = Now::ZERO;
        loop {
            let event_at = self.heap.peek().map(|Reverse((at, ..))| *at);
            let is_arrival = match (arrivals.next(), event_at) {
                (None, None) => break,
                (Some(arrival), Some(event)) => arrival < event,
                (arrival, None) => arrival.is_some(),
                (None, Some(_)) => false,
            };
            let at = if is_arrival { arrivals.next() } else { event_at };
            now = at.unwrap_or(now);
            if now > end && self.states.is_empty() {
                self.look_around(end);
            }
            if is_arrival {
                let session = arrivals.take();
                self.arrive(now, session);
            } else if let Some(Reverse((at, _, event))) = self.heap.pop() {
                self.happen(at, event);
            }
        }
        if self.states.is_empty() {
            self.look_around(end);
        }
        if let Some(auditor) = &mut self.auditor {
            auditor.at_end(now, &self.core);
        }
    }

    /// Phases and first probes.
    fn set_the_stage(&mut self) {
        let plot = self.plot;
        for (backend, script) in plot.world.scripts.iter().enumerate() {
            for phase in script.phases.iter().skip(1).filter(|it| it.at.0 <= plot.lasts.0) {
                self.schedule(phase.at, EngineEvent::Phase { backend: backend as u32 });
            }
        }
        for endpoint in 0..self.probes.len() {
            self.schedule_probe(endpoint);
        }
    }

    fn happen(&mut self, now: Now, event: EngineEvent) {
        match event {
            EngineEvent::Phase { backend } => self.change_phase(now, backend as usize),
            EngineEvent::Call { slot, turn } => {
                if self.calls[slot as usize].turn == turn {
                    self.go_ahead(now, slot);
                }
            }
            EngineEvent::Retry { slot } => self.ask(now, slot),
            EngineEvent::ProbeTick { endpoint } => self.probe_tick(now, endpoint as usize),
            EngineEvent::ProbeEnd { endpoint, outcome } => {
                self.probe_end(now, endpoint as usize, outcome);
            }
        }
    }

    fn schedule(&mut self, at: Now, event: EngineEvent) {
        self.number += 1;
        self.heap.push(Reverse((at, self.number, event)));
    }

    /// What the end of the timeline looks like.
    fn look_around(&mut self, end: Now) {
        let snapshot = self.core.snapshot(end);
        self.states = snapshot.backends.iter().map(|it| it.state).collect();
        for (tally, backend) in self.tally.backends.iter_mut().zip(&snapshot.backends) {
            tally.is_healthy_at_end = backend.healthy;
        }
    }
}

/// The time from one moment to another.
fn between(from: Now, to: Now) -> Millis {
    to.since(from)
}
