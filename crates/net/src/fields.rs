//! What header fields of HTTP/1.1 say about the connection and its framing, for both sides of it.

use bytes::Bytes;
use http::HeaderValue;

/// More headers than this are refused, of a client as of an upstream.
pub(crate) const HEADERS_MAX: usize = 100;

/// Whether a list of words, as in `connection`, has this one.
pub(crate) fn has_word(value: &[u8], word: &str) -> bool {
    let mut words = value.split(|byte| *byte == b',');
    words.any(|it| it.trim_ascii().eq_ignore_ascii_case(word.as_bytes()))
}

/// A length: digits and nothing else.
pub(crate) fn length(value: &[u8]) -> Option<u64> {
    let add = |number: u64, byte: &u8| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    };
    if value.is_empty() { None } else { value.iter().try_fold(0, add) }
}

/// A slice of a head as a header's value, not copied.
pub(crate) fn shared_value(head: &Bytes, value: &[u8]) -> Option<HeaderValue> {
    HeaderValue::from_maybe_shared(head.slice_ref(value)).ok()
}

/// A number in digits. (The formatting of the library costs several times as much.)
pub(crate) fn push_number(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// The size of a chunk, in hexadecimal digits.
pub(crate) fn push_hex(out: &mut Vec<u8>, number: usize) {
    let digits = (usize::BITS - number.leading_zeros()).div_ceil(4).max(1);
    for place in (0..digits).rev() {
        out.push(b"0123456789abcdef"[number >> (4 * place) & 0xf]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_the_library_would() {
        for number in [0, 1, 9, 10, 15, 16, 255, 256, 65_535, usize::MAX] {
            let (mut decimal, mut hex) = (Vec::new(), Vec::new());
            push_number(&mut decimal, number as u64);
            push_hex(&mut hex, number);
            assert_eq!(String::from_utf8_lossy(&decimal), number.to_string());
            assert_eq!(String::from_utf8_lossy(&hex), format!("{number:x}"));
        }
    }

    #[test]
    fn a_length_is_digits_and_nothing_else() {
        assert_eq!(length(b"0"), Some(0));
        assert_eq!(length(b"18446744073709551615"), Some(u64::MAX));
        for text in
            ["", "+1", "-1", "1, 1", "0x1", "18446744073709551616", "99999999999999999999", "1 "]
        {
            assert_eq!(length(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn words_of_a_list_are_found_in_any_case() {
        assert!(has_word(b"keep-alive , Close", "close"));
        assert!(!has_word(b"closed", "close"));
    }
}
