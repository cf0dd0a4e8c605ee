//! The latest ended attempts, for the failure-ratio rule.
//!
//! A ring of at most [`SAMPLES_MAX`] samples, allocated once, with running counts, so that adding
//! one costs the same whether the backend is quiet or busy and never allocates.

use crate::time::{Millis, Now};

/// More samples than this say nothing new about a ratio, and the ring stays at 8 KiB.
pub(super) const SAMPLES_MAX: usize = 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Samples {
    /// Each sample: its time shifted left by one, the lowest bit set for a failure.
    ring: Box<[u64]>,
    oldest: usize,
    count: usize,
    failed: usize,
}

/// What the ring says at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ratio {
    pub(super) failed: u32,
    pub(super) samples: u32,
}

impl Samples {
    /// A ring; one that will never be judged holds nothing.
    pub(super) fn new(is_judged: bool) -> Self {
        let ring = vec![0; if is_judged { SAMPLES_MAX } else { 0 }].into_boxed_slice();
        Self { ring, oldest: 0, count: 0, failed: 0 }
    }

    pub(super) fn add(&mut self, now: Now, is_failure: bool) {
        if self.ring.is_empty() {
            return;
        }
        if self.count == self.ring.len() {
            self.drop_oldest();
        }
        let place = (self.oldest + self.count) % self.ring.len();
        self.ring[place] = now.0 << 1 | u64::from(is_failure);
        self.count += 1;
        self.failed += usize::from(is_failure);
    }

    /// The samples that count at `now`: one is out when its age reaches the window.
    pub(super) fn ratio(&mut self, now: Now, window: Millis) -> Ratio {
        while self.count > 0 && now.since(Now(self.ring[self.oldest] >> 1)) >= window {
            self.drop_oldest();
        }
        Ratio { failed: self.failed as u32, samples: self.count as u32 }
    }

    pub(super) fn clear(&mut self) {
        (self.oldest, self.count, self.failed) = (0, 0, 0);
    }

    fn drop_oldest(&mut self) {
        self.failed -= (self.ring[self.oldest] & 1) as usize;
        self.oldest = (self.oldest + 1) % self.ring.len();
        self.count -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_out_when_its_age_reaches_the_window() {
        let mut samples = Samples::new(true);
        samples.add(Now(0), true);
        samples.add(Now(5), false);
        assert_eq!(samples.ratio(Now(9), Millis(10)), Ratio { failed: 1, samples: 2 });
        assert_eq!(samples.ratio(Now(10), Millis(10)), Ratio { failed: 0, samples: 1 });
    }

    #[test]
    fn only_the_latest_1024_count() {
        let mut samples = Samples::new(true);
        for moment in 0..3000 {
            samples.add(Now(moment), moment < 2000);
        }
        let ratio = samples.ratio(Now(3000), Millis(u64::MAX));
        assert_eq!(ratio, Ratio { failed: 24, samples: 1024 });
    }
}
