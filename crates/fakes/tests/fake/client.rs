//! A tiny raw HTTP/1.1 client: one connection, requests as text, answers as bytes.
//!
//! Every read has a deadline, so a fake that hangs makes a test see a silence and never hang.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Longer than anything that is meant to come, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long nothing must come to count as silence: what was to come before it has come by then,
/// on a busy machine too.
pub const SILENCE: Duration = Duration::from_millis(400);

/// How the bytes of an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// As HTTP says: all of the length, or the last chunk.
    Whole,
    /// The connection was closed first.
    Closed,
    /// The connection was reset first.
    Reset,
    /// Nothing more came, and the connection stayed open.
    Silent,
}

/// One answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    /// The body, chunks put together.
    pub body: String,
    pub end: End,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(known, _)| *known == name).map(|(_, value)| value).next()
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).expect("the body is JSON")
    }

    /// The data of each event, in order.
    pub fn events(&self) -> Vec<&str> {
        self.body.lines().filter_map(|line| line.strip_prefix("data: ")).collect()
    }

    /// The `type` of each event, in order.
    pub fn types(&self) -> Vec<String> {
        let value = |data: &&str| serde_json::from_str::<serde_json::Value>(data).ok();
        let kind = |value: serde_json::Value| value["type"].as_str().map(str::to_owned);
        self.events().iter().filter_map(value).filter_map(kind).collect()
    }
}

/// One connection.
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    /// Bytes that came and belong to no answer yet.
    rest: Vec<u8>,
}

impl Client {
    pub fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("somebody listens");
        stream.set_nodelay(true).expect("an option of a socket");
        Self { stream, rest: Vec::new() }
    }

    pub fn send(&mut self, method: &str, path: &str, headers: &str, body: &str) {
        let length = body.len();
        let text = format!(
            "{method} {path} HTTP/1.1\r\nhost: fake\r\n{headers}\
             content-length: {length}\r\n\r\n{body}"
        );
        self.stream.write_all(text.as_bytes()).expect("the connection takes a request");
    }

    /// The first bytes that come, head and all, without looking at them.
    pub fn first_bytes(&mut self, count: usize) -> String {
        self.stream.set_read_timeout(Some(PATIENCE)).expect("an option of a socket");
        while self.rest.len() < count {
            self.more().expect("more bytes come");
        }
        String::from_utf8_lossy(&self.rest).into_owned()
    }

    /// Reads an answer to its end, or until nothing comes for a while; none without a whole head.
    pub fn answer(&mut self, patience: Duration) -> Result<Answer, End> {
        self.stream.set_read_timeout(Some(patience)).expect("an option of a socket");
        let head = loop {
            if let Some(at) = find(&self.rest, b"\r\n\r\n") {
                let head: Vec<u8> = self.rest.drain(..at + 4).collect();
                break String::from_utf8_lossy(&head).into_owned();
            }
            self.more()?;
        };
        let status = head.get(9..12).and_then(|text| text.parse().ok()).ok_or(End::Closed)?;
        let mut answer = Answer { status, head, body: String::new(), end: End::Whole };
        let length = answer.header("content-length").and_then(|text| text.parse().ok());
        let (body, end) = match length {
            _ if status == 204 => (Vec::new(), End::Whole),
            Some(length) => self.of_length(length),
            None => self.of_chunks(),
        };
        answer.body = String::from_utf8_lossy(&body).into_owned();
        answer.end = end;
        Ok(answer)
    }

    fn of_length(&mut self, length: usize) -> (Vec<u8>, End) {
        while self.rest.len() < length {
            if let Err(end) = self.more() {
                return (std::mem::take(&mut self.rest), end);
            }
        }
        (self.rest.drain(..length).collect(), End::Whole)
    }

    fn of_chunks(&mut self) -> (Vec<u8>, End) {
        let mut body = Vec::new();
        loop {
            let size = loop {
                if let Some(at) = find(&self.rest, b"\r\n") {
                    let line: Vec<u8> = self.rest.drain(..at + 2).collect();
                    let text = String::from_utf8_lossy(&line[..at]).into_owned();
                    break usize::from_str_radix(&text, 16).expect("a chunk's size");
                }
                if let Err(end) = self.more() {
                    return (body, end);
                }
            };
            while self.rest.len() < size + 2 {
                if let Err(end) = self.more() {
                    body.append(&mut self.rest);
                    return (body, end);
                }
            }
            body.extend(self.rest.drain(..size + 2).take(size));
            if size == 0 {
                return (body, End::Whole);
            }
        }
    }

    fn more(&mut self) -> Result<(), End> {
        let mut buffer = vec![0; 64 * 1024];
        match self.stream.read(&mut buffer) {
            Ok(0) => Err(End::Closed),
            Ok(count) => {
                self.rest.extend_from_slice(&buffer[..count]);
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => Err(End::Reset),
            Err(error) => {
                let is_silence =
                    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
                assert!(is_silence, "{error}");
                Err(End::Silent)
            }
        }
    }
}

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}

/// One request on a connection of its own.
pub fn post(address: SocketAddr, path: &str, body: &str) -> Result<Answer, End> {
    ask(address, "POST", path, "", body)
}

/// The same, with a method and headers (each line ended by CRLF).
pub fn ask(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &str,
    body: &str,
) -> Result<Answer, End> {
    let mut client = Client::connect(address);
    client.send(method, path, headers, body);
    client.answer(PATIENCE)
}

/// The same as [`post`], for answers that fall silent.
pub fn post_until_silence(address: SocketAddr, path: &str, body: &str) -> Result<Answer, End> {
    let mut client = Client::connect(address);
    client.send("POST", path, "", body);
    client.answer(SILENCE)
}

/// A chat request.
pub fn chat(model: &str, is_stream: bool) -> String {
    serde_json::json!({"model": model, "stream": is_stream,
        "messages": [{"role": "user", "content": "good morning"}]})
    .to_string()
}
