//! The bus between replicas: what one tells reaches the others after a while, or not at all.
//!
//! It carries the core's own hints and decides nothing. A replica that was cut off and comes back
//! does what one does that finds its store again: it tells what it holds, and is told what the
//! others hold.

use tidegate_core::{
    draw::fraction,
    hint::{Fact, Haste, Hint},
    time::{Millis, Now},
};

use super::{Engine, EngineEvent};
use crate::{
    audit::FleetAuditor,
    rng::Rng,
    timeline::{plot::Fleet, tally::BusTally},
};

/// Pins are told page by page.
const PINS_PER_PAGE: usize = 1_000;

pub(super) struct Bus {
    fleet: Fleet,
    /// Hints under way; a place is used again when the last of its receivers has heard it.
    flights: Vec<Flight>,
    free: Vec<u32>,
    draws: Rng,
    /// The replica that gets the next request.
    turn: u32,
    pub(super) auditor: Option<FleetAuditor>,
}

#[derive(Clone, Copy)]
struct Flight {
    hint: Hint,
    told_at: Now,
    receivers: u32,
}

impl Bus {
    pub(super) fn new(fleet: &Fleet, draws: Rng, auditor: Option<FleetAuditor>) -> Self {
        let (flights, free) = (Vec::new(), Vec::new());
        Self { fleet: fleet.clone(), flights, free, draws, turn: 0, auditor }
    }

    /// The replica that a request of a session reaches.
    pub(super) fn replica_for(&mut self, session: u32) -> u32 {
        if self.fleet.is_by_session {
            return session % self.fleet.replicas;
        }
        let turn = self.turn;
        self.turn = (turn + 1) % self.fleet.replicas;
        turn
    }

    fn is_cut(&self, replica: u32, now: Now) -> bool {
        self.fleet
            .cuts
            .iter()
            .any(|it| it.replica == replica && it.from <= now && !now.reached(it.to))
    }

    /// When each replica hears what `from` tells now; `None` = never.
    /// What may wait for company is taken to wait for as long as it may.
    fn deliveries(
        &mut self,
        now: Now,
        from: u32,
        haste: Haste,
        is_reload: bool,
    ) -> Vec<Option<Now>> {
        let waits = if is_reload { Millis::ZERO } else { haste.may_wait() };
        let is_silent = self.is_cut(from, now);
        let replicas = 0..self.fleet.replicas;
        let delivery = |to: u32| {
            if to == from || is_silent || self.is_cut(to, now) {
                return None;
            }
            // What is loaded from a store is there or not: only messages get lost.
            let is_lost = !is_reload
                && self.fleet.loss > 0.0
                && fraction(self.draws.draw()) < self.fleet.loss;
            (!is_lost).then(|| now.after(waits).after(self.fleet.delay))
        };
        replicas.map(delivery).collect()
    }

    /// Puts a hint under way; its place.
    fn send(&mut self, hint: Hint, told_at: Now, receivers: u32) -> u32 {
        let flight = Flight { hint, told_at, receivers };
        match self.free.pop() {
            Some(place) => {
                self.flights[place as usize] = flight;
                place
            }
            None => {
                self.flights.push(flight);
                (self.flights.len() - 1) as u32
            }
        }
    }

    /// One of its receivers gets it.
    fn receive(&mut self, place: u32, now: Now) -> Hint {
        let flight = &mut self.flights[place as usize];
        flight.receivers -= 1;
        if flight.receivers == 0 {
            self.free.push(place);
        }
        Hint { age: now.since(flight.told_at), ..flight.hint }
    }
}

impl Engine<'_> {
    /// When replicas that are cut off come back.
    pub(super) fn schedule_reunions(&mut self) {
        let cuts = self.bus.as_ref().map_or(Vec::new(), |it| it.fleet.cuts.clone());
        for cut in cuts.iter().filter(|it| it.to.0 <= self.plot.lasts.0) {
            self.schedule(cut.to, EngineEvent::Reunion { replica: cut.replica });
        }
    }

    /// What the latest call of a replica's core has to tell goes on the bus.
    pub(super) fn tell_hints(&mut self, now: Now, from: u32) {
        if self.notes.hints.is_empty() {
            return;
        }
        let mut hints = std::mem::take(&mut self.notes.hints);
        if let Some(auditor) = self.bus.as_mut().and_then(|it| it.auditor.as_mut()) {
            auditor.on_told(now, from, &hints);
        }
        for hint in hints.drain(..) {
            self.tell(now, from, hint, None);
        }
        self.notes.hints = hints;
    }

    /// Tells one hint to the others, or what is held to one of them.
    fn tell(&mut self, now: Now, from: u32, hint: Hint, only: Option<u32>) {
        let Some(bus) = &mut self.bus else { return };
        let mut deliveries = bus.deliveries(now, from, hint.haste, only.is_some());
        if let Some(only) = only {
            for (to, at) in deliveries.iter_mut().enumerate() {
                *at = at.filter(|_| to == only as usize);
            }
        }
        if let Some(auditor) = &mut bus.auditor {
            auditor.on_sent(now, from, &hint, &deliveries);
        }
        let receivers = deliveries.iter().flatten().count() as u32;
        let wanted = if only.is_some() { 1 } else { bus.fleet.replicas - 1 };
        let tally = &mut self.tally.bus;
        tally.told += u64::from(only.is_none());
        tally.lost += u64::from(wanted.saturating_sub(receivers));
        tally.count(&hint.fact, only.is_some());
        if receivers == 0 {
            return;
        }
        let message = bus.send(hint, now, receivers);
        for (to, at) in deliveries.iter().enumerate() {
            if let Some(at) = at {
                self.schedule(*at, EngineEvent::Hear { replica: to as u32, message });
            }
        }
    }

    /// A replica hears what another told.
    pub(super) fn hear(&mut self, now: Now, replica: u32, message: u32) {
        let Some(bus) = &mut self.bus else { return };
        let hint = bus.receive(message, now);
        let it = &mut self.replicas[replica as usize];
        let heard = it.core.hear(now, &hint, &mut self.notes);
        self.tally.bus.heard[heard as usize] += 1;
        if let Some(auditor) = &mut bus.auditor {
            auditor.on_heard(now, replica, &hint, &self.notes);
        }
        if let Some(auditor) = &mut it.auditor {
            auditor.on_transitions(&self.notes.transitions);
        }
        self.note_transitions(now, replica);
        if matches!(hint.fact, Fact::Opened { .. }) {
            self.hasten_probes(replica);
        }
    }

    /// A replica that was cut off is back.
    pub(super) fn reunite(&mut self, now: Now, replica: u32) {
        for other in (0..self.replicas.len() as u32).filter(|it| *it != replica) {
            for (from, to) in [(replica, other), (other, replica)] {
                for hint in self.held_by(now, from) {
                    self.tell(now, from, hint, Some(to));
                }
            }
        }
    }

    /// Everything that a replica holds of what its fleet shares.
    fn held_by(&self, now: Now, replica: u32) -> Vec<Hint> {
        let core = &self.replicas[replica as usize].core;
        let mut held = core.holdings(now);
        let mut after = None;
        loop {
            let (pins, next) = core.held_pins(now, after, PINS_PER_PAGE);
            held.extend(pins);
            match next {
                None => return held,
                next => after = next,
            }
        }
    }
}

impl BusTally {
    fn count(&mut self, fact: &Fact, is_reload: bool) {
        let place = match fact {
            _ if is_reload => return,
            Fact::Window { .. } => &mut self.windows,
            Fact::Exclusion { .. } => &mut self.exclusions,
            Fact::Opened { .. } => &mut self.openings,
            Fact::Pin { .. } => &mut self.pins,
            Fact::Action { .. } | Fact::Reset { .. } => return,
        };
        *place += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::plot::Cut;

    const AT_ONCE: Haste = Haste::AtOnce;

    fn bus(loss: f64, cuts: Vec<Cut>) -> Bus {
        let fleet = Fleet { replicas: 3, is_by_session: false, delay: Millis(5), loss, cuts };
        Bus::new(&fleet, Rng::new(1), None)
    }

    #[test]
    fn a_message_reaches_everybody_else_after_the_delay() {
        let at = Some(Now(15));
        assert_eq!(bus(0.0, Vec::new()).deliveries(Now(10), 1, AT_ONCE, false), [at, None, at]);
        let later = Some(Now(65));
        let deliveries = bus(0.0, Vec::new()).deliveries(Now(10), 1, Haste::BeforeNextTurn, false);
        assert_eq!(deliveries, [later, None, later]);
    }

    #[test]
    fn a_replica_that_is_cut_off_tells_nothing_and_hears_nothing() {
        let cut = Cut { replica: 2, from: Now(10), to: Now(20) };
        let mut bus = bus(0.0, vec![cut]);
        assert_eq!(bus.deliveries(Now(10), 2, AT_ONCE, false), [None; 3]);
        assert_eq!(bus.deliveries(Now(19), 0, AT_ONCE, false), [None, Some(Now(24)), None]);
        assert_eq!(bus.deliveries(Now(20), 0, AT_ONCE, false)[2], Some(Now(25)));
    }

    #[test]
    fn what_is_lost_is_not_heard_and_what_is_loaded_is_not_lost() {
        let mut bus = bus(1.0, Vec::new());
        assert_eq!(bus.deliveries(Now(0), 0, AT_ONCE, false), [None; 3]);
        assert_eq!(bus.deliveries(Now(0), 0, AT_ONCE, true), [None, Some(Now(5)), Some(Now(5))]);
    }
}
