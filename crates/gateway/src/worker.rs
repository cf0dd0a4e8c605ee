//! One thread's part of a gateway: its connections to providers and its buffer for the core.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use tidegate_core::transition::Notes;
use tidegate_journal::{decision::Decision, inbox::Inbox};
use tidegate_net::upstream::Pool;
use tokio::sync::{Notify, futures::OwnedNotified};

use crate::{gateway::Gateway, report};

/// One thread's part: the shared gateway, its own connections and its own buffer for the core.
#[derive(Debug)]
pub struct Worker {
    pub gateway: Arc<Gateway>,
    pub pool: Rc<Pool>,
    /// Tells streams that the drain is over.
    drained: Arc<Notify>,
    notes: RefCell<Notes>,
    /// Where its decisions wait for the journal.
    inbox: Arc<Inbox>,
}

impl Worker {
    pub fn new(gateway: Arc<Gateway>) -> Self {
        let (pool, drained, notes) = (Rc::default(), Arc::default(), RefCell::default());
        let inbox = gateway.journal.inbox();
        Self { gateway, pool, drained, notes, inbox }
    }

    /// Waits for the end of the drain.
    pub fn drained(&self) -> OwnedNotified {
        Arc::clone(&self.drained).notified_owned()
    }

    /// The drain is over: every stream that is still under way says so and ends.
    pub fn end_streams(&self) {
        self.drained.notify_waiters();
    }

    /// Records how a request or an MCP call was decided.
    pub fn record(&self, decision: Decision) {
        self.gateway.journal.record(&self.inbox, decision);
    }

    /// Talks to the core, renders the transitions it tells of, and has its hints told.
    pub fn with_notes<R>(&self, talk: impl FnOnce(&mut Notes) -> R) -> R {
        let notes = &mut *self.notes.borrow_mut();
        let result = talk(notes);
        if !notes.transitions.is_empty() {
            report::transitions(&self.gateway, &notes.transitions);
            notes.transitions.clear();
        }
        if !notes.hints.is_empty() {
            match self.gateway.fleet.get() {
                Some(fleet) => fleet.tell(&mut notes.hints, self.gateway.now()),
                None => notes.hints.clear(),
            }
        }
        result
    }
}
