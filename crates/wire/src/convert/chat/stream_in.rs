//! Reads the chunks of a Chat Completions stream into events of the form.
//!
//! Rules:
//! - `[DONE]` ends the stream. A body that ends cleanly after the finish reason is whole too.
//! - Usage comes in a chunk of its own after the finish reason, so the end waits for `[DONE]`.
//! - Only the first choice is read: more are never asked for.

use serde_json::{Map, Value};

use super::reply_in::{ContentPiece, find_usage, read_content, read_thinking, stop_reason};
use super::tool_calls::CallSequence;
use crate::convert::api_error::ApiError;
use crate::convert::fault::ReplyFault;
use crate::convert::fields::{reply_object, take_list, take_map, take_text};
use crate::convert::reply::StopReason;
use crate::convert::stream::{ReadStream, StreamEvent};
use crate::frame::Frame;

/// The state of one stream.
#[derive(Debug, Default)]
pub struct ChatStreamReader {
    calls: CallSequence,
    is_started: bool,
    has_refusal: bool,
    is_stopped: bool,
    is_over: bool,
}

impl ReadStream for ChatStreamReader {
    fn read(&mut self, frame: &Frame<'_>, events: &mut Vec<StreamEvent>) -> Result<(), ReplyFault> {
        let Some(data) = frame.data() else { return Ok(()) };
        if self.is_over || data.trim_ascii().is_empty() {
            return Ok(());
        }
        if data.trim_ascii() == b"[DONE]" {
            self.stop(StopReason::EndOfTurn, events);
            self.end(events);
            return Ok(());
        }
        let mut chunk = reply_object(&data)?;
        if frame.name == Some(b"error".as_slice()) || chunk.get("error").is_some_and(is_set) {
            self.is_over = true;
            events.push(StreamEvent::Error(ApiError::of_event(&data)));
            return Ok(());
        }
        let first = take_list(&mut chunk, "choices").into_iter().next();
        self.start(&mut chunk, first.is_some(), events);
        if let Some(usage) = find_usage(&chunk) {
            events.push(StreamEvent::Usage(usage));
        }
        match first {
            Some(Value::Object(choice)) if !self.is_stopped => self.read_choice(choice, events),
            _ => Ok(()),
        }
    }

    fn finish(&mut self, events: &mut Vec<StreamEvent>) {
        if self.is_stopped {
            self.end(events);
        }
    }
}

impl ChatStreamReader {
    /// Azure's first chunk has neither id nor choices; the answer begins with the one after it.
    fn start(
        &mut self,
        chunk: &mut Map<String, Value>,
        has_choice: bool,
        events: &mut Vec<StreamEvent>,
    ) {
        let id = take_text(chunk, "id");
        if self.is_started || (id.is_empty() && !has_choice) {
            return;
        }
        self.is_started = true;
        self.calls.begin(&id);
        events.push(StreamEvent::Start {
            id,
            model: take_text(chunk, "model"),
            created_unix_s: chunk.get("created").and_then(Value::as_u64),
        });
    }

    fn read_choice(
        &mut self,
        mut choice: Map<String, Value>,
        events: &mut Vec<StreamEvent>,
    ) -> Result<(), ReplyFault> {
        if let Some(mut delta) = take_map(&mut choice, "delta") {
            self.read_delta(&mut delta, events)?;
        }
        if let Some(mut logprobs) = take_map(&mut choice, "logprobs") {
            let tokens = take_list(&mut logprobs, "content");
            if !tokens.is_empty() {
                events.push(StreamEvent::Logprobs(tokens));
            }
        }
        let reason = take_text(&mut choice, "finish_reason");
        if !reason.is_empty() {
            self.stop(stop_reason(&reason), events);
        }
        Ok(())
    }

    fn read_delta(
        &mut self,
        delta: &mut Map<String, Value>,
        events: &mut Vec<StreamEvent>,
    ) -> Result<(), ReplyFault> {
        let mut add = |text: String, event: fn(String) -> StreamEvent| {
            let is_there = !text.is_empty();
            if is_there {
                events.push(event(text));
            }
            is_there
        };
        add(read_thinking(delta), StreamEvent::Thinking);
        for piece in read_content(delta) {
            match piece {
                ContentPiece::Thinking(text) => add(text, StreamEvent::Thinking),
                ContentPiece::Text(text) => add(text, StreamEvent::Text),
            };
        }
        self.has_refusal |= add(take_text(delta, "refusal"), StreamEvent::Refusal);
        for call in take_list(delta, "tool_calls") {
            self.calls.read(call, events)?;
        }
        Ok(())
    }

    /// The model stopped; what it did says more than the reason, which some servers get wrong.
    fn stop(&mut self, reason: StopReason, events: &mut Vec<StreamEvent>) {
        if std::mem::replace(&mut self.is_stopped, true) {
            return;
        }
        self.calls.end_all(events);
        let reason = match reason {
            StopReason::EndOfTurn if self.calls.has_begun() => StopReason::ToolUse,
            StopReason::EndOfTurn if self.has_refusal => StopReason::Refusal,
            reason => reason,
        };
        events.push(StreamEvent::Stop(reason));
    }

    fn end(&mut self, events: &mut Vec<StreamEvent>) {
        if !std::mem::replace(&mut self.is_over, true) {
            events.push(StreamEvent::End);
        }
    }
}

fn is_set(value: &Value) -> bool {
    !value.is_null()
}
