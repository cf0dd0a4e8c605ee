//! What becomes of one HTTP request for the endpoint, in order: the message, the session, the
//! answer.
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
//! - `initialize` is answered here and at once; nothing a server does can delay it.
//! - Ids of sessions are 128 random bits of the system's, unrelated to any server's (S32).

use std::sync::Arc;

use serde_json::value::RawValue;

use super::calls::{AnswerTo, Cancellation, ClientCall, Requested};
use super::client::Introduction;
use super::effect::{Effect, LogLine, McpAnswer};
use super::event::{HttpMethod, McpRequest};
use super::exchange::{ExchangeOwner, Inquiry};
use super::ids::{ClientId, LinkId};
use super::profile::{ClientProfile, own_info};
use super::record::FIRST_EPOCH;
use super::relay::Relayed;
use super::server_messages::{LEVELS, cancelled_id};
use super::streams::StreamRef;
use super::{Env, Hub};
use crate::{
    call::Replayability,
    catalogue::CAPABILITIES,
    listing::Kind,
    message::{
        self, Fault, INVALID_PARAMS, Id, METHOD_NOT_FOUND, Message, Params, Version, error_object,
        is_batch, made, parse_batch,
    },
    raw::{Fields, quoted},
    replay::Weight,
    stateless::{VERSION, belongs, stands_alone},
};

impl Hub {
    /// Answers one request.
    pub(super) fn on_request(&mut self, env: &mut Env<'_>, request: &McpRequest) {
        let McpRequest { token, method, session, version, .. } = request;
        let is_post = *method == HttpMethod::Post;
        if !is_post && session.is_none() && version.as_deref() == Some(VERSION) {
            let message = "this version of the protocol has requests by POST only";
            return self.answer(*token, McpAnswer::refusal(405, message));
        }
        let message = is_post.then(|| Message::parse(&request.body));
        if let Some(Ok(message)) = &message {
            // A request that says for itself that it stands alone does, whatever session it names.
            let is_stateless = |method: &str, params: Option<&RawValue>| match session {
                None => belongs(method, params, version.as_deref()),
                Some(_) => stands_alone(params),
            };
            match message {
                Message::Request { id, method, params } if is_stateless(method, *params) => {
                    return self.serve_stateless(env, request, id.clone(), (method, *params));
                }
                // That era knows no notifications of clients; whoever sends one is not bothered.
                Message::Notification { method, params } if is_stateless(method, *params) => {
                    return self.answer(*token, McpAnswer::empty(202));
                }
                _ => {}
            }
        }
        match (method, message) {
            (HttpMethod::Post, Some(message)) => self.post(env, request, message),
            (HttpMethod::Get, _) => self.get(env, request),
            _ => self.delete(env, request),
        }
    }

    fn answer(&mut self, request: super::event::RequestToken, answer: McpAnswer) {
        self.out.push(Effect::Answer { request, answer });
    }

    fn post(
        &mut self,
        env: &mut Env<'_>,
        request: &McpRequest,
        message: Result<Message<'_>, Fault>,
    ) {
        if is_batch(&request.body) {
            return self.batch(env, request);
        }
        let message = match message {
            Ok(message) => message,
            Err(fault) => return self.answer(request.token, faulty(&fault)),
        };
        if let Message::Request { id, method, params } = &message
            && request.session.is_none()
            && method == "initialize"
        {
            let answer = self.initialize(env, id, *params, &request.caller);
            return self.answer(request.token, answer);
        }
        let client = match self.session_of(env, request) {
            Ok(client) => client,
            Err(refused) => return self.answer(request.token, refused),
        };
        match message {
            Message::Request { id, method, params } => {
                self.session_request(env, (client, request), id, (&method, params));
            }
            Message::Notification { method, params } => {
                self.notified(env, client, &method, params);
                self.answer(request.token, McpAnswer::empty(202));
            }
            Message::Answer { id, outcome } => {
                if let Some(id) = id {
                    self.question_answered(client, &id, outcome);
                }
                self.answer(request.token, McpAnswer::empty(202));
            }
        }
    }

    /// Several messages at once: only one old revision has them.
    fn batch(&mut self, env: &mut Env<'_>, request: &McpRequest) {
        let client = match self.session_of(env, request) {
            Ok(client) => client,
            Err(refused) => return self.answer(request.token, refused),
        };
        let has_batches = self.clients.get(client).is_some_and(|it| it.version.has_batches());
        let messages = match parse_batch(&request.body) {
            Ok(messages) if has_batches => messages,
            Ok(_) => {
                let message = "batches are not part of the protocol version agreed on";
                return self.answer(request.token, McpAnswer::refusal(400, message));
            }
            Err(fault) => return self.answer(request.token, faulty(&fault)),
        };
        let Some((stream, reader)) = self.begin_stream(env.now, client) else { return };
        let StreamRef::Session(_, number) = stream else { return };
        let mut has_events = false;
        // One more than there are calls, so that the stream stays open until all have begun.
        self.batches.insert((client, number), 1);
        for message in messages {
            match message {
                Ok(Message::Request { id, method, params }) => {
                    has_events = true;
                    self.batched(env, (client, stream), id, (&method, params));
                }
                Ok(Message::Notification { method, params }) => {
                    self.notified(env, client, &method, params);
                }
                Ok(Message::Answer { id: Some(id), outcome }) => {
                    self.question_answered(client, &id, outcome);
                }
                Ok(Message::Answer { id: None, .. }) => {}
                Err(fault) => {
                    has_events = true;
                    self.send_event(stream, fault.to_answer().as_bytes(), Weight::Needed);
                }
            }
        }
        self.leave_batch(stream);
        if has_events {
            return self.answer_events(request.token, reader);
        }
        self.detach(reader);
        self.answer(request.token, McpAnswer::empty(202));
    }

    /// One request of a batch.
    fn batched(
        &mut self,
        env: &mut Env<'_>,
        (client, stream): (ClientId, StreamRef),
        id: Id,
        (method, params): (&str, Option<&RawValue>),
    ) {
        let Some(kept) = self.clients.get(client) else { return };
        if let Err(reason) = kept.may_call(&id) {
            let refused = message::error(Some(&id), message::INVALID_REQUEST, reason, None);
            return self.send_event(stream, refused.as_bytes(), Weight::Needed);
        }
        let has_room = kept.has_room() && self.take_share(client);
        if !has_room {
            let busy = self.busy(client, method, params);
            return self.send_event(stream, made(&id, &busy).as_bytes(), Weight::Needed);
        }
        if let StreamRef::Session(_, number) = stream {
            *self.batches.entry((client, number)).or_default() += 1;
        }
        let owned = params.map(ToOwned::to_owned);
        let answer = (stream, AnswerTo::Batch);
        match requested(method) {
            Some(requested) => {
                let call = ClientCall::new(client, id, requested, owned, answer);
                self.begin_call(env, Self::with_share(call));
            }
            None => {
                let made = self.respond(env, client, method, params);
                let requested = Requested::List(Kind::Tools);
                let call = ClientCall::new(client, id, requested, None, answer);
                let call = self.calls.insert(Self::with_share(call));
                self.complete(env, call, made);
            }
        }
    }

    fn session_request(
        &mut self,
        env: &mut Env<'_>,
        (client, request): (ClientId, &McpRequest),
        id: Id,
        (method, params): (&str, Option<&RawValue>),
    ) {
        let token = request.token;
        if method == "initialize" {
            let message = "this session is initialised already";
            return self.answer(token, McpAnswer::refusal(400, message));
        }
        let Some(kept) = self.clients.get(client) else { return };
        if let Err(reason) = kept.may_call(&id) {
            let refused = message::error(Some(&id), message::INVALID_REQUEST, reason, None);
            return self.answer(token, McpAnswer::json(400, refused));
        }
        let prefers_events = request.prefers_events;
        let Some(requested) = requested(method) else {
            let made = self.respond(env, client, method, params);
            let message = message::made(&id, &made);
            return self.answer_whole(env.now, (client, token), &id, message, prefers_events);
        };
        let owned = params.map(ToOwned::to_owned);
        if matches!(requested, Requested::List(_)) {
            let answer = AnswerTo::Whole { request: token, prefers_events };
            let answer = (Self::standing(client), answer);
            let call = ClientCall::new(client, id, requested, owned, answer);
            self.begin_call(env, call);
            return;
        }
        let has_room = kept.has_room() && self.take_share(client);
        if !has_room {
            let busy = self.busy(client, method, params);
            return self.answer(token, McpAnswer::json(200, made(&id, &busy)));
        }
        let Some((stream, reader)) = self.begin_stream(env.now, client) else { return };
        self.answer_events(token, reader);
        let answer = (stream, AnswerTo::Stream);
        let mut call = ClientCall::new(client, id, requested, owned, answer);
        call.large.clone_from(&request.large);
        self.begin_call(env, Self::with_share(call));
    }

    /// The answer to a request of a session that no server is asked for.
    fn respond(
        &mut self,
        env: &mut Env<'_>,
        client: ClientId,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<String, String> {
        match method {
            "ping" => Ok("{}".to_owned()),
            "logging/setLevel" => self.set_level(env, client, params),
            _ => {
                let message = format!("method not found: {}", quoted(method));
                Err(error_object(METHOD_NOT_FOUND, &message, None))
            }
        }
    }

    /// Every server of this client's own is told; a shared one is nobody's to change.
    fn set_level(
        &mut self,
        env: &mut Env<'_>,
        client: ClientId,
        params: Option<&RawValue>,
    ) -> Result<String, String> {
        let level = Params::parse(params).ok().and_then(|params| params.text("level"));
        let Some(level) = level.filter(|level| LEVELS.contains(&level.as_str())) else {
            let message = format!("params need `level`, one of {}", LEVELS.join(", "));
            return Err(error_object(INVALID_PARAMS, &message, None));
        };
        let Some(kept) = self.clients.get_mut(client) else { return Ok("{}".to_owned()) };
        kept.level = Some(level.clone());
        self.note_record(client);
        for link in self.own_links(client) {
            let Some(kept) = self.links.get_mut(link) else { continue };
            kept.level = Some(level.clone());
            if !kept.info.as_ref().is_some_and(|info| info.can("logging")) {
                continue;
            }
            let params = Some(format!(r#"{{"level":"{level}"}}"#).into());
            let inquiry = Inquiry { method: "logging/setLevel", params, origin: None };
            self.ask(env, link, inquiry, Replayability::Repeatable, ExchangeOwner::Nobody);
        }
        Ok("{}".to_owned())
    }

    /// A client's links to servers that know sessions and are not shared.
    fn own_links(&self, client: ClientId) -> Vec<LinkId> {
        let Some(kept) = self.clients.get(client) else { return Vec::new() };
        let is_own = |link: &LinkId| {
            let server = self.links.get(*link).and_then(|it| self.servers.get(it.server));
            server.is_some_and(|it| !it.is_shared_child()) && !self.is_stateless(*link)
        };
        kept.links().map(|(_, link)| link).filter(is_own).collect()
    }

    /// What a client tells.
    fn notified(
        &mut self,
        env: &mut Env<'_>,
        client: ClientId,
        method: &str,
        params: Option<&RawValue>,
    ) {
        match method {
            "notifications/cancelled" => {
                if let Some(id) = cancelled_id(params) {
                    let params = Params::parse(params).unwrap_or_default();
                    let reason = params.get("reason").map(ToOwned::to_owned);
                    self.cancel_call(env, client, &id, Cancellation { reason });
                }
            }
            "notifications/roots/list_changed" => {
                let Some(kept) = self.clients.get(client) else { return };
                let links: Vec<LinkId> = kept.links().map(|(_, link)| link).collect();
                for link in links {
                    let server = self.links.get(link).and_then(|it| self.servers.get(it.server));
                    let is_shared = server.is_none_or(|it| it.is_shared_child());
                    if let (false, Some(talk)) = (is_shared, self.ready_talk(link)) {
                        let text = message::notification(method, params.map(RawValue::get));
                        self.tell_server(talk, text);
                    }
                }
            }
            "notifications/progress" => {
                let message = message::notification(method, params.map(RawValue::get));
                self.tell_askers(client, &message);
            }
            _ => {}
        }
    }

    fn get(&mut self, env: &mut Env<'_>, request: &McpRequest) {
        let client = match self.session_of(env, request) {
            Ok(client) => client,
            Err(refused) => return self.answer(request.token, refused),
        };
        let resumed = request.last_event.as_deref();
        let resumed = resumed.and_then(|id| self.resume(env.now, client, id));
        let reader = match resumed {
            Some(Ok(reader)) => Some(reader),
            Some(Err(())) => {
                let message = "what followed this event is not kept any more; call again";
                return self.answer(request.token, McpAnswer::refusal(410, message));
            }
            None => self.attach(env.now, Self::standing(client), None),
        };
        if let Some(reader) = reader {
            self.answer_events(request.token, reader);
        }
    }

    fn delete(&mut self, env: &mut Env<'_>, request: &McpRequest) {
        let answer = match self.session_of(env, request) {
            Ok(client) => {
                self.end_client(env, client);
                McpAnswer::empty(200)
            }
            Err(refused) => refused,
        };
        self.answer(request.token, answer);
    }

    /// The session that a request belongs to.
    fn session_of(
        &mut self,
        env: &mut Env<'_>,
        request: &McpRequest,
    ) -> Result<ClientId, McpAnswer> {
        let Some(id) = &request.session else {
            let message = "send `initialize` first, then its `mcp-session-id` with every request";
            return Err(McpAnswer::refusal(400, message));
        };
        let client = self.sessions.get(id.as_str()).copied();
        let kept = client.and_then(|it| self.clients.get(it));
        let is_own = kept.is_some_and(|it| it.caller == request.caller);
        let is_open = kept.is_some_and(|it| !it.is_over);
        if kept.is_some() && !is_own {
            let caller = Arc::clone(&request.caller);
            self.out.push(Effect::Log(LogLine::ForeignSession { caller }));
        }
        let Some(client) = client.filter(|_| is_own && is_open) else {
            let message = "session not found: send `initialize` again";
            return Err(McpAnswer::json(404, message::error(None, -32001, message, None)));
        };
        if let Some(version) = &request.version
            && Version::parse(version).is_none()
        {
            let message = "`mcp-protocol-version` names a version that is not spoken here";
            return Err(McpAnswer::refusal(400, message));
        }
        self.used(env.now, client);
        Ok(client)
    }

    /// Opens a session and answers.
    fn initialize(
        &mut self,
        env: &mut Env<'_>,
        id: &Id,
        params: Option<&RawValue>,
        caller: &Arc<str>,
    ) -> McpAnswer {
        if self.settings.servers.is_empty() {
            return no_servers();
        }
        if self.is_releasing {
            return McpAnswer::busy("this replica is closing; try again");
        }
        let Ok(params) = params.map_or(Ok(Fields::default()), |it| Fields::of(it, &[])) else {
            let fault = Fault::params(id, "params of `initialize` must be a plain object");
            return McpAnswer::json(400, fault.to_answer());
        };
        let rights = match self.rights_of(caller) {
            Some(rights) => rights,
            None => return unknown_caller(),
        };
        if let Err(refused) = self.make_room(env, caller, &rights) {
            return refused;
        }
        let Some(session) = env.random.session_id() else {
            return McpAnswer::refusal(500, "the system gives no random numbers");
        };
        let version = Version::negotiate(&params.text("protocolVersion").unwrap_or_default());
        let profile = Arc::new(ClientProfile::of_client(&params, version));
        let session: Arc<str> = session.into();
        let intro = Introduction {
            id: Arc::clone(&session),
            caller: Arc::clone(caller),
            rights,
            version,
            profile: self.shared_profile(profile),
            visibility: self.settings.visibility,
            epoch: FIRST_EPOCH,
        };
        let client = self.open_client(env, intro);
        let catalogue = self.catalogue_of(client);
        let instructions = catalogue.instructions(|slot| self.may_use(client, slot));
        let instructions = instructions
            .map(|text| format!(r#","instructions":{}"#, quoted(&text)))
            .unwrap_or_default();
        let info = own_info();
        let head = format!(r#""protocolVersion":"{version}","capabilities":{CAPABILITIES}"#);
        let result = format!(r#"{{{head},"serverInfo":{info}{instructions}}}"#);
        self.sessions.insert(Arc::clone(&session), client);
        self.note_record(client);
        self.count_sessions();
        let answer = McpAnswer::json(200, message::result(id, &result));
        McpAnswer { session: Some(session.to_string()), ..answer }
    }
}

/// What a request of a session asks servers for; none if it asks none.
fn requested(method: &str) -> Option<Requested> {
    let list = Kind::of_method(method).map(Requested::List);
    list.or_else(|| Relayed::of_method(method).map(Requested::Relay))
}

fn faulty(fault: &Fault) -> McpAnswer {
    McpAnswer::json(400, fault.to_answer())
}

pub(super) fn no_servers() -> McpAnswer {
    McpAnswer::refusal(404, "no MCP server is configured")
}

/// The key that a request came with was taken out of the config while it was on its way.
pub(super) fn unknown_caller() -> McpAnswer {
    McpAnswer::refusal(401, "the key that was sent is not known here any more")
}
