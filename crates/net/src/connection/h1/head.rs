//! The head of a client's request.
//!
//! A proxy in front of the gateway may read the same bytes as the gateway does. Where the two could
//! disagree about where a request ends, one client's bytes become another's request (S20). So
//! everything that leaves room for two readings is refused here.
//!
//! Rules kept here:
//! - Every line ends with CRLF; a few empty lines before a request are skipped (RFC 9112, 2.2).
//! - At most one `content-length` or `transfer-encoding`, together; the latter says `chunked` and
//!   nothing else, and is unknown to HTTP/1.0.
//! - One `host` at most, and one at least since HTTP/1.1 (RFC 9112, 3.2).
//! - A target is a path or a whole address. It has no fragment, which one reader would cut off
//!   before it looks at the path and another one after, and is no authority: nothing is tunnelled.
//! - HTTP/2 is not spoken here: what its clients say first is refused with an answer.
//! - A head is looked at once, however slowly it comes: the search for its end goes on where it
//!   stopped. What is refused does not depend on how the bytes came.
//! - Header values are slices of what was read; none is copied.
//!
//! Left to others: whether the host is one that is served (`guard.rs` of the gateway).

use std::mem::MaybeUninit;

use bytes::{Buf, Bytes, BytesMut};
use http::{HeaderName, Method, Request, StatusCode, Uri, Version, header};
use memchr::memchr;

use super::framing::RequestFraming;
use crate::fields::{self, HEADERS_MAX, has_word};

/// Empty lines before a request: one is customary after a body that a careless client ended twice,
/// and a client that sends nothing else would never have to say anything.
const EMPTY_LINES_MAX: u8 = 8;
/// The longest target that the type of addresses holds.
const TARGET_MAX: usize = u16::MAX as usize - 1;

/// A head that is no request, as the status that it is answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HeadFault(pub(super) StatusCode);

const MALFORMED: HeadFault = HeadFault(StatusCode::BAD_REQUEST);
const TOO_LARGE: HeadFault = HeadFault(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);

/// A head, and what it says of its body and the connection.
#[derive(Debug)]
pub(in super::super) struct RequestHead {
    pub(super) request: Request<()>,
    pub(super) framing: RequestFraming,
    /// Whether the client wants to send another request on this connection.
    pub(super) is_keep_alive: bool,
    /// Whether the client waits for a word before it sends the body.
    pub(super) expects_continue: bool,
}

/// How far the search for the end of a head has come.
#[derive(Debug, Default)]
pub(super) struct HeadSearch {
    /// Where the line begins whose end is looked for.
    line: usize,
    /// Up to where the bytes have been looked at.
    seen: usize,
    /// Empty lines before the head.
    skipped: u8,
}

impl HeadSearch {
    /// Takes a head off the buffer once all of it is there. It has at most `limit` bytes.
    pub(super) fn take(
        &mut self,
        buffer: &mut BytesMut,
        limit: usize,
    ) -> Result<Option<RequestHead>, HeadFault> {
        let Some(end) = self.end(buffer, limit)? else { return Ok(None) };
        *self = Self::default();
        parse(&buffer.split_to(end).freeze()).map(Some)
    }

    /// Where the head ends, behind its first empty line.
    fn end(&mut self, buffer: &mut BytesMut, limit: usize) -> Result<Option<usize>, HeadFault> {
        // Nothing behind the limit is looked at, so that it does not matter whether it has come.
        while let Some(at) = memchr(b'\n', &buffer[self.seen..buffer.len().min(limit)]) {
            let feed = self.seen + at;
            let line = &buffer[self.line..feed];
            if line.last() != Some(&b'\r') {
                return Err(MALFORMED);
            }
            let (is_empty, is_first) = (line.len() == 1, self.line == 0);
            (self.line, self.seen) = (feed + 1, feed + 1);
            match (is_empty, is_first) {
                (true, false) => return Ok(Some(feed + 1)),
                (true, true) if self.skipped == EMPTY_LINES_MAX => return Err(MALFORMED),
                (true, true) => {
                    buffer.advance(feed + 1);
                    *self = Self { skipped: self.skipped + 1, ..Self::default() };
                }
                (false, _) => {}
            }
        }
        self.seen = buffer.len().min(limit);
        match buffer.first() {
            // Whoever speaks TLS or anything else here is not made to wait.
            Some(first) if !first.is_ascii_graphic() && *first != b'\r' => Err(MALFORMED),
            Some(_) if buffer.len() > limit => Err(TOO_LARGE),
            Some(_) | None => Ok(None),
        }
    }
}

/// Reads a head that is whole.
fn parse(text: &Bytes) -> Result<RequestHead, HeadFault> {
    // Room for so many headers is only filled as far as there are any.
    let mut lines = [const { MaybeUninit::uninit() }; HEADERS_MAX];
    let mut read = httparse::Request::new(&mut []);
    match read.parse_with_uninit_headers(text, &mut lines) {
        Ok(parsed) if parsed.is_complete() => {}
        Err(httparse::Error::TooManyHeaders) => return Err(TOO_LARGE),
        Ok(_) | Err(_) => return Err(MALFORMED),
    }
    let target = read.path.unwrap_or_default().as_bytes();
    if target.len() > TARGET_MAX {
        return Err(HeadFault(StatusCode::URI_TOO_LONG));
    }
    let mut request = Request::new(());
    let method = read.method.unwrap_or_default().as_bytes();
    *request.method_mut() = Method::from_bytes(method).map_err(|_| MALFORMED)?;
    if memchr(b'#', target).is_some() {
        return Err(MALFORMED);
    }
    let target = Uri::from_maybe_shared(text.slice_ref(target)).map_err(|_| MALFORMED)?;
    if target.authority().is_some() && target.scheme().is_none() {
        return Err(MALFORMED);
    }
    *request.uri_mut() = target;
    let is_old = read.version == Some(0);
    *request.version_mut() = if is_old { Version::HTTP_10 } else { Version::HTTP_11 };

    let (mut framing, mut expects_continue, mut hosts) = (None, false, 0_usize);
    let (mut says_close, mut says_keep) = (false, false);
    let headers = request.headers_mut();
    headers.reserve(read.headers.len());
    for line in read.headers.iter() {
        let name = HeaderName::from_bytes(line.name.as_bytes()).map_err(|_| MALFORMED)?;
        let value = fields::shared_value(text, line.value).ok_or(MALFORMED)?;
        if name == header::CONTENT_LENGTH {
            let length = fields::length(line.value).map(RequestFraming::of_length);
            framing = only(framing, length)?;
        } else if name == header::TRANSFER_ENCODING {
            let is_chunked = line.value.eq_ignore_ascii_case(b"chunked") && !is_old;
            framing = only(framing, is_chunked.then(RequestFraming::chunked))?;
        } else if name == header::CONNECTION {
            says_close |= has_word(line.value, "close");
            says_keep |= has_word(line.value, "keep-alive");
        } else if name == header::EXPECT {
            expects_continue = !is_old && line.value.eq_ignore_ascii_case(b"100-continue");
        } else if name == header::HOST {
            hosts += 1;
        }
        headers.append(name, value);
    }
    if hosts > 1 || hosts == 0 && !is_old {
        return Err(MALFORMED);
    }
    let framing = framing.unwrap_or(RequestFraming::Ended);
    let expects_continue = expects_continue && !framing.has_ended();
    let is_keep_alive = !says_close && (says_keep || !is_old);
    Ok(RequestHead { request, framing, is_keep_alive, expects_continue })
}

/// The framing that a header says, if it is one and the only one.
fn only(
    known: Option<RequestFraming>,
    said: Option<RequestFraming>,
) -> Result<Option<RequestFraming>, HeadFault> {
    match (known, said) {
        (None, Some(said)) => Ok(Some(said)),
        _ => Err(MALFORMED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 4096;

    /// The head at the beginning of a text, whole and in single bytes, which has to be the same.
    fn head(text: &str) -> Result<Option<RequestHead>, HeadFault> {
        let mut dripped = (BytesMut::new(), HeadSearch::default());
        let mut last = Ok(None);
        for byte in text.as_bytes() {
            dripped.0.extend_from_slice(&[*byte]);
            last = dripped.1.take(&mut dripped.0, LIMIT);
            if !matches!(last, Ok(None)) {
                break;
            }
        }
        let whole = HeadSearch::default().take(&mut BytesMut::from(text), LIMIT);
        assert_eq!(format!("{whole:?}"), format!("{last:?}"), "{text:?}");
        whole
    }

    /// The head of a request with these lines.
    fn with(line: &str, lines: &str) -> Result<RequestHead, u16> {
        let head = head(&format!("{line}\r\n{lines}\r\n")).map_err(|fault| fault.0.as_u16())?;
        Ok(head.expect("it is whole"))
    }

    const GET: &str = "GET / HTTP/1.1";
    const HOST: &str = "host: x\r\n";

    #[test]
    fn one_framing_per_head_is_sound() {
        let framing = |lines: &str| with(GET, &format!("{HOST}{lines}")).expect("sound").framing;
        assert!(framing("").has_ended());
        assert!(framing("content-length: 0\r\n").has_ended());
        assert_eq!(framing("Content-Length: 3\r\n").exact_len(), Some(3));
        let chunked = framing("Transfer-Encoding: Chunked\r\n");
        assert_eq!(chunked.exact_len(), None);
        assert!(!chunked.has_ended());
    }

    #[test]
    fn a_few_empty_lines_before_a_request_are_skipped() {
        let after = |count: usize| head(&format!("{}{GET}\r\n{HOST}\r\n", "\r\n".repeat(count)));
        assert!(after(2).is_ok_and(|head| head.is_some()));
        assert!(after(8).is_ok_and(|head| head.is_some()));
        assert!(after(9).is_err());
    }

    #[test]
    fn s20_what_two_readers_could_read_differently_is_refused() {
        for lines in [
            "content-length: 1\r\ntransfer-encoding: chunked\r\n",
            "transfer-encoding: chunked\r\nCONTENT-LENGTH: 1\r\n",
            "content-length: 1\r\ncontent-length: 1\r\n",
            "content-length: 1\r\ncontent-length: 2\r\n",
            "content-length: +1\r\n",
            "content-length: -1\r\n",
            "content-length:\r\n",
            "content-length: 1, 1\r\n",
            "content-length: 0x1\r\n",
            "content-length: 18446744073709551616\r\n",
            "content-length : 1\r\n",
            "transfer-encoding: gzip, chunked\r\n",
            "transfer-encoding: chunked, chunked\r\n",
            "transfer-encoding: identity\r\n",
            "transfer-encoding: xchunked\r\n",
            "transfer-encoding: \"chunked\"\r\n",
            "transfer-encoding:\r\n",
            "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n",
            "x: y\r\n content-length: 1\r\n",
            " x: y\r\n",
            "x: y\n",
            "x: y\r\r\n",
            "x: y\rz\r\n",
            "x: \0\r\n",
            "x: \u{7f}\r\n",
            "x\0: y\r\n",
            "x y: z\r\n",
            ": y\r\n",
            "no colon\r\n",
            "host: x\r\n",
        ] {
            let refused = with(GET, &format!("{HOST}{lines}")).map(|_| ());
            assert_eq!(refused, Err(400), "{lines:?}");
        }
        assert_eq!(with(GET, "").map(|_| ()), Err(400), "no host");
        let coded = format!("{HOST}transfer-encoding: chunked\r\n");
        assert_eq!(with("GET / HTTP/1.0", &coded).map(|_| ()), Err(400), "chunks in HTTP/1.0");
        for text in ["GET / HTTP/1.1\nhost: x\r\n\r\n", "GET / HTTP/1.1\r\nhost: x\r\n\n", "\n"] {
            assert_eq!(head(text).map(|_| ()), Err(MALFORMED), "{text:?}");
        }
    }

    #[test]
    fn lines_that_ask_for_nothing_are_refused() {
        for line in [
            "GET /a b HTTP/1.1",
            "GET  / HTTP/1.1",
            "GET / HTTP/1.1 ",
            " GET / HTTP/1.1",
            "GET\t/ HTTP/1.1",
            "GET /",
            "GET / HTTP/1.2",
            "GET / HTTP/2.0",
            "GET / http/1.1",
            "PRI * HTTP/2.0",
            "G(T / HTTP/1.1",
            "GET example.test:80 HTTP/1.1",
            "CONNECT example.test:80 HTTP/1.1",
            "GET /a#b HTTP/1.1",
            "GET /\0 HTTP/1.1",
            "GET a/b HTTP/1.1",
            "\u{16}\u{3}\u{1}",
        ] {
            assert_eq!(with(line, HOST).map(|_| ()), Err(400), "{line:?}");
        }
        for (line, path) in [
            ("GET /a?b=c HTTP/1.1", "/a"),
            ("OPTIONS * HTTP/1.1", "*"),
            ("GET http://example.test/a HTTP/1.1", "/a"),
            ("M-SEARCH //a//b HTTP/1.0", "//a//b"),
        ] {
            let head = with(line, HOST).expect("sound");
            assert_eq!(head.request.uri().path(), path, "{line:?}");
        }
    }

    #[test]
    fn a_head_is_bounded_in_bytes_in_headers_and_in_its_target() {
        let refused = |text: &str| {
            let mut bytes = BytesMut::from(text);
            HeadSearch::default().take(&mut bytes, 100_000).map(|_| ()).map_err(|it| it.0.as_u16())
        };
        let headers = |count: usize| format!("{GET}\r\n{HOST}{}\r\n", "a: b\r\n".repeat(count - 1));
        assert_eq!(refused(&headers(100)), Ok(()));
        assert_eq!(refused(&headers(101)), Err(431));
        assert_eq!(refused(&format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(70_000))), Err(414));
        assert_eq!(refused(&"a".repeat(100_001)), Err(431));
        let long = |len: usize| format!("GET / HTTP/1.0\r\na: {}\r\n\r\n", "b".repeat(len));
        let around = long(0).len();
        assert_eq!(refused(&long(100_000 - around)), Ok(()));
        assert_eq!(refused(&long(100_001 - around)), Err(431));
        assert_eq!(refused(&format!("{}\n", "a".repeat(100_000))), Err(431), "all comes at once");
    }

    #[test]
    fn whether_a_connection_goes_on_depends_on_the_version_and_its_words() {
        for (version, line, expected) in [
            (1, "", true),
            (1, "connection: Close\r\n", false),
            (1, "connection: keep-alive, close\r\n", false),
            (1, "connection: keep-alive\r\nconnection: close\r\n", false),
            (0, "", false),
            (0, "connection: Keep-Alive\r\n", true),
        ] {
            let head = with(&format!("GET / HTTP/1.{version}"), &format!("{HOST}{line}"));
            assert_eq!(head.map(|head| head.is_keep_alive), Ok(expected), "{version} {line:?}");
        }
    }

    #[test]
    fn only_who_has_a_body_to_send_is_told_to_go_on() {
        let expects = |version: u8, lines: &str| {
            let head = with(&format!("POST / HTTP/1.{version}"), &format!("{HOST}{lines}"));
            head.expect("sound").expects_continue
        };
        assert!(expects(1, "expect: 100-Continue\r\ncontent-length: 1\r\n"));
        assert!(!expects(1, "expect: 100-continue\r\n"));
        assert!(!expects(0, "expect: 100-continue\r\ncontent-length: 1\r\n"));
        assert!(!expects(1, "expect: something\r\ncontent-length: 1\r\n"));
    }
}
