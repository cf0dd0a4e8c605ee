//! Gateways to stand tests on: a few words of YAML around scripted providers.
//!
//! Providers are called `a`, `b`, `c` … in the order given, each with the target `m`; the route is
//! `r`. Probes are off, since they would be calls that a test did not make.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tidegate_config::{secret::FixedEnvironment, source::Source};
use tidegate_fakes::fake::{FakeServer, Script, Step};
use tidegate_server::server::{Server, Start};

use crate::client::{Answer, Client, PATIENCE};

/// What a test wants to differ. Everything is a piece of YAML in flow style.
pub struct Setup<'a> {
    /// The url of each provider.
    pub urls: Vec<String>,
    /// The api of all providers.
    pub api: &'a str,
    /// The route's tiers.
    pub tiers: &'a str,
    /// Further keys of every provider.
    pub provider: &'a str,
    /// Further keys of the route.
    pub route: &'a str,
    /// Keys of `health`.
    pub health: &'a str,
    /// Further top-level keys, in block style.
    pub top: &'a str,
    /// Variables that secrets refer to.
    pub variables: &'a [(&'a str, &'a str)],
}

impl<'a> Setup<'a> {
    /// All providers speak OpenAI; the first is tier 0, the second tier 1 and so on.
    pub fn of(fakes: &[&FakeServer]) -> Self {
        let tiers = match fakes.len() {
            0 | 1 => "[[a/m]]",
            2 => "[[a/m], [b/m]]",
            _ => "[[a/m], [b/m], [c/m]]",
        };
        Self {
            urls: fakes.iter().map(|fake| fake.url()).collect(),
            api: "openai",
            tiers,
            provider: "",
            route: "",
            health: "",
            top: "",
            variables: &[],
        }
    }

    pub fn yaml(&self) -> String {
        let Self { api, tiers, provider, route, health, top, .. } = self;
        let base = if *api == "openai" { "/v1" } else { "" };
        let line = |(url, name): (&String, char)| {
            format!("  {name}: {{api: {api}, url: '{url}{base}', {provider}}}\n")
        };
        let providers: String = self.urls.iter().zip('a'..='z').map(line).collect();
        format!(
            "listen: 127.0.0.1:0\nadmin: {{listen: '127.0.0.1:0'}}\n\
             health: {{probe: {{every: 0s}}, {health}}}\n\
             providers:\n{providers}routes:\n  r: {{tiers: {tiers}, {route}}}\n{top}\n"
        )
    }

    pub fn start(&self) -> Gate {
        Gate::start(&self.yaml(), self.variables)
    }
}

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
}

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

/// A provider that answers well.
pub fn good() -> FakeServer {
    FakeServer::start(Script::default())
}

/// A provider that does the same with every call.
pub fn always(step: Step) -> FakeServer {
    FakeServer::start(Script::always(step))
}

/// How many calls a provider has received.
pub fn hits(fake: &FakeServer) -> u64 {
    fake.counts().seen
}

/// Waits for something that another thread is about to do; fails if it does not.
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = now() + PATIENCE;
    while !is_so() {
        assert!(now() < until, "it never came about: {what}");
        pause(Duration::from_millis(2));
    }
}

/// Whether the tests that take minutes are wanted.
pub fn is_long() -> bool {
    std::env::var_os("TIDEGATE_LONG").is_some_and(|it| it == "1")
}

/// What this process has in memory, in KiB.
pub fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|text| text.parse().ok()).unwrap_or_default()
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
