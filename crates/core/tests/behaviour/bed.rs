//! A test bed: a core built from a few words, a clock to push forward, and scripted outcomes.
//!
//! `Bed::of(&["a b", "c"])` has the route `main` with two tiers, and for every target a route of
//! the target's own name, so that a test can charge one target without choosing. Nothing has an
//! endpoint or named keys until a test asks for them.

use tidegate_core::{
    attempt::Finish,
    breaker::{BreakerChange, State},
    core::Core,
    outcome::{Outcome, OutcomeKind},
    permit::Permit,
    plan::{Plan, RequestSpec, Step},
    probe::ProbeOutcome,
    settings::{
        Abilities, BackendSettings, EndpointSettings, HealthSettings, KeyFingerprint, KeySettings,
        LastResortSettings, MemberSettings, Membership, RouteSettings, Settings,
    },
    snapshot::{BackendSnapshot, EndpointSnapshot},
    time::{Millis, Now},
    transition::{Change, Notes},
};

/// One core, its clock and what it told.
pub(crate) struct Bed {
    pub(crate) settings: Settings,
    pub(crate) core: Core,
    pub(crate) now: Now,
    pub(crate) notes: Notes,
    draw: u64,
}

/// A permit and the plan it belongs to.
pub(crate) struct Held {
    pub(crate) plan: Plan,
    pub(crate) permit: Permit,
}

/// How a whole request went.
pub(crate) struct Told {
    /// `target` of each attempt, with `#key` behind it where the target has several keys.
    pub(crate) visited: Vec<String>,
    pub(crate) finish: Finish,
    pub(crate) plan: Plan,
}

impl Bed {
    /// Tiers as words: `&["a b", "c"]`.
    pub(crate) fn of(tiers: &[&str]) -> Self {
        let names: Vec<&str> = tiers.iter().flat_map(|tier| tier.split_whitespace()).collect();
        let place = |name: &str| names.iter().position(|it| *it == name).expect("a listed name");
        let member = |name: &str| MemberSettings {
            backend: place(name),
            weight: 1,
            membership: Membership::Active,
        };
        let main = RouteSettings {
            name: "main".to_owned(),
            tiers: tiers.iter().map(|it| it.split_whitespace().map(member).collect()).collect(),
            ..RouteSettings::default()
        };
        let direct = names.iter().map(|name| RouteSettings {
            name: (*name).to_owned(),
            tiers: vec![vec![member(name)]],
            last_resort: LastResortSettings::UNLIMITED,
            ..RouteSettings::default()
        });
        let settings = Settings {
            backends: names.iter().map(|name| backend(name)).collect(),
            routes: std::iter::once(main).chain(direct).collect(),
            max_pins: 1000,
            ..Settings::default()
        };
        let core = Core::new(&settings, 7);
        Self { settings, core, now: Now::ZERO, notes: Notes::default(), draw: 1 }
    }

    /// Other settings; the core starts anew with them.
    pub(crate) fn with(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(&mut self.settings);
        self.core = Core::new(&self.settings, 7);
        self
    }

    /// Other settings for the route `main`.
    pub(crate) fn route(self, change: impl FnOnce(&mut RouteSettings)) -> Self {
        self.with(|settings| change(&mut settings.routes[0]))
    }

    /// Other health settings for every backend and endpoint.
    pub(crate) fn health(self, change: impl Fn(&mut HealthSettings)) -> Self {
        self.with(|settings| {
            settings.backends.iter_mut().for_each(|it| change(&mut it.health));
            settings.endpoints.iter_mut().for_each(|it| change(&mut it.health));
        })
    }

    /// Puts targets behind one endpoint.
    pub(crate) fn endpoint(self, id: &str, targets: &str) -> Self {
        self.with(|settings| {
            settings.endpoints.push(EndpointSettings {
                id: id.to_owned(),
                identity: format!("https://{id}.example"),
                health: HealthSettings::default(),
                fleet_names: Vec::new(),
            });
            let index = settings.endpoints.len() - 1;
            for target in settings.backends.iter_mut() {
                if targets.split_whitespace().any(|name| name == target.id) {
                    target.endpoint = Some(index);
                }
            }
        })
    }

    /// Gives targets a shared pool of keys, by name.
    pub(crate) fn keys(self, keys: &str, targets: &str) -> Self {
        self.with(|settings| {
            let first = settings.keys.len();
            let names = keys.split_whitespace().zip(first as u64 + 1..);
            settings.keys.extend(names.map(|(key, number)| KeySettings {
                id: key.to_owned(),
                identity: format!("env:SECRET_{key}"),
                fingerprint: KeyFingerprint(number),
                fleet_names: Vec::new(),
            }));
            let pool: Vec<usize> = (first..settings.keys.len()).collect();
            for target in settings.backends.iter_mut() {
                if targets.split_whitespace().any(|name| name == target.id) {
                    target.keys.clone_from(&pool);
                }
            }
        })
    }

    pub(crate) fn wait(&mut self, ms: u64) {
        self.now = self.now.after(Millis(ms));
    }

    pub(crate) fn reload(&mut self, change: impl FnOnce(&mut Settings)) {
        change(&mut self.settings);
        self.core = self.core.reload(self.now, &self.settings);
    }

    /// Begins a request on a route.
    pub(crate) fn begin(&mut self, route: &str, ask: &RequestSpec<'_>) -> Plan {
        let route = self.core.route(route).expect("a listed route");
        self.core.begin(route, self.now, ask)
    }

    pub(crate) fn next(&mut self, plan: &mut Plan) -> Step {
        self.draw = tidegate_core::draw::mix(self.draw);
        plan.next(self.now, self.draw, &mut self.notes)
    }

    /// The next attempt of a plan that has one.
    pub(crate) fn next_permit(&mut self, plan: &mut Plan) -> Permit {
        match self.next(plan) {
            Step::Attempt(permit) => permit,
            Step::Finish(finish) => panic!("the request is over: {finish:?}"),
        }
    }

    /// An attempt of one target, chosen by nobody.
    pub(crate) fn take(&mut self, target: &str) -> Held {
        let mut plan =
            self.begin(target, &RequestSpec { is_stream: true, ..RequestSpec::default() });
        let permit = self.next_permit(&mut plan);
        Held { plan, permit }
    }

    /// An attempt of one target that a breaker admitted.
    pub(crate) fn trial(&mut self, target: &str) -> Held {
        let held = self.take(target);
        assert!(held.permit.is_trial() && !held.permit.is_last_resort(), "{target} has no slot");
        held
    }

    pub(crate) fn report(&mut self, mut held: Held, outcome: Outcome) {
        held.plan.report(self.now, held.permit, &outcome, &mut self.notes);
    }

    pub(crate) fn content(&mut self, held: &mut Held) {
        held.permit.content(self.now, Millis(5), &mut self.notes);
    }

    /// One attempt of one target and its outcome.
    pub(crate) fn hit(&mut self, target: &str, outcome: Outcome) {
        let held = self.take(target);
        self.report(held, outcome);
    }

    /// Three failures: with the defaults that opens a breaker.
    pub(crate) fn trip(&mut self, target: &str) {
        for _ in 0..3 {
            self.hit(target, status(500));
        }
        assert_eq!(self.state(target), State::Open);
    }

    /// A request on `main`, every attempt of which ends as `script` says.
    pub(crate) fn request(&mut self, script: impl FnMut(&str) -> Outcome) -> Told {
        self.request_as(&RequestSpec::default(), script)
    }

    /// A request of a session on `main`.
    pub(crate) fn session(
        &mut self,
        session: &str,
        script: impl FnMut(&str) -> Outcome,
    ) -> Vec<String> {
        self.request_as(&RequestSpec { session, ..RequestSpec::default() }, script).visited
    }

    pub(crate) fn request_as(
        &mut self,
        ask: &RequestSpec<'_>,
        mut script: impl FnMut(&str) -> Outcome,
    ) -> Told {
        let mut plan = self.begin("main", ask);
        let mut visited = Vec::new();
        loop {
            let permit = match self.next(&mut plan) {
                Step::Attempt(permit) => permit,
                Step::Finish(finish) => return Told { visited, finish, plan },
            };
            let name = self.name(&permit);
            let outcome = script(&name);
            visited.push(name);
            plan.report(self.now, permit, &outcome, &mut self.notes);
        }
    }

    pub(crate) fn name(&self, permit: &Permit) -> String {
        let id = permit.backend().id();
        let keys = self.settings.backends.iter().find(|it| *it.id == **id).map(|it| it.keys.len());
        if keys > Some(1) { format!("{id}#{}", permit.key()) } else { id.to_string() }
    }

    pub(crate) fn snap(&self, target: &str) -> BackendSnapshot {
        let backends = self.core.snapshot(self.now).backends;
        backends.into_iter().find(|it| it.id == target).expect("a listed target")
    }

    pub(crate) fn endpoint_snap(&self, id: &str) -> EndpointSnapshot {
        let endpoints = self.core.snapshot(self.now).endpoints;
        endpoints.into_iter().find(|it| it.id == id).expect("a listed endpoint")
    }

    pub(crate) fn state(&self, target: &str) -> State {
        self.snap(target).state
    }

    pub(crate) fn pinned(&self, session: &str) -> Option<String> {
        let route = self.core.route("main").expect("every bed has it");
        self.core.pinned(route, self.now, "", session).map(ToString::to_string)
    }

    pub(crate) fn pin(&mut self, session: &str, target: &str) {
        let route = self.core.route("main").expect("every bed has it");
        let until = self.now.after(Millis::minutes(30));
        self.core.pin(route, self.now, ("", session), target, until);
    }

    /// How often breakers opened and closed so far.
    pub(crate) fn turns(&self) -> (usize, usize) {
        let breaker = |change: &Change| match change {
            Change::Breaker { breaker, .. } => Some(*breaker),
            Change::Marked { .. } | Change::Healed { .. } | Change::Suspected { .. } => None,
        };
        let changes = self.notes.transitions.iter().filter_map(|it| breaker(&it.change));
        let opened = |it: &BreakerChange| matches!(it, BreakerChange::Opened { .. });
        let closed = |it: &BreakerChange| matches!(it, BreakerChange::Closed { .. });
        (changes.clone().filter(opened).count(), changes.filter(closed).count())
    }
}

/// A backend without endpoint or named keys.
pub(crate) fn backend(name: &str) -> BackendSettings {
    BackendSettings {
        id: name.to_owned(),
        identity: format!("https://{name}.example"),
        endpoint: None,
        keys: Vec::new(),
        health: HealthSettings::default(),
        first_content_within: Millis::seconds(120),
        answer_within: Millis::minutes(5),
        abilities: Abilities::default(),
        fleet_names: Vec::new(),
    }
}

pub(crate) fn ok() -> Outcome {
    Outcome::answered(200)
}

pub(crate) fn status(status: u16) -> Outcome {
    Outcome::answered(status)
}

/// A status with a `Retry-After`.
pub(crate) fn come_back(status: u16, ms: u64) -> Outcome {
    Outcome { retry_after: Some(Millis(ms)), ..Outcome::answered(status) }
}

/// An ending without an HTTP answer.
pub(crate) fn ended(kind: OutcomeKind) -> Outcome {
    Outcome::unanswered(kind)
}

/// A probe that got a 200, or no answer.
pub(crate) fn probed(passed: bool) -> ProbeOutcome {
    if passed { ProbeOutcome::Answered(200) } else { ProbeOutcome::Unanswered }
}

pub(crate) fn refused() -> Outcome {
    ended(OutcomeKind::Transport)
}

pub(crate) fn of_kind(kind: OutcomeKind, status: u16) -> Outcome {
    Outcome::error(kind, status)
}
