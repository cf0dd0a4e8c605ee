//! Messages that get no answer: notifications, and answers to the server's own requests.
//!
//! Rules kept here:
//! - They go out one after the other, in order, each with [`NOTICE_WITHIN`] to be taken.
//! - A request waits until the notices before it were taken, but no longer than [`ORDER_WITHIN`]:
//!   a server may refuse to serve before it has seen `notifications/initialized`.
//! - The queue is bounded; a server that takes nothing for so long loses the conversation.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use tidegate_core::{outcome::OutcomeKind, time::Millis};
use tidegate_mcp::cause::{Cause, Delivery};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use super::{
    call,
    conversation::{Conversation, Line},
    failure,
};

/// Notices that may wait to be taken.
const NOTICES_AHEAD: usize = 256;
/// A notice is acknowledged before it is worked on, so this is long.
const NOTICE_WITHIN: Duration = Duration::from_secs(10);
/// How long the order of messages is worth waiting for.
const ORDER_WITHIN: Duration = Duration::from_secs(1);

/// The sending end of the queue.
#[derive(Debug)]
pub(crate) struct Notices {
    queue: mpsc::Sender<Bytes>,
    queued: Cell<u64>,
    taken: watch::Receiver<u64>,
}

/// The other end.
#[derive(Debug)]
pub(crate) struct Queue {
    queue: mpsc::Receiver<Bytes>,
    taken: watch::Sender<u64>,
}

/// Those notices that something has to come after.
#[derive(Debug)]
pub(crate) struct Before {
    number: u64,
    taken: watch::Receiver<u64>,
}

impl Notices {
    pub(crate) fn new() -> (Self, Queue) {
        let (queue, queued) = mpsc::channel(NOTICES_AHEAD);
        let (taken, seen) = watch::channel(0);
        (Self { queue, queued: Cell::new(0), taken: seen }, Queue { queue: queued, taken })
    }

    /// Puts a notice into the queue.
    pub(crate) fn send(&self, talk: &Rc<Conversation>, message: Bytes) {
        if self.queue.try_send(message).is_ok() {
            self.queued.set(self.queued.get() + 1);
            return;
        }
        let limit = Millis(NOTICE_WITHIN.as_millis() as u64);
        talk.lose(failure::plain(Cause::TimedOut(limit), Delivery::Maybe, OutcomeKind::Timeout));
    }

    /// All that were sent so far.
    pub(crate) fn so_far(&self) -> Before {
        Before { number: self.queued.get(), taken: self.taken.clone() }
    }

    /// Those so far, and one at least.
    pub(super) fn first(&self) -> Before {
        Before { number: self.queued.get().max(1), taken: self.taken.clone() }
    }
}

impl Before {
    /// Waits until they were taken, for a while.
    pub(crate) async fn were_taken(mut self) {
        let number = self.number;
        let taken = self.taken.wait_for(|&taken| taken >= number);
        // Late or never: the order was a courtesy.
        drop(timeout(ORDER_WITHIN, taken).await);
    }
}

/// Sends what comes into the queue.
pub(crate) async fn run(talk: Rc<Conversation>, mut queue: Queue) {
    while let Some(message) = queue.queue.recv().await {
        if timeout(NOTICE_WITHIN, send(&talk, message)).await.is_err() {
            tracing::debug!("an mcp server did not take a notice in time");
        }
        queue.taken.send_modify(|taken| *taken += 1);
    }
}

async fn send(talk: &Rc<Conversation>, message: Bytes) {
    if talk.refusal().is_some() {
        return;
    }
    let had_session = talk.has_session();
    let post = || talk.request(Method::POST, message.clone(), None);
    match talk.send(Line::Calls, post).await {
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
