//! A client and an upstream that take turns, in one thread.
//!
//! The next byte is sent when the last one has arrived, so the gateway meets every request and
//! every event of a stream in the same state, however slow the machine is.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anyhow::{Context, ensure};

/// Under valgrind everything is fifty times slower.
const LIMIT: Duration = Duration::from_secs(60);

const EVENT: &str = "data: {\"id\":\"chatcmpl-bench\",\"object\":\"chat.completion.chunk\",\
    \"created\":1700000000,\"model\":\"bench\",\"choices\":[{\"index\":0,\"delta\":\
    {\"content\":\" cloud\"},\"logprobs\":null,\"finish_reason\":null}]}\n\n";
const DONE: &str = "data: [DONE]\n\n";
const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
    cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n";
const COMPLETION: &str = concat!(
    r#"{"id":"chatcmpl-bench","object":"chat.completion","created":1700000000,"model":"bench","#,
    r#""choices":[{"index":0,"message":{"role":"assistant","content":"Cirrus clouds are thin and "#,
    r#"high, and they are made of ice crystals; they often announce a change of weather within a "#,
    r#"day."},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":410,"#,
    r#""completion_tokens":28,"total_tokens":438}}"#
);

/// What stands behind the gateway.
pub(in crate::bench) struct Upstream {
    pub(in crate::bench) port: u16,
    accepted: Receiver<TcpStream>,
    stream: Option<BufReader<TcpStream>>,
}

impl Upstream {
    pub(in crate::bench) fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("no free port")?;
        let port = listener.local_addr().context("a bound socket has an address")?.port();
        let (tell, accepted) = channel();
        std::thread::spawn(move || {
            // It ends with whoever asked for it.
            let mut streams = listener.incoming().flatten();
            while streams.next().is_some_and(|stream| tell.send(stream).is_ok()) {}
        });
        Ok(Self { port, accepted, stream: None })
    }

    /// The connection under way, which stays as it is; the next request comes over another one.
    pub(in crate::bench) fn set_aside(&mut self) -> Option<BufReader<TcpStream>> {
        self.stream.take()
    }

    /// Reads one request, whole, over the connection of the last one or a new one.
    fn request(&mut self) -> anyhow::Result<&mut TcpStream> {
        let is_read = match &mut self.stream {
            Some(stream) => read_message(stream)?.is_some(),
            None => false,
        };
        if !is_read {
            let stream = self.accepted.recv_timeout(LIMIT).context("the gateway did not ask")?;
            prepare(&stream)?;
            let mut stream = BufReader::new(stream);
            read_message(&mut stream)?.context("the gateway asked nothing")?;
            self.stream = Some(stream);
        }
        Ok(self.stream.as_mut().context("there is one now")?.get_mut())
    }
}

/// What stands in front of the gateway, with one connection; it takes turns with the upstream.
pub(in crate::bench) struct TurnClient {
    stream: BufReader<TcpStream>,
    request: Vec<u8>,
}

impl TurnClient {
    /// A client whose requests are a chat of 2 KiB to this model.
    pub(in crate::bench) fn connect(
        url: &str,
        model: &str,
        is_stream: bool,
    ) -> anyhow::Result<Self> {
        let address = url.trim_start_matches("http://");
        let stream = TcpStream::connect(address).context("the gateway does not listen")?;
        prepare(&stream)?;
        let text = "a word or two ".repeat(140);
        let stream_key = if is_stream { "\"stream\":true," } else { "" };
        let body = format!(
            "{{\"model\":\"{model}\",{stream_key}\"messages\":[{{\"role\":\"user\",\
             \"content\":\"{text}\"}}]}}"
        );
        let request = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n\
             content-type: application/json\r\nauthorization: Bearer sk-nothing\r\n\
             user-agent: bench\r\naccept: */*\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        Ok(Self { stream: BufReader::new(stream), request: request.into_bytes() })
    }

    /// The same client, in a conversation of this number from here on.
    pub(super) fn in_conversation(&mut self, number: u32) {
        let request = String::from_utf8_lossy(&self.request);
        let (head, body) = request.split_once("\r\n\r\n").unwrap_or_default();
        let head = head.split("\r\nx-session-id: ").next().unwrap_or_default();
        self.request = format!("{head}\r\nx-session-id: {number}\r\n\r\n{body}").into_bytes();
    }

    fn send(&mut self) -> anyhow::Result<()> {
        self.stream.get_mut().write_all(&self.request).context("the gateway went away")
    }

    /// A plain chat.
    pub(in crate::bench) fn chat(&mut self, upstream: &mut Upstream) -> anyhow::Result<()> {
        self.send()?;
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n\
             {COMPLETION}",
            COMPLETION.len()
        );
        upstream.request()?.write_all(answer.as_bytes()).context("the gateway went away")?;
        let answered = read_message(&mut self.stream)?.context("no answer")?;
        ensure!(answered.ends_with(COMPLETION), "another answer: {answered}");
        Ok(())
    }

    /// A stream whose events are all there at once.
    pub(super) fn ready_stream(
        &mut self,
        upstream: &mut Upstream,
        events: u32,
    ) -> anyhow::Result<()> {
        self.send()?;
        let mut answer = STREAM.to_owned();
        for _ in 0..events {
            answer.push_str(&chunk(EVENT));
        }
        answer.push_str(&format!("{}0\r\n\r\n", chunk(DONE)));
        upstream.request()?.write_all(answer.as_bytes()).context("the gateway went away")?;
        let answered = read_message(&mut self.stream)?.context("no answer")?;
        ensure!(answered.matches(EVENT).count() == events as usize, "events are missing");
        Ok(())
    }

    /// Begins a stream: its first event has come when this returns.
    pub(in crate::bench) fn open_stream(&mut self, upstream: &mut Upstream) -> anyhow::Result<()> {
        self.send()?;
        let first = format!("{STREAM}{}", chunk(EVENT));
        upstream.request()?.write_all(first.as_bytes()).context("the gateway went away")?;
        let head = read_head(&mut self.stream)?.context("no answer")?;
        ensure!(head.starts_with("http/1.1 200 "), "a stream failed: {head}");
        self.event()
    }

    /// The next event of a stream, from the upstream to the client.
    pub(super) fn next_event(&mut self, upstream: &mut Upstream) -> anyhow::Result<()> {
        let stream = upstream.stream.as_mut().context("no stream is open")?;
        stream.get_mut().write_all(chunk(EVENT).as_bytes()).context("the gateway went away")?;
        self.event()
    }

    fn event(&mut self) -> anyhow::Result<()> {
        let data = read_chunk(&mut self.stream)?.context("the stream ended")?;
        ensure!(data == EVENT.as_bytes(), "not the event that was sent");
        Ok(())
    }
}

fn prepare(stream: &TcpStream) -> anyhow::Result<()> {
    stream.set_nodelay(true).context("cannot set a socket up")?;
    stream.set_read_timeout(Some(LIMIT)).context("cannot set a socket up")
}

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

/// A head in lower case; `None` where the connection has ended.
fn read_head(stream: &mut BufReader<TcpStream>) -> anyhow::Result<Option<String>> {
    let mut head = String::new();
    loop {
        let before = head.len();
        let read = stream.read_line(&mut head).context("nothing came")?;
        if read == 0 {
            return Ok(None);
        }
        if head[before..].trim_end().is_empty() {
            return Ok(Some(head.to_ascii_lowercase()));
        }
    }
}

/// A request or an answer, to its end; `None` where the connection has ended.
fn read_message(stream: &mut BufReader<TcpStream>) -> anyhow::Result<Option<String>> {
    let Some(mut message) = read_head(stream)? else { return Ok(None) };
    let is_request = message.starts_with("post ");
    ensure!(is_request || message.starts_with("http/1.1 200 "), "a request failed: {message}");
    let length = message.lines().find_map(|line| line.strip_prefix("content-length: "));
    if let Some(length) = length {
        let mut body = vec![0; length.parse().context("an odd length")?];
        stream.read_exact(&mut body).context("a cut message")?;
        message.push_str(&String::from_utf8_lossy(&body));
    } else {
        while let Some(data) = read_chunk(stream)? {
            message.push_str(&String::from_utf8_lossy(&data));
        }
    }
    Ok(Some(message))
}

/// The next chunk; `None` after the last one.
fn read_chunk(stream: &mut BufReader<TcpStream>) -> anyhow::Result<Option<Vec<u8>>> {
    let mut line = String::new();
    stream.read_line(&mut line).context("nothing came")?;
    let size = usize::from_str_radix(line.trim_end(), 16).context("no chunk")?;
    let mut data = vec![0; size + 2];
    stream.read_exact(&mut data).context("a cut chunk")?;
    data.truncate(size);
    Ok((size > 0).then_some(data))
}
