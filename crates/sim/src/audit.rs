//! The auditor: checks the numbered invariants after every simulated step.
//!
//! It watches from outside and keeps books of its own: permits handed out and ended, what the
//! transitions tell of each breaker, hops and requests of the budget's window. Where its books and
//! the core disagree, an invariant is broken and the run fails, named by its number. It never asks
//! the core what the core should have decided.
//!
//! | number | what is checked |
//! |---|---|
//! | I3 | slots in use ≤ `trial_permits`; every permit ends once; no slot is lost |
//! | I4 | a report of an old generation changes no breaker |
//! | I5 | client faults and cancellations change no breaker |
//! | I6 | an open backend gets no request but a trial or a recorded last resort |
//! | I7 | a (target, key) at most once, attempts ≤ the limit, all before the deadline |
//! | I8 | no attempt after content |
//! | I11 | an open deadline never moves earlier |
//! | I17 | every state that is read was told by a transition, with reason and re-entry |
//! | I18 | enough passed trials close; a half-open backend that is offered traffic gets some |
//! | I19 | hops that are not free stay within the budget |
//! | I20 | a session's pin changes only for a recorded reason |
//! | I26 | attempts past breakers and exclusions stay within each target's limit |
//!
//! What must hold between the replicas of a fleet is checked by [`FleetAuditor`].
//! I1 is checked by running twice. Call it in this order: [`Auditor::on_request`],
//! [`Auditor::on_attempt`], [`Auditor::on_head`], [`Auditor::on_content`], [`Auditor::on_report`],
//! … [`Auditor::on_finish`], each after the core was called, with the transitions of that call;
//! [`Auditor::on_transitions`] for probes; [`Auditor::at_end`] once.

mod books;
mod choice;
mod fleet;
#[cfg(test)]
mod tests;

use tidegate_core::{
    attempt::Attempt,
    breaker::BreakerChange,
    core::Core,
    outcome::{Charge, OutcomeKind},
    plan::Plan,
    probe::ProbeOutcome,
    settings::{BudgetSettings, Settings, Tactic},
    time::Now,
    transition::{Change, Scope, Transition},
};

use books::{Hold, Shadow, Tokens, Window};
pub use choice::Chosen;
pub use fleet::FleetAuditor;

/// A broken invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Its number, e.g. `I6`.
    pub invariant: &'static str,
    /// When it broke.
    pub at: Now,
    /// What was seen.
    pub sentence: String,
}

/// The first few tell the story.
const VIOLATIONS_MAX: usize = 20;

/// What the auditor remembers of one attempt; the caller keeps it with the permit.
#[derive(Clone, Copy, Debug)]
pub struct AuditedAttempt {
    backend: usize,
    own: Option<Hold>,
    endpoint: Option<Hold>,
    has_content: bool,
}

/// How a probe ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probed {
    /// What came of it.
    pub outcome: ProbeOutcome,
    /// The result counts for the provider's targets too.
    pub heals: bool,
}

/// Checks the invariants of one run on one route.
#[derive(Debug)]
pub struct Auditor {
    /// Breakers: those of the backends, then those of the endpoints.
    shadows: Vec<Shadow>,
    backends: usize,
    /// The endpoint's place in `shadows`, by backend.
    endpoints: Vec<Option<usize>>,
    /// The name of the route it was made for.
    route: String,
    /// The backend of each candidate of that route.
    candidates: Vec<usize>,
    max_attempts: usize,
    tactic: Tactic,
    budget: BudgetSettings,
    requests: Window,
    hops: Window,
    /// What is left to each backend of the limit of last resorts.
    tokens: Vec<Tokens>,
    violations: Vec<Violation>,
}

impl Auditor {
    /// An auditor of a fresh core with these settings, for requests of one of its routes.
    #[must_use]
    pub fn new(settings: &Settings, route: usize) -> Self {
        let backends = settings.backends.len();
        let own = settings.backends.iter().map(|it| Shadow::new(&it.id, &it.health));
        let endpoints = settings.endpoints.iter().map(|it| Shadow::new(&it.id, &it.health));
        let route = &settings.routes[route];
        let window = route.budget.window;
        Self {
            shadows: own.chain(endpoints).collect(),
            backends,
            endpoints: settings
                .backends
                .iter()
                .map(|it| it.endpoint.map(|endpoint| backends + endpoint))
                .collect(),
            route: route.name.clone(),
            candidates: route.tiers.iter().flatten().map(|it| it.backend).collect(),
            max_attempts: route.max_hops as usize + 1,
            tactic: route.tactic,
            budget: route.budget,
            requests: Window::new(window),
            hops: Window::new(window),
            tokens: vec![Tokens::new(route.last_resort); backends],
            violations: Vec::new(),
        }
    }

    /// A request begins.
    pub fn on_request(&mut self, now: Now) {
        self.requests.add(now);
    }

    /// The plan gave an attempt.
    pub fn on_attempt(&mut self, chosen: &Chosen<'_>) -> AuditedAttempt {
        let attempt = chosen.attempt();
        let backend = self.backend_of(chosen.plan, attempt.candidate);
        self.check_limits(chosen, attempt);
        self.check_reads(chosen);
        self.check_gate(chosen.now, attempt, backend);
        self.check_budget(chosen, attempt);
        self.check_pin(chosen, attempt);
        self.check_starvation(chosen, attempt);
        self.check_last_resort(chosen, attempt, backend);
        let now = chosen.now;
        let may_hold = !attempt.is_last_resort;
        let own = may_hold.then(|| self.shadows[backend].grant(now));
        let endpoint = self.endpoints[backend].filter(|_| may_hold);
        let endpoint = endpoint.map(|index| self.shadows[index].grant(now));
        self.shadows[backend].in_flight += 1;
        for index in std::iter::once(backend).chain(self.endpoints[backend]) {
            let shadow = &self.shadows[index];
            if shadow.trials > shadow.trial_permits {
                let (taken, id) = (shadow.trials, shadow.id.clone());
                self.violate("I3", now, || format!("{taken} trials of `{id}` hold slots at once"));
            }
        }
        AuditedAttempt { backend, own, endpoint, has_content: false }
    }

    /// A response head arrived.
    pub fn on_head(&mut self, now: Now, audited: &mut AuditedAttempt, transitions: &[Transition]) {
        self.check_stale(now, audited, transitions);
        self.release_endpoint(audited);
        self.on_transitions(transitions);
    }

    /// The first content was released.
    pub fn on_content(
        &mut self,
        now: Now,
        audited: &mut AuditedAttempt,
        transitions: &[Transition],
    ) {
        self.check_stale(now, audited, transitions);
        self.release_endpoint(audited);
        let is_first = !std::mem::replace(&mut audited.has_content, true);
        if let Some(hold) = audited.own.as_mut().filter(|_| is_first) {
            self.shadows[audited.backend].passed(hold);
        }
        self.on_transitions(transitions);
        self.check_closing(now, audited.backend);
    }

    /// An attempt was reported.
    pub fn on_report(
        &mut self,
        now: Now,
        mut audited: AuditedAttempt,
        attempt: &Attempt,
        transitions: &[Transition],
    ) {
        self.check_stale(now, &audited, transitions);
        self.check_charge(now, &audited, attempt, transitions);
        self.release_endpoint(&mut audited);
        let shadow = &mut self.shadows[audited.backend];
        if let Some(hold) = audited.own.as_mut() {
            let is_success = attempt.outcome.is_some_and(|it| it.kind == OutcomeKind::Success);
            if is_success && !audited.has_content {
                shadow.passed(hold)
            } else {
                shadow.release(hold)
            }
        }
        match shadow.in_flight.checked_sub(1) {
            Some(left) => shadow.in_flight = left,
            None => {
                let id = shadow.id.clone();
                self.violate("I3", now, || format!("a permit of `{id}` ended twice"));
            }
        }
        self.on_transitions(transitions);
        self.check_closing(now, audited.backend);
    }

    /// Changes that no attempt brought about: probes, operators.
    pub fn on_transitions(&mut self, transitions: &[Transition]) {
        for transition in transitions {
            self.learn(transition);
        }
    }

    /// A probe of an endpoint ended, `heals` if it counts for the backends behind it too.
    pub fn on_probe(&mut self, endpoint: usize, probed: Probed, transitions: &[Transition]) {
        let place = self.backends + endpoint;
        if probed.outcome == ProbeOutcome::Unanswered && probed.heals {
            // A failing probe sets the count of passed trials back without a transition.
            for backend in 0..self.backends {
                if self.endpoints[backend] == Some(place) {
                    self.shadows[backend].passed_trials = 0;
                }
            }
        }
        self.on_transitions(transitions);
    }

    /// A request is over.
    pub fn on_finish(&mut self, now: Now, plan: &Plan) {
        if now > plan.deadline() {
            let late = now.since(plan.deadline()).0;
            self.violate("I7", now, || format!("a request ended {late}ms after its deadline"));
        }
    }

    /// The run is over and nothing is in flight: books and core must agree about every backend
    /// that the auditor follows.
    pub fn at_end(&mut self, now: Now, core: &Core) {
        let snapshot = core.snapshot(now);
        for backend in &snapshot.backends {
            let is_it = |shadow: &Shadow| shadow.id == backend.id;
            let Some(index) = self.shadows[..self.backends].iter().position(is_it) else {
                continue;
            };
            let expected = self.shadows[index].in_flight;
            if backend.in_flight != expected || expected != 0 {
                let (id, found) = (backend.id.clone(), backend.in_flight);
                self.violate("I3", now, || {
                    format!("`{id}` ends with {found} in flight, by the books {expected}")
                });
            }
            if !backend.healthy && (backend.reason.is_none() || backend.deadline.is_none()) {
                let id = backend.id.clone();
                self.violate("I17", now, || {
                    format!("`{id}` is unhealthy without a reason or a re-entry")
                });
            }
            let breakers = std::iter::once(index).chain(self.endpoints[index]);
            let is_open = breakers.clone().any(|it| self.shadows[it].is_open(now));
            let is_full = breakers.clone().any(|it| self.shadows[it].is_full(now));
            if backend.rank.is_last_resort() && !is_open && !is_full {
                let id = backend.id.clone();
                self.violate("I18", now, || format!("`{id}` has lost a slot: none is taken"));
            }
        }
    }

    /// What was broken, in the order it was seen.
    #[must_use]
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// The backend of a plan's candidate. A plan may walk another route over the same backends: a
    /// member of a group of MCP servers is also asked for itself.
    fn backend_of(&self, plan: &Plan, candidate: u16) -> usize {
        if **plan.route().name() == *self.route {
            return self.candidates[usize::from(candidate)];
        }
        let id = plan.route().backend(candidate).id();
        let known = self.shadows[..self.backends].iter().position(|it| *it.id == **id);
        known.expect("the auditor was made with every backend of the routes it follows")
    }

    fn violate(&mut self, invariant: &'static str, at: Now, sentence: impl FnOnce() -> String) {
        if self.violations.len() < VIOLATIONS_MAX {
            self.violations.push(Violation { invariant, at, sentence: sentence() });
        }
    }

    fn release_endpoint(&mut self, audited: &mut AuditedAttempt) {
        if let (Some(index), Some(hold)) =
            (self.endpoints[audited.backend], audited.endpoint.as_mut())
        {
            self.shadows[index].release(hold);
        }
    }

    fn shadow_of(&self, transition: &Transition) -> Option<usize> {
        let range = match transition.scope {
            Scope::Backend => 0..self.backends,
            Scope::Endpoint => self.backends..self.shadows.len(),
            Scope::Key => return None,
        };
        range.into_iter().find(|&index| *self.shadows[index].id == *transition.backend)
    }

    /// I11 and I17, and the books.
    fn learn(&mut self, transition: &Transition) {
        let at = transition.at;
        if let Change::Marked { until, .. } = &transition.change
            && *until < at
        {
            let id = transition.backend.clone();
            self.violate("I17", at, || format!("`{id}` has a mark without a re-entry to come"));
        }
        let Change::Breaker { breaker, generation, .. } = &transition.change else { return };
        let Some(index) = self.shadow_of(transition) else { return };
        let shadow = &mut self.shadows[index];
        let before = shadow.until;
        match *breaker {
            BreakerChange::Opened { until, .. } => {
                let is_newer = *generation > shadow.generation;
                shadow.open(until, *generation);
                let id = shadow.id.clone();
                if !is_newer {
                    self.violate("I4", at, || format!("`{id}` opened without a new generation"));
                }
            }
            BreakerChange::Extended { until } => shadow.until = Some(until),
            BreakerChange::Closed { .. } => shadow.close(),
        }
        let shadow = &self.shadows[index];
        if let (Some(before), Some(after)) = (before, shadow.until)
            && after < before
        {
            let id = shadow.id.clone();
            self.violate("I11", at, || {
                format!("`{id}`: its deadline moved from {}ms to {}ms", before.0, after.0)
            });
        }
    }

    /// I4: what came from an old generation changed no breaker.
    fn check_stale(&mut self, now: Now, audited: &AuditedAttempt, transitions: &[Transition]) {
        let own = (Some(audited.backend), audited.own);
        let endpoint = (self.endpoints[audited.backend], audited.endpoint);
        for (index, hold) in [own, endpoint] {
            let Some(index) = index else { continue };
            let is_stale =
                hold.is_none_or(|hold| hold.generation != self.shadows[index].generation);
            let is_changed = || {
                transitions.iter().any(|it| {
                    matches!(it.change, Change::Breaker { .. }) && self.shadow_of(it) == Some(index)
                })
            };
            if is_stale && is_changed() {
                let id = self.shadows[index].id.clone();
                self.violate("I4", now, || {
                    format!("a report of an old generation changed the breaker of `{id}`")
                });
            }
        }
    }

    /// I5: what says nothing about a backend changed no breaker of its own.
    fn check_charge(
        &mut self,
        now: Now,
        audited: &AuditedAttempt,
        attempt: &Attempt,
        transitions: &[Transition],
    ) {
        let Some(outcome) = attempt.outcome else { return };
        if outcome.kind.policy().charge != Charge::Nothing {
            return;
        }
        let is_own = |it: &&Transition| {
            matches!(it.change, Change::Breaker { .. })
                && self.shadow_of(it) == Some(audited.backend)
        };
        if transitions.iter().any(|it| is_own(&it)) {
            let (id, word) = (self.shadows[audited.backend].id.clone(), outcome.kind.word());
            self.violate("I5", now, || format!("a `{word}` changed the breaker of `{id}`"));
        }
    }

    /// I18: as many passed trials as it takes close the breaker.
    fn check_closing(&mut self, now: Now, backend: usize) {
        let shadow = &self.shadows[backend];
        if shadow.until.is_some() && shadow.passed_trials >= shadow.recovery_threshold {
            let (id, count) = (shadow.id.clone(), shadow.passed_trials);
            self.violate("I18", now, || format!("{count} trials of `{id}` passed; it stays open"));
        }
    }
}
