//! Reading the head of an answer.
//!
//! Rules kept here:
//! - A head has at most [`HEAD_MAX`] bytes and [`HEADERS_MAX`] headers.
//! - It is parsed once, when its last line has come: a head that drips in byte by byte costs no
//!   more than one that comes whole.
//! - Strict where laxity has been abused: no white space around a header's name, no folded lines,
//!   no bare carriage returns (`httparse` refuses them).
//! - Header values are slices of what was read; none is copied.

use std::mem::MaybeUninit;

use bytes::BytesMut;
use http::{HeaderName, Response, StatusCode, Version, header};

use super::UpstreamError;
use crate::fields::{HEADERS_MAX, has_word, shared_value};

/// As much as the gateway takes of a client.
pub(super) const HEAD_MAX: usize = 64 * 1024;

/// A head, and what it says of the connection.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) response: Response<()>,
    /// Whether the connection stays open after the answer.
    pub(super) is_keep_alive: bool,
    /// Whether it says how the body is encoded for the way.
    pub(super) has_coding: bool,
}

impl Head {
    pub(super) fn is_upgrade(&self) -> bool {
        self.response.status() == StatusCode::SWITCHING_PROTOCOLS
    }
}

/// Takes a head off the buffer, once all of it is there.
pub(super) fn parse(buffer: &mut BytesMut) -> Result<Option<Head>, UpstreamError> {
    let Some(len) = end_of_head(buffer) else {
        return if buffer.len() > HEAD_MAX { Err(TOO_LONG) } else { Ok(None) };
    };
    if len > HEAD_MAX {
        return Err(TOO_LONG);
    }
    let text = buffer.split_to(len).freeze();
    // Room for so many headers is only filled as far as there are any.
    let mut lines = [const { MaybeUninit::uninit() }; HEADERS_MAX];
    let mut read = httparse::Response::new(&mut []);
    let parser = httparse::ParserConfig::default();
    let parsed = parser.parse_response_with_uninit_headers(&mut read, &text, &mut lines);
    let parsed = parsed.map_err(|error| UpstreamError::Malformed(reason(error)))?;
    if !parsed.is_complete() {
        return Err(UpstreamError::Malformed("the head has no end"));
    }
    let mut response = Response::new(());
    let code = read.code.unwrap_or_default();
    *response.status_mut() = StatusCode::from_u16(code).map_err(|_| BAD_STATUS)?;
    let version = if read.version == Some(0) { Version::HTTP_10 } else { Version::HTTP_11 };
    *response.version_mut() = version;
    let headers = response.headers_mut();
    headers.reserve(read.headers.len());
    let (mut says_close, mut says_keep, mut has_coding) = (false, false, false);
    for line in read.headers.iter() {
        let name = HeaderName::from_bytes(line.name.as_bytes()).map_err(|_| BAD_HEADER)?;
        if name == header::CONNECTION {
            says_close |= has_word(line.value, "close");
            says_keep |= has_word(line.value, "keep-alive");
        }
        has_coding |= name == header::TRANSFER_ENCODING;
        headers.append(name, shared_value(&text, line.value).ok_or(BAD_HEADER)?);
    }
    let is_keep_alive = !says_close && (says_keep || version == Version::HTTP_11);
    Ok(Some(Head { response, is_keep_alive, has_coding }))
}

const TOO_LONG: UpstreamError = UpstreamError::Malformed("the head is too long");
const BAD_STATUS: UpstreamError = UpstreamError::Malformed("the status is no status");
const BAD_HEADER: UpstreamError = UpstreamError::Malformed("a header is no header");

fn reason(error: httparse::Error) -> &'static str {
    match error {
        httparse::Error::TooManyHeaders => "there are too many headers",
        httparse::Error::Status => "the status is no status",
        httparse::Error::Version => "the version is not HTTP/1.0 or HTTP/1.1",
        _ => "the head is not HTTP",
    }
}

/// Where the head ends: behind its first empty line, whether or not the lines end with a carriage
/// return. Empty lines before the status line do not count, as in RFC 9112 (2.2).
fn end_of_head(bytes: &[u8]) -> Option<usize> {
    let start = bytes.iter().position(|byte| !matches!(byte, b'\r' | b'\n'))?;
    let searched = &bytes[start..bytes.len().min(HEAD_MAX + 1)];
    memchr::memchr_iter(b'\n', searched).find_map(|at| match &searched[at + 1..] {
        [b'\n', ..] => Some(start + at + 2),
        [b'\r', b'\n', ..] => Some(start + at + 3),
        _ => None,
    })
}
