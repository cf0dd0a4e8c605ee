//! Why a conversion cannot be made.

/// How many letters of a field's name, or of what is wrong with it, are told.
const MAX_QUOTED: usize = 200;

/// A request that cannot be converted. Nothing of it is sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestFault {
    /// The request is wrong in its own dialect.
    #[error("`{param}` {problem}")]
    Invalid {
        /// The field at fault, such as `messages[2].role`.
        param: String,
        /// What is wrong with it, such as `must be a string`.
        problem: String,
    },
    /// The request is right, and the target's dialect cannot say it.
    #[error("{what} cannot be sent in this target's dialect")]
    Impossible {
        /// What cannot be said, such as `n above 1`.
        what: String,
    },
}

/// What reading or writing a request gives, or why it cannot be converted.
pub type RequestResult<T> = Result<T, RequestFault>;

/// An answer that cannot be read: the target's fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplyFault {
    /// It is no JSON.
    #[error("not JSON")]
    NotJson,
    /// It is JSON, and not what the dialect says.
    #[error("not an answer of its dialect: {problem}")]
    NotTheDialect {
        /// What is missing or wrong, as a fixed phrase.
        problem: &'static str,
    },
    /// More had to be held back than the limit.
    #[error("an answer that must be held back is too long")]
    TooLong,
}

impl RequestFault {
    /// A field that is wrong.
    #[must_use]
    pub fn invalid(param: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Invalid { param: quoted(param.into()), problem: quoted(problem.into()) }
    }

    /// A thing that the target's dialect cannot say.
    #[must_use]
    pub fn impossible(what: impl Into<String>) -> Self {
        Self::Impossible { what: quoted(what.into()) }
    }
}

/// A text that may quote the client: not more of it than a reader would look at.
fn quoted(text: String) -> String {
    match text.char_indices().nth(MAX_QUOTED) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
