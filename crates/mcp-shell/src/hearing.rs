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

use std::rc::Rc;

use serde_json::value::RawValue;
use tidegate_mcp::{
    listing::Kind,
    message::{self, Id, METHOD_NOT_FOUND, Params},
    stateless::listen,
};

use super::{
    client::cancelled_id,
    conversation::{About, Conversation, Ear},
    front::LEVELS,
    link::{Link, Owner},
    party::Party,
    shelf::fetch,
    stream::Weight,
    transport::Failure,
};

impl Ear for Link {
    fn asked(&self, by: &Rc<Conversation>, id: Id, method: &str, about: About<'_>) {
        if by.is_stateless() {
            // That era has no requests of servers, and no way to answer one.
            return;
        }
        let party = about.party.or_else(|| self.guess(by));
        let client = self.client().or_else(|| party.as_ref().and_then(|it| it.client.upgrade()));
        match client {
            Some(client) => client.ask(by, id, (method, about.params), party),
            None => {
                let message = "nobody can be asked over this connection";
                by.tell(message::error(Some(&id), METHOD_NOT_FOUND, message, None));
            }
        }
    }

    fn told(&self, by: &Rc<Conversation>, method: &str, about: About<'_>) {
        match method {
            "notifications/progress" => tell_progress(about),
            "notifications/cancelled" => {
                if let (Some(client), Some(id)) = (self.client(), cancelled_id(about.params)) {
                    client.unask(by, &id);
                }
            }
            "notifications/resources/updated" => self.tell_update(about.params),
            // The gateway's own stream: what it brings is told by the lines around this one.
            listen::ACKNOWLEDGED => {}
            _ => match changed_kinds(method) {
                Some(kinds) => {
                    for hello in self.speaks_for() {
                        fetch(&self.server, self, &hello, kinds);
                    }
                }
                None => self.tell_client(by, method, about),
            },
        }
    }

    fn ended(&self, which: &Rc<Conversation>, failure: Failure) {
        let Some(generation) = self.generation_of(which) else { return };
        let cause = failure.cause;
        tracing::debug!(server = &*self.server.name, %cause, "a conversation is over");
        if self.server.is_child() {
            self.server.exited(self.made_at.get(), &which.last_words());
        }
        self.lost(generation);
    }
}

impl Link {
    /// Whether it belongs to one client.
    fn owned(&self) -> bool {
        matches!(self.owner, Owner::Client(_))
    }

    /// Whose call it may be about, where the server does not say: over a client's own connection
    /// the latest. Several programs may stand behind a client without a session; there it is the
    /// only one, or nobody's (S44).
    fn guess(&self, by: &Conversation) -> Option<Rc<Party>> {
        let client = self.client()?;
        if client.hello.is_stateless() { by.only_party() } else { by.latest_party() }
    }

    /// Hands on what is not understood here: log lines, the status of things to come.
    fn tell_client(&self, by: &Rc<Conversation>, method: &str, about: About<'_>) {
        let party = about.party.or_else(|| {
            let shared = || by.latest_party().filter(|_| by.serves_one_client());
            if self.owned() { self.guess(by) } else { shared() }
        });
        let message = message::notification(method, about.params.map(RawValue::get));
        if let Some(party) = party {
            if is_wanted(&party, method, about.params) {
                party.desk.stream().send(message.as_bytes(), Weight::Notice);
            }
        } else if let Some(client) = self.client().filter(|it| !it.hello.is_stateless()) {
            client.streams.standing().send(message.as_bytes(), Weight::Notice);
        }
    }

    fn tell_update(&self, params: Option<&RawValue>) {
        let method = "notifications/resources/updated";
        let Ok(mut params) = Params::parse(params) else { return };
        // The stream it came on is the gateway's own.
        drop(params.strip_reserved());
        let told = params.to_json();
        if let Some(client) = self.client() {
            return client.notify(method, Some(&told));
        }
        if let (Some(uri), Some(hub)) = (params.text("uri"), self.ground.hub()) {
            hub.resource_updated(&self.server, &uri, Some(&told));
        }
    }
}

/// A client without a session wants log lines only if its request says from which level on.
fn is_wanted(party: &Party, method: &str, params: Option<&RawValue>) -> bool {
    let is_stateless = party.client.upgrade().is_some_and(|client| client.hello.is_stateless());
    if !is_stateless || method != "notifications/message" {
        return true;
    }
    let rank = |level: &str| LEVELS.iter().position(|it| *it == level);
    let level = Params::parse(params).ok().and_then(|params| params.text("level"));
    let wanted = party.level.as_deref().and_then(rank);
    wanted.is_some_and(|wanted| level.and_then(|it| rank(&it)).is_none_or(|it| it >= wanted))
}

/// Progress carries the id of our call; the client gets its own token back.
fn tell_progress(about: About<'_>) {
    if let (Some(party), Some(params)) = (about.party, about.params) {
        party.desk.tell_progress(params.get().to_owned());
    }
}

fn changed_kinds(method: &str) -> Option<&'static [Kind]> {
    match method {
        "notifications/tools/list_changed" => Some(&[Kind::Tools]),
        "notifications/prompts/list_changed" => Some(&[Kind::Prompts]),
        "notifications/resources/list_changed" => Some(&[Kind::Resources, Kind::Templates]),
        _ => None,
    }
}
