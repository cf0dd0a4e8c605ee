//! A call between two eras of the protocol.
//!
//! | client | server | what differs |
//! |---|---|---|
//! | session | session | nothing |
//! | stateless | stateless | nothing: what a server needs to know is asked of the client itself, if
//!   it declared that it can be asked that (S44) |
//! | session | stateless | what the server needs is asked of the client, and the call made again |
//! | stateless | session | log lines come only at the level that the request asked for; what the
//!   server asks, the client is asked with the answer to its request (`parked`) |

use std::sync::Arc;

use bytes::Bytes;
use serde_json::value::RawValue;
use tidegate_core::time::{Millis, Now};

use super::exchange::{ExchangeOwner, Inquiry};
use super::ids::{CallId, LinkId};
use super::questions::Told;
use super::relay::{Answered, RelayStage};
use super::schedule::Task;
use super::{Env, Hub, calls::Requested};
use crate::{
    call::Replayability,
    cause::Cause,
    message::{INTERNAL_ERROR, Params, error_object},
    raw::quoted,
    stateless::{
        MISSING_CAPABILITY, dress,
        input::{Needed, is_needed},
    },
};

/// How often a server may say that it needs to know more before one call is done.
const ROUNDS_MAX: usize = 10;
/// How long to wait before a call is made again about which nothing was asked.
const STATE_ONLY_WAIT: Millis = Millis(100);
/// How many times the limit of a call a client may take to answer: a person may be asked.
const PATIENCE_ROUNDS: u64 = 10;

/// What a server needs to know, and what the client has told of it.
pub(super) struct Bridging {
    needed: Needed,
    answers: Vec<Box<RawValue>>,
    /// The question that the client has, and until when it may take.
    put: Option<(u64, Now)>,
    /// What the client told last.
    told: Option<Told>,
    /// Without questions the call is made again then.
    again_at: Option<Now>,
}

impl Hub {
    /// Before a request goes over a link on behalf of a client: a server with sessions is told once
    /// that log lines are wanted; each call takes its own.
    pub(super) fn prepare(
        &mut self,
        env: &mut Env<'_>,
        id: CallId,
        link: LinkId,
    ) -> Option<RelayStage> {
        let call = self.calls.get(id)?;
        let client = self.clients.get(call.client)?;
        let is_across = client.profile.is_stateless() && !self.is_stateless(link);
        let wants = is_across && call.level.is_some();
        let kept = self.links.get_mut(link);
        if let Some(kept) = kept.filter(|_| wants) {
            let server = self.servers.get(kept.server);
            let is_able = kept.info.as_ref().is_some_and(|info| info.can("logging"));
            let is_shared = server.is_some_and(|it| it.is_shared_child());
            if is_able && kept.level.is_none() && !is_shared {
                kept.level = Some("debug".to_owned());
                let params = Some(r#"{"level":"debug"}"#.into());
                let inquiry = Inquiry { method: "logging/setLevel", params, origin: None };
                let owner = ExchangeOwner::Before(id);
                let exchange = self.ask(env, link, inquiry, Replayability::Repeatable, owner);
                return Some(RelayStage::Preparing(exchange));
            }
        }
        self.ask_server(env, id)
    }

    /// What a call asks its server.
    pub(super) fn inquiry_of(&self, id: CallId) -> Option<Inquiry> {
        let call = self.calls.get(id)?;
        let Requested::Relay(what) = call.requested else { return None };
        let params = Arc::clone(&call.relay.route.as_ref()?.params);
        Some(Inquiry { method: what.method(), params: Some(params), origin: Some(id) })
    }

    /// What an answer leads to: the answer for the client, perhaps after questions and more
    /// requests over the same link.
    pub(super) fn bridge(
        &mut self,
        env: &mut Env<'_>,
        id: CallId,
        link: LinkId,
        answered: Answered,
    ) {
        let Some(call) = self.calls.get_mut(id) else { return };
        let Requested::Relay(what) = call.requested else { return };
        let is_stateless =
            self.clients.get(call.client).is_some_and(|it| it.profile.is_stateless());
        let result = match &answered {
            Answered::Reply(Ok(result)) if self.is_stateless(link) => result.clone(),
            _ => return self.answered(env, id, answered),
        };
        if is_stateless {
            let answered = self.undeclared(id, &result).unwrap_or(answered);
            return self.answered(env, id, answered);
        }
        let needed = serde_json::from_slice::<&RawValue>(&result).ok().filter(|it| is_needed(it));
        let Some(needed) = needed else {
            let text = String::from_utf8_lossy(&result);
            let dressed = dress::for_session(what.method(), &text);
            return self.answered(env, id, Answered::Reply(Ok(dressed.into())));
        };
        let Some(call) = self.calls.get_mut(id) else { return };
        call.relay.rounds += 1;
        if call.relay.rounds > ROUNDS_MAX {
            let server = self.links.get(link).map_or(self.no_server, |it| it.server);
            let unavailable = self.unavailable(server, Cause::Malformed);
            return self.answered(env, id, Answered::Unavailable(unavailable));
        }
        let needed = match Needed::read(needed) {
            Ok(needed) => needed,
            Err(flaw) => {
                let what = format!("the server asks what cannot be read: {flaw}");
                let error = error_object(INTERNAL_ERROR, &what, None);
                return self.answered(env, id, Answered::Reply(Err(error.into())));
            }
        };
        let is_silent = needed.questions.is_empty();
        let again_at = is_silent.then(|| env.now.after(STATE_ONLY_WAIT));
        let (answers, put, told) = (Vec::new(), None, None);
        let bridging = Bridging { needed, answers, put, told, again_at };
        self.put_relay(id, RelayStage::Bridging(Box::new(bridging)));
        self.schedule.wake(Task::Call(id));
    }

    /// What a client of the stateless era hears instead of a result that asks it something which
    /// it did not declare.
    fn undeclared(&self, id: CallId, result: &[u8]) -> Option<Answered> {
        let client = self.calls.get(id)?.client;
        let can = self.clients.get(client)?.profile.can();
        let needed = serde_json::from_slice::<&RawValue>(result).ok().filter(|it| is_needed(it))?;
        let questions = Needed::read(needed).ok()?.questions;
        let question = questions.iter().find(|it| !can.be_asked(&it.method))?;
        Some(Answered::Reply(Err(not_declared(&question.method).into())))
    }

    /// Looks at a call whose client is asked what its server needs to know.
    pub(super) fn run_bridging(
        &mut self,
        env: &mut Env<'_>,
        id: CallId,
        mut it: Box<Bridging>,
    ) -> Option<RelayStage> {
        if let Some(told) = it.told.take() {
            it.put = None;
            match told {
                Ok(told) => it.answers.push(told),
                Err(error) => {
                    let error = Bytes::from(String::from(Box::<str>::from(error)));
                    self.answered(env, id, Answered::Reply(Err(error)));
                    return None;
                }
            }
        }
        if let Some((number, until)) = it.put {
            if env.now.reached(until) {
                self.unput(id, number);
                let message = "the client did not answer what the server asked";
                let error = error_object(INTERNAL_ERROR, message, None);
                self.answered(env, id, Answered::Reply(Err(error.into())));
                return None;
            }
            self.schedule.arm_by(Task::Call(id), until);
            self.put_relay(id, RelayStage::Bridging(it));
            return None;
        }
        if let Some(at) = it.again_at
            && !env.now.reached(at)
        {
            self.schedule.arm_by(Task::Call(id), at);
            self.put_relay(id, RelayStage::Bridging(it));
            return None;
        }
        if let Some(question) = it.needed.questions.get(it.answers.len()) {
            let client = self.calls.get(id)?.client;
            let can = self.clients.get(client).map(|it| it.profile.can());
            if !can.is_some_and(|can| can.be_asked(&question.method)) {
                let error = not_declared(&question.method);
                self.answered(env, id, Answered::Reply(Err(error.into())));
                return None;
            }
            let asked = (question.method.as_str(), question.params.as_deref());
            match self.inquire(client, id, asked) {
                Some(number) => {
                    let limit = self.settings.call_timeout.0.saturating_mul(PATIENCE_ROUNDS);
                    it.put = Some((number, env.now.after(Millis(limit))));
                }
                None => {
                    let message = "too many questions wait for the client";
                    let error = error_object(INTERNAL_ERROR, message, None);
                    self.answered(env, id, Answered::Reply(Err(error.into())));
                    return None;
                }
            }
            return Some(RelayStage::Bridging(it));
        }
        self.ask_again(env, id, *it)
    }

    /// The same call once more, with what the server needs to know.
    fn ask_again(&mut self, env: &mut Env<'_>, id: CallId, it: Bridging) -> Option<RelayStage> {
        let call = self.calls.get_mut(id)?;
        let link = call.relay.link?;
        let route = call.relay.route.as_mut()?;
        let replayability = route.replayability;
        let mut params = Params::of_text(&route.params).unwrap_or_default();
        it.needed.answer(&mut params, it.answers);
        route.params = params.to_json().into();
        let inquiry = self.inquiry_of(id)?;
        let exchange = self.ask(env, link, inquiry, replayability, ExchangeOwner::Call(id));
        self.asking(id, exchange)
    }

    /// The client told what it was asked on behalf of a server.
    pub(super) fn inquiry_told(&mut self, id: CallId, number: u64, told: Told) {
        let Some(call) = self.calls.get_mut(id) else { return };
        if let RelayStage::Bridging(it) = &mut call.relay.stage
            && it.put.is_some_and(|(put, _)| put == number)
        {
            it.told = Some(told);
            self.schedule.wake(Task::Call(id));
        }
    }
}

/// The error of a call whose server asks what the client did not declare.
fn not_declared(method: &str) -> String {
    let message = format!("the server asks `{method}`, which was not declared");
    let capability = method.split('/').next().unwrap_or_default();
    let data = format!(r#"{{"requiredCapabilities":{{{}:{{}}}}}}"#, quoted(capability));
    error_object(MISSING_CAPABILITY, &message, Some(&data))
}
