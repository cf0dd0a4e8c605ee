//! Whether a 2xx body that does not stream is an answer or an error in disguise.
//!
//! Some providers answer 200 and put an error into the body. Counted as a success it would keep a
//! broken backend in use.
//!
//! Rules: an error is an object whose top-level `error` is there (not `null`, `false`, `""` or
//! empty), or whose top-level `type` or `object` is `"error"`. The same words deeper down are the
//! model's own. A body without the word costs one search; otherwise the top level is walked up to
//! the key that decides.
//!
//! Left to others: which class the error has ([`crate::classify`]).

use std::sync::LazyLock;

use memchr::memmem::Finder;

use crate::json::{Fault, Scanner, is_blank};

static ERROR: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"error\""));

/// What a 2xx body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyKind {
    /// JSON that claims no error.
    Answer,
    /// An error.
    Error,
    /// Not JSON: an HTML page, compressed bytes, nothing at all.
    NotJson,
}

/// Looks at a body. Its JSON is not checked beyond what is needed to decide.
#[must_use]
pub fn kind(body: &[u8]) -> BodyKind {
    let first = body.iter().find(|byte| !byte.is_ascii_whitespace());
    match first {
        Some(b'{' | b'[') if is_error(body) => BodyKind::Error,
        Some(b'{' | b'[') => BodyKind::Answer,
        _ => BodyKind::NotJson,
    }
}

/// Whether a body is one JSON value from its first byte to its last: of one that has no told length
/// only this says that nothing is missing.
#[must_use]
pub fn is_whole(body: &[u8]) -> bool {
    let mut scanner = Scanner::new(body);
    scanner.skip_value().and_then(|()| scanner.end()).is_ok()
}

/// Whether the object in `text` is an error. Text that breaks off is judged by what is there.
pub(crate) fn is_error(text: &[u8]) -> bool {
    ERROR.find(text).is_some() && has_error_key(text).unwrap_or(false)
}

fn has_error_key(text: &[u8]) -> Result<bool, Fault> {
    let mut scanner = Scanner::new(text);
    // Gemini wraps its errors into a list.
    if scanner.peek() == Some(b'[') {
        scanner.enter(b'[')?;
    }
    let mut walk = scanner.enter(b'{')?;
    while let Some(key) = scanner.next_key(&mut walk)? {
        let value = scanner.rest();
        if key.is("error") {
            return Ok(!is_blank(value) && !value.starts_with(b"false"));
        }
        if (key.is("type") || key.is("object")) && value.starts_with(b"\"error\"") {
            return Ok(true);
        }
        scanner.skip_value()?;
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &str, expected: BodyKind) {
        assert_eq!(kind(body.as_bytes()), expected, "{body}");
    }

    #[test]
    fn an_error_is_told_from_an_answer() {
        check(r#"{"error":{"message":"no"}}"#, BodyKind::Error);
        check(r#"{"id":"x","error":"no"}"#, BodyKind::Error);
        check(r#"[{"error":{"code":500}}]"#, BodyKind::Error);
        check(r#"{"type":"error","error":{"type":"overloaded_error"}}"#, BodyKind::Error);
        check(r#"{"object":"error","message":"no"}"#, BodyKind::Error);
        check(r#"{"error":{"message":"cut o"#, BodyKind::Error);
    }

    #[test]
    fn the_word_alone_is_no_error() {
        check(r#"{"id":"x","error":null,"output":[]}"#, BodyKind::Answer);
        check(r#"{"choices":[{"error":"x","finish_reason":"error"}]}"#, BodyKind::Answer);
        check(r#"{"choices":[{"message":{"content":"{\"error\":1}"}}]}"#, BodyKind::Answer);
        check(r#"{"error":{},"id":"error"}"#, BodyKind::Answer);
        check("[]", BodyKind::Answer);
    }

    #[test]
    fn a_body_that_breaks_off_is_not_whole() {
        let body = b"{\"choices\":[{\"message\":{\"content\":\"hello\"}}]}\n";
        assert!(is_whole(body));
        for end in 0..body.len() - 2 {
            assert!(!is_whole(&body[..end]), "{end}");
        }
        assert!(!is_whole(b"{} {}"));
    }

    #[test]
    fn pages_and_garbage_are_not_json() {
        check("<html>Bad Gateway</html>", BodyKind::NotJson);
        check("", BodyKind::NotJson);
        check("\u{1f}\u{8b}", BodyKind::NotJson);
    }
}
