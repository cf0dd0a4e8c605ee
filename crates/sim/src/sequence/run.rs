//! A run: the program, step by step, through the production core.
//!
//! The fake clock starts at 0 and moves only at an advance; a request takes no time. Each request
//! walks the core's own plan, and the world's script says how each attempt ends. No rule about
//! health or routing is repeated here; the auditor watches that the core keeps its invariants.

use std::sync::Arc;

use indexmap::IndexMap;
use tidegate_core::{
    core::Core,
    permit::Permit,
    plan::{Plan, RequestSpec, Step},
    route::Route,
    time::{Millis, Now},
    transition::Notes,
};

use super::{
    Sequence,
    file::SequenceStepFile,
    settings::settings,
    trace::{BreakerWord, HealthWord, OutcomeWord, RequestTrace, StepTrace},
    world::{Behaviour, CallScript, Reach},
};
use crate::{
    audit::{Auditor, Chosen, Violation},
    rng::Rng,
};

/// How long a `seed_pin` lives.
const SEED_PIN_FOR: Millis = Millis::minutes(60);

/// What a run gave, before it is judged.
#[derive(Debug)]
pub(super) struct SequenceRun {
    pub(super) steps: Vec<StepTrace>,
    pub(super) breakers: IndexMap<Arc<str>, BreakerWord>,
    pub(super) health: IndexMap<Arc<str>, HealthWord>,
    /// Where the last request's session is pinned at the end of the program; empty: nowhere.
    pub(super) last_pin: Arc<str>,
    /// Invariants that the core broke: always none, unless it has a bug.
    pub(super) violations: Vec<Violation>,
}

/// Runs the whole program.
pub(super) fn run(sequence: &Sequence, seed: u64) -> SequenceRun {
    let settings = settings(sequence);
    let core = Core::new(&settings, seed);
    let Some(route) = core.routes().first().map(Arc::clone) else {
        unreachable!("the settings of a sequence hold one route");
    };
    let mut stage = SequenceRunner {
        sequence,
        core,
        route,
        scripts: sequence.scripts.clone(),
        rng: Rng::new(seed),
        notes: Notes::default(),
        auditor: Auditor::new(&settings, 0),
        now: Now::ZERO,
    };
    stage.seed_pin();
    let steps: Vec<StepTrace> = sequence.program.iter().map(|step| stage.step(step)).collect();
    let last_session = super::trace::requests(&steps).last().map(|it| it.session.clone());
    let last_pin = stage.pin_of(&last_session.unwrap_or_default());
    let (breakers, health) = stage.states();
    stage.auditor.at_end(stage.now, &stage.core);
    let violations = stage.auditor.violations().to_vec();
    SequenceRun { steps, breakers, health, last_pin, violations }
}

struct SequenceRunner<'a> {
    sequence: &'a Sequence,
    core: Core,
    route: Arc<Route>,
    scripts: Vec<CallScript>,
    rng: Rng,
    notes: Notes,
    auditor: Auditor,
    now: Now,
}

impl SequenceRunner<'_> {
    fn seed_pin(&self) {
        let Some(pin) = &self.sequence.seed_pin else { return };
        if self.has_affinity(&pin.session) {
            let until = self.now.after(SEED_PIN_FOR);
            self.core.pin(&self.route, self.now, ("", &pin.session), &pin.id, until);
        }
    }

    fn step(&mut self, step: &SequenceStepFile) -> StepTrace {
        match step {
            SequenceStepFile::Advance(span) => {
                self.now = self.now.after(span.millis());
                StepTrace::Advance(span.as_written().to_owned())
            }
            SequenceStepFile::Request(session) => StepTrace::Trace(Box::new(self.request(session))),
        }
    }

    fn request(&mut self, session: &str) -> RequestTrace {
        let ask = RequestSpec { session, is_stream: true, ..RequestSpec::default() };
        let mut plan = self.core.begin(&self.route, self.now, &ask);
        self.auditor.on_request(self.now);
        let finish = loop {
            let pin_before = self.pinned(session);
            match plan.next(self.now, self.rng.draw(), &mut self.notes) {
                Step::Finish(finish) => break finish,
                Step::Attempt(permit) => self.attempt(&mut plan, permit, session, pin_before),
            }
        };
        self.auditor.on_finish(self.now, &plan);
        self.core.check_invariants(self.now);
        let attempts = || plan.attempts().iter();
        let outcomes = || attempts().filter_map(|attempt| attempt.outcome);
        let (breaker_after, health_after) = self.states();
        RequestTrace {
            session: session.to_owned(),
            attempts: attempts()
                .map(|attempt| Arc::clone(self.route.backend(attempt.candidate).id()))
                .collect(),
            statuses: outcomes().map(|outcome| outcome.status.unwrap_or(0)).collect(),
            outcomes: outcomes().map(|outcome| OutcomeWord(outcome.kind)).collect(),
            final_status: finish.status,
            pin_after: self.pin_of(session),
            breaker_after,
            health_after,
        }
    }

    /// Plays one attempt: head, content and end, as far as the world's script lets it get.
    fn attempt(
        &mut self,
        plan: &mut Plan,
        mut permit: Permit,
        session: &str,
        pin_before: Option<Arc<str>>,
    ) {
        let (now, pin_after) = (self.now, self.pinned(session));
        let mut audited = self.auditor.on_attempt(&Chosen {
            now,
            plan,
            reads: &self.notes.reads,
            pin_before: pin_before.as_ref(),
            pin_after: pin_after.as_ref(),
        });
        let behaviour = self.behaviour_of(permit.backend().id());
        let notes = &mut self.notes;
        notes.transitions.clear();
        if behaviour.reach() >= Reach::Head {
            permit.head(now, notes);
            self.auditor.on_head(now, &mut audited, &notes.transitions);
            notes.transitions.clear();
        }
        if behaviour.reach() >= Reach::Content {
            permit.content(now, behaviour.latency, notes);
            self.auditor.on_content(now, &mut audited, &notes.transitions);
            notes.transitions.clear();
        }
        plan.report(now, permit, &behaviour.outcome(), notes);
        if let Some(attempt) = plan.attempts().iter().last() {
            self.auditor.on_report(now, audited, attempt, &notes.transitions);
        }
        notes.transitions.clear();
    }

    fn behaviour_of(&mut self, id: &str) -> Behaviour {
        let index = self.sequence.services.iter().position(|service| &*service.id == id);
        let index = index.expect("the core knows only the sequence's services");
        self.scripts[index].call()
    }

    fn has_affinity(&self, session: &str) -> bool {
        self.sequence.affinity_secs > 0 && !session.is_empty()
    }

    /// Where a session is pinned.
    fn pinned(&self, session: &str) -> Option<Arc<str>> {
        let pinned = self.core.pinned(&self.route, self.now, "", session);
        pinned.filter(|_| self.has_affinity(session)).map(Arc::clone)
    }

    /// Where a session is pinned; empty: nowhere.
    fn pin_of(&self, session: &str) -> Arc<str> {
        self.pinned(session).unwrap_or_else(|| "".into())
    }

    /// Breaker and health of every service, in file order.
    fn states(&self) -> (IndexMap<Arc<str>, BreakerWord>, IndexMap<Arc<str>, HealthWord>) {
        let snapshot = self.core.snapshot(self.now);
        let ids = self.core.backends().iter().map(|backend| Arc::clone(backend.id()));
        let health = |healthy| if healthy { HealthWord::Healthy } else { HealthWord::Unhealthy };
        let states = ids.zip(&snapshot.backends);
        states
            .map(|(id, it)| ((Arc::clone(&id), it.state.into()), (id, health(it.healthy))))
            .unzip()
    }
}
