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

use super::reply_out::{hidden, message_id, signature_of, stop_words, write_usage};
use crate::convert::json_out::{append, number, string};
use crate::convert::part::Seal;
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
                self.delta("text", "text", &text, out);
            }
            StreamEvent::Thinking(text) => {
                self.open_thinking(out);
                self.delta("thinking", "thinking", &text, out);
            }
            StreamEvent::ThinkingSeal(seal) => self.seal(&seal, out),
            StreamEvent::ToolCallStart { id, name, seal, .. } => {
                self.close(out);
                if let Some(seal) = seal {
                    self.open(BlockKind::Text, || hidden(&seal), out);
                    self.close(out);
                }
                let block = json!({ "type": "tool_use", "id": id, "name": name, "input": {} });
                self.open(BlockKind::Call, || block, out);
            }
            StreamEvent::ToolCallDelta(more) => {
                self.delta("input_json", "partial_json", &more, out);
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

    /// `{"type": "KIND_delta", "KEY": TEXT}` of the open block.
    fn delta(&self, kind: &str, key: &str, text: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(b"event: content_block_delta\ndata: ");
        out.extend_from_slice(b"{\"type\":\"content_block_delta\",\"index\":");
        number(self.blocks.saturating_sub(1), out);
        for piece in [",\"delta\":{\"type\":\"", kind, "_delta\",\"", key, "\":"] {
            out.extend_from_slice(piece.as_bytes());
        }
        string(text, out);
        out.extend_from_slice(b"}}\n\n");
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        if self.block == Some(BlockKind::Thinking) {
            self.delta("signature", "signature", &signature_of(None), out);
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
        // Hidden thinking of which a part may be read is one block: the text, sealed by the rest.
        if seal.is_content && self.block != Some(BlockKind::Thinking) {
            self.close(out);
            self.open(BlockKind::Text, || hidden(seal), out);
        } else {
            self.open_thinking(out);
            let signature = signature_of(Some(seal));
            self.delta("signature", "signature", &signature, out);
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
    for piece in ["event: ", name, "\ndata: {\"type\":\"", name, "\""] {
        out.extend_from_slice(piece.as_bytes());
    }
    for (key, value) in fields.as_object().into_iter().flatten() {
        out.push(b',');
        string(key, out);
        out.push(b':');
        append(value, out);
    }
    out.extend_from_slice(b"}\n\n");
}
