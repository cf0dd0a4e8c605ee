//! So many lines a second, and a count of the rest: a program that talks without end fills neither
//! the log nor the disk.

use std::time::Duration;

use tokio::time::Instant;

const SECOND: Duration = Duration::from_secs(1);

/// Decides which lines are told.
#[derive(Debug)]
pub(super) struct Throttle {
    per_second: u32,
    /// When the running second began.
    since: Option<Instant>,
    told: u32,
    left_out: u64,
}

impl Throttle {
    pub(super) const fn new(per_second: u32) -> Self {
        Self { per_second, since: None, told: 0, left_out: 0 }
    }

    /// Whether a line is told.
    pub(super) fn admits(&mut self, now: Instant) -> bool {
        if self.since.is_none_or(|since| now.duration_since(since) >= SECOND) {
            self.since = Some(now);
            self.told = 0;
        }
        let is_admitted = self.told < self.per_second;
        if is_admitted {
            self.told += 1;
        } else {
            self.left_out = self.left_out.saturating_add(1);
        }
        is_admitted
    }

    /// When it is time to say how many were left out, if any were.
    pub(super) fn due(&self) -> Option<Instant> {
        (self.left_out > 0).then(|| self.since.map(|since| since + SECOND))?
    }

    /// How many were left out since this was last asked, if any were.
    pub(super) fn take_left_out(&mut self) -> Option<u64> {
        let count = std::mem::take(&mut self.left_out);
        (count > 0).then_some(count)
    }
}

#[cfg(test)]
mod tests {
    use tidegate_runtime::clock::timer_now;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_told_in_part_and_counted() {
        let mut throttle = Throttle::new(2);
        let start = timer_now();
        let told = (0..10).filter(|_| throttle.admits(start)).count();
        assert_eq!((told, throttle.due()), (2, Some(start + SECOND)));
        assert_eq!(throttle.take_left_out(), Some(8));
        assert_eq!((throttle.take_left_out(), throttle.due()), (None, None));
        assert!(!throttle.admits(start + SECOND / 2));
        assert!(throttle.admits(start + SECOND));
    }
}
