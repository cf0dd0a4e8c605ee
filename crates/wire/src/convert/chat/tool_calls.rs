//! Puts the tool calls of a Chat stream one after the other.
//!
//! The dialect numbers its calls, so the parts of two may interleave; the form wants each whole
//! before the next. A call that begins while the one before it is incomplete is held back, within
//! [`HELD_LIMIT`]; in practice servers send one after the other and nothing is held.

use serde_json::{Map, Value};

use crate::convert::fault::ReplyFault;
use crate::convert::fields::{take_map, take_text};
use crate::convert::ids::CallIds;
use crate::convert::stream::{HELD_LIMIT, StreamEvent};

/// The calls of one stream.
#[derive(Debug, Default)]
pub(super) struct CallSequence {
    /// The calls that have begun and not ended, in order; only the first is released.
    calls: Vec<PendingCall>,
    /// Ids for calls without one.
    ids: CallIds,
    /// Whether any call has begun.
    has_begun: bool,
    /// The highest number of a call that has ended.
    last_over: Option<u64>,
}

/// The most calls that may be incomplete at once.
const MAX_PENDING: usize = 128;

#[derive(Debug, Default)]
struct PendingCall {
    index: u64,
    id: String,
    name: String,
    /// Arguments that are not released yet.
    arguments: String,
    /// Where in its JSON the call stands.
    extent: JsonExtent,
    is_started: bool,
    is_free_text: bool,
}

impl CallSequence {
    /// The answer has this id, of which ids of calls are made that have none.
    pub(super) fn begin(&mut self, answer: &str) {
        self.ids = CallIds::new(answer);
    }

    /// Takes the next delta of a call.
    ///
    /// # Errors
    /// More had to be held back than the limit.
    pub(super) fn read(
        &mut self,
        delta: Value,
        events: &mut Vec<StreamEvent>,
    ) -> Result<(), ReplyFault> {
        let Value::Object(mut delta) = delta else { return Ok(()) };
        let Some(at) = self.find(&mut delta) else { return Ok(()) };
        if self.calls.len() > MAX_PENDING {
            return Err(ReplyFault::TooLong);
        }
        let call = &mut self.calls[at];
        let free = take_map(&mut delta, "custom");
        call.is_free_text |= free.is_some();
        if let Some(mut body) = free.or_else(|| take_map(&mut delta, "function")) {
            if !call.is_started {
                call.name.push_str(&take_text(&mut body, "name"));
            }
            let key = if call.is_free_text { "input" } else { "arguments" };
            let arguments = take_text(&mut body, key);
            call.extent.feed(&arguments);
            call.arguments.push_str(&arguments);
        }
        // A later call means that the first is over, if it is complete.
        while self.calls.len() > 1 && self.calls[0].extent.is_complete() {
            self.end_first(events);
        }
        self.release_first(events);
        let held: usize = self.calls.iter().map(PendingCall::held).sum();
        if held > HELD_LIMIT { Err(ReplyFault::TooLong) } else { Ok(()) }
    }

    /// Whether the model has called a tool.
    pub(super) const fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Ends every call.
    pub(super) fn end_all(&mut self, events: &mut Vec<StreamEvent>) {
        while !self.calls.is_empty() {
            self.end_first(events);
        }
    }

    /// The call that a delta belongs to; a new id under a known number is a new call. None for a
    /// delta that says nothing, or that comes late for a call that is over.
    fn find(&mut self, delta: &mut Map<String, Value>) -> Option<usize> {
        let id = take_text(delta, "id");
        let index = delta.get("index").and_then(Value::as_u64);
        let known = self.calls.iter().rposition(|call| {
            let is_same_id = id.is_empty() || call.id.is_empty() || call.id == id;
            is_same_id && index.is_none_or(|index| index == call.index)
        });
        if let Some(at) = known {
            if self.calls[at].id.is_empty() {
                self.calls[at].id = id;
            }
            return Some(at);
        }
        if id.is_empty() && (is_blank(delta) || (self.is_over(index) && !has_name(delta))) {
            return None;
        }
        self.has_begun = true;
        let index = index.unwrap_or_default();
        self.calls.push(PendingCall { index, id, ..PendingCall::default() });
        Some(self.calls.len() - 1)
    }

    /// Whether the call of this number has ended; calls end in their order.
    fn is_over(&self, index: Option<u64>) -> bool {
        self.last_over.is_some_and(|last| index.unwrap_or_default() <= last)
    }

    fn release_first(&mut self, events: &mut Vec<StreamEvent>) {
        let Some(call) = self.calls.first_mut() else { return };
        if call.name.is_empty() || call.id.is_empty() {
            return;
        }
        call.start(&mut self.ids, events);
        if !call.arguments.is_empty() {
            events.push(StreamEvent::ToolCallDelta(std::mem::take(&mut call.arguments)));
        }
    }

    fn end_first(&mut self, events: &mut Vec<StreamEvent>) {
        let mut call = self.calls.remove(0);
        self.last_over = self.last_over.max(Some(call.index));
        call.start(&mut self.ids, events);
        if !call.arguments.is_empty() {
            events.push(StreamEvent::ToolCallDelta(call.arguments));
        }
        events.push(StreamEvent::ToolCallEnd);
    }
}

impl PendingCall {
    /// How many bytes it holds back.
    fn held(&self) -> usize {
        self.id.len().saturating_add(self.name.len()).saturating_add(self.arguments.len())
    }

    fn start(&mut self, ids: &mut CallIds, events: &mut Vec<StreamEvent>) {
        if !std::mem::replace(&mut self.is_started, true) {
            events.push(StreamEvent::ToolCallStart {
                id: ids.id(std::mem::take(&mut self.id)),
                name: self.name.clone(),
                seal: None,
                is_free_text: self.is_free_text,
            });
        }
    }
}

/// Whether a delta names a tool, as the first of a call does.
fn has_name(delta: &Map<String, Value>) -> bool {
    let names = ["function", "custom"].into_iter().filter_map(|kind| delta.get(kind)?.get("name"));
    names.into_iter().any(|name| name.as_str().is_some_and(|name| !name.is_empty()))
}

/// Whether a delta says nothing of a call.
fn is_blank(delta: &Map<String, Value>) -> bool {
    let bodies = ["function", "custom"].into_iter().filter_map(|kind| delta.get(kind)?.as_object());
    let mut texts = bodies.flat_map(|body| body.values().filter_map(Value::as_str));
    texts.all(|text| text.trim().is_empty())
}

/// How far a JSON text has come, found without reading it twice.
#[derive(Debug, Default)]
struct JsonExtent {
    depth: u32,
    is_begun: bool,
    is_in_string: bool,
    is_escaped: bool,
}

impl JsonExtent {
    fn feed(&mut self, text: &str) {
        for byte in text.bytes() {
            if self.is_in_string {
                match byte {
                    _ if self.is_escaped => self.is_escaped = false,
                    b'\\' => self.is_escaped = true,
                    b'"' => self.is_in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.is_in_string = true,
                b'{' | b'[' => {
                    self.depth = self.depth.saturating_add(1);
                    self.is_begun = true;
                }
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
    }

    const fn is_complete(&self) -> bool {
        self.is_begun && self.depth == 0 && !self.is_in_string
    }
}
