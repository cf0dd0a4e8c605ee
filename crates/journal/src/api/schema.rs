//! The JSON Schemas of the API, as text.

use schemars::{JsonSchema, schema_for};

use super::{
    actions::{ActionReply, ReloadReply},
    decision::{DecisionFull, DecisionList},
    events::EventData,
    explain::{BackendStory, WhatIf},
    fleet::FleetView,
    incident::IncidentView,
    snapshot::SnapshotView,
    timeline::TimelineView,
};

/// The schema of `GET /api/snapshot`.
#[must_use]
pub fn snapshot() -> String {
    text::<SnapshotView>()
}

/// The schema of the data of `GET /api/events`, by the event's name.
#[must_use]
pub fn events() -> String {
    text::<EventData>()
}

/// The schema of `GET /api/decisions`.
#[must_use]
pub fn decisions() -> String {
    text::<DecisionList>()
}

/// The schema of `GET /api/decisions/{id}`.
#[must_use]
pub fn decision() -> String {
    text::<DecisionFull>()
}

/// The schema of `GET /api/timeline`.
#[must_use]
pub fn timeline() -> String {
    text::<TimelineView>()
}

/// The schema of `GET /api/fleet`.
#[must_use]
pub fn fleet() -> String {
    text::<FleetView>()
}

/// The schema of `GET /api/incident`.
#[must_use]
pub fn incident() -> String {
    text::<IncidentView>()
}

/// The schema of `POST /api/explain` with a backend.
#[must_use]
pub fn explain_backend() -> String {
    text::<BackendStory>()
}

/// The schema of `POST /api/explain` with a model or a server.
#[must_use]
pub fn explain_request() -> String {
    text::<WhatIf>()
}

/// The schema of the answers to actions.
#[must_use]
pub fn action() -> String {
    text::<ActionReply>()
}

/// The schema of `POST /api/reload`.
#[must_use]
pub fn reload() -> String {
    text::<ReloadReply>()
}

fn text<T: JsonSchema>() -> String {
    let schema = schema_for!(T);
    let mut text = serde_json::to_string_pretty(&schema).expect("a schema is JSON");
    text.push('\n');
    text
}
