//! Gateways to stand tests on: a few words of YAML around scripted MCP servers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tidegate_config::{secret::FixedEnvironment, source::Source};
use tidegate_fakes::fake_mcp::FakeMcpServer;
use tidegate_server::server::{Server, Start};

use crate::client::{Client, Hello};
use crate::wire::{Ask, Exchange, PATIENCE};

/// What a test wants to differ. Everything is a piece of YAML.
#[derive(Clone, Debug)]
pub struct Setup<'a> {
    /// Name and keys of each server, in flow style.
    pub servers: Vec<(&'a str, String)>,
    /// Further keys of `mcp`, in flow style.
    pub mcp: &'a str,
    /// Keys of `health`, in flow style.
    pub health: &'a str,
    /// Further top-level keys, in block style.
    pub top: &'a str,
    /// Variables that secrets refer to.
    pub variables: &'a [(&'a str, &'a str)],
}

impl<'a> Setup<'a> {
    /// Servers by url.
    pub fn of(servers: &[(&'a str, &FakeMcpServer)]) -> Self {
        let keys = |(name, fake): &(&'a str, &FakeMcpServer)| (*name, url(fake, ""));
        Self {
            servers: servers.iter().map(keys).collect(),
            mcp: "",
            health: "",
            top: "",
            variables: &[],
        }
    }

    /// One more server, with keys in flow style.
    pub fn and(mut self, name: &'a str, keys: String) -> Self {
        self.servers.push((name, keys));
        self
    }

    pub fn yaml(&self) -> String {
        let Self { servers, mcp, health, top, .. } = self;
        let servers: Vec<String> =
            servers.iter().map(|(name, keys)| format!("{name}: {{{keys}}}")).collect();
        format!(
            "listen: 127.0.0.1:0\nadmin: {{listen: '127.0.0.1:0'}}\n\
             health: {{probe: {{every: 0s}}, {health}}}\n\
             mcp: {{{mcp} servers: {{{}}}}}\n{top}\n",
            servers.join(", ")
        )
    }

    pub fn start(&self) -> Gate {
        Gate::start(&self.yaml(), self.variables)
    }
}

/// The keys of a server that is reached by url, with further ones in flow style.
pub fn url(fake: &FakeMcpServer, more: &str) -> String {
    format!("url: '{}', {more}", fake.url())
}

/// A running gateway.
pub struct Gate {
    pub server: Server,
}

impl Gate {
    pub fn start(yaml: &str, variables: &[(&str, &str)]) -> Self {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let variables = variables.iter().map(owned).collect();
        let server = Server::start(Start {
            source: Source::new("test.yaml", yaml),
            path: None,
            environment: Arc::new(FixedEnvironment { variables, files: Vec::new() }),
            threads: 2,
        });
        match server {
            Ok(server) => Self { server },
            Err(error) => panic!("the gateway does not start: {error:?}\n{yaml}"),
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Opens a session without capabilities.
    pub fn open(&self) -> Client {
        Client::open(self.address())
    }

    /// The same, under a name that servers see.
    pub fn named(&self, name: &str) -> Client {
        Client::named(self.address(), name)
    }

    pub fn open_as(&self, hello: &Hello<'_>) -> Client {
        Client::open_as(self.address(), hello)
    }

    /// What `/v1/health` says of a server.
    pub fn health(&self, server: &str) -> Value {
        get(self.address(), "/v1/health").json()["backends"][format!("mcp:{server}")].clone()
    }

    /// The value of a metric, by its name and labels as they are written; 0 if there is none.
    pub fn metric(&self, series: &str) -> f64 {
        let text = get(self.server.admin_address(), "/metrics").text();
        let value = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        value.and_then(|value| value.trim().parse().ok()).unwrap_or_default()
    }

    pub fn reload(&self, yaml: &str) {
        let source = Source::new("test.yaml", yaml);
        drop(self.server.reload(&source).unwrap_or_else(|error| panic!("{error:?}\n{yaml}")));
    }
}

pub fn get(address: SocketAddr, path: &str) -> Exchange {
    let ask = Ask { verb: "GET", path, headers: String::new(), body: b"" };
    Exchange::begin(address, &ask).expect("an answer comes")
}

/// Waits for something that another thread is about to do; fails if it does not.
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = now() + PATIENCE;
    while !is_so() {
        assert!(now() < until, "it never came about: {what}");
        pause(Duration::from_millis(5));
    }
}

/// Gives other threads time.
pub fn pause(time: Duration) {
    #[expect(clippy::disallowed_methods, reason = "other threads need the time, not this one")]
    std::thread::sleep(time);
}

/// The moment; tests of limits on waiting measure how long a client waited.
pub fn now() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "how long a client waits is what is tested")]
    Instant::now()
}

/// Milliseconds, for short.
pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// How many messages of a method (or GET, DELETE) a client sent to a server.
pub fn count(fake: &FakeMcpServer, client: &str, method: &str) -> usize {
    fake.sent_by(client).iter().filter(|it| *it == method).count()
}

/// Asserts that a tool call failed because of a server, and for which reason.
#[track_caller]
pub fn assert_unavailable(result: &Value, server: &str, code: &str) {
    assert_eq!(result["isError"], true, "{result}");
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    assert!(text.starts_with(&format!("backend \"{server}\" unavailable: ")), "{result}");
    let told = &result["structuredContent"];
    assert_eq!((&told["code"], &told["backend"]), (&code.into(), &server.into()), "{result}");
    assert!(told.get("retry_after_ms").is_some(), "{result}");
}

/// Asserts the same of a JSON-RPC answer.
#[track_caller]
pub fn assert_error(answer: &Value, server: &str, code: &str) {
    let error = &answer["error"];
    let text = error["message"].as_str().unwrap_or_default();
    assert!(text.starts_with(&format!("backend \"{server}\" unavailable: ")), "{answer}");
    let told = &error["data"];
    assert_eq!((&told["code"], &told["backend"]), (&code.into(), &server.into()), "{answer}");
}
