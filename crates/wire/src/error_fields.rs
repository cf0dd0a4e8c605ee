//! The words of an error body that classification looks at.
//!
//! Error bodies have a dozen shapes; this reads the known places of all of them and nothing else.
//! It goes off the hot path, on bodies that may be cut off, so it keeps what it has read when the
//! text turns out broken.
//!
//! Rules:
//! - Only places the provider fills are read. Some servers echo the caller's input in an error;
//!   reading anything named `code` would let a caller put words into a provider's mouth.
//! - `words` are identifiers: `error.code`, `error.type`, `error.status`, `error.reason`, the same
//!   on the top level, Azure's `innererror.code`, Google's `details[].reason`, AWS's `__type`; and
//!   `flagged_input` when OpenRouter's `metadata` has that key.
//! - `number` is a numeric `code` or `status`: what the status line would have been.

use std::borrow::Cow;

use crate::json::{Fault, Scanner};

/// What an error body says.
#[derive(Debug, Default)]
pub(crate) struct ErrorFields<'a> {
    pub(crate) words: Vec<Cow<'a, str>>,
    pub(crate) quotas: Vec<Cow<'a, str>>,
    pub(crate) message: Option<Cow<'a, str>>,
    pub(crate) number: Option<u16>,
}

impl<'a> ErrorFields<'a> {
    /// Reads what can be read.
    pub(crate) fn read(body: &'a [u8]) -> Self {
        let mut fields = Self::default();
        let mut scanner = Scanner::new(body);
        if scanner.peek() == Some(b'[') && scanner.enter(b'[').is_err() {
            return fields;
        }
        // A fault ends the reading; what was found before it holds.
        let _broken = fields.top(&mut scanner);
        fields
    }

    fn top(&mut self, scanner: &mut Scanner<'a>) -> Result<(), Fault> {
        let mut walk = scanner.enter(b'{')?;
        while let Some(key) = scanner.next_key(&mut walk)? {
            let is_object = scanner.peek() == Some(b'{');
            match &*key.decode() {
                "error" if is_object => self.error(scanner)?,
                "error" => self.message(scanner)?,
                // The Responses API wraps the error of a failed stream.
                "response" if is_object => self.inside(scanner, "error", Self::error)?,
                "message" | "Message" | "detail" => self.message(scanner)?,
                other => self.word(other, scanner)?,
            }
        }
        Ok(())
    }

    fn error(&mut self, scanner: &mut Scanner<'a>) -> Result<(), Fault> {
        if scanner.peek() != Some(b'{') {
            return scanner.skip_value();
        }
        let mut walk = scanner.enter(b'{')?;
        while let Some(key) = scanner.next_key(&mut walk)? {
            let next = scanner.peek();
            match &*key.decode() {
                "message" => self.message(scanner)?,
                "innererror" if next == Some(b'{') => self.inside(scanner, "code", Self::code)?,
                "metadata" if next == Some(b'{') => self.metadata(scanner)?,
                "details" if next == Some(b'[') => self.details(scanner)?,
                other => self.word(other, scanner)?,
            }
        }
        Ok(())
    }

    /// Google's list of details: reasons, and quotas that were violated.
    fn details(&mut self, scanner: &mut Scanner<'a>) -> Result<(), Fault> {
        let mut list = scanner.enter(b'[')?;
        while scanner.next_element(&mut list)? {
            if scanner.peek() != Some(b'{') {
                scanner.skip_value()?;
                continue;
            }
            let mut walk = scanner.enter(b'{')?;
            while let Some(key) = scanner.next_key(&mut walk)? {
                if key.is("violations") && scanner.peek() == Some(b'[') {
                    self.violations(scanner)?;
                } else {
                    self.word(&key.decode(), scanner)?;
                }
            }
        }
        Ok(())
    }

    fn violations(&mut self, scanner: &mut Scanner<'a>) -> Result<(), Fault> {
        let mut list = scanner.enter(b'[')?;
        while scanner.next_element(&mut list)? {
            if scanner.peek() == Some(b'{') {
                self.inside(scanner, "quotaId", |fields, scanner| {
                    if scanner.peek() != Some(b'"') {
                        return scanner.skip_value();
                    }
                    fields.quotas.push(scanner.string()?.decode());
                    Ok(())
                })?;
            } else {
                scanner.skip_value()?;
            }
        }
        Ok(())
    }

    fn metadata(&mut self, scanner: &mut Scanner<'a>) -> Result<(), Fault> {
        self.inside(scanner, "flagged_input", |fields, scanner| {
            fields.words.push(Cow::Borrowed("flagged_input"));
            scanner.skip_value()
        })
    }

    /// Walks an object and reads one key of it.
    fn inside(
        &mut self,
        scanner: &mut Scanner<'a>,
        wanted: &str,
        read: impl Fn(&mut Self, &mut Scanner<'a>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let mut walk = scanner.enter(b'{')?;
        while let Some(key) = scanner.next_key(&mut walk)? {
            if key.is(wanted) {
                read(self, scanner)?;
            } else {
                scanner.skip_value()?;
            }
        }
        Ok(())
    }

    fn code(&mut self, scanner: &mut Scanner<'a>) -> Result<(), Fault> {
        self.word("code", scanner)
    }

    /// Keeps the value of a key that holds an identifier.
    fn word(&mut self, key: &str, scanner: &mut Scanner<'a>) -> Result<(), Fault> {
        let holds_word =
            matches!(key, "code" | "type" | "status" | "reason" | "error_code" | "__type");
        match scanner.peek() {
            Some(b'"') if holds_word => self.words.push(scanner.string()?.decode()),
            Some(b'1'..=b'9') if matches!(key, "code" | "status") => {
                self.number = self.number.or(scanner.number()?.parse().ok());
            }
            _ => scanner.skip_value()?,
        }
        Ok(())
    }

    /// Keeps the first message.
    fn message(&mut self, scanner: &mut Scanner<'a>) -> Result<(), Fault> {
        if scanner.peek() != Some(b'"') {
            return scanner.skip_value();
        }
        let text = scanner.string()?.decode();
        self.message.get_or_insert(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &str, words: &[&str], message: Option<&str>, number: Option<u16>) {
        let fields = ErrorFields::read(body.as_bytes());
        assert_eq!(fields.words, words, "{body}");
        assert_eq!((fields.message.as_deref(), fields.number), (message, number), "{body}");
    }

    #[test]
    fn the_known_shapes_are_read() {
        let openai = r#"{"error":{"message":"m","type":"t","param":null,"code":"c"}}"#;
        check(openai, &["t", "c"], Some("m"), None);
        let anthropic = r#"{"type":"error","error":{"type":"t","message":"m"}}"#;
        check(anthropic, &["error", "t"], Some("m"), None);
        let failed =
            r#"{"type":"response.failed","response":{"error":{"code":"c","message":"m"}}}"#;
        check(failed, &["response.failed", "c"], Some("m"), None);
        check(r#"{"error":"m","code":"c"}"#, &["c"], Some("m"), None);
        check(r#"{"detail":"m"}"#, &[], Some("m"), None);
        check(r#"{"__type":"t","message":"m"}"#, &["t"], Some("m"), None);
        check(
            r#"[{"error":{"code":429,"status":"S","message":"m"}}]"#,
            &["S"],
            Some("m"),
            Some(429),
        );
    }

    #[test]
    fn a_body_that_breaks_off_tells_what_it_has_told() {
        check(r#"{"error":{"code":"c","message":"m"#, &["c"], None, None);
        check("<html>", &[], None, None);
        check("", &[], None, None);
    }

    #[test]
    fn an_echo_of_the_callers_input_is_not_read() {
        let echo = r#"{"detail":[{"type":"missing","input":{"code":"insufficient_quota"}}],
            "error":{"param":{"code":"insufficient_quota"},"details":{"code":"x"}}}"#;
        check(echo, &[], None, None);
    }
}
