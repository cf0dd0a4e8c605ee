//! A healthy route of many targets, for what is measured: allocations and time.
//!
//! The targets share four endpoints and have a key each, as a real file would.

use tidegate_core::{
    core::Core,
    outcome::Outcome,
    plan::{RequestSpec, Step},
    settings::{
        Abilities, BackendSettings, EndpointSettings, HealthSettings, KeyFingerprint, KeySettings,
        MemberSettings, Membership, RouteSettings, Settings, Tactic,
    },
    time::{Millis, Now},
    transition::Notes,
};

/// Every tactic there is.
pub const TACTICS: [Tactic; 5] =
    [Tactic::Random, Tactic::RoundRobin, Tactic::Weighted, Tactic::LeastLatency, Tactic::LeastBusy];

/// A core with one route, a clock and warm notes.
pub struct Road {
    core: Core,
    notes: Notes,
    now: Now,
    draw: u64,
}

impl Road {
    /// A route of one tier with `targets` targets, after a few requests.
    pub fn new(targets: usize, tactic: Tactic) -> Self {
        let endpoints = (0..4).map(|number| EndpointSettings {
            id: format!("host{number}"),
            identity: format!("https://host{number}.example"),
            health: HealthSettings::default(),
            fleet_names: Vec::new(),
        });
        let keys = (0..targets).map(|number| KeySettings {
            id: format!("key{number}"),
            identity: format!("env:KEY_{number}"),
            fingerprint: KeyFingerprint(number as u64 + 1),
            fleet_names: Vec::new(),
        });
        let backends = (0..targets).map(|number| BackendSettings {
            id: format!("host{}/model{number}", number % 4),
            identity: format!("https://host{}.example model{number}", number % 4),
            endpoint: Some(number % 4),
            keys: vec![number],
            health: HealthSettings::default(),
            first_content_within: Millis::seconds(120),
            answer_within: Millis::minutes(5),
            abilities: Abilities::default(),
            fleet_names: Vec::new(),
        });
        let member =
            |backend| MemberSettings { backend, weight: 1, membership: Membership::Active };
        let settings = Settings {
            endpoints: endpoints.collect(),
            keys: keys.collect(),
            backends: backends.collect(),
            routes: vec![RouteSettings {
                name: "main".to_owned(),
                tiers: vec![(0..targets).map(member).collect()],
                tactic,
                ..RouteSettings::default()
            }],
            max_pins: 1000,
            ..Settings::default()
        };
        let core = Core::new(&settings, 7);
        let mut road = Self { core, notes: Notes::default(), now: Now(1), draw: 1 };
        // Counts of recent requests have grown to what this many need, and a few hundred more.
        for _ in 0..1250 {
            road.request("session");
            road.request("");
        }
        road
    }

    /// One request whose first choice succeeds: choose, head, content, report.
    pub fn request(&mut self, session: &str) {
        self.now = self.now.after(Millis(1));
        self.draw = self.draw.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
        let route = self.core.route("main").expect("the only route");
        let ask = RequestSpec { session, is_stream: true, ..RequestSpec::default() };
        let mut plan = self.core.begin(route, self.now, &ask);
        let step = plan.next(self.now, self.draw, &mut self.notes);
        let Step::Attempt(mut permit) = step else { panic!("all is healthy: {step:?}") };
        permit.head(self.now, &mut self.notes);
        permit.content(self.now, Millis(70), &mut self.notes);
        plan.report(self.now, permit, &Outcome::answered(200), &mut self.notes);
        assert!(plan.is_over());
    }
}
