//! Whether a 2xx body that does not stream is an answer or an error in disguise.
//!
//! Some providers answer 200 and put an error into the body. Counted as a success it would keep a
//! broken backend in use.
//!
//! Rules:
//! - An error is an object whose top-level `error` says something (`null`, `false`, `0`, `""` and
//!   what is empty say nothing), or whose top-level `type` or `object` is `"error"`. The same words
//!   deeper down are the model's own. A body without the word costs one search; otherwise the top
//!   level is walked up to the key that decides.
//! - A body that is no whole JSON value, or `null`, is no answer at all. Where the dialect answers
//!   with an object, nothing else is an answer.
//!
//! Left to others: which class the error has ([`crate::classify`]); answers that are not JSON on
//! purpose, such as audio (the server).

use crate::dialect::Dialect;
use crate::error_key::is_error;
use crate::json::{Fault, Scanner, What};

/// What a 2xx body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyKind {
    /// JSON that claims no error.
    Answer,
    /// An error.
    Error,
    /// Nothing that was asked for; the phrase says what it is instead.
    Nothing(&'static str),
}

/// Looks at a whole body where JSON was asked for.
#[must_use]
pub fn kind(dialect: Dialect, body: &[u8]) -> BodyKind {
    let text = body.trim_ascii_start();
    let must_be_object = dialect.answers_with_object();
    let mut scanner = Scanner::of_answer(body);
    match (text.first(), scanner.skip_value().and_then(|()| scanner.end())) {
        (None, _) => BodyKind::Nothing("an empty body"),
        (Some(b'<'), _) => BodyKind::Nothing("a web page instead of JSON"),
        (_, Err(Fault { what: What::EndsEarly, .. })) => {
            BodyKind::Nothing("JSON that ends too early")
        }
        (_, Err(_)) => BodyKind::Nothing("a body that is no JSON"),
        (Some(b'n'), Ok(())) => BodyKind::Nothing("null instead of an answer"),
        (_, Ok(())) if is_error(body) => BodyKind::Error,
        (Some(first), Ok(())) if must_be_object && *first != b'{' => {
            BodyKind::Nothing("JSON that is no object")
        }
        (_, Ok(())) => BodyKind::Answer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &str, expected: BodyKind) {
        assert_eq!(kind(Dialect::Json, body.as_bytes()), expected, "{body}");
    }

    #[test]
    fn an_error_is_told_from_an_answer() {
        check(r#"{"error":{"message":"no"}}"#, BodyKind::Error);
        check(r#"{"id":"x","error":"no"}"#, BodyKind::Error);
        check(r#"[{"error":{"code":500}}]"#, BodyKind::Error);
        check(r#"{"type":"error","error":{"type":"overloaded_error"}}"#, BodyKind::Error);
        check(r#"{"error":null,"object":"error","message":"no"}"#, BodyKind::Error);
        check(r#"{"choices":[],"error":1}"#, BodyKind::Error);
    }

    #[test]
    fn the_word_alone_is_no_error() {
        for error in ["null", "false", "0", "0.0", "-0", "\"\"", "{}", "[]"] {
            check(&format!(r#"{{"id":"x","error":{error},"output":[]}}"#), BodyKind::Answer);
        }
        check(r#"{"choices":[{"error":"x","finish_reason":"error"}]}"#, BodyKind::Answer);
        check(r#"{"choices":[{"message":{"content":"{\"error\":1}"}}]}"#, BodyKind::Answer);
        check("[]", BodyKind::Answer);
    }

    #[test]
    fn a_body_that_breaks_off_is_nothing_at_every_place() {
        let body = b"{\"choices\":[{\"message\":{\"content\":\"hello\"}}]}\n";
        assert_eq!(kind(Dialect::OpenAiChat, body), BodyKind::Answer);
        for end in 1..body.len() - 2 {
            let found = kind(Dialect::OpenAiChat, &body[..end]);
            assert_eq!(found, BodyKind::Nothing("JSON that ends too early"), "{end}");
        }
    }

    #[test]
    fn what_is_no_json_is_nothing() {
        for body in ["", " \n", "<html>Bad Gateway</html>", "null", "{} {}", "\u{1f}\u{8b}", "OK"] {
            let found = kind(Dialect::Json, body.as_bytes());
            assert!(matches!(found, BodyKind::Nothing(_)), "{body}: {found:?}");
        }
    }

    #[test]
    fn where_an_object_is_answered_with_nothing_else_is_an_answer() {
        for body in ["[]", "\"text\"", "1", "true"] {
            let found = kind(Dialect::AnthropicMessages, body.as_bytes());
            assert_eq!(found, BodyKind::Nothing("JSON that is no object"), "{body}");
            check(body, BodyKind::Answer);
        }
        let error = br#"[{"error":{"code":500}}]"#;
        assert_eq!(kind(Dialect::OpenAiChat, error), BodyKind::Error);
    }
}
