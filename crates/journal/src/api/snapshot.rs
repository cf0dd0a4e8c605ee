//! `GET /api/snapshot`: the state of everything, and the figures of the last fifteen minutes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::events::{ActionView, ReloadView};

/// The snapshot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SnapshotView {
    /// When, in milliseconds since the gateway's start.
    pub at: u64,
    /// When.
    pub at_unix_ms: u64,
    /// The last event that it includes.
    pub seq: u64,
    /// The version of the program.
    pub version: String,
    /// A name that is new at each start.
    pub instance: String,
    /// When the gateway started.
    pub started_unix_ms: u64,
    /// The span that figures are over.
    pub window_ms: u64,
    /// `healthy`, `degraded` or `unhealthy`.
    pub status: String,
    /// The config that serves.
    pub config: ConfigView,
    /// The last reload, taken or refused.
    pub last_reload: Option<ReloadView>,
    /// The situation in a sentence.
    pub verdict: VerdictView,
    /// The figures of the gateway as a whole.
    pub totals: TotalsView,
    /// Pins that are kept.
    pub sessions: usize,
    /// Sessions that moved.
    pub session_moves: SessionMoves,
    /// Targets and MCP servers.
    pub backends: Vec<BackendView>,
    /// Providers' hosts.
    pub endpoints: Vec<Value>,
    /// Keys that something stands against.
    pub keys: Vec<Value>,
    /// Routes with their tiers.
    pub routes: Vec<RouteView>,
    /// MCP.
    pub mcp: McpView,
    /// Who called.
    pub callers: Vec<CallerView>,
    /// The record itself.
    pub journal: JournalView,
}

/// A config.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigView {
    /// The start of a hash of its text.
    pub sha: String,
    /// Its file; null for the built-in demo.
    pub file: Option<String>,
}

/// The situation in a sentence, and what it is made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VerdictView {
    /// `ok`, `degraded` (nobody hurt), `hurt` (clients got no whole answer) or `down` (a route has
    /// nothing left).
    pub level: String,
    /// In a few words.
    pub headline: String,
    /// In whole sentences.
    pub sentence: String,
    /// Requests whose client got no whole answer through no fault of its own.
    pub client_failures: u64,
    /// Requests.
    pub requests: u64,
    /// Requests per second, over the last minute.
    pub rps: f64,
    /// Half of the requests took at most this.
    pub p50_ms: Option<u64>,
    /// 95 of 100 requests took at most this.
    pub p95_ms: Option<u64>,
    /// Backends that are not healthy.
    pub broken: Vec<String>,
    /// Sessions that moved because something stood against their target.
    pub sessions_moved: u64,
    /// When something that stands against a backend ends first.
    pub next_re_entry_unix_ms: Option<u64>,
}

/// The figures of the gateway as a whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TotalsView {
    /// LLM requests.
    pub requests: u64,
    /// With a whole answer.
    pub ok: u64,
    /// At fault themselves.
    pub client_faults: u64,
    /// Without a whole answer, through no fault of their own.
    pub failed: u64,
    /// Whose client left.
    pub cancelled: u64,
    /// Refused before they were routed.
    pub refused: u64,
    /// Attempts beyond the first.
    pub hops: u64,
    /// MCP calls.
    pub mcp_calls: u64,
    /// MCP calls that no server answered.
    pub mcp_failed: u64,
    /// Requests and calls per second, over the last minute.
    pub rps: f64,
    /// Half of the requests took at most this.
    pub p50_ms: Option<u64>,
    /// 95 of 100 requests took at most this.
    pub p95_ms: Option<u64>,
}

/// Sessions that moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionMoves {
    /// All.
    pub moved: u64,
    /// Because their pin's time was over.
    pub expired: u64,
    /// Because something stood against their target.
    pub declined: u64,
}

/// A target or an MCP server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BackendView {
    /// `provider/model` or `mcp:NAME`.
    pub id: String,
    /// `closed`, `half_open` or `open`: the worse of its own breaker and its endpoint's.
    pub state: String,
    /// No breaker is open, no window is active, no exclusion stands.
    pub healthy: bool,
    /// What stands against it, as a sum of weights.
    pub rank: u8,
    /// Failures since the last success.
    pub consecutive_failures: u32,
    /// What went wrong last, until a success.
    pub last_error: Option<Value>,
    /// When an outcome was last heard of.
    pub last_check: Option<u64>,
    /// The same.
    pub last_check_unix_ms: Option<u64>,
    /// The latest of its re-entry times.
    pub deadline: Option<u64>,
    /// The same; null if it never comes.
    pub deadline_unix_ms: Option<u64>,
    /// Why it is not healthy: a word, or `{"mark": word}` for a window or an exclusion.
    pub reason: Option<Value>,
    /// Until when an operator has switched it off.
    pub switched_off: Option<Value>,
    /// The generation of its breaker.
    pub generation: u64,
    /// Attempts in flight.
    pub in_flight: u32,
    /// When its breaker last closed.
    pub closed_since: Option<u64>,
    /// The same.
    pub closed_since_unix_ms: Option<u64>,
    /// `target` or `server`.
    pub kind: String,
    /// The provider of a target.
    pub provider: Option<String>,
    /// The model of a target.
    pub model: Option<String>,
    /// `active`, `unconfigured`, `drained` or `held`.
    pub standing: String,
    /// Why it is not active.
    pub standing_reason: Option<String>,
    /// Until when.
    pub standing_until_unix_ms: Option<u64>,
    /// Why it is not healthy, for people.
    pub why: Option<String>,
    /// Why it is not healthy, as a word.
    pub why_code: Option<String>,
    /// When it got into this state.
    pub since_unix_ms: u64,
    /// When something that stands against it ends first.
    pub re_entry_unix_ms: Option<u64>,
    /// What heals it, in words.
    pub needs: Option<String>,
    /// What an operator did to it that still holds.
    pub action: Option<ActionView>,
    /// Its figures.
    pub stats: BackendStats,
}

/// The figures of one backend.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BackendStats {
    /// Attempts that have ended.
    pub attempts: u64,
    /// Attempts that failed; faults of clients and cancellations are none.
    pub failures: u64,
    /// Attempts that gave a whole answer.
    pub answers: u64,
    /// Of answers and failures, how many were answers.
    pub ok_percent: Option<f64>,
    /// Attempts per second, over the last minute.
    pub rps: f64,
    /// Half of the answers took at most this.
    pub p50_ms: Option<u64>,
    /// 95 of 100 answers took at most this.
    pub p95_ms: Option<u64>,
    /// The same of the time to first content.
    pub first_content_p50_ms: Option<u64>,
    /// The same of the time to first content.
    pub first_content_p95_ms: Option<u64>,
    /// Its share of all answers.
    pub share_percent: f64,
}

/// A route.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RouteView {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub about: Option<String>,
    /// Further names that it answers to.
    #[serde(rename = "match")]
    pub matches: Vec<String>,
    /// How one target of a tier is picked.
    pub pick: String,
    /// Whether it takes requests without a model.
    pub is_default: bool,
    /// Where its next request goes; which of several is up to the tactic.
    pub resolves_to: Vec<String>,
    /// The lowest rank present; null without candidates.
    pub rank: Option<u8>,
    /// Its targets, by tier.
    pub tiers: Vec<Vec<MemberView>>,
    /// Its figures.
    pub stats: RouteStats,
}

/// A target in a route.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemberView {
    /// The target.
    pub target: String,
    /// Its state.
    pub state: Option<String>,
    /// Whether nothing stands against it.
    pub healthy: Option<bool>,
    /// Why it is not healthy, as a word.
    pub reason: Option<String>,
    /// `active`, `unconfigured`, `drained` or `held`.
    pub standing: Option<String>,
    /// Why it is not active.
    pub standing_reason: Option<String>,
    /// Until when, in seconds.
    pub standing_until_unix: Option<u64>,
    /// Its share of the route's answers.
    pub share_percent: f64,
    /// Attempts for this route.
    pub attempts: u64,
    /// Failures for this route.
    pub failures: u64,
    /// Attempts per second, over the last minute.
    pub rps: f64,
}

/// The figures of a target in a route.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemberStats {
    /// The target.
    pub target: String,
    /// Its share of the route's answers.
    pub share_percent: f64,
    /// Attempts for this route.
    pub attempts: u64,
    /// Failures for this route.
    pub failures: u64,
    /// Attempts per second, over the last minute.
    pub rps: f64,
}

/// The figures of a route.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RouteStats {
    /// Requests.
    pub requests: u64,
    /// With a whole answer.
    pub ok: u64,
    /// Without one, through no fault of their own.
    pub failed: u64,
    /// At fault themselves.
    pub client_faults: u64,
    /// Whose client left.
    pub cancelled: u64,
    /// Attempts beyond the first.
    pub hops: u64,
    /// Requests with an attempt at a rank above 0.
    pub relaxed: u64,
    /// Requests per second, over the last minute.
    pub rps: f64,
    /// Half of the requests took at most this.
    pub p50_ms: Option<u64>,
    /// 95 of 100 requests took at most this.
    pub p95_ms: Option<u64>,
    /// Sessions that are pinned.
    pub sessions: u64,
    /// Sessions that moved.
    pub moved: u64,
}

/// MCP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct McpView {
    /// Open sessions of clients.
    pub sessions: u64,
    /// The servers.
    pub servers: Vec<ServerView>,
    /// Groups of equivalent servers.
    pub groups: Vec<GroupView>,
    /// The model of `mcp.search.model`: `loading`, `encoding`, `ready` or `failed`; null without
    /// one.
    #[serde(default)]
    pub search_model: Option<String>,
}

/// An MCP server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerView {
    /// Its name.
    pub name: String,
    /// Its id among the backends.
    pub backend: String,
    /// Its state.
    pub state: String,
    /// Whether nothing stands against it.
    pub healthy: bool,
    /// `http` or `stdio`.
    pub transport: String,
    /// Its tools, once they are known.
    pub tools: Option<u64>,
    /// Calls that have ended.
    pub calls: u64,
    /// Calls that failed.
    pub failures: u64,
    /// Half of the calls took at most this.
    pub p50_ms: Option<u64>,
    /// 95 of 100 calls took at most this.
    pub p95_ms: Option<u64>,
    /// Calls in flight.
    pub in_flight: u32,
}

/// A group of equivalent servers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GroupView {
    /// The name that clients know.
    pub name: String,
    /// Its servers, in tier order.
    pub members: Vec<String>,
}

/// A caller.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallerView {
    /// Its name; empty where no keys are configured.
    pub name: String,
    /// LLM requests.
    pub requests: u64,
    /// Those without a whole answer, through no fault of their own.
    pub failed: u64,
    /// MCP calls.
    pub mcp_calls: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// When it last asked for something.
    pub last_unix_ms: u64,
}

/// The record itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JournalView {
    /// Decisions in memory.
    pub decisions: usize,
    /// Bytes of everything in memory.
    pub bytes: usize,
    /// Since when decisions in memory are complete.
    pub oldest_unix_ms: u64,
    /// Decisions that were not recorded because the journal was busy.
    pub dropped: u64,
    /// The history file.
    pub history: StoreView,
    /// The audit log.
    pub audit: StoreView,
    /// The export to an OpenTelemetry collector.
    pub telemetry: StoreView,
}

/// Where records are written to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StoreView {
    /// The file, `stderr` or the collector's url; null if it is off.
    pub to: Option<String>,
    /// `ok`, `off` or `failed`.
    pub status: String,
    /// Why it failed.
    pub why: Option<String>,
    /// Records that were not written.
    pub dropped: u64,
}
