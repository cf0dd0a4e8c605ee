//! The core: every backend, route and pin of one running gateway or simulation.
//!
//! A `Core` is never changed in place by a reload: [`Core::reload`] makes the next one, which
//! shares the health, windows, exclusions and pins of everything that did not change (I12). The
//! shell swaps it in atomically; plans and permits of the old one finish where they began and
//! report to the same health, or to nothing if the backend is gone.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    backend::{Backend, Endpoint, Key, TargetKey, streak_only},
    breaker::BreakerChange,
    draw::mix,
    explain::{self, Condition, Explanation, Obstacle},
    mark::MarkReason,
    outcome::Outcome,
    pins::{Pin, Pins},
    plan::{Plan, RequestSpec},
    probe::{Contact, ProbeOutcome},
    route::Route,
    settings::{BackendSettings, KeyFingerprint, KeySettings, Settings},
    snapshot::{BackendSnapshot, EndpointSnapshot, KeySnapshot, Snapshot},
    time::{Millis, Now},
    transition::{Change, Notes, Scope},
};

/// Every backend, route and pin.
#[derive(Debug)]
pub struct Core {
    seed: u64,
    endpoints: Vec<Arc<Endpoint>>,
    keys: Vec<Arc<Key>>,
    backends: Vec<Arc<Backend>>,
    routes: Vec<Arc<Route>>,
    route_by_name: BTreeMap<Arc<str>, usize>,
    /// A number for every backend name ever seen: what pins refer to across reloads.
    numbers: BTreeMap<Arc<str>, u32>,
    pins: Arc<Pins>,
}

impl Core {
    /// A core in which everything is unknown, and so healthy. Routes refer to backends, and
    /// backends to endpoints and keys, by index: an index that does not exist is a programmer's
    /// error and panics. `seed` feeds jitter and the pin table's hash.
    #[must_use]
    pub fn new(settings: &Settings, seed: u64) -> Self {
        let nothing = Self {
            seed,
            endpoints: Vec::new(),
            keys: Vec::new(),
            backends: Vec::new(),
            routes: Vec::new(),
            route_by_name: BTreeMap::new(),
            numbers: BTreeMap::new(),
            pins: Arc::new(Pins::new(seed, settings.max_pins)),
        };
        nothing.reload(Now::ZERO, settings)
    }

    /// The core that goes on with other settings.
    #[must_use]
    pub fn reload(&self, now: Now, settings: &Settings) -> Self {
        let endpoints = self.next_endpoints(settings);
        let keys: Vec<_> = settings.keys.iter().map(|key| self.next_key(key)).collect();
        let mut numbers = self.numbers.clone();
        let backends: Vec<_> = settings
            .backends
            .iter()
            .map(|backend| {
                let next = numbers.len() as u32;
                let number = *numbers.entry(backend.id.as_str().into()).or_insert(next);
                self.next_backend(now, backend, number, &endpoints, &keys)
            })
            .collect();
        let routes: Vec<_> = settings
            .routes
            .iter()
            .map(|route| {
                let mut next = Route::new(route, settings.hold_limits, &backends);
                if let Some(old) = self.route(&route.name) {
                    next.continue_from(old);
                }
                Arc::new(next)
            })
            .collect();
        let route_by_name =
            routes.iter().enumerate().map(|(index, it)| (Arc::clone(&it.name), index)).collect();
        let pins = Arc::clone(&self.pins);
        pins.set_max(settings.max_pins);
        Self { seed: self.seed, endpoints, keys, backends, routes, route_by_name, numbers, pins }
    }

    /// The route of this name.
    #[must_use]
    pub fn route(&self, name: &str) -> Option<&Arc<Route>> {
        self.route_by_name.get(name).map(|&index| &self.routes[index])
    }

    /// All routes, in the order of the settings.
    #[must_use]
    pub fn routes(&self) -> &[Arc<Route>] {
        &self.routes
    }

    /// All backends, in the order of the settings.
    #[must_use]
    pub fn backends(&self) -> &[Arc<Backend>] {
        &self.backends
    }

    /// Begins a request on a route.
    #[must_use]
    pub fn begin(&self, route: &Arc<Route>, now: Now, spec: &RequestSpec<'_>) -> Plan {
        Plan::new(Arc::clone(route), Arc::clone(&self.pins), now, spec)
    }

    /// Where such a request would go and why, without touching anything.
    #[must_use]
    pub fn explain(
        &self,
        route: &Route,
        now: Now,
        spec: &RequestSpec<'_>,
        draw: u64,
    ) -> Explanation {
        explain::explain(route, &self.pins, now, spec, draw)
    }

    /// The state of a backend's own breaker, and everything that stands against the backend
    /// itself, routes aside; `None` if there is no such backend.
    #[must_use]
    pub fn condition(&self, now: Now, id: &str) -> Option<Condition> {
        let backend = self.backend(id)?;
        let off = backend.health.off.active(now).map(Obstacle::SwitchedOff);
        let obstacles = off.into_iter().chain(explain::health_obstacles(backend, now)).collect();
        Some(Condition { state: backend.health.cell.gate().state(now), obstacles })
    }

    /// A probe of a provider's endpoint ended. With `heals`, its result goes to the breakers of
    /// the provider's targets too, as far as it says something about them. Whether there is such
    /// an endpoint.
    pub fn endpoint_probed(
        &self,
        now: Now,
        id: &str,
        outcome: ProbeOutcome,
        heals: bool,
        notes: &mut Notes,
    ) -> bool {
        let Some(endpoint) = self.endpoints.iter().find(|it| &*it.id == id) else { return false };
        endpoint.probed(now, outcome.is_reached(), notes);
        if let Some(passed) = outcome.target_passed().filter(|_| heals) {
            for backend in &self.backends {
                if backend.endpoint.as_ref().is_some_and(|it| Arc::ptr_eq(it, endpoint)) {
                    backend.probed(now, passed, notes);
                }
            }
        }
        true
    }

    /// A probe of an MCP server ended like this; the next one ends within `next_in`. Whether there
    /// is such a server.
    pub fn server_probed(
        &self,
        now: Now,
        id: &str,
        outcome: &Outcome,
        next_in: Millis,
        notes: &mut Notes,
    ) -> bool {
        let Some(backend) = self.backend(id) else { return false };
        backend.server_probed(now, outcome, next_in, notes);
        true
    }

    /// When a provider's endpoint, or an MCP server, was last used and last worked.
    #[must_use]
    pub fn contact(&self, id: &str) -> Contact {
        let endpoint = self.endpoints.iter().find(|it| &*it.id == id).map(|it| it.contact.read());
        let contact = endpoint.or_else(|| self.backend(id).map(|it| it.health.contact.read()));
        contact.unwrap_or_default()
    }

    /// An operator takes a backend out until a time ([`Now::NEVER`] = until further notice), or
    /// puts it back (`None`). Whether there is such a backend.
    pub fn switch_off(&self, now: Now, id: &str, until: Option<Now>, notes: &mut Notes) -> bool {
        let Some(backend) = self.backend(id) else { return false };
        let off = &backend.health.off;
        let change = match until {
            Some(until) => off.extend(until, MarkReason::Manual).then_some(Change::Marked {
                key: None,
                until,
                reason: MarkReason::Manual,
                status: None,
            }),
            None => off.clear(now).map(|it| Change::Healed { reason: it.reason }),
        };
        notes.record(now, &backend.id, Scope::Backend, change);
        true
    }

    /// An operator holds a backend's breaker open until a moment, when it is half-open as after any
    /// opening; [`Core::reset`] ends it. Whether there is such a backend.
    pub fn hold(&self, now: Now, id: &str, until: Now, notes: &mut Notes) -> bool {
        let Some(backend) = self.backend(id) else { return false };
        let change = backend.health.cell.with(|guarded| {
            let breaker = guarded.breaker.hold(now, until);
            let generation = guarded.breaker.gate().generation;
            Change::Breaker { breaker, generation, evidence: None, status: None }
        });
        notes.record(now, &backend.id, Scope::Backend, Some(change));
        true
    }

    /// An operator declares a backend healthy: its breaker closes, its windows and exclusions end.
    /// Whether there is such a backend.
    pub fn reset(&self, now: Now, id: &str, notes: &mut Notes) -> bool {
        let Some(backend) = self.backend(id) else { return false };
        let change = backend.health.cell.with(|guarded| {
            guarded.last_error = None;
            let breaker: BreakerChange = guarded.breaker.reset(now)?;
            let generation = guarded.breaker.gate().generation;
            Some(Change::Breaker { breaker, generation, evidence: None, status: None })
        });
        notes.record(now, &backend.id, Scope::Backend, change);
        let healed = backend.health.exclusion.clear(now);
        let healed = healed.map(|it| Change::Healed { reason: it.reason });
        notes.record(now, &backend.id, Scope::Backend, healed);
        for key in &backend.keys {
            key.window.clear(now);
            let healed = key.exclusion.clear(now).map(|it| Change::Healed { reason: it.reason });
            notes.record(now, &key.key.id, Scope::Key, healed);
            let healed = key.refusal.clear(now).map(|it| Change::Healed { reason: it.reason });
            notes.record(now, &backend.id, Scope::Backend, healed);
        }
        true
    }

    /// The target a session is pinned to on a route, at `now`.
    #[must_use]
    pub fn pinned(
        &self,
        route: &Route,
        now: Now,
        caller: &str,
        session: &str,
    ) -> Option<&Arc<str>> {
        let pin = self.pins.get(self.pins.key(&route.name, caller, session))?;
        let name =
            |number: u32| self.backends.iter().find(|it| it.number == number).map(|it| &it.id);
        pin.holds(now).then(|| name(pin.backend)).flatten()
    }

    /// The key a session is pinned to on a route at `now`, by its place in the target's pool:
    /// `None` also where a reload took it away.
    #[must_use]
    pub fn pinned_key(
        &self,
        route: &Route,
        now: Now,
        caller: &str,
        session: &str,
    ) -> Option<usize> {
        let pin = self.pins.get(self.pins.key(&route.name, caller, session))?;
        let backend = self.backends.iter().find(|it| it.number == pin.backend)?;
        let fingerprint = pin.key.filter(|_| pin.holds(now))?;
        backend.keys.iter().position(|it| it.key.fingerprint == fingerprint)
    }

    /// Pins a session by hand: a restored session, or a scenario's beginning.
    pub fn pin(
        &self,
        route: &Route,
        now: Now,
        (caller, session): (&str, &str),
        id: &str,
        until: Now,
    ) {
        if let Some(backend) = self.backend(id) {
            let key = self.pins.key(&route.name, caller, session);
            self.pins.set(now, key, Pin { backend: backend.number, key: None, until });
        }
    }

    /// Drops expired pins, and room that no route's budget needs any more.
    pub fn sweep(&self, now: Now) {
        self.pins.sweep(now);
        for route in &self.routes {
            route.budget.shrink(now);
        }
    }

    /// How many pins of each route hold.
    #[must_use]
    pub fn pin_counts(&self, now: Now) -> Vec<(&Arc<str>, usize)> {
        self.pins.counts(now, self.routes.iter().map(|route| route.name()))
    }

    /// How many pins are kept.
    #[must_use]
    pub fn pin_count(&self) -> usize {
        self.pins.len()
    }

    /// A copy of the health of everything.
    #[must_use]
    pub fn snapshot(&self, now: Now) -> Snapshot {
        Snapshot {
            at: now,
            backends: self.backends.iter().map(|it| BackendSnapshot::of(it, now)).collect(),
            endpoints: self.endpoints.iter().map(|it| EndpointSnapshot::of(it, now)).collect(),
            keys: self.keys.iter().filter_map(|it| KeySnapshot::of(it, now)).collect(),
        }
    }

    /// Stops with the broken rule's name if anything contradicts itself (tests and simulator).
    pub fn check_invariants(&self, now: Now) {
        for backend in &self.backends {
            backend.health.cell.with(|guarded| guarded.breaker.check_invariants(now));
        }
        for endpoint in &self.endpoints {
            endpoint.cell.with(|guarded| guarded.breaker.check_invariants(now));
        }
    }

    fn backend(&self, id: &str) -> Option<&Arc<Backend>> {
        self.backends.iter().find(|it| &*it.id == id)
    }

    fn next_endpoints(&self, settings: &Settings) -> Vec<Arc<Endpoint>> {
        let next = |endpoint: &crate::settings::EndpointSettings| {
            let old = self
                .endpoints
                .iter()
                .find(|old| *old.id == *endpoint.id && old.identity == endpoint.identity);
            match old {
                Some(old) => {
                    old.cell.with(|guarded| guarded.breaker.set_settings(streak_only(endpoint)));
                    Arc::clone(old)
                }
                None => Arc::new(Endpoint::new(endpoint, self.seed_of(&endpoint.id))),
            }
        };
        settings.endpoints.iter().map(next).collect()
    }

    fn next_key(&self, key: &KeySettings) -> Arc<Key> {
        let old = self.keys.iter().find(|old| old.identity == key.identity);
        let exclusion = old.map(|old| Arc::clone(&old.exclusion)).unwrap_or_default();
        Arc::new(Key::new(key, exclusion))
    }

    /// A backend is the same while its url, model (or command) and at least one of its key
    /// references are: a key added to a pool must not wipe the health of the others.
    fn next_backend(
        &self,
        now: Now,
        settings: &BackendSettings,
        number: u32,
        endpoints: &[Arc<Endpoint>],
        keys: &[Arc<Key>],
    ) -> Arc<Backend> {
        let endpoint = settings.endpoint.map(|index| Arc::clone(&endpoints[index]));
        let keys: Vec<Arc<Key>> = if settings.keys.is_empty() {
            let identity = settings.identity.clone();
            let own = KeySettings {
                id: settings.id.clone(),
                identity,
                fingerprint: KeyFingerprint::default(),
            };
            let old = self.backend(&settings.id).and_then(|old| old.keys.first());
            let old = old.filter(|old| old.key.identity == own.identity);
            let exclusion = old.map(|old| Arc::clone(&old.key.exclusion)).unwrap_or_default();
            vec![Arc::new(Key::new(&own, exclusion))]
        } else {
            settings.keys.iter().map(|&index| Arc::clone(&keys[index])).collect()
        };
        let shares_key = |old: &Backend| {
            old.keys.iter().any(|old| keys.iter().any(|key| key.identity == old.key.identity))
        };
        let old = self
            .backend(&settings.id)
            .filter(|old| old.identity == settings.identity && shares_key(old));
        let same_key = |key: &Key| {
            old.and_then(|old| old.keys.iter().find(|it| it.key.identity == key.identity))
        };
        let keys = keys
            .iter()
            .map(|key| TargetKey {
                window: same_key(key).map(|old| Arc::clone(&old.window)).unwrap_or_default(),
                refusal: same_key(key).map(|old| Arc::clone(&old.refusal)).unwrap_or_default(),
                exclusion: Arc::clone(&key.exclusion),
                key: Arc::clone(key),
            })
            .collect();
        let backend = match old {
            None => Backend::new(settings, number, self.seed_of(&settings.id), endpoint, keys),
            Some(old) => {
                let health = Arc::clone(&old.health);
                health.cell.with(|guarded| guarded.breaker.set_settings(settings.health.clone()));
                // Whoever reloads may have mended the model's name.
                health.exclusion.clear(now);
                Backend::with_health(settings, number, health, endpoint, keys)
            }
        };
        Arc::new(backend)
    }

    /// A backend's own seed: stable across processes, different for every name.
    fn seed_of(&self, id: &str) -> u64 {
        id.bytes().fold(self.seed, |seed, byte| mix(seed ^ u64::from(byte)))
    }
}
