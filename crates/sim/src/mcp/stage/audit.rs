//! The books of a run: the auditor follows every permit of every server, and a few rules of MCP
//! sessions are checked besides.

use tidegate_core::{
    attempt::Attempt,
    choice::PinUse,
    outcome::{Outcome, OutcomeKind},
    settings::Settings,
    time::Millis,
    transition::Transition,
};
use tidegate_mcp::{
    call::Call,
    health,
    session::{Seat, Visibility},
};

use super::{LineId, ServerPlan, Stage, backend, calls::Delivered};
use crate::audit::{Auditor, Chosen, Ticket};

/// The auditor of one group's route, and of its members' own.
pub(super) struct Books(Auditor);

/// What the auditor knows of one call's permit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    ticket: Ticket,
    attempt: Attempt,
}

impl Books {
    pub(super) fn new(group: &str, members: &[&ServerPlan]) -> Self {
        let places: Vec<usize> = (0..members.len()).collect();
        let settings = Settings {
            backends: members.iter().map(|it| backend(it, Millis::ZERO)).collect(),
            routes: vec![health::route(group, &places)],
            ..Settings::default()
        };
        Self(Auditor::new(&settings, 0))
    }
}

impl Stage<'_> {
    /// A call has asked the core: its permit goes into the books. `stays_at` is the member that
    /// holds the state of its session.
    pub(super) fn audit_begin(
        &mut self,
        server: usize,
        call: &Call,
        stays_at: Option<&str>,
    ) -> Option<Entry> {
        let plan = call.ticket()?.plan();
        let attempt = *plan.attempts().iter().last()?;
        let group = self.group_of(server)?;
        let Books(auditor) = self.groups[group].books.as_mut()?;
        let is_first = plan.attempts().len() == 1;
        if is_first {
            auditor.on_request(self.now);
        }
        let id = stays_at.map(health::backend_id);
        let pin_before = plan.route().members().find(|it| Some(&***it) == id.as_deref());
        let is_left = is_first && attempt.pin == PinUse::Declined;
        let pin_after =
            if is_left { Some(plan.route().backend(attempt.candidate).id()) } else { pin_before };
        let reads = &self.notes.reads;
        let ticket =
            auditor.on_attempt(&Chosen { now: self.now, plan, reads, pin_before, pin_after });
        Some(Entry { ticket, attempt })
    }

    /// A permit has ended, with what the core was told, if it was.
    pub(super) fn audit_end_of(&mut self, server: usize, entry: Entry, told: Option<Outcome>) {
        let outcome = told.unwrap_or(Outcome::unanswered(OutcomeKind::Cancelled));
        let attempt = Attempt { outcome: Some(outcome), ..entry.attempt };
        let group = self.group_of(server);
        if let Some(Books(auditor)) = group.and_then(|it| self.groups[it].books.as_mut()) {
            auditor.on_report(self.now, entry.ticket, &attempt, &self.notes.transitions);
        }
        self.notes.transitions.clear();
    }

    /// Changes that no permit brought about.
    pub(super) fn audit_transitions(&mut self, server: usize) {
        let transitions: Vec<Transition> = std::mem::take(&mut self.notes.transitions);
        let group = self.group_of(server);
        if let Some(Books(auditor)) = group.and_then(|it| self.groups[it].books.as_mut()) {
            auditor.on_transitions(&transitions);
        }
    }

    /// A server that is excluded from a session for its life is not reached by that session.
    pub(super) fn audit_reach(&mut self, line: LineId) {
        let Some(line) = self.lines.get(&line) else { return };
        let Some(server) = self.place(&line.server) else { return };
        let Some(group) = self.group_of(server) else { return };
        let Some(client) = self.clients.get(&line.session) else { return };
        let is_out = matches!(client.session.seat(group), Seat::Excluded(_));
        if is_out && self.scenario.visibility == Visibility::Session {
            let (session, server) = (&line.session, &line.server);
            let sentence = format!("session `{session}` reached `{server}`, which it excludes");
            self.violate("MCP", sentence);
        }
    }

    /// I10: what may change something reaches one server once; anything else reaches a server
    /// twice at most.
    pub(super) fn audit_delivery(&mut self, delivered: Delivered, is_repeatable: bool) {
        let (count, most) = if is_repeatable { (delivered.here, 2) } else { (delivered.in_all, 1) };
        if count > most {
            self.violate("I10", format!("a call was delivered {count} times"));
        }
    }

    /// Books and core must agree in the end.
    pub(super) fn audit_end(&mut self) {
        for group in &mut self.groups {
            if let Some(Books(auditor)) = &mut group.books {
                auditor.at_end(self.now, &self.core);
                self.violations.extend_from_slice(auditor.violations());
            }
        }
    }
}
