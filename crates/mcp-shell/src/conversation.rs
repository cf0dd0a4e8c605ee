//! One conversation at work: our requests go out with ids of our own, their answers find whoever
//! waits, and everything else the server says goes to the conversation's ear.
//!
//! Rules kept here:
//! - Every request ends exactly once: answered, unanswered, timed out, or given up. Whoever gives
//!   one up (a timeout, a cancelled call) tells the server so.
//! - Ids are numbers of ours, never a client's, so that calls of several sessions cannot be mixed
//!   up; a progress token that we ask for is the id of its call.
//! - Answers to requests nobody waits for any more are dropped.
//! - In the stateless era every request says whose it is, in `_meta` and in headers; there, over
//!   HTTP, closing its stream is what gives it up, and nothing but requests is ever sent.
//!
//! Left to others: what a failure means (`tidegate_mcp::call`), when to converse (`link`).

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::value::RawValue;
use tidegate_core::{outcome::OutcomeKind, time::Millis};
use tidegate_mcp::{
    cause::{Cause, Delivery},
    era::Era,
    message::{self, Id, Message, Params},
    stateless::{self, heading},
};
use tidegate_runtime::task::{self, Owned};
use tokio::sync::{Notify, oneshot};

use super::{
    carrier::Carrier,
    hello::Hello,
    party::Party,
    transport::{Event, Events, Failure},
};

/// How often one call may be waited for again because its server waits for the client.
const PATIENCE_ROUNDS: u32 = 10;

/// What a request came to.
#[derive(Debug)]
pub(crate) enum Reply {
    /// The server answered with a `result`, or an `error`: the text of either.
    Answer(Result<Bytes, Bytes>),
    /// It did not.
    Failed(Failure),
}

/// Who hears what is no answer.
pub(crate) trait Ear {
    /// The server asks for something. `party` is whose call it belongs to, where that is known.
    fn asked(&self, by: &Rc<Conversation>, id: Id, method: &str, about: About<'_>);
    /// The server tells something.
    fn told(&self, by: &Rc<Conversation>, method: &str, about: About<'_>);
    /// The conversation is over.
    fn ended(&self, which: &Rc<Conversation>, failure: Failure);
}

/// What a message of the server's is about.
pub(crate) struct About<'a> {
    pub(crate) params: Option<&'a RawValue>,
    /// Whose call it belongs to, where that is known.
    pub(crate) party: Option<Rc<Party>>,
}

/// One conversation.
pub(crate) struct Conversation {
    carrier: RefCell<Option<Carrier>>,
    pending: RefCell<BTreeMap<u64, Pending>>,
    /// A request has ended.
    fewer: Notify,
    next: Cell<u64>,
    /// Which era is spoken, or tried.
    era: Cell<Era>,
    over: Cell<Option<Failure>>,
    ear: Weak<dyn Ear>,
    /// The task that reads; it ends with the conversation.
    reading: OnceCell<Owned>,
}

struct Pending {
    answer: oneshot::Sender<Reply>,
    party: Option<Rc<Party>>,
}

/// On whose behalf a request is made.
pub(crate) struct Voice<'a> {
    pub(crate) hello: &'a Hello,
    pub(crate) party: Option<Rc<Party>>,
}

impl<'a> Voice<'a> {
    /// Nobody's call: the gateway asks, introduced like this.
    pub(crate) fn of(hello: &'a Hello) -> Self {
        Self { hello, party: None }
    }

    /// Writes into a request of the stateless era whose it is; its headers say the same.
    fn stamp(&self, method: &str, params: &mut Params<'_>) -> HeaderMap {
        let Hello { info, capabilities, .. } = self.hello;
        let info = self.party.as_ref().and_then(|party| party.info.as_deref()).unwrap_or(info);
        let level = self.party.as_ref().and_then(|party| party.level.as_deref());
        // A `_meta` that is no object was refused when the message came in.
        drop(params.stamp(info, capabilities, level));
        let name = heading::name_of(method, params);
        let mut heads = HeaderMap::new();
        let mut add = |name: &str, value: &str| {
            let name = HeaderName::try_from(name);
            if let (Ok(name), Ok(value)) = (name, HeaderValue::try_from(value)) {
                heads.insert(name, value);
            }
        };
        add(heading::VERSION, stateless::VERSION);
        add(heading::METHOD, method);
        if let Some(name) = name {
            add(heading::NAME, &heading::encode(&name));
        }
        for (name, value) in self.party.iter().flat_map(|party| &party.mirrored) {
            add(name, value);
        }
        heads
    }
}

impl Conversation {
    /// A conversation over a transport that has just been opened.
    pub(crate) fn begin(carrier: Carrier, events: Events, ear: Weak<dyn Ear>) -> Rc<Self> {
        let conversation = Rc::new(Self {
            carrier: RefCell::new(Some(carrier)),
            pending: RefCell::default(),
            fewer: Notify::new(),
            next: Cell::new(1),
            era: Cell::new(Era::Sessions),
            over: Cell::default(),
            ear,
            reading: OnceCell::new(),
        });
        let reading =
            task::spawn_owned("mcp conversation", read(Rc::downgrade(&conversation), events));
        drop(conversation.reading.set(reading));
        conversation
    }

    /// Asks, and waits for the answer.
    pub(crate) async fn ask(
        self: &Rc<Self>,
        method: &str,
        mut params: Params<'_>,
        voice: Voice<'_>,
        within: Millis,
    ) -> Reply {
        let party = voice.party.clone();
        if let Some(failure) = self.over.get() {
            return Reply::Failed(Failure { delivery: Delivery::Not, ..failure });
        }
        let id = self.next.get();
        self.next.set(id + 1);
        let wants_progress = party.as_ref().is_some_and(|it| it.desk.progress().is_some());
        // A `_meta` that is no object was refused when the message came in.
        drop(params.set_progress_token(wants_progress.then_some(id)));
        drop(params.strip_reserved());
        let heads = (self.era.get() == Era::Stateless).then(|| voice.stamp(method, &mut params));
        let has_params = !params.is_empty();
        let text = has_params.then(|| params.to_json());
        let message = message::request(&Id::number(id), method, text.as_deref());
        let large = party.as_ref().and_then(|party| party.large.as_ref());
        let message = match large {
            Some(large) => large.put_back(&message),
            None => message,
        };
        let (sender, mut answered) = oneshot::channel();
        self.pending.borrow_mut().insert(id, Pending { answer: sender, party: party.clone() });
        let mut guard = GiveUp { conversation: self, id, is_over: false };
        self.with_carrier(|carrier| carrier.request(id, message.into(), heads));
        let span = Duration::from_millis(within.0);
        for _ in 0..PATIENCE_ROUNDS {
            match tokio::time::timeout(span, &mut answered).await {
                Ok(reply) => {
                    guard.is_over = true;
                    return reply.unwrap_or_else(|_| Reply::Failed(closing()));
                }
                // The server waits for the client (for a person, perhaps): its time stands still.
                Err(_) if party.as_ref().is_some_and(|party| party.desk.is_asked()) => {}
                Err(_) => break,
            }
        }
        let failure = Failure {
            delivery: Delivery::Maybe,
            ..Failure::of(Cause::TimedOut(within), OutcomeKind::Timeout)
        };
        Reply::Failed(failure)
    }

    /// Tells the server something, or answers its request.
    pub(crate) fn tell(&self, message: String) {
        let is_stateless = self.is_stateless();
        self.with_carrier(|carrier| {
            if !(is_stateless && carrier.is_http()) {
                carrier.notice(message.into());
            }
        });
    }

    /// From here on requests are written as this era does.
    pub(crate) fn speak(&self, era: Era) {
        self.era.set(era);
    }

    /// The era that is spoken, or tried.
    pub(crate) fn era(&self) -> Era {
        self.era.get()
    }

    /// Whether there is no session.
    pub(crate) fn is_stateless(&self) -> bool {
        self.era.get() == Era::Stateless
    }

    /// Whether it is over HTTP.
    pub(crate) fn is_http(&self) -> bool {
        self.carrier.borrow().as_ref().is_some_and(Carrier::is_http)
    }

    /// `initialize` was answered: this is the version from now on.
    pub(crate) fn negotiated(&self, version: &str) {
        self.with_carrier(|carrier| carrier.negotiated(version));
    }

    /// The party of the latest call under way, for what a server says that belongs to none.
    pub(crate) fn latest_party(&self) -> Option<Rc<Party>> {
        self.pending.borrow().values().rev().find_map(|pending| pending.party.clone())
    }

    /// The party of the only call under way.
    pub(crate) fn only_party(&self) -> Option<Rc<Party>> {
        let pending = self.pending.borrow();
        let mut parties = pending.values().filter_map(|pending| pending.party.clone());
        let first = parties.next()?;
        parties.all(|other| Rc::ptr_eq(&other, &first)).then_some(first)
    }

    /// What a program said last on its stderr.
    pub(crate) fn last_words(&self) -> String {
        self.carrier.borrow().as_ref().map(Carrier::last_words).unwrap_or_default()
    }

    /// Whether all calls under way are of one client.
    pub(crate) fn serves_one_client(&self) -> bool {
        let pending = self.pending.borrow();
        let mut clients = pending.values().filter_map(|it| it.party.as_ref()).map(|it| &it.client);
        let first = clients.next();
        first.is_some_and(|first| clients.all(|client| client.ptr_eq(first)))
    }

    /// Whether it is over.
    pub(crate) fn is_over(&self) -> bool {
        self.over.get().is_some()
    }

    /// Ends it in good order when the requests under way have ended, or after `within`.
    pub(crate) async fn retire(self: Rc<Self>, within: Millis) {
        let quiet = async {
            loop {
                let mut fewer = std::pin::pin!(self.fewer.notified());
                fewer.as_mut().enable();
                if self.pending.borrow().is_empty() {
                    return;
                }
                fewer.await;
            }
        };
        drop(tokio::time::timeout(Duration::from_millis(within.0), quiet).await);
        self.close().await;
    }

    /// Ends it in good order.
    pub(crate) async fn close(self: Rc<Self>) {
        self.finish(closing());
        let carrier = self.carrier.borrow_mut().take();
        if let Some(carrier) = carrier {
            carrier.close().await;
        }
    }

    fn with_carrier(&self, act: impl FnOnce(&Carrier)) {
        if let Some(carrier) = &*self.carrier.borrow() {
            act(carrier);
        }
    }

    fn hear(self: &Rc<Self>, event: Event) {
        match event {
            Event::Message { bytes, call } => self.hear_message(&bytes, call),
            Event::Paused { call } => {
                if let Some(party) = self.party_of(Some(call)) {
                    party.desk.stream().pause();
                }
            }
            Event::Unanswered { call, failure } => self.settle(call, Reply::Failed(failure)),
            Event::Closed(failure) => {
                self.finish(failure);
                if let Some(ear) = self.ear.upgrade() {
                    ear.ended(self, failure);
                }
            }
        }
    }

    fn hear_message(self: &Rc<Self>, bytes: &Bytes, call: Option<u64>) {
        let message = match Message::parse(bytes) {
            Ok(message) => message,
            Err(fault) => {
                tracing::debug!(%fault, "a server's message cannot be read");
                // On the stream of a call it can only be its answer.
                if let Some(call) = call {
                    let cause = Failure::of(Cause::Malformed, OutcomeKind::ServerError);
                    let failure = Failure { delivery: Delivery::Maybe, ..cause };
                    self.settle(call, Reply::Failed(failure));
                }
                return;
            }
        };
        match message {
            Message::Answer { id, outcome } => {
                let named = id.and_then(|id| id.as_number());
                // On the stream of one call nothing else can be answered.
                let number = match (call, named) {
                    (Some(call), Some(named)) => (call == named).then_some(call),
                    (call, named) => named.or(call),
                };
                let part = |value: &RawValue| bytes.slice_ref(value.get().as_bytes());
                if let Some(number) = number {
                    self.settle(number, Reply::Answer(outcome.map(part).map_err(part)));
                }
            }
            Message::Request { id, method, params } => {
                if method == "ping" {
                    return self.tell(message::result(&id, "{}"));
                }
                let about = About { params, party: self.party_of(call) };
                if let Some(ear) = self.ear.upgrade() {
                    ear.asked(self, id, &method, about);
                }
            }
            Message::Notification { method, params } => {
                let party = match &*method {
                    "notifications/progress" => self.party_of(token_of(params)),
                    _ => self.party_of(call),
                };
                if let Some(ear) = self.ear.upgrade() {
                    ear.told(self, &method, About { params, party });
                }
            }
        }
    }

    fn party_of(&self, call: Option<u64>) -> Option<Rc<Party>> {
        let pending = self.pending.borrow();
        call.and_then(|call| pending.get(&call)).and_then(|it| it.party.clone())
    }

    fn settle(&self, call: u64, reply: Reply) {
        let pending = self.pending.borrow_mut().remove(&call);
        if let Some(pending) = pending {
            // Nobody may wait any more; that is fine.
            drop(pending.answer.send(reply));
            self.fewer.notify_waiters();
        }
    }

    /// Everything under way ends with the conversation.
    fn finish(&self, failure: Failure) {
        if self.over.get().is_none() {
            self.over.set(Some(failure));
        }
        let pending = std::mem::take(&mut *self.pending.borrow_mut());
        for it in pending.into_values() {
            drop(it.answer.send(Reply::Failed(failure)));
        }
    }
}

async fn read(conversation: Weak<Conversation>, mut events: Events) {
    while let Some(event) = events.recv().await {
        let Some(conversation) = conversation.upgrade() else { return };
        conversation.hear(event);
    }
    // A transport that ends without a word has ended all the same.
    if let Some(conversation) = conversation.upgrade()
        && !conversation.is_over()
    {
        let broken = Failure::of(Cause::ConnectionBroken, OutcomeKind::Transport);
        conversation.hear(Event::Closed(Failure { delivery: Delivery::Maybe, ..broken }));
    }
}

/// The call that a progress notification is about: tokens are ids of calls.
fn token_of(params: Option<&RawValue>) -> Option<u64> {
    let params = Params::parse(params).ok()?;
    Id::read(params.get("progressToken")?).ok()?.as_number()
}

fn closing() -> Failure {
    let failure = Failure::of(Cause::Closing, OutcomeKind::Cancelled);
    Failure { delivery: Delivery::Maybe, ..failure }
}

/// Tells the server that nobody waits any more, unless somebody got an answer.
struct GiveUp<'a> {
    conversation: &'a Rc<Conversation>,
    id: u64,
    is_over: bool,
}

impl Drop for GiveUp<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let pending = self.conversation.pending.borrow_mut().remove(&self.id);
        let Some(pending) = pending else { return };
        self.conversation.fewer.notify_waiters();
        let reason = match pending.party.and_then(|party| party.desk.cancelled()) {
            // As the client gave it, or not at all.
            Some(cancelled) => cancelled.reason.map(|it| it.get().to_owned()),
            None => Some(r#""nobody waits any more""#.to_owned()),
        };
        let reason = reason.map(|it| format!(r#","reason":{it}"#)).unwrap_or_default();
        let params = format!(r#"{{"requestId":{}{reason}}}"#, self.id);
        self.conversation.tell(message::notification("notifications/cancelled", Some(&params)));
        let id = self.id;
        self.conversation.with_carrier(|carrier| carrier.forget(id));
    }
}
