//! The core: every backend, route and pin of one running gateway or simulation.
//!
//! A `Core` is never changed in place by a reload: [`Core::reload`] makes the next one, which
//! shares the health, windows, exclusions and pins of everything that did not change (I12). The
//! shell swaps it in atomically; plans and permits of the old one finish where they began and
//! report to the same health, or to nothing if the backend is gone.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    backend::{Backend, Endpoint, Key, TargetKey, streak_only},
    draw::mix,
    explain::{self, Condition, Explanation, Obstacle},
    holder::{self, StateQuestion, StateTables},
    names::{FleetName, FleetSettings},
    obstacle,
    outcome::Outcome,
    pins::{Pin, Pins},
    plan::{Plan, RequestSpec},
    probe::{Contact, ProbeOutcome},
    route::Route,
    settings::{BackendSettings, KeyFingerprint, KeySettings, Settings},
    snapshot::{BackendSnapshot, EndpointSnapshot, KeySnapshot, Snapshot},
    sync::lock,
    time::{Millis, Now},
    transition::Notes,
};

/// Every backend, route and pin.
#[derive(Debug)]
pub struct Core {
    pub(crate) seed: u64,
    /// Feeds the jitter alone, so that it may be told without the seed of the pin table's hash.
    jitter: u64,
    pub(crate) endpoints: Vec<Arc<Endpoint>>,
    pub(crate) keys: Vec<Arc<Key>>,
    pub(crate) backends: Vec<Arc<Backend>>,
    pub(crate) routes: Vec<Arc<Route>>,
    route_by_name: BTreeMap<Arc<str>, usize>,
    /// A number for every backend name ever seen: what pins refer to across reloads.
    numbers: BTreeMap<Arc<str>, u32>,
    pub(crate) pins: Arc<Pins>,
    /// Who holds the state of which id: pins that no session has.
    states: Arc<Pins>,
    pub(crate) fleet: Option<Arc<FleetSettings>>,
}

impl Core {
    /// A core in which everything is unknown, and so healthy. Routes refer to backends, and
    /// backends to endpoints and keys, by index: an index that does not exist is a programmer's
    /// error and panics. `seed` feeds jitter and the pin table's hash.
    #[must_use]
    pub fn new(settings: &Settings, seed: u64) -> Self {
        Self::with_jitter(settings, seed, seed)
    }

    /// The same with another seed for the jitter, which a record may hold: an exact replay needs
    /// it, and it says nothing about the pin table.
    #[must_use]
    pub fn with_jitter(settings: &Settings, seed: u64, jitter: u64) -> Self {
        let nothing = Self {
            seed,
            jitter,
            endpoints: Vec::new(),
            keys: Vec::new(),
            backends: Vec::new(),
            routes: Vec::new(),
            route_by_name: BTreeMap::new(),
            numbers: BTreeMap::new(),
            pins: Arc::new(Pins::new(seed, settings.max_pins)),
            states: Arc::new(Pins::new(mix(seed), settings.max_pins)),
            fleet: None,
        };
        nothing.reload(Now::ZERO, settings)
    }

    /// The core that goes on with other settings.
    #[must_use]
    pub fn reload(&self, now: Now, settings: &Settings) -> Self {
        // Without a key for its hashes a fleet could not agree on anything.
        let fleet = settings.fleet.as_ref().filter(|it| !it.hash_keys.is_empty());
        let endpoints = self.next_endpoints(settings, fleet);
        let keys: Vec<_> = settings.keys.iter().map(|key| self.next_key(key, fleet)).collect();
        let mut numbers = self.numbers.clone();
        let backends: Vec<_> = settings
            .backends
            .iter()
            .map(|backend| {
                let next = numbers.len() as u32;
                let number = *numbers.entry(backend.id.as_str().into()).or_insert(next);
                self.next_backend(now, (backend, number), &endpoints, &keys, fleet)
            })
            .collect();
        let fleet = fleet.map(|it| Arc::new(it.clone()));
        let routes: Vec<_> = settings
            .routes
            .iter()
            .map(|route| {
                let mut next = Route::new(route, settings.hold_limits, &backends, fleet.as_ref());
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
        let states = Arc::clone(&self.states);
        states.set_max(settings.max_pins);
        let (seed, jitter) = (self.seed, self.jitter);
        Self {
            seed,
            jitter,
            endpoints,
            keys,
            backends,
            routes,
            route_by_name,
            numbers,
            pins,
            states,
            fleet,
        }
    }

    /// The seed of the jitter.
    #[must_use]
    pub fn jitter_seed(&self) -> u64 {
        self.jitter
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
        let (spec, held_key) = self.with_holder(route, now, spec);
        let tables = (Arc::clone(&self.pins), Arc::clone(&self.states));
        Plan::new(Arc::clone(route), tables, now, &spec, held_key)
    }

    /// The request with the holder of the state that it refers to.
    fn with_holder<'a>(
        &self,
        route: &Route,
        now: Now,
        spec: &RequestSpec<'a>,
    ) -> (RequestSpec<'a>, Option<KeyFingerprint>) {
        let tables =
            StateTables { pins: &self.pins, states: &self.states, backends: &self.backends };
        let RequestSpec { caller, session, state_id, .. } = *spec;
        let question = StateQuestion { caller, session, state_id };
        let (needs, key) = holder::resolve(route, now, spec.needs, tables, question);
        (RequestSpec { needs, ..*spec }, key)
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
        let (spec, _) = self.with_holder(route, now, spec);
        explain::explain(route, &self.pins, now, &spec, draw)
    }

    /// The state of a backend's own breaker, and everything that stands against the backend
    /// itself, routes aside; `None` if there is no such backend.
    #[must_use]
    pub fn condition(&self, now: Now, id: &str) -> Option<Condition> {
        let backend = self.backend(id)?;
        let off = backend.health.off.active(now).map(Obstacle::SwitchedOff);
        let obstacles = off.into_iter().chain(obstacle::health_obstacles(backend, now)).collect();
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

    /// The target a session is pinned to on a route, at `now`.
    #[must_use]
    pub fn pinned(
        &self,
        route: &Route,
        now: Now,
        caller: &str,
        session: &str,
    ) -> Option<&Arc<str>> {
        let pin = self.pins.get(route.pin_key(&self.pins, caller, session))?;
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
        let pin = self.pins.get(route.pin_key(&self.pins, caller, session))?;
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
            let key = route.pin_key(&self.pins, caller, session);
            self.pins.set(now, key, Pin::new(backend.number, None, until));
        }
    }

    /// Drops expired pins, and room that no route's budget needs any more.
    pub fn sweep(&self, now: Now) {
        self.pins.sweep(now);
        self.states.sweep(now);
        for route in &self.routes {
            route.budget.shrink(now);
        }
    }

    /// How many pins of each route hold.
    #[must_use]
    pub fn pin_counts(&self, now: Now) -> Vec<(&Arc<str>, usize)> {
        let tagged = self.routes.iter().map(|route| (route.name(), route.tag(&self.pins)));
        self.pins.counts(now, tagged)
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

    pub(crate) fn backend(&self, id: &str) -> Option<&Arc<Backend>> {
        self.backends.iter().find(|it| &*it.id == id)
    }

    fn next_endpoints(
        &self,
        settings: &Settings,
        fleet: Option<&FleetSettings>,
    ) -> Vec<Arc<Endpoint>> {
        let next = |endpoint: &crate::settings::EndpointSettings| {
            let named = FleetName::new(&endpoint.fleet_names, fleet);
            let old = self
                .endpoints
                .iter()
                .find(|old| *old.id == *endpoint.id && old.identity == endpoint.identity);
            match old {
                Some(old) => {
                    old.cell.with(|guarded| guarded.breaker.set_settings(streak_only(endpoint)));
                    *lock(&old.fleet) = named;
                    Arc::clone(old)
                }
                None => Arc::new(Endpoint::new(endpoint, named, self.seed_of(&endpoint.id))),
            }
        };
        settings.endpoints.iter().map(next).collect()
    }

    fn next_key(&self, key: &KeySettings, fleet: Option<&FleetSettings>) -> Arc<Key> {
        let old = self.keys.iter().find(|old| old.identity == key.identity);
        let exclusion = old.map(|old| Arc::clone(&old.exclusion)).unwrap_or_default();
        Arc::new(Key::new(key, exclusion, fleet))
    }

    /// A backend is the same while its url, model (or command) and at least one of its key
    /// references are: a key added to a pool must not wipe the health of the others.
    fn next_backend(
        &self,
        now: Now,
        (settings, number): (&BackendSettings, u32),
        endpoints: &[Arc<Endpoint>],
        keys: &[Arc<Key>],
        fleet: Option<&FleetSettings>,
    ) -> Arc<Backend> {
        let endpoint = settings.endpoint.map(|index| Arc::clone(&endpoints[index]));
        let keys: Vec<Arc<Key>> = if settings.keys.is_empty() {
            let identity = settings.identity.clone();
            let own = KeySettings {
                id: settings.id.clone(),
                identity,
                fingerprint: KeyFingerprint::default(),
                fleet_names: settings.fleet_names.clone(),
            };
            let old = self.backend(&settings.id).and_then(|old| old.keys.first());
            let old = old.filter(|old| old.key.identity == own.identity);
            let exclusion = old.map(|old| Arc::clone(&old.key.exclusion)).unwrap_or_default();
            vec![Arc::new(Key::new(&own, exclusion, fleet))]
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
            None => {
                let seed = self.seed_of(&settings.id);
                Backend::new(settings, number, seed, endpoint, keys, fleet)
            }
            Some(old) => {
                let health = Arc::clone(&old.health);
                health.cell.with(|guarded| guarded.breaker.set_settings(settings.health.clone()));
                // Whoever reloads may have mended the model's name.
                health.exclusion.heal(now);
                Backend::with_health(settings, number, health, endpoint, keys, fleet)
            }
        };
        Arc::new(backend)
    }

    /// A backend's own seed of jitter: stable across processes, different for every name.
    pub(crate) fn seed_of(&self, id: &str) -> u64 {
        id.bytes().fold(self.jitter, |seed, byte| mix(seed ^ u64::from(byte)))
    }
}
