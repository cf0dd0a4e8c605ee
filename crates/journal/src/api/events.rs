//! The events of `GET /api/events`, one type for the data of each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    decision::DecisionShort,
    snapshot::{
        BackendStats, MemberStats, RouteStats, SessionMoves, SnapshotView, TotalsView, VerdictView,
    },
};

/// Data of the events of the stream, by the event's name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "it stands for a document and is not kept")]
pub enum EventData {
    /// Everything, at the start of every connection.
    Snapshot(SnapshotView),
    /// A backend changed state.
    Transition(TransitionView),
    /// A request that is more than a plain answer of the first choice.
    Decision(DecisionShort),
    /// An operator acted.
    Action(ActionView),
    /// The config was read again.
    Reload(ReloadView),
    /// A request was refused for the sake of security.
    Security(SecurityView),
    /// A route's requests go elsewhere.
    Moved(MovedView),
    /// Events are missing.
    Gap(GapView),
    /// Figures, at most once a second.
    Tick(TickView),
}

/// A change of state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TransitionView {
    /// The event's number.
    pub seq: u64,
    /// When, in milliseconds since the gateway's start.
    pub at: u64,
    /// When.
    pub at_unix_ms: u64,
    /// Whose.
    pub backend: String,
    /// `backend`, `endpoint` or `key`.
    pub scope: String,
    /// The state before: `closed`, `open`, `half_open`, `usable`, `window`, `excluded`, `off`.
    pub from: String,
    /// The state after.
    pub to: String,
    /// Why, as a word.
    pub reason: String,
    /// Why, with the evidence.
    pub detail: String,
    /// When it ends by itself, in milliseconds since the gateway's start.
    pub until: Option<u64>,
    /// When it ends by itself.
    pub until_unix_ms: Option<u64>,
    /// `degraded`, `news` or `detail`.
    pub weight: String,
    /// The breaker's generation from then on.
    pub generation: Option<u64>,
    /// The outcome that tipped it.
    pub evidence: Option<String>,
    /// Its HTTP status.
    pub status: Option<u16>,
    /// The key, where it is about a target together with one of its keys.
    pub key: Option<String>,
}

/// What an operator did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ActionView {
    /// The event's number.
    pub seq: u64,
    /// When, in milliseconds since the gateway's start.
    pub at: u64,
    /// When.
    pub at_unix_ms: u64,
    /// `drain`, `hold`, `probe`, `reset` or `resume`.
    pub deed: String,
    /// To which backend.
    pub backend: String,
    /// Why, in the operator's words.
    pub reason: String,
    /// For how long.
    pub ttl_ms: Option<u64>,
    /// Until when.
    pub until_unix_ms: Option<u64>,
    /// What a probe brought: `passed` or `failed`.
    pub result: Option<String>,
    /// What admitted it: `token` or `cookie`.
    pub by: String,
}

/// A reload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReloadView {
    /// The event's number.
    pub seq: u64,
    /// When, in milliseconds since the gateway's start.
    pub at: u64,
    /// When.
    pub at_unix_ms: u64,
    /// `signal`, `file` or `api`.
    pub by: String,
    /// Whether the new config serves now.
    pub ok: bool,
    /// The config that serves now.
    pub sha: String,
    /// The keys that differ from before.
    pub changed: Vec<String>,
    /// Why it was refused.
    pub problems: Vec<String>,
}

/// A refusal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SecurityView {
    /// The event's number.
    pub seq: u64,
    /// When, in milliseconds since the gateway's start.
    pub at: u64,
    /// When.
    pub at_unix_ms: u64,
    /// What it was, such as `unknown_key`, `bad_host` or `route_not_allowed`.
    pub event: String,
    /// The caller, where a key was known.
    pub caller: String,
    /// The path, as a class.
    pub path: String,
    /// The route that was asked for.
    pub route: String,
    /// The request.
    pub request_id: String,
    /// How many more of the kind were not told singly before this one.
    pub repeated: u64,
}

/// A route's requests go elsewhere.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MovedView {
    /// The event's number.
    pub seq: u64,
    /// When, in milliseconds since the gateway's start.
    pub at: u64,
    /// When.
    pub at_unix_ms: u64,
    /// Which route.
    pub route: String,
    /// Where they went before.
    pub from: Vec<String>,
    /// Where they go now.
    pub to: Vec<String>,
}

/// Events are missing between the last one and the snapshot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GapView {
    /// Since when there is nothing missing.
    pub since_unix_ms: u64,
    /// `too_old` or `other_instance`.
    pub reason: String,
}

/// Figures, at most once a second: only backends and routes that changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TickView {
    /// When.
    pub at_unix_ms: u64,
    /// The last event.
    pub seq: u64,
    /// As in the snapshot.
    pub status: String,
    /// As in the snapshot.
    pub verdict: VerdictView,
    /// As in the snapshot.
    pub totals: TotalsView,
    /// Notable decisions that were not told singly, since the gateway's start.
    pub notable_omitted: u64,
    /// Pins that are kept.
    pub sessions: usize,
    /// As in the snapshot.
    pub session_moves: SessionMoves,
    /// Those that changed.
    pub backends: Vec<BackendTick>,
    /// Those that changed.
    pub routes: Vec<RouteTick>,
    /// MCP as a whole.
    pub mcp: McpTick,
}

/// The figures of one backend.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BackendTick {
    /// Its id.
    pub id: String,
    /// Its state.
    pub state: String,
    /// Whether nothing stands against it.
    pub healthy: bool,
    /// Attempts in flight.
    pub in_flight: u32,
    /// When something that stands against it ends first.
    pub re_entry_unix_ms: Option<u64>,
    /// Its figures.
    pub stats: BackendStats,
}

/// The figures of one route.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RouteTick {
    /// Its name.
    pub name: String,
    /// Where its next request goes.
    pub resolves_to: Vec<String>,
    /// Its figures.
    pub stats: RouteStats,
    /// Those of its targets, by tier.
    pub tiers: Vec<Vec<MemberStats>>,
}

/// The figures of MCP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct McpTick {
    /// Open sessions of clients.
    pub sessions: u64,
}
