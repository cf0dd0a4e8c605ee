//! One request of the stateless era (2026-07-28): a POST that says for itself who asks, and is
//! answered on its own.
//!
//! | request | answer |
//! |---|---|
//! | `server/discover` | at once; no server is waited for |
//! | a list, a call | JSON; events if something is to be told before, or it takes a while |
//! | `subscriptions/listen` | events, until the client closes the stream |
//! | what only sessions know | 404 |
//!
//! Rules kept here:
//! - A client that closes its request does not want it answered: whoever works on it is told.
//! - Health is looked at for every request (`Visibility::Request`).
//! - What a server with sessions asks in the middle of a call, the client is asked with the answer
//!   to its request (`parked`).
//! - Ids of requests say nothing here: two clients of one caller may use the same.

use serde_json::value::RawValue;
use tidegate_core::time::Now;

use super::calls::{AnswerTo, Attending, ClientCall, Made, Requested, SILENT_FOR};
use super::effect::{Effect, McpAnswer};
use super::event::{McpRequest, RequestToken};
use super::ids::{CallId, ClientId};
use super::parked::{AskedFor, ComesBack};
use super::profile::own_info;
use super::relay::Relayed;
use super::schedule::Task;
use super::streams::StreamRef;
use super::{Env, Hub};
use crate::{
    catalogue::CAPABILITIES,
    listing::Kind,
    message::{ErrorObject, INTERNAL_ERROR, Id, METHOD_NOT_FOUND, Params, error_object, made},
    raw::quoted,
    stateless::{
        Envelope, Refused, discover, dress,
        listen::{self, Filter},
        status_of,
    },
};

impl Hub {
    /// Answers one request.
    pub(super) fn serve_stateless(
        &mut self,
        env: &mut Env<'_>,
        request: &McpRequest,
        id: Id,
        (method, params): (&str, Option<&RawValue>),
    ) {
        let token = request.token;
        let envelope = match Envelope::read(method, params, &request.headers) {
            Ok(envelope) => envelope,
            Err(refused) => return self.refuse_stateless(token, &id, &refused),
        };
        let client = match self.stand_in(env, &request.caller, &envelope) {
            Ok(client) => client,
            Err(answer) => return self.out.push(Effect::Answer { request: token, answer }),
        };
        self.used(env.now, client);
        match method {
            discover::METHOD => {
                let catalogue = self.catalogue_of(client);
                let instructions = catalogue.instructions(|slot| self.may_use(client, slot));
                let result = discover::answer(CAPABILITIES, instructions.as_deref());
                self.answer_stateless(token, &id, method, Ok(result));
            }
            listen::METHOD => match Filter::read(params) {
                Ok(filter) => {
                    self.visit_began(client);
                    self.open_listen(env, client, token, &id, filter);
                }
                Err(refused) => self.refuse_stateless(token, &id, &refused),
            },
            _ => self.work(env, (client, request), id, (method, params), envelope),
        }
    }

    fn visit_began(&mut self, client: ClientId) {
        if let Some(kept) = self.clients.get_mut(client) {
            kept.visits += 1;
        }
    }

    /// Has a request answered, or one that its client comes back for.
    fn work(
        &mut self,
        env: &mut Env<'_>,
        (client, request): (ClientId, &McpRequest),
        id: Id,
        (method, params): (&str, Option<&RawValue>),
        envelope: Envelope,
    ) {
        let token = request.token;
        let parsed = Params::parse(params).unwrap_or_default();
        let asked = AskedFor::of(method, &parsed, request.large.as_ref());
        let going = match self.comes_back(env, client, params, &asked) {
            ComesBack::Goes(call) => Some(call),
            ComesBack::Asks(told) => return self.answer_stateless(token, &id, method, Ok(told)),
            ComesBack::Refused(it) => {
                let error = error_object(it.code, &it.message, it.data.as_deref());
                return self.answer_stateless(token, &id, method, Err(error));
            }
            ComesBack::Not => None,
        };
        let requested = match (Kind::of_method(method), Relayed::of_method(method)) {
            (Some(kind), _) => Some(Requested::List(kind)),
            (None, Some(Relayed::Subscribe | Relayed::Unsubscribe) | None) => None,
            (None, Some(what)) => Some(Requested::Relay(what)),
        };
        let Some(requested) = requested else {
            let message = format!("method not found: {}", quoted(method));
            let error = error_object(METHOD_NOT_FOUND, &message, None);
            return self.answer_stateless(token, &id, method, Err(error));
        };
        if going.is_none() && !self.take_share(client) {
            let busy = self.busy(client, method, params);
            return self.answer_stateless(token, &id, method, busy);
        }
        let Some(kept) = self.clients.get(client) else { return };
        let account = self.retained.account(&kept.caller, kept.rights.share);
        let stream = self.plain_stream(account);
        let reader = self.attach(env.now, stream, Some(0));
        let silent_at = env.now.after(SILENT_FOR);
        let (request_token, method) = (Some(token), method.to_owned());
        let attending = Attending { request: request_token, reader, silent_at, method, asked };
        self.visit_began(client);
        if let Some(call) = going {
            if let Some(kept) = self.calls.get_mut(call) {
                kept.id = id;
            }
            self.requests.insert(token, call);
            self.move_call(call, stream, attending);
            self.look_at_silence(env.now, call);
            return self.go_on_with(env, call);
        }
        let answer = (stream, AnswerTo::Stateless(attending));
        let params = params.map(ToOwned::to_owned);
        let mut call = Self::with_share(ClientCall::new(client, id, requested, params, answer));
        call.headers.clone_from(&request.headers);
        call.large.clone_from(&request.large);
        call.envelope = Some(envelope);
        let call = self.begin_call(env, call);
        let is_unanswered = |it: &ClientCall| {
            matches!(it.answer, AnswerTo::Stateless(Attending { request: Some(_), .. }))
        };
        if self.calls.get(call).is_some_and(is_unanswered) {
            self.requests.insert(token, call);
        }
    }

    /// Begins the answer of a call as a stream if nothing was said for too long.
    pub(super) fn look_at_silence(&mut self, now: Now, id: CallId) {
        let Some(call) = self.calls.get(id) else { return };
        let AnswerTo::Stateless(attending) = &call.answer else { return };
        if attending.request.is_none() || call.is_away {
            return;
        }
        if now.reached(attending.silent_at) {
            return self.start_stateless(id);
        }
        let at = attending.silent_at;
        self.schedule.arm_by(Task::Call(id), at);
    }

    /// The client of a request that has no answer has gone.
    pub(super) fn request_gone(&mut self, env: &mut Env<'_>, request: RequestToken) {
        if let Some(call) = self.requests.remove(&request) {
            self.drop_call(env, call);
        }
    }

    /// A call is parked: its client is told what is asked, and comes back with another request.
    pub(super) fn leave_stateless(&mut self, env: &mut Env<'_>, id: CallId, told: String) {
        let Some(call) = self.calls.get_mut(id) else { return };
        let (stream, client, answer_id) = (call.stream, call.client, call.id.clone());
        let AnswerTo::Stateless(attending) = &mut call.answer else { return };
        let attending = Attending {
            request: attending.request.take(),
            reader: attending.reader.take(),
            silent_at: attending.silent_at,
            method: attending.method.clone(),
            asked: attending.asked.clone(),
        };
        if let Some(request) = attending.request {
            self.requests.remove(&request);
        }
        self.finish_stateless(&answer_id, attending, stream, Ok(told));
        self.visit_ended(env, client);
    }

    /// Answers whole, or on the stream that has begun.
    pub(super) fn finish_stateless(
        &mut self,
        id: &Id,
        attending: Attending,
        stream: StreamRef,
        outcome: Made,
    ) {
        let (status, text) = dressed(id, &attending.method, outcome);
        match attending.request {
            Some(request) => {
                attending.reader.and_then(|reader| self.detach(reader));
                let answer = McpAnswer::json(status, text);
                self.out.push(Effect::Answer { request, answer });
            }
            None => {
                self.send_answer(stream, id, text.as_bytes());
                self.end_stream(stream);
            }
        }
    }

    /// Nobody waits for the answer, or the gateway gave the call up.
    pub(super) fn abandon_stateless(&mut self, id: &Id, attending: Attending, stream: StreamRef) {
        let gave_up = error_object(INTERNAL_ERROR, "the gateway gave this call up", None);
        self.finish_stateless(id, attending, stream, Err(gave_up));
    }

    fn answer_stateless(&mut self, request: RequestToken, id: &Id, method: &str, made: Made) {
        let (status, text) = dressed(id, method, made);
        self.out.push(Effect::Answer { request, answer: McpAnswer::json(status, text) });
    }

    fn refuse_stateless(&mut self, request: RequestToken, id: &Id, refused: &Refused) {
        let status = status_of(refused.code);
        let answer = McpAnswer::json(status, refused.to_answer(Some(id)));
        self.out.push(Effect::Answer { request, answer });
    }
}

/// The gateway's own name and version.
pub(super) fn own_info_value() -> Box<RawValue> {
    RawValue::from_string(own_info()).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// An answer as this era writes it, and the status that goes with it.
fn dressed(id: &Id, method: &str, outcome: Made) -> (u16, String) {
    let outcome = match outcome {
        Ok(result) => Ok(dress::for_stateless(method, &result, &own_info_value())),
        Err(error) => Err(dress::error_for_stateless(&error)),
    };
    let code = outcome.as_ref().err().and_then(|error| {
        serde_json::from_str::<&RawValue>(error).ok().map(|error| ErrorObject::read(error).code)
    });
    (code.map_or(200, status_of), made(id, &outcome))
}
