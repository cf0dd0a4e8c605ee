//! When the core was asked and told, in an order that holds across threads. With draws and outcomes
//! it is what an exact replay of requests needs.
//!
//! Moments are whole milliseconds, and several things happen in one. Each is given a number when it
//! has happened; of two things in one millisecond the one with the lower number came first. Two
//! threads may take their numbers the other way round within some nanoseconds, which a replay then
//! notices as a difference.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tidegate_core::time::Now;

use crate::ring::KEPT_FOR;

/// Probes that are kept: hundreds of providers for fifteen minutes.
const PROBES_MAX: usize = 16_384;

/// The numbers of one attempt's moments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttemptMoments {
    /// Of its choice.
    pub chosen: u64,
    /// Of its response head, and when that came.
    pub head: Option<(Now, u64)>,
    /// Of the release of its answer.
    pub released: Option<u64>,
    /// Of its end.
    pub ended: u64,
    /// It was left for another target before it had ended.
    pub is_left: bool,
}

/// A probe of a provider that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeRecord {
    /// When.
    pub at: Now,
    /// The number of that moment.
    pub n: u64,
    /// Which provider.
    pub provider: Arc<str>,
    /// The status that it answered with; none if it did not answer.
    pub status: Option<u16>,
}

/// Gives moments their numbers, and keeps the probes.
#[derive(Debug, Default)]
pub(crate) struct Moments {
    last: AtomicU64,
    probes: Mutex<VecDeque<ProbeRecord>>,
}

impl Moments {
    pub(crate) fn next(&self) -> u64 {
        self.last.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn probed(&self, at: Now, provider: &Arc<str>, status: Option<u16>) {
        let record = ProbeRecord { at, n: self.next(), provider: Arc::clone(provider), status };
        let mut probes = self.probes.lock().unwrap_or_else(PoisonError::into_inner);
        probes.push_back(record);
        let is_old = |it: &ProbeRecord| at.since(it.at) > KEPT_FOR;
        while probes.len() > PROBES_MAX || probes.front().is_some_and(is_old) {
            probes.pop_front();
        }
    }

    pub(crate) fn probes(&self, since: Now) -> Vec<ProbeRecord> {
        let probes = self.probes.lock().unwrap_or_else(PoisonError::into_inner);
        probes.iter().filter(|it| it.at >= since).cloned().collect()
    }
}
