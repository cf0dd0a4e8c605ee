//! What an import has to say about the file it read: a line, a key path, and a reason.

use serde_json::{Value, json};

use crate::item::Item;

/// What became of a part of the other product's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It is not in the new config.
    NotCarriedOver,
    /// It is, and something about it needs attention.
    Changed,
}

impl Kind {
    /// The word in JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::NotCarriedOver => "not_carried_over",
            Self::Changed => "changed",
        }
    }
}

/// One thing to know about an import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// What became of it.
    pub kind: Kind,
    /// The line of the other product's file, from 1.
    pub line: usize,
    /// The key path in that file.
    pub path: String,
    /// Why, and what to do. It never repeats a value that could be a secret.
    pub reason: String,
}

impl Note {
    /// The note in JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        json!({
            "kind": self.kind.word(),
            "line": self.line,
            "path": self.path,
            "reason": self.reason,
        })
    }
}

/// The notes of one import.
#[derive(Debug, Default)]
pub(crate) struct Notes(Vec<Note>);

impl Notes {
    /// Says that a part of the file is not in the new config.
    pub(crate) fn drop(&mut self, item: &Item<'_>, reason: impl Into<String>) {
        self.add(Kind::NotCarriedOver, item.line(), item.path.to_string(), reason.into());
    }

    /// Says that a part of the file is in the new config in another form.
    pub(crate) fn change(&mut self, item: &Item<'_>, reason: impl Into<String>) {
        self.add(Kind::Changed, item.line(), item.path.to_string(), reason.into());
    }

    /// Adds a note about a part whose line and path are known.
    pub(crate) fn add(&mut self, kind: Kind, line: usize, path: String, reason: String) {
        self.0.push(Note { kind, line, path, reason });
    }

    /// The notes in the order of the file.
    pub(crate) fn into_list(mut self) -> Vec<Note> {
        self.0.sort_by_key(|note| note.line);
        self.0
    }
}
