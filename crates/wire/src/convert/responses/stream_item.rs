//! One item of a Responses stream that is being written: its events, from the first to the last.

use serde_json::{Value, json};

use super::item::{self, CallText};
use crate::convert::json_out::{number, string};
use crate::convert::part::Seal;

/// What an item consists of.
#[derive(Debug)]
pub(super) enum ItemKind {
    /// A message of text.
    Text { logprobs: Vec<Value> },
    /// A message that declines.
    Refusal,
    /// Reasoning and its seal.
    Reasoning { seal: Option<Seal> },
    /// A call.
    Call { call_id: String, name: String, is_free_text: bool },
}

/// An item under way.
#[derive(Debug)]
pub(super) struct OpenItem {
    pub(super) id: String,
    /// Its place in the answer.
    pub(super) at: usize,
    pub(super) kind: ItemKind,
    /// All that its deltas said.
    pub(super) text: String,
}

impl OpenItem {
    /// The events that announce it.
    pub(super) fn opening(&self) -> Vec<Value> {
        let mut events = vec![json!({"type": "response.output_item.added",
            "output_index": self.at, "item": self.item("in_progress", "")})];
        // Reasoning without a summary has no part; the part opens with the first delta.
        if matches!(self.kind, ItemKind::Text { .. } | ItemKind::Refusal) {
            events.push(self.part_event("response.content_part.added", ""));
        }
        events
    }

    /// Adds a delta; the event that comes before it, if one does.
    pub(super) fn add(&mut self, delta: &str) -> Option<Value> {
        let is_first = matches!(self.kind, ItemKind::Reasoning { .. }) && self.text.is_empty();
        let first = is_first.then(|| self.part_event("response.reasoning_summary_part.added", ""));
        self.text.push_str(delta);
        first
    }

    /// Writes the event of a delta, which most events are.
    pub(super) fn write_delta(&self, delta: &str, sequence: u64, out: &mut Vec<u8>) {
        let name = self.delta_name();
        for piece in ["event: ", name, "\ndata: {\"type\":\"", name, "\",\"item_id\":"] {
            out.extend_from_slice(piece.as_bytes());
        }
        string(&self.id, out);
        out.extend_from_slice(b",\"output_index\":");
        number(self.at as u64, out);
        out.extend_from_slice(match self.kind {
            ItemKind::Text { .. } | ItemKind::Refusal => b",\"content_index\":0".as_slice(),
            ItemKind::Reasoning { .. } => b",\"summary_index\":0",
            ItemKind::Call { .. } => b"",
        });
        out.extend_from_slice(b",\"delta\":");
        string(delta, out);
        if matches!(self.kind, ItemKind::Text { .. }) {
            out.extend_from_slice(b",\"logprobs\":[]");
        }
        out.extend_from_slice(b",\"sequence_number\":");
        number(sequence, out);
        out.extend_from_slice(b"}\n\n");
    }

    /// The events that close it, and the item itself.
    pub(super) fn closing(&self, status: &str) -> (Vec<Value>, Value) {
        let mut events = Vec::new();
        let text = self.text.clone();
        match &self.kind {
            ItemKind::Text { logprobs } => {
                let mut done = self.addressed("response.output_text.done");
                done["text"] = text.as_str().into();
                done["logprobs"] = logprobs.clone().into();
                events.push(done);
                events.push(self.part_event("response.content_part.done", &text));
            }
            ItemKind::Refusal => {
                let mut done = self.addressed("response.refusal.done");
                done["refusal"] = text.as_str().into();
                events.push(done);
                events.push(self.part_event("response.content_part.done", &text));
            }
            ItemKind::Reasoning { .. } if text.is_empty() => {}
            ItemKind::Reasoning { .. } => {
                let mut done = self.addressed("response.reasoning_summary_text.done");
                done["text"] = text.as_str().into();
                events.push(done);
                events.push(self.part_event("response.reasoning_summary_part.done", &text));
            }
            ItemKind::Call { is_free_text, .. } => {
                let (name, key) = if *is_free_text {
                    ("response.custom_tool_call_input.done", "input")
                } else {
                    ("response.function_call_arguments.done", "arguments")
                };
                let mut done = self.addressed(name);
                done[key] = text.as_str().into();
                events.push(done);
            }
        }
        let item = self.item(status, &text);
        events.push(json!({"type": "response.output_item.done", "output_index": self.at,
            "item": item}));
        (events, item)
    }

    const fn delta_name(&self) -> &'static str {
        match self.kind {
            ItemKind::Text { .. } => "response.output_text.delta",
            ItemKind::Refusal => "response.refusal.delta",
            ItemKind::Reasoning { .. } => "response.reasoning_summary_text.delta",
            ItemKind::Call { is_free_text: true, .. } => "response.custom_tool_call_input.delta",
            ItemKind::Call { .. } => "response.function_call_arguments.delta",
        }
    }

    /// An event about this item, and about its one part.
    fn addressed(&self, name: &str) -> Value {
        let mut event = json!({"type": name, "item_id": self.id, "output_index": self.at});
        match self.kind {
            ItemKind::Text { .. } | ItemKind::Refusal => event["content_index"] = 0.into(),
            ItemKind::Reasoning { .. } => event["summary_index"] = 0.into(),
            ItemKind::Call { .. } => {}
        }
        event
    }

    fn part_event(&self, name: &str, text: &str) -> Value {
        let mut event = self.addressed(name);
        event["part"] = match &self.kind {
            ItemKind::Refusal => item::refusal_part(text),
            ItemKind::Reasoning { .. } => json!({"type": "summary_text", "text": text}),
            ItemKind::Text { logprobs } => item::text_part(text, logprobs),
            ItemKind::Call { .. } => Value::Null,
        };
        event
    }

    /// The item, saying `text`; while it is under way it has nothing of its content yet.
    fn item(&self, status: &str, text: &str) -> Value {
        let is_open = status == "in_progress";
        match &self.kind {
            ItemKind::Text { .. } | ItemKind::Refusal if is_open => {
                item::message(&self.id, status, &[])
            }
            ItemKind::Text { logprobs } => {
                item::message(&self.id, status, &[item::text_part(text, logprobs)])
            }
            ItemKind::Refusal => item::message(&self.id, status, &[item::refusal_part(text)]),
            ItemKind::Reasoning { seal } => item::reasoning(&self.id, text, seal.as_ref()),
            ItemKind::Call { call_id, name, is_free_text, .. } => {
                let is_free_text = *is_free_text;
                item::call(&self.id, status, &CallText { call_id, name, text, is_free_text })
            }
        }
    }
}
