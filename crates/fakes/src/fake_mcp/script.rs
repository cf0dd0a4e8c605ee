//! What a fake MCP server is told to be.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::tool::{Tool, ToolAct};

/// What a fake MCP server is. `McpScript::default()` has one tool, `echo`, and no bad habit.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct McpScript {
    /// The name it introduces itself with.
    pub name: String,
    /// The revisions it speaks, the best first.
    pub versions: Vec<String>,
    /// What it tells the model about itself.
    pub instructions: Option<String>,
    /// Its tools.
    pub tools: Vec<Tool>,
    /// Its resources.
    pub resources: Vec<Resource>,
    /// Its resource templates: `file:///{path}`.
    pub templates: Vec<String>,
    /// Its prompts.
    pub prompts: Vec<Prompt>,
    /// What it completes an argument to, by the argument's name.
    pub completions: BTreeMap<String, Vec<String>>,
    /// Entries in one page of a list; 0: all in one.
    pub page: usize,
    /// Which of the protocol's eras it speaks.
    pub era: Era,
    /// How long clients of the stateless era may keep its lists and resources.
    pub ttl_ms: u64,
    /// Who may keep them: `public` or `private`.
    pub cache_scope: String,
    /// How it speaks over HTTP, in the era of sessions.
    pub transport: Transport,
    /// How it opens a conversation.
    pub opening: Opening,
    /// The HTTP status that `server/discover` alone is refused with; none: it is answered.
    pub discover_status: Option<u16>,
    /// How it answers a ping.
    pub ping: Ping,
    /// The `authorization` header it wants; any other is answered with 401.
    pub authorization: Option<String>,
    /// Whether it gives out session ids.
    pub has_sessions: bool,
    /// How it answers a session it does not know.
    pub lost: Lost,
    /// Whether it answers requests with one JSON body each instead of a stream of events.
    pub answers_json: bool,
    /// Whether a stream begins with an empty event that has an id, and can be resumed.
    pub primes: bool,
    /// Whether it has a stream that belongs to no request; otherwise 405.
    pub has_get_stream: bool,
    /// Log messages sent on that stream as soon as the client has introduced itself.
    pub flood: u64,
    /// Whether it dies and comes back by itself.
    pub outage: Option<Outage>,
    /// What it does as a child process.
    pub stdio: StdioHabits,
    /// How many received messages are kept for reading.
    pub record: usize,
}

impl Default for McpScript {
    fn default() -> Self {
        Self {
            name: "fake".to_owned(),
            versions: ["2025-11-25", "2025-06-18", "2025-03-26"].map(str::to_owned).to_vec(),
            instructions: None,
            tools: vec![Tool::new("echo", ToolAct::Echo)],
            resources: Vec::new(),
            templates: Vec::new(),
            prompts: Vec::new(),
            completions: BTreeMap::new(),
            page: 0,
            era: Era::Sessions,
            ttl_ms: 60_000,
            cache_scope: "public".to_owned(),
            transport: Transport::Streamable,
            opening: Opening::Answer,
            discover_status: None,
            ping: Ping::Answer,
            authorization: None,
            has_sessions: true,
            lost: Lost::NotFound,
            answers_json: false,
            primes: false,
            has_get_stream: true,
            flood: 0,
            outage: None,
            stdio: StdioHabits::default(),
            record: 10_000,
        }
    }
}

/// A resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Resource {
    /// Its address.
    pub uri: String,
    /// What it holds.
    pub text: String,
}

/// A prompt; it says its name and its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Prompt {
    /// Its name.
    pub name: String,
    /// The names of its arguments, all required.
    pub arguments: Vec<String>,
}

/// Which of the protocol's eras a server speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Era {
    /// `initialize`, then requests of a session.
    #[default]
    Sessions,
    /// 2026-07-28: every request says for itself who asks.
    Stateless,
    /// Each client as it asks.
    Both,
}

/// How a server of the session era speaks over HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// Every request is a POST that is answered.
    #[default]
    Streamable,
    /// One GET carries everything the server says (2024-11-05); `versions` says which revision.
    Sse,
}

/// How a conversation is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Opening {
    /// At once.
    #[default]
    Answer,
    /// After so many milliseconds.
    Slow(u64),
    /// Never: the request is taken and nothing is said.
    Hang,
    /// With this HTTP status. (stdio: with a JSON-RPC error.)
    Status(u16),
    /// With something that is not JSON.
    Garbage,
    /// By closing the connection. (stdio: by exiting.)
    Close,
}

/// How a ping is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ping {
    /// Well.
    #[default]
    Answer,
    /// Not at all.
    Hang,
    /// With an error.
    Error,
    /// With the error of a server that does not know the method.
    Unknown,
    /// With this HTTP status and no message. (Elsewhere: with an error.)
    Status(u16),
}

/// How an unknown session is answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lost {
    /// 404, as the protocol says.
    #[default]
    NotFound,
    /// 400 `No valid session ID provided`, as some servers do.
    BadRequest,
    /// 200 with the JSON-RPC error -32001, as others do.
    RpcError,
}

/// A server that dies and comes back, over and over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outage {
    /// How long it is there.
    pub up_ms: u64,
    /// How long it is gone.
    pub down_ms: u64,
}

/// What it does as a child process, beside talking.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StdioHabits {
    /// Lines on stdout before anything else: not all servers keep it clean.
    pub garbage: u64,
    /// Lines of 100 bytes on stderr before anything else.
    pub stderr_lines: u64,
    /// Whether it goes on writing to stderr for as long as it lives.
    pub floods_stderr: bool,
    /// It exits after so many milliseconds; 0: at once.
    pub exits_after_ms: Option<u64>,
    /// Whether it stays when its stdin ends: only a signal ends it.
    pub ignores_eof: bool,
}

impl McpScript {
    /// A well-behaved server with these tools.
    #[must_use]
    pub fn of(tools: Vec<Tool>) -> Self {
        Self { tools, ..Self::default() }
    }

    /// A well-behaved server with a great many tools: `tool_00000` and so on.
    #[must_use]
    pub fn with_many(count: usize) -> Self {
        let tool = |number| Tool::new(&format!("tool_{number:05}"), ToolAct::Echo);
        Self::of((0..count).map(tool).collect())
    }

    /// The name it introduces itself with.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = name.to_owned();
        self
    }

    /// A server of the stateless era.
    #[must_use]
    pub fn stateless(mut self) -> Self {
        self.era = Era::Stateless;
        self
    }

    /// A server of the first revision, over one stream of events.
    #[must_use]
    pub fn over_sse(mut self) -> Self {
        self.transport = Transport::Sse;
        self.versions = vec!["2024-11-05".to_owned()];
        self
    }

    /// With a resource.
    #[must_use]
    pub fn resource(mut self, uri: &str, text: &str) -> Self {
        self.resources.push(Resource { uri: uri.to_owned(), text: text.to_owned() });
        self
    }

    /// With a prompt.
    #[must_use]
    pub fn prompt(mut self, name: &str, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(|it| (*it).to_owned()).collect();
        self.prompts.push(Prompt { name: name.to_owned(), arguments });
        self
    }

    /// Understands a script written as JSON.
    ///
    /// # Errors
    /// A lowercase fragment that says what is wrong and where.
    pub fn from_json(text: &[u8]) -> Result<Self, String> {
        let script: Self = serde_json::from_slice(text)
            .map_err(|error| format!("the script cannot be understood: {error}"))?;
        let acts = script.tools.iter().flat_map(|tool| tool.acts.iter().map(move |it| (tool, it)));
        for (tool, act) in acts {
            let ToolAct::Status { status, retry_after } = act else { continue };
            let is_sendable =
                retry_after.as_deref().is_none_or(|it| ::http::HeaderValue::try_from(it).is_ok());
            if !(200..=599).contains(status) || !is_sendable {
                return Err(format!("`{}`: this status cannot be sent as HTTP", tool.name));
            }
        }
        if script.discover_status.is_some_and(|status| !(200..=599).contains(&status)) {
            return Err("`discover_status`: write a final status, from 200 to 599".to_owned());
        }
        match script.opening {
            Opening::Status(status) if !(200..=599).contains(&status) => {
                Err(format!("`opening`: `{status}` is no final status: write one from 200 to 599"))
            }
            _ => Ok(script),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_read_from_json() {
        let text = br#"{"name": "quay", "page": 2, "opening": {"slow": 30000},
            "tools": [{"name": "move", "acts": ["cut_after", {"text": "done"}],
                       "hints": {"read_only": true}}],
            "era": "both", "transport": "sse",
            "outage": {"up_ms": 40000, "down_ms": 20000}, "stdio": {"garbage": 3}}"#;
        let script = McpScript::from_json(text).expect("it is sound");
        assert_eq!(script.opening, Opening::Slow(30_000));
        let tool =
            Tool::new("move", ToolAct::CutAfter).then(ToolAct::Text("done".to_owned())).read_only();
        assert_eq!(script.tools, [tool]);
        assert_eq!(script.stdio.garbage, 3);
        assert_eq!((script.era, script.transport), (Era::Both, Transport::Sse));
    }

    #[test]
    fn a_bad_script_is_refused_with_the_place_of_the_mistake() {
        let cases = [
            (r#"{"tool": []}"#, "unknown field `tool`"),
            (r#"{"tools": [{"acts": ["explode"]}]}"#, "unknown variant `explode`"),
            (r#"{"opening": {"status": 99}}"#, "`opening`: `99` is no final status"),
            (
                r#"{"tools": [{"name": "t", "acts": [{"status": {"status": 42}}]}]}"#,
                "`t`: this status cannot be sent",
            ),
            ("", "EOF"),
        ];
        for (text, words) in cases {
            let said = McpScript::from_json(text.as_bytes()).expect_err(text);
            assert!(said.contains(words), "{text}: {said}");
        }
    }
}
