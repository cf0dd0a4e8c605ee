//! Google's words for errors.

use serde_json::{Value, json};

use super::ErrorText;

/// An error in Google's shape.
pub(super) fn value(text: ErrorText, model: &str, status: u16) -> Value {
    let (word, message) = match text {
        ErrorText::Quota | ErrorText::Billing => (
            "RESOURCE_EXHAUSTED",
            "You exceeded your current quota, please check your plan and billing details.".into(),
        ),
        ErrorText::ModelGone => {
            ("NOT_FOUND", format!("models/{model} is not found for API version v1beta"))
        }
        ErrorText::ContextLength => (
            "INVALID_ARGUMENT",
            "The input token count (1200000) exceeds the maximum number of tokens allowed \
                (1048576)."
                .into(),
        ),
        ErrorText::ContentFilter => {
            ("INVALID_ARGUMENT", "The prompt was blocked by a safety filter.".into())
        }
        ErrorText::Json
        | ErrorText::Html
        | ErrorText::Empty
        | ErrorText::GzipGarbage
        | ErrorText::HalfJson => {
            let (word, message) = by_status(status);
            (word, message.to_owned())
        }
    };
    let mut error = json!({"code": status, "message": message, "status": word});
    if text == ErrorText::Quota || text == ErrorText::Billing {
        error["details"] = json!([{"@type": "type.googleapis.com/google.rpc.QuotaFailure",
            "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel"}]}]);
    }
    json!({ "error": error })
}

fn by_status(status: u16) -> (&'static str, &'static str) {
    match status {
        401 => ("UNAUTHENTICATED", "Request had invalid authentication credentials."),
        403 => ("PERMISSION_DENIED", "The caller does not have permission."),
        404 => ("NOT_FOUND", "Requested entity was not found."),
        429 => ("RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."),
        503 | 529 => ("UNAVAILABLE", "The model is overloaded. Please try again later."),
        504 => ("DEADLINE_EXCEEDED", "The request timed out."),
        400..500 => ("INVALID_ARGUMENT", "Request contains an invalid argument."),
        _ => ("INTERNAL", "An internal error has occurred."),
    }
}
