//! The way of an HTTP request from a worker's thread to the MCP thread, and of the answer back.
//!
//! Rules kept here:
//! - What HTTP itself asks for is checked on the worker's thread: content types, body limit. The
//!   MCP thread gets whole messages only.
//! - The line to the MCP thread is bounded. When it is full the gateway says so at once.
//! - A 503 says that nothing was done about a request: whoever gets one may ask another replica. A
//!   request that the MCP thread took and did not answer may have been carried out, and gets a 502.
//! - A client that leaves before its answer has begun is told of, once; one that leaves a stream
//!   is told of by [`EventBody`].
//!
//! Left to others: who may call (`caller`), host and origin (`guard`), what a message means (the
//! Hub).

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use tidegate_mcp::{
    hub::{HttpMethod, LargeArguments, McpAnswer, McpAnswerBody, McpRequest, RequestToken},
    message::LARGE,
};
use tidegate_net::{
    client_body::ClientBody,
    connection::RequestBody,
    read_body::{Refusal, read_body},
};
use tidegate_wire::error_body::OwnErrorKind;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

use super::{
    event_body::{ClientNews, EventBody},
    fleet::{PeerAnswer, PeerAnswerHead, PeerBody, PeerRequest, SessionEvents},
    large::LargeReader,
};

/// The path of the one endpoint.
pub const PATH: &str = "/mcp";
/// The session's name, on requests and on the answer to `initialize`.
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// The protocol version that was agreed on.
pub(crate) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// Requests that may wait for the MCP thread.
const LINE: usize = 1024;
/// A request that the MCP thread has not begun to answer by then is given up. Answers that take
/// longer are streams, which begin at once; a list waits for servers for seconds at most.
const ANSWER_WITHIN: Duration = Duration::from_secs(120);

/// What is said to whoever asks when it is too late.
const CLOSING: &str = "the gateway is closing; try again";
/// What is said where the MCP thread took a request and ended before it answered.
const UNANSWERED: &str = "the gateway ended before the answer came; the result is unknown";

/// What the MCP thread answers. Events are beside the head.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) answer: McpAnswer,
    pub(crate) events: Option<AnswerEvents>,
}

impl Answered {
    /// An answer without events.
    fn whole(answer: McpAnswer) -> Self {
        Self { answer, events: None }
    }
}

/// The events of an answer.
#[derive(Debug)]
pub(crate) enum AnswerEvents {
    /// All there will be.
    All(VecDeque<Bytes>),
    /// More may follow.
    Stream(EventBody),
}

/// What comes over the line.
#[derive(Debug)]
pub(crate) enum Arrived {
    /// A client's request.
    Request { request: Box<McpRequest>, answer: oneshot::Sender<Answered>, came: Came },
    /// An operator wants a server probed now; whether it answered, if there is such a server.
    Probe { token: RequestToken, server: Arc<str>, answer: oneshot::Sender<Option<bool>> },
}

impl Arrived {
    /// Nothing was done about it, and nothing will be.
    pub(crate) fn refuse(self) {
        if let Self::Request { answer, came, .. } = self {
            // Its client may have left.
            drop(answer.send(came.untaken(CLOSING)));
        }
    }
}

/// Where a request came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Came {
    /// A client of this replica.
    Here,
    /// Another replica handed it on. It is not handed on again.
    FromPeer,
}

impl Came {
    /// The answer to a request about which nothing was done, for this reason.
    fn untaken(self, reason: &str) -> Answered {
        Answered::whole(match self {
            Self::Here => McpAnswer::busy(reason),
            // Whoever asks looks the session up again.
            Self::FromPeer => McpAnswer::empty(NOT_MINE),
        })
    }
}

/// The status of what another replica asked for and is not here. Nobody else ever sees it.
pub(crate) const NOT_MINE: u16 = 421;

/// A worker's end of the line.
#[derive(Clone, Debug)]
pub struct McpHandle {
    line: mpsc::Sender<Arrived>,
    /// Bounded by the requests and streams there are: each says one thing at the end.
    news: mpsc::UnboundedSender<ClientNews>,
    tokens: Arc<AtomicU64>,
    large: LargeReader,
}

/// The MCP thread's end of the line.
#[derive(Debug)]
pub struct Arrivals {
    pub(crate) line: mpsc::Receiver<Arrived>,
    pub(crate) clients: NewsOfClients,
}

/// What is heard of clients whose requests have arrived.
#[derive(Debug)]
pub(crate) struct NewsOfClients {
    pub(crate) sender: mpsc::UnboundedSender<ClientNews>,
    pub(crate) heard: mpsc::UnboundedReceiver<ClientNews>,
}

impl Default for NewsOfClients {
    fn default() -> Self {
        let (sender, heard) = mpsc::unbounded_channel();
        Self { sender, heard }
    }
}

/// A line.
#[must_use]
pub fn line() -> (McpHandle, Arrivals) {
    let (line, arrived) = mpsc::channel(LINE);
    let clients = NewsOfClients::default();
    let (news, tokens) = (clients.sender.clone(), Arc::default());
    let handle = McpHandle { line, news, tokens, large: LargeReader::default() };
    (handle, Arrivals { line: arrived, clients })
}

impl McpHandle {
    /// A refusal before the MCP thread hears of a request. Clients show their users what JSON-RPC
    /// says, and nothing of any other body.
    #[must_use]
    pub fn refuse(error: OwnErrorKind, message: &str) -> Response<ClientBody> {
        rendered_refusal(error.row().status, message)
    }

    /// Answers a request for [`PATH`] of a caller of this name.
    pub async fn answer(
        &self,
        (method, headers): (Method, &HeaderMap),
        body: RequestBody,
        caller: Arc<str>,
        body_max: u64,
    ) -> Response<ClientBody> {
        let method = match check(&method, headers) {
            Ok(method) => method,
            Err(Refusal { status, message }) => return rendered_refusal(status.as_u16(), message),
        };
        let body = if method == HttpMethod::Post {
            match read_body(headers, body, body_max).await {
                Ok(body) => body,
                Err(Refusal { status, message }) => {
                    return rendered_refusal(status.as_u16(), message);
                }
            }
        } else {
            Bytes::new()
        };
        let (body, large) = match self.set_aside(body).await {
            Ok(read) => read,
            Err(answer) => return rendered(answer, None),
        };
        let text =
            |name| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let request = Box::new(McpRequest {
            token: self.token(),
            method,
            session: text(SESSION),
            version: text(VERSION),
            last_event: text(LAST_EVENT),
            prefers_events: prefers_events(headers),
            headers: mcp_headers(headers),
            body,
            large,
            caller,
        });
        let Answered { answer, events } = self.ask(request, Came::Here).await;
        rendered(answer, events)
    }

    /// Answers a request that another replica hands on; none if what it is about is not here.
    pub async fn answer_peer(&self, request: PeerRequest) -> Option<PeerAnswer> {
        let PeerRequest { head, body } = request;
        let whole = |answer: McpAnswer| {
            let head = PeerAnswerHead {
                status: answer.status,
                retry_after: answer.retry_after,
                is_events: false,
            };
            let body = match answer.body {
                McpAnswerBody::Json(bytes) => Some(bytes),
                McpAnswerBody::Empty | McpAnswerBody::Events(_) => None,
            };
            Some(PeerAnswer { head, body: PeerBody::Whole(body) })
        };
        let (body, large) = match self.set_aside(body).await {
            Ok(read) => read,
            Err(answer) => return whole(answer),
        };
        let request = McpRequest { large, ..McpRequest::post(self.token(), body) };
        let request = Box::new(head.into_request(request)?);
        match self.ask(request, Came::FromPeer).await {
            Answered { answer, .. } if answer.status == NOT_MINE => None,
            Answered { answer, events: Some(events) } => {
                let head =
                    PeerAnswerHead { status: answer.status, retry_after: None, is_events: true };
                let body = match events {
                    AnswerEvents::All(events) => PeerBody::Whole(Some(joined(events))),
                    AnswerEvents::Stream(events) => {
                        PeerBody::Events(Box::new(SessionEvents(events)))
                    }
                };
                Some(PeerAnswer { head, body })
            }
            Answered { answer, events: None } => whole(answer),
        }
    }

    /// Hands a request over and waits: what the MCP thread answers, or what is said in its place.
    async fn ask(&self, request: Box<McpRequest>, came: Came) -> Answered {
        let (sender, answered) = oneshot::channel();
        let mut waiting = Waiting { token: Some(request.token), news: &self.news };
        if let Err(refused) = self.line.try_send(Arrived::Request { request, answer: sender, came })
        {
            waiting.token = None;
            return came.untaken(match refused {
                TrySendError::Full(_) => "the gateway is busy; try again",
                TrySendError::Closed(_) => CLOSING,
            });
        }
        let answered = tokio::time::timeout(ANSWER_WITHIN, answered).await;
        let Ok(answered) = answered else {
            return Answered::whole(McpAnswer::refusal(504, "the gateway took too long"));
        };
        waiting.token = None;
        // Without an answer the MCP thread has ended.
        answered.unwrap_or_else(|_| Answered::whole(McpAnswer::refusal(502, UNANSWERED)))
    }

    /// The body as the MCP thread is to see it, and what was set aside of it.
    async fn set_aside(&self, body: Bytes) -> Result<(Bytes, Option<LargeArguments>), McpAnswer> {
        if body.len() <= LARGE {
            return Ok((body, None));
        }
        let busy = |_| McpAnswer::busy("too many large requests; try again");
        tokio::time::timeout(ANSWER_WITHIN, self.large.read(body)).await.map_err(busy)?
    }

    /// Probes a server now: whether it answered, if there is such a server.
    pub async fn probe(&self, server: &str) -> Option<bool> {
        let (sender, answered) = oneshot::channel();
        let (token, server) = (self.token(), Arc::from(server));
        self.line.try_send(Arrived::Probe { token, server, answer: sender }).ok()?;
        tokio::time::timeout(ANSWER_WITHIN, answered).await.ok()?.ok()?
    }

    fn token(&self) -> RequestToken {
        RequestToken(self.tokens.fetch_add(1, Ordering::Relaxed))
    }
}

/// A request without an answer yet. Dropped before one came: its client has left.
struct Waiting<'a> {
    token: Option<RequestToken>,
    news: &'a mpsc::UnboundedSender<ClientNews>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(request) = self.token {
            // The MCP thread may have ended.
            drop(self.news.send(ClientNews::RequestGone(request)));
        }
    }
}

/// The headers that repeat what a body says. One that cannot be read says what no body can.
fn mcp_headers(headers: &HeaderMap) -> Vec<(String, String)> {
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
fn check(method: &Method, headers: &HeaderMap) -> Result<HttpMethod, Refusal> {
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
        Method::POST => Ok(HttpMethod::Post),
        Method::GET => Ok(HttpMethod::Get),
        Method::DELETE => Ok(HttpMethod::Delete),
        _ => Err(Refusal::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "this path takes POST, GET and DELETE",
        )),
    }
}

/// Events as one piece.
fn joined(events: VecDeque<Bytes>) -> Bytes {
    match Vec::from(events).as_slice() {
        [event] => event.clone(),
        events => events.concat().into(),
    }
}

/// A refusal, as JSON-RPC tells errors that belong to no request.
fn rendered_refusal(status: u16, message: &str) -> Response<ClientBody> {
    rendered(McpAnswer::refusal(status, message), None)
}

fn rendered(answer: McpAnswer, events: Option<AnswerEvents>) -> Response<ClientBody> {
    let (kind, body) = match (answer.body, events) {
        (McpAnswerBody::Json(bytes), _) => (Some("application/json"), bytes.into()),
        (McpAnswerBody::Events(_), Some(events)) => {
            let body = match events {
                AnswerEvents::All(events) => ClientBody::Whole(events),
                AnswerEvents::Stream(events) => ClientBody::Passing(Box::new(events)),
            };
            (Some("text/event-stream"), body)
        }
        (McpAnswerBody::Empty | McpAnswerBody::Events(_), _) => (None, ClientBody::empty()),
    };
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = Response::new(body);
    *response.status_mut() = status;
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
    if status == StatusCode::METHOD_NOT_ALLOWED {
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

    #[tokio::test]
    async fn a_request_that_was_taken_is_never_said_to_be_undone() {
        async fn answer(came: Came, do_with: impl FnOnce(Arrived)) -> (u16, bool) {
            let (handle, mut arrivals) = line();
            let request = Box::new(McpRequest::post(handle.token(), Bytes::new()));
            let taken = async { do_with(arrivals.line.recv().await.expect("it arrives")) };
            let (Answered { answer, .. }, ()) = tokio::join!(handle.ask(request, came), taken);
            (answer.status, answer.retry_after.is_some())
        }
        assert_eq!(answer(Came::Here, Arrived::refuse).await, (503, true));
        assert_eq!(answer(Came::FromPeer, Arrived::refuse).await, (NOT_MINE, false));
        for came in [Came::Here, Came::FromPeer] {
            assert_eq!(answer(came, drop).await, (502, false), "nobody knows what was done");
        }
    }

    #[test]
    fn a_get_takes_events_and_other_methods_are_not_allowed() {
        assert_eq!(refused_with(Method::GET, &[("accept", "text/html")]), Some(406));
        assert_eq!(refused_with(Method::GET, &[("accept", "text/event-stream")]), None);
        assert_eq!(refused_with(Method::PUT, &[]), Some(405));
        assert_eq!(refused_with(Method::POST, &[]), Some(415));
    }
}
