//! Revisions of the protocol.
//!
//! The session era has four, which differ little on the wire; the stateless era (2026-07-28) has
//! a module of its own ([`crate::stateless`]).

/// A revision of the session era. Later ones are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// The first; child processes still speak it.
    V2024_11_05,
    /// Streamable HTTP; the only one with batches.
    V2025_03_26,
    /// The version header, structured results, elicitation.
    V2025_06_18,
    /// Icons, tasks, priming events.
    V2025_11_25,
}

/// What an HTTP request speaks that has no version header.
pub const DEFAULT_VERSION: Version = Version::V2025_03_26;

impl Version {
    /// All of them, oldest first.
    pub const KNOWN: [Self; 4] =
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25];
    /// The newest of the session era.
    pub const LATEST: Self = Self::V2025_11_25;

    /// As it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
        }
    }

    /// The revision that is written so.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::KNOWN.into_iter().find(|version| version.as_str() == text)
    }

    /// What is spoken with a client that asks for `requested`: that, if it is known, and else the
    /// latest, which the client may refuse.
    #[must_use]
    pub fn negotiate(requested: &str) -> Self {
        Self::parse(requested).unwrap_or(Self::LATEST)
    }

    /// Whether this is `other` or later.
    #[must_use]
    pub fn at_least(self, other: Self) -> bool {
        self >= other
    }

    /// Whether a body may hold several messages.
    #[must_use]
    pub const fn has_batches(self) -> bool {
        matches!(self, Self::V2025_03_26)
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
