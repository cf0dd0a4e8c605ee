//! The client's patience: what the core decides at the moments it names, and the reports that wait.

use tidegate_core::{
    commit::CommitCause, plan::PatienceVerdict, time::Now, transition::Transition,
};

use super::{Engine, Replica, Unsettled};

impl Engine<'_> {
    /// The moment has come that the plan named.
    pub(super) fn check_patience(&mut self, now: Now, slot: u32) {
        let call = &mut self.calls[slot as usize];
        let (Some(plan), Some(permit)) = (call.plan.as_ref(), call.permit.as_mut()) else { return };
        if call.attempt.pings_from.is_some_and(|from| now.reached(from)) {
            permit.body_bytes(now, 1);
        }
        match plan.check_patience(now, permit, &mut self.notes) {
            PatienceVerdict::GoOn => self.await_next(slot),
            PatienceVerdict::Leave => self.leave(now, slot),
            PatienceVerdict::Commit => {
                self.commit(now, slot, CommitCause::Patience);
                self.await_next(slot);
            }
            PatienceVerdict::GiveUp => {
                let outcome = plan.abandoned(now, permit);
                self.end(now, slot, &outcome);
            }
        }
    }

    pub(super) fn leave(&mut self, now: Now, slot: u32) {
        let call = &mut self.calls[slot as usize];
        let (Some(plan), Some(permit)) = (call.plan.as_mut(), call.permit.take()) else { return };
        let backend = call.attempt.backend;
        self.busy[backend] -= 1;
        let outcome = plan.leave(now, permit, &mut self.notes);
        let attempt = plan.attempts().len().saturating_sub(1);
        let left = Unsettled { attempt, backend, audited: call.audited.take() };
        match outcome {
            None => call.unsettled.push(left),
            Some(_) => {
                self.close_books(now, slot, left);
                self.note_transitions(now, self.calls[slot as usize].replica);
            }
        }
        self.choose_next(now, slot);
    }

    /// A target has answered: the core reports those that were left before.
    pub(super) fn settle_as_answered(&mut self, now: Now, slot: u32) {
        let call = &mut self.calls[slot as usize];
        if call.unsettled.is_empty() {
            return;
        }
        if let Some(plan) = call.plan.as_mut() {
            plan.answered(now, &mut self.notes);
        }
        self.settle(now, slot);
        self.note_transitions(now, self.calls[slot as usize].replica);
    }

    /// Closes the books of the attempts that were left, with the outcome they have.
    pub(super) fn settle(&mut self, now: Now, slot: u32) {
        for left in std::mem::take(&mut self.calls[slot as usize].unsettled) {
            self.close_books(now, slot, left);
        }
    }

    fn close_books(&mut self, now: Now, slot: u32, left: Unsettled) {
        let call = &self.calls[slot as usize];
        let (plan, replica) = (call.plan.as_ref(), call.replica);
        let Replica { auditor, routes, .. } = &mut self.replicas[replica as usize];
        let route = &routes[usize::from(call.route)];
        let attempt = plan.and_then(|plan| plan.attempts().iter().nth(left.attempt).copied());
        let Some(attempt) = attempt else { return };
        if let (Some(auditor), Some(audited)) = (auditor, left.audited) {
            let id = route.backend(attempt.candidate).id();
            // Of several that are settled at once, each has its own transitions.
            let own: Vec<Transition> =
                self.notes.transitions.iter().filter(|it| it.backend == *id).cloned().collect();
            auditor.on_report(now, audited, &attempt, &own);
        }
        if let Some(outcome) = attempt.outcome {
            self.note_outcome(now, replica, left.backend, &outcome);
        }
    }
}
