//! One conversation with a server at work: our requests go out with numbers of our own, their
//! answers find whoever waits, and everything else the server says is looked at for itself.
//!
//! Rules kept here:
//! - Every request ends exactly once: answered, unanswered, timed out, or given up. Whoever gives
//!   one up (a timeout, a cancelled call) tells the server so.
//! - Numbers are ours, never a client's ids, so that calls of several sessions cannot be mixed up;
//!   a progress token that we ask for is the number of its request.
//! - Answers to requests nobody waits for any more are dropped.
//! - In the stateless era every request says whose it is, in `_meta` and in headers; there, over
//!   HTTP, closing its stream is what gives it up, and nothing but requests is ever sent.
//! - While a server waits for the client (for a person, perhaps) the time of its call stands still,
//!   a bounded number of times.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::value::RawValue;
use tidegate_core::{
    outcome::OutcomeKind,
    time::{Millis, Now},
};

use super::effect::{Effect, LogLine};
use super::event::{ConnectionEvent, LargeAnswer};
use super::ids::{CallId, ConnectionId, ExchangeId, LinkId, ServerId};
use super::lean::take_out;
use super::profile::{ClientProfile, ProfileKey};
use super::record::{FIRST_EPOCH, UpstreamSession, request_number};
use super::schedule::Task;
use super::{Env, Hub};
use crate::{
    cause::{Cause, Delivery},
    era::Era,
    health::Failure,
    link::Generation,
    message::{self, Id, Message, Params},
    stateless::{self, heading},
};

/// How often one call may be waited for again because its server waits for the client.
const PATIENCE_ROUNDS: u32 = 10;

/// What a request came to.
#[derive(Debug)]
pub(super) enum ServerReply {
    /// The server answered with a `result`, or an `error`: the text of either.
    Answer(Result<Bytes, Bytes>),
    /// It did not.
    Failed(Failure),
}

/// Who waits for the answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asker {
    /// An attempt to connect.
    Making(LinkId, Generation),
    /// A request with everything that health and lost connections ask for.
    Exchange(ExchangeId),
    Keepalive(LinkId),
    Probe(ServerId),
    /// A page of a list.
    Page(ServerId, ProfileKey),
    /// A stream on which a server without sessions speaks of its lists, or else its resources.
    Listening(LinkId, bool),
}

/// One conversation.
pub(super) struct Conversation {
    pub(super) link: LinkId,
    pub(super) server: ServerId,
    pub(super) is_http: bool,
    /// Which era is spoken, or tried.
    pub(super) era: Era,
    pub(super) pending: BTreeMap<u64, Pending>,
    /// The name that the server gave the session, and the version that was agreed on; over
    /// streamable HTTP, where others can go on with it.
    pub(super) session: Option<UpstreamSession>,
    pub(super) version: Option<String>,
    /// Of its client: numbers of requests begin with it.
    epoch: u64,
    /// How many requests there were.
    count: u64,
    /// Why it is over, if it is.
    pub(super) over: Option<Failure>,
    /// It is closed when nothing is pending any more.
    is_retired: bool,
}

/// A request without an answer.
pub(super) struct Pending {
    pub(super) asker: Asker,
    /// The client's call that it is made for.
    pub(super) origin: Option<CallId>,
    within: Millis,
    rounds: u32,
}

/// The params of a request to be sent.
pub(super) enum OutboundParams<'a> {
    /// Taken apart.
    Fields(Params<'a>),
    /// An object as text, which is taken apart only if something in it has to change.
    Text(&'a str),
}

/// A request to be sent.
pub(super) struct Outbound<'a> {
    pub(super) method: &'a str,
    pub(super) params: OutboundParams<'a>,
    /// On whose behalf.
    pub(super) profile: Arc<ClientProfile>,
    pub(super) origin: Option<CallId>,
    pub(super) within: Millis,
    pub(super) asker: Asker,
}

impl<'a> OutboundParams<'a> {
    /// None at all.
    pub(super) fn none() -> Self {
        Self::Fields(Params::default())
    }

    /// Taken apart. Text was put together from what had been taken apart, so it can be again.
    fn read(self) -> Params<'a> {
        match self {
            Self::Fields(params) => params,
            Self::Text(text) => Params::of_text(text).unwrap_or_default(),
        }
    }
}

impl<'a> Outbound<'a> {
    /// Nobody's call: the gateway asks, introduced like this.
    pub(super) fn own(
        method: &'a str,
        params: Params<'a>,
        profile: Arc<ClientProfile>,
        within: Millis,
        asker: Asker,
    ) -> Self {
        let params = OutboundParams::Fields(params);
        Self { method, params, profile, origin: None, within, asker }
    }
}

impl Hub {
    /// A conversation over a connection that is to be opened.
    pub(super) fn new_connection(&mut self, link: LinkId, server: ServerId) -> ConnectionId {
        let is_http = self.servers.get(server).is_some_and(|it| !it.is_child());
        let owner = self.links.get(link).and_then(|it| it.owner);
        let owner = owner.and_then(|it| self.clients.get(it));
        let epoch = owner.map_or(FIRST_EPOCH, |it| it.epoch);
        self.connections.insert(Conversation {
            link,
            server,
            is_http,
            era: Era::Sessions,
            pending: BTreeMap::new(),
            session: None,
            version: None,
            epoch,
            count: 0,
            over: None,
            is_retired: false,
        })
    }

    /// Sends a request. Its end is told to whoever asked, exactly once.
    pub(super) fn send_request(&mut self, now: Now, talk: ConnectionId, out: Outbound<'_>) {
        let Outbound { method, params, profile, origin, within, asker } = out;
        let Some(conversation) = self.connections.get_mut(talk) else {
            return self.replies.push_back((asker, ServerReply::Failed(not_sent(closing()))));
        };
        if let Some(failure) = conversation.over {
            return self.replies.push_back((asker, ServerReply::Failed(not_sent(failure))));
        }
        conversation.count += 1;
        let call = request_number(conversation.epoch, conversation.count);
        let is_stateless = conversation.era == Era::Stateless;
        let pending = Pending { asker, origin, within, rounds: PATIENCE_ROUNDS };
        conversation.pending.insert(call, pending);
        let origin = origin.and_then(|origin| self.calls.get(origin));
        let wants_progress = origin.is_some_and(|it| it.progress.is_some());
        let mut headers = None;
        let text = match params {
            OutboundParams::Text(text)
                if !is_stateless && !wants_progress && !Params::may_have_meta(text) =>
            {
                Some(Cow::Borrowed(text))
            }
            params => {
                let mut params = params.read();
                // A `_meta` that is no object was refused when the message came in.
                drop(params.set_progress_token(wants_progress.then_some(call)));
                drop(params.strip_reserved());
                headers = is_stateless.then(|| {
                    let info = origin.and_then(|it| it.info()).unwrap_or(&profile.info);
                    let level = origin.and_then(|it| it.level.as_deref());
                    let mirrored = origin.map(|it| it.mirrored.as_slice()).unwrap_or_default();
                    stamp(method, &mut params, (info, &profile.capabilities, level), mirrored)
                });
                (!params.is_empty()).then(|| Cow::Owned(params.to_json()))
            }
        };
        let message = message::request(&Id::number(call), method, text.as_deref());
        let message = match origin.and_then(|it| it.large.as_ref()) {
            Some(large) => large.put_back(&message),
            None => message,
        };
        let message = Bytes::from(message);
        self.out.push(Effect::Send { connection: talk, call, message, headers });
        self.schedule.arm(Task::Answer(talk, call), now.after(within));
    }

    /// Tells a server something, or answers its request.
    pub(super) fn tell_server(&mut self, talk: ConnectionId, message: String) {
        let Some(conversation) = self.connections.get(talk) else { return };
        let has_none = conversation.era == Era::Stateless && conversation.is_http;
        if conversation.over.is_none() && !has_none {
            self.out.push(Effect::Notify { connection: talk, message: message.into() });
        }
    }

    /// The time of a request has come.
    pub(super) fn answer_due(&mut self, now: Now, talk: ConnectionId, call: u64) {
        let Some(conversation) = self.connections.get_mut(talk) else { return };
        let Some(pending) = conversation.pending.get_mut(&call) else { return };
        let within = pending.within;
        pending.rounds = pending.rounds.saturating_sub(1);
        let is_asked =
            pending.origin.and_then(|it| self.calls.get(it)).is_some_and(|it| it.asked > 0);
        if is_asked && pending.rounds > 0 {
            return self.schedule.arm(Task::Answer(talk, call), now.after(within));
        }
        let asker = pending.asker;
        self.give_up(talk, call);
        let failure = Failure {
            delivery: Delivery::Maybe,
            ..Failure::of(Cause::TimedOut(within), OutcomeKind::Timeout)
        };
        self.replies.push_back((asker, ServerReply::Failed(failure)));
    }

    /// Nobody waits for a request any more: its server is told.
    pub(super) fn give_up(&mut self, talk: ConnectionId, call: u64) {
        let Some(conversation) = self.connections.get_mut(talk) else { return };
        let Some(pending) = take_out(&mut conversation.pending, &call) else { return };
        self.schedule.disarm(Task::Answer(talk, call));
        let origin = pending.origin.and_then(|it| self.calls.get(it));
        let reason = match origin.and_then(|it| it.cancelled.as_ref()) {
            // As the client gave it, or not at all.
            Some(cancelled) => cancelled.reason.as_ref().map(|it| it.get().to_owned()),
            None => Some(r#""nobody waits any more""#.to_owned()),
        };
        let reason = reason.map(|it| format!(r#","reason":{it}"#)).unwrap_or_default();
        let params = format!(r#"{{"requestId":{call}{reason}}}"#);
        self.tell_server(talk, message::notification("notifications/cancelled", Some(&params)));
        self.out.push(Effect::Forget { connection: talk, call });
        self.retire_if_quiet(talk);
    }

    /// Gives up whatever an asker waits for on a conversation.
    pub(super) fn give_up_all_of(&mut self, talk: ConnectionId, asker: Asker) {
        let Some(conversation) = self.connections.get(talk) else { return };
        let is_its = |(_, it): &(&u64, &Pending)| it.asker == asker;
        let own: Vec<u64> = conversation.pending.iter().filter(is_its).map(|it| *it.0).collect();
        own.into_iter().for_each(|call| self.give_up(talk, call));
    }

    /// Something happened to a connection.
    pub(super) fn on_connection(
        &mut self,
        env: &mut Env<'_>,
        talk: ConnectionId,
        event: ConnectionEvent,
    ) {
        match event {
            ConnectionEvent::Opened => self.making_opened(env, talk, Ok(())),
            ConnectionEvent::OpenFailed(failure) => {
                let link = self.connections.get(talk).map(|it| it.link);
                match link.and_then(|link| Some((link, self.generation_of(link, talk)?))) {
                    // One that was to go on.
                    Some((link, generation)) => {
                        self.finish(talk, failure);
                        self.link_lost(link, generation);
                    }
                    None => self.making_opened(env, talk, Err(failure)),
                }
            }
            ConnectionEvent::Named(session) => {
                if let Some(talk) = self.connections.get_mut(talk) {
                    talk.session = Some(session);
                }
            }
            ConnectionEvent::Message { bytes, call } => self.hear_message(env, talk, &bytes, call),
            ConnectionEvent::LargeAnswer(LargeAnswer { call, outcome, .. }) => {
                self.settle(talk, call, ServerReply::Answer(outcome));
            }
            ConnectionEvent::Paused { call } => {
                if let Some(origin) = self.origin_of(talk, Some(call)) {
                    self.pause_stream_of(origin);
                }
            }
            ConnectionEvent::Unanswered { call, failure } => {
                self.settle(talk, call, ServerReply::Failed(failure));
            }
            ConnectionEvent::Closed { failure, last_words } => {
                self.finish(talk, failure);
                self.conversation_ended(env, talk, failure, &last_words);
                if self.connections.get(talk).is_some_and(|it| it.is_retired) {
                    self.connections.remove(talk);
                    self.schedule.disarm(Task::Retire(talk));
                }
            }
            ConnectionEvent::Ended => {
                self.closing.remove(&talk);
            }
        }
    }

    fn hear_message(
        &mut self,
        env: &mut Env<'_>,
        talk: ConnectionId,
        bytes: &Bytes,
        call: Option<u64>,
    ) {
        let Some(conversation) = self.connections.get(talk) else { return };
        let message = match Message::parse(bytes) {
            Ok(message) => message,
            Err(fault) => {
                let server = self.server_name(conversation.server);
                let what = "a server's message cannot be read";
                let detail = fault.to_string();
                self.out.push(Effect::Log(LogLine::Debug { server, what, detail }));
                // On the stream of a call it can only be its answer.
                if let Some(call) = call {
                    let cause = Failure::of(Cause::Malformed, OutcomeKind::ServerError);
                    let failure = Failure { delivery: Delivery::Maybe, ..cause };
                    self.settle(talk, call, ServerReply::Failed(failure));
                }
                return;
            }
        };
        match message {
            Message::Answer { id, outcome } => {
                let named = id.and_then(|id| id.as_number());
                // On the stream of one call nothing else can be answered.
                let number = match (call, named) {
                    (Some(call), Some(named)) => (call == named).then_some(call),
                    (call, named) => named.or(call),
                };
                let part = |value: &RawValue| bytes.slice_ref(value.get().as_bytes());
                if let Some(number) = number {
                    self.settle(talk, number, ServerReply::Answer(outcome.map(part).map_err(part)));
                }
            }
            Message::Request { id, method, params } => {
                if method == "ping" {
                    return self.tell_server(talk, message::result(&id, "{}"));
                }
                let origin = self.origin_of(talk, call);
                self.server_asks(env, talk, id, (&method, params), origin);
            }
            Message::Notification { method, params } => {
                let origin = match &*method {
                    "notifications/progress" => self.origin_of(talk, token_of(params)),
                    _ => self.origin_of(talk, call),
                };
                self.server_tells(env, talk, (&method, params), origin);
            }
        }
    }

    /// The call of a client's that a request of ours was made for.
    fn origin_of(&self, talk: ConnectionId, call: Option<u64>) -> Option<CallId> {
        let pending = self.connections.get(talk)?.pending.get(&call?)?;
        pending.origin.filter(|origin| self.calls.get(*origin).is_some())
    }

    /// The calls of clients that are under way over a conversation, the latest first.
    pub(super) fn origins(&self, talk: ConnectionId) -> impl Iterator<Item = CallId> {
        let pending = self.connections.get(talk).map(|it| it.pending.values().rev());
        let origins = pending.into_iter().flatten().filter_map(|it| it.origin);
        origins.filter(|origin| self.calls.get(*origin).is_some())
    }

    fn settle(&mut self, talk: ConnectionId, call: u64, reply: ServerReply) {
        let Some(conversation) = self.connections.get_mut(talk) else { return };
        if let Some(pending) = take_out(&mut conversation.pending, &call) {
            self.schedule.disarm(Task::Answer(talk, call));
            self.replies.push_back((pending.asker, reply));
            self.retire_if_quiet(talk);
        }
    }

    /// Everything under way ends with the conversation.
    pub(super) fn finish(&mut self, talk: ConnectionId, failure: Failure) {
        let Some(conversation) = self.connections.get_mut(talk) else { return };
        conversation.over.get_or_insert(failure);
        for (call, pending) in std::mem::take(&mut conversation.pending) {
            self.schedule.disarm(Task::Answer(talk, call));
            self.replies.push_back((pending.asker, ServerReply::Failed(failure)));
        }
    }

    /// Ends a conversation in good order.
    pub(super) fn close_connection(&mut self, talk: ConnectionId) {
        if self.connections.get(talk).is_none() {
            return;
        }
        self.finish(talk, closing());
        self.connections.remove(talk);
        self.schedule.disarm(Task::Retire(talk));
        self.closing.insert(talk);
        self.out.push(Effect::Close { connection: talk });
    }

    /// Ends a conversation at once.
    pub(super) fn drop_connection(&mut self, talk: ConnectionId) {
        if self.connections.get(talk).is_some() {
            self.finish(talk, closing());
            self.connections.remove(talk);
            self.out.push(Effect::Drop { connection: talk });
        }
    }

    /// Ends it in good order when the requests under way have ended, or after `within`.
    pub(super) fn retire(&mut self, now: Now, talk: ConnectionId, within: Millis) {
        if let Some(conversation) = self.connections.get_mut(talk) {
            conversation.is_retired = true;
            self.schedule.arm(Task::Retire(talk), now.after(within));
            self.retire_if_quiet(talk);
        }
    }

    fn retire_if_quiet(&mut self, talk: ConnectionId) {
        let is_quiet = |it: &Conversation| it.is_retired && it.pending.is_empty();
        if self.connections.get(talk).is_some_and(is_quiet) {
            self.close_connection(talk);
        }
    }
}

/// Writes into a request of the stateless era whose it is; its headers say the same.
fn stamp(
    method: &str,
    params: &mut Params<'_>,
    (info, capabilities, level): (&RawValue, &RawValue, Option<&str>),
    mirrored: &[(String, String)],
) -> Vec<(String, String)> {
    // A `_meta` that is no object was refused when the message came in.
    drop(params.stamp(info, capabilities, level));
    let mut headers = vec![
        (heading::VERSION.to_owned(), stateless::VERSION.to_owned()),
        (heading::METHOD.to_owned(), method.to_owned()),
    ];
    if let Some(name) = heading::name_of(method, params) {
        headers.push((heading::NAME.to_owned(), heading::encode(&name)));
    }
    headers.extend_from_slice(mirrored);
    headers
}

/// The call that a progress notification is about: tokens are numbers of requests.
fn token_of(params: Option<&RawValue>) -> Option<u64> {
    let params = Params::parse(params).ok()?;
    Id::read(params.get("progressToken")?).ok()?.as_number()
}

const fn not_sent(failure: Failure) -> Failure {
    Failure { delivery: Delivery::Not, ..failure }
}

pub(super) const fn closing() -> Failure {
    let failure = Failure::of(Cause::Closing, OutcomeKind::Cancelled);
    Failure { delivery: Delivery::Maybe, ..failure }
}
