//! A request of a client's that is under way: whose it is, where everything goes that a server says
//! while it works on it, and how it is answered.
//!
//! Rules kept here:
//! - Every request is answered exactly once, or its client has gone or cancelled it.
//! - Losing a connection is not cancelling, as long as the client can come back: it has seen an
//!   event. Otherwise nobody could ever read the answer, and the call is cancelled.
//! - Dropping a call tells its server.
//! - Calls are counted from their request to their end, over all sessions of a caller.

use std::sync::Arc;

use serde_json::value::RawValue;
use tidegate_core::time::{Millis, Now};

use super::effect::{Effect, McpAnswer, Metric};
use super::event::{LargeArguments, RequestToken};
use super::ids::{CallId, ClientId, ConnectionId, ReaderId};
use super::lean::take_out;
use super::parked::AskedFor;
use super::relay::{Relay, Relayed};
use super::schedule::Task;
use super::streams::StreamRef;
use super::{Env, Hub};
use crate::{
    call::TooManyCalls,
    listing::Kind,
    message::{self, Id, Params},
    raw::Fields,
    replay::Weight,
    shares::{Bound, Room},
    stateless::Envelope,
};

/// Calls of all callers at once. Each is some kilobytes.
const CALLS_MAX: usize = 4096;
/// Questions about one call that wait for its client.
const WAITING_MAX: u32 = 64;
/// A request without a session whose answer takes longer than this begins as a stream, whose signs
/// of life keep it open.
pub(super) const SILENT_FOR: Millis = Millis::seconds(5);

/// The text of a `result`, or of an `error`.
pub(super) type Made = Result<String, String>;

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Requested {
    /// A list.
    List(Kind),
    /// Something that a server answers.
    Relay(Relayed),
}

/// How a call is answered.
#[derive(Debug)]
pub(super) enum AnswerTo {
    /// On its own stream of events.
    Stream,
    /// On the stream of a batch, which ends with its last answer.
    Batch,
    /// Whole.
    Whole { request: RequestToken, prefers_events: bool },
    /// A request without a session: whole, or as a stream once there is something to tell or
    /// nothing for too long.
    Stateless(Attending),
    /// Nobody: what a stream of a client without a session is to hear is seen to.
    Listen(u64),
}

/// A client without a session that waits for its answer.
#[derive(Debug)]
pub(super) struct Attending {
    /// The request, while its answer has not begun.
    pub(super) request: Option<RequestToken>,
    /// Who reads the answer if it becomes a stream.
    pub(super) reader: Option<ReaderId>,
    pub(super) silent_at: Now,
    pub(super) method: String,
    /// What the request asks for: only the same may come back for it.
    pub(super) asked: AskedFor,
}

/// What a client says when it cancels a call: its reason, if it gives one.
#[derive(Clone, Debug, Default)]
pub(super) struct Cancellation {
    pub(super) reason: Option<Box<RawValue>>,
}

/// A request of a server with sessions to a client that has none: it waits for the client's next
/// request.
#[derive(Debug)]
pub(super) struct WaitingQuestion {
    pub(super) talk: ConnectionId,
    /// The server's own id.
    pub(super) id: Id,
    pub(super) method: String,
    pub(super) params: Option<Box<RawValue>>,
}

/// A request under way.
pub(super) struct ClientCall {
    pub(super) client: ClientId,
    pub(super) id: Id,
    pub(super) requested: Requested,
    pub(super) params: Option<Box<RawValue>>,
    /// Arguments that are put back when the call is sent.
    pub(super) large: Option<LargeArguments>,
    /// The headers of a request of the stateless era, and what it says of its sender.
    pub(super) headers: Vec<(String, String)>,
    pub(super) envelope: Option<Envelope>,
    /// Where its client waits for everything that a server says.
    pub(super) stream: StreamRef,
    /// The client's token for progress, as it wrote it; none if it wants none.
    pub(super) progress: Option<Box<RawValue>>,
    /// The client has left, to come back: the latest progress waits for it.
    pub(super) is_away: bool,
    missed: Option<String>,
    /// Requests of the server's that the client has not answered.
    pub(super) asked: u32,
    pub(super) waiting: Vec<WaitingQuestion>,
    /// The client has cancelled the call, and what it said of that.
    pub(super) cancelled: Option<Cancellation>,
    /// From which level on the client wants the log lines of this call.
    pub(super) level: Option<String>,
    /// Headers that repeat arguments, for servers of the stateless era.
    pub(super) mirrored: Vec<(String, String)>,
    pub(super) answer: AnswerTo,
    /// Whether it counts as one of its caller's calls.
    has_share: bool,
    /// Its answer, which waits for a client that is away.
    finished: Option<Made>,
    pub(super) relay: Relay,
}

impl ClientCall {
    pub(super) fn new(
        client: ClientId,
        id: Id,
        requested: Requested,
        params: Option<Box<RawValue>>,
        (stream, answer): (StreamRef, AnswerTo),
    ) -> Self {
        Self {
            client,
            id,
            requested,
            params,
            large: None,
            headers: Vec::new(),
            envelope: None,
            stream,
            progress: None,
            is_away: false,
            missed: None,
            asked: 0,
            waiting: Vec::new(),
            cancelled: None,
            level: None,
            mirrored: Vec::new(),
            answer,
            has_share: false,
            finished: None,
            relay: Relay::default(),
        }
    }

    /// Which program asks, if the request itself said so.
    pub(super) fn info(&self) -> Option<&RawValue> {
        self.envelope.as_ref().and_then(|it| it.info.as_deref())
    }

    /// The client is to be asked with the answer to its request; false if too many wait.
    pub(super) fn wait(&mut self, question: WaitingQuestion) -> bool {
        if self.asked >= WAITING_MAX {
            return false;
        }
        self.asked += 1;
        self.waiting.push(question);
        true
    }
}

impl Hub {
    /// Begins a call.
    pub(super) fn begin_call(&mut self, env: &mut Env<'_>, call: ClientCall) -> CallId {
        let (client, id) = (call.client, call.id.clone());
        let is_named = matches!(call.answer, AnswerTo::Stream | AnswerTo::Batch);
        let call = self.calls.insert(call);
        if let Some(client) = self.clients.get_mut(client).filter(|_| is_named) {
            client.calls.insert(id, call);
        }
        self.run_call(env, call);
        call
    }

    /// The right to have one more call under way; false if the caller, or all of them, have enough.
    pub(super) fn take_share(&mut self, client: ClientId) -> bool {
        let Some(kept) = self.clients.get(client) else { return false };
        let bound = Bound::new(CALLS_MAX, kept.rights.share);
        let caller = Arc::clone(&kept.caller);
        let is_free = self.shares.take(&caller, 1, bound) == Room::Free;
        if !is_free {
            self.out.push(Effect::Count(Metric::Refused("call")));
        }
        is_free
    }

    /// A call counts as one of its caller's from here on, by a right that was taken.
    pub(super) fn with_share(mut call: ClientCall) -> ClientCall {
        call.has_share = true;
        call
    }

    /// What a client hears whose caller has as many calls under way as it may have.
    pub(super) fn busy(
        &mut self,
        client: ClientId,
        method: &str,
        params: Option<&RawValue>,
    ) -> Made {
        let busy = TooManyCalls::default();
        if Relayed::of_method(method) != Some(Relayed::CallTool) {
            return Err(busy.rpc_error().to_string());
        }
        let name = Params::parse(params).ok().and_then(|params| params.text("name"));
        let catalogue = self.catalogue_of(client);
        let tool = name.and_then(|name| catalogue.tool(&name).map(|it| Arc::clone(&it.raw)));
        let tool = tool.as_deref().unwrap_or_default();
        Ok(match has_output_schema(tool) {
            true => busy.schema_tool_result().to_string(),
            false => busy.tool_result().to_string(),
        })
    }

    /// Tells of progress, with the client's own token, if it wants to hear of it.
    pub(super) fn tell_progress(&mut self, id: CallId, params: String) {
        let Some(call) = self.calls.get_mut(id) else { return };
        let Some(token) = call.progress.clone() else { return };
        if call.is_away {
            call.missed = Some(params);
            return;
        }
        let stream = call.stream;
        let Ok(mut fields) = Fields::parse(&params, &[]) else { return };
        fields.set("progressToken", token);
        let message = message::notification("notifications/progress", Some(&fields.to_json()));
        self.send_for_call(id, stream, message.as_bytes(), Weight::Notice);
    }

    /// Sends something on the stream of a call: an answer that had not begun does so.
    pub(super) fn send_for_call(
        &mut self,
        id: CallId,
        stream: StreamRef,
        message: &[u8],
        weight: Weight,
    ) {
        self.send_event(stream, message, weight);
        if matches!(stream, StreamRef::Plain(_)) && self.has_spoken(stream) {
            self.start_stateless(id);
        }
    }

    /// A client without a session waits on this stream now, and hears the latest of what it missed.
    pub(super) fn move_call(&mut self, id: CallId, stream: StreamRef, attending: Attending) {
        let Some(call) = self.calls.get_mut(id) else { return };
        call.stream = stream;
        call.is_away = false;
        call.answer = AnswerTo::Stateless(attending);
        if let Some(missed) = call.missed.take() {
            self.tell_progress(id, missed);
        }
    }

    /// A client has come back for a call: it hears the answer if there is one, or what is asked.
    pub(super) fn go_on_with(&mut self, env: &mut Env<'_>, id: CallId) {
        match self.calls.get_mut(id).and_then(|it| it.finished.take()) {
            Some(made) => self.complete(env, id, made),
            None => self.park_if_asked(env, id),
        }
    }

    /// The answer of a request without a session begins as a stream.
    pub(super) fn start_stateless(&mut self, id: CallId) {
        let Some(call) = self.calls.get_mut(id) else { return };
        let AnswerTo::Stateless(attending) = &mut call.answer else { return };
        let (Some(request), Some(reader)) = (attending.request.take(), attending.reader) else {
            return;
        };
        self.requests.remove(&request);
        self.answer_events(request, reader);
    }

    /// A call has its answer.
    pub(super) fn complete(&mut self, env: &mut Env<'_>, id: CallId, made: Made) {
        if let Some(call) = self.calls.get_mut(id)
            && call.is_away
        {
            call.finished = Some(made);
            let (client, had_share) = (call.client, std::mem::take(&mut call.has_share));
            if let Some(client) = self.clients.get(client).filter(|_| had_share) {
                self.shares.give_back(&client.caller, 1);
            }
            return;
        }
        let Some(call) = self.forget_call(id) else { return };
        let (client, stream) = (call.client, call.stream);
        match call.answer {
            AnswerTo::Stream => {
                self.send_made(stream, &call.id, &made);
                self.end_stream(stream);
            }
            AnswerTo::Batch => {
                self.send_made(stream, &call.id, &made);
                self.leave_batch(stream);
            }
            AnswerTo::Whole { request, prefers_events } => {
                let message = message::made(&call.id, &made);
                self.answer_whole(env.now, (client, request), &call.id, message, prefers_events);
                return self.release_if_quiet(env, client);
            }
            AnswerTo::Stateless(attending) => {
                self.finish_stateless(&call.id, attending, stream, made);
                return self.visit_ended(env, client);
            }
            AnswerTo::Listen(_) => return self.listen_goes_on(env, client),
        }
        self.call_ended(env, client, &call.id);
    }

    /// Answers a request of a session whole, or as a stream of one event where that is preferred.
    pub(super) fn answer_whole(
        &mut self,
        now: Now,
        (client, request): (ClientId, RequestToken),
        id: &Id,
        message: String,
        prefers_events: bool,
    ) {
        if prefers_events && let Some((stream, reader)) = self.begin_stream(now, client) {
            self.send_answer(stream, id, message.as_bytes());
            self.end_stream(stream);
            return self.answer_events(request, reader);
        }
        self.out.push(Effect::Answer { request, answer: McpAnswer::json(200, message) });
    }

    /// A call that is under way no more leaves every table.
    pub(super) fn forget_call(&mut self, id: CallId) -> Option<ClientCall> {
        let call = self.calls.remove(id)?;
        self.schedule.disarm(Task::Call(id));
        if let Some(job) = call.relay.job() {
            self.searches.remove(&job);
        }
        if let AnswerTo::Stateless(Attending { request: Some(request), .. }) = &call.answer {
            self.requests.remove(request);
        }
        let client = self.clients.get_mut(call.client);
        if let Some(client) = client {
            client.questions.retain(|_, it| !it.is_of_gateway_for(id));
            if call.has_share {
                self.shares.give_back(&client.caller, 1);
            }
        }
        Some(call)
    }

    /// A call of a session has ended.
    fn call_ended(&mut self, env: &mut Env<'_>, client: ClientId, id: &Id) {
        if let Some(kept) = self.clients.get_mut(client) {
            take_out(&mut kept.calls, id);
        }
        self.used(env.now, client);
        self.schedule.arm_by(Task::Reap, env.now.after(self.settings.idle));
        self.release_if_quiet(env, client);
        self.end_if_drained(env, client, false);
    }

    /// A request of a client without a session has ended.
    pub(super) fn visit_ended(&mut self, env: &mut Env<'_>, client: ClientId) {
        if let Some(kept) = self.clients.get_mut(client) {
            kept.visits = kept.visits.saturating_sub(1);
        }
        self.used(env.now, client);
        self.schedule.arm_by(Task::Reap, env.now.after(self.settings.idle));
        self.end_if_drained(env, client, false);
    }

    /// Nobody wants the answer of a call any more: its server is told, and its stream ends without
    /// an answer.
    pub(super) fn drop_call(&mut self, env: &mut Env<'_>, id: CallId) {
        // Its request is given up while the call can still be asked for the reason.
        if let Some(exchange) = self.calls.get(id).and_then(|it| it.relay.exchange()) {
            self.cancel_exchange(exchange);
        }
        let Some(call) = self.forget_call(id) else { return };
        let (client, stream) = (call.client, call.stream);
        match call.answer {
            AnswerTo::Stream => self.end_stream(stream),
            AnswerTo::Batch => self.leave_batch(stream),
            AnswerTo::Whole { request, .. } => {
                let message = "this session has ended";
                let answer = McpAnswer::json(
                    200,
                    message::error(Some(&call.id), message::INVALID_REQUEST, message, None),
                );
                self.out.push(Effect::Answer { request, answer });
            }
            AnswerTo::Stateless(attending) => {
                if !call.is_away {
                    self.abandon_stateless(&call.id, attending, stream);
                    return self.visit_ended(env, client);
                }
                return;
            }
            AnswerTo::Listen(_) => return self.listen_goes_on(env, client),
        }
        self.call_ended(env, client, &call.id);
    }

    /// The client does not want an answer any more.
    pub(super) fn cancel_call(
        &mut self,
        env: &mut Env<'_>,
        client: ClientId,
        id: &Id,
        cancelled: Cancellation,
    ) {
        let Some(&call) = self.clients.get(client).and_then(|it| it.calls.get(id)) else { return };
        if let Some(call) = self.calls.get_mut(call) {
            call.cancelled = Some(cancelled);
        }
        self.drop_call(env, call);
    }

    /// The reader of a stream has gone: a call whose answer nobody can ever read is dropped.
    pub(super) fn reader_gone(&mut self, env: &mut Env<'_>, reader: ReaderId) {
        let Some(stream) = self.detach(reader) else { return };
        let is_it = |(_, it): &(CallId, &ClientCall)| it.stream == stream && !it.is_away;
        let call = match stream {
            StreamRef::Session(client, number) if number > 0 => {
                let own = self.clients.get(client).map(|it| it.calls.values());
                let mut own = own.into_iter().flatten().copied();
                own.find(|call| self.calls.get(*call).is_some_and(|it| it.stream == stream))
            }
            StreamRef::Session(..) => None,
            StreamRef::Plain(_) => self.calls.iter().find(is_it).map(|(call, _)| call),
        };
        match (call, stream) {
            (Some(call), StreamRef::Plain(_)) => self.drop_call(env, call),
            (Some(call), StreamRef::Session(..)) => {
                let is_batch =
                    self.calls.get(call).is_some_and(|it| matches!(it.answer, AnswerTo::Batch));
                if !is_batch && self.is_stream_lost(stream) {
                    self.drop_call(env, call);
                }
            }
            (None, StreamRef::Plain(_)) => self.listen_gone(env, stream),
            (None, StreamRef::Session(..)) => {}
        }
    }

    pub(super) fn leave_batch(&mut self, stream: StreamRef) {
        let StreamRef::Session(client, number) = stream else { return };
        let Some(left) = self.batches.get_mut(&(client, number)) else { return };
        *left -= 1;
        if *left == 0 {
            self.batches.remove(&(client, number));
            self.end_stream(stream);
        }
    }
}

/// Whether a tool declares what it returns.
pub(super) fn has_output_schema(tool: &str) -> bool {
    Fields::parse(tool, &[]).is_ok_and(|it| it.get("outputSchema").is_some())
}
