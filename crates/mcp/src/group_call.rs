//! One call of a client's, from server to server: the members of a group are asked in turn until
//! one answers.
//!
//! ```text
//!   next ─▶ At(call) ─▶ (the call's own machine) ─▶ ended ─▶ over
//!     ▲                                               │ failed here, and may go on
//!     └───────────────────────────────────────────────┘
//! ```
//! A server that stands alone is a group of one. The core chooses ([`CallPlan`]); each attempt is a
//! [`Call`]; here is only what joins them.
//!
//! Rules kept here:
//! - A call goes on only if its attempt may ([`Call::may_go_on`]): one that may have been carried
//!   out and is not harmless to repeat ends where it is (I10). No member is asked twice.
//! - The client hears of the group, never of a member. It hears the first answer; if none is good,
//!   the last answer that a member gave; if none answered, why the last one could not.
//! - A session stays at the member that answered it last, because its state is there, as long as
//!   nothing stands against that member.
//! - Waiting for a free turn is not part of the call's time. All members together are waited for
//!   as long as a call may take; after that only one with a free turn is asked.
//!
//! Left to others: links and bytes; the record of decisions ([`GroupCall::attempts`] has the
//! material).

use std::sync::Arc;

use tidegate_core::{
    core::Core,
    outcome::OutcomeKind,
    time::{Millis, Now},
    transition::Notes,
};

use crate::{
    call::{Call, Code, End, Replayability, Unavailable},
    cause::Cause,
    health::{Admission, CallPlan},
};

/// What a group call does next.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "made and taken apart at once, once per attempt")]
pub enum GroupStep {
    /// Have this call carried out over the link to this server, and say how it
    /// [ended](GroupCall::ended).
    At(Arc<str>, Call),
    /// It is over. [`End::Answered`] means the last answer that came.
    Over(End),
}

/// An attempt that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempted {
    /// The member that was asked.
    pub server: Arc<str>,
    /// Why it could not answer; `None` if it did.
    pub cause: Option<Cause>,
    /// What the core was told, if it was told anything.
    pub outcome: Option<OutcomeKind>,
    /// How often the request was sent there.
    pub times_sent: u32,
}

/// One call through a group.
#[derive(Debug)]
pub struct GroupCall {
    name: Arc<str>,
    replayability: Replayability,
    stays_at: Option<Arc<str>>,
    began: Now,
    limit: Millis,
    /// The way on, after a first attempt.
    plan: Option<CallPlan>,
    at: Option<Arc<str>>,
    attempts: Vec<Attempted>,
    has_answer: bool,
    last: Option<Unavailable>,
    /// How long it has waited for turns.
    waited: Millis,
}

impl GroupCall {
    /// A call of the server or group `name` that may take `limit` in all.
    #[must_use]
    pub fn new(name: &str, replayability: Replayability, now: Now, limit: Millis) -> Self {
        Self {
            name: name.into(),
            replayability,
            stays_at: None,
            began: now,
            limit,
            plan: None,
            at: None,
            attempts: Vec::new(),
            has_answer: false,
            last: None,
            waited: Millis::ZERO,
        }
    }

    /// The same, of a session whose state is at this member.
    #[must_use]
    pub fn staying_at(self, member: Option<Arc<str>>) -> Self {
        Self { stays_at: member, ..self }
    }

    /// Asks the core where to go, at the beginning and whenever [`GroupCall::ended`] gave `None`.
    pub fn next(&mut self, core: &Core, now: Now, draw: u64, notes: &mut Notes) -> GroupStep {
        if now.reached(self.deadline()) {
            return GroupStep::Over(self.refused(Cause::TimedOut(self.limit), None));
        }
        let plan = self.plan.take().or_else(|| {
            // The core does not know of waiting, which may take as long as the call.
            let left = self.deadline().after(self.limit).since(now);
            let is_first = self.attempts.is_empty();
            is_first
                .then(|| CallPlan::begin(core, &self.name, self.stays_at.as_deref(), now, left))?
        });
        let admission = match plan {
            Some(plan) => plan.next(now, draw, notes),
            None => Admission::Refused { cause: Cause::Closing, retry_after: None },
        };
        match admission {
            Admission::Go(permit) => {
                let server: Arc<str> = permit.server().into();
                self.at = Some(Arc::clone(&server));
                let (replayability, began) = (self.replayability, self.began);
                GroupStep::At(
                    server,
                    Call::admitted(&self.name, replayability, began, self.limit, permit),
                )
            }
            Admission::Refused { cause, retry_after } => {
                GroupStep::Over(self.refused(cause, retry_after))
            }
        }
    }

    /// How long it may still wait for a free turn.
    #[must_use]
    pub fn patience(&self) -> Millis {
        Millis(self.limit.0.saturating_sub(self.waited.0))
    }

    /// It waited for a turn, and was given one or not.
    pub fn waited(&mut self, span: Millis) {
        self.began = self.began.after(span);
        self.waited = Millis(self.waited.0.saturating_add(span.0));
    }

    /// An attempt ended. `None`: it goes on, ask [`GroupCall::next`].
    pub fn ended(&mut self, call: Call, end: End) -> Option<End> {
        self.note(&call, &end);
        let may_go_on = call.may_go_on();
        let is_answer = end == End::Answered;
        self.plan = call.into_plan().filter(|_| may_go_on);
        if self.plan.is_none() {
            // An error that a server gave tells more than another's silence.
            let keeps_answer = self.has_answer && matches!(end, End::Unavailable(_));
            return Some(if keeps_answer { End::Answered } else { end });
        }
        self.has_answer |= is_answer;
        if let End::Unavailable(unavailable) = end {
            self.last = Some(unavailable);
        }
        None
    }

    /// The member at which the session's state is from here on, if the group call found one.
    #[must_use]
    pub fn stays(&self) -> Option<Arc<str>> {
        let last = self.attempts.last().filter(|it| it.cause.is_none());
        last.filter(|it| it.outcome != Some(OutcomeKind::ServerError))
            .map(|it| Arc::clone(&it.server))
    }

    /// Its attempts that are over, in order.
    #[must_use]
    pub fn attempts(&self) -> &[Attempted] {
        &self.attempts
    }

    /// When it must be over.
    #[must_use]
    pub fn deadline(&self) -> Now {
        self.began.after(self.limit)
    }

    fn note(&mut self, call: &Call, end: &End) {
        let Some(server) = self.at.take() else { return };
        let cause = match end {
            End::Unavailable(unavailable) => Some(unavailable.cause),
            End::Answered | End::Connected => None,
        };
        let outcome = call.reported().map(|it| it.kind);
        self.attempts.push(Attempted { server, cause, outcome, times_sent: call.times_sent() });
    }

    /// Nobody is left to ask.
    fn refused(&mut self, cause: Cause, retry_after: Option<Millis>) -> End {
        if self.has_answer {
            return End::Answered;
        }
        let last = self
            .last
            .take()
            .map(|last| Unavailable { retry_after: retry_after.or(last.retry_after), ..last });
        End::Unavailable(last.unwrap_or_else(|| Unavailable {
            server: self.name.to_string(),
            cause,
            retry_after,
            code: Code::BackendUnavailable,
        }))
    }
}

#[cfg(test)]
mod tests;
