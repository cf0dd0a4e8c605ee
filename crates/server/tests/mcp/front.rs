//! The endpoint itself: opening, versions, ending, falling back, hosts and origins.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};
use tidegate_fakes::fake_mcp::{FakeMcpServer, McpScript, Opening};
use tidegate_testkit::{
    exchange::{Ask, Exchange},
    gate::Gate,
    mcp::{Hello, McpClient, first_answer, post, text_of, usual},
    time::{PATIENCE, eventually, ms, now},
};

use crate::bed::{Setup, count};

fn bed() -> (FakeMcpServer, Gate) {
    let fake = FakeMcpServer::start(McpScript::default());
    let gate = Setup::of(&[("a", &fake)]).start();
    (fake, gate)
}

#[test]
fn initialize_is_answered_at_once_and_in_the_clients_version() {
    let (fake, gate) = bed();
    fake.change(|script| script.opening = Opening::Hang);
    for (asked, spoken) in [
        ("2025-11-25", "2025-11-25"),
        ("2025-06-18", "2025-06-18"),
        ("2025-03-26", "2025-03-26"),
        ("2024-01-01", "2025-11-25"),
        ("2099-12-31", "2025-11-25"),
    ] {
        let began = now();
        let hello = Hello { version: asked, ..Hello::default() };
        let mut exchange = McpClient::introduce(gate.address(), &hello);
        assert!(began.elapsed() < ms(3000), "{:?}", began.elapsed());
        let session = exchange.header("mcp-session-id").expect("a session").to_owned();
        assert!(session.len() >= 22 && session.bytes().all(|it| (0x21..0x7f).contains(&it)));
        let result = first_answer(&mut exchange)["result"].clone();
        assert_eq!(result["protocolVersion"], spoken, "{asked}");
        assert_eq!(result["serverInfo"]["name"], "tidegate");
        for capability in ["tools", "resources", "prompts", "logging", "completions"] {
            assert!(result["capabilities"][capability].is_object(), "{capability}: {result}");
        }
    }
}

#[test]
fn a_session_that_was_ended_is_unknown_and_its_backend_sessions_are_deleted() {
    let (fake, gate) = bed();
    let client = gate.named("one");
    assert_eq!(client.text("echo"), "{}");
    let before = fake.counts().sessions;
    assert_eq!(client.delete(), 200);
    let mut gone = client.post(&ping()).expect("an answer");
    assert_eq!(gone.status, 404);
    assert!(gone.json()["error"].is_object());
    assert_eq!(client.delete(), 404);
    eventually("the backend's session is gone", || {
        count(&fake, "one", "DELETE") == 1 && fake.counts().sessions == before - 1
    });
}

#[test]
fn an_unknown_session_is_404_and_a_missing_one_400() {
    let (_fake, gate) = bed();
    for id in ["nobody", "00000000000000000000000000000000", "../../etc"] {
        let headers = format!("{}mcp-session-id: {id}\r\n", usual());
        let exchange = post(gate.address(), &headers, &ping()).expect("an answer");
        assert_eq!(exchange.status, 404, "{id}");
        for verb in ["GET", "DELETE"] {
            let headers = format!("accept: text/event-stream\r\nmcp-session-id: {id}\r\n");
            let ask = Ask { verb, path: "/mcp", headers, body: b"" };
            let exchange = Exchange::begin(gate.address(), &ask).expect("an answer");
            assert_eq!(exchange.status, 404, "{verb} {id}");
        }
    }
    assert_eq!(post(gate.address(), &usual(), &ping()).expect("an answer").status, 400);
}

#[test]
fn a_version_that_is_not_spoken_here_is_400() {
    let (_fake, gate) = bed();
    let client = gate.open();
    for (version, status) in [("1999-01-01", 400), ("latest", 400), ("2025-06-18", 200)] {
        let headers = format!(
            "{}mcp-session-id: {}\r\nmcp-protocol-version: {version}\r\n",
            usual(),
            client.session
        );
        let exchange = post(gate.address(), &headers, &ping()).expect("an answer");
        assert_eq!(exchange.status, status, "{version}");
    }
}

#[test]
fn a_page_of_another_origin_and_a_strange_host_are_refused() {
    let (fake, gate) = bed();
    let address = gate.address();
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "page", "version": "1"}}})
    .to_string();
    let port = address.port();
    let cases = [
        ("origin: http://evil.test\r\n".to_owned(), false),
        ("origin: null\r\n".to_owned(), false),
        (format!("origin: http://evil.test:{port}\r\nhost: 127.0.0.1:{port}\r\n"), false),
        (format!("host: evil.test:{port}\r\n"), false),
        ("host: evil.test\r\n".to_owned(), false),
        (format!("origin: http://localhost:{port}\r\n"), true),
        (format!("origin: http://127.0.0.1:{port}\r\n"), true),
        (format!("host: localhost:{port}\r\n"), true),
        (String::new(), true),
    ];
    for (headers, is_allowed) in cases {
        let exchange = post(address, &format!("{headers}{}", usual()), &hello).expect("an answer");
        let expected: &[u16] = if is_allowed { &[200] } else { &[403, 421] };
        assert!(expected.contains(&exchange.status), "{headers:?}: {}", exchange.head);
    }
    let opened = fake.received_of("initialize");
    assert!(opened.iter().filter(|it| it.client.as_deref() == Some("page")).count() <= 4);
}

#[test]
fn other_methods_of_http_are_not_allowed() {
    let (_fake, gate) = bed();
    for verb in ["PUT", "PATCH"] {
        let ask = Ask { verb, path: "/mcp", headers: usual(), body: b"{}" };
        let exchange = Exchange::begin(gate.address(), &ask).expect("an answer");
        assert_eq!(exchange.status, 405, "{verb}");
    }
}

#[test]
fn the_oldest_idle_session_makes_room_and_a_busy_one_does_not() {
    use tidegate_fakes::fake_mcp::{Tool, ToolAct};
    let tools = vec![Tool::new("slow", ToolAct::Slow(1500)), Tool::new("echo", ToolAct::Echo)];
    let fake = FakeMcpServer::start(McpScript::of(tools));
    let gate = Setup { mcp: "session: {max: 2},", ..Setup::of(&[("a", &fake)]) }.start();
    let busy = gate.open();
    let call = busy.start("tools/call", json!({"name": "slow"}));
    let idle = gate.open();
    let third = gate.open();
    assert_eq!(idle.post(&ping()).expect("an answer").status, 404, "it made room");
    assert_eq!(third.text("echo"), "{}");
    assert!(call.finish()["result"].is_object(), "a call in flight is not cut");
}

#[test]
fn an_idle_session_is_reaped_and_one_with_a_call_in_flight_is_not() {
    use tidegate_fakes::fake_mcp::{Tool, ToolAct};
    let tools = vec![Tool::new("slow", ToolAct::Slow(2500)), Tool::new("echo", ToolAct::Echo)];
    let fake = FakeMcpServer::start(McpScript::of(tools));
    let gate = Setup { mcp: "session: {idle: 1s},", ..Setup::of(&[("a", &fake)]) }.start();
    let (idle, busy) = (gate.named("idle"), gate.named("busy"));
    idle.tools();
    let call = busy.start("tools/call", json!({"name": "slow"}));
    eventually("the idle one is gone", || count(&fake, "idle", "DELETE") == 1);
    assert_eq!(idle.post(&ping()).expect("an answer").status, 404);
    let answer: Value = call.finish();
    assert_eq!(answer["result"]["content"][0]["text"], "slow done");
}

fn ping() -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string()
}

/// A connection that is kept, over which one request follows another.
struct KeptConnection {
    stream: BufReader<TcpStream>,
    session: Option<String>,
}

impl KeptConnection {
    /// Sends a request; the status and the body of its answer.
    fn ask(&mut self, line: &str, body: &str) -> (u16, Value) {
        let session = self.session.iter().map(|it| format!("mcp-session-id: {it}\r\n"));
        let (headers, length) = (usual() + &session.collect::<String>(), body.len());
        let text = format!(
            "{line} HTTP/1.1\r\nhost: localhost\r\n{headers}content-length: {length}\r\n\r\n{body}"
        );
        self.stream.get_mut().write_all(text.as_bytes()).expect("the connection is kept");
        let (mut status, mut length) = (0, Some(0));
        loop {
            let line = self.line();
            match line.split_once(": ") {
                Some(("content-length", value)) => length = value.parse().ok(),
                Some(("transfer-encoding", _)) => length = None,
                Some(("mcp-session-id", value)) => self.session = Some(value.to_owned()),
                Some(_) => {}
                None if line.is_empty() => break,
                None => status = line[9..12].parse().expect("a status"),
            }
        }
        let body = match length {
            Some(length) => self.bytes(length),
            None => self.chunks(),
        };
        // Of events the last one is the answer.
        let body = String::from_utf8(body).expect("text");
        let last = body.lines().filter_map(|it| it.strip_prefix("data: ")).next_back();
        (status, serde_json::from_str(last.unwrap_or(&body)).unwrap_or_default())
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).expect("an answer");
        assert!(line.ends_with("\r\n"), "the connection was closed");
        line.trim_end().to_owned()
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes).expect("a body");
        bytes
    }

    fn chunks(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            let length = usize::from_str_radix(&self.line(), 16).expect("the length of a chunk");
            body.extend(self.bytes(length));
            assert_eq!(self.line(), "");
            if length == 0 {
                return body;
            }
        }
    }

    fn call(&mut self, id: u32) -> String {
        let params = json!({"name": "echo", "arguments": {"n": id}});
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        let (status, answer) = self.ask("POST /mcp", &call.to_string());
        assert_eq!((status, &answer["id"]), (200, &json!(id)), "{answer}");
        text_of(&answer["result"])
    }
}

#[test]
fn one_connection_carries_mcp_and_other_requests_in_turn() {
    let (fake, gate) = bed();
    let connect = || {
        let stream = TcpStream::connect(gate.address()).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        KeptConnection { stream: BufReader::new(stream), session: None }
    };
    // More than the MCP thread has seats for: what it cannot take is served as well.
    let mut clients: Vec<KeptConnection> = (0..40).map(|_| connect()).collect();
    for client in &mut clients {
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "kept", "version": "1"}});
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        assert_eq!(client.ask("POST /mcp", &hello.to_string()).0, 200);
        assert!(client.session.is_some());
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(client.ask("POST /mcp", &ready.to_string()).0, 202);
    }
    for round in 1..4 {
        for client in &mut clients {
            assert_eq!(client.call(round), format!("{{\"n\":{round}}}"));
            assert_eq!(client.ask("GET /v1/models", "").0, 200);
            assert_eq!(client.call(round + 10), format!("{{\"n\":{}}}", round + 10));
        }
    }
    assert_eq!(count(&fake, "kept", "tools/call"), 40 * 6);
    // At the drain every one of them is let go.
    let clients_end = std::thread::spawn(move || {
        clients.into_iter().all(|mut it| matches!(it.stream.read(&mut [0]), Ok(0) | Err(_)))
    });
    gate.server.stop();
    assert!(clients_end.join().expect("no panic"));
}
