//! Marks: what stands against a key or target until a time, readable without a lock.
//!
//! A window and an exclusion are the same thing at different places: a moment of re-entry and a
//! reason. Both live in one atomic word each, `until` in the upper bits and the reason in the
//! lowest byte, so that "a later one never shortens an earlier one" is one `fetch_max`. Clearing
//! takes away the mark that was read and no other: one that is set at the same time stays.
//!
//! An exclusion has a version besides, for replicas that tell each other of it: one that is set
//! keeps the version that it finds, and healing is the next version. Of two values the higher
//! version counts, then the later end. Versions change under a lock, which nobody takes to read and
//! a healthy backend never takes.

use serde::{Deserialize, Serialize};

use crate::{
    sync::{AtomicU64, Mutex, Ordering, lock},
    time::Now,
};

/// Why a key or target is not used before a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MarkReason {
    /// A 429.
    RateLimited,
    /// A 5xx that said when to come back.
    RetryAfter,
    /// The key was refused.
    AuthRejected,
    /// The key's quota or credit is used up.
    Exhausted,
    /// The model does not exist there.
    ModelGone,
    /// An operator switched it off.
    Manual,
}

impl MarkReason {
    const ALL: [Self; 6] = [
        Self::RateLimited,
        Self::RetryAfter,
        Self::AuthRejected,
        Self::Exhausted,
        Self::ModelGone,
        Self::Manual,
    ];

    /// The word used in traces, metrics and JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::RateLimited => "rate_limited",
            Self::RetryAfter => "retry_after",
            Self::AuthRejected => "auth_rejected",
            Self::Exhausted => "exhausted",
            Self::ModelGone => "model_gone",
            Self::Manual => "manual",
        }
    }
}

/// A mark that stands: until when, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActiveMark {
    /// The moment of re-entry.
    pub until: Now,
    /// Why.
    pub reason: MarkReason,
}

/// A place for one mark.
#[derive(Debug, Default)]
pub(crate) struct Mark(AtomicU64);

const REASON_BITS: u32 = 8;
const UNTIL_MAX: u64 = u64::MAX >> REASON_BITS;
/// Of the bits of the reason this one says that another replica told of the mark.
const IS_HEARD: u64 = 0x80;
/// The rest of them is its place among all reasons.
const REASON_CODE: u64 = IS_HEARD - 1;

/// A mark as one word.
fn encode(until: Now, reason: MarkReason) -> u64 {
    let reason_code = MarkReason::ALL.iter().position(|known| *known == reason);
    until.0.min(UNTIL_MAX) << REASON_BITS | reason_code.unwrap_or(0) as u64
}

/// The mark of a word, if it still stands at `now`.
fn decode(word: u64, now: Now) -> Option<ActiveMark> {
    let until = word >> REASON_BITS;
    let until = if until == UNTIL_MAX { Now::NEVER } else { Now(until) };
    if now.reached(until) {
        return None;
    }
    let reason = MarkReason::ALL.get((word & REASON_CODE) as usize).copied()?;
    Some(ActiveMark { until, reason })
}

impl Mark {
    /// Sets the mark, or extends it; whether anything changed.
    pub(crate) fn extend(&self, until: Now, reason: MarkReason) -> bool {
        let before = self.0.fetch_max(encode(until, reason), Ordering::Relaxed);
        (before >> REASON_BITS) < until.0.min(UNTIL_MAX)
    }

    /// Sets the mark whatever stood there before.
    pub(crate) fn replace(&self, until: Now, reason: MarkReason) {
        self.0.store(encode(until, reason), Ordering::Relaxed);
    }

    /// The mark, if it still stands at `now`.
    pub(crate) fn active(&self, now: Now) -> Option<ActiveMark> {
        decode(self.0.load(Ordering::Relaxed), now)
    }

    /// Takes the mark away; what stood there at `now`.
    pub(crate) fn clear(&self, now: Now) -> Option<ActiveMark> {
        // The load spares healthy backends a write to a shared cache line on every success.
        let word = self.0.load(Ordering::Relaxed);
        if word == 0 {
            return None;
        }
        let cleared = self.0.compare_exchange(word, 0, Ordering::Relaxed, Ordering::Relaxed);
        cleared.ok().and_then(|word| decode(word, now))
    }
}

/// A place for one exclusion: a mark that has a version.
#[derive(Debug, Default)]
pub(crate) struct Exclusion {
    /// Written with the lock held.
    word: AtomicU64,
    version: Mutex<u64>,
}

/// What another replica tells of an exclusion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeardExclusion {
    pub(crate) version: u64,
    /// `None` = healed.
    pub(crate) until: Option<Now>,
    pub(crate) reason: MarkReason,
}

/// What became of an exclusion that another replica told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MergedExclusion {
    /// Nothing that shows.
    Same,
    /// It stands, or stands longer.
    Set(ActiveMark),
    /// What stood is over.
    Healed(ActiveMark),
}

impl Exclusion {
    /// Sets it, or extends it, on evidence of the replica's own: its version if anything changed.
    pub(crate) fn extend(&self, until: Now, reason: MarkReason) -> Option<u64> {
        let version = lock(&self.version);
        let word = encode(until, reason);
        let before = self.word.load(Ordering::Relaxed);
        if before >> REASON_BITS >= word >> REASON_BITS {
            return None;
        }
        self.word.store(word, Ordering::Relaxed);
        Some(*version)
    }

    /// The exclusion, if it still stands at `now`.
    pub(crate) fn active(&self, now: Now) -> Option<ActiveMark> {
        decode(self.word.load(Ordering::Relaxed), now)
    }

    /// Whether it stands at `now` on evidence of the replica's own.
    pub(crate) fn is_own(&self, now: Now) -> bool {
        let word = self.word.load(Ordering::Relaxed);
        word & IS_HEARD == 0 && decode(word, now).is_some()
    }

    /// Ends it before its time, as the next version: what stood there at `now`, and that version.
    /// Where nothing stands nothing changes, and no lock is taken.
    pub(crate) fn heal(&self, now: Now) -> Option<(ActiveMark, u64)> {
        let seen = self.word.load(Ordering::Relaxed);
        decode(seen, now)?;
        let mut version = lock(&self.version);
        // One that was set in the meantime stays.
        if self.word.load(Ordering::Relaxed) != seen {
            return None;
        }
        // The reason stays, for whoever asks what was healed.
        self.word.store(seen & REASON_CODE, Ordering::Relaxed);
        *version = version.saturating_add(1);
        Some((decode(seen, now)?, *version))
    }

    /// Takes what another replica tells: the higher version, then the later end.
    pub(crate) fn merge(&self, now: Now, heard: &HeardExclusion) -> MergedExclusion {
        let mut version = lock(&self.version);
        let before = self.word.load(Ordering::Relaxed);
        let heard_word = encode(heard.until.unwrap_or(Now::ZERO), heard.reason) | IS_HEARD;
        // Of equal ends the reason decides, so that the order of two hints never matters.
        let is_greater = heard_word & !IS_HEARD > before & !IS_HEARD;
        let is_newer = heard.version > *version || (heard.version == *version && is_greater);
        if !is_newer {
            return MergedExclusion::Same;
        }
        *version = heard.version;
        self.word.store(heard_word, Ordering::Relaxed);
        match (decode(before, now), decode(heard_word, now)) {
            (stood, Some(standing)) if stood != Some(standing) => MergedExclusion::Set(standing),
            (Some(ended), None) => MergedExclusion::Healed(ended),
            _ => MergedExclusion::Same,
        }
    }

    /// Its version and what a replica that asks is told of it; `None` if there was never one.
    pub(crate) fn held(&self) -> Option<HeardExclusion> {
        let version = *lock(&self.version);
        let word = self.word.load(Ordering::Relaxed);
        let (until, code) = (word >> REASON_BITS, (word & REASON_CODE) as usize);
        if version == 0 && until == 0 {
            return None;
        }
        let reason = MarkReason::ALL.get(code).copied()?;
        Some(HeardExclusion { version, until: (until > 0).then_some(Now(until)), reason })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_later_mark_never_shortens_an_earlier_one() {
        let mark = Mark::default();
        assert!(mark.extend(Now(300), MarkReason::Exhausted));
        assert!(!mark.extend(Now(30), MarkReason::AuthRejected));
        let standing = mark.active(Now(299)).expect("it stands");
        assert_eq!(standing, ActiveMark { until: Now(300), reason: MarkReason::Exhausted });
        assert!(mark.extend(Now(301), MarkReason::AuthRejected));
    }

    #[test]
    fn a_mark_has_ended_at_exactly_its_time() {
        let mark = Mark::default();
        mark.extend(Now(300), MarkReason::RateLimited);
        assert!(mark.active(Now(299)).is_some());
        assert!(mark.active(Now(300)).is_none());
    }

    #[test]
    fn a_moment_beyond_every_clock_still_stands() {
        let mark = Mark::default();
        mark.extend(Now::NEVER, MarkReason::Manual);
        assert!(mark.active(Now(u64::MAX >> 9)).is_some());
    }

    fn heard(version: u64, until: Option<u64>) -> HeardExclusion {
        HeardExclusion { version, until: until.map(Now), reason: MarkReason::AuthRejected }
    }

    #[test]
    fn an_old_exclusion_does_not_come_back_after_its_healing() {
        let exclusion = Exclusion::default();
        let version = exclusion.extend(Now(300), MarkReason::Exhausted).expect("it is new");
        let (ended, next) = exclusion.heal(Now(10)).expect("it stood");
        assert_eq!((ended.until, next), (Now(300), version + 1));
        assert_eq!(exclusion.merge(Now(11), &heard(version, Some(400))), MergedExclusion::Same);
        assert_eq!(exclusion.active(Now(11)), None);
        assert_eq!(exclusion.extend(Now(50), MarkReason::AuthRejected), Some(next));
    }

    #[test]
    fn of_equal_versions_the_later_end_counts_and_it_is_known_who_said_so() {
        let exclusion = Exclusion::default();
        exclusion.extend(Now(300), MarkReason::AuthRejected);
        assert!(exclusion.is_own(Now(0)));
        assert_eq!(exclusion.merge(Now(0), &heard(0, Some(200))), MergedExclusion::Same);
        assert!(exclusion.is_own(Now(0)));
        let until_400 = exclusion.merge(Now(0), &heard(0, Some(400)));
        assert!(matches!(until_400, MergedExclusion::Set(it) if it.until == Now(400)));
        assert!(!exclusion.is_own(Now(0)) && exclusion.active(Now(399)).is_some());
        assert!(exclusion.extend(Now(500), MarkReason::AuthRejected).is_some());
        assert!(exclusion.is_own(Now(0)));
    }

    #[test]
    fn a_healing_elsewhere_ends_what_stands_here() {
        let exclusion = Exclusion::default();
        exclusion.extend(Now(300), MarkReason::Exhausted);
        assert!(matches!(exclusion.merge(Now(5), &heard(1, None)), MergedExclusion::Healed(_)));
        assert_eq!(exclusion.held().map(|it| (it.version, it.until)), Some((1, None)));
        assert_eq!(exclusion.merge(Now(5), &heard(1, None)), MergedExclusion::Same);
    }

    #[test]
    fn of_equal_versions_and_ends_the_order_of_two_hints_does_not_matter() {
        let reasons = [MarkReason::AuthRejected, MarkReason::Exhausted];
        let hint = |reason| HeardExclusion { version: 3, until: Some(Now(300)), reason };
        let merged = |reasons: [MarkReason; 2]| {
            let exclusion = Exclusion::default();
            for reason in reasons {
                exclusion.merge(Now(0), &hint(reason));
            }
            exclusion.active(Now(0)).map(|it| it.reason)
        };
        let [first, second] = reasons;
        assert_eq!(merged([first, second]), merged([second, first]));
        let exclusion = Exclusion::default();
        assert_ne!(exclusion.merge(Now(0), &hint(first)), MergedExclusion::Same);
        assert_eq!(exclusion.merge(Now(0), &hint(first)), MergedExclusion::Same, "it is known");
    }
}
