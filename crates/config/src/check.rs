//! What makes no sense in a file whose shape is fine: rules between keys, all of them at once.
//!
//! Every rule takes the decoded file and the document, and adds diagnostics with key paths. Rules
//! are grouped by section, one file each.
//!
//! Rules kept here:
//! - No follow-up errors. Whether something is *there* is asked of the document, not of the decoded
//!   file, because a provider with a bad key is still a provider that exists.
//! - A warning is something that works and that somebody should look at.
//!
//! Values' own rules are elsewhere: their form in the value's type, health values in the core.

mod access;
mod health;
mod mcp;
mod provider;
mod route;
mod secrets;
mod state;
mod times;
mod tls;
mod url;

use crate::{
    codes::Code,
    diagnostic::{Diagnostic, Problems, quoted},
    document::Document,
    file::ConfigFile,
    path::KeyPath,
    secret::Environment,
    source::Source,
    suggest,
};

/// What checks look at.
pub(crate) struct Check<'a> {
    pub(crate) source: &'a Source,
    pub(crate) document: &'a Document,
    pub(crate) file: &'a ConfigFile,
    pub(crate) environment: &'a dyn Environment,
    pub(crate) problems: Problems,
}

/// Everything that makes no sense, or that somebody should look at.
pub(crate) fn check(
    source: &Source,
    document: &Document,
    file: &ConfigFile,
    environment: &dyn Environment,
) -> Problems {
    let mut check = Check { source, document, file, environment, problems: Problems::default() };
    check.access();
    check.health();
    check.providers();
    check.routes();
    check.mcp();
    check.times();
    check.secrets();
    check.tls();
    check.state();
    check.problems
}

impl Check<'_> {
    /// An error at a value.
    fn error(&self, code: &'static Code, path: &KeyPath, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(code, message).at(self.document, path)
    }

    /// A warning at a value.
    fn warning(
        &self,
        code: &'static Code,
        path: &KeyPath,
        message: impl Into<String>,
    ) -> Diagnostic {
        Diagnostic::warning(code, message).at(self.document, path)
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        self.problems.add(diagnostic);
    }

    /// Whether the file says something there, sound or not.
    fn is_written(&self, path: &KeyPath) -> bool {
        self.document.node(path).is_some()
    }

    /// Whether a section has this key, sound or not.
    fn has(&self, section: &KeyPath, key: &str) -> bool {
        self.document.keys_at(section).any(|known| known == key)
    }

    /// Reports a name that a section does not have, with the nearest that it has.
    fn unknown(&mut self, unknown: Unknown<'_>) {
        let section = &unknown.section;
        let known: Vec<&str> = self.document.keys_at(section).collect();
        let nearest = suggest::nearest(unknown.name, known.iter().copied());
        let help = match nearest {
            Some(name) => {
                let defined = self.document.key_span_of(&section.key(name));
                let line = defined.map_or(0, |span| self.source.place(span.start).line);
                let file = self.source.name();
                Some(format!("did you mean {}? (defined at {file}:{line})", quoted(name)))
            }
            None if known.is_empty() => Some(format!("the file has no `{section}`")),
            None => suggest::did_you_mean(unknown.name, known, "the file has"),
        };
        let diagnostic = Diagnostic::error(unknown.code, unknown.message)
            .at(self.document, unknown.path)
            .label(unknown.label)
            .maybe_help(help);
        self.problems.add(diagnostic);
    }
}

/// A name that a section should have.
struct Unknown<'a> {
    code: &'static Code,
    path: &'a KeyPath,
    name: &'a str,
    section: KeyPath,
    message: String,
    label: &'static str,
}
