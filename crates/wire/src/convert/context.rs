//! What a writer of answers must know of the request and its time.

use super::request::GenerationRequest;

/// Kept from a request until its answer is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplyContext {
    /// When the request came, in seconds since 1970: the OpenAI dialects date their answers, and
    /// not every upstream does.
    pub created_unix_s: u64,
    /// Whether a stream tells its usage.
    pub includes_usage: bool,
    /// The tools that take free text, so that a call of one becomes free text again.
    pub free_text_tools: Vec<String>,
}

impl ReplyContext {
    /// What an answer to this request will need.
    #[must_use]
    pub fn of(request: &GenerationRequest, created_unix_s: u64) -> Self {
        let is_free = |tool: &&super::request::ToolDefinition| {
            matches!(tool.input, super::request::ToolInput::FreeText(_))
        };
        let free_text_tools =
            request.tools.iter().filter(is_free).map(|tool| tool.name.clone()).collect();
        Self { created_unix_s, includes_usage: request.includes_usage, free_text_tools }
    }
}
