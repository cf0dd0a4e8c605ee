//! What servers ask a client: sampling, elicitation, roots.
//!
//! Rules kept here:
//! - A question reaches the client whose call caused it, and only if that client said it can be
//!   asked such things (S44). The gateway never answers one itself, except to refuse it.
//! - Ids of questions are ours, so that answers cannot be mixed up.
//! - A client of the stateless era is asked with the answer to its request (`parked`).

use serde_json::value::RawValue;

use super::calls::WaitingQuestion;
use super::ids::{CallId, ClientId, ConnectionId};
use super::{Env, Hub};
use crate::{
    message::{self, Id, METHOD_NOT_FOUND},
    replay::Weight,
};

/// Questions to one client at once.
const QUESTIONS_MAX: usize = 64;

/// What a client tells: the text of a `result`, or of an `error`.
pub(super) type Told = Result<Box<RawValue>, Box<RawValue>>;

/// A request that the client has not answered.
pub(super) struct PutQuestion {
    asker: QuestionAsker,
    call: Option<CallId>,
}

/// Who asks.
enum QuestionAsker {
    /// A server, with an id of its own.
    Server { talk: ConnectionId, id: Id },
    /// The gateway, for a server that said in its result what it needs.
    Gateway,
}

impl PutQuestion {
    /// Whether the gateway asks for a call, which ends with it.
    pub(super) fn is_of_gateway_for(&self, call: CallId) -> bool {
        matches!(self.asker, QuestionAsker::Gateway) && self.call == Some(call)
    }
}

impl Hub {
    /// A server asks a client something.
    pub(super) fn ask_client(
        &mut self,
        env: &mut Env<'_>,
        client: ClientId,
        (talk, id): (ConnectionId, Id),
        (method, params): (&str, Option<&RawValue>),
        call: Option<CallId>,
    ) {
        let refusal = |message: &str| message::error(Some(&id), METHOD_NOT_FOUND, message, None);
        let Some(kept) = self.clients.get(client) else {
            return self.tell_server(talk, refusal("nobody can be asked over this connection"));
        };
        if !kept.profile.can().be_asked(method) {
            let message = "the client did not declare that it can be asked this";
            return self.tell_server(talk, refusal(message));
        }
        let too_many = "too many questions wait for the client";
        if kept.profile.is_stateless() {
            let waits = call.and_then(|call| self.calls.get_mut(call));
            let Some(waits) = waits else {
                let message = "the client has no session in which it could be asked";
                return self.tell_server(talk, refusal(message));
            };
            let question = WaitingQuestion {
                talk,
                id: id.clone(),
                method: method.to_owned(),
                params: params.map(ToOwned::to_owned),
            };
            if !waits.wait(question) {
                return self.tell_server(talk, refusal(too_many));
            }
            if let Some(call) = call {
                self.park_if_asked(env, call);
            }
            return;
        }
        if kept.questions.len() >= QUESTIONS_MAX {
            return self.tell_server(talk, refusal(too_many));
        }
        let asker = QuestionAsker::Server { talk, id };
        self.put_question(client, PutQuestion { asker, call }, (method, params));
    }

    /// Asks a client on behalf of a server that said what it needs to know; the question's number,
    /// none if too many wait.
    pub(super) fn inquire(
        &mut self,
        client: ClientId,
        call: CallId,
        asked: (&str, Option<&RawValue>),
    ) -> Option<u64> {
        if self.clients.get(client)?.questions.len() >= QUESTIONS_MAX {
            return None;
        }
        let question = PutQuestion { asker: QuestionAsker::Gateway, call: Some(call) };
        self.put_question(client, question, asked)
    }

    /// A question on behalf of a call is not waited for any more.
    pub(super) fn unput(&mut self, call: CallId, number: u64) {
        let client = self.calls.get(call).map(|it| it.client);
        if let Some(client) = client.and_then(|it| self.clients.get_mut(it)) {
            client.questions.remove(&number);
        }
    }

    /// Puts a question to the client; its number.
    fn put_question(
        &mut self,
        id: ClientId,
        question: PutQuestion,
        (method, params): (&str, Option<&RawValue>),
    ) -> Option<u64> {
        let client = self.clients.get_mut(id)?;
        let number = client.next_question;
        client.next_question += 1;
        let call = question.call.and_then(|call| self.calls.get_mut(call));
        let stream = match call {
            Some(call) => {
                call.asked += 1;
                call.stream
            }
            None => Self::standing(id),
        };
        client.questions.insert(number, question);
        let params = params.map(RawValue::get);
        let message = message::request(&Id::number(number), method, params);
        self.send_event(stream, message.as_bytes(), Weight::Needed);
        Some(number)
    }

    /// The client answered a question.
    pub(super) fn question_answered(
        &mut self,
        client: ClientId,
        id: &Id,
        outcome: Result<&RawValue, &RawValue>,
    ) {
        let Some(number) = id.as_number() else { return };
        let kept = self.clients.get_mut(client);
        let Some(question) = kept.and_then(|it| it.questions.remove(&number)) else { return };
        if let Some(call) = question.call.and_then(|call| self.calls.get_mut(call)) {
            call.asked = call.asked.saturating_sub(1);
        }
        match (question.asker, question.call) {
            (QuestionAsker::Server { talk, id }, _) => {
                self.tell_server(talk, message::answer(&id, outcome));
            }
            (QuestionAsker::Gateway, Some(call)) => {
                let told = outcome.map(ToOwned::to_owned).map_err(ToOwned::to_owned);
                self.inquiry_told(call, number, told);
            }
            // The call may have been given up meanwhile.
            (QuestionAsker::Gateway, None) => {}
        }
    }

    /// A server does not want its question answered any more.
    pub(super) fn unask(&mut self, client: ClientId, talk: ConnectionId, id: &Id) {
        let is_it = |it: &PutQuestion| match &it.asker {
            QuestionAsker::Server { talk: by, id: own } => own == id && *by == talk,
            QuestionAsker::Gateway => false,
        };
        let Some(kept) = self.clients.get_mut(client) else { return };
        let found = kept.questions.iter().find(|(_, it)| is_it(it)).map(|(number, _)| *number);
        let Some(number) = found else { return };
        let Some(question) = kept.questions.remove(&number) else { return };
        let stream = match question.call.and_then(|call| self.calls.get_mut(call)) {
            Some(call) => {
                call.asked = call.asked.saturating_sub(1);
                call.stream
            }
            None => Self::standing(client),
        };
        let params = format!(r#"{{"requestId":{number}}}"#);
        let message = message::notification("notifications/cancelled", Some(&params));
        self.send_event(stream, message.as_bytes(), Weight::Notice);
    }

    /// What the client tells of a question it works on goes to whoever asked.
    pub(super) fn tell_askers(&mut self, client: ClientId, message: &str) {
        let Some(kept) = self.clients.get(client) else { return };
        let talk = |it: &PutQuestion| match it.asker {
            QuestionAsker::Server { talk, .. } => Some(talk),
            QuestionAsker::Gateway => None,
        };
        let mut talks: Vec<ConnectionId> = kept.questions.values().filter_map(talk).collect();
        talks.sort_unstable();
        talks.dedup();
        talks.into_iter().for_each(|talk| self.tell_server(talk, message.to_owned()));
    }
}
