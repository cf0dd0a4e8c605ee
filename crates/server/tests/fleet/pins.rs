//! Pins in the store: for as long as they hold, and not a moment longer.

use std::time::Duration;

use tidegate_core::{
    hint::{Fact, Haste, Hint, Stamp},
    names::{Fingerprint, PinKey, ReplicaId},
    time::{Millis, Now},
};
use tidegate_fleet::stats::FactKind;
use tidegate_testkit::time::{eventually, pause};

use crate::bare::{BareReplica, VersionEars};
use crate::store::Store;

fn pin(version: u64, remaining: Millis) -> Hint {
    let (name, session) = (Fingerprint([7; 16]), PinKey(1));
    let fact = Fact::Pin { session, backend: name, key: name, remaining, stays: Millis::ZERO };
    Hint {
        age: Millis::ZERO,
        stamp: Stamp { version, writer: ReplicaId(1) },
        fact,
        haste: Haste::AtOnce,
    }
}

/// A pin has ended; the replica that locks the session anew has forgotten it and begins at the
/// first version. Whoever starts later is given the new lock.
#[test]
fn a_pin_that_has_ended_does_not_keep_the_next_lock_out_of_the_store() {
    let store = Store::start();
    let one = BareReplica::start(&store, "one", VersionEars::default());
    let tell = |hint: Hint, count: u64| {
        one.fleet.tell(&mut vec![hint], Now(0));
        let told = || one.fleet.stats().told_count(FactKind::Pin) == count;
        eventually("it has been told", told);
    };
    tell(pin(3, Millis(200)), 1);
    pause(Duration::from_millis(400));
    tell(pin(1, Millis::minutes(30)), 2);
    let ears = VersionEars::default();
    let _late = BareReplica::start(&store, "late", ears.clone());
    eventually("the lock that holds is heard", || !ears.heard().is_empty());
    assert_eq!(ears.heard(), [1]);
}

/// One that holds for days is in the store for days.
#[test]
fn a_pin_is_kept_for_as_long_as_it_holds() {
    let store = Store::start();
    let one = BareReplica::start(&store, "one", VersionEars::default());
    one.fleet.tell(&mut vec![pin(1, Millis::minutes(3 * 24 * 60))], Now(0));
    eventually("it has been told", || one.fleet.stats().told_count(FactKind::Pin) == 1);
    let keys = store.keys();
    let value = keys.iter().find(|key| key.contains(":v:")).expect("a value");
    let lives = store.ask(&[b"PTTL", value.as_bytes()]);
    let lives: u64 = lives.trim_start_matches(':').parse().expect("a time");
    assert!((71 * 3_600_000..=72 * 3_600_000).contains(&lives), "{lives} ms");
}
