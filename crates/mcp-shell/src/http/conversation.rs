//! What the tasks of one conversation share: the session, the calls under way, and how it ends.
//!
//! ```text
//!   open ──(session lost, notices overflow)──▶ lost ──(no call left, or 1 s)──▶ over: `Closed`
//! ```
//! Rules kept here:
//! - A lost session ends the conversation, but not at once: each call under way may still hear for
//!   itself that it was refused unread, so that it can be sent again elsewhere. One that has heard
//!   nothing by then ends with [`ConnectionEvent::Closed`], and may have been carried out. Requests
//!   made meanwhile are refused unsent.
//! - `Closed` is the last event, and comes once.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri};
use tidegate_core::{outcome::OutcomeKind, time::Millis};
use tidegate_mcp::{
    cause::{Cause, Delivery},
    hub::{ResumedUpstream, UpstreamSession},
};
use tidegate_net::upstream::{
    Pool, PooledConnection, SendError, SplicedBody, UpstreamBody, UpstreamError,
};
use tidegate_runtime::{
    clock::Clock,
    task::{self, Owned},
};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::{
    failure,
    place::{HttpPlace, LAST_EVENT_ID, SESSION, VERSION},
};
use crate::transport::{ConnectionEvent, EventSender, Failure};

/// How long calls under way may still hear of their own fate after a session was lost: they went
/// to the same server, which has just answered.
const LOSS_GRACE: Duration = Duration::from_secs(1);

/// How far a conversation has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Open,
    Lost(Failure),
    Over,
}

/// Which connections a request may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionUse {
    /// The kept ones of calls.
    Calls,
    /// One for a stream that stays open.
    Listening,
}

/// What the tasks of one conversation share.
#[derive(Debug)]
pub(crate) struct HttpConversation {
    pub(crate) place: Rc<HttpPlace>,
    pub(super) pool: Rc<Pool>,
    pub(super) clock: Clock,
    connect_timeout: Millis,
    events: EventSender,
    session: RefCell<Option<HeaderValue>>,
    /// Where messages go, if not to the configured url: that address is a session too.
    endpoint: OnceCell<Uri>,
    version: RefCell<Option<HeaderValue>>,
    stage: Cell<Stage>,
    calls: RefCell<BTreeMap<u64, Owned>>,
    /// Tasks that are no calls; they end with the conversation.
    others: RefCell<Vec<Owned>>,
    /// The task that sends notices, while there are any.
    notices: RefCell<Option<Owned>>,
    /// The task that says `Closed`.
    closing: RefCell<Option<Owned>>,
    call_ended: Notify,
}

impl HttpConversation {
    pub(crate) fn new(
        place: Rc<HttpPlace>,
        pool: Rc<Pool>,
        clock: Clock,
        connect_timeout: Millis,
        events: EventSender,
    ) -> Self {
        Self {
            place,
            pool,
            clock,
            connect_timeout,
            events,
            session: RefCell::default(),
            endpoint: OnceCell::new(),
            version: RefCell::default(),
            stage: Cell::new(Stage::Open),
            calls: RefCell::default(),
            others: RefCell::default(),
            notices: RefCell::default(),
            closing: RefCell::default(),
            call_ended: Notify::new(),
        }
    }

    /// Tells the owner something; waits while it is behind.
    pub(crate) async fn tell(&self, event: ConnectionEvent) {
        self.events.tell(event).await;
    }

    /// Adds a call under way.
    pub(crate) fn add_call(&self, call: u64, task: Owned) {
        self.calls.borrow_mut().insert(call, task);
    }

    /// Adds a task that ends with the conversation.
    pub(crate) fn add_task(&self, task: Owned) {
        self.others.borrow_mut().push(task);
    }

    /// The task that sends notices; the one before it has ended.
    pub(super) fn set_notices(&self, task: Owned) {
        *self.notices.borrow_mut() = Some(task);
    }

    /// Drops a call under way.
    pub(crate) fn forget(&self, call: u64) {
        drop(self.take_call(call));
        self.call_ended.notify_one();
    }

    fn take_call(&self, call: u64) -> Option<Owned> {
        let mut calls = self.calls.borrow_mut();
        let task = calls.remove(&call);
        if calls.is_empty() {
            // An idle session holds no memory for calls.
            *calls = BTreeMap::new();
        }
        task
    }

    /// A call's own task says how it ended.
    pub(crate) async fn call_ended(self: &Rc<Self>, call: u64, ended: Result<(), Failure>) {
        if let Err(failure) = ended {
            if failure.is_session_loss {
                self.lose(failure);
            }
            self.tell(ConnectionEvent::Unanswered { call, failure }).await;
        }
        if let Some(task) = self.take_call(call) {
            task.detach();
        }
        self.call_ended.notify_one();
    }

    /// Why nothing can be sent any more, as the failure of a request that was not.
    pub(crate) fn refusal(&self) -> Option<Failure> {
        match self.stage.get() {
            Stage::Open => None,
            Stage::Lost(failure) => Some(Failure { delivery: Delivery::Not, ..failure }),
            Stage::Over => {
                Some(failure::plain(Cause::Closing, Delivery::Not, OutcomeKind::Cancelled))
            }
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.stage.get() == Stage::Over
    }

    /// The conversation cannot go on; only the first reason counts.
    pub(crate) fn lose(self: &Rc<Self>, failure: Failure) {
        if self.stage.get() != Stage::Open {
            return;
        }
        self.stage.set(Stage::Lost(failure));
        let this = Rc::clone(self);
        let closing = task::spawn_owned("end of an mcp conversation", async move {
            let quiet = async {
                while !this.calls.borrow().is_empty() {
                    this.call_ended.notified().await;
                }
            };
            // Those that are left end with the event below.
            drop(timeout(LOSS_GRACE, quiet).await);
            this.stop();
            let failure = Failure { delivery: Delivery::Maybe, ..failure };
            let last_words = String::new();
            this.tell(ConnectionEvent::Closed { failure, last_words }).await;
        });
        *self.closing.borrow_mut() = Some(closing);
    }

    /// Ends every task but the one that says `Closed`.
    pub(super) fn stop(&self) {
        self.stage.set(Stage::Over);
        drop(self.calls.take());
        drop(self.others.take());
        drop(self.notices.take());
    }

    /// Ends every task.
    pub(crate) fn end(&self) {
        self.stop();
        drop(self.closing.take());
    }

    /// The protocol version was agreed on.
    pub(crate) fn agree(&self, version: &str) {
        // One that cannot stand in a header is none that we offered.
        *self.version.borrow_mut() = HeaderValue::try_from(version).ok();
    }

    pub(crate) fn has_session(&self) -> bool {
        self.session.borrow().is_some() || self.endpoint.get().is_some()
    }

    /// From here on messages go to this path and query of the server's. Said once.
    pub(crate) fn post_to(&self, endpoint: Uri) {
        drop(self.endpoint.set(endpoint));
    }

    /// Notes the session that the answer to `initialize` opens, and says its name. Later ones
    /// change nothing.
    pub(crate) fn note_session(&self, headers: &HeaderMap) -> Option<UpstreamSession> {
        if self.version.borrow().is_some() || self.has_session() {
            return None;
        }
        let mut session = headers.get(SESSION).filter(|it| !it.is_empty()).cloned()?;
        session.set_sensitive(true);
        let name = session.to_str().ok().map(UpstreamSession::new);
        *self.session.borrow_mut() = Some(session);
        name
    }

    /// The session is one that somebody else began.
    pub(super) fn go_on_in(&self, resumed: &ResumedUpstream) {
        let name = resumed.session.as_ref().map(UpstreamSession::expose);
        let session = name.and_then(|it| HeaderValue::try_from(it).ok());
        *self.session.borrow_mut() = session.map(|mut session| {
            session.set_sensitive(true);
            session
        });
    }

    /// A request of this session.
    pub(crate) fn request(
        &self,
        method: Method,
        body: Bytes,
        after: Option<&HeaderValue>,
    ) -> Request<SplicedBody> {
        let pieces = SplicedBody::new([body, Bytes::new(), Bytes::new()]);
        let endpoint = self.endpoint.get().filter(|_| method == Method::POST);
        let mut request = self.place.request(method, pieces);
        if let Some(endpoint) = endpoint {
            *request.uri_mut() = endpoint.clone();
        }
        let headers = request.headers_mut();
        let session = self.session.borrow().clone();
        let version = self.version.borrow().clone();
        let after = after.cloned();
        for (name, value) in [(SESSION, session), (VERSION, version), (LAST_EVENT_ID, after)] {
            if let Some(value) = value {
                headers.insert(name, value);
            }
        }
        request
    }

    /// Sends a request and waits for the response head. What certainly was not sent on a kept
    /// connection goes out on a new one.
    pub(crate) async fn send(
        &self,
        line: ConnectionUse,
        build: impl Fn() -> Request<SplicedBody>,
    ) -> Result<Response<UpstreamBody>, Failure> {
        let key = match line {
            ConnectionUse::Calls => &self.place.connections,
            ConnectionUse::Listening => &self.place.listening,
        };
        if let Some(lease) = self.pool.kept(key) {
            match lease.send(build()).await {
                Ok(response) => return Ok(response),
                Err(SendError::NotSent) => {}
                Err(SendError::Broken(error)) => return Err(of_broken(&error)),
            }
        }
        match self.connect(line).await?.send(build()).await {
            Ok(response) => Ok(response),
            Err(SendError::NotSent) => {
                Err(Failure { delivery: Delivery::Not, ..failure::broken() })
            }
            Err(SendError::Broken(error)) => Err(of_broken(&error)),
        }
    }

    async fn connect(&self, line: ConnectionUse) -> Result<PooledConnection, Failure> {
        let HttpPlace { place, connections, listening, .. } = &*self.place;
        let key = if line == ConnectionUse::Calls { connections } else { listening };
        let limit = Duration::from_millis(self.connect_timeout.0);
        match timeout(limit, self.pool.fresh(key, place)).await {
            Ok(connected) => connected.map_err(failure::of_connect),
            Err(_) => Err(failure::connect_timed_out(self.connect_timeout)),
        }
    }
}

fn of_broken(error: &UpstreamError) -> Failure {
    if error.is_parse() { failure::malformed() } else { failure::broken() }
}
