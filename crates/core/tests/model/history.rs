//! Random worlds and what happens in them.

use proptest::prelude::*;
use tidegate_core::{
    outcome::{Outcome, OutcomeKind},
    probe::ProbeOutcome,
    settings::{
        Abilities, BackendSettings, BudgetSettings, EndpointSettings, HealthSettings, HoldSettings,
        KeyFingerprint, KeySettings, LastResortSettings, MemberSettings, Membership, OnAuthError,
        PinMode, RouteSettings, Settings, Tactic,
    },
    time::Millis,
};

/// Sessions that pin.
pub(crate) const SESSIONS: u8 = 3;

/// One thing that happens. Requests are named by their place among those under way.
#[derive(Clone, Debug)]
pub(crate) enum Deed {
    Begin { route: usize, session: Option<u8>, is_stream: bool, within: Option<Millis> },
    Next { request: usize, draw: u64 },
    Head { request: usize },
    Content { request: usize, took: Millis },
    Report { request: usize, outcome: Outcome },
    Drop { request: usize },
    Wait(Millis),
    ProbeEndpoint { endpoint: usize, outcome: ProbeOutcome, heals: bool },
    ProbeServer { backend: usize, passed: bool },
    SwitchOff { backend: usize, is_off: bool },
    Reload { backend: usize, health: Option<HealthSettings> },
}

pub(crate) fn health() -> impl Strategy<Value = HealthSettings> {
    let seconds = |choices: Vec<u64>| prop::sample::select(choices).prop_map(Millis::seconds);
    let counts = (1..4_u32, 1..5_u32, 1..4_u32, 1..3_u32);
    let spans = (
        seconds(vec![0, 5, 60]),
        seconds(vec![0, 20, 600]),
        seconds(vec![0, 1, 10, 30]),
        seconds(vec![30, 45, 300]),
        seconds(vec![0, 60]),
    );
    let growth = prop::sample::select(vec![1.0, 2.0]);
    (counts, spans, growth).prop_map(|(counts, spans, open_growth)| HealthSettings {
        failure_threshold: counts.0,
        min_samples: counts.1,
        recovery_threshold: counts.2,
        trial_permits: counts.3,
        window: spans.0,
        strike_memory: spans.1,
        open_for: spans.2,
        open_max: spans.3,
        promotion_hold: spans.4,
        open_growth,
        failure_ratio: 0.6,
        ..HealthSettings::default()
    })
}

fn route(backends: usize) -> impl Strategy<Value = RouteSettings> {
    use Tactic::*;
    let tactic = prop::sample::select(vec![Random, RoundRobin, Weighted, LeastLatency, LeastBusy]);
    let tiers = prop::collection::vec((0..3_usize, 0..3_u32, 0..12_u8), backends);
    let rates = prop::sample::select(vec![0.0, 1.0, 4.0]);
    let limits = (0..9_u32, 0..4_u32, prop::sample::select(vec![0.0, 0.5]), 0..4_u32, rates);
    let choices = (any::<bool>(), any::<bool>(), prop::sample::select(vec![0_u64, 60, 1800]));
    (tactic, tiers, limits, choices).prop_map(|(tactic, places, limits, choices)| {
        let mut tiers = vec![Vec::new(); 3];
        for (backend, (tier, weight, standing)) in places.into_iter().enumerate() {
            let membership = if standing == 0 { Membership::Inactive } else { Membership::Active };
            tiers[tier].push(MemberSettings { backend, weight, membership });
        }
        tiers.retain(|tier| !tier.is_empty());
        RouteSettings {
            name: String::new(),
            tiers,
            tactic,
            affinity_ttl: Millis::seconds(choices.2),
            pin: if choices.0 { PinMode::Answered } else { PinMode::Selected },
            deadline: Millis::seconds(600),
            max_hops: limits.0,
            patience_share: 0.6,
            last_resort: LastResortSettings { burst: limits.3, per_second: limits.4 },
            budget: BudgetSettings {
                window: Millis::seconds(10),
                ratio: limits.2,
                floor: limits.1,
            },
            on_auth_error: if choices.1 { OnAuthError::Surface } else { OnAuthError::FailOver },
            hold: HoldSettings::default(),
        }
    })
}

pub(crate) fn settings() -> impl Strategy<Value = Settings> {
    let contexts = prop::sample::select(vec![None, Some(100), Some(200), Some(300)]);
    let backend = (health(), prop::option::of(0..2_usize), 0..3_usize, contexts);
    let backends = prop::collection::vec(backend, 1..6);
    (backends, health(), prop::collection::vec(route(5), 2)).prop_map(
        |(places, health, mut routes)| {
            let count = places.len();
            for (number, route) in routes.iter_mut().enumerate() {
                route.name = format!("route{number}");
                route.tiers.iter_mut().for_each(|tier| tier.retain(|it| it.backend < count));
                route.tiers.retain(|tier| !tier.is_empty());
            }
            let endpoints = (0..2).map(|number| EndpointSettings {
                id: format!("host{number}"),
                identity: format!("https://host{number}.example"),
                health: health.clone(),
                fleet_names: Vec::new(),
            });
            let keys = (0..3).map(|number| KeySettings {
                id: format!("key{number}"),
                identity: format!("env:KEY_{number}"),
                fingerprint: KeyFingerprint(number + 1),
                fleet_names: Vec::new(),
            });
            // Pools overlap, so that one key's exclusion is felt by several targets.
            let backends = places.into_iter().enumerate().map(|(number, place)| BackendSettings {
                id: format!("backend{number}"),
                identity: format!("https://backend{number}.example"),
                endpoint: place.1,
                keys: (0..place.2 + 1).filter(|_| place.2 > 0).collect(),
                health: place.0,
                first_content_within: Millis::seconds(20),
                answer_within: Millis::seconds(50),
                abilities: Abilities { context: place.3, ..Abilities::default() },
                fleet_names: Vec::new(),
            });
            Settings {
                endpoints: endpoints.collect(),
                keys: keys.collect(),
                backends: backends.collect(),
                routes,
                max_pins: 1000,
                ..Settings::default()
            }
        },
    )
}

fn outcome() -> impl Strategy<Value = Outcome> {
    let kind = prop::sample::select(OutcomeKind::ALL.to_vec());
    // Plain failures and successes more often: they are what moves breakers.
    let usual = prop::sample::select(vec![
        OutcomeKind::Success,
        OutcomeKind::ServerError,
        OutcomeKind::Transport,
    ]);
    let status =
        prop::option::of(prop::sample::select(vec![200_u16, 302, 401, 403, 429, 500, 503]));
    let retry_after = prop::option::of(prop::sample::select(vec![0, 1_000, 30_000, u64::MAX]));
    (prop_oneof![usual, kind], status, retry_after, any::<bool>()).prop_map(
        |(kind, status, retry_after, is_error)| {
            let outcome = match status {
                Some(status) if is_error => Outcome::error(kind, status),
                _ => Outcome::broken(kind, status),
            };
            Outcome { retry_after: retry_after.map(Millis), ..outcome }
        },
    )
}

pub(crate) fn deeds(count: usize) -> impl Strategy<Value = Vec<Deed>> {
    let begin = (0..2_usize, prop::option::of(0..SESSIONS), any::<bool>(), within()).prop_map(
        |(route, session, is_stream, within)| Deed::Begin { route, session, is_stream, within },
    );
    let next = (0..6_usize, any::<u64>()).prop_map(|(request, draw)| Deed::Next { request, draw });
    let head = (0..6_usize).prop_map(|request| Deed::Head { request });
    let content = (0..6_usize, 0..5_000_u64)
        .prop_map(|(request, took)| Deed::Content { request, took: Millis(took) });
    let report =
        (0..6_usize, outcome()).prop_map(|(request, outcome)| Deed::Report { request, outcome });
    let drop = (0..6_usize).prop_map(|request| Deed::Drop { request });
    let wait = prop_oneof![
        8 => prop::sample::select(vec![0, 1, 999, 1_000, 5_000, 9_999, 10_000, 30_000, 60_000]),
        1 => 0..100_000_u64,
        1 => Just(10 * 365 * 86_400_000),
    ];
    let answers = [200, 404, 503].map(ProbeOutcome::Answered).into_iter();
    let probed =
        prop::sample::select(answers.chain([ProbeOutcome::Unanswered]).collect::<Vec<_>>());
    let probe_endpoint = (0..2_usize, probed, any::<bool>())
        .prop_map(|(endpoint, outcome, heals)| Deed::ProbeEndpoint { endpoint, outcome, heals });
    let probe_server = (0..5_usize, any::<bool>())
        .prop_map(|(backend, passed)| Deed::ProbeServer { backend, passed });
    let switch = (0..5_usize, prop::bool::weighted(0.3))
        .prop_map(|(backend, is_off)| Deed::SwitchOff { backend, is_off });
    let reload = (0..5_usize, prop::option::of(health()))
        .prop_map(|(backend, health)| Deed::Reload { backend, health });
    let deed = prop_oneof![
        6 => begin,
        14 => next,
        2 => head,
        4 => content,
        14 => report,
        2 => drop,
        6 => wait.prop_map(|ms| Deed::Wait(Millis(ms))),
        2 => probe_endpoint,
        2 => probe_server,
        1 => switch,
        1 => reload,
    ];
    prop::collection::vec(deed, 1..2 * count)
}

fn within() -> impl Strategy<Value = Option<Millis>> {
    prop::option::weighted(0.3, prop::sample::select(vec![0, 3_000, 15_000]).prop_map(Millis))
}
