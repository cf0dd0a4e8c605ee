//! Reads a whole Messages answer into the form.

use serde_json::{Map, Value};

use crate::convert::fault::ReplyFault;
use crate::convert::fields::{count_of, reply_object, take_list, take_text};
use crate::convert::part::{Content, Part, Seal, ToolCall, Vendor};
use crate::convert::reply::{Reply, StopReason, TokenUsage};

/// Reads an answer.
///
/// # Errors
/// It is no answer of this dialect.
pub fn read_reply(body: &[u8]) -> Result<Reply, ReplyFault> {
    let mut answer = reply_object(body)?;
    if !answer.get("content").is_some_and(Value::is_array) {
        return Err(ReplyFault::NotTheDialect { problem: "no content" });
    }
    let blocks = take_list(&mut answer, "content");
    let parts = blocks.into_iter().filter_map(read_block).map(Part::new).collect();
    let sequence = take_text(&mut answer, "stop_sequence");
    Ok(Reply {
        id: take_text(&mut answer, "id"),
        model: take_text(&mut answer, "model"),
        created_unix_s: None,
        parts,
        stop: stop_reason(&take_text(&mut answer, "stop_reason"), sequence),
        usage: answer.get("usage").and_then(Value::as_object).map(read_usage),
        logprobs: Vec::new(),
    })
}

/// One block; those of tools that the provider runs itself say nothing in another dialect.
fn read_block(block: Value) -> Option<Content> {
    let Value::Object(mut block) = block else { return None };
    Some(match take_text(&mut block, "type").as_str() {
        "text" => Content::Text(take_text(&mut block, "text")),
        "thinking" => {
            let seal =
                Seal::read_field(Vendor::Anthropic, take_text(&mut block, "signature"), false);
            Content::Thinking { text: take_text(&mut block, "thinking"), seal }
        }
        "redacted_thinking" => {
            let seal = Seal::read_field(Vendor::Anthropic, take_text(&mut block, "data"), true);
            Content::Thinking { text: String::new(), seal }
        }
        "tool_use" => Content::ToolCall(ToolCall {
            id: take_text(&mut block, "id"),
            name: take_text(&mut block, "name"),
            arguments: block.get("input").map(Value::to_string).unwrap_or_default(),
            seal: None,
            is_free_text: false,
        }),
        _ => return None,
    })
}

/// What a `stop_reason` means.
pub(super) fn stop_reason(word: &str, sequence: String) -> StopReason {
    match word {
        "max_tokens" => StopReason::Length,
        "model_context_window_exceeded" => StopReason::ContextFull,
        "tool_use" => StopReason::ToolUse,
        "stop_sequence" => StopReason::StopSequence(Some(sequence).filter(|it| !it.is_empty())),
        "refusal" => StopReason::Refusal,
        "pause_turn" => StopReason::Pause,
        _ => StopReason::EndOfTurn,
    }
}

/// What `usage` tells. Tokens of the cache are counted apart there.
pub(super) fn read_usage(usage: &Map<String, Value>) -> TokenUsage {
    let cached = count_of(usage, "cache_read_input_tokens");
    let cache_written = count_of(usage, "cache_creation_input_tokens");
    let fresh = count_of(usage, "input_tokens");
    let details = usage.get("output_tokens_details").and_then(Value::as_object);
    TokenUsage {
        input: fresh.saturating_add(cached).saturating_add(cache_written),
        cached,
        cache_written,
        output: count_of(usage, "output_tokens"),
        reasoning: details.map_or(0, |details| count_of(details, "thinking_tokens")),
    }
}
