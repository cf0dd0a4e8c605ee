//! Names that records keep in few bytes: of requests and of sessions.
//!
//! A session's own name comes from a client and may say anything, so a record keeps a keyed hash
//! of it (I13): equal names have equal fingerprints while the process runs.

use std::fmt;

use tidegate_runtime::rng;

/// The name of a request: `req_` and 32 hexadecimal digits, in 16 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(u128);

const PREFIX: &str = "req_";
const DIGITS: usize = 32;

impl RequestId {
    /// A new one.
    #[must_use]
    pub fn new() -> Self {
        Self(u128::from(rng::draw()) << 64 | u128::from(rng::draw()))
    }

    /// The one with these digits.
    #[must_use]
    pub const fn of_bits(bits: u128) -> Self {
        Self(bits)
    }

    /// Its digits as a number.
    #[must_use]
    pub const fn bits(self) -> u128 {
        self.0
    }

    /// Reads `req_` and its digits, in lower case.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(PREFIX)?.as_bytes();
        if digits.len() != DIGITS {
            return None;
        }
        // Two words, because arithmetic on 128 bits is twice the work in every step.
        let word = |half: &[u8]| -> Option<u64> {
            half.iter().try_fold(0_u64, |word, byte| {
                let digit = match byte {
                    b'0'..=b'9' => byte - b'0',
                    b'a'..=b'f' => byte - b'a' + 10,
                    _ => return None,
                };
                Some(word << 4 | u64::from(digit))
            })
        };
        let (high, low) = digits.split_at(DIGITS / 2);
        Some(Self(u128::from(word(high)?) << 64 | u128::from(word(low)?)))
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{PREFIX}{:032x}", self.0)
    }
}

/// What a record keeps of a session's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionFingerprint(u64);

impl SessionFingerprint {
    /// Of a session's name; an empty one is none.
    #[must_use]
    pub fn of(session: &str) -> Option<Self> {
        (!session.is_empty()).then(|| Self(rng::keyed_hash(session.as_bytes())))
    }

    /// Reads 16 hexadecimal digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_one = text.len() == 16 && text.bytes().all(|it| it.is_ascii_hexdigit());
        is_one.then(|| u64::from_str_radix(text, 16).ok().map(Self)).flatten()
    }
}

impl fmt::Display for SessionFingerprint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_as_it_is_written_and_nothing_else_is_one() {
        let id = RequestId::new();
        assert_eq!(RequestId::parse(&id.to_string()), Some(id));
        for wrong in ["", "req_", "req_12", "req_zz1f00000000000000000000000000aa", "x"] {
            assert_eq!(RequestId::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_fingerprint_tells_sessions_apart_and_does_not_show_them() {
        let one = SessionFingerprint::of("canary-session");
        assert_eq!(one, SessionFingerprint::of("canary-session"));
        assert_ne!(one, SessionFingerprint::of("another"));
        assert_eq!(SessionFingerprint::of(""), None);
        let shown = one.map(|it| it.to_string()).unwrap_or_default();
        assert!(!shown.contains("canary"), "{shown}");
        assert_eq!(SessionFingerprint::parse(&shown), one);
    }
}
