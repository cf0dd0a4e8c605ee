//! Records on their way to a file: a bounded queue and the thread that empties it.
//!
//! Why it exists: a disk may be slow, full or gone, and the threads that serve must not notice.
//!
//! Rules kept here:
//! - Handing a record over takes a short lock and never waits for a write.
//! - When the queue is full the oldest record goes, and is counted: what is happening now is worth
//!   more than what happened before.
//! - At the end what is queued is written, but nobody waits for ever.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::{decision::Decision, event::Event};

/// Records that wait: some ten megabytes, half a minute of a busy gateway.
pub(crate) const WAITING_MAX: usize = 16_384;

/// What is written to files.
#[derive(Clone, Debug)]
pub enum Record {
    /// A request, with its number.
    Decision(u64, Arc<Decision>),
    /// Something else that happened.
    Event(Arc<Event>),
}

/// The queue.
#[derive(Debug, Default)]
pub struct RecordQueue {
    state: Mutex<QueueState>,
    changed: Condvar,
    dropped: AtomicU64,
}

#[derive(Debug, Default)]
struct QueueState {
    records: VecDeque<Record>,
    is_writing: bool,
    /// Whether the writer has something to do that is not a record.
    is_nudged: bool,
    is_closed: bool,
}

/// What the writer is to do.
#[derive(Debug)]
pub enum Work {
    /// Write these.
    Write(VecDeque<Record>),
    /// Nothing came for a while, or something that is not a record.
    Idle,
    /// Everything is written, and nothing more will come.
    Over,
}

impl RecordQueue {
    /// Hands a record over.
    pub(crate) fn push(&self, record: Record) {
        let mut state = self.lock();
        if state.is_closed {
            return;
        }
        if state.records.len() >= WAITING_MAX {
            state.records.pop_front();
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        state.records.push_back(record);
        let is_first = state.records.len() == 1;
        drop(state);
        if is_first {
            self.changed.notify_all();
        }
    }

    /// Records that were not written.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// So many records could not be written.
    pub fn lost(&self, records: usize) {
        self.dropped.fetch_add(records as u64, Ordering::Relaxed);
    }

    /// Waits for records, for so long at most. Whatever was taken before is written now.
    pub fn take(&self, within: Duration) -> Work {
        let mut state = self.lock();
        state.is_writing = false;
        self.changed.notify_all();
        let is_quiet = |state: &mut QueueState| {
            state.records.is_empty() && !state.is_nudged && !state.is_closed
        };
        let waited = self.changed.wait_timeout_while(state, within, is_quiet);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.is_writing = std::mem::take(&mut state.is_nudged);
        if !state.records.is_empty() {
            state.is_writing = true;
            return Work::Write(std::mem::take(&mut state.records));
        }
        if state.is_closed && !state.is_writing { Work::Over } else { Work::Idle }
    }

    /// The writer has something to do that is not a record.
    pub fn nudge(&self) {
        self.lock().is_nudged = true;
        self.changed.notify_all();
    }

    /// Waits for so long, and no longer than until it is closed; whether it is.
    pub fn is_closed_within(&self, within: Duration) -> bool {
        let is_open = |state: &mut QueueState| !state.is_closed;
        let waited = self.changed.wait_timeout_while(self.lock(), within, is_open);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.is_closed
    }

    /// Waits until everything is written, for so long at most.
    pub fn settle(&self, within: Duration) {
        self.flush(within);
    }

    /// Waits until everything is written, for so long at most; whether it is.
    pub fn flush(&self, within: Duration) -> bool {
        let is_busy = |state: &mut QueueState| {
            !state.records.is_empty() || state.is_nudged || state.is_writing
        };
        let waited = self.changed.wait_timeout_while(self.lock(), within, is_busy);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !is_busy(&mut state)
    }

    /// Nothing more will come: the writer ends when it has written what waits.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
