//! How servers join a session, and how long it waits for them.
//!
//! A client shares the gateway's link to a program that all share, and to a server without
//! sessions; to every other it has one of its own.
//!
//! The session machine decides; here its words become connections, timers and notifications.

use std::rc::{Rc, Weak};
use std::time::Duration;

use tidegate_mcp::{
    call::Unavailable,
    cause::Cause,
    health,
    session::{Caller, Carried, Contact, Entry, Known, News},
};
use tidegate_runtime::task;

use super::{Client, Place, arrival, close_link};
use crate::{
    group::Group,
    link::{Link, Owner},
    server::Server,
};

/// How often a place among the children is asked for.
const PLACE_AFTER: Duration = Duration::from_millis(200);

fn is_full(brought: &Result<(), Unavailable>) -> bool {
    brought.as_ref().is_err_and(|it| it.cause == Cause::TooManyChildren)
}

impl Client {
    /// Whether a call may go to a server; waits for one that is still connecting.
    pub(crate) async fn enter(&self, group: &Group) -> Entry {
        let mut caller = Caller { began: self.ground.now(), has_waited: false };
        loop {
            let mut turned = std::pin::pin!(self.turned.notified());
            turned.as_mut().enable();
            let place = group.servers.iter().find_map(|server| self.place_of(server));
            let Some(place) = place else { return Entry::Refused(Cause::Closing) };
            if !caller.has_waited {
                // Only once: a connection that fails meanwhile is this call's failure.
                self.follow(place);
            }
            let now = self.ground.now();
            let entry = self.session.borrow().entry(now, caller, place);
            let Entry::Wait(until) = entry else { return entry };
            caller.has_waited = true;
            let span = Duration::from_millis(until.since(now).0);
            drop(tokio::time::timeout(span, turned).await);
        }
    }

    /// Waits for servers that are still connecting, as long as a first look may.
    pub(crate) async fn first_look(&self) {
        if self.visibility.follows_health() {
            self.follow_all();
        }
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
        self.session.borrow_mut().shown(|place| self.known(place).has_catalogue);
        for (_, link) in self.links() {
            link.server.refresh(&link, &self.hello);
        }
    }

    /// A look at the health of every server.
    fn follow_all(&self) {
        // Following may begin a connection, which changes the places.
        let count = self.places.borrow().len();
        (0..count).for_each(|place| self.follow(place));
    }

    /// Waits until a child of this session's own that nobody knows yet has come up, or will not.
    pub(crate) async fn children_up(&self, within: Duration) {
        let wait = async {
            loop {
                let mut turned = std::pin::pin!(self.turned.notified());
                turned.as_mut().enable();
                let connecting: Vec<usize> = self.session.borrow().connecting().collect();
                let is_awaited = |place: &usize| {
                    self.group(*place).is_some_and(|group| group.is_own_child())
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
        let Some(group) = self.group(place) else { return };
        if !group.is_usable() || !self.may_use(place) || self.is_over() {
            return;
        }
        let live = self.ground.live();
        let now = self.ground.now();
        let standing = health::standing(&live.core, &group.name, now);
        let news = self.session.borrow_mut().follow(now, place, standing);
        match news {
            News::Connect => self.connect(place),
            News::Changed => self.tell_changes(),
            News::Nothing => {}
        }
    }

    /// The config changed.
    pub(crate) fn reload(&self, groups: &[Group]) {
        let live = self.ground.live();
        let now = self.ground.now();
        let caller = self.caller();
        let before = self.places.take();
        let mut carried = Vec::new();
        let mut places = Vec::new();
        for group in groups {
            // It is the same as long as one of its servers is.
            let stays = |it: &Place| group.servers.iter().any(|one| it.position(one).is_some());
            let kept = before.iter().position(|it| it.group.name == group.name && stays(it));
            let link = |server: &Rc<Server>| before.iter().find_map(|it| it.link_to(server));
            let stays = kept.and_then(|at| before[at].stays.clone());
            let stays = stays.filter(|name| group.member(name).is_some());
            let is_allowed = caller.may_use_server(&group.name);
            // What its caller may not use any more is gone; what it may use now has to join.
            let kept = kept.filter(|at| before[*at].is_allowed == is_allowed);
            let links = group.servers.iter().map(|it| link(it).filter(|_| is_allowed)).collect();
            places.push(Place { group: group.clone(), links, stays, is_allowed });
            carried.push(match kept {
                Some(at) => Carried::Kept(at),
                None => Carried::Added(arrival(&live.core, group, &caller, now)),
            });
        }
        for link in before.into_iter().flat_map(|it| it.links).flatten() {
            let is_kept = |it: &Place| it.is_allowed && it.position(&link.server).is_some();
            if !places.iter().any(is_kept) {
                close_link(link);
            }
        }
        *self.places.borrow_mut() = places;
        let news = self.session.borrow_mut().reload(now, &carried);
        self.turned.notify_waiters();
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
    pub(super) fn connect(&self, place: usize) {
        let Some(group) = self.group(place) else { return };
        let Some(server) = group.alone().map(Rc::clone) else { return self.connect_one(group) };
        let this = Weak::clone(&self.this);
        let limit = server.initialize_within();
        // A link that is there at once remembers what the client says before it is made.
        let is_known = !server.must_ask_era(&self.hello);
        let link = if is_known { self.own_link(&server) } else { None };
        let hello = self.hello.clone();
        task::spawn("mcp join", async move {
            server.ask_era(&hello).await;
            let link = link.or_else(|| this.upgrade()?.own_link(&server));
            let Some(link) = link else { return };
            let mut brought = link.bring_up(limit).await;
            let until = link.ground.now().after(server.connect_timeout);
            // A place among the children may be free in a moment: the lists' own are short-lived.
            while is_full(&brought) && !link.ground.now().reached(until) {
                tokio::time::sleep(PLACE_AFTER).await;
                brought = link.bring_up(limit).await;
            }
            if brought.is_ok() {
                let within = link.ground.live().file.mcp.answered_within.millis();
                brought = link.still_answers(within).await;
            }
            if brought.is_ok() {
                server.lists_known(&link, &hello).await;
                // Whoever fetched them may have left in the middle of it.
                server.fetch_missing(&link, &hello);
                server.lists_known(&link, &hello).await;
            }
            server.contact.set(if brought.is_ok() { Contact::Reached } else { Contact::Failed });
            let Some(client) = this.upgrade() else { return };
            if brought.is_ok() {
                link.keep_alive();
            }
            client.joined(&server, brought);
        });
    }

    /// A server, or its group, has joined, or will not.
    pub(super) fn joined(&self, server: &Server, brought: Result<(), Unavailable>) {
        // A reload may have moved it.
        let Some(at) = self.place_of(server) else { return };
        let now = self.ground.now();
        let news = match brought {
            Ok(()) => self.session.borrow_mut().connected(now, at),
            Err(it) => self.session.borrow_mut().connect_failed(now, at, it.cause),
        };
        if news == News::Changed {
            self.tell_changes();
        }
        self.turned.notify_waiters();
    }

    /// The link to a server, made if there is none; none to a server that a reload took away.
    pub(super) fn own_link(&self, server: &Rc<Server>) -> Option<Rc<Link>> {
        let mut places = self.places.borrow_mut();
        let (at, place) = places.iter_mut().find_map(|it| Some((it.position(server)?, it)))?;
        let place = place.links.get_mut(at)?;
        if let Some(link) = place {
            return Some(Rc::clone(link));
        }
        let link = server.shared_link(&self.hello).unwrap_or_else(|| {
            let owner = Owner::Client(Weak::clone(&self.this));
            Link::new(&self.ground, server, self.hello.clone(), owner)
        });
        *place = Some(Rc::clone(&link));
        Some(link)
    }

    fn known(&self, place: usize) -> Known {
        let places = self.places.borrow();
        places.get(place).map(|it| it.group.known(&self.hello)).unwrap_or_default()
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
}
