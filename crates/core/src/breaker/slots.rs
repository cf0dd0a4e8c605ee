//! The few slots of a half-open breaker.
//!
//! A slot is held by one trial until the trial is settled or its lease ends. The lease only
//! reclaims the slot of an owner that vanished, so no trial is ever lost for good (I18).

use serde::Serialize;

use crate::time::Now;

/// Names one slot's holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct SlotNumber(pub u64);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Slots {
    held: Vec<(SlotNumber, Now)>,
    next: u64,
    /// What `take` was last told: a limit lowered since then binds the next holder, not these.
    limit: u32,
}

impl Slots {
    /// Takes a slot until `lease_end`, if fewer than `limit` are held at `now`.
    pub(super) fn take(&mut self, now: Now, lease_end: Now, limit: u32) -> Option<SlotNumber> {
        self.held.retain(|(_, end)| !now.reached(*end));
        if self.held.len() >= limit as usize {
            return None;
        }
        let number = SlotNumber(self.next);
        self.next += 1;
        self.limit = limit;
        self.held.push((number, lease_end));
        Some(number)
    }

    /// Gives a slot back; one that is not held any more is no matter.
    pub(super) fn give_back(&mut self, number: SlotNumber) {
        self.held.retain(|(held, _)| *held != number);
    }

    /// From when on a slot can be had: `None` = at any time, else when the first lease ends.
    pub(super) fn free_from(&self, limit: u32) -> Option<Now> {
        if self.held.len() < limit as usize {
            return None;
        }
        // With more held than the limit (it was lowered), all but `limit - 1` must end first.
        let mut ends: Vec<Now> = self.held.iter().map(|(_, end)| *end).collect();
        ends.sort_unstable();
        ends.get(self.held.len() - limit as usize).copied()
    }

    /// The limit under which the latest slot was taken.
    pub(super) fn limit(&self) -> u32 {
        self.limit
    }

    /// Slots held at `now`.
    pub(super) fn held(&self, now: Now) -> u32 {
        self.held.iter().filter(|(_, end)| !now.reached(*end)).count() as u32
    }

    #[cfg(test)]
    pub(super) fn holders(&self) -> impl Iterator<Item = (SlotNumber, Now)> {
        self.held.iter().copied()
    }

    pub(super) fn clear(&mut self) {
        self.held.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_returns_when_its_lease_ends() {
        let mut slots = Slots::default();
        assert!(slots.take(Now(0), Now(10), 1).is_some());
        assert!(slots.take(Now(9), Now(19), 1).is_none());
        assert_eq!(slots.free_from(1), Some(Now(10)));
        assert!(slots.take(Now(10), Now(20), 1).is_some());
    }

    #[test]
    fn giving_back_twice_frees_one_slot() {
        let mut slots = Slots::default();
        let first = slots.take(Now(0), Now(9), 2).expect("two are free");
        slots.take(Now(0), Now(9), 2).expect("one is free");
        slots.give_back(first);
        slots.give_back(first);
        assert_eq!(slots.held(Now(0)), 1);
    }

    #[test]
    fn a_lowered_limit_waits_for_enough_leases() {
        let mut slots = Slots::default();
        for end in [30, 10, 20] {
            slots.take(Now(0), Now(end), 3).expect("three are free");
        }
        assert_eq!(slots.free_from(1), Some(Now(30)));
        assert_eq!(slots.free_from(2), Some(Now(20)));
        assert_eq!(slots.free_from(3), Some(Now(10)));
    }
}
