//! A client's links to the members of a group: one is used, the others are made when needed.
//!
//! Rules kept here:
//! - A session opens with the member that the core chooses; if that cannot be reached, with the
//!   next one. The group is out only if none can.
//! - A session stays at the member that answered it last. When it moves, what it had told the old
//!   one is told to the new one: its log level, its subscriptions. Only the connection in use is
//!   kept alive.

use std::rc::{Rc, Weak};
use std::sync::Arc;

use serde_json::value::RawValue;
use tidegate_mcp::{
    call::{Code, End, Errand, Unavailable},
    cause::Cause,
    raw::quoted,
    session::Contact,
    tour::{Leg, Tour},
};
use tidegate_runtime::{rng, task};

use super::Client;
use crate::{
    group::Group,
    link::{Ask, Link, Owner},
    server::Server,
};

impl Client {
    /// Makes this client's connection to one member of a group, and lets the group join.
    pub(super) fn connect_one(&self, group: Group) {
        let this = Weak::clone(&self.this);
        task::spawn("mcp join", async move {
            let Some(client) = this.upgrade() else { return };
            let brought = client.bring_up_one(&group).await;
            let Some(server) = group.servers.first() else { return };
            match brought {
                Ok(server) => {
                    client.stay_at(&group, &server.name);
                    client.joined(&server, Ok(()));
                }
                Err(unavailable) => client.joined(server, Err(unavailable)),
            }
        });
    }

    /// The first member that answers, in the order that the core chooses.
    async fn bring_up_one(&self, group: &Group) -> Result<Rc<Server>, Unavailable> {
        let limit = group.initialize_within();
        let tour = Tour::new(&group.name, Errand::Connect, self.ground.now(), limit);
        let mut tour = tour.staying_at(self.stays_at(group));
        loop {
            let (live, now) = (self.ground.live(), self.ground.now());
            let leg = self.ground.with_notes(|it| tour.next(&live.core, now, rng::draw(), it));
            let (name, mut call) = match leg {
                Leg::At(name, call) => (name, call),
                Leg::Over(End::Unavailable(it)) => return Err(it),
                Leg::Over(End::Answered | End::Connected) => break,
            };
            let link = self.member_link(group, &name).await;
            let (Some(link), Some(server)) = (link, group.member(&name)) else { break };
            let end = link.bring(&mut call).await;
            if end != End::Connected {
                server.contact.set(Contact::Failed);
            }
            match tour.ended(call, end) {
                Some(End::Unavailable(it)) => return Err(it),
                Some(End::Answered | End::Connected) => {
                    return match self.takes_part(server, &link).await {
                        Ok(()) => Ok(Rc::clone(server)),
                        Err(it) => self.bring_up_other(group, server, it).await,
                    };
                }
                None => {}
            }
        }
        let (server, cause) = (group.name.to_string(), Cause::Closing);
        Err(Unavailable { server, cause, retry_after: None, code: Code::BackendUnavailable })
    }

    /// A connection was there and its server is silent: another member may answer.
    async fn bring_up_other(
        &self,
        group: &Group,
        silent: &Rc<Server>,
        mut why: Unavailable,
    ) -> Result<Rc<Server>, Unavailable> {
        for server in group.servers.iter().filter(|it| !Rc::ptr_eq(it, silent)) {
            let Some(link) = self.member_link(group, &server.name).await else { continue };
            let brought = match link.bring_up(server.initialize_within()).await {
                Ok(()) => self.takes_part(server, &link).await,
                Err(it) => Err(it),
            };
            match brought {
                Ok(()) => return Ok(Rc::clone(server)),
                Err(it) => why = it,
            }
        }
        Err(why)
    }

    /// A member whose connection is there answers, and its lists are known.
    async fn takes_part(&self, server: &Rc<Server>, link: &Rc<Link>) -> Result<(), Unavailable> {
        let within = self.ground.live().file.mcp.answered_within.millis();
        let answers = link.still_answers(within).await;
        if answers.is_ok() {
            self.lists_of(server, link).await;
        }
        server.contact.set(if answers.is_ok() { Contact::Reached } else { Contact::Failed });
        answers
    }

    async fn lists_of(&self, server: &Rc<Server>, link: &Rc<Link>) {
        server.lists_known(link, &self.hello).await;
        // Whoever fetched them may have left in the middle of it.
        server.fetch_missing(link, &self.hello);
        server.lists_known(link, &self.hello).await;
    }

    /// This client's link to a member; `None` if that is not in the config any more.
    pub(crate) async fn member_link(&self, group: &Group, name: &str) -> Option<Rc<Link>> {
        let server = group.member(name)?;
        if let Some(link) = self.link_to(server) {
            return Some(link);
        }
        server.ask_era(&self.hello).await;
        let link = self.own_link(server)?;
        let level = self.level.borrow().clone();
        if let Some(level) = level.filter(|_| !server.is_shared_child() && !link.is_stateless()) {
            link.set_level(&level);
        }
        Some(link)
    }

    /// The member of a group that holds this client's state. A client without a session has none.
    pub(crate) fn stays_at(&self, group: &Group) -> Option<Arc<str>> {
        if self.hello.is_stateless() {
            return None;
        }
        let places = self.places.borrow();
        places.iter().find(|it| it.group.name == group.name)?.stays.clone()
    }

    /// This client's state is at that member from here on.
    pub(crate) fn stay_at(&self, group: &Group, member: &str) {
        let before = {
            let mut places = self.places.borrow_mut();
            let place = places.iter_mut().find(|it| it.group.name == group.name);
            let Some(place) = place else { return };
            place.stays.replace(member.into())
        };
        let link = |name: &str| group.member(name).and_then(|it| self.link_to(it));
        let Some(new) = link(member) else { return };
        new.keep_alive();
        let old = before.filter(|it| **it != *member).and_then(|it| link(&it));
        let Some(old) = old else { return };
        if matches!(old.owner, Owner::Client(_)) {
            old.rest();
        }
        carry_over(&old, &new);
    }
}

/// Subscribes at the new member to what was subscribed to at the old one.
fn carry_over(old: &Link, new: &Rc<Link>) {
    let wanted = old.subscriptions.borrow().clone();
    for uri in wanted {
        if !new.subscriptions.borrow_mut().insert(uri.clone()) {
            continue;
        }
        let new = Rc::clone(new);
        let params = RawValue::from_string(format!(r#"{{"uri":{}}}"#, quoted(&uri))).ok();
        let errand = Errand::Repeatable;
        let ask = Ask { method: "resources/subscribe", params, errand, party: None };
        task::spawn("mcp subscription", async move { drop(new.ask(ask).await) });
    }
}
