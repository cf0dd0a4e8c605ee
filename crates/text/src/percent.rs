//! Percent-encoding, undone.

/// The byte of an escape whose `%` has just been read, and what follows it; `None` if this is no
/// escape.
#[must_use]
pub fn escaped_byte(after_sign: &[u8]) -> Option<(u8, &[u8])> {
    let (digits, rest) = after_sign.split_at_checked(2)?;
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = digit(digits[0])? * 16 + digit(digits[1])?;
    Some((u8::try_from(byte).ok()?, rest))
}

/// Undoes all of it, once; `None` if an escape is broken or the result is no text.
#[must_use]
pub fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let (byte, after) = if first == b'%' { escaped_byte(tail)? } else { (first, tail) };
        bytes.push(byte);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

/// The same for a name in a path: `None` also if it hides a control character.
///
/// Names contain `/`, `:` and more, and clients escape what they put into a path. A decoded name is
/// compared with names that are known; it is never followed as a path (S25).
#[must_use]
pub fn decoded_name(text: &str) -> Option<String> {
    decoded(text).filter(|text| !text.chars().any(char::is_control))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_undone_once_and_broken_ones_refused() {
        for (text, name) in [("a%2Fb%3a7b", "a/b:7b"), ("a+b", "a+b"), ("%252F", "%2F"), ("", "")] {
            assert_eq!(decoded_name(text).as_deref(), Some(name), "{text}");
        }
        for text in ["%", "%2", "%zz", "%+1", "%ff"] {
            assert_eq!(decoded(text), None, "{text}");
        }
    }

    #[test]
    fn a_name_hides_no_control_character() {
        for text in ["%0a", "%00", "a%7f"] {
            assert_eq!(decoded_name(text), None, "{text}");
            assert!(decoded(text).is_some(), "{text}");
        }
    }
}
