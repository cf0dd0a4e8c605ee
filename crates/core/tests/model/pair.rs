//! The core and the reference side by side.

use proptest::{prelude::*, test_runner::TestCaseError};
use tidegate_core::{
    breaker::State,
    core::Core,
    outcome::{Outcome, OutcomeKind},
    permit::Permit,
    plan::{Plan, RequestSpec, Step},
    probe::ProbeOutcome,
    settings::{HealthSettings, Settings},
    snapshot::EndpointSnapshot,
    time::{Millis, Now},
    transition::{Change, Notes},
};

use crate::{
    Deed,
    breaker::Breaker,
    history::SESSIONS,
    reference::{Allowed, Model, Request},
};

type Checked = Result<(), TestCaseError>;

/// One request, twice.
struct Twin {
    plan: Plan,
    permit: Option<Permit>,
    request: Request,
}

pub(crate) struct Pair {
    core: Core,
    model: Model,
    settings: Settings,
    now: Now,
    notes: Notes,
    twins: Vec<Twin>,
    /// When each host was last probed.
    probed_at: Vec<Option<Now>>,
}

impl Pair {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            core: Core::new(&settings, 7),
            model: Model::new(&settings),
            probed_at: vec![None; settings.endpoints.len()],
            settings,
            now: Now::ZERO,
            notes: Notes::default(),
            twins: Vec::new(),
        }
    }

    pub(crate) fn act(&mut self, deed: &Deed) -> Checked {
        let now = self.now;
        let count = self.settings.backends.len();
        match *deed {
            Deed::Wait(span) => self.now = now.after(span),
            Deed::Begin { .. } => self.begin(deed),
            Deed::Next { request, draw } => return self.next(request, draw),
            Deed::Head { request } => self.progress(request, |permit, request, model, notes| {
                permit.head(now, notes);
                model.head(now, request);
            }),
            Deed::Content { request, took } => {
                self.progress(request, |permit, request, model, notes| {
                    permit.content(now, took, notes);
                    model.content(now, request);
                });
            }
            Deed::Report { request, outcome } => {
                if let Some(place) = self.under_way(request) {
                    let twin = &mut self.twins[place];
                    let permit = twin.permit.take().expect("it is under way");
                    twin.plan.report(now, permit, &outcome, &mut self.notes);
                    self.model.report(now, &mut twin.request, outcome);
                }
            }
            Deed::Drop { request } => {
                if request < self.twins.len() {
                    self.twins.remove(request).lose(&mut self.model);
                }
            }
            Deed::ProbeEndpoint { endpoint, outcome, heals } => {
                let id = format!("host{endpoint}");
                self.core.endpoint_probed(now, &id, outcome, heals, &mut self.notes);
                let is_reached = outcome != ProbeOutcome::Unanswered;
                self.model.endpoints[endpoint].probed(now, is_reached);
                self.probed_at[endpoint] = Some(now);
                let is_news = !is_reached || outcome == ProbeOutcome::Answered(200);
                for backend in 0..count {
                    let is_behind = self.settings.backends[backend].endpoint == Some(endpoint);
                    if heals && is_news && is_behind {
                        self.probe_model(backend, is_reached);
                    }
                }
            }
            Deed::ProbeServer { backend, passed } => {
                let backend = backend % count;
                let id = &self.settings.backends[backend].id;
                let kind = if passed { OutcomeKind::Success } else { OutcomeKind::Transport };
                let outcome = Outcome::unanswered(kind);
                self.core.server_probed(now, id, &outcome, Millis::ZERO, &mut self.notes);
                self.probe_model(backend, passed);
                if passed {
                    let key = self.model.key_of(backend, 0);
                    self.model.keys[key] = Now::ZERO;
                    self.model.backends[backend].refusals[0] = Now::ZERO;
                    self.model.backends[backend].model_gone_until = Now::ZERO;
                }
            }
            Deed::SwitchOff { backend, is_off } => {
                let backend = backend % count;
                let until = is_off.then_some(Now::NEVER);
                let id = &self.settings.backends[backend].id;
                self.core.switch_off(now, id, until, &mut self.notes);
                self.model.backends[backend].is_off = is_off;
            }
            Deed::Reload { backend, ref health } => {
                if let Some(health) = health {
                    // What was out under a shorter window or beyond a lower threshold is gone for
                    // the core, while the reference keeps its list.
                    let old = &mut self.settings.backends[backend % count].health;
                    let (window, failure_threshold) = (old.window, old.failure_threshold);
                    *old = HealthSettings { window, failure_threshold, ..health.clone() };
                }
                self.core = self.core.reload(now, &self.settings);
                self.model.reload(&self.settings);
            }
        }
        Ok(())
    }

    fn begin(&mut self, deed: &Deed) {
        let now = self.now;
        let Deed::Begin { route, session, is_stream, within } = *deed else { return };
        let name = session.map_or_else(String::new, |it| it.to_string());
        let ask = RequestSpec { session: &name, is_stream, within, ..RequestSpec::default() };
        let found = self.core.route(&self.settings.routes[route].name);
        let plan = self.core.begin(found.expect("it is listed"), now, &ask);
        let request = self.model.begin(now, route, session, (is_stream, within));
        if self.twins.len() >= 6 {
            self.twins.remove(0).lose(&mut self.model);
        }
        self.twins.push(Twin { plan, permit: None, request });
    }

    /// Something happens to an attempt that goes on.
    fn progress(
        &mut self,
        request: usize,
        happens: impl FnOnce(&mut Permit, &mut Request, &mut Model, &mut Notes),
    ) {
        if let Some(place) = self.under_way(request) {
            let twin = &mut self.twins[place];
            let permit = twin.permit.as_mut().expect("it is under way");
            happens(permit, &mut twin.request, &mut self.model, &mut self.notes);
        }
    }

    fn probe_model(&mut self, backend: usize, passed: bool) {
        let now = self.now;
        let it = &mut self.model.backends[backend];
        it.own.probed(now, passed);
        it.last_check = Some(now);
        it.last_error_at = (!passed).then_some(now);
    }

    /// The place of a request with an attempt under way, the given one or the next after it.
    fn under_way(&self, request: usize) -> Option<usize> {
        let count = self.twins.len();
        let mut places = (0..count).map(|step| (request + step) % count);
        places.find(|&place| self.twins[place].permit.is_some())
    }

    fn next(&mut self, request: usize, draw: u64) -> Checked {
        let count = self.twins.len();
        let mut places = (0..count).map(|step| (request + step) % count);
        let Some(place) = places.find(|&place| self.twins[place].permit.is_none()) else {
            return Ok(());
        };
        let mut twin = self.twins.remove(place);
        let allowed = self.model.allowed(self.now, &mut twin.request);
        match (twin.plan.next(self.now, draw, &mut self.notes), allowed) {
            (Step::Finish(finish), Allowed::End(end, status)) => {
                prop_assert_eq!((finish.end, finish.status), (end, status));
            }
            (Step::Attempt(permit), Allowed::Any(allowed)) => {
                let id = permit.backend().id();
                let found = self.settings.backends.iter().position(|it| *it.id == **id);
                let backend = found.expect("it is listed");
                prop_assert!(allowed.contains(&backend), "{} not of {:?}", backend, allowed);
                let key = self.model.chosen(self.now, &mut twin.request, backend);
                prop_assert_eq!(permit.key(), key, "the key of backend {}", backend);
                let attempt = twin.request.attempts.last().expect("it was chosen");
                prop_assert_eq!(permit.is_last_resort(), attempt.is_last_resort);
                prop_assert_eq!(permit.is_trial(), attempt.is_trial());
                twin.permit = Some(permit);
            }
            (step, allowed) => prop_assert!(false, "{:?} but allowed: {:?}", step, allowed),
        }
        self.twins.push(twin);
        Ok(())
    }

    /// Everything that both can tell.
    pub(crate) fn compare(&self) -> Checked {
        let (now, model) = (self.now, &self.model);
        self.core.check_invariants(now);
        let snapshot = self.core.snapshot(now);
        for (backend, found) in snapshot.backends.iter().enumerate() {
            let it = &model.backends[backend];
            let endpoint = model.endpoint(backend);
            let state =
                it.own.state(now).max(endpoint.map_or(it.own.state(now), |it| it.state(now)));
            prop_assert_eq!(found.state, state, "state of backend {}", backend);
            prop_assert_eq!(found.rank.0, model.rank(now, backend), "rank of {}", backend);
            let is_healthy = state != State::Open
                && !model.is_in_window(now, backend)
                && !model.is_excluded(now, backend);
            prop_assert_eq!(found.healthy, is_healthy, "healthy of {}", backend);
            prop_assert_eq!(
                found.deadline,
                deadline(model, now, backend),
                "deadline of {}",
                backend
            );
            prop_assert_eq!(found.closed_since, it.own.closed_since);
            prop_assert_eq!(found.generation, it.own.generation);
            prop_assert_eq!(found.in_flight, it.in_flight, "in flight of {}", backend);
            // What is wrong with a host that cannot be reached is told of its targets too; of one
            // that can be, what its latest probe found.
            let host_at = self.settings.backends[backend].endpoint;
            let host = host_at.map(|at| &snapshot.endpoints[at]);
            let is_closed = |it: &EndpointSnapshot| it.state == State::Closed;
            let error = host.and_then(|it| {
                it.last_error.filter(|error| !is_closed(it) || error.outcome.is_none())
            });
            let error_at = it.last_error_at.max(error.map(|it| it.at));
            prop_assert_eq!(found.last_error.map(|it| it.at), error_at);
            let broken = host.filter(|it| !is_closed(it));
            let probed_at = host_at.and_then(|at| self.probed_at[at]);
            let heard_at = broken.map_or(probed_at, |it| it.last_check);
            let check_at = it.last_check.max(heard_at);
            prop_assert_eq!(found.consecutive_failures, it.own.failures_in_a_row);
            prop_assert_eq!(found.last_check, check_at);
        }
        for (found, it) in snapshot.endpoints.iter().zip(&model.endpoints) {
            prop_assert_eq!(found.state, it.state(now));
            prop_assert_eq!(found.deadline, it.deadline());
            prop_assert_eq!(found.consecutive_failures, it.failures_in_a_row);
        }
        let excluded = (0..self.settings.keys.len()).filter(|key| now < model.keys[*key]);
        prop_assert_eq!(snapshot.keys.len(), excluded.count());
        self.compare_pins()?;
        self.compare_turns()
    }

    fn compare_pins(&self) -> Checked {
        for (route, it) in self.settings.routes.iter().enumerate() {
            let found = self.core.route(&it.name).expect("it is listed");
            for session in 0..SESSIONS {
                let pinned = self.core.pinned(found, self.now, "", &session.to_string());
                let expected = self.model.pins.get(&(route, session));
                let expected = expected.filter(|it| self.now <= it.1);
                let key = self.core.pinned_key(found, self.now, "", &session.to_string());
                prop_assert_eq!(key, expected.map(|it| it.2), "key of {}", session);
                let expected = expected.map(|(it, ..)| self.settings.backends[*it].id.as_str());
                prop_assert_eq!(pinned.map(|it| &**it), expected, "pin of {}", session);
            }
        }
        Ok(())
    }

    fn compare_turns(&self) -> Checked {
        use tidegate_core::breaker::BreakerChange::{Closed, Extended, Opened};
        let is_turn = |change: &Change| match change {
            Change::Breaker { breaker: Opened { .. } | Closed { .. }, .. } => true,
            Change::Breaker { breaker: Extended { .. }, .. } => false,
            Change::Marked { .. } | Change::Healed { .. } | Change::Suspected { .. } => false,
        };
        let told = self.notes.transitions.iter().filter(|it| is_turn(&it.change)).count();
        let breakers = self.model.backends.iter().map(|it| &it.own).chain(&self.model.endpoints);
        prop_assert_eq!(told, breakers.map(|it: &Breaker| it.turns).sum::<usize>());
        Ok(())
    }
}

/// The latest of all re-entry times that are still to come.
fn deadline(model: &Model, now: Now, backend: usize) -> Option<Now> {
    let it = &model.backends[backend];
    let mut moments = vec![it.model_gone_until];
    moments.extend(it.own.deadline());
    moments.extend(model.endpoint(backend).and_then(Breaker::deadline));
    let exclusions = model.key_exclusions(backend);
    moments.extend(exclusions.into_iter().min());
    if model.is_in_window(now, backend) {
        moments.extend(model.windows_that_count(now, backend).into_iter().min());
    }
    moments.into_iter().filter(|moment| now < *moment).max()
}

impl Twin {
    /// Its caller is gone: plan and permit are dropped.
    fn lose(mut self, model: &mut Model) {
        model.drop(&mut self.request);
    }
}
