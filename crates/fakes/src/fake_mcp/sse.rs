//! A fake MCP server over the transport of the first revision (2024-11-05): one GET carries
//! everything it says, and names the address that messages are posted to.
//!
//! Rules kept here:
//! - The stream is the session: it begins with the GET and ends with it.
//! - A POST to the url itself is refused with 405, which is how a client learns that there is no
//!   newer transport; one that names a session it does not have as the script says (`lost`).
//! - A POST is taken with 202 before the request is carried out.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, Response, StatusCode};
use serde_json::Value;
use tidegate_runtime::task;

use super::FakeMcp;
use super::answer::{self, Plan, Reply};
use super::body::{Body, Cut, OnDrop};
use super::http::{HttpAnswer, accepts, carry_out, check_post, lost, opening, refused};
use super::script::Opening;
use super::talk::Talk;

/// The session that an address names.
pub(super) fn session_of(query: Option<&str>) -> Option<String> {
    let parts = query?.split('&');
    parts.into_iter().find_map(|part| part.strip_prefix("sessionId=")).map(str::to_owned)
}

/// Answers a request.
pub(super) async fn handle(
    fake: &Arc<FakeMcp>,
    method: Method,
    headers: &HeaderMap,
    session: Option<String>,
    message: Value,
) -> HttpAnswer {
    match (method, session) {
        (Method::GET, None) => Ok(get(fake, headers)),
        (Method::POST, Some(id)) => match fake.talk(&id) {
            Some(talk) => post(fake, headers, &talk, message).await,
            None => Ok(lost(fake, &message)),
        },
        _ => Ok(Body::status(StatusCode::METHOD_NOT_ALLOWED)),
    }
}

fn get(fake: &Arc<FakeMcp>, headers: &HeaderMap) -> Response<Body> {
    if !accepts(headers, "text/event-stream") {
        fake.record.breach("GET does not accept text/event-stream");
    }
    let version = fake.script.load().versions.first().cloned().unwrap_or_default();
    let talk = fake.begin(&version);
    let Some(outs) = talk.attach(0, None, false) else {
        return Body::status(StatusCode::INTERNAL_SERVER_ERROR);
    };
    let first = format!("event: endpoint\ndata: /mcp?sessionId={}\n\n", talk.id);
    let served = Arc::clone(fake);
    Body::events_from(first, outs, OnDrop::new(move || _ = served.end(&talk.id)))
}

async fn post(
    fake: &Arc<FakeMcp>,
    headers: &HeaderMap,
    talk: &Arc<Talk>,
    message: Value,
) -> HttpAnswer {
    check_post(fake, headers, &message);
    if message["method"] == "initialize" {
        return open(fake, talk, message);
    }
    let is_request = message["method"].is_string() && !message["id"].is_null();
    if !is_request {
        answer::hear(fake, talk, message);
        return Ok(taken());
    }
    match answer::plan(fake, &message) {
        Plan::Cut => Err(Cut),
        Plan::Status { status, retry_after } => Ok(refused(status, retry_after)),
        Plan::Answer(act) => {
            carry_out(fake, talk, 0, message, act, 0);
            Ok(taken())
        }
    }
}

/// Takes `initialize`; the answer comes over the stream, when the script says so.
fn open(fake: &Arc<FakeMcp>, talk: &Arc<Talk>, hello: Value) -> HttpAnswer {
    let script = fake.script.load_full();
    fake.record.opened(&talk.id, &hello);
    match script.opening {
        Opening::Status(status) => return Ok(refused(status, None)),
        Opening::Close => return Err(Cut),
        Opening::Answer | Opening::Slow(_) | Opening::Hang | Opening::Garbage => {}
    }
    let talk = Arc::clone(talk);
    task::spawn("fake hello", async move {
        if opening(&script).await.is_some() {
            return talk.tell("<html>hello</html>");
        }
        let reply = Reply::Result(answer::hello(&script, &answer::version(&script, &hello)));
        talk.tell(&answer::message(&hello["id"], &reply).unwrap_or_default());
    });
    Ok(taken())
}

fn taken() -> Response<Body> {
    Body::new(StatusCode::ACCEPTED, "text/plain", Bytes::from_static(b"Accepted"))
}
