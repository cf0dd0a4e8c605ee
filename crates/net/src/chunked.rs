//! A body in chunks, and its bytes without the framing around them (RFC 9112, 7.1).
//!
//! Rules kept here:
//! - Chunks that are ready come out as one piece: their bytes are moved together in the buffer.
//! - A chunk's size has at most 15 digits, all extensions together at most [`EXTENSION_MAX`] bytes,
//!   the trailer at most [`TRAILER_MAX`]; extensions and trailers are not handed on.
//! - A line feed without its carriage return is refused: it is how requests are smuggled.

use bytes::{Buf, Bytes, BytesMut};

/// Bytes of all chunk extensions of a body: nobody uses them, and they cost the reader.
const EXTENSION_MAX: usize = 16 * 1024;
/// Bytes of a trailer.
const TRAILER_MAX: usize = 16 * 1024;

/// What is taken of a size line besides its digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strictness {
    /// As clients' requests are read: no blanks, and only printable characters in an extension,
    /// because a proxy in front of the gateway may read anything else differently (S20).
    Strict,
    /// As answers of upstreams are read: blanks may follow the size, which some servers write.
    Lenient,
}

/// The chunks are not what the standard asks for: how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkFault(pub(crate) &'static str);

/// Within a chunked body.
#[derive(Debug)]
pub(crate) struct Chunked {
    part: Part,
    /// Bytes of extensions so far.
    extension: usize,
    strictness: Strictness,
}

/// Which part of a chunk comes next.
#[derive(Debug)]
enum Part {
    /// A size, of which so many digits have come.
    Size {
        size: u64,
        digits: u8,
    },
    /// White space after the size.
    Space {
        size: u64,
    },
    /// What follows the semicolon after the size, up to the carriage return.
    Extension {
        size: u64,
    },
    /// The line feed after the size.
    SizeEnd {
        size: u64,
    },
    Data {
        left: u64,
    },
    /// The carriage return, then the line feed, after the data.
    DataEnd,
    DataEndLf,
    /// The trailer, of which so many bytes have come: the beginning of a line, the name of a
    /// field, its value, the line feed after it, and the one that ends the body.
    TrailerLine {
        read: usize,
    },
    TrailerName {
        read: usize,
    },
    TrailerValue {
        read: usize,
    },
    TrailerLf {
        read: usize,
    },
    LastLf,
}

/// What was ready of a body.
#[derive(Debug)]
pub(crate) struct Merged {
    /// The data of all chunks that were there; empty if there was none.
    pub(crate) data: Bytes,
    /// Whether the body has ended.
    pub(crate) is_over: bool,
}

impl Chunked {
    pub(crate) fn new(strictness: Strictness) -> Self {
        Self { part: Part::Size { size: 0, digits: 0 }, extension: 0, strictness }
    }

    /// Takes everything off the buffer up to its end or that of the body. The data of all chunks is
    /// moved to the front and taken as one piece.
    pub(crate) fn merge(&mut self, buffer: &mut BytesMut) -> Result<Merged, ChunkFault> {
        let mut merged = 0;
        let mut at = 0;
        let mut is_over = false;
        while at < buffer.len() && !is_over {
            if let Part::Data { left } = &mut self.part {
                let ready = buffer.len() - at;
                let count = usize::try_from(*left).unwrap_or(usize::MAX).min(ready);
                buffer.copy_within(at..at + count, merged);
                merged += count;
                at += count;
                *left -= count as u64;
                if *left == 0 {
                    self.part = Part::DataEnd;
                }
            } else {
                is_over = self.step(buffer[at])?;
                at += 1;
            }
        }
        // What is left behind the data and before the rest is framing.
        let data = buffer.split_to(merged).freeze();
        buffer.advance(at - merged);
        Ok(Merged { data, is_over })
    }

    /// One byte of framing; whether it was the last one of the body.
    fn step(&mut self, byte: u8) -> Result<bool, ChunkFault> {
        self.part = match self.part {
            Part::Size { size, digits } => match (byte, char::from(byte).to_digit(16)) {
                (_, Some(digit)) if digits < 15 => {
                    Part::Size { size: size * 16 + u64::from(digit), digits: digits + 1 }
                }
                (b'\r', _) if digits > 0 => Part::SizeEnd { size },
                (b';', _) if digits > 0 => Part::Extension { size },
                (b' ' | b'\t', _) if digits > 0 && self.strictness == Strictness::Lenient => {
                    Part::Space { size }
                }
                _ => return Err(BAD_SIZE),
            },
            Part::Space { size } => match byte {
                b' ' | b'\t' => {
                    self.extension += 1;
                    if self.extension > EXTENSION_MAX {
                        return Err(BAD_SIZE);
                    }
                    Part::Space { size }
                }
                b';' => Part::Extension { size },
                b'\r' => Part::SizeEnd { size },
                _ => return Err(BAD_SIZE),
            },
            Part::Extension { size } => match byte {
                b'\r' => Part::SizeEnd { size },
                b'\n' => return Err(ChunkFault("a chunk extension ends early")),
                other if self.strictness == Strictness::Strict && !is_printable(other) => {
                    return Err(ChunkFault("a chunk extension is no text"));
                }
                _ => {
                    self.extension += 1;
                    if self.extension > EXTENSION_MAX {
                        return Err(ChunkFault("chunk extensions are too long"));
                    }
                    Part::Extension { size }
                }
            },
            Part::SizeEnd { size } => match (byte, size) {
                (b'\n', 0) => Part::TrailerLine { read: 0 },
                (b'\n', left) => Part::Data { left },
                _ => return Err(BAD_LINE),
            },
            // Data is taken in `merge`, many bytes at a time.
            Part::Data { left } => Part::Data { left },
            Part::DataEnd if byte == b'\r' => Part::DataEndLf,
            Part::DataEndLf if byte == b'\n' => Part::Size { size: 0, digits: 0 },
            Part::DataEnd | Part::DataEndLf => {
                return Err(ChunkFault("a chunk is longer than announced"));
            }
            Part::LastLf if byte == b'\n' => return Ok(true),
            Part::LastLf => return Err(BAD_LINE),
            Part::TrailerLine { read }
            | Part::TrailerName { read }
            | Part::TrailerValue { read }
            | Part::TrailerLf { read }
                if read > TRAILER_MAX =>
            {
                return Err(ChunkFault("the trailer is too long"));
            }
            Part::TrailerLine { .. } if byte == b'\r' => Part::LastLf,
            Part::TrailerLine { read } if is_token(byte) => Part::TrailerName { read: read + 1 },
            Part::TrailerName { read } if is_token(byte) => Part::TrailerName { read: read + 1 },
            Part::TrailerName { read } if byte == b':' => Part::TrailerValue { read: read + 1 },
            Part::TrailerValue { read } if byte == b'\r' => Part::TrailerLf { read: read + 1 },
            Part::TrailerValue { read } if byte == b'\t' || byte >= b' ' && byte != 0x7f => {
                Part::TrailerValue { read: read + 1 }
            }
            Part::TrailerLf { read } if byte == b'\n' => Part::TrailerLine { read: read + 1 },
            Part::TrailerLine { .. }
            | Part::TrailerName { .. }
            | Part::TrailerValue { .. }
            | Part::TrailerLf { .. } => {
                return Err(ChunkFault("the trailer is not HTTP"));
            }
        };
        Ok(false)
    }
}

const BAD_LINE: ChunkFault = ChunkFault("a line of the framing ends badly");
const BAD_SIZE: ChunkFault = ChunkFault("the size of a chunk is no number");
fn is_printable(byte: u8) -> bool {
    matches!(byte, b'\t' | b' '..=b'~')
}

/// Whether a byte may stand in the name of a field (RFC 9110, 5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a reader makes of the bytes, whole and cut in two at every place: the data, and what
    /// is left behind the body if it ended.
    fn read(text: &str, strictness: Strictness) -> Result<(Vec<u8>, Option<Vec<u8>>), ChunkFault> {
        let parts = |parts: &[&[u8]]| {
            let (mut chunked, mut buffer) = (Chunked::new(strictness), BytesMut::new());
            let (mut data, mut has_ended) = (Vec::new(), false);
            for part in parts {
                buffer.extend_from_slice(part);
                if !has_ended {
                    let merged = chunked.merge(&mut buffer)?;
                    data.extend_from_slice(&merged.data);
                    has_ended = merged.is_over;
                }
            }
            Ok((data, has_ended.then(|| buffer.to_vec())))
        };
        let bytes = text.as_bytes();
        let whole = parts(&[bytes]);
        for cut in 0..bytes.len() {
            let (first, second) = bytes.split_at(cut);
            assert_eq!(parts(&[first, second]), whole, "{text:?} cut at {cut}");
        }
        whole
    }

    #[test]
    fn the_end_of_a_body_is_found_whatever_follows() {
        let read = |text| read(text, Strictness::Strict);
        let ended = |data: &str, rest: &str| Ok((data.into(), Some(rest.into())));
        assert_eq!(read("0\r\n\r\nGET / HTTP/1.1\r\n"), ended("", "GET / HTTP/1.1\r\n"));
        assert_eq!(read("3\r\na\nb\r\n0\r\n\r\nrest"), ended("a\nb", "rest"));
        let long = "a;x=\"y\"\r\n0123456789\r\n00\r\nt: v\r\n\r\n";
        assert_eq!(read(long), ended("0123456789", ""));
        assert_eq!(read("ff\r\nabc"), Ok((b"abc".to_vec(), None)));
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
            "0\r\nno field\r\n\r\n",
        ] {
            assert!(read(text, Strictness::Strict).is_err(), "{text:?}");
        }
    }

    #[test]
    fn blanks_after_a_size_are_taken_of_upstreams_only() {
        for text in ["3 \r\nabc\r\n0\r\n\r\n", "3\t ;x\r\nabc\r\n0 \r\n\r\n"] {
            let whole = Ok((b"abc".to_vec(), Some(Vec::new())));
            assert_eq!(read(text, Strictness::Lenient), whole, "{text:?}");
            assert!(read(text, Strictness::Strict).is_err(), "{text:?}");
        }
    }
}
