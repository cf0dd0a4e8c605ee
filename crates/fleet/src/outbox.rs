//! What this replica has to tell, until it is in the store: a bounded queue between the threads
//! that learn things and the one that writes.
//!
//! Rules kept here:
//! - Whoever adds something waits for a short lock and nothing else.
//! - The newest fact per subject stands for all of them.
//! - Full: the oldest is dropped and counted, and what is held is written again when the store is
//!   reached next. Records of sessions are never dropped; there are no more of them than sessions.
//! - First locks of sessions wait a moment for company; anything else goes at once.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tidegate_core::{
    hint::{Fact, Hint, Subject},
    time::Now,
};
use tokio::sync::Notify;

use crate::{codec::HINTS_MAX, seal::SealedName, session_record::SessionEvent};

/// Hints that wait, at most.
const QUEUE_MAX: usize = 8192;

/// A hint that waits to be told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) hint: Hint,
    pub(crate) made_at: Now,
}

impl Waiting {
    /// Whether it should go at once. A session's first lock need not: its next turn comes later,
    /// and by the tactics `random` and `weighted` replicas agree on it before they hear of it.
    fn is_urgent(&self) -> bool {
        !matches!(self.hint.fact, Fact::Pin { .. } if self.hint.stamp.version <= 1)
    }

    /// Whether it is a pin that has ended: it stands in no other's way.
    fn is_over(&self, now: Now) -> bool {
        matches!(self.hint.fact, Fact::Pin { remaining, .. } if now.since(self.made_at) > remaining)
    }
}

/// A session's record that waits to be written; `None` = deleted.
#[derive(Clone, Debug)]
pub(crate) struct SessionWrite {
    pub(crate) epoch: u64,
    pub(crate) record: Option<Vec<u8>>,
    pub(crate) event: Option<SessionEvent>,
}

/// What is taken out at a time.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) hints: Vec<Waiting>,
    pub(crate) events: Vec<SessionEvent>,
    pub(crate) sessions: Vec<(SealedName, SessionWrite)>,
}

impl Batch {
    pub(crate) fn is_empty(&self) -> bool {
        self.hints.is_empty() && self.events.is_empty() && self.sessions.is_empty()
    }
}

#[derive(Debug, Default)]
struct Queue {
    hints: HashMap<Subject, (u64, Waiting)>,
    /// Subjects by age.
    order: BTreeMap<u64, Subject>,
    next: u64,
    events: Vec<SessionEvent>,
    sessions: HashMap<SealedName, SessionWrite>,
    /// Whether something waits that should go at once.
    is_urgent: bool,
    /// Whether something was dropped since it was last asked.
    is_incomplete: bool,
}

/// The queue.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    queue: Mutex<Queue>,
    filled: Notify,
    urgent: Notify,
}

impl Outbox {
    /// Adds hints; how many had to be dropped for them.
    pub(crate) fn add(&self, hints: &mut Vec<Hint>, now: Now) -> u64 {
        let mut queue = self.lock();
        let (was_empty, was_urgent) = (queue.is_empty(), queue.is_urgent);
        let mut dropped = 0;
        for hint in hints.drain(..) {
            dropped += u64::from(queue.add(Waiting { hint, made_at: now }));
        }
        let is_urgent = queue.is_urgent;
        drop(queue);
        self.wake(was_empty, is_urgent && !was_urgent);
        dropped
    }

    /// Adds something told of a session.
    pub(crate) fn add_event(&self, event: SessionEvent) {
        let mut queue = self.lock();
        queue.events.push(event);
        queue.is_urgent = true;
        drop(queue);
        self.wake(true, true);
    }

    /// Adds a session's record, unless one of a higher epoch waits.
    pub(crate) fn add_session(&self, name: SealedName, write: SessionWrite) {
        let mut queue = self.lock();
        match queue.sessions.get_mut(&name) {
            Some(held) if held.epoch > write.epoch => {}
            Some(held) => *held = write,
            None => {
                queue.sessions.insert(name, write);
            }
        }
        queue.is_urgent = true;
        drop(queue);
        self.wake(true, true);
    }

    /// What was not written after all; what is newer stays.
    pub(crate) fn put_back(&self, batch: Batch) {
        let mut queue = self.lock();
        for waiting in batch.hints {
            queue.add(waiting);
        }
        queue.events.extend(batch.events);
        for (name, write) in batch.sessions {
            queue.sessions.entry(name).or_insert(write);
        }
        drop(queue);
        self.wake(true, true);
    }

    /// Waits until there is something to write.
    pub(crate) async fn ready(&self) {
        loop {
            let filled = self.filled.notified();
            if !self.lock().is_empty() {
                return;
            }
            filled.await;
        }
    }

    /// Waits until something should go at once.
    pub(crate) async fn ready_at_once(&self) {
        loop {
            let urgent = self.urgent.notified();
            if self.lock().is_urgent {
                return;
            }
            urgent.await;
        }
    }

    /// The oldest of what waits, as much as fits one entry.
    pub(crate) fn take(&self) -> Batch {
        let mut queue = self.lock();
        let mut batch = Batch::default();
        while batch.hints.len() < HINTS_MAX {
            let Some((_, subject)) = queue.order.pop_first() else { break };
            batch.hints.extend(queue.hints.remove(&subject).map(|(_, waiting)| waiting));
        }
        let room = (HINTS_MAX - batch.hints.len()).min(queue.events.len());
        batch.events.extend(queue.events.drain(..room));
        let names: Vec<_> = queue.sessions.keys().take(HINTS_MAX).cloned().collect();
        for name in names {
            batch.sessions.extend(queue.sessions.remove_entry(&name));
        }
        queue.is_urgent = !queue.is_empty();
        batch
    }

    /// Whether something was dropped since this was last asked.
    pub(crate) fn take_incomplete(&self) -> bool {
        std::mem::take(&mut self.lock().is_incomplete)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// How much waits.
    pub(crate) fn len(&self) -> usize {
        let queue = self.lock();
        queue.hints.len() + queue.events.len() + queue.sessions.len()
    }

    fn wake(&self, was_empty: bool, is_urgent: bool) {
        // A thread is woken only if it may be asleep.
        if was_empty {
            self.filled.notify_one();
        }
        if is_urgent {
            self.urgent.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn is_empty(&self) -> bool {
        self.hints.is_empty() && self.events.is_empty() && self.sessions.is_empty()
    }

    /// Whether another one had to be dropped.
    fn add(&mut self, waiting: Waiting) -> bool {
        let subject = waiting.hint.fact.subject();
        self.is_urgent |= waiting.is_urgent() || self.hints.len() >= HINTS_MAX;
        if let Some((_, held)) = self.hints.get_mut(&subject) {
            let precedence = |it: &Waiting| it.hint.precedence(it.made_at.0);
            if held.is_over(waiting.made_at) || precedence(&waiting) >= precedence(held) {
                *held = waiting;
            }
            return false;
        }
        let mut is_full = false;
        if self.hints.len() >= QUEUE_MAX
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.hints.remove(&oldest);
            (is_full, self.is_incomplete) = (true, true);
        }
        self.hints.insert(subject, (self.next, waiting));
        self.order.insert(self.next, subject);
        self.next += 1;
        is_full
    }
}

#[cfg(test)]
mod tests {
    use tidegate_core::{
        hint::Stamp,
        mark::MarkReason,
        names::{Fingerprint, PinKey, ReplicaId},
        time::Millis,
    };

    use super::*;

    fn hint(version: u64, fact: Fact) -> Hint {
        let stamp = Stamp { version, writer: ReplicaId(1) };
        Hint { age: Millis::ZERO, stamp, fact }
    }

    fn window(name: u8, span: u64) -> Hint {
        let (backend, key) = (Fingerprint([name; 16]), Fingerprint([0; 16]));
        let (remaining, reason) = (Millis(span), MarkReason::RateLimited);
        hint(0, Fact::Window { backend, key, remaining, reason })
    }

    fn pin(session: u128, version: u64) -> Hint {
        let name = Fingerprint([0; 16]);
        let (remaining, stays) = (Millis(1), Millis::ZERO);
        let session = PinKey(session);
        hint(version, Fact::Pin { session, backend: name, key: name, remaining, stays })
    }

    fn taken(outbox: &Outbox) -> Vec<Hint> {
        outbox.take().hints.iter().map(|it| it.hint).collect()
    }

    #[test]
    fn the_newest_fact_per_subject_stands_for_all_of_them() {
        let outbox = Outbox::default();
        let all = [window(1, 5), pin(7, 1), window(1, 9), pin(7, 2), window(1, 2)];
        assert_eq!(outbox.add(&mut all.to_vec(), Now(0)), 0);
        assert_eq!(taken(&outbox), [window(1, 9), pin(7, 2)]);
        assert!(outbox.take().is_empty());
    }

    #[test]
    fn a_pin_that_has_ended_while_it_waited_gives_way_to_the_next_lock() {
        let outbox = Outbox::default();
        outbox.add(&mut vec![pin(7, 9)], Now(0));
        outbox.add(&mut vec![pin(7, 1)], Now(1));
        assert_eq!(taken(&outbox), [pin(7, 9)], "it still holds");
        outbox.add(&mut vec![pin(7, 9)], Now(0));
        outbox.add(&mut vec![pin(7, 1)], Now(2));
        assert_eq!(taken(&outbox), [pin(7, 1)]);
    }

    #[test]
    fn a_full_queue_drops_its_oldest_and_says_so() {
        let outbox = Outbox::default();
        let mut all: Vec<Hint> = (0..QUEUE_MAX as u128 + 2).map(|it| pin(it, 1)).collect();
        assert_eq!(outbox.add(&mut all, Now(0)), 2);
        assert!(outbox.take_incomplete() && !outbox.take_incomplete());
        assert_eq!((outbox.len(), taken(&outbox)[0]), (QUEUE_MAX, pin(2, 1)));
    }

    #[test]
    fn what_was_not_written_is_put_back_behind_what_is_newer() {
        let outbox = Outbox::default();
        outbox.add(&mut vec![pin(7, 1), window(1, 5)], Now(0));
        let batch = outbox.take();
        outbox.add(&mut vec![pin(7, 2)], Now(0));
        outbox.put_back(batch);
        assert_eq!(taken(&outbox), [pin(7, 2), window(1, 5)]);
    }

    #[test]
    fn of_two_records_of_a_session_the_higher_epoch_is_written() {
        let outbox = Outbox::default();
        let name = SealedName("a".into());
        let write = |epoch| SessionWrite { epoch, record: None, event: None };
        outbox.add_session(name.clone(), write(2));
        outbox.add_session(name, write(1));
        let sessions = outbox.take().sessions;
        assert_eq!(sessions.iter().map(|it| it.1.epoch).collect::<Vec<_>>(), [2]);
    }

    #[tokio::test]
    async fn first_locks_wait_for_company_and_anything_else_goes_at_once() {
        let soon = std::time::Duration::from_millis(1);
        for urgent in [window(1, 5), pin(7, 2), pin(8, 2)] {
            let outbox = Outbox::default();
            outbox.add(&mut vec![pin(7, 1)], Now(0));
            outbox.ready().await;
            assert!(tokio::time::timeout(soon, outbox.ready_at_once()).await.is_err());
            outbox.add(&mut vec![urgent], Now(0));
            outbox.ready_at_once().await;
        }
        let outbox = Outbox::default();
        outbox.add(&mut (0..=HINTS_MAX as u128).map(|it| pin(it, 1)).collect(), Now(0));
        outbox.ready_at_once().await;
    }
}
