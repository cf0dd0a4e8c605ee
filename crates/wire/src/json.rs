//! A cursor over JSON bytes that checks as it goes and builds nothing.
//!
//! The hot path needs a few fields of a body and the certainty that the rest is JSON. A tree would
//! cost an allocation per value; this costs one pass. Callers walk objects and arrays with
//! `Scanner::next_key` and `Scanner::next_element` and step over the rest with
//! `Scanner::skip_value`.
//!
//! Rules:
//! - What it steps over is checked: grammar, escapes, UTF-8, numbers that fit a double, at most
//!   [`MAX_DEPTH`] levels. It takes what `serde_json` takes into a value, apart from the depth and
//!   from halves of surrogate pairs: JSON's grammar allows those, programs that cut UTF-16 anywhere
//!   write them, and whoever needs the text of a string finds out (`Text::decode_exactly`).
//! - It never panics and its work is linear in the bytes stepped over.
//! - A [`Fault`] says what and at which byte. After one the position means nothing.
//!
//! Duplicate keys are the callers' business: only they know which key matters.

use std::borrow::Cow;
use std::ops::Range;

/// The most levels of objects and arrays. Deeper bodies come from attackers only.
pub const MAX_DEPTH: u8 = 128;

/// A place in JSON text that is not as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} at byte {at}")]
pub struct Fault {
    /// The offset of the byte.
    pub at: usize,
    /// What is wrong there.
    pub what: What,
}

/// What can be wrong with JSON text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum What {
    /// The text ends inside a value.
    #[error("the text ends too early")]
    EndsEarly,
    /// A byte that cannot stand there.
    #[error("unexpected byte `{}`", .0.escape_ascii())]
    Unexpected(u8),
    /// Something follows the value.
    #[error("something follows the value")]
    Trailing,
    /// A control character inside a string.
    #[error("control character inside a string")]
    ControlCharacter,
    /// A backslash followed by something that is no escape.
    #[error("unknown escape inside a string")]
    BadEscape,
    /// A string that decides where the request goes is no text.
    #[error("`{0}` contains half of a surrogate pair")]
    LoneSurrogate(&'static str),
    /// Bytes that are not UTF-8.
    #[error("bytes that are not UTF-8")]
    NotUtf8,
    /// A number that no double can hold.
    #[error("number out of range")]
    NumberOutOfRange,
    /// More than [`MAX_DEPTH`] levels.
    #[error("more than {MAX_DEPTH} levels of nesting")]
    TooDeep,
    /// The top level is no object.
    #[error("the body must be a JSON object")]
    NotAnObject,
    /// A key that decides where the request goes stands there for the second time.
    #[error("`{0}` is given twice")]
    GivenTwice(&'static str),
    /// A key that decides where the request goes has a value of another type.
    #[error("`{key}` must be a {wants}")]
    WrongType {
        /// The key.
        key: &'static str,
        /// The type it must have.
        wants: &'static str,
    },
}

/// A string as it stands in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Text<'a> {
    quoted: &'a [u8],
    start: usize,
    has_escapes: bool,
}

impl<'a> Text<'a> {
    /// Where it stands, quotes included.
    pub(crate) fn span(&self) -> Range<usize> {
        self.start..self.start + self.quoted.len()
    }

    /// Whether it says `word`, however it is escaped.
    pub(crate) fn is(&self, word: &str) -> bool {
        if self.has_escapes { self.decode() == word } else { self.inside() == word.as_bytes() }
    }

    /// What it says.
    pub(crate) fn decode(&self) -> Cow<'a, str> {
        if !self.has_escapes {
            // The scanner has checked it; the strict reader is the faster one.
            let text = std::str::from_utf8(self.inside());
            return text.map_or_else(|_| String::from_utf8_lossy(self.inside()), Cow::Borrowed);
        }
        // What is no text stays as it is written, which matches no name.
        self.decode_exactly().unwrap_or_else(|| String::from_utf8_lossy(self.inside()))
    }

    /// What it says, in bytes: for comparing a key with many words, which needs no text.
    pub(crate) fn name(&self) -> Cow<'a, [u8]> {
        match self.has_escapes {
            true => Cow::Owned(self.decode().into_owned().into_bytes()),
            false => Cow::Borrowed(self.inside()),
        }
    }

    /// What it says, unless a half of a surrogate pair makes it no text.
    pub(crate) fn decode_exactly(&self) -> Option<Cow<'a, str>> {
        if self.has_escapes {
            serde_json::from_slice::<String>(self.quoted).ok().map(Cow::Owned)
        } else {
            Some(self.decode())
        }
    }

    fn inside(&self) -> &'a [u8] {
        &self.quoted[1..self.quoted.len() - 1]
    }
}

/// Where a walk over one object or array stands.
#[derive(Debug)]
pub(crate) struct Walk {
    is_first: bool,
}

/// The cursor.
#[derive(Debug)]
pub(crate) struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: u8,
    /// Whether only the grammar counts.
    is_lenient: bool,
}

impl<'a> Scanner<'a> {
    /// A cursor at the first byte that is not white space.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        let mut scanner = Self { bytes, at: 0, depth: 0, is_lenient: false };
        scanner.skip_space();
        scanner
    }

    /// A cursor over what a provider said. Only the grammar counts: clients take a broken
    /// character or a huge number, and the gateway is not stricter than they are.
    pub(crate) fn of_answer(bytes: &'a [u8]) -> Self {
        Self { is_lenient: true, ..Self::new(bytes) }
    }

    /// The next byte.
    pub(crate) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Where the next byte stands.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// What has not been stepped over yet.
    pub(crate) fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    /// A fault at the next byte: `what`, or the early end.
    pub(crate) fn fault(&self, what: What) -> Fault {
        let what = if self.at < self.bytes.len() { what } else { What::EndsEarly };
        Fault { at: self.at, what }
    }

    /// The text must end here.
    pub(crate) fn end(&mut self) -> Result<(), Fault> {
        self.skip_space();
        if self.at == self.bytes.len() { Ok(()) } else { Err(self.fault(What::Trailing)) }
    }

    /// Steps into an object or array, which must open with `open`.
    pub(crate) fn enter(&mut self, open: u8) -> Result<Walk, Fault> {
        self.expect(open)?;
        if self.depth == MAX_DEPTH {
            return Err(Fault { at: self.at - 1, what: What::TooDeep });
        }
        self.depth += 1;
        self.skip_space();
        Ok(Walk { is_first: true })
    }

    /// The next key of an object, with the cursor at its value; `None` past the end of the object.
    pub(crate) fn next_key(&mut self, walk: &mut Walk) -> Result<Option<Text<'a>>, Fault> {
        if self.is_over(walk, b'}')? {
            return Ok(None);
        }
        let key = self.string()?;
        self.skip_space();
        self.expect(b':')?;
        self.skip_space();
        Ok(Some(key))
    }

    /// Whether an array has another element, with the cursor at it.
    pub(crate) fn next_element(&mut self, walk: &mut Walk) -> Result<bool, Fault> {
        Ok(!self.is_over(walk, b']')?)
    }

    fn is_over(&mut self, walk: &mut Walk, close: u8) -> Result<bool, Fault> {
        self.skip_space();
        if self.peek() == Some(close) {
            self.at += 1;
            self.depth -= 1;
            return Ok(true);
        }
        if !std::mem::take(&mut walk.is_first) {
            self.expect(b',')?;
            self.skip_space();
        }
        Ok(false)
    }

    /// Steps over one value of any type: one loop for all of its levels, so that a level costs a
    /// bit and no call.
    pub(crate) fn skip_value(&mut self) -> Result<(), Fault> {
        let outside = self.depth;
        // The lowest bit is the innermost level: whether it is an object. MAX_DEPTH bits suffice.
        let mut objects = 0_u128;
        loop {
            match self.peek() {
                Some(b'"') => drop(self.skip_string()?),
                Some(open @ (b'{' | b'[')) => {
                    self.enter(open)?;
                    let is_object = open == b'{';
                    objects = objects << 1 | u128::from(is_object);
                    if self.peek() != Some(open + 2) {
                        if is_object {
                            self.skip_key()?;
                        }
                        continue;
                    }
                }
                Some(b'-' | b'0'..=b'9') => drop(self.skip_number()?),
                Some(b't') => self.literal(b"true")?,
                Some(b'f') => self.literal(b"false")?,
                Some(b'n') => self.literal(b"null")?,
                byte => return Err(self.fault(What::Unexpected(byte.unwrap_or_default()))),
            }
            // Past a value, or in front of the end of an empty level.
            while self.depth > outside {
                let is_object = objects & 1 == 1;
                self.skip_space();
                if self.peek() == Some(if is_object { b'}' } else { b']' }) {
                    self.at += 1;
                    self.depth -= 1;
                    objects >>= 1;
                    continue;
                }
                self.expect(b',')?;
                self.skip_space();
                if is_object {
                    self.skip_key()?;
                }
                break;
            }
            if self.depth == outside {
                return Ok(());
            }
        }
    }

    /// Steps over a key and its colon, to the value.
    fn skip_key(&mut self) -> Result<(), Fault> {
        self.skip_string()?;
        self.skip_space();
        self.expect(b':')?;
        self.skip_space();
        Ok(())
    }

    /// Steps over a string and gives it.
    pub(crate) fn string(&mut self) -> Result<Text<'a>, Fault> {
        let start = self.at;
        let has_escapes = self.skip_string()?;
        Ok(Text { quoted: &self.bytes[start..self.at], start, has_escapes })
    }

    /// Steps over a string; whether it has escapes.
    fn skip_string(&mut self) -> Result<bool, Fault> {
        let start = self.at;
        self.expect(b'"')?;
        let mut has_escapes = false;
        let mut high_bits = 0;
        loop {
            high_bits |= self.skip_plain();
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {
                    has_escapes = true;
                    self.escape()?;
                }
                Some(0..0x20) => return Err(self.fault(What::ControlCharacter)),
                Some(byte) => {
                    high_bits |= u64::from(byte) & 0x80;
                    self.at += 1;
                }
                None => return Err(self.fault(What::EndsEarly)),
            }
        }
        if high_bits != 0
            && !self.is_lenient
            && let Err(error) = std::str::from_utf8(&self.bytes[start + 1..self.at])
        {
            return Err(Fault { at: start + 1 + error.valid_up_to(), what: What::NotUtf8 });
        }
        self.at += 1;
        Ok(has_escapes)
    }

    /// Skips bytes up to the first that is a quote, a backslash or a control character: eight at a
    /// time, and many at a time where there are many. (At the end of the text it may stop early;
    /// the caller goes on byte by byte.) Gives the high bits it met: not all ASCII.
    #[inline]
    fn skip_plain(&mut self) -> u64 {
        let mut high_bits = 0;
        // Most strings are names, which end here.
        for _ in 0..SHORT / 8 {
            if self.skip_eight(&mut high_bits) {
                return high_bits;
            }
        }
        self.skip_long(high_bits)
    }

    /// Skips up to eight bytes; whether there is a byte to stop at, or too few are left.
    #[inline]
    fn skip_eight(&mut self, high_bits: &mut u64) -> bool {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let Some(eight) = rest.first_chunk::<8>() else { return true };
        let word = u64::from_le_bytes(*eight);
        *high_bits |= word & HIGH;
        let specials = specials(word);
        let skipped = if specials == 0 { 8 } else { specials.trailing_zeros() as usize / 8 };
        self.at += skipped;
        specials != 0
    }

    /// Prose: two searches that look at many bytes with one instruction, the first for the end, the
    /// second for what must not stand before it.
    fn skip_long(&mut self, high_bits: u64) -> u64 {
        let rest = &self.bytes[self.at..];
        let end = memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
        let (lowest, all) =
            rest[..end].iter().fold((u8::MAX, 0), |(low, all), byte| (low.min(*byte), all | byte));
        let is_control = |byte: &u8| *byte < 0x20;
        let stop = if lowest < 0x20 { rest.iter().position(is_control) } else { None };
        self.at += stop.unwrap_or(end);
        high_bits | u64::from(all & 0x80)
    }

    fn escape(&mut self) -> Result<(), Fault> {
        self.at += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 1;
                Ok(())
            }
            Some(b'u') => self.hex4(),
            _ => Err(self.fault(What::BadEscape)),
        }
    }

    /// Steps over `u` and four hexadecimal digits.
    fn hex4(&mut self) -> Result<(), Fault> {
        self.at += 1;
        for _ in 0..4 {
            if !self.peek().is_some_and(|byte| byte.is_ascii_hexdigit()) {
                return Err(self.fault(What::BadEscape));
            }
            self.at += 1;
        }
        Ok(())
    }

    /// Steps over a number and gives its text.
    pub(crate) fn number(&mut self) -> Result<&'a str, Fault> {
        self.skip_number().map(|text| std::str::from_utf8(text).unwrap_or_default())
    }

    fn skip_number(&mut self) -> Result<&'a [u8], Fault> {
        let start = self.at;
        self.at += usize::from(self.peek() == Some(b'-'));
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        let has_exponent = matches!(self.peek(), Some(b'e' | b'E'));
        if has_exponent {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            self.digits()?;
        }
        let text = &self.bytes[start..self.at];
        // Without an exponent it takes more than 300 digits to leave the range of a double.
        let may_be_huge = !self.is_lenient && (has_exponent || text.len() > 300);
        let value = || std::str::from_utf8(text).ok().and_then(|it| it.parse::<f64>().ok());
        if may_be_huge && !value().is_some_and(f64::is_finite) {
            return Err(Fault { at: start, what: What::NumberOutOfRange });
        }
        Ok(text)
    }

    fn digits(&mut self) -> Result<(), Fault> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at > start {
            return Ok(());
        }
        Err(self.fault(What::Unexpected(self.peek().unwrap_or_default())))
    }

    fn literal(&mut self, word: &'static [u8]) -> Result<(), Fault> {
        if self.rest().starts_with(word) {
            self.at += word.len();
            return Ok(());
        }
        for &byte in word {
            self.expect(byte)?;
        }
        Ok(())
    }

    fn expect(&mut self, byte: u8) -> Result<(), Fault> {
        if self.peek() == Some(byte) {
            self.at += 1;
            return Ok(());
        }
        Err(self.fault(What::Unexpected(self.peek().unwrap_or_default())))
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }
}

const ONES: u64 = u64::from_le_bytes([1; 8]);
const HIGH: u64 = ONES << 7;
/// How much of a string is looked at by eights before it is taken for prose.
const SHORT: usize = 16;

/// Marks the high bit of bytes that are a quote, a backslash or below 0x20. The lowest mark is
/// exact: a borrow only spoils marks above a true one.
fn specials(word: u64) -> u64 {
    let quote = word ^ (ONES * b'"' as u64);
    let backslash = word ^ (ONES * b'\\' as u64);
    let zero_in = |x: u64, limit: u64| x.wrapping_sub(ONES * limit) & !x;
    (zero_in(quote, 1) | zero_in(backslash, 1) | zero_in(word, 0x20)) & HIGH
}

/// Whether the text at the start of `value` is one that carries nothing: `null`, `""`, `[]`, `{}`.
/// A value that is cut off counts as carrying something once a byte of it is there.
pub(crate) fn is_blank(value: &[u8]) -> bool {
    match value.first() {
        None | Some(b'n') => true,
        Some(b'"') => matches!(value.get(1), None | Some(b'"')),
        Some(open @ (b'[' | b'{')) => {
            let close = open + 2;
            let inside = value[1..].iter().find(|byte| !byte.is_ascii_whitespace());
            inside.is_none_or(|&byte| byte == close)
        }
        Some(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &[u8], expected: Result<(), (usize, What)>) {
        let mut scanner = Scanner::new(text);
        let found = scanner.skip_value().and_then(|()| scanner.end());
        let shown = String::from_utf8_lossy(text);
        assert_eq!(found.map_err(|fault| (fault.at, fault.what)), expected, "{shown}");
    }

    #[test]
    fn json_is_taken_and_what_is_not_json_is_refused_at_the_byte() {
        for text in
            ["0", "-0.5e+3", "\"\"", "[]", "{}", " [1, {\"a\": null}, true] ", "\"é\\u00e9\""]
        {
            check(text.as_bytes(), Ok(()));
        }
        check(b"", Err((0, What::EndsEarly)));
        check(b"[1,]", Err((3, What::Unexpected(b']'))));
        check(b"{\"a\" 1}", Err((5, What::Unexpected(b'1'))));
        check(b"01", Err((1, What::Trailing)));
        check(b"1.", Err((2, What::EndsEarly)));
        check(b"nul", Err((3, What::EndsEarly)));
        check(b"\"ab\x01\"", Err((3, What::ControlCharacter)));
        check(b"\"12345678901234567\n\"", Err((18, What::ControlCharacter)));
        check(b"\"\\x\"", Err((2, What::BadEscape)));
        check(b"\"\\u12g4\"", Err((5, What::BadEscape)));
        for text in ["\"\\ud83d\"", "\"\\ud83d\\u0041\"", "\"\\udc00\"", "\"\\ud83d\\ude00\""] {
            check(text.as_bytes(), Ok(()));
        }
        check(b"\"\\ud83\"", Err((6, What::BadEscape)));
        check(b"\"ok \xff\"", Err((4, What::NotUtf8)));
        check(b"1e400", Err((0, What::NumberOutOfRange)));
        check(&[b'9'; 400], Err((0, What::NumberOutOfRange)));
        check(b"1e-400", Ok(()));
    }

    #[test]
    fn of_an_answer_only_the_grammar_counts() {
        let is_json = |text: &[u8]| {
            let mut scanner = Scanner::of_answer(text);
            scanner.skip_value().and_then(|()| scanner.end()).is_ok()
        };
        for text in [&b"\"\\ud83d\""[..], b"\"\\udc00x\"", b"\"ok \xff\"", b"1e400"] {
            assert!(is_json(text), "{}", String::from_utf8_lossy(text));
        }
        for text in [&b"\"\\ud8\""[..], b"{\"a\":", b"<html>", b"\"a\nb\"", b"1 2", b""] {
            assert!(!is_json(text), "{}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn nesting_is_taken_to_128_levels_and_no_further() {
        let nested = |levels: usize| ["[".repeat(levels), "]".repeat(levels)].concat();
        check(nested(128).as_bytes(), Ok(()));
        check(nested(129).as_bytes(), Err((128, What::TooDeep)));
        check("[".repeat(1_000_000).as_bytes(), Err((128, What::TooDeep)));
    }

    #[test]
    fn every_byte_is_told_special_or_plain_at_every_place_of_a_word() {
        for byte in 0..=u8::MAX {
            for place in 0..8 {
                let mut word = *b"abcdefgh";
                word[place] = byte;
                let marks = specials(u64::from_le_bytes(word));
                let is_special = byte < 0x20 || byte == b'"' || byte == b'\\';
                let expected = if is_special { place } else { 8 };
                assert_eq!(marks.trailing_zeros() as usize / 8, expected, "{byte} at {place}");
            }
        }
    }

    #[test]
    fn a_string_is_compared_by_what_it_says() {
        let said = Scanner::new(br#""mod\u0065l""#).string().expect("a string");
        assert!(said.is("model"));
        assert_eq!(said.span(), 0..12);
        let half = Scanner::new(br#""model\ud800""#).string().expect("a string");
        assert!(half.decode_exactly().is_none() && !half.is("model"));
        let plain = Scanner::new(br#""model""#).string().expect("a string");
        assert!(plain.is("model") && !plain.is("models"));
    }

    #[test]
    fn values_that_carry_nothing_are_blank() {
        for text in ["null", "\"\"", "[]", "{ }", "", "\"", "[ "] {
            assert!(is_blank(text.as_bytes()), "{text}");
        }
        for text in ["\"a", "[1", "{\"a", "0", "true"] {
            assert!(!is_blank(text.as_bytes()), "{text}");
        }
    }
}
