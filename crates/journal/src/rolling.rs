//! Counts of the last fifteen minutes, in buckets of ten seconds.

use tidegate_core::time::Now;

/// The width of a bucket.
pub const BUCKET_MS: u64 = 10_000;
/// Buckets of the window, the one under way included.
pub const BUCKETS: usize = 90;

/// `N` counts that roll with the time.
#[derive(Clone, Debug)]
pub(crate) struct Rolling<const N: usize> {
    last: u64,
    counts: Box<[[u32; N]]>,
}

impl<const N: usize> Default for Rolling<N> {
    fn default() -> Self {
        Self { last: 0, counts: vec![[0; N]; BUCKETS].into() }
    }
}

impl<const N: usize> Rolling<N> {
    /// The counts of the bucket of `now`, to add to; `None` if that is out of the window.
    pub(crate) fn at(&mut self, now: Now) -> Option<&mut [u32; N]> {
        let bucket = now.0 / BUCKET_MS;
        if bucket > self.last {
            let gone = (bucket - self.last).min(BUCKETS as u64);
            for back in 0..gone {
                self.counts[(bucket - back) as usize % BUCKETS] = [0; N];
            }
            self.last = bucket;
        }
        let is_kept = self.last - bucket < BUCKETS as u64;
        is_kept.then(|| &mut self.counts[bucket as usize % BUCKETS])
    }

    /// The counts of each bucket of the window that ends with the bucket of `now`, oldest first.
    pub(crate) fn list(&self, now: Now) -> impl Iterator<Item = [u32; N]> {
        let bucket = now.0 / BUCKET_MS;
        (0..BUCKETS as u64).rev().map(move |back| {
            let wanted = bucket.checked_sub(back);
            let kept = wanted.filter(|it| *it <= self.last && self.last - it < BUCKETS as u64);
            kept.map_or([0; N], |it| self.counts[it as usize % BUCKETS])
        })
    }

    /// The sums over the last so many buckets.
    pub(crate) fn sums(&self, now: Now, buckets: usize) -> [u64; N] {
        let mut sums = [0; N];
        for counts in self.list(now).skip(BUCKETS.saturating_sub(buckets)) {
            sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += u64::from(count));
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(counts: &mut Rolling<1>, at: u64) {
        if let Some([count]) = counts.at(Now(at)) {
            *count += 1;
        }
    }

    #[test]
    fn counts_leave_the_window_bucket_by_bucket() {
        let mut counts = Rolling::<1>::default();
        add(&mut counts, 0);
        add(&mut counts, 25_000);
        let sum = |counts: &Rolling<1>, at| counts.sums(Now(at), BUCKETS)[0];
        assert_eq!(sum(&counts, 25_000), 2);
        assert_eq!(counts.sums(Now(25_000), 1)[0], 1);
        assert_eq!(sum(&counts, 899_999), 2);
        assert_eq!(sum(&counts, 900_000), 1);
        assert_eq!(sum(&counts, 10_000_000), 0);
        add(&mut counts, 10_000_000);
        add(&mut counts, 9_999_999);
        add(&mut counts, 1);
        assert_eq!(sum(&counts, 10_000_000), 2, "one came late, one too late");
    }
}
