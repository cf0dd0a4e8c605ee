//! Decisions: in a list, and one in full.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `GET /api/decisions`: newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DecisionList {
    /// The decisions that fit the question.
    pub decisions: Vec<DecisionShort>,
    /// Ask again with it as `cursor` for older ones; null at the end.
    pub next_cursor: Option<String>,
    /// Where they come from: `ring`, `history` or `both`.
    pub from: String,
    /// Since when the list holds everything that happened.
    pub complete_since_unix_ms: u64,
}

/// A decision, in short.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DecisionShort {
    /// The request's name, which its client was told as `x-tidegate-request-id`.
    pub id: String,
    /// Its number since the gateway's start.
    pub n: u64,
    /// `llm` or `mcp`.
    pub kind: String,
    /// When it began, in milliseconds since the gateway's start.
    pub at: u64,
    /// When it began.
    pub at_unix_ms: u64,
    /// How long it took, to the last byte of its answer.
    pub took_ms: u64,
    /// The route, `direct` for a target named by the client, `mcp:NAME` for a server or a group;
    /// empty if it was not routed.
    pub route: String,
    /// The model that was asked for, where it is not the route's own name.
    pub model: Option<String>,
    /// The endpoint, as a class of paths.
    pub path: String,
    /// The method of an MCP call, such as `tools/call`.
    pub method: Option<String>,
    /// The tool or prompt of an MCP call.
    pub tool: Option<String>,
    /// The caller's name; empty where no keys are configured.
    pub caller: String,
    /// The fingerprint of its session.
    pub session: Option<String>,
    /// Whether a stream was asked for.
    pub stream: bool,
    /// `ok`, `client_fault`, `refused`, `cancelled` or `failed`.
    pub result: String,
    /// The status that the client saw; 499 if it had gone.
    pub status: u16,
    /// Why the client got no whole answer, where it is not to blame.
    pub client_failure: Option<String>,
    /// Why it was over; `refused` if it never had a plan.
    pub end: String,
    /// The target or server whose answer the client got.
    pub answered_by: Option<String>,
    /// Attempts beyond the first.
    pub hops: u32,
    /// Whether an attempt was made although something stood against its target.
    pub relaxed: bool,
    /// Whether it is more than a plain answer of the first choice.
    pub notable: bool,
    /// What became of the session's pin at the first attempt.
    pub pin: Option<String>,
    /// From the start to the first content of the answer.
    pub first_content_ms: Option<u64>,
    /// The attempts, in order.
    pub attempts: Vec<AttemptView>,
    /// What the answer said of its usage.
    pub tokens: Option<TokensView>,
    /// The code of an MCP error: `backend_unavailable` or `result_unknown`.
    pub error_code: Option<String>,
    /// Why no MCP server answered, as a fixed phrase.
    pub cause: Option<String>,
}

/// One attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AttemptView {
    /// The backend's id.
    pub backend: String,
    /// The target as the client knows it.
    pub target: String,
    /// Its tier in the route.
    pub tier: Option<u16>,
    /// The number of the key that was used, from 1.
    pub key: Option<u16>,
    /// How it ended; null for an MCP attempt that says nothing about its server.
    pub outcome: Option<String>,
    /// The HTTP status, if a response head came.
    pub status: Option<u16>,
    /// The status under which the client may see it as an error.
    pub error_status: Option<u16>,
    /// When the upstream said to come back.
    pub retry_after_ms: Option<u64>,
    /// How long it took.
    pub ms: u64,
    /// A fixed phrase, such as `connection refused`.
    pub detail: String,
    /// What decided for it: `tactic`, `pin` or `next_key`.
    pub by: Option<String>,
    /// What stood against it when it was chosen: a window is 1, a breaker 2, an exclusion 4.
    pub rank: u8,
    /// Whether a half-open breaker admitted it.
    pub trial: bool,
    /// Whether it went past a breaker because nothing was available.
    pub last_resort: bool,
    /// From the start of the request to the start of the attempt.
    pub started_ms: u64,
    /// From the start of the attempt to its first content.
    pub first_content_ms: Option<u64>,
    /// Why its answer was committed.
    pub committed: Option<String>,
    /// Whether the request was sent again over a fresh connection.
    pub resent: bool,
    /// From which dialect to which it was converted.
    pub converted: Option<String>,
}

/// What an answer said of its usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokensView {
    /// Of the request.
    pub input: u64,
    /// Of the answer.
    pub output: u64,
    /// Of the request, from the provider's cache.
    pub cached: u64,
}

/// `GET /api/decisions/{id}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DecisionFull {
    /// What a list tells of it.
    #[serde(flatten)]
    pub short: DecisionShort,
    /// The config that served it.
    pub config_sha: Option<String>,
    /// What the plan was made from.
    pub plan: Option<PlanView>,
    /// Each choice, and a last one without `chosen` if it found nothing.
    pub choices: Vec<ChoiceView>,
    /// What left for the client.
    pub released: ReleasedView,
    /// What conversions changed.
    pub conversion: Vec<ConversionView>,
    /// The final answer.
    pub answer: AnswerView,
}

/// What a plan was made from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanView {
    /// The route.
    pub route: String,
    /// How one target of a tier is picked.
    pub tactic: String,
    /// What the request needed.
    pub needs: NeedsView,
    /// What kept it at one provider, if anything did.
    pub state: Option<StateView>,
    /// How long the whole request might take.
    pub deadline_ms: u64,
    /// How long its client would wait for the first byte, if it said so.
    pub patience_ms: Option<u64>,
    /// The most hops beyond the first attempt.
    pub max_hops: u32,
}

/// What kept a request at one provider.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StateView {
    /// What it referred to, such as `previous_response` or `sealed_reasoning`.
    pub kind: String,
    /// The provider that holds it; null if no provider of the route does.
    pub provider: Option<String>,
    /// Whether no other provider might be asked. Otherwise its targets only came first.
    pub required: bool,
}

/// What a request needs of a target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NeedsView {
    /// It brought tool definitions.
    pub tools: bool,
    /// It brought images.
    pub vision: bool,
    /// It brought documents.
    #[serde(default)]
    pub documents: bool,
    /// It wanted an answer that follows a JSON schema.
    #[serde(default)]
    pub json_schema: bool,
    /// It asked for reasoning.
    #[serde(default)]
    pub reasoning: bool,
    /// How long it was, in tokens, where that is known.
    pub context: u64,
    /// The protocol it was written in.
    pub protocol: Option<String>,
    /// The kind of request.
    pub kind: Option<String>,
    /// The formats that it could be converted to, as a set of bits.
    #[serde(default)]
    pub converts_to: u8,
}

/// One choice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChoiceView {
    /// When, in milliseconds since the gateway's start; null for a choice that found nothing.
    pub at: Option<u64>,
    /// The random draw, in hexadecimal digits.
    pub draw: Option<String>,
    /// The cursor of the tier, for `round_robin`.
    pub cursor: Option<u32>,
    /// The rank at which it was chosen.
    pub rank: Option<u8>,
    /// What decided: `tactic`, `pin` or `next_key`.
    pub by: Option<String>,
    /// What became of the session's pin.
    pub pin: Option<String>,
    /// The backend that was chosen; null if there was none.
    pub chosen: Option<String>,
    /// The verdict on every member of the route.
    pub candidates: Vec<CandidateView>,
    /// The moments of its attempt, for an exact replay.
    #[serde(default)]
    pub exact: Option<ExactView>,
}

/// The moments of one attempt, in milliseconds since the gateway's start. Of several things in one
/// millisecond the one with the lower number came first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExactView {
    /// The number of its choice.
    pub n: u64,
    /// When its response head came.
    pub head_at: Option<u64>,
    /// The number of that moment.
    pub head_n: Option<u64>,
    /// When its answer was released to the client.
    pub released_at: Option<u64>,
    /// The number of that moment.
    pub released_n: Option<u64>,
    /// When it ended.
    pub ended_at: Option<u64>,
    /// The number of that moment.
    pub ended_n: u64,
    /// It was left for another target before it had ended.
    pub left: bool,
}

/// The verdict on one member of a route.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CandidateView {
    /// The backend.
    pub backend: String,
    /// Its tier.
    pub tier: u16,
    /// `chosen`, `held` (it could be asked, but another came first), `skipped` (something stood
    /// against it), `tried` (by this request, before) or `taken` (another request took its slot).
    pub verdict: String,
    /// What stood against it, as a sum of weights; null if it was not looked at.
    pub rank: Option<u8>,
    /// The generation of its breaker.
    pub generation: Option<u32>,
    /// The generation of its endpoint's breaker.
    pub endpoint_generation: Option<u32>,
    /// Attempts in flight there.
    pub in_flight: Option<u16>,
    /// The state of its own breaker.
    pub state: Option<String>,
    /// Its recent time to first content, where the tactic asks for it.
    pub latency_ms: Option<f64>,
    /// What stood against it.
    pub obstacles: Vec<ObstacleView>,
}

/// What stands against a candidate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ObstacleView {
    /// `breaker`, `endpoint`, `window`, `exclusion`, `switched_off`, `lacks`, `unconfigured`,
    /// `inactive` or `last_resort_limit`.
    pub kind: String,
    /// Why, as a word.
    pub reason: Option<String>,
    /// After the backend's name, a sentence.
    pub phrase: String,
    /// When it ends by itself.
    pub until_unix_ms: Option<u64>,
}

/// What left for the client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReleasedView {
    /// `attempt`, `own_error` or `nothing`.
    pub what: String,
    /// The number of the attempt, from 0.
    pub attempt: Option<usize>,
    /// The status.
    pub status: u16,
    /// Why it was released then.
    pub cause: Option<String>,
    /// When, from the start of the request.
    pub at_ms: Option<u64>,
}

/// What a conversion changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConversionView {
    /// The number of the attempt, from 0.
    pub attempt: usize,
    /// From which dialect to which.
    pub pair: String,
    /// Each field that did not cross as it was.
    pub notes: Vec<NoteView>,
}

/// One field that did not cross as it was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NoteView {
    /// `dropped`, `clamped` or `rewritten`.
    pub change: String,
    /// The field's name or path.
    pub field: String,
    /// Why.
    pub why: String,
}

/// The final answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AnswerView {
    /// Its status.
    pub status: u16,
    /// The code of an error of the gateway's own.
    #[serde(rename = "type")]
    pub code: Option<String>,
    /// What that error said.
    pub message: Option<String>,
    /// When the client may come back, if it was told.
    pub retry_after_ms: Option<u64>,
    /// What the client was told about trying again.
    pub should_retry: Option<bool>,
}
