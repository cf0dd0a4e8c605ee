//! Fair shares: how much of something bounded one caller may use.
//!
//! Sessions, programs, calls in flight and answers that wait for their client are bounded in all.
//! Without a bound per caller the busiest one would take everything and the others nothing.
//!
//! Rules kept here:
//! - A caller's share is what its key says, else a quarter of the whole, and all of it where at
//!   most one key is configured; never less than one.
//! - At its own limit a caller makes room from what it has itself ([`Room::OwnLimit`]); nothing of
//!   another caller's ever goes.
//! - With the whole full, whoever comes is refused ([`Room::WholeFull`]).
//!
//! Left to others: what is counted, and what goes when a caller is at its limit.

use std::{collections::BTreeMap, sync::Arc};

/// The share of a caller whose key says nothing, where several keys are configured.
const QUARTER: f64 = 0.25;

/// The fraction of everything that a caller may use.
#[must_use]
pub fn fraction(written: Option<f64>, keys: usize) -> f64 {
    written.unwrap_or(if keys <= 1 { 1.0 } else { QUARTER })
}

/// How much there may be of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// In all.
    pub whole: usize,
    /// Of one caller.
    pub share: usize,
}

/// How much there is of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// In all.
    pub all: usize,
    /// Of one caller.
    pub own: usize,
}

/// Whether there is room for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// There is.
    Free,
    /// The caller has as much as it may have: something of its own has to go.
    OwnLimit,
    /// All callers together have as much as there may be.
    WholeFull,
}

impl Bound {
    /// The bound of a caller that may use this fraction of `whole`.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a fraction of a count, cut to a range of counts"
    )]
    pub fn new(whole: usize, fraction: f64) -> Self {
        let whole = whole.max(1);
        let share = (whole as f64 * fraction.clamp(0.0, 1.0)) as usize;
        Self { whole, share: share.clamp(1, whole) }
    }

    /// Whether there is room for `more`. The caller's own limit is told first: what it gives up
    /// makes room in the whole as well.
    #[must_use]
    pub fn room(self, used: Used, more: usize) -> Room {
        if used.own.saturating_add(more) > self.share {
            Room::OwnLimit
        } else if used.all.saturating_add(more) > self.whole {
            Room::WholeFull
        } else {
            Room::Free
        }
    }
}

/// What each caller uses of one thing. Callers that use nothing are forgotten.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    by_caller: BTreeMap<Arc<str>, usize>,
    all: usize,
}

impl Ledger {
    /// What is used, as one caller sees it.
    #[must_use]
    pub fn used(&self, caller: &str) -> Used {
        Used { all: self.all, own: self.by_caller.get(caller).copied().unwrap_or_default() }
    }

    /// Takes `more` for a caller if there is room.
    pub fn take(&mut self, caller: &Arc<str>, more: usize, bound: Bound) -> Room {
        let room = bound.room(self.used(caller), more);
        if room == Room::Free {
            *self.by_caller.entry(Arc::clone(caller)).or_default() += more;
            self.all += more;
        }
        room
    }

    /// Gives back what was taken.
    pub fn give_back(&mut self, caller: &str, amount: usize) {
        self.all = self.all.saturating_sub(amount);
        let Some(own) = self.by_caller.get_mut(caller) else { return };
        *own = own.saturating_sub(amount);
        if *own == 0 {
            self.by_caller.remove(caller);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_what_the_key_says_else_a_quarter_else_everything() {
        assert_eq!(fraction(Some(0.5), 1), 0.5);
        assert_eq!(fraction(None, 0), 1.0);
        assert_eq!(fraction(None, 1), 1.0);
        assert_eq!(fraction(None, 2), 0.25);
        assert_eq!(Bound::new(32, 0.25), Bound { whole: 32, share: 8 });
        assert_eq!(Bound::new(2, 0.25), Bound { whole: 2, share: 1 }, "never less than one");
        assert_eq!(Bound::new(0, 1.0), Bound { whole: 1, share: 1 });
    }

    #[test]
    fn one_caller_cannot_take_the_share_of_another() {
        let bound = Bound::new(8, 0.25);
        let (mut ledger, flood, other) = (Ledger::default(), "flood".into(), "other".into());
        let taken = (0..100).filter(|_| ledger.take(&flood, 1, bound) == Room::Free).count();
        assert_eq!(taken, 2);
        assert_eq!(ledger.take(&flood, 1, bound), Room::OwnLimit);
        assert_eq!(ledger.take(&other, 2, bound), Room::Free);
        ledger.give_back(&flood, 1);
        assert_eq!(ledger.take(&flood, 1, bound), Room::Free);
        assert_eq!(ledger.used("flood"), Used { all: 4, own: 2 });
    }

    #[test]
    fn with_the_whole_full_whoever_comes_is_refused() {
        let bound = Bound::new(3, 0.5);
        let mut ledger = Ledger::default();
        for name in ["a", "b", "c"] {
            assert_eq!(ledger.take(&name.into(), 1, bound), Room::Free);
        }
        assert_eq!(ledger.take(&"d".into(), 1, bound), Room::WholeFull);
        ["a", "b", "c"].iter().for_each(|name| ledger.give_back(name, 1));
        assert!(ledger.by_caller.is_empty() && ledger.all == 0);
    }
}
