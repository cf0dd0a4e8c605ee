//! A fake MCP server over HTTP, on any stream of bytes: here Streamable HTTP with sessions; the
//! transport before it (`sse`) and the era after it (`stateless`) have files of their own.
//!
//! Rules kept here:
//! - A request is carried out in a task of its own: a client that goes away has cancelled nothing.
//! - The head of a stream of events is sent at once, whatever the request is waiting for.
//! - What the protocol forbids a client is noted (`record.rs`) and, where the protocol says so,
//!   refused.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tidegate_runtime::task;
use tokio::io::{AsyncRead, AsyncWrite};

use super::FakeMcp;
use super::answer::{self, Plan, Reply};
use super::body::{Body, Cut};
use super::record::Received;
use super::script::{Era, Lost, McpScript, Opening, Transport};
use super::talk::{Out, Talk};
use super::{sse, stateless};

/// The largest message taken: twice what the gateway lets through.
const MAX_BODY: usize = 64 << 20;

pub(super) const SESSION: &str = "mcp-session-id";
pub(super) const VERSION: &str = "mcp-protocol-version";

/// What a request over HTTP comes to.
pub(super) type HttpAnswer = Result<Response<Body>, Cut>;

/// Serves one connection until it ends or the server dies.
pub(crate) async fn serve<T>(io: T, fake: Arc<FakeMcp>)
where
    T: AsyncRead + AsyncWrite + Unpin + 'static,
{
    if !fake.is_up() {
        return;
    }
    let connection = CountedConnection { number: fake.record.connect(), fake: Arc::clone(&fake) };
    let number = connection.number;
    let served = Arc::clone(&fake);
    let service = service_fn(move |request| Box::pin(handle(Arc::clone(&served), number, request)));
    let driver = http1::Builder::new().serve_connection(TokioIo::new(io), service);
    tokio::select! {
        // How it ended is the client's business.
        ended = driver => drop(ended),
        () = fake.death() => {}
    }
}

/// McpCounts a connection for as long as it lives.
struct CountedConnection {
    number: u64,
    fake: Arc<FakeMcp>,
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        self.fake.record.disconnect();
    }
}

async fn handle(fake: Arc<FakeMcp>, connection: u64, request: Request<Incoming>) -> HttpAnswer {
    let (head, body) = request.into_parts();
    let Ok(body) = Limited::new(body, MAX_BODY).collect().await else { return Err(Cut) };
    let body = body.to_bytes();
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let session = head.headers.get(SESSION).map(text);
    let script = fake.script.load_full();
    let session = match script.transport {
        Transport::Streamable => session,
        Transport::Sse => sse::session_of(head.uri.query()),
    };
    fake.record.keep(Received {
        at_ms: fake.started.elapsed().as_millis() as u64,
        connection,
        verb: head.method.to_string(),
        session: session.clone(),
        client: None,
        headers: head.headers.iter().map(|(name, it)| (name.to_string(), text(it))).collect(),
        method: message["method"].as_str().map(str::to_owned),
        message: message.clone(),
        text: String::from_utf8_lossy(&body).into_owned(),
    });
    let wanted = script.authorization.clone();
    if wanted.is_some() && head.headers.get(header::AUTHORIZATION).map(text) != wanted {
        return Ok(unauthorized());
    }
    if head.method == Method::POST && stateless::claims(&script, Some(&head.headers), &message) {
        check_post(&fake, &head.headers, &message);
        return stateless::post(&fake, &head.headers, message).await;
    }
    if script.era == Era::Stateless {
        return Ok(Body::status(StatusCode::METHOD_NOT_ALLOWED));
    }
    if script.transport == Transport::Sse {
        return sse::handle(&fake, head.method, &head.headers, session, message).await;
    }
    match head.method {
        Method::POST => post(&fake, &head.headers, session, message).await,
        Method::GET => Ok(get(&fake, &head.headers, session)),
        Method::DELETE => Ok(match session {
            Some(id) if fake.end(&id) => Body::status(StatusCode::OK),
            Some(_) => Body::status(StatusCode::NOT_FOUND),
            None => Body::status(StatusCode::BAD_REQUEST),
        }),
        _ => Ok(Body::status(StatusCode::METHOD_NOT_ALLOWED)),
    }
}

async fn post(
    fake: &Arc<FakeMcp>,
    headers: &HeaderMap,
    session: Option<String>,
    message: Value,
) -> HttpAnswer {
    check_post(fake, headers, &message);
    if message["jsonrpc"] != "2.0" {
        let body = json!({"jsonrpc": "2.0", "id": null,
            "error": {"code": -32600, "message": "Invalid Request"}});
        return Ok(Body::json(StatusCode::BAD_REQUEST, body.to_string()));
    }
    if message["method"] == "initialize" {
        if session.is_some() {
            fake.record.breach("initialize came with a session id");
        }
        return open(fake, &message).await;
    }
    let Some(talk) = find(fake, session.as_deref()) else { return Ok(lost(fake, &message)) };
    check_version(fake, headers, &talk, &message);
    let is_request = message["method"].is_string() && !message["id"].is_null();
    if !is_request {
        answer::hear(fake, &talk, message);
        return Ok(Body::status(StatusCode::ACCEPTED));
    }
    match answer::plan(fake, &message) {
        Plan::Cut => Err(Cut),
        Plan::Status { status, retry_after } => Ok(refused(status, retry_after)),
        Plan::Answer(act) => {
            let script = fake.script.load();
            let (answers_json, primes) = (script.answers_json, script.primes);
            drop(script);
            let stream = talk.open();
            let outs = talk.attach(stream, None, primes && !answers_json);
            let Some(mut outs) = outs else { return Err(Cut) };
            carry_out(fake, &talk, stream, message, act, if answers_json { 0 } else { stream });
            if !answers_json {
                return Ok(Body::events(outs, primes));
            }
            match outs.recv().await {
                Some(Out::Message(_, text)) => Ok(Body::json(StatusCode::OK, text)),
                _ => Err(Cut),
            }
        }
    }
}

/// Answers a request in a task of its own, onto its stream; what is said before goes to `before`.
pub(super) fn carry_out(
    fake: &Arc<FakeMcp>,
    talk: &Arc<Talk>,
    stream: u64,
    request: Value,
    act: Option<super::tool::ToolAct>,
    before: u64,
) {
    let (fake, talk) = (Arc::clone(fake), Arc::clone(talk));
    task::spawn("fake answer", async move {
        let reply = answer::answer(&fake, &talk, before, &request, act).await;
        match answer::message(&request["id"], &reply) {
            Some(text) => talk.say(stream, &text),
            None if matches!(reply, Reply::Cut) => talk.cut(stream),
            None => {}
        }
        talk.finish(stream);
    });
}

/// What happens instead of the answer that opens a conversation; none if it is to be given.
pub(super) async fn opening(script: &McpScript) -> Option<HttpAnswer> {
    match script.opening {
        Opening::Answer => None,
        Opening::Slow(ms) => {
            answer::wait(ms).await;
            None
        }
        Opening::Hang => std::future::pending().await,
        Opening::Status(status) => Some(Ok(refused(status, None))),
        Opening::Garbage => Some(Ok(Body::json(StatusCode::OK, "<html>hello</html>".to_owned()))),
        Opening::Close => Some(Err(Cut)),
    }
}

async fn open(fake: &Arc<FakeMcp>, hello: &Value) -> HttpAnswer {
    let script = fake.script.load_full();
    if let Some(instead) = opening(&script).await {
        return instead;
    }
    let version = answer::version(&script, hello);
    let talk = fake.begin(&version);
    fake.record.opened(&talk.id, hello);
    let reply = Reply::Result(answer::hello(&script, &version));
    let text = answer::message(&hello["id"], &reply).unwrap_or_default();
    let mut response =
        if script.answers_json { Body::json(StatusCode::OK, text) } else { Body::one_event(&text) };
    if script.has_sessions
        && let Ok(id) = HeaderValue::try_from(&talk.id)
    {
        response.headers_mut().insert(SESSION, id);
    }
    Ok(response)
}

fn get(fake: &Arc<FakeMcp>, headers: &HeaderMap, session: Option<String>) -> Response<Body> {
    let script = fake.script.load();
    if !script.has_get_stream {
        return Body::status(StatusCode::METHOD_NOT_ALLOWED);
    }
    if !accepts(headers, "text/event-stream") {
        fake.record.breach("GET does not accept text/event-stream");
    }
    let Some(talk) = find(fake, session.as_deref()) else { return lost(fake, &Value::Null) };
    check_version(fake, headers, &talk, &Value::Null);
    let last = headers.get("last-event-id").and_then(|it| it.to_str().ok());
    let place = last.and_then(|id| id.split_once('-'));
    let place = place.and_then(|(stream, at)| Some((stream.parse().ok()?, at.parse().ok()?)));
    let (stream, after) = place.map_or((0, None), |(stream, at): (u64, u64)| (stream, Some(at)));
    match talk.attach(stream, after, script.primes) {
        Some(outs) => Body::events(outs, script.primes),
        None => Body::status(StatusCode::NOT_FOUND),
    }
}

/// The conversation a request belongs to.
fn find(fake: &FakeMcp, session: Option<&str>) -> Option<Arc<Talk>> {
    match session {
        Some(id) => fake.talk(id),
        None if fake.script.load().has_sessions => None,
        None => fake.talk(""),
    }
}

pub(super) fn lost(fake: &FakeMcp, message: &Value) -> Response<Body> {
    let (status, code, text) = match fake.script.load().lost {
        Lost::NotFound => (StatusCode::NOT_FOUND, -32001, "Session not found"),
        Lost::BadRequest => {
            (StatusCode::BAD_REQUEST, -32000, "Bad Request: No valid session ID provided")
        }
        Lost::RpcError => (StatusCode::OK, -32001, "Session not found"),
    };
    let error = json!({"code": code, "message": text});
    // A server that refuses a session does not look at the request; one that answers it does.
    let id = if status == StatusCode::OK { message["id"].clone() } else { Value::Null };
    Body::json(status, json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string())
}

fn unauthorized() -> Response<Body> {
    let mut response = Body::status(StatusCode::UNAUTHORIZED);
    let challenge = HeaderValue::from_static("Bearer error=\"invalid_token\"");
    response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    response
}

pub(super) fn refused(status: u16, retry_after: Option<String>) -> Response<Body> {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = Body::new(status, "text/plain", Bytes::from_static(b"not today"));
    if let Some(value) = retry_after.and_then(|it| HeaderValue::try_from(it).ok()) {
        response.headers_mut().insert(header::RETRY_AFTER, value);
    }
    response
}

pub(super) fn accepts(headers: &HeaderMap, kind: &str) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|it| it.to_str().ok());
    accept.is_some_and(|accept| accept.contains(kind))
}

pub(super) fn check_post(fake: &FakeMcp, headers: &HeaderMap, message: &Value) {
    for kind in ["application/json", "text/event-stream"] {
        if !accepts(headers, kind) {
            fake.record.breach(format!("POST does not accept {kind}"));
        }
    }
    let kind = headers.get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok());
    if !kind.is_some_and(|kind| kind.starts_with("application/json")) {
        fake.record.breach(format!("POST is of type {kind:?}"));
    }
    if message.is_array() {
        fake.record.breach("a batch came");
    }
}

/// A client says which revision it speaks, since there is a header for it.
fn check_version(fake: &FakeMcp, headers: &HeaderMap, talk: &Talk, message: &Value) {
    let said = headers.get(VERSION).and_then(|it| it.to_str().ok());
    let is_right = match said {
        Some(said) => said == talk.version,
        None => talk.version.as_str() < "2025-06-18",
    };
    if !is_right {
        let (method, version) = (&message["method"], &talk.version);
        fake.record.breach(format!("{method} says version {said:?}, agreed was {version}"));
    }
}
