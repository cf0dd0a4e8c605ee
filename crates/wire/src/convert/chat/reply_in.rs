//! Reads a whole Chat Completions answer into the form.

use serde_json::{Map, Value};

use crate::convert::fault::ReplyFault;
use crate::convert::fields::{count_of, reply_object, take_list, take_map, take_text};
use crate::convert::ids::CallIds;
use crate::convert::part::{Content, Part, ToolCall};
use crate::convert::reply::{Reply, StopReason, TokenUsage};
use crate::convert::servers::{THINKING_FIELDS, USAGE_PARENTS};

/// Reads an answer. Of several choices the first is taken: more are never asked for.
///
/// # Errors
/// It is no answer of this dialect.
pub fn read_reply(body: &[u8]) -> Result<Reply, ReplyFault> {
    let mut answer = reply_object(body)?;
    let first = take_list(&mut answer, "choices").into_iter().next();
    let Some(Value::Object(mut choice)) = first else {
        return Err(ReplyFault::NotTheDialect { problem: "no choices" });
    };
    let Some(mut message) = take_map(&mut choice, "message") else {
        return Err(ReplyFault::NotTheDialect { problem: "no message" });
    };
    let id = take_text(&mut answer, "id");
    let parts = read_parts(&mut message, &mut CallIds::new(&id));
    let has = |wanted: fn(&Content) -> bool| parts.iter().any(|part| wanted(&part.content));
    // What the model did says more than a plain `stop`, which some servers write after calls too.
    let stop = match stop_reason(&take_text(&mut choice, "finish_reason")) {
        StopReason::EndOfTurn if has(|it| matches!(it, Content::ToolCall(_))) => {
            StopReason::ToolUse
        }
        StopReason::EndOfTurn if has(|it| matches!(it, Content::Refusal(_))) => StopReason::Refusal,
        reason => reason,
    };
    let logprobs = take_map(&mut choice, "logprobs");
    let logprobs = logprobs.map(|mut inner| take_list(&mut inner, "content")).unwrap_or_default();
    Ok(Reply {
        id,
        model: take_text(&mut answer, "model"),
        created_unix_s: answer.get("created").and_then(Value::as_u64),
        parts,
        stop,
        usage: find_usage(&answer),
        logprobs,
    })
}

fn read_parts(message: &mut Map<String, Value>, ids: &mut CallIds) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut add = |text: String, content: fn(String) -> Content| {
        if !text.is_empty() {
            parts.push(Part::new(content(text)));
        }
    };
    let thinking = |text| Content::Thinking { text, seal: None };
    add(read_thinking(message), thinking);
    for piece in read_content(message) {
        match piece {
            ContentPiece::Thinking(text) => add(text, thinking),
            ContentPiece::Text(text) => add(text, Content::Text),
        }
    }
    add(take_text(message, "refusal"), Content::Refusal);
    for call in take_list(message, "tool_calls") {
        parts.extend(read_call(call, ids).map(|call| Part::new(Content::ToolCall(call))));
    }
    parts
}

/// A piece of the content of a message or delta.
pub(super) enum ContentPiece {
    Thinking(String),
    Text(String),
}

/// The thinking of a message or delta. Some servers give the same under several names.
pub(super) fn read_thinking(message: &mut Map<String, Value>) -> String {
    let texts = THINKING_FIELDS.map(|field| take_text(message, field));
    texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default()
}

/// The content of a message or delta: a text, or a list of texts and, of Mistral's, thinking.
pub(super) fn read_content(message: &mut Map<String, Value>) -> Vec<ContentPiece> {
    let values = match message.get_mut("content").map(Value::take) {
        Some(Value::String(text)) => return vec![ContentPiece::Text(text)],
        Some(Value::Array(values)) => values,
        _ => return Vec::new(),
    };
    let mut pieces = Vec::new();
    for value in values {
        let Value::Object(mut part) = value else { continue };
        let thoughts = take_list(&mut part, "thinking").into_iter().filter_map(|it| match it {
            Value::Object(mut thought) => Some(take_text(&mut thought, "text")),
            _ => None,
        });
        pieces.extend(thoughts.map(ContentPiece::Thinking));
        pieces.push(ContentPiece::Text(take_text(&mut part, "text")));
    }
    pieces
}

/// The usage in an answer or chunk, wherever the server puts it.
pub(super) fn find_usage(answer: &Map<String, Value>) -> Option<TokenUsage> {
    let inner = |parent: &&str| answer.get(*parent)?.get("usage")?.as_object();
    let top = answer.get("usage").and_then(Value::as_object);
    top.or_else(|| USAGE_PARENTS.iter().find_map(inner)).map(read_usage)
}

fn read_call(call: Value, ids: &mut CallIds) -> Option<ToolCall> {
    let Value::Object(mut call) = call else { return None };
    let free = take_map(&mut call, "custom");
    let is_free_text = free.is_some();
    let mut body = free.or_else(|| take_map(&mut call, "function"))?;
    let arguments = take_text(&mut body, if is_free_text { "input" } else { "arguments" });
    Some(ToolCall {
        id: ids.id(take_text(&mut call, "id")),
        name: take_text(&mut body, "name"),
        arguments,
        seal: None,
        is_free_text,
    })
}

/// What a `finish_reason` means.
pub(super) fn stop_reason(word: &str) -> StopReason {
    match word {
        "length" => StopReason::Length,
        "tool_calls" | "function_call" => StopReason::ToolUse,
        "content_filter" => StopReason::ContentFilter,
        _ => StopReason::EndOfTurn,
    }
}

/// What `usage` tells.
fn read_usage(usage: &Map<String, Value>) -> TokenUsage {
    let detail = |of: &str, key: &str| {
        usage.get(of).and_then(Value::as_object).map_or(0, |inner| count_of(inner, key))
    };
    let cached = detail("prompt_tokens_details", "cached_tokens");
    TokenUsage {
        input: count_of(usage, "prompt_tokens"),
        cached: cached.max(count_of(usage, "prompt_cache_hit_tokens")),
        cache_written: 0,
        output: count_of(usage, "completion_tokens"),
        reasoning: detail("completion_tokens_details", "reasoning_tokens"),
    }
}
