//! What a fake received, for tests to read.
//!
//! Rules kept here:
//! - Bounded: the newest calls up to the script's `record`, and at most [`MAX_BYTES`] of bodies.
//! - How many calls came, are under way and were abandoned by their client is counted for all of
//!   them, kept or not.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use serde_json::{Value, json};

/// Bodies kept in all: enough for a test of large ones, too little to hurt.
const MAX_BYTES: usize = 64 << 20;

/// One call as it was received.
#[derive(Clone, Debug)]
pub struct Call {
    /// When, in milliseconds since the fake was made.
    pub at_ms: u64,
    /// Which connection carried it: the same number, the same connection.
    pub connection: u64,
    /// `POST`.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Headers in order, names in lower case; bytes that are not UTF-8 replaced.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Bytes,
}

impl Call {
    /// The first header of this name (in lower case).
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The body as text; bytes that are not UTF-8 replaced.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(super) fn to_json(&self) -> Value {
        let headers: Vec<Value> =
            self.headers.iter().map(|(name, value)| json!([name, value])).collect();
        json!({
            "at_ms": self.at_ms, "connection": self.connection, "method": self.method,
            "path": self.path, "headers": headers, "body": self.text(),
        })
    }
}

/// How many calls there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Received.
    pub seen: u64,
    /// Received and not ended yet.
    pub under_way: u64,
    /// Ended by the client before the answer was.
    pub abandoned: u64,
    /// Connections open now.
    pub connections: u64,
}

/// All calls of one fake.
#[derive(Debug, Default)]
pub(super) struct Calls {
    kept: Mutex<Kept>,
    seen: AtomicU64,
    ended: AtomicU64,
    abandoned: AtomicU64,
    opened: AtomicU64,
    closed: AtomicU64,
}

#[derive(Debug, Default)]
struct Kept {
    calls: VecDeque<Call>,
    bytes: usize,
}

impl Calls {
    /// Counts a call; its number is how many came before it.
    pub(super) fn begin(self: &Arc<Self>) -> (u64, Ticket) {
        let number = self.seen.fetch_add(1, Ordering::Relaxed);
        (number, Ticket { calls: Arc::clone(self), is_finished: false })
    }

    pub(super) fn keep(&self, call: Call, most: usize) {
        let mut kept = self.kept();
        kept.bytes += call.body.len();
        kept.calls.push_back(call);
        while kept.calls.len() > most || kept.bytes > MAX_BYTES {
            let Some(oldest) = kept.calls.pop_front() else { break };
            kept.bytes -= oldest.body.len();
        }
    }

    pub(super) fn list(&self) -> Vec<Call> {
        self.kept().calls.iter().cloned().collect()
    }

    pub(super) fn forget(&self) {
        *self.kept() = Kept::default();
    }

    pub(super) fn counts(&self) -> Counts {
        let ended = self.ended.load(Ordering::Relaxed);
        let closed = self.closed.load(Ordering::Relaxed);
        let seen = self.seen.load(Ordering::Relaxed);
        Counts {
            seen,
            under_way: seen.saturating_sub(ended),
            abandoned: self.abandoned.load(Ordering::Relaxed),
            connections: self.opened.load(Ordering::Relaxed).saturating_sub(closed),
        }
    }

    /// Counts a connection while the value lives.
    pub(super) fn connect(self: &Arc<Self>) -> Connection {
        let number = self.opened.fetch_add(1, Ordering::Relaxed);
        Connection { calls: Arc::clone(self), number }
    }

    /// A panic in another test's thread leaves a list that is still a list.
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One connection, counted as long as this lives.
#[derive(Debug)]
pub(super) struct Connection {
    calls: Arc<Calls>,
    pub(super) number: u64,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.calls.closed.fetch_add(1, Ordering::Relaxed);
    }
}

/// One call under way. Dropped before [`Ticket::finish`], its client went away.
#[derive(Debug)]
pub(super) struct Ticket {
    calls: Arc<Calls>,
    is_finished: bool,
}

impl Ticket {
    /// The fake did with this call what it meant to.
    pub(super) fn finish(&mut self) {
        self.is_finished = true;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.is_finished {
            self.calls.abandoned.fetch_add(1, Ordering::Relaxed);
        }
        self.calls.ended.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(number: u64, body: Bytes) -> Call {
        let (method, path) = ("POST".to_owned(), "/".to_owned());
        Call { at_ms: number, connection: 0, method, path, headers: Vec::new(), body }
    }

    #[test]
    fn only_the_newest_calls_are_kept() {
        let calls = Calls::default();
        for number in 0..10 {
            calls.keep(call(number, Bytes::new()), 3);
        }
        let kept: Vec<u64> = calls.list().iter().map(|call| call.at_ms).collect();
        assert_eq!(kept, [7, 8, 9]);
    }

    #[test]
    fn bodies_are_kept_up_to_a_bound() {
        let calls = Calls::default();
        let large = Bytes::from(vec![0; MAX_BYTES / 2]);
        for number in 0..4 {
            calls.keep(call(number, large.clone()), 100);
        }
        let kept: Vec<u64> = calls.list().iter().map(|call| call.at_ms).collect();
        assert_eq!(kept, [2, 3]);
    }

    #[test]
    fn a_ticket_that_is_dropped_early_counts_as_abandoned() {
        let calls = Arc::new(Calls::default());
        let (_, mut good) = calls.begin();
        let (_, bad) = calls.begin();
        assert_eq!(calls.counts().under_way, 2);
        good.finish();
        drop((good, bad));
        let counts = calls.counts();
        assert_eq!((counts.seen, counts.under_way, counts.abandoned), (2, 0, 1));
    }
}
