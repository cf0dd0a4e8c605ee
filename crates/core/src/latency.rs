//! Peak-EWMA of the time to first content, for the `least_latency` tactic.
//!
//! A slower answer is believed at once (the peak), a faster one bit by bit, and the value decays
//! with time also while nobody looks, so a target that was slow once is tried again.

use serde::{Deserialize, Serialize};

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

    /// What a choice at `now` reads; `None` before the first sample.
    pub(crate) fn read(&self, now: Now) -> Option<LatencyRead> {
        self.at.map(|at| LatencyRead { peak_ms: self.peak_ms, age: now.since(at) })
    }
}

/// A latency as a choice read it. It is decayed only for those that are compared: the exponential
/// costs as much as the rest of reading a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatencyRead {
    /// The value when it was last sampled.
    pub peak_ms: f64,
    /// How long ago that was.
    pub age: Millis,
}

impl LatencyRead {
    /// The value at the moment of reading.
    #[must_use]
    pub fn expected_ms(&self) -> f64 {
        self.peak_ms * decay(self.age)
    }
}

fn decay(age: Millis) -> f64 {
    (-(age.0 as f64) / DECAY_MS).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected(latency: &Latency, now: Now) -> f64 {
        latency.read(now).expect("it has samples").expected_ms()
    }

    #[test]
    fn a_peak_counts_at_once_and_decays_when_read() {
        let mut latency = Latency::default();
        assert_eq!(latency.read(Now(5)), None);
        latency.sample(Now(0), Millis(100));
        latency.sample(Now(0), Millis(900));
        assert_eq!(expected(&latency, Now(0)), 900.0);
        let later = expected(&latency, Now(10_000));
        assert!((later - 900.0 / std::f64::consts::E).abs() < 1e-9);
    }

    #[test]
    fn a_faster_answer_is_believed_in_proportion_to_the_time_passed() {
        let mut latency = Latency::default();
        latency.sample(Now(0), Millis(1000));
        latency.sample(Now(0), Millis(100));
        assert_eq!(expected(&latency, Now(0)), 1000.0);
        latency.sample(Now(1_000_000), Millis(100));
        assert!((latency.peak_ms - 100.0).abs() < 1e-6);
    }
}
