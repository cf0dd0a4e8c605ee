//! Messages that get no answer: notifications, and answers to the server's own requests.
//!
//! Rules kept here:
//! - They go out one after the other, in order, each with [`NOTICE_WITHIN`] to be taken, by a task
//!   that lives while there are any: an idle connection has none.
//! - A request waits until the notices before it were taken, but no longer than [`ORDER_WITHIN`]:
//!   a server may refuse to serve before it has seen `notifications/initialized`.
//! - The queue is bounded; a server that takes nothing for so long loses the connection.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use tidegate_core::{outcome::OutcomeKind, time::Millis};
use tidegate_mcp::cause::{Cause, Delivery};
use tidegate_runtime::task;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::{
    call,
    conversation::{ConnectionUse, HttpConversation},
    failure,
};

/// Notices that may wait to be taken.
const NOTICES_AHEAD: usize = 256;
/// A notice is acknowledged before it is worked on, so this is long.
const NOTICE_WITHIN: Duration = Duration::from_secs(10);
/// How long the order of messages is worth waiting for.
const ORDER_WITHIN: Duration = Duration::from_secs(1);

/// The notices of one connection.
#[derive(Debug, Default)]
pub(crate) struct Notices(Rc<Queue>);

#[derive(Debug, Default)]
struct Queue {
    waiting: RefCell<VecDeque<Bytes>>,
    is_running: Cell<bool>,
    /// How many were put in, and how many were taken by the server or given up.
    queued: Cell<u64>,
    taken: Cell<u64>,
    one_taken: Notify,
}

/// Those notices that something has to come after.
#[derive(Debug)]
pub(crate) struct Before {
    number: u64,
    queue: Rc<Queue>,
}

impl Notices {
    /// Puts a notice into the queue.
    pub(crate) fn send(&self, talk: &Rc<HttpConversation>, message: Bytes) {
        let queue = &self.0;
        if queue.waiting.borrow().len() >= NOTICES_AHEAD {
            let limit = Millis(NOTICE_WITHIN.as_millis() as u64);
            let cause = Cause::TimedOut(limit);
            return talk.lose(failure::plain(cause, Delivery::Maybe, OutcomeKind::Timeout));
        }
        queue.waiting.borrow_mut().push_back(message);
        queue.queued.set(queue.queued.get() + 1);
        if !queue.is_running.replace(true) {
            let sending = run(Rc::clone(talk), Rc::clone(queue));
            talk.set_notices(task::spawn_owned("mcp notices", sending));
        }
    }

    /// All that were sent so far.
    pub(crate) fn so_far(&self) -> Before {
        Before { number: self.0.queued.get(), queue: Rc::clone(&self.0) }
    }

    /// Those so far, and one at least.
    pub(super) fn first(&self) -> Before {
        Before { number: self.0.queued.get().max(1), queue: Rc::clone(&self.0) }
    }
}

impl Before {
    /// Waits until they were taken, for a while.
    pub(crate) async fn were_taken(self) {
        if self.queue.taken.get() >= self.number {
            return;
        }
        let taken = async {
            while self.queue.taken.get() < self.number {
                self.queue.one_taken.notified().await;
            }
        };
        // Late or never: the order was a courtesy.
        drop(timeout(ORDER_WITHIN, taken).await);
    }
}

/// Sends what is in the queue, until it is empty.
async fn run(talk: Rc<HttpConversation>, queue: Rc<Queue>) {
    loop {
        let next = queue.waiting.borrow_mut().pop_front();
        let Some(message) = next else { break };
        if timeout(NOTICE_WITHIN, send(&talk, message)).await.is_err() {
            tracing::debug!("an mcp server did not take a notice in time");
        }
        queue.taken.set(queue.taken.get() + 1);
        queue.one_taken.notify_waiters();
    }
    queue.is_running.set(false);
}

async fn send(talk: &Rc<HttpConversation>, message: Bytes) {
    if talk.refusal().is_some() {
        return;
    }
    let had_session = talk.has_session();
    let post = || talk.request(Method::POST, message.clone(), None);
    match talk.send(ConnectionUse::Calls, post).await {
        Ok(response) if response.status().is_success() => call::discard(talk, response).await,
        Ok(response) => {
            let (head, body) = response.into_parts();
            let (failure, _) = call::refusal(talk, &head, body, had_session).await;
            tracing::debug!(status = head.status.as_u16(), "an mcp server refused a notice");
            if failure.is_session_loss {
                talk.lose(failure);
            }
        }
        Err(failure) => {
            tracing::debug!(cause = %failure.cause, "a notice did not reach its server")
        }
    }
}
