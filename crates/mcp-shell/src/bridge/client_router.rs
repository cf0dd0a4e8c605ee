//! What becomes of a client's line: where each message goes, and what is under way.
//!
//! | message | goes |
//! |---|---|
//! | `initialize` | to the gateway, before anything that follows it |
//! | a request that stands by itself: it says so, or asks what only that era has | to `stateless` |
//! | any other request; a batch, which one old version has | to the session |
//! | `notifications/cancelled` of a stateless request | ends its stream |
//! | any other notification; an answer to what the gateway asked | to the session |
//! | what is no message | nowhere: its sender is told |
//!
//! Rules kept here:
//! - At most [`REQUESTS_MAX`] requests are under way; one more is refused in words.
//! - An id is used by one request at a time.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::value::RawValue;
use tidegate_mcp::{
    message::{self, Fault, INVALID_REQUEST, Id, Message, Params, is_batch, parse_batch},
    stateless::{belongs, listen},
};
use tidegate_runtime::task::{self, Owned};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::{
    exchange::GivenUp,
    pipes::Out,
    session::{self, Session},
    stateless::{self, Stateless},
    wire::Wire,
};
use crate::stdio::{lines::Line, oversize};

/// Requests of one client at once: more than a person's tools ever make.
const REQUESTS_MAX: usize = 256;
const CANCELLED: &str = "notifications/cancelled";

/// Where a client's messages are sorted.
pub(super) struct ClientRouter {
    out: Out,
    session: Rc<Session>,
    stateless: Rc<Stateless>,
    calls: RefCell<BTreeMap<u64, Call>>,
    made: Cell<u64>,
    call_ended: Notify,
}

/// Requests under way.
struct Call {
    ids: Vec<Id>,
    kind: CallKind,
    given_up: GivenUp,
    task: Owned,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallKind {
    InSession,
    Stateless,
    /// It stays open until its client ends it; nobody waits for its end.
    Listening,
}

impl ClientRouter {
    pub(super) fn new(wire: Rc<Wire>, out: Out) -> Rc<Self> {
        Rc::new(Self {
            session: Session::new(Rc::clone(&wire), out.clone()),
            stateless: Stateless::new(wire, out.clone()),
            out,
            calls: RefCell::default(),
            made: Cell::default(),
            call_ended: Notify::new(),
        })
    }

    /// Takes a line.
    pub(super) async fn take(self: &Rc<Self>, line: Line) {
        let bytes = match line {
            Line::Whole(bytes) => bytes,
            Line::TooLong(ends) => {
                let id = oversize::asked_id(&ends).and_then(|id| RawValue::from_string(id).ok());
                let id = id.and_then(|id| Id::read(&id).ok());
                let text = format!("a message of {} bytes; at most 16 MiB are taken", ends.bytes);
                let answer = message::error(id.as_ref(), INVALID_REQUEST, &text, None);
                return self.out.say(answer).await;
            }
        };
        let taken = if is_batch(&bytes) {
            self.batch(&bytes)
        } else {
            match Message::parse(&bytes) {
                Ok(Message::Request { id, method, .. }) if method == "initialize" => {
                    return self.session.open(id, bytes.clone()).await;
                }
                Ok(message) => self.message(message, &bytes),
                Err(fault) => Err(fault),
            }
        };
        if let Err(fault) = taken {
            self.out.say(fault.to_answer()).await;
        }
    }

    /// Waits until no request is under way that ends by itself, but not for long.
    pub(super) async fn calls_ended(&self, within: Duration) {
        let ended = async {
            while self.calls.borrow().values().any(|call| call.kind != CallKind::Listening) {
                self.call_ended.notified().await;
            }
        };
        // Those that are left end with the session.
        drop(timeout(within, ended).await);
    }

    /// Waits until nobody reads any more.
    pub(super) async fn nobody_reads(&self) {
        self.out.nobody_reads().await;
    }

    /// Ends everything.
    pub(super) async fn close(&self) {
        drop(self.calls.take());
        self.session.close().await;
    }

    fn message(self: &Rc<Self>, message: Message<'_>, bytes: &Bytes) -> Result<(), Fault> {
        match message {
            Message::Request { id, method, params } => {
                if let Err(flaw) = Params::parse(params) {
                    return Err(Fault::params(&id, format!("params: {flaw}")));
                }
                if belongs(&method, params, None) {
                    return self.stateless(id, &method, bytes);
                }
                self.session.see(&method, params);
                self.in_session(vec![id], bytes)
            }
            Message::Notification { method, params } => {
                if !(method == CANCELLED && self.cancel(params)) {
                    self.session.notice(&method, bytes.clone());
                }
                Ok(())
            }
            Message::Answer { .. } => {
                self.session.notice("", bytes.clone());
                Ok(())
            }
        }
    }

    /// Several messages at once go on as one; what is wrong with one of them the gateway says.
    fn batch(self: &Rc<Self>, bytes: &Bytes) -> Result<(), Fault> {
        let mut ids = Vec::new();
        for message in parse_batch(bytes)? {
            match message {
                Ok(Message::Request { id, .. }) => ids.push(id),
                Ok(Message::Notification { method, params }) if method == CANCELLED => {
                    self.cancel(params);
                }
                Ok(Message::Notification { .. } | Message::Answer { .. }) | Err(_) => {}
            }
        }
        if ids.is_empty() {
            self.session.notice("", bytes.clone());
            return Ok(());
        }
        self.in_session(ids, bytes)
    }

    fn in_session(self: &Rc<Self>, ids: Vec<Id>, message: &Bytes) -> Result<(), Fault> {
        let (session, given_up) = (Rc::clone(&self.session), GivenUp::default());
        let ask = session::SessionRequest {
            ids: ids.clone(),
            message: message.clone(),
            given_up: Rc::clone(&given_up),
            before: session.so_far(),
        };
        let work = async move { session.ask(ask).await };
        self.begin(ids, CallKind::InSession, given_up, work)
    }

    fn stateless(self: &Rc<Self>, id: Id, method: &str, message: &Bytes) -> Result<(), Fault> {
        let (method, message) = (method.to_owned(), message.clone());
        let kind = if method == listen::METHOD { CallKind::Listening } else { CallKind::Stateless };
        let ask = stateless::StatelessRequest { id: id.clone(), method, message };
        let stateless = Rc::clone(&self.stateless);
        let work = async move { stateless.ask(ask).await };
        self.begin(vec![id], kind, GivenUp::default(), work)
    }

    /// Begins a request, if there is room for it.
    fn begin(
        self: &Rc<Self>,
        ids: Vec<Id>,
        kind: CallKind,
        given_up: GivenUp,
        work: impl Future<Output = ()> + 'static,
    ) -> Result<(), Fault> {
        let mut calls = self.calls.borrow_mut();
        let refused = |id: &Id, message: String| Fault {
            code: INVALID_REQUEST,
            message,
            id: Some(id.clone()),
        };
        for id in &ids {
            if calls.values().any(|call| call.ids.contains(id)) {
                return Err(refused(id, format!("the id `{id}` is used by a request under way")));
            }
            if calls.len() >= REQUESTS_MAX {
                let text = format!("{REQUESTS_MAX} requests are under way; wait for some of them");
                return Err(refused(id, text));
            }
        }
        let number = self.made.get();
        self.made.set(number + 1);
        let router = Rc::clone(self);
        let task = task::spawn_owned("bridged request", async move {
            work.await;
            router.ended(number);
        });
        calls.insert(number, Call { ids, kind, given_up, task });
        Ok(())
    }

    fn ended(&self, number: u64) {
        if let Some(call) = self.calls.borrow_mut().remove(&number) {
            call.task.detach();
        }
        self.call_ended.notify_one();
    }

    /// A client gives a request up; true if that is all there is to do.
    fn cancel(&self, params: Option<&RawValue>) -> bool {
        let params = Params::parse(params).unwrap_or_default();
        let id = params.get("requestId").and_then(|id| Id::read(id).ok());
        let Some(id) = id else { return false };
        let mut calls = self.calls.borrow_mut();
        let Some((&number, call)) = calls.iter().find(|(_, call)| call.ids.contains(&id)) else {
            return false;
        };
        if call.kind == CallKind::InSession {
            call.given_up.set(true);
            return false;
        }
        let call = calls.remove(&number);
        drop(calls);
        drop(call);
        self.call_ended.notify_one();
        true
    }
}
