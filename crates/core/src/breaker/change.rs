//! What a change of a breaker is told by.

use serde::{Deserialize, Serialize};

use super::State;
use crate::time::Now;

/// Why a breaker opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OpenCause {
    /// This many attempts in a row failed before content.
    ConsecutiveFailures(u32),
    /// This many answers in a row broke after content.
    BrokenAnswers(u32),
    /// Too many of the latest attempts failed.
    FailureRatio {
        /// Failed samples.
        failed: u32,
        /// All samples.
        samples: u32,
    },
    /// A trial failed.
    TrialFailed,
    /// A probe failed while half-open.
    ProbeFailed,
    /// An operator holds it open.
    Held,
    /// Another replica had told that its breaker opened, so that fewer strikes were enough: this
    /// many in a row.
    Suspected(u32),
}

/// What closed a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CloseCause {
    /// This many trials in a row succeeded, the last by traffic.
    TrialsPassed(u32),
    /// This many trials in a row succeeded, the last by a probe.
    ProbePassed(u32),
    /// An operator reset it.
    Reset,
}

/// A change of one breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakerChange {
    /// It opened.
    Opened {
        /// The state it was in.
        from: State,
        /// When it will be half-open.
        until: Now,
        /// Re-opens since it was last closed; 0 for the first opening.
        reopens: u32,
        /// Why.
        cause: OpenCause,
    },
    /// It closed.
    Closed {
        /// The state it was in.
        from: State,
        /// Why.
        cause: CloseCause,
    },
    /// A failing probe moved the deadline.
    Extended {
        /// The new deadline.
        until: Now,
    },
}
