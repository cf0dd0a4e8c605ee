//! Whether a 2xx body that does not stream is an answer or an error in disguise.
//!
//! Some providers answer 200 and put an error into the body. Counted as a success it would keep a
//! broken backend in use.
//!
//! Rules:
//! - An error is an object whose top-level `error` says something (`null`, `false`, `0`, `""` and
//!   what is empty say nothing), or whose top-level `type` or `object` is `"error"`. The same words
//!   deeper down are the model's own.
//! - A body that is no whole JSON value, or `null`, is no answer at all. Where the dialect answers
//!   with an object, nothing else is an answer.
//! - An object is read once: its top level is walked, which checks the whole, and the tokens that
//!   its top-level `usage` tells are read on the way.
//!
//! Left to others: which class the error has ([`crate::classify`]); answers that are not JSON on
//! purpose, such as audio (the server).

use crate::dialect::Dialect;
use crate::error_key::{is_error, tells_error};
use crate::json::{Fault, Scanner, What};
use crate::usage::Usage;

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

/// What a whole body says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadBody {
    /// What it is.
    pub kind: BodyKind,
    /// The tokens that its top level tells of.
    pub usage: Option<Usage>,
}

/// Reads a whole body where JSON was asked for.
#[must_use]
pub fn read(dialect: Dialect, body: &[u8]) -> ReadBody {
    let text = body.trim_ascii_start();
    let must_be_object = dialect.answers_with_object();
    let mut scanner = Scanner::of_answer(body);
    let read = match text.first() {
        Some(b'{') => TopLevel::read(&mut scanner),
        _ => scanner.skip_value().map(|()| TopLevel { is_error: is_error(body), usage: None }),
    };
    let read = read.and_then(|top| scanner.end().map(|()| top));
    let kind = match (text.first(), &read) {
        (None, _) => BodyKind::Nothing("an empty body"),
        (Some(b'<'), _) => BodyKind::Nothing("a web page instead of JSON"),
        (_, Err(Fault { what: What::EndsEarly, .. })) => {
            BodyKind::Nothing("JSON that ends too early")
        }
        (_, Err(_)) => BodyKind::Nothing("a body that is no JSON"),
        (Some(b'n'), Ok(_)) => BodyKind::Nothing("null instead of an answer"),
        (_, Ok(TopLevel { is_error: true, .. })) => BodyKind::Error,
        (Some(first), Ok(_)) if must_be_object && *first != b'{' => {
            BodyKind::Nothing("JSON that is no object")
        }
        (_, Ok(_)) => BodyKind::Answer,
    };
    ReadBody { kind, usage: read.ok().and_then(|top| top.usage) }
}

/// What the keys at the top level of an object say.
struct TopLevel {
    is_error: bool,
    usage: Option<Usage>,
}

impl TopLevel {
    fn read(scanner: &mut Scanner<'_>) -> Result<Self, Fault> {
        let mut top = Self { is_error: false, usage: None };
        let mut walk = scanner.enter(b'{')?;
        while let Some(key) = scanner.next_key(&mut walk)? {
            let name = key.name();
            top.is_error = top.is_error || tells_error(&name, scanner.rest());
            let is_usage = matches!(&*name, b"usage" | b"usageMetadata");
            if is_usage && scanner.peek() == Some(b'{') {
                top.usage = Some(Usage::read(scanner)?);
            } else {
                scanner.skip_value()?;
            }
        }
        Ok(top)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &str, expected: BodyKind) {
        assert_eq!(kind(Dialect::Json, body.as_bytes()), expected, "{body}");
    }

    fn kind(dialect: Dialect, body: &[u8]) -> BodyKind {
        read(dialect, body).kind
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

    #[test]
    fn usage_is_told_by_the_top_level_of_a_sound_object() {
        let used = |body: &str| read(Dialect::Json, body.as_bytes()).usage;
        let told = Some(Usage { input: 9, output: 3, cached: 0 });
        let counts = r#"{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}"#;
        assert_eq!(used(&format!(r#"{{"choices":[],"usage":{counts}}}"#)), told);
        assert_eq!(used(&format!(r#"{{"usage" : {counts} , "x":[{{"usage":{{}}}}]}}"#)), told);
        for nothing in [
            format!(r#"{{"x":{{"usage":{counts}}}}}"#),
            format!(r#"{{"usage":{counts}"#),
            format!(r#"[{{"usage":{counts}}}]"#),
            r#"{"usage":null}"#.to_owned(),
        ] {
            assert_eq!(used(&nothing), None, "{nothing}");
        }
    }
}
