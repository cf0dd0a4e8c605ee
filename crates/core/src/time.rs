//! Time as the core sees it: a number that comes in as an argument.
//!
//! The core reads no clock (invariant I2), so a moment is a plain count of milliseconds since
//! whatever start the caller chose: process start in production, zero in the simulator.
//!
//! Rules kept here:
//! - Arithmetic saturates. A step of ten years, or a clock that stands still, breaks nothing.
//! - A deadline is reached when `now >= deadline`; [`Now::reached`] is the one place that says so.
//!   (Only a pin still holds at exactly its deadline; `pins.rs` says why.)
//!
//! Wall-clock time never enters: rendering it is the shell's work.

use serde::{Deserialize, Serialize};

/// A moment: milliseconds since the caller's start.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Now(pub u64);

/// A span of time in milliseconds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Millis(pub u64);

impl Now {
    /// The start of time.
    pub const ZERO: Self = Self(0);
    /// A moment that is never reached in practice.
    pub const NEVER: Self = Self(u64::MAX);

    /// The moment `span` later.
    #[must_use]
    pub const fn after(self, span: Millis) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    /// How long ago `earlier` was; zero if it is not in the past.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Millis {
        Millis(self.0.saturating_sub(earlier.0))
    }

    /// Whether `deadline` has been reached: at exactly the deadline it has.
    #[must_use]
    pub const fn reached(self, deadline: Self) -> bool {
        self.0 >= deadline.0
    }
}

impl Millis {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// A span of whole seconds.
    #[must_use]
    pub const fn seconds(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1000))
    }

    /// A span of whole minutes.
    #[must_use]
    pub const fn minutes(minutes: u64) -> Self {
        Self::seconds(minutes.saturating_mul(60))
    }

    /// The span times `factor`, saturating; a factor that is negative or not a number gives zero.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        // `as` saturates at both ends and maps NaN to zero, which is what is wanted here.
        Self((self.0 as f64 * factor) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        assert_eq!(Now::NEVER.after(Millis(5)), Now::NEVER);
        assert_eq!(Now(3).since(Now(10)), Millis::ZERO);
        assert_eq!(Millis(u64::MAX).scaled(2.0), Millis(u64::MAX));
        assert_eq!(Millis(10).scaled(f64::NAN), Millis::ZERO);
        assert_eq!(Millis(10).scaled(-1.0), Millis::ZERO);
    }

    #[test]
    fn a_deadline_is_reached_at_exactly_its_time() {
        assert!(!Now(9).reached(Now(10)));
        assert!(Now(10).reached(Now(10)));
    }
}
