//! Which trace a request belongs to, and the ids of its spans (W3C Trace Context).
//!
//! Why it exists: the header that an attempt sends upstream and the span that is exported later
//! must name the same id. Both are worked out from the request's own id, so nothing has to be
//! carried from one to the other.
//!
//! Rules kept here:
//! - A request without a valid `traceparent` begins a trace, whose id is that of the request: the
//!   digits of `req_…` find it.
//! - Whether a trace is sampled is decided by whoever began it.

use crate::request_id::RequestId;

/// The length of version 00.
const LENGTH: usize = 55;

/// The trace of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace.
    pub trace_id: u128,
    /// The span of the caller, if the caller has one.
    pub parent: Option<u64>,
    /// Whether its spans are wanted.
    pub is_sampled: bool,
}

impl TraceContext {
    /// The trace that a request begins.
    #[must_use]
    pub const fn begun_by(id: RequestId) -> Self {
        // Zero is not an id; neither would be the request's.
        let trace_id = if id.bits() == 0 { 1 } else { id.bits() };
        Self { trace_id, parent: None, is_sampled: true }
    }

    /// The trace that a `traceparent` header names; none if it is not valid.
    #[must_use]
    pub fn parse(header: &[u8]) -> Option<Self> {
        let (known, rest) = header.split_at_checked(LENGTH)?;
        let text = std::str::from_utf8(known).ok()?;
        let mut parts = text.split('-');
        let (version, trace, span, flags) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() || (trace.len(), span.len(), flags.len()) != (32, 16, 2) {
            return None;
        }
        // A later version may say more, after another dash.
        let is_known = match version {
            "00" => rest.is_empty(),
            "ff" => false,
            _ => rest.first().is_none_or(|byte| *byte == b'-'),
        };
        digits(version).filter(|_| is_known)?;
        let trace_id = digits(trace).filter(|id| *id != 0)?;
        let parent = digits(span).filter(|id| *id != 0)? as u64;
        let is_sampled = digits(flags)? & 1 == 1;
        Some(Self { trace_id, parent: Some(parent), is_sampled })
    }

    /// The `traceparent` header of a request's attempt, by its number.
    #[must_use]
    pub fn header_of_attempt(&self, id: RequestId, number: usize) -> String {
        self.header_of(attempt_span(id, number))
    }

    /// The `traceparent` header that names the span of a whole request.
    #[must_use]
    pub fn header_of_request(&self, id: RequestId) -> String {
        self.header_of(request_span(id))
    }

    fn header_of(&self, span: u64) -> String {
        format!("00-{:032x}-{span:016x}-{:02x}", self.trace_id, u8::from(self.is_sampled))
    }
}

/// The span of a request.
#[must_use]
pub const fn request_span(id: RequestId) -> u64 {
    span_id(id, 0)
}

/// The span of an attempt of a request.
#[must_use]
pub const fn attempt_span(id: RequestId, number: usize) -> u64 {
    span_id(id, number as u64 + 1)
}

/// The ids of a request are random, so mixing a number into them gives ids as good as drawn ones
/// (the finaliser of SplitMix64).
const fn span_id(id: RequestId, number: u64) -> u64 {
    let bits = id.bits();
    let folded = (bits >> 64) as u64 ^ (bits as u64).rotate_left(32);
    let mut word = folded.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^= word >> 31;
    // Zero is not an id.
    if word == 0 { 1 } else { word }
}

/// Hexadecimal digits in lower case, as the header wants them.
fn digits(text: &str) -> Option<u128> {
    let is_lower = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f');
    text.bytes().all(is_lower).then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_valid_header_is_read_and_its_sampling_kept() {
        let context = TraceContext {
            trace_id: 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736,
            parent: Some(0x00f0_67aa_0ba9_02b7),
            is_sampled: true,
        };
        assert_eq!(TraceContext::parse(VALID.as_bytes()), Some(context));
        let unsampled = VALID.replace("-01", "-00");
        let unsampled = TraceContext::parse(unsampled.as_bytes());
        assert_eq!(unsampled, Some(TraceContext { is_sampled: false, ..context }));
        let later = format!("{}-more", VALID.replacen("00-", "cc-", 1));
        assert_eq!(TraceContext::parse(later.as_bytes()), Some(context));
    }

    #[test]
    fn what_is_not_valid_begins_a_trace() {
        for wrong in [
            String::new(),
            "garbage".to_owned(),
            VALID.to_uppercase(),
            VALID.replacen("00-", "ff-", 1),
            VALID.replace('-', "_"),
            format!("{VALID}-more"),
            VALID.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            VALID.replace("00f067aa0ba902b7", &"0".repeat(16)),
            VALID.replace("00f067aa0ba902b7", "00f067aa0ba902bé"),
            VALID.replace("4736-00f0", "47360-0f0"),
            "é".repeat(40),
        ] {
            assert_eq!(TraceContext::parse(wrong.as_bytes()), None, "{wrong}");
        }
        let id = RequestId::new();
        let begun = TraceContext::begun_by(id);
        assert_eq!((begun.parent, begun.is_sampled), (None, true));
        assert_eq!(format!("req_{:032x}", begun.trace_id), id.to_string());
        assert_eq!(TraceContext::begun_by(RequestId::default()).trace_id, 1);
    }

    #[test]
    fn an_attempts_header_names_the_span_that_is_exported() {
        let (id, context) = (RequestId::new(), TraceContext::parse(VALID.as_bytes()));
        let context = context.unwrap_or_else(|| TraceContext::begun_by(id));
        for number in 0..3 {
            let sent = context.header_of_attempt(id, number);
            let read = TraceContext::parse(sent.as_bytes());
            let parent = Some(attempt_span(id, number));
            assert_eq!(read, Some(TraceContext { parent, ..context }), "{sent}");
        }
        let spans = [request_span(id), attempt_span(id, 0), attempt_span(id, 1)];
        assert!(spans[0] != spans[1] && spans[1] != spans[2] && spans[0] != spans[2]);
    }
}
