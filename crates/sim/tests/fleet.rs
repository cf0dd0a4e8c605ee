//! Fleets: what one replica learns serves all, a broken one stops nobody, and without the bus each
//! decides as it would alone.

mod timelines;

use proptest::prelude::*;
use serde_json::Value;
use tidegate_sim::{
    builtin,
    scenario::{RenderOptions, Scenario},
};
use timelines::{changed, sound};

fn example(name: &str) -> Scenario {
    builtin::get(name).and_then(|it| it.scenario()).expect("an example is sound")
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is a count"))
}

#[test]
fn an_outage_that_one_replica_meets_first_costs_three_and_two_failures_and_alone_nine() {
    let failed = |scenario: &Scenario| count(&scenario.run(0).to_json()["backends"][0]["failed"]);
    assert_eq!(failed(&example("fleet-outage")), 5);
    let alone = changed("fleet-outage", "delay: 5ms", "delay: 5ms, loss: 100%");
    assert_eq!(failed(&alone), 9);
}

#[test]
fn a_fleet_that_does_not_talk_misses_the_expectations() {
    for (name, from, to) in [
        ("fleet-429", "delay: 5ms", "delay: 5ms, loss: 100%"),
        ("fleet-429", "delay: 5ms", "delay: 1s"),
        ("fleet-outage", "delay: 5ms", "delay: 5ms, loss: 100%"),
        ("fleet-outage", "delay: 5ms", "cut: [{ at: 10s, for: 1m, replica: 1 }]"),
        ("fleet-partition", "do: refuse, replica: 3", "do: refuse"),
    ] {
        let failures = changed(name, from, to).run(0).failures().len();
        assert!(failures > 0, "{name} with `{to}`");
    }
}

#[test]
fn conversations_of_two_turns_stay_where_they_are_whichever_replica_gets_them() {
    let text = "replicas: 3\nfor: 10m\ntraffic: { rate: 20/s, sessions: 6000 }\n\
                config: { tiers: [[a/x, b/x, c/x]], keys: 2 }\n\
                backends: { a/x: [], b/x: [], c/x: [] }\n";
    let report = sound(text).run(1).to_json();
    assert_eq!(report["sessions_moved"], 0);
    let unlike = sound(&text.replace("for:", "bus: { loss: 100% }\nfor:")).run(1).to_json();
    // Even before a pin has travelled, replicas pick alike.
    assert_eq!(unlike["sessions_moved"], 0);
}

/// What each replica did, and nothing about the bus.
fn deeds(text: &str, seed: u64) -> Value {
    sound(text).run(seed).to_json()["replicas"].clone()
}

/// A story in which there is a lot to tell.
fn troubled(bus: &str) -> String {
    format!(
        "replicas: 3\nbus: {bus}\nfor: 3m\n\
         traffic: {{ rate: 20/s, sessions: 50, clients_retry: 1 }}\n\
         config: {{ tiers: [[a/x, b/x], [c/x]], keys: 2 }}\nbackends:\n\
         \x20 a/x:\n    - {{ at: 20s, do: status, status: 429, retry_after: 5s, share: 30% }}\n\
         \x20   - {{ at: 1m, do: auth, share: 20% }}\n    - {{ at: 90s, do: refuse }}\n\
         \x20   - {{ at: 2m, do: ok }}\n\
         \x20 b/x:\n    - {{ at: 40s, do: status, status: 500, replica: 2 }}\n\
         \x20   - {{ at: 2m, do: ok }}\n  c/x: []\n"
    )
}

#[test]
fn without_the_bus_every_replica_decides_as_it_would_alone() {
    let cuts: Vec<String> =
        (1..=3).map(|it| format!("{{ at: 0s, for: 1h, replica: {it} }}")).collect();
    for seed in 0..20 {
        let lost = deeds(&troubled("{ loss: 100% }"), seed);
        assert_eq!(lost, deeds(&troubled(&format!("{{ cut: [{}] }}", cuts.join(", "))), seed));
        assert_ne!(lost, deeds(&troubled("{ loss: 0% }"), seed));
    }
}

#[test]
fn a_replica_that_was_cut_off_learns_what_it_missed() {
    let text = "replicas: 2\nbus: { cut: [{ at: 5s, for: 10s, replica: 2 }] }\nfor: 40s\n\
                traffic: { rate: 2/s, arrivals: even }\nbackends:\n\
                \x20 a/x:\n\
                \x20   - { at: 10s, do: status, status: 429, retry_after: 30s, replica: 1 }\n\
                \x20   - { at: 12s, do: ok }\n  b/x: []\n\
                expect:\n  hits: { a/x: { after: 15100ms, before: 40s, max: 0 } }\n";
    // The second one goes on while it is cut off: the limit is the account's, but it cannot know.
    let report = sound(text).run(0);
    let hits = report.to_json()["replicas"][1]["backends"][0]["attempts"].clone();
    assert_eq!(count(&hits), 15);
    assert_eq!(report.failures(), []);
    let never = text.replace("for: 10s", "for: 30s");
    assert_eq!(sound(&never).run(0).failures().len(), 1);
}

#[test]
fn every_replica_has_a_lane_if_asked_for() {
    let scenario = example("fleet-partition");
    let drawn = |per_replica| {
        scenario.run(0).render(&RenderOptions { per_replica, ..RenderOptions::default() })
    };
    assert!(!drawn(false).contains("openai/gpt-5 r1"));
    let text = drawn(true);
    for name in ["openai/gpt-5 r1", "openai/gpt-5 r3", "anthropic/claude-sonnet r2"] {
        assert!(text.contains(name), "{text}");
    }
    assert!(text.contains("1m replica 3 is cut off") && text.contains("2m replica 3 is back"));
    let trace = RenderOptions { trace: true, ..RenderOptions::default() };
    let text = example("fleet-outage").run(0).render(&trace);
    assert!(text.contains("suspected until"), "{text}");
    assert!(text.lines().any(|line| line.starts_with("r2 ")), "{text}");
}

#[test]
fn one_gateway_has_no_bus_in_its_report() {
    let report = example("brownout").run(0).to_json();
    assert_eq!((report.get("bus"), report.get("replicas")), (None, None));
    let report = example("fleet-429").run(0).to_json();
    assert!(count(&report["bus"]["windows"]) >= 1);
    assert_eq!(report["replicas"].as_array().map(Vec::len), Some(3));
}

fn phase() -> impl Strategy<Value = String> {
    let faults = vec![
        "do: ok",
        "do: status, status: 429, retry_after: 7s",
        "do: status, status: 429, share: 40%",
        "do: status, status: 500",
        "do: status, status: 503, retry_after: 3s",
        "do: refuse",
        "do: hang",
        "do: truncate, share: 50%",
        "do: auth, share: 30%",
        "do: exhausted, share: 20%",
        "do: restart",
    ];
    let replica =
        prop_oneof![Just(String::new()), (1..=2_u32).prop_map(|it| format!(", replica: {it}"))];
    (prop::sample::select(faults), replica).prop_map(|(fault, replica)| format!("{fault}{replica}"))
}

prop_compose! {
    fn fleet()(
        replicas in 2_u32..5,
        delay in prop::sample::select(vec!["0s", "1ms", "5ms", "300ms", "10s"]),
        loss in prop::sample::select(vec!["0%", "1%", "50%", "100%"]),
        cut in prop::option::of((0_u32..60, 1_u32..60)),
        spread in prop::sample::select(vec!["session", "round_robin"]),
        keys in 1_u8..3,
        pick in prop::sample::select(vec!["random", "round_robin", "weighted", "least_latency"]),
        heals in any::<bool>(),
        scripts in prop::collection::vec(prop::collection::vec(phase(), 0..5), 3),
    ) -> String {
        let cut = cut.map(|(at, span)| format!("{{ at: {at}s, for: {span}s, replica: 2 }}"));
        let mut text = format!(
            "replicas: {replicas}\nspread: {spread}\n\
             bus: {{ delay: {delay}, loss: {loss}, cut: [{}] }}\nfor: 80s\n\
             traffic: {{ rate: 15/s, sessions: 40, stream: 60%, clients_retry: 1 }}\n\
             config:\n  tiers: [[a/x, b/x], [c/x]]\n  keys: {keys}\n  pick: {pick}\n\
             \x20 health: {{ open_for: 5s, promotion_hold: 8s, recovery_threshold: 2 }}\n\
             \x20 probe: {{ every: 7s, heals: {heals} }}\nbackends:\n",
            cut.unwrap_or_default()
        );
        for (name, phases) in ["a/x", "b/x", "c/x"].iter().zip(scripts) {
            text.push_str(&format!("  {name}:\n    - {{ at: 0s, do: ok }}\n"));
            for (number, phase) in phases.iter().enumerate() {
                text.push_str(&format!("    - {{ at: {}s, {phase} }}\n", 10 + 12 * number));
            }
        }
        text
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn no_fleet_breaks_an_invariant(text in fleet(), seed in 0_u64..1000) {
        let scenario = sound(&text);
        let report = scenario.run(seed);
        // Nothing is expected here, so only a broken invariant can fail.
        prop_assert_eq!(report.failures(), [], "{}", text);
        prop_assert_eq!(report.to_json(), scenario.run(seed).to_json());
    }
}
