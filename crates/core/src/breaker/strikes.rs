//! A streak: the strikes since the last good news, each forgotten after a while.
//!
//! Only the newest `threshold` strikes can matter, so that many are kept and no more.

use std::collections::VecDeque;

use crate::time::{Millis, Now};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Streak {
    strikes: VecDeque<Now>,
}

impl Streak {
    /// Adds a strike and says how many count now, itself included.
    pub(super) fn strike(&mut self, now: Now, memory: Millis, threshold: u32) -> u32 {
        self.strikes.push_back(now);
        while self.strikes.len() > threshold as usize {
            self.strikes.pop_front();
        }
        self.count(now, memory)
    }

    /// How many strikes count at `now`: a strike is out when its age reaches the memory.
    pub(super) fn count(&self, now: Now, memory: Millis) -> u32 {
        let counts = |strike: &&Now| memory == Millis::ZERO || now.since(**strike) < memory;
        self.strikes.iter().filter(counts).count() as u32
    }

    pub(super) fn clear(&mut self) {
        self.strikes.clear();
    }

    #[cfg(test)]
    pub(super) fn moments(&self) -> impl Iterator<Item = Now> {
        self.strikes.iter().copied()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.strikes.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strike_is_forgotten_when_its_age_reaches_the_memory() {
        let mut streak = Streak::default();
        assert_eq!(streak.strike(Now(0), Millis(10), 3), 1);
        assert_eq!(streak.strike(Now(9), Millis(10), 3), 2);
        assert_eq!(streak.strike(Now(10), Millis(10), 3), 2);
    }

    #[test]
    fn memory_zero_never_forgets() {
        let mut streak = Streak::default();
        streak.strike(Now(0), Millis::ZERO, 2);
        assert_eq!(streak.strike(Now(u64::MAX), Millis::ZERO, 2), 2);
    }

    #[test]
    fn no_more_than_the_threshold_is_kept() {
        let mut streak = Streak::default();
        for second in 0..100 {
            streak.strike(Now(second), Millis::ZERO, 4);
        }
        assert_eq!(streak.strikes.len(), 4);
    }
}
