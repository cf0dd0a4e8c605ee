//! What servers remember of the sessions that were begun with them, whoever goes on with them; and
//! what a Hub tells of its own sessions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;

use crate::hub::ConnectionId;

/// What a Hub told of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Handed {
    Record(Arc<str>, Bytes),
    Released(Arc<str>, Bytes),
    Ended(Arc<str>),
}

/// The servers' side of sessions.
#[derive(Debug, Default)]
pub(super) struct World {
    begun: u64,
    /// Numbers of requests, by the server's name for the session.
    used: BTreeMap<String, BTreeSet<u64>>,
    pub(super) deleted: BTreeSet<String>,
    /// How often a request with this number in its arguments was given to any server.
    pub(super) given: BTreeMap<u64, usize>,
    /// Which session a connection of which Hub belongs to.
    talks: BTreeMap<(usize, ConnectionId), String>,
}

impl World {
    /// A server begins a session.
    pub(super) fn begin(&mut self, talk: (usize, ConnectionId)) -> String {
        self.begun += 1;
        let name = format!("upstream-{}", self.begun);
        self.talks.insert(talk, name.clone());
        name
    }

    /// A connection goes on with a session.
    pub(super) fn resume(&mut self, talk: (usize, ConnectionId), name: &str) {
        self.talks.insert(talk, name.to_owned());
    }

    /// A request came over a connection: its number is new in its session (I24).
    pub(super) fn hear(&mut self, talk: (usize, ConnectionId), call: u64) {
        let Some(name) = self.talks.get(&talk) else { return };
        let is_new = self.used.entry(name.clone()).or_default().insert(call);
        assert!(is_new, "{call} was used twice in {name}");
    }

    /// The session of a connection was deleted.
    pub(super) fn delete(&mut self, talk: (usize, ConnectionId)) {
        self.deleted.extend(self.talks.remove(&talk));
    }

    /// How many sessions servers have begun.
    pub(super) fn begun(&self) -> u64 {
        self.begun
    }

    /// The numbers that were used in the session that was begun as this one.
    pub(super) fn used(&self, at: u64) -> Vec<u64> {
        let used = self.used.get(&format!("upstream-{at}"));
        used.into_iter().flatten().copied().collect()
    }
}
