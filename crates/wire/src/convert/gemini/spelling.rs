//! One spelling of Gemini's JSON: camel case, and lists as lists.
//!
//! Google reads keys in camel case and in snake case, and an object where a list of objects
//! stands; its own examples use both.

use serde_json::{Map, Value};

/// Keys whose value is the caller's own JSON and stays as it is.
const OPAQUE: [&str; 8] = [
    "args",
    "response",
    "parameters",
    "parametersJsonSchema",
    "responseSchema",
    "responseJsonSchema",
    "_responseJsonSchema",
    "labels",
];

/// Keys of lists, which may be written as their one element.
const LISTS: [&str; 4] = ["contents", "parts", "tools", "functionDeclarations"];

/// Brings `value` to one spelling. JSON that was parsed is never deeper than the parser allows.
pub(crate) fn normal(value: Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(map.into_iter().map(field).collect()),
        Value::Array(values) => Value::Array(values.into_iter().map(normal).collect()),
        other => other,
    }
}

fn field((key, value): (String, Value)) -> (String, Value) {
    let key = camel(key);
    if OPAQUE.contains(&key.as_str()) {
        return (key, value);
    }
    let value = normal(value);
    let value = match value {
        Value::Object(_) if LISTS.contains(&key.as_str()) => Value::Array(vec![value]),
        other => other,
    };
    (key, value)
}

fn camel(key: String) -> String {
    // A leading underscore belongs to the name.
    if !key.get(1..).is_some_and(|rest| rest.contains('_')) {
        return key;
    }
    let mut out = String::with_capacity(key.len());
    let mut is_upper = false;
    for (at, letter) in key.chars().enumerate() {
        if letter == '_' && at > 0 {
            is_upper = true;
        } else if is_upper {
            out.push(letter.to_ascii_uppercase());
            is_upper = false;
        } else {
            out.push(letter);
        }
    }
    out
}

/// An object without the fields whose value is null.
pub(super) fn without_nulls(mut map: Map<String, Value>) -> Value {
    map.retain(|_, value| !value.is_null());
    Value::Object(map)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn both_spellings_become_one() {
        let read = normal(json!({
            "system_instruction": {"parts": {"text": "s"}},
            "contents": {"parts": [{"inline_data": {"mime_type": "image/png"}}]},
            "generation_config": {"max_output_tokens": 5, "response_schema": {"a_b": 1}},
            "_response_json_schema": {"x_y": 1},
        }));
        let expected = json!({
            "systemInstruction": {"parts": [{"text": "s"}]},
            "contents": [{"parts": [{"inlineData": {"mimeType": "image/png"}}]}],
            "generationConfig": {"maxOutputTokens": 5, "responseSchema": {"a_b": 1}},
            "_responseJsonSchema": {"x_y": 1},
        });
        assert_eq!(read, expected);
    }
}
