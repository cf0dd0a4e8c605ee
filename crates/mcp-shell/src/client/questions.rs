//! What servers ask a client: sampling, elicitation, roots.
//!
//! Rules kept here:
//! - A question reaches the client whose call caused it, and only if that client said it can be
//!   asked such things (S44). The gateway never answers one itself, except to refuse it.
//! - Ids of questions are ours, so that answers cannot be mixed up.
//! - A client of the stateless era is asked with the answer to its request (`front/parked`).

use std::rc::{Rc, Weak};
use std::time::Duration;

use serde_json::value::RawValue;
use tidegate_mcp::message::{self, INTERNAL_ERROR, Id, METHOD_NOT_FOUND};
use tokio::sync::oneshot;

use super::Client;
use crate::{
    conversation::Conversation,
    party::{Party, Waiting},
    stream::Weight,
};

/// How many times the limit of a call a client may take to answer: a person may be asked.
const PATIENCE_ROUNDS: u32 = 10;
/// Questions to one client at once.
const QUESTIONS_MAX: usize = 64;

/// A request that the client has not answered.
pub(super) struct Question {
    asker: Asker,
    party: Option<Rc<Party>>,
}

/// Who asks.
enum Asker {
    /// A server, with an id of its own.
    Server { talk: Weak<Conversation>, id: Id },
    /// The gateway, for a server that said in its result what it needs.
    Gateway(oneshot::Sender<Told>),
}

/// What a client tells: the text of a `result`, or of an `error`.
type Told = Result<Box<RawValue>, Box<RawValue>>;

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
        if self.hello.is_stateless() {
            let Some(party) = party else {
                return refuse("the client has no session in which it could be asked");
            };
            let (by, method) = (Rc::downgrade(talk), method.to_owned());
            let params = params.map(ToOwned::to_owned);
            let waiting = Waiting { talk: by, id: id.clone(), method, params };
            if party.desk.wait(waiting).is_err() {
                refuse("too many questions wait for the client");
            }
            return;
        }
        if self.questions.borrow().len() >= QUESTIONS_MAX {
            return refuse("too many questions wait for the client");
        }
        let asker = Asker::Server { talk: Rc::downgrade(talk), id };
        self.put(Question { asker, party }, (method, params));
    }

    /// Asks the client on behalf of a server that said what it needs to know; waits as long as a
    /// server with a session would.
    pub(crate) async fn inquire(
        &self,
        asked: (&str, Option<&RawValue>),
        party: Option<Rc<Party>>,
    ) -> Told {
        let failed = |message: &str| {
            let error = message::error_object(INTERNAL_ERROR, message, None);
            Err(RawValue::from_string(error).expect("an error object is JSON"))
        };
        if self.questions.borrow().len() >= QUESTIONS_MAX {
            return failed("too many questions wait for the client");
        }
        let (sender, told) = oneshot::channel();
        let number = self.put(Question { asker: Asker::Gateway(sender), party }, asked);
        let within = self.ground.live().file.mcp.call_timeout.millis();
        let within = Duration::from_millis(within.0).saturating_mul(PATIENCE_ROUNDS);
        match tokio::time::timeout(within, told).await {
            Ok(Ok(told)) => told,
            Ok(Err(_)) => failed("the session has ended"),
            Err(_) => {
                self.questions.borrow_mut().remove(&number);
                failed("the client did not answer what the server asked")
            }
        }
    }

    /// Puts a question to the client; its number.
    fn put(&self, question: Question, (method, params): (&str, Option<&RawValue>)) -> u64 {
        let number = self.next_question.get();
        self.next_question.set(number + 1);
        let party = question.party.as_ref();
        let stream = party.map_or_else(|| self.streams.standing(), |it| it.desk.stream());
        if let Some(party) = party {
            party.desk.one_asked();
        }
        self.questions.borrow_mut().insert(number, question);
        let params = params.map(RawValue::get);
        let message = message::request(&Id::number(number), method, params);
        stream.send(message.as_bytes(), Weight::Needed);
        number
    }

    /// The client answered a question.
    pub(crate) fn answered(&self, id: &Id, outcome: Result<&RawValue, &RawValue>) {
        let number = id.as_number();
        let question = number.and_then(|number| self.questions.borrow_mut().remove(&number));
        let Some(question) = question else { return };
        if let Some(party) = question.party {
            party.desk.one_answered();
        }
        match question.asker {
            Asker::Server { talk, id } => {
                if let Some(talk) = talk.upgrade() {
                    talk.tell(message::answer(&id, outcome));
                }
            }
            // The call may have been given up meanwhile.
            Asker::Gateway(sender) => {
                let told = outcome.map(ToOwned::to_owned).map_err(ToOwned::to_owned);
                drop(sender.send(told));
            }
        }
    }

    /// A server does not want its question answered any more.
    pub(crate) fn unask(&self, talk: &Rc<Conversation>, id: &Id) {
        let is_it = |it: &Question| match &it.asker {
            Asker::Server { talk: by, id: own } => own == id && by.ptr_eq(&Rc::downgrade(talk)),
            Asker::Gateway(_) => false,
        };
        let mut questions = self.questions.borrow_mut();
        let number = questions.iter().find(|(_, it)| is_it(it)).map(|(number, _)| *number);
        let question = number.and_then(|number| questions.remove(&number));
        drop(questions);
        if let (Some(number), Some(question)) = (number, question) {
            let stream = match question.party {
                Some(party) => {
                    party.desk.one_answered();
                    party.desk.stream()
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
        let talk = |question: &Question| match &question.asker {
            Asker::Server { talk, .. } => talk.upgrade(),
            Asker::Gateway(_) => None,
        };
        let talks: Vec<_> = self.questions.borrow().values().filter_map(talk).collect();
        for (at, talk) in talks.iter().enumerate() {
            if !talks[..at].iter().any(|it| Rc::ptr_eq(it, talk)) {
                talk.tell(message.to_owned());
            }
        }
    }
}
