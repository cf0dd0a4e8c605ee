//! Whose answer was it? Looks for the id of an answer that was too long to be held, in what is
//! left of it: its two ends.
//!
//! Without it the caller would wait for its deadline. Only what is certain is said: members before
//! the first nested value are read in order, and the very last member of the outer object, because
//! the brace that ends the line is the outer one. A request of the server's is no answer.

use super::lines::Ends;

/// The call of ours that this line answered.
pub(super) fn answered_call(ends: &Ends) -> Option<u64> {
    let mut rest = head(ends).trim_start().strip_prefix('{')?;
    let mut id = None;
    loop {
        let (name, value) = member(rest)?;
        match name {
            "result" | "error" => return id.or_else(|| last_id(&ends.tail)),
            "method" => return None,
            _ => {}
        }
        let (scalar, after) = scalar(value)?;
        if name == "id" && !value.starts_with('"') {
            id = scalar.parse().ok();
        }
        rest = after.trim_start().strip_prefix(',')?;
    }
}

/// The id of a request that this line was, as text of JSON.
pub(crate) fn asked_id(ends: &Ends) -> Option<String> {
    let mut rest = head(ends).trim_start().strip_prefix('{')?;
    let mut id = None;
    loop {
        let (name, value) = member(rest)?;
        if matches!(name, "result" | "error") {
            return None;
        }
        let Some((_, after)) = scalar(value) else {
            return id.or_else(|| last_value("id", &ends.tail));
        };
        if name == "id" {
            id = Some(value[..value.len() - after.len()].to_owned());
        }
        rest = after.trim_start().strip_prefix(',')?;
    }
}

fn head(ends: &Ends) -> &str {
    str::from_utf8(&ends.head).unwrap_or_else(|error| {
        // The cut may be in the middle of a character.
        str::from_utf8(&ends.head[..error.valid_up_to()]).unwrap_or_default()
    })
}

/// `"name": …`: the name, and what follows the colon.
fn member(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.trim_start().strip_prefix('"')?.split_once('"')?;
    Some((name, rest.trim_start().strip_prefix(':')?.trim_start()))
}

/// A string without escapes, a number or a word, and what follows it.
fn scalar(text: &str) -> Option<(&str, &str)> {
    if let Some(text) = text.strip_prefix('"') {
        let (value, rest) = text.split_once('"')?;
        return (!value.contains('\\')).then_some((value, rest));
    }
    let end = text.find(|it: char| !it.is_ascii_alphanumeric() && !"+-.".contains(it))?;
    (end > 0).then(|| text.split_at(end))
}

/// The id, if it is the last member of the outer object.
fn last_id(tail: &[u8]) -> Option<u64> {
    last_value("id", tail)?.parse().ok()
}

/// The value of this name, if it is the last member of the outer object: digits, or a text.
fn last_value(name: &str, tail: &[u8]) -> Option<String> {
    // A tail that begins inside a character is sound from the next ASCII character on.
    let tail = String::from_utf8_lossy(tail);
    let value = tail.trim_end().strip_suffix('}')?.trim_end();
    let start = match value.strip_suffix('"') {
        Some(text) => text.rfind('"')?,
        None => value.rfind(|it: char| !it.is_ascii_digit())? + 1,
    };
    let (before, value) = value.split_at(start);
    let before = before.trim_end().strip_suffix(':')?.trim_end();
    let before = before.strip_suffix('"')?.strip_suffix(name)?.strip_suffix('"')?;
    before.trim_end().ends_with(',').then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(head: &str, tail: &str, expected: Option<u64>) {
        let ends = Ends { head: head.into(), tail: tail.into(), bytes: 1 << 30 };
        assert_eq!(answered_call(&ends), expected, "{head} … {tail}");
    }

    #[test]
    fn an_id_is_found_at_either_end_of_an_answer() {
        check(r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"te"#, r#"xx"}]}}"#, Some(7));
        check(r#"{ "jsonrpc": "2.0", "id": 7, "error": {"#, "}}", Some(7));
        check(r#"{"result":{"content":"#, r#"xx"}]},"jsonrpc":"2.0","id":7}"#, Some(7));
        check(r#"{"result":{"content":"#, "xx\"}]}, \"id\" : 7 } ", Some(7));
    }

    #[test]
    fn a_request_that_was_too_long_has_its_id_at_either_end() {
        let check = |head: &str, tail: &str, expected: Option<&str>| {
            let ends = Ends { head: head.into(), tail: tail.into(), bytes: 1 << 30 };
            assert_eq!(asked_id(&ends).as_deref(), expected, "{head} … {tail}");
        };
        check(r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"#, "}}", Some("7"));
        check(r#"{"id" : "a b", "params":{"#, "}}", Some("\"a b\""));
        check(r#"{"method":"x","params":{"#, r#"}},"jsonrpc":"2.0","id":7}"#, Some("7"));
        check(r#"{"method":"x","params":{"#, r#"}},"id":"x-1"}"#, Some("\"x-1\""));
        check(r#"{"method":"x","params":{"#, r#"\"id\":7}"}}"#, None);
        check(r#"{"method":"x","params":{"#, r#"{"id":7}}"#, None);
        check(r#"{"id":7,"result":{"#, "}}", None);
        check(r#"{"result":{"#, r#"},"id":7}"#, None);
        check("nonsense", "}", None);
    }

    #[test]
    fn nothing_is_guessed() {
        // A request or a notification of the server's.
        check(r#"{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","par"#, "}}", None);
        check(r#"{"method":"sampling/createMessage","params":{"#, r#"},"id":7}"#, None);
        check(r#"{"params":{"#, r#"},"method":"x","id":7}"#, None);
        // An id of something inside.
        check(r#"{"result":{"items":[{"#, r#"},{"id":7}]}}"#, None);
        check(r#"{"result":{"items":[{"#, r#"\"id\":7}"}}"#, None);
        check(r#"{"result":{"a":1,"#, r#""id":7}}"#, None);
        // Not an id of ours, no object, nothing at all.
        check(r#"{"jsonrpc":"2.0","id":"7","result":{"#, "}}", None);
        check(r#"[{"jsonrpc":"2.0","id":7,"result":{"#, "}}]", None);
        check("xxxxxxx", "xxxx", None);
        check("", "", None);
    }
}
