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
        let digits: &[u8; DIGITS] = digits.try_into().ok()?;
        let (chunks, _) = digits.as_chunks::<8>();
        chunks.iter().try_fold(Self(0), |read, chunk| {
            Some(Self(read.0 << 32 | u128::from(eight_digits(*chunk)?)))
        })
    }
}

/// The number that eight hexadecimal digits in lower case stand for. Every request is recorded, so
/// all eight are read at once, each in its own byte of a word.
fn eight_digits(digits: [u8; 8]) -> Option<u32> {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let word = u64::from_be_bytes(digits);
    // Letters have the bit 0x40, and `a` is 10 with 1 in its low half.
    let values = (word & (0x0f * EACH)) + 9 * ((word >> 6) & EACH);
    let is_letter = ((values + 6 * EACH) >> 4) & EACH;
    // What is not a digit is not what its value is written as.
    let written = values + 0x30 * EACH + 0x27 * is_letter;
    if values & (0xf0 * EACH) != 0 || written != word {
        return None;
    }
    let pairs = (values | values >> 4) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs | pairs >> 8) & 0x0000_ffff_0000_ffff;
    Some((fours | fours >> 16) as u32)
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
    fn every_byte_but_a_digit_in_lower_case_is_refused_in_every_place() {
        let id = RequestId::of_bits(0x0123_4567_89ab_cdef_fedc_ba98_7654_3210);
        let text = id.to_string();
        assert_eq!(RequestId::parse(&text), Some(id));
        for place in 4..text.len() {
            for byte in 0..128_u8 {
                let mut bytes = text.clone().into_bytes();
                bytes[place] = byte;
                let changed = String::from_utf8(bytes).expect("ASCII");
                let is_digit = matches!(byte, b'0'..=b'9' | b'a'..=b'f');
                let read = RequestId::parse(&changed);
                assert_eq!(read.is_some(), is_digit, "{changed}");
                assert_eq!(read.map(|it| it.to_string()), is_digit.then_some(changed));
            }
        }
        assert_eq!(RequestId::parse(&"é".repeat(18)), None);
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
