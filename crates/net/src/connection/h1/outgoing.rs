//! An answer on its way to the client: its head and its framing, as bytes.
//!
//! Rules kept here:
//! - An answer whose length is known says it; any other comes in chunks, or to a client of
//!   HTTP/1.0 up to the end of the connection.
//! - No body after HEAD, and none with 1xx, 204 and 304 (RFC 9110, 6.4.1).
//! - A body that is shorter or longer than announced is never ended cleanly: the client would take
//!   it for whole.
//! - Short pieces are put together and leave in one write; long ones are not copied.

use std::io::IoSlice;

use bytes::{Buf, Bytes};
use http::response::Parts;
use http::{Method, StatusCode, Version, header};

use super::date;
use crate::fields::{has_word, length, push_hex, push_number};

/// Room for the head of a usual answer and a short body.
const USUAL: usize = 1024;
/// Longer pieces are written from where they are.
const COPIED_MAX: usize = 4 * 1024;
/// As much is put together before it is written.
const TOGETHER_MAX: usize = 32 * 1024;
/// A buffer of this size is kept while the next piece is awaited.
const KEPT_MAX: usize = 4 * 1024;
const END_OF_LINE: &[u8] = b"\r\n";

/// What of a request its answer depends on.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) is_head: bool,
    pub(super) version: Version,
    /// Whether another request may follow.
    pub(super) is_keep_alive: bool,
}

impl Asked {
    pub(super) fn new(method: &Method, version: Version, is_keep_alive: bool) -> Self {
        Self { is_head: *method == Method::HEAD, version, is_keep_alive }
    }
}

/// How the end of an answer is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AnswerFraming {
    /// So many bytes are still to come.
    Length(u64),
    Chunked,
    /// By the end of the connection.
    ToEnd,
}

/// An answer on its way out.
#[derive(Debug)]
pub(super) struct OutgoingAnswer {
    /// What is written first, from `sent` on.
    text: Vec<u8>,
    sent: usize,
    /// A long piece that follows it.
    long: Bytes,
    /// What follows that.
    after: &'static [u8],
    framing: AnswerFraming,
    /// Whether what the answer has as its body is sent.
    pub(super) has_body: bool,
    /// Whether another request may follow.
    pub(super) is_keep_alive: bool,
}

/// The body does not have the length that was announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WrongLength;

impl OutgoingAnswer {
    /// The head of an answer whose body has this length, where that is known.
    pub(super) fn new(head: &Parts, body_len: Option<u64>, asked: &Asked) -> Self {
        let (status, is_old) = (head.status, asked.version == Version::HTTP_10);
        let mut text = Vec::with_capacity(USUAL);
        text.extend_from_slice(if is_old { b"HTTP/1.0 " } else { b"HTTP/1.1 " });
        text.extend_from_slice(status.as_str().as_bytes());
        text.push(b' ');
        text.extend_from_slice(status.canonical_reason().unwrap_or("-").as_bytes());
        text.extend_from_slice(END_OF_LINE);
        let (mut is_keep_alive, mut has_date) = (asked.is_keep_alive, false);
        let mut said_len = None;
        for (name, value) in &head.headers {
            // These three are the connection's, and are written below.
            if name == header::CONNECTION {
                is_keep_alive &= !has_word(value.as_bytes(), "close");
            } else if name == header::CONTENT_LENGTH {
                said_len = length(value.as_bytes());
            } else if name != header::TRANSFER_ENCODING {
                has_date |= name == header::DATE;
                push_line(&mut text, name.as_str().as_bytes(), value.as_bytes());
            }
        }
        let has_no_length = status.is_informational() || status == StatusCode::NO_CONTENT;
        let has_no_body = has_no_length || asked.is_head || status == StatusCode::NOT_MODIFIED;
        let body_len = if status == StatusCode::NOT_MODIFIED { None } else { body_len };
        let known_len = said_len.or(body_len).filter(|_| !has_no_length);
        let framing = match known_len {
            _ if has_no_body => AnswerFraming::Length(0),
            Some(length) => AnswerFraming::Length(length),
            None if is_old => AnswerFraming::ToEnd,
            None => AnswerFraming::Chunked,
        };
        if let Some(length) = known_len {
            text.extend_from_slice(b"content-length: ");
            push_number(&mut text, length);
            text.extend_from_slice(END_OF_LINE);
        }
        match framing {
            AnswerFraming::Chunked => push_line(&mut text, b"transfer-encoding", b"chunked"),
            AnswerFraming::ToEnd => is_keep_alive = false,
            AnswerFraming::Length(_) => {}
        }
        match is_keep_alive {
            false => push_line(&mut text, b"connection", b"close"),
            true if is_old => push_line(&mut text, b"connection", b"keep-alive"),
            true => {}
        }
        if !has_date {
            date::push(&mut text);
        }
        text.extend_from_slice(END_OF_LINE);
        let (long, has_body) = (Bytes::new(), !has_no_body);
        Self { text, sent: 0, long, after: &[], framing, has_body, is_keep_alive }
    }

    /// Whether another piece can be added before this is written.
    pub(super) fn has_room(&self) -> bool {
        self.long.is_empty() && self.text.len() < TOGETHER_MAX
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.len() == self.sent && self.long.is_empty() && self.after.is_empty()
    }

    /// Adds a piece of the body; call it while there is room.
    pub(super) fn push(&mut self, data: Bytes) -> Result<(), WrongLength> {
        if data.is_empty() {
            return Ok(());
        }
        self.after = match &mut self.framing {
            AnswerFraming::Length(left) => {
                *left = left.checked_sub(data.len() as u64).ok_or(WrongLength)?;
                &[]
            }
            AnswerFraming::ToEnd => &[],
            AnswerFraming::Chunked => {
                push_hex(&mut self.text, data.len());
                self.text.extend_from_slice(END_OF_LINE);
                END_OF_LINE
            }
        };
        if data.len() <= COPIED_MAX {
            self.text.extend_from_slice(&data);
            self.text.extend_from_slice(std::mem::take(&mut self.after));
        } else {
            self.long = data;
        }
        Ok(())
    }

    /// The body has ended.
    pub(super) fn end(&mut self) -> Result<(), WrongLength> {
        match self.framing {
            AnswerFraming::Length(0) | AnswerFraming::ToEnd => Ok(()),
            AnswerFraming::Length(_) => Err(WrongLength),
            AnswerFraming::Chunked if self.long.is_empty() => {
                self.text.extend_from_slice(b"0\r\n\r\n");
                Ok(())
            }
            AnswerFraming::Chunked => {
                self.after = b"\r\n0\r\n\r\n";
                Ok(())
            }
        }
    }

    /// What is to be written, in order.
    pub(super) fn slices(&self) -> [IoSlice<'_>; 3] {
        [&self.text[self.sent..], &self.long, self.after].map(IoSlice::new)
    }

    /// So many bytes have been written.
    pub(super) fn advance(&mut self, count: usize) {
        let of_text = count.min(self.text.len() - self.sent);
        self.sent += of_text;
        let of_long = (count - of_text).min(self.long.len());
        self.long.advance(of_long);
        self.after = &self.after[(count - of_text - of_long).min(self.after.len())..];
        if self.sent == self.text.len() {
            self.text.clear();
            self.sent = 0;
            self.text.shrink_to(KEPT_MAX);
        }
    }
}

fn push_line(text: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    // Names and values of the types they come from have neither line breaks nor NUL in them.
    text.extend_from_slice(name);
    text.extend_from_slice(b": ");
    text.extend_from_slice(value);
    text.extend_from_slice(END_OF_LINE);
}

#[cfg(test)]
mod tests {
    use http::Response;

    use super::*;

    fn asked(method: Method, version: Version) -> Asked {
        Asked::new(&method, version, true)
    }

    /// Everything that is written of an answer, without its date.
    fn written(
        response: http::response::Builder,
        asked: &Asked,
        len: Option<u64>,
        pieces: &[&'static str],
    ) -> (String, Result<(), WrongLength>, bool) {
        let (head, ()) = response.body(()).expect("a response").into_parts();
        let mut out = OutgoingAnswer::new(&head, len, asked);
        let mut bytes = Vec::new();
        let mut drain = |out: &mut OutgoingAnswer| {
            while !out.is_empty() {
                // As a socket that takes seven bytes at a time.
                let all: Vec<u8> = out.slices().iter().flat_map(|it| it.to_vec()).collect();
                let count = all.len().min(7);
                bytes.extend_from_slice(&all[..count]);
                out.advance(count);
            }
        };
        let mut result = Ok(());
        for piece in pieces {
            if !out.has_room() {
                drain(&mut out);
            }
            result = result.and_then(|()| out.push(Bytes::from_static(piece.as_bytes())));
        }
        let result = result.and_then(|()| out.end());
        drain(&mut out);
        let text = String::from_utf8(bytes).expect("text");
        let is_date = |line: &&str| !line.starts_with("date: ");
        let lines: Vec<&str> = text.split("\r\n").filter(is_date).collect();
        (lines.join("\r\n"), result, out.is_keep_alive)
    }

    #[test]
    fn a_known_length_is_said_and_anything_else_comes_in_chunks() {
        let post = asked(Method::POST, Version::HTTP_11);
        let (text, result, is_kept) =
            written(Response::builder().header("x", "y"), &post, Some(5), &["he", "", "llo"]);
        assert_eq!(text, "HTTP/1.1 200 OK\r\nx: y\r\ncontent-length: 5\r\n\r\nhello");
        assert!(result.is_ok() && is_kept);
        let long = "a".repeat(5000).leak();
        let (text, result, is_kept) =
            written(Response::builder().status(404), &post, None, &["hi", long, "ho"]);
        let head = "HTTP/1.1 404 Not Found\r\ntransfer-encoding: chunked\r\n\r\n";
        let body = format!("2\r\nhi\r\n1388\r\n{long}\r\n2\r\nho\r\n0\r\n\r\n");
        assert_eq!(text, format!("{head}{body}"));
        assert!(result.is_ok() && is_kept);
        let (text, ..) = written(Response::builder(), &post, None, &[long]);
        assert!(text.ends_with("a\r\n0\r\n\r\n"), "the end after a long piece");
    }

    #[test]
    fn http_1_0_gets_no_chunks_and_is_told_that_the_connection_stays() {
        let get = asked(Method::GET, Version::HTTP_10);
        let (text, _, is_kept) = written(Response::builder(), &get, None, &["hi"]);
        assert_eq!(text, "HTTP/1.0 200 OK\r\nconnection: close\r\n\r\nhi");
        assert!(!is_kept);
        let (text, _, is_kept) = written(Response::builder(), &get, Some(2), &["hi"]);
        let head = "HTTP/1.0 200 OK\r\ncontent-length: 2\r\nconnection: keep-alive\r\n\r\nhi";
        assert_eq!(text, head);
        assert!(is_kept);
    }

    #[test]
    fn an_answer_that_has_no_body_may_still_say_its_length() {
        let head = asked(Method::HEAD, Version::HTTP_11);
        let (text, result, _) = written(Response::builder(), &head, Some(9), &[]);
        assert_eq!(text, "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n");
        assert!(result.is_ok());
        let get = asked(Method::GET, Version::HTTP_11);
        for (status, said) in [(204, "No Content"), (304, "Not Modified")] {
            let (text, result, _) = written(Response::builder().status(status), &get, Some(0), &[]);
            assert_eq!(text, format!("HTTP/1.1 {status} {said}\r\n\r\n"));
            assert!(result.is_ok());
        }
    }

    #[test]
    fn what_the_connection_says_of_itself_is_said_once() {
        let post = asked(Method::POST, Version::HTTP_11);
        let response = Response::builder()
            .header("connection", "close")
            .header("content-length", "2")
            .header("transfer-encoding", "chunked");
        let (text, _, is_kept) = written(response, &post, None, &["hi"]);
        assert_eq!(text, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi");
        assert!(!is_kept);
    }

    #[test]
    fn a_body_of_another_length_than_announced_is_not_ended() {
        let post = asked(Method::POST, Version::HTTP_11);
        assert_eq!(written(Response::builder(), &post, Some(3), &["hi"]).1, Err(WrongLength));
        assert_eq!(written(Response::builder(), &post, Some(1), &["hi"]).1, Err(WrongLength));
    }
}
