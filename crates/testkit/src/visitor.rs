//! A small MCP client of the stateless era, written from the protocol's text: every request says
//! for itself who asks.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    exchange::{Ask, Exchange},
    http::End,
    mcp::{post, usual},
};

/// The revision.
pub const VERSION: &str = "2026-07-28";

/// Somebody without a session.
#[derive(Clone, Debug)]
pub struct Visitor {
    pub address: SocketAddr,
    pub capabilities: Value,
    /// Further headers of every request; each line ends with CRLF.
    pub headers: &'static str,
}

impl Visitor {
    /// One that can be asked nothing.
    pub fn of(address: SocketAddr) -> Self {
        Self { address, capabilities: json!({}), headers: "" }
    }

    /// One that can be asked these things.
    pub fn able(address: SocketAddr, capabilities: Value) -> Self {
        Self { capabilities, ..Self::of(address) }
    }

    /// The params of a request with everything that the era asks for.
    pub fn params(&self, more: Value) -> Value {
        let mut params = if more.is_null() { json!({}) } else { more };
        let given = params["_meta"].take();
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": VERSION,
            "io.modelcontextprotocol/clientCapabilities": self.capabilities,
            "io.modelcontextprotocol/clientInfo": {"name": "visitor", "version": "1"},
        });
        for (key, value) in given.as_object().into_iter().flatten() {
            params["_meta"][key] = value.clone();
        }
        params
    }

    fn heads(&self, method: &str, params: &Value) -> String {
        let name = params["name"].as_str().or_else(|| params["uri"].as_str());
        let name = name.map(|name| format!("mcp-name: {name}\r\n")).unwrap_or_default();
        let (usual, own) = (usual(), self.headers);
        format!("{usual}{own}mcp-protocol-version: {VERSION}\r\nmcp-method: {method}\r\n{name}")
    }

    /// Sends a request as it should be; returns at the head of its answer.
    pub fn ask(&self, method: &str, more: Value) -> Exchange {
        self.ask_within(method, more, crate::time::PATIENCE).expect("an answer")
    }

    /// The same, with less patience.
    pub fn ask_within(
        &self,
        method: &str,
        more: Value,
        patience: Duration,
    ) -> Result<Exchange, End> {
        let params = self.params(more);
        let headers = self.heads(method, &params);
        let body = json!({"jsonrpc": "2.0", "id": "v1", "method": method, "params": params});
        let body = body.to_string();
        let ask = Ask { verb: "POST", path: "/mcp", headers, body: body.as_bytes() };
        Exchange::begin_within(self.address, &ask, patience)
    }

    /// Sends a body with these headers beside the usual ones.
    pub fn send(&self, headers: &str, body: &Value) -> Exchange {
        let headers = format!("{}{}{headers}", usual(), self.headers);
        post(self.address, &headers, &body.to_string()).expect("an answer")
    }

    /// Everything that comes of a request, the answer last.
    pub fn all(&self, method: &str, more: Value) -> Vec<Value> {
        all(&mut self.ask(method, more))
    }

    /// The answer to a request.
    pub fn answer(&self, method: &str, more: Value) -> Value {
        self.all(method, more).pop().expect("an answer")
    }

    /// The result of a request that must succeed.
    pub fn result(&self, method: &str, more: Value) -> Value {
        let answer = self.answer(method, more);
        assert_eq!(answer["id"], "v1", "{method}: {answer}");
        assert!(answer["result"].is_object(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// The result of a tool call.
    pub fn call(&self, tool: &str) -> Value {
        self.result("tools/call", json!({"name": tool, "arguments": {}}))
    }

    /// The names of all tools.
    pub fn tools(&self) -> Vec<String> {
        let tools = self.result("tools/list", json!({}))["tools"].clone();
        let name = |tool: &Value| tool["name"].as_str().expect("a name").to_owned();
        tools.as_array().expect("a list").iter().map(name).collect()
    }

    /// A stream of what was asked for; its first message was read.
    pub fn listen(&self, wish: Value) -> Exchange {
        let mut stream = self.ask("subscriptions/listen", json!({"notifications": wish}));
        let first = stream.message().expect("a message");
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{first}");
        assert_eq!(first["params"]["notifications"], wish);
        stream
    }
}

/// The messages of an answer.
pub fn all(exchange: &mut Exchange) -> Vec<Value> {
    if !exchange.is_stream() {
        return vec![exchange.json()];
    }
    std::iter::from_fn(|| exchange.message().ok()).collect()
}
