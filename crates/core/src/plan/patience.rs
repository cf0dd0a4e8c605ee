//! The client's patience: how long it waits for the first byte of an answer, and what the gateway
//! makes of that time.
//!
//! ```text
//!   begin                 leave                              give up    patience ends
//!     ├─────────────────────┼──────────────────────────────────┼──────────────┤
//!     │ attempt             │ 0.6 of what remained, not before │ 200 ms       │
//!     │                     │ the target's usual time          │ before       │
//! ```
//! The shell asks [`Plan::wake_at`] when to look again, and at that moment
//! [`Plan::check_patience`] what to do. An attempt that ends there goes through [`Plan::leave`], or
//! through [`Plan::report`] with the outcome that [`Plan::abandoned`] gives.
//!
//! Rules kept here:
//! - Patience ends with the first byte that is released. It never bounds an answer after that.
//! - A silent attempt is left only if another target of rank 0 can be asked at that moment.
//! - The report of an attempt that was left waits, where its silence alone says too little, until
//!   another target has answered the same request; without that it says nothing.

use super::Plan;
use crate::{
    outcome::{Outcome, OutcomeKind},
    permit::Permit,
    time::{Millis, Now},
    transition::Notes,
    usual::{BODY_SILENCE, SilenceVerdict, judge_silence},
};

/// The answer to a client whose patience ends needs this long to reach it.
const ANSWER_TRAVELS: Millis = Millis(200);

/// How long the client of a request waits for the first byte.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    ends: Now,
}

impl Patience {
    pub(super) fn new(began: Now, patience: Millis) -> Self {
        Self { ends: began.after(patience) }
    }

    fn gives_up_at(self) -> Now {
        Now(self.ends.0.saturating_sub(ANSWER_TRAVELS.0))
    }
}

/// An attempt that was left and whose report waits until another target has answered.
#[derive(Debug)]
pub(super) struct Unsettled {
    permit: Permit,
    /// Its number among the attempts.
    attempt: usize,
}

/// What the client's patience calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatienceVerdict {
    /// Nothing yet.
    GoOn,
    /// Another target is to be asked: end this attempt with [`Plan::leave`].
    Leave,
    /// Commit what has come, with [`Permit::commit`].
    Commit,
    /// Nothing has come and there is no time left: the request is over.
    GiveUp,
}

impl Plan {
    /// When [`Plan::check_patience`] is to be asked next about the attempt under way; `None` if
    /// the client states no patience, or if something was released already.
    #[must_use]
    pub fn wake_at(&self, permit: &Permit) -> Option<Now> {
        let patience = self.patience_with(permit)?;
        let leave_at = self.leave_at(patience, permit);
        let is_considered = permit.considered == Some(leave_at);
        let give_up_at = patience.gives_up_at();
        Some(if is_considered { give_up_at } else { leave_at.min(give_up_at) })
    }

    /// What to do with the attempt under way at `now`.
    pub fn check_patience(
        &self,
        now: Now,
        permit: &mut Permit,
        notes: &mut Notes,
    ) -> PatienceVerdict {
        let Some(patience) = self.patience_with(permit) else { return PatienceVerdict::GoOn };
        if now.reached(patience.gives_up_at()) {
            let has_begun = permit.last_byte_at.is_some();
            return if has_begun { PatienceVerdict::Commit } else { PatienceVerdict::GiveUp };
        }
        let leave_at = self.leave_at(patience, permit);
        if !now.reached(leave_at) || permit.considered.replace(leave_at) == Some(leave_at) {
            return PatienceVerdict::GoOn;
        }
        if self.may_leave(now, notes) { PatienceVerdict::Leave } else { PatienceVerdict::GoOn }
    }

    /// Ends the attempt under way in favour of another target, which [`Plan::next`] chooses. Says
    /// how it ended; `None` while its report waits. Until then it counts as cancelled.
    pub fn leave(&mut self, now: Now, permit: Permit, notes: &mut Notes) -> Option<Outcome> {
        let verdict = silence_of(now, &permit);
        let kind = match verdict {
            SilenceVerdict::Timeout => OutcomeKind::Timeout,
            _ => OutcomeKind::Cancelled,
        };
        let outcome = Outcome::unanswered(kind);
        let attempt = self.log.len().saturating_sub(1);
        let is_resent = permit.is_resent();
        let waits = verdict == SilenceVerdict::TimeoutIfAnsweredElsewhere;
        if waits {
            self.unsettled.push(Unsettled { permit: permit.without_endpoint(), attempt });
        } else {
            permit.report(now, &outcome, notes);
        }
        if let Some(it) = self.log.get_mut(attempt) {
            it.outcome = Some(outcome);
            it.ended_at = Some(now);
            it.is_resent = is_resent;
        }
        self.next_key_of = None;
        (!waits).then_some(outcome)
    }

    /// How an attempt ends that the request's deadline, its client's patience or a client that left
    /// ends at `now`: with [`OutcomeKind::Timeout`] if its silence says that the target hangs.
    #[must_use]
    pub fn abandoned(&self, now: Now, permit: &Permit) -> Outcome {
        Outcome::unanswered(match silence_of(now, permit) {
            SilenceVerdict::Timeout => OutcomeKind::Timeout,
            SilenceVerdict::TimeoutIfAnsweredElsewhere | SilenceVerdict::Nothing => {
                OutcomeKind::Cancelled
            }
        })
    }

    /// The attempt under way has answered, so the targets that were left before it hang: reports
    /// them. Called at the first content; [`Plan::report`] does it for a success.
    pub fn answered(&mut self, now: Now, notes: &mut Notes) {
        let outcome = Outcome::unanswered(OutcomeKind::Timeout);
        for Unsettled { permit, attempt } in std::mem::take(&mut self.unsettled) {
            permit.report(now, &outcome, notes);
            if let Some(it) = self.log.get_mut(attempt) {
                it.outcome = Some(outcome);
            }
        }
    }

    /// Whether there is no time left to ask another target.
    pub(super) fn is_out_of_patience(&self, now: Now) -> bool {
        self.patience.is_some_and(|patience| now.reached(patience.gives_up_at()))
    }

    /// The patience that still binds an attempt: until its first byte is released.
    fn patience_with(&self, permit: &Permit) -> Option<Patience> {
        self.patience.filter(|_| !permit.is_released())
    }

    /// When the attempt has used its share of the patience, and is silent.
    fn leave_at(&self, patience: Patience, permit: &Permit) -> Now {
        let remained = patience.ends.since(permit.began);
        let share = permit.began.after(remained.scaled(self.route.patience_share));
        let usual = permit.backend.usual_time(permit.is_stream).unwrap_or_default();
        let from = permit.sent_at.unwrap_or(permit.began);
        let silent_from = permit.last_byte_at.map_or(from, |last| last.after(BODY_SILENCE));
        share.max(from.after(usual)).max(silent_from)
    }

    /// Whether a hop to a target of rank 0 could be made now.
    fn may_leave(&self, now: Now, notes: &mut Notes) -> bool {
        let hop = self.log.len();
        if now.reached(self.deadline) || hop > self.route.max_hops as usize {
            return false;
        }
        self.read(now, None, [None; 2], notes);
        let is_free = hop == 1;
        notes.reads.iter().any(|read| read.rank.is_clear())
            && (is_free || self.route.budget.has_room(now, self.counted_at))
    }
}

/// What the silence of an attempt says. One that has content, that was not sent yet, or whose body
/// shows signs of life, is not silent.
fn silence_of(now: Now, permit: &Permit) -> SilenceVerdict {
    let is_alive = permit.last_byte_at.is_some_and(|last| now.since(last) < BODY_SILENCE);
    match permit.sent_at {
        Some(sent_at) if !permit.has_content && !is_alive => {
            let usual = permit.backend.usual_time(permit.is_stream);
            let is_trial = permit.own.is_some_and(|pass| pass.is_trial());
            judge_silence(now.since(sent_at), usual, is_trial)
        }
        _ => SilenceVerdict::Nothing,
    }
}
