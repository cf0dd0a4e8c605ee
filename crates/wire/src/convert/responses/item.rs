//! The items of an answer, and the object around them.

use serde_json::{Map, Value, json};

use super::usage;
use crate::convert::part::{Seal, Vendor};
use crate::convert::reply::{StopReason, TokenUsage};

/// What the ids of items have after their kind if no item of OpenAI's stands behind them, so that
/// OpenAI is never asked for one.
pub(crate) const OWN_ITEM: &str = "_tg_";

/// The ids of such reasoning.
pub(crate) const OWN_REASONING: &str = "rs_tg_";

/// What the object of an answer says about itself.
#[derive(Clone, Debug, Default)]
pub(super) struct Envelope {
    pub(super) id: String,
    pub(super) model: String,
    pub(super) created_unix_s: u64,
}

impl Envelope {
    /// The object of an answer, with every field that the vendor's SDKs take for granted.
    pub(super) fn response(&self, status: &str, output: Vec<Value>) -> Map<String, Value> {
        let value = json!({
            "id": self.id, "object": "response", "created_at": self.created_unix_s,
            "status": status, "background": false, "error": null, "incomplete_details": null,
            "instructions": null, "max_output_tokens": null, "metadata": {},
            "model": self.model, "output": output, "parallel_tool_calls": true,
            "previous_response_id": null, "reasoning": {"effort": null, "summary": null},
            "store": false, "temperature": null, "text": {"format": {"type": "text"}},
            "tool_choice": "auto", "tools": [], "top_p": null, "truncation": "disabled",
            "usage": null, "user": null,
        });
        match value {
            Value::Object(map) => map,
            _ => Map::new(),
        }
    }

    /// The object of an answer that has ended.
    pub(super) fn ended(
        &self,
        stop: &StopReason,
        output: Vec<Value>,
        tokens: Option<&TokenUsage>,
    ) -> Map<String, Value> {
        let reason = incomplete_reason(stop);
        let status = if reason.is_some() { "incomplete" } else { "completed" };
        let mut map = self.response(status, output);
        if let Some(reason) = reason {
            map.insert("incomplete_details".into(), json!({ "reason": reason }));
        }
        if let Some(tokens) = tokens {
            map.insert("usage".into(), usage::written(tokens));
        }
        map
    }

    /// The id of an item: its kind, our mark, the answer and its place. OpenAI takes 64 letters.
    pub(super) fn item_id(&self, kind: &str, at: usize) -> String {
        let answer: String = self.id.chars().take(48).collect();
        format!("{kind}{OWN_ITEM}{answer}_{at}")
    }
}

/// Why an answer is not complete; none if it is.
pub(super) const fn incomplete_reason(stop: &StopReason) -> Option<&'static str> {
    match stop {
        StopReason::Length | StopReason::ContextFull => Some("max_output_tokens"),
        StopReason::ContentFilter => Some("content_filter"),
        StopReason::EndOfTurn
        | StopReason::StopSequence(_)
        | StopReason::ToolUse
        | StopReason::Refusal
        | StopReason::Pause => None,
    }
}

/// A part of text.
pub(super) fn text_part(text: &str, logprobs: &[Value]) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": logprobs})
}

/// A part that declines.
pub(super) fn refusal_part(text: &str) -> Value {
    json!({"type": "refusal", "refusal": text})
}

/// A message of the model's.
pub(super) fn message(id: &str, status: &str, content: &[Value]) -> Value {
    json!({"id": id, "type": "message", "status": status, "role": "assistant",
        "content": content})
}

/// Reasoning: what may be read of it, and its seal.
pub(super) fn reasoning(id: &str, text: &str, seal: Option<&Seal>) -> Value {
    let summary = json!({"type": "summary_text", "text": text});
    let summary = if text.is_empty() { json!([]) } else { json!([summary]) };
    let mut item = json!({"id": id, "type": "reasoning", "summary": summary});
    if let Some(seal) = seal {
        item["encrypted_content"] = seal.in_dialect_of(Vendor::OpenAi).into();
    }
    item
}

/// A call of a tool; of one that takes free text, with that text.
pub(super) fn call(id: &str, status: &str, call: &CallText<'_>) -> Value {
    let mut item = json!({"id": id, "type": call.kind(), "status": status,
        "call_id": call.call_id, "name": call.name});
    item[call.key()] = call.text.into();
    item
}

/// A call as the client sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallText<'a> {
    pub(super) call_id: &'a str,
    pub(super) name: &'a str,
    /// Arguments or free text.
    pub(super) text: &'a str,
    pub(super) is_free_text: bool,
}

impl CallText<'_> {
    /// The kind in the item's id.
    pub(super) const fn id_kind(is_free_text: bool) -> &'static str {
        if is_free_text { "ctc" } else { "fc" }
    }

    const fn kind(&self) -> &'static str {
        if self.is_free_text { "custom_tool_call" } else { "function_call" }
    }

    /// The field that has the arguments or the text.
    pub(super) const fn key(&self) -> &'static str {
        if self.is_free_text { "input" } else { "arguments" }
    }
}
