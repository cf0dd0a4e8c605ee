//! Transitions: what changed, as data. Logs, metrics, events, journal and the simulator's report
//! are renderers of this one value.
//!
//! A transition is made where the change happens and handed to the caller's [`Notes`]; the core
//! keeps none. Each change is told once, not once per call that notices it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    breaker::BreakerChange, hint::Hint, mark::MarkReason, outcome::OutcomeKind, read::Read,
    time::Now,
};

/// One state change of one backend, with its reason and evidence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Transition {
    /// When.
    pub at: Now,
    /// Whose: `provider/model`, `mcp:NAME`, a provider (its endpoint) or a key's name.
    pub backend: Arc<str>,
    /// What kind of thing that is.
    pub scope: Scope,
    /// What changed.
    pub change: Change,
    /// Whether another replica of the fleet told it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_heard: bool,
}

/// What a transition is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// A target or an MCP server.
    Backend,
    /// A provider's host.
    Endpoint,
    /// A credential.
    Key,
}

/// What changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Its breaker.
    Breaker {
        /// How.
        breaker: BreakerChange,
        /// The generation it has from now on.
        generation: u64,
        /// The outcome that tipped it; `None` for a probe, a first content or an operator.
        evidence: Option<OutcomeKind>,
        /// Its HTTP status.
        status: Option<u16>,
    },
    /// It is not used before a time.
    Marked {
        /// The key, where it is about a target together with one of its keys.
        key: Option<Arc<str>>,
        /// When it may be used again.
        until: Now,
        /// Why.
        reason: MarkReason,
        /// The HTTP status behind it.
        status: Option<u16>,
    },
    /// Another replica's breaker of the same thing opened: the next failure opens this one.
    Suspected {
        /// For how long, unless a success comes first.
        until: Now,
    },
    /// An exclusion ended before its time.
    Healed {
        /// What stood against it.
        reason: MarkReason,
    },
}

/// What the core tells its caller besides the answer: a buffer that the caller owns and reuses,
/// so that choosing allocates nothing.
#[derive(Debug, Default)]
pub struct Notes {
    /// What the latest choice read of each candidate.
    pub reads: Vec<Read>,
    /// Changes since the caller last took them.
    pub transitions: Vec<Transition>,
    /// What other replicas of the fleet should hear of, since the caller last took it; always
    /// empty where there is no fleet.
    pub hints: Vec<Hint>,
}
