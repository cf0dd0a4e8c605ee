//! A client's request, read whole and understood as far as routing needs.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use http_body_util::BodyExt;
use hyper::body::Body;
use tidegate_core::time::Millis;
use tidegate_wire::{form, head::RequestHead, json::What};
use tokio::time::{Instant, timeout_at};

use super::{content_encoding::ContentEncoding, guard::Refusal};
use crate::{caller::Caller, connection::RequestBody};

/// A client that sends nothing of its body for this long has gone.
const BODY_IDLE: Duration = Duration::from_secs(30);
/// And one that sends so little each second, in the long run, only means to keep us busy (S48).
const BODY_RATE: u64 = 1024;

/// Where a session's name may stand, in this order; the body is looked at last.
static SESSION_HEADERS: [HeaderName; 6] = [
    HeaderName::from_static("x-tidegate-session"),
    HeaderName::from_static("x-claude-code-session-id"),
    HeaderName::from_static("x-session-id"),
    HeaderName::from_static("x-session-affinity"),
    HeaderName::from_static("session-id"),
    HeaderName::from_static("thread-id"),
];
/// Where an SDK says how long it will wait, in seconds.
static TIMEOUT_HEADERS: [HeaderName; 2] = [
    HeaderName::from_static("x-stainless-read-timeout"),
    HeaderName::from_static("x-stainless-timeout"),
];

/// Where gateways say that a request has passed them.
pub(crate) const PASSED: HeaderName = HeaderName::from_static("x-tidegate-passed");
/// More gateways in a row than anybody sets up on purpose, at 18 bytes each.
const PASSED_MAX: usize = 160;

/// The gateways that a request has passed, and this one; `None` if it is among them already, or if
/// there are too many (S58).
pub(crate) fn passed(headers: &HeaderMap, own: &HeaderValue) -> Option<HeaderValue> {
    let mut marks = Vec::new();
    for before in headers.get_all(PASSED) {
        let is_ours = memchr::memmem::find(before.as_bytes(), own.as_bytes()).is_some();
        if is_ours || marks.len() + before.len() > PASSED_MAX {
            return None;
        }
        marks.extend_from_slice(before.as_bytes());
        marks.extend_from_slice(b", ");
    }
    marks.extend_from_slice(own.as_bytes());
    HeaderValue::try_from(marks).ok()
}

/// A request that is ready to be routed.
pub(crate) struct Inbound {
    pub(crate) id: String,
    pub(crate) path: String,
    pub(crate) query: Option<String>,
    pub(crate) headers: HeaderMap,
    /// The gateways this request has passed, this one last.
    pub(crate) passed: HeaderValue,
    pub(crate) body: Bytes,
    pub(crate) caller: Arc<Caller>,
}

impl Inbound {
    /// What the body says, as far as routing needs it; if it cannot be read, why.
    pub(crate) fn head(&self) -> Result<RequestHead<'_>, String> {
        let content_type = self.headers.get(header::CONTENT_TYPE).map(|it| it.as_bytes());
        match content_type.and_then(form::boundary) {
            Some(boundary) => boundary
                .and_then(|boundary| RequestHead::read_form(&self.body, boundary))
                .map_err(|fault| fault.to_string()),
            None => RequestHead::read(&self.body).map_err(|fault| match fault.what {
                What::GivenTwice(_)
                | What::WrongType { .. }
                | What::LoneSurrogate(_)
                | What::NotAnObject => fault.to_string(),
                _ => format!("the body is not valid JSON: {fault}"),
            }),
        }
    }

    /// The session that the headers name.
    pub(crate) fn session(&self) -> Option<&str> {
        let named = |name: &HeaderName| self.headers.get(name)?.to_str().ok();
        SESSION_HEADERS.iter().find_map(named).filter(|session| !session.is_empty())
    }

    /// How long the client says it waits for the first byte. What cannot be read, or is less than
    /// a second, is ignored.
    pub(crate) fn patience(&self) -> Option<Millis> {
        let seconds = |name: &HeaderName| {
            let seconds = self.headers.get(name)?.to_str().ok()?.trim().parse::<f64>().ok()?;
            (seconds.is_finite() && seconds >= 1.0).then_some(seconds)
        };
        Some(Millis::seconds(1).scaled(TIMEOUT_HEADERS.iter().find_map(seconds)?))
    }
}

/// Until when the next bytes of a body are awaited, of which so many have come.
fn patience(began: Instant, now: Instant, len: usize) -> Instant {
    let earned = Duration::from_secs(len as u64 / BODY_RATE);
    (began + BODY_IDLE + earned).min(now + BODY_IDLE)
}

pub(super) const TOO_LARGE: Refusal =
    (StatusCode::PAYLOAD_TOO_LARGE, "the body is larger than allowed");

/// Reads a body to its end, at most `limit` bytes of it, and undoes its compression within the same
/// limit.
pub(crate) async fn read_body(
    headers: &HeaderMap,
    mut body: RequestBody,
    limit: u64,
) -> Result<Bytes, Refusal> {
    const GONE: Refusal = (StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time");
    const BROKEN: Refusal = (StatusCode::BAD_REQUEST, "the body ended early");
    let encoding = ContentEncoding::of(headers)?;
    if body.size_hint().lower() > limit {
        return Err(TOO_LARGE);
    }
    let began = Instant::now();
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    loop {
        let until = patience(began, Instant::now(), first.len() + rest.len());
        let frame = timeout_at(until, body.frame()).await.map_err(|_| GONE)?;
        let Some(frame) = frame else { break };
        let Ok(data) = frame.map_err(|_| BROKEN)?.into_data() else { continue };
        if (first.len() + rest.len() + data.len()) as u64 > limit {
            return Err(TOO_LARGE);
        }
        // Most bodies come in one frame, which is used as it is.
        if first.is_empty() && rest.is_empty() {
            first = data;
        } else {
            if rest.is_empty() {
                rest.extend_from_slice(&first);
                first = Bytes::new();
            }
            rest.extend_from_slice(&data);
        }
    }
    let whole = if rest.is_empty() { first } else { rest.freeze() };
    encoding.removed_from(whole, limit).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s48_a_body_in_drops_runs_out_of_patience_and_a_slow_one_does_not() {
        let began = Instant::now();
        let at = |seconds| began + Duration::from_secs(seconds);
        assert_eq!(patience(began, at(0), 0), at(30));
        assert_eq!(patience(began, at(29), 3), at(30), "a byte now and then earns nothing");
        assert_eq!(patience(began, at(100), 1 << 20), at(130), "ten KiB a second are welcome");
    }

    #[test]
    fn s58_a_request_that_was_here_before_is_known() {
        let own = HeaderValue::from_static("00000000000000aa");
        let sent =
            |text: &'static str| HeaderMap::from_iter([(PASSED, HeaderValue::from_static(text))]);
        assert_eq!(passed(&HeaderMap::new(), &own), Some(own.clone()));
        let both = HeaderValue::from_static("00000000000000bb, 00000000000000aa");
        assert_eq!(passed(&sent("00000000000000bb"), &own), Some(both));
        assert_eq!(passed(&sent("00000000000000aa, 00000000000000bb"), &own), None);
        let mut two = sent("00000000000000bb");
        two.append(PASSED, HeaderValue::from_static("00000000000000cc"));
        let all = "00000000000000bb, 00000000000000cc, 00000000000000aa";
        assert_eq!(passed(&two, &own), Some(HeaderValue::from_static(all)));
        two.append(PASSED, own.clone());
        assert_eq!(passed(&two, &own), None, "every mark is read");
        let mut many = HeaderMap::new();
        for _ in 0..20 {
            many.append(PASSED, HeaderValue::from_static("00000000000000bb"));
        }
        assert_eq!(passed(&many, &own), None, "their number is bounded");
    }
}
