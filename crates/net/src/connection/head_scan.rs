//! Looks at requests on their way in for what two readers could cut differently (S20).
//!
//! The HTTP library below is lenient where the standard lets it be: it takes a bare line feed for
//! the end of a line, and drops a length that stands beside `transfer-encoding`. A proxy in front
//! of the gateway may read the same bytes otherwise, and then one client's bytes become another's
//! request. So the bytes themselves are looked at, before the library sees them.
//!
//! Rules kept here:
//! - Every line of a head ends with CRLF.
//! - A head has at most one `content-length` or `transfer-encoding`, together; the latter says
//!   `chunked` and nothing else.
//! - HTTP/2 is not spoken here: its first line is refused with an answer, not only a closed
//!   connection, as the library would do.
//! - Where the next head begins is known from the length of the body, or from following its chunks
//!   (`chunk_scan.rs`). So every head of a connection is looked at, whatever came before it.
//!
//! Left to others: everything else that makes a head bad, which the library refuses by itself.

use memchr::memchr;

use super::chunk_scan::{ChunkScan, Malformed};

/// How much of a line that arrives in parts is kept: the headers that matter are shorter.
const LINE_KEPT: usize = 128;

/// What a client that speaks HTTP/2 says first.
const PREFACE: &[u8] = b"PRI * HTTP/2.0";

/// Where in the conversation the next byte stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    /// Before the first line of a head.
    Between,
    Head,
    /// So many bytes of a body are to come.
    Body(u64),
    /// In what comes in chunks.
    Chunks(ChunkScan),
}

/// What the bytes that came are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Sound,
    /// Two readers could disagree about the head: the line feed where that shows.
    BadHead(usize),
    /// Two readers could disagree about the chunks of the body.
    BadChunks,
}

/// One connection's bytes, as far as they have come.
#[derive(Debug)]
pub(super) struct HeadScan {
    position: Position,
    /// The start of a line whose end has not come.
    line: Vec<u8>,
    /// The last byte of that line.
    last: u8,
    length: Option<u64>,
    is_chunked: bool,
}

impl HeadScan {
    pub(super) fn new() -> Self {
        let (position, line) = (Position::Between, Vec::new());
        Self { position, line, last: 0, length: None, is_chunked: false }
    }

    /// Whether a head has begun and not ended.
    pub(super) fn is_in_head(&self) -> bool {
        self.position == Position::Head
    }

    /// Whether a head has come whose body has not ended.
    pub(super) fn is_in_body(&self) -> bool {
        matches!(self.position, Position::Body(_) | Position::Chunks(_))
    }

    /// Whether no part of a request is under way.
    pub(super) fn is_between(&self) -> bool {
        self.position == Position::Between
    }

    /// Takes the next bytes.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Verdict {
        let mut at = 0;
        while at < bytes.len() {
            match &mut self.position {
                Position::Chunks(chunks) => match chunks.feed(&bytes[at..]) {
                    Ok(None) => return Verdict::Sound,
                    Ok(Some(taken)) => {
                        at += taken;
                        self.position = Position::Between;
                    }
                    Err(Malformed) => return Verdict::BadChunks,
                },
                Position::Body(left) => {
                    let skipped = (*left).min((bytes.len() - at) as u64);
                    at += skipped as usize;
                    let left = *left - skipped;
                    self.position =
                        if left == 0 { Position::Between } else { Position::Body(left) };
                }
                Position::Between | Position::Head => {
                    let rest = &bytes[at..];
                    let Some(end) = memchr(b'\n', rest) else {
                        self.keep(rest);
                        return Verdict::Sound;
                    };
                    if !self.take_line(&rest[..end]) {
                        return Verdict::BadHead(at + end);
                    }
                    at += end + 1;
                }
            }
        }
        Verdict::Sound
    }

    /// A part of a line whose end has not come.
    fn keep(&mut self, part: &[u8]) {
        self.position = Position::Head;
        self.last = part.last().copied().unwrap_or(self.last);
        let room = LINE_KEPT.saturating_sub(self.line.len());
        self.line.extend_from_slice(&part[..part.len().min(room)]);
    }

    /// A line's last part, without its line feed; false if it is not sound.
    fn take_line(&mut self, part: &[u8]) -> bool {
        if self.line.is_empty() {
            return match part.strip_suffix(b"\r") {
                Some(line) => self.judge(line),
                None => false,
            };
        }
        self.keep(part);
        let line = std::mem::take(&mut self.line);
        self.last == b'\r' && self.judge(line.strip_suffix(b"\r").unwrap_or(&line))
    }

    fn judge(&mut self, line: &[u8]) -> bool {
        if line.is_empty() {
            // Empty lines before a request are to be ignored (RFC 9112, 2.2).
            if self.position == Position::Head {
                self.end_head();
            }
            return true;
        }
        self.position = Position::Head;
        // No header is written like this, so which line of the head it is does not matter.
        if line == PREFACE {
            return false;
        }
        let is_framed = self.length.is_some() || self.is_chunked;
        if let Some(coding) = value_of(line, b"transfer-encoding:") {
            self.is_chunked = true;
            return !is_framed && coding.trim_ascii().eq_ignore_ascii_case(b"chunked");
        }
        let Some(value) = value_of(line, b"content-length:") else { return true };
        let value = value.trim_ascii();
        let number = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
        self.length = number.filter(|_| value.iter().all(u8::is_ascii_digit));
        self.length.is_some() && !is_framed
    }

    fn end_head(&mut self) {
        let length = self.length.take().filter(|length| *length > 0);
        self.position = match length {
            _ if std::mem::take(&mut self.is_chunked) => Position::Chunks(ChunkScan::new()),
            Some(length) => Position::Body(length),
            None => Position::Between,
        };
    }
}

/// What follows a header's name, which is in lower case here.
fn value_of<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (start, value) = line.split_at_checked(name.len())?;
    start.eq_ignore_ascii_case(name).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the bytes are sound, whole and cut in two at every position.
    fn is_sound(text: &str) -> bool {
        let bytes = text.as_bytes();
        let is_sound = HeadScan::new().feed(bytes) == Verdict::Sound;
        for cut in 0..bytes.len() {
            let mut scan = HeadScan::new();
            let halves = scan.feed(&bytes[..cut]) == Verdict::Sound
                && scan.feed(&bytes[cut..]) == Verdict::Sound;
            assert_eq!(halves, is_sound, "{text:?} cut at {cut}");
        }
        is_sound
    }

    #[test]
    fn one_framing_per_head_is_sound() {
        assert!(is_sound("GET / HTTP/1.1\r\nhost: x\r\n\r\n"));
        assert!(is_sound("\r\n\r\nGET / HTTP/1.1\r\n\r\n"));
        assert!(is_sound("POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\na\nbGET / HTTP/1.1\r\n\r\n"));
        assert!(is_sound("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\na\n\r\n"));
    }

    #[test]
    fn s20_bare_line_feeds_and_two_framings_are_not() {
        for text in [
            "GET / HTTP/1.1\nhost: x\r\n\r\n",
            "GET / HTTP/1.1\r\nhost: x\n\r\n",
            "GET / HTTP/1.1\r\nhost: x\r\n\n",
            "POST / HTTP/1.1\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\nCONTENT-LENGTH: 1\r\n\r\n",
            "POST / HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 1\r\n\r\n",
            "POST / HTTP/1.1\r\ncontent-length: +1\r\n\r\n",
            "POST / HTTP/1.1\r\ncontent-length: 1, 1\r\n\r\n",
            "POST / HTTP/1.1\r\ntransfer-encoding: gzip, chunked\r\n\r\n",
            "POST / HTTP/1.1\r\ntransfer-encoding: identity\r\n\r\n",
        ] {
            assert!(!is_sound(text), "{text:?}");
        }
    }

    #[test]
    fn s20_the_head_after_a_body_is_looked_at_too() {
        assert!(!is_sound("POST / HTTP/1.1\r\ncontent-length: 3\r\n\r\na\nbGET / HTTP/1.1\n\r\n"));
        let chunked = "GET / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n";
        assert!(is_sound(&format!("{chunked}GET / HTTP/1.1\r\n\r\n")));
        assert!(!is_sound(&format!("{chunked}GET / HTTP/1.1\n\r\n")));
    }
}
