//! Spans of the last fifteen minutes, counted in classes: what percentiles are read from.
//!
//! A class is an eighth to a quarter of its values wide, so a percentile is off by at most that. A
//! minute that is over goes as a whole; a series without samples takes no memory.

use tidegate_core::time::{Millis, Now};

/// Values below this have a class each.
const EXACT: u64 = 8;
/// Classes: 8 exact ones and 4 for each doubling up to 17 minutes.
const CLASSES: usize = 80;
/// Minutes that are kept, the one under way included.
const MINUTES: usize = 15;
const MINUTE_MS: u64 = 60_000;

/// Spans of the last minutes.
#[derive(Clone, Debug, Default)]
pub(crate) struct SpanHistogram(Option<Box<Kept>>);

#[derive(Clone, Debug)]
struct Kept {
    /// The last minute that was written to.
    last: u64,
    counts: [[u32; CLASSES]; MINUTES],
}

impl SpanHistogram {
    /// A span that ended at `now`.
    pub(crate) fn add(&mut self, now: Now, span: Millis) {
        let minute = now.0 / MINUTE_MS;
        let fresh = || Box::new(Kept { last: minute, counts: [[0; CLASSES]; MINUTES] });
        let kept = self.0.get_or_insert_with(fresh);
        kept.advance(minute);
        if kept.last - minute >= MINUTES as u64 {
            return;
        }
        let count = &mut kept.counts[minute as usize % MINUTES][class(span.0)];
        *count = count.saturating_add(1);
    }

    /// The spans below which these shares of all lie; `None` without samples.
    pub(crate) fn quantiles<const N: usize>(&self, now: Now, shares: [f64; N]) -> [Option<u64>; N] {
        let Some(kept) = &self.0 else { return [None; N] };
        let minute = now.0 / MINUTE_MS;
        let mut sums = [0_u64; CLASSES];
        for back in 0..MINUTES as u64 {
            let Some(wanted) = minute.checked_sub(back) else { break };
            if wanted > kept.last || kept.last - wanted >= MINUTES as u64 {
                continue;
            }
            let counts = &kept.counts[wanted as usize % MINUTES];
            sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += u64::from(*count));
        }
        let total: u64 = sums.iter().sum();
        shares.map(|share| {
            let wanted = ((total as f64 * share).ceil() as u64).max(1);
            let mut seen = 0;
            let found = sums.iter().position(|count| {
                seen += count;
                seen >= wanted
            });
            found.filter(|_| total > 0).map(middle)
        })
    }
}

impl Kept {
    fn advance(&mut self, minute: u64) {
        if minute <= self.last {
            return;
        }
        let gone = (minute - self.last).min(MINUTES as u64);
        for back in 0..gone {
            self.counts[(minute - back) as usize % MINUTES] = [0; CLASSES];
        }
        self.last = minute;
    }
}

fn class(ms: u64) -> usize {
    if ms < EXACT {
        return ms as usize;
    }
    let doubling = ms.ilog2();
    let quarter = (ms >> (doubling - 2)) & 3;
    (EXACT as usize + (doubling as usize - 3) * 4 + quarter as usize).min(CLASSES - 1)
}

/// The value in the middle of a class.
fn middle(class: usize) -> u64 {
    let Some(above) = class.checked_sub(EXACT as usize) else { return class as u64 };
    let (doubling, quarter) = (above / 4 + 3, (above % 4) as u64);
    let width = 1_u64 << (doubling - 2);
    (1 << doubling) + quarter * width + width / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_an_eighth_of_the_truth() {
        let mut spans = SpanHistogram::default();
        assert_eq!(spans.quantiles(Now(0), [0.5]), [None]);
        (1..=1000).for_each(|ms| spans.add(Now(5), Millis(ms)));
        let [p50, p95] = spans.quantiles(Now(5), [0.5, 0.95]).map(|it| it.expect("samples"));
        assert!((440..=560).contains(&p50), "{p50}");
        assert!((850..=1060).contains(&p95), "{p95}");
    }

    #[test]
    fn a_minute_is_forgotten_after_fifteen() {
        let mut spans = SpanHistogram::default();
        spans.add(Now(0), Millis(10));
        assert!(spans.quantiles(Now(14 * MINUTE_MS), [0.5])[0].is_some());
        assert_eq!(spans.quantiles(Now(15 * MINUTE_MS), [0.5]), [None]);
        spans.add(Now(40 * MINUTE_MS), Millis(700));
        let [p50] = spans.quantiles(Now(40 * MINUTE_MS), [0.5]);
        assert!(p50.is_some_and(|it| (600..800).contains(&it)), "{p50:?}");
        // A report that comes late counts for its own minute, and a very late one for nothing.
        spans.add(Now(39 * MINUTE_MS), Millis(700));
        spans.add(Now(0), Millis(1));
        assert_eq!(spans.quantiles(Now(40 * MINUTE_MS), [0.01]), [p50]);
    }

    #[test]
    fn any_span_has_a_class_that_holds_it() {
        for ms in [0, 7, 8, 9, 63, 64, 1 << 19, 1 << 20, u64::MAX] {
            assert!(class(ms) < CLASSES, "{ms}");
        }
        assert_eq!(middle(class(5)), 5);
        assert_eq!((class(8), middle(class(8))), (8, 9));
    }
}
