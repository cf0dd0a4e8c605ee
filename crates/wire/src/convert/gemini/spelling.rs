//! One spelling of Gemini's JSON: camel case, and lists as lists.
//!
//! Google reads keys in camel case and in snake case, and an object where a list of objects
//! stands; its own examples use both.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::convert::json_in::{Json, last_of_each};

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
pub(crate) fn normal(value: Json<'_>) -> Json<'_> {
    match value {
        Json::Object(fields) => {
            let has_other = fields.iter().any(|field| is_snake(&field.0));
            let fields = fields.into_iter().map(field).collect();
            // Two spellings of one field are the same field twice.
            Json::Object(if has_other { last_of_each(fields) } else { fields })
        }
        Json::Array(values) => Json::Array(values.into_iter().map(normal).collect()),
        other => other,
    }
}

fn field<'a>((key, value): (Cow<'a, str>, Json<'a>)) -> (Cow<'a, str>, Json<'a>) {
    let key = camel(key);
    if OPAQUE.contains(&key.as_ref()) {
        return (key, value);
    }
    let value = normal(value);
    let value = match value {
        Json::Object(_) if LISTS.contains(&key.as_ref()) => Json::Array(vec![value]),
        other => other,
    };
    (key, value)
}

/// Whether a key is in snake case. A leading underscore belongs to the name.
fn is_snake(key: &str) -> bool {
    key.as_bytes().get(1..).is_some_and(|rest| rest.contains(&b'_'))
}

fn camel(key: Cow<'_, str>) -> Cow<'_, str> {
    if !is_snake(&key) {
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
    Cow::Owned(out)
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
        let read = normal(Json::from(json!({
            "system_instruction": {"parts": {"text": "s"}},
            "contents": {"parts": [{"inline_data": {"mime_type": "image/png"}}]},
            "generation_config": {"max_output_tokens": 5, "response_schema": {"a_b": 1}},
            "_response_json_schema": {"x_y": 1},
        })));
        let expected = json!({
            "systemInstruction": {"parts": [{"text": "s"}]},
            "contents": [{"parts": [{"inlineData": {"mimeType": "image/png"}}]}],
            "generationConfig": {"maxOutputTokens": 5, "responseSchema": {"a_b": 1}},
            "_responseJsonSchema": {"x_y": 1},
        });
        assert_eq!(read.into_value(), expected);
    }
}
