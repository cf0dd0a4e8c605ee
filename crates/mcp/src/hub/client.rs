//! One client: what it sees, what it asked for, what it is being asked.
//!
//! Rules kept here:
//! - A session never ends because of a server.
//! - Bounded: calls at once, requests at once and questions at once.
//! - At its end new calls are refused, and those under way may finish for a while.
//!
//! A client without a session is one of these as well: it stands for all requests of one caller
//! that introduce themselves alike, and goes when there were none for a while.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tidegate_core::time::{Millis, Now};

use super::effect::{Effect, Metric};
use super::ids::{CallId, ClientId, LinkId, ServerId};
use super::listens::Listen;
use super::parked::Parked;
use super::profile::ClientProfile;
use super::questions::PutQuestion;
use super::schedule::Task;
use super::server::ServerGroup;
use super::settings::CallerRights;
use super::streams::Streams;
use super::{Env, Hub};
use crate::{
    catalogue::Catalogue,
    cause::Cause,
    health::{self, Standing},
    listing::Listing,
    message::{self, Id, Version},
    replay::Weight,
    session::{Arrival, KeptSeat, Session, Visibility, Waits},
};

/// Calls of one client at once: more than any agent makes.
const CALLS_MAX: usize = 256;
/// Requests at once of one caller without a session: several agents may share its key.
const VISITS_MAX: usize = 4096;
/// How long calls under way may go on after their session was ended.
const DRAIN: Millis = Millis::seconds(5);
/// At the end of the gateway its own drain decides how long calls may go on.
const SHUTDOWN: Millis = Millis::seconds(3600);
/// Catalogues that are kept: clients introduce themselves in a handful of ways, and one who varies
/// them for fun has its own made anew.
const CATALOGUES_MAX: usize = 64;

/// A client's latest request; the clock alone does not tell which of two requests within a
/// millisecond was later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LastUse {
    pub(super) at: Now,
    number: u64,
}

/// One client.
pub(super) struct Client {
    /// The session's id; empty without one.
    pub(super) id: Arc<str>,
    pub(super) caller: Arc<str>,
    /// What the caller may do.
    pub(super) rights: Arc<CallerRights>,
    pub(super) version: Version,
    pub(super) profile: Arc<ClientProfile>,
    pub(super) streams: Streams,
    pub(super) session: Session,
    pub(super) visibility: Visibility,
    /// The servers and this client's links to them, in the order of the config.
    pub(super) slots: Vec<ServerSlot>,
    /// Calls under way by their ids; a client without a session has none here.
    pub(super) calls: BTreeMap<Id, CallId>,
    /// Requests under way of a client without a session: ids say nothing there.
    pub(super) visits: usize,
    pub(super) questions: BTreeMap<u64, PutQuestion>,
    pub(super) next_question: u64,
    pub(super) last_use: LastUse,
    pub(super) is_over: bool,
    /// How often the session has had an owner, with this one.
    pub(super) epoch: u64,
    /// It has ended, and is kept only for whoever still reads its streams.
    is_dead: bool,
    /// Who waits for a server to join.
    pub(super) waiters: Vec<Task>,
    /// Resources of shared servers that this client wants to hear of.
    pub(super) subscriptions: BTreeSet<String>,
    /// From which level on it wants log lines.
    pub(super) level: Option<String>,
    /// The streams on which a client without a session hears what it asked for.
    pub(super) listens: BTreeMap<u64, Listen>,
    pub(super) next_listen: u64,
    /// Its calls that wait for it to come back.
    pub(super) parked: BTreeMap<String, Parked>,
}

/// What a client has of one server, or group of servers.
pub(super) struct ServerSlot {
    pub(super) group: Arc<ServerGroup>,
    /// Its links to the members, in their order.
    pub(super) links: Vec<Option<LinkId>>,
    /// The member of a group that holds its state.
    pub(super) stays: Option<ServerId>,
    /// Whether its caller might use it when that was last looked at.
    pub(super) is_allowed: bool,
}

impl ServerSlot {
    fn new(group: &Arc<ServerGroup>, rights: &CallerRights) -> Self {
        let links = vec![None; group.members.len()];
        let is_allowed = rights.may_use(&group.name);
        Self { group: Arc::clone(group), links, stays: None, is_allowed }
    }

    pub(super) fn position(&self, server: ServerId) -> Option<usize> {
        self.group.members.iter().position(|it| *it == server)
    }

    pub(super) fn link_to(&self, server: ServerId) -> Option<LinkId> {
        *self.links.get(self.position(server)?)?
    }
}

/// What a client is opened with.
pub(super) struct Introduction {
    pub(super) id: Arc<str>,
    pub(super) caller: Arc<str>,
    pub(super) rights: Arc<CallerRights>,
    pub(super) version: Version,
    pub(super) profile: Arc<ClientProfile>,
    pub(super) visibility: Visibility,
    pub(super) epoch: u64,
}

impl Client {
    pub(super) fn is_idle(&self) -> bool {
        self.calls.is_empty() && self.visits == 0
    }

    /// What orders idle clients, the one that has been idle for longest first; none while something
    /// is under way or the client listens.
    pub(super) fn idle_order(&self) -> Option<LastUse> {
        let is_quiet = self.is_idle() && self.parked.is_empty() && !self.streams.is_heard();
        is_quiet.then_some(self.last_use)
    }

    /// Whether as many requests are under way as may be.
    pub(super) fn is_busy(&self) -> bool {
        self.visits >= VISITS_MAX
    }

    /// Whether one more call may be under way.
    pub(super) fn has_room(&self) -> bool {
        self.calls.len() < CALLS_MAX
    }

    /// Whether a call of this id may begin.
    pub(super) fn may_call(&self, id: &Id) -> Result<(), &'static str> {
        if self.is_over {
            return Err("this session has ended");
        }
        if self.calls.contains_key(id) {
            return Err("this id is in use by a request that is under way");
        }
        Ok(())
    }

    /// All links, with the places of their servers.
    pub(super) fn links(&self) -> impl Iterator<Item = (usize, LinkId)> {
        let slots = self.slots.iter().enumerate();
        slots.flat_map(|(at, slot)| slot.links.iter().flatten().map(move |link| (at, *link)))
    }
}

impl Hub {
    /// Opens a client: every server that is not known to be bad is connected to.
    pub(super) fn open_client(&mut self, env: &mut Env<'_>, intro: Introduction) -> ClientId {
        let groups = self.groups.iter();
        let seats = groups.map(|it| (self.arrival(env, it, &intro.rights), KeptSeat::Coming));
        let seats: Vec<(Arrival, KeptSeat)> = seats.collect();
        let client = self.insert_client(env, intro, &seats);
        self.connect_slots(env, client);
        client
    }

    /// A client that is connected to nothing yet.
    pub(super) fn insert_client(
        &mut self,
        env: &mut Env<'_>,
        intro: Introduction,
        seats: &[(Arrival, KeptSeat)],
    ) -> ClientId {
        let Introduction { id, caller, rights, version, profile, visibility, epoch } = intro;
        let slots = self.groups.iter().map(|group| ServerSlot::new(group, &rights)).collect();
        let account = self.retained.account(&caller, rights.share);
        let has_priming = version.at_least(Version::V2025_11_25);
        let waits = Waits {
            known: self.settings.connect_wait,
            unknown: self.settings.connect_timeout,
            child: self.settings.call_timeout.max(self.settings.connect_timeout),
            ..Waits::default()
        };
        let last_use = self.next_use(env.now);
        let client = self.clients.insert(Client {
            id,
            caller,
            rights,
            version,
            profile,
            streams: Streams::new(has_priming, account, epoch),
            session: Session::adopt(visibility, waits, seats),
            visibility,
            slots,
            calls: BTreeMap::new(),
            visits: 0,
            questions: BTreeMap::new(),
            next_question: 1,
            last_use,
            is_over: false,
            epoch,
            is_dead: false,
            waiters: Vec::new(),
            subscriptions: BTreeSet::new(),
            level: None,
            listens: BTreeMap::new(),
            next_listen: 0,
            parked: BTreeMap::new(),
        });
        self.schedule.arm_by(Task::Reap, env.now.after(self.settings.idle));
        client
    }

    /// Makes the connections that a client is to have.
    pub(super) fn connect_slots(&mut self, env: &mut Env<'_>, client: ClientId) {
        let kept = self.clients.get(client);
        let connecting: Vec<usize> =
            kept.map(|it| it.session.connecting().collect()).unwrap_or_default();
        for slot in connecting {
            self.connect_slot(env, client, slot);
        }
    }

    /// What a client that arrives sees of a server's health.
    pub(super) fn arrival(
        &self,
        env: &Env<'_>,
        group: &ServerGroup,
        rights: &CallerRights,
    ) -> Arrival {
        let is_open = self.is_usable(group) && rights.may_use(&group.name);
        let standing = if is_open {
            health::standing(env.core, &group.name, env.now)
        } else {
            Standing::Unhealthy(Cause::SwitchedOff, None)
        };
        let connect_within = self.initialize_within(group);
        Arrival { standing, connect_within, is_own_child: self.is_own_child(group) }
    }

    fn next_use(&mut self, now: Now) -> LastUse {
        self.uses += 1;
        LastUse { at: now, number: self.uses }
    }

    /// A request of a client's came in, or ended.
    pub(super) fn used(&mut self, now: Now, client: ClientId) {
        let last_use = self.next_use(now);
        if let Some(client) = self.clients.get_mut(client) {
            client.last_use = last_use;
        }
    }

    /// Clients that have not been ended, in the order of the table.
    pub(super) fn open_clients(&self) -> Vec<ClientId> {
        self.clients.iter().filter(|(_, it)| !it.is_over).map(|(id, _)| id).collect()
    }

    /// Everybody of every client who waits for something that may have changed.
    pub(super) fn waiting_clients(&mut self) -> Vec<Task> {
        let ids = self.clients.ids();
        let mut all = Vec::new();
        for id in ids {
            if let Some(client) = self.clients.get_mut(id) {
                all.append(&mut client.waiters);
            }
        }
        all
    }

    /// Something changed that a client may be waiting for.
    pub(super) fn client_turned(&mut self, client: ClientId) {
        if let Some(client) = self.clients.get_mut(client) {
            self.schedule.wake_all(client.waiters.drain(..));
        }
    }

    /// Whether a client may know of a server at all.
    pub(super) fn may_use(&self, client: ClientId, slot: usize) -> bool {
        let Some(client) = self.clients.get(client) else { return false };
        client.slots.get(slot).is_some_and(|it| client.rights.may_use(&it.group.name))
    }

    /// Whether a client sees what a server offers.
    pub(super) fn sees(&self, client: ClientId, slot: usize) -> bool {
        self.may_use(client, slot)
            && self.clients.get(client).is_some_and(|it| it.session.sees(slot))
    }

    /// Where a server, or its group, stands in a client's config.
    pub(super) fn slot_of(&self, client: ClientId, server: ServerId) -> Option<usize> {
        let slots = &self.clients.get(client)?.slots;
        slots.iter().position(|it| it.position(server).is_some())
    }

    /// The server, or group of servers, at a place.
    pub(super) fn group_at(&self, client: ClientId, slot: usize) -> Option<Arc<ServerGroup>> {
        self.clients.get(client)?.slots.get(slot).map(|it| Arc::clone(&it.group))
    }

    /// A client's link to a server, whatever it is worth.
    pub(super) fn peek_link(&self, client: ClientId, server: ServerId) -> Option<LinkId> {
        self.clients.get(client)?.slots.iter().find_map(|it| it.link_to(server))
    }

    /// A client's link to a server; another one if the server speaks another era now.
    pub(super) fn link_to(
        &mut self,
        now: Now,
        client: ClientId,
        server: ServerId,
    ) -> Option<LinkId> {
        let link = self.peek_link(client, server)?;
        if self.is_fit(link) {
            return Some(link);
        }
        if let Some(client) = self.clients.get_mut(client) {
            for slot in &mut client.slots {
                if let Some(at) = slot.position(server) {
                    slot.links[at] = None;
                }
            }
        }
        self.close_own_link(link);
        self.own_link(now, client, server)
    }

    /// A client's link to a server, made if there is none; none to a server that a reload took
    /// away.
    pub(super) fn own_link(
        &mut self,
        now: Now,
        client: ClientId,
        server: ServerId,
    ) -> Option<LinkId> {
        let kept = self.clients.get(client)?;
        let slots = kept.slots.iter().enumerate();
        let (slot, at) = slots.filter_map(|(at, it)| Some((at, it.position(server)?))).next()?;
        if let Some(link) = *kept.slots.get(slot)?.links.get(at)? {
            return Some(link);
        }
        let profile = Arc::clone(&kept.profile);
        let shared = self.shared_link(now, server, &profile);
        let link = shared.unwrap_or_else(|| self.link_for(now, server, Some(client), profile));
        *self.clients.get_mut(client)?.slots.get_mut(slot)?.links.get_mut(at)? = Some(link);
        Some(link)
    }

    /// Programs that run, or are to run, for a client alone.
    pub(super) fn children_of(&self, client: &Client) -> usize {
        let is_own_child = |(_, link): &(usize, LinkId)| {
            let server = self.links.get(*link).and_then(|it| self.servers.get(it.server));
            server.is_some_and(|it| it.is_own_child())
        };
        client.links().filter(is_own_child).count()
    }

    /// Everything that all servers offer clients of a kind.
    pub(super) fn catalogue(&mut self, profile: &ClientProfile) -> Arc<Catalogue> {
        if let Some(known) = self.catalogues.get(&profile.key) {
            return Arc::clone(known);
        }
        let groups = self.groups.iter();
        let listings: Vec<Option<Arc<Listing>>> =
            groups.map(|group| self.listing(group, profile)).collect();
        let catalogue = Arc::new(Catalogue::new(&self.settings.naming, &listings));
        if self.catalogues.len() >= CATALOGUES_MAX {
            self.catalogues.clear();
        }
        self.catalogues.insert(profile.key, Arc::clone(&catalogue));
        catalogue
    }

    /// Everything that all servers offer a client.
    pub(super) fn catalogue_of(&mut self, client: ClientId) -> Arc<Catalogue> {
        match self.clients.get(client).map(|it| Arc::clone(&it.profile)) {
            Some(profile) => self.catalogue(&profile),
            None => Arc::default(),
        }
    }

    /// Sends a client a notification that belongs to no call.
    pub(super) fn notify_client(&mut self, id: ClientId, method: &str, params: Option<&str>) {
        let Some(client) = self.clients.get(id) else { return };
        if client.profile.is_stateless() {
            return self.tell_listens(id, method, params);
        }
        let message = message::notification(method, params);
        self.send_event(Self::standing(id), message.as_bytes(), Weight::Notice);
    }

    /// Counts the sessions that are open.
    pub(super) fn count_sessions(&mut self) {
        self.out.push(Effect::Count(Metric::Sessions(self.sessions.len())));
    }

    /// Ends a client; calls under way may finish.
    pub(super) fn end_client(&mut self, env: &mut Env<'_>, id: ClientId) {
        let Some(client) = self.clients.get_mut(id) else { return };
        if std::mem::replace(&mut client.is_over, true) {
            return;
        }
        let session = Arc::clone(&client.id);
        let links: Vec<LinkId> = client.links().map(|it| it.1).collect();
        let was_session = self.sessions.remove(&session).is_some();
        self.drop_record(id);
        if was_session && self.records.is_some() {
            self.out.push(Effect::SessionEnded { session });
        }
        self.stand_ins.retain(|_, it| *it != id);
        self.count_sessions();
        // Keepalives end before anything else does.
        for link in links {
            if self.links.get(link).is_some_and(|it| it.owner.is_some()) {
                self.rest(link);
            }
        }
        self.end_stream(Self::standing(id));
        self.end_listens(env, id);
        let drain = if self.is_closing { SHUTDOWN } else { DRAIN };
        self.schedule.arm(Task::Ending(id), env.now.after(drain));
        self.end_if_drained(env, id, false);
    }

    /// The end of a client that has been ended, once nothing is under way or its time is over.
    pub(super) fn end_if_drained(&mut self, env: &mut Env<'_>, id: ClientId, is_late: bool) {
        let Some(client) = self.clients.get_mut(id) else { return };
        if !client.is_over || client.is_dead || !(client.is_idle() || is_late) {
            return;
        }
        client.is_dead = true;
        client.session.close();
        self.schedule.disarm(Task::Ending(id));
        self.schedule.disarm(Task::TellLists(id));
        let own = self.calls.iter().filter(|(_, it)| it.client == id).map(|(call, _)| call);
        let own: Vec<CallId> = own.collect();
        own.into_iter().for_each(|call| self.drop_call(env, call));
        self.end_joins(env, id);
        self.end_streams(id);
        self.unsubscribe_all(id);
        self.client_turned(id);
        let Some(client) = self.clients.get_mut(id) else { return };
        client.questions.clear();
        client.parked.clear();
        let slots = std::mem::take(&mut client.slots);
        for link in slots.into_iter().flat_map(|slot| slot.links).flatten() {
            self.close_own_link(link);
        }
        self.forget_if_unread(id);
    }

    /// A client that has ended is forgotten when nobody reads its streams any more.
    fn forget_if_unread(&mut self, id: ClientId) {
        let is_done = |it: &Client| it.is_dead && it.streams.readers.is_empty();
        if self.clients.get(id).is_some_and(is_done) {
            self.clients.remove(id);
        }
    }

    /// A reader of one of a client's streams has gone.
    pub(super) fn reader_left(&mut self, id: ClientId) {
        if let Some(client) = self.clients.get(id) {
            self.schedule.arm_by(Task::Reap, client.last_use.at.after(self.settings.idle));
        }
        self.forget_if_unread(id);
    }

    /// Whether a client has ended for good.
    pub(super) fn is_dead(&self, id: ClientId) -> bool {
        self.clients.get(id).is_none_or(|it| it.is_dead)
    }

    /// A shared server need not tell any more what only this client wanted to hear.
    pub(super) fn unsubscribe_all(&mut self, id: ClientId) {
        let Some(client) = self.clients.get_mut(id) else { return };
        let wanted = std::mem::take(&mut client.subscriptions);
        let links: Vec<LinkId> = client.links().map(|it| it.1).collect();
        let unwanted = wanted.iter().filter(|uri| !self.is_subscribed(uri));
        for uri in unwanted.cloned().collect::<Vec<_>>() {
            for link in &links {
                if self.is_stateless(*link) {
                    self.subscribe_link(*link, &uri, false);
                }
            }
        }
    }

    /// Whether any client wants to hear of a resource of a shared server.
    pub(super) fn is_subscribed(&self, uri: &str) -> bool {
        self.clients.iter().any(|(_, it)| !it.is_dead && it.subscriptions.contains(uri))
    }

    /// Ends clients that nobody has used for as long as the config allows, and gives up calls that
    /// nobody came back for.
    pub(super) fn reap(&mut self, env: &mut Env<'_>) {
        let limit = self.settings.idle;
        let mut next: Option<Now> = None;
        for id in self.open_clients() {
            self.sweep_parked(env, id);
            let Some(client) = self.clients.get(id) else { continue };
            if let Some(since) = client.idle_order()
                && env.now.since(since.at) >= limit
            {
                self.end_client(env, id);
                continue;
            }
            let parked = client.parked.values().map(|it| it.until);
            // One that is not idle is looked at again when it becomes so.
            let idle = client.idle_order().map(|since| since.at.after(limit));
            let soonest = parked.chain(idle).min();
            next = [next, soonest].into_iter().flatten().min();
        }
        match next {
            Some(at) => self.schedule.arm(Task::Reap, at),
            None => self.schedule.disarm(Task::Reap),
        }
    }
}
