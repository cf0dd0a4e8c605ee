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
};

const NO: Option<bool> = Some(false);
const YES: Option<bool> = Some(true);

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
