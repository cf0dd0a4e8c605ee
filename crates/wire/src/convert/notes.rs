//! What was lost, clamped or rewritten when a request or an answer changed its dialect.
//!
//! The notes belong to the decision: `explain` shows them, and a response header says that there
//! was a conversion. They name fields, never what a field says.

use std::fmt;

/// The most notes that are kept of one request; a request with more has said enough.
const MAX_NOTES: usize = 64;

/// How long a field name may be in a note: it comes from the client.
const MAX_FIELD: usize = 80;

/// What happened to a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The target's dialect cannot say it.
    Dropped,
    /// It was moved into the target's range.
    Clamped,
    /// It is said in another way, which is not quite the same.
    Rewritten,
}

/// One thing that changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// What happened.
    pub change: Change,
    /// Which field, as the client wrote it: `logit_bias`, `messages[3].content[0]`.
    pub field: String,
    /// Why, as a fixed phrase.
    pub why: &'static str,
}

/// The notes of one conversion, in order, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    notes: Vec<Note>,
}

impl Notes {
    /// A field was dropped.
    pub fn dropped(&mut self, field: impl AsRef<str>, why: &'static str) {
        self.add(Change::Dropped, field.as_ref(), why);
    }

    /// A value was moved into the target's range.
    pub fn clamped(&mut self, field: impl AsRef<str>, why: &'static str) {
        self.add(Change::Clamped, field.as_ref(), why);
    }

    /// A field is said in another way.
    pub fn rewritten(&mut self, field: impl AsRef<str>, why: &'static str) {
        self.add(Change::Rewritten, field.as_ref(), why);
    }

    /// All of them.
    #[must_use]
    pub fn as_slice(&self) -> &[Note] {
        &self.notes
    }

    pub(super) fn add(&mut self, change: Change, field: &str, why: &'static str) {
        let field: String = field.chars().take(MAX_FIELD).collect();
        let note = Note { change, field, why };
        if self.notes.len() < MAX_NOTES && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let change = match self.change {
            Change::Dropped => "dropped",
            Change::Clamped => "clamped",
            Change::Rewritten => "rewritten",
        };
        write!(formatter, "{change} `{}`: {}", self.field, self.why)
    }
}
