//! The settings of a Messages request: limits, chances, thinking, tool choice.
//!
//! Rules:
//! - `max_tokens` is required; without one the family's usual limit is written, with a note.
//! - Thinking needs a budget of at least 1024 tokens below `max_tokens`, no forced tool, and in the
//!   middle of a tool loop the thinking that led to the call. Where one of these is missing the
//!   request is sent without thinking, with a note, because it would be refused with it.
//! - With thinking the API takes no temperature, and newer models take only one of temperature and
//!   `top_p`.

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
}

/// What is known of a family, by a piece of its name; the first that fits counts. The limits are
/// what the family may write at most, or 32 000 where it may write more: an answer that long
/// is no accident any more.
const FAMILIES: [(&str, u64, Thinks); 9] = [
    ("claude-3-5", 8192, Thinks::Never),
    ("claude-3-7", 32_000, Thinks::ByBudget),
    ("claude-3", 4096, Thinks::Never),
    ("claude-opus-4-6", 32_000, Thinks::ByEffort),
    ("claude-opus-4-7", 32_000, Thinks::ByEffort),
    ("claude-sonnet-4-6", 32_000, Thinks::ByEffort),
    ("claude-opus-4", 32_000, Thinks::ByBudget),
    ("claude-sonnet-4", 32_000, Thinks::ByBudget),
    ("claude-haiku-4", 32_000, Thinks::ByBudget),
];

/// Of a model that no family fits.
const UNKNOWN: (&str, u64, Thinks) = ("", 8192, Thinks::Never);

/// Writes the settings.
pub(super) fn write(
    request: &GenerationRequest,
    target: &TargetProfile<'_>,
    body: &mut Map<String, Value>,
    notes: &mut Notes,
) {
    let fits = |row: &&(&str, u64, Thinks)| target.model.contains(row.0);
    let (_, usual_limit, thinks) = *FAMILIES.iter().find(fits).unwrap_or(&UNKNOWN);
    let sampling = &request.sampling;
    if sampling.max_tokens.is_none() {
        notes.rewritten("max_tokens", "Messages requires it, so the model's usual limit is sent");
    }
    let mut max_tokens = sampling.max_tokens.unwrap_or(usual_limit).max(1);
    let budget = write_thinking(request, thinks, &mut max_tokens, body, notes);
    body.insert("max_tokens".into(), max_tokens.into());
    write_sampling(request, budget, body, notes);
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
        if is_thinking {
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
    let Some(effort) = effort.filter(|effort| *effort > Effort::Off) else { return false };
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
        Thinks::ByBudget | Thinks::ByEffort => None,
    };
    if let Some(why) = obstacle {
        notes.dropped("reasoning", why);
        return false;
    }
    if thinks == Thinks::ByEffort {
        body.insert("thinking".into(), json!({ "type": "adaptive" }));
        let word = match effort {
            Effort::Off | Effort::Minimal | Effort::Low => "low",
            Effort::Medium => "medium",
            Effort::High => "high",
            Effort::Highest => "max",
        };
        let config = body.entry("output_config").or_insert_with(|| json!({}));
        config["effort"] = json!(word);
        return true;
    }
    if budget > most {
        notes.clamped("reasoning", "a budget of thinking is below max_tokens");
    }
    let budget = budget.clamp(MIN_BUDGET, most);
    body.insert("thinking".into(), json!({ "type": "enabled", "budget_tokens": budget }));
    true
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
