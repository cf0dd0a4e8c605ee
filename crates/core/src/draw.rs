//! Numbers from a draw.
//!
//! The core makes no random numbers (invariant I2): the caller hands in one 64-bit draw per
//! choice, and whatever that choice needs is derived from it here, so a recorded draw replays the
//! choice exactly. Jitter comes from the core's seed in the same way.

/// The next number of the sequence that starts at `draw` (SplitMix64's step).
#[must_use]
pub fn mix(draw: u64) -> u64 {
    let mut z = draw.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A number below `bound`, every one with the same chance up to one part in 2^64 / bound.
/// A bound of zero gives zero.
#[must_use]
pub fn below(draw: u64, bound: u64) -> u64 {
    ((u128::from(draw) * u128::from(bound)) >> 64) as u64
}

/// A fraction in `0.0..1.0`.
#[must_use]
pub fn fraction(draw: u64) -> f64 {
    // 53 bits: what an f64 between 0 and 1 can hold without rounding up to 1.
    (draw >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn below_covers_the_range_and_never_leaves_it() {
        let mut seen = [false; 5];
        let mut draw = 1;
        for _ in 0..200 {
            draw = mix(draw);
            seen[below(draw, 5) as usize] = true;
        }
        assert_eq!(seen, [true; 5]);
        assert_eq!(below(u64::MAX, 5), 4);
        assert_eq!(below(7, 0), 0);
    }

    #[test]
    fn a_fraction_is_below_one() {
        assert!(fraction(u64::MAX) < 1.0);
        assert_eq!(fraction(0), 0.0);
    }

    /// The first outputs of SplitMix64 for the seed 0, as published with it.
    #[test]
    fn the_sequence_is_that_of_splitmix64() {
        assert_eq!(mix(0), 0xE220_A839_7B1D_CDAF);
        assert_eq!(mix(0x9E37_79B9_7F4A_7C15), 0x6E78_9E6A_A1B9_65F4);
    }
}
