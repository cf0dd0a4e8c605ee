//! Pins: which target a session sticks to, and until when.
//!
//! Rules kept here:
//! - The TTL is strict: locked once, not extended by use. At exactly its deadline a pin still
//!   holds, so that a session of `ttl` length is served by one target from end to end.
//! - A provider's prompt cache belongs to a key, so a pin names the key too, by its fingerprint:
//!   it stays the same key when a reload moves it inside its pool.
//! - The table is bounded. A full shard drops what has expired, else what would expire first.
//! - Sessions are kept as keyed hashes of 128 bits, 32 of them the route's: no caller's text stays
//!   in memory, and nobody can aim at another caller's entry without knowing the seed (I16).
//!
//! - In a fleet a pin has a version and a writer, the higher of which counts: a new lock, or a
//!   move, is one more than any that this replica has seen. One that was moved to a
//!   higher-numbered tier stays there for a while, whatever any replica thinks of the target it
//!   left. What other replicas tell never drives out a pin that holds, except by a higher version.
//!
//! Whether a pin is *honoured* is decided by the plan, which knows the candidates.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hasher},
    sync::Arc,
};

use crate::{
    hint::Stamp,
    names::{PinKey, ReplicaId},
    settings::KeyFingerprint,
    sync::{AtomicU32, Mutex, Ordering, lock},
    time::Now,
};

/// A pin: the number of the backend, the key that was used there, and the last moment it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pin {
    pub(crate) backend: u32,
    /// `None` until it has been used.
    pub(crate) key: Option<KeyFingerprint>,
    pub(crate) until: Now,
    pub(crate) stamp: Stamp,
    /// Until when no lower-numbered tier draws it up, because it was moved away from one.
    pub(crate) stays_until: Now,
}

impl Pin {
    /// A pin that is about to be set.
    pub(crate) fn new(backend: u32, key: Option<KeyFingerprint>, until: Now) -> Self {
        Self { backend, key, until, stamp: Stamp::default(), stays_until: Now::ZERO }
    }

    pub(crate) fn holds(&self, now: Now) -> bool {
        now <= self.until
    }
}

/// Enough shards that threads seldom meet in one.
const SHARDS: usize = 64;

#[derive(Debug)]
pub(crate) struct Pins {
    seed: u64,
    shards: Vec<Mutex<BTreeMap<PinKey, Pin>>>,
    max_per_shard: AtomicU32,
}

impl Pins {
    pub(crate) fn new(seed: u64, max: usize) -> Self {
        let shards = (0..SHARDS).map(|_| Mutex::new(BTreeMap::new())).collect();
        let pins = Self { seed, shards, max_per_shard: AtomicU32::new(1) };
        pins.set_max(max);
        pins
    }

    /// Another bound; a table that is too full shrinks as new pins come.
    pub(crate) fn set_max(&self, max: usize) {
        let per_shard = u32::try_from(max.div_ceil(SHARDS)).unwrap_or(u32::MAX).max(1);
        self.max_per_shard.store(per_shard, Ordering::Relaxed);
    }

    pub(crate) fn key(&self, route: &str, caller: &str, session: &str) -> PinKey {
        let half = |salt: u64| {
            let mut hasher = DefaultHasher::new();
            hasher.write_u64(self.seed ^ salt);
            for part in [route, caller, session] {
                hasher.write_usize(part.len());
                hasher.write(part.as_bytes());
            }
            u128::from(hasher.finish())
        };
        PinKey::new(self.tag(route), half(0) << 64 | half(0x5EED))
    }

    /// What a route's pins have in common, so that they can be counted.
    pub(crate) fn tag(&self, route: &str) -> u32 {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.seed);
        hasher.write(route.as_bytes());
        hasher.finish() as u32
    }

    /// How many pins of each of these routes hold, which are told by what their names begin with.
    pub(crate) fn counts<'a>(
        &self,
        now: Now,
        routes: impl Iterator<Item = (&'a Arc<str>, u32)>,
    ) -> Vec<(&'a Arc<str>, usize)> {
        let mut by_tag: BTreeMap<u32, usize> = BTreeMap::new();
        for shard in &self.shards {
            for (key, _) in lock(shard).iter().filter(|(_, pin)| pin.holds(now)) {
                *by_tag.entry(key.tag()).or_default() += 1;
            }
        }
        let count = |tag| by_tag.get(&tag).copied().unwrap_or_default();
        routes.map(|(route, tag)| (route, count(tag))).collect()
    }

    pub(crate) fn get(&self, key: PinKey) -> Option<Pin> {
        lock(self.shard(key)).get(&key).copied()
    }

    pub(crate) fn set(&self, now: Now, key: PinKey, pin: Pin) {
        self.set_as(now, key, |_| pin);
    }

    /// Sets a pin as one of the fleet's: its version is the next one.
    pub(crate) fn set_next(&self, now: Now, key: PinKey, pin: Pin, writer: ReplicaId) -> Pin {
        self.set_as(now, key, |old| {
            let version = old.map_or(0, |old| old.stamp.version).saturating_add(1);
            Pin { stamp: Stamp { version, writer }, ..pin }
        })
    }

    fn set_as(&self, now: Now, key: PinKey, pin: impl FnOnce(Option<&Pin>) -> Pin) -> Pin {
        let max = self.max_per_shard.load(Ordering::Relaxed) as usize;
        let mut shard = lock(self.shard(key));
        if shard.len() >= max && !shard.contains_key(&key) {
            shard.retain(|_, pin| pin.holds(now));
        }
        while shard.len() >= max && !shard.contains_key(&key) {
            let first = shard.iter().min_by_key(|(key, pin)| (pin.until, **key));
            let Some(first) = first.map(|(key, _)| *key) else { break };
            shard.remove(&first);
        }
        let pin = pin(shard.get(&key));
        shard.insert(key, pin);
        pin
    }

    /// Takes the pin of another replica if it is newer than what is here; whether it was. One that
    /// has ended is no pin: whatever its version was, a lock that holds takes its place.
    pub(crate) fn merge(&self, now: Now, key: PinKey, pin: Pin) -> bool {
        let max = self.max_per_shard.load(Ordering::Relaxed) as usize;
        let mut shard = lock(self.shard(key));
        if let Some(old) = shard.get_mut(&key) {
            let rank = |pin: &Pin| (pin.holds(now), pin.stamp);
            let is_newer = rank(&pin) > rank(old);
            if is_newer {
                *old = pin;
            }
            return is_newer;
        }
        if shard.len() >= max {
            shard.retain(|_, pin| pin.holds(now));
        }
        if shard.len() >= max {
            return false;
        }
        shard.insert(key, pin);
        true
    }

    /// Gives a pin that was set under an older name the newer one.
    pub(crate) fn rename(&self, now: Now, old: PinKey, new: PinKey) {
        if self.get(new).is_some() {
            return;
        }
        if let Some(pin) = self.get(old).filter(|pin| pin.holds(now)) {
            self.set(now, new, pin);
        }
    }

    /// Up to `max` pins that hold, those after `after` in the order of their places.
    pub(crate) fn page(&self, now: Now, after: Option<PinKey>, max: usize) -> Vec<(PinKey, Pin)> {
        let place = |key: PinKey| (key.0 % SHARDS as u128, key);
        let first = after.map_or(0, |key| place(key).0 as usize);
        let mut found = Vec::new();
        for shard in &self.shards[first..] {
            let shard = lock(shard);
            let is_due = |key: PinKey| after.is_none_or(|after| place(key) > place(after));
            let due = shard.iter().filter(|(key, pin)| pin.holds(now) && is_due(**key));
            found.extend(due.map(|(key, pin)| (*key, *pin)).take(max - found.len()));
            if found.len() >= max {
                break;
            }
        }
        found
    }

    /// Drops what has expired.
    pub(crate) fn sweep(&self, now: Now) {
        for shard in &self.shards {
            lock(shard).retain(|_, pin| pin.holds(now));
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).len()).sum()
    }

    fn shard(&self, key: PinKey) -> &Mutex<BTreeMap<PinKey, Pin>> {
        &self.shards[(key.0 % SHARDS as u128) as usize]
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn pin(until: u64) -> Pin {
        Pin::new(1, None, Now(until))
    }

    #[test]
    fn a_pin_still_holds_at_exactly_its_deadline() {
        assert!(pin(60).holds(Now(60)));
        assert!(!pin(60).holds(Now(61)));
    }

    #[test]
    fn route_caller_and_session_each_make_a_key_of_their_own() {
        let pins = Pins::new(7, 100);
        let keys = [
            pins.key("r", "c", "s"),
            pins.key("r2", "c", "s"),
            pins.key("r", "c2", "s"),
            pins.key("r", "c", "s2"),
            pins.key("rc", "", "s"),
            pins.key("r", "cs", ""),
        ];
        let distinct: std::collections::BTreeSet<_> = keys.iter().collect();
        assert_eq!(distinct.len(), keys.len());
        assert_eq!(pins.key("r", "c", "s"), keys[0]);
        assert_ne!(Pins::new(8, 100).key("r", "c", "s"), keys[0]);
    }

    #[test]
    fn pins_are_counted_by_route_while_they_hold() {
        let pins = Pins::new(7, 1000);
        for (route, sessions, until) in [("a", 5, 10), ("b", 3, 20), ("gone", 2, 20)] {
            for session in 0..sessions {
                let key = pins.key(route, "", &format!("{session}"));
                pins.set(Now(0), key, pin(until));
            }
        }
        let routes: Vec<Arc<str>> = ["a", "b", "c"].map(Arc::from).to_vec();
        let tagged = || routes.iter().map(|it| (it, pins.tag(it)));
        let counts = |now| pins.counts(Now(now), tagged()).into_iter().map(|(_, it)| it);
        assert_eq!(counts(10).collect::<Vec<_>>(), [5, 3, 0]);
        assert_eq!(counts(11).collect::<Vec<_>>(), [0, 3, 0]);
    }

    #[test]
    fn the_table_is_bounded_and_drops_what_expires_first() {
        let pins = Pins::new(0, 640);
        for session in 0..10_000_u64 {
            let key = pins.key("r", "", &session.to_string());
            pins.set(Now(0), key, pin(session));
        }
        assert!(pins.len() <= 640);
        assert!(pins.get(pins.key("r", "", "9999")).is_some());
        pins.sweep(Now(20_000));
        assert_eq!(pins.len(), 0);
    }

    #[test]
    fn a_full_shard_drops_the_pin_that_expires_first_whenever_it_was_set() {
        let pins = Pins::new(0, 2 * SHARDS);
        let shard_of = |key: &PinKey| key.0 % SHARDS as u128;
        let keys: Vec<PinKey> =
            (0..).map(|it: u32| pins.key("r", "", &it.to_string())).take(1_000).collect();
        let same = keys.iter().filter(|it| shard_of(it) == shard_of(&keys[0]));
        let [late, early, new] = *same.copied().take(3).collect::<Vec<_>>() else {
            panic!("a thousand sessions share 64 shards");
        };
        for (key, until) in [(late, 30), (early, 10), (new, 20)] {
            pins.set(Now(0), key, pin(until));
        }
        assert_eq!(pins.get(early), None);
        assert!(pins.get(late).is_some() && pins.get(new).is_some());
    }

    /// I16: every bit of a name but the route's hangs on the seed, which nobody outside knows.
    #[test]
    fn both_halves_of_a_sessions_name_hang_on_the_seed_and_on_the_session() {
        let halves = |seed: u64, session: &str| {
            let key = Pins::new(seed, 100).key("r", "c", session);
            [(key.0 >> 64) as u32, key.0 as u32]
        };
        let seeds = [0x5EED, 1 << 20, 1 << 21];
        let seen = seeds.iter().flat_map(|seed| [halves(*seed, "s"), halves(*seed, "t")]);
        let mut distinct: Vec<u32> = seen.flatten().collect();
        let all = distinct.len();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), all);
    }

    /// Different names of one shard.
    fn neighbours(pins: &Pins) -> impl Iterator<Item = PinKey> {
        let first = pins.key("r", "", "0").0 % SHARDS as u128;
        let keys = (0..10_000_u32).map(|it| pins.key("r", "", &it.to_string()));
        keys.filter(move |it| it.0 % SHARDS as u128 == first)
    }

    #[test]
    fn a_full_shard_forgets_all_that_has_ended_and_keeps_what_holds() {
        let pins = Pins::new(0, 3 * SHARDS);
        let keys: Vec<PinKey> = neighbours(&pins).take(4).collect();
        for (key, until) in keys.iter().zip([10, 10, 50]) {
            pins.set(Now(0), *key, pin(until));
        }
        pins.set(Now(20), keys[2], pin(60));
        assert_eq!(pins.len(), 3, "a pin that is set again needs no room");
        pins.set(Now(20), keys[3], pin(60));
        assert_eq!((pins.get(keys[0]), pins.get(keys[1])), (None, None));
        assert_eq!(pins.len(), 2);
    }

    /// What other replicas tell never drives out a pin that holds.
    #[test]
    fn a_lock_of_another_replica_takes_the_room_of_ended_pins_only() {
        let pins = Pins::new(0, 2 * SHARDS);
        let keys: Vec<PinKey> = neighbours(&pins).take(4).collect();
        pins.set(Now(0), keys[0], pin(10));
        pins.set(Now(0), keys[1], pin(50));
        assert!(!pins.merge(Now(10), keys[2], pin(90)), "both still hold");
        assert!(pins.merge(Now(11), keys[2], pin(90)));
        assert!(!pins.merge(Now(11), keys[3], pin(90)));
        assert!(pins.get(keys[1]).is_some());
    }

    #[test]
    fn pages_show_every_pin_that_holds_once() {
        let pins = Pins::new(3, 10_000);
        let key = |session: u32| pins.key("r", "", &session.to_string());
        for session in 0..300 {
            let until = if session % 3 == 0 { 5 } else { 50 };
            pins.set(Now(0), key(session), pin(until));
        }
        let mut shown = Vec::new();
        let mut after = None;
        for _ in 0..100 {
            let page = pins.page(Now(6), after, 7);
            assert!(page.len() <= 7);
            let Some((last, _)) = page.last() else { break };
            after = Some(*last);
            shown.extend(page.iter().map(|(key, _)| *key));
        }
        shown.sort_unstable();
        let mut holding: Vec<PinKey> = (0..300).filter(|it| it % 3 != 0).map(key).collect();
        holding.sort_unstable();
        assert_eq!(shown, holding);
    }
}
