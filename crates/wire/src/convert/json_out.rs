//! Writes JSON as bytes.
//!
//! Most events of a stream carry a few words, and most of their cost would be the tree around the
//! words: writers put such events together by hand, with [`string`] for the words. Everything else
//! is a tree that [`bytes`] writes.

use serde_json::Value;

/// The bytes of a body.
pub(super) fn bytes(value: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(4096);
    append(value, &mut out);
    out
}

/// Appends a value.
pub(super) fn append(value: &Value, out: &mut Vec<u8>) {
    // Memory takes every write, and every key of a tree is a string.
    let written = serde_json::to_writer(out, value);
    debug_assert!(written.is_ok());
}

/// Appends a string, quoted.
pub(super) fn string(text: &str, out: &mut Vec<u8>) {
    let written = serde_json::to_writer(out, text);
    debug_assert!(written.is_ok());
}

/// Appends a number.
pub(super) fn number(number: u64, out: &mut Vec<u8>) {
    let written = serde_json::to_writer(out, &number);
    debug_assert!(written.is_ok());
}
