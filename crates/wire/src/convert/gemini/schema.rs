//! JSON schemas, as Gemini takes them and as its clients write them.
//!
//! Gemini has two fields for a schema. `parameters` and `responseSchema` take Google's own subset
//! of OpenAPI, with types in capitals; clients still use them, so they are read into JSON schema.
//! `parametersJsonSchema` and `responseJsonSchema` take a documented subset of JSON schema, with
//! `$ref`; that is what is written.
//!
//! Rules of writing:
//! - `const` becomes an `enum` of one, `oneOf` becomes `anyOf`, an `allOf` is joined into its
//!   object; exclusive limits become inclusive ones, with a note.
//! - A keyword outside the subset only narrows what is allowed, so leaving it out never refuses a
//!   right value. It is left out with a note; annotations such as `$schema` without one.

use serde_json::{Map, Value};

use crate::convert::notes::Notes;

/// The keywords that Gemini documents.
const KEPT: [&str; 17] = [
    "$id",
    "$ref",
    "$anchor",
    "type",
    "format",
    "title",
    "description",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "required",
    "nullable",
    "propertyOrdering",
    "default",
    "example",
    "additionalProperties",
];

/// Keywords that say nothing about what is allowed.
const ANNOTATIONS: [&str; 6] =
    ["$schema", "$comment", "examples", "deprecated", "readOnly", "writeOnly"];

const LOST: &str = "Gemini's schemas have no such keyword";

/// Rewrites a JSON schema into the subset that Gemini takes.
pub(super) fn written(schema: &Value, notes: &mut Notes) -> Value {
    let Value::Object(map) = schema else { return schema.clone() };
    let mut out = Map::new();
    for (key, value) in map {
        keyword(key, value, &mut out, notes);
    }
    require_known(&mut out, notes);
    Value::Object(out)
}

/// Takes out of `required` what `properties` does not have: Google answers that with an error, and
/// other vendors do not mind it.
fn require_known(out: &mut Map<String, Value>, notes: &mut Notes) {
    let Some(Value::Object(known)) = out.get("properties") else { return };
    let Some(Value::Array(required)) = out.get("required") else { return };
    let is_known = |name: &&Value| name.as_str().is_some_and(|name| known.contains_key(name));
    let kept: Vec<Value> = required.iter().filter(is_known).cloned().collect();
    if kept.len() < required.len() {
        notes.rewritten("required", "it names a field that the schema does not have");
        out.insert("required".to_owned(), kept.into());
    }
}

fn keyword(key: &str, value: &Value, out: &mut Map<String, Value>, notes: &mut Notes) {
    match (key, value) {
        ("properties" | "$defs" | "definitions", Value::Object(inner)) => {
            let inner = inner.iter().map(|(name, one)| (name.clone(), written(one, notes)));
            out.insert(key.to_owned(), Value::Object(inner.collect()));
        }
        ("additionalProperties" | "items", Value::Object(_)) => {
            out.insert(key.to_owned(), written(value, notes));
        }
        ("items" | "prefixItems", Value::Array(list)) => {
            out.insert("prefixItems".to_owned(), all(list, notes));
        }
        ("anyOf" | "oneOf", Value::Array(list)) => {
            if key == "oneOf" {
                notes.rewritten("oneOf", "Gemini's schemas have `anyOf` only");
            }
            out.insert("anyOf".to_owned(), all(list, notes));
        }
        ("allOf", Value::Array(list)) => join(list, out, notes),
        ("const", _) => {
            let one = Value::Array(vec![value.clone()]);
            keyword("enum", &one, out, notes);
        }
        ("enum", Value::Array(list)) => {
            let is_taken = |one: &&Value| one.is_string() || one.is_number();
            let taken: Vec<Value> = list.iter().filter(is_taken).cloned().collect();
            if taken.len() < list.len() {
                notes.rewritten("enum", "Gemini's schemas take texts and numbers only");
            } else {
                out.insert(key.to_owned(), taken.into());
            }
        }
        ("exclusiveMinimum" | "exclusiveMaximum", Value::Number(_)) => {
            notes.rewritten(key, "Gemini's schemas have inclusive limits only");
            let name = if key == "exclusiveMinimum" { "minimum" } else { "maximum" };
            out.insert(name.to_owned(), value.clone());
        }
        _ if KEPT.contains(&key) => {
            out.insert(key.to_owned(), value.clone());
        }
        _ if ANNOTATIONS.contains(&key) => {}
        _ => notes.dropped(key, LOST),
    }
}

fn all(list: &[Value], notes: &mut Notes) -> Value {
    list.iter().map(|one| written(one, notes)).collect::<Vec<_>>().into()
}

/// Joins the schemas of an `allOf` into the object that holds it: properties and required keys are
/// united, anything else is kept from the first that says it.
fn join(list: &[Value], out: &mut Map<String, Value>, notes: &mut Notes) {
    if list.len() > 1 {
        notes.rewritten("allOf", "Gemini's schemas have none; its schemas were joined");
    }
    for one in list {
        let Value::Object(inner) = written(one, notes) else { continue };
        for (key, value) in inner {
            match (out.get_mut(&key), value) {
                (Some(Value::Object(known)), Value::Object(more)) => known.extend(more),
                (Some(Value::Array(known)), Value::Array(more)) if key == "required" => {
                    known.extend(more);
                }
                (Some(_), _) => {}
                (None, value) => {
                    out.insert(key, value);
                }
            }
        }
    }
}

/// Whether a tool's schema has no parameter, which is best said by no schema at all.
pub(super) fn is_empty(schema: &Value) -> bool {
    let has =
        |key: &str| schema.get(key).is_some_and(|it| it.as_object().is_none_or(|o| !o.is_empty()));
    let keys = ["properties", "$ref", "anyOf", "oneOf", "allOf", "additionalProperties"];
    let is_open = schema.get("additionalProperties") == Some(&Value::Bool(false));
    !keys.iter().any(|key| has(key) && !(is_open && *key == "additionalProperties"))
}

/// Reads a schema in Google's own spelling: types in capitals, `nullable`, counts as text.
pub(super) fn read(schema: Value) -> Value {
    let Value::Object(map) = schema else { return schema };
    let mut out = Map::new();
    let is_nullable = map.get("nullable") == Some(&Value::Bool(true));
    for (key, value) in map {
        let value = match (key.as_str(), value) {
            ("type", Value::String(word)) => {
                let word = Value::String(word.to_ascii_lowercase());
                if is_nullable { Value::Array(vec![word, "null".into()]) } else { word }
            }
            ("properties" | "$defs" | "defs", Value::Object(inner)) => {
                Value::Object(inner.into_iter().map(|(name, one)| (name, read(one))).collect())
            }
            ("items" | "additionalProperties", value) => read(value),
            ("anyOf" | "prefixItems", Value::Array(list)) => {
                Value::Array(list.into_iter().map(read).collect())
            }
            ("nullable" | "propertyOrdering", _) => continue,
            // Protocol buffers write 64-bit numbers as text.
            (
                "minItems" | "maxItems" | "minLength" | "maxLength" | "minProperties"
                | "maxProperties",
                Value::String(text),
            ) => text.parse::<u64>().map_or(Value::String(text), Value::from),
            // "enum" is Google's mark of a text with an `enum`, and no format of JSON schema.
            ("format", Value::String(word)) if word == "enum" => continue,
            (_, value) => value,
        };
        out.insert(key, value);
    }
    Value::Object(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(schema: &Value, expected: &Value, notes_expected: &[&str]) {
        let mut notes = Notes::default();
        assert_eq!(&written(schema, &mut notes), expected);
        let fields: Vec<&str> = notes.as_slice().iter().map(|note| &*note.field).collect();
        assert_eq!(fields, notes_expected);
    }

    #[test]
    fn what_gemini_takes_stays_as_it_is() {
        let schema = json!({
            "type": "object", "required": ["a"], "additionalProperties": false,
            "properties": {"a": {"type": ["string", "null"], "enum": ["x", "y"]},
                "b": {"type": "array", "items": {"$ref": "#/$defs/b"}, "minItems": 1}},
            "$defs": {"b": {"anyOf": [{"type": "number"}, {"type": "null"}]}},
        });
        check(&schema, &schema, &[]);
    }

    #[test]
    fn what_gemini_refuses_is_rewritten_or_noted() {
        check(
            &json!({"$schema": "x", "type": "object", "properties": {
                "a": {"const": "k"},
                "b": {"oneOf": [{"type": "string", "pattern": "^a"}]},
                "c": {"type": "number", "exclusiveMinimum": 0},
                "d": {"allOf": [{"properties": {"x": {}}, "required": ["x"]},
                    {"properties": {"y": {}}, "required": ["y"]}]},
                "pattern": {"type": "string"},
            }}),
            &json!({"type": "object", "properties": {
                "a": {"enum": ["k"]},
                "b": {"anyOf": [{"type": "string"}]},
                "c": {"type": "number", "minimum": 0},
                "d": {"properties": {"x": {}, "y": {}}, "required": ["x", "y"]},
                "pattern": {"type": "string"},
            }}),
            &["oneOf", "pattern", "exclusiveMinimum", "allOf"],
        );
    }

    #[test]
    fn only_fields_that_are_there_are_required_and_only_texts_and_numbers_listed() {
        check(
            &json!({"type": "object", "properties": {"a": {"const": true}},
                "required": ["a", "b"]}),
            &json!({"type": "object", "properties": {"a": {}}, "required": ["a"]}),
            &["enum", "required"],
        );
        // What a reference says is not known here.
        let open = json!({"$ref": "#/$defs/a", "required": ["b"]});
        check(&open, &open, &[]);
    }

    #[test]
    fn a_tool_without_parameters_is_known() {
        assert!(is_empty(&json!({"type": "object", "properties": {}})));
        assert!(is_empty(&json!({"type": "object", "additionalProperties": false})));
        assert!(!is_empty(&json!({"properties": {"a": {}}})));
        assert!(!is_empty(&json!({"$ref": "#/$defs/a"})));
    }

    #[test]
    fn googles_spelling_becomes_json_schema() {
        assert_eq!(
            read(json!({"type": "OBJECT", "propertyOrdering": ["a"], "properties": {
                "a": {"type": "STRING", "nullable": true, "format": "enum", "enum": ["x"]},
                "b": {"type": "ARRAY", "minItems": "2", "items": {"type": "INTEGER"}},
            }})),
            json!({"type": "object", "properties": {
                "a": {"type": ["string", "null"], "enum": ["x"]},
                "b": {"type": "array", "minItems": 2, "items": {"type": "integer"}},
            }})
        );
    }
}
