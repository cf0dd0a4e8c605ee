//! Messages as text: an envelope around parts that are text already.
//!
//! A part is the text of one JSON value, from [`RawValue::get`](serde_json::value::RawValue::get)
//! or a `to_json`; it is copied, never read.

use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::Id;
use crate::raw::{one_line, quoted};

/// A request.
#[must_use]
pub fn request(id: &Id, method: &str, params: Option<&str>) -> String {
    call(Some(id), method, params)
}

/// A notification.
#[must_use]
pub fn notification(method: &str, params: Option<&str>) -> String {
    call(None, method, params)
}

fn call(id: Option<&Id>, method: &str, params: Option<&str>) -> String {
    let mut json = envelope(method.len() + params.map_or(0, str::len));
    if let Some(id) = id {
        push(&mut json, "id", id.as_json());
    }
    push(&mut json, "method", &quoted(method));
    if let Some(params) = params {
        push(&mut json, "params", params);
    }
    close(json)
}

/// An answer with a result.
#[must_use]
pub fn result(id: &Id, result: &str) -> String {
    let mut json = envelope(result.len());
    push(&mut json, "id", id.as_json());
    push(&mut json, "result", result);
    close(json)
}

/// An answer with an error of our own. Without an id it is about a message whose id could not be
/// read.
#[must_use]
pub fn error(id: Option<&Id>, code: i64, message: &str, data: Option<&str>) -> String {
    let mut json = envelope(message.len() + data.map_or(0, str::len));
    push(&mut json, "id", id.map_or("null", Id::as_json));
    push(&mut json, "error", &error_object(code, message, data));
    close(json)
}

/// The `error` of an answer.
#[must_use]
pub fn error_object(code: i64, message: &str, data: Option<&str>) -> String {
    let mut json = format!(r#"{{"code":{code},"message":{}"#, quoted(message));
    if let Some(data) = data {
        push(&mut json, "data", data);
    }
    json.push('}');
    json
}

/// An answer whose `result` or `error` is text already.
#[must_use]
pub fn made(id: &Id, outcome: &Result<String, String>) -> String {
    let (key, value) = match outcome {
        Ok(value) => ("result", value),
        Err(value) => ("error", value),
    };
    let mut json = envelope(value.len());
    push(&mut json, "id", id.as_json());
    push(&mut json, key, value);
    close(json)
}

/// Somebody else's answer, under another id.
#[must_use]
pub fn answer(id: &Id, outcome: Result<&RawValue, &RawValue>) -> String {
    let (key, value) = match outcome {
        Ok(value) => ("result", value.get()),
        Err(value) => ("error", value.get()),
    };
    let mut json = envelope(value.len());
    push(&mut json, "id", id.as_json());
    push(&mut json, key, value);
    close(json)
}

fn envelope(size: usize) -> String {
    /// Keys, punctuation and a usual id.
    const AROUND: usize = 96;
    let mut json = String::with_capacity(size + AROUND);
    json.push_str(r#"{"jsonrpc":"2.0""#);
    json
}

fn push(json: &mut String, key: &str, value: &str) {
    json.push_str(",\"");
    json.push_str(key);
    json.push_str("\":");
    json.push_str(value);
}

fn close(mut json: String) -> String {
    json.push('}');
    debug_assert!(serde_json::from_str::<IgnoredAny>(&json).is_ok(), "parts are JSON: {json}");
    one_line(json)
}
