//! What a fake MCP server received, for tests to read, and what its client did wrong.
//!
//! Rules kept here:
//! - Bounded: the newest messages up to the script's `record`; counts go on for all of them.
//! - A breach of the protocol by the client is noted in words and served as well as it can be:
//!   the test that reads the notes fails, not the conversation.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

/// Notes kept: the first are what a test needs.
const MAX_BREACHES: usize = 100;

/// One message (or a GET or DELETE) as it was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// When, in milliseconds since the fake was made.
    pub at_ms: u64,
    /// Which connection carried it: the same number, the same connection.
    pub connection: u64,
    /// `POST`, `GET`, `DELETE`; over stdio empty.
    pub verb: String,
    /// The session it belongs to, as its client says.
    pub session: Option<String>,
    /// The name its client introduced itself with, as far as it is known.
    pub client: Option<String>,
    /// Headers in order, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The JSON-RPC method; none for an answer to a request of ours.
    pub method: Option<String>,
    /// The whole message; null where there is none.
    pub message: Value,
    /// The same as it came.
    pub text: String,
}

impl Received {
    /// The first header of this name (in lower case).
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The name in its params: of a tool or prompt.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.message["params"]["name"].as_str()
    }

    /// What its `_meta` says under a key; `protocolVersion` and its like without their prefix.
    #[must_use]
    pub fn meta(&self, key: &str) -> &Value {
        let meta = &self.message["params"]["_meta"];
        let own = &meta[key];
        if own.is_null() { &meta[format!("io.modelcontextprotocol/{key}")] } else { own }
    }

    /// The headers whose names begin with `mcp-`, in order.
    #[must_use]
    pub fn mcp_headers(&self) -> Vec<(&str, &str)> {
        let own = self.headers.iter().filter(|(name, _)| name.starts_with("mcp-"));
        own.map(|(name, value)| (name.as_str(), value.as_str())).collect()
    }

    /// The arguments in its params.
    #[must_use]
    pub fn arguments(&self) -> &Value {
        &self.message["params"]["arguments"]
    }
}

/// How much there was of what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct McpCounts {
    /// Messages received, by method.
    pub methods: BTreeMap<String, u64>,
    /// GET streams that were asked for.
    pub gets: u64,
    /// DELETE requests.
    pub deletes: u64,
    /// Connections open now.
    pub connections: u64,
    /// Connections there have been.
    pub connected: u64,
    /// Conversations open now.
    pub sessions: u64,
    /// Streams of `subscriptions/listen` open now.
    pub listening: u64,
    /// Tool calls that were carried out, by tool.
    pub deliveries: BTreeMap<String, u64>,
    /// Requests cancelled by the client while they were under way.
    pub cancelled: u64,
}

impl McpCounts {
    /// How many messages of this method came.
    #[must_use]
    pub fn of(&self, method: &str) -> u64 {
        self.methods.get(method).copied().unwrap_or_default()
    }

    /// How often this tool was carried out.
    #[must_use]
    pub fn delivered(&self, tool: &str) -> u64 {
        self.deliveries.get(tool).copied().unwrap_or_default()
    }
}

/// All that was received.
#[derive(Debug)]
pub(super) struct Record {
    most: usize,
    kept: Mutex<Recorded>,
}

#[derive(Debug, Default)]
struct Recorded {
    received: VecDeque<Received>,
    counts: McpCounts,
    /// Calls received by tool: which act is next.
    calls: BTreeMap<String, u64>,
    breaches: Vec<String>,
    /// Who opened which session; never forgotten, since sessions are lost on purpose.
    clients: BTreeMap<String, String>,
}

impl Record {
    pub(super) fn new(most: usize) -> Self {
        Self { most, kept: Mutex::default() }
    }

    pub(super) fn keep(&self, mut received: Received) {
        let mut kept = self.kept();
        let introduced = received.message["params"]["clientInfo"]["name"].as_str();
        let introduced = introduced.or_else(|| received.meta("clientInfo")["name"].as_str());
        received.client = match (&received.session, introduced) {
            (_, Some(name)) => Some(name.to_owned()),
            (Some(id), None) => kept.clients.get(id).cloned(),
            (None, None) => None,
        };
        match (received.verb.as_str(), &received.method) {
            ("GET", _) => kept.counts.gets += 1,
            ("DELETE", _) => kept.counts.deletes += 1,
            (_, Some(method)) => *kept.counts.methods.entry(method.clone()).or_default() += 1,
            (_, None) => {}
        }
        kept.received.push_back(received);
        while kept.received.len() > self.most {
            kept.received.pop_front();
        }
    }

    /// A client opened a session.
    pub(super) fn opened(&self, session: &str, hello: &Value) {
        // Whoever records nothing wants to live for long.
        if self.most == 0 {
            return;
        }
        let name = hello["params"]["clientInfo"]["name"].as_str().unwrap_or_default();
        self.kept().clients.insert(session.to_owned(), name.to_owned());
    }

    /// McpCounts a connection; its number.
    pub(super) fn connect(&self) -> u64 {
        let mut kept = self.kept();
        kept.counts.connections += 1;
        kept.counts.connected += 1;
        kept.counts.connected
    }

    pub(super) fn disconnect(&self) {
        self.kept().counts.connections -= 1;
    }

    /// The number of this call of the tool, from 0.
    pub(super) fn call(&self, tool: &str) -> u64 {
        let mut kept = self.kept();
        let calls = kept.calls.entry(tool.to_owned()).or_default();
        *calls += 1;
        *calls - 1
    }

    /// How many calls of the tool there have been.
    pub(super) fn calls(&self, tool: &str) -> u64 {
        self.kept().calls.get(tool).copied().unwrap_or_default()
    }

    pub(super) fn delivered(&self, tool: &str) {
        *self.kept().counts.deliveries.entry(tool.to_owned()).or_default() += 1;
    }

    pub(super) fn cancelled(&self) {
        self.kept().counts.cancelled += 1;
    }

    /// Notes what the client did wrong.
    pub(super) fn breach(&self, what: impl Into<String>) {
        let mut kept = self.kept();
        if kept.breaches.len() < MAX_BREACHES {
            kept.breaches.push(what.into());
        }
    }

    pub(super) fn received(&self) -> Vec<Received> {
        self.kept().received.iter().cloned().collect()
    }

    pub(super) fn forget(&self) {
        self.kept().received.clear();
    }

    pub(super) fn counts(&self) -> McpCounts {
        self.kept().counts.clone()
    }

    pub(super) fn breaches(&self) -> Vec<String> {
        self.kept().breaches.clone()
    }

    fn kept(&self) -> MutexGuard<'_, Recorded> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
