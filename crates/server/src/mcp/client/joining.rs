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
    session::{Carried, Contact, Entry, Known, News, Visibility},
};

use super::{Client, Place, arrival, close_link};
use crate::{
    mcp::{
        link::{Link, Owner},
        server::Server,
    },
    task,
};

/// How often a place among the children is asked for.
const PLACE_AFTER: Duration = Duration::from_millis(200);

fn is_full(brought: &Result<(), Unavailable>) -> bool {
    brought.as_ref().is_err_and(|it| it.cause == Cause::TooManyChildren)
}

impl Client {
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
        if self.visibility == Visibility::Request {
            (0..self.places.borrow().len()).for_each(|place| self.follow(place));
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
        if self.visibility.follows_health() {
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
    pub(super) fn connect(&self, place: usize) {
        let Some(server) = self.server(place) else { return };
        let this = Weak::clone(&self.this);
        let limit = server.initialize_within();
        // A link that is there at once remembers what the client says before it is made.
        let link = (!server.must_ask_era(&self.hello)).then(|| self.own_link(&server));
        let hello = self.hello.clone();
        task::spawn("mcp join", async move {
            server.ask_era(&hello).await;
            let link = link.or_else(|| Some(this.upgrade()?.own_link(&server)));
            let Some(link) = link else { return };
            let mut brought = link.bring_up(limit).await;
            let until = link.ground.now().after(server.connect_timeout);
            // A place among the children may be free in a moment: the lists' own are short-lived.
            while is_full(&brought) && !link.ground.now().reached(until) {
                tokio::time::sleep(PLACE_AFTER).await;
                brought = link.bring_up(limit).await;
            }
            if brought.is_ok() {
                let fresh_for = link.ground.live().file.mcp.fresh_for.millis();
                brought = link.still_answers(fresh_for).await;
            }
            if brought.is_ok() {
                server.lists_known(&link, &hello).await;
                // Whoever fetched them may have left in the middle of it.
                server.fetch_missing(&link, &hello);
                server.lists_known(&link, &hello).await;
            }
            server.contact.set(if brought.is_ok() { Contact::Reached } else { Contact::Failed });
            let Some(client) = this.upgrade() else { return };
            // A reload may have moved it.
            let at = client.places.borrow().iter().position(|it| Rc::ptr_eq(&it.server, &server));
            let Some(at) = at else { return };
            let now = client.ground.now();
            let news = match brought {
                Ok(()) => {
                    link.keep_alive();
                    client.session.borrow_mut().connected(now, at)
                }
                Err(it) => client.session.borrow_mut().connect_failed(now, at, it.cause),
            };
            if news == News::Changed {
                client.tell_changes();
            }
            client.turned.notify_waiters();
        });
    }

    fn own_link(&self, server: &Rc<Server>) -> Rc<Link> {
        let mut places = self.places.borrow_mut();
        // A reload may have taken it away; the link is then made for nobody, and dropped.
        let mut place = places.iter_mut().find(|it| Rc::ptr_eq(&it.server, server));
        if let Some(link) = place.as_ref().and_then(|it| it.link.clone()) {
            return link;
        }
        let link = server.shared_link(&self.hello).unwrap_or_else(|| {
            let owner = Owner::Client(Weak::clone(&self.this));
            Link::new(&self.ground, server, self.hello.clone(), owner)
        });
        if let Some(place) = &mut place {
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
}
