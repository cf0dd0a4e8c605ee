//! The settings of a Messages request: limits, chances, thinking, tool choice.
//!
//! Rules:
//! - `max_tokens` is required; without one the family's usual limit is written, with a note.
//! - Thinking needs a budget of at least 1024 tokens below `max_tokens`, no forced tool, and in the
//!   middle of a tool loop the thinking that led to the call. Where one of these is missing the
//!   request is sent without thinking, with a note, because it would be refused with it.
//! - With thinking the API takes no temperature, and newer models take only one of temperature and
//!   `top_p`. Models since Opus 4.7 take neither, nor `top_k`, and show their thinking if asked.
//! - Models since Opus 5 think unless they are told otherwise. How they are told differs, and some
//!   cannot be told: whoever wants no thinking gets the least.
//! - Models since 5.5 cannot be made to use a tool; they are asked to decide, with a note. Models
//!   since 4.6 want the last turn to be the user's.
//! - Models since 5.5 check that nothing before a block of their thinking has changed. An
//!   instruction in the middle of the conversation, which moves to the system prompt, changes that,
//!   so such a conversation goes without their thinking.
//!
//! Checked on 17 November 2026 against Anthropic's migration guides and pages of news for Opus 4.7,
//! 4.8, 5, 5.5, Sonnet 5 and 5.5, its pages on thinking, effort and preserved thinking, Amazon's
//! pages on adaptive thinking and preserved thinking, and OpenRouter's guide for Claude 5.5. Not
//! confirmed: whether Fable 5 and Mythos 5 take a forced tool (they are taken not to), whether
//! Sonnet 4.6 takes the effort `max`, and the output limits of models that are no longer served.

use serde_json::{Map, Value, json};

use crate::convert::notes::Notes;
use crate::convert::part::{Content, Seal, Vendor};
use crate::convert::request::{Effort, GenerationRequest, Role, ToolChoice};
use crate::convert::target::TargetProfile;

const FORCED: &str = "Messages does not think when a tool is forced";

/// The least budget of thinking that the API takes.
const MIN_BUDGET: u64 = 1024;

/// How a family of models thinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Thinks {
    Never,
    ByBudget,
    ByEffort,
    /// By effort, and also when nobody asked, unless it is told to be `disabled`.
    UnlessDisabled,
    /// The same, but the least that it can be told is to think `between_tools`.
    AtLeastBetweenTools,
    /// By effort, and also when nobody asked or somebody asked for none.
    Always,
}

impl Thinks {
    /// Whether it thinks when nobody asked.
    const fn is_unasked(self) -> bool {
        matches!(self, Self::UnlessDisabled | Self::AtLeastBetweenTools | Self::Always)
    }
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
    /// Whether it can be made to use a tool.
    is_forcible: bool,
    /// Whether the last turn may be its own.
    takes_prefill: bool,
    /// Whether it checks what stood before its thinking.
    is_bound: bool,
}

/// A model that takes what the API always took.
const fn family(name: &'static str, limit: u64, thinks: Thinks) -> Family {
    Family {
        name,
        limit,
        thinks,
        takes_sampling: true,
        is_forcible: true,
        takes_prefill: true,
        is_bound: false,
    }
}

/// A model of 4.6: the user has the last word.
const fn of_4_6(name: &'static str) -> Family {
    Family { takes_prefill: false, ..family(name, 32_000, Thinks::ByEffort) }
}

/// A model since Opus 4.7: no settings of sampling either.
const fn since_4_7(name: &'static str, thinks: Thinks) -> Family {
    Family { thinks, takes_sampling: false, ..of_4_6(name) }
}

/// A model since 5.5: no forced tool, and its thinking is bound to what stood before it.
const fn since_5_5(name: &'static str, thinks: Thinks) -> Family {
    Family { is_forcible: false, is_bound: true, ..since_4_7(name, thinks) }
}

/// The families; the first that fits counts. A name of Anthropic's that no older family has is a
/// newer model, and like the newest.
const FAMILIES: [Family; 18] = [
    family("claude-2", 4096, Thinks::Never),
    family("claude-instant", 4096, Thinks::Never),
    family("claude-3-5", 8192, Thinks::Never),
    family("claude-3-7", 32_000, Thinks::ByBudget),
    family("claude-3", 4096, Thinks::Never),
    of_4_6("claude-opus-4-6"),
    of_4_6("claude-sonnet-4-6"),
    since_4_7("claude-opus-4-7", Thinks::ByEffort),
    since_4_7("claude-opus-4-8", Thinks::ByEffort),
    family("claude-opus-4", 32_000, Thinks::ByBudget),
    family("claude-sonnet-4", 32_000, Thinks::ByBudget),
    family("claude-haiku-4", 32_000, Thinks::ByBudget),
    since_5_5("claude-opus-5-5", Thinks::Always),
    since_5_5("claude-sonnet-5-5", Thinks::AtLeastBetweenTools),
    Family { is_forcible: true, ..since_5_5("claude-haiku-5-5", Thinks::UnlessDisabled) },
    since_4_7("claude-opus-5", Thinks::UnlessDisabled),
    since_4_7("claude-sonnet-5", Thinks::UnlessDisabled),
    since_5_5("claude-", Thinks::Always),
];

/// Of a model that is none of Anthropic's.
const UNKNOWN: Family = family("", 8192, Thinks::Never);

fn family_of(target: &TargetProfile<'_>) -> &'static Family {
    // Resellers write `claude-opus-5.5`.
    let model = target.model.replace('.', "-");
    FAMILIES.iter().find(|it| model.contains(it.name)).unwrap_or(&UNKNOWN)
}

/// Whether a model can be made to use a tool.
pub(super) fn is_forcible(target: &TargetProfile<'_>) -> bool {
    family_of(target).is_forcible
}

/// Whether a model takes a last turn of its own.
pub(super) fn takes_prefill(target: &TargetProfile<'_>) -> bool {
    family_of(target).takes_prefill
}

/// Whether the model would refuse its own thinking in this conversation.
pub(super) fn refuses_thinking(request: &GenerationRequest, target: &TargetProfile<'_>) -> bool {
    let is_instructed = || request.messages.iter().any(|message| message.role == Role::System);
    family_of(target).is_bound && is_instructed()
}

/// Writes the settings.
pub(super) fn write(
    request: &GenerationRequest,
    target: &TargetProfile<'_>,
    body: &mut Map<String, Value>,
    notes: &mut Notes,
) {
    let family = family_of(target);
    let sampling = &request.sampling;
    if sampling.max_tokens.is_none() {
        notes.rewritten("max_tokens", "Messages requires it, so the model's usual limit is sent");
    }
    if sampling.max_tokens == Some(0) {
        notes.clamped("max_tokens", "Messages takes no less than 1");
    }
    let mut max_tokens = sampling.max_tokens.unwrap_or(family.limit).max(1);
    let is_thinking = write_thinking(request, family, &mut max_tokens, body, notes);
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
    family: &Family,
    max_tokens: &mut u64,
    body: &mut Map<String, Value>,
    notes: &mut Notes,
) -> bool {
    let thinks = family.thinks;
    let is_forced = family.is_forcible
        && !request.tools.is_empty()
        && matches!(request.tool_choice, Some(ToolChoice::Required | ToolChoice::Named(_)));
    let asked = request.reasoning.unwrap_or_default();
    let effort = asked.effort.or(asked.budget_tokens.map(Effort::of_budget));
    if effort == Some(Effort::Off) || (is_forced && thinks.is_unasked()) {
        if is_forced && effort.is_some_and(|effort| effort != Effort::Off) {
            notes.dropped("reasoning", FORCED);
        }
        write_no_thinking(thinks, body, notes);
        return false;
    }
    let (Some(reasoning), Some(effort)) = (request.reasoning, effort) else { return false };
    let budget = reasoning.budget_tokens.unwrap_or_else(|| effort.budget_tokens());
    // A limit that the client did not set grows with the budget.
    if request.sampling.max_tokens.is_none() {
        *max_tokens = (*max_tokens).max(budget.saturating_add(4096));
    }
    let most = max_tokens.saturating_sub(1);
    let obstacle = match thinks {
        Thinks::Never => Some("this model does not think"),
        _ if is_forced => Some(FORCED),
        Thinks::ByBudget if most < MIN_BUDGET => Some("max_tokens leaves no room for thinking"),
        Thinks::ByBudget if lacks_thinking(request) => {
            Some("the thinking that led to the tool call came from another provider")
        }
        _ => None,
    };
    if let Some(why) = obstacle {
        notes.dropped("reasoning", why);
        return false;
    }
    if thinks != Thinks::ByBudget {
        let mut thinking = json!({ "type": "adaptive" });
        if reasoning.is_shown && !family.takes_sampling {
            // Models since Opus 4.7 leave the text of their thinking out otherwise.
            thinking["display"] = "summarized".into();
        }
        body.insert("thinking".into(), thinking);
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

/// Tells a model not to think, or to think as little as it can.
fn write_no_thinking(thinks: Thinks, body: &mut Map<String, Value>, notes: &mut Notes) {
    let word = match thinks {
        Thinks::Never | Thinks::ByBudget | Thinks::ByEffort => return,
        Thinks::UnlessDisabled => "disabled",
        Thinks::AtLeastBetweenTools => {
            notes.clamped("reasoning", "this model thinks between calls of tools at least");
            "between_tools"
        }
        Thinks::Always => {
            notes.clamped("reasoning", "this model always thinks");
            return write_effort("low", body);
        }
    };
    body.insert("thinking".into(), json!({ "type": word }));
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
    fn who_wants_no_thinking_gets_the_least_that_the_model_can_be_told() {
        let told = |model: &str| {
            let (sent, notes) = written(model, Effort::Off);
            let is_noted = notes.contains(&"reasoning".to_owned());
            (sent.get("thinking").cloned(), sent.get("output_config").cloned(), is_noted)
        };
        let disabled = Some(json!({ "type": "disabled" }));
        for model in ["claude-opus-5", "claude-sonnet-5", "claude-haiku-5-5"] {
            assert_eq!(told(model), (disabled.clone(), None, false), "{model}");
        }
        let between = Some(json!({ "type": "between_tools" }));
        assert_eq!(told("claude-sonnet-5-5"), (between.clone(), None, true));
        assert_eq!(told("anthropic/claude-sonnet-5.5"), (between, None, true));
        let low = Some(json!({ "effort": "low" }));
        for model in ["claude-opus-5.5", "claude-fable-5-1", "claude-mythos-5"] {
            assert_eq!(told(model), (None, low.clone(), true), "{model}");
        }
        for model in ["claude-opus-4-8", "claude-sonnet-4-5", "claude-3-haiku", "house-model"] {
            assert_eq!(told(model), (None, None, false), "{model}");
        }
    }

    #[test]
    fn thinking_is_shown_to_who_asked_to_see_it() {
        let shown = |model: &str, is_shown: bool| {
            let effort = Some(Effort::Low);
            let reasoning = Some(Reasoning { effort, is_shown, ..Reasoning::default() });
            let request = GenerationRequest { reasoning, ..GenerationRequest::default() };
            let mut body = Map::new();
            let target = TargetProfile { model, host: "" };
            write(&request, &target, &mut body, &mut Notes::default());
            body["thinking"].get("display").cloned()
        };
        assert_eq!(shown("claude-opus-5-5", true), Some("summarized".into()));
        assert_eq!(shown("claude-opus-4-7", true), Some("summarized".into()));
        assert_eq!(shown("claude-opus-5-5", false), None);
        assert_eq!(shown("claude-opus-4-6", true), None, "it shows its thinking by itself");
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
