//! What an operator can do to a backend, by hand.
//!
//! | action | effect | ends |
//! |---|---|---|
//! | drain | it is no candidate | at its time, or when it is put back |
//! | hold | its breaker is open | at its time (half-open), or with a reset |
//! | reset | its breaker closes, its windows and exclusions end | is an event |
//!
//! In a fleet each is told, and so is its end. An action has a version, one more than any that this
//! replica has seen of its kind, and its writer; the higher of the two counts everywhere.

use crate::{
    backend::{Actions, Backend},
    breaker::BreakerChange,
    core::Core,
    hint::{OperatorAction, Stamp},
    mark::MarkReason,
    sync::{MutexGuard, lock},
    time::Now,
    transition::{Change, Notes, Scope},
};

impl Core {
    /// An operator takes a backend out until a time ([`Now::NEVER`] = until further notice), or
    /// puts it back (`None`). Whether there is such a backend.
    pub fn switch_off(&self, now: Now, id: &str, until: Option<Now>, notes: &mut Notes) -> bool {
        let Some(backend) = self.backend(id) else { return false };
        let mut actions = lock(&backend.health.actions);
        let change = backend.drain(now, until);
        if change.is_some() {
            actions.drain = next(backend, actions.drain);
            backend.tell_action(now, OperatorAction::Drain, (actions.drain, until), notes);
        }
        notes.record(now, &backend.id, Scope::Backend, change);
        true
    }

    /// An operator holds a backend's breaker open until a moment, when it is half-open as after any
    /// opening; [`Core::reset`] ends it. Whether there is such a backend.
    pub fn hold(&self, now: Now, id: &str, until: Now, notes: &mut Notes) -> bool {
        let Some(backend) = self.backend(id) else { return false };
        let mut actions = lock(&backend.health.actions);
        actions.hold = next(backend, actions.hold);
        let change = backend.hold_open(now, until);
        notes.record(now, &backend.id, Scope::Backend, Some(change));
        backend.tell_action(now, OperatorAction::Hold, (actions.hold, Some(until)), notes);
        true
    }

    /// An operator declares a backend healthy: its breaker closes, its windows and exclusions end.
    /// Whether there is such a backend.
    pub fn reset(&self, now: Now, id: &str, notes: &mut Notes) -> bool {
        let Some(backend) = self.backend(id) else { return false };
        let mut actions = lock(&backend.health.actions);
        if backend.health.cell.with(|guarded| guarded.breaker.is_held(now)) {
            actions.hold = next(backend, actions.hold);
            backend.tell_action(now, OperatorAction::Hold, (actions.hold, None), notes);
        }
        actions.reset = next(backend, actions.reset);
        backend.tell_reset(actions.reset, notes);
        backend.reset(now, now, actions, notes);
        true
    }
}

/// The stamp of the next action of a kind.
fn next(backend: &Backend, seen: Stamp) -> Stamp {
    Stamp { version: seen.version.saturating_add(1), writer: backend.fleet.replica }
}

impl Backend {
    /// Takes it out, or puts it back.
    fn drain(&self, now: Now, until: Option<Now>) -> Option<Change> {
        let off = &self.health.off;
        let reason = MarkReason::Manual;
        match until {
            Some(until) => {
                let marked = Change::Marked { key: None, until, reason, status: None };
                off.extend(until, reason).then_some(marked)
            }
            None => off.clear(now).map(|it| Change::Healed { reason: it.reason }),
        }
    }

    pub(crate) fn hold_open(&self, now: Now, until: Now) -> Change {
        self.health.cell.with(|guarded| {
            let breaker = guarded.breaker.hold(now, until);
            let generation = guarded.breaker.gate().generation;
            Change::Breaker { breaker, generation, evidence: None, status: None }
        })
    }

    /// Everything that stands against it ends. It was reset at `at`, here or elsewhere.
    pub(crate) fn reset(
        &self,
        now: Now,
        at: Now,
        mut actions: MutexGuard<'_, Actions>,
        notes: &mut Notes,
    ) {
        actions.reset_at = actions.reset_at.max(Some(at));
        drop(actions);
        notes.record(now, &self.id, Scope::Backend, self.close_by_hand(now));
        for key in &self.keys {
            key.window.clear(now);
            self.heal(now, key, notes);
        }
    }

    pub(crate) fn close_by_hand(&self, now: Now) -> Option<Change> {
        self.health.cell.with(|guarded| {
            guarded.last_error = None;
            let breaker: BreakerChange = guarded.breaker.reset(now)?;
            let generation = guarded.breaker.gate().generation;
            Some(Change::Breaker { breaker, generation, evidence: None, status: None })
        })
    }
}
