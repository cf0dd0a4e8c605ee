//! The circuit breaker of one backend: a pure state machine.
//!
//! ```text
//!            streak or ratio                 deadline reached (by reading, no event)
//!   closed ──────────────────▶ open ─────────────────────────────▶ half-open
//!      ▲                        ▲  │ failing probe: deadline later     │  │
//!      │                        └──┼───────────────────────────────────┘  │
//!      └───────────────────────────┴──────────────────────────────────────┘
//!        enough trial successes      a trial fails
//! ```
//!
//! Rules kept here (tests cite them):
//! - Two streaks: attempts that failed before content, answers that broke after it. The first
//!   content ends the first; a whole answer ends both.
//! - Half-open is open past its deadline. Reading never changes state.
//! - Opening starts a new generation, closing does not. A [`Pass`] of an old generation, or on an
//!   ended lease, changes nothing (I4).
//! - The open deadline never moves earlier while open (I11).
//! - A trial that fails re-opens at once, even after the breaker has closed.
//! - Where only the probe's path is dead, traffic still gets its trial: failing probes keep the
//!   breaker open for at most `open_max`, and then leave it half-open for one open period, or, once
//!   a trial has succeeded, to traffic alone.
//! - Suspicion (`breaker/suspicion.rs`) makes the next failure open it and changes nothing else.
//! - While an operator holds it open, no probe closes it; at the end of the hold it is half-open,
//!   as at every other deadline.
//!
//! Left to others: sharing between threads (`cell.rs`), windows and exclusions (`backend.rs`),
//! which outcome means what (`outcome.rs`).

mod change;
mod samples;
mod slots;
mod strikes;
mod suspicion;

pub use change::{BreakerChange, CloseCause, OpenCause};
pub use slots::SlotNumber;

use serde::{Deserialize, Serialize};

use crate::{
    draw,
    settings::HealthSettings,
    time::{Millis, Now},
};
use samples::Samples;
use slots::Slots;
use strikes::Streak;
use suspicion::Suspicion;

/// What a breaker looks like at a moment, the better states first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Attempts pass.
    Closed,
    /// A few trials pass.
    HalfOpen,
    /// Nothing passes.
    Open,
}

impl State {
    /// The word used in traces, metrics and JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::HalfOpen => "half_open",
            Self::Open => "open",
        }
    }
}

/// The right to make one attempt past one breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pass {
    generation: u64,
    lease_end: Now,
    slot: Option<SlotNumber>,
    has_content: bool,
}

impl Pass {
    /// A pass of a closed breaker, read without its lock.
    pub(crate) const fn ordinary(generation: u64, lease_end: Now) -> Self {
        Self { generation, lease_end, slot: None, has_content: false }
    }

    /// Whether a half-open breaker admitted it.
    #[must_use]
    pub const fn is_trial(&self) -> bool {
        self.slot.is_some()
    }

    /// Whether its attempt got to its first content in time.
    #[must_use]
    pub const fn has_content(&self) -> bool {
        self.has_content
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Closed,
    /// Open until the deadline, half-open from then on.
    Open(Opening),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Opening {
    /// When traffic or the first failing probe opened it: failing probes count `open_max` from
    /// here.
    since: Now,
    until: Now,
    period: Millis,
    reopens: u32,
    /// Until when an operator holds it open.
    held_until: Now,
    /// The replica's own strikes so far, where suspicion opened it and they are not enough yet.
    hastened: Option<u32>,
}

/// What other threads read without the lock (`cell.rs` publishes it).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    /// The generation a pass would have.
    pub generation: u64,
    /// When it is (or was) half-open; `None` = closed.
    pub half_open_from: Option<Now>,
    /// From when on a pass can be had.
    pub free_from: Now,
    /// Until when it is in its promotion hold.
    pub hold_until: Now,
    /// Closed, with nothing a success could clear.
    pub is_spotless: bool,
}

impl Gate {
    /// The state at `now`.
    #[must_use]
    pub fn state(&self, now: Now) -> State {
        match self.half_open_from {
            None => State::Closed,
            Some(from) if now.reached(from) => State::HalfOpen,
            Some(_) => State::Open,
        }
    }

    /// Whether a pass can be had at `now`.
    #[must_use]
    pub fn is_free(&self, now: Now) -> bool {
        now.reached(self.free_from)
    }
}

/// One breaker.
#[derive(Clone, Debug, PartialEq)]
pub struct Breaker {
    settings: HealthSettings,
    seed: u64,
    generation: u64,
    phase: Phase,
    before_content: Streak,
    after_content: Streak,
    samples: Samples,
    trial_successes: u32,
    slots: Slots,
    closed_since: Option<Now>,
    consecutive_failures: u32,
    suspicion: Suspicion,
}

impl Breaker {
    /// A closed breaker: an unknown backend is healthy. `seed` feeds the jitter only.
    #[must_use]
    pub fn new(settings: HealthSettings, seed: u64) -> Self {
        let samples = Samples::new(settings.failure_ratio > 0.0);
        Self {
            settings,
            seed,
            generation: 0,
            phase: Phase::Closed,
            before_content: Streak::default(),
            after_content: Streak::default(),
            samples,
            trial_successes: 0,
            slots: Slots::default(),
            closed_since: None,
            consecutive_failures: 0,
            suspicion: Suspicion::default(),
        }
    }

    /// Other settings, from the next event on.
    pub fn set_settings(&mut self, settings: HealthSettings) {
        let was_judged = self.settings.failure_ratio > 0.0;
        let is_judged = settings.failure_ratio > 0.0;
        if was_judged != is_judged {
            self.samples = Samples::new(is_judged);
        }
        self.settings = settings;
    }

    /// The state at `now`.
    #[must_use]
    pub fn state(&self, now: Now) -> State {
        self.gate().state(now)
    }

    /// The open deadline, while there is one.
    #[must_use]
    pub fn deadline(&self) -> Option<Now> {
        match self.phase {
            Phase::Closed => None,
            Phase::Open(opening) => Some(opening.until),
        }
    }

    /// Failures since the last success, by traffic and probes.
    #[must_use]
    pub fn consecutive_failures(&self) -> u32 {
        self.consecutive_failures
    }

    /// Slots taken at `now`.
    #[must_use]
    pub fn slots_taken(&self, now: Now) -> u32 {
        self.slots.held(now)
    }

    /// When it last closed, unless it has opened since.
    #[must_use]
    pub fn closed_since(&self) -> Option<Now> {
        self.closed_since
    }

    /// What readers need to know.
    #[must_use]
    pub fn gate(&self) -> Gate {
        let (half_open_from, free_from) = match self.phase {
            Phase::Closed => (None, Now::ZERO),
            Phase::Open(opening) => {
                let slot = self.slots.free_from(self.settings.trial_permits);
                (Some(opening.until), slot.map_or(opening.until, |from| from.max(opening.until)))
            }
        };
        let hold = self.settings.promotion_hold;
        Gate {
            generation: self.generation,
            half_open_from,
            free_from,
            hold_until: self.closed_since.map_or(Now::ZERO, |since| since.after(hold)),
            is_spotless: half_open_from.is_none()
                && self.consecutive_failures == 0
                && self.before_content.is_empty()
                && self.after_content.is_empty()
                && self.suspicion.is_none(),
        }
    }

    /// A pass, if there is one to be had. `lease_end`: the latest its attempt can get to its
    /// first content (or result), and a little more.
    pub fn take(&mut self, now: Now, lease_end: Now) -> Option<Pass> {
        let slot = match self.state(now) {
            State::Closed => None,
            State::HalfOpen => {
                Some(self.slots.take(now, lease_end, self.settings.trial_permits)?)
            }
            State::Open => return None,
        };
        Some(Pass { slot, ..Pass::ordinary(self.generation, lease_end) })
    }

    /// The attempt got to its first content: a trial has succeeded, though it stays on probation.
    pub fn content(&mut self, now: Now, pass: &mut Pass) -> Option<BreakerChange> {
        if pass.has_content || !self.is_current(now, pass) {
            return None;
        }
        pass.has_content = true;
        let change = self.settle_trial(now, pass);
        if self.phase == Phase::Closed && change.is_none() {
            self.before_content.clear();
            self.suspicion.content_came(now);
            if self.after_content.is_empty() {
                self.consecutive_failures = 0;
            }
        }
        change
    }

    /// The attempt ended in a whole answer.
    pub fn success(&mut self, now: Now, pass: Pass) -> Option<BreakerChange> {
        if !self.is_current(now, &pass) {
            self.release(&pass);
            return None;
        }
        let change = if pass.has_content { None } else { self.settle_trial(now, &pass) };
        if self.phase == Phase::Closed && change.is_none() {
            self.wipe_strikes();
            self.suspicion.end(now);
            if !pass.is_trial() {
                self.samples.add(now, false, self.settings.window);
            }
        }
        change
    }

    /// The attempt failed. `after_content`: content had been released.
    pub fn failure(&mut self, now: Now, pass: Pass, after_content: bool) -> Option<BreakerChange> {
        if !self.is_current(now, &pass) {
            self.release(&pass);
            return None;
        }
        self.consecutive_failures = self.consecutive_failures.saturating_add(1);
        if pass.is_trial() {
            return Some(self.reopen(now, now, OpenCause::TrialFailed));
        }
        if after_content && !pass.has_content {
            // Content had come though nobody reported it. Where somebody did, it ended the streak
            // when it came, and failures since then still count.
            self.before_content.clear();
        }
        self.samples.add(now, true, self.settings.window);
        let cause = self.strike(now, after_content).or_else(|| self.judge_ratio(now));
        let cause = cause.or_else(|| self.suspected(now, after_content))?;
        Some(self.open(now, now, 0, cause))
    }

    /// The attempt ended in a way that says nothing; a slot it holds is free again.
    pub fn release(&mut self, pass: &Pass) {
        if let Some(slot) = pass.slot {
            self.slots.give_back(slot);
        }
    }

    /// A probe of the same thing succeeded: a trial success, also before the deadline.
    pub fn probe_passed(&mut self, now: Now) -> Option<BreakerChange> {
        match self.phase {
            Phase::Closed => {
                self.wipe_strikes();
                self.suspicion.end(now);
                None
            }
            Phase::Open(opening) if !now.reached(opening.held_until) => None,
            Phase::Open(_) => self.count_trial_success(now, CloseCause::ProbePassed),
        }
    }

    /// A probe of the same thing failed: like a failure of traffic.
    pub fn probe_failed(&mut self, now: Now) -> Option<BreakerChange> {
        self.consecutive_failures = self.consecutive_failures.saturating_add(1);
        let Phase::Open(opening) = self.phase else {
            let cause = self.strike(now, false).or_else(|| self.suspected(now, false))?;
            return Some(self.open(now, now, 0, cause));
        };
        let limit = opening.since.after(self.settings.open_max);
        if !now.reached(opening.until) {
            self.trial_successes = 0;
            let until = now.after(opening.period).min(limit).max(opening.until);
            self.phase = Phase::Open(Opening { until, ..opening });
            return (until > opening.until).then_some(BreakerChange::Extended { until });
        }
        if !now.reached(limit) {
            return Some(self.reopen(now, opening.since, OpenCause::ProbeFailed));
        }
        // Traffic's turn: the probe's path may be all that is dead. A trial that succeeded says so.
        if self.trial_successes == 0 && now.reached(limit.after(opening.period)) {
            return Some(self.reopen(now, now, OpenCause::ProbeFailed));
        }
        None
    }

    /// Opens it by hand, until a moment; a later hold never shortens an earlier one.
    pub fn hold(&mut self, now: Now, until: Now) -> BreakerChange {
        let (reopens, held_until, hastened) = match self.phase {
            Phase::Closed => (0, until, None),
            Phase::Open(it) => (it.reopens, until.max(it.held_until), it.hastened),
        };
        let (from, cause) = (self.state(now), OpenCause::Held);
        let until = held_until.max(self.deadline().unwrap_or(Now::ZERO));
        self.open(now, now, reopens, cause);
        // What failing probes may add counts from the end of the hold.
        let (since, period) = (until, self.open_period(reopens));
        self.phase = Phase::Open(Opening { since, until, period, reopens, held_until, hastened });
        BreakerChange::Opened { from, until, reopens, cause }
    }

    /// Whether an operator holds it open.
    #[must_use]
    pub fn is_held(&self, now: Now) -> bool {
        self.held_until(now).is_some()
    }

    /// Until when an operator holds it open.
    #[must_use]
    pub fn held_until(&self, now: Now) -> Option<Now> {
        match self.phase {
            Phase::Open(opening) => Some(opening.held_until).filter(|until| !now.reached(*until)),
            Phase::Closed => None,
        }
    }

    /// Closes it by hand.
    pub fn reset(&mut self, now: Now) -> Option<BreakerChange> {
        if self.phase == Phase::Closed {
            self.wipe_strikes();
            self.samples.clear();
            self.suspicion.end(now);
            return None;
        }
        Some(self.close(now, CloseCause::Reset))
    }

    /// Stops with the broken rule's name if the state contradicts itself (tests and simulator).
    pub fn check_invariants(&self, now: Now) {
        let (taken, limit) = (self.slots.held(now), self.slots.limit());
        assert!(taken <= limit, "I3: {taken} slots taken of {limit}");
        if let Phase::Open(opening) = self.phase {
            assert!(self.closed_since.is_none(), "opening clears the stamp of the promotion hold");
            assert!(opening.until >= opening.since, "I11: a deadline lies after its opening");
        } else {
            assert_eq!(self.trial_successes, 0, "a closed breaker counts no trials");
        }
    }

    fn is_current(&self, now: Now, pass: &Pass) -> bool {
        pass.generation == self.generation && (pass.has_content || !now.reached(pass.lease_end))
    }

    /// Frees a trial's slot and counts its success while the breaker is not closed.
    fn settle_trial(&mut self, now: Now, pass: &Pass) -> Option<BreakerChange> {
        if !pass.is_trial() {
            return None;
        }
        self.release(pass);
        if self.phase == Phase::Closed {
            return None;
        }
        self.count_trial_success(now, CloseCause::TrialsPassed)
    }

    fn count_trial_success(
        &mut self,
        now: Now,
        cause: fn(u32) -> CloseCause,
    ) -> Option<BreakerChange> {
        self.trial_successes += 1;
        self.consecutive_failures = 0;
        self.suspicion.end(now);
        self.strikes_ended();
        (self.trial_successes >= self.settings.recovery_threshold)
            .then(|| self.close(now, cause(self.trial_successes)))
    }

    fn strike(&mut self, now: Now, after_content: bool) -> Option<OpenCause> {
        let (memory, threshold) = (self.settings.strike_memory, self.settings.failure_threshold);
        let (streak, cause): (_, fn(u32) -> OpenCause) = if after_content {
            (&mut self.after_content, OpenCause::BrokenAnswers)
        } else {
            (&mut self.before_content, OpenCause::ConsecutiveFailures)
        };
        let count = streak.strike(now, memory, threshold);
        (count >= threshold).then_some(cause(count))
    }

    fn judge_ratio(&mut self, now: Now) -> Option<OpenCause> {
        if self.settings.failure_ratio <= 0.0 {
            return None;
        }
        let ratio = self.samples.ratio(now, self.settings.window);
        let is_enough = ratio.samples >= self.settings.min_samples;
        // A quotient, not a product: 11 of 20 is the same number as a written 0.55.
        let is_bad =
            f64::from(ratio.failed) / f64::from(ratio.samples) >= self.settings.failure_ratio;
        (is_enough && is_bad)
            .then_some(OpenCause::FailureRatio { failed: ratio.failed, samples: ratio.samples })
    }

    fn reopen(&mut self, now: Now, since: Now, cause: OpenCause) -> BreakerChange {
        let reopens = match self.phase {
            Phase::Closed => 1,
            Phase::Open(opening) => opening.reopens.saturating_add(1),
        };
        self.open(now, since, reopens, cause)
    }

    fn open(&mut self, now: Now, since: Now, reopens: u32, cause: OpenCause) -> BreakerChange {
        let from = self.state(now);
        self.generation += 1;
        let period = self.open_period(reopens);
        let mut until = now.after(period).max(self.deadline().unwrap_or(Now::ZERO));
        if cause == OpenCause::ProbeFailed && since < now {
            until = until.min(since.after(self.settings.open_max));
        }
        let (held_until, hastened) = (Now::ZERO, self.hastened_by(cause));
        self.phase = Phase::Open(Opening { since, until, period, reopens, held_until, hastened });
        self.closed_since = None;
        self.forget_evidence();
        BreakerChange::Opened { from, until, reopens, cause }
    }

    fn close(&mut self, now: Now, cause: CloseCause) -> BreakerChange {
        let from = self.state(now);
        self.phase = Phase::Closed;
        self.closed_since = Some(now);
        self.consecutive_failures = 0;
        self.suspicion.end(now);
        self.forget_evidence();
        BreakerChange::Closed { from, cause }
    }

    fn forget_evidence(&mut self) {
        self.before_content.clear();
        self.after_content.clear();
        self.samples.clear();
        self.slots.clear();
        self.trial_successes = 0;
    }

    fn wipe_strikes(&mut self) {
        self.before_content.clear();
        self.after_content.clear();
        self.consecutive_failures = 0;
    }

    fn open_period(&self, reopens: u32) -> Millis {
        let growth = self.settings.open_growth.powf(f64::from(reopens));
        let period = self.settings.open_for.scaled(growth).min(self.settings.open_max);
        let jitter =
            self.settings.open_jitter * draw::fraction(draw::mix(self.seed ^ self.generation));
        Millis(period.0.saturating_add(period.scaled(jitter).0))
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
