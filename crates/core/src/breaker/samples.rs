//! The latest ended attempts, for the failure-ratio rule.
//!
//! At most [`SAMPLES_MAX`] samples with running counts, so that adding one costs the same whether
//! the backend is quiet or busy. Room is made on first use and grows with the traffic, so that a
//! target that nobody uses costs nothing.

use std::collections::VecDeque;

use crate::time::{Millis, Now};

/// More samples than this say nothing new about a ratio, and they stay at 8 KiB.
pub(super) const SAMPLES_MAX: usize = 1024;
/// The room that a first sample makes.
const ROOM_FIRST: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Samples {
    /// Each sample: its time shifted left by one, the lowest bit set for a failure.
    ring: VecDeque<u64>,
    failed: usize,
    is_judged: bool,
}

/// What the ring says at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ratio {
    pub(super) failed: u32,
    pub(super) samples: u32,
}

impl Samples {
    /// No samples; where the ratio will never be judged, none are kept.
    pub(super) fn new(is_judged: bool) -> Self {
        Self { ring: VecDeque::new(), failed: 0, is_judged }
    }

    pub(super) fn add(&mut self, now: Now, is_failure: bool, window: Millis) {
        if !self.is_judged {
            return;
        }
        self.forget(now, window);
        if self.ring.len() == SAMPLES_MAX {
            self.drop_oldest();
        }
        if self.ring.capacity() == 0 {
            self.ring.reserve_exact(ROOM_FIRST);
        }
        self.ring.push_back(now.0 << 1 | u64::from(is_failure));
        self.failed += usize::from(is_failure);
    }

    /// The samples that count at `now`: one is out when its age reaches the window.
    pub(super) fn ratio(&mut self, now: Now, window: Millis) -> Ratio {
        self.forget(now, window);
        Ratio { failed: self.failed as u32, samples: self.ring.len() as u32 }
    }

    pub(super) fn clear(&mut self) {
        self.ring.clear();
        self.failed = 0;
    }

    fn forget(&mut self, now: Now, window: Millis) {
        while self.ring.front().is_some_and(|sample| now.since(Now(sample >> 1)) >= window) {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        let oldest = self.ring.pop_front();
        self.failed -= oldest.map_or(0, |sample| (sample & 1) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_out_when_its_age_reaches_the_window() {
        let mut samples = Samples::new(true);
        samples.add(Now(0), true, Millis(10));
        samples.add(Now(5), false, Millis(10));
        assert_eq!(samples.ratio(Now(9), Millis(10)), Ratio { failed: 1, samples: 2 });
        assert_eq!(samples.ratio(Now(10), Millis(10)), Ratio { failed: 0, samples: 1 });
    }

    #[test]
    fn only_the_latest_1024_count() {
        let mut samples = Samples::new(true);
        for moment in 0..3000 {
            samples.add(Now(moment), moment < 2000, Millis(u64::MAX));
        }
        let ratio = samples.ratio(Now(3000), Millis(u64::MAX));
        assert_eq!(ratio, Ratio { failed: 24, samples: 1024 });
    }
}
