//! Random numbers for choices and ids that are no secret: one stream per thread, seeded by the
//! system. Secrets come from the provider of cryptography (`tidegate_net::secret`).

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

use tidegate_core::draw::mix;

thread_local! {
    static STREAM: Cell<u64> = Cell::new(seed());
}

/// A seed from the system's randomness.
#[must_use]
pub fn seed() -> u64 {
    // Every RandomState is keyed by the system's random source (and differs from the last one).
    RandomState::new().hash_one(0_u64)
}

/// A number for a value that nobody can work backwards: equal values have equal numbers while the
/// process runs, and the key of the hash is its own.
pub fn keyed_hash(value: &[u8]) -> u64 {
    static KEYED: OnceLock<RandomState> = OnceLock::new();
    KEYED.get_or_init(RandomState::new).hash_one(value)
}

/// A fresh random number, for choices and ids that are no secret.
#[must_use]
pub fn draw() -> u64 {
    STREAM.with(|stream| {
        let next = stream.get().wrapping_add(0x9E37_79B9_7F4A_7C15);
        stream.set(next);
        mix(next)
    })
}

#[cfg(test)]
mod tests {
    use super::draw;

    #[test]
    fn draws_differ() {
        let draws: std::collections::BTreeSet<u64> = (0..1000).map(|_| draw()).collect();
        assert_eq!(draws.len(), 1000);
    }
}
