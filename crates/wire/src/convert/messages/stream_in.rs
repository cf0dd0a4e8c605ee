//! Reads the events of a Messages stream into events of the form.

use serde_json::{Map, Value};

use super::reply_in::{read_usage, stop_reason};
use crate::convert::api_error::ApiError;
use crate::convert::fault::ReplyFault;
use crate::convert::fields::{reply_object, take_map, take_text};
use crate::convert::part::{Seal, Vendor};
use crate::convert::reply::StopReason;
use crate::convert::stream::{ReadStream, StreamEvent};
use crate::frame::Frame;

/// The state of one stream.
#[derive(Debug, Default)]
pub struct MessagesStreamReader {
    block: OpenBlock,
    /// Why it stopped. It is told with `message_stop` only: a stream that ends before that broke,
    /// and to clients of some dialects a stop alone would be its end.
    stop: Option<StopReason>,
    is_over: bool,
}

/// The block that is open; the dialect has one at a time.
#[derive(Debug, Default)]
enum OpenBlock {
    #[default]
    None,
    /// Text, thinking, or a block that says nothing in another dialect.
    Other,
    /// A call, with the input that its start had. Servers that do not stream arguments put them
    /// there; where deltas come it is an empty object.
    Call(Option<String>),
}

impl ReadStream for MessagesStreamReader {
    fn read(&mut self, frame: &Frame<'_>, events: &mut Vec<StreamEvent>) -> Result<(), ReplyFault> {
        let Some(data) = frame.data() else { return Ok(()) };
        if self.is_over || data.trim_ascii().is_empty() {
            return Ok(());
        }
        let mut event = reply_object(&data)?;
        match take_text(&mut event, "type").as_str() {
            // Content after the stop belongs to no answer.
            kind if self.stop.is_some() && kind.starts_with("content_block") => {}
            "message_start" => {
                let mut message = take_map(&mut event, "message").unwrap_or_default();
                events.push(StreamEvent::Start {
                    id: take_text(&mut message, "id"),
                    model: take_text(&mut message, "model"),
                    created_unix_s: None,
                });
                see_usage(&message, events);
            }
            "content_block_start" => {
                if let Some(block) = take_map(&mut event, "content_block") {
                    self.start_block(block, events);
                }
            }
            "content_block_delta" => {
                if let Some(delta) = take_map(&mut event, "delta") {
                    self.read_delta(delta, events);
                }
            }
            "content_block_stop" => self.end_block(events),
            "message_delta" => {
                see_usage(&event, events);
                let mut delta = take_map(&mut event, "delta").unwrap_or_default();
                let reason = take_text(&mut delta, "stop_reason");
                if !reason.is_empty() {
                    self.end_block(events);
                    let sequence = take_text(&mut delta, "stop_sequence");
                    self.stop = Some(stop_reason(&reason, sequence));
                }
            }
            "message_stop" => {
                self.is_over = true;
                events.extend(self.stop.take().map(StreamEvent::Stop));
                events.push(StreamEvent::End);
            }
            "error" => {
                self.is_over = true;
                events.push(StreamEvent::Error(ApiError::of_event(&data)));
            }
            _ if event.get("error").is_some_and(Value::is_object) => {
                self.is_over = true;
                events.push(StreamEvent::Error(ApiError::of_event(&data)));
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(&mut self, _events: &mut Vec<StreamEvent>) {}
}

impl MessagesStreamReader {
    fn start_block(&mut self, mut block: Map<String, Value>, events: &mut Vec<StreamEvent>) {
        self.end_block(events);
        self.block = OpenBlock::Other;
        match take_text(&mut block, "type").as_str() {
            "tool_use" => {
                events.push(StreamEvent::ToolCallStart {
                    id: take_text(&mut block, "id"),
                    name: take_text(&mut block, "name"),
                    seal: None,
                    is_free_text: false,
                });
                let input = block.get("input").and_then(Value::as_object);
                let input = input.filter(|input| !input.is_empty());
                let text = input.and_then(|input| serde_json::to_string(input).ok());
                self.block = OpenBlock::Call(text);
            }
            "text" => push(take_text(&mut block, "text"), StreamEvent::Text, events),
            "thinking" => push(take_text(&mut block, "thinking"), StreamEvent::Thinking, events),
            "redacted_thinking" => {
                let seal = Seal::read_field(Vendor::Anthropic, take_text(&mut block, "data"), true);
                events.extend(seal.map(StreamEvent::ThinkingSeal));
            }
            _ => {}
        }
    }

    fn read_delta(&mut self, mut delta: Map<String, Value>, events: &mut Vec<StreamEvent>) {
        match take_text(&mut delta, "type").as_str() {
            "text_delta" => push(take_text(&mut delta, "text"), StreamEvent::Text, events),
            "thinking_delta" => {
                push(take_text(&mut delta, "thinking"), StreamEvent::Thinking, events);
            }
            "signature_delta" => {
                let signature = take_text(&mut delta, "signature");
                let seal = Seal::read_field(Vendor::Anthropic, signature, false);
                events.extend(seal.map(StreamEvent::ThinkingSeal));
            }
            "input_json_delta" => {
                // The arguments of a tool that the provider runs itself say nothing elsewhere.
                if let OpenBlock::Call(input) = &mut self.block {
                    let more = take_text(&mut delta, "partial_json");
                    if !more.is_empty() {
                        *input = None;
                    }
                    push(more, StreamEvent::ToolCallDelta, events);
                }
            }
            _ => {}
        }
    }

    fn end_block(&mut self, events: &mut Vec<StreamEvent>) {
        if let OpenBlock::Call(input) = std::mem::take(&mut self.block) {
            events.extend(input.map(StreamEvent::ToolCallDelta));
            events.push(StreamEvent::ToolCallEnd);
        }
    }
}

fn push(text: String, event: fn(String) -> StreamEvent, events: &mut Vec<StreamEvent>) {
    if !text.is_empty() {
        events.push(event(text));
    }
}

fn see_usage(of: &Map<String, Value>, events: &mut Vec<StreamEvent>) {
    if let Some(usage) = of.get("usage").and_then(Value::as_object) {
        events.push(StreamEvent::Usage(read_usage(usage)));
    }
}
