//! What the fleet's side counts, for metrics and the operator's API.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tidegate_core::{
    hint::{Fact, Heard},
    names::ReplicaId,
    time::Now,
};

/// Writers that are remembered, at most.
const WRITERS_MAX: usize = 512;

/// What kind of fact is told or heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FactKind {
    /// A (target, key) is inside a window.
    Window,
    /// Something is excluded, or no longer.
    Exclusion,
    /// An operator did something that lasts.
    Action,
    /// An operator declared something healthy.
    Reset,
    /// A breaker opened.
    Opened,
    /// A session is pinned.
    Pin,
    /// An MCP session changed hands.
    Session,
}

impl FactKind {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Window,
        Self::Exclusion,
        Self::Action,
        Self::Reset,
        Self::Opened,
        Self::Pin,
        Self::Session,
    ];

    /// The kind of a fact.
    #[must_use]
    pub const fn of(fact: &Fact) -> Self {
        match fact {
            Fact::Window { .. } => Self::Window,
            Fact::Exclusion { .. } => Self::Exclusion,
            Fact::Action { .. } => Self::Action,
            Fact::Reset { .. } => Self::Reset,
            Fact::Opened { .. } => Self::Opened,
            Fact::Pin { .. } => Self::Pin,
        }
    }

    /// The word used in metrics and JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Window => "window",
            Self::Exclusion => "exclusion",
            Self::Action => "action",
            Self::Reset => "reset",
            Self::Opened => "opened",
            Self::Pin => "pin",
            Self::Session => "session",
        }
    }
}

/// Why a value of the store was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rejected {
    /// It was sealed with another secret or for another name, or was changed.
    Secret,
    /// Another version of this program wrote it.
    Version,
    /// It is nothing that a replica writes.
    Form,
}

impl Rejected {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Secret, Self::Version, Self::Form];

    /// The word used in metrics and JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Secret => "secret",
            Self::Version => "version",
            Self::Form => "form",
        }
    }
}

/// What one replica was heard to say.
#[derive(Clone, Copy, Debug)]
pub struct HeardFrom {
    /// How many facts.
    pub facts: u64,
    /// When the last one was heard.
    pub last: Now,
    /// What it was.
    pub kind: FactKind,
}

/// Counters of one replica's part in its fleet.
#[derive(Debug, Default)]
pub struct FleetStats {
    is_up: AtomicBool,
    /// Whether the first attempt to reach the store has ended.
    is_tried: AtomicBool,
    told: [AtomicU64; FactKind::ALL.len()],
    heard: [[AtomicU64; Heard::ALL.len()]; FactKind::ALL.len()],
    rejected: [AtomicU64; Rejected::ALL.len()],
    dropped: AtomicU64,
    links: AtomicU64,
    gaps: AtomicU64,
    lag_ms: AtomicU64,
    /// The store's clock minus ours, in milliseconds, once it is known.
    offset_ms: AtomicI64,
    has_offset: AtomicBool,
    /// When the store last answered, and last failed to; zero = never.
    answered_at: AtomicU64,
    failed_at: AtomicU64,
    /// Since when our heartbeat has been written without a break, plus one; zero = it is not.
    steady_since: AtomicU64,
    /// When the store was last found without its data, plus one; zero = never.
    restarted_at: AtomicU64,
    writers: Mutex<BTreeMap<ReplicaId, HeardFrom>>,
}

impl FleetStats {
    /// Whether the store is there.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.is_up.load(Relaxed)
    }

    pub(crate) fn set_up(&self, is_up: bool) {
        self.is_up.store(is_up, Relaxed);
        self.is_tried.store(true, Relaxed);
        if is_up {
            self.links.fetch_add(1, Relaxed);
        } else {
            self.steady_since.store(0, Relaxed);
        }
    }

    /// Whether anything is known of the store: somebody has reached it, or failed to.
    pub(crate) fn is_tried(&self) -> bool {
        self.is_tried.load(Relaxed)
    }

    /// Whether asking the store makes sense: it is there, and did not fail to answer since it last
    /// answered.
    #[must_use]
    pub fn is_answering(&self) -> bool {
        self.is_up() && self.failed_at.load(Relaxed) <= self.answered_at.load(Relaxed)
    }

    pub(crate) fn answered(&self, now: Now) {
        self.answered_at.store(now.0 + 1, Relaxed);
    }

    pub(crate) fn failed(&self, now: Now) {
        self.failed_at.store(now.0 + 2, Relaxed);
    }

    /// Since when this replica's heartbeat has been in the store without a break.
    #[must_use]
    pub fn steady_since(&self) -> Option<Now> {
        self.steady_since.load(Relaxed).checked_sub(1).map(Now)
    }

    pub(crate) fn beat(&self, now: Now) {
        let _ = self.steady_since.compare_exchange(0, now.0 + 1, Relaxed, Relaxed);
    }

    pub(crate) fn missed_beat(&self) {
        self.steady_since.store(0, Relaxed);
    }

    /// When the store was last found without its data.
    #[must_use]
    pub fn restarted_at(&self) -> Option<Now> {
        self.restarted_at.load(Relaxed).checked_sub(1).map(Now)
    }

    pub(crate) fn restarted(&self, at: Now) {
        self.restarted_at.store(at.0 + 1, Relaxed);
    }

    /// The store's time at a moment of ours, once it is known.
    #[must_use]
    pub fn store_ms(&self, now: Now) -> Option<u64> {
        let offset = self.offset_ms.load(Relaxed);
        let known = self.has_offset.load(Relaxed);
        known.then(|| now.0.saturating_add_signed(offset))
    }

    pub(crate) fn set_store_ms(&self, now: Now, store_ms: u64) {
        self.offset_ms.store(store_ms.wrapping_sub(now.0) as i64, Relaxed);
        self.has_offset.store(true, Relaxed);
    }

    pub(crate) fn told(&self, kind: FactKind) {
        self.told[kind as usize].fetch_add(1, Relaxed);
    }

    pub(crate) fn heard(&self, from: ReplicaId, kind: FactKind, heard: Heard, now: Now) {
        self.heard[kind as usize][heard as usize].fetch_add(1, Relaxed);
        if heard == Heard::Own {
            return;
        }
        let mut writers = self.writers();
        if writers.len() >= WRITERS_MAX && !writers.contains_key(&from) {
            let oldest = writers.iter().min_by_key(|(_, it)| it.last).map(|(writer, _)| *writer);
            oldest.map(|oldest| writers.remove(&oldest));
        }
        let it = writers.entry(from).or_insert(HeardFrom { facts: 0, last: now, kind });
        it.facts += 1;
        (it.last, it.kind) = (now, kind);
    }

    /// Counts a value that was not taken; whether it is the first one of its kind.
    pub(crate) fn reject(&self, why: Rejected) -> bool {
        self.rejected[why as usize].fetch_add(1, Relaxed) == 0
    }

    pub(crate) fn drop_one(&self) {
        self.dropped.fetch_add(1, Relaxed);
    }

    pub(crate) fn gap(&self) {
        self.gaps.fetch_add(1, Relaxed);
    }

    pub(crate) fn set_lag(&self, ms: u64) {
        self.lag_ms.store(ms, Relaxed);
    }

    /// How many facts of a kind were told.
    #[must_use]
    pub fn told_count(&self, kind: FactKind) -> u64 {
        self.told[kind as usize].load(Relaxed)
    }

    /// How many facts of a kind were heard, by what became of them.
    #[must_use]
    pub fn heard_count(&self, kind: FactKind, heard: Heard) -> u64 {
        self.heard[kind as usize][heard as usize].load(Relaxed)
    }

    /// How many values were not taken.
    #[must_use]
    pub fn rejected_count(&self, why: Rejected) -> u64 {
        self.rejected[why as usize].load(Relaxed)
    }

    /// How many facts were dropped before they were told.
    #[must_use]
    pub fn dropped_count(&self) -> u64 {
        self.dropped.load(Relaxed)
    }

    /// How often the store was reached anew.
    #[must_use]
    pub fn link_count(&self) -> u64 {
        self.links.load(Relaxed)
    }

    /// How often something was missing on the stream.
    #[must_use]
    pub fn gap_count(&self) -> u64 {
        self.gaps.load(Relaxed)
    }

    /// How long the last entry took from its writer to here, in milliseconds.
    #[must_use]
    pub fn lag_ms(&self) -> u64 {
        self.lag_ms.load(Relaxed)
    }

    /// What each replica was heard to say.
    #[must_use]
    pub fn heard_from(&self) -> BTreeMap<ReplicaId, HeardFrom> {
        self.writers().clone()
    }

    fn writers(&self) -> MutexGuard<'_, BTreeMap<ReplicaId, HeardFrom>> {
        self.writers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
