//! A problem in a file, as data: what is wrong, where, and what to do about it.
//!
//! Checks make [`Diagnostic`]s and go on, so that `check` shows every problem at once; `render.rs`
//! turns them into text, [`Diagnostic::json`] into one JSON object.
//!
//! Rules kept here:
//! - A message is a lowercase fragment with values in backticks; values come from files, so they
//!   go through [`quoted`], which bounds their length and drops control characters.
//! - A value that looks like a secret is not repeated, in whatever part of the text it would stand.
//! - A list of problems is bounded ([`Problems`]): a file of a million mistakes is not a reason to
//!   print a million of them. Errors come before warnings, and warnings alone, however many, do not
//!   stop a file from being used.

use serde_json::{Value, json};

pub use crate::span::Span;
use crate::{
    codes,
    codes::Code,
    mask,
    path::KeyPath,
    source::{FileProblem, Source},
};

/// How much of a value is repeated in a message.
const QUOTED_CHARS: usize = 60;

/// How many problems of one file are shown; more than that are counted.
const MAX_PROBLEMS: usize = 100;

/// No more of the file than this is shown before or after the start of a problem's span.
pub(crate) const SHOWN_BYTES: usize = 1024;

/// Whether a problem stops the file from being used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The file cannot be used.
    Error,
    /// The file can be used, but somebody should look at this.
    Warning,
}

impl Severity {
    /// The word that is printed for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// One problem in a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostic {
    /// Whether it stops the file from being used.
    pub severity: Severity,
    /// What kind of problem it is; its page explains it.
    pub code: &'static Code,
    /// What is wrong, as a lowercase fragment.
    pub message: String,
    /// The key path it is about; the root when it is about the file.
    pub path: KeyPath,
    /// The bytes it is about, where there are any.
    pub span: Option<Span>,
    /// What to say under the bytes.
    pub label: String,
    /// What to do about it, one line each.
    pub help: Vec<String>,
    /// Bytes of the file that are not to be shown: secrets that stand in it.
    pub hidden: Vec<Span>,
}

impl Diagnostic {
    /// An error; add a place with [`at`](Self::at).
    #[must_use]
    pub fn error(code: &'static Code, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            code,
            message: message.into(),
            path: KeyPath::root(),
            span: None,
            label: String::new(),
            help: Vec::new(),
            hidden: Vec::new(),
        }
    }

    /// A warning; add a place with [`at`](Self::at).
    #[must_use]
    pub fn warning(code: &'static Code, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, message) }
    }

    /// Places it at bytes that the caller knows.
    #[must_use]
    pub fn at_span(self, path: &KeyPath, span: Span) -> Self {
        Self { span: Some(span), path: path.clone(), ..self }
    }

    /// Says something under the bytes.
    #[must_use]
    pub fn label(self, label: impl Into<String>) -> Self {
        Self { label: label.into(), ..self }
    }

    /// Adds a line of help.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help.push(help.into());
        self
    }

    /// Adds a line of help if there is one.
    #[must_use]
    pub fn maybe_help(mut self, help: Option<String>) -> Self {
        self.help.extend(help);
        self
    }

    /// The same with nothing in it that may be a secret: neither the bytes that are known to be
    /// one, which are `hidden` in file order, nor words that look like one.
    #[must_use]
    pub(crate) fn without_secrets(self, hidden: &[Span]) -> Self {
        let help = self.help.iter().map(|line| mask::masked(line)).collect();
        let mut all = self.hidden;
        let at = self.span.map_or(0, |span| span.start);
        let (from, to) = (at.saturating_sub(SHOWN_BYTES), at.saturating_add(SHOWN_BYTES));
        let first = hidden.partition_point(|span| span.end <= from);
        all.extend(hidden[first..].iter().take_while(|span| span.start < to));
        Self {
            message: mask::masked(&self.message),
            label: mask::masked(&self.label),
            help,
            hidden: all,
            ..self
        }
    }

    /// Whether it stops the file from being used.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// Whether it says that the file could not be read as YAML at all.
    #[must_use]
    pub fn is_unreadable(&self) -> bool {
        codes::UNREADABLE_CODES.contains(&self.code.id)
    }

    /// The stable JSON form; line and column are null where the problem has no place.
    #[must_use]
    pub fn json(&self, source: &Source) -> Value {
        let place = self.span.map(|span| source.place(span.start));
        json!({
            "severity": self.severity.word(),
            "code": self.code.id,
            "message": self.message,
            "file": source.name(),
            "path": mask::masked(&self.path.to_string()),
            "line": place.map(|place| place.line),
            "column": place.map(|place| place.column),
            "label": self.label,
            "help": self.help,
        })
    }
}

impl FileProblem {
    /// The problem as something to show next to problems inside files.
    #[must_use]
    pub fn diagnostic(&self) -> Diagnostic {
        let (code, help) = match self {
            Self::Missing(_) => (&codes::UNREADABLE, "check the path for a typing error"),
            Self::Directory(_) => (&codes::UNREADABLE, "name a file inside it"),
            Self::NotAFile(_) => (&codes::UNREADABLE, "copy its contents into a file first"),
            Self::Refused { .. } => (&codes::UNREADABLE, "check the file's permissions"),
            Self::TooLarge { .. } => (&codes::TOO_LARGE, "check that this is the file you meant"),
            Self::NotUtf8 { .. } => (&codes::NOT_UTF8, "save the file as UTF-8"),
        };
        Diagnostic::error(code, self.to_string()).help(help)
    }
}

/// The problems found so far, bounded.
#[derive(Debug, Default)]
pub struct Problems {
    errors: Listed,
    warnings: Listed,
}

/// Problems of one severity, as many as are shown, and how many more there are.
#[derive(Debug, Default)]
struct Listed {
    list: Vec<Diagnostic>,
    unlisted: usize,
}

impl Listed {
    fn add(&mut self, diagnostic: Diagnostic) {
        if self.list.len() < MAX_PROBLEMS { self.list.push(diagnostic) } else { self.unlisted += 1 }
    }

    fn count(&self) -> usize {
        self.list.len() + self.unlisted
    }
}

impl Problems {
    /// Adds one; past the bound it is only counted.
    pub fn add(&mut self, diagnostic: Diagnostic) {
        if diagnostic.is_error() { &mut self.errors } else { &mut self.warnings }.add(diagnostic);
    }

    /// Adds several.
    pub fn extend(&mut self, diagnostics: impl IntoIterator<Item = Diagnostic>) {
        for diagnostic in diagnostics {
            self.add(diagnostic);
        }
    }

    /// Adds everything that was found elsewhere, what is only counted included.
    pub(crate) fn absorb(&mut self, other: Self) {
        self.errors.unlisted += other.errors.unlisted;
        self.warnings.unlisted += other.warnings.unlisted;
        self.extend(other.errors.list);
        self.extend(other.warnings.list);
    }

    /// Whether one of them stops the file from being used.
    pub(crate) fn has_errors(&self) -> bool {
        self.errors.count() > 0
    }

    /// How many there are, listed or not.
    #[must_use]
    pub fn count(&self) -> usize {
        self.errors.count() + self.warnings.count()
    }

    /// The list in file order, ended by a count of what was left out.
    #[must_use]
    pub fn into_list(self) -> Vec<Diagnostic> {
        let Self { errors, mut warnings } = self;
        let room = MAX_PROBLEMS - errors.list.len();
        warnings.unlisted += warnings.list.len().saturating_sub(room);
        warnings.list.truncate(room);
        let mut list = errors.list;
        list.extend(warnings.list);
        list.sort_by_key(|problem| problem.span.map_or(0, |span| span.start));
        let closing = match (errors.unlisted, warnings.unlisted) {
            (0, 0) => return list,
            (0, more) => {
                let message = format!("{} not shown", counted(more, "more warning"));
                Diagnostic::warning(&codes::TOO_MANY_PROBLEMS, message)
            }
            (errors, warnings) => {
                let message = format!("{} not shown", counted(errors + warnings, "more problem"));
                Diagnostic::error(&codes::TOO_MANY_PROBLEMS, message)
            }
        };
        list.push(closing.help("fix the problems above and check the file again"));
        list
    }
}

/// `1 more problem is`, `2 more problems are`.
fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun} is") } else { format!("{count} {noun}s are") }
}

/// A value from a file as it may stand in a message: in backticks, short, without control
/// characters (which could drive a terminal) and without what looks like a secret.
#[must_use]
pub fn quoted(value: &str) -> String {
    // Long enough to recognise a secret that is cut, short enough for any value.
    let start: String = value.chars().take(4 * QUOTED_CHARS).collect();
    let value = &mask::masked(&start);
    let clean = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    let mut shown: String = value.chars().take(QUOTED_CHARS).map(clean).collect();
    if value.chars().nth(QUOTED_CHARS).is_some() {
        shown.push('…');
    }
    format!("`{shown}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_or_hostile_value_is_shortened_and_cleaned() {
        assert_eq!(quoted("a\u{1b}[2Jb"), "`a\u{fffd}[2Jb`");
        assert_eq!(quoted(&"x".repeat(1000)).chars().count(), QUOTED_CHARS + 3);
    }

    #[test]
    fn a_million_problems_are_counted_but_not_listed() {
        let mut problems = Problems::default();
        for _ in 0..1000 {
            problems.add(Diagnostic::error(&codes::UNKNOWN_KEY, "x"));
        }
        assert_eq!(problems.count(), 1000);
        let list = problems.into_list();
        assert_eq!(list.len(), MAX_PROBLEMS + 1);
        assert_eq!(list[MAX_PROBLEMS].message, "900 more problems are not shown");
    }

    #[test]
    fn any_number_of_warnings_leaves_a_file_usable_and_hides_no_error() {
        let mut problems = Problems::default();
        problems.extend((0..150).map(|_| Diagnostic::warning(&codes::UNKNOWN_KEY, "w")));
        let mut more = Problems::default();
        more.extend((0..150).map(|_| Diagnostic::warning(&codes::UNKNOWN_KEY, "w")));
        problems.absorb(more);
        let list = problems.into_list();
        assert!(!list.iter().any(Diagnostic::is_error));
        assert_eq!(list[MAX_PROBLEMS].message, "200 more warnings are not shown");

        let mut problems = Problems::default();
        problems.extend((0..150).map(|_| Diagnostic::warning(&codes::UNKNOWN_KEY, "w")));
        problems.add(Diagnostic::error(&codes::UNKNOWN_KEY, "e"));
        let list = problems.into_list();
        assert!(list.iter().any(|problem| problem.message == "e"));
        assert_eq!(list[MAX_PROBLEMS].message, "51 more warnings are not shown");
    }

    #[test]
    fn json_has_the_path_and_the_place() {
        let source = Source::new("t.yaml", "a:\n  b: 1\n");
        let diagnostic = Diagnostic::warning(&codes::UNKNOWN_KEY, "m")
            .at_span(&KeyPath::from("a").key("b"), Span { start: 5, end: 6 })
            .help("h");
        let json = diagnostic.json(&source);
        assert_eq!(json["path"], "a.b");
        assert_eq!((json["line"].as_u64(), json["column"].as_u64()), (Some(2), Some(3)));
        assert_eq!(json["severity"], "warning");
    }
}
