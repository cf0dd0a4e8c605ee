//! A client's request, read whole and understood as far as routing needs.

use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use tidegate_core::time::Millis;
use tidegate_gateway::caller::Caller;
use tidegate_journal::{request_id::RequestId, trace_context::TraceContext};
use tidegate_runtime::rng;
use tidegate_wire::{form, gemini::GeminiCall, head::RequestHead, json::What};

/// Where a session's name may stand, in this order; the body is looked at last.
const SESSION_HEADERS: [&str; 6] = [
    "x-tidegate-session",
    "x-claude-code-session-id",
    "x-session-id",
    "x-session-affinity",
    "session-id",
    "thread-id",
];
/// Where an SDK says how long it will wait, in seconds.
const TIMEOUT_HEADERS: [&str; 2] = ["x-stainless-read-timeout", "x-stainless-timeout"];

/// The first value of each of these headers. One pass over what a client sent, of which most is
/// none of them, is cheaper than a search for each.
fn first_values<'a, const N: usize>(
    headers: &'a HeaderMap,
    names: &[&str; N],
) -> [Option<&'a str>; N] {
    let mut found = [None; N];
    for (name, value) in headers {
        let name = name.as_str();
        // Hardly any other header begins like one of these.
        if !matches!(name.as_bytes().first(), Some(b'x' | b's' | b't')) {
            continue;
        }
        let Some(at) = names.iter().position(|it| *it == name) else { continue };
        // Values of one name stand in their order; one that is no text is as good as none.
        if found[at].is_none() {
            found[at] = Some(value.to_str().ok());
        }
    }
    found.map(Option::flatten)
}

/// Where a client names its trace (W3C Trace Context).
pub(crate) static TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// What tracing systems say about it besides.
pub(crate) static TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// A request that is ready to be routed.
pub struct Inbound {
    pub id: Rc<str>,
    pub path: Rc<str>,
    pub query: Option<String>,
    pub headers: HeaderMap,
    /// The gateways this request has passed, this one last.
    pub passed: HeaderValue,
    pub body: Bytes,
    pub caller: Arc<Caller>,
}

impl Inbound {
    /// What the body says, as far as routing needs it; if it cannot be read, why.
    pub fn head(&self) -> Result<RequestHead<'_>, String> {
        let content_type = self.headers.get(header::CONTENT_TYPE).map(|it| it.as_bytes());
        let json = || match GeminiCall::of_path(&self.path) {
            Some(call) => RequestHead::read_gemini(&self.body, &call),
            None => RequestHead::read(&self.body),
        };
        match content_type.and_then(form::boundary) {
            Some(boundary) => boundary
                .and_then(|boundary| RequestHead::read_form(&self.body, boundary))
                .map_err(|fault| fault.to_string()),
            None => json().map_err(|fault| match fault.what {
                What::GivenTwice(_)
                | What::WrongType { .. }
                | What::LoneSurrogate(_)
                | What::NotAnObject => fault.to_string(),
                _ => format!("the body is not valid JSON: {fault}"),
            }),
        }
    }

    /// The session that the headers name.
    pub fn session(&self) -> Option<&str> {
        let named = first_values(&self.headers, &SESSION_HEADERS);
        named.into_iter().flatten().next().filter(|session| !session.is_empty())
    }

    /// The trace that its client named, or that it begins.
    pub(crate) fn trace(&self) -> TraceContext {
        let mut named = self.headers.get_all(&TRACEPARENT).iter();
        let first = named.next().and_then(|it| TraceContext::parse(it.as_bytes()));
        // Two of them contradict each other.
        first.filter(|_| named.next().is_none()).unwrap_or_else(|| {
            TraceContext::begun_by(RequestId::parse(&self.id).unwrap_or_default())
        })
    }

    /// The `traceparent` header of an attempt, by its number.
    pub(crate) fn trace_header(&self, traced: &TraceContext, attempt: usize) -> HeaderValue {
        let id = RequestId::parse(&self.id).unwrap_or_default();
        HeaderValue::try_from(traced.header_of_attempt(id, attempt))
            .expect("hexadecimal digits and dashes can stand in a header")
    }

    /// How long the client says it waits for the first byte. What cannot be read, or is less than
    /// a second, is ignored.
    pub fn patience(&self) -> Option<Millis> {
        let seconds = |text: &str| {
            let seconds = text.trim().parse::<f64>().ok()?;
            (seconds.is_finite() && seconds >= 1.0).then_some(seconds)
        };
        let named = first_values(&self.headers, &TIMEOUT_HEADERS);
        Some(Millis::seconds(1).scaled(named.into_iter().flatten().find_map(seconds)?))
    }
}

/// A name for a request that no other one has. (`format!` would cost ten times as much.)
pub fn new_id() -> Rc<str> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut id = *b"req_00000000000000000000000000000000";
    let draws = u128::from(rng::draw()) << 64 | u128::from(rng::draw());
    for (pair, byte) in id[4..].chunks_exact_mut(2).zip(draws.to_be_bytes()) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
    Rc::from(&*String::from_utf8_lossy(&id))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value of the only header there is, as each of these names.
    fn found<const N: usize>(names: &[&'static str; N]) -> Vec<Option<usize>> {
        let lookup = |name: &&'static str| {
            let value = HeaderValue::from_static("v");
            let headers = HeaderMap::from_iter([(HeaderName::from_static(name), value)]);
            first_values(&headers, names).iter().position(Option::is_some)
        };
        names.iter().map(lookup).collect()
    }

    #[test]
    fn every_name_that_is_looked_for_is_found() {
        let all = |count: usize| (0..count).map(Some).collect::<Vec<_>>();
        assert_eq!(found(&SESSION_HEADERS), all(SESSION_HEADERS.len()));
        assert_eq!(found(&TIMEOUT_HEADERS), all(TIMEOUT_HEADERS.len()));
    }
}
