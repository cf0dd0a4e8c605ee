//! The shape that most events of a stream share.
//!
//! From one event to the next only the text differs, and perhaps a number that counts them. So an
//! event that was read to its end is kept as a template: an event that equals it outside of those
//! places needs no reading. It is JSON of the same structure, and says the same but for the text.
//!
//! Rules:
//! - A place that may differ is the string of a key that decides nothing ([`TEXTS`]), or the number
//!   of the event. It is checked as any string or number is.
//! - No string of such a place is empty, in the template or in an event: an event without content
//!   is another kind of event.
//! - Its memory is bounded ([`LONGEST`], [`MOST_PLACES`]).
//!
//! Left to others: what an event means, and when to keep one ([`crate::watch`]).

use std::ops::Range;

use crate::json::{Fault, Scanner};

/// Longer events are read each time.
const LONGEST: usize = 2048;

/// An event with more places that may differ is read each time.
const MOST_PLACES: usize = 4;

/// The keys of text in a delta, in all dialects. What a model says under them decides nothing but
/// whether there is content.
const TEXTS: [&str; 9] = [
    "content",
    "text",
    "delta",
    "arguments",
    "partial_json",
    "thinking",
    "reasoning",
    "reasoning_content",
    // Padding of OpenAI's, of random length.
    "obfuscation",
];

/// The number of an event of the Responses API.
const NUMBER: &str = "sequence_number";

/// What may stand in a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VaryingKind {
    Text,
    Number,
}

/// A value that may differ; of a string with its quotes.
#[derive(Clone, Debug)]
struct Varying {
    kind: VaryingKind,
    span: Range<usize>,
}

/// An event and the places in it that may differ.
#[derive(Debug, Default)]
pub(crate) struct EventTemplate {
    name: Vec<u8>,
    data: Vec<u8>,
    places: Vec<Varying>,
}

impl EventTemplate {
    /// Keeps an event, whose data is JSON, instead of the one before.
    pub(crate) fn learn(&mut self, name: &[u8], data: &[u8]) {
        self.name.clear();
        self.data.clear();
        self.places.clear();
        if data.len() > LONGEST || name.len() > LONGEST {
            return;
        }
        let is_read = find_places(&mut Scanner::of_answer(data), &mut self.places).is_ok();
        if !is_read || self.places.len() > MOST_PLACES {
            self.places.clear();
            return;
        }
        self.name.extend_from_slice(name);
        self.data.extend_from_slice(data);
    }

    /// Whether an event is the kept one but for what may differ.
    pub(crate) fn fits(&self, name: &[u8], data: &[u8]) -> bool {
        if self.places.is_empty() || name != self.name {
            return false;
        }
        let mut rest = data;
        let mut from = 0;
        for place in &self.places {
            let fixed = &self.data[from..place.span.start];
            let Some(value) = rest.strip_prefix(fixed) else { return false };
            let Some(len) = value_len(place.kind, value) else { return false };
            rest = &value[len..];
            from = place.span.end;
        }
        rest == &self.data[from..]
    }
}

/// How long the value at the start of a text is, if it is one of this kind.
fn value_len(kind: VaryingKind, text: &[u8]) -> Option<usize> {
    let is_one = match kind {
        VaryingKind::Text => text.first() == Some(&b'"'),
        VaryingKind::Number => text.first().is_some_and(u8::is_ascii_digit),
    };
    if !is_one {
        return None;
    }
    let mut scanner = Scanner::of_answer(text);
    match kind {
        VaryingKind::Text => scanner.string().ok().map(|it| it.span().len()).filter(|len| *len > 2),
        VaryingKind::Number => scanner.number().ok().map(str::len),
    }
}

/// Walks over a value and notes the places in it, until there are too many.
fn find_places(scanner: &mut Scanner<'_>, places: &mut Vec<Varying>) -> Result<(), Fault> {
    match scanner.peek() {
        Some(b'[') => {
            let mut walk = scanner.enter(b'[')?;
            while places.len() <= MOST_PLACES && scanner.next_element(&mut walk)? {
                find_places(scanner, places)?;
            }
            Ok(())
        }
        Some(b'{') => {
            let mut walk = scanner.enter(b'{')?;
            while places.len() <= MOST_PLACES
                && let Some(key) = scanner.next_key(&mut walk)?
            {
                let kind = match scanner.peek() {
                    Some(b'"') if TEXTS.iter().any(|it| key.is(it)) => Some(VaryingKind::Text),
                    Some(b'0'..=b'9') if key.is(NUMBER) => Some(VaryingKind::Number),
                    _ => None,
                };
                let start = scanner.at();
                find_places(scanner, places)?;
                let span = start..scanner.at();
                let is_empty = kind == Some(VaryingKind::Text) && span.len() == 2;
                places.extend(kind.filter(|_| !is_empty).map(|kind| Varying { kind, span }));
            }
            Ok(())
        }
        _ => scanner.skip_value(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(data: &str) -> EventTemplate {
        let mut template = EventTemplate::default();
        template.learn(b"", data.as_bytes());
        template
    }

    fn check(learnt: &str, data: &str, expected: bool) {
        assert_eq!(template(learnt).fits(b"", data.as_bytes()), expected, "{learnt} and {data}");
    }

    const CHAT: &str = r#"{"choices":[{"delta":{"content":"a"},"finish_reason":null}]}"#;

    #[test]
    fn events_that_differ_in_their_text_fit() {
        check(CHAT, CHAT, true);
        let longer =
            r#"{"choices":[{"delta":{"content":"b\n\"c\" \u00e9"},"finish_reason":null}]}"#;
        check(CHAT, longer, true);
        check(longer, CHAT, true);
        let padded = |text: &str, padding: &str| {
            format!(
                r#"{{"choices":[{{"delta":{{"content":"{text}"}}}}],"obfuscation":"{padding}"}}"#
            )
        };
        check(&padded("a", "x"), &padded("bc", "xyz"), true);
    }

    #[test]
    fn the_number_of_an_event_may_differ() {
        let event = |number: &str, text: &str| {
            format!(r#"{{"type":"a.delta","sequence_number":{number},"delta":"{text}"}}"#)
        };
        check(&event("9", "a"), &event("10", "b"), true);
        check(&event("9", "a"), &event("-1", "b"), false);
        check(&event("9", "a"), &event("01", "b"), false);
        check(&event("9", "a"), &event("", "b"), false);
    }

    #[test]
    fn events_that_say_something_else_do_not_fit() {
        for data in [
            r#"{"choices":[{"delta":{"content":""},"finish_reason":null}]}"#,
            r#"{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}"#,
            r#"{"choices":[{"delta":{"content":"a"},"finish_reason":null}]} x"#,
            r#"{"choices":[{"delta":{"content":"a","error":"b"},"finish_reason":null}]}"#,
            r#"{"choices":[{"delta":{"content":"a},"finish_reason":null}]}"#,
            r#"{"choices":[{"delta":{"content":"a\x"},"finish_reason":null}]}"#,
            "{\"choices\":[{\"delta\":{\"content\":\"a\n\"},\"finish_reason\":null}]}",
            r#"{"choices":[{"delta":{"content":7},"finish_reason":null}]}"#,
            r#"{"choices":[{"delta":{"content":"#,
            "",
        ] {
            check(CHAT, data, false);
        }
        assert!(!template(CHAT).fits(b"error", CHAT.as_bytes()));
    }

    #[test]
    fn what_has_no_text_or_too_many_or_is_too_long_is_not_kept() {
        let long = CHAT.replace('a', &"a".repeat(LONGEST));
        let many = format!("[{}]", [CHAT; MOST_PLACES + 1].join(","));
        for data in ["{}", r#"{"content":""}"#, &long, &many] {
            check(data, data, false);
        }
        let mut again = template(CHAT);
        again.learn(b"", b"{}");
        assert!(!again.fits(b"", CHAT.as_bytes()), "another event took its place");
    }
}
