//! The limit of last resorts: a token bucket for each target of a route.
//!
//! An attempt that goes past a breaker or an exclusion shows the client the upstream's real error.
//! Clients that retry whatever they are told would keep a dead provider busy with such attempts, so
//! each target of a route has a burst of them and then a steady trickle (I26).
//!
//! The bucket is kept as the moment at which it will be full again, in microseconds: tokens come
//! back evenly, and a token is there at exactly its moment. Only attempts of this kind enter the
//! lock.

use crate::{
    settings::LastResortSettings,
    sync::{Mutex, lock},
    time::Now,
};

#[derive(Debug)]
pub(crate) struct TokenBucket {
    settings: LastResortSettings,
    /// When it is full again; without a refill, the tokens taken so far.
    state: Mutex<u64>,
}

const MICROS_PER_MS: u64 = 1000;

impl TokenBucket {
    pub(crate) fn new(settings: LastResortSettings) -> Self {
        Self { settings, state: Mutex::new(0) }
    }

    pub(crate) fn settings(&self) -> &LastResortSettings {
        &self.settings
    }

    /// Takes a token; whether there was one.
    pub(crate) fn take(&self, now: Now) -> bool {
        let mut state = lock(&self.state);
        let Some(interval) = self.interval_us() else {
            let is_left = *state < u64::from(self.settings.burst);
            *state += u64::from(is_left);
            return is_left;
        };
        let now_us = micros(now);
        let full_at = (*state).max(now_us);
        let is_left = full_at - now_us <= self.slack_us(interval);
        if is_left {
            *state = full_at.saturating_add(interval);
        }
        is_left
    }

    /// When there is a token: `now` if there is one already, `None` if there will never be one.
    pub(crate) fn free_from(&self, now: Now) -> Option<Now> {
        let state = *lock(&self.state);
        let Some(interval) = self.interval_us() else {
            return (state < u64::from(self.settings.burst)).then_some(now);
        };
        let from_us = state.saturating_sub(self.slack_us(interval));
        Some(Now(from_us.div_ceil(MICROS_PER_MS)).max(now))
    }

    /// The time from one token to the next; `None` if they do not come back.
    fn interval_us(&self) -> Option<u64> {
        let rate = self.settings.per_second;
        (rate > 0.0).then(|| (1_000_000.0 / rate).ceil() as u64)
    }

    /// How far from full the bucket may be with a token left. A bucket that is refilled holds at
    /// least one.
    fn slack_us(&self, interval: u64) -> u64 {
        u64::from(self.settings.burst.max(1) - 1).saturating_mul(interval)
    }
}

fn micros(now: Now) -> u64 {
    now.0.saturating_mul(MICROS_PER_MS)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn bucket(burst: u32, per_second: f64) -> TokenBucket {
        TokenBucket::new(LastResortSettings { burst, per_second })
    }

    fn taken(bucket: &TokenBucket, now: u64) -> usize {
        (0..1000).take_while(|_| bucket.take(Now(now))).count()
    }

    #[test]
    fn a_burst_and_then_one_at_each_interval() {
        let bucket = bucket(100, 1.0);
        assert_eq!(taken(&bucket, 5_000), 100);
        assert_eq!(bucket.free_from(Now(5_000)), Some(Now(6_000)));
        assert_eq!(taken(&bucket, 5_999), 0);
        assert_eq!(taken(&bucket, 6_000), 1);
        assert_eq!(taken(&bucket, 16_500), 10);
        assert_eq!(taken(&bucket, 1_000_000), 100, "it holds no more than the burst");
    }

    #[test]
    fn two_zeros_leave_nothing_and_one_zero_has_a_meaning() {
        assert_eq!(taken(&bucket(0, 0.0), 0), 0);
        assert_eq!(bucket(0, 0.0).free_from(Now(0)), None);
        let no_refill = bucket(3, 0.0);
        assert_eq!((taken(&no_refill, 0), taken(&no_refill, u64::MAX)), (3, 0));
        let no_burst = bucket(0, 2.0);
        assert_eq!((taken(&no_burst, 0), taken(&no_burst, 499), taken(&no_burst, 500)), (1, 0, 1));
    }
}
