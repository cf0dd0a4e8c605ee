//! A small MCP client of the session era, written from the protocol's text.
//!
//! Every request has a connection of its own, so that any number can be under way at once and a
//! test can drop one of them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    exchange::{Ask, Exchange},
    http::End,
    time::PATIENCE,
};

/// The revision most tests speak.
pub const VERSION: &str = "2025-11-25";

/// How a client introduces itself.
#[derive(Clone, Debug)]
pub struct Hello<'a> {
    pub name: &'a str,
    pub version: &'a str,
    pub capabilities: Value,
    /// Further headers of every request; each line ends with CRLF.
    pub headers: &'a str,
}

impl Default for Hello<'_> {
    fn default() -> Self {
        Self { name: "test", version: VERSION, capabilities: json!({}), headers: "" }
    }
}

/// A session.
#[derive(Debug)]
pub struct McpClient {
    address: SocketAddr,
    headers: String,
    pub session: String,
    /// What `initialize` was answered with.
    pub hello: Value,
    ids: Arc<AtomicU64>,
}

impl McpClient {
    /// Opens a session without capabilities.
    pub fn open(address: SocketAddr) -> Self {
        Self::open_as(address, &Hello::default())
    }

    /// Opens a session under a name, so that a server can tell whose requests it gets.
    pub fn named(address: SocketAddr, name: &str) -> Self {
        Self::open_as(address, &Hello { name, ..Hello::default() })
    }

    /// Opens a session.
    pub fn open_as(address: SocketAddr, hello: &Hello<'_>) -> Self {
        let mut exchange = Self::introduce(address, hello);
        exchange.must_be(200, "initialize");
        let session = exchange.header("mcp-session-id").expect("a session has an id").to_owned();
        let answer = first_answer(&mut exchange);
        assert!(answer["result"].is_object(), "initialize: {answer}");
        let version = answer["result"]["protocolVersion"].as_str().unwrap_or_default();
        let mut headers = hello.headers.to_owned();
        if version >= "2025-06-18" {
            headers.push_str(&format!("mcp-protocol-version: {version}\r\n"));
        }
        let ids = Arc::new(AtomicU64::new(1));
        let client = Self { address, headers, session, hello: answer["result"].clone(), ids };
        client.notify("notifications/initialized", Value::Null);
        client
    }

    /// The same session, asked for at another replica.
    pub fn at(&self, address: SocketAddr) -> Self {
        let (headers, session) = (self.headers.clone(), self.session.clone());
        let (hello, ids) = (self.hello.clone(), Arc::clone(&self.ids));
        Self { address, headers, session, hello, ids }
    }

    /// Sends `initialize` and nothing else.
    pub fn introduce(address: SocketAddr, hello: &Hello<'_>) -> Exchange {
        let params = json!({"protocolVersion": hello.version, "capabilities": hello.capabilities,
            "clientInfo": {"name": hello.name, "version": "1"}});
        let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let headers = format!("{}{}", hello.headers, usual());
        post(address, &headers, &body.to_string()).expect("initialize is answered")
    }

    /// Sends a request and returns at the head of its answer.
    pub fn start(&self, method: &str, params: Value) -> Pending {
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        self.start_as(json!(id), method, params)
    }

    /// The same, with an id of the test's choice.
    pub fn start_as(&self, id: Value, method: &str, params: Value) -> Pending {
        let mut body = json!({"jsonrpc": "2.0", "id": id, "method": method});
        if !params.is_null() {
            body["params"] = params;
        }
        let exchange = self.post(&body.to_string()).expect("a request is answered");
        Pending { exchange, id }
    }

    /// Sends a request and waits for its answer: the whole message.
    pub fn request(&self, method: &str, params: Value) -> Value {
        self.start(method, params).finish()
    }

    /// The result of a request that must succeed.
    pub fn result(&self, method: &str, params: Value) -> Value {
        let answer = self.request(method, params);
        assert!(answer["result"].is_object(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// The result of a tool call.
    pub fn call(&self, tool: &str, arguments: Value) -> Value {
        self.result("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// The text of a tool call that must go well.
    pub fn text(&self, tool: &str) -> String {
        let result = self.call(tool, json!({}));
        assert_ne!(result["isError"], true, "{tool}: {result}");
        text_of(&result)
    }

    /// The names of all tools, pages followed.
    pub fn tools(&self) -> Vec<String> {
        let name = |tool: &Value| tool["name"].as_str().unwrap_or_default().to_owned();
        self.list("tools/list", "tools").iter().map(name).collect()
    }

    /// A list, pages followed.
    pub fn list(&self, method: &str, key: &str) -> Vec<Value> {
        let mut all = Vec::new();
        let mut params = Value::Null;
        loop {
            let page = self.result(method, params);
            all.extend(page[key].as_array().cloned().unwrap_or_default());
            let Some(cursor) = page["nextCursor"].as_str() else { return all };
            params = json!({"cursor": cursor});
        }
    }

    /// Sends a notification.
    pub fn notify(&self, method: &str, params: Value) {
        let mut body = json!({"jsonrpc": "2.0", "method": method});
        if !params.is_null() {
            body["params"] = params;
        }
        let mut exchange = self.post(&body.to_string()).expect("a notification is taken");
        exchange.must_be(202, method);
    }

    /// Answers a request of the server's.
    pub fn respond(&self, request: &Value, result: Value) {
        let body = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
        let mut exchange = self.post(&body.to_string()).expect("an answer is taken");
        exchange.must_be(202, "an answer");
    }

    /// Opens the stream that belongs to no request.
    pub fn listen(&self) -> Exchange {
        let mut exchange = self.get("").expect("the stream opens");
        exchange.must_be(200, "GET");
        exchange
    }

    /// Goes on after an event.
    pub fn resume(&self, event: &str) -> Exchange {
        self.get(&format!("last-event-id: {event}\r\n")).expect("the stream opens")
    }

    /// Ends the session; the status.
    pub fn delete(&self) -> u16 {
        let headers = self.headers("");
        let ask = Ask { verb: "DELETE", path: "/mcp", headers, body: b"" };
        Exchange::begin(self.address, &ask).expect("it is answered").status
    }

    /// Sends this body in the session.
    pub fn post(&self, body: &str) -> Result<Exchange, End> {
        self.post_within(body, PATIENCE)
    }

    pub fn post_within(&self, body: &str, patience: Duration) -> Result<Exchange, End> {
        let headers = self.headers(&usual());
        let ask = Ask { verb: "POST", path: "/mcp", headers, body: body.as_bytes() };
        Exchange::begin_within(self.address, &ask, patience)
    }

    fn get(&self, more: &str) -> Result<Exchange, End> {
        let headers = self.headers(&format!("accept: text/event-stream\r\n{more}"));
        Exchange::begin(self.address, &Ask { verb: "GET", path: "/mcp", headers, body: b"" })
    }

    fn headers(&self, more: &str) -> String {
        format!("{}mcp-session-id: {}\r\n{more}", self.headers, self.session)
    }
}

/// A request under way.
#[derive(Debug)]
pub struct Pending {
    pub exchange: Exchange,
    pub id: Value,
}

impl Pending {
    /// The next message on its stream.
    pub fn next_message(&mut self) -> Result<Value, End> {
        if self.exchange.is_stream() { self.exchange.message() } else { Ok(self.exchange.json()) }
    }

    /// Everything up to and with the answer.
    pub fn all(&mut self) -> Vec<Value> {
        let mut all = Vec::new();
        loop {
            let message = self.next_message();
            let message = message.unwrap_or_else(|end| panic!("no answer ({end:?}): {all:?}"));
            let is_answer = message["method"].is_null() && message["id"] == self.id;
            all.push(message);
            if is_answer {
                return all;
            }
        }
    }

    /// The answer.
    pub fn finish(mut self) -> Value {
        self.all().pop().expect("the last is the answer")
    }
}

/// The headers of every POST.
pub fn usual() -> String {
    "content-type: application/json\r\naccept: application/json, text/event-stream\r\n".to_owned()
}

/// A POST to the endpoint, whatever it says.
pub fn post(address: SocketAddr, headers: &str, body: &str) -> Result<Exchange, End> {
    let headers = headers.to_owned();
    let ask = Ask { verb: "POST", path: "/mcp", headers, body: body.as_bytes() };
    Exchange::begin(address, &ask)
}

/// The first message of an answer, in a stream or alone.
pub fn first_answer(exchange: &mut Exchange) -> Value {
    if exchange.is_stream() {
        exchange.message().expect("a message comes")
    } else {
        exchange.json()
    }
}

/// The first text in a tool's result.
pub fn text_of(result: &Value) -> String {
    result["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}
