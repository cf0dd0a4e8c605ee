//! `thinkingConfig`: by budget up to Gemini 2.5, by level from Gemini 3 on.
//!
//! A model that cannot think refuses the field, and the models that can differ in what they take,
//! so the writer goes by the family that the model's name says. Names of no known family get a
//! budget, which every family since 2.5 accepts.
//!
//! Checked on 17 November 2026 against Google's pages on thinking and on the models; the penalties
//! against answers of the API that are quoted on GitHub (google-gemini/cookbook 1290, vercel/ai
//! 8943, BerriAI/litellm 26108). Not confirmed: the levels of models since 3.7, which get those
//! that all others take, and which models still tell logprobs (reports differ for 2.5; 3.5 is said
//! to refuse them), so that these are left to the provider.

use serde_json::{Map, Value};

use crate::convert::notes::Notes;
use crate::convert::request::{Effort, Reasoning};

/// What a family of models takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ThinkingFamily {
    /// Models before 2.5 do not think.
    Unthinking,
    /// A number of tokens in this range.
    Budget { least: u64, most: u64 },
    /// `low` or `high`.
    TwoLevels,
    /// `low`, `medium` or `high`: what every model since 3.1 takes.
    ThreeLevels,
    /// `minimal`, `low`, `medium` or `high`.
    FourLevels,
}

fn family(model: &str) -> ThinkingFamily {
    let name = model.rsplit('/').next().unwrap_or(model);
    let is = |prefix: &str| name.starts_with(prefix);
    if is("gemini-1") || is("gemini-2.0") || is("gemma") {
        ThinkingFamily::Unthinking
    } else if is("gemini-2.5-pro") {
        ThinkingFamily::Budget { least: 128, most: 32_768 }
    } else if is("gemini-3-pro") {
        ThinkingFamily::TwoLevels
    } else if is("gemini-") && !is("gemini-2") {
        let has_least = ["gemini-3-flash", "gemini-3.1-flash", "gemini-3.5-flash"];
        match has_least.into_iter().any(is) {
            true => ThinkingFamily::FourLevels,
            false => ThinkingFamily::ThreeLevels,
        }
    } else {
        ThinkingFamily::Budget { least: 0, most: 24_576 }
    }
}

/// Whether a model refuses calls in the history that have no signature.
pub(in crate::convert) fn wants_signatures(model: &str) -> bool {
    matches!(
        family(model),
        ThinkingFamily::TwoLevels | ThinkingFamily::ThreeLevels | ThinkingFamily::FourLevels
    )
}

/// Whether a model answers penalties with an error. Of Google's models only those of 2.0 and the
/// last of 1.5 take them.
pub(super) fn refuses_penalties(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let is_of_2_0 = name.starts_with("gemini-2.0") && !name.contains("thinking");
    let is_last_of_1_5 = name.starts_with("gemini-1.5") && name.contains("-002");
    name.starts_with("gemini-") && !is_of_2_0 && !is_last_of_1_5
}

/// The fields that are read.
pub(super) const KNOWN: [&str; 3] = ["thinkingLevel", "thinkingBudget", "includeThoughts"];

/// Reads the object.
pub(super) fn read(config: &Map<String, Value>) -> Reasoning {
    let effort = config.get("thinkingLevel").and_then(Value::as_str).and_then(Effort::of_word);
    // A budget of -1 leaves it to the model.
    let budget_tokens = config.get("thinkingBudget").and_then(Value::as_u64);
    let is_shown = config.get("includeThoughts").and_then(Value::as_bool).unwrap_or_default();
    let effort = if budget_tokens == Some(0) { Some(Effort::Off) } else { effort };
    Reasoning { effort, budget_tokens, is_shown }
}

/// Writes the object; none if the model does not think or nothing has to be said.
pub(super) fn written(model: &str, reasoning: &Reasoning, notes: &mut Notes) -> Option<Value> {
    let mut config = Map::new();
    let asked = reasoning.budget_tokens.or(reasoning.effort.map(Effort::budget_tokens));
    match family(model) {
        ThinkingFamily::Unthinking => {
            notes.dropped("reasoning", "this model does not think");
            return None;
        }
        ThinkingFamily::Budget { least, most } => {
            if let Some(tokens) = asked {
                let budget = tokens.clamp(least, most);
                if budget != tokens {
                    notes.clamped("reasoning", "outside of what this model takes");
                }
                config.insert("thinkingBudget".into(), budget.into());
            }
        }
        family @ (ThinkingFamily::TwoLevels
        | ThinkingFamily::ThreeLevels
        | ThinkingFamily::FourLevels) => {
            let effort = reasoning.effort.or(reasoning.budget_tokens.map(Effort::of_budget));
            if let Some(effort) = effort {
                if reasoning.effort.is_none() {
                    notes.rewritten("reasoning", "this model takes a level, not a budget");
                } else if effort == Effort::Off {
                    notes.clamped("reasoning", "this model always thinks");
                }
                config.insert("thinkingLevel".into(), level(family, effort).into());
            }
        }
    }
    if reasoning.is_shown {
        config.insert("includeThoughts".into(), true.into());
    }
    (!config.is_empty()).then_some(Value::Object(config))
}

fn level(family: ThinkingFamily, effort: Effort) -> &'static str {
    match (effort, family) {
        (Effort::Off | Effort::Minimal | Effort::Low, ThinkingFamily::TwoLevels) => "low",
        (_, ThinkingFamily::TwoLevels) | (Effort::High | Effort::Highest, _) => "high",
        (Effort::Off | Effort::Minimal, ThinkingFamily::FourLevels) => "minimal",
        (Effort::Off | Effort::Minimal | Effort::Low, _) => "low",
        (Effort::Medium, _) => "medium",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(model: &str, effort: Effort, expected: Value) {
        let reasoning = Reasoning { effort: Some(effort), ..Reasoning::default() };
        let found = written(model, &reasoning, &mut Notes::default()).unwrap_or_default();
        assert_eq!(found, expected, "{model} {effort:?}");
    }

    #[test]
    fn each_family_gets_what_it_takes() {
        check("gemini-2.0-flash", Effort::High, Value::Null);
        check("gemini-2.5-flash", Effort::Off, json!({"thinkingBudget": 0}));
        check("gemini-2.5-pro", Effort::Off, json!({"thinkingBudget": 128}));
        check("gemini-2.5-flash", Effort::Highest, json!({"thinkingBudget": 24_576}));
        check("gemini-3-pro-preview", Effort::Medium, json!({"thinkingLevel": "high"}));
        check("gemini-3-flash", Effort::Medium, json!({"thinkingLevel": "medium"}));
        check("gemini-3.5-flash-lite", Effort::Minimal, json!({"thinkingLevel": "minimal"}));
        check("gemini-3.1-pro-preview", Effort::Minimal, json!({"thinkingLevel": "low"}));
        check("gemini-3.1-pro-preview", Effort::Medium, json!({"thinkingLevel": "medium"}));
        check("gemini-4-flash", Effort::Minimal, json!({"thinkingLevel": "low"}));
        assert!(refuses_penalties("gemini-3.5-flash") && refuses_penalties("gemini-3-flash"));
        assert!(refuses_penalties("gemini-2.5-pro") && refuses_penalties("gemini-4-pro"));
        assert!(!refuses_penalties("gemini-2.0-flash") && !refuses_penalties("house-model"));
        check("house-model", Effort::Low, json!({"thinkingBudget": 1024}));
    }

    #[test]
    fn what_is_written_is_read_again() {
        let reasoning = Reasoning { effort: None, budget_tokens: Some(2000), is_shown: true };
        let value = written("gemini-2.5-flash", &reasoning, &mut Notes::default());
        let Some(Value::Object(map)) = value else { panic!("an object") };
        assert_eq!(read(&map), reasoning);
    }
}
