//! Suspicion: another replica's breaker of the same thing opened.
//!
//! What another replica saw is no evidence of our own: it never opens a breaker. It makes the next
//! failure of our own enough, as if the streak were one short, so that an outage that one replica
//! has met costs the others one failure each and not a whole streak.
//!
//! Rules kept here:
//! - It lasts until a time, or until the first success of the replica's own. As with the two
//!   streaks, the first content ends it for failures before content, a whole answer altogether.
//! - Of two, the later end counts. One that was told before a success that ended one is not taken
//!   again, however often it is heard.
//! - An opening that it hastened is not told to other replicas, nor are its re-openings, until the
//!   replica's own failures in a row reach the threshold: replicas must not keep each other's
//!   breakers open (I25).

use super::{Breaker, OpenCause, Phase};
use crate::time::{Millis, Now};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Suspicion {
    before_content: Part,
    after_content: Part,
}

/// What it means for one of the two streaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Part {
    /// Zero = there is none.
    until: Now,
    /// When a success last ended one.
    ended_at: Option<Now>,
}

impl Part {
    fn end(&mut self, now: Now) {
        if self.until > Now::ZERO {
            *self = Self { until: Now::ZERO, ended_at: Some(now) };
        }
    }

    /// Whether it lasts longer than before.
    fn extend(&mut self, told_at: Now, until: Now) -> bool {
        let is_overtaken = self.ended_at.is_some_and(|ended| told_at <= ended);
        if is_overtaken || until <= self.until {
            return false;
        }
        self.until = until;
        true
    }
}

impl Suspicion {
    pub(super) fn is_none(&self) -> bool {
        self.before_content.until == Now::ZERO && self.after_content.until == Now::ZERO
    }

    /// All that the future can depend on, for the walk over all states.
    #[cfg(test)]
    pub(super) fn essence(&self, now: Now) -> [u64; 4] {
        let [before, after] = [self.before_content, self.after_content].map(|part| {
            let is_ended_now = part.ended_at == Some(now);
            [part.until.since(now).0 + u64::from(part.until > Now::ZERO), u64::from(is_ended_now)]
        });
        [before[0], before[1], after[0], after[1]]
    }

    pub(super) fn content_came(&mut self, now: Now) {
        self.before_content.end(now);
    }

    pub(super) fn end(&mut self, now: Now) {
        self.before_content.end(now);
        self.after_content.end(now);
    }
}

impl Breaker {
    /// Another replica told at `told_at` that its breaker is open until a moment. Whether that is
    /// news.
    pub fn suspect(&mut self, now: Now, told_at: Now, until: Now) -> bool {
        if now.reached(until) {
            return false;
        }
        let Suspicion { before_content, after_content } = &mut self.suspicion;
        before_content.extend(told_at, until) | after_content.extend(told_at, until)
    }

    /// The longest that it can be open for at a time: more than that nobody is believed.
    #[must_use]
    pub fn longest_open(&self) -> Millis {
        let longest = self.settings.open_max.max(self.settings.open_for);
        Millis(longest.0.saturating_add(longest.scaled(self.settings.open_jitter).0))
    }

    /// Whether other replicas are to be told that it is open: it is on evidence of its own.
    #[must_use]
    pub fn is_told(&self) -> bool {
        matches!(self.phase, Phase::Open(opening) if opening.hastened.is_none())
    }

    /// The cause to open for, if a failure that is not enough by itself meets suspicion.
    pub(super) fn suspected(&self, now: Now, after_content: bool) -> Option<OpenCause> {
        let memory = self.settings.strike_memory;
        let (part, streak) = if after_content {
            (&self.suspicion.after_content, &self.after_content)
        } else {
            (&self.suspicion.before_content, &self.before_content)
        };
        (part.until > now).then(|| OpenCause::Suspected(streak.count(now, memory)))
    }

    /// The replica's own strikes at an opening for this cause, where it is owed to suspicion.
    pub(super) fn hastened_by(&self, cause: OpenCause) -> Option<u32> {
        let strikes = match (cause, self.phase) {
            (OpenCause::Suspected(strikes), _) => strikes,
            (_, Phase::Open(opening)) => opening.hastened?.saturating_add(1),
            (_, Phase::Closed) => return None,
        };
        Some(strikes).filter(|strikes| *strikes < self.settings.failure_threshold)
    }

    /// A success ends a row of strikes, while it is open too.
    pub(super) fn strikes_ended(&mut self) {
        if let Phase::Open(opening) = &mut self.phase {
            opening.hastened = opening.hastened.map(|_| 0);
        }
    }
}
