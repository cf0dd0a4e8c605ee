//! What clients hear: answers to their calls, questions, and news of their tools.

use std::sync::Arc;

use serde_json::Value;
use tidegate_core::time::Now;
use tidegate_mcp::{
    group_call::Attempted,
    hub::{CallRecord, CallRecordEnd},
};

use super::{Stage, config};
use crate::mcp::trace::{AttemptTrace, CallTrace, ErrorWord};

/// A call, from its request until its step has looked at its end.
pub(super) struct Running {
    pub(super) session: String,
    pub(super) tool: String,
    began: Now,
    /// What came back, and when.
    pub(super) reply: Option<(Now, Value)>,
    /// Its client was asked something, and has not answered.
    pub(super) is_asked: bool,
    /// What the gateway recorded of it.
    pub(super) record: Option<CallRecord>,
    /// The servers that got it, in order.
    pub(super) delivered: Vec<Arc<str>>,
}

impl Running {
    pub(super) fn new(session: &str, tool: &str, began: Now) -> Self {
        Self {
            session: session.to_owned(),
            tool: tool.to_owned(),
            began,
            reply: None,
            is_asked: false,
            record: None,
            delivered: Vec::new(),
        }
    }

    /// Whether its client waits for something that it cannot bring about itself.
    pub(super) fn is_waiting(&self) -> bool {
        self.reply.is_none() && !self.is_asked
    }
}

impl Stage<'_> {
    /// A client hears something. `session` is whose stream it came on; empty for a whole answer.
    pub(super) fn message_to_client(&mut self, session: &str, message: &[u8]) {
        let Ok(message) = serde_json::from_slice::<Value>(message) else { return };
        match message["method"].as_str() {
            Some("notifications/tools/list_changed") => self.told_of_change(session),
            Some("elicitation/create") => self.asked(session, &message["id"]),
            Some(_) => {}
            None => {
                let Some(id) = message["id"].as_u64() else { return };
                match self.calls.get_mut(&id) {
                    Some(running) => running.reply = Some((self.now, message)),
                    None => drop(self.replies.insert(id, message)),
                }
            }
        }
    }

    fn told_of_change(&mut self, session: &str) {
        if !self.clients.contains_key(session) {
            return;
        }
        *self.list_changed.entry(session.to_owned()).or_default() += 1;
        self.told.push(session.to_owned());
        self.suspicions.retain(|it| it.session != session);
    }

    /// A server asks the client of a session something: it is about the oldest of its calls that
    /// has no answer.
    fn asked(&mut self, session: &str, question: &Value) {
        let mut calls = self.calls.iter_mut();
        let about = calls.find(|(_, it)| it.session == session && it.is_waiting());
        let Some((call, running)) = about else { return };
        running.is_asked = true;
        let call = *call;
        if let Some(client) = self.clients.get_mut(session) {
            client.questions.push_back((call, question.clone()));
        }
    }

    /// How a call ended, for its step. One that waits for its client goes on.
    pub(super) fn traced(&mut self, call: u64) -> Option<CallTrace> {
        let is_asked = self.calls.get(&call)?.is_asked;
        if is_asked {
            let running = self.calls.get(&call)?;
            return Some(self.trace(running, None));
        }
        let running = self.calls.remove(&call)?;
        if running.reply.is_none() {
            self.violate("I14", format!("a call of `{}` is never answered", running.tool));
        }
        Some(self.trace(&running, running.reply.as_ref()))
    }

    fn trace(&self, running: &Running, reply: Option<&(Now, Value)>) -> CallTrace {
        let ended = reply.map_or(self.now, |(at, _)| *at);
        let failure = reply.and_then(|(_, message)| Heard::of(message));
        let record = running.record.as_ref();
        let mut attempts = Vec::new();
        let groups = config::groups(self.scenario, &self.servers);
        let is_group =
            |name: &Arc<str>| groups.iter().any(|it| it.name == *name && it.is_real(&self.servers));
        if let Some(record) = record.filter(|it| is_group(&it.server)) {
            attempts = record.attempts.iter().map(attempt).collect();
        }
        let named = failure.as_ref().and_then(|it| it.server.clone());
        let server = record.map(|it| Arc::clone(&it.server)).or(named);
        let cause = record.and_then(|it| match &it.end {
            CallRecordEnd::Unavailable { cause, .. } => Some(cause.to_string()),
            CallRecordEnd::Answered(_) => None,
        });
        CallTrace {
            server: server.filter(|_| !failure.as_ref().is_some_and(Heard::is_unknown)),
            attempts,
            error: failure.as_ref().map(|it| it.error),
            cause: failure.as_ref().and_then(|it| cause.clone().or_else(|| it.cause.clone())),
            retry_after_ms: failure.as_ref().and_then(|it| it.retry_after_ms),
            delivered: running.delivered.len() as u32,
            took_ms: ended.since(running.began).0,
            asked: running.is_asked,
        }
    }
}

fn attempt(it: &Attempted) -> AttemptTrace {
    let cause = it.cause.map(|cause| cause.to_string());
    AttemptTrace { server: Arc::clone(&it.server), cause }
}

/// An error, as a client hears it.
struct Heard {
    error: ErrorWord,
    server: Option<Arc<str>>,
    cause: Option<String>,
    retry_after_ms: Option<u64>,
}

impl Heard {
    /// The error in an answer; none if the server has answered.
    fn of(message: &Value) -> Option<Self> {
        let result = &message["result"];
        let (object, text) = match message.get("error") {
            Some(error) => (&error["data"], error["message"].as_str()),
            None => (&result["structuredContent"], result["content"][0]["text"].as_str()),
        };
        let error = match object["code"].as_str() {
            Some("backend_unavailable") => ErrorWord::BackendUnavailable,
            Some("result_unknown") => ErrorWord::ResultUnknown,
            Some("busy") => ErrorWord::Busy,
            // Whatever else the gateway refuses is about what it does not know.
            _ if message.get("error").is_some() => ErrorWord::UnknownTool,
            _ => return None,
        };
        let cause = text.and_then(|it| it.split_once(" unavailable: ")).map(|it| it.1);
        let cause = cause.map(|it| it.trim_end_matches("; the result is unknown").to_owned());
        Some(Self {
            error,
            server: object["backend"].as_str().map(Arc::from),
            cause,
            retry_after_ms: object["retry_after_ms"].as_u64(),
        })
    }

    fn is_unknown(&self) -> bool {
        self.error == ErrorWord::UnknownTool
    }
}
