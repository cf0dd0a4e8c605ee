//! Where the body of an answer ends, and its bytes without the framing around them.
//!
//! Rules kept here (RFC 9112, section 6):
//! - No body: an answer to HEAD, 101, 204 and 304, whatever their headers say.
//! - `transfer-encoding: chunked` outranks a length; with both the connection is not used again
//!   (`Head` and `Framing` agree on that in [`Framing::is_delimited`]). Another encoding as the
//!   last one, or neither header: the body ends with the connection. HTTP/1.0 knows no encodings.
//! - Several lengths must agree. A length is digits and nothing else.
//! - Chunks that are ready come out as one piece: their bytes are moved together in the buffer.
//! - A chunk's size has at most 15 digits, its extension at most [`EXTENSION_MAX`] bytes in all,
//!   the trailer at most [`TRAILER_MAX`]; extensions and trailers are not handed on. A line feed
//!   without its carriage return is refused: it is how requests are smuggled.

use bytes::{Buf, Bytes, BytesMut};
use http::{HeaderMap, StatusCode, Version, header};

use super::UpstreamError;
use super::head::Head;

/// Bytes of all chunk extensions of a body: nobody uses them, and they cost the reader.
const EXTENSION_MAX: usize = 16 * 1024;
/// Bytes of a trailer.
const TRAILER_MAX: usize = 16 * 1024;

/// How far the body of an answer has been read.
#[derive(Debug)]
pub(super) enum Framing {
    /// Nothing more comes.
    Ended,
    /// So many bytes are still to come.
    Length(u64),
    Chunked(Chunked),
    /// Until the connection ends.
    ToEnd,
}

/// Within a chunked body.
#[derive(Debug)]
pub(super) struct Chunked {
    part: Part,
    /// Bytes of extensions so far.
    extension: usize,
    /// Whether a length was announced as well.
    is_ambiguous: bool,
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

/// What can be taken from the buffer now.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    Data(Bytes),
    /// More has to be read.
    More,
    Ended,
}

impl Framing {
    pub(super) const fn ended() -> Self {
        Self::Ended
    }

    /// How the body that follows a head is framed.
    pub(super) fn of(head: &Head, is_head_request: bool) -> Result<Self, UpstreamError> {
        let response = &head.response;
        let status = response.status();
        let has_none = matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        if is_head_request || has_none || head.is_upgrade() {
            return Ok(Self::Ended);
        }
        let headers = response.headers();
        let length = announced(headers)?;
        if headers.contains_key(header::TRANSFER_ENCODING) {
            if response.version() == Version::HTTP_10 {
                return Err(UpstreamError::Malformed("an encoding that HTTP/1.0 does not know"));
            }
            let is_ambiguous = length.is_some();
            let part = Part::Size { size: 0, digits: 0 };
            let chunked = Chunked { part, extension: 0, is_ambiguous };
            return Ok(if is_chunked(headers)? { Self::Chunked(chunked) } else { Self::ToEnd });
        }
        Ok(match length {
            Some(0) => Self::Ended,
            Some(length) => Self::Length(length),
            None => Self::ToEnd,
        })
    }

    pub(super) fn has_ended(&self) -> bool {
        matches!(self, Self::Ended)
    }

    /// Whether the end of the body is certain without the end of the connection.
    pub(super) fn is_delimited(&self) -> bool {
        match self {
            Self::Ended | Self::Length(_) => true,
            Self::Chunked(chunked) => !chunked.is_ambiguous,
            Self::ToEnd => false,
        }
    }

    pub(super) fn exact_len(&self) -> Option<u64> {
        match self {
            Self::Ended => Some(0),
            Self::Length(left) => Some(*left),
            Self::Chunked(_) | Self::ToEnd => None,
        }
    }

    /// The connection has ended; whether that is the end of the body.
    pub(super) fn end_of_connection(&mut self) -> bool {
        let is_end = matches!(self, Self::Ended | Self::ToEnd);
        *self = Self::Ended;
        is_end
    }

    /// Takes what is ready off the buffer.
    pub(super) fn decode(&mut self, buffer: &mut BytesMut) -> Result<Step, UpstreamError> {
        match self {
            Self::Ended => Ok(Step::Ended),
            _ if buffer.is_empty() => Ok(Step::More),
            Self::ToEnd => Ok(Step::Data(buffer.split().freeze())),
            Self::Length(left) => {
                let count = usize::try_from(*left).unwrap_or(usize::MAX).min(buffer.len());
                *left -= count as u64;
                if *left == 0 {
                    *self = Self::Ended;
                }
                Ok(Step::Data(buffer.split_to(count).freeze()))
            }
            Self::Chunked(chunked) => {
                let (merged, is_over) = chunked.merge(buffer)?;
                if is_over {
                    *self = Self::Ended;
                }
                Ok(match (merged, is_over) {
                    (Some(data), _) => Step::Data(data),
                    (None, true) => Step::Ended,
                    (None, false) => Step::More,
                })
            }
        }
    }
}

impl Chunked {
    /// Takes everything off the buffer up to its end or that of the body. The data of all chunks is
    /// moved to the front and taken as one piece.
    fn merge(&mut self, buffer: &mut BytesMut) -> Result<(Option<Bytes>, bool), UpstreamError> {
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
        Ok(((merged > 0).then_some(data), is_over))
    }

    /// One byte of framing; whether it was the last one of the body.
    fn step(&mut self, byte: u8) -> Result<bool, UpstreamError> {
        self.part = match self.part {
            Part::Size { size, digits } => match (byte, char::from(byte).to_digit(16)) {
                (_, Some(digit)) if digits < 15 => {
                    Part::Size { size: size * 16 + u64::from(digit), digits: digits + 1 }
                }
                (b'\r', _) if digits > 0 => Part::SizeEnd { size },
                (b';', _) if digits > 0 => Part::Extension { size },
                (b' ' | b'\t', _) if digits > 0 => Part::Space { size },
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
                b'\n' => return Err(UpstreamError::Malformed("a chunk extension ends early")),
                _ => {
                    self.extension += 1;
                    if self.extension > EXTENSION_MAX {
                        return Err(UpstreamError::Malformed("chunk extensions are too long"));
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
                return Err(UpstreamError::Malformed("a chunk is longer than announced"));
            }
            Part::LastLf if byte == b'\n' => return Ok(true),
            Part::LastLf => return Err(BAD_LINE),
            Part::TrailerLine { read }
            | Part::TrailerName { read }
            | Part::TrailerValue { read }
            | Part::TrailerLf { read }
                if read > TRAILER_MAX =>
            {
                return Err(UpstreamError::Malformed("the trailer is too long"));
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
                return Err(UpstreamError::Malformed("the trailer is not HTTP"));
            }
        };
        Ok(false)
    }
}

const BAD_LINE: UpstreamError = UpstreamError::Malformed("a line of the framing ends badly");
const BAD_SIZE: UpstreamError = UpstreamError::Malformed("the size of a chunk is no number");
const BAD_LENGTH: UpstreamError = UpstreamError::Malformed("the length is no number");

/// The announced length, which all its headers agree on.
fn announced(headers: &HeaderMap) -> Result<Option<u64>, UpstreamError> {
    let mut length = None;
    for value in headers.get_all(header::CONTENT_LENGTH) {
        for text in value.as_bytes().split(|byte| *byte == b',') {
            let text = text.trim_ascii();
            let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
            let text = std::str::from_utf8(text).ok().filter(|_| is_number).ok_or(BAD_LENGTH)?;
            let next: u64 = text.parse().map_err(|_| BAD_LENGTH)?;
            if length.is_some_and(|it| it != next) {
                return Err(UpstreamError::Malformed("the lengths do not agree"));
            }
            length = Some(next);
        }
    }
    Ok(length)
}

/// Whether a byte may stand in the name of a field (RFC 9110, 5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Whether the last encoding is `chunked`. An encoding that is no word is refused: others may read
/// it differently.
fn is_chunked(headers: &HeaderMap) -> Result<bool, UpstreamError> {
    let mut last = "";
    for value in headers.get_all(header::TRANSFER_ENCODING) {
        let text = value.to_str();
        last = text.map_err(|_| UpstreamError::Malformed("the encoding is no word"))?;
    }
    let last = last.rsplit(',').next().unwrap_or_default();
    Ok(last.trim_ascii().eq_ignore_ascii_case("chunked"))
}
