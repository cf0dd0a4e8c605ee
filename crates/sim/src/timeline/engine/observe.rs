//! What the engine writes down: counts, lanes, turns and trace.

use std::sync::Arc;

use tidegate_core::{
    attempt::{End, Finish},
    breaker::{BreakerChange, OpenCause},
    choice::PinUse,
    outcome::{Outcome, OutcomeKind},
    settings::PinMode,
    time::Now,
    transition::{Change, Scope, Transition},
};

use super::{Engine, NONE};
use crate::timeline::trace::KeyPin;

impl Engine<'_> {
    pub(super) fn note_attempt(&mut self, now: Now, slot: u32) {
        let call = &self.calls[slot as usize];
        let Some(attempts) = call.plan.as_ref().map(|plan| plan.attempts()) else { return };
        let Some(attempt) = attempts.iter().last() else { return };
        let is_first = attempts.len() == 1;
        let backend = self.candidates[usize::from(attempt.candidate)];
        self.tally.attempts += 1;
        self.tally.last_resorts += u64::from(attempt.is_last_resort);
        let tally = &mut self.tally.backends[backend];
        tally.attempts += 1;
        if is_first {
            tally.firsts += 1;
        } else {
            self.tally.hops += 1;
        }
        self.tally.painter.attempt(now, backend);
        let is_pinned = is_first && attempt.pin.is_replaced() || attempt.pin == PinUse::Honoured;
        if is_pinned && !self.sessions.is_empty() {
            let (session, candidate) = (call.session, attempt.candidate);
            self.note_pin(session, candidate);
        }
    }

    fn note_pin(&mut self, session: u32, candidate: u16) {
        let pinned = &mut self.pinned[session as usize];
        if *pinned != NONE && *pinned != candidate {
            self.tally.sessions_moved += 1;
        }
        *pinned = candidate;
    }

    pub(super) fn note_outcome(&mut self, now: Now, backend: usize, outcome: &Outcome) {
        if outcome.kind == OutcomeKind::Success {
            self.tally.backends[backend].answered += 1;
        } else if outcome.kind.is_error() {
            self.tally.backends[backend].failed += 1;
            self.tally.painter.trouble(backend, now, now);
        }
    }

    pub(super) fn note_finish(&mut self, now: Now, slot: u32, finish: &Finish) {
        self.tally.budget_spent += u64::from(finish.end == End::BudgetSpent);
        let mode = self.plot.world.settings.routes[self.plot.world.route].pin;
        if mode == PinMode::Answered
            && finish.end == End::Answered
            && let Some(candidate) = self.candidate_pinned(now, slot)
        {
            self.note_pin(self.calls[slot as usize].session, candidate);
        }
        if !self.tracer.wants(now) {
            return;
        }
        let pin = self.key_pin(now, slot);
        let call = &self.calls[slot as usize];
        // The first pin of a session moves nothing.
        let seen = self.key_pins.get_mut(call.session as usize);
        let before = seen.and_then(|seen| std::mem::replace(seen, pin.clone()));
        let has_moved = before.is_some() && before != pin;
        if let Some(plan) = &call.plan
            && (plan.attempts().len() != 1 || finish.end != End::Answered || has_moved)
        {
            let session = self.sessions.get(call.session as usize).map_or("", String::as_str);
            self.tracer.request(now, session, plan, finish, pin);
        }
    }

    /// The key that a session is pinned to, where targets have several.
    fn key_pin(&self, now: Now, slot: u32) -> Option<KeyPin> {
        let session = self.sessions.get(self.calls[slot as usize].session as usize)?;
        let id = self.core.pinned(&self.route, now, "", session)?;
        let backend = self.core.backends().iter().find(|it| it.id() == id)?;
        let key = self.core.pinned_key(&self.route, now, "", session)?;
        (backend.key_count() > 1).then(|| KeyPin { backend: Arc::clone(id), key: key + 1 })
    }

    /// Takes the transitions of the latest call.
    pub(super) fn note_transitions(&mut self) {
        if self.notes.transitions.is_empty() {
            return;
        }
        let mut transitions = std::mem::take(&mut self.notes.transitions);
        for transition in transitions.drain(..) {
            self.note_transition(&transition);
            self.tracer.transition(transition);
        }
        self.notes.transitions = transitions;
    }

    fn note_transition(&mut self, transition: &Transition) {
        let at = transition.at;
        match &transition.change {
            Change::Breaker { breaker, .. } => {
                let Some(breaker_index) = self.breaker_index(transition) else { return };
                let before: Vec<bool> =
                    self.behind(breaker_index).map(|it| self.is_out(it)).collect();
                self.open_until[breaker_index] = match *breaker {
                    BreakerChange::Opened { until, .. } | BreakerChange::Extended { until } => {
                        Some(until)
                    }
                    BreakerChange::Closed { .. } => None,
                };
                let behind: Vec<usize> = self.behind(breaker_index).collect();
                for (backend, was_out) in behind.into_iter().zip(before) {
                    self.note_turn(at, backend, was_out, transition);
                }
            }
            Change::Marked { until, .. } => {
                let settings = &self.plot.world.settings;
                for (backend, it) in settings.backends.iter().enumerate() {
                    let is_its_key =
                        || it.keys.iter().any(|&key| *settings.keys[key].id == *transition.backend);
                    let is_its = match transition.scope {
                        Scope::Backend => *it.id == *transition.backend,
                        Scope::Key => is_its_key(),
                        Scope::Endpoint => false,
                    };
                    if is_its {
                        self.tally.painter.trouble(backend, at, *until);
                    }
                }
            }
            Change::Healed { .. } => {}
        }
    }

    /// The place of a transition's breaker in `open_until`.
    fn breaker_index(&self, transition: &Transition) -> Option<usize> {
        let settings = &self.plot.world.settings;
        let id = &*transition.backend;
        match transition.scope {
            Scope::Backend => settings.backends.iter().position(|it| it.id == id),
            Scope::Endpoint => settings
                .endpoints
                .iter()
                .position(|it| it.id == id)
                .map(|place| settings.backends.len() + place),
            Scope::Key => None,
        }
    }

    /// The backends that a breaker stands before.
    fn behind(&self, breaker: usize) -> impl Iterator<Item = usize> + '_ {
        let backends = self.plot.world.settings.backends.iter().enumerate();
        let count = self.plot.world.settings.backends.len();
        backends
            .filter(move |(index, it)| {
                *index == breaker || it.endpoint.is_some_and(|place| count + place == breaker)
            })
            .map(|(index, _)| index)
    }

    fn breakers_of(&self, backend: usize) -> [Option<Now>; 2] {
        let settings = &self.plot.world.settings;
        let endpoint = settings.backends[backend].endpoint;
        let of_endpoint = endpoint.and_then(|it| self.open_until[settings.backends.len() + it]);
        [self.open_until[backend], of_endpoint]
    }

    /// Whether its own breaker or its endpoint's is not closed.
    fn is_out(&self, backend: usize) -> bool {
        self.breakers_of(backend).iter().any(Option::is_some)
    }

    fn note_turn(&mut self, at: Now, backend: usize, was_out: bool, transition: &Transition) {
        let open_until = self.breakers_of(backend).into_iter().flatten().max();
        self.tally.painter.breaker(at, backend, open_until);
        match (was_out, open_until.is_some()) {
            (false, true) => self.tally.opened(at, backend, why(transition)),
            (true, false) => self.tally.closed(at, backend),
            _ => {}
        }
    }
}

/// Why a breaker opened, in a few words.
pub(in crate::timeline) fn why(transition: &Transition) -> String {
    let Change::Breaker { breaker, evidence, status, .. } = &transition.change else {
        return String::new();
    };
    let BreakerChange::Opened { cause, .. } = breaker else { return String::new() };
    let what = match (status, evidence) {
        (Some(status @ 300..), _) => status.to_string(),
        (_, Some(kind)) => kind.word().to_owned(),
        (_, None) => "probe".to_owned(),
    };
    match cause {
        OpenCause::ConsecutiveFailures(count) => format!("{count} x {what} in a row"),
        OpenCause::BrokenAnswers(count) => format!("{count} broken answers in a row"),
        OpenCause::FailureRatio { failed, samples } => format!("{failed} of {samples} failed"),
        OpenCause::TrialFailed => format!("trial failed ({what})"),
        OpenCause::ProbeFailed => "probe failed".to_owned(),
        OpenCause::Held => "held open".to_owned(),
    }
}
