//! What vendors other than Google share in their demands on schemas.
//!
//! Rules:
//! - The input of a tool is an object, and says its properties. A choice between schemas at its top
//!   is refused by OpenAI and Anthropic, so the fields of all branches are offered and none of the
//!   branches' is required.
//! - OpenAI's strict mode wants every object closed and every field required. A schema that is not
//!   so is sent without the promise, with a note.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::notes::Notes;

/// How deep a schema is followed. A body of JSON has at most 128 levels.
pub(super) const MAX_DEPTH: usize = 128;

/// The schema of a tool's input.
pub(super) fn tool_input(schema: Option<&Value>, name: &str, notes: &mut Notes) -> Value {
    let mut schema = match schema {
        Some(Value::Object(map)) => map.clone(),
        _ => Map::new(),
    };
    for key in ["anyOf", "oneOf", "allOf"] {
        let Some(Value::Array(branches)) = schema.shift_remove(key) else { continue };
        notes.rewritten(name, "a choice at the top of a tool's schema is refused");
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

/// OpenAI's `strict` for this schema: what was asked, unless the schema could not be strict.
pub(super) fn strict(
    asked: Option<bool>,
    schema: &Value,
    name: &str,
    notes: &mut Notes,
) -> Option<bool> {
    if asked == Some(true) && !is_strict(schema, MAX_DEPTH) {
        notes.rewritten(name, "OpenAI's strict mode wants every field required");
        return Some(false);
    }
    asked
}

/// Whether every object is closed and requires all of its fields.
fn is_strict(schema: &Value, depth: usize) -> bool {
    let Some(map) = schema.as_object() else { return true };
    if depth == 0 {
        return false;
    }
    let is_object = |kind: &Value| {
        kind == "object"
            || kind.as_array().is_some_and(|kinds| kinds.iter().any(|it| it == "object"))
    };
    if map.get("type").is_some_and(is_object) || map.contains_key("properties") {
        let empty = Map::new();
        let fields = map.get("properties").and_then(Value::as_object).unwrap_or(&empty);
        let required = map.get("required").and_then(Value::as_array).into_iter().flatten();
        // Clients decide how many there are, so they are not looked through for every field.
        let required: BTreeSet<&str> = required.filter_map(Value::as_str).collect();
        let is_required = |name: &String| required.contains(name.as_str());
        let is_closed = map.get("additionalProperties") == Some(&Value::Bool(false));
        if !is_closed || !fields.keys().all(is_required) {
            return false;
        }
    }
    let inner = |key: &str| match map.get(key) {
        Some(Value::Object(all)) => all.values().all(|one| is_strict(one, depth - 1)),
        Some(Value::Array(all)) => all.iter().all(|one| is_strict(one, depth - 1)),
        _ => true,
    };
    let is_item_strict = map.get("items").is_none_or(|items| is_strict(items, depth - 1));
    is_item_strict && ["properties", "$defs", "definitions", "anyOf"].into_iter().all(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_takes_an_object_with_properties() {
        let mut notes = Notes::default();
        let empty = json!({"type": "object", "properties": {}});
        assert_eq!(tool_input(None, "f", &mut notes), empty);
        assert_eq!(tool_input(Some(&json!({})), "f", &mut notes), empty);
        assert!(notes.as_slice().is_empty());
        let choice = json!({"anyOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]});
        let joined = tool_input(Some(&choice), "f", &mut notes);
        assert_eq!(joined["properties"], json!({"a": {}, "b": {}}));
        assert_eq!(notes.as_slice().len(), 1);
    }

    #[test]
    fn strict_is_promised_only_where_openai_takes_it() {
        let strict_of = |schema: Value| strict(Some(true), &schema, "f", &mut Notes::default());
        let closed = json!({"type": "object", "properties": {"a": {"type": "string"}},
            "required": ["a"], "additionalProperties": false});
        assert_eq!(strict_of(closed.clone()), Some(true));
        let mut open = closed.clone();
        open["required"] = json!([]);
        assert_eq!(strict_of(open.clone()), Some(false));
        let nested = json!({"type": "object", "properties": {"a": {"type": "array", "items": open}},
            "required": ["a"], "additionalProperties": false});
        assert_eq!(strict_of(nested), Some(false));
        assert_eq!(strict(None, &json!({"type": "object"}), "f", &mut Notes::default()), None);
    }
}
