//! A client's request, read whole and understood as far as routing needs.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use tidegate_core::time::Millis;

use super::guard::Refusal;
use crate::caller::Caller;

/// A client that sends nothing of its body for this long has gone.
const BODY_IDLE: Duration = Duration::from_secs(30);

/// Where a session's name may stand, in this order; the body is looked at last.
const SESSION_HEADERS: &[&str] = &[
    "x-tidegate-session",
    "x-claude-code-session-id",
    "x-session-id",
    "x-session-affinity",
    "session-id",
    "thread-id",
];
/// Where an SDK says how long it will wait, in seconds.
const TIMEOUT_HEADERS: &[&str] = &["x-stainless-read-timeout", "x-stainless-timeout"];

/// A request that is ready to be routed.
pub(crate) struct Inbound {
    pub(crate) id: String,
    pub(crate) path: String,
    pub(crate) query: Option<String>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) caller: Arc<Caller>,
}

impl Inbound {
    /// The session that the headers name.
    pub(crate) fn session(&self) -> Option<&str> {
        let named = |name: &&str| self.headers.get(*name)?.to_str().ok();
        SESSION_HEADERS.iter().find_map(named).filter(|session| !session.is_empty())
    }

    /// How long the client says it will wait.
    pub(crate) fn within(&self) -> Option<Millis> {
        let seconds = |name: &&str| self.headers.get(*name)?.to_str().ok()?.parse::<f64>().ok();
        let seconds = TIMEOUT_HEADERS.iter().find_map(seconds).filter(|it| *it > 0.0)?;
        Some(Millis::seconds(1).scaled(seconds))
    }
}

/// Reads a body to its end, at most `limit` bytes of it.
pub(crate) async fn read_body(
    headers: &HeaderMap,
    mut body: Incoming,
    limit: u64,
) -> Result<Bytes, Refusal> {
    const TOO_LARGE: Refusal = (StatusCode::PAYLOAD_TOO_LARGE, "the body is larger than allowed");
    const GONE: Refusal = (StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time");
    const BROKEN: Refusal = (StatusCode::BAD_REQUEST, "the body ended early");
    let coding = headers.get(header::CONTENT_ENCODING);
    if coding.is_some_and(|coding| coding != "identity") {
        return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, "send the body without content-encoding"));
    }
    if body.size_hint().lower() > limit {
        return Err(TOO_LARGE);
    }
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    loop {
        let frame = tokio::time::timeout(BODY_IDLE, body.frame()).await.map_err(|_| GONE)?;
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
    Ok(if rest.is_empty() { first } else { rest.freeze() })
}
