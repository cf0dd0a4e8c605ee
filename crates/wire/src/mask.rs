//! Takes the gateway's own secrets out of what a provider says.
//!
//! A provider that echoes its request, in an error, a header or an answer, would hand its key to
//! every client. Each attempt knows the secrets it sent; this finds them and covers them.
//!
//! Rules:
//! - A secret is found as it is, with characters escaped as in JSON (`\u002d`, `\/`) or as in a
//!   url (`%2D`), and inside base64 text, whatever stands before and after it there.
//! - A covered place keeps its length, so that an announced length still holds.
//! - A stream is covered across its chunks: what may be the beginning of a secret waits for the
//!   next chunk. No secret has a line feed, so no whole event ever waits.
//! - Work is linear in the bytes, and nothing is copied unless a secret is found.
//!
//! Left to others: which secrets an attempt sent (the server).

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use aho_corasick::packed::Searcher;
use bytes::{Bytes, BytesMut};
use memchr::memmem::Finder;

/// Shorter ones could be any word; covering them would garble answers.
const SHORTEST: usize = 8;

/// Six bytes can stand for one: `\u002d`.
const LONGEST_ESCAPE: usize = 6;

/// The secrets of one attempt, in every spelling that is looked for.
pub struct Mask {
    needles: Vec<Finder<'static>>,
    /// Whether any of them is in a text, in one pass: hardly ever one is. Where a machine has no
    /// instructions for it, each is looked for.
    any: Option<Searcher>,
    /// The bytes that a spelling may begin with, escaped or not.
    begins: Box<[bool; 256]>,
    /// How many bytes the longest spelling can take.
    reach: usize,
    /// How many bytes the shortest one takes at least; escapes only make it longer.
    shortest: usize,
}

impl fmt::Debug for Mask {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Mask({} spellings)", self.needles.len())
    }
}

/// How a text and a needle compare from one place on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Match {
    /// Equal, up to here.
    To(usize),
    /// Equal as far as the text goes.
    Partly,
    No,
}

impl Mask {
    /// Covers these secrets; those of a few characters are left out.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut spellings: Vec<Vec<u8>> = Vec::new();
        for secret in secrets.into_iter().filter(|it| it.len() >= SHORTEST) {
            spellings.push(secret.to_vec());
            spellings.extend(in_base64(secret));
        }
        spellings.sort();
        spellings.dedup();
        let needles = spellings.iter().map(|it| Finder::new(it).into_owned()).collect();
        let mut begins = Box::new([false; 256]);
        for first in spellings.iter().filter_map(|it| it.first()).chain(b"\\%") {
            begins[usize::from(*first)] = true;
        }
        let longest = spellings.iter().map(Vec::len).max().unwrap_or_default();
        let shortest = spellings.iter().map(Vec::len).min().unwrap_or(usize::MAX);
        let (any, reach) = (Searcher::new(&spellings), longest * LONGEST_ESCAPE);
        Self { needles, any, begins, reach, shortest }
    }

    /// The text with every secret covered; `None` if there is none in it.
    #[must_use]
    pub fn cover(&self, text: &[u8]) -> Option<Vec<u8>> {
        if text.len() < self.shortest {
            return None;
        }
        let places = self.places(text);
        if places.is_empty() {
            return None;
        }
        let mut covered = text.to_vec();
        for place in places {
            covered[place].fill(b'*');
        }
        Some(covered)
    }

    /// Where secrets stand, in any order.
    fn places(&self, text: &[u8]) -> Vec<Range<usize>> {
        let mut places = Vec::new();
        let may_be_there = self.any.as_ref().is_none_or(|any| any.find(text).is_some());
        for finder in self.needles.iter().filter(|_| may_be_there) {
            let len = finder.needle().len();
            places.extend(finder.find_iter(text).map(|at| at..at + len));
        }
        // What has an escape in it begins not far before the escape.
        let mut from = 0;
        for escape in escapes(text) {
            for at in escape.saturating_sub(self.reach).max(from)..=escape {
                let ends = self.needles.iter().map(|it| compared(text, at, it.needle()));
                let ends = ends.filter_map(|it| match it {
                    Match::To(end) => Some(at..end),
                    Match::Partly | Match::No => None,
                });
                places.extend(ends);
            }
            from = escape + 1;
        }
        places
    }

    /// From where on the text may be the beginning of a secret.
    fn open_from(&self, text: &[u8]) -> usize {
        if text.last().is_none_or(|last| matches!(last, b'\n' | b'\r')) {
            return text.len();
        }
        let first = text.len().saturating_sub(self.reach);
        let is_open = |at: &usize| {
            let mut needles = self.needles.iter();
            self.begins[usize::from(text[*at])]
                && needles.any(|it| compared(text, *at, it.needle()) == Match::Partly)
        };
        (first..text.len()).find(is_open).unwrap_or(text.len())
    }
}

/// Covers a body that comes in chunks.
#[derive(Debug)]
pub struct MaskedStream {
    mask: Arc<Mask>,
    /// What may be the beginning of a secret.
    open: Bytes,
}

impl MaskedStream {
    /// A body that has not begun.
    #[must_use]
    pub fn new(mask: Arc<Mask>) -> Self {
        Self { mask, open: Bytes::new() }
    }

    /// Takes a chunk and gives what can be released; it may be nothing.
    pub fn feed(&mut self, chunk: Bytes) -> Bytes {
        let mut covered = self.covered(chunk);
        self.open = covered.split_off(self.mask.open_from(&covered));
        covered
    }

    /// Takes the last chunk and gives all that is left: no secret goes on in what follows.
    #[must_use]
    pub fn feed_last(mut self, chunk: Bytes) -> Bytes {
        self.covered(chunk)
    }

    /// What waited and the chunk, covered.
    fn covered(&mut self, chunk: Bytes) -> Bytes {
        let chunk = match self.open.is_empty() {
            true => chunk,
            false => {
                let mut joined = BytesMut::with_capacity(self.open.len() + chunk.len());
                joined.extend_from_slice(&std::mem::take(&mut self.open));
                joined.extend_from_slice(&chunk);
                joined.freeze()
            }
        };
        self.mask.cover(&chunk).map_or(chunk, Bytes::from)
    }

    /// How many bytes wait for the next chunk.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.open.len()
    }

    /// The body is over: what waited was no secret.
    pub fn finish(&mut self) -> Bytes {
        std::mem::take(&mut self.open)
    }
}

/// Where characters are written as escapes.
fn escapes(text: &[u8]) -> impl Iterator<Item = usize> {
    memchr::memchr2_iter(b'\\', b'%', text).filter(|&at| {
        let is_plain = |(byte, next): (u8, usize)| byte == text[at] && next == at + 1;
        !decoded(text, at).is_some_and(is_plain)
    })
}

/// Compares what the text says from `at` on with a needle.
fn compared(text: &[u8], mut at: usize, needle: &[u8]) -> Match {
    for &wanted in needle {
        if at == text.len() {
            return Match::Partly;
        }
        match decoded(text, at) {
            None => return Match::Partly,
            Some((byte, next)) if byte == wanted => at = next,
            Some(_) => return Match::No,
        }
    }
    Match::To(at)
}

/// The character at `at` and where the next one stands; `None` if an escape is cut off there.
fn decoded(text: &[u8], at: usize) -> Option<(u8, usize)> {
    let plain = Some((text[at], at + 1));
    match text[at] {
        b'\\' => {
            // Text inside text has its backslashes escaped again.
            let run = text[at..].iter().take_while(|byte| **byte == b'\\').count();
            let after = at + run;
            match text.get(after) {
                None => None,
                Some(b'/') => Some((b'/', after + 1)),
                Some(b'u') => hex(text, after + 1, 4).unwrap_or(plain),
                Some(_) => plain,
            }
        }
        b'%' => hex(text, at + 1, 2).unwrap_or(plain),
        _ => plain,
    }
}

/// The character that so many hexadecimal digits stand for: `None` if they do not, `Some(None)` if
/// the text ends among them.
fn hex(text: &[u8], from: usize, digits: usize) -> Option<Option<(u8, usize)>> {
    let there = &text[from..text.len().min(from + digits)];
    let mut value = 0_u32;
    for digit in there {
        value = value * 16 + char::from(*digit).to_digit(16)?;
    }
    if there.len() < digits {
        return Some(None);
    }
    let byte = u8::try_from(value).ok().filter(u8::is_ascii)?;
    Some(Some((byte, from + digits)))
}

/// The part of a secret's base64 that is the same whatever stands around it, for each of the three
/// places it may begin at, in both alphabets.
fn in_base64(secret: &[u8]) -> Vec<Vec<u8>> {
    const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const FOR_URLS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut spellings = Vec::new();
    for skipped in 0..3 {
        // The first group that holds nothing but the secret begins here.
        let bits = &secret[skipped..];
        for alphabet in [STANDARD, FOR_URLS] {
            let letters = |group: &[u8]| {
                let word = group.iter().fold(0_usize, |word, byte| word << 8 | usize::from(*byte));
                [18, 12, 6, 0].map(|shift| alphabet[word >> shift & 63])
            };
            let text: Vec<u8> = bits.chunks_exact(3).flat_map(letters).collect();
            if text.len() >= SHORTEST {
                spellings.push(text);
            }
        }
    }
    spellings
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk-canary/1234+56";

    fn mask() -> Arc<Mask> {
        Arc::new(Mask::new([KEY.as_bytes()]))
    }

    fn covered(text: &str) -> String {
        let found = mask().cover(text.as_bytes());
        found.map_or_else(|| text.to_owned(), |it| String::from_utf8_lossy(&it).into_owned())
    }

    #[test]
    fn s2_a_secret_is_covered_wherever_it_stands() {
        let stars = "*".repeat(KEY.len());
        assert_eq!(covered(&format!("key {KEY}, {KEY}!")), format!("key {stars}, {stars}!"));
        assert_eq!(mask().cover(b"fine \\n 50% \\u00e9"), None);
        assert_eq!(mask().cover(b""), None);
    }

    #[test]
    fn escaped_spellings_are_covered() {
        for text in [
            r"sk\u002dcanary\/1234\u002B56",
            r"sk-canary\\/1234+56",
            r"sk\\u002dcanary/1234+56",
            "sk%2Dcanary%2f1234%2B56",
            r"\u0073\u006b\u002d\u0063\u0061\u006e\u0061\u0072\u0079\u002f1234+56",
        ] {
            let found = covered(&format!("a 50% \\n {text} b"));
            assert_eq!(found, format!("a 50% \\n {} b", "*".repeat(text.len())), "{text}");
        }
    }

    #[test]
    fn base64_of_a_secret_is_covered_whatever_stands_around_it() {
        // `KEY`, `:KEY` and `u:KEY` with something behind, as base64.
        for text in
            ["c2stY2FuYXJ5LzEyMzQrNTY=", "OnNrLWNhbmFyeS8xMjM0KzU2", "dTpzay1jYW5hcnkvMTIzNCs1Njp4"]
        {
            let found = covered(text);
            let stars = found.matches('*').count();
            assert!(stars + 8 >= text.len(), "only {stars} of {} in {found}", text.len());
        }
    }

    #[test]
    fn a_stream_is_covered_however_it_is_cut() {
        let text = format!("data: {{\"a\":\"{KEY} sk\\u002dcanary\\/1234+56 sk-can\"}}\n\nsk-");
        let expected = covered(&text);
        for size in 1..text.len() {
            let mut stream = MaskedStream::new(mask());
            let mut out = Vec::new();
            for chunk in text.as_bytes().chunks(size) {
                out.extend(stream.feed(Bytes::copy_from_slice(chunk)));
            }
            out.extend(stream.finish());
            assert_eq!(String::from_utf8_lossy(&out), expected, "{size}");
        }
    }

    #[test]
    fn the_last_chunk_ends_a_body_wherever_it_begins() {
        let text = format!("{{\"a\":\"{KEY} sk-can\"}}sk-");
        for cut in 0..text.len() {
            let mut stream = MaskedStream::new(mask());
            let mut out = stream.feed(Bytes::copy_from_slice(&text.as_bytes()[..cut])).to_vec();
            out.extend(stream.feed_last(Bytes::copy_from_slice(&text.as_bytes()[cut..])));
            assert_eq!(String::from_utf8_lossy(&out), covered(&text), "cut at {cut}");
        }
    }

    #[test]
    fn nothing_waits_at_the_end_of_an_event_and_nothing_is_copied() {
        let mut stream = MaskedStream::new(mask());
        let chunk = Bytes::from("data: {\"s\":\"sk-\"}\n\n");
        let out = stream.feed(chunk.clone());
        assert_eq!((out.as_ptr(), out.len()), (chunk.as_ptr(), chunk.len()));
    }

    #[test]
    fn short_secrets_are_words_and_stay() {
        assert_eq!(Mask::new([&b"secret"[..]]).cover(b"a secret"), None);
        assert!(!format!("{:?}", mask()).contains("canary"));
    }
}
