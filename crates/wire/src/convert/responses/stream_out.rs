//! Writes the events of a Responses stream.
//!
//! Order: `response.created`, `response.in_progress`, then item by item `output_item.added`, its
//! parts and deltas, `output_item.done`, and at the end `response.completed` or
//! `response.incomplete` with the whole answer. Every event has its number.
//!
//! The answer is repeated at the end, so it is kept meanwhile, at most [`ANSWER_LIMIT`] of it;
//! a longer one ends with an error event.

use serde_json::{Value, json};

use super::item::{CallText, Envelope};
use super::stream_item::{ItemKind, OpenItem};
use crate::convert::api_error::{ApiError, ErrorType};
use crate::convert::context::ReplyContext;
use crate::convert::json_out::append;
use crate::convert::part::Seal;
use crate::convert::reply::{StopReason, TokenUsage};
use crate::convert::stream::{StreamEvent, WriteStream};

/// How much of an answer is kept for its repetition at the end: as much as one event may have.
pub const ANSWER_LIMIT: usize = 16 * 1024 * 1024;

/// What an item costs besides its text.
const ITEM_BYTES: usize = 512;

/// One stream.
#[derive(Debug)]
pub struct ResponsesStreamWriter {
    context: ReplyContext,
    envelope: Envelope,
    open: Option<OpenItem>,
    output: Vec<Value>,
    kept_bytes: usize,
    has_refusal: bool,
    stop: StopReason,
    usage: Option<TokenUsage>,
    sequence: u64,
    is_over: bool,
}

impl ResponsesStreamWriter {
    /// A stream that has not begun.
    #[must_use]
    pub fn new(context: ReplyContext) -> Self {
        Self {
            context,
            envelope: Envelope::default(),
            open: None,
            output: Vec::new(),
            kept_bytes: 0,
            has_refusal: false,
            stop: StopReason::EndOfTurn,
            usage: None,
            sequence: 0,
            is_over: false,
        }
    }
}

impl WriteStream for ResponsesStreamWriter {
    fn write(&mut self, event: StreamEvent, out: &mut Vec<u8>) {
        if self.is_over {
            return;
        }
        match event {
            StreamEvent::Start { id, model, created_unix_s } => {
                let created_unix_s = created_unix_s.unwrap_or(self.context.created_unix_s);
                self.envelope = Envelope { id, model, created_unix_s };
                let response = Value::Object(self.envelope.response("in_progress", Vec::new()));
                for name in ["response.created", "response.in_progress"] {
                    self.event(json!({"type": name, "response": response}), out);
                }
            }
            StreamEvent::Text(text) => {
                if !matches!(self.kind(), Some(ItemKind::Text { .. })) {
                    self.begin(ItemKind::Text { logprobs: Vec::new() }, "msg", out);
                }
                self.delta(&text, out);
            }
            StreamEvent::Refusal(text) => {
                self.has_refusal = true;
                if !matches!(self.kind(), Some(ItemKind::Refusal)) {
                    self.begin(ItemKind::Refusal, "msg", out);
                }
                self.delta(&text, out);
            }
            StreamEvent::Thinking(text) => {
                self.reasoning(out);
                self.delta(&text, out);
            }
            StreamEvent::ThinkingSeal(sealed) => self.seal(sealed, out),
            StreamEvent::ToolCallStart { id, name, is_free_text, seal } => {
                self.kept_bytes = self.kept_bytes.saturating_add(id.len() + name.len());
                if let Some(seal) = seal {
                    // The client returns it with the call, whose signature it is.
                    self.seal(seal, out);
                }
                let kind = ItemKind::Call { call_id: id, name, is_free_text };
                self.begin(kind, CallText::id_kind(is_free_text), out);
            }
            StreamEvent::ToolCallDelta(delta) => {
                if matches!(self.kind(), Some(ItemKind::Call { .. })) {
                    self.delta(&delta, out);
                }
            }
            StreamEvent::ToolCallEnd => self.close("completed", out),
            StreamEvent::Logprobs(tokens) => {
                if let Some(OpenItem { kind: ItemKind::Text { logprobs }, .. }) = &mut self.open {
                    let size: usize = tokens.iter().map(|token| token.to_string().len()).sum();
                    self.kept_bytes = self.kept_bytes.saturating_add(size);
                    logprobs.extend(tokens);
                }
            }
            StreamEvent::Usage(later) => self.usage.get_or_insert_default().update(later),
            StreamEvent::Stop(stop) => self.stop = stop.for_openai(self.has_refusal),
            StreamEvent::End => self.end(out),
            StreamEvent::Error(error) => self.error(&error, out),
        }
        if self.kept_bytes > ANSWER_LIMIT && !self.is_over {
            let error_type = ErrorType::Server;
            let message = "the answer is too long to be converted".to_owned();
            let status = error_type.usual_status();
            self.error(&ApiError { status, error_type, message, code: None, param: None }, out);
        }
    }
}

impl ResponsesStreamWriter {
    fn kind(&self) -> Option<&ItemKind> {
        self.open.as_ref().map(|item| &item.kind)
    }

    fn reasoning(&mut self, out: &mut Vec<u8>) {
        if !matches!(self.kind(), Some(ItemKind::Reasoning { .. })) {
            self.begin(ItemKind::Reasoning { seal: None }, "rs", out);
        }
    }

    /// Ends the open reasoning, or one without text, with its seal.
    fn seal(&mut self, sealed: Seal, out: &mut Vec<u8>) {
        self.reasoning(out);
        self.kept_bytes = self.kept_bytes.saturating_add(sealed.data.len());
        if let Some(OpenItem { kind: ItemKind::Reasoning { seal }, .. }) = &mut self.open {
            *seal = Some(sealed);
        }
        self.close("completed", out);
    }

    fn begin(&mut self, kind: ItemKind, prefix: &str, out: &mut Vec<u8>) {
        self.close("completed", out);
        self.kept_bytes = self.kept_bytes.saturating_add(ITEM_BYTES);
        let at = self.output.len();
        let item =
            OpenItem { id: self.envelope.item_id(prefix, at), at, kind, text: String::new() };
        for event in item.opening() {
            self.event(event, out);
        }
        self.open = Some(item);
    }

    fn delta(&mut self, delta: &str, out: &mut Vec<u8>) {
        self.kept_bytes = self.kept_bytes.saturating_add(delta.len());
        let Some(item) = &mut self.open else { return };
        if let Some(event) = item.add(delta) {
            self.event(event, out);
        }
        if let Some(item) = &self.open {
            item.write_delta(delta, self.sequence, out);
            self.sequence += 1;
        }
    }

    fn close(&mut self, status: &str, out: &mut Vec<u8>) {
        let Some(item) = self.open.take() else { return };
        let (events, whole) = item.closing(status);
        for event in events {
            self.event(event, out);
        }
        self.output.push(whole);
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        let is_cut = super::item::incomplete_reason(&self.stop).is_some();
        self.close(if is_cut { "incomplete" } else { "completed" }, out);
        let output = std::mem::take(&mut self.output);
        let response = self.envelope.ended(&self.stop, output, self.usage.as_ref());
        let name = if is_cut { "response.incomplete" } else { "response.completed" };
        self.event(json!({"type": name, "response": response}), out);
        self.is_over = true;
    }

    fn error(&mut self, error: &ApiError, out: &mut Vec<u8>) {
        let code = error.code.as_deref().unwrap_or(error.error_type.openai_word());
        // The SDKs raise an error that has the object under `error`.
        self.event(
            json!({"type": "error", "code": code, "message": error.message, "param": error.param,
                "error": {"type": error.error_type.openai_word(), "code": code,
                    "message": error.message, "param": error.param}}),
            out,
        );
        self.is_over = true;
    }

    fn event(&mut self, mut event: Value, out: &mut Vec<u8>) {
        event["sequence_number"] = self.sequence.into();
        self.sequence += 1;
        out.extend_from_slice(b"event: ");
        out.extend_from_slice(event["type"].as_str().unwrap_or("message").as_bytes());
        out.extend_from_slice(b"\ndata: ");
        append(&event, out);
        out.extend_from_slice(b"\n\n");
    }
}
