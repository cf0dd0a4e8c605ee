//! The rows: what each server refuses, names otherwise or wants besides.
//!
//! Checked on 17 November 2026:
//! - DeepSeek: its guide to the thinking mode, and answers quoted on GitHub (a call without its
//!   thinking is a 400; what another model thought is not there, so that it is told not to think).
//!   Not confirmed: that it refuses the fields of its row; reports show it ignoring unknown ones.
//! - Mistral: answers 422 quoted on GitHub for `stream_options`, `max_completion_tokens` and
//!   `reasoning_content`. Not confirmed: `metadata` and `prompt_cache_key`, which newer references
//!   may have, and the levels of effort (`none` and `high` for some models), so that none is sent.
//! - Groq: its page on OpenAI compatibility (`logprobs`, `top_logprobs`, `logit_bias`: 400) and its
//!   page on reasoning. Not confirmed: `metadata`, `store` and `verbosity`.
//! - Cerebras: its page on OpenAI compatibility, in an older copy. Not confirmed: whether newer
//!   versions take `parallel_tool_calls` and `service_tier`.
//! - Google's layer: answers quoted on GitHub for `store`, `seed` and the penalties. Not confirmed:
//!   `metadata`, `logit_bias` and the keys; an unknown name is always a 400 there.
//!
//! Checked on 18 November 2026:
//! - OpenAI: the 400 for `metadata` without `store`, quoted on GitHub (tmc/langchaingo 1484,
//!   QwenLM/qwen-code 243).
//! - Azure: answers quoted on GitHub. `max_completion_tokens` is unknown to versions of the API
//!   before 2024-09 (openai/openai-python 1724, BerriAI/litellm 8855) and a 422 for models of other
//!   makers (pydantic/pydantic-ai 6593, BerriAI/litellm 26322); `max_tokens` is refused by GPT-5
//!   (anomalyco/opencode 37964); `prompt_cache_key` is unknown to models of other makers
//!   (zed-industries/zed 52000, vectorize-io/hindsight 3518). Not confirmed: which dated versions
//!   know `prompt_cache_key`, `safety_identifier` and `prompt_cache_retention`, all of them younger
//!   than the version 2024-10-21; they are hints only, so none is sent.
//! - OpenRouter: its pages on reasoning and on prompt caching (`cache_control` in the parts of
//!   messages), and its 400 for calls of Gemini 3 without `reasoning_details`
//!   (LibreChat-AI/agents 37, massgen/MassGen 624). Not confirmed: `cache_control` of tools, which
//!   is dropped.
//! - Ollama: its page on OpenAI compatibility and its source. Unknown fields are ignored; a message
//!   whose content is null and that has no calls is a 400, and so is a level of effort other than
//!   `none`, `low`, `medium`, `high` and `max`, or any level for a model that does not think. It
//!   has no host of its own, so it gets what every unknown host gets, and that has neither.
//!   `tool_choice` is ignored there, which nobody is told.
//! - vLLM: its source and answers quoted on GitHub. Unknown fields are ignored with a warning in
//!   its log; levels of effort are `low`, `medium` and `high` (others since the spring of 2026
//!   only), and mean something to `gpt-oss` alone. It has no host of its own either.

use crate::convert::request::Effort;

/// One row.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServerRow {
    /// What the host ends with.
    pub(super) host: &'static str,
    /// Fields that it answers with an error.
    pub(super) refuses: &'static [&'static str],
    /// Fields that have another name there.
    pub(super) renames: &'static [(&'static str, &'static str)],
    /// How long an id of a tool call must be, in letters and digits.
    pub(super) call_id_len: Option<usize>,
    /// Whether it wants the thinking of earlier turns back, as `reasoning_content`, and is told
    /// by `thinking` not to think.
    pub(super) takes_thinking: bool,
    /// The levels of `reasoning_effort` that it takes for any model, in ascending order.
    pub(super) efforts: &'static [(Effort, &'static str)],
    /// Whether it is OpenAI's own API: a message has a field `refusal`, and `metadata` belong to
    /// what is stored. Elsewhere a refusal is said as the text that it is.
    pub(super) is_openai: bool,
    /// What a limit of tokens is called.
    pub(super) limit: LimitName,
    /// Whether the parts of messages may have `cache_control`.
    pub(super) takes_cache_marks: bool,
    /// Where a call has the signature without which Gemini 3 refuses it.
    pub(super) signature: Option<SignaturePlace>,
}

/// What a limit of tokens is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LimitName {
    /// `max_tokens`, unless the model is one of OpenAI's that refuse it.
    Older,
    /// `max_completion_tokens`.
    Newer,
    /// The newer one, but for models that are known to take the older one everywhere.
    ByModel,
}

/// Where a call has its signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SignaturePlace {
    /// `extra_content.google.thought_signature` of the call.
    ExtraContent,
    /// An element of the message's `reasoning_details` with the call's id.
    ReasoningDetails,
}

/// What a host gets that has no row.
pub(super) const PLAIN: ServerRow = ServerRow {
    host: "",
    refuses: &[],
    renames: &[],
    call_id_len: None,
    takes_thinking: false,
    efforts: &[],
    is_openai: false,
    limit: LimitName::Older,
    takes_cache_marks: false,
    signature: None,
};

/// Azure, under one of its hosts.
const AZURE: ServerRow = ServerRow {
    refuses: &["prompt_cache_key", "safety_identifier", "prompt_cache_retention"],
    is_openai: true,
    limit: LimitName::ByModel,
    ..PLAIN
};

/// The levels of OpenAI's open models, wherever they run.
pub(super) const OPEN_EFFORTS: &[(Effort, &str)] =
    &[(Effort::Low, "low"), (Effort::Medium, "medium"), (Effort::High, "high")];

pub(super) const SERVERS: [ServerRow; 10] = [
    ServerRow { host: "api.openai.com", is_openai: true, limit: LimitName::Newer, ..PLAIN },
    ServerRow { host: "openai.azure.com", ..AZURE },
    ServerRow { host: "cognitiveservices.azure.com", ..AZURE },
    ServerRow { host: "services.ai.azure.com", ..AZURE },
    ServerRow {
        // Answers 400 to a call that comes back without its thinking, while it thinks.
        host: "api.deepseek.com",
        refuses: &["logit_bias", "store", "metadata", "service_tier", "verbosity"],
        renames: &[("max_completion_tokens", "max_tokens")],
        takes_thinking: true,
        efforts: &[(Effort::Low, "low"), (Effort::High, "high"), (Effort::Highest, "max")],
        ..PLAIN
    },
    ServerRow {
        // Answers 422 to every field that it does not know.
        host: "api.mistral.ai",
        refuses: &[
            "stream_options",
            "logprobs",
            "top_logprobs",
            "logit_bias",
            "user",
            "metadata",
            "store",
            "service_tier",
            "reasoning_effort",
            "verbosity",
            "prompt_cache_key",
            "safety_identifier",
        ],
        renames: &[("seed", "random_seed"), ("max_completion_tokens", "max_tokens")],
        call_id_len: Some(9),
        ..PLAIN
    },
    ServerRow {
        host: "api.groq.com",
        refuses: &["logprobs", "top_logprobs", "logit_bias", "metadata", "store", "verbosity"],
        ..PLAIN
    },
    ServerRow {
        host: "api.cerebras.ai",
        refuses: &[
            "frequency_penalty",
            "presence_penalty",
            "logit_bias",
            "parallel_tool_calls",
            "service_tier",
        ],
        ..PLAIN
    },
    ServerRow {
        // Google's layer for OpenAI's clients answers 400 to every field that it does not know.
        host: "generativelanguage.googleapis.com",
        refuses: &[
            "store",
            "metadata",
            "logit_bias",
            "prompt_cache_key",
            "safety_identifier",
            "seed",
            "frequency_penalty",
            "presence_penalty",
        ],
        efforts: OPEN_EFFORTS,
        signature: Some(SignaturePlace::ExtraContent),
        ..PLAIN
    },
    ServerRow {
        // Makes of a level what the model behind it takes.
        host: "openrouter.ai",
        efforts: &[
            (Effort::Off, "none"),
            (Effort::Minimal, "minimal"),
            (Effort::Low, "low"),
            (Effort::Medium, "medium"),
            (Effort::High, "high"),
            (Effort::Highest, "xhigh"),
        ],
        takes_cache_marks: true,
        signature: Some(SignaturePlace::ReasoningDetails),
        ..PLAIN
    },
];
