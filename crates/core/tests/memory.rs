//! What a target and a route cost in the core before anybody uses them: bytes, not timings.

use tidegate_core::{
    core::Core,
    settings::{
        Abilities, BackendSettings, EndpointSettings, HealthSettings, KeyFingerprint, KeySettings,
        MemberSettings, Membership, RouteSettings, Settings,
    },
    time::Millis,
};

/// A target may cost this much.
const TARGET_BYTES: u64 = 4 * 1024;
/// A route of three targets may cost this much.
const ROUTE_BYTES: u64 = 8 * 1024;

fn settings(targets: usize, routes: usize) -> Settings {
    let backends = (0..targets).map(|number| BackendSettings {
        id: format!("provider/a-model-of-some-length-{number}"),
        identity: format!("https://api.provider.example/v1 a-model-of-some-length-{number}"),
        endpoint: Some(0),
        keys: vec![0],
        health: HealthSettings::default(),
        first_content_within: Millis::seconds(120),
        answer_within: Millis::minutes(5),
        abilities: Abilities::default(),
        fleet_names: Vec::new(),
    });
    let member = |backend| MemberSettings { backend, weight: 1, membership: Membership::Active };
    let routes = (0..routes).map(|number| RouteSettings {
        name: format!("a-route-of-some-length-{number}"),
        tiers: vec![vec![member(0)], vec![member(1), member(2)]],
        ..RouteSettings::default()
    });
    Settings {
        endpoints: vec![EndpointSettings {
            id: "provider".to_owned(),
            identity: "https://api.provider.example/v1".to_owned(),
            health: HealthSettings::default(),
            fleet_names: Vec::new(),
        }],
        keys: vec![KeySettings {
            id: "provider#1".to_owned(),
            identity: "provider env:KEY".to_owned(),
            fingerprint: KeyFingerprint(1),
            fleet_names: Vec::new(),
        }],
        backends: backends.collect(),
        routes: routes.collect(),
        max_pins: 1000,
        ..Settings::default()
    }
}

/// The bytes that a core keeps.
fn kept(targets: usize, routes: usize) -> u64 {
    let settings = settings(targets, routes);
    let mut core = None;
    let measured = allocation_counter::measure(|| core = Some(Core::new(&settings, 7)));
    u64::try_from(measured.bytes_current).expect("a core keeps something")
}

#[test]
fn a_target_costs_at_most_four_kibibytes() {
    let each = (kept(1010, 1) - kept(10, 1)) / 1000;
    assert!(each <= TARGET_BYTES, "{each} bytes");
}

#[test]
fn a_route_costs_at_most_eight_kibibytes() {
    let each = (kept(10, 1001) - kept(10, 1)) / 1000;
    assert!(each <= ROUTE_BYTES, "{each} bytes");
}
