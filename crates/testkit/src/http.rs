//! A tiny raw HTTP/1.1 client: one connection, requests as bytes, answers as they came.
//!
//! Rules kept here:
//! - Every read has a deadline, so a gateway that hangs fails a test instead of stopping it.
//! - How an answer ended is kept beside its bytes: a clean end and a broken one are two things.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

use crate::time::PATIENCE;

/// How the bytes of an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// As HTTP says: all of the length, or the last chunk.
    Whole,
    /// The connection ended first.
    Broken,
    /// Nothing more came, and the connection stayed open.
    Silent,
}

/// One answer.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    /// The body, chunks put together.
    pub body: Vec<u8>,
    pub end: End,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(known, _)| *known == name).map(|(_, value)| value).next()
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("the body is no JSON ({error}): {}", self.text()))
    }

    /// The data of each event, in order.
    pub fn events(&self) -> Vec<String> {
        let text = self.text();
        text.lines().filter_map(|line| line.strip_prefix("data: ")).map(str::to_owned).collect()
    }

    /// How many events carry a piece of a chat answer.
    pub fn tokens(&self) -> usize {
        let has_content = |data: &String| {
            let value: Option<Value> = serde_json::from_str(data).ok();
            let content = value.map(|it| it["choices"][0]["delta"]["content"].clone());
            content.is_some_and(|it| it.as_str().is_some_and(|it| !it.is_empty()))
        };
        self.events().iter().filter(|data| has_content(data)).count()
    }

    /// Whether it is a stream of chat that is whole: terminator, clean end, no error.
    pub fn is_whole_stream(&self) -> bool {
        let is_done = self.text().ends_with("data: [DONE]\n\n");
        self.status == 200 && self.end == End::Whole && is_done && !self.has_error_event()
    }

    /// Whether an event says that the stream failed, in either dialect.
    pub fn has_error_event(&self) -> bool {
        let is_error = |data: &String| {
            let value: Option<Value> = serde_json::from_str(data).ok();
            value.is_some_and(|it| it["error"].is_object() || it["type"] == "error")
        };
        self.events().iter().any(is_error)
    }
}

/// One connection.
#[derive(Debug)]
pub struct Client {
    pub stream: TcpStream,
    address: SocketAddr,
    /// Bytes that came and belong to no answer yet.
    rest: Vec<u8>,
}

impl Client {
    pub fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("somebody listens");
        stream.set_nodelay(true).expect("an option of a socket");
        stream.set_write_timeout(Some(PATIENCE)).expect("an option of a socket");
        Self { stream, address, rest: Vec::new() }
    }

    /// Sends bytes as they are; a gateway that has hung up meanwhile is no failure of the test.
    pub fn send_raw(&mut self, bytes: &[u8]) {
        drop(self.stream.write_all(bytes));
    }

    /// Sends a request; each line of `headers` ends with CRLF.
    pub fn send(&mut self, method: &str, path: &str, headers: &str, body: &[u8]) {
        let (address, length) = (self.address, body.len());
        let is_typed = headers.contains("content-type:") || body.is_empty();
        let kind = if is_typed { "" } else { "content-type: application/json\r\n" };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {address}\r\n{kind}{headers}\
             content-length: {length}\r\n\r\n"
        );
        self.send_raw(&[head.as_bytes(), body].concat());
    }

    pub fn post(&mut self, path: &str, body: &str) -> Answer {
        self.send("POST", path, "", body.as_bytes());
        self.answer().expect("an answer comes")
    }

    /// Reads an answer to its end; an error if not even a head comes.
    pub fn answer(&mut self) -> Result<Answer, End> {
        self.answer_within(PATIENCE)
    }

    /// The same, with a silence of its own choice.
    pub fn answer_within(&mut self, patience: Duration) -> Result<Answer, End> {
        self.stream.set_read_timeout(Some(patience)).expect("an option of a socket");
        let head = self.head()?;
        let status = head.get(9..12).and_then(|text| text.parse().ok()).ok_or(End::Broken)?;
        let mut answer = Answer { status, head, body: Vec::new(), end: End::Whole };
        let length = answer.header("content-length").and_then(|text| text.parse().ok());
        let is_chunked = answer.header("transfer-encoding") == Some("chunked");
        answer.end = match length {
            _ if status < 200 || status == 204 || status == 304 => End::Whole,
            Some(length) => self.of_length(length, &mut answer.body),
            None if is_chunked => self.of_chunks(&mut answer.body),
            None => self.of_length(usize::MAX, &mut answer.body),
        };
        Ok(answer)
    }

    /// Reads until these bytes have come, without looking at anything else.
    pub fn read_until(&mut self, part: &str) -> Result<(), End> {
        self.stream.set_read_timeout(Some(PATIENCE)).expect("an option of a socket");
        while find(&self.rest, part.as_bytes()).is_none() {
            self.more()?;
        }
        Ok(())
    }

    /// Whether the gateway closes the connection, sooner than later.
    pub fn is_closed(&mut self) -> bool {
        self.stream.set_read_timeout(Some(PATIENCE)).expect("an option of a socket");
        loop {
            match self.more() {
                Ok(()) => {}
                Err(end) => return end == End::Broken,
            }
        }
    }

    fn head(&mut self) -> Result<String, End> {
        loop {
            if let Some(at) = find(&self.rest, b"\r\n\r\n") {
                let head: Vec<u8> = self.rest.drain(..at + 4).collect();
                return Ok(String::from_utf8_lossy(&head).into_owned());
            }
            self.more()?;
        }
    }

    fn of_length(&mut self, length: usize, body: &mut Vec<u8>) -> End {
        while self.rest.len() < length {
            if let Err(end) = self.more() {
                body.append(&mut self.rest);
                return end;
            }
        }
        body.extend(self.rest.drain(..length));
        End::Whole
    }

    fn of_chunks(&mut self, body: &mut Vec<u8>) -> End {
        loop {
            let Some(at) = find(&self.rest, b"\r\n") else {
                match self.more() {
                    Ok(()) => continue,
                    Err(end) => return end,
                }
            };
            let size = String::from_utf8_lossy(&self.rest[..at]).into_owned();
            let size = usize::from_str_radix(&size, 16).expect("a chunk's size");
            self.rest.drain(..at + 2);
            while self.rest.len() < size + 2 {
                if let Err(end) = self.more() {
                    body.append(&mut self.rest);
                    return end;
                }
            }
            body.extend(self.rest.drain(..size + 2).take(size));
            if size == 0 {
                return End::Whole;
            }
        }
    }

    fn more(&mut self) -> Result<(), End> {
        let mut buffer = [0; 16 * 1024];
        match self.stream.read(&mut buffer) {
            Ok(0) => Err(End::Broken),
            Ok(count) => {
                self.rest.extend_from_slice(&buffer[..count]);
                Ok(())
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Err(End::Silent)
            }
            Err(_) => Err(End::Broken),
        }
    }
}

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    memchr::memmem::find(bytes, part)
}
