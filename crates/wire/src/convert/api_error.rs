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
type Row = (ErrorType, &'static str, &'static str, &'static str, u16);

const TABLE: [Row; 10] = [
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
        let names = |row: &&Row| word == row.1 || word == row.2 || word == row.3;
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

    fn row(self) -> &'static Row {
        // Every type has its row: the table is in the order of the variants.
        TABLE.iter().find(|row| row.0 == self).unwrap_or(&TABLE[7])
    }
}
