//! A kept connection to one server: whose it is, what is known over it, and how it ends.
//!
//! Rules kept here:
//! - A link speaks what its client speaks if the server does, and else the other era. The gateway's
//!   own asks over HTTP for the stateless one first: a server of either era can refuse that
//!   unharmed. A program may not answer a question it does not know at all, so it is greeted in the
//!   other order.
//! - Whoever speaks the stateless era has no session to lose: what the client told is said again
//!   with every request.

use std::collections::BTreeSet;
use std::sync::Arc;

use tidegate_core::time::Now;

use super::Hub;
use super::connection::ServerReply;
use super::ids::{ClientId, ConnectionId, LinkId, ServerId};
use super::keepalive_task::KeptAlive;
use super::listening::Listening;
use super::making::Making;
use super::profile::ClientProfile;
use super::schedule::Task;
use crate::{
    call::{Code, Unavailable},
    cause::Cause,
    era::Era,
    greeting::{is_about_the_era, may_be_about_the_era},
    health::Failure,
    link::{Generation, Link, LinkState},
    listing::ServerInfo,
    message::read_error,
    stateless::discover,
};

/// A kept connection.
pub(super) struct KeptLink {
    pub(super) server: ServerId,
    /// The client whose it is; none: the gateway's own.
    pub(super) owner: Option<ClientId>,
    pub(super) profile: Arc<ClientProfile>,
    /// The eras to try, in this order.
    pub(super) wishes: &'static [Era],
    pub(super) machine: Link,
    /// The conversation that was made last.
    pub(super) talk: Option<(Generation, ConnectionId)>,
    /// The attempt to make one that is under way.
    pub(super) making: Option<Box<Making>>,
    pub(super) keepalive: Option<Box<KeptAlive>>,
    pub(super) info: Option<Arc<ServerInfo>>,
    pub(super) level: Option<String>,
    pub(super) subscriptions: BTreeSet<String>,
    pub(super) listening: Option<Box<Listening>>,
    /// Who waits for the question whether the server still answers, while it is asked.
    pub(super) check: Option<Vec<Task>>,
    /// What the last such question found.
    pub(super) checked: Option<Result<(), Unavailable>>,
    /// When the connection was made, and when something last went over it.
    pub(super) made_at: Now,
    pub(super) sent_at: Now,
    pub(super) heard_at: Now,
    /// Who waits for an attempt to end.
    pub(super) waiters: Vec<Task>,
}

impl Hub {
    /// A link of a client's, or of the gateway's own, that is made when it is first needed.
    pub(super) fn link_for(
        &mut self,
        now: Now,
        server: ServerId,
        owner: Option<ClientId>,
        profile: Arc<ClientProfile>,
    ) -> LinkId {
        let is_child = self.servers.get(server).is_some_and(|it| it.is_child());
        let is_asking = owner.is_none() && !is_child;
        let wishes: &'static [Era] = match profile.era {
            Era::Sessions if !is_asking => &[Era::Sessions, Era::Stateless],
            Era::Sessions | Era::Stateless => &[Era::Stateless, Era::Sessions],
        };
        self.new_link(now, server, owner, profile, wishes)
    }

    pub(super) fn new_link(
        &mut self,
        now: Now,
        server: ServerId,
        owner: Option<ClientId>,
        profile: Arc<ClientProfile>,
        wishes: &'static [Era],
    ) -> LinkId {
        self.links.insert(KeptLink {
            server,
            owner,
            profile,
            wishes,
            machine: Link::new(),
            talk: None,
            making: None,
            keepalive: None,
            info: None,
            level: None,
            subscriptions: BTreeSet::new(),
            listening: None,
            check: None,
            checked: None,
            made_at: now,
            sent_at: now,
            heard_at: now,
            waiters: Vec::new(),
        })
    }

    /// An attempt has ended, or the link was closed: whoever waits looks again.
    pub(super) fn link_turned(&mut self, link: LinkId) {
        if let Some(link) = self.links.get_mut(link) {
            self.schedule.wake_all(link.waiters.drain(..));
        }
    }

    /// The end of an attempt, once it has ended: its failure, if it failed.
    pub(super) fn settled(&self, link: LinkId, generation: Generation) -> Option<Option<Failure>> {
        let Some(link) = self.links.get(link) else { return Some(None) };
        let machine = &link.machine;
        let is_under_way =
            machine.state() == LinkState::Connecting && machine.generation() == generation;
        (!is_under_way).then(|| machine.failure(generation))
    }

    /// The conversation under way, if there is one that is ready.
    pub(super) fn ready_talk(&self, link: LinkId) -> Option<ConnectionId> {
        let link = self.links.get(link)?;
        let is_ready = link.machine.state() == LinkState::Ready;
        link.talk.filter(|_| is_ready).map(|(_, talk)| talk)
    }

    /// Whether the server is spoken to without a session.
    pub(super) fn is_stateless(&self, link: LinkId) -> bool {
        self.era_of(link) == Era::Stateless
    }

    /// The era that is spoken over it.
    pub(super) fn era_of(&self, link: LinkId) -> Era {
        let talk = self.links.get(link).and_then(|link| link.talk);
        let talk = talk.and_then(|(_, talk)| self.connections.get(talk));
        talk.map_or(Era::Sessions, |talk| talk.era)
    }

    /// Whether clients may still speak over it: the gateway's own serves them while the server is
    /// spoken to without sessions (or is a program that all share), a client's own while the era
    /// that it speaks is not known to be gone.
    pub(super) fn is_fit(&self, id: LinkId) -> bool {
        let Some(link) = self.links.get(id) else { return false };
        let Some(server) = self.servers.get(link.server) else { return false };
        match link.owner {
            None => server.is_shared_child() || server.eras.speaks(Era::Stateless) == Some(true),
            Some(_) => server.eras.speaks(self.era_of(id)) != Some(false),
        }
    }

    /// What asks the server for a sign of life.
    pub(super) fn ping_method(&self, link: LinkId) -> &'static str {
        if self.is_stateless(link) { discover::METHOD } else { "ping" }
    }

    /// On whose behalf lists are fetched over it: its client's, or everybody's who has looked.
    pub(super) fn speaks_for(&self, id: LinkId) -> Vec<Arc<ClientProfile>> {
        let Some(link) = self.links.get(id) else { return Vec::new() };
        let mut all = vec![Arc::clone(&link.profile)];
        if self.is_stateless(id)
            && link.owner.is_none()
            && let Some(server) = self.servers.get(link.server)
        {
            all.extend(server.lists.profiles_in(Era::Stateless));
        }
        all
    }

    /// The generation that a conversation belongs to, if it is the one at work.
    pub(super) fn generation_of(&self, link: LinkId, talk: ConnectionId) -> Option<Generation> {
        self.links.get(link)?.talk.filter(|it| it.1 == talk).map(|it| it.0)
    }

    /// The connection of this generation is gone.
    pub(super) fn link_lost(&mut self, id: LinkId, generation: Generation) {
        let Some(link) = self.links.get_mut(id) else { return };
        link.machine.lost(generation);
        let server = link.server;
        self.link_turned(id);
        self.note_record_of(id);
        // A shared program is started again when its supervisor allows.
        if self.servers.get(server).is_some_and(|it| it.is_shared_child()) {
            self.schedule.wake(Task::Monitor(server));
        }
    }

    /// A server that does not speak the era any more refused the request unread, in words of the
    /// other or in none: it is greeted anew.
    pub(super) fn doubted(&mut self, link: LinkId, reply: ServerReply, spoken: Era) -> ServerReply {
        let is_doubtful = match &reply {
            ServerReply::Answer(Err(error)) => {
                read_error(error).is_some_and(|it| is_about_the_era(&it))
            }
            ServerReply::Answer(Ok(_)) => false,
            ServerReply::Failed(failure) => may_be_about_the_era(failure, spoken),
        };
        if !is_doubtful {
            return reply;
        }
        if let Some(server) = self.links.get(link).map(|it| it.server) {
            self.set_eras(server, Default::default());
        }
        ServerReply::Failed(Failure::session_lost())
    }

    /// No keepalive any more, from this moment on.
    pub(super) fn rest(&mut self, id: LinkId) {
        self.stop_keepalive(id);
    }

    /// Nothing is sent any more, no keepalive either, and nobody connects.
    pub(super) fn stop_link(&mut self, id: LinkId) {
        self.stop_keepalive(id);
        self.stop_listening(id);
        self.drop_making(id);
        if let Some(link) = self.links.get_mut(id) {
            link.machine.close();
        }
        self.link_turned(id);
    }

    /// Closes a link in good order: the server is told.
    pub(super) fn close_link(&mut self, id: LinkId) {
        self.stop_link(id);
        let Some(link) = self.links.remove(id) else { return };
        if let Some(waiters) = link.check {
            self.schedule.wake_all(waiters);
        }
        self.schedule.wake_all(link.waiters);
        if let Some((_, talk)) = link.talk {
            self.close_connection(talk);
        }
    }

    /// Closes a client's own link. The gateway's goes on.
    pub(super) fn close_own_link(&mut self, id: LinkId) {
        if self.links.get(id).is_some_and(|link| link.owner.is_some()) {
            self.close_link(id);
        }
    }

    pub(super) fn unavailable(&self, server: ServerId, cause: Cause) -> Unavailable {
        let server = self.servers.get(server).map(|it| it.name.to_string()).unwrap_or_default();
        Unavailable { server, cause, retry_after: None, code: Code::BackendUnavailable }
    }
}
