//! Scripts: what a backend does, phase after phase, with nothing left unsaid.
//!
//! A script only says what happens on the wire. What it means is the core's business.

use tidegate_core::time::{Millis, Now};

/// What a backend does, in the order of time. The first phase starts at 0.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Script {
    pub(super) phases: Vec<Phase>,
}

/// From when on, and what.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Phase {
    pub(super) at: Now,
    /// The one replica that meets it, from 0; `None` = all.
    pub(super) replica: Option<u32>,
    /// What a reader calls it.
    pub(super) word: &'static str,
    pub(super) act: Act,
    /// The share of requests that meet `act`; the others meet `pace` without a fault.
    pub(super) share: f64,
    /// How it answers when it does: that of the latest `ok` phase.
    pub(super) pace: Pace,
    /// How long an error takes.
    pub(super) error_after: Millis,
    /// Whether open connections break at its start.
    pub(super) cuts: bool,
}

/// How a healthy backend answers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pace {
    pub(super) latency: Millis,
    pub(super) jitter: f64,
    pub(super) tokens: u32,
    pub(super) token_gap: Millis,
    pub(super) capacity: Option<u32>,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            latency: Millis(300),
            jitter: 0.0,
            tokens: 40,
            token_gap: Millis(20),
            capacity: None,
        }
    }
}

/// What happens on the wire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Act {
    /// An answer, this many times slower than its pace.
    Answer { factor: f64 },
    /// An answer with an error status.
    Status { status: u16, retry_after: Option<Millis> },
    /// No connection.
    Refuse,
    /// No response head, ever.
    Hang,
    /// Silence after this many tokens.
    Stall { tokens: u32 },
    /// The end after this many tokens.
    Truncate { tokens: u32 },
    /// A 200 whose first event is an error.
    ErrorEvent,
    /// A 200 without content.
    CommentsOnly,
}

impl Script {
    /// A backend that always answers.
    pub(super) fn fine() -> Self {
        Self { phases: vec![Phase::fine(Now::ZERO, Pace::default())] }
    }
}

impl Phase {
    /// The status that a probe gets; `None` without an HTTP answer.
    pub(super) fn answer_to_probe(&self) -> Option<u16> {
        match self.act {
            Act::Refuse | Act::Hang => None,
            Act::Status { status, .. } if self.share >= 1.0 => Some(status),
            _ => Some(200),
        }
    }

    /// Answers at this pace.
    pub(super) fn fine(at: Now, pace: Pace) -> Self {
        Self {
            at,
            replica: None,
            word: "ok",
            act: Act::Answer { factor: 1.0 },
            share: 1.0,
            pace,
            error_after: Millis::ZERO,
            cuts: false,
        }
    }
}
