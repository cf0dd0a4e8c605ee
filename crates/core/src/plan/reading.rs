//! Reading the candidates of a route, tier by tier, as far as a choice needs.
//!
//! Why it exists: a choice uses the lowest rank present, of that rank the lowest-numbered tier.
//! Once a tier has a candidate that nothing stands against, no later tier can be chosen from, so
//! none is read: a route may have a hundred targets in reserve at no cost.
//!
//! Rules kept here:
//! - Tiers are read whole and in order. The one of the session's pin, and the one whose next key is
//!   due, are read as well: they may come first although a lower-numbered tier could serve.
//! - Where a request brings reasoning that only some can read, everybody is read: who can may stand
//!   in any tier.
//! - If somebody else was faster and nothing clear is left, the reading goes on where it stopped.

use super::Plan;
use crate::{attempt::Attempt, holder, pins::Pin, route::Candidate, time::Now, transition::Notes};

/// How far the candidates were read for a choice.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadTiers {
    /// The first candidate that was not.
    next: usize,
    /// The last tier that has to be read in any case.
    wanted: u16,
    /// Whether the session stays where it is, for now.
    stays: bool,
}

impl Plan {
    /// Reads the candidates that this request may still use, as far as a choice needs them.
    /// `wanted` are candidates that must be among them.
    pub(super) fn read(
        &self,
        now: Now,
        pin: Option<Pin>,
        wanted: [Option<u16>; 2],
        notes: &mut Notes,
    ) -> ReadTiers {
        let is_sealed =
            self.log.is_empty() && self.needs.state.is_some_and(|state| !state.kind.is_required());
        let tiers = wanted.into_iter().flatten().map(|candidate| self.route.tier(candidate));
        let wanted = if is_sealed { u16::MAX } else { tiers.max().unwrap_or(0) };
        let stays = pin.is_some_and(|pin| !now.reached(pin.stays_until));
        let mut reading = ReadTiers { next: 0, wanted, stays };
        notes.reads.clear();
        self.read_on(now, &mut reading, notes);
        if is_sealed {
            holder::prefer_sealer(&self.route, &self.needs, &mut notes.reads);
        }
        reading
    }

    /// Reads further tiers until there is a candidate that nothing stands against.
    pub(super) fn read_on(&self, now: Now, reading: &mut ReadTiers, notes: &mut Notes) {
        let candidates = &self.route.candidates;
        let mut is_served = notes.reads.iter().any(|read| read.rank.is_clear());
        while let Some(first) = candidates.get(reading.next) {
            let tier = first.tier;
            if is_served && tier > reading.wanted {
                return;
            }
            let lots = self.lots();
            while let Some(candidate) = candidates.get(reading.next).filter(|it| it.tier == tier) {
                let index = reading.next;
                reading.next += 1;
                let is_out = self.is_done(now, index as u16) || self.is_too_small(candidate);
                if is_out || candidate.barred(now, &self.needs).is_some() {
                    continue;
                }
                let mut read = candidate.read(now, index, self.route.tactic);
                read.is_held |= self.stays_at.is_some() || reading.stays;
                read.lot = lots.map(|lots| lots.of(candidate.backend.lot_name()));
                is_served |= read.rank.is_clear();
                notes.reads.push(read);
            }
        }
    }

    /// A target is done after its attempt, unless the trouble was its key and a free one is left.
    fn is_done(&self, now: Now, candidate: u16) -> bool {
        if self.log.is_empty() {
            return false;
        }
        let mut tried = self.attempts_of(candidate).peekable();
        if tried.peek().is_none() {
            return false;
        }
        let backend = self.route.backend(candidate);
        let only_key_trouble =
            tried.all(|it| it.outcome.is_some_and(|outcome| outcome.kind.asks_next_key()));
        !(only_key_trouble && backend.has_free_key(now, |key| self.is_untried(candidate, key)))
    }

    /// Whether the request was too long for a target whose context is known to be no smaller.
    fn is_too_small(&self, candidate: &Candidate) -> bool {
        let context = candidate.backend.abilities.context;
        let failed = self.log.too_long().map(|it| self.route.backend(it.candidate));
        let mut known = failed.filter_map(|backend| backend.abilities.context);
        context.is_some_and(|context| known.any(|failed| context <= failed))
    }

    pub(super) fn is_untried(&self, candidate: u16, key: usize) -> bool {
        !self.attempts_of(candidate).any(|it| usize::from(it.key) == key)
    }

    /// Attempts of the same backend, also where a route lists it twice.
    fn attempts_of(&self, candidate: u16) -> impl Iterator<Item = &Attempt> {
        let number = self.route.backend(candidate).number;
        self.log.iter().filter(move |it| self.route.backend(it.candidate).number == number)
    }
}
