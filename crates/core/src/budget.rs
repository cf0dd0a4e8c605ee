//! The budget of hops that are not free, so that failover never multiplies an outage (I19).
//!
//! A hop is allowed if such hops over the window, itself included, are at most
//! `ratio × requests + floor`, with the requests of the same window. Counting must be exact (a hop
//! exactly one window old is out) and must not lock, so both counts live in rings of atomic
//! buckets, one per millisecond, each tagged with the lap it belongs to.

use crate::{
    settings::BudgetSettings,
    sync::{AtomicU64, Ordering},
    time::Now,
};

/// A window of up to about 16 s is counted to the millisecond; a longer one in wider buckets, in
/// which hops leave late and requests early, so that the limit still holds.
const BUCKETS_MAX: u64 = 16_384;
/// A bucket's count is its lowest bits, its lap the rest.
const COUNT_BITS: u32 = 24;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;

#[derive(Debug)]
pub(crate) struct Budget {
    settings: BudgetSettings,
    requests: Tally,
    hops: Tally,
}

impl Budget {
    pub(crate) fn new(settings: BudgetSettings) -> Self {
        let tally = || Tally::new(settings.window.0.max(1));
        Self { settings, requests: tally(), hops: tally() }
    }

    pub(crate) fn settings(&self) -> &BudgetSettings {
        &self.settings
    }

    pub(crate) fn count_request(&self, now: Now) {
        self.requests.add(now);
    }

    /// Whether the budget has room for a hop of a request that began at `began`. Counts nothing.
    pub(crate) fn has_room(&self, now: Now, began: Now) -> bool {
        self.is_within(self.hops.sum(now, Edge::Touching) + 1, now, began)
    }

    /// Counts a hop of a request that began at `began`, if the budget has room for it.
    pub(crate) fn allow_hop(&self, now: Now, began: Now) -> bool {
        // Counted first: of two threads that ask at once, neither can miss the other's hop.
        self.hops.add(now);
        let is_allowed = self.is_within(self.hops.sum(now, Edge::Touching), now, began);
        if !is_allowed {
            self.hops.take_back(now);
        }
        is_allowed
    }

    /// Whether so many hops are within the budget.
    fn is_within(&self, hops: u64, now: Now, began: Now) -> bool {
        // A request older than the window still counts itself.
        let is_old = u64::from(now.since(began) >= self.settings.window);
        let requests = self.requests.sum(now, Edge::Inside) + is_old;
        let above = hops.saturating_sub(u64::from(self.settings.floor));
        // A quotient, not a product: 29 of 100 is the same number as a written 0.29.
        above == 0 || above as f64 / requests as f64 <= self.settings.ratio
    }
}

/// Which of the buckets at the far edge of the window count, where a bucket is wider than 1 ms.
#[derive(Clone, Copy, PartialEq)]
enum Edge {
    /// Only those that lie inside.
    Inside,
    /// Also the one that the edge cuts.
    Touching,
}

#[derive(Debug)]
struct Tally {
    buckets: Box<[AtomicU64]>,
    width_ms: u64,
    window_ms: u64,
}

impl Tally {
    fn new(window_ms: u64) -> Self {
        let width_ms = window_ms.div_ceil(BUCKETS_MAX).max(1);
        // One more than the window holds: the bucket being filled and the one being left.
        let count = window_ms.div_ceil(width_ms) + 1;
        let buckets = (0..count).map(|_| AtomicU64::new(0)).collect();
        Self { buckets, width_ms, window_ms }
    }

    fn add(&self, now: Now) {
        let (bucket, lap) = self.place(now.0 / self.width_ms);
        let bucket = &self.buckets[bucket];
        let mut word = bucket.load(Ordering::Relaxed);
        loop {
            let counted = if word >> COUNT_BITS == lap { word & COUNT_MASK } else { 0 };
            let next = lap << COUNT_BITS | (counted + 1).min(COUNT_MASK);
            match bucket.compare_exchange_weak(word, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return,
                Err(actual) => word = actual,
            }
        }
    }

    fn take_back(&self, now: Now) {
        let (bucket, lap) = self.place(now.0 / self.width_ms);
        let bucket = &self.buckets[bucket];
        let mut word = bucket.load(Ordering::Relaxed);
        while word >> COUNT_BITS == lap && word & COUNT_MASK > 0 {
            match bucket.compare_exchange_weak(word, word - 1, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(actual) => word = actual,
            }
        }
    }

    /// What was counted less than a window ago.
    fn sum(&self, now: Now, edge: Edge) -> u64 {
        let newest = now.0 / self.width_ms;
        let oldest = now.0.saturating_add(1).saturating_sub(self.window_ms);
        let first = match edge {
            Edge::Inside => oldest.div_ceil(self.width_ms),
            Edge::Touching => oldest / self.width_ms,
        };
        self.sum_of(first, newest)
    }

    /// The counts of the ticks from `first` to `newest`: at most two stretches of the ring, each of
    /// one lap. Ten thousand buckets are walked, so no division is made per bucket.
    fn sum_of(&self, first: u64, newest: u64) -> u64 {
        let count = self.buckets.len() as u64;
        let counted = |buckets: &[AtomicU64], lap: u64| -> u64 {
            let words = buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed));
            words.filter(|word| word >> COUNT_BITS == lap).map(|word| word & COUNT_MASK).sum()
        };
        let mut sum = 0;
        let mut tick = first;
        while tick <= newest {
            let (start, lap) = self.place(tick);
            let end = (start as u64 + (newest - tick)).min(count - 1);
            sum += counted(&self.buckets[start..=end as usize], lap);
            let Some(next) = tick.checked_add(end - start as u64 + 1) else { break };
            tick = next;
        }
        sum
    }

    /// The bucket of a tick, and the lap it belongs to.
    fn place(&self, tick: u64) -> (usize, u64) {
        let count = self.buckets.len() as u64;
        // Laps start at one, so that an untouched bucket belongs to none.
        ((tick % count) as usize, (tick / count + 1) & (u64::MAX >> COUNT_BITS))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::time::Millis;

    fn budget(window_ms: u64, ratio: f64, floor: u32) -> Budget {
        Budget::new(BudgetSettings { window: Millis(window_ms), ratio, floor })
    }

    #[test]
    fn hops_stop_at_the_floor_plus_the_share_of_requests() {
        let budget = budget(10_000, 0.2, 2);
        for _ in 0..10 {
            budget.count_request(Now(0));
        }
        let allowed = (0..10).filter(|_| budget.allow_hop(Now(0), Now(0))).count();
        assert_eq!(allowed, 4);
    }

    #[test]
    fn a_hop_exactly_one_window_old_is_out() {
        let budget = budget(10_000, 0.0, 1);
        assert!(budget.allow_hop(Now(5), Now(5)));
        assert!(!budget.allow_hop(Now(10_004), Now(10_004)));
        assert!(budget.allow_hop(Now(10_005), Now(10_005)));
    }

    #[test]
    fn a_refused_hop_does_not_count() {
        let budget = budget(10_000, 0.0, 1);
        assert!(budget.allow_hop(Now(0), Now(0)));
        for moment in 1..100 {
            assert!(!budget.allow_hop(Now(moment), Now(moment)));
        }
        assert!(budget.allow_hop(Now(10_000), Now(10_000)));
    }

    #[test]
    fn a_request_exactly_one_window_old_is_out_but_counts_for_itself() {
        let budget = budget(10_000, 1.0, 0);
        budget.count_request(Now(0));
        assert!(budget.allow_hop(Now(10_000), Now(0)));
        assert!(!budget.allow_hop(Now(10_000), Now(10_000)));
    }

    #[test]
    fn long_windows_keep_the_limit_in_bounded_memory() {
        let budget = budget(3_600_000, 0.0, 3);
        assert!(budget.hops.buckets.len() as u64 <= BUCKETS_MAX + 1);
        let allowed =
            (0..3_599).filter(|second| budget.allow_hop(Now(second * 1000), Now(0))).count();
        assert_eq!(allowed, 3);
        assert!(budget.allow_hop(Now(7_200_000), Now(7_200_000)));
    }

    #[test]
    fn a_window_of_nothing_allows_the_floor_at_each_moment() {
        let none = budget(0, 0.0, 0);
        assert!(!none.allow_hop(Now(0), Now(0)));
        let one = budget(0, 0.0, 1);
        for moment in [Now(0), Now(1), Now::NEVER] {
            assert!(one.allow_hop(moment, Now(0)));
            assert!(!one.allow_hop(moment, Now(0)));
        }
    }
}
