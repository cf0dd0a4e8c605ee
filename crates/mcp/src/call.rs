//! One call at one server, from asking the core to the answer: a machine over a [`Link`].
//!
//! ```text
//!   begin ─▶ (core: permit) ─▶ link ready? ──▶ send ──▶ answered ─▶ end
//!                 │ refused       │ no           │ broken: conversation gone
//!                 ▼               ▼              ▼
//!                end       connect or wait ◀── regain it ─▶ send again, once, if that is safe
//!                                 │ failed                 └▶ else: the result is unknown
//!                                 ▼
//!                                end
//! ```
//! The owner does what an [`Action`] says and tells the machine how it went. The simulator and the
//! server drive the same machine.
//!
//! Rules kept here:
//! - A request is sent a second time only if it certainly was not carried out the first time, or
//!   its tool is declared read-only or idempotent; never a third time (I10). A timeout is never
//!   followed by another try.
//! - A call charges the server at most once. A conversation that is lost and regained charges
//!   nothing; one that cannot be regained is one failure, which all calls that waited share.
//! - What the client hears of a call that must not be sent again is known at the break
//!   ([`Call::verdict`]); the machine goes on only to learn whether the server is to blame.
//! - Whether the call may go on at another server is known at its end ([`Call::may_go_on`]): after
//!   a failure of this one, if it certainly was not carried out here or doing it twice is harmless.
//! - Dropping the machine is cancelling: the permit returns. A connect that it led goes on without
//!   it, and the first of those who wait to hear of its failure is charged.
//!
//! Left to others: bytes, timers, `notifications/cancelled`; the texts of errors (`unavailable`);
//! going on at another server (`group_call.rs`).

use tidegate_core::{
    core::Core,
    outcome::{Outcome, OutcomeKind},
    time::{Millis, Now},
    transition::Notes,
};

use crate::{
    cause::{Cause, Delivery},
    health::{Admission, CallPermit, CallPlan, Failure, Reply, admit},
    link::{Generation, Link, Want},
};

mod unavailable;

pub use unavailable::{Code, TooManyCalls, Unavailable, say_new};

/// What is to be done over the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replayability {
    /// Only to have it: a session opens, or an idle connection is made again.
    Connect,
    /// A request that may be sent again: resources, prompts, lists, a tool that is declared
    /// `readOnlyHint` or `idempotentHint`.
    Repeatable,
    /// A request that may change something: a tool without such a hint.
    Once,
}

/// What the owner of a call does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Connect or initialise again, tell the link how it went, then every call that waits.
    Connect(Generation),
    /// Wait for the attempt that another call is making.
    Wait(Generation),
    /// Send the request over this connection.
    Send(Generation),
    /// Go on with what is under way: the news was not about that.
    Nothing,
    /// It is over.
    End(End),
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The server's answer, a result or an error, goes to the client.
    Answered,
    /// The connection is there ([`Replayability::Connect`]).
    Connected,
    /// The client hears this instead of an answer.
    Unavailable(Unavailable),
}

/// Where a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallPhase {
    New,
    /// Waiting for this attempt; `leads` if it is the one that makes it.
    Connecting {
        generation: Generation,
        leads: bool,
    },
    Sent(Generation),
    Over,
}

/// One call.
#[derive(Debug)]
pub struct Call {
    server: String,
    replayability: Replayability,
    began: Now,
    limit: Millis,
    phase: CallPhase,
    permit: Option<CallPermit>,
    /// Where its permit led back to.
    plan: Option<CallPlan>,
    /// The break after which it was, or is to be, sent again or given up.
    broke: Option<Failure>,
    times_sent: u32,
    reported: Option<Outcome>,
    /// The server failed it, in time.
    has_failed: bool,
    /// It may have been carried out.
    may_be_done: bool,
}

impl Call {
    /// A call that may take `limit` in all, from the moment its turn has come.
    #[must_use]
    pub fn new(server: &str, replayability: Replayability, now: Now, limit: Millis) -> Self {
        Self {
            server: server.to_owned(),
            replayability,
            began: now,
            limit,
            phase: CallPhase::New,
            permit: None,
            plan: None,
            broke: None,
            times_sent: 0,
            reported: None,
            has_failed: false,
            may_be_done: false,
        }
    }

    /// The same with a permit of its own; `name` is what clients call the server, or its group.
    #[must_use]
    pub fn admitted(
        name: &str,
        replayability: Replayability,
        now: Now,
        limit: Millis,
        permit: CallPermit,
    ) -> Self {
        Self { permit: Some(permit), ..Self::new(name, replayability, now, limit) }
    }

    /// Asks the core, then the link.
    pub fn begin(
        &mut self,
        core: &Core,
        link: &mut Link,
        now: Now,
        draw: u64,
        notes: &mut Notes,
    ) -> Action {
        let left = self.deadline().since(now);
        match admit(core, &self.server, now, draw, left, notes) {
            Admission::Go(permit) => {
                self.permit = Some(permit);
                self.seek(link, now, notes)
            }
            Admission::Refused { cause, retry_after } => {
                self.unavailable(cause, retry_after, Code::BackendUnavailable)
            }
        }
    }

    /// Asks the link of the server that it was [admitted](Self::admitted) to.
    pub fn go(&mut self, link: &mut Link, now: Now, notes: &mut Notes) -> Action {
        if self.phase == CallPhase::New { self.seek(link, now, notes) } else { Action::Nothing }
    }

    /// It waited for as long for a free turn at the server: its clock starts when it is sent.
    pub fn waited(&mut self, span: Millis) {
        self.began = self.began.after(span);
    }

    /// No turn came in time. The server is not to blame, and another may have one.
    pub fn no_turn(&mut self, now: Now) -> Action {
        if self.phase != CallPhase::New {
            return Action::Nothing;
        }
        self.has_failed = true;
        let retry_after = self.cancel(now);
        self.unavailable(Cause::Busy, retry_after, Code::Busy)
    }

    /// The attempt it made or waited for led to a connection.
    pub fn connected(&mut self, link: &mut Link, now: Now, notes: &mut Notes) -> Action {
        match self.phase {
            CallPhase::Connecting { leads: true, .. }
                if self.replayability == Replayability::Connect =>
            {
                self.report(now, &Outcome::unanswered(OutcomeKind::Success), notes);
                self.over(End::Connected)
            }
            CallPhase::Connecting { .. } => self.seek(link, now, notes),
            CallPhase::New | CallPhase::Sent(_) | CallPhase::Over => Action::Nothing,
        }
    }

    /// The attempt it made or waited for failed: all who waited share one charge.
    pub fn connect_failed(
        &mut self,
        link: &mut Link,
        now: Now,
        failure: &Failure,
        notes: &mut Notes,
    ) -> Action {
        let CallPhase::Connecting { generation, .. } = self.phase else { return Action::Nothing };
        self.has_failed = true;
        let retry_after = if link.claim(generation) {
            self.report(now, &failure.told(), notes)
        } else {
            self.pass(now, &failure.told())
        };
        let retry_after = retry_after.or(failure.retry_after);
        match self.verdict() {
            Some(known) => self.over(End::Unavailable(Unavailable { retry_after, ..known })),
            None => {
                let is_busy = failure.cause == Cause::TooManyChildren;
                let code = if is_busy { Code::Busy } else { Code::BackendUnavailable };
                self.unavailable(failure.cause, retry_after, code)
            }
        }
    }

    /// The server answered.
    pub fn answered(
        &mut self,
        link: &mut Link,
        now: Now,
        reply: Reply,
        notes: &mut Notes,
    ) -> Action {
        let CallPhase::Sent(_) = self.phase else { return Action::Nothing };
        match reply {
            Reply::Ended(kind) => {
                self.may_be_done = true;
                self.has_failed = kind == OutcomeKind::ServerError;
                self.report(now, &Outcome::unanswered(kind), notes);
                self.over(End::Answered)
            }
            Reply::SessionLost => self.broken(link, now, &Failure::session_lost(), notes),
        }
    }

    /// The request will get no answer over the connection it was sent on.
    pub fn broken(
        &mut self,
        link: &mut Link,
        now: Now,
        failure: &Failure,
        notes: &mut Notes,
    ) -> Action {
        let CallPhase::Sent(generation) = self.phase else { return Action::Nothing };
        self.may_be_done |= failure.delivery == Delivery::Maybe;
        if failure.ends_conversation() {
            link.lost(generation);
            if self.times_sent == 1 && !now.reached(self.deadline()) {
                self.broke = Some(*failure);
                return self.seek(link, now, notes);
            }
        }
        // An equivalent server would give the same answer, and this one has done nothing wrong.
        self.has_failed = failure.cause != Cause::TooLarge;
        let retry_after = self.report(now, &failure.told(), notes).or(failure.retry_after);
        self.unavailable(failure.cause, retry_after, self.code(failure.delivery))
    }

    /// Its time is over. Never followed by another try.
    pub fn timed_out(&mut self, link: &mut Link, now: Now, notes: &mut Notes) -> Action {
        let known = self.verdict();
        let (is_blamed, delivery) = match self.phase {
            CallPhase::Sent(_) => (true, Delivery::Maybe),
            // Who leads speaks for all who wait.
            CallPhase::Connecting { generation, leads } => {
                (leads && link.claim(generation), Delivery::Not)
            }
            CallPhase::New | CallPhase::Over => return Action::Nothing,
        };
        let retry_after = if is_blamed {
            self.report(now, &Outcome::unanswered(OutcomeKind::Timeout), notes)
        } else {
            self.cancel(now)
        };
        match known {
            Some(known) => self.over(End::Unavailable(Unavailable { retry_after, ..known })),
            None => {
                let code = self.code(delivery);
                self.unavailable(Cause::TimedOut(self.limit), retry_after, code)
            }
        }
    }

    /// What the client will hear, as far as it is known before the end: a request that must not
    /// be sent again broke.
    #[must_use]
    pub fn verdict(&self) -> Option<Unavailable> {
        let broke = self.broke.filter(|broke| !self.may_repeat(broke))?;
        Some(Unavailable {
            server: self.server.clone(),
            cause: broke.cause,
            retry_after: broke.retry_after,
            code: self.code(broke.delivery),
        })
    }

    /// Whether, now that it is over, it may go on at another server.
    #[must_use]
    pub fn may_go_on(&self) -> bool {
        let is_safe = self.replayability != Replayability::Once || !self.may_be_done;
        self.phase == CallPhase::Over && self.has_failed && is_safe
    }

    /// The way on, once it is over.
    #[must_use]
    pub fn into_plan(self) -> Option<CallPlan> {
        self.plan
    }

    /// When it must be over.
    #[must_use]
    pub fn deadline(&self) -> Now {
        self.began.after(self.limit)
    }

    /// What it is to do.
    #[must_use]
    pub fn replayability(&self) -> Replayability {
        self.replayability
    }

    /// How often the request was sent.
    #[must_use]
    pub fn times_sent(&self) -> u32 {
        self.times_sent
    }

    /// Whether a half-open breaker admitted it.
    #[must_use]
    pub fn is_trial(&self) -> bool {
        self.permit.as_ref().is_some_and(CallPermit::is_trial)
    }

    /// What the core was told, if it was told anything.
    #[must_use]
    pub fn reported(&self) -> Option<Outcome> {
        self.reported
    }

    /// The connection is wanted: to send, or only to be there again.
    fn seek(&mut self, link: &mut Link, now: Now, notes: &mut Notes) -> Action {
        if now.reached(self.deadline()) {
            return self.timed_out(link, now, notes);
        }
        match link.want() {
            Want::Connect(generation) => {
                self.phase = CallPhase::Connecting { generation, leads: true };
                Action::Connect(generation)
            }
            Want::Wait(generation) => {
                self.phase = CallPhase::Connecting { generation, leads: false };
                Action::Wait(generation)
            }
            Want::Closed => {
                self.has_failed = true;
                self.cancel(now);
                let known = self.verdict().map(|it| self.over(End::Unavailable(it)));
                known.unwrap_or_else(|| {
                    self.unavailable(Cause::Closing, None, Code::BackendUnavailable)
                })
            }
            Want::Use(generation) => self.use_it(generation, now),
        }
    }

    fn use_it(&mut self, generation: Generation, now: Now) -> Action {
        if let Some(known) = self.verdict() {
            // Regained: nobody is to blame.
            let retry_after = self.cancel(now);
            return self.over(End::Unavailable(Unavailable { retry_after, ..known }));
        }
        if self.replayability == Replayability::Connect {
            self.cancel(now);
            return self.over(End::Connected);
        }
        self.phase = CallPhase::Sent(generation);
        self.times_sent += 1;
        Action::Send(generation)
    }

    fn may_repeat(&self, broke: &Failure) -> bool {
        broke.delivery == Delivery::Not || self.replayability != Replayability::Once
    }

    fn code(&self, delivery: Delivery) -> Code {
        if delivery == Delivery::Maybe && self.replayability == Replayability::Once {
            Code::ResultUnknown
        } else {
            Code::BackendUnavailable
        }
    }

    fn report(&mut self, now: Now, outcome: &Outcome, notes: &mut Notes) -> Option<Millis> {
        if outcome.kind == OutcomeKind::Cancelled {
            // Nobody is to blame, and the call may go on elsewhere.
            return self.pass(now, outcome);
        }
        let permit = self.permit.take()?;
        self.reported = Some(*outcome);
        let plan = self.plan.insert(permit.report(now, outcome, notes));
        plan.re_entry(now)
    }

    /// It came to nothing in this way, and the core hears nothing of it.
    fn pass(&mut self, now: Now, outcome: &Outcome) -> Option<Millis> {
        let permit = self.permit.take()?;
        self.plan.insert(permit.pass(now, outcome)).re_entry(now)
    }

    /// Gives the permit back without a word about the server.
    fn cancel(&mut self, now: Now) -> Option<Millis> {
        self.pass(now, &Outcome::unanswered(OutcomeKind::Cancelled))
    }

    fn unavailable(&mut self, cause: Cause, retry_after: Option<Millis>, code: Code) -> Action {
        let server = self.server.clone();
        self.over(End::Unavailable(Unavailable { server, cause, retry_after, code }))
    }

    fn over(&mut self, end: End) -> Action {
        self.phase = CallPhase::Over;
        self.permit = None;
        Action::End(end)
    }
}

#[cfg(test)]
mod tests;
