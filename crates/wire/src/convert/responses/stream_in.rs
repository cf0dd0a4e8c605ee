//! Reads the events of a Responses stream.
//!
//! Rules:
//! - What a `.done` event repeats is told only where no delta came before it.
//! - Items are told one after the other: while a call is open, what other items say is held back,
//!   within [`HELD_LIMIT`].
//! - The answer in the last event is told only where no event before it had content.

use std::collections::{BTreeSet, VecDeque};

use serde_json::{Map, Value};

use super::{reply_in, usage};
use crate::convert::api_error::{ApiError, ErrorType};
use crate::convert::fault::ReplyFault;
use crate::convert::fields::{take_map, take_text};
use crate::convert::part::{Content, Part};
use crate::convert::reply::StopReason;
use crate::convert::stream::{HELD_LIMIT, ReadStream, StreamEvent};
use crate::frame::Frame;

/// What an event costs by itself while it is held back.
const EVENT_BYTES: usize = 256;

/// The most items that may be under way at once.
const MAX_OPEN: usize = 256;

/// One stream.
#[derive(Debug, Default)]
pub struct ResponsesStreamReader {
    has_started: bool,
    is_over: bool,
    has_content: bool,
    calls_tools: bool,
    refuses: bool,
    /// The item whose call is open.
    open: Option<u64>,
    held: Vec<(u64, StreamEvent)>,
    held_bytes: usize,
    /// Items and parts of which a delta has come, until they are done.
    with_deltas: BTreeSet<(u64, u64)>,
    /// The item and the part of reasoning that was told last.
    last_summary: Option<(u64, u64)>,
    /// The items whose text was told, until they are done.
    with_text: BTreeSet<u64>,
}

impl ReadStream for ResponsesStreamReader {
    fn read(&mut self, frame: &Frame<'_>, events: &mut Vec<StreamEvent>) -> Result<(), ReplyFault> {
        if self.is_over {
            return Ok(());
        }
        let Some(data) = frame.data() else { return Ok(()) };
        let said = data.trim_ascii();
        if said.is_empty() || said == b"[DONE]" {
            return Ok(());
        }
        let value: Value = serde_json::from_slice(&data).map_err(|_| ReplyFault::NotJson)?;
        let Value::Object(mut map) = value else {
            return Err(ReplyFault::NotTheDialect { problem: "an event that is no object" });
        };
        let kind = take_text(&mut map, "type");
        let result = self.event(&kind, map, events);
        let is_wide = self.with_deltas.len() > MAX_OPEN || self.with_text.len() > MAX_OPEN;
        if self.held_bytes > HELD_LIMIT || is_wide {
            return Err(ReplyFault::TooLong);
        }
        result
    }

    fn finish(&mut self, _events: &mut Vec<StreamEvent>) {}
}

impl ResponsesStreamReader {
    fn event(
        &mut self,
        kind: &str,
        mut map: Map<String, Value>,
        events: &mut Vec<StreamEvent>,
    ) -> Result<(), ReplyFault> {
        let number = |key: &str| map.get(key).and_then(Value::as_u64).unwrap_or_default();
        let item = number("output_index");
        let part = number("content_index");
        match kind {
            "response.created" | "response.in_progress" => {
                self.start(take_map(&mut map, "response").unwrap_or_default(), events);
            }
            "response.output_item.added" => self.item_added(item, &mut map, events),
            "response.output_item.done" => self.item_done(item, &mut map, events),
            "response.output_text.delta" | "response.refusal.delta" => {
                self.with_deltas.insert((item, part));
                let text = take_text(&mut map, "delta");
                self.text(kind.contains("refusal"), item, text, events);
            }
            "response.output_text.done" | "response.refusal.done" => {
                let is_refusal = kind.contains("refusal");
                let text = take_text(&mut map, if is_refusal { "refusal" } else { "text" });
                if !self.with_deltas.remove(&(item, part)) {
                    self.text(is_refusal, item, text, events);
                }
                if let Some(Value::Array(tokens)) = map.remove("logprobs")
                    && !tokens.is_empty()
                {
                    self.tell(item, StreamEvent::Logprobs(tokens), events);
                }
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                let part = number("summary_index").max(part);
                let mut text = take_text(&mut map, "delta");
                if self.last_summary.is_some_and(|(of, at)| of == item && at != part) {
                    text.insert_str(0, "\n\n");
                }
                self.last_summary = Some((item, part));
                if !text.is_empty() {
                    self.tell(item, StreamEvent::Thinking(text), events);
                }
            }
            "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
                let delta = take_text(&mut map, "delta");
                if !delta.is_empty() {
                    self.with_deltas.insert((item, 0));
                    self.tell(item, StreamEvent::ToolCallDelta(delta), events);
                }
            }
            "response.completed" | "response.incomplete" => {
                return self.end(take_map(&mut map, "response").unwrap_or_default(), events);
            }
            "response.failed" | "response.cancelled" | "error" => {
                self.is_over = true;
                events.push(StreamEvent::Error(error_of(map)));
            }
            _ => {}
        }
        Ok(())
    }

    fn start(&mut self, mut response: Map<String, Value>, events: &mut Vec<StreamEvent>) {
        if self.has_started {
            return;
        }
        self.has_started = true;
        events.push(StreamEvent::Start {
            id: take_text(&mut response, "id"),
            model: take_text(&mut response, "model"),
            created_unix_s: response.get("created_at").and_then(Value::as_f64).map(|at| at as u64),
        });
    }

    fn item_added(
        &mut self,
        item: u64,
        map: &mut Map<String, Value>,
        events: &mut Vec<StreamEvent>,
    ) {
        let mut added = take_map(map, "item").unwrap_or_default();
        let kind = take_text(&mut added, "type");
        if !matches!(&*kind, "function_call" | "custom_tool_call") {
            return;
        }
        let start = StreamEvent::ToolCallStart {
            id: take_text(&mut added, "call_id"),
            name: take_text(&mut added, "name"),
            seal: None,
            is_free_text: kind == "custom_tool_call",
        };
        self.calls_tools = true;
        self.tell(item, start, events);
    }

    fn item_done(
        &mut self,
        item: u64,
        map: &mut Map<String, Value>,
        events: &mut Vec<StreamEvent>,
    ) {
        let mut done = take_map(map, "item").unwrap_or_default();
        match &*take_text(&mut done, "type") {
            kind @ ("function_call" | "custom_tool_call") => {
                let key = if kind == "function_call" { "arguments" } else { "input" };
                let text = take_text(&mut done, key);
                if !self.with_deltas.remove(&(item, 0)) && !text.is_empty() {
                    self.tell(item, StreamEvent::ToolCallDelta(text), events);
                }
                self.tell(item, StreamEvent::ToolCallEnd, events);
            }
            // An item that came without deltas is told as a whole.
            "message" if !self.with_text.remove(&item) => {
                self.whole_message(item, done, events);
                self.with_text.remove(&item);
            }
            "reasoning" => {
                if self.last_summary.is_none_or(|(of, _)| of != item) {
                    let text = reply_in::thinking_text(&mut done);
                    if !text.is_empty() {
                        self.tell(item, StreamEvent::Thinking(text), events);
                    }
                }
                if let Some(seal) = reply_in::seal_of(&mut done) {
                    self.tell(item, StreamEvent::ThinkingSeal(seal), events);
                }
            }
            _ => {}
        }
    }

    fn whole_message(
        &mut self,
        item: u64,
        mut done: Map<String, Value>,
        events: &mut Vec<StreamEvent>,
    ) {
        let mut parts = Vec::new();
        done.insert("type".to_owned(), "message".into());
        reply_in::read_item(done, &mut parts, &mut Vec::new());
        for part in parts {
            match part.content {
                Content::Text(text) => self.text(false, item, text, events),
                Content::Refusal(text) => self.text(true, item, text, events),
                _ => {}
            }
        }
    }

    fn text(&mut self, is_refusal: bool, item: u64, text: String, events: &mut Vec<StreamEvent>) {
        if text.is_empty() {
            return;
        }
        self.refuses |= is_refusal;
        self.with_text.insert(item);
        let event = if is_refusal { StreamEvent::Refusal(text) } else { StreamEvent::Text(text) };
        self.tell(item, event, events);
    }

    /// Tells what an item says, or holds it back while the call of another is open.
    fn tell(&mut self, item: u64, event: StreamEvent, events: &mut Vec<StreamEvent>) {
        self.has_content = true;
        if !self.has_started {
            self.start(Map::new(), events);
        }
        if !self.tell_one(item, event, events) {
            return;
        }
        // A loop, because calls may lie in each other as deep as the limit allows.
        let mut waiting = VecDeque::from(self.take_held());
        while let Some((item, event)) = waiting.pop_front() {
            if self.tell_one(item, event, events) {
                for held in self.take_held().into_iter().rev() {
                    waiting.push_front(held);
                }
            }
        }
    }

    fn take_held(&mut self) -> Vec<(u64, StreamEvent)> {
        self.held_bytes = 0;
        std::mem::take(&mut self.held)
    }

    /// Whether a call ended with it, so that what was held back can be told.
    fn tell_one(&mut self, item: u64, event: StreamEvent, events: &mut Vec<StreamEvent>) -> bool {
        if self.open.is_some_and(|open| open != item) {
            self.held_bytes = self.held_bytes.saturating_add(size_of(&event));
            self.held.push((item, event));
            return false;
        }
        match event {
            StreamEvent::ToolCallStart { .. } if self.open.is_some() => {}
            StreamEvent::ToolCallStart { .. } => {
                self.open = Some(item);
                events.push(event);
            }
            StreamEvent::ToolCallDelta(_) | StreamEvent::ToolCallEnd if self.open.is_none() => {}
            StreamEvent::ToolCallEnd => {
                self.open = None;
                events.push(event);
                return true;
            }
            event => events.push(event),
        }
        false
    }

    fn end(
        &mut self,
        mut response: Map<String, Value>,
        events: &mut Vec<StreamEvent>,
    ) -> Result<(), ReplyFault> {
        self.is_over = true;
        while let Some(item) = self.open {
            self.tell(item, StreamEvent::ToolCallEnd, events);
        }
        let counts = response.get("usage").and_then(Value::as_object).map(usage::read);
        let is_incomplete = response.get("status").is_some_and(|status| status == "incomplete");
        let details = take_map(&mut response, "incomplete_details").unwrap_or_default();
        let mut stop = if self.calls_tools {
            StopReason::ToolUse
        } else if self.refuses {
            StopReason::Refusal
        } else {
            StopReason::EndOfTurn
        };
        if !self.has_content {
            self.start(response.clone(), events);
            let reply = reply_in::read_object(response)?;
            stop = reply.stop;
            for part in reply.parts {
                whole_part(part, events);
            }
        }
        if is_incomplete {
            stop = reply_in::reason_of(&details);
        }
        events.extend(counts.map(StreamEvent::Usage));
        events.extend([StreamEvent::Stop(stop), StreamEvent::End]);
        Ok(())
    }
}

/// Tells a part that came whole.
fn whole_part(part: Part, events: &mut Vec<StreamEvent>) {
    match part.content {
        Content::Text(text) if !text.is_empty() => events.push(StreamEvent::Text(text)),
        Content::Refusal(text) if !text.is_empty() => events.push(StreamEvent::Refusal(text)),
        Content::Thinking { text, seal } => {
            if !text.is_empty() {
                events.push(StreamEvent::Thinking(text));
            }
            events.extend(seal.map(StreamEvent::ThinkingSeal));
        }
        Content::ToolCall(call) => {
            let (seal, is_free_text) = (call.seal, call.is_free_text);
            let start =
                StreamEvent::ToolCallStart { id: call.id, name: call.name, seal, is_free_text };
            events.push(start);
            if !call.arguments.is_empty() {
                events.push(StreamEvent::ToolCallDelta(call.arguments));
            }
            events.push(StreamEvent::ToolCallEnd);
        }
        _ => {}
    }
}

fn size_of(event: &StreamEvent) -> usize {
    match event {
        StreamEvent::Text(text)
        | StreamEvent::Refusal(text)
        | StreamEvent::Thinking(text)
        | StreamEvent::ToolCallDelta(text) => EVENT_BYTES + text.len(),
        StreamEvent::ThinkingSeal(seal) => EVENT_BYTES + seal.data.len(),
        StreamEvent::ToolCallStart { id, name, .. } => EVENT_BYTES + id.len() + name.len(),
        StreamEvent::Logprobs(tokens) => EVENT_BYTES * (1 + tokens.len()),
        _ => EVENT_BYTES,
    }
}

/// The error of `error`, or of a response that failed.
fn error_of(mut map: Map<String, Value>) -> ApiError {
    let response = take_map(&mut map, "response").unwrap_or_default();
    let inner = response.get("error").or(map.get("error")).filter(|error| error.is_object());
    let mut error = inner.and_then(Value::as_object).cloned().unwrap_or(map);
    let code = take_text(&mut error, "code");
    let word = take_text(&mut error, "type");
    let error_type = match &*code {
        "rate_limit_exceeded" => ErrorType::RateLimit,
        "invalid_prompt" | "context_length_exceeded" => ErrorType::InvalidRequest,
        "insufficient_quota" => ErrorType::Billing,
        _ => ErrorType::of_word(&word).unwrap_or(ErrorType::Server),
    };
    let message = take_text(&mut error, "message");
    let param = take_text(&mut error, "param");
    ApiError {
        status: error_type.usual_status(),
        error_type,
        message: if message.is_empty() { "the upstream failed".to_owned() } else { message },
        code: (!code.is_empty()).then_some(code),
        param: (!param.is_empty()).then_some(param),
    }
}
