//! Errors of Gemini's API: `{"error": {"code", "message", "status"}}`, sometimes inside a list.

use serde_json::{Value, json};

use crate::convert::api_error::{ApiError, ErrorType};

/// Reads an error body; one that is not of this shape becomes its text.
#[must_use]
pub fn read_error(status: u16, body: &[u8]) -> ApiError {
    let value: Value = serde_json::from_slice(body).unwrap_or_default();
    let value = value.get(0).unwrap_or(&value);
    let error = &value["error"];
    let word = error["status"].as_str().unwrap_or_default();
    // The status of the answer is surer than the word: one word stands for several statuses.
    let error_type = match status {
        400..=599 => ErrorType::of_status(status),
        _ => ErrorType::of_word(word).unwrap_or(ErrorType::Server),
    };
    let message = match error["message"].as_str() {
        Some(message) => message.to_owned(),
        None => String::from_utf8_lossy(body).into_owned(),
    };
    let code = (!word.is_empty()).then(|| word.to_owned());
    ApiError { status, error_type, message, code, param: None }
}

/// The error inside an event of a stream, which has no status but its code.
#[must_use]
pub fn read_error_event(event: &Value) -> ApiError {
    let code = event["error"]["code"].as_u64().and_then(|code| u16::try_from(code).ok());
    let status = code.filter(|code| (400..600).contains(code)).unwrap_or(500);
    read_error(status, event.to_string().as_bytes())
}

/// Writes an error body, which is also the data of an event.
#[must_use]
pub fn write_error(error: &ApiError) -> Vec<u8> {
    json!({"error": {
        "code": error.status,
        "message": error.message,
        "status": error.error_type.google_word(),
    }})
    .to_string()
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_read_whatever_its_shape() {
        let body = br#"[{"error":{"code":429,"message":"slow","status":"RESOURCE_EXHAUSTED"}}]"#;
        let error = read_error(429, body);
        assert_eq!(error.error_type, ErrorType::RateLimit);
        assert_eq!((error.message.as_str(), error.status), ("slow", 429));
        assert_eq!(read_error(502, b"<html>").message, "<html>");
        let event = json!({"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}});
        assert_eq!(read_error_event(&event).error_type, ErrorType::Overloaded);
        assert_eq!(read_error_event(&json!({"error": "x"})).status, 500);
    }

    #[test]
    fn an_error_is_written_with_googles_word() {
        let error = read_error(404, br#"{"error":{"message":"gone"}}"#);
        let value: Value = serde_json::from_slice(&write_error(&error)).expect("JSON");
        assert_eq!(
            value,
            json!({"error": {"code": 404, "message": "gone", "status": "NOT_FOUND"}})
        );
    }
}
