//! Reads a whole Chat Completions answer into the form.

use serde_json::{Map, Value};

use crate::convert::fault::ReplyFault;
use crate::convert::fields::{count_of, reply_object, take_list, take_map, take_text};
use crate::convert::part::{Content, Part, ToolCall};
use crate::convert::reply::{Reply, StopReason, TokenUsage};

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
    let parts = read_parts(&mut message);
    let has = |wanted: fn(&Content) -> bool| parts.iter().any(|part| wanted(&part.content));
    let stop = if has(|content| matches!(content, Content::ToolCall(_))) {
        StopReason::ToolUse
    } else if has(|content| matches!(content, Content::Refusal(_))) {
        StopReason::Refusal
    } else {
        stop_reason(&take_text(&mut choice, "finish_reason"))
    };
    let logprobs = take_map(&mut choice, "logprobs");
    let logprobs = logprobs.map(|mut inner| take_list(&mut inner, "content")).unwrap_or_default();
    Ok(Reply {
        id: take_text(&mut answer, "id"),
        model: take_text(&mut answer, "model"),
        created_unix_s: answer.get("created").and_then(Value::as_u64),
        parts,
        stop,
        usage: answer.get("usage").and_then(Value::as_object).map(read_usage),
        logprobs,
    })
}

fn read_parts(message: &mut Map<String, Value>) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut add = |text: String, content: fn(String) -> Content| {
        if !text.is_empty() {
            parts.push(Part::new(content(text)));
        }
    };
    let thinking = |text| Content::Thinking { text, seal: None };
    add(take_text(message, "reasoning_content"), thinking);
    add(take_text(message, "reasoning"), thinking);
    match message.get_mut("content").map(Value::take) {
        Some(Value::String(text)) => add(text, Content::Text),
        Some(Value::Array(values)) => {
            for value in values {
                if let Value::Object(mut part) = value {
                    add(take_text(&mut part, "text"), Content::Text);
                }
            }
        }
        _ => {}
    }
    add(take_text(message, "refusal"), Content::Refusal);
    for call in take_list(message, "tool_calls") {
        parts.extend(read_call(call).map(|call| Part::new(Content::ToolCall(call))));
    }
    parts
}

fn read_call(call: Value) -> Option<ToolCall> {
    let Value::Object(mut call) = call else { return None };
    let free = take_map(&mut call, "custom");
    let is_free_text = free.is_some();
    let mut body = free.or_else(|| take_map(&mut call, "function"))?;
    let arguments = take_text(&mut body, if is_free_text { "input" } else { "arguments" });
    Some(ToolCall {
        id: take_text(&mut call, "id"),
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
pub(super) fn read_usage(usage: &Map<String, Value>) -> TokenUsage {
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
