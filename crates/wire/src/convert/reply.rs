//! A whole answer, in no dialect.
//!
//! | stop reason | Chat | Messages | Responses | Gemini |
//! |---|---|---|---|---|
//! | `EndOfTurn` | `stop` | `end_turn` | `completed` | `STOP` |
//! | `StopSequence` | `stop` | `stop_sequence` | `completed` | `STOP` |
//! | `Length` | `length` | `max_tokens` | `incomplete`, `max_output_tokens` | `MAX_TOKENS` |
//! | `ContextFull` | `length` | `model_context_window_exceeded` | as `Length` | `MAX_TOKENS` |
//! | `ToolUse` | `tool_calls` | `tool_use` | `completed` | `STOP` with a call |
//! | `Refusal` | `stop`, or `content_filter` without words | `refusal` | `completed` | `SAFETY` |
//! | `ContentFilter` | `content_filter` | `refusal` | `incomplete`, `content_filter` | `SAFETY` … |
//! | `Pause` | `stop` | `pause_turn` | `completed` | `STOP` |

use serde_json::Value;

use super::part::{Content, Part};

/// A whole answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// The provider's id of it, carried as it is into every dialect.
    pub id: String,
    /// The model that answered.
    pub model: String,
    /// When, in seconds since 1970, where the dialect says it (the OpenAI ones).
    pub created_unix_s: Option<u64>,
    /// What it says, in order: text, thinking, tool calls, refusal.
    pub parts: Vec<Part>,
    /// Why it ended.
    pub stop: StopReason,
    /// What it cost.
    pub usage: Option<TokenUsage>,
    /// Probabilities of the text's tokens, each as OpenAI writes it (`token`, `logprob`, `bytes`,
    /// `top_logprobs`). Messages has none.
    pub logprobs: Vec<Value>,
}

/// Why an answer ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The model was done.
    EndOfTurn,
    /// One of the request's stop sequences came; which one, where the dialect says it.
    StopSequence(Option<String>),
    /// `max_tokens` was reached.
    Length,
    /// The model's context was full.
    ContextFull,
    /// The model waits for tool results.
    ToolUse,
    /// The model declined.
    Refusal,
    /// A filter of the provider's cut it.
    ContentFilter,
    /// The provider paused a long turn (Messages).
    Pause,
}

impl StopReason {
    /// As OpenAI's dialects tell it: a refusal by its words only, and without them as a filter.
    #[must_use]
    pub fn for_openai(&self, has_refusal_words: bool) -> Self {
        match self {
            Self::Refusal if !has_refusal_words => Self::ContentFilter,
            other => other.clone(),
        }
    }
}

/// Tokens of one answer, each count a total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenUsage {
    /// All input tokens, cached and newly cached ones included. (Messages counts the two apart
    /// from `input_tokens`: its reader adds them, its writer subtracts them.)
    pub input: u64,
    /// Those read from a cache.
    pub cached: u64,
    /// Those written to a cache.
    pub cache_written: u64,
    /// All output tokens, thinking included. (Gemini counts thoughts apart: its reader adds them,
    /// its writer subtracts them.)
    pub output: u64,
    /// Those spent on thinking, where told.
    pub reasoning: u64,
}

impl TokenUsage {
    /// Input and output together.
    #[must_use]
    pub const fn total(self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// Takes over what a later event of a stream tells: counts only grow.
    pub fn update(&mut self, later: Self) {
        self.input = self.input.max(later.input);
        self.cached = self.cached.max(later.cached);
        self.cache_written = self.cache_written.max(later.cache_written);
        self.output = self.output.max(later.output);
        self.reasoning = self.reasoning.max(later.reasoning);
    }
}

impl Reply {
    /// Whether the model declined in words.
    #[must_use]
    pub fn has_refusal_words(&self) -> bool {
        self.parts.iter().any(|part| matches!(part.content, Content::Refusal(_)))
    }

    /// Whether the model called a tool.
    #[must_use]
    pub fn calls_tools(&self) -> bool {
        self.parts.iter().any(|part| matches!(part.content, Content::ToolCall(_)))
    }
}
