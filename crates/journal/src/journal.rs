//! The journal: everything that happened in the last fifteen minutes, within sixteen megabytes.
//!
//! ```text
//!   worker ─▶ Inbox ─▶ collect ─▶ figures, rings, stream, files
//!   worker ─▶ event ────────────▶        rings, stream, files
//! ```
//! Rules kept here:
//! - Plain answers, notable decisions and events have room of their own, so that a busy hour of
//!   plain answers cannot push the story of an outage out.
//! - An event has a number, one more than the one before. Notable decisions are events too, so many
//!   a second; the others are counted.
//! - Nothing is rendered here: readers get records, and lock for as long as it takes to copy
//!   pointers.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidegate_core::time::{Millis, Now};
use tidegate_runtime::{clock::Clock, rng};

use crate::{
    decision::Decision,
    event::{ActionRecord, Event, EventBody, ReloadRecord, TransitionRecord},
    inbox::{BATCH, Inbox},
    moments::{Moments, ProbeRecord},
    question::Question,
    record_queue::{Record, RecordQueue},
    render::Renderer,
    request_id::RequestId,
    ring::{KEPT_FOR, Ring},
    stats::Stats,
};

/// Room for plain answers.
const PLAIN_BYTES: usize = 8 << 20;
/// Room for decisions that an operator wants to see.
const NOTABLE_BYTES: usize = 4 << 20;
/// Room for everything else.
const EVENT_BYTES: usize = 4 << 20;
/// Notable decisions that are told singly in one second.
const STREAMED_PER_SECOND: u32 = 20;
/// Configs whose names are remembered.
const SHAS_MAX: usize = 64;
/// Backends whose last change is remembered, beside those in the ring.
const LATEST_MAX: usize = 4096;

/// The journal of a gateway.
#[derive(Debug)]
pub struct Journal {
    clock: Clock,
    instance: String,
    inboxes: Mutex<Vec<Arc<Inbox>>>,
    state: Mutex<JournalState>,
    dropped: AtomicU64,
    moments: Moments,
}

/// A decision with its number.
pub type Numbered = (u64, Arc<Decision>);

#[derive(Debug)]
struct JournalState {
    plain: Ring<Numbered>,
    notable: Ring<Numbered>,
    events: Ring<Arc<Event>>,
    /// The last decision's number, and the last event's.
    n: u64,
    seq: u64,
    /// The number of the last event that was dropped.
    forgotten: u64,
    /// The largest number of a decision that was dropped.
    evicted: u64,
    streamed: (u64, u32),
    omitted: u64,
    stats: Stats,
    latest: BTreeMap<Arc<str>, LatestChanges>,
    /// The last change of each backend's breaker that is no longer in the ring.
    before: BTreeMap<Arc<str>, Arc<TransitionRecord>>,
    actions: BTreeMap<Arc<str>, (u64, Arc<ActionRecord>)>,
    reload: Option<(u64, Arc<ReloadRecord>)>,
    shas: Arc<[(Now, Arc<str>)]>,
    sinks: Vec<Arc<RecordQueue>>,
    batch: Vec<Arc<Decision>>,
}

/// The last changes of one backend, endpoint or key.
#[derive(Clone, Debug, Default)]
pub struct LatestChanges {
    /// Of its breaker.
    pub breaker: Option<Arc<TransitionRecord>>,
    /// Of what else stands against it.
    pub mark: Option<Arc<TransitionRecord>>,
}

/// Events after a number.
#[derive(Debug)]
pub enum EventsAfter {
    /// All of them, in order.
    All(Vec<Arc<Event>>),
    /// Some are gone.
    Gap,
}

/// How much is in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalSize {
    /// Decisions.
    pub decisions: usize,
    /// Bytes of everything.
    pub bytes: usize,
    /// Since when decisions are complete.
    pub complete_since: Now,
    /// Decisions that were not recorded because the journal was busy.
    pub dropped: u64,
}

impl Journal {
    /// An empty journal, of a gateway that serves the config of this name.
    #[must_use]
    pub fn new(clock: Clock, sha: &str) -> Self {
        let state = JournalState {
            plain: Ring::new(PLAIN_BYTES),
            notable: Ring::new(NOTABLE_BYTES),
            events: Ring::new(EVENT_BYTES),
            n: 0,
            seq: 0,
            forgotten: 0,
            evicted: 0,
            streamed: (0, 0),
            omitted: 0,
            stats: Stats::default(),
            latest: BTreeMap::new(),
            before: BTreeMap::new(),
            actions: BTreeMap::new(),
            reload: None,
            shas: Arc::new([(Now::ZERO, sha.into())]),
            sinks: Vec::new(),
            batch: Vec::new(),
        };
        Self {
            clock,
            instance: format!("{:016x}", rng::draw()),
            inboxes: Mutex::default(),
            state: Mutex::new(state),
            dropped: AtomicU64::new(0),
            moments: Moments::default(),
        }
    }

    /// The number of a moment at which the core was asked or told something.
    #[must_use]
    pub fn moment(&self) -> u64 {
        self.moments.next()
    }

    /// A probe of a provider ended, with this status or without an answer.
    pub fn probed(&self, at: Now, provider: &Arc<str>, status: Option<u16>) {
        self.moments.probed(at, provider, status);
    }

    /// The probes since a moment, in order.
    #[must_use]
    pub fn probes(&self, since: Now) -> Vec<ProbeRecord> {
        self.moments.probes(since)
    }

    /// A name that is new at each start.
    #[must_use]
    pub fn instance(&self) -> &str {
        &self.instance
    }

    /// The clock that its moments are of.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Where one thread hands its decisions over.
    #[must_use]
    pub fn inbox(&self) -> Arc<Inbox> {
        let inbox = Arc::new(Inbox::default());
        let mut inboxes = self.inboxes.lock().unwrap_or_else(PoisonError::into_inner);
        inboxes.push(Arc::clone(&inbox));
        inbox
    }

    /// Records a decision.
    pub fn record(&self, inbox: &Inbox, decision: Decision) {
        let waiting = inbox.push(Arc::new(decision));
        // Somebody who reads collects too, so a thread that finds the journal busy goes on.
        if waiting >= BATCH
            && let Ok(mut state) = self.state.try_lock()
        {
            self.collect_from(&mut state, inbox);
        }
    }

    /// Takes in what the threads have recorded. (Not inlined, for `cargo xtask bench journal`.)
    #[inline(never)]
    pub fn collect(&self) {
        drop(self.lock());
    }

    /// Records something that is not a request.
    pub fn event(&self, at: Now, body: EventBody) {
        // What led to it comes before it.
        let mut state = self.lock();
        state.note(&body);
        state.push_event(at, body);
    }

    /// A config serves from now on.
    pub fn serves(&self, now: Now, sha: &str) {
        let mut state = self.lock();
        let mut shas = state.shas.to_vec();
        if shas.last().is_none_or(|(_, last)| **last != *sha) {
            shas.push((now, sha.into()));
        }
        let first = shas.len().saturating_sub(SHAS_MAX);
        state.shas = shas.split_off(first).into();
        state.stats.forget_routes();
    }

    /// Everything is handed to this queue from now on, too.
    pub fn add_sink(&self, queue: &Arc<RecordQueue>) {
        self.lock().sinks.push(Arc::clone(queue));
    }

    /// Nothing more is handed to this queue.
    pub fn remove_sink(&self, queue: &Arc<RecordQueue>) {
        self.lock().sinks.retain(|it| !Arc::ptr_eq(it, queue));
    }

    /// The decisions that fit a question, newest first, and whether there are more.
    #[must_use]
    pub fn decisions(&self, question: &Question) -> (Vec<Numbered>, bool) {
        let state = self.lock();
        let mut plain = state.plain.iter().rev().peekable();
        let mut notable = state.notable.iter().rev().peekable();
        let mut found = Vec::new();
        loop {
            let next = match (plain.peek(), notable.peek()) {
                (Some(one), Some(other)) if one.0 > other.0 => plain.next(),
                (_, Some(_)) => notable.next(),
                (_, None) => plain.next(),
            };
            let Some((n, decision)) = next else { return (found, false) };
            if !question.fits(*n, decision) {
                continue;
            }
            if found.len() >= question.limit {
                return (found, true);
            }
            found.push((*n, Arc::clone(decision)));
        }
    }

    /// The decision of a request.
    #[must_use]
    pub fn find(&self, id: RequestId) -> Option<Numbered> {
        let state = self.lock();
        let is_it = |(_, decision): &&Numbered| decision.id == id;
        let plain = || state.plain.iter().rev().find(is_it);
        let found = state.notable.iter().rev().find(is_it).or_else(plain);
        found.map(|(n, decision)| (*n, Arc::clone(decision)))
    }

    /// The events after a number.
    #[must_use]
    pub fn events_after(&self, seq: u64) -> EventsAfter {
        let state = self.lock();
        if seq < state.forgotten || seq > state.seq {
            return EventsAfter::Gap;
        }
        let newer = state.events.iter().rev().take_while(|it| it.seq > seq);
        let mut events: Vec<Arc<Event>> = newer.map(Arc::clone).collect();
        events.reverse();
        EventsAfter::All(events)
    }

    /// All events in memory, oldest first, and the last change of each breaker before them.
    #[must_use]
    pub fn events(&self) -> (Vec<Arc<Event>>, Vec<Arc<TransitionRecord>>) {
        let state = self.lock();
        let events = state.events.iter().map(Arc::clone).collect();
        (events, state.before.values().map(Arc::clone).collect())
    }

    /// The number of the last event.
    #[must_use]
    pub fn last_seq(&self) -> u64 {
        self.lock().seq
    }

    /// The largest number of a decision that is no longer in memory: all larger ones are.
    #[must_use]
    pub fn evicted(&self) -> u64 {
        self.lock().evicted
    }

    /// Notable decisions that were not told singly.
    #[must_use]
    pub fn omitted(&self) -> u64 {
        self.lock().omitted
    }

    /// The last changes of a backend, endpoint or key.
    #[must_use]
    pub fn latest(&self, id: &str) -> LatestChanges {
        self.lock().latest.get(id).cloned().unwrap_or_default()
    }

    /// What an operator last did to a backend.
    #[must_use]
    pub fn last_action(&self, id: &str) -> Option<(u64, Arc<ActionRecord>)> {
        self.lock().actions.get(id).cloned()
    }

    /// The last reload.
    #[must_use]
    pub fn last_reload(&self) -> Option<(u64, Arc<ReloadRecord>)> {
        self.lock().reload.clone()
    }

    /// How much is in memory.
    #[must_use]
    pub fn size(&self) -> JournalSize {
        let (state, now) = (self.lock(), self.clock.now());
        let since = |ring: &Ring<Numbered>| ring.complete_since(now);
        JournalSize {
            decisions: state.plain.len() + state.notable.len(),
            bytes: state.plain.bytes() + state.notable.bytes() + state.events.bytes(),
            complete_since: since(&state.plain).max(since(&state.notable)),
            dropped: self.dropped.load(Ordering::Relaxed),
        }
    }

    /// Looks at the figures.
    pub(crate) fn with_stats<R>(&self, look: impl FnOnce(&Stats) -> R) -> R {
        look(&self.lock().stats)
    }

    /// What turns records into what is shown.
    #[must_use]
    pub fn renderer(&self) -> Renderer {
        Renderer { clock: self.clock, shas: Arc::clone(&self.lock().shas) }
    }

    /// The state, with everything in it that threads have recorded.
    fn lock(&self) -> MutexGuard<'_, JournalState> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut inboxes = self.inboxes.lock().unwrap_or_else(PoisonError::into_inner);
        // What a thread has left behind is taken before its inbox goes.
        let mut all = Vec::new();
        inboxes.retain(|inbox| {
            let has_owner = Arc::strong_count(inbox) > 1;
            self.take_from(&mut state, inbox, &mut all);
            has_owner
        });
        drop(inboxes);
        // Each thread's are in order; together they are put into the order of their ends.
        all.sort_by_key(|decision| decision.ended());
        all.into_iter().for_each(|decision| state.add(decision));
        state.trim(self.clock.now());
        state
    }

    /// Takes what one thread has recorded.
    fn take_from(&self, state: &mut JournalState, inbox: &Inbox, into: &mut Vec<Arc<Decision>>) {
        let mut batch = std::mem::take(&mut state.batch);
        let dropped = inbox.take(&mut batch);
        if dropped > 0 {
            self.dropped.fetch_add(dropped, Ordering::Relaxed);
        }
        into.append(&mut batch);
        state.batch = batch;
    }

    fn collect_from(&self, state: &mut JournalState, inbox: &Inbox) {
        let mut batch = std::mem::take(&mut state.batch);
        let dropped = inbox.take(&mut batch);
        if dropped > 0 {
            self.dropped.fetch_add(dropped, Ordering::Relaxed);
        }
        for decision in batch.drain(..) {
            state.add(decision);
        }
        state.batch = batch;
    }
}

impl JournalState {
    fn add(&mut self, decision: Arc<Decision>) {
        self.n += 1;
        self.stats.add(&decision);
        for sink in &self.sinks {
            sink.push(Record::Decision(self.n, Arc::clone(&decision)));
        }
        let (at, bytes) = (decision.ended(), decision.bytes());
        if !decision.is_notable() {
            let evicted = &mut self.evicted;
            let gone = |(n, _): Numbered| *evicted = n.max(*evicted);
            return self.plain.push(at, bytes, (self.n, decision), gone);
        }
        if self.may_stream(at) {
            let body = EventBody::Decision(self.n, Arc::clone(&decision));
            self.push_event(at, body);
        } else {
            self.omitted += 1;
        }
        let evicted = &mut self.evicted;
        let gone = |(n, _): Numbered| *evicted = n.max(*evicted);
        self.notable.push(at, bytes, (self.n, decision), gone);
    }

    /// Whether one more notable decision may be told singly in this second.
    fn may_stream(&mut self, at: Now) -> bool {
        let second = at.0 / Millis::seconds(1).0;
        if second > self.streamed.0 {
            self.streamed = (second, 0);
        }
        self.streamed.1 += 1;
        self.streamed.1 <= STREAMED_PER_SECOND
    }

    fn push_event(&mut self, at: Now, body: EventBody) {
        self.seq += 1;
        let event = Arc::new(Event::new(self.seq, at, body));
        if !matches!(event.body, EventBody::Decision(..)) {
            for sink in &self.sinks {
                sink.push(Record::Event(Arc::clone(&event)));
            }
        }
        let mut gone = Vec::new();
        self.events.push(at, event.bytes(), event, |it| gone.push(it));
        self.forget(gone);
    }

    fn trim(&mut self, now: Now) {
        let evicted = &mut self.evicted;
        let mut gone = |(n, _): Numbered| *evicted = n.max(*evicted);
        self.plain.trim(now, &mut gone);
        self.notable.trim(now, &mut gone);
        let mut gone = Vec::new();
        self.events.trim(now, |it| gone.push(it));
        self.forget(gone);
    }

    fn forget(&mut self, gone: Vec<Arc<Event>>) {
        for event in gone {
            self.forgotten = event.seq;
            if let EventBody::Transition(it) = &event.body
                && it.is_breaker
                && (self.before.len() < LATEST_MAX || self.before.contains_key(&it.backend))
            {
                self.before.insert(Arc::clone(&it.backend), Arc::clone(it));
            }
        }
    }

    /// Remembers what snapshots tell of the last of each kind.
    fn note(&mut self, body: &EventBody) {
        let seq = self.seq + 1;
        match body {
            EventBody::Transition(it) => {
                if self.latest.len() >= LATEST_MAX && !self.latest.contains_key(&it.backend) {
                    return;
                }
                let latest = self.latest.entry(Arc::clone(&it.backend)).or_default();
                let place = if it.is_breaker { &mut latest.breaker } else { &mut latest.mark };
                // That a probe moves a deadline is not when, or why, it opened.
                if it.from != it.to || place.is_none() {
                    *place = Some(Arc::clone(it));
                }
            }
            EventBody::Action(it) => {
                if self.actions.len() < LATEST_MAX || self.actions.contains_key(&it.backend) {
                    self.actions.insert(Arc::clone(&it.backend), (seq, Arc::clone(it)));
                }
            }
            EventBody::Reload(it) => self.reload = Some((seq, Arc::clone(it))),
            EventBody::Decision(..) | EventBody::Security(_) | EventBody::Moved(_) => {}
        }
    }
}

/// How long anything is kept in memory.
#[must_use]
pub const fn window() -> Millis {
    KEPT_FOR
}

#[cfg(test)]
mod tests;
