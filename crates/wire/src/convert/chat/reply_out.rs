//! Writes the form as a whole Chat Completions answer.
//!
//! Thinking goes to `reasoning_content`, which clients that show thinking read and others ignore.

use serde_json::{Value, json};

use crate::convert::context::ReplyContext;
use crate::convert::json_out::bytes;
use crate::convert::part::{Content, Seal, ToolCall, Vendor};
use crate::convert::reply::{Reply, StopReason, TokenUsage};

/// Writes an answer.
#[must_use]
pub fn write_reply(reply: &Reply, context: &ReplyContext) -> Vec<u8> {
    let (mut text, mut thinking) = (String::new(), String::new());
    let mut refusal: Option<String> = None;
    let mut calls = Vec::new();
    for part in &reply.parts {
        match &part.content {
            Content::Text(more) => text.push_str(more),
            Content::Thinking { text: more, .. } => thinking.push_str(more),
            Content::Refusal(more) => refusal.get_or_insert_default().push_str(more),
            Content::ToolCall(call) => calls.push(write_call(call)),
            Content::Image { .. }
            | Content::Document { .. }
            | Content::Audio(_)
            | Content::ToolResult(_) => {}
        }
    }
    let has_no_text = text.is_empty() && (!calls.is_empty() || refusal.is_some());
    let content = if has_no_text { Value::Null } else { Value::String(text) };
    let mut message = json!({ "role": "assistant", "content": content, "refusal": refusal });
    if !thinking.is_empty() {
        message["reasoning_content"] = Value::String(thinking);
    }
    if !calls.is_empty() {
        message["tool_calls"] = Value::Array(calls);
    }
    let reason = finish_reason(&reply.stop.for_openai(reply.has_refusal_words()));
    let logprobs =
        (!reply.logprobs.is_empty()).then(|| json!({ "content": reply.logprobs, "refusal": null }));
    let mut answer = json!({
        "id": reply.id,
        "object": "chat.completion",
        "created": reply.created_unix_s.unwrap_or(context.created_unix_s),
        "model": reply.model,
        "choices": [{
            "index": 0,
            "message": message,
            "logprobs": logprobs,
            "finish_reason": reason,
        }],
    });
    if let Some(usage) = reply.usage {
        answer["usage"] = write_usage(usage);
    }
    bytes(&answer)
}

fn write_call(call: &ToolCall) -> Value {
    if call.is_free_text {
        let custom = json!({ "name": call.name, "input": call.arguments });
        return json!({ "id": call.id, "type": "custom", "custom": custom });
    }
    let arguments = if call.arguments.is_empty() { "{}" } else { &call.arguments };
    let mut written = json!({
        "id": call.id,
        "type": "function",
        "function": { "name": call.name, "arguments": arguments },
    });
    sign(&mut written, call.seal.as_ref());
    written
}

/// Keeps Google's signature where its own layer for OpenAI's clients puts it.
pub(super) fn sign(call: &mut Value, seal: Option<&Seal>) {
    if let Some(seal) = seal.filter(|seal| seal.vendor == Vendor::Google) {
        call["extra_content"] = json!({ "google": { "thought_signature": seal.data } });
    }
}

/// The `finish_reason` of a stop.
pub(super) const fn finish_reason(stop: &StopReason) -> &'static str {
    match stop {
        StopReason::EndOfTurn
        | StopReason::StopSequence(_)
        | StopReason::Pause
        | StopReason::Refusal => "stop",
        StopReason::Length | StopReason::ContextFull => "length",
        StopReason::ToolUse => "tool_calls",
        StopReason::ContentFilter => "content_filter",
    }
}

/// The `usage` object.
pub(super) fn write_usage(usage: TokenUsage) -> Value {
    json!({
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.total(),
        "prompt_tokens_details": { "cached_tokens": usage.cached },
        "completion_tokens_details": { "reasoning_tokens": usage.reasoning },
    })
}
