//! Sessions: opening, looking, searching, closing, and following health while they last.

use std::sync::Arc;

use tidegate_core::time::{Millis, Now};
use tidegate_mcp::{
    call::Errand,
    catalogue::Offered,
    health,
    session::{Arrival, News, Seat, Session, Visibility},
};
use tidegate_search::{Document, Hit, Index, Listed, Query};

use super::{Client, Event, Stage, calls::Purpose};

/// Tools in one answer of a search: production's default.
const FOUND_MAX: usize = 8;

impl Stage<'_> {
    /// A session opens: every server that is not known to be bad is connected to.
    pub(super) fn open(&mut self, name: &str) {
        let arrivals: Vec<Arrival> =
            (0..self.groups.len()).map(|group| self.arrival(group)).collect();
        let session = Session::open(self.scenario.visibility, self.scenario.waits, &arrivals);
        let connecting: Vec<usize> = session.connecting().collect();
        let servers: Vec<_> = self.servers.iter().map(|it| it.name()).collect();
        let lines: Vec<_> = servers.iter().map(|server| self.new_line(name, server)).collect();
        self.list_changed.entry(name.to_owned()).or_default();
        let stays = vec![None; self.groups.len()];
        self.clients.insert(name.to_owned(), Client { session, lines, stays });
        for group in connecting {
            self.take_in(name, group);
        }
    }

    pub(super) fn arrival(&self, group: usize) -> Arrival {
        let name = &self.groups[group].name;
        let standing = health::standing(&self.core, name, self.now);
        let members = self.groups[group].members.len() as u64;
        let connect_within = Millis(self.scenario.waits.unknown.0.saturating_mul(members));
        Arrival { standing, connect_within, is_own_child: false }
    }

    /// Makes a session's connection to a server, or to one of a group.
    pub(super) fn take_in(&mut self, session: &str, group: usize) {
        self.begin(session, group, Errand::Connect, Purpose::Open);
    }

    /// The tools that a session sees, after waiting for its servers as long as it may.
    pub(super) fn list(&mut self, session: &str) -> Vec<String> {
        self.look(session);
        self.play_until(self.now);
        while let Some(until) = self.waits_until(session) {
            self.play_or_wait(until);
        }
        self.shown(session);
        let Some(client) = self.clients.get(session) else { return Vec::new() };
        let seen = self.catalogue.tools().iter().filter(|it| client.session.sees(it.server));
        seen.map(|it| it.name.to_string()).collect()
    }

    /// Until when a session waits for the servers that are still connecting.
    fn waits_until(&self, session: &str) -> Option<Now> {
        let client = self.clients.get(session)?;
        let until = |server| client.session.may_wait(self.now, server, self.known(server));
        (0..self.groups.len()).filter_map(until).max()
    }

    /// The tools a session sees that share a word with a query, ranked by the index that serves
    /// `find_tool`. Tools of a scenario have names alone: what shares no word with the query is
    /// near it by chance, and would make expectations brittle.
    pub(super) fn find(&mut self, session: &str, query: &str) -> Vec<String> {
        self.list(session);
        let tools = self.catalogue.tools();
        let read = |tool: &Offered| {
            let server =
                self.groups.get(tool.server).map(|it| Arc::clone(&it.name)).unwrap_or_default();
            let listed = Listed { id: &tool.name, name: &tool.own, definition: &tool.raw };
            Document::of(&listed, &server, "")
        };
        let index = Index::build(tools.iter().map(read).collect());
        let Some(client) = self.clients.get(session) else { return Vec::new() };
        let is_seen =
            |tool: usize| tools.get(tool).is_some_and(|it| client.session.sees(it.server));
        let query = Query { description: query, ..Query::default() };
        let found = index.search(&query, &is_seen, FOUND_MAX).hits;
        let shares =
            |hit: &Hit| index.explain(&query, hit.doc).iter().any(|word| !word.places.is_empty());
        let found = found.into_iter().filter(shares);
        found.filter_map(|hit| Some(tools.get(hit.doc)?.name.to_string())).collect()
    }

    pub(super) fn close(&mut self, session: &str) {
        if let Some(mut client) = self.clients.shift_remove(session) {
            client.session.close();
            for line in client.lines {
                self.hang_up(line);
            }
        }
    }

    /// A list or find begins. A live session looks at everybody's health.
    fn look(&mut self, session: &str) {
        let now = self.now;
        if let Some(client) = self.clients.get_mut(session) {
            client.session.look(now);
        }
        if self.scenario.visibility == Visibility::Live {
            for group in 0..self.groups.len() {
                self.follow(session, group);
            }
        }
    }

    fn shown(&mut self, session: &str) {
        let known: Vec<bool> =
            (0..self.groups.len()).map(|group| self.known(group).has_catalogue).collect();
        if let Some(client) = self.clients.get_mut(session) {
            client.session.shown(|group| known.get(group).copied().unwrap_or(false));
        }
    }

    /// After every event: who waits for a trial, or is live, sees what became of it. A server that
    /// a live session could not connect to is looked at again when its client asks, not before.
    pub(super) fn follow_health(&mut self) {
        let is_live = self.scenario.visibility == Visibility::Live;
        let places = self.clients.iter().flat_map(|(name, client)| {
            let follows = move |server: &usize| match client.session.seat(*server) {
                Seat::Late => true,
                Seat::Joined => is_live,
                Seat::Connecting | Seat::Slow | Seat::Excluded(_) => false,
            };
            (0..client.stays.len()).filter(follows).map(move |server| (name.clone(), server))
        });
        for (session, server) in places.collect::<Vec<_>>() {
            self.follow(&session, server);
        }
    }

    pub(super) fn follow(&mut self, session: &str, server: usize) {
        let standing = self.arrival(server).standing;
        let now = self.now;
        let Some(client) = self.clients.get_mut(session) else { return };
        match client.session.follow(now, server, standing) {
            News::Connect => self.take_in(session, server),
            News::Changed => self.expect_list_changed(session),
            News::Nothing => {}
        }
    }

    /// Puts the end of the debounce on the agenda, if something has changed.
    pub(super) fn expect_list_changed(&mut self, session: &str) {
        let at = self.clients.get(session).and_then(|it| it.session.list_changed_at());
        if let Some(at) = at {
            self.put(at, Event::ListChanged(session.to_owned()));
        }
    }

    pub(super) fn tell(&mut self, session: &str) {
        let now = self.now;
        let client = self.clients.get_mut(session);
        if client.is_some_and(|it| it.session.tell_list_changed(now)) {
            *self.list_changed.entry(session.to_owned()).or_default() += 1;
            self.told.push(session.to_owned());
        }
    }
}
