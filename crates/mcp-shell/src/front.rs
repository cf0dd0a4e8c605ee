//! What becomes of one HTTP request for `/mcp`, in order: the message, the session, the answer.
//!
//! | request | answer |
//! |---|---|
//! | POST `initialize` | at once, with a new session; no server is waited for |
//! | POST of a list, `ping`, `logging/setLevel` | JSON, or a stream where that is preferred |
//! | POST of a request that a server answers | a stream: what the server says, then its answer |
//! | POST of a notification or an answer | 202 |
//! | GET | the standing stream, or the rest of one that was lost (`last-event-id`) |
//! | DELETE | the session ends |
//!
//! Rules kept here:
//! - An unknown session is 404, whoever's it may be; so is one of another caller (S31).
//! - Losing a connection is not cancelling, as long as the client can come back: it has seen an
//!   event. Otherwise nobody could ever read the answer, and the call is cancelled.
//!
//! `stateless` has the requests of the era without sessions; `parked` its calls that wait for their
//! client.

pub(crate) mod parked;
mod stateless;

use std::rc::Rc;

use http::{Method, StatusCode};
use serde_json::value::RawValue;
use tidegate_mcp::{
    listing::Kind,
    message::{
        self, Fault, INVALID_PARAMS, Id, METHOD_NOT_FOUND, Message, Params, Version, error_object,
        is_batch, made, parse_batch,
    },
    raw::quoted,
    stateless::{VERSION, belongs, stands_alone},
};
use tidegate_runtime::task;

use super::{
    client::{Client, cancelled_id},
    door::{Answer, Knock, refusal},
    hub::{CallTurn, Hub},
    large::Large,
    link::Ask,
    party::{Cancelled, Desk},
    relay::{Asked, Made, Relayed, busy, relay},
    search,
    stream::{Gone, Stream, Weight},
};

/// Answers one request.
pub(crate) async fn answer(hub: Rc<Hub>, knock: Knock) {
    let Knock { method, session, version, last_event, prefers_events, .. } = knock;
    let Knock { heads, body, large, caller, answer, .. } = knock;
    // What a caller may use is asked at every request.
    hub.follow();
    if method != Method::POST && session.is_none() && version.as_deref() == Some(VERSION) {
        let message = "this version of the protocol has requests by POST only";
        let refused = Answer::json(StatusCode::METHOD_NOT_ALLOWED, refusal(message));
        return drop(answer.send(refused));
    }
    if method == Method::POST
        && let Ok(message) = Message::parse(&body)
    {
        // A request that says for itself that it stands alone does, whatever session it names.
        let is_stateless = |method: &str, params: Option<&RawValue>| match session {
            None => belongs(method, params, version.as_deref()),
            Some(_) => stands_alone(params),
        };
        match message {
            Message::Request { id, method, params } if is_stateless(&method, params) => {
                let (heads, large) = (&heads, large.as_ref());
                let request = stateless::Request { id, method: &method, params, heads, large };
                return stateless::serve(&hub, request, &caller, answer).await;
            }
            // That era knows no notifications of clients; whoever sends one is not bothered.
            Message::Notification { method, params } if is_stateless(&method, params) => {
                return drop(answer.send(Answer::empty(StatusCode::ACCEPTED)));
            }
            _ => {}
        }
    }
    let visitor = Visitor { hub: &hub, session, version, prefers_events, large, caller };
    let made = match method {
        Method::POST => visitor.post(&body).await,
        Method::GET => visitor.get(last_event.as_deref()),
        _ => visitor.delete(),
    };
    // A client that has gone does not hear it; its call goes on.
    drop(answer.send(made));
}

struct Visitor<'a> {
    hub: &'a Rc<Hub>,
    session: Option<String>,
    version: Option<String>,
    prefers_events: bool,
    large: Option<Large>,
    caller: std::sync::Arc<tidegate_gateway::caller::Caller>,
}

impl Visitor<'_> {
    async fn post(&self, body: &[u8]) -> Answer {
        if is_batch(body) {
            return self.batch(body).await;
        }
        let message = match Message::parse(body) {
            Ok(message) => message,
            Err(fault) => return faulty(&fault),
        };
        if let Message::Request { id, method, params } = &message
            && self.session.is_none()
            && method == "initialize"
        {
            return self.hub.initialize(id, *params, &self.caller);
        }
        let client = match self.client() {
            Ok(client) => client,
            Err(refused) => return refused,
        };
        match message {
            Message::Request { id, method, params } => {
                self.request(&client, id, &method, params).await
            }
            Message::Notification { method, params } => {
                notified(&client, &method, params);
                Answer::empty(StatusCode::ACCEPTED)
            }
            Message::Answer { id, outcome } => {
                if let Some(id) = id {
                    client.answered(&id, outcome);
                }
                Answer::empty(StatusCode::ACCEPTED)
            }
        }
    }

    /// Several messages at once: only one old revision has them.
    async fn batch(&self, body: &[u8]) -> Answer {
        let client = match self.client() {
            Ok(client) => client,
            Err(refused) => return refused,
        };
        let messages = match parse_batch(body) {
            Ok(messages) if client.version.has_batches() => messages,
            Ok(_) => return bad("batches are not part of the protocol version agreed on"),
            Err(fault) => return faulty(&fault),
        };
        let (stream, events) = client.streams.begin();
        let mut open = 0;
        let mut has_errors = false;
        let left = Rc::new(std::cell::Cell::new(0_usize));
        for message in messages {
            match message {
                Ok(Message::Request { id, method, params }) => {
                    if let Err(reason) = client.may_call(&id) {
                        let code = message::INVALID_REQUEST;
                        let refused = message::error(Some(&id), code, reason, None);
                        stream.send(refused.as_bytes(), Weight::Needed);
                        has_errors = true;
                        continue;
                    }
                    let turn = match self.turn(&client, &method, params) {
                        Ok(turn) => turn,
                        Err(busy) => {
                            stream.send(made(&id, &busy).as_bytes(), Weight::Needed);
                            has_errors = true;
                            continue;
                        }
                    };
                    open += 1;
                    left.set(open);
                    let end = BatchEnd {
                        client: Rc::clone(&client),
                        stream: Rc::clone(&stream),
                        left: Rc::clone(&left),
                    };
                    let params = params.map(ToOwned::to_owned);
                    let method = method.into_owned();
                    let (caller, own) = (Rc::clone(&client), Rc::clone(&stream));
                    let call = id.clone();
                    let desk = Desk::new(&stream);
                    let at = Rc::clone(&desk);
                    let task = task::spawn_owned("mcp batch", async move {
                        let made = respond(&caller, &at, &method, (params.as_deref(), None)).await;
                        own.answer(&call, message::made(&call, &made).as_bytes());
                        drop((end, turn));
                        caller.call_ended(&call);
                    });
                    client.call_began(id, task, desk);
                }
                Ok(Message::Notification { method, params }) => notified(&client, &method, params),
                Ok(Message::Answer { id: Some(id), outcome }) => client.answered(&id, outcome),
                Ok(Message::Answer { id: None, .. }) => {}
                Err(fault) => {
                    stream.send(fault.to_answer().as_bytes(), Weight::Needed);
                    has_errors = true;
                }
            }
        }
        if open == 0 {
            client.streams.end(&stream);
            if !has_errors {
                return Answer::empty(StatusCode::ACCEPTED);
            }
        }
        Answer::events(events)
    }

    async fn request(
        &self,
        client: &Rc<Client>,
        id: Id,
        method: &str,
        params: Option<&RawValue>,
    ) -> Answer {
        if method == "initialize" {
            return bad("this session is initialised already");
        }
        if let Err(reason) = client.may_call(&id) {
            return Answer::json(
                StatusCode::BAD_REQUEST,
                message::error(Some(&id), message::INVALID_REQUEST, reason, None),
            );
        }
        if Relayed::of_method(method).is_none() {
            let desk = Desk::new(&client.streams.standing());
            let outcome = respond(client, &desk, method, (params, None)).await;
            let answer = made(&id, &outcome);
            if !self.prefers_events {
                return Answer::json(StatusCode::OK, answer);
            }
            let (stream, events) = client.streams.begin();
            stream.answer(&id, answer.as_bytes());
            client.streams.end(&stream);
            return Answer::events(events);
        }
        let turn = match self.turn(client, method, params) {
            Ok(turn) => turn,
            Err(busy) => return Answer::json(StatusCode::OK, made(&id, &busy)),
        };
        let (stream, events) = client.streams.begin();
        let params = params.map(ToOwned::to_owned);
        let (own, method, call) = (Rc::clone(client), method.to_owned(), id.clone());
        let desk = Desk::new(&stream);
        let at = Rc::clone(&desk);
        let large = self.large.clone();
        let task = task::spawn_owned("mcp request", async move {
            // Also when the call is cancelled: the stream ends, without an answer then.
            let end = StreamEnd { client: Rc::clone(&own), stream };
            tokio::select! {
                outcome = respond(&own, &at, &method, (params.as_deref(), large.as_ref())) => {
                    end.stream.answer(&call, made(&call, &outcome).as_bytes());
                }
                // Nobody can ever read the answer: dropping the call tells its server.
                () = end.stream.lost() => {}
            }
            drop((end, turn));
            own.call_ended(&call);
        });
        client.call_began(id, task, desk);
        Answer::events(events)
    }

    /// The right to begin a call; the answer, if there may not be another one now.
    fn turn(
        &self,
        client: &Client,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<CallTurn, Made> {
        let turn = if client.has_room() { self.hub.take_call(&self.caller) } else { None };
        turn.ok_or_else(|| busy(client, method, params))
    }

    fn get(&self, last_event: Option<&str>) -> Answer {
        let client = match self.client() {
            Ok(client) => client,
            Err(refused) => return refused,
        };
        match last_event.and_then(|id| client.streams.resume(id)) {
            Some(Ok(events)) => Answer::events(events),
            Some(Err(Gone)) => {
                let message = "what followed this event is not kept any more; call again";
                Answer::json(StatusCode::GONE, refusal(message))
            }
            None => Answer::events(client.streams.standing().attach_unsent()),
        }
    }

    fn delete(&self) -> Answer {
        match self.client() {
            Ok(client) => {
                self.hub.end(&client);
                Answer::empty(StatusCode::OK)
            }
            Err(refused) => refused,
        }
    }

    /// The session that the request belongs to.
    fn client(&self) -> Result<Rc<Client>, Answer> {
        let Some(id) = &self.session else {
            return Err(bad(
                "send `initialize` first, then its `mcp-session-id` with every request",
            ));
        };
        let client = self.hub.client(id);
        if client.as_ref().is_some_and(|it| it.caller().name != self.caller.name) {
            self.hub.tell_foreign_session(&self.caller.name);
        }
        let client = client.filter(|it| it.caller().name == self.caller.name);
        let client = client.filter(|it| !it.is_over()).ok_or_else(unknown_session)?;
        if let Some(version) = &self.version
            && Version::parse(version).is_none()
        {
            return Err(bad("`mcp-protocol-version` names a version that is not spoken here"));
        }
        client.used();
        Ok(client)
    }
}

/// Ends a stream, whatever becomes of its call.
struct StreamEnd {
    client: Rc<Client>,
    stream: Rc<Stream>,
}

impl Drop for StreamEnd {
    fn drop(&mut self) {
        self.client.streams.end(&self.stream);
    }
}

/// Ends the stream of a batch with its last answer.
struct BatchEnd {
    client: Rc<Client>,
    stream: Rc<Stream>,
    left: Rc<std::cell::Cell<usize>>,
}

impl Drop for BatchEnd {
    fn drop(&mut self) {
        self.left.set(self.left.get() - 1);
        if self.left.get() == 0 {
            self.client.streams.end(&self.stream);
        }
    }
}

/// The answer to a request of a session.
async fn respond(
    client: &Rc<Client>,
    desk: &Rc<Desk>,
    method: &str,
    (params, large): (Option<&RawValue>, Option<&Large>),
) -> Made {
    if let Some(kind) = Kind::of_method(method) {
        return list(client, kind, params).await;
    }
    if let Some(what) = Relayed::of_method(method) {
        let asked = Asked { params, large, desk, envelope: None, heads: &[] };
        return relay(client, what, asked).await;
    }
    match method {
        "ping" => Ok("{}".to_owned()),
        "logging/setLevel" => set_level(client, params),
        _ => {
            let message = format!("method not found: {}", quoted(method));
            Err(error_object(METHOD_NOT_FOUND, &message, None))
        }
    }
}

async fn list(client: &Rc<Client>, kind: Kind, params: Option<&RawValue>) -> Made {
    let bad = |message: &str| Err(error_object(INVALID_PARAMS, message, None));
    let cursor = match Params::parse(params) {
        Ok(params) => params.text("cursor"),
        Err(flaw) => return bad(&format!("params: {flaw}")),
    };
    client.first_look().await;
    let catalogue = client.catalogue();
    if kind == Kind::Tools && search::is_on(client) {
        return Ok(search::page(client, &catalogue));
    }
    let max = client.ground.live().file.limits.mcp_answer.0;
    let max = usize::try_from(max).unwrap_or(usize::MAX);
    let page = catalogue.page(kind, |place| client.sees(place), cursor.as_deref(), max);
    match page {
        Ok(page) => Ok(page.to_result()),
        Err(wrong) => bad(&wrong.to_string()),
    }
}

/// Levels of the protocol, from the least to the most severe.
pub(super) const LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// Every server of this client's own is told; a shared one is nobody's to change.
fn set_level(client: &Rc<Client>, params: Option<&RawValue>) -> Made {
    let level = Params::parse(params).ok().and_then(|params| params.text("level"));
    let Some(level) = level.filter(|level| LEVELS.contains(&level.as_str())) else {
        let message = format!("params need `level`, one of {}", LEVELS.join(", "));
        return Err(error_object(INVALID_PARAMS, &message, None));
    };
    *client.level.borrow_mut() = Some(level.clone());
    for (_, link) in client.links() {
        let is_able = link.info().is_some_and(|info| info.can("logging"));
        if link.server.is_shared_child() || link.is_stateless() {
            continue;
        }
        link.set_level(&level);
        if is_able && let Ok(params) = RawValue::from_string(format!(r#"{{"level":"{level}"}}"#)) {
            let errand = tidegate_mcp::call::Errand::Repeatable;
            let ask = Ask { method: "logging/setLevel", params: Some(params), errand, party: None };
            task::spawn("mcp log level", async move { drop(link.ask(ask).await) });
        }
    }
    Ok("{}".to_owned())
}

/// What a client tells.
fn notified(client: &Rc<Client>, method: &str, params: Option<&RawValue>) {
    match method {
        "notifications/cancelled" => {
            if let Some(id) = cancelled_id(params) {
                let params = Params::parse(params).unwrap_or_default();
                let reason = params.get("reason").map(ToOwned::to_owned);
                client.cancel(&id, Cancelled { reason });
            }
        }
        "notifications/roots/list_changed" => {
            for (_, link) in client.links() {
                if let (false, Some(talk)) = (link.server.is_shared_child(), link.conversation()) {
                    talk.tell(message::notification(method, params.map(RawValue::get)));
                }
            }
        }
        "notifications/progress" => {
            client.tell_askers(&message::notification(method, params.map(RawValue::get)));
        }
        _ => {}
    }
}

fn bad(message: &str) -> Answer {
    Answer::json(StatusCode::BAD_REQUEST, refusal(message))
}

fn faulty(fault: &Fault) -> Answer {
    Answer::json(StatusCode::BAD_REQUEST, fault.to_answer())
}

fn unknown_session() -> Answer {
    let error = message::error(None, -32001, "session not found: send `initialize` again", None);
    Answer::json(StatusCode::NOT_FOUND, error)
}
