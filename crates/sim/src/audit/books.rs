//! The auditor's books: what the transitions tell of one breaker, and a sliding count.

use std::collections::VecDeque;

use tidegate_core::{
    breaker::State,
    settings::{HealthSettings, LastResortSettings},
    time::{Millis, Now},
};

/// What is known of one breaker from outside.
#[derive(Debug)]
pub(super) struct Shadow {
    pub(super) id: String,
    pub(super) generation: u64,
    /// The open deadline; `None` = closed.
    pub(super) until: Option<Now>,
    /// Trials that hold a slot.
    pub(super) trials: u32,
    pub(super) trial_permits: u32,
    /// Trials passed since it opened.
    pub(super) passed_trials: u32,
    pub(super) recovery_threshold: u32,
    pub(super) in_flight: u32,
    /// Choices since the last trial in which it could have been picked.
    pub(super) chances: u32,
    /// Counts openings and closings: each gives back all slots.
    turn: u64,
}

/// One attempt's part in one breaker.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hold {
    pub(super) generation: u64,
    is_trial: bool,
    has_slot: bool,
    turn: u64,
}

impl Shadow {
    pub(super) fn new(id: &str, health: &HealthSettings) -> Self {
        Self {
            id: id.to_owned(),
            generation: 0,
            until: None,
            trials: 0,
            trial_permits: health.trial_permits,
            passed_trials: 0,
            recovery_threshold: health.recovery_threshold,
            in_flight: 0,
            chances: 0,
            turn: 0,
        }
    }

    pub(super) fn state(&self, now: Now) -> State {
        match self.until {
            None => State::Closed,
            Some(until) if now.reached(until) => State::HalfOpen,
            Some(_) => State::Open,
        }
    }

    pub(super) fn is_open(&self, now: Now) -> bool {
        self.state(now) == State::Open
    }

    pub(super) fn is_full(&self, now: Now) -> bool {
        self.state(now) == State::HalfOpen && self.trials >= self.trial_permits
    }

    /// A permit was given.
    pub(super) fn grant(&mut self, now: Now) -> Hold {
        let is_trial = self.state(now) == State::HalfOpen;
        if is_trial {
            self.trials += 1;
            self.chances = 0;
        }
        Hold { generation: self.generation, is_trial, has_slot: is_trial, turn: self.turn }
    }

    /// The slot is free again.
    pub(super) fn release(&mut self, hold: &mut Hold) {
        if std::mem::take(&mut hold.has_slot) && hold.turn == self.turn {
            self.trials -= 1;
        }
    }

    /// A trial succeeded.
    pub(super) fn passed(&mut self, hold: &mut Hold) {
        if hold.is_trial && hold.has_slot && hold.turn == self.turn {
            self.passed_trials += 1;
        }
        self.release(hold);
    }

    pub(super) fn open(&mut self, until: Now, generation: u64) {
        self.until = Some(until);
        self.generation = generation;
        self.turn_over();
    }

    pub(super) fn close(&mut self) {
        self.until = None;
        self.turn_over();
    }

    fn turn_over(&mut self) {
        self.turn += 1;
        (self.trials, self.passed_trials, self.chances) = (0, 0, 0);
    }
}

/// What is left of a limit of last resorts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tokens {
    limit: LastResortSettings,
    left: f64,
    at: Now,
}

impl Tokens {
    pub(super) fn new(limit: LastResortSettings) -> Self {
        Self { limit, left: Self::most(limit), at: Now::ZERO }
    }

    /// A bucket that is refilled holds at least one.
    fn most(limit: LastResortSettings) -> f64 {
        let least = if limit.per_second > 0.0 { 1.0 } else { 0.0 };
        f64::from(limit.burst).max(least)
    }

    /// Takes one; whether there was one, a rounding error aside.
    pub(super) fn take(&mut self, now: Now) -> bool {
        let most = Self::most(self.limit);
        let back = now.since(self.at).0 as f64 / 1000.0 * self.limit.per_second;
        self.left = (self.left.max(0.0) + back).min(most) - 1.0;
        self.at = now;
        self.left > -0.001
    }
}

/// Events of the latest window.
#[derive(Debug)]
pub(super) struct Window {
    span: Millis,
    moments: VecDeque<Now>,
}

impl Window {
    pub(super) fn new(span: Millis) -> Self {
        Self { span, moments: VecDeque::new() }
    }

    pub(super) fn add(&mut self, now: Now) {
        self.forget(now);
        self.moments.push_back(now);
    }

    /// How many are younger than the window.
    pub(super) fn count(&mut self, now: Now) -> usize {
        self.forget(now);
        self.moments.len()
    }

    fn forget(&mut self, now: Now) {
        while self
            .moments
            .front()
            .is_some_and(|first| now.since(*first) >= self.span && *first != now)
        {
            self.moments.pop_front();
        }
    }
}
