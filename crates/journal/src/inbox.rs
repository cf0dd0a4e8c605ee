//! Decisions of one thread on their way to the journal.
//!
//! Why it exists: threads that serve must not meet at one lock for every request. Each hands its
//! decisions over at a lock of its own, which nobody else takes but a reader of the journal, and
//! [`Journal::collect`](crate::journal::Journal::collect) takes them many at a time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::decision::Decision;

/// After so many decisions a thread has them collected.
pub(crate) const BATCH: usize = 64;

/// Decisions that may wait while the journal is busy; more are dropped and counted.
const WAITING_MAX: usize = 4096;

/// What one thread has recorded since the journal last asked.
#[derive(Debug, Default)]
pub struct Inbox(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    decisions: Vec<Arc<Decision>>,
    dropped: u64,
}

impl Inbox {
    /// Hands a decision over; how many wait now.
    pub(crate) fn push(&self, decision: Arc<Decision>) -> usize {
        let mut waiting = self.lock();
        if waiting.decisions.len() >= WAITING_MAX {
            waiting.dropped += 1;
        } else {
            waiting.decisions.push(decision);
        }
        waiting.decisions.len()
    }

    /// Takes what waits into an empty list, whose room is used next; how many were dropped.
    pub(crate) fn take(&self, into: &mut Vec<Arc<Decision>>) -> u64 {
        let mut waiting = self.lock();
        std::mem::swap(into, &mut waiting.decisions);
        std::mem::take(&mut waiting.dropped)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
