//! Writes the chunks of `streamGenerateContent`.
//!
//! Rules:
//! - Gemini's calls come whole, so the arguments of a call are held back until it is complete,
//!   within [`HELD_LIMIT`]; a call that is longer or cannot be read ends the answer with
//!   `MALFORMED_FUNCTION_CALL`.
//! - Finish reason and usage stand in the last chunk, which is written at the end.

use serde_json::{Value, json};

use super::reply_out::{MALFORMED_CALL, call_part, finish_reason};
use super::{error, logprobs, signature, usage};
use crate::convert::json_out::{append, string};
use crate::convert::part::ToolCall;
use crate::convert::reply::TokenUsage;
use crate::convert::stream::{HELD_LIMIT, StreamEvent, WriteStream};

/// One stream.
#[derive(Debug, Default)]
pub struct GeminiStreamWriter {
    id: String,
    model: String,
    call: Option<ToolCall>,
    has_called: bool,
    /// The words of a refusal.
    refusal: String,
    is_malformed: bool,
    reason: Option<&'static str>,
    usage: Option<TokenUsage>,
    is_over: bool,
}

impl WriteStream for GeminiStreamWriter {
    fn write(&mut self, event: StreamEvent, out: &mut Vec<u8>) {
        if self.is_over {
            return;
        }
        match event {
            StreamEvent::Start { id, model, .. } => (self.id, self.model) = (id, model),
            StreamEvent::Text(text) => self.text(&text, b"}", out),
            StreamEvent::Thinking(text) => self.text(&text, b",\"thought\":true}", out),
            StreamEvent::ThinkingSeal(seal) => {
                let signature = signature::written(&seal);
                let part = json!({"text": "", "thought": true, "thoughtSignature": signature});
                self.part(&part, out);
            }
            StreamEvent::Refusal(text) => {
                if self.refusal.len() + text.len() <= HELD_LIMIT {
                    self.refusal.push_str(&text);
                }
            }
            StreamEvent::ToolCallStart { id, name, seal, is_free_text } => {
                let arguments = String::new();
                self.call = Some(ToolCall { id, name, arguments, seal, is_free_text });
            }
            StreamEvent::ToolCallDelta(delta) => self.delta(&delta),
            StreamEvent::ToolCallEnd => {
                let call = self.call.take();
                match call.and_then(|call| call_part(&call, &mut self.has_called)) {
                    Some(part) => self.part(&part, out),
                    None => self.is_malformed = true,
                }
            }
            StreamEvent::Logprobs(tokens) => {
                let candidate = json!({"index": 0, "logprobsResult": logprobs::written(&tokens)});
                self.chunk(&candidate, out);
            }
            StreamEvent::Usage(later) => self.usage.get_or_insert_default().update(later),
            StreamEvent::Stop(stop) => self.reason = Some(finish_reason(&stop)),
            StreamEvent::End => self.end(out),
            StreamEvent::Error(error) => {
                self.is_over = true;
                data(&error::write_error(&error), out);
            }
        }
    }
}

impl GeminiStreamWriter {
    fn delta(&mut self, delta: &str) {
        let Some(call) = &mut self.call else { return };
        if call.arguments.len() + delta.len() > HELD_LIMIT {
            self.call = None;
            self.is_malformed = true;
        } else {
            call.arguments.push_str(delta);
        }
    }

    /// A part of text, which most chunks are.
    fn text(&self, text: &str, end: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(b"data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":");
        string(text, out);
        out.extend_from_slice(end);
        out.extend_from_slice(b"],\"role\":\"model\"},\"index\":0}]");
        self.close_chunk(out);
    }

    fn part(&self, part: &Value, out: &mut Vec<u8>) {
        self.chunk(&json!({"content": {"parts": [part], "role": "model"}, "index": 0}), out);
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        let reason = if self.is_malformed { MALFORMED_CALL } else { self.reason.unwrap_or("STOP") };
        let mut candidate = json!({
            "content": {"parts": [{"text": ""}], "role": "model"},
            "finishReason": reason, "index": 0,
        });
        if !self.refusal.is_empty() {
            candidate["finishMessage"] = std::mem::take(&mut self.refusal).into();
        }
        self.chunk(&candidate, out);
        self.is_over = true;
    }

    fn chunk(&self, candidate: &Value, out: &mut Vec<u8>) {
        out.extend_from_slice(b"data: {\"candidates\":[");
        append(candidate, out);
        out.push(b']');
        self.close_chunk(out);
    }

    /// What every chunk says after its candidates.
    fn close_chunk(&self, out: &mut Vec<u8>) {
        if let Some(usage) = &self.usage {
            out.extend_from_slice(b",\"usageMetadata\":");
            append(&usage::written(usage), out);
        }
        out.extend_from_slice(b",\"modelVersion\":");
        string(&self.model, out);
        out.extend_from_slice(b",\"responseId\":");
        string(&self.id, out);
        out.extend_from_slice(b"}\n\n");
    }
}

fn data(json: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"data: ");
    out.extend_from_slice(json);
    out.extend_from_slice(b"\n\n");
}
