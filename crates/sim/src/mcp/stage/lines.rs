//! Connections: one per session and server, made by whoever the link tells to.

use std::sync::Arc;

use tidegate_core::{outcome::OutcomeKind, time::Now};
use tidegate_mcp::{
    cause::{Cause, Delivery},
    health::Failure,
    keepalive::Keepalive,
    link::{Generation, Link, LinkState},
    session::Contact,
};

use super::{CallId, Event, LineId, Stage};
use crate::mcp::world::Mode;

/// What every call in flight hears when its server dies.
const BROKEN: Failure = Failure {
    delivery: Delivery::Maybe,
    ..Failure::of(Cause::ConnectionBroken, OutcomeKind::Transport)
};

/// One session's connection to one server.
pub(super) struct Line {
    pub(super) session: String,
    pub(super) server: Arc<str>,
    pub(super) link: Link,
    /// The server's epoch when it was made: another one does not know this conversation.
    pub(super) epoch: u64,
    pub(super) keepalive: Option<Keepalive>,
    /// The number of the keepalive under way.
    pub(super) ping: u64,
    /// When the next one is on the agenda.
    pub(super) due: Option<Now>,
}

/// A connect attempt under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempt {
    line: LineId,
    generation: Generation,
    incarnation: u64,
    deadline: Now,
}

impl Stage<'_> {
    pub(super) fn new_line(&mut self, session: &str, server: &Arc<str>) -> LineId {
        let id = self.next_number();
        let line = Line {
            session: session.to_owned(),
            server: Arc::clone(server),
            link: Link::new(),
            epoch: 0,
            keepalive: None,
            ping: 0,
            due: None,
        };
        self.lines.insert(id, line);
        id
    }

    /// Connects: refused at once, answered after the server's delay, or never.
    pub(super) fn connect(&mut self, line: LineId, generation: Generation) {
        self.audit_reach(line);
        let Some(server) = self.server_of(line) else { return };
        let world = &self.servers[server].world;
        let deadline = self.now.after(self.scenario.waits.unknown);
        let ends = match world.mode {
            Mode::Down => self.now,
            Mode::Silent => deadline,
            Mode::Up => {
                let takes = world.delay.max(self.servers[server].plan.initialize);
                self.now.after(takes).min(deadline)
            }
        };
        let incarnation = world.incarnation;
        let attempt = Attempt { line, generation, incarnation, deadline };
        self.put(ends, Event::ConnectEnds(attempt));
    }

    pub(super) fn connect_ends(&mut self, attempt: Attempt) {
        let Attempt { line, generation, incarnation, deadline } = attempt;
        let Some(server) = self.server_of(line) else { return };
        let limit = self.scenario.waits.unknown;
        let world = &self.servers[server].world;
        let failure = match world.mode {
            Mode::Down => Failure::of(Cause::ConnectionRefused, OutcomeKind::Transport),
            _ if world.incarnation != incarnation => BROKEN,
            _ if self.now.reached(deadline) => {
                Failure::of(Cause::TimedOut(limit), OutcomeKind::Timeout)
            }
            Mode::Silent => return self.put(deadline, Event::ConnectEnds(attempt)),
            Mode::Up => return self.connected(line, generation, server),
        };
        self.connect_failed(line, generation, server, failure);
    }

    fn connected(&mut self, line: LineId, generation: Generation, server: usize) {
        let epoch = self.servers[server].world.epoch;
        let Some(it) = self.lines.get_mut(&line) else { return };
        if !it.link.connected(generation) {
            return;
        }
        it.epoch = epoch;
        let session = it.session.clone();
        self.servers[server].contact = Contact::Reached;
        self.fetch_listing(server);
        self.keepalive_starts(line, server);
        let group = self.group_of(server);
        if let (Some(client), Some(group)) = (self.clients.get_mut(&session), group) {
            client.session.connected(self.now, group);
        }
        self.expect_list_changed(&session);
        for call in self.calls_on(line) {
            self.with_call(call, |call, link, now, notes| call.connected(link, now, notes));
        }
    }

    fn connect_failed(
        &mut self,
        line: LineId,
        generation: Generation,
        server: usize,
        failure: Failure,
    ) {
        let Some(it) = self.lines.get_mut(&line) else { return };
        if !it.link.failed(generation, failure) {
            return;
        }
        let session = it.session.clone();
        self.servers[server].contact = Contact::Failed;
        // A group is out only when none of its members could be reached.
        let alone = self.group_of(server).filter(|it| self.groups[*it].members.len() == 1);
        if let (Some(client), Some(group)) = (self.clients.get_mut(&session), alone) {
            client.session.connect_failed(self.now, group, failure.cause);
        }
        for call in self.calls_on(line) {
            self.with_call(call, |call, link, now, notes| {
                call.connect_failed(link, now, &failure, notes)
            });
        }
    }

    /// A server died: everybody who was connected hears of it.
    pub(super) fn break_lines(&mut self, server: &Arc<str>) {
        let lines = self.lines.iter().filter(|(_, it)| it.server == *server);
        for line in lines.map(|(id, _)| *id).collect::<Vec<_>>() {
            let Some(it) = self.lines.get_mut(&line) else { continue };
            let generation = it.link.generation();
            if it.link.state() == LinkState::Connecting {
                let (incarnation, deadline) = (u64::MAX, self.now);
                let attempt = Attempt { line, generation, incarnation, deadline };
                self.put(self.now, Event::ConnectEnds(attempt));
                continue;
            }
            it.link.lost(generation);
            self.keepalive_breaks(line);
            for call in self.calls_on(line) {
                self.with_call(call, |call, link, now, notes| {
                    call.broken(link, now, &BROKEN, notes)
                });
            }
        }
    }

    /// Asks a server for its tools, if it can answer; sessions that see it hear of changes.
    pub(super) fn fetch_listing(&mut self, server: usize) {
        let it = &mut self.servers[server];
        if it.world.mode != Mode::Up {
            return;
        }
        let newer = it.world.listing(&it.plan.repeatable);
        let is_same = it.listing.as_ref().is_some_and(|known| known.diff(&newer).is_empty());
        it.listing = Some(newer);
        if is_same {
            return;
        }
        self.publish();
        if let Some(group) = self.group_of(server) {
            self.tell_of_offers(group);
        }
    }

    /// Sessions that see a group hear that its offers have changed.
    pub(super) fn tell_of_offers(&mut self, group: usize) {
        for session in self.clients.keys().cloned().collect::<Vec<_>>() {
            if let Some(client) = self.clients.get_mut(&session) {
                client.session.offers_changed(self.now, group);
            }
            self.expect_list_changed(&session);
        }
    }

    /// The server of a connection, unless one of them is gone.
    pub(super) fn server_of(&self, line: LineId) -> Option<usize> {
        self.lines.get(&line).and_then(|it| self.place(&it.server))
    }

    pub(super) fn calls_on(&self, line: LineId) -> Vec<CallId> {
        self.calls.iter().filter(|(_, it)| it.line == line).map(|(id, _)| *id).collect()
    }

    /// Ends a connection for good: its calls are called off, its keepalive stops.
    pub(super) fn hang_up(&mut self, line: LineId) {
        for call in self.calls_on(line) {
            if let Some(call) = self.calls.remove(&call) {
                self.called_off(call);
            }
        }
        if let Some(mut it) = self.lines.remove(&line) {
            it.link.close();
            if let Some(keepalive) = &mut it.keepalive {
                keepalive.stop();
            }
            self.totals(&it.server).reinitialised += it.link.reinitialised();
        }
    }
}
