//! What a replica holds of what its fleet shares: for a store that lost it, and for late replicas.
//!
//! Windows, exclusions and operator actions are few and come at once; pins are many and come page
//! by page. What was heard is among them: whoever knows a fact can keep it alive. Openings and
//! resets are events and are not kept.

use std::{collections::BTreeSet, sync::Arc};

use crate::{
    backend::Backend,
    core::Core,
    hint::{Excluded, Fact, Haste, Hint, Lasts, OperatorAction, Stamp},
    mark::Exclusion,
    names::{PinKey, ReplicaId},
    sync::lock,
    time::{Millis, Now},
};

impl Core {
    /// Every window, exclusion and operator action that is shared, also those that have ended: an
    /// old value must not come back.
    #[must_use]
    pub fn holdings(&self, now: Now) -> Vec<Hint> {
        let Some(fleet) = &self.fleet else { return Vec::new() };
        let mut holdings = Holdings { now, writer: fleet.replica, hints: Vec::new() };
        let mut seen = BTreeSet::new();
        for backend in &self.backends {
            holdings.windows(backend);
            holdings.exclusions(backend, &mut seen);
            holdings.actions(backend);
        }
        holdings.hints
    }

    /// Up to `max` shared pins, those after `after`, and where to go on; `None` = that was all.
    #[must_use]
    pub fn held_pins(
        &self,
        now: Now,
        after: Option<PinKey>,
        max: usize,
    ) -> (Vec<Hint>, Option<PinKey>) {
        if self.fleet.is_none() || max == 0 {
            return (Vec::new(), None);
        }
        let page = self.pins.page(now, after, max);
        let next = (page.len() == max).then(|| page.last().map(|(key, _)| *key)).flatten();
        let hint = |(session, pin): (PinKey, crate::pins::Pin)| {
            let backend = self.backends.iter().find(|it| it.number == pin.backend)?;
            let fact = backend.pin_fact(now, session, &pin)?;
            // Whoever asks for them is not waiting for one of them.
            let haste = Haste::BeforeNextTurn;
            Some(Hint { age: Millis::ZERO, stamp: pin.stamp, fact, haste })
        };
        (page.into_iter().filter_map(hint).collect(), next)
    }
}

struct Holdings {
    now: Now,
    writer: ReplicaId,
    hints: Vec<Hint>,
}

impl Holdings {
    fn add(&mut self, stamp: Stamp, fact: Fact) {
        self.hints.push(Hint { age: Millis::ZERO, stamp, fact, haste: Haste::AtOnce });
    }

    fn windows(&mut self, backend: &Backend) {
        for key in &backend.keys {
            let named = backend.fleet.told().zip(key.key.fleet.told());
            if let Some(((backend, key), it)) = named.zip(key.window.active(self.now)) {
                let (remaining, reason) = (it.until.since(self.now), it.reason);
                let stamp = Stamp { version: 0, writer: self.writer };
                self.add(stamp, Fact::Window { backend, key, remaining, reason });
            }
        }
    }

    fn exclusions(&mut self, backend: &Arc<Backend>, seen: &mut BTreeSet<Excluded>) {
        self.exclusion(backend.model_excluded(), &backend.health.exclusion);
        for key in &backend.keys {
            self.exclusion(backend.pair_excluded(key), &key.refusal);
            let of = backend.key_excluded(key).filter(|of| seen.insert(*of));
            self.exclusion(of, &key.exclusion);
        }
    }

    fn exclusion(&mut self, of: Option<Excluded>, exclusion: &Exclusion) {
        let Some((of, held)) = of.zip(exclusion.held()) else { return };
        let standing = held.until.filter(|until| !self.now.reached(*until));
        // One that ended by its time is known to everybody by its time.
        if held.until.is_some() && standing.is_none() {
            return;
        }
        let remaining = standing.map(|until| until.since(self.now));
        let stamp = Stamp { version: held.version, writer: self.writer };
        self.add(stamp, Fact::Exclusion { of, remaining, reason: held.reason });
    }

    fn actions(&mut self, backend: &Backend) {
        let Some(name) = backend.fleet.told() else { return };
        let (drain, hold) = {
            let actions = lock(&backend.health.actions);
            (actions.drain, actions.hold)
        };
        let off = backend.health.off.active(self.now).map(|it| it.until);
        let held = backend.health.cell.with(|guarded| guarded.breaker.held_until(self.now));
        let both = [(OperatorAction::Drain, drain, off), (OperatorAction::Hold, hold, held)];
        for (action, stamp, until) in both {
            if stamp.version == 0 {
                continue;
            }
            let lasts = match until {
                Some(Now::NEVER) => Lasts::UntilEnded,
                Some(until) => Lasts::For(until.since(self.now)),
                None => Lasts::Ended,
            };
            self.add(stamp, Fact::Action { backend: name, action, lasts });
        }
    }
}
