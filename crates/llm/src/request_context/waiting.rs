//! Waiting on behalf of a request: for a target, and for as long as its client does.
//!
//! The core says when the client's patience calls for a decision, and what it is; here is the timer
//! between the two.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tidegate_core::{
    outcome::{Outcome, OutcomeKind},
    plan::PatienceVerdict,
};
use tidegate_journal::{decision::AttemptRecord, moments::AttemptMoments};
use tidegate_runtime::clock::timer_now;
use tokio::time::{Instant, Sleep, sleep_until};

use super::RequestContext;
use crate::timers::{Deadline, Limit, MAX_MS};

impl RequestContext {
    /// Waits for something until a limit, or until the client's patience ends the wait.
    pub(crate) async fn wait<T>(
        &mut self,
        deadline: Deadline,
        future: impl Future<Output = T>,
    ) -> Result<T, Limit> {
        let mut future = pin!(future);
        loop {
            let mut wake_at = None;
            // Most of what is waited for is there already, and needs no timer.
            let mut alarm = pin!(None::<Sleep>);
            let value = poll_fn(|cx| {
                if let Poll::Ready(value) = future.as_mut().poll(cx) {
                    return Poll::Ready(Some(value));
                }
                if alarm.is_none() {
                    wake_at = self.wake_at().filter(|wake_at| *wake_at < deadline.at);
                    alarm.set(Some(sleep_until(wake_at.unwrap_or(deadline.at))));
                }
                let alarm = alarm.as_mut().as_pin_mut();
                alarm.map_or(Poll::Pending, |alarm| alarm.poll(cx)).map(|()| None)
            });
            if let Some(value) = value.await {
                return Ok(value);
            }
            if wake_at.is_none() {
                return Err(deadline.limit);
            }
            match self.check_patience() {
                PatienceVerdict::GoOn => {}
                verdict => return Err(Limit::Patience(verdict)),
            }
        }
    }

    /// How an attempt ended whose wait reached `limit`, and the words for it. One that is to be
    /// left for another target is reported here.
    pub(crate) fn stopped(&mut self, limit: Limit, status: Option<u16>) -> (Outcome, &'static str) {
        let detail = match limit {
            Limit::Target(word) => {
                return (Outcome::broken(OutcomeKind::Timeout, status), word);
            }
            Limit::Deadline => "the request's deadline",
            Limit::Patience(PatienceVerdict::Leave) => {
                let detail = "silent, and left for another target";
                return (self.leave(detail), detail);
            }
            Limit::Patience(_) => "the client's own timeout",
        };
        (self.abandoned(), detail)
    }

    /// How the attempt under way ends if nobody waits for it any more.
    pub(super) fn abandoned(&self) -> Outcome {
        let now = self.worker.gateway.now();
        let nothing = Outcome::unanswered(OutcomeKind::Cancelled);
        self.permit.as_ref().map_or(nothing, |permit| self.plan.abandoned(now, permit))
    }

    fn wake_at(&self) -> Option<Instant> {
        let wake_at = self.plan.wake_at(self.permit.as_ref()?)?;
        let left = wake_at.since(self.worker.gateway.now());
        Some(timer_now() + Duration::from_millis(left.0.min(MAX_MS)))
    }

    fn check_patience(&mut self) -> PatienceVerdict {
        let now = self.worker.gateway.now();
        let (plan, permit) = (&self.plan, self.permit.as_mut());
        let Some(permit) = permit else { return PatienceVerdict::GoOn };
        self.worker.with_notes(|notes| plan.check_patience(now, permit, notes))
    }

    fn leave(&mut self, detail: &'static str) -> Outcome {
        let cancelled = Outcome::unanswered(OutcomeKind::Cancelled);
        let Some(permit) = self.permit.take() else { return cancelled };
        let now = self.worker.gateway.now();
        let backend = Arc::clone(permit.backend().id());
        let took = now.since(permit.began());
        let plan = &mut self.plan;
        let outcome = self.worker.with_notes(|notes| plan.leave(now, permit, notes));
        let ended = self.worker.gateway.journal.moment();
        self.records.push(AttemptRecord {
            target: self.shown(&backend),
            backend,
            outcome: outcome.unwrap_or(cancelled).kind,
            status: None,
            took,
            detail,
            first_content: None,
            is_counted: false,
            moments: AttemptMoments { ended, is_left: true, ..self.journal.moments },
        });
        if outcome.is_some() {
            self.settle();
        }
        outcome.unwrap_or(cancelled)
    }

    /// Counts the attempts that were left, with the outcome they have now.
    pub(crate) fn settle(&mut self) {
        let metrics = &self.worker.gateway.metrics;
        for (it, attempt) in self.records.iter_mut().zip(self.plan.attempts().iter()) {
            if !std::mem::replace(&mut it.is_counted, true) {
                it.outcome = attempt.outcome.map_or(it.outcome, |outcome| outcome.kind);
                metrics.attempt(&self.route, &it.backend, it.outcome);
            }
        }
    }
}
