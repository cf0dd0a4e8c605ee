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
//! - A parked call belongs to its caller and to one request: whoever else names it finds nothing
//!   (S31). Its name is 128 random bits.
//! - Bounded: [`PARKED_MAX`] per client, each for [`PARKED_FOR`]; then its server is told that
//!   nobody waits.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::value::RawValue;
use tidegate_core::time::{Millis, Now};
use tidegate_mcp::{
    message::{self, INVALID_PARAMS, METHOD_NOT_FOUND, Params},
    raw::{Fields, quoted},
    stateless::Refused,
};
use tidegate_runtime::task::Owned;
use tokio::sync::oneshot;

use crate::{
    hub::random_id,
    party::{Desk, Waiting},
    relay::Made,
};

/// Calls of one client that wait for it. Each holds one of the turns that its server has
/// (`max_calls`), so they are few.
const PARKED_MAX: usize = 16;
/// How long one waits: a person may have to be asked.
const PARKED_FOR: Millis = Millis::seconds(300);
/// What the name of a parked call begins with: a server's own state does not.
const PREFIX: &str = "tidegate.parked.";

/// A call at work, whoever waits for it.
pub(crate) struct UnderWay {
    /// Dropping it tells the server that nobody waits any more.
    #[expect(dead_code, reason = "held, so that the call ends with it")]
    pub(super) task: Owned,
    pub(super) made: oneshot::Receiver<Made>,
    pub(super) desk: Rc<Desk>,
    /// The request: only the same may come back for it.
    pub(super) request: String,
}

struct Parked {
    call: UnderWay,
    questions: Vec<Waiting>,
    until: Now,
}

/// The calls of one client that wait for it.
#[derive(Default)]
pub(crate) struct ParkingLot(RefCell<BTreeMap<String, Parked>>);

/// What becomes of a request that comes back for a call.
pub(super) enum Back {
    /// It goes on.
    Goes(UnderWay),
    /// It needs to know more.
    Asks(String),
    /// There is none, or it is not this request's.
    Refused(Refused),
    /// It comes back for none of ours.
    Not,
}

impl ParkingLot {
    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// Nobody can come back any more.
    pub(crate) fn clear(&self) {
        drop(self.0.take());
    }

    /// Those whose client did not come back are given up.
    pub(crate) fn sweep(&self, now: Now) {
        self.0.borrow_mut().retain(|_, parked| !now.reached(parked.until));
    }

    /// Parks a call; what its client is told. The call, if there is no room.
    pub(super) fn park(
        &self,
        call: UnderWay,
        questions: Vec<Waiting>,
        now: Now,
    ) -> Result<String, UnderWay> {
        let id = random_id().filter(|_| self.0.borrow().len() < PARKED_MAX);
        let Some(id) = id else {
            for question in &questions {
                refuse(question);
                call.desk.one_answered();
            }
            return Err(call);
        };
        let name = format!("{PREFIX}{id}");
        let told = asking(&questions, &name);
        call.desk.leave();
        let parked = Parked { call, questions, until: now.after(PARKED_FOR) };
        self.0.borrow_mut().insert(name, parked);
        Ok(told)
    }

    /// A request comes, perhaps back for a call; `request` is what it asks for.
    pub(super) fn back(&self, params: Option<&RawValue>, request: &str, now: Now) -> Back {
        let params = Params::parse(params).unwrap_or_default();
        let Some(name) = params.text("requestState").filter(|it| it.starts_with(PREFIX)) else {
            return Back::Not;
        };
        let mut all = self.0.borrow_mut();
        let is_it = |parked: &Parked| parked.call.request == request;
        if !all.get(&name).is_some_and(is_it) {
            let message = "no call waits under this `requestState` any more; call again";
            return Back::Refused(Refused::new(INVALID_PARAMS, message));
        }
        let Some(Parked { call, questions, .. }) = all.remove(&name) else { return Back::Not };
        drop(all);
        let answers = params.get("inputResponses");
        let answers = answers.and_then(|it| Fields::of(it, &[]).ok()).unwrap_or_default();
        let mut left = Vec::new();
        for (at, question) in questions.into_iter().enumerate() {
            match answers.get(&key(at)) {
                Some(answer) => {
                    if let Some(talk) = question.talk.upgrade() {
                        talk.tell(message::answer(&question.id, Ok(answer)));
                    }
                    call.desk.one_answered();
                }
                None => left.push(question),
            }
        }
        if left.is_empty() {
            call.desk.set_progress(params.progress_token());
            return Back::Goes(call);
        }
        match self.park(call, left, now) {
            Ok(told) => Back::Asks(told),
            Err(call) => Back::Goes(call),
        }
    }
}

fn key(at: usize) -> String {
    format!("question-{}", at + 1)
}

/// The result that says what the server needs to know.
fn asking(questions: &[Waiting], name: &str) -> String {
    let question = |(at, it): (usize, &Waiting)| {
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

fn refuse(question: &Waiting) {
    if let Some(talk) = question.talk.upgrade() {
        let message = "too many calls wait for this client";
        talk.tell(message::error(Some(&question.id), METHOD_NOT_FOUND, message, None));
    }
}
