//! A request for generated text, in no dialect.
//!
//! How the dialects spell the fields that differ most:
//!
//! | field | Chat | Messages | Gemini |
//! |---|---|---|---|
//! | `system` | leading `system`, `developer` | `system` | `systemInstruction` |
//! | `max_tokens` | `max_completion_tokens` | `max_tokens`, required | `maxOutputTokens` |
//! | `stop` | `stop` (at most 4) | `stop_sequences` | `stopSequences` (at most 5) |
//! | `reasoning` | `reasoning_effort` | `thinking` | `thinkingConfig` |
//! | `output` | `response_format` | `output_config.format` | `responseJsonSchema` |
//! | `parallel_tools` | `parallel_tool_calls` | `disable_parallel_tool_use` | – |
//! | `user` | `user` | `metadata.user_id` | – |
//!
//! Responses spells them `instructions` (and leading `system` and `developer` items),
//! `max_output_tokens`, nothing for `stop`, `reasoning`, `text.format`, `parallel_tool_calls`,
//! `user`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::part::{CacheMark, Content, Part, ToolCall, Vendor};

/// The most tools of a request: eight times what OpenAI takes, twice what Google does.
pub const MAX_TOOLS: usize = 1024;

/// How a model is told in words to answer in JSON.
pub(super) const JSON_INSTRUCTION: &str = "Answer with one valid JSON object and nothing else.";

/// A request in no dialect.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GenerationRequest {
    /// The system prompt: every instruction before the first other message. Text parts only; each
    /// may have a cache marker.
    pub system: Vec<Part>,
    /// The conversation. Two messages of one role may follow each other; writers of dialects that
    /// want turns to alternate join them.
    pub messages: Vec<Message>,
    /// Tools that the client runs itself.
    pub tools: Vec<ToolDefinition>,
    /// Tools that the provider runs, such as web search. No other vendor has the same one.
    pub hosted_tools: Vec<HostedTool>,
    /// Which tool the model may or must use; `None`: not said.
    pub tool_choice: Option<ToolChoice>,
    /// Whether several calls may come at once; `None`: not said, which means yes.
    pub parallel_tools: Option<bool>,
    /// Limits and chances.
    pub sampling: Sampling,
    /// How much the model should think; `None`: not said.
    pub reasoning: Option<Reasoning>,
    /// What form the answer takes.
    pub output: OutputFormat,
    /// Whether the client wants a stream of events.
    pub is_stream: bool,
    /// Whether a stream tells its usage (Chat's `stream_options.include_usage`; the other
    /// dialects always do, so their readers set it).
    pub includes_usage: bool,
    /// Who asks, as the client says.
    pub user: Option<String>,
    /// OpenAI's `prompt_cache_key`.
    pub prompt_cache_key: Option<String>,
    /// The fields that the form has no place for, with their names in the client's dialect. A
    /// writer carries those that mean the same in its own dialect and notes the others.
    pub other: Map<String, Value>,
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// An instruction in the middle of the conversation. Messages and Gemini have none: their
    /// writers move it to the system prompt, with a note.
    System,
    /// The caller, tool results included.
    User,
    /// The model.
    Assistant,
}

/// One message.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said, in order.
    pub parts: Vec<Part>,
}

/// A tool that the client runs.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolDefinition {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: Option<String>,
    /// What it takes.
    pub input: ToolInput,
    /// OpenAI's `strict`: arguments always follow the schema.
    pub is_strict: Option<bool>,
    /// A cache marker (Messages).
    pub cache: Option<CacheMark>,
}

/// What a tool takes.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolInput {
    /// An object of this JSON schema. `None`: no parameters.
    Schema(Option<Value>),
    /// Free text (OpenAI's `custom` tools), with the grammar or format as it was written. Other
    /// vendors get a tool with one string field, `input`.
    FreeText(Option<Value>),
}

/// A tool that the provider runs.
#[derive(Clone, Debug, PartialEq)]
pub struct HostedTool {
    /// Who runs it.
    pub vendor: Vendor,
    /// What it is called, such as `web_search`.
    pub kind: String,
    /// Its definition, as it was written.
    pub definition: Value,
}

/// Which tool the model may or must use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolChoice {
    /// As the model likes.
    Auto,
    /// None. Tools stay listed, because the history may refer to them.
    Disabled,
    /// At least one (`required`, `any`, `ANY`).
    Required,
    /// This one.
    Named(String),
}

/// Limits and chances. `None` is "not said": the writer leaves the provider's default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sampling {
    /// The most tokens of the answer, thinking included.
    pub max_tokens: Option<u64>,
    /// 0 to 2 at OpenAI and Google, 0 to 1 at Anthropic.
    pub temperature: Option<f64>,
    /// Nucleus sampling.
    pub top_p: Option<f64>,
    /// Only the most likely tokens (Messages, Gemini, some Chat servers).
    pub top_k: Option<u64>,
    /// Chat, Gemini.
    pub frequency_penalty: Option<f64>,
    /// Chat, Gemini.
    pub presence_penalty: Option<f64>,
    /// Chat, Gemini.
    pub seed: Option<i64>,
    /// Texts that end the answer.
    pub stop: Vec<String>,
    /// How many answers; more than one is refused by every writer but that of its own dialect.
    pub choices: Option<u64>,
    /// Whether to tell the probabilities of tokens, and of how many alternatives.
    pub logprobs: Option<u64>,
}

/// How much to think.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reasoning {
    /// By word.
    pub effort: Option<Effort>,
    /// By number of tokens.
    pub budget_tokens: Option<u64>,
    /// Whether the thinking (or its summary) should be shown.
    pub is_shown: bool,
}

/// How much to think, by word, in ascending order. Writers take the nearest that the target has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    /// Not at all (`none`; thinking disabled; a budget of 0).
    Off,
    /// `minimal`.
    Minimal,
    /// `low`.
    Low,
    /// `medium`.
    Medium,
    /// `high`.
    High,
    /// `xhigh` and `max`.
    Highest,
}

/// What form the answer takes.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum OutputFormat {
    /// Text.
    #[default]
    Text,
    /// Any JSON object (`json_object`; `application/json` without a schema).
    Json,
    /// JSON of this schema.
    Schema(OutputSchema),
}

/// The schema of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputSchema {
    /// OpenAI's name of it; `response` where the dialect has none.
    pub name: String,
    /// OpenAI's description of it.
    pub description: Option<String>,
    /// The schema.
    pub schema: Value,
    /// OpenAI's `strict`.
    pub is_strict: Option<bool>,
}

impl GenerationRequest {
    /// The calls of the history.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        let parts = self.messages.iter().flat_map(|message| &message.parts);
        parts.filter_map(|part| match &part.content {
            Content::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// The names of the tools that were called, by the id of the call; of two calls with one id
    /// the later.
    #[must_use]
    pub fn tool_names(&self) -> BTreeMap<&str, &str> {
        self.calls().map(|call| (call.id.as_str(), call.name.as_str())).collect()
    }

    /// Whether anything is marked to be cached, wherever that is.
    #[must_use]
    pub fn has_cache_marks(&self) -> bool {
        let turns = self.messages.iter().flat_map(|message| &message.parts);
        let is_marked = |part: &Part| match &part.content {
            Content::ToolResult(result) => result.content.iter().any(|one| one.cache.is_some()),
            _ => false,
        };
        self.tools.iter().any(|tool| tool.cache.is_some())
            || self.system.iter().chain(turns).any(|part| part.cache.is_some() || is_marked(part))
    }

    /// Whether nobody says anything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.system.is_empty() && self.messages.iter().all(|message| message.parts.is_empty())
    }

    /// Whether the word JSON is said anywhere: OpenAI refuses its JSON mode otherwise.
    #[must_use]
    pub fn mentions_json(&self) -> bool {
        let turns = self.messages.iter().flat_map(|message| &message.parts);
        self.system.iter().chain(turns).any(|part| match &part.content {
            Content::Text(text) => {
                text.as_bytes().windows(4).any(|word| word.eq_ignore_ascii_case(b"json"))
            }
            _ => false,
        })
    }

    /// Offers these tools only, which says the same as a choice among them.
    pub fn offer_only(&mut self, names: &[String]) {
        self.tools.retain(|tool| names.contains(&tool.name));
    }

    /// Adds a message, or its parts to the last message if that is of the same role and both are
    /// turns of the conversation.
    pub fn push(&mut self, role: Role, parts: Vec<Part>) {
        match self.messages.last_mut() {
            Some(last) if last.role == role && role != Role::System => last.parts.extend(parts),
            _ => self.messages.push(Message { role, parts }),
        }
    }
}

impl ToolDefinition {
    /// The schema that stands for free text in dialects without such tools.
    #[must_use]
    pub fn free_text_schema() -> Value {
        serde_json::json!({
            "type": "object",
            "properties": { "input": { "type": "string" } },
            "required": ["input"],
        })
    }
}

impl Effort {
    /// The word that OpenAI's dialects use.
    #[must_use]
    pub const fn openai_word(self) -> &'static str {
        match self {
            Self::Off => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Highest => "xhigh",
        }
    }

    /// Reads a word of any dialect.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Some(match word.to_ascii_lowercase().as_str() {
            "none" => Self::Off,
            "minimal" => Self::Minimal,
            "low" => Self::Low,
            "medium" => Self::Medium,
            "high" => Self::High,
            "xhigh" | "max" => Self::Highest,
            _ => return None,
        })
    }

    /// How many tokens this much thinking is, for dialects that count them. The steps are those
    /// that vendors' own compatibility layers use: 1 Ki for little, 24 Ki for much.
    #[must_use]
    pub const fn budget_tokens(self) -> u64 {
        match self {
            Self::Off => 0,
            Self::Minimal | Self::Low => 1024,
            Self::Medium => 8192,
            Self::High => 24_576,
            Self::Highest => 32_000,
        }
    }

    /// The word for a number of tokens.
    #[must_use]
    pub const fn of_budget(tokens: u64) -> Self {
        match tokens {
            0 => Self::Off,
            1..=2048 => Self::Low,
            2049..=16_384 => Self::Medium,
            _ => Self::High,
        }
    }
}
