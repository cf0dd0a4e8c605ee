//! Writes events of the form as the chunks of a Chat Completions stream.
//!
//! Order: a chunk with the role, chunks with content, one with the finish reason, one with the
//! usage if the client asked for it, `[DONE]`. An error is a chunk of its own without `[DONE]`.
//!
//! The chunk with the role waits for what comes next: before words its content is empty, before
//! anything else it is null, as OpenAI writes it. SDKs add the deltas up, and an answer of calls
//! alone must not end with a text.

use serde_json::{Value, json};

use super::reply_out::{finish_reason, sign, write_usage};
use crate::convert::context::ReplyContext;
use crate::convert::json_out::string;
use crate::convert::reply::TokenUsage;
use crate::convert::stream::{StreamEvent, WriteStream};
use crate::dialect::Dialect;

/// The state of one stream.
#[derive(Debug)]
pub struct ChatStreamWriter {
    context: ReplyContext,
    /// The fields that every chunk begins with, as JSON without its closing brace.
    head: String,
    /// How many calls have begun.
    calls: u64,
    is_free_text: bool,
    /// Whether the chunk with the role is still owed.
    owes_role: bool,
    /// Whether the call that is open has arguments.
    has_arguments: bool,
    has_refusal: bool,
    usage: Option<TokenUsage>,
    is_over: bool,
}

impl ChatStreamWriter {
    /// A stream that has not begun.
    #[must_use]
    pub const fn new(context: ReplyContext) -> Self {
        Self {
            context,
            head: String::new(),
            calls: 0,
            is_free_text: false,
            owes_role: false,
            has_arguments: false,
            has_refusal: false,
            usage: None,
            is_over: false,
        }
    }

    fn chunk(&self, delta: &Value, reason: Option<&str>, logprobs: &Value, out: &mut Vec<u8>) {
        let reason = reason.map_or(Value::Null, Value::from);
        let text = format!(
            "data: {},\"choices\":[{{\"index\":0,\"delta\":{delta},\"logprobs\":{logprobs},\
             \"finish_reason\":{reason}}}]}}\n\n",
            self.head
        );
        out.extend_from_slice(text.as_bytes());
    }

    fn delta(&self, delta: &Value, out: &mut Vec<u8>) {
        self.chunk(delta, None, &Value::Null, out);
    }

    /// A delta of one text, which most chunks are.
    fn text(&self, key: &str, text: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(self.head.as_bytes());
        out.extend_from_slice(b",\"choices\":[{\"index\":0,\"delta\":{\"");
        out.extend_from_slice(key.as_bytes());
        out.extend_from_slice(b"\":");
        string(text, out);
        out.extend_from_slice(b"},\"logprobs\":null,\"finish_reason\":null}]}\n\n");
    }

    /// Writes the chunk with the role before the first event that needs it.
    fn write_role(&mut self, next: &StreamEvent, out: &mut Vec<u8>) {
        let content = match next {
            StreamEvent::Text(_) | StreamEvent::Refusal(_) => json!(""),
            StreamEvent::Start { .. }
            | StreamEvent::Usage(_)
            | StreamEvent::ThinkingSeal(_)
            | StreamEvent::Error(_) => return,
            _ => Value::Null,
        };
        if std::mem::take(&mut self.owes_role) {
            self.delta(&json!({ "role": "assistant", "content": content }), out);
        }
    }

    fn call(&self, mut call: Value, out: &mut Vec<u8>) {
        call["index"] = json!(self.calls.saturating_sub(1));
        self.delta(&json!({ "tool_calls": [call] }), out);
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        if let Some(usage) = self.usage.filter(|_| self.context.includes_usage) {
            let usage = write_usage(usage);
            let text = format!("data: {},\"choices\":[],\"usage\":{usage}}}\n\n", self.head);
            out.extend_from_slice(text.as_bytes());
        }
        out.extend_from_slice(b"data: [DONE]\n\n");
        self.is_over = true;
    }
}

impl WriteStream for ChatStreamWriter {
    fn write(&mut self, event: StreamEvent, out: &mut Vec<u8>) {
        if self.is_over {
            return;
        }
        self.write_role(&event, out);
        match event {
            StreamEvent::Start { id, model, created_unix_s } => {
                let head = json!({
                    "id": id,
                    "object": "chat.completion.chunk",
                    "created": created_unix_s.unwrap_or(self.context.created_unix_s),
                    "model": model,
                });
                self.head = head.to_string();
                self.head.pop();
                self.owes_role = true;
            }
            StreamEvent::Text(text) => self.text("content", &text, out),
            StreamEvent::Refusal(text) => {
                self.has_refusal = true;
                self.text("refusal", &text, out);
            }
            StreamEvent::Thinking(text) => self.text("reasoning_content", &text, out),
            StreamEvent::ToolCallStart { id, name, is_free_text, seal } => {
                self.calls += 1;
                self.is_free_text = is_free_text;
                self.has_arguments = is_free_text;
                let mut call = if is_free_text {
                    json!({ "id": id, "type": "custom", "custom": { "name": name, "input": "" } })
                } else {
                    let function = json!({ "name": name, "arguments": "" });
                    json!({ "id": id, "type": "function", "function": function })
                };
                sign(&mut call, seal.as_ref());
                self.call(call, out);
            }
            StreamEvent::ToolCallDelta(more) if self.is_free_text => {
                self.call(json!({ "custom": { "input": more } }), out);
            }
            StreamEvent::ToolCallDelta(more) => {
                self.has_arguments = true;
                self.call(json!({ "function": { "arguments": more } }), out);
            }
            StreamEvent::Logprobs(tokens) => {
                let logprobs = json!({ "content": tokens, "refusal": null });
                self.chunk(&json!({}), None, &logprobs, out);
            }
            StreamEvent::Usage(usage) => self.usage.get_or_insert_default().update(usage),
            StreamEvent::Stop(reason) => {
                let reason = finish_reason(&reason.for_openai(self.has_refusal));
                self.chunk(&json!({}), Some(reason), &Value::Null, out);
            }
            StreamEvent::End => self.end(out),
            StreamEvent::Error(error) => {
                out.extend_from_slice(b"data: ");
                out.extend_from_slice(&error.to_body(Dialect::OpenAiChat));
                out.extend_from_slice(b"\n\n");
                self.is_over = true;
            }
            // Clients parse the arguments, so none at all are an empty object.
            StreamEvent::ToolCallEnd if !self.has_arguments => {
                self.call(json!({ "function": { "arguments": "{}" } }), out);
            }
            StreamEvent::ThinkingSeal(_) | StreamEvent::ToolCallEnd => {}
        }
    }
}
