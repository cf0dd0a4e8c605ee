//! Names that the replicas of a fleet share, and the keyed hash behind the names of sessions.
//!
//! Replicas may have different configs, so a place in a file names nothing. A backend, an endpoint
//! and a key are named by fingerprints that the shell makes (an HMAC of url and model, or of the
//! key's value); the core compares them and knows nothing else about them. Sessions are named by a
//! hash of route, caller and session that is keyed by the fleet's secret.
//!
//! Rules kept here:
//! - The hash is SipHash-2-4, written out: replicas of different builds must agree on it, which the
//!   standard library's hasher does not promise.
//! - A fingerprint and a session's name say nothing about what they name to anybody without the
//!   secret. The key of the hash is a secret and is never printed.

use serde::{Deserialize, Serialize};

/// What replicas call a backend, an endpoint or a key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fingerprint(pub [u8; 16]);

impl std::fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Fingerprint({:032x})", u128::from_be_bytes(self.0))
    }
}

/// One run of one replica: a number drawn at each start.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct ReplicaId(pub u128);

/// A session of one caller on one route, as a hash. Its first 32 bits are the route's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PinKey(pub u128);

/// The first bits of a session's name are its route's.
const TAG_BITS: u32 = 32;

impl PinKey {
    /// A name whose first bits are `tag`; of the rest the last ones are used.
    pub(crate) const fn new(tag: u32, rest: u128) -> Self {
        Self((tag as u128) << (128 - TAG_BITS) | rest & (u128::MAX >> TAG_BITS))
    }

    /// What the sessions of its route have in common.
    pub(crate) const fn tag(self) -> u32 {
        (self.0 >> (128 - TAG_BITS)) as u32
    }
}

/// What a replica must know to be one of a fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetSettings {
    /// Who this replica is.
    pub replica: ReplicaId,
    /// Keys derived from the fleet's secrets: the first names sessions, all are recognised, so
    /// that a secret can be replaced without losing pins. Never empty.
    pub hash_keys: Vec<HashKey>,
}

/// What replicas call one thing, and who this replica is to them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FleetName {
    names: Vec<Fingerprint>,
    pub(crate) replica: ReplicaId,
}

impl FleetName {
    /// Nothing is told or heard of it where there is no fleet.
    pub(crate) fn new(names: &[Fingerprint], fleet: Option<&FleetSettings>) -> Self {
        fleet.map_or_else(Self::default, |fleet| Self {
            names: names.to_vec(),
            replica: fleet.replica,
        })
    }

    /// The name under which it is told of, if it is.
    pub(crate) fn told(&self) -> Option<Fingerprint> {
        self.names.first().copied()
    }

    /// All names under which it is heard of.
    pub(crate) fn all(&self) -> &[Fingerprint] {
        &self.names
    }

    /// Whether it is heard of under this name.
    pub(crate) fn has(&self, name: Fingerprint) -> bool {
        self.names.contains(&name)
    }
}

/// A key for hashes that only this fleet can compute.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HashKey(pub [u8; 16]);

impl std::fmt::Debug for HashKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HashKey(..)")
    }
}

impl HashKey {
    /// The name of a session.
    pub(crate) fn pin_key(&self, route: &str, caller: &str, session: &str) -> PinKey {
        let half = |salt: u64| {
            let mut hash = SipHash::new(self, salt);
            for part in [route, caller, session] {
                hash.write_u64(part.len() as u64);
                hash.write(part.as_bytes());
            }
            u128::from(hash.finish())
        };
        PinKey::new(self.route_tag(route), half(1) << 64 | half(2))
    }

    /// What the names of a route's sessions have in common.
    pub(crate) fn route_tag(&self, route: &str) -> u32 {
        let mut hash = SipHash::new(self, 3);
        hash.write(route.as_bytes());
        hash.finish() as u32
    }

    /// A number for a session at something with this name, every session's own.
    pub(crate) fn lot(&self, session: PinKey, name: &[u8]) -> u64 {
        let mut hash = SipHash::new(self, 4);
        hash.write(&session.0.to_le_bytes());
        hash.write(name);
        hash.finish()
    }
}

/// SipHash-2-4.
struct SipHash {
    state: [u64; 4],
    /// Bytes that do not fill a word yet, the first one lowest.
    tail: u64,
    length: u64,
}

impl SipHash {
    /// A hash of its own for every salt.
    fn new(key: &HashKey, salt: u64) -> Self {
        let mut hash = Self::plain(key);
        hash.write_u64(salt);
        hash
    }

    fn plain(HashKey(key): &HashKey) -> Self {
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| key[at + byte]));
        let (k0, k1) = (word(0), word(8));
        // "somepseudorandomlygeneratedbytes", as the algorithm's authors chose.
        let state = [
            k0 ^ 0x736f_6d65_7073_6575,
            k1 ^ 0x646f_7261_6e64_6f6d,
            k0 ^ 0x6c79_6765_6e65_7261,
            k1 ^ 0x7465_6462_7974_6573,
        ];
        Self { state, tail: 0, length: 0 }
    }

    fn write_u64(&mut self, number: u64) {
        self.write(&number.to_le_bytes());
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            let place = self.length % 8;
            self.tail |= u64::from(byte) << (8 * place);
            self.length += 1;
            if place == 7 {
                let word = std::mem::take(&mut self.tail);
                self.absorb(word);
            }
        }
    }

    fn finish(mut self) -> u64 {
        let last = self.tail | self.length << 56;
        self.absorb(last);
        self.state[2] ^= 0xFF;
        self.rounds(4);
        self.state.iter().fold(0, |sum, word| sum ^ word)
    }

    fn absorb(&mut self, word: u64) {
        self.state[3] ^= word;
        self.rounds(2);
        self.state[0] ^= word;
    }

    fn rounds(&mut self, count: u32) {
        let [v0, v1, v2, v3] = &mut self.state;
        for _ in 0..count {
            *v0 = v0.wrapping_add(*v1);
            *v1 = v1.rotate_left(13) ^ *v0;
            *v0 = v0.rotate_left(32);
            *v2 = v2.wrapping_add(*v3);
            *v3 = v3.rotate_left(16) ^ *v2;
            *v0 = v0.wrapping_add(*v3);
            *v3 = v3.rotate_left(21) ^ *v0;
            *v2 = v2.wrapping_add(*v1);
            *v1 = v1.rotate_left(17) ^ *v2;
            *v2 = v2.rotate_left(32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: HashKey = HashKey([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);

    /// The first and the fifteenth of the test vectors that the algorithm's authors published.
    #[test]
    fn the_hash_is_siphash_2_4() {
        let hash = |bytes: &[u8]| {
            let mut hash = SipHash::plain(&KEY);
            hash.write(bytes);
            hash.finish()
        };
        assert_eq!(hash(&[]), 0x726f_db47_dd0e_0e31);
        let fifteen: Vec<u8> = (0..15).collect();
        assert_eq!(hash(&fifteen), 0xa129_ca61_49be_45e5);
    }

    #[test]
    fn every_part_of_a_session_and_the_key_make_another_name() {
        let names = [
            KEY.pin_key("r", "c", "s"),
            KEY.pin_key("r2", "c", "s"),
            KEY.pin_key("r", "c2", "s"),
            KEY.pin_key("r", "c", "s2"),
            KEY.pin_key("rc", "", "s"),
            HashKey([7; 16]).pin_key("r", "c", "s"),
        ];
        let distinct: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(distinct.len(), names.len());
        assert_eq!(names[0].tag(), names[2].tag());
        assert_ne!(names[0].tag(), names[1].tag());
    }

    #[test]
    fn the_key_is_not_printed() {
        assert_eq!(format!("{KEY:?}"), "HashKey(..)");
    }
}
