//! Writes a whole answer of `generateContent`.
//!
//! Rules:
//! - A refusal has no part of its own: its words stand in `finishMessage`.
//! - Arguments that are no JSON object cannot be written: the answer ends with Gemini's own word
//!   for that, `MALFORMED_FUNCTION_CALL`.
//! - The first call of an answer is always signed, as Gemini does it; one that nobody signed has a
//!   mark in that place (`signature::unsigned`).

use serde_json::{Value, json};

use super::{logprobs, signature, usage};
use crate::convert::json_out::bytes;
use crate::convert::part::{Content, Part, ToolCall};
use crate::convert::reply::{Reply, StopReason};

/// What Gemini says when a call cannot be read.
pub(super) const MALFORMED_CALL: &str = "MALFORMED_FUNCTION_CALL";

/// Writes the body.
#[must_use]
pub fn write_reply(reply: &Reply) -> Vec<u8> {
    let mut parts = Vec::new();
    let mut reason = finish_reason(&reply.stop);
    let mut message = String::new();
    let mut has_called = false;
    for part in &reply.parts {
        match written(part, &mut has_called) {
            ReplyPart::Part(value) => parts.push(value),
            ReplyPart::Refusal(text) => message.push_str(text),
            ReplyPart::Malformed => reason = MALFORMED_CALL,
            ReplyPart::Nothing => {}
        }
    }
    let mut candidate = json!({
        "content": {"parts": parts, "role": "model"}, "finishReason": reason, "index": 0,
    });
    if !message.is_empty() {
        candidate["finishMessage"] = message.into();
    }
    if !reply.logprobs.is_empty() {
        candidate["logprobsResult"] = logprobs::written(&reply.logprobs);
    }
    let mut body = json!({"candidates": [candidate]});
    if let Some(usage) = &reply.usage {
        body["usageMetadata"] = usage::written(usage);
    }
    body["modelVersion"] = reply.model.as_str().into();
    body["responseId"] = reply.id.as_str().into();
    bytes(&body)
}

enum ReplyPart<'a> {
    Part(Value),
    Refusal(&'a str),
    Malformed,
    Nothing,
}

fn written<'a>(part: &'a Part, has_called: &mut bool) -> ReplyPart<'a> {
    match &part.content {
        Content::Text(text) => ReplyPart::Part(json!({ "text": text })),
        Content::Refusal(text) => ReplyPart::Refusal(text),
        Content::Thinking { text, seal } => {
            let mut value = json!({"text": text, "thought": true});
            if let Some(seal) = seal {
                value["thoughtSignature"] = signature::written(seal).into();
            }
            ReplyPart::Part(value)
        }
        Content::ToolCall(call) => {
            call_part(call, has_called).map_or(ReplyPart::Malformed, ReplyPart::Part)
        }
        Content::Image { .. }
        | Content::Document { .. }
        | Content::Audio(_)
        | Content::ToolResult(_) => ReplyPart::Nothing,
    }
}

/// A call; none if its arguments are no JSON object.
pub(super) fn call_part(call: &ToolCall, has_called: &mut bool) -> Option<Value> {
    let args = call.arguments_object()?;
    let mut value = json!({"functionCall": {"id": call.id, "name": call.name, "args": args}});
    let is_first = !std::mem::replace(has_called, true);
    if let Some(seal) = &call.seal {
        value["thoughtSignature"] = signature::written(seal).into();
    } else if is_first {
        value["thoughtSignature"] = signature::unsigned().into();
    }
    Some(value)
}

/// Gemini's word for a stop reason.
pub(super) const fn finish_reason(stop: &StopReason) -> &'static str {
    match stop {
        StopReason::EndOfTurn
        | StopReason::StopSequence(_)
        | StopReason::ToolUse
        | StopReason::Pause => "STOP",
        StopReason::Length | StopReason::ContextFull => "MAX_TOKENS",
        StopReason::Refusal | StopReason::ContentFilter => "SAFETY",
    }
}
