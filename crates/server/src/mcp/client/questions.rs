//! What servers ask a client: sampling, elicitation, roots.
//!
//! Rules kept here:
//! - A question reaches the client whose call caused it, and only if that client said it can be
//!   asked such things (S44). The gateway never answers one itself, except to refuse it.
//! - Ids of questions are ours, so that answers cannot be mixed up.

use std::rc::{Rc, Weak};

use serde_json::value::RawValue;
use tidegate_mcp::message::{self, Id, METHOD_NOT_FOUND};

use super::Client;
use crate::mcp::{conversation::Conversation, party::Party, stream::Weight};

/// Questions to one client at once.
const QUESTIONS_MAX: usize = 64;

/// A request of a server's that the client has not answered.
pub(super) struct Question {
    talk: Weak<Conversation>,
    /// The server's own id.
    id: Id,
    party: Option<Rc<Party>>,
}

impl Client {
    /// A server asks this client something.
    pub(crate) fn ask(
        &self,
        talk: &Rc<Conversation>,
        id: Id,
        (method, params): (&str, Option<&RawValue>),
        party: Option<Rc<Party>>,
    ) {
        let refuse = |message: &str| {
            talk.tell(message::error(Some(&id), METHOD_NOT_FOUND, message, None));
        };
        if !self.hello.can().be_asked(method) {
            return refuse("the client did not declare that it can be asked this");
        }
        if self.questions.borrow().len() >= QUESTIONS_MAX {
            return refuse("too many questions wait for the client");
        }
        let number = self.next_question.get();
        self.next_question.set(number + 1);
        let stream =
            party.as_ref().map_or_else(|| self.streams.standing(), |it| Rc::clone(&it.stream));
        if let Some(party) = &party {
            party.asked.set(party.asked.get() + 1);
        }
        let question = Question { talk: Rc::downgrade(talk), id, party };
        self.questions.borrow_mut().insert(number, question);
        let params = params.map(RawValue::get);
        let message = message::request(&Id::number(number), method, params);
        stream.send(message.as_bytes(), Weight::Needed);
    }

    /// The client answered a question.
    pub(crate) fn answered(&self, id: &Id, outcome: Result<&RawValue, &RawValue>) {
        let number = id.as_number();
        let question = number.and_then(|number| self.questions.borrow_mut().remove(&number));
        let Some(question) = question else { return };
        if let Some(party) = question.party {
            party.asked.set(party.asked.get().saturating_sub(1));
        }
        if let Some(talk) = question.talk.upgrade() {
            talk.tell(message::answer(&question.id, outcome));
        }
    }

    /// A server does not want its question answered any more.
    pub(crate) fn unask(&self, talk: &Rc<Conversation>, id: &Id) {
        let is_it = |it: &Question| it.id == *id && it.talk.ptr_eq(&Rc::downgrade(talk));
        let mut questions = self.questions.borrow_mut();
        let number = questions.iter().find(|(_, it)| is_it(it)).map(|(number, _)| *number);
        let question = number.and_then(|number| questions.remove(&number));
        drop(questions);
        if let (Some(number), Some(question)) = (number, question) {
            let stream = match question.party {
                Some(party) => {
                    party.asked.set(party.asked.get().saturating_sub(1));
                    Rc::clone(&party.stream)
                }
                None => self.streams.standing(),
            };
            let params = format!(r#"{{"requestId":{number}}}"#);
            let message = message::notification("notifications/cancelled", Some(&params));
            stream.send(message.as_bytes(), Weight::Notice);
        }
    }

    /// What the client tells of a question it works on goes to whoever asked.
    pub(crate) fn tell_askers(&self, message: &str) {
        let talks: Vec<_> =
            self.questions.borrow().values().filter_map(|it| it.talk.upgrade()).collect();
        for (at, talk) in talks.iter().enumerate() {
            if !talks[..at].iter().any(|it| Rc::ptr_eq(it, talk)) {
                talk.tell(message.to_owned());
            }
        }
    }
}
