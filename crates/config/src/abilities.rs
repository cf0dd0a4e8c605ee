//! What targets can do where the file does not say it: one table, by host and by model.
//!
//! Rules kept here:
//! - A row only says what is certain. What no row says is unknown, and unknown means able: the
//!   provider is asked and answers for itself.
//! - What the file says of a target wins over every row.
//! - Of two rows that fit, the first one that says something about an ability counts.
//! - Rows apply to providers at their vendor's names. An address with `{model}` in it has names
//!   that the operator gave (Azure's deployments), which say nothing.
//!
//! Where the facts are from: context windows, images, documents and reasoning from the catalogue of
//! models in LiteLLM's package 1.108.4 on PyPI, read in November 2026; JSON schemas of Claude from
//! Google's page on structured outputs of Claude models ("4.5 and higher") and Anthropic's own;
//! DeepSeek's JSON schemas from reports of its answers on GitHub, which quote its API reference;
//! tools of models of Ollama from reports on GitHub that quote its answer "does not support tools".
//! Contexts are the largest that a vendor offers for a family, with or without a beta header.
//!
//! Checked again on 17 November 2026 against vendors' pages where a copy was at hand, and
//! otherwise against public catalogues and answers quoted on GitHub. Confirmed: contexts of
//! Claude since 3, GPT-4.1, `gpt-oss` and DeepSeek V4; tools of Ollama's gemma3, llama3 and
//! deepseek-r1; the two formats of answers that DeepSeek has; the Responses API for reasoning
//! beside tools. Not confirmed: that Groq takes no documents in any model, and that DeepSeek's
//! newest models take no images. Not checked again, because vendors hardly document them any
//! more: Claude before 3, GPT-3.5 and GPT-4, Gemini before 2.5, Gemma 2, Llama, `codestral`,
//! `mixtral`, `qwq` and Qwen.

use tidegate_core::settings::Abilities;
use tidegate_text::glob::Glob;

use crate::file::{Api, MODEL_PLACE, TargetFile};

/// One row.
#[derive(Clone, Copy, Debug)]
struct AbilityRow {
    /// What the provider's host ends with; empty: any.
    host: &'static str,
    /// A pattern of the model's name, in lower case and without a path before it.
    model: &'static str,
    tools: Option<bool>,
    vision: Option<bool>,
    documents: Option<bool>,
    json_schema: Option<bool>,
    reasoning: Option<bool>,
    /// In tokens.
    context: Option<u64>,
    /// Whether converted requests go to its Responses API first.
    prefers_responses: bool,
}

/// A row that says nothing.
const UNKNOWN: AbilityRow = AbilityRow {
    host: "",
    model: "*",
    tools: None,
    vision: None,
    documents: None,
    json_schema: None,
    reasoning: None,
    context: None,
    prefers_responses: false,
};

const NO: Option<bool> = Some(false);
const YES: Option<bool> = Some(true);

/// A model at OpenAI that reasons beside tools only in the Responses API: Chat Completions refuses
/// both together, from GPT-5.4 on. Other hosts of such models decide for themselves.
const fn responses_first(model: &'static str) -> AbilityRow {
    AbilityRow { host: "api.openai.com", model, prefers_responses: true, ..UNKNOWN }
}

/// A model of text alone, behind a server that takes no files.
const TEXT_ONLY: AbilityRow = AbilityRow { vision: NO, documents: NO, ..UNKNOWN };

const ROWS: &[AbilityRow] = &[
    // Servers.
    AbilityRow { host: "api.deepseek.com", json_schema: NO, ..TEXT_ONLY },
    AbilityRow { host: "api.groq.com", documents: NO, ..UNKNOWN },
    // Anthropic.
    AbilityRow {
        model: "claude-instant*",
        tools: NO,
        reasoning: NO,
        json_schema: NO,
        context: Some(100_000),
        ..TEXT_ONLY
    },
    AbilityRow {
        model: "claude-2*",
        tools: NO,
        reasoning: NO,
        json_schema: NO,
        context: Some(200_000),
        ..TEXT_ONLY
    },
    AbilityRow {
        model: "claude-3-7*",
        json_schema: NO,
        reasoning: YES,
        context: Some(200_000),
        ..UNKNOWN
    },
    AbilityRow {
        model: "claude-3*",
        json_schema: NO,
        reasoning: NO,
        context: Some(200_000),
        ..UNKNOWN
    },
    AbilityRow {
        model: "claude-sonnet-4-20*",
        json_schema: NO,
        reasoning: YES,
        context: Some(1_000_000),
        ..UNKNOWN
    },
    AbilityRow {
        model: "claude-opus-4-20*",
        json_schema: NO,
        reasoning: YES,
        context: Some(200_000),
        ..UNKNOWN
    },
    AbilityRow { model: "claude-opus-4-1*", context: Some(200_000), ..UNKNOWN },
    AbilityRow { model: "claude-opus-4-5*", context: Some(200_000), ..UNKNOWN },
    AbilityRow { model: "claude-haiku-4-5*", context: Some(200_000), ..UNKNOWN },
    AbilityRow { model: "claude-sonnet-4-5*", context: Some(1_000_000), ..UNKNOWN },
    AbilityRow { model: "claude-*", tools: YES, vision: YES, reasoning: YES, ..UNKNOWN },
    // OpenAI.
    AbilityRow {
        model: "gpt-3.5*",
        json_schema: NO,
        reasoning: NO,
        context: Some(16_385),
        ..TEXT_ONLY
    },
    AbilityRow { model: "gpt-4o*", reasoning: NO, context: Some(128_000), ..UNKNOWN },
    AbilityRow { model: "gpt-4.1*", reasoning: NO, context: Some(1_047_576), ..UNKNOWN },
    AbilityRow { model: "gpt-4-turbo*", json_schema: NO, reasoning: NO, ..UNKNOWN },
    AbilityRow { model: "gpt-4-*preview", json_schema: NO, reasoning: NO, ..UNKNOWN },
    AbilityRow { model: "gpt-4-0*", json_schema: NO, reasoning: NO, ..TEXT_ONLY },
    AbilityRow { model: "gpt-4", json_schema: NO, reasoning: NO, ..TEXT_ONLY },
    AbilityRow { model: "o3-mini*", reasoning: YES, context: Some(200_000), ..TEXT_ONLY },
    AbilityRow { model: "gpt-5-chat*", reasoning: NO, ..UNKNOWN },
    responses_first("gpt-5.4*"),
    responses_first("gpt-5.5*"),
    responses_first("gpt-5.6*"),
    responses_first("gpt-5.7*"),
    responses_first("gpt-5.8*"),
    responses_first("gpt-5.9*"),
    responses_first("gpt-6*"),
    AbilityRow { model: "gpt-oss*", reasoning: YES, context: Some(131_072), ..TEXT_ONLY },
    // Google.
    AbilityRow { model: "gemini-2.0*thinking*", reasoning: YES, ..UNKNOWN },
    AbilityRow { model: "gemini-2.0*", reasoning: NO, context: Some(1_048_576), ..UNKNOWN },
    AbilityRow { model: "gemini-1.5*", reasoning: NO, context: Some(2_097_152), ..UNKNOWN },
    AbilityRow { model: "gemini-*", tools: YES, vision: YES, documents: YES, ..UNKNOWN },
    AbilityRow { model: "gemma-2*", tools: NO, reasoning: NO, ..TEXT_ONLY },
    AbilityRow { model: "gemma2*", tools: NO, reasoning: NO, ..TEXT_ONLY },
    // Ollama's name: elsewhere it is `gemma-3`, and some servers run its tools.
    AbilityRow { model: "gemma3:*", tools: NO, documents: NO, reasoning: NO, ..UNKNOWN },
    // Open models.
    AbilityRow { model: "llama-2*", tools: NO, reasoning: NO, ..TEXT_ONLY },
    AbilityRow { model: "llama2*", tools: NO, reasoning: NO, ..TEXT_ONLY },
    AbilityRow { model: "llama3", tools: NO, reasoning: NO, ..TEXT_ONLY },
    AbilityRow { model: "llama3:*", tools: NO, reasoning: NO, ..TEXT_ONLY },
    AbilityRow { model: "llama-3.1*", reasoning: NO, context: Some(131_072), ..TEXT_ONLY },
    AbilityRow { model: "llama3.1*", reasoning: NO, context: Some(131_072), ..TEXT_ONLY },
    AbilityRow { model: "llama-3.3*", reasoning: NO, context: Some(131_072), ..TEXT_ONLY },
    AbilityRow { model: "llama3.3*", reasoning: NO, context: Some(131_072), ..TEXT_ONLY },
    AbilityRow { model: "mixtral*", reasoning: NO, ..TEXT_ONLY },
    AbilityRow { model: "codestral*", reasoning: NO, ..TEXT_ONLY },
    AbilityRow { model: "deepseek-r1:*", tools: NO, reasoning: YES, ..TEXT_ONLY },
    AbilityRow { model: "deepseek-r1*", reasoning: YES, ..TEXT_ONLY },
    AbilityRow { model: "deepseek-v3*", ..TEXT_ONLY },
    AbilityRow { model: "deepseek-v4*", context: Some(1_048_576), ..TEXT_ONLY },
    AbilityRow { model: "qwen2.5-coder*", reasoning: NO, ..TEXT_ONLY },
    AbilityRow { model: "qwen2.5:*", reasoning: NO, ..TEXT_ONLY },
    AbilityRow { model: "qwen3-coder*", ..TEXT_ONLY },
    AbilityRow { model: "qwq*", reasoning: YES, ..TEXT_ONLY },
];

/// What is known of a target, file and table together.
pub(crate) fn abilities(
    target: &TargetFile,
    api: Api,
    url: &str,
    model: &str,
    known: Abilities,
) -> Abilities {
    let rows = rows(api, url, model);
    let first = |of: fn(&AbilityRow) -> Option<bool>| rows.iter().find_map(|row| of(row));
    // Tokens are guessed from the length of a request, a quarter too many at times. What the
    // operator wrote is a limit; what the table knows must not refuse a request that fits.
    let guessed = |context: u64| context.saturating_add(context / 4);
    Abilities {
        tools: target.tools.or_else(|| first(|row| row.tools)),
        vision: target.vision.or_else(|| first(|row| row.vision)),
        documents: target.documents.or_else(|| first(|row| row.documents)),
        json_schema: target.json_schema.or_else(|| first(|row| row.json_schema)),
        reasoning: target.reasoning.or_else(|| first(|row| row.reasoning)),
        context: target.context.or_else(|| rows.iter().find_map(|row| row.context).map(guessed)),
        prefers_responses: rows.iter().any(|row| row.prefers_responses),
        ..known
    }
}

/// The rows that fit a target.
fn rows(api: Api, url: &str, model: &str) -> Vec<&'static AbilityRow> {
    if api == Api::Fake || url.contains(MODEL_PLACE) {
        return Vec::new();
    }
    let host = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = host.split(['/', ':', '?']).next().unwrap_or_default();
    let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
    let is_there = |row: &&AbilityRow| {
        let rest = host.strip_suffix(row.host);
        row.host.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    ROWS.iter().filter(is_there).filter(|row| Glob::new(row.model).matches(&name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(url: &str, model: &str) -> Abilities {
        let nothing = TargetFile::default();
        abilities(&nothing, Api::Openai, url, model, Abilities::default())
    }

    #[test]
    fn a_family_is_known_by_its_name_wherever_it_is_served() {
        let groq = of("https://api.groq.com/openai/v1", "llama-3.3-70b-versatile");
        assert_eq!((groq.vision, groq.documents, groq.tools), (NO, NO, None));
        assert_eq!(groq.context, Some(163_840), "a quarter more, because tokens are guessed");
        let routed = of("https://openrouter.ai/api/v1", "anthropic/Claude-3-5-Haiku-20241022");
        assert_eq!((routed.json_schema, routed.reasoning), (NO, NO));
        assert_eq!(of("https://api.openai.com/v1", "gpt-5.1"), Abilities::default());
        assert_eq!(of("http://127.0.0.1:11434/v1", "gemma3:12b").tools, NO);
    }

    #[test]
    fn a_more_exact_row_stands_before_a_wider_one() {
        let at = |model| of("https://api.anthropic.com", model);
        assert_eq!(at("claude-3-7-sonnet-latest").reasoning, YES);
        assert_eq!(at("claude-3-5-sonnet-latest").reasoning, NO);
        assert_eq!(at("claude-sonnet-4-20250514").json_schema, NO);
        assert_eq!(at("claude-sonnet-4-5").json_schema, None);
        assert_eq!(at("claude-opus-5").vision, YES);
        assert_eq!(of("", "gpt-4").vision, NO);
        assert_eq!(of("", "gpt-4o-mini").vision, None);
        assert_eq!(of("", "gpt-4-turbo").vision, None);
    }

    #[test]
    fn openai_is_asked_by_responses_where_chat_refuses_reasoning_beside_tools() {
        let prefers = |url, model| of(url, model).prefers_responses;
        for model in ["gpt-5.4", "gpt-5.4-mini", "gpt-5.6-sol", "gpt-6"] {
            assert!(prefers("https://api.openai.com/v1", model), "{model}");
        }
        for model in ["gpt-5.3-codex", "gpt-5", "gpt-4.1", "o3"] {
            assert!(!prefers("https://api.openai.com/v1", model), "{model}");
        }
        assert!(!prefers("https://openrouter.ai/api/v1", "openai/gpt-5.6"));
        assert!(!prefers("https://x.openai.azure.com/openai/deployments/{model}", "gpt-5.6"));
    }

    #[test]
    fn a_context_is_the_largest_that_a_vendor_offers_and_a_quarter_more() {
        let context = |model| of("https://api.anthropic.com", model).context;
        assert_eq!(context("claude-haiku-4-5-20251001"), Some(250_000));
        assert_eq!(context("claude-opus-4-5"), Some(250_000));
        assert_eq!(context("claude-sonnet-4-5"), Some(1_250_000));
        assert_eq!(context("claude-opus-5-5"), None);
        assert_eq!(of("", "deepseek-ai/DeepSeek-V4-Pro").context, Some(1_310_720));
        assert_eq!(of("", "gpt-5-chat-latest").reasoning, NO);
    }

    #[test]
    fn a_host_may_take_less_than_its_models() {
        assert_eq!(of("https://api.deepseek.com/v1", "deepseek-chat").json_schema, NO);
        assert_eq!(of("https://notapi.deepseek.com.example/v1", "x").json_schema, None);
    }

    #[test]
    fn what_the_file_says_wins_and_names_of_an_operators_own_say_nothing() {
        let says = TargetFile { vision: Some(true), context: Some(9), ..TargetFile::default() };
        let known = abilities(&says, Api::Openai, "", "gpt-3.5-turbo", Abilities::default());
        assert_eq!((known.vision, known.context, known.documents), (YES, Some(9), NO));
        let azure = "https://x.openai.azure.com/openai/deployments/{model}";
        assert_eq!(of(azure, "gpt-4"), Abilities::default());
        let nothing = TargetFile::default();
        let fake = abilities(&nothing, Api::Fake, "", "gpt-4", Abilities::default());
        assert_eq!(fake, Abilities::default());
    }
}
