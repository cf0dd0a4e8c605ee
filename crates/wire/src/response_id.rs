//! The id that a provider gives to an answer, by which a client may continue it:
//! `previous_response_id` of the Responses API, and the `thread` of the Messages API.
//!
//! A whole answer has it at its top level; the first event of a stream has it in its `response` or
//! `message`.

use crate::json::{Fault, Scanner};

/// Ids are short: what is longer is none.
const ID_MAX: usize = 512;

/// The id in the JSON of an answer or of one of its events.
#[must_use]
pub fn response_id(data: &[u8]) -> Option<Box<str>> {
    find(&mut Scanner::of_answer(data)).ok().flatten()
}

fn find(scanner: &mut Scanner<'_>) -> Result<Option<Box<str>>, Fault> {
    if scanner.peek() != Some(b'{') {
        return Ok(None);
    }
    let mut walk = scanner.enter(b'{')?;
    while let Some(key) = scanner.next_key(&mut walk)? {
        if key.is("id") && scanner.peek() == Some(b'"') {
            let id = scanner.string()?.decode();
            let is_sound = !id.is_empty() && id.len() <= ID_MAX;
            return Ok(is_sound.then(|| id.into()));
        }
        if key.is("response") || key.is("message") {
            return find(scanner);
        }
        scanner.skip_value()?;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_is_found_in_answers_and_first_events() {
        let id = |text: &str| response_id(text.as_bytes());
        assert_eq!(
            id(r#"{"object":"response","id":"resp_1","output":[]}"#).as_deref(),
            Some("resp_1")
        );
        let event = r#"{"type":"response.created","sequence_number":0,"response":{"id":"resp_2""#;
        assert_eq!(id(event).as_deref(), Some("resp_2"), "also of an event that goes on");
        let event = r#"{"type":"message_start","message":{"model":"m","id":"msg_1""#;
        assert_eq!(id(event).as_deref(), Some("msg_1"));
        for nothing in ["", "[]", "{}", r#"{"id":""}"#, r#"{"id":7}"#, r#"{"response":null}"#] {
            assert_eq!(id(nothing), None, "{nothing}");
        }
    }
}
