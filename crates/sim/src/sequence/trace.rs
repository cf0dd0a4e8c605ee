//! The trace of a sequence: everything a run gave, as a value.
//!
//! It is what `--json` prints, key by key (its schema is checked in as
//! `docs/sim-trace.schema.json`), and what the graph and the table are drawn from. Maps are in the
//! order of the services and hold every one of them, inactive ones too.

use std::sync::Arc;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Serialize;

pub use super::words::{BreakerWord, HealthWord, OutcomeWord};

/// A run of a sequence.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Trace {
    /// The scenario's name.
    pub rule: String,
    /// `tier` or `random`.
    pub tactic: &'static str,
    /// For how many seconds a session sticks; 0: not at all.
    pub affinity_secs: u64,
    /// The seed of the run.
    pub seed: u64,
    /// The services in file order, each with its tier: `openai/gpt-5.4 (T0)`, or `(T0,inactive)`.
    pub services: Vec<String>,
    /// What happened, in order.
    pub steps: Vec<StepTrace>,
    /// The state of each service's breaker at the end.
    pub final_breakers: IndexMap<Arc<str>, BreakerWord>,
    /// The health of each service at the end.
    pub final_health: IndexMap<Arc<str>, HealthWord>,
    /// What became of the expectations.
    pub expect: Verdict,
}

/// One step of the program.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepTrace {
    /// A request.
    Trace(Box<RequestTrace>),
    /// Time passed; the text is the file's.
    Advance(String),
}

/// What one request went through.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RequestTrace {
    /// Its session; empty: none.
    pub session: String,
    /// The services it tried, in order.
    pub attempts: Vec<Arc<str>>,
    /// The HTTP status of each attempt; 0 where none came.
    pub statuses: Vec<u16>,
    /// How each attempt ended.
    pub outcomes: Vec<OutcomeWord>,
    /// The status its client saw.
    pub final_status: u16,
    /// Where its session is pinned afterwards; empty: nowhere.
    pub pin_after: Arc<str>,
    /// The state of each service's breaker afterwards.
    pub breaker_after: IndexMap<Arc<str>, BreakerWord>,
    /// The health of each service afterwards.
    pub health_after: IndexMap<Arc<str>, HealthWord>,
}

/// What became of the expectations.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Verdict {
    /// Whether all of them held.
    pub passed: bool,
    /// A sentence for each that did not.
    pub failures: Vec<String>,
}

impl Trace {
    /// The requests, in order.
    pub fn requests(&self) -> impl DoubleEndedIterator<Item = &RequestTrace> + Clone {
        requests(&self.steps)
    }
}

/// The requests among steps, in order.
pub(super) fn requests(
    steps: &[StepTrace],
) -> impl DoubleEndedIterator<Item = &RequestTrace> + Clone {
    steps.iter().filter_map(|step| match step {
        StepTrace::Trace(request) => Some(&**request),
        StepTrace::Advance(_) => None,
    })
}

/// The JSON Schema of `--json`, as it is checked in.
#[must_use]
pub fn schema_text() -> String {
    let schema = schemars::generate::SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<Trace>();
    format!("{:#}\n", schema.as_value())
}
