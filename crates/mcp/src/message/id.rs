//! The id of a request: a number or a text, kept as it was written.
//!
//! Two ids are the same if they are written the same: `1`, `1.0` and `"1"` are three ids. Whoever
//! gave one out gets exactly its bytes back.

use std::{fmt, sync::Arc};

use serde_json::value::RawValue;

/// Bytes of an id: clients count or use UUIDs; ids are kept for as long as their calls.
const ID_MAX: usize = 1024;
/// Whole numbers up to here survive a reader that keeps numbers as 64-bit floats.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// An id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(Arc<str>);

impl Id {
    /// An id of our own.
    #[must_use]
    pub fn number(number: u64) -> Self {
        Self(number.to_string().into())
    }

    /// Reads an id; `null` is none.
    ///
    /// # Errors
    /// A lowercase fragment that says why it is none.
    pub fn read(value: &RawValue) -> Result<Self, &'static str> {
        let text = value.get();
        match text.as_bytes() {
            _ if text.len() > ID_MAX => Err("the `id` is longer than 1024 bytes"),
            [b'"' | b'-' | b'0'..=b'9', ..] => Ok(Self(text.into())),
            _ => Err("the `id` must be a text or a number"),
        }
    }

    /// The id as text of JSON.
    #[must_use]
    pub fn as_json(&self) -> &str {
        &self.0
    }

    /// The number of an id of our own, also if the other side wrote it as `1.0`.
    #[must_use]
    pub fn as_number(&self) -> Option<u64> {
        if let Ok(number) = self.0.parse() {
            return Some(number);
        }
        let float: f64 = self.0.parse().ok()?;
        let is_whole = (0.0..=EXACT_MAX).contains(&float) && float.fract() == 0.0;
        // Nothing is cut off: it is whole, and between zero and 2^53.
        is_whole.then_some(float as u64)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
