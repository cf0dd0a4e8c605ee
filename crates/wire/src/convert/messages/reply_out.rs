//! Writes the form as a whole Messages answer.
//!
//! Rules:
//! - Thinking keeps its vendor's seal, marked as foreign where it is, so that it can return; see
//!   [`crate::convert::part::Seal`].
//! - A call whose arguments are no object cannot be said in this dialect: the answer is unusable.

use serde_json::{Value, json};

use crate::convert::fault::ReplyFault;
use crate::convert::json_out::bytes;
use crate::convert::part::{Content, NO_SEAL, Seal, ToolCall, Vendor};
use crate::convert::reply::{Reply, StopReason, TokenUsage};

/// Writes an answer.
///
/// # Errors
/// The arguments of a call are no object.
pub fn write_reply(reply: &Reply) -> Result<Vec<u8>, ReplyFault> {
    let mut blocks = Vec::with_capacity(reply.parts.len());
    for part in &reply.parts {
        if let Content::ToolCall(ToolCall { seal: Some(seal), .. }) = &part.content {
            blocks.push(hidden(seal));
        }
        blocks.extend(write_block(&part.content)?);
    }
    let (reason, sequence) = stop_words(&reply.stop);
    let answer = json!({
        "id": message_id(&reply.id),
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": blocks,
        "stop_reason": reason,
        "stop_sequence": sequence,
        "usage": write_usage(reply.usage.unwrap_or_default()),
    });
    Ok(bytes(&answer))
}

fn write_block(content: &Content) -> Result<Option<Value>, ReplyFault> {
    Ok(Some(match content {
        Content::Text(text) | Content::Refusal(text) if text.is_empty() => return Ok(None),
        Content::Text(text) | Content::Refusal(text) => json!({ "type": "text", "text": text }),
        Content::Thinking { text, seal: Some(seal) } if seal.is_content && text.is_empty() => {
            hidden(seal)
        }
        Content::Thinking { text, seal } => {
            let signature = signature_of(seal.as_ref());
            json!({ "type": "thinking", "thinking": text, "signature": signature })
        }
        Content::ToolCall(call) => {
            let problem = "the arguments of a tool call are no object";
            let input = call.arguments_object();
            let input = input.ok_or(ReplyFault::NotTheDialect { problem })?;
            json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": input })
        }
        Content::Image { .. }
        | Content::Document { .. }
        | Content::Audio(_)
        | Content::ToolResult(_) => return Ok(None),
    }))
}

/// A block that keeps a seal until it returns: of hidden thinking, or of the call that follows.
pub(super) fn hidden(seal: &Seal) -> Value {
    json!({ "type": "redacted_thinking", "data": seal.in_dialect_of(Vendor::Anthropic) })
}

/// What stands in `signature`.
pub(super) fn signature_of(seal: Option<&Seal>) -> String {
    seal.map_or_else(|| NO_SEAL.to_owned(), |seal| seal.in_dialect_of(Vendor::Anthropic))
}

/// The id of an answer; not every server gives one, and clients want one.
pub(super) fn message_id(id: &str) -> &str {
    if id.is_empty() { "msg_unknown" } else { id }
}

/// The `stop_reason` and `stop_sequence` of a stop.
pub(super) fn stop_words(stop: &StopReason) -> (&'static str, Option<&str>) {
    let reason = match stop {
        StopReason::EndOfTurn => "end_turn",
        StopReason::StopSequence(sequence) => return ("stop_sequence", sequence.as_deref()),
        StopReason::Length => "max_tokens",
        StopReason::ContextFull => "model_context_window_exceeded",
        StopReason::ToolUse => "tool_use",
        StopReason::Refusal | StopReason::ContentFilter => "refusal",
        StopReason::Pause => "pause_turn",
    };
    (reason, None)
}

/// The `usage` object.
pub(super) fn write_usage(usage: TokenUsage) -> Value {
    let apart = usage.cached.saturating_add(usage.cache_written);
    let details = json!({ "thinking_tokens": usage.reasoning });
    json!({
        "input_tokens": usage.input.saturating_sub(apart),
        "cache_creation_input_tokens": usage.cache_written,
        "cache_read_input_tokens": usage.cached,
        "output_tokens": usage.output,
        "output_tokens_details": if usage.reasoning > 0 { details } else { Value::Null },
    })
}
