//! What `init` says when it is done: where the config is, what it holds, what was left out.

use std::path::PathBuf;

use serde_json::{Value, json};
use tidegate_init::draft::Finished;
use tidegate_init::{Kind, Note};

use crate::printer::Printer;

/// A config that was written or is to be printed.
pub(super) struct InitReport {
    /// Where it was written; none: it is printed.
    pub(super) file: Option<PathBuf>,
    /// Where it comes from.
    pub(super) origin: String,
    pub(super) finished: Finished,
    pub(super) notes: Vec<Note>,
}

impl InitReport {
    /// Says it all.
    pub(super) fn print(&self, is_json: bool, printer: &Printer) {
        if is_json {
            return printer.result(&format!("{:#}", self.json()));
        }
        let notes = self.notes.iter().map(|note| line(&self.origin, note));
        match &self.file {
            // The config is the result, so what is said about it must not stand inside it.
            None => {
                notes.for_each(|note| printer.note(&note));
                printer.result(&self.finished.text);
            }
            Some(file) => {
                let counts = self.counts();
                let mut text = format!("wrote {} from {}: {counts}\n", file.display(), self.origin);
                notes.for_each(|note| text.push_str(&format!("  {note}\n")));
                printer.result(&text);
                printer.note(&self.next(file));
            }
        }
    }

    fn counts(&self) -> String {
        let counts = self.finished.counts;
        let count = |number: usize, word: &str| match number {
            1 => format!("1 {word}"),
            number => format!("{number} {word}s"),
        };
        let parts = [
            count(counts.providers, "provider"),
            count(counts.routes, "route"),
            count(counts.servers, "MCP server"),
        ];
        parts.join(", ")
    }

    /// The variables that have to be set yet, and the next command.
    fn next(&self, file: &std::path::Path) -> String {
        let is_missing = |name: &&String| std::env::var_os(name).is_none_or(|it| it.is_empty());
        let missing: Vec<&str> =
            self.finished.variables.iter().filter(is_missing).map(String::as_str).collect();
        let check = match file.to_str() {
            Some("tidegate.yaml") => "tidegate check".to_owned(),
            _ => format!("tidegate check {}", file.display()),
        };
        match missing.as_slice() {
            [] => format!("next: {check}"),
            names => format!("next: set {}, then {check}", names.join(", ")),
        }
    }

    fn json(&self) -> Value {
        let counts = self.finished.counts;
        json!({
            "written": self.file.is_some(),
            "file": self.file.as_ref().map(|file| file.display().to_string()),
            "from": self.origin,
            "providers": counts.providers,
            "routes": counts.routes,
            "servers": counts.servers,
            "variables": self.finished.variables,
            "notes": self.notes.iter().map(Note::json).collect::<Vec<_>>(),
            "config": self.finished.text,
        })
    }
}

/// A note in one line: where, what became of it, and why.
pub(super) fn line(origin: &str, note: &Note) -> String {
    let fate = match note.kind {
        Kind::NotCarriedOver => "not carried over",
        Kind::Changed => "changed",
    };
    format!("{origin}:{}: {}: {fate}: {}", note.line, note.path, note.reason)
}
