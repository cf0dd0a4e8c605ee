//! How many programs run at once, and the bounds on it: `mcp.max_children` in all, and a share of
//! it for each caller.
//!
//! A place is held from before a program starts until the last process of it is gone, so the bound
//! is one on processes and not on wishes. The gateway's own programs count in the whole only. All
//! of it is on the MCP thread: no locks.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use tidegate_mcp::shares::{Bound, Ledger, Room};

/// The programs of this gateway, counted.
#[derive(Clone, Debug)]
pub struct Children {
    count: Rc<Count>,
    /// On whose behalf programs are started from here, and which fraction it may have.
    owner: Option<(Arc<str>, f64)>,
}

#[derive(Debug)]
struct Count {
    running: Cell<u32>,
    max: Cell<u32>,
    by_caller: RefCell<Ledger>,
}

impl Children {
    /// None yet, and at most `max`.
    pub fn up_to(max: u32) -> Self {
        let (running, max) = (Cell::new(0), Cell::new(max));
        Self { count: Rc::new(Count { running, max, by_caller: RefCell::default() }), owner: None }
    }

    /// The same, started on behalf of a caller that may have this fraction of them.
    pub(crate) fn of(&self, caller: &Arc<str>, fraction: f64) -> Self {
        Self { owner: Some((Arc::clone(caller), fraction)), count: Rc::clone(&self.count) }
    }

    /// Takes over a changed bound. What runs above it goes on.
    pub(crate) fn bound(&self, max: u32) {
        self.count.max.set(max);
    }

    /// The bound.
    pub(crate) fn max(&self) -> u32 {
        self.count.max.get()
    }

    /// How many there are.
    pub(crate) fn running(&self) -> u32 {
        self.count.running.get()
    }

    /// A place for one more, if there is one.
    pub(super) fn place(&self) -> Option<ChildPermit> {
        let running = self.running();
        if running >= self.max() {
            return None;
        }
        if let Some((caller, fraction)) = &self.owner {
            let bound = Bound::new(self.max() as usize, *fraction);
            let room = self.count.by_caller.borrow_mut().take(caller, 1, bound);
            (room == Room::Free).then_some(())?;
        }
        self.count.running.set(running + 1);
        let owner = self.owner.as_ref().map(|(caller, _)| Arc::clone(caller));
        Some(ChildPermit { count: Rc::clone(&self.count), owner })
    }
}

/// The right to run one program, given back when dropped.
#[derive(Debug)]
pub(super) struct ChildPermit {
    count: Rc<Count>,
    owner: Option<Arc<str>>,
}

impl Drop for ChildPermit {
    fn drop(&mut self) {
        self.count.running.set(self.count.running.get().saturating_sub(1));
        if let Some(owner) = &self.owner {
            self.count.by_caller.borrow_mut().give_back(owner, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_free_again_when_it_was_dropped() {
        let children = Children::up_to(2);
        let (first, second) = (children.place(), children.place());
        assert!(first.is_some() && second.is_some() && children.place().is_none());
        drop(first);
        assert_eq!(children.running(), 1);
        assert!(children.place().is_some());
    }

    #[test]
    fn a_lower_bound_lets_what_runs_go_on_and_nothing_join_it() {
        let children = Children::up_to(2);
        let places = [children.place(), children.place()];
        children.bound(1);
        assert!(children.place().is_none());
        assert_eq!(children.running(), 2);
        drop(places);
        assert!(children.place().is_some());
    }

    #[test]
    fn one_caller_leaves_places_to_the_others() {
        let all = Children::up_to(8);
        let (flood, other) = (all.of(&"flood".into(), 0.25), all.of(&"other".into(), 0.25));
        let places: Vec<_> = (0..8).map_while(|_| flood.place()).collect();
        assert_eq!(places.len(), 2);
        assert!(other.place().is_some() && all.place().is_some());
        drop(places);
        assert!(flood.place().is_some());
    }
}
