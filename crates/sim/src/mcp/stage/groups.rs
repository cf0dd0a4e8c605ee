//! What clients see: servers that stand alone, and groups of equivalent ones. A server that stands
//! alone is a group of one.

use std::sync::Arc;

use tidegate_mcp::session::{Contact, Known};

use super::{Server, Stage, audit::Books};
use crate::mcp::{Mcp, seen};

/// Where a group was before a reload, if it was there.
pub(super) type Place = Option<usize>;

/// A group.
pub(super) struct Group {
    pub(super) name: Arc<str>,
    /// The places of its servers, in tier order.
    pub(super) members: Vec<usize>,
    /// Their names, in the same order.
    names: Vec<Arc<str>>,
    pub(super) books: Option<Books>,
}

impl Group {
    /// Whether the config groups it, instead of a server that stands alone.
    pub(super) fn is_real(&self, servers: &[Server]) -> bool {
        !servers.iter().any(|it| it.plan.is(&self.name))
    }
}

/// The groups of these servers, with fresh books.
pub(super) fn of(scenario: &Mcp, servers: &[Server]) -> Vec<Group> {
    let groups: Vec<(&str, Vec<&str>)> = scenario
        .replicas
        .iter()
        .map(|(name, members)| (&**name, members.iter().map(|it| &**it).collect()))
        .collect();
    let names = servers.iter().map(|it| &*it.plan.name);
    let groups = seen(names.clone(), &groups).into_iter().map(|(name, members)| {
        let place = |member: &&str| names.clone().position(|it| it == *member);
        let members: Vec<usize> = members.iter().filter_map(place).collect();
        let plans: Vec<_> = members.iter().map(|it| &servers[*it].plan).collect();
        let names = plans.iter().map(|it| Arc::clone(&it.name)).collect();
        Group { name: name.into(), books: Some(Books::new(name, &plans)), names, members }
    });
    groups.collect()
}

impl Stage<'_> {
    /// The group of a server.
    pub(super) fn group_of(&self, server: usize) -> Option<usize> {
        self.groups.iter().position(|it| it.members.contains(&server))
    }

    /// What is known of a group: the best of what is known of its members.
    pub(super) fn known(&self, group: usize) -> Known {
        let members = || self.groups[group].members.iter().map(|it| &self.servers[*it]);
        let has = |contact| members().any(|it| it.contact == contact);
        let contact = match (has(Contact::Reached), has(Contact::Untried)) {
            (true, _) => Contact::Reached,
            (false, true) => Contact::Untried,
            (false, false) => Contact::Failed,
        };
        Known { contact, has_catalogue: members().any(|it| it.listing.is_some()) }
    }

    /// The groups of the servers as they are now; for each, its place before. One with the same
    /// members keeps its books; one of which only a part stayed, or that is judged by other rules,
    /// is followed by no auditor from here on.
    pub(super) fn regroup(&mut self, stayed: &[Arc<str>], rejudged: &[Arc<str>]) -> Vec<Place> {
        let mut old: Vec<Option<Group>> =
            std::mem::take(&mut self.groups).into_iter().map(Some).collect();
        let mut groups = of(self.scenario, &self.servers);
        let mut places = Vec::new();
        for group in &mut groups {
            let is_known = group.names.iter().any(|it| stayed.contains(it));
            let is_it = |it: &Option<Group>| it.as_ref().is_some_and(|it| it.name == group.name);
            let place = old.iter().position(is_it).filter(|_| is_known);
            let before = place.and_then(|at| old[at].take());
            if is_known {
                let is_judged_alike = !group.names.iter().any(|it| rejudged.contains(it));
                let same = before.filter(|it| it.names == group.names && is_judged_alike);
                group.books = same.and_then(|it| it.books);
            }
            places.push(place);
        }
        self.groups = groups;
        places
    }
}
