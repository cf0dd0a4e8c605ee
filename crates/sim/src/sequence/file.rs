//! The file of a sequence as it is written.
//!
//! Plain types that the config crate's decoder reads along their schema, so that every unknown
//! key, wrong type and bad duration is reported with its place. The two choices of shape (a fault
//! as a list or a map, a `retry_after` as a number or a duration) are told apart by the kind of
//! node, which costs no span. Rules between keys are in `check.rs`; what the file means is worked
//! out in `resolve.rs`.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;
use tidegate_config::{duration::Duration, file::PolicyFile};

use super::words::{BreakerWord, HealthWord};

/// A sequence of requests, what its backends do, and what is expected of it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SequenceFile {
    /// The scenario's name. Absent (and no `name`): the file's stem.
    pub(super) rule_uuid: Option<String>,
    /// The same under a plainer key; only one of the two may be written.
    pub(super) name: Option<String>,
    /// One line for humans.
    pub(super) about: Option<String>,
    /// `tier` (the default) or `random`, which makes one tier of all services.
    pub(super) tactic: Option<String>,
    /// How one service of a tier is picked; `random` by default.
    pub(super) within_tier_tactic: Option<String>,
    /// For how many seconds a session sticks to a service; 0 (the default): not at all.
    #[serde(default)]
    pub(super) affinity_secs: u64,
    /// The services, at least one. (Optional here so that the rest of a file with a bad list is
    /// checked too.)
    pub(super) services: Option<Vec<ServiceFile>>,
    /// What services do, by id; without an entry a service always answers 200.
    #[serde(default)]
    pub(super) faults: IndexMap<String, FaultFile>,
    /// A pin that exists at time 0 and lives one hour.
    pub(super) seed_pin: Option<SeedPinFile>,
    /// What differs from production's defaults.
    #[serde(default)]
    pub(super) policy: PolicyFile,
    /// Requests and advances, in order.
    #[serde(default)]
    pub(super) program: Vec<SequenceStepFile>,
    /// What has to come out.
    #[serde(default)]
    pub(super) expect: SequenceExpectFile,
}

/// One service.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ServiceFile {
    /// The first half of its id.
    pub(super) provider: String,
    /// The second half of its id.
    pub(super) model: String,
    /// Tiers are tried in ascending order.
    #[serde(default)]
    pub(super) tier: u32,
    /// Switched off: never used.
    #[serde(default)]
    pub(super) inactive: bool,
    /// Its share under `weighted`; 0: only when no other is left.
    #[serde(default = "one")]
    pub(super) weight: u32,
}

const fn one() -> u32 {
    1
}

impl ServiceFile {
    pub(super) fn id(&self) -> String {
        format!("{}/{}", self.provider, self.model)
    }
}

/// What a service does, call by call.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum FaultFile {
    /// A status per call; the last repeats.
    Short(Vec<u32>),
    /// Steps with more to say.
    Long(ScriptFile),
}

/// A fault script.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ScriptFile {
    /// What happens, in order.
    pub(super) steps: Vec<FaultStepFile>,
    /// What happens after the last step.
    #[serde(default)]
    pub(super) on_exhaust: OnExhaust,
}

/// One step of a fault script.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct FaultStepFile {
    /// The HTTP status; absent or 0: 200.
    pub(super) status: Option<u32>,
    /// For how many calls; absent, 0 or less: one.
    pub(super) repeat: Option<i64>,
    /// What the answer's `Retry-After` says.
    pub(super) retry_after: Option<RetryAfterFile>,
    /// Time to first content; feeds `least_latency` only, a request takes no time.
    pub(super) latency: Option<Duration>,
    /// How it fails, instead of a status.
    pub(super) error: Option<FaultWord>,
}

/// A time to stay away.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum RetryAfterFile {
    /// In seconds.
    Seconds(#[schemars(range(min = 0))] f64),
    /// As a duration.
    Duration(Duration),
}

/// A failure without a usable answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum FaultWord {
    /// No connection came about.
    Connect,
    /// The connection was lost before a response head.
    Reset,
    /// Nothing came in time.
    Timeout,
    /// The answer began and broke off.
    Truncate,
}

/// What happens after the last step of a fault script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum OnExhaust {
    /// The last step repeats.
    #[default]
    Clamp,
    /// The script starts again.
    Loop,
    /// 410 for ever.
    Fail,
}

/// A pin that exists at time 0.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SeedPinFile {
    /// Whose.
    pub(super) session: String,
    /// The provider of the service it names.
    pub(super) provider: String,
    /// The model of the service it names.
    pub(super) model: String,
}

/// One step of the program.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum SequenceStepFile {
    /// A request of this session; empty: of none.
    Request(String),
    /// Time passes.
    Advance(Duration),
}

/// What has to come out; every key is optional and every one written is checked.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct SequenceExpectFile {
    /// The status the client of the last request saw.
    pub(super) final_status: Option<u32>,
    /// The attempts of the last request, all of them, in order.
    pub(super) attempts: Option<Vec<String>>,
    /// Services that the last request tried.
    pub(super) attempts_contain: Option<Vec<String>>,
    /// Services that the last request did not try.
    pub(super) attempts_exclude: Option<Vec<String>>,
    /// The pin of the last request's session at the end of the program; `""`: none.
    pub(super) pin: Option<String>,
    /// Pins by session, right after the session's last request; `""`: none.
    pub(super) pins: IndexMap<String, String>,
    /// Breakers at the end, by id.
    pub(super) breaker: IndexMap<String, BreakerWord>,
    /// Health at the end, by id.
    pub(super) health: IndexMap<String, HealthWord>,
    /// The set of first attempts over all requests.
    pub(super) distinct_first_attempts: Option<Vec<String>>,
}
