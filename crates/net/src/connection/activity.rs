//! What a client's connection is doing, as its parts tell each other.
//!
//! Why it exists: whether a client may be waited for depends on whether an answer is being made,
//! which only the service knows; and which connection makes room for a new one depends on whom the
//! gateway waits for, which only the bytes tell. Both live on one thread.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use http::Version;
use tidegate_runtime::clock::timer_now;
use tokio::sync::Notify;
use tokio::time::Instant;

/// What the client is waited for, in the order in which such connections make room for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wait {
    /// Its next request, or its first.
    NextRequest,
    /// The rest of a request head.
    Head,
    /// The rest of a request body.
    Body,
    /// That it reads its answer.
    Reading,
}

/// One connection's state.
#[derive(Debug)]
pub struct Activity {
    /// What the client is waited for, and since when.
    waiting: Cell<Option<(Wait, Instant)>>,
    /// Requests that are being answered.
    answering: Cell<usize>,
    /// The request that is being answered is of HTTP/1.1.
    is_http11: Cell<bool>,
    /// Bytes of the answer have been written.
    has_begun: Cell<bool>,
    /// The client has closed its side of the connection.
    is_half_closed: Cell<bool>,
    /// Closing the connection calls off the request that is being answered.
    closing_cancels: Cell<bool>,
    evicted: Notify,
    /// Answers of HTTP/2 of which something is there that the client has not taken, by number, and
    /// since when.
    untaken: RefCell<BTreeMap<u64, Instant>>,
    next_answer: Cell<u64>,
    /// Requests that the client broke off, not so long ago.
    broken_off: Cell<u32>,
    breaks_off: Notify,
    first_request: Notify,
}

/// Nobody who means its requests breaks off as many at a time.
const BROKEN_OFF_MAX: u32 = 200;
/// How many of them are forgiven each second.
const FORGIVEN: u32 = 20;

impl Activity {
    pub fn new() -> Rc<Self> {
        Rc::new(Self {
            waiting: Cell::new(Some((Wait::NextRequest, timer_now()))),
            answering: Cell::new(0),
            is_http11: Cell::new(false),
            has_begun: Cell::new(false),
            is_half_closed: Cell::new(false),
            closing_cancels: Cell::new(false),
            evicted: Notify::new(),
            untaken: RefCell::default(),
            next_answer: Cell::new(0),
            broken_off: Cell::new(0),
            breaks_off: Notify::new(),
            first_request: Notify::new(),
        })
    }

    /// A request is being answered until the guard is dropped.
    pub(super) fn begin(self: &Rc<Self>, version: Version) -> AnsweringGuard {
        self.answering.set(self.answering.get() + 1);
        self.is_http11.set(version == Version::HTTP_11);
        self.has_begun.set(false);
        self.waiting.set(None);
        let number = self.next_answer.get();
        self.next_answer.set(number + 1);
        if number == 0 {
            self.first_request.notify_one();
        }
        let is_h2 = version == Version::HTTP_2;
        AnsweringGuard { activity: Rc::clone(self), number, is_h2, is_finished: false }
    }

    /// Until something was asked, now or before.
    pub(super) async fn asked(&self) {
        if self.next_answer.get() == 0 {
            self.first_request.notified().await;
        }
    }

    /// Whether a request is being answered.
    pub(super) fn is_answering(&self) -> bool {
        self.answering.get() > 0
    }

    /// Says whether closing the connection calls off the request that is being answered.
    pub(super) fn closing_cancels(&self, cancels: bool) {
        self.closing_cancels.set(cancels);
    }

    /// Whether a client that has closed its side may still wait for an answer.
    pub(super) fn awaits_answer(&self) -> bool {
        self.is_answering() && !self.closing_cancels.get()
    }

    /// Whether interim responses may be sent: to a client of HTTP/1.1, before the answer begins.
    pub(super) fn may_send_interim(&self) -> bool {
        self.is_answering() && self.is_http11.get() && !self.has_begun.get()
    }

    /// The answer's bytes are being written.
    pub(super) fn answer_began(&self) {
        self.has_begun.set(true);
    }

    /// The client sends no more.
    pub(super) fn half_closed(&self) {
        self.is_half_closed.set(true);
    }

    pub(super) fn is_half_closed(&self) -> bool {
        self.is_half_closed.get()
    }

    /// Says what the client is waited for; how long is counted from the first time it is said.
    pub(super) fn waits_for(&self, wait: Option<Wait>) -> Option<Instant> {
        let since = match (self.waiting.get(), wait) {
            (_, None) => None,
            (Some((known, since)), Some(wait)) if known == wait => Some(since),
            (_, Some(_)) => Some(timer_now()),
        };
        self.waiting.set(wait.zip(since));
        since
    }

    /// What the client is waited for, and since when; nothing if the connection is at work.
    pub(super) fn waiting(&self) -> Option<(Wait, Instant)> {
        self.waiting.get()
    }

    /// Ends the connection, to make room for another one.
    pub(super) fn evict(&self) {
        self.evicted.notify_one();
    }

    /// Whether no request was under way for so long.
    pub(super) fn is_idle_for(&self, span: Duration) -> bool {
        !self.is_answering() && self.waiting().is_some_and(|(_, since)| since.elapsed() >= span)
    }

    /// Whether an answer's client has taken nothing of what is there for so long.
    pub(super) fn has_untaken_for(&self, span: Duration) -> bool {
        self.untaken.borrow().values().any(|since| since.elapsed() >= span)
    }

    /// Until the client has broken off more requests than anybody who means them.
    pub(super) async fn breaks_off_too_often(&self) {
        self.breaks_off.notified().await;
    }

    /// Called once a second.
    pub(super) fn forgive(&self) {
        self.broken_off.set(self.broken_off.get().saturating_sub(FORGIVEN));
    }

    /// Until the connection has to make room.
    pub(super) async fn evicted(&self) {
        self.evicted.notified().await;
    }
}

/// Marks a connection as answering until it is dropped.
#[derive(Debug)]
pub(super) struct AnsweringGuard {
    activity: Rc<Activity>,
    number: u64,
    /// Over HTTP/1.1 the connection itself sees what its client does not take.
    is_h2: bool,
    is_finished: bool,
}

impl AnsweringGuard {
    pub(super) fn activity(&self) -> &Activity {
        &self.activity
    }

    /// Something of the answer is there for the client; or it is asked for more, and waits for it.
    pub(super) fn gave(&self, something: bool) {
        if !self.is_h2 {
            return;
        }
        let mut untaken = self.activity.untaken.borrow_mut();
        if something {
            untaken.insert(self.number, timer_now());
        } else {
            untaken.remove(&self.number);
        }
    }

    /// All of the answer has been handed to the connection.
    pub(super) fn finish(&mut self) {
        self.is_finished = true;
    }
}

impl Drop for AnsweringGuard {
    fn drop(&mut self) {
        let activity = &self.activity;
        activity.answering.set(activity.answering.get() - 1);
        if self.is_h2 {
            activity.untaken.borrow_mut().remove(&self.number);
        }
        if !self.is_finished {
            activity.broken_off.set(activity.broken_off.get() + 1);
            if activity.broken_off.get() > BROKEN_OFF_MAX {
                activity.breaks_off.notify_one();
            }
        }
        if !activity.is_answering() {
            activity.waiting.set(Some((Wait::NextRequest, timer_now())));
        }
    }
}
