//! The simulator's random draws: a SplitMix64 stream from a seed.
//!
//! Everything random in a run comes from here, one draw after the other, so a seed names a run.
//!
//! Rules kept here:
//! - Stable for ever: a seed in an old bug report must still tell the same story. A test holds the
//!   first draws.
//! - In form 1 every `plan.next` takes exactly one draw, whether it uses it or not.

use tidegate_core::draw::mix;

/// The step of SplitMix64's counter.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// A stream of draws.
#[derive(Clone, Debug)]
pub struct Rng {
    counter: u64,
}

impl Rng {
    /// The stream of this seed. The seed is mixed, so that neighbours share nothing.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { counter: mix(seed) }
    }

    /// The next draw.
    pub fn draw(&mut self) -> u64 {
        let draw = mix(self.counter);
        self.counter = self.counter.wrapping_add(STEP);
        draw
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_draws_of_a_seed_never_change() {
        let mut rng = Rng::new(0);
        let draws = [rng.draw(), rng.draw(), rng.draw()];
        let expected =
            [12_035_550_249_420_947_055, 12_935_080_325_729_570_654, 7_141_179_953_334_974_231];
        assert_eq!(draws, expected);
    }

    #[test]
    fn neighbouring_seeds_share_no_draw() {
        let draws = |seed| {
            let mut rng = Rng::new(seed);
            (0..100).map(|_| rng.draw()).collect::<std::collections::BTreeSet<u64>>()
        };
        assert_eq!(draws(7).intersection(&draws(8)).count(), 0);
        assert_eq!(draws(7), draws(7));
    }
}
