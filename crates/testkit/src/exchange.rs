//! HTTP/1.1 by hand: one connection, one request, its answer whole or event by event.
//!
//! Rules kept here:
//! - Every read has a deadline, so a gateway that hangs fails a test instead of stopping it.
//! - Nothing is understood that was not sent: chunks, events and lines are taken apart here.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

use crate::{
    http::End,
    time::{PATIENCE, now},
};

/// One event of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    pub id: Option<String>,
    pub retry: Option<u64>,
    pub data: String,
}

impl Event {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.data)
            .unwrap_or_else(|error| panic!("an event is no JSON ({error}): {}", self.data))
    }
}

/// One request on a connection of its own, and the answer as it comes.
#[derive(Debug)]
pub struct Exchange {
    socket: TcpStream,
    pub status: u16,
    pub head: String,
    /// Bytes that came, chunks not yet taken apart.
    raw: Vec<u8>,
    /// Bytes of the body that belong to no event yet.
    body: Vec<u8>,
    framing: Framing,
    ended: Option<End>,
}

#[derive(Clone, Copy, Debug)]
enum Framing {
    Length(usize),
    Chunks,
    UntilClose,
}

/// What is asked.
#[derive(Clone, Debug)]
pub struct Ask<'a> {
    pub verb: &'a str,
    pub path: &'a str,
    /// Each line ends with CRLF, names in lower case; `host` and `content-length` are added unless
    /// they are there.
    pub headers: String,
    pub body: &'a [u8],
}

impl Exchange {
    /// Sends a request and reads the head of the answer; an error if none comes.
    pub fn begin(address: SocketAddr, ask: &Ask<'_>) -> Result<Self, End> {
        Self::begin_within(address, ask, PATIENCE)
    }

    pub fn begin_within(
        address: SocketAddr,
        ask: &Ask<'_>,
        patience: Duration,
    ) -> Result<Self, End> {
        let socket = TcpStream::connect(address).expect("somebody listens");
        socket.set_nodelay(true).expect("an option of a socket");
        socket.set_write_timeout(Some(PATIENCE)).expect("an option of a socket");
        let Ask { verb, path, headers, body } = ask;
        let has = |name: &str| headers.lines().any(|line| line.starts_with(name));
        let host = if has("host:") { String::new() } else { format!("host: {address}\r\n") };
        let length = if has("content-length:") || has("transfer-encoding:") {
            String::new()
        } else {
            format!("content-length: {}\r\n", body.len())
        };
        let head = format!("{verb} {path} HTTP/1.1\r\n{host}{length}{headers}\r\n");
        let mut it = Self {
            socket,
            status: 0,
            head: String::new(),
            raw: Vec::new(),
            body: Vec::new(),
            framing: Framing::UntilClose,
            ended: None,
        };
        // A gateway that refuses before it has read everything is no failure of the test.
        drop(it.socket.write_all(&[head.as_bytes(), body].concat()));
        it.read_head(patience)?;
        Ok(it)
    }

    /// Says that nothing more is sent.
    pub fn close_own_side(&self) {
        self.socket.shutdown(std::net::Shutdown::Write).expect("the connection stands");
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    }

    pub fn is_stream(&self) -> bool {
        self.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"))
    }

    /// Fails with all that came if this is not the status.
    pub fn must_be(&mut self, status: u16, what: &str) {
        if self.status != status {
            let (head, body) = (self.head.clone(), self.text());
            panic!("{what}: not {status}\n{head}{body}");
        }
    }

    /// The rest of the body, read to its end.
    pub fn text(&mut self) -> String {
        while self.more(PATIENCE).is_ok() {}
        String::from_utf8_lossy(&std::mem::take(&mut self.body)).into_owned()
    }

    pub fn json(&mut self) -> Value {
        let text = self.text();
        serde_json::from_str(&text)
            .unwrap_or_else(|error| panic!("the body is no JSON ({error}): `{text}`"))
    }

    /// The next event, comments left out; an error says how the stream ended.
    pub fn event(&mut self) -> Result<Event, End> {
        self.event_within(PATIENCE)
    }

    pub fn event_within(&mut self, patience: Duration) -> Result<Event, End> {
        let until = now() + patience;
        loop {
            while let Some(at) = find(&self.body, b"\n\n") {
                let block: Vec<u8> = self.body.drain(..at + 2).collect();
                if let Some(event) = parse(&String::from_utf8_lossy(&block)) {
                    return Ok(event);
                }
            }
            let left = until.saturating_duration_since(now());
            if left.is_zero() {
                return Err(End::Silent);
            }
            self.more(left)?;
        }
    }

    /// The next event that is a message: priming events are left out.
    pub fn message(&mut self) -> Result<Value, End> {
        self.message_within(PATIENCE)
    }

    pub fn message_within(&mut self, patience: Duration) -> Result<Value, End> {
        let until = now() + patience;
        loop {
            let event = self.event_within(until.saturating_duration_since(now()))?;
            if !event.data.is_empty() {
                return Ok(event.json());
            }
        }
    }

    fn read_head(&mut self, patience: Duration) -> Result<(), End> {
        let at = loop {
            if let Some(at) = find(&self.raw, b"\r\n\r\n") {
                break at;
            }
            self.read(patience)?;
        };
        let head: Vec<u8> = self.raw.drain(..at + 4).collect();
        self.head = String::from_utf8_lossy(&head).into_owned();
        self.status = self.head.get(9..12).and_then(|it| it.parse().ok()).ok_or(End::Broken)?;
        let length = self.header("content-length").and_then(|text| text.parse().ok());
        let is_chunked = self.header("transfer-encoding") == Some("chunked");
        self.framing = match length {
            _ if self.status == 204 || self.status == 304 => Framing::Length(0),
            Some(length) => Framing::Length(length),
            None if is_chunked => Framing::Chunks,
            None => Framing::UntilClose,
        };
        Ok(())
    }

    /// More of the body; an error when there is none.
    fn more(&mut self, patience: Duration) -> Result<(), End> {
        loop {
            if let Some(end) = self.ended {
                return Err(end);
            }
            if self.take() {
                return Ok(());
            }
            if self.ended.is_none() {
                match self.read(patience) {
                    Ok(()) => {}
                    Err(End::Broken) if matches!(self.framing, Framing::UntilClose) => {
                        self.ended = Some(End::Whole);
                    }
                    Err(End::Silent) => return Err(End::Silent),
                    Err(end) => self.ended = Some(end),
                }
            }
        }
    }

    /// Moves what has come from raw bytes to the body; whether anything did.
    fn take(&mut self) -> bool {
        match self.framing {
            Framing::UntilClose => {
                let has_more = !self.raw.is_empty();
                self.body.append(&mut self.raw);
                has_more
            }
            Framing::Length(left) => {
                let count = left.min(self.raw.len());
                self.body.extend(self.raw.drain(..count));
                self.framing = Framing::Length(left - count);
                if left == count {
                    self.ended = Some(End::Whole);
                }
                count > 0
            }
            Framing::Chunks => {
                let Some(at) = find(&self.raw, b"\r\n") else { return false };
                let size = String::from_utf8_lossy(&self.raw[..at]).into_owned();
                let size = usize::from_str_radix(size.trim(), 16).expect("a chunk's size");
                if self.raw.len() < at + 2 + size + 2 {
                    return false;
                }
                if size == 0 {
                    self.ended = Some(End::Whole);
                }
                let chunk: Vec<u8> = self.raw.drain(..at + 2 + size + 2).collect();
                self.body.extend_from_slice(&chunk[at + 2..at + 2 + size]);
                size > 0
            }
        }
    }

    fn read(&mut self, patience: Duration) -> Result<(), End> {
        let patience = patience.max(Duration::from_millis(1));
        self.socket.set_read_timeout(Some(patience)).expect("an option of a socket");
        let mut buffer = [0; 64 * 1024];
        match self.socket.read(&mut buffer) {
            Ok(0) => Err(End::Broken),
            Ok(count) => {
                self.raw.extend_from_slice(&buffer[..count]);
                Ok(())
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Err(End::Silent)
            }
            Err(_) => Err(End::Broken),
        }
    }
}

fn parse(block: &str) -> Option<Event> {
    let mut event = Event::default();
    let mut data: Option<String> = None;
    for line in block.lines() {
        let Some((field, value)) = line.split_once(':') else { continue };
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => event.id = Some(value.to_owned()),
            "retry" => event.retry = value.parse().ok(),
            "data" => match &mut data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => data = Some(value.to_owned()),
            },
            _ => {}
        }
    }
    event.data = data?;
    Some(event)
}

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    memchr::memmem::find(bytes, part)
}
