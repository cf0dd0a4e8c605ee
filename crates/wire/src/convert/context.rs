//! What a writer of answers must know of the request and its time.

use serde_json::Value;

use super::part::{Content, Part};
use super::request::{GenerationRequest, ToolDefinition, ToolInput};

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
    /// Tools whose name the target would refuse: the name that was sent, and the client's own.
    pub renamed_tools: Vec<(String, String)>,
}

impl ReplyContext {
    /// What an answer to this request will need.
    #[must_use]
    pub fn of(request: &GenerationRequest, created_unix_s: u64) -> Self {
        let is_free = |tool: &&ToolDefinition| matches!(tool.input, ToolInput::FreeText(_));
        let free_text_tools =
            request.tools.iter().filter(is_free).map(|tool| tool.name.clone()).collect();
        let includes_usage = request.includes_usage;
        Self { created_unix_s, includes_usage, free_text_tools, renamed_tools: Vec::new() }
    }

    /// Gives a call the client's own name of its tool.
    pub(super) fn own_name(&self, name: &mut String) {
        if let Some((_, own)) = self.renamed_tools.iter().find(|(sent, _)| sent == name) {
            name.clone_from(own);
        }
    }

    /// Whether a call of this tool is free text for the client.
    #[must_use]
    pub fn is_free_text(&self, tool: &str) -> bool {
        self.free_text_tools.iter().any(|name| name == tool)
    }

    /// Gives calls the client's own names of their tools, and makes those of free-text tools free
    /// text again.
    pub fn restore(&self, parts: &mut [Part]) {
        for part in parts {
            let Content::ToolCall(call) = &mut part.content else { continue };
            self.own_name(&mut call.name);
            if !call.is_free_text && self.is_free_text(&call.name) {
                call.arguments = free_text_of(&call.arguments);
                call.is_free_text = true;
            }
        }
    }
}

/// The text inside the arguments that stand for it, or the arguments as they are.
pub(super) fn free_text_of(arguments: &str) -> String {
    let value: Option<Value> = serde_json::from_str(arguments).ok();
    let text = value.as_ref().and_then(|value| value["input"].as_str());
    text.unwrap_or(arguments).to_owned()
}
