//! The rest of the file: history, audit, telemetry, limits, log, reload, shutdown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tidegate_core::time::Millis;

use crate::{bytes::ByteSize, duration::Duration};

/// Decisions and transitions on disk, in an SQLite database.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HistoryFile {
    /// The database file; a relative path starts at the config file's folder.
    #[schemars(example = &"tidegate.db")]
    pub file: String,
    /// For how long they are kept.
    #[serde(default = "default_keep")]
    #[schemars(example = &"168h")]
    pub keep: Duration,
}

fn default_keep() -> Duration {
    Millis::minutes(7 * 24 * 60).into()
}

/// The audit log: who used which model or tool, one JSON line each.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuditFile {
    /// The file that lines are appended to, or `stderr`; a relative path starts at the config
    /// file's folder. It is opened again at every reload, for log rotation.
    #[schemars(example = &"audit.jsonl")]
    pub file: String,
}

/// Traces and metrics to an OpenTelemetry collector. docs/operating.md says what they hold.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TelemetryFile {
    /// The collector's url. Port 4318 or a path means OTLP over HTTP, anything else OTLP over
    /// gRPC.
    #[schemars(example = &"http://127.0.0.1:4317")]
    pub otlp: String,
}

/// Bounds on what the data plane accepts and holds.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsFile {
    /// The largest request body.
    #[schemars(example = &"32MiB")]
    pub body: ByteSize,
    /// The largest request head.
    #[schemars(example = &"64KiB")]
    pub headers: ByteSize,
    /// Client connections at once.
    #[schemars(example = 10_000)]
    pub connections: u32,
    /// How much of a stream is held back before its first content.
    #[schemars(example = &"4MiB")]
    pub hold: ByteSize,
    /// How much of an answer that does not stream is held back before it is released.
    #[schemars(example = &"1MiB")]
    pub answer: ByteSize,
    /// The largest request to `/mcp`, if `body` is not smaller; a larger one is refused with 413.
    #[schemars(example = &"4MiB")]
    pub mcp_body: ByteSize,
    /// The largest message of an MCP server; a larger answer fails its own call only.
    #[schemars(example = &"16MiB")]
    pub mcp_answer: ByteSize,
}

impl Default for LimitsFile {
    fn default() -> Self {
        Self {
            body: ByteSize(32 << 20),
            headers: ByteSize(64 << 10),
            connections: 10_000,
            hold: ByteSize(4 << 20),
            answer: ByteSize(1 << 20),
            mcp_body: ByteSize(4 << 20),
            mcp_answer: ByteSize(16 << 20),
        }
    }
}

/// What is logged, and how.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LogFile {
    /// The form of the lines, those at the start included.
    #[schemars(example = &"json")]
    pub format: LogFormat,
    /// How much.
    #[schemars(example = &"debug")]
    pub level: LogLevel,
    /// Whether every request of both listeners gets a line at level `info`.
    #[schemars(example = true)]
    pub access: bool,
}

/// The form of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// Lines for humans.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// How much is logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    /// Somebody has to act.
    Error,
    /// Degraded, but serving.
    Warn,
    /// What an operator wants to know.
    #[default]
    Info,
    /// Also every request.
    Debug,
    /// Also every attempt of a request.
    Trace,
}

/// How the file is read again while running.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ReloadFile {
    /// How long the file has to stand still before a change is read.
    #[schemars(example = &"300ms")]
    pub debounce: Duration,
}

impl Default for ReloadFile {
    fn default() -> Self {
        Self { debounce: Millis(300).into() }
    }
}

/// How the gateway ends.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ShutdownFile {
    /// How long requests in flight may go on.
    #[schemars(example = &"30s")]
    pub drain: Duration,
}

impl Default for ShutdownFile {
    fn default() -> Self {
        Self { drain: Millis::seconds(30).into() }
    }
}
