//! Calls that wait for their client: a server with sessions asks something in the middle of one,
//! and the client, which has none, can only be asked with the answer to its request.
//!
//! ```text
//!   client ── tools/call ──▶ gateway ── tools/call ───────────▶ server
//!   client ◀─ input_required ─ (parked) ◀─ elicitation/create ─ server
//!   client ── tools/call, inputResponses ──▶ gateway ── the answer to the question ──▶ server
//!   client ◀─ the result ───── gateway ◀─────────────────────── server
//! ```
//! Rules kept here:
//! - A parked call belongs to its caller and to one request, its arguments included: whoever else
//!   names it finds nothing (S31). Its name is 128 random bits.
//! - Bounded: [`PARKED_MAX`] per client, each for [`PARKED_FOR`]; then its server is told that
//!   nobody waits.

use bytes::Bytes;
use serde_json::{Value, value::RawValue};
use tidegate_core::time::{Millis, Now};

use super::calls::{AnswerTo, WaitingQuestion};
use super::event::LargeArguments;
use super::ids::{CallId, ClientId};
use super::schedule::Task;
use super::{Env, Hub};
use crate::{
    message::{self, INVALID_PARAMS, LARGE, METHOD_NOT_FOUND, Params},
    raw::{Fields, quoted},
    stateless::{Refused, heading},
};

/// Calls of one client that wait for it. Each holds one of the turns that its server has
/// (`max_calls`), so they are few.
const PARKED_MAX: usize = 16;
/// How long one waits: a person may have to be asked.
const PARKED_FOR: Millis = Millis::seconds(300);
/// What the name of a parked call begins with: a server's own state does not.
pub const PREFIX: &str = "tidegate.parked.";

/// A call that waits for its client.
pub(super) struct Parked {
    call: CallId,
    /// The request: only the same may come back for it.
    asked: AskedFor,
    questions: Vec<WaitingQuestion>,
    pub(super) until: Now,
}

/// What a request asks for, apart from what changes when it comes back for a call.
#[derive(Clone, Debug)]
pub(super) struct AskedFor {
    /// The method, and the name or uri that it is about.
    subject: String,
    /// Without any, an empty object: the protocol takes both for the same.
    arguments: Bytes,
}

impl AskedFor {
    /// What a request with these params asks for; large arguments may have been set aside.
    pub(super) fn of(method: &str, params: &Params<'_>, large: Option<&LargeArguments>) -> Self {
        let subject = format!("{method} {:?}", heading::name_of(method, params));
        let inline = || {
            let text = params.get("arguments").map_or("{}", |it| it.get());
            Bytes::copy_from_slice(text.as_bytes())
        };
        let arguments = large.map_or_else(inline, |it| it.arguments.clone());
        Self { subject, arguments }
    }

    /// Whether both ask for the same, whatever the order of keys and the spaces between them.
    fn is_same(&self, other: &Self) -> bool {
        let read = |text: &[u8]| serde_json::from_slice::<Value>(text).ok();
        let (one, other_one) = (&self.arguments, &other.arguments);
        let are_small = one.len().max(other_one.len()) <= LARGE;
        let are_same = one == other_one
            || (are_small && read(one).is_some_and(|it| read(other_one) == Some(it)));
        are_same && self.subject == other.subject
    }
}

/// What becomes of a request that comes back for a call.
pub(super) enum ComesBack {
    /// It goes on.
    Goes(CallId),
    /// It needs to know more: the result that says so.
    Asks(String),
    /// There is none, or it is not this request's.
    Refused(Refused),
    /// It comes back for none of ours.
    Not,
}

impl Hub {
    /// A call whose server asks something is parked, and its client told what is asked.
    pub(super) fn park_if_asked(&mut self, env: &mut Env<'_>, id: CallId) {
        let Some(call) = self.calls.get_mut(id) else { return };
        let AnswerTo::Stateless(attending) = &call.answer else { return };
        if call.is_away || call.waiting.is_empty() {
            return;
        }
        let asked = attending.asked.clone();
        let questions = std::mem::take(&mut call.waiting);
        if let Some(told) = self.park(env, id, asked, questions) {
            self.leave_stateless(env, id, told);
        }
    }

    /// Parks a call; what its client is told. None if there is no room: its questions are refused,
    /// and it goes on.
    fn park(
        &mut self,
        env: &mut Env<'_>,
        id: CallId,
        asked: AskedFor,
        questions: Vec<WaitingQuestion>,
    ) -> Option<String> {
        let client = self.calls.get(id)?.client;
        let has_room = self.clients.get(client).is_some_and(|it| it.parked.len() < PARKED_MAX);
        let name = if has_room { env.random.parked_id() } else { None };
        let Some(name) = name else {
            let message = "too many calls wait for this client";
            for question in &questions {
                let id = Some(&question.id);
                let refusal = message::error(id, METHOD_NOT_FOUND, message, None);
                self.tell_server(question.talk, refusal);
            }
            if let Some(call) = self.calls.get_mut(id) {
                let count = u32::try_from(questions.len()).unwrap_or(u32::MAX);
                call.asked = call.asked.saturating_sub(count);
            }
            return None;
        };
        let name = format!("{PREFIX}{name}");
        let told = asking(&questions, &name);
        let until = env.now.after(PARKED_FOR);
        self.calls.get_mut(id)?.is_away = true;
        let parked = Parked { call: id, asked, questions, until };
        self.clients.get_mut(client)?.parked.insert(name, parked);
        self.schedule.arm_by(Task::Reap, until);
        Some(told)
    }

    /// A request comes, perhaps back for a call; `asked` is what it asks for.
    pub(super) fn comes_back(
        &mut self,
        env: &mut Env<'_>,
        client: ClientId,
        params: Option<&RawValue>,
        asked: &AskedFor,
    ) -> ComesBack {
        let params = Params::parse(params).unwrap_or_default();
        let Some(name) = params.text("requestState").filter(|it| it.starts_with(PREFIX)) else {
            return ComesBack::Not;
        };
        let Some(kept) = self.clients.get_mut(client) else { return ComesBack::Not };
        let is_it = kept.parked.get(&name).is_some_and(|it| it.asked.is_same(asked));
        let parked = if is_it { kept.parked.remove(&name) } else { None };
        let parked = parked.filter(|it| self.calls.get(it.call).is_some());
        let Some(Parked { call: id, questions, asked, .. }) = parked else {
            let message = "no call waits under this `requestState` any more; call again";
            return ComesBack::Refused(Refused::new(INVALID_PARAMS, message));
        };
        let answers = params.get("inputResponses");
        let answers = answers.and_then(|it| Fields::of(it, &[]).ok()).unwrap_or_default();
        let mut left = Vec::new();
        for (at, question) in questions.into_iter().enumerate() {
            match answers.get(&key(at)) {
                Some(answer) => {
                    self.tell_server(question.talk, message::answer(&question.id, Ok(answer)));
                    if let Some(call) = self.calls.get_mut(id) {
                        call.asked = call.asked.saturating_sub(1);
                    }
                }
                None => left.push(question),
            }
        }
        if !left.is_empty() {
            return match self.park(env, id, asked, left) {
                Some(told) => ComesBack::Asks(told),
                None => ComesBack::Goes(id),
            };
        }
        if let Some(call) = self.calls.get_mut(id) {
            call.progress = params.progress_token();
        }
        ComesBack::Goes(id)
    }

    /// Calls whose client did not come back are given up.
    pub(super) fn sweep_parked(&mut self, env: &mut Env<'_>, client: ClientId) {
        let Some(kept) = self.clients.get_mut(client) else { return };
        let late = kept.parked.iter().filter(|(_, it)| env.now.reached(it.until));
        let late: Vec<(String, CallId)> = late.map(|(name, it)| (name.clone(), it.call)).collect();
        for (name, call) in late {
            if let Some(kept) = self.clients.get_mut(client) {
                kept.parked.remove(&name);
            }
            self.drop_call(env, call);
        }
    }
}

fn key(at: usize) -> String {
    format!("question-{}", at + 1)
}

/// The result that says what the server needs to know.
fn asking(questions: &[WaitingQuestion], name: &str) -> String {
    let question = |(at, it): (usize, &WaitingQuestion)| {
        let params = it.params.as_ref().map(|it| format!(r#","params":{it}"#));
        let params = params.unwrap_or_default();
        format!(r#""{}":{{"method":{}{params}}}"#, key(at), quoted(&it.method))
    };
    let questions: Vec<String> = questions.iter().enumerate().map(question).collect();
    format!(
        r#"{{"resultType":"input_required","inputRequests":{{{}}},"requestState":{}}}"#,
        questions.join(","),
        quoted(name)
    )
}
