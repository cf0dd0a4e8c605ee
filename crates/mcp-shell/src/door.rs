//! The way of an HTTP request from a worker's thread to the MCP thread, and of the answer back.
//!
//! Rules kept here:
//! - What HTTP itself asks for is checked on the worker's thread: content types, body limit. The
//!   MCP thread gets whole messages only.
//! - The line to the MCP thread is bounded. When it is full the gateway says so at once.
//! - An answer is whole, or a stream with a bounded buffer: a client that does not read holds back
//!   its own stream and nothing else.
//!
//! Left to others: who may call (`caller`), host and origin (`data/guard.rs`), what a message means
//! (`front`).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use tidegate_gateway::caller::Caller;
use tidegate_net::{
    client_body::ClientBody,
    connection::RequestBody,
    read_body::{Refusal, read_body},
};
use tidegate_wire::error_body::OwnErrorKind;
use tokio::sync::{mpsc, oneshot};

use super::large::{Large, LargeReader};

/// The path of the one endpoint.
pub const PATH: &str = "/mcp";
/// The session's name, on requests and on the answer to `initialize`.
pub(crate) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// The protocol version that was agreed on.
pub(crate) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// Requests that may wait for the MCP thread.
const LINE: usize = 1024;
/// Events that may wait for a client's connection.
pub(crate) const STREAM_AHEAD: usize = 16;
/// A request that the MCP thread has not begun to answer by then is given up. Answers that take
/// longer are streams, which begin at once; a list waits for servers for seconds at most.
const ANSWER_WITHIN: Duration = Duration::from_secs(120);

/// When whoever was refused for want of room may try again, in seconds: calls end and sessions
/// become idle all the time.
const RETRY_AFTER_S: u32 = 5;

/// A request as the MCP thread sees it.
#[derive(Debug)]
pub struct Knock {
    pub(crate) method: Method,
    pub(crate) session: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) last_event: Option<String>,
    /// Both kinds of answers are accepted, and events were named first.
    pub(crate) prefers_events: bool,
    /// Every header that begins with `mcp-`, by its name in lower case.
    pub(crate) heads: Vec<(String, String)>,
    pub(crate) body: Bytes,
    /// Arguments that are not in the body.
    pub(crate) large: Option<Large>,
    pub(crate) caller: Arc<Caller>,
    pub(crate) answer: oneshot::Sender<Answer>,
}

/// What the MCP thread answers.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    /// The session that was opened.
    pub(crate) session: Option<String>,
    /// When to come back, for who was refused for want of room.
    pub(crate) retry_after: Option<u32>,
    pub(crate) body: AnswerBody,
}

/// The body of an answer.
#[derive(Debug)]
pub(crate) enum AnswerBody {
    Empty,
    Json(Bytes),
    Events(mpsc::Receiver<Bytes>),
}

impl Answer {
    pub(crate) fn empty(status: StatusCode) -> Self {
        Self { status, session: None, retry_after: None, body: AnswerBody::Empty }
    }

    pub(crate) fn json(status: StatusCode, body: impl Into<Bytes>) -> Self {
        Self { status, session: None, retry_after: None, body: AnswerBody::Json(body.into()) }
    }

    pub(crate) fn events(events: mpsc::Receiver<Bytes>) -> Self {
        let (status, body) = (StatusCode::OK, AnswerBody::Events(events));
        Self { status, session: None, retry_after: None, body }
    }

    /// There is no room for it now.
    pub(crate) fn busy(message: &str) -> Self {
        let answer = Self::json(StatusCode::SERVICE_UNAVAILABLE, refusal(message));
        Self { retry_after: Some(RETRY_AFTER_S), ..answer }
    }
}

/// What comes over the line.
#[derive(Debug)]
pub enum Arrived {
    /// A client's request.
    Knock(Knock),
    /// An operator wants a server probed now; whether it answered, if there is such a server.
    Probe { server: String, answer: oneshot::Sender<Option<bool>> },
}

/// A worker's end of the line.
#[derive(Clone, Debug)]
pub struct Door {
    line: mpsc::Sender<Arrived>,
    large: LargeReader,
}

/// The MCP thread's end of the line.
pub type Knocks = mpsc::Receiver<Arrived>;

/// A line.
pub fn line() -> (Door, Knocks) {
    let (line, knocks) = mpsc::channel(LINE);
    (Door { line, large: LargeReader::default() }, knocks)
}

impl Door {
    /// A refusal before anybody came to the door. Clients show their users what JSON-RPC says,
    /// and nothing of any other body.
    pub fn turn_away(error: OwnErrorKind, message: &str) -> Response<ClientBody> {
        let status = StatusCode::from_u16(error.row().status);
        refused(status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), message)
    }

    /// Answers a request for [`PATH`] whose caller is known.
    pub async fn answer(
        &self,
        (method, headers): (Method, &HeaderMap),
        body: RequestBody,
        caller: Arc<Caller>,
        body_max: u64,
    ) -> Response<ClientBody> {
        if let Err(Refusal { status, message }) = check(&method, headers) {
            return refused(status, message);
        }
        let body = if method == Method::POST {
            match read_body(headers, body, body_max).await {
                Ok(body) => body,
                Err(Refusal { status, message }) => return refused(status, message),
            }
        } else {
            Bytes::new()
        };
        let (body, large) = match tokio::time::timeout(ANSWER_WITHIN, self.large.read(body)).await {
            Ok(Ok(read)) => read,
            Ok(Err(answer)) => return rendered(answer),
            Err(_) => return rendered(Answer::busy("too many large requests; try again")),
        };
        let text =
            |name| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let (sender, answered) = oneshot::channel();
        let knock = Knock {
            method,
            session: text(SESSION),
            version: text(VERSION),
            last_event: text(LAST_EVENT),
            prefers_events: prefers_events(headers),
            heads: heads(headers),
            body,
            large,
            caller,
            answer: sender,
        };
        if self.line.try_send(Arrived::Knock(knock)).is_err() {
            return rendered(Answer::busy("the gateway is busy; try again"));
        }
        match tokio::time::timeout(ANSWER_WITHIN, answered).await {
            Ok(Ok(answer)) => rendered(answer),
            Ok(Err(_)) => refused(StatusCode::SERVICE_UNAVAILABLE, "the gateway is closing"),
            Err(_) => refused(StatusCode::GATEWAY_TIMEOUT, "the gateway took too long"),
        }
    }
}

impl Door {
    /// Probes a server now: whether it answered, if there is such a server.
    pub async fn probe(&self, server: &str) -> Option<bool> {
        let (sender, answered) = oneshot::channel();
        let arrived = Arrived::Probe { server: server.to_owned(), answer: sender };
        self.line.try_send(arrived).ok()?;
        tokio::time::timeout(ANSWER_WITHIN, answered).await.ok()?.ok()?
    }
}

/// The headers that repeat what a body says. One that cannot be read says what no body can.
fn heads(headers: &HeaderMap) -> Vec<(String, String)> {
    let named = headers.iter().filter(|(name, _)| name.as_str().starts_with("mcp-"));
    let text = |value: &HeaderValue| value.to_str().unwrap_or("\u{0}").to_owned();
    named.map(|(name, value)| (name.as_str().to_owned(), text(value))).collect()
}

/// Whether events are named before JSON. Their order obliges nobody, and pleases whoever wrote it.
fn prefers_events(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let ranges = values.flat_map(|value| value.split(','));
    let mut kinds = ranges.map(|range| range.split(';').next().unwrap_or_default().trim());
    let known = |kind: &&str| {
        ["application/json", "text/event-stream"].iter().any(|it| it.eq_ignore_ascii_case(kind))
    };
    kinds.find(known).is_some_and(|kind| kind.eq_ignore_ascii_case("text/event-stream"))
}

/// What HTTP asks for, before the body is read.
fn check(method: &Method, headers: &HeaderMap) -> Result<(), Refusal> {
    let accepts = |kind: &str| {
        let mut values = headers.get_all(header::ACCEPT).iter().peekable();
        // Nothing said is everything accepted (RFC 9110).
        values.peek().is_none()
            || values.filter_map(|value| value.to_str().ok()).flat_map(|it| it.split(',')).any(
                |range| {
                    let range = range.split(';').next().unwrap_or_default().trim();
                    let (family, _) = kind.split_once('/').unwrap_or_default();
                    range.eq_ignore_ascii_case(kind)
                        || range == "*/*"
                        || range
                            .strip_suffix("/*")
                            .is_some_and(|it| it.eq_ignore_ascii_case(family))
                },
            )
    };
    let not_acceptable = StatusCode::NOT_ACCEPTABLE;
    match *method {
        Method::POST if !headers.contains_key(header::CONTENT_TYPE) => Err(Refusal::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "send `content-type: application/json`",
        )),
        Method::POST if !(accepts("application/json") && accepts("text/event-stream")) => {
            Err(Refusal::new(not_acceptable, "send `accept: application/json, text/event-stream`"))
        }
        Method::GET if !accepts("text/event-stream") => {
            Err(Refusal::new(not_acceptable, "send `accept: text/event-stream`"))
        }
        Method::POST | Method::GET | Method::DELETE => Ok(()),
        _ => Err(Refusal::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "this path takes POST, GET and DELETE",
        )),
    }
}

/// A refusal, as JSON-RPC tells errors that belong to no request.
pub(crate) fn refused(status: StatusCode, message: &str) -> Response<ClientBody> {
    rendered(Answer::json(status, refusal(message)))
}

/// The body of a refusal.
pub(crate) fn refusal(message: &str) -> String {
    let error = serde_json::json!({ "code": -32600, "message": message });
    serde_json::json!({ "jsonrpc": "2.0", "error": error, "id": null }).to_string()
}

fn rendered(answer: Answer) -> Response<ClientBody> {
    let (kind, body) = match answer.body {
        AnswerBody::Empty => (None, ClientBody::empty()),
        AnswerBody::Json(bytes) => (Some("application/json"), bytes.into()),
        AnswerBody::Events(events) => (Some("text/event-stream"), ClientBody::Streaming(events)),
    };
    let mut response = Response::new(body);
    *response.status_mut() = answer.status;
    let headers = response.headers_mut();
    if let Some(kind) = kind {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    if kind == Some("text/event-stream") {
        // Proxies that buffer would hold progress back until there is nothing to tell any more.
        let name = HeaderName::from_static("x-accel-buffering");
        headers.insert(name, HeaderValue::from_static("no"));
    }
    if answer.status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(header::ALLOW, HeaderValue::from_static("POST, GET, DELETE"));
    }
    if let Some(seconds) = answer.retry_after {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    if let Some(value) = answer.session.and_then(|id| HeaderValue::try_from(id).ok()) {
        headers.insert(SESSION, value);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused_with(method: Method, pairs: &[(&'static str, &'static str)]) -> Option<u16> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        check(&method, &headers).err().map(|it| it.status.as_u16())
    }

    const JSON: (&str, &str) = ("content-type", "application/json");

    #[test]
    fn a_post_takes_both_kinds_of_answers_or_says_nothing_about_it() {
        let both = ("accept", "application/json;q=1, text/event-stream");
        assert_eq!(refused_with(Method::POST, &[JSON, both]), None);
        assert_eq!(refused_with(Method::POST, &[JSON]), None);
        assert_eq!(refused_with(Method::POST, &[JSON, ("accept", "*/*")]), None);
        assert_eq!(refused_with(Method::POST, &[JSON, ("accept", "application/json")]), Some(406));
        let two = [JSON, ("accept", "application/json"), ("accept", "text/*")];
        assert_eq!(refused_with(Method::POST, &two), None);
    }

    #[test]
    fn a_get_takes_events_and_other_methods_are_not_allowed() {
        assert_eq!(refused_with(Method::GET, &[("accept", "text/html")]), Some(406));
        assert_eq!(refused_with(Method::GET, &[("accept", "text/event-stream")]), None);
        assert_eq!(refused_with(Method::PUT, &[]), Some(405));
        assert_eq!(refused_with(Method::POST, &[]), Some(415));
    }
}
