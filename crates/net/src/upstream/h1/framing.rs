//! Where the body of an answer ends, and its bytes without the framing around them.
//!
//! Rules kept here (RFC 9112, section 6):
//! - No body: an answer to HEAD, 101, 204 and 304, whatever their headers say.
//! - `transfer-encoding: chunked` outranks a length; with both the connection is not used again
//!   (`Head` and `Framing` agree on that in [`Framing::is_delimited`]). Another encoding as the
//!   last one, or neither header: the body ends with the connection. HTTP/1.0 knows no encodings.
//! - Several lengths must agree. A length is digits and nothing else.
//!
//! Left to others: how chunks are read (`crate::chunked`).

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode, Version, header};

use super::UpstreamError;
use super::head::Head;
use crate::chunked::{Chunked, Merged, Strictness};
use crate::fields;

/// How far the body of an answer has been read.
#[derive(Debug)]
pub(super) enum Framing {
    /// Nothing more comes.
    Ended,
    /// So many bytes are still to come.
    Length(u64),
    Chunked {
        chunked: Chunked,
        /// Whether a length was announced as well.
        is_ambiguous: bool,
    },
    /// Until the connection ends.
    ToEnd,
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
        if head.has_coding {
            if response.version() == Version::HTTP_10 {
                return Err(UpstreamError::Malformed("an encoding that HTTP/1.0 does not know"));
            }
            let is_ambiguous = length.is_some();
            let chunked = Chunked::new(Strictness::Lenient);
            let framing = Self::Chunked { chunked, is_ambiguous };
            return Ok(if is_chunked(headers)? { framing } else { Self::ToEnd });
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
            Self::Chunked { is_ambiguous, .. } => !is_ambiguous,
            Self::ToEnd => false,
        }
    }

    pub(super) fn exact_len(&self) -> Option<u64> {
        match self {
            Self::Ended => Some(0),
            Self::Length(left) => Some(*left),
            Self::Chunked { .. } | Self::ToEnd => None,
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
            Self::Chunked { chunked, .. } => {
                let merged = chunked.merge(buffer);
                let Merged { data, is_over } =
                    merged.map_err(|fault| UpstreamError::Malformed(fault.0))?;
                if is_over {
                    *self = Self::Ended;
                }
                Ok(match (data.is_empty(), is_over) {
                    (false, _) => Step::Data(data),
                    (true, true) => Step::Ended,
                    (true, false) => Step::More,
                })
            }
        }
    }
}

const BAD_LENGTH: UpstreamError = UpstreamError::Malformed("the length is no number");

/// The announced length, which all its headers agree on.
fn announced(headers: &HeaderMap) -> Result<Option<u64>, UpstreamError> {
    let mut length = None;
    for value in headers.get_all(header::CONTENT_LENGTH) {
        for text in value.as_bytes().split(|byte| *byte == b',') {
            let next = fields::length(text.trim_ascii()).ok_or(BAD_LENGTH)?;
            if length.is_some_and(|it| it != next) {
                return Err(UpstreamError::Malformed("the lengths do not agree"));
            }
            length = Some(next);
        }
    }
    Ok(length)
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
