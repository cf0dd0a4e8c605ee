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
        let at = self.find(&mut delta);
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

    /// Ends every call.
    pub(super) fn end_all(&mut self, events: &mut Vec<StreamEvent>) {
        while !self.calls.is_empty() {
            self.end_first(events);
        }
    }

    /// The call that a delta belongs to; a new id under a known number is a new call.
    fn find(&mut self, delta: &mut Map<String, Value>) -> usize {
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
            return at;
        }
        let index = index.unwrap_or_default();
        self.calls.push(PendingCall { index, id, ..PendingCall::default() });
        self.calls.len() - 1
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
