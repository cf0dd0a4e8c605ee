//! Makes text safe to stand in a line that people read in a terminal.
//!
//! Escaped are control characters of both ranges, line and paragraph separators, and the marks
//! that reverse the direction of writing: nothing that could end the line, move the cursor or show
//! the words in another order than they are in (S60).

use std::fmt::Write;

/// Whether a character must not reach a terminal.
fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

/// Whether a text can stand in a line of either form as it is.
pub(super) fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\')
}

/// A value of a text line: plain if it is one word, quoted otherwise.
pub(super) fn value(text: &str) -> String {
    let is_word = !text.is_empty() && !text.contains([' ', '"', '=', '\\']);
    if is_word { words(text) } else { format!("\"{}\"", words(&text.replace('"', "\\\""))) }
}

/// Writes a value of a text line; see [`value`].
pub(super) fn push_value(out: &mut String, text: &str) {
    let is_plain_word = |byte: u8| matches!(byte, b'!'..=b'~') && !b"\"=\\".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_plain_word) {
        out.push_str(text);
    } else {
        out.push_str(&value(text));
    }
}

/// Writes words: of a text line, or for the inside of a JSON string.
pub(super) fn push_words(out: &mut String, text: &str, is_json: bool) {
    match (is_plain(text), is_json) {
        (true, _) => out.push_str(text),
        (false, false) => out.push_str(&words(text)),
        (false, true) => {
            let quoted = json(&serde_json::Value::from(text).to_string());
            out.push_str(quoted.get(1..quoted.len() - 1).unwrap_or_default());
        }
    }
}

/// Words of a text line, as they are but for what is unsafe.
pub(super) fn words(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ => push(&mut out, character),
        }
    }
    out
}

/// A JSON document, in which unsafe characters can only stand inside strings.
pub(super) fn json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        push(&mut out, character);
    }
    out
}

fn push(out: &mut String, character: char) {
    if is_unsafe(character) {
        // Every unsafe character is below U+10000, so four digits are enough for JSON too.
        write!(out, "\\u{:04x}", u32::from(character)).expect("a string takes everything");
    } else {
        out.push(character);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s60_nothing_ends_the_line_or_talks_to_the_terminal() {
        let hostile = "a\r\nb\u{1b}[2Jc\u{9b}1m\u{202e}d\u{2028}";
        assert_eq!(words(hostile), r"a\r\nb\u001b[2Jc\u009b1m\u202ed\u2028");
        let document = serde_json::json!({ "name": hostile }).to_string();
        let escaped = json(&document);
        assert!(!escaped.chars().any(is_unsafe));
        let back: serde_json::Value = serde_json::from_str(&escaped).expect("still JSON");
        assert_eq!(back["name"], hostile);
    }

    #[test]
    fn a_value_of_several_words_is_quoted() {
        assert_eq!(value("fast"), "fast");
        assert_eq!(value("two words"), "\"two words\"");
        assert_eq!(value("a\" caller=b"), "\"a\\\" caller=b\"");
        assert_eq!(value(""), "\"\"");
    }
}
