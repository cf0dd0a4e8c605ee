//! The load of the MCP comparison: a client that makes one call after the other over one
//! connection, and costs little beside what it measures.
//!
//! It reads answers whole, as JSON or as a stream of events, and believes none that does not carry
//! its call's id and text: an error that comes fast must not look like speed.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, bail, ensure};

/// Whatever takes longer hangs.
const LIMIT: Duration = Duration::from_secs(30);

/// One session.
pub(in crate::bench) struct Client {
    host: String,
    connection: BufReader<TcpStream>,
    session: Option<String>,
    next_id: u64,
}

struct Answer {
    status: u16,
    session: Option<String>,
    body: String,
}

impl Client {
    /// Opens a session with the server at `host:port`.
    pub(in crate::bench) fn open(host: &str) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(host).with_context(|| format!("cannot reach {host}"))?;
        stream.set_nodelay(true).context("cannot set a socket up")?;
        stream.set_read_timeout(Some(LIMIT)).context("cannot set a socket up")?;
        let connection = BufReader::new(stream);
        let mut client = Self { host: host.to_owned(), connection, session: None, next_id: 1 };
        let hello = concat!(
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"#,
            r#""protocolVersion":"2025-11-25","capabilities":{},"#,
            r#""clientInfo":{"name":"bench","version":"1"}}}"#
        );
        let answer = client.post(hello)?;
        ensure!(answer.status == 200, "initialize: {}: {}", answer.status, answer.body);
        client.session = answer.session;
        client.post(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)?;
        Ok(client)
    }

    /// Calls `echo`, and makes sure that this call was answered.
    pub(in crate::bench) fn call(&mut self) -> anyhow::Result<()> {
        let id = self.next_id;
        self.next_id += 1;
        let text =
            format!("call {id} {}", "about a hundred bytes of text, as tools get ".repeat(2));
        self.echo(id, &text)
    }

    /// The same with this text, which stands as it is in JSON.
    pub(super) fn call_with(&mut self, text: &str) -> anyhow::Result<()> {
        let id = self.next_id;
        self.next_id += 1;
        self.echo(id, &format!("call {id} {text}"))
    }

    fn echo(&mut self, id: u64, text: &str) -> anyhow::Result<()> {
        let params = format!(r#"{{"name":"echo","arguments":{{"text":"{text}"}}}}"#);
        let request =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#);
        let answer = self.post(&request)?;
        let is_good = answer.status == 200
            && answer.body.contains(&format!(r#""id":{id}"#))
            && answer.body.contains(&format!("call {id} "))
            && !answer.body.contains(r#""isError":true"#);
        ensure!(is_good, "call {id}: {}: {}", answer.status, answer.body);
        Ok(())
    }

    fn post(&mut self, body: &str) -> anyhow::Result<Answer> {
        let session = self.session.as_ref().map_or_else(String::new, |id| {
            format!("mcp-session-id: {id}\r\nmcp-protocol-version: 2025-11-25\r\n")
        });
        let request = format!(
            "POST /mcp HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\n{session}\
             content-length: {}\r\n\r\n{body}",
            self.host,
            body.len(),
        );
        self.connection.get_mut().write_all(request.as_bytes()).context("cannot send")?;
        self.answer()
    }

    fn answer(&mut self) -> anyhow::Result<Answer> {
        let status = self.line()?;
        let status = status.split(' ').nth(1).and_then(|it| it.parse().ok());
        let mut answer =
            Answer { status: status.context("no status")?, session: None, body: String::new() };
        let (mut length, mut is_chunked) = (0, false);
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(':') else { break };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.trim().parse().context("a length")?,
                "transfer-encoding" => is_chunked = value.trim() == "chunked",
                "mcp-session-id" => answer.session = Some(value.trim().to_owned()),
                _ => {}
            }
        }
        if !is_chunked {
            answer.body = self.part(length)?;
            return Ok(answer);
        }
        loop {
            let size = self.line()?;
            let size = usize::from_str_radix(&size, 16).context("the size of a chunk")?;
            let chunk = self.part(size)?;
            self.line()?;
            if size == 0 {
                return Ok(answer);
            }
            answer.body.push_str(&chunk);
        }
    }

    fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        if self.connection.read_line(&mut line).context("cannot read")? == 0 {
            bail!("the connection was closed");
        }
        Ok(line.trim_end().to_owned())
    }

    fn part(&mut self, length: usize) -> anyhow::Result<String> {
        let mut bytes = vec![0; length];
        self.connection.read_exact(&mut bytes).context("cannot read")?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::Client;

    /// Answers three requests: initialize, its notification, and a call.
    fn server(call: &'static str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let host = listener.local_addr().expect("it is bound").to_string();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("somebody comes");
            let hello = "HTTP/1.1 200 OK\r\nMcp-Session-Id: s\r\ncontent-length: 2\r\n\r\n{}";
            for answer in [hello, "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n", call] {
                let mut bytes = [0; 4096];
                assert!(stream.read(&mut bytes).expect("a request") > 0);
                stream.write_all(answer.as_bytes()).expect("it listens");
            }
        });
        host
    }

    #[test]
    fn an_answer_in_chunks_is_read_whole() {
        let call = concat!(
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
            "6\r\ndata: \r\n17\r\n{\"id\":1,\"x\":\"call 1 ...\"\r\n0\r\n\r\n"
        );
        let mut client = Client::open(&server(call)).expect("it answers");
        assert_eq!(client.session.as_deref(), Some("s"));
        client.call().expect("it is the call's answer");
    }

    #[test]
    fn an_error_is_no_answer() {
        let call = concat!(
            "HTTP/1.1 200 OK\r\ncontent-length: 43\r\n\r\n",
            r#"{"id":1,"isError":true,"text":"call 1 ..."}"#
        );
        let mut client = Client::open(&server(call)).expect("it answers");
        assert!(client.call().is_err());
    }
}
