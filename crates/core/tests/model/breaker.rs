//! The reference breaker: a list of what happened since it last opened or closed, and every
//! question answered by walking that list. Slow and plain on purpose.

use tidegate_core::{
    breaker::State,
    settings::HealthSettings,
    time::{Millis, Now},
};

/// Something a closed breaker remembers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Happened {
    FailedBeforeContent,
    FailedAfterContent,
    GotContent,
    Succeeded,
    ProbeFailed,
    ProbePassed,
}

#[derive(Clone, Copy, Debug)]
struct Opening {
    since: Now,
    until: Now,
    period: Millis,
    reopens: u32,
}

/// The right to one attempt, as the reference sees it.
#[derive(Clone, Debug)]
pub(crate) struct Ticket {
    generation: u64,
    lease_end: Now,
    trial: Option<u64>,
    has_content: bool,
}

impl Ticket {
    pub(crate) fn is_trial(&self) -> bool {
        self.trial.is_some()
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Breaker {
    pub(crate) health: HealthSettings,
    pub(crate) generation: u64,
    pub(crate) failures_in_a_row: u32,
    pub(crate) closed_since: Option<Now>,
    /// Openings and closings so far: what must have been told.
    pub(crate) turns: usize,
    opening: Option<Opening>,
    past: Vec<(Now, Happened)>,
    trials_passed: u32,
    /// Trials that hold a slot, with the end of their lease.
    trials: Vec<(u64, Now)>,
    trials_given: u64,
}

impl Breaker {
    pub(crate) fn new(health: HealthSettings) -> Self {
        Self {
            health,
            generation: 0,
            failures_in_a_row: 0,
            closed_since: None,
            turns: 0,
            opening: None,
            past: Vec::new(),
            trials_passed: 0,
            trials: Vec::new(),
            trials_given: 0,
        }
    }

    pub(crate) fn state(&self, now: Now) -> State {
        match self.opening {
            None => State::Closed,
            Some(opening) if now >= opening.until => State::HalfOpen,
            Some(_) => State::Open,
        }
    }

    pub(crate) fn deadline(&self) -> Option<Now> {
        self.opening.map(|opening| opening.until)
    }

    pub(crate) fn is_available(&self, now: Now) -> bool {
        let taken = self.trials.iter().filter(|(_, lease_end)| now < *lease_end).count();
        match self.state(now) {
            State::Closed => true,
            State::HalfOpen => taken < self.health.trial_permits as usize,
            State::Open => false,
        }
    }

    pub(crate) fn is_held(&self, now: Now) -> bool {
        self.closed_since.is_some_and(|since| now < since.after(self.health.promotion_hold))
    }

    pub(crate) fn give(&mut self, now: Now, lease_end: Now) -> Ticket {
        let mut trial = None;
        if self.state(now) == State::HalfOpen {
            self.trials_given += 1;
            trial = Some(self.trials_given);
            self.trials.push((self.trials_given, lease_end));
        }
        Ticket { generation: self.generation, lease_end, trial, has_content: false }
    }

    pub(crate) fn give_back(&mut self, ticket: &Ticket) {
        self.trials.retain(|(trial, _)| Some(*trial) != ticket.trial);
    }

    pub(crate) fn content(&mut self, now: Now, ticket: &mut Ticket) {
        if ticket.has_content || self.is_stale(now, ticket) {
            return;
        }
        ticket.has_content = true;
        self.give_back(ticket);
        if self.opening.is_some() {
            self.trial_passed(now);
            return;
        }
        self.past.push((now, Happened::GotContent));
        if self.since_last(&[Happened::Succeeded, Happened::ProbePassed], |it| {
            it == Happened::FailedAfterContent
        }) == 0
        {
            self.failures_in_a_row = 0;
        }
    }

    pub(crate) fn success(&mut self, now: Now, ticket: &Ticket) {
        self.give_back(ticket);
        if self.is_stale(now, ticket) {
            return;
        }
        if self.opening.is_some() {
            // A trial that streams has passed at its first content already.
            if !ticket.has_content {
                self.trial_passed(now);
            }
            return;
        }
        // A trial is no sample: it ends the streaks like a probe does.
        let happened = if ticket.is_trial() { Happened::ProbePassed } else { Happened::Succeeded };
        self.past.push((now, happened));
        self.failures_in_a_row = 0;
    }

    pub(crate) fn failure(&mut self, now: Now, ticket: &Ticket, after_content: bool) {
        self.give_back(ticket);
        if self.is_stale(now, ticket) {
            return;
        }
        self.failures_in_a_row += 1;
        if ticket.is_trial() {
            let reopens = self.opening.map_or(0, |opening| opening.reopens) + 1;
            self.open(now, now, reopens);
            return;
        }
        if after_content && !ticket.has_content {
            self.past.push((now, Happened::GotContent));
        }
        let failed = if after_content {
            Happened::FailedAfterContent
        } else {
            Happened::FailedBeforeContent
        };
        self.past.push((now, failed));
        if self.streak(now) >= self.health.failure_threshold || self.is_ratio_bad(now) {
            self.open(now, now, 0);
        }
    }

    pub(crate) fn probed(&mut self, now: Now, passed: bool) {
        if passed {
            match self.opening {
                Some(_) => self.trial_passed(now),
                None => {
                    self.past.push((now, Happened::ProbePassed));
                    self.failures_in_a_row = 0;
                }
            }
            return;
        }
        self.failures_in_a_row += 1;
        let Some(opening) = self.opening else {
            self.past.push((now, Happened::ProbeFailed));
            if self.streak(now) >= self.health.failure_threshold {
                self.open(now, now, 0);
            }
            return;
        };
        let latest = opening.since.after(self.health.open_max);
        let turn_ends = latest.after(opening.period);
        if now < opening.until {
            self.trials_passed = 0;
            let wanted = now.after(opening.period).min(latest);
            let until = wanted.max(opening.until);
            self.opening = Some(Opening { until, ..opening });
        } else if now < latest {
            self.open(now, opening.since, opening.reopens + 1);
            let opening = self.opening.as_mut().expect("it has just opened");
            opening.until = opening.until.min(latest);
        } else if now >= turn_ends && self.trials_passed == 0 {
            self.open(now, now, opening.reopens + 1);
        }
    }

    fn is_stale(&self, now: Now, ticket: &Ticket) -> bool {
        ticket.generation != self.generation || (!ticket.has_content && now >= ticket.lease_end)
    }

    fn trial_passed(&mut self, now: Now) {
        self.failures_in_a_row = 0;
        self.trials_passed += 1;
        if self.trials_passed >= self.health.recovery_threshold {
            self.opening = None;
            self.closed_since = Some(now);
            self.begin_anew();
        }
    }

    fn open(&mut self, now: Now, since: Now, reopens: u32) {
        let mut period = self.health.open_for.0 as f64;
        for _ in 0..reopens {
            period = (period * self.health.open_growth).min(self.health.open_max.0 as f64);
        }
        let period = Millis(period as u64);
        self.opening = Some(Opening { since, until: now.after(period), period, reopens });
        self.closed_since = None;
        self.generation += 1;
        self.begin_anew();
    }

    fn begin_anew(&mut self) {
        self.turns += 1;
        self.past.clear();
        self.trials.clear();
        self.trials_passed = 0;
    }

    /// How many of `counted` came after the last of `enders`.
    fn since_last(&self, enders: &[Happened], counted: impl Fn(Happened) -> bool) -> usize {
        let latest = self.past.iter().rev().map(|(_, happened)| *happened);
        latest.take_while(|it| !enders.contains(it)).filter(|it| counted(*it)).count()
    }

    /// The streak that the latest strike belongs to.
    fn streak(&self, now: Now) -> u32 {
        use Happened::*;
        let is_after = self.past.last().is_some_and(|(_, it)| *it == FailedAfterContent);
        let (enders, strikes): (&[Happened], &[Happened]) = if is_after {
            (&[Succeeded, ProbePassed], &[FailedAfterContent])
        } else {
            let enders = &[GotContent, Succeeded, ProbePassed];
            (enders, &[FailedBeforeContent, ProbeFailed])
        };
        let memory = self.health.strike_memory;
        let is_remembered = |at: Now| memory == Millis::ZERO || now.since(at) < memory;
        let latest = self.past.iter().rev().take_while(|(_, it)| !enders.contains(it));
        latest.filter(|(at, it)| strikes.contains(it) && is_remembered(*at)).count() as u32
    }

    fn is_ratio_bad(&self, now: Now) -> bool {
        use Happened::*;
        let samples: Vec<(Now, Happened)> = self
            .past
            .iter()
            .rev()
            .filter(|(_, it)| [FailedBeforeContent, FailedAfterContent, Succeeded].contains(it))
            .take(1024)
            .filter(|(at, _)| now.since(*at) < self.health.window)
            .copied()
            .collect();
        let failed = samples.iter().filter(|(_, it)| *it != Succeeded).count();
        self.health.failure_ratio > 0.0
            && samples.len() >= self.health.min_samples as usize
            && failed as f64 / samples.len() as f64 >= self.health.failure_ratio
    }
}
