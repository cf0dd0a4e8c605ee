//! Whether an object of JSON says that it is an error, in any dialect, as a body or as an event.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use crate::json::{Fault, Scanner, is_blank};

static ERROR: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"error\""));

/// Whether the object in `text` is an error. Text that breaks off is judged by what is there.
pub(crate) fn is_error(text: &[u8]) -> bool {
    ERROR.find(text).is_some() && has_error_key(text).unwrap_or(false)
}

fn has_error_key(text: &[u8]) -> Result<bool, Fault> {
    let mut scanner = Scanner::of_answer(text);
    // Gemini wraps its errors into a list.
    if scanner.peek() == Some(b'[') {
        scanner.enter(b'[')?;
    }
    let mut walk = scanner.enter(b'{')?;
    while let Some(key) = scanner.next_key(&mut walk)? {
        if tells_error(&key.name(), scanner.rest()) {
            return Ok(true);
        }
        scanner.skip_value()?;
    }
    Ok(false)
}

/// Whether a key of an object, with the value that the text begins with, makes it an error.
pub(crate) fn tells_error(key: &[u8], value: &[u8]) -> bool {
    match key {
        b"error" => says_something(value),
        b"type" | b"object" => value.starts_with(b"\"error\""),
        _ => false,
    }
}

/// Whether the value of an `error` key tells of one: some servers write `0` or `false` for none.
fn says_something(value: &[u8]) -> bool {
    let is_zero = || Scanner::of_answer(value).number().is_ok_and(|it| it.parse() == Ok(0.0_f64));
    !is_blank(value) && !value.starts_with(b"false") && !is_zero()
}
