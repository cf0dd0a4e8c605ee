//! Follows a body that comes in chunks to its end, so that the next request head is found (S20).
//!
//! Rules kept here:
//! - A chunk begins with one to sixteen hexadecimal digits and a CRLF; an extension may stand
//!   between them (RFC 9112, 7.1). Blanks, signs and bare line feeds are refused, because readers
//!   disagree about them.
//! - Trailers are lines that end with CRLF; the HTTP library bounds them.

use std::ops::ControlFlow;

/// More digits than a length has.
const DIGITS_MAX: u8 = 16;
/// Nobody needs extensions; somebody who sends more than this is up to something.
const EXTENSION_MAX: u16 = 1024;

/// Two readers could disagree about what these chunks hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Size,
    Extension,
    SizeEnd,
    Data(u64),
    DataCr,
    DataLf,
    TrailerStart,
    Trailer,
    TrailerEnd,
    End,
}

/// How far a body has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChunkScan {
    state: State,
    size: u64,
    digits: u8,
    extension: u16,
}

impl ChunkScan {
    pub(super) fn new() -> Self {
        Self { state: State::Size, size: 0, digits: 0, extension: 0 }
    }

    /// Takes the next bytes. If the body ends among them: how many belong to it.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Result<Option<usize>, Malformed> {
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            if let State::Data(left) = self.state {
                let skipped = left.min((bytes.len() - at) as u64);
                at += skipped as usize;
                let left = left - skipped;
                self.state = if left == 0 { State::DataCr } else { State::Data(left) };
                continue;
            }
            at += 1;
            if self.step(*byte)?.is_break() {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    /// Takes a byte that is not data; breaks at the last one of the body.
    fn step(&mut self, byte: u8) -> Result<ControlFlow<()>, Malformed> {
        self.state = match (self.state, byte) {
            (State::Size, b'\r') if self.digits > 0 => State::SizeEnd,
            (State::Size, b';') if self.digits > 0 => State::Extension,
            (State::Size, digit) if self.digits < DIGITS_MAX => {
                let value = char::from(digit).to_digit(16).ok_or(Malformed)?;
                (self.size, self.digits) = (self.size << 4 | u64::from(value), self.digits + 1);
                State::Size
            }
            (State::Extension, b'\r') => State::SizeEnd,
            (State::Extension, b'\t' | b' '..=b'~') if self.extension < EXTENSION_MAX => {
                self.extension += 1;
                State::Extension
            }
            (State::SizeEnd, b'\n') if self.size == 0 => State::TrailerStart,
            (State::SizeEnd, b'\n') => State::Data(self.size),
            (State::DataCr, b'\r') => State::DataLf,
            (State::DataLf, b'\n') => {
                *self = Self::new();
                State::Size
            }
            (State::TrailerStart, b'\r') => State::End,
            (State::TrailerStart | State::Trailer, b'\n') => return Err(Malformed),
            (State::Trailer, b'\r') => State::TrailerEnd,
            (State::TrailerStart | State::Trailer, _) => State::Trailer,
            (State::TrailerEnd, b'\n') => State::TrailerStart,
            (State::End, b'\n') => return Ok(ControlFlow::Break(())),
            _ => return Err(Malformed),
        };
        Ok(ControlFlow::Continue(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the bytes come to, whole and cut in two at every place.
    fn scanned(text: &str) -> Result<Option<usize>, Malformed> {
        let bytes = text.as_bytes();
        let whole = ChunkScan::new().feed(bytes);
        for cut in 0..bytes.len() {
            let mut scan = ChunkScan::new();
            let halves = match scan.feed(&bytes[..cut]) {
                Ok(None) => scan.feed(&bytes[cut..]).map(|end| end.map(|end| cut + end)),
                ended => ended,
            };
            assert_eq!(halves, whole, "{text:?} cut at {cut}");
        }
        whole
    }

    #[test]
    fn the_end_of_a_body_is_found_whatever_follows() {
        assert_eq!(scanned("0\r\n\r\nGET / HTTP/1.1\r\n"), Ok(Some(5)));
        assert_eq!(scanned("3\r\na\nb\r\n0\r\n\r\nrest"), Ok(Some(13)));
        assert_eq!(scanned("a;x=\"y\"\r\n0123456789\r\n00\r\nt: v\r\n\r\n"), Ok(Some(33)));
        assert_eq!(scanned("ff\r\nabc"), Ok(None));
    }

    #[test]
    fn s20_chunks_that_readers_disagree_about_are_refused() {
        for text in [
            "\r\n",
            "0\n\n",
            "3\nabc\r\n",
            " 3\r\nabc\r\n",
            "3 \r\nabc\r\n",
            "+3\r\nabc\r\n",
            "0x3\r\nabc\r\n",
            ";x\r\n",
            "3;x\nabc\r\n",
            "3;\0\r\nabc\r\n",
            "3\r\nabcd\r\n",
            "3\r\nabc\n0\r\n\r\n",
            "00000000000000003\r\nabc\r\n",
            "0\r\nt: v\n\r\n",
            "0\r\nt: v\r\n\n",
        ] {
            assert_eq!(scanned(text), Err(Malformed), "{text:?}");
        }
    }
}
