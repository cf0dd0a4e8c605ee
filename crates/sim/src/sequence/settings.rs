//! A sequence as the core's settings: one route over its services.
//!
//! Every service has an endpoint and a key of its own, also where two share a provider's name:
//! what one of them suffers says nothing about another.

use tidegate_core::{
    route::MEMBERS_MAX,
    settings::{
        Abilities, BackendSettings, EndpointSettings, HealthSettings, HoldLimits, KeyFingerprint,
        KeySettings, MemberSettings, Membership, RouteSettings, Settings,
    },
    time::Millis,
};

use super::{Sequence, Service, tactic::TierLayout};

/// More sessions than any program can name.
const MAX_PINS: usize = 1_000_000;

/// As in production; a simulated request takes no time.
const FIRST_CONTENT_WITHIN: Millis = Millis::seconds(125);
const ANSWER_WITHIN: Millis = Millis::minutes(5);

/// The settings of the one route and its backends.
pub(super) fn settings(sequence: &Sequence) -> Settings {
    debug_assert!(sequence.services.len() <= MEMBERS_MAX, "checked when the file was read");
    let health = sequence.policy.health_settings();
    let ids = || sequence.services.iter().map(|service| service.id.to_string());
    Settings {
        endpoints: ids()
            .map(|id| EndpointSettings {
                identity: id.clone(),
                id,
                health: health.clone(),
                fleet_names: Vec::new(),
            })
            .collect(),
        keys: ids()
            .map(|id| KeySettings {
                identity: id.clone(),
                id,
                fingerprint: KeyFingerprint(0),
                fleet_names: Vec::new(),
            })
            .collect(),
        backends: ids().enumerate().map(|(index, id)| backend(index, id, &health)).collect(),
        routes: vec![route(sequence)],
        max_pins: MAX_PINS,
        hold_limits: HoldLimits::default(),
        fleet: None,
    }
}

fn backend(index: usize, id: String, health: &HealthSettings) -> BackendSettings {
    BackendSettings {
        identity: id.clone(),
        id,
        endpoint: Some(index),
        keys: vec![index],
        health: health.clone(),
        first_content_within: FIRST_CONTENT_WITHIN,
        answer_within: ANSWER_WITHIN,
        abilities: Abilities::default(),
        fleet_names: Vec::new(),
    }
}

fn route(sequence: &Sequence) -> RouteSettings {
    let mut route = RouteSettings {
        name: sequence.name.clone(),
        tiers: tiers(sequence.layout, &sequence.services),
        tactic: sequence.tactic,
        affinity_ttl: Millis::seconds(sequence.affinity_secs),
        ..RouteSettings::default()
    };
    sequence.policy.apply_to(&mut route);
    route
}

fn tiers(layout: TierLayout, services: &[Service]) -> Vec<Vec<MemberSettings>> {
    let tier_of = |service: &Service| match layout {
        TierLayout::Tier => service.tier,
        TierLayout::Flat => 0,
    };
    let mut numbers: Vec<u32> = services.iter().map(tier_of).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let members = |number: u32| {
        let inside = services.iter().enumerate().filter(move |(_, it)| tier_of(it) == number);
        inside.map(|(backend, service)| member(backend, service)).collect()
    };
    numbers.into_iter().map(members).collect()
}

fn member(backend: usize, service: &Service) -> MemberSettings {
    let membership = if service.inactive { Membership::Inactive } else { Membership::Active };
    MemberSettings { backend, weight: service.weight, membership }
}
