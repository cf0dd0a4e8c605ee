//! A bridge between a test and a small gateway that follows a script, over real sockets.

mod ends;
mod lines;
mod sessions;
mod stateless;

use std::rc::Rc;

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use tidegate_runtime::task;
use tokio::sync::{mpsc, watch};

use super::{ClientRouter, pipes::Out, serve, wire::Wire};
use crate::{
    guest::Gate,
    http::tests::bed::{Piece, Reply, Seen, Server},
    stdio::lines::Line,
};

/// A client, its bridge, and the gateway behind it.
struct Bed {
    server: Rc<Server>,
    lines: Option<mpsc::Sender<Line>>,
    heard: mpsc::Receiver<Bytes>,
    stop: watch::Sender<bool>,
}

impl Bed {
    async fn with(script: impl Fn(&Seen) -> Reply + 'static) -> Self {
        let server = Server::start(script).await;
        let url = server.file().url.expect("it has one");
        Self::at(&url, server)
    }

    fn at(url: &str, server: Rc<Server>) -> Self {
        let gate = Gate::new(url, Some("k3y")).expect("a usable url");
        let (out, heard) = mpsc::channel(4);
        let (lines, input) = mpsc::channel(4);
        let (stop, stopped) = watch::channel(false);
        let router = ClientRouter::new(Rc::new(Wire::new(&gate, url)), Out::to(out));
        task::spawn("bridge of a test", async move {
            serve(&router, input, stopped).await;
            drop(router);
        });
        Self { server, lines: Some(lines), heard, stop }
    }

    /// The client writes a line.
    async fn write(&self, line: &str) {
        let lines = self.lines.as_ref().expect("its input is open");
        lines.send(Line::Whole(line.to_owned().into())).await.expect("the bridge reads");
    }

    async fn say(&self, message: Value) {
        self.write(&message.to_string()).await;
    }

    async fn ask(&self, id: impl Into<Value>, method: &str) {
        self.say(json!({"jsonrpc": "2.0", "id": id.into(), "method": method})).await;
    }

    /// What the client reads next.
    async fn hear(&mut self) -> Value {
        let line = self.heard.recv().await.expect("the bridge is there");
        assert!(!line.contains(&b'\n'), "one line");
        serde_json::from_slice(&line).expect("JSON")
    }

    /// Opens a session.
    async fn open(&mut self) {
        self.say(hello()).await;
        assert_eq!(self.hear().await["result"]["protocolVersion"], "2025-11-25");
        self.say(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    }

    /// The client closes its input.
    fn close_input(&mut self) {
        self.lines = None;
    }

    /// Waits for the end; nothing more is said.
    async fn over(&mut self) {
        assert_eq!(self.heard.recv().await, None);
    }
}

fn hello() -> Value {
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {"roots": {}},
        "clientInfo": {"name": "router", "version": "1"}});
    json!({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": params})
}

fn answer(seen: &Seen, text: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": seen.body["id"], "result": {"text": text}})
}

fn error(id: Value, code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

/// What every gateway does; `None` for the requests that a test is about.
fn usual(session: &str, seen: &Seen) -> Option<Reply> {
    if seen.is("initialize") {
        let capabilities = json!({"tools": {"listChanged": true}, "prompts": {}});
        let result = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities,
            "serverInfo": {"name": "tidegate", "version": "1"}});
        let said = json!({"jsonrpc": "2.0", "id": seen.body["id"], "result": result});
        return Some(Reply::json(&said).with("mcp-session-id", session));
    }
    match seen.method {
        Method::GET => Some(Reply::events(vec![Piece::Hang])),
        Method::DELETE => Some(Reply::status(200, "")),
        _ if seen.body.get("id").is_none() => Some(Reply::status(202, "")),
        _ => None,
    }
}
