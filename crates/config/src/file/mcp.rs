//! `mcp`: servers, and how their tools are offered.

use std::path::Path;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tidegate_core::time::Millis;

use super::health::HealthFile;
use crate::{duration::Duration, percent::Percent, secret::SecretRef};

/// MCP servers, and how their tools are offered.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct McpFile {
    /// How tools of several servers get their names.
    #[schemars(example = &"priority")]
    pub naming: Naming,
    /// What `tools/list` shows.
    #[schemars(example = &"search")]
    pub tools: ToolList,
    /// Tools that are listed also with `tools: search`.
    #[schemars(example = json!(["github_get_issue"]))]
    pub pinned_tools: Vec<String>,
    /// Whether a session's tools follow health while it lasts.
    #[schemars(example = &"live")]
    pub visibility: Visibility,
    /// Bounds on client sessions.
    pub session: SessionFile,
    /// How long one call may take.
    #[schemars(example = &"60s")]
    pub call_timeout: Duration,
    /// How long connecting to a server may take.
    #[schemars(example = &"5s")]
    pub connect_timeout: Duration,
    /// How long a session waits for a known server that is still connecting.
    #[schemars(example = &"500ms")]
    pub connect_wait: Duration,
    /// A server's lists that are older than this are fetched again when a session uses them.
    #[schemars(example = &"5m")]
    pub fresh_for: Duration,
    /// A stateless server that answered within this time is not asked again when a session opens.
    #[schemars(example = &"5s")]
    pub answered_within: Duration,
    /// Servers by name.
    #[schemars(example = json!({"github": {"url": "https://example.com/mcp"}}))]
    pub servers: IndexMap<String, ServerFile>,
    /// Child processes at once, of all stdio servers.
    #[schemars(example = 32)]
    pub max_children: u32,
    /// Groups of equivalent servers, in tier order; clients see one server by the group's name.
    #[schemars(example = json!({"search": ["search-a", "search-b"]}))]
    pub replicas: IndexMap<String, Vec<String>>,
    /// How `find_tool` searches.
    pub search: SearchFile,
}

impl Default for McpFile {
    fn default() -> Self {
        Self {
            naming: Naming::default(),
            tools: ToolList::default(),
            pinned_tools: Vec::new(),
            visibility: Visibility::default(),
            session: SessionFile::default(),
            call_timeout: Millis::seconds(60).into(),
            connect_timeout: Millis::seconds(5).into(),
            connect_wait: Millis(500).into(),
            fresh_for: Millis::minutes(5).into(),
            answered_within: Millis::seconds(5).into(),
            servers: IndexMap::new(),
            max_children: 32,
            replicas: IndexMap::new(),
            search: SearchFile::default(),
        }
    }
}

/// What clients see as one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenServer<'a> {
    /// Its name: a server's own, or that of a group.
    pub name: &'a str,
    /// The servers behind it, in tier order; of a server that stands alone, itself.
    pub members: Vec<&'a str>,
}

impl McpFile {
    /// What clients see, in the order of the file; a group stands where the first of its members
    /// is written. Names that nobody has are left out.
    #[must_use]
    pub fn seen(&self) -> Vec<SeenServer<'_>> {
        SeenServer::all(self.servers.keys().map(String::as_str), &self.replicas)
    }

    /// The group that a server is a member of, if it is of one.
    #[must_use]
    pub fn group_of(&self, server: &str) -> Option<&str> {
        let mut groups = self.replicas.iter();
        let group = groups.find(|(_, members)| members.iter().any(|it| it == server));
        group.map(|(name, _)| name.as_str())
    }
}

impl<'a> SeenServer<'a> {
    /// What clients see of these servers with these groups, in the order of the servers; a group
    /// stands where the first of its members is. Names that nobody has are left out.
    #[must_use]
    pub fn all(
        servers: impl Iterator<Item = &'a str> + Clone,
        replicas: &'a IndexMap<String, Vec<String>>,
    ) -> Vec<Self> {
        let mut seen: Vec<Self> = Vec::new();
        for server in servers.clone() {
            let has_it = |members: &[String]| members.iter().any(|it| it == server);
            let Some((name, members)) = replicas.iter().find(|(_, members)| has_it(members)) else {
                seen.push(Self { name: server, members: vec![server] });
                continue;
            };
            if !seen.iter().any(|it| it.name == name) {
                let is_there = |member: &&str| servers.clone().any(|it| it == *member);
                let members = members.iter().map(String::as_str).filter(is_there).collect();
                seen.push(Self { name, members });
            }
        }
        seen
    }
}

/// How tools of several servers get their names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Naming {
    /// `server_tool`.
    #[default]
    Prefix,
    /// The tool's own name; the first server that has it wins.
    Priority,
    /// The tool's own name; conflicts are settled by `rename`, or the tools are left out.
    Manual,
}

/// What `tools/list` shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolList {
    /// Every tool.
    #[default]
    All,
    /// `find_tool`, `call_tool` and the pinned tools.
    Search,
}

/// Whether a session's tools follow health while it lasts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Visibility {
    /// Decided when the session opens.
    #[default]
    Session,
    /// Followed, with `list_changed`.
    Live,
}

/// Bounds on client sessions.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SessionFile {
    /// A session ends after this long without a request.
    #[schemars(example = &"30m")]
    pub idle: Duration,
    /// Sessions at once.
    #[schemars(example = 10_000)]
    pub max: u32,
}

impl Default for SessionFile {
    fn default() -> Self {
        Self { idle: Millis::minutes(30).into(), max: 10_000 }
    }
}

/// One MCP server: reached by `url`, or started by `command`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ServerFile {
    /// Its streamable HTTP endpoint; a query is sent with every request. Absent: it is started by
    /// `command`.
    #[schemars(example = &"https://example.com/mcp")]
    pub url: Option<String>,
    /// The program to start, and its arguments. Absent: it is reached by `url`.
    #[schemars(example = json!(["npx", "-y", "@modelcontextprotocol/server-filesystem", "/data"]))]
    pub command: Option<Vec<String>>,
    /// A server inside the process, for demos and tests, in place of `url` and `command`.
    #[schemars(example = &"steady")]
    pub fake: Option<FakeServer>,
    /// Headers added to every request; `env:NAME` and `file:path` work here too.
    #[schemars(example = json!({"authorization": "env:GITHUB_MCP_AUTH"}))]
    pub headers: IndexMap<String, SecretRef>,
    /// Its environment, besides PATH, HOME, USER, LOGNAME, SHELL, LANG, LC_ALL, TZ and TMPDIR.
    #[schemars(example = json!({"GITHUB_TOKEN": "env:GITHUB_TOKEN"}))]
    pub env: IndexMap<String, SecretRef>,
    /// Whether one process serves all sessions, instead of one each.
    #[schemars(example = true)]
    pub shared: bool,
    /// Calls at once; others wait for their turn.
    #[schemars(example = 128, range(min = 1))]
    pub max_calls: u32,
    /// How an idle connection is kept alive.
    pub keepalive: KeepaliveFile,
    /// Tools that are offered (globs). Absent: all.
    #[schemars(example = json!(["repo_*"]))]
    pub include: Option<Vec<String>>,
    /// Tools that are not offered (globs), after `include`.
    #[schemars(example = json!(["*_delete"]))]
    pub exclude: Vec<String>,
    /// Other names for tools, by their own name.
    #[schemars(example = json!({"get": "get_issue"}))]
    pub rename: IndexMap<String, String>,
    /// Whether a host name may resolve to a private address.
    #[schemars(example = true)]
    pub allow_private: bool,
    /// Extra root certificates, as `file:path`. Absent: the system's only.
    #[schemars(example = &"file:corp.pem")]
    pub ca: Option<SecretRef>,
    /// Whether other replicas hear what this one learns of it (with `state`). A program is its
    /// replica's own in any case.
    #[schemars(example = false)]
    pub fleet: bool,
    /// How its health is judged, where it differs from the top level.
    pub health: HealthFile,
}

impl Default for ServerFile {
    fn default() -> Self {
        Self {
            url: Default::default(),
            command: Default::default(),
            fake: Default::default(),
            headers: Default::default(),
            env: Default::default(),
            shared: Default::default(),
            max_calls: 128,
            keepalive: Default::default(),
            include: Default::default(),
            exclude: Default::default(),
            rename: Default::default(),
            allow_private: Default::default(),
            ca: Default::default(),
            fleet: true,
            health: Default::default(),
        }
    }
}

/// A server inside the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FakeServer {
    /// It is always there.
    Steady,
    /// It crashes every few minutes, and returns.
    Flaky,
}

/// How an idle connection is kept alive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct KeepaliveFile {
    /// What is sent. Absent: `ping` to a server with sessions, nothing to one without.
    #[schemars(example = &"ping")]
    pub method: Option<KeepaliveMethod>,
    /// The call to make with `method: tool`.
    pub tool: Option<ToolCallFile>,
    /// How long a connection is idle before it is sent.
    #[schemars(example = &"5m")]
    pub every: Duration,
    /// Up to this share of `every` is added or taken at random.
    #[schemars(example = &"20%")]
    pub jitter: Percent,
    /// How long an answer may take.
    #[schemars(example = &"5s")]
    pub timeout: Duration,
    /// Failures in a row after which the connection counts as lost.
    #[schemars(example = 3, range(min = 1))]
    pub failures: u32,
    /// How long nothing is sent after that.
    #[schemars(example = &"30m")]
    pub quiet: Duration,
}

impl Default for KeepaliveFile {
    fn default() -> Self {
        Self {
            method: None,
            tool: None,
            every: Millis::minutes(5).into(),
            jitter: Percent::of(0.2),
            timeout: Millis::seconds(5).into(),
            failures: 3,
            quiet: Millis::minutes(30).into(),
        }
    }
}

/// What a keepalive sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KeepaliveMethod {
    /// The protocol's ping.
    Ping,
    /// A tool call.
    Tool,
    /// Nothing.
    None,
}

/// A tool call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ToolCallFile {
    /// The server's own name of the tool. Needed.
    #[schemars(example = &"get_me")]
    pub name: Option<String>,
    /// Its arguments.
    #[schemars(example = json!({"verbose": false}))]
    pub args: Map<String, Value>,
}

/// How `find_tool` searches.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SearchFile {
    /// Tools in one answer.
    #[schemars(example = 8, range(min = 1))]
    pub limit: u32,
    /// Rank by the vectors of a better model too. Absent: by the embedded model alone.
    #[schemars(example = json!({"route": "embed"}))]
    pub embeddings: Option<EmbeddingsFile>,
    /// Rank by a sentence model from a file where the ranking is not clear: an ONNX export of a
    /// BERT such as all-MiniLM-L6-v2, as `file:path`, with its `tokenizer.json` beside it. Only in
    /// builds with the feature `model`. Absent: by the embedded model alone.
    #[schemars(example = &"file:all-minilm-l6-v2/model.onnx")]
    pub model: Option<String>,
}

impl SearchFile {
    /// What a model's file is written with.
    const FILE: &str = "file:";

    /// The model's file; a relative path starts at the config file's folder. None if there is no
    /// model, or if what stands there is no file.
    #[must_use]
    pub fn model_file(&self) -> Option<&Path> {
        let path = self.model.as_deref()?.strip_prefix(Self::FILE)?;
        (!path.is_empty()).then(|| Path::new(path))
    }
}

impl Default for SearchFile {
    fn default() -> Self {
        Self { limit: 8, embeddings: None, model: None }
    }
}

/// A better model for `find_tool`; when it cannot be asked, tools are found without it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EmbeddingsFile {
    /// A route whose targets serve `/v1/embeddings`.
    #[schemars(example = &"embed")]
    pub route: String,
}
