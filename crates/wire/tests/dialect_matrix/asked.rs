//! What a request asks, in words that no dialect has for itself.

use serde_json::{Value, json};

/// What a provider is asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Asked {
    pub(crate) system: String,
    pub(crate) turns: Vec<(Speaker, Vec<Piece>)>,
    /// Name, description and schema.
    pub(crate) tools: Vec<(String, String, Value)>,
    pub(crate) choice: Option<Choice>,
    /// Whether several calls may come at once; `None` where that is not said.
    pub(crate) parallel: Option<bool>,
    pub(crate) max_tokens: Option<u64>,
    pub(crate) stop: Vec<String>,
    pub(crate) output_schema: Option<Value>,
    pub(crate) thinks: bool,
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaker {
    User,
    Model,
}

/// A piece of a turn.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Piece {
    Text(String),
    /// Media type and data, or the address.
    Image(String),
    Call {
        id: String,
        name: String,
        arguments: Value,
    },
    /// An error has its mark in the text, where the dialect has no field for it.
    Result {
        id: String,
        text: String,
    },
}

/// Which tool to use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    Auto,
    Never,
    Any,
    Named(String),
}

impl Asked {
    /// Adds pieces; a turn goes on while the same one speaks.
    pub(crate) fn say(&mut self, speaker: Speaker, pieces: Vec<Piece>) {
        match self.turns.last_mut() {
            Some((last, known)) if *last == speaker => known.extend(pieces),
            _ => self.turns.push((speaker, pieces)),
        }
    }
}

/// A schema in one spelling: an absent one is an empty object, words of types are lower case.
pub(crate) fn schema(value: &Value) -> Value {
    match value {
        Value::Null => json!({"type": "object", "properties": {}}),
        other => lower(other),
    }
}

fn lower(value: &Value) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| match (key.as_str(), value) {
                ("type", Value::String(word)) => (key.clone(), word.to_ascii_lowercase().into()),
                _ => (key.clone(), lower(value)),
            })
            .collect(),
        Value::Array(values) => values.iter().map(lower).collect(),
        other => other.clone(),
    }
}

/// The text of a value that is a string.
pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// JSON inside a string.
pub(crate) fn parsed(value: &Value) -> Value {
    serde_json::from_str(value.as_str().unwrap_or("?")).expect("arguments are JSON")
}

/// The elements of a list; none of anything else.
pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A failed result, as dialects without a field for it say it.
pub(crate) fn failed(text: &str) -> String {
    format!("Error: {text}")
}
