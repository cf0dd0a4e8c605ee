//! Marks: what stands against a key or target until a time, readable without a lock.
//!
//! A window and an exclusion are the same thing at different places: a moment of re-entry and a
//! reason. Both live in one atomic word each, `until` in the upper bits and the reason in the
//! lowest byte, so that "a later one never shortens an earlier one" is one `fetch_max`. Clearing
//! takes away the mark that was read and no other: one that is set at the same time stays.

use serde::{Deserialize, Serialize};

use crate::{
    sync::{AtomicU64, Ordering},
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

impl Mark {
    /// Sets the mark, or extends it; whether anything changed.
    pub(crate) fn extend(&self, until: Now, reason: MarkReason) -> bool {
        let reason_code = MarkReason::ALL.iter().position(|known| *known == reason);
        let word = until.0.min(UNTIL_MAX) << REASON_BITS | reason_code.unwrap_or(0) as u64;
        let before = self.0.fetch_max(word, Ordering::Relaxed);
        (before >> REASON_BITS) < until.0.min(UNTIL_MAX)
    }

    /// The mark, if it still stands at `now`.
    pub(crate) fn active(&self, now: Now) -> Option<ActiveMark> {
        Self::decode(self.0.load(Ordering::Relaxed), now)
    }

    fn decode(word: u64, now: Now) -> Option<ActiveMark> {
        let until = word >> REASON_BITS;
        let until = if until == UNTIL_MAX { Now::NEVER } else { Now(until) };
        if now.reached(until) {
            return None;
        }
        let reason = MarkReason::ALL.get((word & 0xFF) as usize).copied()?;
        Some(ActiveMark { until, reason })
    }

    /// Takes the mark away; what stood there at `now`.
    pub(crate) fn clear(&self, now: Now) -> Option<ActiveMark> {
        // The load spares healthy backends a write to a shared cache line on every success.
        let word = self.0.load(Ordering::Relaxed);
        if word == 0 {
            return None;
        }
        let cleared = self.0.compare_exchange(word, 0, Ordering::Relaxed, Ordering::Relaxed);
        cleared.ok().and_then(|word| Self::decode(word, now))
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
}
