//! Whether every choice of a chat, completion or Gemini answer has its finish reason.
//!
//! Some servers end a chat without `[DONE]`, and Gemini has no event of that kind. If each choice
//! that was seen has told why it ended, nothing of the answer is missing. Nor is anything missing
//! of an answer that Gemini refuses for its prompt: it has no candidates at all.
//!
//! Left to others: what else an event says ([`crate::dialect`]).

use crate::json::{Fault, Scanner, is_blank};

/// The choices of one stream, by their number.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Choices {
    seen: u128,
    finished: u128,
    /// One has a number that is not kept.
    has_others: bool,
    /// Gemini refused the prompt.
    is_blocked: bool,
}

impl Choices {
    /// Reads an event to its end.
    ///
    /// # Errors
    /// It is no JSON.
    pub(crate) fn read(&mut self, data: &[u8]) -> Result<(), Fault> {
        let mut scanner = Scanner::of_answer(data);
        if scanner.peek() == Some(b'{') {
            let mut walk = scanner.enter(b'{')?;
            while let Some(key) = scanner.next_key(&mut walk)? {
                let is_list = scanner.peek() == Some(b'[');
                if is_list && (key.is("choices") || key.is("candidates")) {
                    self.list(&mut scanner)?;
                } else if key.is("promptFeedback") && scanner.peek() == Some(b'{') {
                    self.feedback(&mut scanner)?;
                } else {
                    scanner.skip_value()?;
                }
            }
        } else {
            scanner.skip_value()?;
        }
        scanner.end()
    }

    /// Whether there are choices, and all have ended.
    pub(crate) fn are_finished(&self) -> bool {
        let is_whole = self.seen != 0 || self.is_blocked;
        is_whole && self.seen == self.finished && !self.has_others
    }

    fn feedback(&mut self, scanner: &mut Scanner<'_>) -> Result<(), Fault> {
        let mut walk = scanner.enter(b'{')?;
        while let Some(key) = scanner.next_key(&mut walk)? {
            self.is_blocked |= key.is("blockReason") && !is_blank(scanner.rest());
            scanner.skip_value()?;
        }
        Ok(())
    }

    fn list(&mut self, scanner: &mut Scanner<'_>) -> Result<(), Fault> {
        let mut list = scanner.enter(b'[')?;
        while scanner.next_element(&mut list)? {
            if scanner.peek() == Some(b'{') {
                self.choice(scanner)?;
            } else {
                scanner.skip_value()?;
            }
        }
        Ok(())
    }

    fn choice(&mut self, scanner: &mut Scanner<'_>) -> Result<(), Fault> {
        let (mut index, mut is_finished) = (Some(0_u32), false);
        let mut walk = scanner.enter(b'{')?;
        while let Some(key) = scanner.next_key(&mut walk)? {
            if key.is("index") && matches!(scanner.peek(), Some(b'0'..=b'9')) {
                index = scanner.number()?.parse().ok();
                continue;
            }
            let is_reason = key.is("finish_reason") || key.is("finishReason");
            is_finished |= is_reason && !is_blank(scanner.rest());
            scanner.skip_value()?;
        }
        match index.and_then(|index| 1_u128.checked_shl(index)) {
            Some(bit) => {
                self.seen |= bit;
                self.finished |= if is_finished { bit } else { 0 };
            }
            None => self.has_others = true,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(events: &[&str], expected: bool) {
        let mut choices = Choices::default();
        for event in events {
            choices.read(event.as_bytes()).expect("JSON");
        }
        assert_eq!(choices.are_finished(), expected, "{events:?}");
    }

    #[test]
    fn a_stream_is_finished_when_each_of_its_choices_is() {
        let text = r#"{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}"#;
        let stop = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
        let usage = r#"{"choices":[],"usage":{"prompt_tokens":1}}"#;
        check(&[], false);
        check(&[usage], false);
        check(&[text], false);
        check(&[text, stop], true);
        check(&[text, stop, usage], true);
        let second = r#"{"choices":[{"index":1,"delta":{"content":"b"}}]}"#;
        check(&[text, second, stop], false);
        check(&[text, second, stop, &stop.replace("\"index\":0", "\"index\":1")], true);
        check(&[r#"{"choices":[{"text":"a","finish_reason":"length"}]}"#], true);
        let far = r#"{"choices":[{"index":500,"finish_reason":"stop"}]}"#;
        check(&[stop, far], false);
    }

    #[test]
    fn a_reason_inside_the_text_is_the_models_own() {
        let text = r#"{"choices":[{"index":0,"delta":{"finish_reason":"stop"}}]}"#;
        check(&[text], false);
    }

    #[test]
    fn what_is_no_json_is_told() {
        let mut choices = Choices::default();
        for text in ["", "<html>", r#"{"choices":[{"index":0"#, "{} x"] {
            assert!(choices.read(text.as_bytes()).is_err(), "{text}");
        }
        assert!(choices.read(b"[1]").is_ok());
    }
}
