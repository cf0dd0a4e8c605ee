//! What this replica has to tell, until it is in the store: a bounded queue between the threads
//! that learn things and the one that writes.
//!
//! Rules kept here:
//! - Whoever adds something waits for a short lock and nothing else.
//! - The newest fact per subject stands for all of them.
//! - Full: the oldest is dropped and counted, and what is held is written again when the store is
//!   reached next. Records of sessions are never dropped; there are no more of them than sessions.
//! - What may wait for company ([`Haste`](tidegate_core::hint::Haste)) does, until the first of it
//!   is due. Whoever adds something wakes the writer only if that makes it due earlier: as a
//!   rule once for the first of many.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidegate_core::{
    hint::{Fact, Haste, Hint, Subject},
    time::{Millis, Now},
};
use tidegate_runtime::{clock::Clock, rng};
use tokio::sync::Notify;

use crate::{codec::HINTS_MAX, seal::SealedName, session_record::SessionEvent};

/// Hints that wait, at most.
const QUEUE_MAX: usize = 8192;
/// Of what does not wait.
const AT_ONCE: Now = Now::ZERO;

/// A hint that waits to be told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) hint: Hint,
    pub(crate) made_at: Now,
}

impl Waiting {
    /// When it should be told, by a replica that is in such a hurry.
    fn due(&self, hurry: Hurry) -> Now {
        let most = self.hint.haste.may_wait();
        let wait = match self.hint.haste {
            Haste::Leisurely => Millis(most.0 - most.0 * hurry.0 / HURRY_SHARES),
            Haste::AtOnce | Haste::BeforeNextTurn => most,
        };
        self.made_at.after(wait)
    }

    /// Whether it is a pin that has ended: it stands in no other's way.
    fn is_over(&self, now: Now) -> bool {
        matches!(self.hint.fact, Fact::Pin { remaining, .. } if now.since(self.made_at) > remaining)
    }
}

/// How much earlier than it must a replica tells what may be told at leisure, in thousandths of
/// that time; up to half. Replicas that serve one conversation lock it at about the same
/// moment: if they told of it at the same moment too, each would write what the first one has
/// written.
#[derive(Clone, Copy, Debug, Default)]
struct Hurry(u64);

const HURRY_SHARES: u64 = 1000;

impl Hurry {
    /// Another one, by a random number.
    const fn drawn(draw: u64) -> Self {
        Self(draw % (HURRY_SHARES / 2 + 1))
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
    /// When the first of what waits should be written, or an earlier moment.
    due: Option<Now>,
    hurry: Hurry,
    /// Whether something was dropped since it was last asked.
    is_incomplete: bool,
}

/// The queue.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    queue: Mutex<Queue>,
    /// Something is due earlier than what was.
    is_earlier: Notify,
}

impl Outbox {
    /// An empty one, of a replica that drew this number.
    pub(crate) fn drawn(draw: u64) -> Self {
        let queue = Queue { hurry: Hurry::drawn(draw), ..Queue::default() };
        Self { queue: Mutex::new(queue), ..Self::default() }
    }

    /// Adds hints; how many had to be dropped for them.
    pub(crate) fn add(&self, hints: &mut Vec<Hint>, now: Now) -> u64 {
        self.change(|queue| {
            let add = |hint| u64::from(queue.add(Waiting { hint, made_at: now }));
            hints.drain(..).map(add).sum()
        })
    }

    /// Another replica told this: what waits here to say the same need not be said.
    pub(crate) fn was_told(&self, heard: &Hint) {
        if matches!(heard.fact, Fact::Pin { .. }) {
            self.lock().was_told(heard);
        }
    }

    /// Adds something told of a session.
    pub(crate) fn add_event(&self, event: SessionEvent) {
        self.change(|queue| {
            queue.events.push(event);
            queue.is_due_by(AT_ONCE);
        });
    }

    /// Adds a session's record, unless one of a higher epoch waits.
    pub(crate) fn add_session(&self, name: SealedName, write: SessionWrite) {
        self.change(|queue| {
            match queue.sessions.get_mut(&name) {
                Some(held) if held.epoch > write.epoch => {}
                Some(held) => *held = write,
                None => {
                    queue.sessions.insert(name, write);
                }
            }
            queue.is_due_by(AT_ONCE);
        });
    }

    /// What was not written after all; what is newer stays.
    pub(crate) fn put_back(&self, batch: Batch) {
        self.change(|queue| {
            for waiting in batch.hints {
                queue.add(waiting);
            }
            queue.events.extend(batch.events);
            for (name, write) in batch.sessions {
                queue.sessions.entry(name).or_insert(write);
            }
            if !queue.is_empty() {
                queue.is_due_by(AT_ONCE);
            }
        });
    }

    /// Waits until something is due.
    pub(crate) async fn ready(&self, clock: Clock) {
        loop {
            let is_earlier = self.is_earlier.notified();
            let due = self.lock().due;
            let Some(left) = due.map(|due| due.since(clock.now())) else {
                is_earlier.await;
                continue;
            };
            if left == Millis::ZERO {
                if self.lock().is_due(clock.now()) {
                    return;
                }
                // What was due has been told by somebody else.
                continue;
            }
            // Nothing comes of a wait that ends early: the next look finds the same.
            drop(tokio::time::timeout(Duration::from_millis(left.0), is_earlier).await);
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
        queue.due = (!queue.is_empty()).then_some(AT_ONCE);
        queue.hurry = Hurry::drawn(rng::draw());
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

    /// Changes the queue, and wakes the writer if it should write earlier than it would have.
    fn change<R>(&self, how: impl FnOnce(&mut Queue) -> R) -> R {
        let mut queue = self.lock();
        let before = queue.due;
        let result = how(&mut queue);
        let is_earlier = queue.due.is_some_and(|due| before.is_none_or(|before| due < before));
        drop(queue);
        if is_earlier {
            self.is_earlier.notify_one();
        }
        result
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn is_empty(&self) -> bool {
        self.hints.is_empty() && self.events.is_empty() && self.sessions.is_empty()
    }

    fn was_told(&mut self, heard: &Hint) {
        let Some((number, held)) = self.hints.get(&heard.fact.subject()) else { return };
        let Hint { haste, stamp, fact, .. } = &held.hint;
        // What may wait is a first lock; a move contradicts what others have heard.
        let is_agreed = *haste != Haste::AtOnce && stamp.version == heard.stamp.version;
        if is_agreed && is_same_pin(fact, &heard.fact) {
            let (number, subject) = (*number, heard.fact.subject());
            self.hints.remove(&subject);
            self.order.remove(&number);
        }
    }

    fn is_due_by(&mut self, moment: Now) {
        self.due = Some(self.due.map_or(moment, |due| due.min(moment)));
    }

    /// Whether something is due; if not, when the first of what waits is.
    fn is_due(&mut self, now: Now) -> bool {
        let is_urgent =
            !self.events.is_empty() || !self.sessions.is_empty() || self.hints.len() >= HINTS_MAX;
        let first = self.hints.values().map(|(_, waiting)| waiting.due(self.hurry)).min();
        self.due = if is_urgent { Some(AT_ONCE) } else { first };
        self.due.is_some_and(|due| now.reached(due))
    }

    /// Whether another one had to be dropped.
    fn add(&mut self, waiting: Waiting) -> bool {
        let subject = waiting.hint.fact.subject();
        self.is_due_by(if self.hints.len() >= HINTS_MAX {
            AT_ONCE
        } else {
            waiting.due(self.hurry)
        });
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

/// Whether both pin a session to one target and key.
fn is_same_pin(one: &Fact, other: &Fact) -> bool {
    let place = |fact: &Fact| match fact {
        Fact::Pin { session, backend, key, .. } => Some((*session, *backend, *key)),
        Fact::Window { .. }
        | Fact::Exclusion { .. }
        | Fact::Action { .. }
        | Fact::Reset { .. }
        | Fact::Opened { .. } => None,
    };
    place(one).is_some() && place(one) == place(other)
}

#[cfg(test)]
mod tests {
    use tidegate_core::{
        hint::Stamp,
        mark::MarkReason,
        names::{Fingerprint, PinKey, ReplicaId},
    };

    use super::*;

    fn hint(version: u64, fact: Fact) -> Hint {
        let stamp = Stamp { version, writer: ReplicaId(1) };
        Hint { age: Millis::ZERO, stamp, fact, haste: Haste::AtOnce }
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

    fn lock(session: u128, haste: Haste) -> Hint {
        Hint { haste, ..pin(session, 1) }
    }

    /// How long the writer waits for these, which come at the same moment, if it is asked so much
    /// later.
    async fn waits(hints: &[Hint]) -> u64 {
        let (outbox, clock) = (Outbox::default(), Clock::start());
        let began = clock.now();
        for hint in hints {
            outbox.add(&mut vec![*hint], began);
        }
        outbox.ready(clock).await;
        clock.now().since(began).0
    }

    #[tokio::test]
    async fn what_may_wait_waits_until_the_first_of_it_is_due() {
        let (soon, some_time) = (Haste::BeforeNextTurn, Haste::Leisurely);
        let alone = waits(&[lock(1, soon), lock(2, some_time)]).await;
        assert!((50..500).contains(&alone), "{alone} ms");
        let leisurely = waits(&[lock(1, some_time), lock(2, some_time)]).await;
        assert!((1_000..5_000).contains(&leisurely), "{leisurely} ms");
        for urgent in [window(1, 5), pin(7, 2), pin(8, 2)] {
            let took = waits(&[lock(7, some_time), urgent]).await;
            assert!(took < 500, "{took} ms");
        }
        let many: Vec<Hint> = (0..=HINTS_MAX as u128).map(|it| lock(it, some_time)).collect();
        let took = waits(&many).await;
        assert!(took < 500, "{took} ms");
    }

    #[test]
    fn a_first_lock_that_another_replica_told_in_the_meantime_is_not_told_again() {
        let name = Fingerprint([9; 16]);
        let elsewhere = |hint: Hint| {
            let Fact::Pin { session, key, remaining, stays, .. } = hint.fact else { return hint };
            Hint { fact: Fact::Pin { session, backend: name, key, remaining, stays }, ..hint }
        };
        for (waits, heard, is_left) in [
            (lock(1, Haste::Leisurely), pin(1, 1), false),
            (lock(1, Haste::BeforeNextTurn), pin(1, 1), false),
            (lock(1, Haste::AtOnce), pin(1, 1), true),
            (lock(1, Haste::Leisurely), pin(2, 1), true),
            (lock(1, Haste::Leisurely), elsewhere(pin(1, 1)), true),
            (lock(1, Haste::Leisurely), pin(1, 2), true),
            (window(1, 5), window(1, 5), true),
        ] {
            let outbox = Outbox::default();
            outbox.add(&mut vec![waits], Now(0));
            outbox.was_told(&heard);
            assert_eq!(taken(&outbox).len(), usize::from(is_left), "{waits:?} {heard:?}");
        }
    }

    /// Three replicas meet the same conversations within moments, as behind a balancer without
    /// stickiness: most of them are told once.
    #[test]
    fn replicas_that_lock_alike_at_one_moment_do_not_all_tell_of_it() {
        const HEARD_AFTER: u64 = 3;
        let (mut told, conversations) = (0, 100_u64);
        for round in 0..20 {
            let outboxes: Vec<Outbox> =
                (0..3).map(|at| Outbox::drawn(tidegate_core::draw::mix(3 * round + at))).collect();
            for conversation in 0..conversations {
                for (at, outbox) in outboxes.iter().enumerate() {
                    let hint = lock(u128::from(conversation), Haste::Leisurely);
                    outbox.add(&mut vec![hint], Now(10 * conversation + 4 * at as u64));
                }
            }
            let mut under_way: Vec<(u64, usize, Hint)> = Vec::new();
            for now in 0..3_000 {
                let (heard, later) = under_way.into_iter().partition(|it| it.0 <= now);
                under_way = later;
                for (_, from, hint) in heard {
                    let others = outboxes.iter().enumerate().filter(|it| it.0 != from);
                    others.for_each(|(_, outbox)| outbox.was_told(&hint));
                }
                for (at, outbox) in outboxes.iter().enumerate() {
                    if outbox.lock().is_due(Now(now)) {
                        let batch = taken(outbox);
                        told += batch.len() as u64;
                        under_way.extend(batch.iter().map(|it| (now + HEARD_AFTER, at, *it)));
                    }
                }
            }
            assert!(outboxes.iter().all(Outbox::is_empty));
        }
        let share = told as f64 / (20 * conversations) as f64;
        assert!(share < 1.2, "{share:.2} times each");
    }

    /// A writer that waits for a moment is woken by what is due before it, and by nothing else.
    #[tokio::test]
    async fn the_writer_is_woken_once_for_many_and_again_for_what_is_due_earlier() {
        let (outbox, clock) = (Outbox::default(), Clock::start());
        let now = clock.now();
        let mut woken = Vec::new();
        let hints = [
            lock(1, Haste::Leisurely),
            lock(2, Haste::Leisurely),
            lock(3, Haste::BeforeNextTurn),
            lock(4, Haste::Leisurely),
            lock(5, Haste::BeforeNextTurn),
            window(1, 5),
            window(2, 5),
        ];
        for hint in hints {
            outbox.add(&mut vec![hint], now);
            let is_woken = tokio::time::timeout(Duration::ZERO, outbox.is_earlier.notified());
            woken.push(is_woken.await.is_ok());
        }
        assert_eq!(woken, [true, false, true, false, false, true, false]);
    }
}
