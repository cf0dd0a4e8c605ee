//! Writes JSON as bytes.
//!
//! Most events of a stream carry a few words, and most of their cost would be the tree around the
//! words: writers put such events together by hand, with [`string`] for the words. Everything else
//! is a tree that [`bytes`] writes.
//!
//! Nearly all bytes of a request are texts, in which few letters are escaped: [`string`] looks at
//! eight bytes at once for the next such letter and copies what stands before it.

use serde_json::Value;

/// The bytes of a body.
pub(super) fn bytes(value: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(8192);
    append(value, &mut out);
    out
}

/// An object of these fields. Where a field is a tree of its own, this moves it; `json!` would make
/// it anew.
pub(super) fn object<const N: usize>(fields: [(&str, Value); N]) -> Value {
    Value::Object(fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

/// Appends a value.
pub(super) fn append(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(number) => {
            // Memory takes every write.
            let written = serde_json::to_writer(out, number);
            debug_assert!(written.is_ok());
        }
        Value::String(text) => string(text, out),
        Value::Array(values) => {
            out.push(b'[');
            for (at, value) in values.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                append(value, out);
            }
            out.push(b']');
        }
        Value::Object(map) => {
            out.push(b'{');
            for (at, (key, value)) in map.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                string(key, out);
                out.push(b':');
                append(value, out);
            }
            out.push(b'}');
        }
    }
}

/// Appends a string, quoted.
pub(super) fn string(text: &str, out: &mut Vec<u8>) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some(at) = next_escaped(rest) {
        out.extend_from_slice(&rest[..at]);
        escape(rest[at], out);
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

/// Appends a number.
pub(super) fn number(number: u64, out: &mut Vec<u8>) {
    let written = serde_json::to_writer(out, &number);
    debug_assert!(written.is_ok());
}

/// Where the next byte is that a string cannot hold as it is: a quote, a backslash, a control.
fn next_escaped(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGHS: u64 = ONES << 7;
    // The lowest mark is exact: a borrow can only disturb the bytes above it.
    let below = |word: u64, least: u8| word.wrapping_sub(ONES * u64::from(least)) & !word & HIGHS;
    let mut rest = bytes;
    while let Some((chunk, more)) = rest.split_first_chunk() {
        let word = u64::from_le_bytes(*chunk);
        let quotes = below(word ^ (ONES * u64::from(b'"')), 1);
        let slashes = below(word ^ (ONES * u64::from(b'\\')), 1);
        let marks = quotes | slashes | below(word, b' ');
        if marks != 0 {
            return Some(bytes.len() - rest.len() + marks.trailing_zeros() as usize / 8);
        }
        rest = more;
    }
    let is_escaped = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..=0x1f);
    rest.iter().position(is_escaped).map(|at| bytes.len() - rest.len() + at)
}

fn escape(byte: u8, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let letter = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0c => b'f',
        _ => {
            let [high, low] = [byte >> 4, byte & 15].map(|half| DIGITS[usize::from(half)]);
            return out.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
        }
    };
    out.extend_from_slice(&[b'\\', letter]);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn check(value: &Value) {
        let written = bytes(value);
        let expected = value.to_string();
        assert_eq!(String::from_utf8_lossy(&written), expected);
    }

    #[test]
    fn every_letter_is_escaped_as_serde_json_does_it() {
        let all: String = (0..=0x2ff).filter_map(char::from_u32).collect();
        for from in 0..17 {
            let text: String = all.chars().skip(from).collect();
            check(&json!({ text.clone(): [text, null, true, false, -1, 0.5, u64::MAX, {}, []] }));
        }
    }

    proptest! {
        #[test]
        fn any_text_is_written_as_serde_json_does_it(
            text in "(?s).{0,60}", odd in "[\u{0}-\u{7f}]{0,40}",
        ) {
            check(&json!([text, odd, format!("{text}{odd}{text}")]));
        }
    }
}
