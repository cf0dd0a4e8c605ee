//! `GET /api/timeline`: one lane per backend over the last fifteen minutes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The lanes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimelineView {
    /// The beginning of the first bucket.
    pub from_unix_ms: u64,
    /// Now.
    pub to_unix_ms: u64,
    /// The width of a bucket.
    pub bucket_ms: u64,
    /// One for each target, server and endpoint.
    pub lanes: Vec<LaneView>,
    /// Requests whose client got no whole answer through no fault of its own, per bucket.
    pub client_failures: Vec<u64>,
    /// Requests per bucket.
    pub requests: Vec<u64>,
    /// Attempts beyond the first, per bucket.
    pub hops: Vec<u64>,
    /// What happened at one moment.
    pub marks: Vec<MarkView>,
}

/// One lane.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LaneView {
    /// The backend's id; of an endpoint, the provider's name.
    pub id: String,
    /// `target`, `server` or `endpoint`.
    pub kind: String,
    /// Its states, without a gap, oldest first.
    pub states: Vec<StateSpan>,
    /// Attempts per bucket, oldest first.
    pub attempts: Vec<u64>,
    /// Failures per bucket.
    pub failures: Vec<u64>,
}

/// A state for a while.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StateSpan {
    /// `closed`, `open`, `half_open`, `off`, `window` or `excluded`.
    pub state: String,
    /// From when.
    pub from_unix_ms: u64,
    /// To when.
    pub to_unix_ms: u64,
    /// Why, as a word.
    pub reason: Option<String>,
    /// Why, with the evidence.
    pub detail: Option<String>,
}

/// What happened at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MarkView {
    /// When.
    pub at_unix_ms: u64,
    /// `reload`, `action` or `moved`.
    pub kind: String,
    /// In words.
    pub text: String,
    /// Whether it succeeded.
    pub ok: bool,
}
