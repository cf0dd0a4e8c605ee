//! The limits on waiting of one attempt, as moments.
//!
//! Whichever comes first ends the wait, and which one it was decides what the end means: a limit of
//! the target's is a timeout; what the request's own deadline or its client's patience teaches is
//! the core's to say (`request_context/waiting.rs`).

use std::time::Duration;

use tidegate_config::file::Timeouts;
use tidegate_core::{
    plan::PatienceVerdict,
    time::{Millis, Now},
};
use tidegate_runtime::clock::timer_now;
use tokio::time::Instant;

/// Which limit was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// A limit of the target's; the word for it.
    Target(&'static str),
    /// The request's own deadline.
    Deadline,
    /// The client's patience, and what it calls for.
    Patience(PatienceVerdict),
}

impl Limit {
    pub(crate) fn is_patience(self) -> bool {
        matches!(self, Self::Patience(_))
    }
}

/// The end of a wait, and what it means when it comes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    pub(crate) at: Instant,
    pub(crate) limit: Limit,
}

impl Deadline {
    fn earlier(self, other: Self) -> Self {
        if other.at < self.at { other } else { self }
    }
}

/// The limits of one attempt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timers {
    timeouts: Timeouts,
    began: Instant,
    /// When the request had been sent; until then, when it began.
    sent: Instant,
    deadline: Instant,
}

impl Timers {
    pub(crate) fn new(timeouts: Timeouts, now: Now, deadline: Now) -> Self {
        let began = timer_now();
        let left = Duration::from_millis(deadline.since(now).0.min(MAX_MS));
        Self { timeouts, began, sent: began, deadline: began + left }
    }

    pub(crate) fn sent(&mut self) {
        self.sent = timer_now();
    }

    pub(crate) fn connect(&self) -> Deadline {
        self.target(self.began, self.timeouts.connect, "connect timed out")
    }

    /// For the first content of a stream.
    pub(crate) fn first_content(&self) -> Deadline {
        self.target(self.sent, self.timeouts.first_content, "no first content in time")
    }

    /// For the response head of an answer that does not stream.
    pub(crate) fn answer(&self) -> Deadline {
        self.target(self.sent, self.timeouts.answer, "no answer in time")
    }

    /// For the next content or body bytes, from `last` on.
    pub(crate) fn idle(&self, last: Instant) -> Deadline {
        self.target(last, self.timeouts.idle, "went silent")
    }

    /// The earliest of a limit from a moment on, the attempt's total, and the request's deadline.
    fn target(&self, from: Instant, span: Millis, word: &'static str) -> Deadline {
        let at = |from: Instant, span: Millis, limit| Deadline {
            at: from + Duration::from_millis(span.0.min(MAX_MS)),
            limit,
        };
        at(from, span, Limit::Target(word))
            .earlier(at(self.began, self.timeouts.total, Limit::Target("took too long in all")))
            .earlier(Deadline { at: self.deadline, limit: Limit::Deadline })
    }
}

/// A century: longer spans would overflow the clock.
pub(crate) const MAX_MS: u64 = 100 * 365 * 24 * 3600 * 1000;
