//! The tactic words of a sequence: how services are laid out, and how one of a tier is picked.
//!
//! Words are trimmed and compared without case. An unknown layout is an error; an unknown way of
//! picking is `random`, because files of other programs name ways that never mattered to them.

use tidegate_core::settings::Tactic;

/// How services are laid out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TierLayout {
    /// In tiers by their number.
    #[default]
    Tier,
    /// One tier of all.
    Flat,
}

impl TierLayout {
    /// The words, for suggestions.
    pub(super) const WORDS: [&'static str; 2] = ["tier", "random"];

    pub(super) fn parse(word: &str) -> Option<Self> {
        [Self::Tier, Self::Flat].into_iter().find(|layout| is(word, layout.word()))
    }

    /// The word that files and reports use.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Tier => Self::WORDS[0],
            Self::Flat => Self::WORDS[1],
        }
    }
}

/// The ways of picking inside a tier.
pub(super) const WITHIN: [(&str, Tactic); 5] = [
    ("random", Tactic::Random),
    ("round_robin", Tactic::RoundRobin),
    ("weighted", Tactic::Weighted),
    ("least_latency", Tactic::LeastLatency),
    ("least_busy", Tactic::LeastBusy),
];

pub(super) fn parse_within(word: &str) -> Option<Tactic> {
    WITHIN.into_iter().find(|(known, _)| is(word, known)).map(|(_, tactic)| tactic)
}

fn is(written: &str, word: &str) -> bool {
    written.trim().eq_ignore_ascii_case(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_trimmed_and_compared_without_case() {
        assert_eq!(TierLayout::parse(" Tier\n"), Some(TierLayout::Tier));
        assert_eq!(TierLayout::parse("RANDOM"), Some(TierLayout::Flat));
        assert_eq!(TierLayout::parse("weighted"), None);
        assert_eq!(parse_within("Round_Robin "), Some(Tactic::RoundRobin));
        for retired in ["token_based", "latency_based", "adaptive", ""] {
            assert_eq!(parse_within(retired), None, "{retired}");
        }
    }
}
