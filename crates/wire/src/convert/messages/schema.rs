//! Rewrites the schema of an answer into what Anthropic accepts.
//!
//! The API takes a part of JSON schema. Rules:
//! - Every object is closed; one that was open to other fields is closed with a note.
//! - Limits of numbers, texts and lists are refused, so they move into the description. Of
//!   `minItems` 0 and 1 are taken.
//! - `oneOf` is `anyOf`.

use serde_json::{Map, Value};

use crate::convert::notes::Notes;
use crate::convert::schema::MAX_DEPTH;

/// Limits that the schema of an answer must not have.
const LIMITS: [&str; 12] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
];

/// Keywords whose value is data and no schema.
const DATA: [&str; 5] = ["enum", "const", "default", "examples", "required"];

/// The schema of an answer.
pub(super) fn answer(schema: &Value, notes: &mut Notes) -> Value {
    let mut schema = schema.clone();
    close(&mut schema, MAX_DEPTH, notes);
    schema
}

fn close(schema: &mut Value, depth: usize, notes: &mut Notes) {
    if depth == 0 {
        return;
    }
    match schema {
        Value::Object(map) => {
            move_limits(map, notes);
            if let Some(branches) = map.get("oneOf").filter(|it| it.is_array()).cloned() {
                map.shift_remove("oneOf");
                map.insert("anyOf".into(), branches);
                notes.rewritten("oneOf", "Messages has `anyOf` only in the schema of an answer");
            }
            close_object(map, notes);
            for (key, value) in map.iter_mut() {
                if !DATA.contains(&key.as_str()) {
                    close(value, depth - 1, notes);
                }
            }
        }
        Value::Array(values) => {
            for value in values {
                close(value, depth - 1, notes);
            }
        }
        _ => {}
    }
}

fn move_limits(map: &mut Map<String, Value>, notes: &mut Notes) {
    let mut limits = Vec::new();
    for key in LIMITS {
        let is_taken = |limit: &Value| key == "minItems" && limit.as_u64().is_some_and(|it| it < 2);
        // A property may be called like a limit; it then is a schema and not a number.
        let is_limit = map
            .get(key)
            .is_some_and(|limit| (limit.is_number() || limit.is_boolean()) && !is_taken(limit));
        if is_limit && let Some(limit) = map.shift_remove(key) {
            limits.push(format!("{key}: {limit}"));
            notes.rewritten(key, "Messages takes no limits in the schema of an answer");
        }
    }
    if !limits.is_empty() {
        let said = map.get("description").and_then(Value::as_str).unwrap_or_default();
        let limits = limits.join(", ");
        let text = if said.is_empty() { limits } else { format!("{said} ({limits})") };
        map.insert("description".into(), text.into());
    }
}

fn close_object(map: &mut Map<String, Value>, notes: &mut Notes) {
    let is_object = match map.get("type") {
        Some(Value::String(kind)) => kind == "object",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        // A map of properties has schemas for its values, and here none is called `type`.
        Some(_) => false,
        None => map.get("properties").is_some_and(Value::is_object) && !map.contains_key("$ref"),
    };
    if !is_object {
        return;
    }
    let before = map.insert("additionalProperties".into(), Value::Bool(false));
    if before.is_some_and(|before| before != Value::Bool(false)) {
        notes.rewritten("additionalProperties", "Messages wants closed objects");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answers_schema_is_closed_and_without_limits() {
        let mut notes = Notes::default();
        let found = answer(
            &json!({"type": "object", "additionalProperties": true, "properties": {
                "a": {"type": "integer", "minimum": 1, "description": "count"},
                "b": {"type": "array", "minItems": 1, "items": {"type": ["object", "null"]}},
                "c": {"oneOf": [{"type": "string"}], "default": {"type": "object"}},
                "minimum": {"type": "string"},
                "type": {"type": "string"},
            }}),
            &mut notes,
        );
        assert_eq!(
            found,
            json!({"type": "object", "additionalProperties": false, "properties": {
                "a": {"type": "integer", "description": "count (minimum: 1)"},
                "b": {"type": "array", "minItems": 1,
                    "items": {"type": ["object", "null"], "additionalProperties": false}},
                "c": {"default": {"type": "object"}, "anyOf": [{"type": "string"}]},
                "minimum": {"type": "string"},
                "type": {"type": "string"},
            }})
        );
        let fields: Vec<&str> = notes.as_slice().iter().map(|note| &*note.field).collect();
        assert_eq!(fields, ["additionalProperties", "minimum", "oneOf"]);
    }
}
