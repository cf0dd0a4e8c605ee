//! The words that scenario files, traces and expectations share.
//!
//! They are the core's own words, as types that the file decoder and the schema of the JSON output
//! know.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tidegate_core::{breaker::State, outcome::OutcomeKind};

/// The state of a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BreakerWord {
    /// Attempts pass.
    Closed,
    /// Nothing passes.
    Open,
    /// A few trials pass.
    HalfOpen,
}

impl From<State> for BreakerWord {
    fn from(state: State) -> Self {
        match state {
            State::Closed => Self::Closed,
            State::Open => Self::Open,
            State::HalfOpen => Self::HalfOpen,
        }
    }
}

impl BreakerWord {
    /// The word as files and traces write it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Closed => State::Closed.word(),
            Self::Open => State::Open.word(),
            Self::HalfOpen => State::HalfOpen.word(),
        }
    }
}

/// Whether anything stands against a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HealthWord {
    /// No breaker is open, no window is active, no exclusion stands.
    Healthy,
    /// One of them is or does.
    Unhealthy,
}

impl HealthWord {
    /// The word as files and traces write it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Unhealthy => "unhealthy",
        }
    }
}

/// How an attempt ended, in the core's word for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct OutcomeWord(pub OutcomeKind);

impl JsonSchema for OutcomeWord {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "OutcomeWord".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let words: Vec<&str> = OutcomeKind::ALL.iter().map(|kind| kind.word()).collect();
        schemars::json_schema!({
            "type": "string",
            "description": "How an attempt ended, in the core's word for it.",
            "enum": words,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_what_serde_writes() {
        for state in [State::Closed, State::HalfOpen, State::Open] {
            let word = BreakerWord::from(state);
            assert_eq!(serde_json::to_value(word).expect("a word"), state.word());
            assert_eq!(word.word(), state.word());
        }
        for health in [HealthWord::Healthy, HealthWord::Unhealthy] {
            assert_eq!(serde_json::to_value(health).expect("a word"), health.word());
        }
        for kind in OutcomeKind::ALL {
            assert_eq!(serde_json::to_value(OutcomeWord(kind)).expect("a word"), kind.word());
        }
    }
}
