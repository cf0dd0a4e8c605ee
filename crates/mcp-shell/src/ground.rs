//! What everything on the MCP thread stands on: the gateway, connections, children, the hub.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;

use tidegate_config::secret::Environment;
use tidegate_core::{time::Now, transition::Notes};
use tidegate_gateway::{
    caller::Caller, gateway::Gateway, live::Live, own_request::AskRoute, worker::Worker,
};

use super::{
    fakes::Fakes,
    hub::Hub,
    stdio::Children,
    stream::{Account, Retained},
};

/// A client's latest request; sessions that have been idle for longer come first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LastUse {
    pub(crate) at: Now,
    number: u64,
}

/// The ground of the MCP thread.
pub struct Ground {
    pub(crate) worker: Rc<Worker>,
    /// Asks routes of the LLM plane, for embeddings.
    pub(crate) ask_route: AskRoute,
    pub(crate) environment: Arc<dyn Environment + Send + Sync>,
    pub(crate) children: Children,
    pub(crate) fakes: Fakes,
    /// Events that are held for callers.
    pub(crate) retained: Retained,
    hub: RefCell<Weak<Hub>>,
    /// How many requests of clients there have been.
    uses: Cell<u64>,
}

impl Ground {
    pub fn new(
        worker: Rc<Worker>,
        ask_route: AskRoute,
        environment: Arc<dyn Environment + Send + Sync>,
        children: Children,
    ) -> Rc<Self> {
        let (fakes, retained, hub) = (Fakes::default(), Retained::default(), RefCell::default());
        let uses = Cell::default();
        Rc::new(Self { worker, ask_route, environment, children, fakes, retained, hub, uses })
    }

    /// The hub tells where it is, once.
    pub(super) fn set_hub(&self, hub: &Rc<Hub>) {
        *self.hub.borrow_mut() = Rc::downgrade(hub);
    }

    /// The hub, as long as it is there.
    pub(crate) fn hub(&self) -> Option<Rc<Hub>> {
        self.hub.borrow().upgrade()
    }

    /// What is held for a caller.
    pub(crate) fn account(&self, caller: &Caller) -> Account {
        self.retained.account(caller, self.gateway())
    }

    pub(crate) fn gateway(&self) -> &Arc<Gateway> {
        &self.worker.gateway
    }

    /// The config that serves now.
    #[must_use]
    pub fn live(&self) -> Arc<Live> {
        self.worker.gateway.live.load_full()
    }

    #[must_use]
    pub fn now(&self) -> Now {
        self.worker.gateway.now()
    }

    /// The moment of a client's request, and its number among all of them: the clock alone does
    /// not tell which of two requests within a millisecond was later.
    pub(crate) fn next_use(&self) -> LastUse {
        self.uses.set(self.uses.get() + 1);
        LastUse { at: self.now(), number: self.uses.get() }
    }

    /// Talks to the core, and renders the transitions it tells of.
    pub(crate) fn with_notes<R>(&self, talk: impl FnOnce(&mut Notes) -> R) -> R {
        self.worker.with_notes(talk)
    }
}
