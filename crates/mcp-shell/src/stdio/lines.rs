//! Lines out of chunks of output, each within a limit.
//!
//! Rules kept here:
//! - No more than one line of the limit's length is held; what is longer is passed by, and only
//!   its two [`Ends`] are kept.
//! - A line is a slice of what was read: nothing is copied.
//! - Line ends are `\n` or `\r\n`, and blank lines are none.

use bytes::{Bytes, BytesMut};
use memchr::memchr;

/// How much is asked for at once.
const CHUNK: usize = 64 * 1024;
/// What is kept of the beginning of a line that is too long.
const HEAD_BYTES: usize = 2048;
/// What is kept of its end.
const TAIL_BYTES: usize = 64;

/// One line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// The line, without its end.
    Whole(Bytes),
    /// Too long to be held.
    TooLong(Ends),
}

/// The two ends of a line that was too long.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Ends {
    pub(crate) head: Vec<u8>,
    pub(crate) tail: Vec<u8>,
    /// Its whole length.
    pub(crate) bytes: u64,
}

impl Ends {
    fn add(&mut self, bytes: &[u8]) {
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        let room = HEAD_BYTES.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..room]);
        self.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(TAIL_BYTES)..]);
        self.tail.drain(..self.tail.len().saturating_sub(TAIL_BYTES));
    }
}

/// Splits what is read into [`Self::space`].
#[derive(Debug)]
pub(crate) struct Lines {
    limit: usize,
    buffer: BytesMut,
    /// How far there is certainly no line end.
    looked: usize,
    /// The line that is being passed by.
    passed: Option<Ends>,
}

impl Lines {
    pub(crate) fn up_to(limit: usize) -> Self {
        Self { limit, buffer: BytesMut::new(), looked: 0, passed: None }
    }

    /// Takes over a changed limit.
    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Where the next chunk goes.
    pub(crate) fn space(&mut self) -> &mut BytesMut {
        self.buffer.reserve(CHUNK);
        &mut self.buffer
    }

    /// The next line, if a whole one is there.
    pub(crate) fn next(&mut self) -> Option<Line> {
        while let Some(at) = memchr(b'\n', &self.buffer[self.looked..]) {
            let line = self.buffer.split_to(self.looked + at + 1);
            self.looked = 0;
            if let Some(line) = self.line(line) {
                return Some(line);
            }
        }
        self.looked = self.buffer.len();
        // One more than the limit, because `\r` may be part of the line's end.
        if self.passed.is_some() || self.buffer.len() > self.limit + 1 {
            self.passed.get_or_insert_default().add(&self.buffer);
            // A new buffer, because this one may have grown to the limit.
            self.buffer = BytesMut::new();
            self.looked = 0;
        }
        None
    }

    /// The output has ended: what is left is a line too.
    pub(crate) fn finish(&mut self) -> Option<Line> {
        let rest = std::mem::take(&mut self.buffer);
        self.looked = 0;
        self.line(rest)
    }

    fn line(&mut self, mut line: BytesMut) -> Option<Line> {
        for end in [b'\n', b'\r'] {
            if line.last() == Some(&end) {
                line.truncate(line.len() - 1);
            }
        }
        if self.passed.is_some() || line.len() > self.limit {
            let mut ends = self.passed.take().unwrap_or_default();
            ends.add(&line);
            return Some(Line::TooLong(ends));
        }
        let is_blank = line.iter().all(u8::is_ascii_whitespace);
        (!is_blank).then(|| Line::Whole(line.freeze()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes out when `chunks` go in.
    fn check(limit: usize, chunks: &[&str], expected: &[&str]) {
        let mut lines = Lines::up_to(limit);
        let mut out = Vec::new();
        for chunk in chunks {
            lines.space().extend_from_slice(chunk.as_bytes());
            out.extend(std::iter::from_fn(|| lines.next()));
        }
        out.extend(lines.finish());
        let told: Vec<String> = out
            .into_iter()
            .map(|line| match line {
                Line::Whole(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
                Line::TooLong(ends) => format!(
                    "{}: {} … {}",
                    ends.bytes,
                    String::from_utf8_lossy(&ends.head),
                    String::from_utf8_lossy(&ends.tail)
                ),
            })
            .collect();
        assert_eq!(told, expected, "{chunks:?}");
    }

    #[test]
    fn lines_do_not_depend_on_how_they_were_cut_into_chunks() {
        let text = "one\r\n\n  \ntwo\nthree";
        for size in 1..text.len() {
            let chunks: Vec<&str> =
                text.as_bytes().chunks(size).map(|it| str::from_utf8(it).expect("ASCII")).collect();
            check(100, &chunks, &["one", "two", "three"]);
        }
    }

    #[test]
    fn a_line_at_the_limit_passes_and_a_longer_one_costs_only_itself() {
        check(
            4,
            &["1234\n", "1234\r\n", "12345\n", "ok\n"],
            &["1234", "1234", "5: 12345 … 12345", "ok"],
        );
        check(4, &["1234", "5678", "9\nok", "\n"], &["9: 123456789 … 123456789", "ok"]);
        check(4, &["1234567"], &["7: 1234567 … 1234567"]);
    }

    #[test]
    fn of_a_long_line_only_its_ends_are_held() {
        let mut lines = Lines::up_to(10_000);
        for _ in 0..1000 {
            lines.space().extend_from_slice(&[b'x'; 10_000]);
            assert_eq!(lines.next(), None);
            assert!(lines.buffer.len() <= 10_001);
        }
        lines.space().extend_from_slice(b"end\n");
        let Some(Line::TooLong(ends)) = lines.next() else { panic!("a line that is too long") };
        assert_eq!((ends.bytes, ends.head.len()), (10_000_003, HEAD_BYTES));
        assert!(ends.tail.ends_with(b"xend") && ends.tail.len() == TAIL_BYTES);
    }
}
