//! `GET /api/incident`: what happened, exactly enough to play it again.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    decision::DecisionFull,
    events::{ActionView, ReloadView, TransitionView},
    snapshot::ConfigView,
};

/// A stretch of time, recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IncidentView {
    /// The form of this document.
    pub version: u32,
    /// Its beginning.
    pub from_unix_ms: u64,
    /// Its end.
    pub to_unix_ms: u64,
    /// Its beginning, in milliseconds since the gateway's start: what `at` counts from there.
    pub base: u64,
    /// The config that serves now.
    pub config: ConfigView,
    /// That config as it is in force, without secrets.
    #[serde(default)]
    pub config_file: Value,
    /// The seed of the jitter on open times, in hexadecimal digits.
    #[serde(default)]
    pub jitter_seed: Option<String>,
    /// The states at the beginning, of what was not closed.
    pub start: Vec<StartState>,
    /// Every request, in the order of arrival.
    pub arrivals: Vec<DecisionFull>,
    /// Every change of state.
    pub transitions: Vec<TransitionView>,
    /// What operators did.
    pub actions: Vec<ActionView>,
    /// Reloads.
    pub reloads: Vec<ReloadView>,
    /// Every probe of a provider that ended; null if they are not known.
    #[serde(default)]
    pub probes: Option<Vec<ProbeView>>,
    /// Whether nothing of the stretch that was asked for is missing.
    pub complete: bool,
    /// Records that were dropped since the start.
    pub dropped: u64,
}

/// A probe of a provider that ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeView {
    /// When, in milliseconds since the gateway's start.
    pub at: u64,
    /// The number of that moment.
    pub n: u64,
    /// Which provider.
    pub provider: String,
    /// The status that it answered with; null if it did not answer.
    pub status: Option<u16>,
}

/// A state at the beginning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StartState {
    /// Whose.
    pub backend: String,
    /// Which.
    pub state: String,
    /// Until when, in milliseconds since the gateway's start.
    pub until: Option<u64>,
}
