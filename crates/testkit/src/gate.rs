//! A running gateway inside the test's own process.

use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::Value;
use tidegate_config::{secret::FixedEnvironment, source::Source};
use tidegate_server::server::{Server, Start};

use crate::{
    http::{Answer, Client},
    mcp::{Hello, McpClient},
};

/// A running gateway.
pub struct Gate {
    pub server: Server,
}

impl Gate {
    pub fn start(yaml: &str, variables: &[(&str, &str)]) -> Self {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let variables = variables.iter().map(owned).collect();
        Self::start_in(yaml, FixedEnvironment { variables, files: Vec::new() }, 2)
    }

    /// One of a single thread, so that what its requests do has one order.
    pub fn start_on_one_thread(yaml: &str) -> Self {
        let (variables, files) = (Vec::new(), Vec::new());
        Self::start_in(yaml, FixedEnvironment { variables, files }, 1)
    }

    /// One of a single thread, so that connections can be counted, which can read one file.
    pub fn start_with_file(yaml: &str, (path, text): (&str, &str)) -> Self {
        let files = vec![(path.into(), text.to_owned())];
        Self::start_in(yaml, FixedEnvironment { variables: Vec::new(), files }, 1)
    }

    fn start_in(yaml: &str, environment: FixedEnvironment, threads: usize) -> Self {
        let server = Server::start(Start {
            source: Source::new("test.yaml", yaml),
            path: None,
            environment: Arc::new(environment),
            threads,
        });
        match server {
            Ok(server) => Self { server },
            Err(error) => panic!("the gateway does not start: {error:?}\n{yaml}"),
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    pub fn client(&self) -> Client {
        Client::connect(self.address())
    }

    pub fn post(&self, path: &str, body: &str) -> Answer {
        self.client().post(path, body)
    }

    pub fn post_with(&self, path: &str, headers: &str, body: &str) -> Answer {
        let mut client = self.client();
        client.send("POST", path, headers, body.as_bytes());
        client.answer().expect("an answer comes")
    }

    /// A chat request for the route that does not stream.
    pub fn chat(&self) -> Answer {
        self.post("/v1/chat/completions", &chat("r", false))
    }

    /// A chat request for the route that streams.
    pub fn stream(&self) -> Answer {
        self.post("/v1/chat/completions", &chat("r", true))
    }

    pub fn get(&self, path: &str) -> Answer {
        get(self.address(), path)
    }

    pub fn admin(&self, path: &str) -> Answer {
        get(self.server.admin_address(), path)
    }

    /// What `/v1/health` says of a target.
    pub fn health(&self, target: &str) -> Value {
        self.get("/v1/health").json()["backends"][target].clone()
    }

    pub fn reload(&self, yaml: &str) {
        let source = Source::new("test.yaml", yaml);
        drop(self.server.reload(&source).unwrap_or_else(|error| panic!("{error:?}\n{yaml}")));
    }

    /// Opens an MCP session without capabilities.
    pub fn open(&self) -> McpClient {
        McpClient::open(self.address())
    }

    /// The same, under a name that servers see.
    pub fn named(&self, name: &str) -> McpClient {
        McpClient::named(self.address(), name)
    }

    pub fn open_as(&self, hello: &Hello<'_>) -> McpClient {
        McpClient::open_as(self.address(), hello)
    }

    /// What `/v1/health` says of an MCP server.
    pub fn server_health(&self, server: &str) -> Value {
        self.health(&format!("mcp:{server}"))
    }

    /// The value of a metric, by its name and labels as they are written; 0 if there is none.
    pub fn metric(&self, series: &str) -> f64 {
        let text = self.admin("/metrics").text();
        let value = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        value.and_then(|value| value.trim().parse().ok()).unwrap_or_default()
    }
}

/// A `GET` on a connection of its own.
pub fn get(address: SocketAddr, path: &str) -> Answer {
    let mut client = Client::connect(address);
    client.send("GET", path, "", b"");
    client.answer().expect("an answer comes")
}

/// A chat request.
pub fn chat(model: &str, is_stream: bool) -> String {
    serde_json::json!({"model": model, "stream": is_stream,
        "messages": [{"role": "user", "content": "good morning"}]})
    .to_string()
}
