//! The settings of a Messages request: limits, chances, thinking, tool choice.
//!
//! Rules:
//! - `max_tokens` is required; without one the family's usual limit is written, with a note.
//! - Thinking needs a budget of at least 1024 tokens below `max_tokens`, no forced tool, and in the
//!   middle of a tool loop the thinking that led to the call. Where one of these is missing the
//!   request is sent without thinking, with a note, because it would be refused with it.
//! - With thinking the API takes no temperature, and newer models take only one of temperature and
//!   `top_p`. Models since Opus 4.7 take neither, nor `top_k`.
//! - Models since Opus 5 think unless they are told otherwise, and some cannot be told: whoever
//!   wants no thinking gets the least.
//!
//! The table is from Anthropic's migration guides for Opus 4.7, Opus 5.5 and Sonnet 5.5 and from
//! Amazon's page on adaptive thinking, read in November 2026.

use serde_json::{Map, Value, json};

use crate::convert::notes::Notes;
use crate::convert::part::{Content, Seal, Vendor};
use crate::convert::request::{Effort, GenerationRequest, Role, ToolChoice};
use crate::convert::target::TargetProfile;

/// The least budget of thinking that the API takes.
const MIN_BUDGET: u64 = 1024;

/// How a family of models thinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Thinks {
    Never,
    ByBudget,
    ByEffort,
    /// By effort, and also when nobody asked.
    Always,
}

/// What is known of a family of models.
#[derive(Clone, Copy, Debug)]
struct Family {
    /// A piece of its name.
    name: &'static str,
    /// What it may write at most, or 32 000 where it may write more: an answer that long is no
    /// accident any more.
    limit: u64,
    thinks: Thinks,
    /// Whether it takes `temperature`, `top_p` and `top_k`.
    takes_sampling: bool,
}

const fn family(name: &'static str, limit: u64, thinks: Thinks) -> Family {
    Family { name, limit, thinks, takes_sampling: true }
}

const fn without_sampling(name: &'static str, thinks: Thinks) -> Family {
    Family { name, limit: 32_000, thinks, takes_sampling: false }
}

/// The families; the first that fits counts. A name of Anthropic's that no older family has is a
/// newer model, and like the newest.
const FAMILIES: [Family; 13] = [
    family("claude-2", 4096, Thinks::Never),
    family("claude-instant", 4096, Thinks::Never),
    family("claude-3-5", 8192, Thinks::Never),
    family("claude-3-7", 32_000, Thinks::ByBudget),
    family("claude-3", 4096, Thinks::Never),
    family("claude-opus-4-6", 32_000, Thinks::ByEffort),
    family("claude-sonnet-4-6", 32_000, Thinks::ByEffort),
    without_sampling("claude-opus-4-7", Thinks::ByEffort),
    without_sampling("claude-opus-4-8", Thinks::ByEffort),
    family("claude-opus-4", 32_000, Thinks::ByBudget),
    family("claude-sonnet-4", 32_000, Thinks::ByBudget),
    family("claude-haiku-4", 32_000, Thinks::ByBudget),
    without_sampling("claude-", Thinks::Always),
];

/// Of a model that is none of Anthropic's.
const UNKNOWN: Family = family("", 8192, Thinks::Never);

/// Writes the settings.
pub(super) fn write(
    request: &GenerationRequest,
    target: &TargetProfile<'_>,
    body: &mut Map<String, Value>,
    notes: &mut Notes,
) {
    let family = FAMILIES.iter().find(|it| target.model.contains(it.name)).unwrap_or(&UNKNOWN);
    let sampling = &request.sampling;
    if sampling.max_tokens.is_none() {
        notes.rewritten("max_tokens", "Messages requires it, so the model's usual limit is sent");
    }
    if sampling.max_tokens == Some(0) {
        notes.clamped("max_tokens", "Messages takes no less than 1");
    }
    let mut max_tokens = sampling.max_tokens.unwrap_or(family.limit).max(1);
    let is_thinking = write_thinking(request, family.thinks, &mut max_tokens, body, notes);
    body.insert("max_tokens".into(), max_tokens.into());
    write_sampling(request, family, is_thinking, body, notes);
    let stops = sampling.stop.iter().filter(|stop| !stop.trim().is_empty());
    let stops: Vec<_> = stops.collect();
    if stops.len() < sampling.stop.len() {
        notes.dropped("stop", "Messages takes no stop sequence of white space");
    }
    if !stops.is_empty() {
        body.insert("stop_sequences".into(), json!(stops));
    }
    let is_set = [
        ("frequency_penalty", sampling.frequency_penalty.is_some_and(|figure| figure != 0.0)),
        ("presence_penalty", sampling.presence_penalty.is_some_and(|figure| figure != 0.0)),
        ("seed", sampling.seed.is_some()),
        ("logprobs", sampling.logprobs.is_some()),
        ("prompt_cache_key", request.prompt_cache_key.is_some()),
    ];
    for (key, _) in is_set.into_iter().filter(|(_, is_set)| *is_set) {
        notes.dropped(key, "Messages has no such field");
    }
}

fn write_sampling(
    request: &GenerationRequest,
    family: &Family,
    is_thinking: bool,
    body: &mut Map<String, Value>,
    notes: &mut Notes,
) {
    let sampling = &request.sampling;
    let figures = [
        ("temperature", sampling.temperature.map(Value::from)),
        ("top_p", sampling.top_p.map(Value::from)),
        ("top_k", sampling.top_k.map(Value::from)),
    ];
    for (key, figure) in figures {
        let Some(figure) = figure else { continue };
        if !family.takes_sampling {
            notes.dropped(key, "this model takes no such setting");
        } else if is_thinking {
            notes.dropped(key, "Messages takes it only without thinking");
        } else if key == "top_p" && sampling.temperature.is_some() {
            notes.dropped(key, "models behind Messages take only one of temperature and top_p");
        } else if key == "temperature" && sampling.temperature.is_some_and(|heat| heat > 1.0) {
            notes.clamped(key, "Messages takes at most 1");
            body.insert(key.into(), 1.0.into());
        } else {
            body.insert(key.into(), figure);
        }
    }
}

/// Writes how much to think, and says whether it does.
fn write_thinking(
    request: &GenerationRequest,
    thinks: Thinks,
    max_tokens: &mut u64,
    body: &mut Map<String, Value>,
    notes: &mut Notes,
) -> bool {
    let Some(reasoning) = request.reasoning else { return false };
    let effort = reasoning.effort.or(reasoning.budget_tokens.map(Effort::of_budget));
    let Some(effort) = effort else { return false };
    if effort == Effort::Off {
        if thinks == Thinks::Always {
            notes.clamped("reasoning", "this model always thinks");
            write_effort("low", body);
        }
        return false;
    }
    let is_forced =
        matches!(request.tool_choice, Some(ToolChoice::Required | ToolChoice::Named(_)));
    let budget = reasoning.budget_tokens.unwrap_or_else(|| effort.budget_tokens());
    // A limit that the client did not set grows with the budget.
    if request.sampling.max_tokens.is_none() {
        *max_tokens = (*max_tokens).max(budget.saturating_add(4096));
    }
    let most = max_tokens.saturating_sub(1);
    let obstacle = match thinks {
        Thinks::Never => Some("this model does not think"),
        _ if is_forced => Some("Messages does not think when a tool is forced"),
        Thinks::ByBudget if most < MIN_BUDGET => Some("max_tokens leaves no room for thinking"),
        Thinks::ByBudget if lacks_thinking(request) => {
            Some("the thinking that led to the tool call came from another provider")
        }
        Thinks::ByBudget | Thinks::ByEffort | Thinks::Always => None,
    };
    if let Some(why) = obstacle {
        notes.dropped("reasoning", why);
        return false;
    }
    if matches!(thinks, Thinks::ByEffort | Thinks::Always) {
        body.insert("thinking".into(), json!({ "type": "adaptive" }));
        let word = match effort {
            Effort::Off | Effort::Minimal | Effort::Low => "low",
            Effort::Medium => "medium",
            Effort::High => "high",
            Effort::Highest => "max",
        };
        write_effort(word, body);
        return true;
    }
    if budget > most {
        notes.clamped("reasoning", "a budget of thinking is below max_tokens");
    }
    let budget = budget.clamp(MIN_BUDGET, most);
    body.insert("thinking".into(), json!({ "type": "enabled", "budget_tokens": budget }));
    true
}

fn write_effort(word: &'static str, body: &mut Map<String, Value>) {
    body.entry("output_config").or_insert_with(|| json!({}))["effort"] = word.into();
}

/// Whether the conversation is in a tool loop whose call has no thinking of Anthropic's before it.
fn lacks_thinking(request: &GenerationRequest) -> bool {
    let is_loop = request.messages.last().is_some_and(|last| {
        last.role == Role::User
            && last.parts.iter().any(|part| matches!(part.content, Content::ToolResult(_)))
    });
    let calling = request.messages.iter().rev().find(|message| message.role == Role::Assistant);
    let is_own = |content: &Content| {
        matches!(
            content,
            Content::Thinking { seal: Some(Seal { vendor: Vendor::Anthropic, .. }), .. }
        )
    };
    is_loop && !calling.is_some_and(|turn| turn.parts.iter().any(|part| is_own(&part.content)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convert::request::{Reasoning, Sampling};

    fn written(model: &str, effort: Effort) -> (Value, Vec<String>) {
        let request = GenerationRequest {
            sampling: Sampling { temperature: Some(0.5), ..Sampling::default() },
            reasoning: Some(Reasoning { effort: Some(effort), ..Reasoning::default() }),
            ..GenerationRequest::default()
        };
        let (mut body, mut notes) = (Map::new(), Notes::default());
        write(&request, &TargetProfile { model, host: "" }, &mut body, &mut notes);
        let fields = notes.as_slice().iter().map(|note| note.field.clone()).collect();
        (Value::Object(body), fields)
    }

    #[test]
    fn each_family_thinks_as_it_can() {
        let adaptive = json!({ "type": "adaptive" });
        let budget = json!({ "type": "enabled", "budget_tokens": 24_576 });
        let rows = [
            ("claude-3-5-haiku-latest", Value::Null),
            ("claude-3-7-sonnet-latest", budget.clone()),
            ("claude-sonnet-4-5", budget.clone()),
            ("claude-opus-4-6", adaptive.clone()),
            ("claude-opus-4-8", adaptive.clone()),
            ("claude-opus-5-5", adaptive.clone()),
            ("anthropic.claude-fable-5", adaptive),
            ("house-model", Value::Null),
        ];
        for (model, expected) in rows {
            assert_eq!(written(model, Effort::High).0["thinking"], expected, "{model}");
        }
    }

    #[test]
    fn models_since_opus_4_7_get_no_settings_of_sampling() {
        for (model, is_taken) in [
            ("claude-sonnet-4-5", true),
            ("claude-opus-4-6", true),
            ("claude-opus-4-7", false),
            ("claude-sonnet-5", false),
            ("house-model", true),
        ] {
            let (sent, notes) = written(model, Effort::Off);
            assert_eq!(sent.get("temperature").is_some(), is_taken, "{model}");
            assert_eq!(notes.contains(&"temperature".to_owned()), !is_taken, "{model}");
        }
    }

    #[test]
    fn a_model_that_always_thinks_is_told_to_think_least() {
        let (sent, notes) = written("claude-opus-5-5", Effort::Off);
        assert_eq!(sent["output_config"], json!({ "effort": "low" }));
        assert_eq!(sent.get("thinking"), None, "it refuses to be told to stop");
        assert!(notes.contains(&"reasoning".to_owned()));
        let (sent, _) = written("claude-opus-4-6", Effort::Off);
        assert_eq!(sent.get("output_config"), None, "it thinks only when asked");
    }
}
