//! How much stands against a candidate, as a number: a choice uses the lowest one present.

use serde::{Deserialize, Serialize};

/// What stands against a target: a window (1), a breaker (2), an exclusion (4), added up.
/// The lowest rank present is used; 0 is nothing.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Rank(pub u8);

impl Rank {
    /// Inside a window.
    pub const WINDOW: u8 = 1;
    /// A breaker makes it unavailable.
    pub const UNAVAILABLE: u8 = 2;
    /// Excluded.
    pub const EXCLUDED: u8 = 4;

    /// Whether nothing stands against it.
    #[must_use]
    pub const fn is_clear(self) -> bool {
        self.0 == 0
    }

    /// Whether an attempt at this rank would be a last resort.
    #[must_use]
    pub const fn is_last_resort(self) -> bool {
        self.0 & Self::UNAVAILABLE != 0
    }

    pub(crate) const fn unavailable(self) -> Self {
        Self(self.0 | Self::UNAVAILABLE)
    }
}
