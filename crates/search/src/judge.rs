//! Whether the best tool found is good enough to be offered.
//!
//! Among more tools a request that none can fulfil finds a better one by chance, so the sum that is
//! needed grows with their number. More is needed where a request names a product that nothing here
//! has to do with. Nothing else does better: the share of words that no tool has, the distance to
//! the next tools and to all others, and the single parts were tried over subsets of labelled
//! catalogues, and none told requests without an answer apart better than the sum does
//! (docs/tool-search.md).

/// The score from which the best hit counts as a good match.
pub const GOOD: f32 = 0.5;
/// The score below which the best hit is not worth showing.
pub const FAINT: f32 = 0.2;

/// The sum needed grows by this much as the number of tools grows by a factor of e. Chosen over
/// labelled sets of 63 to 2 792 tools, with requests that none of them fulfils, so that few of the
/// others are declined (docs/tool-search.md).
const GROWTH: f32 = 1.5;
/// Number of tools and sum at which that line begins.
const FROM: (f32, f32) = (30.0, 2.5);
/// How much more it takes where a sentence model has read the request, and how much faster that
/// grows: its weights give larger sums, by this much at the sums that one request in fifty stays
/// below, among 199 and among 2 792 tools.
const READ: f32 = 1.0;
const READ_GROWTH: f32 = 0.1;
/// How much more it takes where the request names products that no tool and no server has to do
/// with: of such requests among 20 to 500 tools nearly all that have no answer stay below it, and
/// none of those that have one.
pub(crate) const MISSING: f32 = 6.0;
/// How far above the threshold a sum is to count as three in four.
const SPREAD: f32 = 3.0;

/// The sum that a good match needs among so many tools, by the weights of a sentence model or by
/// those without one.
pub(crate) fn threshold(docs: usize, is_read: bool) -> f32 {
    #[expect(clippy::cast_precision_loss, reason = "a count of tools")]
    let docs = (docs as f32).max(FROM.0);
    let (read, growth) = if is_read { (READ, GROWTH + READ_GROWTH) } else { (0.0, GROWTH) };
    FROM.1 + read + growth * (docs / FROM.0).ln()
}

/// A sum on a scale from 0 to 1, with the threshold in the middle.
pub(crate) fn score(sum: f32, threshold: f32) -> f32 {
    1.0 / (1.0 + ((threshold - sum) / SPREAD).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_tools_need_more_evidence() {
        assert!(threshold(10_000, false) > threshold(100, false));
        assert!((threshold(0, true) - threshold(30, true)).abs() < f32::EPSILON);
        assert!(threshold(100, true) > threshold(100, false));
        let growth = |is_read| threshold(2792, is_read) - threshold(100, is_read);
        assert!(growth(true) > growth(false));
    }

    #[test]
    fn a_score_is_between_0_and_1_and_half_at_the_threshold() {
        assert!((score(5.0, 5.0) - GOOD).abs() < f32::EPSILON);
        for sum in [f32::MIN, -100.0, 0.0, 100.0, f32::MAX] {
            assert!((0.0..=1.0).contains(&score(sum, 5.0)), "{sum}");
        }
    }
}
