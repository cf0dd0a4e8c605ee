//! How long a field may be.
//!
//! The body of a request has a bound of its own, so these are not about memory alone. An id or a
//! name is repeated: in errors, in notes, in every event of an answer. A list of stop sequences is
//! looked through for every one of them. Whoever sends megabytes there has made a mistake, and is
//! told so by the field's name instead of being passed on to a provider that may say less.
//!
//! The figures are far above what any vendor takes (OpenAI: 64 letters of an id or a name, four
//! stop sequences, 16 pairs of metadata; Anthropic: 128 letters of a name), because compatible
//! servers take more, and some clients hide what a provider wants back in the ids of calls.
//!
//! What comes from a provider has the same bounds for ids and names; see [`is_too_long`].

use serde_json::{Map, Value};

use super::fault::{ReplyFault, RequestFault};
use super::part::{Content, Part};
use super::stream::StreamEvent;

/// The most bytes of an id.
pub(super) const MAX_ID: usize = 16 * 1024;

/// The most bytes of a tool's name or a schema's.
pub(super) const MAX_NAME: usize = 1024;

/// The most stop sequences.
pub(super) const MAX_STOPS: usize = 256;

/// The most bytes of a stop sequence, of who asks and of a key of a cache.
pub(super) const MAX_WORD: usize = 4096;

/// The most bytes of a field that is carried as it is.
const MAX_CARRIED: usize = 64 * 1024;

/// The fields that are carried as they are, whichever dialect they came in.
const CARRIED: [&str; 6] = [
    "metadata",
    "logit_bias",
    "service_tier",
    "safety_identifier",
    "prompt_cache_retention",
    "verbosity",
];

/// What is wrong with a text of so many bytes; nothing if it is short enough.
pub(super) fn problem(bytes: usize, most: usize) -> Option<String> {
    (bytes > most)
        .then(|| format!("has {bytes} bytes, and no more than {most} are taken: shorten it"))
}

/// Checks the fields that the form has no place for.
///
/// # Errors
/// One that would be carried is too large.
pub(super) fn check_carried(other: &Map<String, Value>) -> Result<(), RequestFault> {
    for key in CARRIED {
        if other.get(key).is_some_and(|value| size(value, MAX_CARRIED) > MAX_CARRIED) {
            let problem = format!(
                "is larger than the {MAX_CARRIED} bytes that are taken: leave a part of it out"
            );
            return Err(RequestFault::invalid(key, problem));
        }
    }
    Ok(())
}

/// How large a value is, near enough; it is not looked at any further than `most`.
fn size(value: &Value, most: usize) -> usize {
    let mut sum: usize = 0;
    let mut waiting = vec![value];
    while let Some(value) = waiting.pop() {
        sum = sum.saturating_add(2);
        match value {
            Value::String(text) => sum = sum.saturating_add(text.len()),
            Value::Array(values) => waiting.extend(values),
            Value::Object(map) => {
                sum = map.keys().fold(sum, |sum, key| sum.saturating_add(key.len() + 3));
                waiting.extend(map.values());
            }
            _ => sum = sum.saturating_add(2),
        }
        if sum > most {
            break;
        }
    }
    sum
}

const LONG_ID: ReplyFault = ReplyFault::NotTheDialect { problem: "an id or a name is too long" };

/// Checks an event of a stream: its id and name may be repeated in every event after it.
///
/// # Errors
/// One of them is longer than any vendor's.
pub(super) fn check_event(event: &StreamEvent) -> Result<(), ReplyFault> {
    match event {
        StreamEvent::Start { id, model: name, .. }
        | StreamEvent::ToolCallStart { id, name, .. }
            if is_too_long(id, name) =>
        {
            Err(LONG_ID)
        }
        _ => Ok(()),
    }
}

/// Checks a whole answer for the same.
///
/// # Errors
/// As for an event.
pub(super) fn check_reply(id: &str, model: &str, parts: &[Part]) -> Result<(), ReplyFault> {
    let is_long_call = |part: &Part| match &part.content {
        Content::ToolCall(call) => is_too_long(&call.id, &call.name),
        _ => false,
    };
    let is_long = is_too_long(id, model) || parts.iter().any(is_long_call);
    if is_long { Err(LONG_ID) } else { Ok(()) }
}

/// Whether an id or a name of a provider's is none that a client could use.
fn is_too_long(id: &str, name: &str) -> bool {
    id.len() > MAX_ID || name.len() > MAX_NAME
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_is_measured_wherever_its_bytes_are() {
        for value in [
            json!({"a": "x".repeat(70_000)}),
            json!({"x".repeat(70_000): 1}),
            json!(vec![0; 70_000]),
            json!([[[["x".repeat(70_000)]]]]),
        ] {
            let other = Map::from_iter([("metadata".to_owned(), value.clone())]);
            assert!(check_carried(&other).is_err());
            // What is not carried is only noted, whatever it holds.
            assert!(check_carried(&Map::from_iter([("prediction".to_owned(), value)])).is_ok());
        }
        let other = Map::from_iter([("metadata".to_owned(), json!({"a": "x".repeat(512)}))]);
        assert!(check_carried(&other).is_ok());
    }
}
