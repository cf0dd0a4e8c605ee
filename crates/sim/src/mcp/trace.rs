//! The trace of an MCP scenario: everything a run gave, as a value.
//!
//! It is what `--json` prints, key by key (its schema is checked in as
//! `docs/sim-mcp.schema.json`), and what the graph and the table are drawn from. Maps are in the
//! order of the servers.

use std::sync::Arc;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Serialize;

pub use super::file::ErrorWord;
use crate::sequence::trace::{BreakerWord, HealthWord, Verdict};

/// A run of an MCP scenario.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct McpTrace {
    /// The scenario's name.
    pub scenario: String,
    /// `session` or `live`.
    pub visibility: &'static str,
    /// The seed of the run.
    pub seed: u64,
    /// The servers of the file, in its order.
    pub servers: Vec<Arc<str>>,
    /// What happened, in order.
    pub steps: Vec<McpStep>,
    /// The state of each server's breaker at the end.
    pub final_breakers: IndexMap<Arc<str>, BreakerWord>,
    /// The health of each server at the end.
    pub final_health: IndexMap<Arc<str>, HealthWord>,
    /// What was counted, by server.
    pub totals: IndexMap<Arc<str>, Totals>,
    /// How often each session was told that its tools have changed.
    pub list_changed: IndexMap<String, u64>,
    /// What became of the expectations.
    pub expect: Verdict,
}

/// One step of the program.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct McpStep {
    /// What was done: `open`, `call`, `crash`, ...
    pub step: &'static str,
    /// To what: a session and a tool, a server, a span of time; as it was written.
    pub what: String,
    /// When it had ended, in milliseconds.
    pub at_ms: u64,
    /// How each call ended.
    pub calls: Vec<CallTrace>,
    /// What the session sees or finds, if it looked.
    pub tools: Option<Vec<String>>,
    /// Whether the first of them is likely to be what was looked for, if something was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub good_match: Option<bool>,
    /// Sessions that were told meanwhile that their tools have changed.
    pub told: Vec<String>,
    /// The keepalives of the step, of each server that had any or whose keepalive is disabled.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub keepalives: IndexMap<Arc<str>, StepKeepalives>,
    /// The state of each server's breaker afterwards.
    pub breaker_after: IndexMap<Arc<str>, BreakerWord>,
    /// The health of each server afterwards.
    pub health_after: IndexMap<Arc<str>, HealthWord>,
}

/// How one call ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct CallTrace {
    /// The server, or group of servers, that has the tool, if one has.
    pub server: Option<Arc<str>>,
    /// The members that were asked, in order; only of a group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<AttemptTrace>,
    /// How it failed; none: it was answered.
    pub error: Option<ErrorWord>,
    /// Why it failed, in the words of the message.
    pub cause: Option<String>,
    /// When the client may come back, in milliseconds, if that is known.
    pub retry_after_ms: Option<u64>,
    /// How often it reached the server.
    pub delivered: u32,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
    /// Its client was asked something, and has not answered yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asked: bool,
}

/// One attempt of a call to a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AttemptTrace {
    /// The member that was asked.
    pub server: Arc<str>,
    /// Why it could not answer; none: it did.
    pub cause: Option<String>,
}

/// What was counted of one server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Totals {
    /// Tool calls that reached it.
    pub requests: u64,
    /// Connections to it that were lost and made again.
    pub reinitialised: u64,
    /// Its keepalives.
    pub keepalive: KeepaliveTotals,
}

/// The keepalives of one server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct KeepaliveTotals {
    /// Sent ones.
    pub attempts: u64,
    /// Answered ones.
    pub successes: u64,
    /// Failed ones, those that an open breaker refused included.
    pub failures: u64,
    /// How often they disabled themselves.
    pub auto_disabled: u64,
}

/// The keepalives of one server in one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct StepKeepalives {
    /// Sent in this step.
    pub attempts: u64,
    /// Answered in this step.
    pub successes: u64,
    /// Failed in this step, those that an open breaker refused included.
    pub failures: u64,
    /// Connections whose keepalive is disabled after the step.
    pub disabled: u64,
}

impl KeepaliveTotals {
    /// What was added since an earlier count, with the connections that are disabled now.
    pub(super) const fn since(self, earlier: Self, disabled: u64) -> StepKeepalives {
        StepKeepalives {
            attempts: self.attempts.saturating_sub(earlier.attempts),
            successes: self.successes.saturating_sub(earlier.successes),
            failures: self.failures.saturating_sub(earlier.failures),
            disabled,
        }
    }
}

/// The JSON Schema of `--json`, as it is checked in.
#[must_use]
pub fn schema_text() -> String {
    let schema = schemars::generate::SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<McpTrace>();
    format!("{:#}\n", schema.as_value())
}
