//! What a server says of its own accord, and to whom it goes.
//!
//! | it says | it goes to |
//! |---|---|
//! | progress | the stream of the call it is about, with the client's own token |
//! | a log line | the stream of the call it came with, else the client's standing stream |
//! | a list has changed | nobody yet: the list is fetched, then whoever sees it is told |
//! | a resource was updated | the client that subscribed to it |
//! | a question (sampling, elicitation, roots) | the client whose call caused it |
//!
//! Rules kept here:
//! - Over a connection that several clients share, what cannot be traced to one client's call
//!   reaches nobody, except updates of resources, which clients subscribed to by name (S44).

use serde_json::value::RawValue;

use super::ids::{CallId, ClientId, ConnectionId, LinkId, ServerId};
use super::{Env, Hub};
use crate::{
    era::Era,
    listing::Kind,
    message::{self, Id, METHOD_NOT_FOUND, Params},
    replay::Weight,
    stateless::listen,
};

/// Levels of the protocol, from the least to the most severe.
pub(super) const LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

impl Hub {
    /// A server asks for something. `origin` is whose call it belongs to, where that is known.
    pub(super) fn server_asks(
        &mut self,
        env: &mut Env<'_>,
        talk: ConnectionId,
        id: Id,
        asked: (&str, Option<&RawValue>),
        origin: Option<CallId>,
    ) {
        let Some(conversation) = self.connections.get(talk) else { return };
        if conversation.era == Era::Stateless {
            // That era has no requests of servers, and no way to answer one.
            return;
        }
        let link = conversation.link;
        let origin = origin.or_else(|| self.guess(link, talk));
        let client = self.owner_of(link);
        let client = client.or_else(|| origin.and_then(|it| Some(self.calls.get(it)?.client)));
        match client {
            Some(client) => self.ask_client(env, client, (talk, id), asked, origin),
            None => {
                let message = "nobody can be asked over this connection";
                let refusal = message::error(Some(&id), METHOD_NOT_FOUND, message, None);
                self.tell_server(talk, refusal);
            }
        }
    }

    /// A server tells something.
    pub(super) fn server_tells(
        &mut self,
        env: &mut Env<'_>,
        talk: ConnectionId,
        (method, params): (&str, Option<&RawValue>),
        origin: Option<CallId>,
    ) {
        let Some(conversation) = self.connections.get(talk) else { return };
        let (link, server) = (conversation.link, conversation.server);
        match method {
            "notifications/progress" => {
                if let (Some(origin), Some(params)) = (origin, params) {
                    self.tell_progress(origin, params.get().to_owned());
                }
            }
            "notifications/cancelled" => {
                if let (Some(client), Some(id)) = (self.owner_of(link), cancelled_id(params)) {
                    self.unask(client, talk, &id);
                }
            }
            listen::UPDATED => self.tell_update(link, server, params),
            // The gateway's own stream: what it brings is told by the lines around this one.
            listen::ACKNOWLEDGED => {}
            _ => match changed_kinds(method) {
                Some(kinds) => {
                    for profile in self.speaks_for(link) {
                        self.fetch(env, server, link, &profile, kinds);
                    }
                }
                None => self.tell_client(link, talk, (method, params), origin),
            },
        }
    }

    /// The client whose link it is; none if it is the gateway's own.
    fn owner_of(&self, link: LinkId) -> Option<ClientId> {
        let owner = self.links.get(link)?.owner;
        owner.filter(|owner| !self.is_dead(*owner))
    }

    /// Whose call it may be about, where the server does not say: over a client's own connection
    /// the latest. Several programs may stand behind a client without a session; there it is the
    /// only one, or nobody's (S44).
    fn guess(&self, link: LinkId, talk: ConnectionId) -> Option<CallId> {
        let client = self.clients.get(self.owner_of(link)?)?;
        let mut origins = self.origins(talk);
        let latest = origins.next()?;
        let is_only = !client.profile.is_stateless() || origins.all(|other| other == latest);
        is_only.then_some(latest)
    }

    /// The latest call over a connection that all clients share, if all calls are of one client.
    fn latest_of_one(&self, talk: ConnectionId) -> Option<CallId> {
        let client = |call: CallId| self.calls.get(call).map(|it| it.client);
        let mut origins = self.origins(talk);
        let latest = origins.next()?;
        origins.all(|other| client(other) == client(latest)).then_some(latest)
    }

    /// Hands on what is not understood here: log lines, the status of things to come.
    fn tell_client(
        &mut self,
        link: LinkId,
        talk: ConnectionId,
        (method, params): (&str, Option<&RawValue>),
        origin: Option<CallId>,
    ) {
        let owner = self.owner_of(link);
        let origin = origin.or_else(|| match owner {
            Some(_) => self.guess(link, talk),
            None => self.latest_of_one(talk),
        });
        let message = message::notification(method, params.map(RawValue::get));
        if let Some(origin) = origin {
            let Some(stream) = self.calls.get(origin).map(|it| it.stream) else { return };
            if self.is_wanted(origin, method, params) {
                self.send_for_call(origin, stream, message.as_bytes(), Weight::Notice);
            }
            return;
        }
        let client = owner.and_then(|owner| self.clients.get(owner));
        if let Some(owner) = owner
            && client.is_some_and(|it| !it.profile.is_stateless())
        {
            self.send_event(Self::standing(owner), message.as_bytes(), Weight::Notice);
        }
    }

    fn tell_update(&mut self, link: LinkId, server: ServerId, params: Option<&RawValue>) {
        let Ok(mut params) = Params::parse(params) else { return };
        // The stream it came on is the gateway's own.
        drop(params.strip_reserved());
        let told = params.to_json();
        if let Some(client) = self.owner_of(link) {
            return self.notify_client(client, listen::UPDATED, Some(&told));
        }
        let Some(uri) = params.text("uri") else { return };
        for client in self.open_clients() {
            let is_its = self.slot_of(client, server).is_some();
            let kept = self.clients.get(client);
            if is_its && kept.is_some_and(|it| it.subscriptions.contains(&uri)) {
                self.notify_client(client, listen::UPDATED, Some(&told));
            }
        }
    }

    /// A client without a session wants log lines only if its request says from which level on.
    fn is_wanted(&self, call: CallId, method: &str, params: Option<&RawValue>) -> bool {
        let Some(call) = self.calls.get(call) else { return false };
        let client = self.clients.get(call.client);
        let is_stateless = client.is_some_and(|it| it.profile.is_stateless());
        if !is_stateless || method != "notifications/message" {
            return true;
        }
        let rank = |level: &str| LEVELS.iter().position(|it| *it == level);
        let level = Params::parse(params).ok().and_then(|params| params.text("level"));
        let wanted = call.level.as_deref().and_then(rank);
        wanted.is_some_and(|wanted| level.and_then(|it| rank(&it)).is_none_or(|it| it >= wanted))
    }
}

/// The id of the request that a cancellation is about.
pub(super) fn cancelled_id(params: Option<&RawValue>) -> Option<Id> {
    let params = Params::parse(params).ok()?;
    Id::read(params.get("requestId")?).ok()
}

fn changed_kinds(method: &str) -> Option<&'static [Kind]> {
    match method {
        "notifications/tools/list_changed" => Some(&[Kind::Tools]),
        "notifications/prompts/list_changed" => Some(&[Kind::Prompts]),
        "notifications/resources/list_changed" => Some(&[Kind::Resources, Kind::Templates]),
        _ => None,
    }
}
