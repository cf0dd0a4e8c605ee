//! `GET /api/fleet`: the replicas of a fleet as this one sees them, its store, and what was heard.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A fleet as one replica sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FleetView {
    /// The fleet's name.
    pub fleet: String,
    /// This replica's name.
    pub replica: String,
    /// Which run of it this is.
    pub instance: String,
    /// How other replicas reach it.
    pub peer_url: Option<String>,
    /// The store between the replicas.
    pub store: FleetStoreView,
    /// What waits to be told.
    pub queued: u64,
    /// What was dropped before it was told.
    pub dropped: u64,
    /// How long the last entry of the stream took from its writer to here.
    pub lag_ms: u64,
    /// The replicas that are there, this one among them, by name.
    pub replicas: Vec<ReplicaView>,
    /// How many are there whose heartbeat does not open: they have another secret.
    pub foreign: u64,
    /// What was told and heard, by kind of fact.
    pub facts: Vec<FactView>,
    /// Values of the store that were not taken, by reason.
    pub rejected: Vec<RejectedView>,
}

/// The store between the replicas.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FleetStoreView {
    /// Where it is, without a password.
    pub url: String,
    /// Whether it is there.
    pub is_up: bool,
    /// What is wrong with it.
    pub problem: Option<String>,
    /// How often it was reached anew.
    pub links: u64,
    /// How often something was missing on the stream.
    pub gaps: u64,
}

/// One replica.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReplicaView {
    /// Its name.
    pub replica: String,
    /// Which run of it this is.
    pub instance: String,
    /// Whether it is the one that answers.
    pub is_self: bool,
    /// The version of the program.
    pub version: String,
    /// The start of a hash of its config, without what is each replica's own: addresses to listen
    /// at, `state.replica`, `peer_listen` and `peer_url`.
    pub config_sha: String,
    /// Whether its config is that of the one that answers.
    pub has_same_config: bool,
    /// How others reach it.
    pub peer_url: Option<String>,
    /// How long it has been running.
    pub up_ms: u64,
    /// How old its heartbeat is.
    pub heartbeat_age_ms: u64,
    /// How long the last entry of the stream took to it.
    pub lag_ms: u64,
    /// How much waits there to be told.
    pub queued: u64,
    /// How many facts were heard from it.
    pub facts_heard: u64,
    /// The kind of the last one.
    pub last_fact: Option<String>,
    /// How long ago that was.
    pub last_fact_age_ms: Option<u64>,
}

/// What was told and heard of one kind of fact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FactView {
    /// `window`, `exclusion`, `action`, `reset`, `opened`, `pin` or `session`.
    pub fact: String,
    /// How many were told.
    pub told: u64,
    /// How many were heard that told something new.
    pub taken: u64,
    /// How many were heard in all, this replica's own aside.
    pub heard: u64,
}

/// Values that were not taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RejectedView {
    /// `secret`, `version` or `form`.
    pub reason: String,
    /// How many.
    pub count: u64,
}
