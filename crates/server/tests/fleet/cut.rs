//! One replica is cut off from the store, and from nobody else; a queue that ran full; a version of
//! the program that writes what this one cannot read.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tidegate_core::{
    hint::{Fact, Haste, Heard, Hint, Stamp},
    names::{Fingerprint, PinKey, ReplicaId},
    time::{Millis, Now},
};
use tidegate_fakes::fake::Step;
use tidegate_fleet::{fleet::Ears, seal::FleetSecrets, stats::FactKind};
use tidegate_testkit::time::{eventually, ms, pause};

use crate::bare::BareReplica;
use crate::bed::{SECRET, Setup, always, ask_as, fleet_of, good, hits, is_connected, target};
use crate::store::Store;

/// A way to a store that can be cut and mended, or held up.
struct Wire {
    url: String,
    is_held: Arc<AtomicBool>,
    is_whole: Arc<AtomicBool>,
    streams: Arc<Mutex<Vec<TcpStream>>>,
}

impl Wire {
    fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("redis://{}", listener.local_addr().expect("an address"));
        let is_whole = Arc::new(AtomicBool::new(true));
        let streams: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let is_held = Arc::new(AtomicBool::new(false));
        let (whole, kept) = (Arc::clone(&is_whole), Arc::clone(&streams));
        let held = Arc::clone(&is_held);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if !whole.load(Ordering::SeqCst) {
                    continue;
                }
                let Ok(there) = TcpStream::connect(("127.0.0.1", port)) else { continue };
                let both = [&stream, &there].map(|it| it.try_clone().expect("shared"));
                kept.lock().expect("not poisoned").extend(both);
                let back =
                    (there.try_clone().expect("shared"), stream.try_clone().expect("shared"));
                let free = Arc::default();
                std::thread::spawn(move || pass(stream, there, &free));
                let held = Arc::clone(&held);
                std::thread::spawn(move || pass(back.0, back.1, &held));
            }
        });
        Self { url, is_held, is_whole, streams }
    }

    fn cut(&self) {
        self.is_whole.store(false, Ordering::SeqCst);
        for stream in self.streams.lock().expect("not poisoned").drain(..) {
            drop(stream.shutdown(Shutdown::Both));
        }
    }

    fn mend(&self) {
        self.is_whole.store(true, Ordering::SeqCst);
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, is_held: &AtomicBool) {
    let mut bytes = [0; 16 * 1024];
    while let Ok(length @ 1..) = from.read(&mut bytes) {
        while is_held.load(Ordering::SeqCst) {
            pause(ms(1));
        }
        if to.write_all(&bytes[..length]).is_err() {
            break;
        }
    }
    drop((to.shutdown(Shutdown::Both), from.shutdown(Shutdown::Both)));
}

#[test]
fn a_replica_that_alone_is_cut_off_goes_on_alone_and_catches_up() {
    let store = Store::start();
    let (limited, spare) = (always(Step::status(429).with_retry_after("60")), good());
    let setup = Setup::of(&store, &[&limited, &spare]);
    let wire = Wire::to(store.port());
    let (one, two) = (setup.start("one"), setup.start("two"));
    let cut = Setup { store: wire.url.clone(), ..setup.clone() }.start("cut");
    wire.cut();
    eventually("it knows", || fleet_of(&cut)["store"]["is_up"] == false);
    assert_eq!(target(&one.chat()), "b/m");
    eventually("the others hear", || two.health("a/m")["reason"] == "rate_limited");
    assert_eq!((target(&two.chat()).as_str(), hits(&limited)), ("b/m", 1));
    assert_eq!(cut.health("a/m")["reason"], serde_json::Value::Null, "it heard nothing");
    assert_eq!(target(&ask_as(&cut, "s")), "b/m", "and finds out by itself");
    assert_eq!(hits(&limited), 2);
    let drained = Setup { store: wire.url.clone(), ..setup }.start_alone("late");
    assert_eq!(target(&drained.chat()), "b/m", "nor does one that starts there wait");
    assert_eq!(hits(&limited), 3);
    wire.mend();
    is_connected(&cut);
    is_connected(&drained);
    assert_eq!(fleet_of(&one)["store"]["is_up"], true, "nobody else noticed");
}

/// Holds pins, and remembers those that it hears of.
struct PinEars {
    held: u128,
    heard: Arc<Mutex<BTreeSet<u128>>>,
}

fn pin(session: u128) -> Hint {
    let name = Fingerprint([7; 16]);
    let (remaining, stays) = (Millis::minutes(10), Millis::ZERO);
    let fact = Fact::Pin { session: PinKey(session), backend: name, key: name, remaining, stays };
    Hint {
        age: Millis::ZERO,
        stamp: Stamp { version: 1, writer: ReplicaId(1) },
        fact,
        haste: Haste::AtOnce,
    }
}

impl Ears for PinEars {
    fn hear(&self, hint: &Hint) -> Heard {
        if let Fact::Pin { session, .. } = hint.fact {
            self.heard.lock().expect("not poisoned").insert(session.0);
        }
        Heard::Taken
    }
    fn holdings(&self) -> Vec<Hint> {
        Vec::new()
    }
    fn held_pins(&self, after: Option<PinKey>, max: usize) -> (Vec<Hint>, Option<PinKey>) {
        let from = after.map_or(0, |it| it.0 + 1);
        let to = self.held.min(from + max as u128);
        let next = (to < self.held).then(|| PinKey(to - 1));
        ((from..to).map(pin).collect(), next)
    }
    fn config_sha(&self) -> String {
        "test".to_owned()
    }
}

#[test]
fn what_a_full_queue_dropped_is_written_when_the_store_is_back() {
    const PINS: u128 = 9000;
    let mut store = Store::start();
    let heard: Arc<Mutex<BTreeSet<u128>>> = Arc::default();
    let ears = |held, heard: &Arc<_>| PinEars { held, heard: Arc::clone(heard) };
    let one = BareReplica::start(&store, "one", ears(PINS, &Arc::default()));
    let other = BareReplica::start(&store, "other", ears(0, &heard));
    let is_up = |it: &BareReplica| it.fleet.stats().is_up();
    store.kill();
    eventually("it is away", || !is_up(&one) && !is_up(&other));
    one.fleet.tell(&mut (0..PINS).map(pin).collect(), Now(0));
    assert_eq!(one.fleet.queued(), 8192, "the queue has an end");
    assert_eq!(
        one.fleet.stats().dropped_count(),
        PINS as u64 - 8192,
        "and what it dropped is counted"
    );
    store.run();
    eventually("everything is told", || heard.lock().expect("not poisoned").len() as u128 == PINS);
}

/// The stream is bounded, and does not say what it has dropped: writers number their entries, and
/// whoever misses one loads everything that is kept.
#[test]
fn what_is_missing_on_the_stream_is_loaded() {
    let store = Store::start();
    let heard: Arc<Mutex<BTreeSet<u128>>> = Arc::default();
    let wire = Wire::to(store.port());
    let ears = |heard: &Arc<_>| PinEars { held: 0, heard: Arc::clone(heard) };
    let one = BareReplica::start(&store, "one", ears(&Arc::default()));
    let other = BareReplica::start_at(&[&wire.url], "other", ears(&heard));
    let tell = |session: u128| {
        one.fleet.tell(&mut vec![pin(session)], Now(0));
        let told = || one.fleet.stats().told_count(FactKind::Pin) as u128 == session;
        eventually("it is told", told);
    };
    let has = |session| heard.lock().expect("not poisoned").contains(&session);
    tell(1);
    eventually("the first is heard", || has(1));
    wire.is_held.store(true, Ordering::SeqCst);
    tell(2);
    tell(3);
    let keys = store.keys();
    let stream = keys.iter().find(|key| key.contains(":s:")).expect("a stream");
    // The answer with the second is on its way; the third is dropped before it is asked for.
    let last = "return redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1][1]";
    let third = store.ask(&[b"EVAL", last.as_bytes(), b"1", stream.as_bytes()]);
    assert_eq!(store.ask(&[b"XDEL", stream.as_bytes(), third.as_bytes()]), ":1");
    tell(4);
    wire.is_held.store(false, Ordering::SeqCst);
    eventually("what was dropped is heard", || has(2) && has(3) && has(4));
    assert_eq!(other.fleet.stats().gap_count(), 1);
}

/// A replica loads page by page while others write: whatever they write again changes its place in
/// the index.
#[test]
fn everything_is_loaded_also_while_some_of_it_is_written_again() {
    const PINS: u128 = 2000;
    let store = Store::start();
    let one = BareReplica::start(&store, "one", PinEars { held: 0, heard: Arc::default() });
    let told = |count: u64| one.fleet.stats().told_count(FactKind::Pin) >= count;
    one.fleet.tell(&mut (0..PINS).map(pin).collect(), Now(0));
    eventually("all are told", || told(PINS as u64));
    let is_over = Arc::new(AtomicBool::new(false));
    let (fleet, ends) = (Arc::clone(&one.fleet), Arc::clone(&is_over));
    let again = std::thread::spawn(move || {
        while !ends.load(Ordering::SeqCst) {
            if fleet.queued() < 256 {
                fleet.tell(&mut (0..PINS / 2).map(pin).collect(), Now(0));
            }
            pause(ms(1));
        }
    });
    for _ in 0..3 {
        let heard: Arc<Mutex<BTreeSet<u128>>> = Arc::default();
        let ears = PinEars { held: 0, heard: Arc::clone(&heard) };
        let _late = BareReplica::start(&store, "late", ears);
        eventually("all are heard", || heard.lock().expect("not poisoned").len() as u128 == PINS);
    }
    is_over.store(true, Ordering::SeqCst);
    again.join().expect("it ends");
}

#[test]
fn what_another_version_writes_is_ignored_and_counted_by_name() {
    let store = Store::start();
    let (limited, spare) = (always(Step::status(429).with_retry_after("60")), good());
    let gate = Setup::of(&store, &[&limited, &spare]).start("new");
    assert_eq!(target(&gate.chat()), "b/m");
    let told = "tidegate_fleet_told_total{fact=\"window\"}";
    eventually("there is a stream", || gate.metric(told) >= 1.0);
    let secrets = FleetSecrets::new("prod", [SECRET]).expect("keys");
    let is_stream = |key: &&String| store.ask(&[b"TYPE", key.as_bytes()]) == "+stream";
    let keys = store.keys();
    let stream = keys.iter().find(is_stream).expect("a stream");
    let sealed = secrets.seal(stream.as_bytes(), &[200, 1, 2, 3]).expect("sealed");
    store.ask(&[b"XADD", stream.as_bytes(), b"*", b"e", &sealed]);
    let rejected = "tidegate_fleet_rejected_total{reason=\"version\"}";
    eventually("it is counted", || gate.metric(rejected) >= 1.0);
    assert_eq!(target(&gate.chat()), "b/m", "and nothing else");
}
