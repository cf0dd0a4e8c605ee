//! Several messages in one body, which protocol version 2025-03-26 alone has.

use serde_json::value::RawValue;

use super::{ENVELOPE, Fault, Message, text_of};
use crate::raw::{Fields, check_depth};

/// Messages in one batch: what clients send has a handful.
pub const BATCH_MAX: usize = 100;

/// Whether a body is a batch, by its first character.
#[must_use]
pub fn is_batch(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().first() == Some(&b'[')
}

/// Reads a batch, message by message: a bad one does not spoil the others.
///
/// # Errors
/// The body is no batch, or an empty one, or one of too many messages.
pub fn parse_batch(bytes: &[u8]) -> Result<Vec<Result<Message<'_>, Fault>>, Fault> {
    let text = text_of(bytes)?;
    check_depth(text).map_err(Fault::envelope)?;
    let elements: Vec<&RawValue> =
        serde_json::from_str(text).map_err(|error| Fault::envelope(error.into()))?;
    match elements.len() {
        0 => Err(Fault::invalid(None, "an empty batch")),
        1..=BATCH_MAX => Ok(elements.into_iter().map(read).collect()),
        count => {
            let message = format!("a batch of {count} messages; at most {BATCH_MAX} are taken");
            Err(Fault::invalid(None, message))
        }
    }
}

fn read(element: &RawValue) -> Result<Message<'_>, Fault> {
    Message::read(Fields::of(element, ENVELOPE).map_err(Fault::envelope)?)
}
