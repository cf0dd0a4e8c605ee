//! Error answers in the words of each dialect.
//!
//! The types and codes are those that the vendors' official SDKs and other gateways look at; the
//! sentences are close to what vendors write, because classification reads them.

mod google;

use bytes::Bytes;
use serde_json::{Value, json};

use super::ask::{Ask, Dialect};
use super::dialect::{data, typed};
use super::step::{ErrorText, Step};

/// The body of an error, and what its headers say about it.
#[derive(Clone, Debug)]
pub(super) struct ErrorBody {
    pub(super) bytes: Bytes,
    pub(super) content_type: &'static str,
    pub(super) is_said_to_be_gzip: bool,
}

/// The body that a step asks for.
pub(super) fn body(step: &Step, ask: &Ask, status: u16) -> ErrorBody {
    let json = || value(step.body, ask, status).to_string();
    let (text, content_type) = match (&step.text, step.body) {
        (Some(text), _) => {
            let is_json = serde_json::from_str::<Value>(text).is_ok();
            (text.clone(), if is_json { JSON } else { "text/plain; charset=utf-8" })
        }
        (None, ErrorText::Html) => (HTML.replace("STATUS", &status.to_string()), "text/html"),
        (None, ErrorText::Empty) => (String::new(), "text/plain; charset=utf-8"),
        (None, ErrorText::HalfJson) => {
            let json = json();
            (json.chars().take(json.chars().count() / 2).collect(), JSON)
        }
        (None, _) => (json(), JSON),
    };
    let is_said_to_be_gzip = step.text.is_none() && step.body == ErrorText::GzipGarbage;
    let bytes = if is_said_to_be_gzip { Bytes::from_static(NOT_GZIP) } else { Bytes::from(text) };
    ErrorBody { bytes, content_type, is_said_to_be_gzip }
}

pub(super) const JSON: &str = "application/json";

/// Begins like gzip and goes on like nothing.
const NOT_GZIP: &[u8] = b"\x1f\x8b\x08\x00garbage that no inflater accepts";

const HTML: &str = "<!DOCTYPE html>\n<html><head><title>STATUS</title></head><body>\
    <center><h1>STATUS</h1></center><hr><center>a proxy in between</center></body></html>\n";

/// An error in the dialect's shape.
pub(super) fn value(text: ErrorText, ask: &Ask, status: u16) -> Value {
    if ask.dialect.is_anthropic() {
        let (kind, message) = anthropic_words(text, &ask.model, status);
        json!({"type": "error", "error": {"type": kind, "message": message},
            "request_id": "req_fake"})
    } else if ask.dialect.is_google() {
        google::value(text, &ask.model, status)
    } else {
        let (kind, code, message) = openai_words(text, &ask.model, status);
        json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
    }
}

/// The event that says, inside a stream, that it failed; `sequence` numbers it where events are.
pub(super) fn event(ask: &Ask, sequence: usize) -> Bytes {
    match ask.dialect {
        Dialect::Messages => typed(&value(ErrorText::Json, ask, 529)),
        Dialect::Responses => typed(&json!({
            "type": "error", "code": "server_error", "param": null, "sequence_number": sequence,
            "message": "The server had an error while processing your request.",
        })),
        _ => data(&value(ErrorText::Json, ask, 500)),
    }
}

fn anthropic_words(text: ErrorText, model: &str, status: u16) -> (&'static str, String) {
    let (kind, message) = match text {
        ErrorText::Quota => ("rate_limit_error", "enforced_spend_limit_reached: no quota is left"),
        ErrorText::Billing => ("billing_error", "Your credit balance is too low"),
        ErrorText::ModelGone => return ("not_found_error", format!("model: {model}")),
        ErrorText::ContextLength => {
            ("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum")
        }
        ErrorText::ContentFilter => {
            ("invalid_request_error", "Output blocked by content filtering policy")
        }
        ErrorText::Json
        | ErrorText::Html
        | ErrorText::Empty
        | ErrorText::GzipGarbage
        | ErrorText::HalfJson => match status {
            401 => ("authentication_error", "invalid x-api-key"),
            402 => ("billing_error", "Your credit balance is too low"),
            403 => ("permission_error", "Your key may not do this"),
            404 => ("not_found_error", "Not found"),
            413 => ("request_too_large", "Request exceeds the maximum size"),
            429 => ("rate_limit_error", "Number of requests has exceeded your rate limit"),
            503 | 529 => ("overloaded_error", "Overloaded"),
            504 => ("timeout_error", "Request timed out"),
            400..500 => ("invalid_request_error", "The request is not valid"),
            _ => ("api_error", "Internal server error"),
        },
    };
    (kind, message.to_owned())
}

fn openai_words(text: ErrorText, model: &str, status: u16) -> (&'static str, Value, String) {
    let (kind, code, message) = match text {
        ErrorText::Quota => (
            "insufficient_quota",
            json!("insufficient_quota"),
            "You exceeded your current quota, please check your plan and billing details.",
        ),
        ErrorText::Billing => (
            "billing_error",
            json!("credit_balance_exhausted"),
            "Insufficient credits: the balance is used up.",
        ),
        ErrorText::ModelGone => {
            let message =
                format!("The model `{model}` does not exist or you have no access to it.");
            return ("invalid_request_error", json!("model_not_found"), message);
        }
        ErrorText::ContextLength => (
            "invalid_request_error",
            json!("context_length_exceeded"),
            "This model's maximum context length is 128000 tokens.",
        ),
        ErrorText::ContentFilter => (
            "invalid_request_error",
            json!("content_filter"),
            "The prompt triggered the content management policy.",
        ),
        ErrorText::Json
        | ErrorText::Html
        | ErrorText::Empty
        | ErrorText::GzipGarbage
        | ErrorText::HalfJson => match status {
            401 => {
                ("invalid_request_error", json!("invalid_api_key"), "Incorrect API key provided.")
            }
            402 => ("billing_error", json!("insufficient_credits"), "Insufficient balance."),
            403 => ("permission_error", Value::Null, "Your key may not do this."),
            404 => ("invalid_request_error", Value::Null, "Unknown request URL."),
            429 => ("requests", json!("rate_limit_exceeded"), "Rate limit reached for requests."),
            503 | 529 => {
                ("server_error", json!("server_is_overloaded"), "The server is overloaded.")
            }
            400..500 => ("invalid_request_error", Value::Null, "The request is not valid."),
            _ => (
                "server_error",
                Value::Null,
                "The server had an error while processing your request.",
            ),
        },
    };
    (kind, code, message.to_owned())
}
