//! An error answer, in no dialect: what kind it is, and what it says.
//!
//! The status travels as it is; the words that SDKs look at are translated by [`ErrorType`].
//!
//! | type | OpenAI `type` | Anthropic `type` | Google `status` | HTTP |
//! |---|---|---|---|---|
//! | `InvalidRequest` | `invalid_request_error` | the same | `INVALID_ARGUMENT` | 400 |
//! | `Authentication` | `authentication_error` | `authentication_error` | `UNAUTHENTICATED` | 401 |
//! | `Billing` | `insufficient_quota` | `billing_error` | `RESOURCE_EXHAUSTED` | 402 |
//! | `Permission` | `permission_error` | `permission_error` | `PERMISSION_DENIED` | 403 |
//! | `NotFound` | `not_found_error` | `not_found_error` | `NOT_FOUND` | 404 |
//! | `TooLarge` | `invalid_request_error` | `request_too_large` | `INVALID_ARGUMENT` | 413 |
//! | `RateLimit` | `rate_limit_error` | `rate_limit_error` | `RESOURCE_EXHAUSTED` | 429 |
//! | `Server` | `server_error` | `api_error` | `INTERNAL` | 500 |
//! | `Overloaded` | `server_error` | `overloaded_error` | `UNAVAILABLE` | 503, 529 |
//! | `Timeout` | `timeout_error` | `timeout_error` | `DEADLINE_EXCEEDED` | 408, 504 |

use serde_json::{Map, Value, json};

use crate::dialect::Dialect;

/// How much of an answer that is no JSON is shown as its message.
const MAX_TEXT: usize = 500;

/// An error answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiError {
    /// The HTTP status; of an error inside a stream the one its type would have.
    pub status: u16,
    /// What kind.
    pub error_type: ErrorType,
    /// The provider's sentence.
    pub message: String,
    /// The provider's own code, where it has one (OpenAI's `code`).
    pub code: Option<String>,
    /// The field at fault, where it says one (OpenAI's `param`).
    pub param: Option<String>,
}

/// What kind of error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorType {
    /// The request is wrong.
    InvalidRequest,
    /// The key is wrong.
    Authentication,
    /// Credit is used up.
    Billing,
    /// The key may not do this.
    Permission,
    /// There is no such model or path.
    NotFound,
    /// The request is too large.
    TooLarge,
    /// Too many requests.
    RateLimit,
    /// The provider failed.
    Server,
    /// The provider has too much to do.
    Overloaded,
    /// It took too long.
    Timeout,
}

/// One row: the type, OpenAI's word, Anthropic's word, Google's word, the usual status.
type ErrorRow = (ErrorType, &'static str, &'static str, &'static str, u16);

const TABLE: [ErrorRow; 10] = [
    (
        ErrorType::InvalidRequest,
        "invalid_request_error",
        "invalid_request_error",
        "INVALID_ARGUMENT",
        400,
    ),
    (
        ErrorType::Authentication,
        "authentication_error",
        "authentication_error",
        "UNAUTHENTICATED",
        401,
    ),
    (ErrorType::Billing, "insufficient_quota", "billing_error", "RESOURCE_EXHAUSTED", 402),
    (ErrorType::Permission, "permission_error", "permission_error", "PERMISSION_DENIED", 403),
    (ErrorType::NotFound, "not_found_error", "not_found_error", "NOT_FOUND", 404),
    (ErrorType::TooLarge, "invalid_request_error", "request_too_large", "INVALID_ARGUMENT", 413),
    (ErrorType::RateLimit, "rate_limit_error", "rate_limit_error", "RESOURCE_EXHAUSTED", 429),
    (ErrorType::Server, "server_error", "api_error", "INTERNAL", 500),
    (ErrorType::Overloaded, "server_error", "overloaded_error", "UNAVAILABLE", 529),
    (ErrorType::Timeout, "timeout_error", "timeout_error", "DEADLINE_EXCEEDED", 504),
];

impl ApiError {
    /// Reads the body of an error answer. Every dialect puts its message under `error`; servers
    /// that imitate one are less careful, so the usual other places are looked at too.
    #[must_use]
    pub fn of_body(status: u16, body: &[u8]) -> Self {
        let mut error = Self {
            status,
            error_type: ErrorType::of_status(status),
            message: String::new(),
            code: None,
            param: None,
        };
        match serde_json::from_slice(body) {
            Ok(Value::Object(map)) => error.read(&map),
            Ok(Value::Array(values)) => {
                if let Some(Value::Object(map)) = values.first() {
                    error.read(map);
                }
            }
            _ => {
                let text = String::from_utf8_lossy(body);
                error.message = text.trim().chars().take(MAX_TEXT).collect();
            }
        }
        if error.message.is_empty() {
            error.message = format!("the provider answered with status {status}");
        }
        error
    }

    /// Reads an error inside a stream, which has no status of its own.
    #[must_use]
    pub fn of_event(data: &[u8]) -> Self {
        let mut error = Self::of_body(500, data);
        error.status = error.error_type.usual_status();
        error
    }

    fn read(&mut self, map: &Map<String, Value>) {
        let inner = match map.get("error") {
            Some(Value::Object(inner)) => inner,
            Some(Value::String(message)) => {
                self.message.clone_from(message);
                return;
            }
            _ => map,
        };
        let text = |key: &str| inner.get(key).and_then(Value::as_str).map(str::to_owned);
        let message = text("message").or_else(|| text("detail")).unwrap_or_default();
        self.message = message;
        self.code = text("code");
        self.param = text("param");
        let words = [text("type"), text("status"), self.code.clone()];
        let by_word = words.iter().flatten().find_map(|word| ErrorType::of_word(word));
        // The status says whose fault it is; a word that agrees with it says more.
        if let Some(by_word) = by_word
            && (self.status == 500 || by_word.usual_status() / 100 == self.status / 100)
        {
            self.error_type = by_word;
        }
    }

    /// Writes the error in a dialect's shape.
    #[must_use]
    pub fn to_body(&self, dialect: Dialect) -> Vec<u8> {
        let body = match dialect {
            Dialect::AnthropicMessages | Dialect::AnthropicJson => json!({
                "type": "error",
                "error": { "type": self.error_type.anthropic_word(), "message": self.message },
            }),
            Dialect::Gemini | Dialect::GeminiJson => json!({ "error": {
                "code": self.status,
                "message": self.message,
                "status": self.error_type.google_word(),
            }}),
            Dialect::OpenAiChat
            | Dialect::OpenAiCompletions
            | Dialect::OpenAiResponses
            | Dialect::Json => json!({ "error": {
                "message": self.message,
                "type": self.error_type.openai_word(),
                "param": self.param,
                "code": self.code,
            }}),
        };
        body.to_string().into_bytes()
    }
}

impl ErrorType {
    /// The type that an HTTP status means.
    #[must_use]
    pub const fn of_status(status: u16) -> Self {
        match status {
            401 => Self::Authentication,
            402 => Self::Billing,
            403 => Self::Permission,
            404 => Self::NotFound,
            408 | 504 => Self::Timeout,
            413 => Self::TooLarge,
            429 => Self::RateLimit,
            400..=499 => Self::InvalidRequest,
            503 | 529 => Self::Overloaded,
            _ => Self::Server,
        }
    }

    /// The type that a word of any dialect means.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        // Google says the same of a rate and of a spent quota; most often it is the rate.
        let is_googles = |row: &ErrorRow| word == row.3 && row.0 != Self::Billing;
        let names = |row: &&ErrorRow| word == row.1 || word == row.2 || is_googles(row);
        TABLE.iter().find(names).map(|row| row.0)
    }

    /// OpenAI's `error.type`.
    #[must_use]
    pub fn openai_word(self) -> &'static str {
        self.row().1
    }

    /// Anthropic's `error.type`.
    #[must_use]
    pub fn anthropic_word(self) -> &'static str {
        self.row().2
    }

    /// Google's `error.status`.
    #[must_use]
    pub fn google_word(self) -> &'static str {
        self.row().3
    }

    /// The status of an error inside a stream, which has none of its own.
    #[must_use]
    pub fn usual_status(self) -> u16 {
        self.row().4
    }

    fn row(self) -> &'static ErrorRow {
        // Every type has its row: the table is in the order of the variants.
        TABLE.iter().find(|row| row.0 == self).unwrap_or(&TABLE[7])
    }
}
