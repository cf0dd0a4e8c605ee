//! Calls: the production machines, driven by the world's answers.

use std::sync::Arc;

use tidegate_core::{
    outcome::OutcomeKind,
    time::{Millis, Now},
    transition::Notes,
};
use tidegate_mcp::{
    call::{Call, Code, Do, End, Errand, Unavailable},
    cause::Cause,
    health::Reply,
    keepalive::Reason,
    link::{Generation, Link},
    session::{Caller, Entry as SessionEntry, Visibility},
    tour::{Attempted, Leg, Tour},
};

use super::{CallId, Event, LineId, Stage, audit::Entry};
use crate::mcp::{
    trace::{AttemptTrace, CallTrace, ErrorWord},
    world::Mode,
};

/// Why a call was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A client called a tool.
    Tool,
    /// A session opens, or takes a server in.
    Open,
}

/// How often a call reached somebody.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Delivered {
    /// The server it is at.
    pub(super) here: u32,
    /// Any server.
    pub(super) in_all: u32,
}

/// A call under way, at one of its servers.
pub(super) struct Running {
    trip: Option<Trip>,
    call: Call,
    pub(super) line: LineId,
    server: usize,
    delivered: Delivered,
    books: Option<Entry>,
}

/// What a call of a session's carries from server to server. The call that regains an idle
/// connection has none: it is about that connection alone.
struct Trip {
    tour: Tour,
    session: String,
    group: usize,
    purpose: Purpose,
    began: Now,
}

impl Stage<'_> {
    /// The step `call`: so many calls of one tool at once, until all have ended.
    pub(super) fn call(&mut self, session: &str, tool: &str, at_once: u32) -> Vec<CallTrace> {
        let began = self.now;
        let Some(offered) = self.catalogue.tool(tool).cloned() else {
            let unknown = CallTrace {
                server: None,
                attempts: Vec::new(),
                error: Some(ErrorWord::UnknownTool),
                cause: None,
                retry_after_ms: None,
                delivered: 0,
                took_ms: 0,
            };
            return vec![unknown; at_once as usize];
        };
        let group = offered.server;
        if self.scenario.visibility == Visibility::Live {
            self.follow(session, group);
        }
        if let Err(cause) = self.enter(session, group, began) {
            let name = Arc::clone(&self.groups[group].name);
            let took = self.now.since(began);
            return vec![refusal(name, cause, took); at_once as usize];
        }
        let errand = if offered.hints.may_replay() { Errand::Repeatable } else { Errand::Once };
        let calls: Vec<CallId> =
            (0..at_once).map(|_| self.begin(session, group, errand, Purpose::Tool)).collect();
        while calls.iter().any(|it| self.calls.contains_key(it)) && self.play_next(Now::NEVER) {}
        calls.iter().filter_map(|it| self.ended.remove(it)).collect()
    }

    /// Waits, as long as the session may, until a call can go to a server.
    fn enter(&mut self, session: &str, group: usize, began: Now) -> Result<(), Cause> {
        let mut caller = Caller { began, has_waited: false };
        loop {
            let Some(client) = self.clients.get(session) else { return Err(Cause::Closing) };
            match client.session.entry(self.now, caller, group) {
                SessionEntry::Wait(until) => self.play_or_wait(until),
                SessionEntry::Go => return Ok(()),
                SessionEntry::Refused(cause) => return Err(cause),
            }
            caller.has_waited = true;
        }
    }

    /// The next thing that happens up to a moment, or the moment itself.
    pub(super) fn play_or_wait(&mut self, until: Now) {
        if !self.play_next(until) {
            self.now = self.now.max(until);
        }
    }

    /// Begins a call of a session's.
    pub(super) fn begin(
        &mut self,
        session: &str,
        group: usize,
        errand: Errand,
        purpose: Purpose,
    ) -> CallId {
        let id = self.next_number();
        let members = self.groups[group].members.len() as u64;
        let limit = match purpose {
            Purpose::Tool => self.scenario.waits.child,
            // Each member has the time that connecting may take.
            Purpose::Open => Millis(self.scenario.waits.unknown.0.saturating_mul(members)),
        };
        let tour = Tour::new(&self.groups[group].name, errand, self.now, limit);
        let stays_at = self.clients.get(session).and_then(|it| it.stays[group].clone());
        let tour = tour.staying_at(stays_at);
        self.put(tour.deadline(), Event::CallDeadline(id));
        let (session, began) = (session.to_owned(), self.now);
        self.leg(id, Trip { tour, session, group, purpose, began }, Delivered::default());
        id
    }

    /// Goes where the core says, or ends.
    fn leg(&mut self, id: CallId, mut trip: Trip, delivered: Delivered) {
        let draw = self.rng.draw();
        self.notes.transitions.clear();
        let (server, call) = match trip.tour.next(&self.core, self.now, draw, &mut self.notes) {
            Leg::Over(end) => return self.over(id, trip, delivered, end),
            Leg::At(server, call) => (server, call),
        };
        let place = self.place(&server);
        let client = self.clients.get(&trip.session);
        let line = client.zip(place).map(|(client, place)| client.lines[place]);
        // A session that is gone has called its calls off, and so has a server that left.
        let (Some(server), Some(line)) = (place, line) else { return };
        let stays_at = client.and_then(|it| it.stays[trip.group].clone());
        let books = self.audit_begin(server, &call, stays_at.as_deref());
        let delivered = Delivered { here: 0, ..delivered };
        let trip = Some(trip);
        self.calls.insert(id, Running { trip, call, line, server, delivered, books });
        self.with_call(id, |call, link, now, notes| call.go(link, now, notes));
    }

    /// Makes an idle connection again.
    pub(super) fn bring_up(&mut self, line: LineId) {
        let id = self.next_number();
        let Some(server) = self.server_of(line) else { return };
        let name = &self.servers[server].plan.name;
        let mut call = Call::new(name, Errand::Connect, self.now, self.scenario.waits.unknown);
        let draw = self.rng.draw();
        let Some(it) = self.lines.get_mut(&line) else { return };
        self.notes.transitions.clear();
        let next = call.begin(&self.core, &mut it.link, self.now, draw, &mut self.notes);
        let books = self.audit_begin(server, &call, None);
        self.put(call.deadline(), Event::CallDeadline(id));
        let (trip, delivered) = (None, Delivered::default());
        self.calls.insert(id, Running { trip, call, line, server, delivered, books });
        self.drive(id, next);
    }

    /// Tells a call something, closes its books if its permit has ended, and does what it says.
    pub(super) fn with_call(
        &mut self,
        id: CallId,
        news: impl FnOnce(&mut Call, &mut Link, Now, &mut Notes) -> Do,
    ) {
        let Some(running) = self.calls.get_mut(&id) else { return };
        let Some(line) = self.lines.get_mut(&running.line) else { return };
        self.notes.transitions.clear();
        let next = news(&mut running.call, &mut line.link, self.now, &mut self.notes);
        let (server, told) = (running.server, running.call.reported());
        let has_ended = running.call.ticket().is_none();
        if let Some(entry) = running.books.take_if(|_| has_ended) {
            self.audit_end_of(server, entry, told);
        }
        self.drive(id, next);
    }

    fn drive(&mut self, id: CallId, next: Do) {
        match next {
            Do::Connect(generation) => {
                if let Some(line) = self.calls.get(&id).map(|it| it.line) {
                    self.connect(line, generation);
                }
            }
            Do::Send(generation) => self.send(id, generation),
            Do::End(end) => self.finish(id, end),
            Do::Wait(_) | Do::Nothing => {}
        }
    }

    /// A request goes out; what becomes of it is the server's business.
    fn send(&mut self, id: CallId, generation: Generation) {
        let Some(running) = self.calls.get_mut(&id) else { return };
        let (line, server) = (running.line, running.server);
        self.audit_reach(line);
        self.keepalive_postponed(line);
        let Some(it) = self.lines.get(&line) else { return };
        let world = &mut self.servers[server].world;
        let (incarnation, at) = (world.incarnation, self.now.after(world.delay));
        let mut reply = Reply::Ended(OutcomeKind::Success);
        if world.mode == Mode::Up && it.epoch != world.epoch {
            reply = Reply::SessionLost;
        } else if let Some(running) = self.calls.get_mut(&id) {
            world.requests += 1;
            running.delivered.here += 1;
            running.delivered.in_all += 1;
            let delivered = running.delivered;
            let name = self.servers[server].name();
            self.totals(&name).requests += 1;
            let is_repeatable = self.calls.get(&id).is_some_and(Running::is_repeatable);
            self.audit_delivery(delivered, is_repeatable);
        }
        self.put(at, Event::Reply { call: id, generation, incarnation, reply });
    }

    /// An answer arrives, unless its server fell silent or died meanwhile.
    pub(super) fn replied(
        &mut self,
        id: CallId,
        generation: Generation,
        incarnation: u64,
        reply: Reply,
    ) {
        let Some(running) = self.calls.get(&id) else { return };
        let world = &self.servers[running.server].world;
        let is_current = running.call.sent_on() == Some(generation);
        if world.mode != Mode::Up || world.incarnation != incarnation || !is_current {
            return;
        }
        if matches!(reply, Reply::Ended(_)) {
            self.keepalive_heard(running.line);
        }
        self.with_call(id, |call, link, now, notes| call.answered(link, now, reply, notes));
    }

    pub(super) fn call_deadline(&mut self, id: CallId) {
        self.with_call(id, |call, link, now, notes| call.timed_out(link, now, notes));
    }

    /// It is over at a server: perhaps it goes on at another.
    fn finish(&mut self, id: CallId, end: End) {
        let Some(mut running) = self.calls.remove(&id) else { return };
        if let Some(entry) = running.books.take() {
            self.audit_end_of(running.server, entry, running.call.reported());
        }
        let Running { trip, call, line, delivered, .. } = running;
        let Some(mut trip) = trip else {
            let is_back = end == End::Connected;
            return self.keepalive_reconnected(line, is_back.then_some(()).ok_or(Reason::Lost));
        };
        match trip.tour.ended(call, end) {
            None => self.leg(id, trip, delivered),
            Some(end) => self.over(id, trip, delivered, end),
        }
    }

    fn over(&mut self, id: CallId, trip: Trip, delivered: Delivered, end: End) {
        let Trip { tour, session, group, purpose, began } = trip;
        if let (Some(client), Some(member)) = (self.clients.get_mut(&session), tour.stays()) {
            client.stays[group] = Some(member);
        }
        match purpose {
            Purpose::Tool => {
                let it = &self.groups[group];
                let name = Arc::clone(&it.name);
                let took = self.now.since(began);
                let mut trace = match end {
                    End::Answered | End::Connected => answered(name, took),
                    End::Unavailable(it) => failed(name, &it, took),
                };
                trace.delivered = delivered.in_all;
                if it.is_real(&self.servers) {
                    trace.attempts = tour.attempts().iter().map(attempt).collect();
                }
                self.ended.insert(id, trace);
            }
            Purpose::Open => self.seated(&session, group, &end),
        }
    }

    /// A connection was wanted for a session; the core may have refused it.
    fn seated(&mut self, session: &str, group: usize, end: &End) {
        if let Some(client) = self.clients.get_mut(session) {
            match end {
                End::Unavailable(it) => client.session.connect_failed(self.now, group, it.cause),
                End::Answered | End::Connected => client.session.connected(self.now, group),
            };
        }
        self.expect_list_changed(session);
    }

    /// Nobody wants this call any more.
    pub(super) fn called_off(&mut self, running: Running) {
        let Running { call, server, books, .. } = running;
        self.notes.transitions.clear();
        drop(call);
        if let Some(entry) = books {
            self.audit_end_of(server, entry, None);
        }
    }
}

impl Running {
    /// Its server and its group have other places after a reload.
    pub(super) fn moved(
        &mut self,
        place: impl FnOnce(usize) -> Option<usize>,
        seat: impl FnOnce(usize) -> Option<usize>,
    ) {
        self.server = place(self.server).unwrap_or(self.server);
        if let Some(trip) = &mut self.trip {
            trip.group = seat(trip.group).unwrap_or(trip.group);
        }
    }

    fn is_repeatable(&self) -> bool {
        self.call.errand() != Errand::Once
    }
}

fn answered(server: Arc<str>, took: Millis) -> CallTrace {
    CallTrace {
        server: Some(server),
        attempts: Vec::new(),
        error: None,
        cause: None,
        retry_after_ms: None,
        delivered: 0,
        took_ms: took.0,
    }
}

fn attempt(it: &Attempted) -> AttemptTrace {
    let cause = it.cause.map(|cause| cause.to_string());
    AttemptTrace { server: Arc::clone(&it.server), cause }
}

fn failed(server: Arc<str>, it: &Unavailable, took: Millis) -> CallTrace {
    let error = match it.code {
        Code::BackendUnavailable => ErrorWord::BackendUnavailable,
        Code::ResultUnknown => ErrorWord::ResultUnknown,
        Code::Busy => ErrorWord::Busy,
    };
    CallTrace {
        error: Some(error),
        cause: Some(it.cause.to_string()),
        retry_after_ms: it.retry_after.map(|span| span.0),
        ..answered(server, took)
    }
}

/// A call that the session itself refused.
fn refusal(server: Arc<str>, cause: Cause, took: Millis) -> CallTrace {
    let error = Some(ErrorWord::BackendUnavailable);
    CallTrace { error, cause: Some(cause.to_string()), ..answered(server, took) }
}
