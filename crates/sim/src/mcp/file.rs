//! The file of an MCP scenario as it is written.
//!
//! Plain types for the config crate's decoder. A step is a map with one action and, where that
//! makes sense, `after` and `expect` beside it; `check.rs` sees to that.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;
use tidegate_config::{
    duration::Duration,
    file::{HealthFile, KeepaliveFile, McpFile as ConfigMcp, Naming, Visibility},
};

use crate::sequence::trace::{BreakerWord, HealthWord};

/// Servers, a program of sessions and outages, and what is expected of it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct McpFile {
    /// The scenario's name. Absent: the file's stem.
    pub(super) scenario: Option<String>,
    /// One line for humans.
    pub(super) about: Option<String>,
    /// The servers by name, in the order of the config; at least one. All are up at the start.
    #[serde(default)]
    pub(super) servers: IndexMap<String, ServerFile>,
    /// Groups of equivalent servers, in tier order, as in the config file.
    #[serde(default)]
    pub(super) replicas: IndexMap<String, Vec<String>>,
    /// How health is judged, as in the config file.
    #[serde(default)]
    pub(super) health: HealthFile,
    /// Whether a session's tools follow health while it lasts.
    #[serde(default)]
    pub(super) visibility: Visibility,
    /// How tools of several servers get their names.
    #[serde(default)]
    pub(super) naming: Naming,
    /// How long one call may take.
    #[serde(default = "call_timeout")]
    pub(super) call_timeout: Duration,
    /// How long connecting may take.
    #[serde(default = "connect_timeout")]
    pub(super) connect_timeout: Duration,
    /// How long a session waits for a known server that is still connecting.
    #[serde(default = "connect_wait")]
    pub(super) connect_wait: Duration,
    /// How old a server's lists may become before they are fetched again.
    #[serde(default = "fresh_for")]
    pub(super) fresh_for: Duration,
    /// What happens, in order.
    #[serde(default)]
    pub(super) program: Vec<StepFile>,
    /// What has to come out.
    #[serde(default)]
    pub(super) expect: ExpectFile,
}

fn call_timeout() -> Duration {
    ConfigMcp::default().call_timeout
}

fn connect_timeout() -> Duration {
    ConfigMcp::default().connect_timeout
}

fn fresh_for() -> Duration {
    ConfigMcp::default().fresh_for
}

fn connect_wait() -> Duration {
    ConfigMcp::default().connect_wait
}

/// One server.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ServerFile {
    /// Its tools, by their own names.
    pub(super) tools: Vec<String>,
    /// Those among them that are declared idempotent.
    pub(super) idempotent: Vec<String>,
    /// Those among them that are declared read-only.
    pub(super) read_only: Vec<String>,
    /// Those among them that ask their client something before they answer.
    pub(super) asks: Vec<String>,
    /// What it speaks.
    pub(super) era: EraWord,
    /// Calls in flight; more wait for a turn. Absent: no limit.
    pub(super) max_calls: Option<usize>,
    /// How long it takes to answer `initialize`.
    pub(super) initialize: Option<Duration>,
    /// How its idle connections are kept alive; `ping` every 5 minutes by default.
    pub(super) keepalive: KeepaliveFile,
    /// How its health is judged, where it differs from the top level.
    pub(super) health: HealthFile,
}

/// What a server speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EraWord {
    /// Sessions, over streamable HTTP.
    #[default]
    Session,
    /// No sessions: the revision of 2026-07-28.
    Stateless,
    /// Sessions, over HTTP with server-sent events, the transport of the first revision.
    Sse,
}

impl EraWord {
    /// The word as files write it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Stateless => "stateless",
            Self::Sse => "sse",
        }
    }
}

/// One step: an action, and perhaps a delay or an expectation.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct StepFile {
    /// A session of this name opens and lists its tools.
    pub(super) open: Option<String>,
    /// A client without a session, of this name, comes and lists its tools. It is judged anew at
    /// each list, find and call.
    pub(super) stateless: Option<String>,
    /// A tool is called.
    pub(super) call: Option<CallFile>,
    /// The client of this session answers what a server has asked it; its call goes on.
    pub(super) answer: Option<String>,
    /// This client without a session sends its call again, with the answer to what it was asked.
    pub(super) retry: Option<String>,
    /// An operator has this server probed.
    pub(super) probe: Option<String>,
    /// This server dies: its connections break and new ones are refused.
    pub(super) crash: Option<String>,
    /// This server takes requests and answers none.
    pub(super) hang: Option<String>,
    /// This server forgets its sessions.
    pub(super) lose_session: Option<String>,
    /// A server takes longer to answer.
    pub(super) slow: Option<SlowFile>,
    /// A server has other tools from now on.
    pub(super) tools: Option<ToolsFile>,
    /// A server is deployed anew and speaks another era.
    pub(super) era: Option<EraFile>,
    /// This server is well again.
    pub(super) heal: Option<String>,
    /// Time passes.
    pub(super) advance: Option<Duration>,
    /// A session lists its tools.
    pub(super) list: Option<String>,
    /// A session searches its tools.
    pub(super) find: Option<FindFile>,
    /// A session ends.
    pub(super) close: Option<String>,
    /// The config is read again.
    pub(super) reload: Option<ReloadFile>,
    /// With what happens to a server: so much later, also in the middle of a call.
    pub(super) after: Option<Duration>,
    /// What has to come out of this step.
    pub(super) expect: Option<StepExpectFile>,
}

/// A tool call.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CallFile {
    /// Whose.
    pub(super) session: String,
    /// The tool's name, as the session sees it.
    pub(super) tool: String,
    /// How many such calls at once; every one has to meet the expectation.
    #[serde(default = "one")]
    pub(super) at_once: u32,
}

const fn one() -> u32 {
    1
}

/// A server that takes longer.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SlowFile {
    /// Which one.
    pub(super) server: String,
    /// How long every answer takes.
    pub(super) by: Duration,
}

/// Another era of a server.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EraFile {
    /// Which one.
    pub(super) server: String,
    /// What it speaks from now on.
    pub(super) is: EraWord,
}

/// Other tools of a server.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolsFile {
    /// Which one.
    pub(super) server: String,
    /// All of its tools.
    pub(super) list: Vec<String>,
}

/// A search.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FindFile {
    /// Whose.
    pub(super) session: String,
    /// Words to look for.
    pub(super) query: String,
}

/// A config that is read again.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ReloadFile {
    /// All servers of the new config. Absent: as before.
    pub(super) servers: Option<IndexMap<String, ServerFile>>,
}

/// What has to come out of one step.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct StepExpectFile {
    /// Whether the call is answered by the server.
    pub(super) ok: Option<bool>,
    /// Whether its client is asked something before it is answered.
    pub(super) asked: Option<bool>,
    /// The error instead of an answer.
    pub(super) error: Option<ErrorWord>,
    /// The server, or group, that the error names.
    pub(super) names: Option<String>,
    /// The member of a group that answers the call.
    pub(super) by: Option<String>,
    /// The cause that the error states.
    pub(super) cause: Option<String>,
    /// The tools that the session sees, or finds.
    pub(super) tools: Option<Vec<String>>,
    /// Whether the first tool found is likely to be what was looked for.
    pub(super) good_match: Option<bool>,
}

/// The error of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorWord {
    /// The call was not carried out, or may be made again.
    BackendUnavailable,
    /// The call may have been carried out.
    ResultUnknown,
    /// No server has such a tool.
    UnknownTool,
    /// A limit on what is under way at once was reached.
    Busy,
}

impl ErrorWord {
    /// The word as files and traces write it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::BackendUnavailable => "backend_unavailable",
            Self::ResultUnknown => "result_unknown",
            Self::UnknownTool => "unknown_tool",
            Self::Busy => "busy",
        }
    }
}

/// What has to come out in the end; every key is optional and every one written is checked.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ExpectFile {
    /// Breakers at the end, by server.
    pub(super) breaker: IndexMap<String, BreakerWord>,
    /// Health at the end, by server.
    pub(super) health: IndexMap<String, HealthWord>,
    /// Connections that were lost and made again, by server.
    pub(super) reinitialised: IndexMap<String, u64>,
    /// Tool calls that reached a server, by server.
    pub(super) requests: IndexMap<String, u64>,
    /// Keepalives, by server.
    pub(super) keepalive: IndexMap<String, KeepaliveExpectFile>,
    /// How often a session was told that its tools have changed, by session.
    pub(super) list_changed: IndexMap<String, u64>,
}

/// Keepalives of one server, all of its connections together.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct KeepaliveExpectFile {
    /// Sent ones.
    pub(super) attempts: Option<u64>,
    /// Answered ones.
    pub(super) successes: Option<u64>,
    /// Failed ones, those that an open breaker refused included.
    pub(super) failures: Option<u64>,
    /// How often they disabled themselves.
    pub(super) auto_disabled: Option<u64>,
}
