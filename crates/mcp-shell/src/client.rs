//! One client's session: what it sees, what it asked for, what it is being asked.
//!
//! Rules kept here:
//! - A session never ends because of a server.
//! - Bounded: calls at once and questions at once.
//!
//! `joining` has how servers join, `replicas` how one of several equivalent ones is used,
//! `questions` what they ask, `listens` what a client without a session wants to hear. Such a
//! client is one of these as well: it stands for all requests of one caller that introduce
//! themselves alike, and goes when there were none for a while.
//!
//! Left to others: which servers are seen (`tidegate_mcp::session`), the way of a call (`relay`),
//! when a session is reaped (`hub`).

mod joining;
pub(crate) mod listens;
mod questions;
mod replicas;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tidegate_core::time::Now;
use tidegate_gateway::caller::Caller;
use tidegate_mcp::{
    catalogue::Catalogue,
    health,
    message::{self, Id, Params, Version},
    session::{Arrival, Session, Visibility, Waits},
};
use tidegate_runtime::task::{self, Owned};
use tokio::sync::Notify;

use self::{listens::Listens, questions::Question};
use super::{
    front::parked::ParkingLot,
    ground::{Ground, LastUse},
    group::Group,
    hello::Hello,
    link::{Link, Owner},
    party::{Cancelled, Desk},
    server::Server,
    stream::{Streams, Weight},
};

/// Calls of one client at once: more than any agent makes.
const CALLS_MAX: usize = 256;
/// Requests at once of one caller without a session: several agents may share its key.
const VISITS_MAX: usize = 4096;
/// How long calls under way may go on after their session was ended.
const DRAIN: Duration = Duration::from_secs(5);

/// One client's session.
pub(crate) struct Client {
    pub(crate) id: String,
    caller: RefCell<Arc<Caller>>,
    pub(crate) version: Version,
    pub(crate) hello: Hello,
    pub(crate) streams: Streams,
    pub(crate) ground: Rc<Ground>,
    session: RefCell<Session>,
    visibility: Visibility,
    /// The servers and this client's links to them, in the order of the config.
    places: RefCell<Vec<Place>>,
    calls: RefCell<BTreeMap<Id, (Owned, Rc<Desk>)>>,
    /// Requests under way of a client without a session: ids say nothing there.
    visits: Cell<usize>,
    idle: Notify,
    questions: RefCell<BTreeMap<u64, Question>>,
    next_question: Cell<u64>,
    last_use: Cell<LastUse>,
    is_over: Cell<bool>,
    /// A server has joined, or will not.
    turned: Notify,
    telling: RefCell<Option<Owned>>,
    /// Resources of shared servers that this client wants to hear of.
    subscriptions: RefCell<BTreeSet<String>>,
    /// From which level on it wants log lines.
    pub(crate) level: RefCell<Option<String>>,
    /// The streams on which a client without a session hears what it asked for.
    pub(crate) listens: Listens,
    /// Its calls that wait for it to come back.
    pub(crate) parked: ParkingLot,
    this: Weak<Client>,
}

/// What this client has of one server, or group of servers.
struct Place {
    group: Group,
    /// Its links to the members, in their order.
    links: Vec<Option<Rc<Link>>>,
    /// The member of a group that holds its state.
    stays: Option<Arc<str>>,
    /// Whether its caller might use it when that was last looked at.
    is_allowed: bool,
}

impl Place {
    fn new(group: &Group, caller: &Caller) -> Self {
        let links = vec![None; group.servers.len()];
        let is_allowed = caller.may_use_server(&group.name);
        Self { group: group.clone(), links, stays: None, is_allowed }
    }

    fn position(&self, server: &Server) -> Option<usize> {
        self.group.servers.iter().position(|it| std::ptr::eq(&**it, server))
    }

    fn link_to(&self, server: &Server) -> Option<Rc<Link>> {
        self.links.get(self.position(server)?)?.clone()
    }
}

/// What a session is opened with.
pub(crate) struct Opening {
    pub(crate) id: String,
    pub(crate) caller: Arc<Caller>,
    pub(crate) version: Version,
    pub(crate) hello: Hello,
    pub(crate) visibility: Visibility,
    pub(crate) waits: Waits,
}

impl Client {
    /// Opens a session: every server that is not known to be bad is connected to.
    pub(crate) fn open(ground: &Rc<Ground>, opening: Opening, groups: &[Group]) -> Rc<Self> {
        let Opening { id, caller, version, hello, visibility, waits } = opening;
        let live = ground.live();
        let now = ground.now();
        let arrivals: Vec<Arrival> =
            groups.iter().map(|group| arrival(&live.core, group, &caller, now)).collect();
        let places = groups.iter().map(|group| Place::new(group, &caller)).collect();
        let account = ground.account(&caller);
        let client = Rc::new_cyclic(|this| Self {
            id,
            caller: RefCell::new(caller),
            version,
            hello,
            streams: Streams::new(version.at_least(Version::V2025_11_25), account),
            ground: Rc::clone(ground),
            session: RefCell::new(Session::open(visibility, waits, &arrivals)),
            visibility,
            places: RefCell::new(places),
            calls: RefCell::default(),
            visits: Cell::default(),
            idle: Notify::new(),
            questions: RefCell::default(),
            next_question: Cell::new(1),
            last_use: Cell::new(ground.next_use()),
            is_over: Cell::new(false),
            turned: Notify::new(),
            telling: RefCell::default(),
            subscriptions: RefCell::default(),
            level: RefCell::default(),
            listens: Listens::default(),
            parked: ParkingLot::default(),
            this: Weak::clone(this),
        });
        let connecting: Vec<usize> = client.session.borrow().connecting().collect();
        for place in connecting {
            client.connect(place);
        }
        client
    }

    /// A request came in.
    pub(crate) fn used(&self) {
        self.last_use.set(self.ground.next_use());
    }

    /// Since when nothing has happened; `None` while something is under way or the client listens.
    pub(crate) fn idle_since(&self) -> Option<Now> {
        self.idle_order().map(|last| last.at)
    }

    /// What orders idle sessions, the one that has been idle for longest first.
    pub(crate) fn idle_order(&self) -> Option<LastUse> {
        let is_heard = self.streams.standing().has_reader();
        let is_quiet = self.is_idle() && self.parked.is_empty() && !is_heard;
        is_quiet.then(|| self.last_use.get())
    }

    fn is_idle(&self) -> bool {
        self.calls.borrow().is_empty() && self.visits.get() == 0
    }

    /// A request of a client without a session is under way for as long as this is held.
    pub(crate) fn visit(self: &Rc<Self>) -> Visit {
        self.used();
        self.visits.set(self.visits.get() + 1);
        Visit(Rc::clone(self))
    }

    /// Whether as many requests are under way as may be.
    pub(crate) fn is_busy(&self) -> bool {
        self.visits.get() >= VISITS_MAX
    }

    /// Whether it has been ended.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.get()
    }

    /// Whether this client sees what a server offers.
    pub(crate) fn sees(&self, place: usize) -> bool {
        self.may_use(place) && self.session.borrow().sees(place)
    }

    /// Whether this client may know of a server at all.
    pub(crate) fn may_use(&self, place: usize) -> bool {
        let places = self.places.borrow();
        let caller = self.caller.borrow();
        places.get(place).is_some_and(|it| caller.may_use_server(&it.group.name))
    }

    /// Whose it is, and what that one may use now.
    pub(crate) fn caller(&self) -> Arc<Caller> {
        Arc::clone(&self.caller.borrow())
    }

    /// The config says something else of its caller.
    pub(crate) fn set_caller(&self, caller: Arc<Caller>) {
        *self.caller.borrow_mut() = caller;
    }

    /// Programs that run, or are to run, for this client alone.
    pub(crate) fn children(&self) -> usize {
        self.links().iter().filter(|(_, link)| link.server.is_own_child()).count()
    }

    /// The server, or group of servers, at a place.
    pub(crate) fn group(&self, place: usize) -> Option<Group> {
        self.places.borrow().get(place).map(|it| it.group.clone())
    }

    /// The link to a server.
    pub(crate) fn link_to(&self, server: &Server) -> Option<Rc<Link>> {
        let link = self.places.borrow().iter().find_map(|it| it.link_to(server))?;
        if link.is_fit() {
            return Some(link);
        }
        // The server speaks another era now.
        let server = Rc::clone(&link.server);
        for place in self.places.borrow_mut().iter_mut() {
            if let Some(at) = place.position(&server) {
                place.links[at] = None;
            }
        }
        if matches!(link.owner, Owner::Client(_)) {
            link.stop();
            task::spawn("mcp farewell", async move { link.close().await });
        }
        self.own_link(&server)
    }

    /// Where a server, or its group, stands in this client's config.
    pub(crate) fn place_of(&self, server: &Server) -> Option<usize> {
        self.places.borrow().iter().position(|it| it.position(server).is_some())
    }

    /// Whether this client subscribed to a resource of a shared server.
    pub(crate) fn is_subscribed(&self, uri: &str) -> bool {
        self.subscriptions.borrow().contains(uri)
    }

    /// This client wants to hear of a resource of a shared server, or does not any more.
    pub(crate) fn set_subscribed(&self, uri: &str, is_wanted: bool) {
        match is_wanted {
            true => _ = self.subscriptions.borrow_mut().insert(uri.to_owned()),
            false => _ = self.subscriptions.borrow_mut().remove(uri),
        }
    }

    /// A shared server need not tell any more what only this client wanted to hear.
    fn unsubscribe_all(&self) {
        let wanted = self.subscriptions.take();
        let Some(hub) = self.ground.hub() else { return };
        for uri in wanted.iter().filter(|uri| !hub.is_subscribed(uri)) {
            for (_, link) in self.links().iter().filter(|(_, link)| link.is_stateless()) {
                link.subscribe(uri, false);
            }
        }
    }

    /// Something changed that this session may be waiting for.
    pub(crate) fn wake(&self) {
        self.turned.notify_waiters();
    }

    /// All links, with their places.
    pub(crate) fn links(&self) -> Vec<(usize, Rc<Link>)> {
        let places = self.places.borrow();
        let links = places.iter().enumerate().flat_map(|(at, place)| {
            place.links.iter().flatten().map(move |link| (at, Rc::clone(link)))
        });
        links.collect()
    }

    /// Everything that all servers offer a client like this one.
    pub(crate) fn catalogue(&self) -> Rc<Catalogue> {
        match self.ground.hub() {
            Some(hub) => hub.catalogue(&self.hello),
            None => Rc::default(),
        }
    }

    /// Sends a notification that belongs to no call.
    pub(crate) fn notify(&self, method: &str, params: Option<&str>) {
        if self.hello.is_stateless() {
            return self.listens.tell(method, params);
        }
        let message = message::notification(method, params);
        self.streams.standing().send(message.as_bytes(), Weight::Notice);
    }

    /// Adds a call that is under way; whether it may begin.
    pub(crate) fn may_call(&self, id: &Id) -> Result<(), &'static str> {
        let calls = self.calls.borrow();
        if self.is_over() {
            return Err("this session has ended");
        }
        if calls.contains_key(id) {
            return Err("this id is in use by a request that is under way");
        }
        Ok(())
    }

    /// Whether one more call may be under way.
    pub(crate) fn has_room(&self) -> bool {
        self.calls.borrow().len() < CALLS_MAX
    }

    pub(crate) fn call_began(&self, id: Id, task: Owned, desk: Rc<Desk>) {
        self.calls.borrow_mut().insert(id, (task, desk));
    }

    /// A call has its answer.
    pub(crate) fn call_ended(&self, id: &Id) {
        if let Some((task, _)) = self.calls.borrow_mut().remove(id) {
            task.detach();
        }
        self.used();
        self.idle.notify_waiters();
    }

    /// The client does not want an answer any more. Dropping the call tells its server.
    pub(crate) fn cancel(&self, id: &Id, cancelled: Cancelled) {
        let call = self.calls.borrow_mut().remove(id);
        if let Some((task, desk)) = call {
            desk.cancel(cancelled);
            drop(task);
        }
        self.idle.notify_waiters();
    }

    /// Ends the session: new calls are refused, those under way may finish for a while.
    pub(crate) async fn end(&self) {
        for link in self.end_links(DRAIN).await {
            link.close().await;
        }
    }

    /// Ends the session, and leaves it to the caller to close its links in good order.
    pub(crate) async fn end_links(&self, drain: Duration) -> Vec<Rc<Link>> {
        if self.is_over.replace(true) {
            return Vec::new();
        }
        let drained = async {
            loop {
                let mut idle = std::pin::pin!(self.idle.notified());
                idle.as_mut().enable();
                if self.is_idle() {
                    return;
                }
                idle.await;
            }
        };
        // Keepalives end before anything else does.
        self.links().iter().for_each(|(_, link)| link.rest());
        self.streams.end_standing();
        self.listens.end();
        drop(tokio::time::timeout(drain, drained).await);
        self.session.borrow_mut().close();
        drop(self.calls.take());
        drop(self.telling.take());
        self.streams.close();
        self.questions.borrow_mut().clear();
        self.parked.clear();
        self.unsubscribe_all();
        self.turned.notify_waiters();
        let links = self.places.take().into_iter().flat_map(|place| place.links).flatten();
        let own: Vec<_> = links.filter(|it| matches!(it.owner, Owner::Client(_))).collect();
        own.iter().for_each(|link| link.stop());
        own
    }
}

/// A request under way of a client without a session.
pub(crate) struct Visit(Rc<Client>);

impl Drop for Visit {
    fn drop(&mut self) {
        self.0.visits.set(self.0.visits.get().saturating_sub(1));
        self.0.used();
        self.0.idle.notify_waiters();
    }
}

/// Closes a client's own link. The gateway's goes on.
fn close_link(link: Rc<Link>) {
    if matches!(link.owner, Owner::Client(_)) {
        link.stop();
        task::spawn("mcp farewell", async move { link.close().await });
    }
}

fn arrival(core: &tidegate_core::core::Core, group: &Group, caller: &Caller, now: Now) -> Arrival {
    let is_open = group.is_usable() && caller.may_use_server(&group.name);
    let standing = if is_open {
        health::standing(core, &group.name, now)
    } else {
        health::Standing::Unhealthy(tidegate_mcp::cause::Cause::SwitchedOff, None)
    };
    let connect_within = group.initialize_within();
    Arrival { standing, connect_within, is_own_child: group.is_own_child() }
}

/// The id of the request that a cancellation is about.
pub(crate) fn cancelled_id(params: Option<&RawValue>) -> Option<Id> {
    let params = Params::parse(params).ok()?;
    Id::read(params.get("requestId")?).ok()
}
