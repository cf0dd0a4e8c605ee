//! Pins: which target a session sticks to, and until when.
//!
//! Rules kept here:
//! - The TTL is strict: locked once, not extended by use. At exactly its deadline a pin still
//!   holds, so that a session of `ttl` length is served by one target from end to end.
//! - The table is bounded. A full shard drops what has expired, else what would expire first.
//! - Sessions are kept as keyed 128-bit hashes: no caller's text stays in memory, and nobody can
//!   aim at another caller's entry without knowing the seed (I16).
//!
//! Whether a pin is *honoured* is decided by the plan, which knows the candidates.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hasher},
};

use crate::{
    sync::{AtomicU32, Mutex, Ordering, lock},
    time::Now,
};

/// A session of one caller on one route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PinKey(u128);

/// A pin: the number of the backend and the last moment it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pin {
    pub(crate) backend: u32,
    pub(crate) until: Now,
}

impl Pin {
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
        PinKey(half(0) << 64 | half(0x5EED))
    }

    pub(crate) fn get(&self, key: PinKey) -> Option<Pin> {
        lock(self.shard(key)).get(&key).copied()
    }

    pub(crate) fn set(&self, now: Now, key: PinKey, pin: Pin) {
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
        shard.insert(key, pin);
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
        Pin { backend: 1, until: Now(until) }
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
}
