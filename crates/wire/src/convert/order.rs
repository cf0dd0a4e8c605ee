//! Keeps the order of a stream's events that writers rely on, whatever a reader told.
//!
//! Readers follow providers, and providers break their own rules: a stream of nothing but its
//! terminator, text inside a tool call, content after the reason it stopped. A client must get a
//! legal stream all the same:
//!
//! - The first event is `Start`, and there is one.
//! - A call ends before anything else begins; what belongs to no call is left out.
//! - `Stop` comes before `End`; content after it is left out.

use super::reply::StopReason;
use super::stream::StreamEvent;

/// Where a stream stands.
#[derive(Debug, Default)]
pub(super) struct EventOrder {
    has_started: bool,
    is_in_call: bool,
    has_stopped: bool,
    is_over: bool,
}

impl EventOrder {
    /// Appends the event, after what must come before it; nothing if it has no place.
    pub(super) fn add(&mut self, event: StreamEvent, out: &mut Vec<StreamEvent>) {
        if self.is_over {
            return;
        }
        match &event {
            StreamEvent::Start { .. } => {
                if std::mem::replace(&mut self.has_started, true) {
                    return;
                }
            }
            StreamEvent::Usage(_) => {}
            StreamEvent::Error(_) => self.is_over = true,
            StreamEvent::Text(_)
            | StreamEvent::Refusal(_)
            | StreamEvent::Thinking(_)
            | StreamEvent::ThinkingSeal(_)
            | StreamEvent::ToolCallStart { .. } => {
                if self.has_stopped {
                    return;
                }
                self.start(out);
                self.end_call(out);
                self.is_in_call = matches!(event, StreamEvent::ToolCallStart { .. });
            }
            StreamEvent::Logprobs(_) => {
                if self.has_stopped {
                    return;
                }
                self.start(out);
            }
            StreamEvent::ToolCallDelta(_) => {
                if !self.is_in_call {
                    return;
                }
            }
            StreamEvent::ToolCallEnd => return self.end_call(out),
            StreamEvent::Stop(_) => {
                if self.has_stopped {
                    return;
                }
                self.start(out);
                self.end_call(out);
                self.has_stopped = true;
            }
            StreamEvent::End => {
                self.start(out);
                self.end_call(out);
                if !self.has_stopped {
                    out.push(StreamEvent::Stop(StopReason::EndOfTurn));
                }
                self.is_over = true;
            }
        }
        out.push(event);
    }

    fn start(&mut self, out: &mut Vec<StreamEvent>) {
        if !std::mem::replace(&mut self.has_started, true) {
            let (id, model) = (String::new(), String::new());
            out.push(StreamEvent::Start { id, model, created_unix_s: None });
        }
    }

    fn end_call(&mut self, out: &mut Vec<StreamEvent>) {
        if std::mem::take(&mut self.is_in_call) {
            out.push(StreamEvent::ToolCallEnd);
        }
    }
}
