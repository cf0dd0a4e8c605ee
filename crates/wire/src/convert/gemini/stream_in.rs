//! Reads the chunks of `streamGenerateContent`.
//!
//! Each chunk has the shape of a whole answer with the parts that are new. There is no last event:
//! the stream is whole if it ends after a finish reason. Some versions give a reason in every
//! chunk, so the reason is told only when the body has ended.

use serde_json::{Map, Value};

use super::reply_in::{answer_id, is_blocked, read_part, stop_reason};
use super::{error, logprobs, usage};
use crate::convert::fault::ReplyFault;
use crate::convert::fields::{take_list, take_map, take_text};
use crate::convert::ids::CallIds;
use crate::convert::part::{Content, Part};
use crate::convert::reply::StopReason;
use crate::convert::stream::{ReadStream, StreamEvent};
use crate::frame::Frame;

/// One stream.
#[derive(Debug, Default)]
pub struct GeminiStreamReader {
    /// Ids for calls without one; there once the stream has begun.
    ids: Option<CallIds>,
    stop: Option<StopReason>,
    calls_tools: bool,
    is_over: bool,
}

impl ReadStream for GeminiStreamReader {
    fn read(&mut self, frame: &Frame<'_>, events: &mut Vec<StreamEvent>) -> Result<(), ReplyFault> {
        if self.is_over {
            return Ok(());
        }
        let Some(data) = frame.data() else { return Ok(()) };
        if data.trim_ascii().is_empty() {
            return Ok(());
        }
        let value: Value = serde_json::from_slice(&data).map_err(|_| ReplyFault::NotJson)?;
        if value.get("error").is_some_and(|error| !error.is_null()) {
            self.is_over = true;
            events.push(StreamEvent::Error(error::read_error_event(&value)));
            return Ok(());
        }
        let Value::Object(map) = value else {
            return Err(ReplyFault::NotTheDialect { problem: "a chunk that is no object" });
        };
        self.chunk(map, &data, events)
    }

    fn finish(&mut self, events: &mut Vec<StreamEvent>) {
        if let (false, Some(stop)) = (self.is_over, self.stop.take()) {
            self.is_over = true;
            events.extend([StreamEvent::Stop(stop), StreamEvent::End]);
        }
    }
}

impl GeminiStreamReader {
    fn chunk(
        &mut self,
        mut map: Map<String, Value>,
        data: &[u8],
        events: &mut Vec<StreamEvent>,
    ) -> Result<(), ReplyFault> {
        // Counts come first, for clients whose dialect tells the input at the start.
        if let Some(counts) = take_map(&mut map, "usageMetadata") {
            events.push(StreamEvent::Usage(usage::read(&counts)));
        }
        if self.ids.is_none() {
            let id = answer_id(&mut map, data);
            self.ids = Some(CallIds::new(&id));
            let model = take_text(&mut map, "modelVersion");
            events.push(StreamEvent::Start { id, model, created_unix_s: None });
        }
        match take_list(&mut map, "candidates").into_iter().next() {
            Some(Value::Object(candidate)) => self.candidate(candidate, events)?,
            _ if is_blocked(&map) => self.stop = Some(StopReason::ContentFilter),
            _ => {}
        }
        Ok(())
    }

    fn candidate(
        &mut self,
        mut candidate: Map<String, Value>,
        events: &mut Vec<StreamEvent>,
    ) -> Result<(), ReplyFault> {
        let mut parts = Vec::new();
        let mut content = take_map(&mut candidate, "content").unwrap_or_default();
        if let Some(ids) = &mut self.ids {
            for value in take_list(&mut content, "parts") {
                if let Value::Object(part) = value {
                    read_part(part, ids, &mut parts);
                }
            }
        }
        for part in parts {
            self.part(part, events);
        }
        let tokens = logprobs::read(candidate.get("logprobsResult").unwrap_or(&Value::Null));
        if !tokens.is_empty() {
            events.push(StreamEvent::Logprobs(tokens));
        }
        let word = take_text(&mut candidate, "finishReason");
        if !word.is_empty() {
            self.stop = Some(stop_reason(&word, self.calls_tools)?);
        }
        Ok(())
    }

    fn part(&mut self, part: Part, events: &mut Vec<StreamEvent>) {
        match part.content {
            Content::Text(text) => events.push(StreamEvent::Text(text)),
            Content::Thinking { text, seal } => {
                if !text.is_empty() {
                    events.push(StreamEvent::Thinking(text));
                }
                events.extend(seal.map(StreamEvent::ThinkingSeal));
            }
            Content::ToolCall(call) => {
                self.calls_tools = true;
                events.push(StreamEvent::ToolCallStart {
                    id: call.id,
                    name: call.name,
                    seal: call.seal,
                    is_free_text: call.is_free_text,
                });
                events.push(StreamEvent::ToolCallDelta(call.arguments));
                events.push(StreamEvent::ToolCallEnd);
            }
            Content::Image { .. }
            | Content::Document { .. }
            | Content::Audio(_)
            | Content::ToolResult(_)
            | Content::Refusal(_) => {}
        }
    }
}
