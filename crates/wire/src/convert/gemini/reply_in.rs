//! Reads a whole answer of `generateContent`.
//!
//! Rules:
//! - A blocked prompt has no candidates: it is an answer cut by a filter, without content.
//! - A malformed call of a tool is no answer: the target failed at it.
//! - Calls without an id get one that is made of the answer's id, so that it stays unique in a
//!   longer conversation.

use serde_json::{Map, Value};

use super::{logprobs, signature, usage};
use crate::convert::fault::ReplyFault;
use crate::convert::fields::{reply_object, take_list, take_map, take_text};
use crate::convert::ids::{CallIds, mark};
use crate::convert::part::{Content, Part, ToolCall};
use crate::convert::reply::{Reply, StopReason};

/// Reads a whole body.
///
/// # Errors
/// It is not an answer of this dialect.
pub fn read_reply(body: &[u8]) -> Result<Reply, ReplyFault> {
    let mut map = reply_object(body)?;
    let id = answer_id(&mut map, body);
    let mut parts = Vec::new();
    let mut names = CallIds::new(&id);
    let (stop, tokens) = match take_list(&mut map, "candidates").into_iter().next() {
        Some(Value::Object(mut candidate)) => {
            let mut content = take_map(&mut candidate, "content").unwrap_or_default();
            for value in take_list(&mut content, "parts") {
                if let Value::Object(part) = value {
                    read_part(part, &mut names, &mut parts);
                }
            }
            let calls_tools = parts.iter().any(|part| matches!(part.content, Content::ToolCall(_)));
            let word = take_text(&mut candidate, "finishReason");
            let tokens = logprobs::read(candidate.get("logprobsResult").unwrap_or(&Value::Null));
            (stop_reason(&word, calls_tools)?, tokens)
        }
        _ if is_blocked(&map) => (StopReason::ContentFilter, Vec::new()),
        _ => return Err(ReplyFault::NotTheDialect { problem: "no candidates" }),
    };
    Ok(Reply {
        id,
        model: take_text(&mut map, "modelVersion"),
        created_unix_s: None,
        parts,
        stop,
        usage: take_map(&mut map, "usageMetadata").map(|map| usage::read(&map)),
        logprobs: tokens,
    })
}

/// Whether Gemini refused the prompt.
pub(super) fn is_blocked(map: &Map<String, Value>) -> bool {
    let feedback = map.get("promptFeedback");
    feedback.is_some_and(|feedback| feedback.get("blockReason").is_some_and(Value::is_string))
}

/// The answer's id; without one, a mark of what it says.
pub(super) fn answer_id(map: &mut Map<String, Value>, body: &[u8]) -> String {
    let id = take_text(map, "responseId");
    if !id.is_empty() {
        return id;
    }
    // The same answer has the same id, and two answers of a conversation differ.
    format!("gemini-{:016x}", mark(body))
}

/// Reads one part of an answer. Parts that only Google's own tools make say nothing elsewhere.
pub(super) fn read_part(mut map: Map<String, Value>, ids: &mut CallIds, parts: &mut Vec<Part>) {
    let signature = take_text(&mut map, "thoughtSignature");
    let seal = signature::read(signature);
    if let Some(mut call) = take_map(&mut map, "functionCall") {
        let id = ids.id(take_text(&mut call, "id"));
        let name = take_text(&mut call, "name");
        let arguments = call.get("args").filter(|args| args.is_object());
        let arguments = arguments.map_or_else(|| "{}".to_owned(), Value::to_string);
        let call = ToolCall { id, name, arguments, seal, is_free_text: false };
        parts.push(Part::new(Content::ToolCall(call)));
        return;
    }
    let text = take_text(&mut map, "text");
    if map.get("thought") == Some(&Value::Bool(true)) {
        parts.push(Part::new(Content::Thinking { text, seal }));
        return;
    }
    if seal.is_some() {
        parts.push(Part::new(Content::Thinking { text: String::new(), seal }));
    }
    if !text.is_empty() {
        parts.push(Part::text(text));
    }
}

/// Reads a finish reason.
///
/// # Errors
/// The model could not make a call of a tool.
pub(super) fn stop_reason(word: &str, calls_tools: bool) -> Result<StopReason, ReplyFault> {
    Ok(match word {
        "MAX_TOKENS" => StopReason::Length,
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION" => StopReason::ContentFilter,
        "MALFORMED_FUNCTION_CALL"
        | "UNEXPECTED_TOOL_CALL"
        | "TOO_MANY_TOOL_CALLS"
        | "MALFORMED_RESPONSE" => {
            return Err(ReplyFault::NotTheDialect { problem: "a malformed tool call" });
        }
        _ if calls_tools => StopReason::ToolUse,
        _ => StopReason::EndOfTurn,
    })
}
