//! Rewrites JSON schemas into what Anthropic accepts.
//!
//! Rules:
//! - The input of a tool is an object; a choice between schemas at its top is refused by the API,
//!   so the fields of all branches are offered and none is required.
//! - The schema of an answer closes every object and has no limits of numbers, texts and lists:
//!   the API refuses them, so they move into the description.

use serde_json::{Map, Value, json};

use crate::convert::notes::Notes;

/// How deep a schema is followed. A body of JSON has at most 128 levels.
const MAX_DEPTH: usize = 128;

/// Limits that the schema of an answer must not have.
const LIMITS: [&str; 10] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "maxItems",
    "minProperties",
    "maxProperties",
];

/// The schema of a tool's input.
pub(super) fn tool_input(schema: Option<&Value>, name: &str, notes: &mut Notes) -> Value {
    let mut schema = match schema {
        Some(Value::Object(map)) => map.clone(),
        _ => Map::new(),
    };
    for key in ["anyOf", "oneOf", "allOf"] {
        let Some(Value::Array(branches)) = schema.shift_remove(key) else { continue };
        notes.rewritten(name, "Messages takes no choice at the top of a tool's schema");
        let fields = schema.entry("properties").or_insert_with(|| json!({}));
        for branch in branches {
            let (Value::Object(fields), Some(more)) =
                (&mut *fields, branch["properties"].as_object())
            else {
                continue;
            };
            for (key, value) in more {
                fields.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
    }
    schema.insert("type".into(), "object".into());
    schema.entry("properties").or_insert_with(|| json!({}));
    Value::Object(schema)
}

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
            let mut limits = Vec::new();
            for key in LIMITS {
                // A property may be called like a limit; it then is a schema and not a number.
                if map.get(key).is_some_and(Value::is_number)
                    && let Some(limit) = map.shift_remove(key)
                {
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
            if map.get("type").is_some_and(|kind| kind == "object") {
                map.entry("additionalProperties").or_insert(Value::Bool(false));
            }
            for value in map.values_mut() {
                close(value, depth - 1, notes);
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
