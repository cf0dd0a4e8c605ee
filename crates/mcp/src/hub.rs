//! The MCP session plane as one machine without I/O.
//!
//! ```text
//!   Event ──▶ Hub::handle ──▶ Effects          next_wakeup(): the one deadline to arm
//!   (requests of clients, messages of servers, connections, timers, reloads)
//! ```
//! It owns client sessions and clients without one, the links to servers, joining, eras, lists,
//! keepalive, probes, turns, questions, replays and groups, all in tables by id. Whoever drives it
//! owns sockets, pipes, programs and the clock, and does what effects say. Health is the core's
//! business: it is asked for every decision, through [`crate::health`].
//!
//! The way of one `tools/call`, in the order it meets the files:
//! `endpoint` (or `stateless_front`) → `calls` → `relay` → `route` → `looks` → `exchange` →
//! `connection` → (the server) → `connection` → `exchange` → `relay` → `streams`.
//!
//! Everything that waits is a `Task` that is looked at again when something it waits for has
//! changed, or when its time has come (`schedule`).

mod admission;
mod adopt;
mod bridge;
mod calls;
mod client;
mod connection;
pub mod effect;
mod endpoint;
pub mod event;
mod exchange;
mod group_call;
pub mod ids;
mod joining;
mod keepalive_task;
mod last_words;
mod lean;
mod link;
mod listening;
mod listens;
mod listings;
mod looks;
mod making;
mod monitor;
mod parked;
mod profile;
mod questions;
pub mod record;
mod relay;
mod release;
mod reload;
pub mod retained;
mod route;
mod schedule;
pub mod search;
mod server;
mod server_messages;
pub mod settings;
mod stateless_front;
mod streams;
#[cfg(test)]
mod tests;

pub use self::{
    effect::{
        CallRecord, CallRecordEnd, Effect, LogLine, McpAnswer, McpAnswerBody, Metric, TransportKind,
    },
    event::{
        ConnectionEvent, Event, HttpMethod, LargeAnswer, LargeArguments, McpRequest, RequestToken,
    },
    ids::{ConnectionId, ReaderId},
    last_words::LastWords,
    parked::PREFIX as PARKED,
    profile::own_info,
    record::{Adoption, ResumedUpstream, SessionRecord, UpstreamSession},
    retained::Retained,
    search::{SearchAnswer, SearchJob, SearchTask, SearchView, SeenGroup},
    settings::{CallerRights, GroupSettings, HubSettings, ServerAccess, ServerKey, ServerSettings},
};

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use tidegate_core::{core::Core, time::Now, transition::Notes};

use self::{
    calls::ClientCall,
    client::Client,
    connection::{Asker, Conversation, ServerReply},
    exchange::Exchange,
    ids::{CallId, ClientId, ExchangeId, JoinId, LinkId, ServerId, StreamId, Table, TableId as _},
    joining::Join,
    link::KeptLink,
    profile::{ClientProfile, ProfileKey},
    record::Records,
    schedule::{Schedule, Task},
    server::{KeptServer, ServerGroup},
    streams::{StreamReader, Streams},
};
use crate::{catalogue::Catalogue, cause::Cause, listing::Listing, shares::Ledger};

/// What comes from outside with every event: the moment, the core, and random numbers.
pub struct Env<'a> {
    /// The moment.
    pub now: Now,
    /// The core of the config that was told last.
    pub core: &'a Core,
    /// Where the core writes what changed.
    pub notes: &'a mut Notes,
    /// Random numbers.
    pub random: &'a mut dyn Random,
}

/// Where random numbers come from.
pub trait Random {
    /// A number for choices.
    fn draw(&mut self) -> u64;
    /// 128 bits that nobody can guess, as hexadecimal digits; none if the system gives none.
    fn secret_id(&mut self) -> Option<String>;
    /// The id of a new session: such bits, with whatever else an id is to say.
    fn session_id(&mut self) -> Option<String> {
        self.secret_id()
    }
    /// What a parked call is called: such bits, with whatever else is to be found there.
    fn parked_id(&mut self) -> Option<String> {
        self.secret_id()
    }
    /// A place of the gateway's own in the trace that a client's `traceparent` names; none if that
    /// is not valid, or if nobody keeps traces.
    fn trace(&mut self, _parent: &str) -> Option<CallTrace> {
        None
    }
}

/// A call's place in a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallTrace {
    /// The id under which the call is to be recorded.
    pub id: u128,
    /// The `traceparent` for the server: it names the call's own span.
    pub header: String,
}

/// What a reader of a stream does next.
#[derive(Debug, PartialEq, Eq)]
pub enum Pulled {
    /// Send this to the client.
    Event(Bytes),
    /// Wait for [`Effect::Feed`].
    Nothing,
    /// The stream is over for this reader: close it. Its id is not known any more.
    Over,
}

/// What the gateway's own first look at a server found.
#[derive(Clone, Debug)]
pub struct FirstLook {
    /// Whether it was reached; why not.
    pub reached: Result<(), Cause>,
    /// What it offers to a client that declares nothing, if that is known.
    pub listing: Option<Arc<Listing>>,
}

/// How many of everything there are, for who watches that no table grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HubSizes {
    /// Clients, with a session or without, also those that are ending.
    pub clients: usize,
    /// Links to servers.
    pub links: usize,
    /// Connections to servers.
    pub connections: usize,
    /// Requests to servers.
    pub exchanges: usize,
    /// Requests of clients.
    pub calls: usize,
    /// Client connections that read a stream.
    pub readers: usize,
    /// Servers on their way into a session.
    pub joins: usize,
}

/// The machine.
pub struct Hub {
    settings: HubSettings,
    /// What callers may do, by name.
    callers: BTreeMap<Arc<str>, Arc<CallerRights>>,
    servers: Table<ServerId, KeptServer>,
    /// The servers in the order of the config.
    server_order: Vec<ServerId>,
    /// An id that no server has.
    no_server: ServerId,
    /// What clients see of the servers, in the order of the config.
    groups: Vec<Arc<ServerGroup>>,
    links: Table<LinkId, KeptLink>,
    connections: Table<ConnectionId, Conversation>,
    /// Connections that are being closed.
    closing: BTreeSet<ConnectionId>,
    exchanges: Table<ExchangeId, Exchange>,
    joins: Table<JoinId, Join>,
    clients: Table<ClientId, Client>,
    sessions: BTreeMap<Arc<str>, ClientId>,
    /// Those who stand for clients without a session, by caller and introduction.
    stand_ins: BTreeMap<(Arc<str>, ProfileKey), ClientId>,
    calls: Table<CallId, ClientCall>,
    /// Calls without a session whose answer has not begun.
    requests: BTreeMap<RequestToken, CallId>,
    /// Answers that the streams of batches still wait for.
    batches: BTreeMap<(ClientId, u32), usize>,
    plain_streams: Table<StreamId, Streams>,
    readers: Table<ReaderId, StreamReader>,
    /// Readers that have something to read.
    fed: Vec<ReaderId>,
    /// Everything that all servers offer clients of a kind.
    catalogues: BTreeMap<ProfileKey, Arc<Catalogue>>,
    /// Calls under way, by caller.
    shares: Ledger,
    /// Searches under way.
    searches: BTreeMap<u64, CallId>,
    next_job: u64,
    /// How many requests of clients there have been.
    uses: u64,
    own_profile: Arc<ClientProfile>,
    retained: Retained,
    schedule: Schedule,
    /// Requests that have ended, for whoever asked.
    replies: VecDeque<(Asker, ServerReply)>,
    /// The health of each server when it was last looked at.
    standings: Vec<(ServerId, Option<Cause>)>,
    /// Something may have changed the health of a server.
    is_health_doubtful: bool,
    /// What a program said before an attempt to connect to it failed.
    last_words: String,
    /// What other replicas need to go on with sessions; none if there are no others.
    records: Option<Records>,
    /// Sessions are handed over to other replicas.
    is_releasing: bool,
    is_closing: bool,
    is_closed: bool,
    /// The moment of the latest event.
    now: Now,
    out: Vec<Effect>,
}

impl Hub {
    /// A Hub without servers: tell it [`Event::Reload`] first.
    #[must_use]
    pub fn new(retained: Retained) -> Self {
        Self {
            settings: HubSettings::empty(),
            callers: BTreeMap::new(),
            servers: Table::default(),
            server_order: Vec::new(),
            no_server: ServerId::new(u32::MAX, 0),
            groups: Vec::new(),
            links: Table::default(),
            connections: Table::default(),
            closing: BTreeSet::new(),
            exchanges: Table::default(),
            joins: Table::default(),
            clients: Table::default(),
            sessions: BTreeMap::new(),
            stand_ins: BTreeMap::new(),
            calls: Table::default(),
            requests: BTreeMap::new(),
            batches: BTreeMap::new(),
            plain_streams: Table::default(),
            readers: Table::default(),
            fed: Vec::new(),
            catalogues: BTreeMap::new(),
            shares: Ledger::default(),
            searches: BTreeMap::new(),
            next_job: 0,
            uses: 0,
            own_profile: Arc::new(ClientProfile::own()),
            retained,
            schedule: Schedule::default(),
            replies: VecDeque::new(),
            standings: Vec::new(),
            is_health_doubtful: false,
            last_words: String::new(),
            records: None,
            is_releasing: false,
            is_closing: false,
            is_closed: false,
            now: Now::ZERO,
            out: Vec::new(),
        }
    }

    /// Tells what happened; what is to be done is added to `effects`.
    pub fn handle(&mut self, env: &mut Env<'_>, event: Event, effects: &mut Vec<Effect>) {
        // A reader that went since the last event may have left something to count.
        effects.append(&mut self.out);
        std::mem::swap(&mut self.out, effects);
        self.now = env.now;
        let notes = env.notes.transitions.len();
        self.take(env, event);
        self.drain(env);
        if env.notes.transitions.len() > notes || self.is_health_doubtful {
            self.look_at_health(env);
            self.drain(env);
        }
        self.tell_records();
        self.feed();
        if self.is_closing && !self.is_closed && self.is_empty() {
            self.is_closed = true;
            self.out.push(Effect::Closed);
        }
        std::mem::swap(&mut self.out, effects);
    }

    /// When [`Event::Wakeup`] is to be told next.
    #[must_use]
    pub fn next_wakeup(&self) -> Option<Now> {
        self.schedule.next_wakeup()
    }

    /// What the first look at a server found; none while it is under way.
    #[must_use]
    pub fn first_look(&self, server: &str) -> Option<FirstLook> {
        let named = |id: &&ServerId| self.servers.get(**id).is_some_and(|it| *it.name == *server);
        let id = self.server_order.iter().find(named)?;
        let server = self.servers.get(*id)?;
        let reached = server.first_look?;
        let listing = server.lists.listing(server.profile_for(&self.own_profile));
        let listing = listing.or_else(|| server.lists.any_listing());
        Some(FirstLook { reached, listing })
    }

    /// How many of everything there are.
    #[must_use]
    pub fn sizes(&self) -> HubSizes {
        HubSizes {
            clients: self.clients.len(),
            links: self.links.len(),
            connections: self.connections.len(),
            exchanges: self.exchanges.len(),
            calls: self.calls.len(),
            readers: self.readers.len(),
            joins: self.joins.len(),
        }
    }

    /// How many connections to a server have a keepalive that has switched itself off for a while.
    #[must_use]
    pub fn keepalives_off(&self, server: &str) -> usize {
        let links = self.links.iter().filter(|(_, link)| {
            let is_its_own = self.servers.get(link.server).is_some_and(|it| *it.name == *server);
            is_its_own && link.keepalive.as_ref().is_some_and(|it| it.is_off())
        });
        links.count()
    }

    fn take(&mut self, env: &mut Env<'_>, event: Event) {
        match event {
            Event::Wakeup => {}
            Event::Request(request) => {
                if self.is_closing {
                    let answer = McpAnswer::busy("the gateway is closing");
                    return self.out.push(Effect::Answer { request: request.token, answer });
                }
                self.on_request(env, &request);
            }
            Event::RequestGone { request } => self.request_gone(env, request),
            Event::ReaderGone { reader } => self.reader_gone(env, reader),
            Event::Connection { connection, event } => self.on_connection(env, connection, event),
            Event::Reload(settings) => self.reload(env, *settings),
            Event::HealthChanged => {
                self.is_health_doubtful = true;
                let servers = self.server_order.iter().map(|id| Task::Monitor(*id));
                self.schedule.wake_all(servers);
            }
            Event::Probe { token, server } => self.probe(env, token, &server),
            Event::Searched { job, answer } => self.searched(env, job, answer),
            Event::Adopt(adoption) => self.adopt(env, *adoption),
            Event::LetGo { session } => self.let_go(env, &session),
            Event::Release => self.release_all(env),
            Event::Close => self.close(env),
        }
    }

    /// Looks at everything that has an answer, has changed, or is due.
    fn drain(&mut self, env: &mut Env<'_>) {
        loop {
            if let Some((asker, reply)) = self.replies.pop_front() {
                self.replied(env, asker, reply);
            } else if let Some(task) = self.schedule.next(env.now) {
                self.run(env, task);
            } else {
                return;
            }
        }
    }

    fn replied(&mut self, env: &mut Env<'_>, asker: Asker, reply: ServerReply) {
        match asker {
            Asker::Making(link, generation) => self.making_replied(env, link, generation, reply),
            Asker::Exchange(exchange) => self.exchange_replied(env, exchange, reply),
            Asker::Keepalive(link) => self.keepalive_replied(env, link, reply),
            Asker::Probe(server) => self.probe_replied(env, server, reply),
            Asker::Page(server, profile) => self.page_replied(env, server, profile, reply),
            Asker::Listening(link, is_lists) => {
                self.listening_replied(env, link, is_lists, &reply);
            }
        }
    }

    fn run(&mut self, env: &mut Env<'_>, task: Task) {
        match task {
            Task::Call(call) => self.run_call(env, call),
            Task::Join(join) => self.run_join(env, join),
            Task::Exchange(exchange) => self.run_exchange(env, exchange),
            Task::Answer(talk, call) => self.answer_due(env.now, talk, call),
            Task::Retire(talk) => self.close_connection(talk),
            Task::Fetch(server, profile) => self.run_fetch(env, server, profile),
            Task::Monitor(server) => self.run_monitor(env, server),
            Task::ProbeEnd(server) => self.run_probe(env, server),
            Task::Start(link) => self.run_start(env, link),
            Task::Keepalive(link) => self.run_keepalive(env, link),
            Task::Listening(link, is_lists) => self.run_listening(env, link, is_lists),
            Task::TellLists(client) => self.run_tell_lists(env, client),
            Task::Ending(client) => self.end_if_drained(env, client, true),
            Task::Silence(reader) => self.run_silence(env.now, reader),
            Task::Reap => self.reap(env),
            Task::Health => self.is_health_doubtful = true,
        }
    }

    /// Everything ends, in good order.
    fn close(&mut self, env: &mut Env<'_>) {
        if std::mem::replace(&mut self.is_closing, true) {
            return;
        }
        for client in self.open_clients() {
            // Whoever is to go on with it goes on, whatever is under way.
            if self.is_releasing {
                self.release(env, client);
            }
            self.end_client(env, client);
        }
        for server in std::mem::take(&mut self.server_order) {
            self.close_server(server);
        }
    }

    /// Whether nothing is left that has to end.
    fn is_empty(&self) -> bool {
        let is_dead = |id: &ClientId| self.is_dead(*id);
        self.clients.ids().iter().all(is_dead)
            && self.connections.len() == 0
            && self.closing.is_empty()
    }

    fn server_name(&self, server: ServerId) -> Arc<str> {
        self.servers.get(server).map(|it| Arc::clone(&it.name)).unwrap_or_default()
    }
}
