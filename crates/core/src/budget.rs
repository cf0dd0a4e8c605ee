//! The budget of hops that are not free, so that failover never multiplies an outage (I19).
//!
//! A hop is allowed if such hops over the window, itself included, are at most
//! `ratio × requests + floor`, with the requests of the same window. Counting is exact (a hop
//! exactly one window old is out): both counts are lists of moments with how much happened at each,
//! and a running sum.
//!
//! The lists hold only what the latest window needs, so a route that nobody uses costs a few bytes,
//! and a busy one at most [`ENTRIES_MAX`] entries. The lock is the route's own and is held for a
//! few instructions.

use std::collections::VecDeque;

use crate::{
    settings::BudgetSettings,
    sync::{Mutex, lock},
    time::Now,
};

/// A window of up to about 16 s is counted to the millisecond; a longer one in wider steps, in
/// which hops leave late and requests early, so that the limit still holds.
const ENTRIES_MAX: u64 = 16_384;
/// A list that fell below a quarter of its room gives the rest back, down to this.
const ROOM_MIN: usize = 64;

#[derive(Debug)]
pub(crate) struct Budget {
    settings: BudgetSettings,
    counts: Mutex<Counts>,
}

#[derive(Debug)]
struct Counts {
    requests: Tally,
    hops: Tally,
}

impl Budget {
    pub(crate) fn new(settings: BudgetSettings) -> Self {
        let window_ms = settings.window.0.max(1);
        let requests = Tally::new(window_ms, Edge::Inside);
        let hops = Tally::new(window_ms, Edge::Touching);
        Self { settings, counts: Mutex::new(Counts { requests, hops }) }
    }

    pub(crate) fn settings(&self) -> &BudgetSettings {
        &self.settings
    }

    pub(crate) fn count_request(&self, now: Now) {
        lock(&self.counts).requests.add(now);
    }

    /// Counts a hop of a request that began at `began`, if the budget has room for it.
    pub(crate) fn allow_hop(&self, now: Now, began: Now) -> bool {
        let Counts { requests, hops } = &mut *lock(&self.counts);
        let is_allowed = self.is_within(now, began, requests, hops);
        if is_allowed {
            hops.add(now);
        }
        is_allowed
    }

    /// Whether the budget has room for a hop of a request that began at `began`. Counts nothing.
    pub(crate) fn has_room(&self, now: Now, began: Now) -> bool {
        let Counts { requests, hops } = &mut *lock(&self.counts);
        self.is_within(now, began, requests, hops)
    }

    fn is_within(&self, now: Now, began: Now, requests: &mut Tally, hops: &mut Tally) -> bool {
        // A request older than the window still counts itself.
        let is_old = u64::from(now.since(began) >= self.settings.window);
        let requests = requests.sum(now) + is_old;
        let hops = hops.sum(now) + 1;
        let above = hops.saturating_sub(u64::from(self.settings.floor));
        // A quotient, not a product: 29 of 100 is the same number as a written 0.29.
        above == 0 || above as f64 / requests as f64 <= self.settings.ratio
    }

    /// Gives back the room that the latest window does not need.
    pub(crate) fn shrink(&self, now: Now) {
        let Counts { requests, hops } = &mut *lock(&self.counts);
        for tally in [requests, hops] {
            tally.forget(now);
            if tally.entries.len() < tally.entries.capacity() / 4 {
                tally.entries.shrink_to((tally.entries.len() * 2).max(ROOM_MIN));
            }
        }
    }
}

/// Which of the steps at the far edge of the window count, where a step is wider than 1 ms.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Edge {
    /// Only those that lie inside.
    Inside,
    /// Also the one that the edge cuts.
    Touching,
}

#[derive(Debug)]
struct Tally {
    /// The steps in which something happened, in order, and how much.
    entries: VecDeque<(u64, u64)>,
    sum: u64,
    step_ms: u64,
    window_ms: u64,
    edge: Edge,
}

impl Tally {
    fn new(window_ms: u64, edge: Edge) -> Self {
        let step_ms = window_ms.div_ceil(ENTRIES_MAX).max(1);
        Self { entries: VecDeque::new(), sum: 0, step_ms, window_ms, edge }
    }

    fn add(&mut self, now: Now) {
        self.forget(now);
        let step = now.0 / self.step_ms;
        self.sum += 1;
        match self.entries.back_mut() {
            // Threads read the clock before they enter the lock, so a moment may come late.
            Some((latest, count)) if *latest >= step => *count += 1,
            _ => self.entries.push_back((step, 1)),
        }
    }

    /// What was counted less than a window ago.
    fn sum(&mut self, now: Now) -> u64 {
        self.forget(now);
        self.sum
    }

    fn forget(&mut self, now: Now) {
        let oldest = now.0.saturating_add(1).saturating_sub(self.window_ms);
        let first = match self.edge {
            Edge::Inside => oldest.div_ceil(self.step_ms),
            Edge::Touching => oldest / self.step_ms,
        };
        while let Some(&(step, count)) = self.entries.front()
            && step < first
        {
            self.entries.pop_front();
            self.sum -= count;
        }
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
        let allowed =
            (0..3_599).filter(|second| budget.allow_hop(Now(second * 1000), Now(0))).count();
        assert_eq!(allowed, 3);
        for second in 0..40_000 {
            budget.count_request(Now(second * 100));
        }
        let entries = lock(&budget.counts).requests.entries.len() as u64;
        assert!(entries <= ENTRIES_MAX + 1, "{entries}");
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

    #[test]
    fn a_quiet_route_gives_its_room_back() {
        let budget = budget(10_000, 0.0, 1);
        for moment in 0..5_000 {
            budget.count_request(Now(moment));
        }
        budget.shrink(Now(1_000_000));
        assert!(lock(&budget.counts).requests.entries.capacity() <= ROOM_MIN);
    }
}
