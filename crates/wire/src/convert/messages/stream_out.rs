//! Writes events of the form as a Messages stream.
//!
//! Order: `message_start`, then per block `content_block_start`, its deltas and
//! `content_block_stop`, then `message_delta` with stop reason and usage, then `message_stop`.
//!
//! Rules:
//! - One block is open at a time; another kind of content closes it.
//! - The last two events wait for the end of the stream, because other dialects tell the usage
//!   only there.
//! - Thinking without a seal is marked as such, so that it is recognised when it returns.

use serde_json::{Value, json};

use super::reply_out::{message_id, signature_of, stop_words, write_usage};
use crate::convert::part::{Seal, Vendor};
use crate::convert::reply::{StopReason, TokenUsage};
use crate::convert::stream::{StreamEvent, WriteStream};
use crate::dialect::Dialect;

/// The state of one stream.
#[derive(Debug, Default)]
pub struct MessagesStreamWriter {
    block: Option<BlockKind>,
    /// How many blocks have begun.
    blocks: u64,
    usage: TokenUsage,
    stop: Option<StopReason>,
    is_over: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockKind {
    Text,
    Thinking,
    Call,
}

impl WriteStream for MessagesStreamWriter {
    fn write(&mut self, event: StreamEvent, out: &mut Vec<u8>) {
        if self.is_over {
            return;
        }
        match event {
            StreamEvent::Start { id, model, .. } => {
                let message = json!({
                    "id": message_id(&id),
                    "type": "message",
                    "role": "assistant",
                    "model": model,
                    "content": [],
                    "stop_reason": null,
                    "stop_sequence": null,
                    "usage": write_usage(self.usage),
                });
                send("message_start", &json!({ "message": message }), out);
            }
            StreamEvent::Text(text) | StreamEvent::Refusal(text) => {
                self.open(BlockKind::Text, || json!({ "type": "text", "text": "" }), out);
                self.delta(&json!({ "type": "text_delta", "text": text }), out);
            }
            StreamEvent::Thinking(text) => {
                self.open_thinking(out);
                self.delta(&json!({ "type": "thinking_delta", "thinking": text }), out);
            }
            StreamEvent::ThinkingSeal(seal) => self.seal(&seal, out),
            StreamEvent::ToolCallStart { id, name, .. } => {
                self.close(out);
                let block = json!({ "type": "tool_use", "id": id, "name": name, "input": {} });
                self.open(BlockKind::Call, || block, out);
            }
            StreamEvent::ToolCallDelta(more) => {
                self.delta(&json!({ "type": "input_json_delta", "partial_json": more }), out);
            }
            StreamEvent::ToolCallEnd => self.close(out),
            StreamEvent::Usage(usage) => self.usage.update(usage),
            StreamEvent::Stop(reason) => {
                self.close(out);
                self.stop = Some(reason);
            }
            StreamEvent::End => self.end(out),
            StreamEvent::Error(error) => {
                self.is_over = true;
                out.extend_from_slice(b"event: error\ndata: ");
                out.extend_from_slice(&error.to_body(Dialect::AnthropicMessages));
                out.extend_from_slice(b"\n\n");
            }
            StreamEvent::Logprobs(_) => {}
        }
    }
}

impl MessagesStreamWriter {
    fn open(&mut self, kind: BlockKind, block: impl FnOnce() -> Value, out: &mut Vec<u8>) {
        if self.block == Some(kind) {
            return;
        }
        self.close(out);
        self.block = Some(kind);
        let fields = json!({ "index": self.blocks, "content_block": block() });
        self.blocks += 1;
        send("content_block_start", &fields, out);
    }

    fn open_thinking(&mut self, out: &mut Vec<u8>) {
        let block = || json!({ "type": "thinking", "thinking": "", "signature": "" });
        self.open(BlockKind::Thinking, block, out);
    }

    fn delta(&self, delta: &Value, out: &mut Vec<u8>) {
        let fields = json!({ "index": self.blocks.saturating_sub(1), "delta": delta });
        send("content_block_delta", &fields, out);
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        if self.block == Some(BlockKind::Thinking) {
            self.delta(&json!({ "type": "signature_delta", "signature": signature_of(None) }), out);
        }
        self.close_block(out);
    }

    fn close_block(&mut self, out: &mut Vec<u8>) {
        if self.block.take().is_some() {
            let fields = json!({ "index": self.blocks.saturating_sub(1) });
            send("content_block_stop", &fields, out);
        }
    }

    fn seal(&mut self, seal: &Seal, out: &mut Vec<u8>) {
        if seal.is_content {
            self.close(out);
            let data = seal.in_dialect_of(Vendor::Anthropic);
            let block = json!({ "type": "redacted_thinking", "data": data });
            self.open(BlockKind::Text, || block, out);
        } else {
            self.open_thinking(out);
            let signature = signature_of(Some(seal));
            self.delta(&json!({ "type": "signature_delta", "signature": signature }), out);
        }
        self.close_block(out);
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.close(out);
        let stop = self.stop.take().unwrap_or(StopReason::EndOfTurn);
        let (reason, sequence) = stop_words(&stop);
        let fields = json!({
            "delta": { "stop_reason": reason, "stop_sequence": sequence },
            "usage": write_usage(self.usage),
        });
        send("message_delta", &fields, out);
        send("message_stop", &json!({}), out);
        self.is_over = true;
    }
}

/// One event: its name stands before it and in its data.
fn send(name: &str, fields: &Value, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("event: {name}\ndata: {{\"type\":\"{name}\"").as_bytes());
    let fields = fields.to_string();
    if fields.len() > 2 {
        out.push(b',');
    }
    out.extend_from_slice(&fields.as_bytes()[1..]);
    out.extend_from_slice(b"\n\n");
}
