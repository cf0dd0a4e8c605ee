//! Records in the order they came, bounded by bytes and by age.

use std::collections::VecDeque;

use tidegate_core::time::{Millis, Now};

/// How long anything is kept in memory.
pub const KEPT_FOR: Millis = Millis::minutes(15);

/// A record as the ring keeps it.
#[derive(Clone, Debug)]
struct Slot<T> {
    at: Now,
    bytes: usize,
    record: T,
}

/// The ring.
#[derive(Debug)]
pub(crate) struct Ring<T> {
    slots: VecDeque<Slot<T>>,
    bytes: usize,
    bytes_max: usize,
    /// When the latest record was dropped that was younger than [`KEPT_FOR`] then.
    cut_at: Option<Now>,
}

impl<T> Ring<T> {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { slots: VecDeque::new(), bytes: 0, bytes_max, cut_at: None }
    }

    /// Keeps a record; `gone` is told of those that had to go.
    pub(crate) fn push(&mut self, at: Now, bytes: usize, record: T, gone: impl FnMut(T)) {
        self.slots.push_back(Slot { at, bytes, record });
        self.bytes += bytes;
        self.trim(at, gone);
    }

    /// Drops what is too old, and what does not fit, and tells of each.
    pub(crate) fn trim(&mut self, now: Now, mut gone: impl FnMut(T)) {
        while let Some(first) = self.slots.front() {
            let is_old = now.since(first.at) > KEPT_FOR;
            if !is_old && self.bytes <= self.bytes_max {
                break;
            }
            let Some(slot) = self.slots.pop_front() else { break };
            if !is_old {
                self.cut_at = Some(slot.at);
            }
            self.bytes -= slot.bytes;
            gone(slot.record);
        }
        // A burst must not leave its room behind.
        if self.slots.capacity() > 64 && self.slots.len() < self.slots.capacity() / 4 {
            self.slots.shrink_to(self.slots.len() * 2);
        }
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.slots.iter().map(|slot| &slot.record)
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The moment since which nothing was dropped for lack of room.
    pub(crate) fn complete_since(&self, now: Now) -> Now {
        let oldest = Now(now.0.saturating_sub(KEPT_FOR.0));
        self.cut_at.map_or(oldest, |cut| cut.max(oldest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_keeps_fifteen_minutes_or_its_bytes_whichever_is_less() {
        let mut ring = Ring::new(100);
        for number in 0..10 {
            ring.push(Now(number), 30, number, drop);
        }
        assert_eq!(ring.iter().copied().collect::<Vec<_>>(), [7, 8, 9]);
        assert_eq!((ring.bytes(), ring.complete_since(Now(9))), (90, Now(6)));
        let mut gone = Vec::new();
        ring.trim(Now(KEPT_FOR.0 + 9), |it| gone.push(it));
        assert_eq!((gone, ring.len(), ring.bytes()), (vec![7, 8], 1, 30));
    }

    #[test]
    fn a_record_that_is_larger_than_the_ring_is_not_kept() {
        let mut ring = Ring::new(100);
        let mut gone = Vec::new();
        ring.push(Now(0), 101, 'x', |it| gone.push(it));
        assert_eq!(gone, ['x']);
        assert_eq!(ring.bytes(), 0);
    }
}
