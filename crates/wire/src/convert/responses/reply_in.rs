//! Reads a whole answer of the Responses API.

use serde_json::{Map, Value};

use super::usage;
use crate::convert::fault::ReplyFault;
use crate::convert::fields::{reply_object, take_list, take_map, take_text};
use crate::convert::part::{Content, Part, Seal, ToolCall, Vendor};
use crate::convert::reply::{Reply, StopReason};

/// Reads a whole body.
///
/// # Errors
/// It is not an answer of this dialect, or one that has not ended.
pub fn read_reply(body: &[u8]) -> Result<Reply, ReplyFault> {
    read_object(reply_object(body)?)
}

/// Reads the object of an answer, which is also inside the last event of a stream.
pub(super) fn read_object(mut map: Map<String, Value>) -> Result<Reply, ReplyFault> {
    let status = take_text(&mut map, "status");
    if !map.contains_key("output") || !matches!(&*status, "completed" | "incomplete" | "") {
        return Err(ReplyFault::NotTheDialect { problem: "no finished `response`" });
    }
    let mut parts = Vec::new();
    let mut logprobs = Vec::new();
    for value in take_list(&mut map, "output") {
        if let Value::Object(item) = value {
            read_item(item, &mut parts, &mut logprobs);
        }
    }
    let details = take_map(&mut map, "incomplete_details").unwrap_or_default();
    let incomplete = (status == "incomplete").then(|| reason_of(&details));
    let stop = incomplete.unwrap_or_else(|| stop_of(&parts));
    Ok(Reply {
        id: take_text(&mut map, "id"),
        model: take_text(&mut map, "model"),
        created_unix_s: map.get("created_at").and_then(Value::as_f64).map(|at| at as u64),
        parts,
        stop,
        usage: take_map(&mut map, "usage").map(|map| usage::read(&map)),
        logprobs,
    })
}

/// Why an incomplete answer ended.
pub(super) fn reason_of(details: &Map<String, Value>) -> StopReason {
    match details.get("reason").and_then(Value::as_str) {
        Some("content_filter") => StopReason::ContentFilter,
        _ => StopReason::Length,
    }
}

/// Why a complete answer ended, by what it has.
fn stop_of(parts: &[Part]) -> StopReason {
    let has = |is: fn(&Content) -> bool| parts.iter().any(|part| is(&part.content));
    if has(|content| matches!(content, Content::ToolCall(_))) {
        StopReason::ToolUse
    } else if has(|content| matches!(content, Content::Refusal(_))) {
        StopReason::Refusal
    } else {
        StopReason::EndOfTurn
    }
}

/// Reads one item. Items of tools that OpenAI ran say nothing elsewhere.
pub(super) fn read_item(
    mut item: Map<String, Value>,
    parts: &mut Vec<Part>,
    logprobs: &mut Vec<Value>,
) {
    let content = match &*take_text(&mut item, "type") {
        "message" => {
            for value in take_list(&mut item, "content") {
                let Value::Object(mut part) = value else { continue };
                match &*take_text(&mut part, "type") {
                    "output_text" => {
                        logprobs.extend(take_list(&mut part, "logprobs"));
                        parts.push(Part::text(take_text(&mut part, "text")));
                    }
                    "refusal" => {
                        let text = take_text(&mut part, "refusal");
                        parts.push(Part::new(Content::Refusal(text)));
                    }
                    _ => {}
                }
            }
            return;
        }
        kind @ ("function_call" | "custom_tool_call") => {
            let is_free_text = kind == "custom_tool_call";
            let key = if is_free_text { "input" } else { "arguments" };
            Content::ToolCall(ToolCall {
                id: take_text(&mut item, "call_id"),
                name: take_text(&mut item, "name"),
                arguments: take_text(&mut item, key),
                seal: None,
                is_free_text,
            })
        }
        "reasoning" => {
            Content::Thinking { text: thinking_text(&mut item), seal: seal_of(&mut item) }
        }
        _ => return,
    };
    parts.push(Part::new(content));
}

/// What may be read of a reasoning item: its text, or else its summary.
pub(super) fn thinking_text(item: &mut Map<String, Value>) -> String {
    let texts = |values: Vec<Value>| {
        let texts: Vec<String> = values
            .into_iter()
            .filter_map(|value| match value {
                Value::Object(mut part) => Some(take_text(&mut part, "text")),
                _ => None,
            })
            .collect();
        texts.join("\n\n")
    };
    let text = texts(take_list(item, "content"));
    if text.is_empty() { texts(take_list(item, "summary")) } else { text }
}

/// The encrypted reasoning of an item.
pub(super) fn seal_of(item: &mut Map<String, Value>) -> Option<Seal> {
    let data = take_text(item, "encrypted_content");
    (!data.is_empty()).then(|| Seal::read(Vendor::OpenAi, data, true))
}
