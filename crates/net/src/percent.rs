//! Percent-encoding, undone: names of models and backends that stand in a path.
//!
//! Names contain `/`, `:` and more, and clients escape what they put into a path. A decoded name is
//! compared with names that are known; it is never followed as a path (S25).

/// Undoes percent-encoding; `None` if it is broken or hides a control character.
pub fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        if first != b'%' {
            bytes.push(first);
            rest = tail;
            continue;
        }
        let (digits, tail) = tail.split_at_checked(2)?;
        let digits = std::str::from_utf8(digits).ok()?;
        let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        bytes.push(u8::from_str_radix(digits, 16).ok().filter(|_| is_hex)?);
        rest = tail;
    }
    String::from_utf8(bytes).ok().filter(|text| !text.chars().any(char::is_control))
}

#[cfg(test)]
mod tests {
    use super::decoded;

    #[test]
    fn escapes_are_undone_once_and_broken_ones_refused() {
        for (text, name) in [("a%2Fb%3a7b", "a/b:7b"), ("a+b", "a+b"), ("%252F", "%2F"), ("", "")] {
            assert_eq!(decoded(text).as_deref(), Some(name), "{text}");
        }
        for text in ["%", "%2", "%zz", "%+1", "%0a", "%00", "%ff"] {
            assert_eq!(decoded(text), None, "{text}");
        }
    }
}
