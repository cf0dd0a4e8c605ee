//! Writes a whole answer of the Responses API.

use serde_json::Value;

use super::item::{self, CallText, Envelope};
use crate::convert::context::ReplyContext;
use crate::convert::json_out::bytes;
use crate::convert::part::{Content, ToolCall};
use crate::convert::reply::Reply;

/// Writes the body.
#[must_use]
pub fn write_reply(reply: &Reply, context: &ReplyContext) -> Vec<u8> {
    let stop = reply.stop.for_openai(reply.has_refusal_words());
    let envelope = Envelope {
        id: reply.id.clone(),
        model: reply.model.clone(),
        created_unix_s: reply.created_unix_s.unwrap_or(context.created_unix_s),
    };
    let mut output: Vec<Value> = Vec::new();
    let mut logprobs = reply.logprobs.as_slice();
    let last = reply.parts.len().saturating_sub(1);
    for (at, part) in reply.parts.iter().enumerate() {
        let is_cut = at == last && item::incomplete_reason(&stop).is_some();
        let status = if is_cut { "incomplete" } else { "completed" };
        if let Content::ToolCall(ToolCall { seal: Some(seal), .. }) = &part.content {
            let id = envelope.item_id("rs", output.len());
            output.push(item::reasoning(&id, "", Some(seal)));
        }
        let place = output.len();
        match &part.content {
            Content::Text(text) => {
                let content = item::text_part(text, std::mem::take(&mut logprobs));
                let id = envelope.item_id("msg", place);
                output.push(item::message(&id, status, &[content]));
            }
            Content::Refusal(text) => {
                let id = envelope.item_id("msg", place);
                output.push(item::message(&id, status, &[item::refusal_part(text)]));
            }
            Content::Thinking { text, seal } => {
                let id = envelope.item_id("rs", place);
                output.push(item::reasoning(&id, text, seal.as_ref()));
            }
            Content::ToolCall(call) => {
                let text = CallText {
                    call_id: &call.id,
                    name: &call.name,
                    text: &call.arguments,
                    is_free_text: call.is_free_text,
                };
                let id = envelope.item_id(CallText::id_kind(text.is_free_text), place);
                output.push(item::call(&id, status, &text));
            }
            Content::Image { .. }
            | Content::Document { .. }
            | Content::Audio(_)
            | Content::ToolResult(_) => {}
        }
    }
    let map = envelope.ended(&stop, output, reply.usage.as_ref());
    bytes(&Value::Object(map))
}
