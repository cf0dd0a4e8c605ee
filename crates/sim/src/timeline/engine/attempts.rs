//! Attempts: from the core's choice through head and content to the report.

use tidegate_core::{
    commit::{AnswerForm, CommitCause},
    outcome::{Outcome, OutcomeKind},
    permit::Permit,
    plan::Step,
    resend::{ConnectionAge, SendFailure, SendVerdict},
    time::{Millis, Now},
};

use super::{Engine, EngineEvent, Ongoing, Replica};
use crate::{
    audit::Chosen,
    timeline::course::{Conditions, More, course, left},
};
use tidegate_core::draw::fraction;

const FRESH: ConnectionAge = ConnectionAge::Fresh;

impl Ongoing {
    /// No attempt.
    pub(super) const NOTHING: Self = Self {
        backend: 0,
        began: Now::ZERO,
        head: None,
        content: None,
        more: More { events: 0, gap: Millis::ZERO },
        held_until: None,
        end: Now::ZERO,
        outcome: Some(Outcome::unanswered(OutcomeKind::Cancelled)),
        has_head: false,
        connection: ConnectionAge::Fresh,
        pings_from: None,
        exact: None,
    };

    /// The next moment of it.
    pub(super) fn next(&self) -> Now {
        let held_until = self.held_until.filter(|until| *until < self.end);
        self.head.or(self.content).or(held_until).unwrap_or(self.end)
    }
}

impl Engine<'_> {
    /// Asks the core what comes next.
    pub(super) fn go_on(&mut self, now: Now, slot: u32) {
        let draw = self.next_draw(slot);
        let pin_before = self.pin_seen_by_auditor(now, slot);
        let call = &mut self.calls[slot as usize];
        let replica = call.replica;
        let Some(plan) = call.plan.as_mut() else { return };
        match plan.next(now, draw, &mut self.notes) {
            Step::Finish(finish) => {
                if let Some(auditor) = &mut self.replicas[replica as usize].auditor {
                    auditor.on_finish(now, plan);
                }
                if let Some(auditor) = self.bus.as_mut().and_then(|it| it.auditor.as_mut()) {
                    auditor.on_finish(now, replica, plan, &self.notes.reads);
                }
                self.finish(now, slot, &finish);
            }
            Step::Attempt(permit) => {
                self.audit_attempt(now, slot, pin_before);
                self.note_attempt(now, slot);
                self.tell_hints(now, replica);
                self.start(now, slot, permit);
            }
        }
    }

    fn start(&mut self, now: Now, slot: u32, mut permit: Permit) {
        let call = &mut self.calls[slot as usize];
        let Some(plan) = call.plan.as_ref() else { return };
        let Some(attempt) = plan.attempts().iter().last() else { return };
        let route = &self.routes[usize::from(call.route)];
        let backend = route.candidates[usize::from(attempt.candidate)];
        self.busy[backend] += 1;
        let is_stream = call.is_stream;
        permit.answers_as(if is_stream { AnswerForm::Events } else { AnswerForm::Whole });
        call.permit = Some(permit);
        call.attempt = Ongoing { backend, began: now, ..Ongoing::NOTHING };
        if self.repeat(now, slot) {
            return;
        }
        match self.connect(now, slot) {
            Some(connection) => self.send(now, slot, connection),
            None => self.end(now, slot, &Outcome::unanswered(OutcomeKind::Transport)),
        }
    }

    /// The connection that an attempt is sent over: a kept one, which may turn out to be closed.
    /// `None` if the core then ends the attempt.
    fn connect(&mut self, now: Now, slot: u32) -> Option<ConnectionAge> {
        let call = &self.calls[slot as usize];
        let idle = &mut self.replicas[call.replica as usize].connections[call.attempt.backend];
        if idle.open > 0 {
            idle.open -= 1;
            return Some(ConnectionAge::Reused);
        }
        if idle.closed > 0 {
            idle.closed -= 1;
            return self.is_sent_again(now, slot, SendFailure::NotSent).then_some(FRESH);
        }
        Some(FRESH)
    }

    /// Whether the core sends a request again whose kept connection failed.
    fn is_sent_again(&mut self, now: Now, slot: u32, failure: SendFailure) -> bool {
        let call = &mut self.calls[slot as usize];
        let Some(permit) = call.permit.as_mut() else { return false };
        permit.sent(now);
        let is_again = permit.send_failed(ConnectionAge::Reused, failure) == SendVerdict::Resend;
        self.tally.resends += u64::from(is_again);
        is_again
    }

    /// The request goes out, and meets the backend's phase.
    fn send(&mut self, now: Now, slot: u32, connection: ConnectionAge) {
        let call = &mut self.calls[slot as usize];
        let (Some(plan), Some(permit)) = (call.plan.as_ref(), call.permit.as_mut()) else { return };
        let backend = call.attempt.backend;
        let world = &self.plot.world;
        let phases = &self.replicas[call.replica as usize].phases;
        let phase = &world.scripts[backend].phases[phases[backend]];
        let lot = if phase.share < 1.0 { fraction(self.backend_draws.draw()) } else { 0.0 };
        let wobbles = phase.pace.jitter > 0.0;
        let wobble = if wobbles { fraction(self.backend_draws.draw()) } else { 0.5 };
        let conditions = Conditions {
            is_stream: call.is_stream,
            in_flight: self.busy[backend],
            lot,
            wobble,
            timeouts: &world.timeouts[backend],
            left: left(now, plan.deadline()),
        };
        let course = course(phase, &conditions);
        // With content or an end at the same moment the core needs no separate word of the head.
        let head = course.head.filter(|&head| course.content.is_none() && head < course.end);
        permit.sent(now);
        call.attempt = Ongoing {
            backend,
            began: now,
            head: head.map(|it| now.after(it)),
            content: course.content.map(|it| now.after(it)),
            more: course.more,
            held_until: None,
            end: now.after(course.end),
            outcome: course.outcome,
            has_head: false,
            connection,
            pings_from: course.pings.map(|it| now.after(it)),
            exact: None,
        };
        self.await_next(slot);
    }

    /// Waits for the next thing of an attempt, or for the moment at which the client's patience
    /// calls for a decision.
    pub(super) fn await_next(&mut self, slot: u32) {
        let call = &mut self.calls[slot as usize];
        call.turn = call.turn.wrapping_add(1);
        if call.attempt.exact.is_some() {
            return self.await_recorded(slot);
        }
        let wake_at = call.plan.as_ref().zip(call.permit.as_ref());
        let wake_at = wake_at.and_then(|(plan, permit)| plan.wake_at(permit));
        let at = call.attempt.next().min(wake_at.unwrap_or(Now::NEVER));
        let turn = call.turn;
        self.schedule(at, EngineEvent::Call { slot, turn });
    }

    /// The next thing of an attempt happens.
    pub(super) fn go_ahead(&mut self, now: Now, slot: u32) {
        let attempt = &mut self.calls[slot as usize].attempt;
        if attempt.exact.is_some() {
            return self.repeat_next(now, slot);
        }
        if now < attempt.next() {
            return self.check_patience(now, slot);
        }
        if attempt.head.take().is_some() {
            attempt.has_head = true;
            self.head(now, slot);
        } else if attempt.content.take().is_some() || attempt.held_until.take().is_some() {
            attempt.has_head = true;
            let is_end = attempt.end <= now;
            self.content(now, slot);
            if is_end {
                return self.end_of_course(now, slot);
            }
        } else {
            return self.end_of_course(now, slot);
        }
        self.await_next(slot);
    }

    pub(super) fn head(&mut self, now: Now, slot: u32) {
        let call = &mut self.calls[slot as usize];
        let Some(permit) = call.permit.as_mut() else { return };
        permit.head(now, &mut self.notes);
        let replica = call.replica;
        let auditor = &mut self.replicas[replica as usize].auditor;
        if let (Some(auditor), Some(audited)) = (auditor, &mut call.audited) {
            auditor.on_head(now, audited, &self.notes.transitions);
        }
        self.note_transitions(now, replica);
    }

    /// An event with content comes, or the time of a hold is over.
    fn content(&mut self, now: Now, slot: u32) {
        let call = &mut self.calls[slot as usize];
        let Some(permit) = call.permit.as_mut() else { return };
        let is_hold_over = permit.hold_ends_at().is_some_and(|end| now.reached(end));
        if !is_hold_over {
            permit.content_event(now);
        }
        let is_late = permit.is_released();
        let cause = permit.commit_due(now).or(is_late.then_some(CommitCause::FirstContent));
        match cause {
            Some(cause) => self.commit(now, slot, cause),
            None => {
                // The event that is waited for next is among those still to come.
                let more = &mut call.attempt.more;
                let next = (more.events > 0).then(|| now.after(more.gap));
                more.events = more.events.saturating_sub(1);
                let ends = permit.hold_ends_at();
                call.attempt.held_until = next.into_iter().chain(ends).min();
            }
        }
    }

    /// What is held of an answer goes to the client.
    pub(super) fn commit(&mut self, now: Now, slot: u32, cause: CommitCause) {
        let call = &mut self.calls[slot as usize];
        let Some(permit) = call.permit.as_mut() else { return };
        permit.commit(now, cause, &mut self.notes);
        call.attempt.held_until = None;
        if !permit.has_content() {
            return;
        }
        let replica = call.replica;
        let auditor = &mut self.replicas[replica as usize].auditor;
        if let (Some(auditor), Some(audited)) = (auditor, &mut call.audited) {
            auditor.on_content(now, audited, &self.notes.transitions);
        }
        self.note_transitions(now, replica);
        self.settle_as_answered(now, slot);
        self.client_sees_content(now, slot);
    }

    /// The attempt has run its course, or the request's deadline ends it.
    fn end_of_course(&mut self, now: Now, slot: u32) {
        let call = &self.calls[slot as usize];
        let (Some(plan), Some(permit)) = (&call.plan, &call.permit) else { return };
        let outcome = match call.attempt.outcome {
            None => plan.abandoned(now, permit),
            Some(it) if it.kind == OutcomeKind::Transport => permit.broken(it.status),
            Some(it) => it,
        };
        if outcome.kind == OutcomeKind::Success && !permit.has_content() {
            self.commit(now, slot, CommitCause::Complete);
        }
        self.end(now, slot, &outcome);
    }

    pub(super) fn end(&mut self, now: Now, slot: u32, outcome: &Outcome) {
        let call = &mut self.calls[slot as usize];
        let (Some(plan), Some(permit)) = (call.plan.as_mut(), call.permit.take()) else { return };
        let backend = call.attempt.backend;
        self.busy[backend] -= 1;
        // A connection is kept after a whole answer, an error too.
        let is_whole = outcome.kind == OutcomeKind::Success || outcome.error_status.is_some();
        let replica = call.replica;
        let its = &mut self.replicas[replica as usize];
        its.connections[backend].open += u32::from(is_whole);
        plan.report(now, permit, outcome, &mut self.notes);
        if let (Some(auditor), Some(audited)) = (&mut its.auditor, call.audited.take())
            && let Some(attempt) = plan.attempts().iter().last()
        {
            auditor.on_report(now, audited, attempt, &self.notes.transitions);
        }
        self.note_outcome(now, replica, backend, outcome);
        self.note_transitions(now, replica);
        self.choose_next(now, slot);
    }

    /// A phase of a backend begins, for one replica or for all.
    pub(super) fn change_phase(&mut self, now: Now, backend: usize, phase: usize) {
        let it = &self.plot.world.scripts[backend].phases[phase];
        let meets = |replica: u32| it.replica.is_none_or(|only| only == replica);
        for (replica, seen) in self.replicas.iter_mut().enumerate() {
            if meets(replica as u32) {
                seen.phases[backend] = phase;
                if it.cuts {
                    let idle = &mut seen.connections[backend];
                    idle.closed += std::mem::take(&mut idle.open);
                }
            }
        }
        if it.cuts {
            self.cut_connections(now, backend, meets);
        }
    }

    /// Connections that are in use break.
    fn cut_connections(&mut self, now: Now, backend: usize, meets: impl Fn(u32) -> bool) {
        for slot in 0..self.calls.len() as u32 {
            let call = &mut self.calls[slot as usize];
            let Some(permit) = call.permit.as_ref() else { continue };
            // An attempt of this very moment has not reached the old process any more.
            let is_its = call.attempt.backend == backend && meets(call.replica);
            let is_exact = call.attempt.exact.is_some();
            if !is_its || is_exact || call.attempt.began == now {
                continue;
            }
            let outcome = permit.broken(call.attempt.has_head.then_some(200));
            call.turn = call.turn.wrapping_add(1);
            let is_excused = call.attempt.connection == ConnectionAge::Reused;
            let is_early = !call.attempt.has_head;
            if is_excused && is_early && self.is_sent_again(now, slot, SendFailure::Broken) {
                self.send(now, slot, FRESH);
            } else {
                self.end(now, slot, &outcome);
            }
        }
    }

    /// The session's pin before a choice: looked up only for the auditor.
    fn pin_seen_by_auditor(&self, now: Now, slot: u32) -> Option<u16> {
        self.replicas[self.calls[slot as usize].replica as usize].auditor.as_ref()?;
        self.candidate_pinned(now, slot)
    }

    /// The candidate that a session is pinned to.
    pub(super) fn candidate_pinned(&self, now: Now, slot: u32) -> Option<u16> {
        let call = &self.calls[slot as usize];
        let core = &self.replicas[call.replica as usize].core;
        let session = self.sessions.get(call.session as usize)?;
        let (route, asked) = self.route_of(slot);
        let id = core.pinned(route, now, self.caller_of(slot), session)?;
        let mut candidates = 0..asked.candidates.len() as u16;
        candidates.find(|&candidate| route.backend(candidate).id() == id)
    }

    fn audit_attempt(&mut self, now: Now, slot: u32, pin_before: Option<u16>) {
        let replica = self.calls[slot as usize].replica;
        if self.replicas[replica as usize].auditor.is_none() {
            return;
        }
        let pin_after = self.candidate_pinned(now, slot);
        let call = &mut self.calls[slot as usize];
        let Replica { auditor, route, .. } = &mut self.replicas[replica as usize];
        let id = |candidate: u16| route.backend(candidate).id();
        if let (Some(auditor), Some(plan)) = (auditor, call.plan.as_ref()) {
            if let Some(between) = self.bus.as_mut().and_then(|it| it.auditor.as_mut()) {
                between.on_attempt(now, replica, plan);
            }
            call.audited = Some(auditor.on_attempt(&Chosen {
                now,
                plan,
                reads: &self.notes.reads,
                pin_before: pin_before.map(id),
                pin_after: pin_after.map(id),
            }));
        }
    }
}
