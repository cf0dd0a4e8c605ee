//! How many programs run at once, and the bound on it (`mcp.max_children`).
//!
//! A place is held from before a program starts until the last process of it is gone, so the bound
//! is one on processes and not on wishes. All of it is on the MCP thread: no locks.

use std::cell::Cell;
use std::rc::Rc;

/// The programs of this gateway, counted.
#[derive(Clone, Debug)]
pub(crate) struct Children(Rc<Count>);

#[derive(Debug)]
struct Count {
    running: Cell<u32>,
    max: Cell<u32>,
}

impl Children {
    /// None yet, and at most `max`.
    pub(crate) fn up_to(max: u32) -> Self {
        Self(Rc::new(Count { running: Cell::new(0), max: Cell::new(max) }))
    }

    /// Takes over a changed bound. What runs above it goes on.
    pub(crate) fn bound(&self, max: u32) {
        self.0.max.set(max);
    }

    /// The bound.
    pub(crate) fn max(&self) -> u32 {
        self.0.max.get()
    }

    /// How many there are.
    pub(crate) fn running(&self) -> u32 {
        self.0.running.get()
    }

    /// A place for one more, if there is one.
    pub(super) fn place(&self) -> Option<Place> {
        let running = self.running();
        (running < self.max()).then(|| {
            self.0.running.set(running + 1);
            Place(Rc::clone(&self.0))
        })
    }
}

/// The right to run one program, given back when dropped.
#[derive(Debug)]
pub(super) struct Place(Rc<Count>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.running.set(self.0.running.get().saturating_sub(1));
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
}
