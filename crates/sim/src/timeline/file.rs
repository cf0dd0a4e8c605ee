//! The file format of a timeline: what may be written, with its defaults.
//!
//! Plain types, decoded along their schema; rules between keys are in `check.rs`. What a gateway
//! recorded is in `file/recording.rs`.

pub(super) mod recording;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;
use tidegate_config::{
    duration::Duration,
    file::{
        Api, HealthFile, HoldFile, LastResortFile, OnAuthErrorWord, Pick, PinWord, ProbeFile,
        RetryBudgetFile, TimeoutsFile,
    },
    percent::Percent,
};

/// A timeline of traffic, and what is expected of it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TimelineFile {
    /// Its name; absent: the file's stem.
    pub(super) scenario: Option<String>,
    /// One line for humans.
    pub(super) about: Option<String>,
    /// `default`, the path of a tidegate.yaml or its whole text, or routes and health settings as a
    /// map.
    pub(super) config: Option<ConfigKey>,
    /// How long it lasts.
    #[serde(rename = "for")]
    pub(super) lasts: Duration,
    /// Who asks, and how often.
    pub(super) traffic: TrafficFile,
    /// How many replicas of the gateway the requests are spread over [1].
    pub(super) replicas: Option<u32>,
    /// How what one replica learns reaches the others.
    pub(super) bus: Option<BusFile>,
    /// How requests are spread over the replicas.
    pub(super) spread: Option<SpreadWord>,
    /// What each backend does, phase after phase.
    pub(super) backends: IndexMap<String, Vec<PhaseFile>>,
    /// What must be true at the end.
    #[serde(default)]
    pub(super) expect: TimelineExpectFile,
    /// With `arrivals: recorded`: the requests, exactly as a gateway recorded them.
    pub(super) recording: Option<recording::RecordingFile>,
}

/// What lies between the replicas of a fleet.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct BusFile {
    /// How long a message takes from one replica to another [5ms].
    pub(super) delay: Option<Duration>,
    /// The share of messages that a replica does not get [0%].
    pub(super) loss: Option<Percent>,
    /// When a replica is cut off from the others.
    pub(super) cut: Vec<CutFile>,
}

/// A replica is cut off: it tells nothing and hears nothing.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CutFile {
    /// From when on.
    pub(super) at: Duration,
    /// For how long.
    #[serde(rename = "for")]
    pub(super) lasts: Duration,
    /// Which one, from 1.
    pub(super) replica: u32,
}

/// How requests are spread over the replicas of a fleet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum SpreadWord {
    /// One after the other.
    #[default]
    RoundRobin,
    /// All requests of a session reach the same one.
    Session,
}

/// Which settings the core runs with.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum ConfigKey {
    /// `default`: one route, a tier per backend in file order, affinity 30m. Else a path, or the
    /// text of a file if it has several lines.
    Word(String),
    /// Written here.
    Inline(Box<InlineConfig>),
}

/// One route and the health settings of all its backends.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct InlineConfig {
    /// Tiers of backends; absent: a tier per backend, in file order.
    pub(super) tiers: Option<Vec<Vec<String>>>,
    /// How one of a tier is picked.
    pub(super) pick: Pick,
    /// Shares under `pick: weighted`.
    pub(super) weights: IndexMap<String, u32>,
    /// How long a session sticks [30m]; `0s` = not at all.
    pub(super) affinity: Option<Duration>,
    /// What a pin follows.
    pub(super) pin: PinWord,
    /// Hops beyond the first attempt [8].
    pub(super) max_hops: Option<u32>,
    /// The share of a client's patience that one silent attempt may use [60%].
    pub(super) patience_share: Option<Percent>,
    /// The longest a whole request may take [10m].
    pub(super) deadline: Option<Duration>,
    /// The budget of hops that are not free.
    pub(super) retry_budget: RetryBudgetFile,
    /// How many attempts may go past the breaker or exclusion of one target.
    pub(super) last_resort: LastResortFile,
    /// What a rejected key means for a request.
    pub(super) on_auth_error: OnAuthErrorWord,
    /// How far streams are held back beyond their first content.
    pub(super) hold: HoldFile,
    /// Keys that each provider has [1].
    pub(super) keys: Option<u8>,
    /// How backends are judged.
    pub(super) health: HealthFile,
    /// How providers are probed; wins over `health.probe`.
    pub(super) probe: ProbeFile,
    /// How long each part of an attempt may take.
    pub(super) timeouts: TimeoutsFile,
    /// What single backends speak and can do; absent: everything.
    pub(super) targets: IndexMap<String, InlineTarget>,
}

/// What a backend speaks and can do. What is absent is unknown, and taken for granted.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct InlineTarget {
    /// The wire format it speaks; absent: all of them.
    pub(super) api: Option<Api>,
    /// Whether it takes tool definitions.
    pub(super) tools: Option<bool>,
    /// Whether it takes images.
    pub(super) vision: Option<bool>,
    /// Whether it takes documents.
    pub(super) documents: Option<bool>,
    /// Whether its answers can be held to a JSON schema.
    pub(super) json_schema: Option<bool>,
    /// Whether it reasons.
    pub(super) reasoning: Option<bool>,
}

/// Who asks, and how often.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TrafficFile {
    /// Requests per second, minute, hour or day: `20/s`, `90/m`.
    pub(super) rate: String,
    /// Whether they come at random or evenly.
    #[serde(default)]
    pub(super) arrivals: ArrivalPattern,
    /// How many sessions they belong to, drawn at random; 0: none has a session.
    #[serde(default)]
    pub(super) sessions: u32,
    /// The share that asks for a stream [100%].
    pub(super) stream: Option<Percent>,
    /// How often a client tries again after 408, 409, 429 or a 5xx.
    #[serde(default)]
    pub(super) clients_retry: u8,
    /// How long a client waits for the first byte, as an SDK's timeout header says; at least 1s.
    pub(super) patience: Option<Duration>,
    /// What clients speak: targets of other dialects get their requests converted. Absent: what
    /// every target understands.
    pub(super) dialect: Option<DialectWord>,
    /// What requests need of a target: one that is known to lack it is no candidate.
    #[serde(default)]
    pub(super) needs: Vec<NeedWord>,
}

/// A dialect of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum DialectWord {
    /// OpenAI's chat completions.
    Chat,
    /// OpenAI's responses.
    Responses,
    /// Anthropic's messages.
    Messages,
    /// Gemini's `generateContent`.
    Gemini,
}

impl DialectWord {
    /// The path that such clients use: what it needs is the data plane's to say.
    pub(super) const fn path(self) -> &'static str {
        match self {
            Self::Chat => "/v1/chat/completions",
            Self::Responses => "/v1/responses",
            Self::Messages => "/v1/messages",
            Self::Gemini => "/v1beta/models/m:generateContent",
        }
    }
}

/// Something that a request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum NeedWord {
    /// It brings tool definitions.
    Tools,
    /// It brings images.
    Vision,
    /// It brings documents.
    Documents,
    /// It wants an answer that follows a JSON schema.
    JsonSchema,
    /// It asks for reasoning.
    Reasoning,
}

/// How requests are spread over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ArrivalPattern {
    /// Each by itself, at random.
    #[default]
    Poisson,
    /// All at the same distance.
    Even,
    /// As `recording` has them; the rate is for readers only.
    Recorded,
}

/// What a backend does from a moment on, until its next phase.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PhaseFile {
    /// From when on. Every phase needs it; one that is missing or cannot be read keeps no other
    /// phase from being checked.
    pub(super) at: Option<Duration>,
    /// The one replica that meets it, from 1; the others stay in the phase that they are in.
    pub(super) replica: Option<u32>,
    /// What it does; needed likewise.
    #[serde(rename = "do")]
    pub(super) action: Option<BackendAction>,
    /// The share of requests it does this to; the rest gets the latest `ok` phase [100%].
    pub(super) share: Option<Percent>,
    /// Until the first content, or the error [300ms; errors 50ms; refused 5ms].
    pub(super) latency: Option<Duration>,
    /// Up to this share is added to or taken from the latency at random [0%].
    pub(super) jitter: Option<Percent>,
    /// Length of an answer in tokens [40]; with `stall` and `truncate`: how many come [10].
    pub(super) tokens: Option<u32>,
    /// Between two tokens [20ms].
    pub(super) token_gap: Option<Duration>,
    /// With `ok`: how many it serves at once; above that everything takes as many times longer.
    pub(super) capacity: Option<u32>,
    /// With `slow`: how many times longer everything takes.
    pub(super) factor: Option<f64>,
    /// With `status`: which.
    pub(super) status: Option<u16>,
    /// With `status`: the `Retry-After` it sends.
    pub(super) retry_after: Option<Duration>,
    /// With `restart`: how long nobody listens [5s].
    pub(super) down: Option<Duration>,
}

/// What a backend does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum BackendAction {
    /// Answers.
    Ok,
    /// Answers, but slower than in its latest `ok` phase.
    Slow,
    /// Answers with an error status.
    Status,
    /// Nobody listens.
    Refuse,
    /// Takes the request and says nothing.
    Hang,
    /// Begins its answer and falls silent.
    Stall,
    /// Begins its answer and breaks off.
    Truncate,
    /// Answers 200 with an error inside.
    ErrorEvent,
    /// Answers 200 and sends comments only.
    CommentsOnly,
    /// Rejects the key (401).
    Auth,
    /// Says that the credit is used up (402).
    Exhausted,
    /// Cuts its connections, is down for a while and comes back as in its latest `ok` phase.
    Restart,
}

impl BackendAction {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Slow => "slow",
            Self::Status => "status",
            Self::Refuse => "refuse",
            Self::Hang => "hang",
            Self::Stall => "stall",
            Self::Truncate => "truncate",
            Self::ErrorEvent => "error_event",
            Self::CommentsOnly => "comments_only",
            Self::Auth => "auth",
            Self::Exhausted => "exhausted",
            Self::Restart => "restart",
        }
    }
}

/// What must be true at the end. Every key is one check, or one per backend.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct TimelineExpectFile {
    /// Requests that ended badly for the client, after its own retries; broken streams too.
    pub(super) client_failures: Option<Most<u64>>,
    /// When a backend's breaker first opens, or how often at most.
    pub(super) opens: IndexMap<String, Moments>,
    /// When a backend's breaker last closes.
    pub(super) closes: IndexMap<String, Moments>,
    /// Attempts per request that reached the gateway.
    pub(super) amplification: Option<Most<f64>>,
    /// A backend's share of the answered requests.
    pub(super) shares: IndexMap<String, Between>,
    /// A backend's share of the first attempts.
    pub(super) first_shares: IndexMap<String, Between>,
    /// Attempts after the first of a request.
    pub(super) hops: Option<Most<u64>>,
    /// Attempts past a breaker because nothing was available.
    pub(super) last_resorts: Option<Most<u64>>,
    /// Times a session's pin went to another backend.
    pub(super) sessions_moved: Option<Most<u64>>,
    /// How long clients wait for the first content.
    pub(super) wait: Option<Wait>,
    /// Attempts that reached a backend, of all replicas together.
    pub(super) hits: IndexMap<String, Hits>,
    /// Backends that are healthy at the end.
    pub(super) healthy_at_end: Vec<String>,
}

/// A bound from above.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Most<T> {
    /// The most that is right.
    pub(super) max: T,
}

/// When, and how often.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Moments {
    /// Before this moment.
    pub(super) before: Option<Duration>,
    /// Not before this moment.
    pub(super) after: Option<Duration>,
    /// At most this often; 0: never.
    pub(super) max: Option<u64>,
}

/// How many, within a span of time.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Hits {
    /// The least that is right.
    pub(super) min: Option<u64>,
    /// The most that is right.
    pub(super) max: Option<u64>,
    /// Only those from this moment on.
    pub(super) after: Option<Duration>,
    /// Only those before this moment.
    pub(super) before: Option<Duration>,
}

/// A share between two bounds.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Between {
    /// The least that is right.
    pub(super) min: Option<Percent>,
    /// The most that is right.
    pub(super) max: Option<Percent>,
}

/// Bounds on the wait for the first content.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Wait {
    /// Nineteen of twenty clients wait no longer.
    pub(super) p95: Option<Duration>,
    /// No client waits longer.
    pub(super) max: Option<Duration>,
}
