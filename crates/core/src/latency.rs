//! Peak-EWMA of the time to first content, for the `least_latency` tactic.
//!
//! A slower answer is believed at once (the peak), a faster one bit by bit, and the value decays
//! with time also while nobody looks, so a target that was slow once is tried again.

use crate::time::{Millis, Now};

/// Ten seconds: a slow spell is forgotten after about half a minute without answers.
const DECAY_MS: f64 = 10_000.0;

/// The recent time to first content of one target; nothing before its first answer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Latency {
    pub(crate) peak_ms: f64,
    /// When `peak_ms` was right; `None` before the first sample.
    pub(crate) at: Option<Now>,
}

impl Latency {
    pub(crate) fn sample(&mut self, now: Now, took: Millis) {
        let sample = took.0 as f64;
        self.peak_ms = match self.at {
            Some(at) if sample < self.peak_ms => {
                let weight = decay(now.since(at));
                self.peak_ms * weight + sample * (1.0 - weight)
            }
            _ => sample,
        };
        self.at = Some(now);
    }

    /// The value at `now`; `None` before the first sample.
    pub(crate) fn read(&self, now: Now) -> Option<f64> {
        self.at.map(|at| self.peak_ms * decay(now.since(at)))
    }
}

fn decay(age: Millis) -> f64 {
    (-(age.0 as f64) / DECAY_MS).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_counts_at_once_and_decays_when_read() {
        let mut latency = Latency::default();
        assert_eq!(latency.read(Now(5)), None);
        latency.sample(Now(0), Millis(100));
        latency.sample(Now(0), Millis(900));
        assert_eq!(latency.read(Now(0)), Some(900.0));
        let later = latency.read(Now(10_000)).expect("it has samples");
        assert!((later - 900.0 / std::f64::consts::E).abs() < 1e-9);
    }

    #[test]
    fn a_faster_answer_is_believed_in_proportion_to_the_time_passed() {
        let mut latency = Latency::default();
        latency.sample(Now(0), Millis(1000));
        latency.sample(Now(0), Millis(100));
        assert_eq!(latency.read(Now(0)), Some(1000.0));
        latency.sample(Now(1_000_000), Millis(100));
        assert!((latency.peak_ms - 100.0).abs() < 1e-6);
    }
}
