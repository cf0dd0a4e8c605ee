//! One client's session: what it sees, what it asked for, what it is being asked.
//!
//! Rules kept here:
//! - A session never ends because of a server.
//! - A server's request reaches the client whose call caused it, and only if that client said it
//!   can be asked such things (S44). Ids of such requests are ours, so that answers cannot be
//!   mixed up.
//! - Bounded: calls at once and questions at once.
//!
//! Left to others: which servers are seen (`tidegate_mcp::session`), the way of a call (`relay`),
//! when a session is reaped (`hub`).

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tidegate_core::time::Now;
use tidegate_mcp::{
    catalogue::Catalogue,
    health,
    message::{self, Id, METHOD_NOT_FOUND, Params, Version},
    session::{Arrival, Carried, Contact, Entry, Known, News, Session, Visibility, Waits},
};
use tokio::sync::Notify;

use super::{
    conversation::Conversation,
    ground::Ground,
    hello::Hello,
    link::{Link, Owner},
    party::Party,
    server::Server,
    stream::{Streams, Weight},
};
use crate::{
    caller::Caller,
    task::{self, Owned},
};

/// Calls of one client at once: more than any agent makes.
const CALLS_MAX: usize = 256;
/// Questions to one client at once.
const QUESTIONS_MAX: usize = 64;
/// How long calls under way may go on after their session was ended.
const DRAIN: Duration = Duration::from_secs(5);

/// One client's session.
pub(crate) struct Client {
    pub(crate) id: String,
    pub(crate) caller: Arc<Caller>,
    pub(crate) version: Version,
    pub(crate) hello: Hello,
    pub(crate) streams: Streams,
    pub(crate) ground: Rc<Ground>,
    session: RefCell<Session>,
    visibility: Visibility,
    /// The servers and this client's links to them, in the order of the config.
    places: RefCell<Vec<Place>>,
    calls: RefCell<BTreeMap<Id, Owned>>,
    idle: Notify,
    questions: RefCell<BTreeMap<u64, Question>>,
    next_question: Cell<u64>,
    used_at: Cell<Now>,
    is_over: Cell<bool>,
    /// A server has joined, or will not.
    turned: Notify,
    telling: RefCell<Option<Owned>>,
    /// Resources this client wants to hear of.
    pub(crate) subscriptions: RefCell<BTreeSet<String>>,
    this: Weak<Client>,
}

#[derive(Clone)]
struct Place {
    server: Rc<Server>,
    link: Option<Rc<Link>>,
}

/// A request of a server's that the client has not answered.
struct Question {
    talk: Weak<Conversation>,
    /// The server's own id.
    id: Id,
    party: Option<Rc<Party>>,
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
    pub(crate) fn open(ground: &Rc<Ground>, opening: Opening, servers: &[Rc<Server>]) -> Rc<Self> {
        let Opening { id, caller, version, hello, visibility, waits } = opening;
        let live = ground.live();
        let now = ground.now();
        let arrivals: Vec<Arrival> =
            servers.iter().map(|server| arrival(&live.core, server, &caller, now)).collect();
        let places = servers.iter().map(|it| Place { server: Rc::clone(it), link: None }).collect();
        let client = Rc::new_cyclic(|this| Self {
            id,
            caller,
            version,
            hello,
            streams: Streams::new(version.at_least(Version::V2025_11_25)),
            ground: Rc::clone(ground),
            session: RefCell::new(Session::open(visibility, waits, &arrivals)),
            visibility,
            places: RefCell::new(places),
            calls: RefCell::default(),
            idle: Notify::new(),
            questions: RefCell::default(),
            next_question: Cell::new(1),
            used_at: Cell::new(now),
            is_over: Cell::new(false),
            turned: Notify::new(),
            telling: RefCell::default(),
            subscriptions: RefCell::default(),
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
        self.used_at.set(self.ground.now());
    }

    /// Since when nothing has happened; `None` while something is under way or the client listens.
    pub(crate) fn idle_since(&self) -> Option<Now> {
        let is_quiet = self.calls.borrow().is_empty() && !self.streams.standing().has_reader();
        is_quiet.then(|| self.used_at.get())
    }

    /// Whether it has been ended.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.get()
    }

    /// Whether this client sees what a server offers.
    pub(crate) fn sees(&self, place: usize) -> bool {
        self.session.borrow().sees(place)
    }

    /// Whether this client may know of a server at all.
    pub(crate) fn may_use(&self, place: usize) -> bool {
        let places = self.places.borrow();
        places.get(place).is_some_and(|it| self.caller.may_use_server(&it.server.name))
    }

    /// The server at a place.
    pub(crate) fn server(&self, place: usize) -> Option<Rc<Server>> {
        self.places.borrow().get(place).map(|it| Rc::clone(&it.server))
    }

    /// The link to the server at a place.
    pub(crate) fn link(&self, place: usize) -> Option<Rc<Link>> {
        self.places.borrow().get(place).and_then(|it| it.link.clone())
    }

    /// Where a server stands in this client's config.
    pub(crate) fn place_of(&self, server: &Server) -> Option<usize> {
        self.places.borrow().iter().position(|it| std::ptr::eq(&*it.server, server))
    }

    /// Whether this client subscribed to a resource of a shared server.
    pub(crate) fn is_subscribed(&self, uri: &str) -> bool {
        self.subscriptions.borrow().contains(uri)
    }

    /// Something changed that this session may be waiting for.
    pub(crate) fn wake(&self) {
        self.turned.notify_waiters();
    }

    /// All links, with their places.
    pub(crate) fn links(&self) -> Vec<(usize, Rc<Link>)> {
        let places = self.places.borrow();
        let links = places.iter().enumerate();
        links.filter_map(|(at, place)| Some((at, Rc::clone(place.link.as_ref()?)))).collect()
    }

    /// Everything that all servers offer a client like this one.
    pub(crate) fn catalogue(&self) -> Rc<Catalogue> {
        match self.ground.hub() {
            Some(hub) => hub.catalogue(&self.hello),
            None => Rc::default(),
        }
    }

    /// Whether a call may go to a server; waits for one that is still connecting.
    pub(crate) async fn enter(&self, place: usize) -> Entry {
        let began = self.ground.now();
        loop {
            let mut turned = std::pin::pin!(self.turned.notified());
            turned.as_mut().enable();
            self.follow(place);
            let now = self.ground.now();
            let entry = self.session.borrow().entry(now, began, place, self.known(place));
            let Entry::Wait(until) = entry else { return entry };
            let span = Duration::from_millis(until.since(now).0);
            drop(tokio::time::timeout(span, turned).await);
        }
    }

    /// Waits for servers that are still connecting, as long as a first look may.
    pub(crate) async fn first_look(&self) {
        self.session.borrow_mut().look(self.ground.now());
        loop {
            let mut turned = std::pin::pin!(self.turned.notified());
            turned.as_mut().enable();
            let count = self.places.borrow().len();
            let now = self.ground.now();
            let until = {
                let session = self.session.borrow();
                (0..count).filter_map(|at| session.may_wait(now, at, self.known(at))).max()
            };
            let Some(until) = until else { break };
            let span = Duration::from_millis(until.since(now).0);
            drop(tokio::time::timeout(span, turned).await);
        }
        if self.visibility == Visibility::Live {
            (0..self.places.borrow().len()).for_each(|place| self.follow(place));
        }
        self.session.borrow_mut().shown();
    }

    /// Waits until a child of this session's own that nobody knows yet has come up, or will not.
    pub(crate) async fn children_up(&self, within: Duration) {
        let wait = async {
            loop {
                let mut turned = std::pin::pin!(self.turned.notified());
                turned.as_mut().enable();
                let connecting: Vec<usize> = self.session.borrow().connecting().collect();
                let is_awaited = |place: &usize| {
                    self.server(*place).is_some_and(|server| server.is_own_child())
                        && !self.known(*place).has_catalogue
                };
                if !connecting.iter().any(is_awaited) {
                    return;
                }
                turned.await;
            }
        };
        drop(tokio::time::timeout(within, wait).await);
    }

    /// A look at a server's health: it may join, or with `visibility: live` come and go.
    pub(crate) fn follow(&self, place: usize) {
        let Some(server) = self.server(place) else { return };
        if !server.is_usable() || !self.may_use(place) || self.is_over() {
            return;
        }
        let live = self.ground.live();
        let now = self.ground.now();
        let standing = health::standing(&live.core, &server.name, now);
        let news = self.session.borrow_mut().follow(now, place, standing);
        match news {
            News::Connect => self.connect(place),
            News::Changed => self.tell_changes(),
            News::Nothing => {}
        }
    }

    /// The config changed.
    pub(crate) fn reload(&self, servers: &[Rc<Server>]) {
        let live = self.ground.live();
        let now = self.ground.now();
        let before = self.places.take();
        let mut carried = Vec::new();
        let mut places = Vec::new();
        for server in servers {
            let kept = before.iter().position(|it| Rc::ptr_eq(&it.server, server));
            let link = kept.and_then(|at| before[at].link.clone());
            places.push(Place { server: Rc::clone(server), link });
            carried.push(match kept {
                Some(at) => Carried::Kept(at),
                None => Carried::Added(arrival(&live.core, server, &self.caller, now)),
            });
        }
        let is_kept = |it: &Place| servers.iter().any(|server| Rc::ptr_eq(&it.server, server));
        for gone in before.into_iter().filter(|it| !is_kept(it)) {
            close_link(&gone);
        }
        *self.places.borrow_mut() = places;
        let news = self.session.borrow_mut().reload(now, &carried);
        if news == News::Changed {
            self.tell_changes();
        }
        for (place, carried) in carried.iter().enumerate() {
            let is_new = matches!(carried, Carried::Added(_));
            if is_new && self.session.borrow().connecting().any(|it| it == place) {
                self.connect(place);
            }
        }
    }

    /// Makes this client's connection to a server, and lets the server join when it is there and
    /// its lists are known.
    fn connect(&self, place: usize) {
        let Some(server) = self.server(place) else { return };
        let link = self.own_link(place, &server);
        let this = Weak::clone(&self.this);
        let limit = server.initialize_within();
        task::spawn("mcp join", async move {
            let brought = link.bring_up(limit).await;
            if brought.is_ok() {
                server.lists_known(&link).await;
            }
            server.contact.set(if brought.is_ok() { Contact::Reached } else { Contact::Failed });
            let Some(client) = this.upgrade() else { return };
            // A reload may have moved it.
            let at = client.places.borrow().iter().position(|it| Rc::ptr_eq(&it.server, &server));
            let Some(at) = at else { return };
            match brought {
                Ok(()) => {
                    let now = client.ground.now();
                    let news = client.session.borrow_mut().connected(now, at);
                    link.keep_alive();
                    if news == News::Changed {
                        client.tell_changes();
                    }
                }
                Err(unavailable) => {
                    client.session.borrow_mut().connect_failed(at, unavailable.cause);
                }
            }
            client.turned.notify_waiters();
        });
    }

    fn own_link(&self, place: usize, server: &Rc<Server>) -> Rc<Link> {
        if let Some(link) = self.link(place) {
            return link;
        }
        let shared = server.is_shared_child().then(|| server.home.borrow().clone()).flatten();
        let link = shared.unwrap_or_else(|| {
            let owner = Owner::Client(Weak::clone(&self.this));
            Link::new(&self.ground, server, self.hello.clone(), owner)
        });
        if let Some(place) = self.places.borrow_mut().get_mut(place) {
            place.link = Some(Rc::clone(&link));
        }
        link
    }

    fn known(&self, place: usize) -> Known {
        let Some(server) = self.server(place) else { return Known::default() };
        let profile = server.profile_for(&self.hello);
        let has_catalogue = server.shelf.listing(profile).is_some();
        Known { contact: server.contact.get(), has_catalogue }
    }

    /// Tells the client that its lists have changed, once the changes have settled.
    fn tell_changes(&self) {
        let Some(at) = self.session.borrow().list_changed_at() else { return };
        let span = Duration::from_millis(at.since(self.ground.now()).0);
        let this = Weak::clone(&self.this);
        let telling = task::spawn_owned("mcp list changes", async move {
            tokio::time::sleep(span).await;
            let Some(client) = this.upgrade() else { return };
            if client.session.borrow_mut().tell_list_changed(client.ground.now()) {
                client.tell_all_lists();
            }
        });
        *self.telling.borrow_mut() = Some(telling);
    }

    fn tell_all_lists(&self) {
        let catalogue = self.catalogue();
        let has_resources = !catalogue.resources().is_empty() || !catalogue.templates().is_empty();
        self.notify("notifications/tools/list_changed", None);
        if has_resources {
            self.notify("notifications/resources/list_changed", None);
        }
        if !catalogue.prompts().is_empty() {
            self.notify("notifications/prompts/list_changed", None);
        }
    }

    /// Sends a notification that belongs to no call.
    pub(crate) fn notify(&self, method: &str, params: Option<&str>) {
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
        if calls.len() >= CALLS_MAX {
            return Err("too many requests of this session are under way");
        }
        Ok(())
    }

    pub(crate) fn call_began(&self, id: Id, task: Owned) {
        self.calls.borrow_mut().insert(id, task);
    }

    /// A call has its answer.
    pub(crate) fn call_ended(&self, id: &Id) {
        if let Some(task) = self.calls.borrow_mut().remove(id) {
            task.detach();
        }
        self.used();
        self.idle.notify_waiters();
    }

    /// The client does not want an answer any more. Dropping the call tells its server.
    pub(crate) fn cancel(&self, id: &Id) {
        let task = self.calls.borrow_mut().remove(id);
        drop(task);
        self.idle.notify_waiters();
    }

    /// A server asks this client something.
    pub(crate) fn ask(
        &self,
        talk: &Rc<Conversation>,
        id: Id,
        (method, params): (&str, Option<&RawValue>),
        party: Option<Rc<Party>>,
    ) {
        let refuse = |message: &str| {
            talk.tell(message::error(Some(&id), METHOD_NOT_FOUND, message, None));
        };
        if !self.hello.can().be_asked(method) {
            return refuse("the client did not declare that it can be asked this");
        }
        if self.questions.borrow().len() >= QUESTIONS_MAX {
            return refuse("too many questions wait for the client");
        }
        let number = self.next_question.get();
        self.next_question.set(number + 1);
        let stream =
            party.as_ref().map_or_else(|| self.streams.standing(), |it| Rc::clone(&it.stream));
        if let Some(party) = &party {
            party.asked.set(party.asked.get() + 1);
        }
        let question = Question { talk: Rc::downgrade(talk), id, party };
        self.questions.borrow_mut().insert(number, question);
        let params = params.map(RawValue::get);
        let message = message::request(&Id::number(number), method, params);
        stream.send(message.as_bytes(), Weight::Needed);
    }

    /// The client answered a question.
    pub(crate) fn answered(&self, id: &Id, outcome: Result<&RawValue, &RawValue>) {
        let number = id.as_number();
        let question = number.and_then(|number| self.questions.borrow_mut().remove(&number));
        let Some(question) = question else { return };
        if let Some(party) = question.party {
            party.asked.set(party.asked.get().saturating_sub(1));
        }
        if let Some(talk) = question.talk.upgrade() {
            talk.tell(message::answer(&question.id, outcome));
        }
    }

    /// A server does not want its question answered any more.
    pub(crate) fn unask(&self, talk: &Rc<Conversation>, id: &Id) {
        let is_it = |it: &Question| it.id == *id && it.talk.ptr_eq(&Rc::downgrade(talk));
        let mut questions = self.questions.borrow_mut();
        let number = questions.iter().find(|(_, it)| is_it(it)).map(|(number, _)| *number);
        let question = number.and_then(|number| questions.remove(&number));
        drop(questions);
        if let (Some(number), Some(question)) = (number, question) {
            let stream = match question.party {
                Some(party) => {
                    party.asked.set(party.asked.get().saturating_sub(1));
                    Rc::clone(&party.stream)
                }
                None => self.streams.standing(),
            };
            let params = format!(r#"{{"requestId":{number}}}"#);
            let message = message::notification("notifications/cancelled", Some(&params));
            stream.send(message.as_bytes(), Weight::Notice);
        }
    }

    /// What the client tells of a question it works on goes to whoever asked.
    pub(crate) fn tell_askers(&self, message: &str) {
        let talks: Vec<_> =
            self.questions.borrow().values().filter_map(|it| it.talk.upgrade()).collect();
        for (at, talk) in talks.iter().enumerate() {
            if !talks[..at].iter().any(|it| Rc::ptr_eq(it, talk)) {
                talk.tell(message.to_owned());
            }
        }
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
                if self.calls.borrow().is_empty() {
                    return;
                }
                idle.await;
            }
        };
        // Keepalives end before anything else does.
        self.links().iter().for_each(|(_, link)| link.rest());
        self.streams.end_standing();
        drop(tokio::time::timeout(drain, drained).await);
        self.session.borrow_mut().close();
        drop(self.calls.take());
        drop(self.telling.take());
        self.streams.close();
        self.questions.borrow_mut().clear();
        self.turned.notify_waiters();
        let links = self.places.take().into_iter().filter_map(|place| place.link);
        let own: Vec<_> = links.filter(|it| matches!(it.owner, Owner::Client(_))).collect();
        own.iter().for_each(|link| link.stop());
        own
    }
}

/// Closes a client's own link. The gateway's goes on.
fn close_link(place: &Place) {
    let Some(link) = place.link.clone() else { return };
    if matches!(link.owner, Owner::Client(_)) {
        link.stop();
        task::spawn("mcp farewell", async move { link.close().await });
    }
}

fn arrival(
    core: &tidegate_core::core::Core,
    server: &Server,
    caller: &Caller,
    now: Now,
) -> Arrival {
    let is_open = server.is_usable() && caller.may_use_server(&server.name);
    let standing = if is_open {
        health::standing(core, &server.name, now)
    } else {
        health::Standing::Unhealthy(tidegate_mcp::cause::Cause::SwitchedOff, None)
    };
    Arrival { standing, is_own_child: server.is_own_child() }
}

/// The id of the request that a cancellation is about.
pub(crate) fn cancelled_id(params: Option<&RawValue>) -> Option<Id> {
    let params = Params::parse(params).ok()?;
    Id::read(params.get("requestId")?).ok()
}
