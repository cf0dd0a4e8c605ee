//! Nobody is let in: values that were forged, moved, or are of another fleet change nothing.

use tidegate_fakes::fake::Step;
use tidegate_testkit::{gate::Gate, time::eventually};

use crate::bed::{Setup, always, fleet_of, good, hits, target};
use crate::store::Store;

fn rejected(gate: &Gate) -> f64 {
    ["secret", "version", "form"]
        .map(|reason| gate.metric(&format!("tidegate_fleet_rejected_total{{reason=\"{reason}\"}}")))
        .iter()
        .sum()
}

#[test]
fn replicas_of_another_secret_or_fleet_hear_nothing_of_each_other() {
    let store = Store::start();
    let (limited, spare) = (always(Step::status(429).with_retry_after("60")), good());
    let setup = Setup::of(&store, &[&limited, &spare]);
    let mut stranger = setup.clone();
    stranger.secret = "fedcba9876543210fedcba9876543210";
    let mut other = setup.clone();
    other.fleet = "test";
    let one = setup.start("one");
    assert_eq!(target(&one.chat()), "b/m");
    for (number, gate) in [stranger.start("two"), other.start("three")].iter().enumerate() {
        assert_eq!(gate.health("a/m")["reason"], serde_json::Value::Null);
        assert_eq!(target(&gate.chat()), "b/m");
        assert_eq!(hits(&limited), number as u64 + 2, "each finds out by itself");
    }
    // The wrong secret under the right name is seen, and said.
    let wrong = stranger.start("four");
    eventually("a replica of another secret is seen", || fleet_of(&wrong)["foreign"] == 1);
    eventually("on both sides", || fleet_of(&one)["foreign"].as_u64() >= Some(1));
    assert!(rejected(&wrong) >= 1.0);
}

#[test]
fn poisoned_values_change_nothing_and_are_counted() {
    let store = Store::start();
    let (limited, spare) = (always(Step::status(429).with_retry_after("60")), good());
    let setup = Setup::of(&store, &[&limited, &spare]);
    let one = setup.start("one");
    assert_eq!(target(&one.chat()), "b/m");
    let told = "tidegate_fleet_told_total{fact=\"window\"}";
    eventually("it has been told", || one.metric(told) >= 1.0);
    let keys = store.keys();
    let stream = keys.iter().find(|key| key.contains(":s:")).expect("a stream").clone();
    let value = keys.iter().find(|key| key.contains(":v:")).expect("a value").clone();
    for key in &keys {
        assert!(!key.contains("a/m") && !key.contains("127.0.0.1"), "{key} says what it is about");
    }
    // What the stream has is put there again, changed, cut, and as nonsense.
    for forged in [&b"nonsense"[..], &[1; 90], &[0; 4], b"", &[1; 13]] {
        store.ask(&[b"XADD", stream.as_bytes(), b"*", b"e", forged]);
    }
    store.ask(&[b"XADD", stream.as_bytes(), b"*", b"a", b"b", b"c", b"d"]);
    eventually("all are counted", || rejected(&one) >= 6.0);
    // A value is moved to where another one was, and others are replaced.
    let (place, _) = value.rsplit_once(':').expect("a name");
    let moved = format!("{place}:{}", "a".repeat(32));
    assert_eq!(store.ask(&[b"COPY", value.as_bytes(), moved.as_bytes()]), ":1");
    let index = keys.iter().find(|key| key.contains(":i:")).expect("an index");
    let name = moved.rsplit(':').next().unwrap_or_default().as_bytes().to_vec();
    store.ask(&[b"ZADD", index.as_bytes(), b"99999999999999", &name]);
    store.ask(&[b"ZADD", index.as_bytes(), b"99999999999999", b"../../etc/passwd"]);
    store.ask(&[b"DEL", value.as_bytes()]);
    store.ask(&[b"RPUSH", value.as_bytes(), b"a list"]);
    let late = setup.start("two");
    assert_eq!(late.health("a/m")["reason"], serde_json::Value::Null, "nothing was taken");
    eventually("the moved value is counted", || rejected(&late) >= 1.0);
    assert_eq!((one.chat().status, late.chat().status), (200, 200));
    assert_eq!(target(&one.chat()), "b/m");
}

#[test]
fn a_secret_is_replaced_without_losing_what_is_shared() {
    let store = Store::start();
    let (limited, spare) = (always(Step::status(429).with_retry_after("60")), good());
    let setup = Setup::of(&store, &[&limited, &spare]);
    let old = setup.start("one");
    assert_eq!(target(&old.chat()), "b/m");
    let new = setup.start_rotated("two", "fedcba9876543210fedcba9876543210");
    eventually("the window is read", || new.health("a/m")["reason"] == "rate_limited");
    assert_eq!(target(&new.chat()), "b/m");
    assert_eq!(hits(&limited), 1);
}

#[test]
fn two_replicas_of_one_name_are_two() {
    let store = Store::start();
    let (limited, spare) = (always(Step::status(429).with_retry_after("60")), good());
    let setup = Setup::of(&store, &[&limited, &spare]);
    let (one, other) = (setup.start("same"), setup.start("same"));
    assert_eq!(target(&one.chat()), "b/m");
    eventually("it is heard", || other.health("a/m")["reason"] == "rate_limited");
    eventually("both are listed", || {
        fleet_of(&one)["replicas"].as_array().is_some_and(|it| it.len() == 2)
    });
}
