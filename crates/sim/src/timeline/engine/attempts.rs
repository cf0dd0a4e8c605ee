//! Attempts: from the core's choice through head and content to the report.

use tidegate_core::{
    outcome::{Outcome, OutcomeKind},
    permit::Permit,
    plan::Step,
    time::Now,
};

use super::{Engine, Event, Ongoing, between};
use crate::{
    audit::Chosen,
    timeline::course::{ChoiceInput, course, cut_off, left},
};
use tidegate_core::draw::fraction;

impl Ongoing {
    /// No attempt.
    pub(super) const NOTHING: Self = Self {
        backend: 0,
        began: Now::ZERO,
        head: None,
        content: None,
        end: Now::ZERO,
        outcome: Some(Outcome::unanswered(OutcomeKind::Cancelled)),
        has_head: false,
        pings_from: None,
    };

    /// The next moment of it.
    pub(super) fn next(&self) -> Now {
        self.head.or(self.content).unwrap_or(self.end)
    }
}

impl Engine<'_> {
    /// Asks the core what comes next.
    pub(super) fn go_on(&mut self, now: Now, slot: u32) {
        let draw = self.core_draws.draw();
        let pin_before = self.pin_seen_by_auditor(now, slot);
        let call = &mut self.calls[slot as usize];
        let Some(plan) = call.plan.as_mut() else { return };
        match plan.next(now, draw, &mut self.notes) {
            Step::Finish(finish) => {
                if let Some(auditor) = &mut self.auditor {
                    auditor.on_finish(now, plan);
                }
                self.finish(now, slot, &finish);
            }
            Step::Attempt(permit) => {
                self.audit_attempt(now, slot, pin_before);
                self.note_attempt(now, slot);
                self.start(now, slot, permit);
            }
        }
    }

    fn start(&mut self, now: Now, slot: u32, mut permit: Permit) {
        let call = &mut self.calls[slot as usize];
        let Some(plan) = call.plan.as_ref() else { return };
        let Some(attempt) = plan.attempts().iter().last() else { return };
        let backend = self.candidates[usize::from(attempt.candidate)];
        self.busy[backend] += 1;
        let world = &self.plot.world;
        let phase = &world.scripts[backend].phases[self.phases[backend]];
        let lot = if phase.share < 1.0 { fraction(self.backend_draws.draw()) } else { 0.0 };
        let wobbles = phase.pace.jitter > 0.0;
        let wobble = if wobbles { fraction(self.backend_draws.draw()) } else { 0.5 };
        let input = ChoiceInput {
            is_stream: call.is_stream,
            in_flight: self.busy[backend],
            lot,
            wobble,
            timeouts: &world.timeouts[backend],
            left: left(now, plan.deadline()),
        };
        let course = course(phase, &input);
        // With content or an end at the same moment the core needs no separate word of the head.
        let head = course.head.filter(|&head| course.content.is_none() && head < course.end);
        permit.sent(now);
        call.permit = Some(permit);
        call.attempt = Ongoing {
            backend,
            began: now,
            head: head.map(|it| now.after(it)),
            content: course.content.map(|it| now.after(it)),
            end: now.after(course.end),
            outcome: course.outcome,
            has_head: false,
            pings_from: course.pings.map(|it| now.after(it)),
        };
        self.await_next(slot);
    }

    /// Waits for the next thing of an attempt, or for the moment at which the client's patience
    /// calls for a decision.
    pub(super) fn await_next(&mut self, slot: u32) {
        let call = &mut self.calls[slot as usize];
        call.turn = call.turn.wrapping_add(1);
        let wake_at = call.plan.as_ref().zip(call.permit.as_ref());
        let wake_at = wake_at.and_then(|(plan, permit)| plan.wake_at(permit));
        let at = call.attempt.next().min(wake_at.unwrap_or(Now::NEVER));
        let turn = call.turn;
        self.schedule(at, Event::Call { slot, turn });
    }

    /// The next thing of an attempt happens.
    pub(super) fn go_ahead(&mut self, now: Now, slot: u32) {
        let attempt = &mut self.calls[slot as usize].attempt;
        if now < attempt.next() {
            return self.check_patience(now, slot);
        }
        if attempt.head.take().is_some() {
            attempt.has_head = true;
            self.head(now, slot);
        } else if attempt.content.take().is_some() {
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

    fn head(&mut self, now: Now, slot: u32) {
        let call = &mut self.calls[slot as usize];
        let Some(permit) = call.permit.as_mut() else { return };
        permit.head(now, &mut self.notes);
        if let (Some(auditor), Some(ticket)) = (&mut self.auditor, &mut call.ticket) {
            auditor.on_head(now, ticket, &self.notes.transitions);
        }
        self.note_transitions();
    }

    fn content(&mut self, now: Now, slot: u32) {
        let call = &mut self.calls[slot as usize];
        let took = between(call.attempt.began, now);
        let Some(permit) = call.permit.as_mut() else { return };
        permit.content(now, took, &mut self.notes);
        if let (Some(auditor), Some(ticket)) = (&mut self.auditor, &mut call.ticket) {
            auditor.on_content(now, ticket, &self.notes.transitions);
        }
        self.note_transitions();
        self.settle_as_answered(now, slot);
        self.client_sees_content(now, slot);
    }

    /// The attempt has run its course, or the request's deadline ends it.
    fn end_of_course(&mut self, now: Now, slot: u32) {
        let call = &self.calls[slot as usize];
        let (Some(plan), Some(permit)) = (&call.plan, &call.permit) else { return };
        let outcome = call.attempt.outcome.unwrap_or_else(|| plan.abandoned(now, permit));
        self.end(now, slot, &outcome);
    }

    pub(super) fn end(&mut self, now: Now, slot: u32, outcome: &Outcome) {
        let call = &mut self.calls[slot as usize];
        let (Some(plan), Some(permit)) = (call.plan.as_mut(), call.permit.take()) else { return };
        let backend = call.attempt.backend;
        self.busy[backend] -= 1;
        plan.report(now, permit, outcome, &mut self.notes);
        if let (Some(auditor), Some(ticket)) = (&mut self.auditor, call.ticket.take())
            && let Some(attempt) = plan.attempts().iter().last()
        {
            auditor.on_report(now, ticket, attempt, &self.notes.transitions);
        }
        self.note_outcome(now, backend, outcome);
        self.note_transitions();
        self.go_on(now, slot);
    }

    /// A backend's next phase begins.
    pub(super) fn change_phase(&mut self, now: Now, backend: usize) {
        self.phases[backend] += 1;
        if self.plot.world.scripts[backend].phases[self.phases[backend]].cuts {
            self.cut_connections(now, backend);
        }
    }

    fn cut_connections(&mut self, now: Now, backend: usize) {
        for slot in 0..self.calls.len() as u32 {
            let call = &mut self.calls[slot as usize];
            let Some(permit) = call.permit.as_ref() else { continue };
            // An attempt of this very moment has not reached the old process any more.
            if call.attempt.backend != backend || call.attempt.began == now {
                continue;
            }
            let outcome = cut_off(call.attempt.has_head, permit.has_content());
            call.turn = call.turn.wrapping_add(1);
            self.end(now, slot, &outcome);
        }
    }

    /// The session's pin before a choice: looked up only for the auditor.
    fn pin_seen_by_auditor(&self, now: Now, slot: u32) -> Option<u16> {
        self.auditor.as_ref()?;
        self.candidate_pinned(now, slot)
    }

    /// The candidate that a session is pinned to.
    pub(super) fn candidate_pinned(&self, now: Now, slot: u32) -> Option<u16> {
        let session = self.sessions.get(self.calls[slot as usize].session as usize)?;
        let id = self.core.pinned(&self.route, now, "", session)?;
        let mut candidates = 0..self.candidates.len() as u16;
        candidates.find(|&candidate| self.route.backend(candidate).id() == id)
    }

    fn audit_attempt(&mut self, now: Now, slot: u32, pin_before: Option<u16>) {
        if self.auditor.is_none() {
            return;
        }
        let pin_after = self.candidate_pinned(now, slot);
        let id = |candidate: u16| self.route.backend(candidate).id();
        let call = &mut self.calls[slot as usize];
        if let (Some(auditor), Some(plan)) = (&mut self.auditor, call.plan.as_ref()) {
            call.ticket = Some(auditor.on_attempt(&Chosen {
                now,
                plan,
                reads: &self.notes.reads,
                pin_before: pin_before.map(id),
                pin_after: pin_after.map(id),
            }));
        }
    }
}
