//! What clients see as one server: a server that stands alone, or a group of equivalent ones.
//!
//! Rules kept here:
//! - A group offers what the first of its members offers whose lists are known: they are
//!   equivalent, and names must not depend on health.
//! - What is known of a group is the best of what is known of its members.
//!
//! Left to others: which member is asked (the core, by way of `tidegate_mcp::tour`), the links to
//! the members (`client`), going on at another (`client/replicas`).

use std::rc::Rc;
use std::sync::Arc;

use tidegate_core::time::Millis;
use tidegate_mcp::{
    listing::Listing,
    session::{Contact, Known},
};

use super::{hello::Hello, server::Server};

/// One server, as clients see it.
#[derive(Clone)]
pub(crate) struct Group {
    /// What clients call it.
    pub(crate) name: Arc<str>,
    /// The servers behind it, in tier order; of a server that stands alone, itself.
    pub(crate) servers: Vec<Rc<Server>>,
}

impl Group {
    /// The server, if it stands alone.
    pub(crate) fn alone(&self) -> Option<&Rc<Server>> {
        self.servers.first().filter(|it| it.name == self.name)
    }

    /// The member of this name.
    pub(crate) fn member(&self, name: &str) -> Option<&Rc<Server>> {
        self.servers.iter().find(|it| *it.name == *name)
    }

    /// Whether any member can be used as configured.
    pub(crate) fn is_usable(&self) -> bool {
        self.servers.iter().any(|it| it.is_usable())
    }

    /// Whether every session has a child of its own.
    pub(crate) fn is_own_child(&self) -> bool {
        self.servers.first().is_some_and(|it| it.is_own_child())
    }

    /// How long it may take until one of them is there.
    pub(crate) fn initialize_within(&self) -> Millis {
        let each = self.servers.iter().map(|it| it.initialize_within().0);
        Millis(each.fold(0, u64::saturating_add))
    }

    /// What it offers such a client, as far as that is known.
    pub(crate) fn listing(&self, hello: &Hello) -> Option<Arc<Listing>> {
        self.servers.iter().find_map(|it| it.shelf.listing(it.profile_for(hello)))
    }

    /// What it says about itself to such a client; nothing before it was reached.
    pub(crate) fn words(&self, hello: &Hello) -> Arc<str> {
        let words = self.listing(hello).and_then(|it| it.info.instructions.clone());
        words.unwrap_or_default().into()
    }

    /// What is known of it.
    pub(crate) fn known(&self, hello: &Hello) -> Known {
        let has_catalogue = self.listing(hello).is_some();
        // As long as no lists are known, they may come from a member that nobody has tried.
        let best = match has_catalogue {
            true => [Contact::Reached, Contact::Untried],
            false => [Contact::Untried, Contact::Reached],
        };
        let has = |contact: &Contact| self.servers.iter().any(|it| it.contact.get() == *contact);
        let contact = best.into_iter().find(has).unwrap_or(Contact::Failed);
        Known { contact, has_catalogue }
    }
}
