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
use crate::timeline::{painter::Painter, trace::KeyPin};

impl Engine<'_> {
    pub(super) fn note_attempt(&mut self, now: Now, slot: u32) {
        let call = &self.calls[slot as usize];
        let Some(attempts) = call.plan.as_ref().map(|plan| plan.attempts()) else { return };
        let Some(attempt) = attempts.iter().last() else { return };
        let is_first = attempts.len() == 1;
        let backend = self.route_of(slot).1.candidates[usize::from(attempt.candidate)];
        let replica = call.replica as usize;
        self.tally.hit(self.plot, now, backend);
        self.tally.replicas[replica].backends[backend].attempts += 1;
        self.tally.attempts += 1;
        self.tally.last_resorts += u64::from(attempt.is_last_resort);
        let tally = &mut self.tally.backends[backend];
        tally.attempts += 1;
        if is_first {
            tally.firsts += 1;
        } else {
            self.tally.hops += 1;
        }
        self.tally.paint(replica, backend, |painter, lane| painter.attempt(now, lane));
        let is_pinned = is_first && attempt.pin.is_replaced() || attempt.pin == PinUse::Honoured;
        if is_pinned && !self.sessions.is_empty() {
            let session = call.session;
            self.note_pin(session, backend as u16);
        }
    }

    fn note_pin(&mut self, session: u32, backend: u16) {
        // A recorded request may have no session.
        let Some(pinned) = self.pinned.get_mut(session as usize) else { return };
        if *pinned != NONE && *pinned != backend {
            self.tally.sessions_moved += 1;
        }
        *pinned = backend;
    }

    pub(super) fn note_outcome(
        &mut self,
        now: Now,
        replica: u32,
        backend: usize,
        outcome: &Outcome,
    ) {
        if outcome.kind == OutcomeKind::Success {
            self.tally.backends[backend].answered += 1;
        } else if outcome.kind.is_error() {
            self.tally.backends[backend].failed += 1;
            self.tally.replicas[replica as usize].backends[backend].failed += 1;
            let trouble = |painter: &mut Painter, lane| painter.trouble(lane, now, now);
            self.tally.paint(replica as usize, backend, trouble);
        }
    }

    pub(super) fn note_finish(&mut self, now: Now, slot: u32, finish: &Finish) {
        self.tally.budget_spent += u64::from(finish.end == End::BudgetSpent);
        let (_, route) = self.route_of(slot);
        let mode = self.plot.world.settings.routes[route.index].pin;
        if mode == PinMode::Answered
            && finish.end == End::Answered
            && let Some(candidate) = self.candidate_pinned(now, slot)
        {
            let backend = route.candidates[usize::from(candidate)] as u16;
            self.note_pin(self.calls[slot as usize].session, backend);
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
            self.tracer.request(now, (session, call.replica), plan, finish, pin);
        }
    }

    /// The key that a session is pinned to, where targets have several.
    fn key_pin(&self, now: Now, slot: u32) -> Option<KeyPin> {
        let call = &self.calls[slot as usize];
        let core = &self.replicas[call.replica as usize].core;
        let session = self.sessions.get(call.session as usize)?;
        let (route, caller) = (self.route_of(slot).0, self.caller_of(slot));
        let id = core.pinned(route, now, caller, session)?;
        let backend = core.backends().iter().find(|it| it.id() == id)?;
        let key = core.pinned_key(route, now, caller, session)?;
        (backend.key_count() > 1).then(|| KeyPin { backend: Arc::clone(id), key: key + 1 })
    }

    /// Takes the transitions of the latest call of a replica's core, and what it has to tell.
    pub(super) fn note_transitions(&mut self, now: Now, replica: u32) {
        if let Some(auditor) = self.bus.as_mut().and_then(|it| it.auditor.as_mut()) {
            auditor.on_transitions(replica, &self.notes.transitions);
        }
        self.tell_hints(now, replica);
        if self.notes.transitions.is_empty() {
            return;
        }
        let mut transitions = std::mem::take(&mut self.notes.transitions);
        for transition in transitions.drain(..) {
            self.note_transition(replica as usize, &transition);
            self.tracer.transition(replica, transition);
        }
        self.notes.transitions = transitions;
    }

    fn note_transition(&mut self, replica: usize, transition: &Transition) {
        let at = transition.at;
        match &transition.change {
            Change::Breaker { breaker, .. } => {
                let Some(breaker_index) = self.breaker_index(transition) else { return };
                let outs = |engine: &Self, backend| OutBefore {
                    here: engine.out_until(replica, backend).is_some(),
                    anywhere: engine.out_anywhere(backend).is_some(),
                };
                let before: Vec<OutBefore> =
                    self.behind(breaker_index).map(|it| outs(self, it)).collect();
                self.replicas[replica].open_until[breaker_index] = match *breaker {
                    BreakerChange::Opened { until, .. } | BreakerChange::Extended { until } => {
                        Some(until)
                    }
                    BreakerChange::Closed { .. } => None,
                };
                let behind: Vec<usize> = self.behind(breaker_index).collect();
                for (backend, was_out) in behind.into_iter().zip(before) {
                    self.note_turn(at, (replica, backend), was_out, transition);
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
                        let trouble =
                            |painter: &mut Painter, lane| painter.trouble(lane, at, *until);
                        self.tally.paint(replica, backend, trouble);
                    }
                }
            }
            Change::Healed { .. } | Change::Suspected { .. } => {}
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

    /// The later deadline of a backend's own breaker and its endpoint's at one replica; `None` if
    /// both are closed.
    fn out_until(&self, replica: usize, backend: usize) -> Option<Now> {
        let settings = &self.plot.world.settings;
        let open_until = &self.replicas[replica].open_until;
        let endpoint = settings.backends[backend].endpoint;
        let of_endpoint = endpoint.and_then(|it| open_until[settings.backends.len() + it]);
        [open_until[backend], of_endpoint].into_iter().flatten().max()
    }

    /// The same at all replicas together.
    fn out_anywhere(&self, backend: usize) -> Option<Now> {
        (0..self.replicas.len()).filter_map(|replica| self.out_until(replica, backend)).max()
    }

    fn note_turn(
        &mut self,
        at: Now,
        (replica, backend): (usize, usize),
        was_out: OutBefore,
        transition: &Transition,
    ) {
        let (here, anywhere) = (self.out_until(replica, backend), self.out_anywhere(backend));
        self.tally.painter.breaker(at, backend, anywhere);
        let number = self.bus.is_some().then_some(replica);
        if let Some(lane) = self.tally.lane(replica, backend) {
            self.tally.painter.breaker(at, lane, here);
        }
        match (was_out.here, here.is_some()) {
            (false, true) => self.tally.opened(at, (backend, number), &why(transition)),
            (true, false) => self.tally.closed(at, (backend, number)),
            _ => {}
        }
        match (was_out.anywhere, anywhere.is_some()) {
            (false, true) => self.tally.opened_anywhere(at, backend),
            (true, false) => self.tally.closed_everywhere(at, backend),
            _ => {}
        }
    }
}

/// Whether a backend was out before a change.
#[derive(Clone, Copy)]
struct OutBefore {
    /// At the replica that changed.
    here: bool,
    /// At any replica.
    anywhere: bool,
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
        OpenCause::Suspected(count) => format!("{count} x {what}, suspected"),
    }
}
