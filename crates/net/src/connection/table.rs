//! The open connections of a listener, bounded.
//!
//! Rules kept here:
//! - A bound that idle connections fill would let anybody who can reach the port lock everybody
//!   else out, without a key. So the connection that has waited for its client for longest makes
//!   room for a new one: idle ones first, then those whose request is still arriving, then those
//!   that do not read their answer.
//! - A connection whose request is being answered stays. If all of them are, the new one is closed
//!   at once: better than one that hangs.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use super::{Activity, activity::Wait};

/// The open connections.
#[derive(Debug)]
pub(super) struct Table {
    open: RefCell<BTreeMap<u64, Rc<Activity>>>,
    next: Cell<u64>,
    max: usize,
}

/// One connection's place in the table, until it is dropped.
#[derive(Debug)]
pub(super) struct Seat {
    table: Rc<Table>,
    number: u64,
    pub(super) activity: Rc<Activity>,
}

impl Table {
    pub(super) fn new(max: usize) -> Rc<Self> {
        Rc::new(Self { open: RefCell::default(), next: Cell::new(0), max })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.borrow().is_empty()
    }

    /// Whether a request may be on its way over one of them: nobody answers it yet.
    pub(super) fn awaits_request(&self) -> bool {
        let is_awaited = |it: &Rc<Activity>| {
            let waits = it.waiting().map(|(wait, _)| wait);
            matches!(waits, Some(Wait::NextRequest | Wait::Head | Wait::Body))
        };
        self.open.borrow().values().any(is_awaited)
    }

    /// A place for a new connection; none if all the others are at work.
    pub(super) fn admit(self: &Rc<Self>) -> Option<Seat> {
        let mut open = self.open.borrow_mut();
        if open.len() >= self.max {
            let waiting = open.iter().filter_map(|(number, it)| Some((it.waiting()?, *number)));
            let (_, longest) = waiting.min()?;
            if let Some(evicted) = open.remove(&longest) {
                evicted.evict();
            }
        }
        let number = self.next.get();
        self.next.set(number + 1);
        let activity = Activity::new();
        open.insert(number, Rc::clone(&activity));
        Some(Seat { table: Rc::clone(self), number, activity })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.table.open.borrow_mut().remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use http::Version;

    use super::*;

    fn is_evicted(seat: &Seat) -> bool {
        !seat.table.open.borrow().contains_key(&seat.number)
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_wait_makes_room_and_work_is_never_given_up() {
        let table = Table::new(3);
        let second = std::time::Duration::from_secs(1);
        let arriving = table.admit().expect("room");
        arriving.activity.waits_for(Some(Wait::Body));
        tokio::time::advance(second).await;
        let older = table.admit().expect("room");
        tokio::time::advance(second).await;
        let newer = table.admit().expect("room");
        let first = table.admit().expect("the older idle one makes room");
        assert!(is_evicted(&older) && !is_evicted(&newer) && !is_evicted(&arriving));
        older.activity.evicted().await;
        let first_guard = first.activity.begin(Version::HTTP_11);
        let second = table.admit().expect("the other idle one makes room");
        let _second_guard = second.activity.begin(Version::HTTP_11);
        assert!(is_evicted(&newer));
        let third = table.admit().expect("a body that is still arriving makes room");
        let _third_guard = third.activity.begin(Version::HTTP_11);
        assert!(is_evicted(&arriving));
        assert!(table.admit().is_none(), "all are at work");
        drop(first_guard);
        assert!(table.admit().is_some(), "an answered one is idle again");
        drop((older, newer, arriving, first, second, third));
        assert!(table.is_empty());
    }
}
