//! The books of a run: the auditor follows every permit of every server, and a few rules of MCP
//! sessions are checked besides.

use tidegate_core::{
    attempt::Attempt,
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

use super::{LineId, ServerPlan, Stage, backend};
use crate::audit::{Auditor, Chosen, Ticket};

/// The auditor of one server's route.
pub(super) struct Books(Auditor);

/// What the auditor knows of one call's permit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    ticket: Ticket,
    attempt: Attempt,
}

impl Books {
    pub(super) fn new(plan: &ServerPlan) -> Self {
        let settings = Settings {
            backends: vec![backend(plan, Millis::ZERO)],
            routes: vec![health::route(&plan.name, &[0])],
            ..Settings::default()
        };
        Self(Auditor::new(&settings, 0))
    }
}

impl Stage<'_> {
    /// A call has asked the core: its permit goes into the books.
    pub(super) fn audit_begin(&mut self, server: usize, call: &Call) -> Option<Entry> {
        let plan = call.ticket()?.plan();
        let attempt = *plan.attempts().iter().last()?;
        let Books(auditor) = self.servers[server].books.as_mut()?;
        auditor.on_request(self.now);
        let (pin_before, pin_after) = (None, None);
        let reads = &self.notes.reads;
        let ticket =
            auditor.on_attempt(&Chosen { now: self.now, plan, reads, pin_before, pin_after });
        Some(Entry { ticket, attempt })
    }

    /// A permit has ended, with what the core was told, if it was.
    pub(super) fn audit_end_of(&mut self, server: usize, entry: Entry, told: Option<Outcome>) {
        let outcome = told.unwrap_or(Outcome::unanswered(OutcomeKind::Cancelled));
        let attempt = Attempt { outcome: Some(outcome), ..entry.attempt };
        if let Some(Books(auditor)) = &mut self.servers[server].books {
            auditor.on_report(self.now, entry.ticket, &attempt, &self.notes.transitions);
        }
        self.notes.transitions.clear();
    }

    /// Changes that no permit brought about.
    pub(super) fn audit_transitions(&mut self, server: usize) {
        let transitions: Vec<Transition> = std::mem::take(&mut self.notes.transitions);
        if let Some(Books(auditor)) = &mut self.servers[server].books {
            auditor.on_transitions(&transitions);
        }
    }

    /// A server that is excluded from a session for its life is not reached by that session.
    pub(super) fn audit_reach(&mut self, line: LineId) {
        let Some(line) = self.lines.get(&line) else { return };
        let Some(server) = self.place(&line.server) else { return };
        let Some(client) = self.clients.get(&line.session) else { return };
        let is_out = matches!(client.session.seat(server), Seat::Excluded(_));
        if is_out && self.scenario.visibility == Visibility::Session {
            let (session, server) = (&line.session, &line.server);
            let sentence = format!("session `{session}` reached `{server}`, which it excludes");
            self.violate("MCP", sentence);
        }
    }

    /// I10: what may change something reaches its server at most once.
    pub(super) fn audit_delivery(&mut self, delivered: u32, is_repeatable: bool) {
        let most = if is_repeatable { 2 } else { 1 };
        if delivered > most {
            self.violate("I10", format!("a call reached its server {delivered} times"));
        }
    }

    /// Books and core must agree in the end.
    pub(super) fn audit_end(&mut self) {
        for server in &mut self.servers {
            if let Some(Books(auditor)) = &mut server.books {
                auditor.at_end(self.now, &self.core);
                self.violations.extend_from_slice(auditor.violations());
            }
        }
    }
}
