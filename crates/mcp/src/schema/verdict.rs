//! What is known about a value and a rule.

/// The three answers. Arguments are refused for `Breaks` alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Surely as the rule wants it.
    Fits,
    /// Surely against the rule.
    Breaks,
    /// One or the other: the rule is not understood, or a bound was met.
    Unknown,
}

impl Verdict {
    /// Both rules together.
    pub(super) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Breaks, _) | (_, Self::Breaks) => Self::Breaks,
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (Self::Fits, Self::Fits) => Self::Fits,
        }
    }

    /// What a rule says whose condition is met or not; `None` if that is not known.
    pub(super) fn of(met: Option<bool>) -> Self {
        match met {
            Some(true) => Self::Fits,
            Some(false) => Self::Breaks,
            None => Self::Unknown,
        }
    }
}
