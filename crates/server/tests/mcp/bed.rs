//! Gateways to stand tests on: a few words of YAML around scripted MCP servers.

use serde_json::Value;
use tidegate_fakes::fake_mcp::FakeMcpServer;
use tidegate_testkit::gate::Gate;

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
