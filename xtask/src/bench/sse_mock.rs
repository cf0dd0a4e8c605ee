//! The upstream of streams: one event every [`PACE`], the first at once, as many as the request's
//! `max_tokens`. A request whose `user` is [`READY`] gets all of them in one piece.
//!
//! A thread per connection, each with its own beat, so that events of different streams do not
//! come together. It speaks just enough HTTP/1.1 for the contenders.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use anyhow::Context;

/// A hundred tokens a second: fast for a model, slow for a proxy.
pub(super) const PACE: Duration = Duration::from_millis(10);

/// The `user` of a request whose events come at once.
pub(super) const READY: &str = "ready";

const EVENT: &str = "data: {\"id\":\"chatcmpl-bench\",\"object\":\"chat.completion.chunk\",\
    \"created\":1700000000,\"model\":\"bench\",\"choices\":[{\"index\":0,\"delta\":\
    {\"content\":\" cloud\"},\"logprobs\":null,\"finish_reason\":null}]}\n\n";
const DONE: &str = "data: [DONE]\n\n";
const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
    cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n";

/// A running mock; it ends with the process.
#[derive(Debug)]
pub(super) struct SseMock {
    pub(super) port: u16,
}

impl SseMock {
    pub(super) fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("no free port")?;
        let port = listener.local_addr().context("a bound socket has an address")?.port();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A contender that closes its connection ends the thread: nothing to tell.
                std::thread::spawn(move || drop(serve(stream)));
            }
        });
        Ok(Self { port })
    }
}

fn serve(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut bytes = Vec::new();
    loop {
        let Some(wanted) = read_request(&mut stream, &mut bytes)? else { return Ok(()) };
        if wanted.is_ready {
            answer_at_once(&mut stream, wanted.events)?;
        } else {
            answer(&mut stream, wanted.events)?;
        }
    }
}

/// What a request asks for.
struct AskedStream {
    events: u32,
    is_ready: bool,
}

/// Reads one request and tells what it wants; `None` when there is none.
fn read_request(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> io::Result<Option<AskedStream>> {
    loop {
        let text = String::from_utf8_lossy(bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length: usize = after(&head.to_ascii_lowercase(), "content-length: ").unwrap_or(0);
            if body.len() >= length {
                let events = after(body, "\"max_tokens\":").unwrap_or(1);
                let is_ready = body.contains(&format!("\"user\":\"{READY}\""));
                let used = head.len() + 4 + length;
                bytes.drain(..used);
                return Ok(Some(AskedStream { events, is_ready }));
            }
        }
        let mut chunk = [0; 8192];
        let count = stream.read(&mut chunk)?;
        if count == 0 {
            return Ok(None);
        }
        bytes.extend_from_slice(&chunk[..count]);
    }
}

/// The number that follows `key`.
fn after<T: std::str::FromStr>(text: &str, key: &str) -> Option<T> {
    let (_, rest) = text.split_once(key)?;
    rest.split(|it: char| !it.is_ascii_digit()).next()?.parse().ok()
}

#[expect(clippy::disallowed_methods, reason = "a paced stream is paced by the clock")]
fn answer(stream: &mut TcpStream, count: u32) -> io::Result<()> {
    let event = chunk(EVENT);
    stream.write_all(HEAD.as_bytes())?;
    let start = Instant::now();
    for number in 0..count {
        std::thread::sleep((PACE * number).saturating_sub(start.elapsed()));
        stream.write_all(event.as_bytes())?;
    }
    stream.write_all(format!("{}0\r\n\r\n", chunk(DONE)).as_bytes())
}

/// Head, events and end in one write.
fn answer_at_once(stream: &mut TcpStream, count: u32) -> io::Result<()> {
    let events = chunk(EVENT).repeat(count as usize);
    stream.write_all(format!("{HEAD}{events}{}0\r\n\r\n", chunk(DONE)).as_bytes())
}

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}
