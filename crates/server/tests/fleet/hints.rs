//! What one replica learns, the others know.

use std::collections::BTreeMap;
use std::time::Duration;

use tidegate_fakes::fake::{FakeServer, Script, Step};
use tidegate_testkit::{gate::Gate, time::eventually, time::pause};

use crate::bed::{Setup, always, ask_as, fleet_of, good, hits, is_connected, target};
use crate::store::Store;

/// Whether a replica knows that something stands against a target.
fn knows(gate: &Gate, target: &str, reason: &str) -> bool {
    gate.health(target)["reason"] == reason
}

#[test]
fn one_429_seen_by_one_replica_is_respected_by_all() {
    let store = Store::start();
    let limited = always(Step::status(429).with_retry_after("20"));
    let spare = good();
    let gates = Setup::of(&store, &[&limited, &spare]).three();
    assert_eq!(target(&gates[0].chat()), "b/m");
    assert_eq!(hits(&limited), 1);
    // How long that takes is measured below; here the count decides.
    for gate in &gates[1..] {
        eventually("the window has been heard", || knows(gate, "a/m", "rate_limited"));
    }
    for _ in 0..10 {
        for gate in &gates {
            assert_eq!(target(&gate.chat()), "b/m");
        }
    }
    assert_eq!(hits(&limited), 1, "the other two send it nothing");
    let until = |gate: &Gate| gate.health("a/m")["unhealthy_until_unix"].as_i64();
    let ends: Vec<_> = gates.iter().filter_map(until).collect();
    assert!(ends.len() == 3 && ends.iter().all(|it| (it - ends[0]).abs() <= 1), "{ends:?}");
}

/// Five limits, met by one replica after the other: once another one has heard of it (by its own
/// count, not by a clock), it sends nothing there, however many ask it at that very moment. How
/// long the news takes is measured by `cargo xtask fleet`, and with a clock that is not real by the
/// simulator (I23): a test of time would be one of the machine.
#[test]
fn from_the_moment_it_heard_of_a_429_no_replica_sends_that_key_anything() {
    let store = Store::start();
    let fakes: Vec<_> = (0..6).map(|_| good()).collect();
    let mut setup = Setup::of(&store, &fakes.iter().collect::<Vec<_>>());
    setup.tiers = "[[a/m], [b/m], [c/m], [d/m], [e/m], [f/m]]";
    let gates = setup.three();
    let heard = "tidegate_fleet_heard_total{fact=\"window\",result=\"taken\"}";
    let mut heard_by = [0.0; 3];
    for (round, limit) in fakes[..5].iter().enumerate() {
        limit.set_script(Script::always(Step::status(429).with_retry_after("120")));
        let (first, before) = (round % 3, hits(limit));
        let next = (b'b' + round as u8) as char;
        assert_eq!(target(&gates[first].chat()), format!("{next}/m"), "round {round}");
        let others = (0..3).filter(|it| *it != first);
        for other in others.clone() {
            heard_by[other] += 1.0;
            eventually("it has been heard", || gates[other].metric(heard) >= heard_by[other]);
        }
        std::thread::scope(|scope| {
            for other in others.cycle().take(8) {
                let gate = &gates[other];
                scope.spawn(move || assert_eq!(target(&gate.chat()), format!("{next}/m")));
            }
        });
        assert_eq!(hits(limit) - before, 1, "round {round}: only the first replica asked it");
    }
}

#[test]
fn an_outage_that_one_replica_met_costs_the_others_one_attempt_each() {
    let store = Store::start();
    let (down, spare) = (always(Step::status(503)), good());
    let gates = Setup::of(&store, &[&down, &spare]).three();
    for _ in 0..6 {
        assert_eq!(target(&gates[0].chat()), "b/m");
    }
    assert_eq!(hits(&down), 3, "the first replica opens after three");
    for gate in &gates[1..] {
        let heard = "tidegate_fleet_heard_total{fact=\"opened\",result=\"taken\"}";
        eventually("the suspicion has been heard", || gate.metric(heard) >= 1.0);
    }
    for _ in 0..6 {
        for gate in &gates[1..] {
            assert_eq!(target(&gate.chat()), "b/m");
        }
    }
    assert_eq!(hits(&down), 5, "3 + 1 + 1");
}

#[test]
fn an_operator_acts_on_all_replicas_and_on_those_that_come_later() {
    let store = Store::start();
    let (one, other) = (good(), good());
    let setup = Setup::of(&store, &[&one, &other]);
    let (first, second) = (setup.start("one"), setup.start("two"));
    let act = |gate: &Gate, deed: &str| {
        let mut client = tidegate_testkit::http::Client::connect(gate.server.admin_address());
        let path = format!("/api/backends/a%2Fm/{deed}");
        let head = format!(
            "content-type: application/json\r\nauthorization: Bearer {}\r\n",
            crate::bed::ADMIN
        );
        client.send("POST", &path, &head, br#"{"reason":"maintenance","ttl":"10m"}"#);
        let answer = client.answer().expect("an answer");
        assert_eq!(answer.status, 200, "{}", answer.text());
    };
    act(&first, "drain");
    eventually("the drain has been heard", || target(&second.chat()) == "b/m");
    let late = setup.start("three");
    assert_eq!(target(&late.chat()), "b/m", "one that starts later is given it");
    act(&second, "resume");
    for gate in [&first, &late] {
        eventually("its end has been heard", || target(&gate.chat()) == "a/m");
    }
}

#[test]
fn a_key_that_one_replica_found_rejected_is_used_by_nobody() {
    let store = Store::start();
    let provider = always(Step::status(401));
    let spare = good();
    let mut setup = Setup::of(&store, &[&provider, &spare]);
    setup.first = "keys: [env:K1, env:K2]";
    let gates = setup.three();
    for _ in 0..4 {
        assert_eq!(target(&gates[0].chat()), "b/m");
    }
    let seen = hits(&provider);
    assert_eq!(seen, 2, "each key is tried once");
    for gate in &gates[1..] {
        let heard = "tidegate_fleet_heard_total{fact=\"exclusion\",result=\"taken\"}";
        eventually("both exclusions were heard", || gate.metric(heard) >= seen as f64);
        for _ in 0..5 {
            assert_eq!(target(&gate.chat()), "b/m");
        }
    }
    assert_eq!(hits(&provider), seen);
}

/// The (target, key) of a call.
fn place(fakes: &[FakeServer], answer: &tidegate_testkit::http::Answer) -> (String, String) {
    let target = target(answer);
    let fake = if target == "a/m" { &fakes[0] } else { &fakes[1] };
    let calls = fake.calls();
    let key = calls.last().and_then(|call| call.header("authorization")).unwrap_or_default();
    (target, key.to_owned())
}

#[test]
fn conversations_stay_at_their_target_and_key_whichever_replica_is_asked() {
    let store = Store::start();
    let fakes = [good(), good()];
    let mut setup = Setup::of(&store, &fakes.each_ref());
    setup.tiers = "[[a/m, b/m]]";
    setup.provider = "keys: [env:K1, env:K2]";
    let gates = setup.three();
    let (mut stayed, mut places) = (0, BTreeMap::new());
    let sessions = 120;
    for number in 0..sessions {
        let session = format!("s-{number}");
        let before = place(&fakes, &ask_as(&gates[number % 3], &session));
        let after = place(&fakes, &ask_as(&gates[(number + 1 + number / 3 % 2) % 3], &session));
        stayed += usize::from(before == after);
        *places.entry(before).or_insert(0) += 1;
    }
    assert!(stayed * 100 >= sessions * 99, "{stayed} of {sessions} stayed");
    assert_eq!(places.len(), 4, "all targets and keys are used: {places:?}");
}

#[test]
fn a_pin_that_moved_is_followed_by_the_others() {
    let store = Store::start();
    let (first, second) = (FakeServer::start(Script::default()), good());
    let mut setup = Setup::of(&store, &[&first, &second]);
    setup.tiers = "[[a/m], [b/m]]";
    let gates = setup.three();
    assert_eq!(target(&ask_as(&gates[0], "s")), "a/m");
    first.set_script(Script::always(Step::status(503)));
    let told = "tidegate_fleet_told_total{fact=\"pin\"}";
    eventually("the move has been told", || {
        assert_eq!(target(&ask_as(&gates[0], "s")), "b/m");
        gates[0].metric(told) >= 2.0
    });
    first.set_script(Script::default());
    let heard = "tidegate_fleet_heard_total{fact=\"pin\",result=\"taken\"}";
    for gate in &gates[1..] {
        eventually("the move has been heard", || gate.metric(heard) >= 1.0);
        eventually("the session follows", || target(&ask_as(gate, "s")) == "b/m");
    }
}

#[test]
fn replicas_see_each_other_with_version_config_and_lag() {
    let store = Store::start();
    let fakes = [good(), good()];
    let setup = Setup::of(&store, &fakes.each_ref());
    let (one, _two) = (setup.start("one"), setup.start("two"));
    let mut other = setup.clone();
    other.route = "max_hops: 2";
    let third = other.start("three");
    let names = |gate: &Gate| -> Vec<String> {
        let fleet = fleet_of(gate);
        let listed = fleet["replicas"].as_array().cloned().unwrap_or_default();
        listed.iter().map(|it| it["replica"].as_str().unwrap_or_default().to_owned()).collect()
    };
    for gate in [&one, &third] {
        eventually("all are seen", || names(gate) == ["one", "three", "two"]);
    }
    let fleet = fleet_of(&one);
    assert_eq!(fleet["fleet"], "prod");
    assert_eq!(fleet["replica"], "one");
    let of = |name: &str| {
        let listed = fleet["replicas"].as_array().cloned().unwrap_or_default();
        listed.into_iter().find(|it| it["replica"] == name).unwrap_or_default()
    };
    assert_eq!(of("two")["has_same_config"], true, "a replica's name is its own");
    assert_eq!(of("three")["has_same_config"], false, "it has another route");
    assert_eq!(of("one")["is_self"], true);
    assert_eq!(of("two")["version"], env!("CARGO_PKG_VERSION"));
    let text = fleet.to_string();
    assert!(!text.contains(crate::bed::SECRET) && !text.contains("sk-"), "{text}");
}

#[test]
fn a_gateway_without_state_has_no_fleet() {
    let fake = good();
    let yaml = format!(
        "listen: 127.0.0.1:0\nadmin: {{listen: '127.0.0.1:0'}}\nproviders:\n  a: {{api: openai, \
         url: '{}/v1'}}\nroutes:\n  r: {{tiers: [[a/m]]}}\n",
        fake.url()
    );
    let gate = Gate::start(&yaml, &[]);
    assert_eq!(gate.admin("/api/fleet").status, 404);
    assert!(!gate.admin("/metrics").text().contains("tidegate_fleet_"));
}

#[test]
fn what_says_fleet_false_is_told_to_nobody() {
    let store = Store::start();
    let limited = always(Step::status(429).with_retry_after("20"));
    let spare = good();
    let mut setup = Setup::of(&store, &[&limited, &spare]);
    setup.provider = "fleet: false";
    let (one, two) = (setup.start("one"), setup.start("two"));
    assert_eq!(target(&one.chat()), "b/m");
    pause(Duration::from_millis(300));
    is_connected(&two);
    assert_eq!(target(&two.chat()), "b/m");
    assert_eq!(hits(&limited), 2, "each replica finds out by itself");
    assert_eq!(one.metric("tidegate_fleet_told_total{fact=\"window\"}"), 0.0);
}
