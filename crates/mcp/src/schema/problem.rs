//! One thing that is wrong, in words that a model can act on.
//!
//! Values are shown shortened: arguments may be megabytes, and so may a server's schema.

use std::{borrow::Cow, fmt};

use serde_json::Value;

/// Letters of a value that are shown.
const VALUE_MAX: usize = 60;
/// Letters of a whole problem. Problems of alternatives are joined, level by level.
const WORDS_MAX: usize = 400;

/// What is wrong with a value, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// A JSON pointer; empty for the whole value.
    pub at: String,
    /// A fragment of a sentence.
    pub what: String,
    /// The types that are wanted, if another one is the whole problem.
    pub(super) kinds: Vec<&'static str>,
}

impl Problem {
    /// A problem at a place.
    pub(super) fn new(at: String, what: &str) -> Self {
        Self { at, what: cut(what, WORDS_MAX).into_owned(), kinds: Vec::new() }
    }

    /// A value of a type that is not among those wanted.
    pub(super) fn of_kind(at: String, mut kinds: Vec<&'static str>, value: &Value) -> Self {
        kinds.sort_unstable();
        kinds.dedup();
        let wanted = kinds.join(" or ");
        let what = format!("must be {wanted}, and is {}", described(value));
        Self { kinds, ..Self::new(at, &what) }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.at.is_empty() {
            return f.write_str(&self.what);
        }
        write!(f, "`{}`: {}", self.at, self.what)
    }
}

/// A text, shortened if it is longer than so many letters.
pub(super) fn cut(text: &str, letters: usize) -> Cow<'_, str> {
    match text.char_indices().nth(letters) {
        Some((end, _)) => Cow::Owned(format!("{}…", text.get(..end).unwrap_or_default())),
        None => Cow::Borrowed(text),
    }
}

/// A value as it is shown: `"many"`, or what it is made of.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("an array of {}", items.len()),
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) => format!("`{}`", Value::from(cut(text, VALUE_MAX))),
        Value::Null | Value::Bool(_) | Value::Number(_) => format!("`{value}`"),
    }
}

/// A value with its type: a string: `"many"`.
fn described(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => format!("a boolean: {}", shown(value)),
        Value::Number(_) => format!("a number: {}", shown(value)),
        Value::String(_) => format!("a string: {}", shown(value)),
        Value::Array(_) | Value::Object(_) => shown(value),
    }
}
