//! What a run counts. Plain numbers, filled without allocating once the run is warm.

use tidegate_core::{
    hint::Heard,
    time::{Millis, Now},
};

use super::{
    painter::{Painter, View},
    plot::{Plot, Want},
};

/// The numbers of one run.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    /// What clients wanted: a retry by the client is not another one.
    pub(super) requests: u64,
    /// What reached the gateway, client retries included.
    pub(super) sent: u64,
    pub(super) attempts: u64,
    pub(super) answered: u64,
    pub(super) failures: Failures,
    pub(super) hops: u64,
    pub(super) last_resorts: u64,
    pub(super) budget_spent: u64,
    pub(super) sessions_moved: u64,
    pub(super) probes: u64,
    /// Tokens of the requests that were answered, as far as their record tells.
    pub(super) tokens: u64,
    /// Requests that were sent again because their kept connection was closed.
    pub(super) resends: u64,
    pub(super) waits: Waits,
    pub(super) backends: Vec<BackendTally>,
    /// Attempts that reached a backend, one count per expectation about them.
    pub(super) hits: Vec<u64>,
    pub(super) bus: BusTally,
    pub(super) replicas: Vec<ReplicaTally>,
    /// A lane per backend; in a fleet, then a lane per backend for each replica.
    pub(super) painter: Painter,
    /// Openings and closings, in order, bounded.
    pub(super) turns: Vec<Turn>,
}

/// The numbers of one backend.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BackendTally {
    pub(super) firsts: u64,
    pub(super) attempts: u64,
    pub(super) answered: u64,
    pub(super) failed: u64,
    /// From closed to open, at each replica.
    pub(super) opens: u64,
    pub(super) first_open: Option<Now>,
    pub(super) last_open: Option<Now>,
    pub(super) last_close: Option<Now>,
    /// Time at which it was not closed, as far as that has ended.
    pub(super) open_for: Millis,
    pub(super) is_healthy_at_end: bool,
}

/// The numbers of one replica.
#[derive(Clone, Debug)]
pub(super) struct ReplicaTally {
    /// Requests that reached it.
    pub(super) sent: u64,
    pub(super) backends: Vec<ReplicaBackendTally>,
}

/// The numbers of one backend at one replica.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReplicaBackendTally {
    pub(super) attempts: u64,
    pub(super) failed: u64,
    pub(super) opens: u64,
}

/// What went over the bus of a fleet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BusTally {
    /// Hints that replicas told; what is told again after a cut is not counted.
    pub(super) told: u64,
    pub(super) windows: u64,
    pub(super) exclusions: u64,
    pub(super) openings: u64,
    pub(super) pins: u64,
    /// Copies that did not arrive: lost, or cut off.
    pub(super) lost: u64,
    /// Copies that arrived, by what became of them.
    pub(super) heard: [u64; Heard::ALL.len()],
}

impl BackendTally {
    /// Time at which it was not closed, up to a moment.
    pub(super) fn open_until(&self, now: Now) -> Millis {
        let is_open = self.last_open.is_some_and(|at| self.last_close.is_none_or(|it| it <= at));
        let current = self.last_open.filter(|_| is_open).map_or(Millis::ZERO, |at| now.since(at));
        Millis(self.open_for.0.saturating_add(current.0))
    }
}

/// Client-visible failures, and when.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Failures {
    pub(super) count: u64,
    pub(super) first: Option<Now>,
    pub(super) last: Option<Now>,
}

impl Failures {
    pub(super) fn add(&mut self, now: Now) {
        self.count += 1;
        self.first = self.first.or(Some(now));
        self.last = Some(now);
    }
}

/// A backend opened or closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) at: Now,
    pub(super) backend: usize,
    /// What a reader calls it.
    pub(super) text: String,
}

/// More turns than this do not fit under the lanes.
const TURNS_MAX: usize = 200;

impl Tally {
    pub(super) fn new(plot: &Plot, view: View) -> Self {
        let (backends, replicas) = (plot.world.settings.backends.len(), plot.replicas());
        let of_replica =
            ReplicaTally { sent: 0, backends: vec![ReplicaBackendTally::default(); backends] };
        let lanes = if plot.fleet.is_some() { backends * (1 + replicas) } else { backends };
        let hits = plot.wants.iter().filter(|it| matches!(it, Want::Hits { .. })).count();
        Self {
            requests: 0,
            sent: 0,
            attempts: 0,
            answered: 0,
            failures: Failures::default(),
            hops: 0,
            last_resorts: 0,
            budget_spent: 0,
            sessions_moved: 0,
            probes: 0,
            tokens: 0,
            resends: 0,
            waits: Waits::default(),
            backends: vec![BackendTally::default(); backends],
            hits: vec![0; hits],
            bus: BusTally::default(),
            replicas: vec![of_replica; replicas],
            painter: Painter::new(lanes, backends, view),
            turns: Vec::new(),
        }
    }

    /// An attempt reaches a backend.
    pub(super) fn hit(&mut self, plot: &Plot, now: Now, reached: usize) {
        if self.hits.is_empty() {
            return;
        }
        let wanted = plot.wants.iter().filter_map(|it| match *it {
            Want::Hits { backend, span, .. } => Some((backend, span)),
            _ => None,
        });
        for (count, (backend, span)) in self.hits.iter_mut().zip(wanted) {
            *count += u64::from(backend == reached && span.has(now));
        }
    }

    /// The lane of a backend at one replica of a fleet.
    pub(super) fn lane(&self, replica: usize, backend: usize) -> Option<usize> {
        let backends = self.backends.len();
        let lane = backends * (1 + replica) + backend;
        self.painter.has(lane).then_some(lane)
    }

    /// Paints the lane of a backend, and in a fleet that of one replica too.
    pub(super) fn paint(
        &mut self,
        replica: usize,
        backend: usize,
        brush: impl Fn(&mut Painter, usize),
    ) {
        brush(&mut self.painter, backend);
        if let Some(lane) = self.lane(replica, backend) {
            brush(&mut self.painter, lane);
        }
    }

    /// A backend opened, in a fleet at one replica.
    pub(super) fn opened(&mut self, at: Now, (backend, at_one): AtReplica, why: &str) {
        self.backends[backend].opens += 1;
        if let Some(replica) = at_one {
            self.replicas[replica].backends[backend].opens += 1;
        }
        self.turn(at, backend, format!("opened{}: {why}", at_replica(at_one)));
    }

    /// It closed.
    pub(super) fn closed(&mut self, at: Now, (backend, at_one): AtReplica) {
        self.turn(at, backend, format!("closed{}", at_replica(at_one)));
    }

    /// It was closed at every replica, and is no longer.
    pub(super) fn opened_anywhere(&mut self, at: Now, backend: usize) {
        let tally = &mut self.backends[backend];
        tally.first_open = tally.first_open.or(Some(at));
        tally.last_open = Some(at);
    }

    /// It is closed at every replica.
    pub(super) fn closed_everywhere(&mut self, at: Now, backend: usize) {
        let tally = &mut self.backends[backend];
        tally.open_for = tally.open_until(at);
        tally.last_close = Some(at);
    }

    fn turn(&mut self, at: Now, backend: usize, text: String) {
        if self.turns.len() < TURNS_MAX {
            self.turns.push(Turn { at, backend, text });
        }
    }

    /// Attempts per request that reached the gateway.
    pub(super) fn amplification(&self) -> f64 {
        self.attempts as f64 / self.sent.max(1) as f64
    }
}

/// A backend, and in a fleet the replica where something happened to it.
type AtReplica = (usize, Option<usize>);

fn at_replica(replica: Option<usize>) -> String {
    replica.map(|it| format!(" at replica {}", it + 1)).unwrap_or_default()
}

/// How long clients waited for the first content: a histogram of fixed size, 3 % wide buckets.
#[derive(Clone, Debug)]
pub(super) struct Waits {
    buckets: Box<[u32]>,
    pub(super) count: u64,
    pub(super) max: Millis,
    /// When the longest wait ended.
    pub(super) max_at: Now,
}

/// Waits below this are counted to the millisecond.
const EXACT: u64 = 64;
/// Each doubling above has this many buckets.
const PER_DOUBLING: u64 = 32;
/// Doublings from `EXACT` on that are told apart: up to half a year.
const DOUBLINGS: u64 = 28;

impl Default for Waits {
    fn default() -> Self {
        let count = EXACT + PER_DOUBLING * DOUBLINGS;
        let buckets = vec![0; count as usize].into_boxed_slice();
        Self { buckets, count: 0, max: Millis::ZERO, max_at: Now::ZERO }
    }
}

impl Waits {
    pub(super) fn add(&mut self, now: Now, wait: Millis) {
        let bucket = bucket_of(wait.0).min(self.buckets.len() - 1);
        self.buckets[bucket] = self.buckets[bucket].saturating_add(1);
        self.count += 1;
        if wait > self.max {
            (self.max, self.max_at) = (wait, now);
        }
    }

    /// The wait that this share of clients does not exceed (by more than a bucket's width).
    pub(super) fn quantile(&self, share: f64) -> Millis {
        let rank = (self.count as f64 * share).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (bucket, count) in self.buckets.iter().enumerate() {
            seen += u64::from(*count);
            if seen >= rank {
                return Millis(top_of(bucket).min(self.max.0));
            }
        }
        self.max
    }
}

fn bucket_of(ms: u64) -> usize {
    if ms < EXACT {
        return ms as usize;
    }
    let doubling = u64::from(ms.ilog2()) - u64::from(EXACT.ilog2());
    let within = (ms >> (doubling + 1)) - PER_DOUBLING;
    (EXACT + doubling * PER_DOUBLING + within) as usize
}

/// The longest wait of a bucket.
fn top_of(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < EXACT {
        return bucket;
    }
    let (doubling, within) = ((bucket - EXACT) / PER_DOUBLING, (bucket - EXACT) % PER_DOUBLING);
    ((within + PER_DOUBLING + 1) << (doubling + 1)) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_narrow_and_in_order() {
        let mut before = None;
        for ms in (0..5000).chain([10_000, 60_000, 600_000, 86_400_000]) {
            let bucket = bucket_of(ms);
            assert!(before <= Some(bucket), "{ms}");
            let top = top_of(bucket);
            assert!(top >= ms && top as f64 <= ms as f64 * 1.04 + 1.0, "{ms}: {top}");
            before = Some(bucket);
        }
        let mut waits = Waits::default();
        waits.add(Now(0), Millis(u64::MAX));
        assert_eq!(waits.max, Millis(u64::MAX));
    }

    #[test]
    fn a_quantile_is_the_wait_that_the_share_does_not_exceed() {
        let mut waits = Waits::default();
        assert_eq!(waits.quantile(0.95), Millis::ZERO);
        for ms in 1..=100 {
            waits.add(Now(ms), Millis(ms));
        }
        let p95 = waits.quantile(0.95).0;
        assert!((95..=98).contains(&p95), "{p95}");
        assert_eq!(waits.quantile(1.0), Millis(100));
    }
}
