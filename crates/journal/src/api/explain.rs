//! `POST /api/explain`: why a backend is in its state, or where a request would go.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    decision::{DecisionShort, ObstacleView},
    events::{ActionView, TransitionView},
    snapshot::BackendView,
};

/// The answer to `{"backend": …}`: everything that is known of a backend.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BackendStory {
    /// Its state, its figures, and what stands against it.
    pub backend: BackendView,
    /// Its latest changes of state and those of its endpoint and keys, newest first.
    pub transitions: Vec<TransitionView>,
    /// What operators did to it, newest first.
    pub actions: Vec<ActionView>,
    /// The latest requests that asked it, newest first.
    pub recent: Vec<DecisionShort>,
    /// Its state in whole sentences.
    pub sentence: String,
}

/// The answer to `{"model": …}` or `{"server": …}`: where a request would go, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WhatIf {
    /// The model that was asked about.
    #[serde(default)]
    pub model: Option<String>,
    /// The MCP server, or the group of them, that was asked about.
    #[serde(default)]
    pub server: Option<String>,
    /// The route that the model leads to; `direct` for a target.
    #[serde(default)]
    pub route: Option<String>,
    /// The model of a target that the config does not name.
    #[serde(default)]
    pub asked_model: Option<String>,
    /// The verdicts.
    pub explanation: ExplanationView,
}

/// The verdict on every member of a route.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExplanationView {
    /// In tier order.
    pub candidates: Vec<WhatIfCandidate>,
    /// What would become of the session's pin: `none`, `expired`, `honoured`, `kept_while_full`,
    /// `kept_over_limit` or `declined`
    pub pin: String,
    /// The lowest rank present; null without candidates.
    pub rank: Option<u8>,
}

/// The verdict on one member of a route.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WhatIfCandidate {
    /// The backend.
    pub backend: String,
    /// Its tier.
    pub tier: u16,
    /// `{"chosen": {"is_last_resort": …}}`, `"held"` or `{"skipped": […]}`.
    pub verdict: Value,
    /// What stands against it.
    pub obstacles: Vec<ObstacleView>,
    /// Why it is in its state, with the evidence.
    pub why: Option<String>,
    /// Since when it is in its state.
    pub since_unix_ms: Option<u64>,
}
