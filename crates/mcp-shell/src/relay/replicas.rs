//! A request that one of several equivalent servers answers.
//!
//! The tour decides ([`tidegate_mcp::tour`]): whom to ask, and whether to go on after a failure.
//! Here each of its legs becomes a request over the client's link to that member.
//!
//! Rules kept here:
//! - A link to a member is made when the member is first needed.
//! - Once a member has answered, what follows (questions, more requests of the same call) stays
//!   with it.
//! - The client hears of the group; the log has every attempt with its member.

use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use tidegate_mcp::{
    call::{End, Unavailable},
    cause::Cause,
    link as machine,
    tour::{Leg, Tour},
};
use tidegate_runtime::rng;

use super::{
    super::{group::Group, link::Carried},
    Answered, Ask, Client, Link, Relayed, bridge, prepared, unavailable,
};

/// Has one member of a group answer.
pub(super) async fn ask(client: &Rc<Client>, group: &Group, what: Relayed, ask: Ask) -> Answered {
    let Some(first) = group.servers.first() else {
        return Answered::Unavailable(unavailable(group, Cause::Closing));
    };
    let ground = &client.ground;
    let tour = Tour::new(&group.name, ask.errand, ground.now(), first.call_timeout);
    let mut tour = tour.staying_at(client.stays_at(group));
    let mut answer: Option<(Rc<Link>, Result<Bytes, Bytes>)> = None;
    let end = loop {
        let (live, now) = (ground.live(), ground.now());
        let leg = ground.with_notes(|notes| tour.next(&live.core, now, rng::draw(), notes));
        let (server, mut call) = match leg {
            Leg::At(server, call) => (server, call),
            Leg::Over(end) => break end,
        };
        let Some(link) = client.member_link(group, &server).await else {
            // A reload took it away: as a link that is closing.
            let mut gone = machine::Link::new();
            gone.close();
            ground.with_notes(|notes| call.go(&mut gone, now, notes));
            let closing = End::Unavailable(unavailable(group, Cause::Closing));
            match tour.ended(call, closing) {
                Some(end) => break end,
                None => continue,
            }
        };
        if let Some(answered) = prepared(client, &link, what, &ask) {
            client.stay_at(group, &link.server.name);
            return answered;
        }
        bridge::prepare(client, &link, &ask).await;
        let (carried, waited) = link.attempt(call, &ask, tour.patience()).await;
        tour.waited(waited);
        match carried {
            Carried::Known(known) => return named(group, Answered::Unavailable(known)),
            Carried::Ended(call, end, reply) => {
                answer = reply.map(|reply| (link, reply)).or(answer);
                if let Some(end) = tour.ended(call, end) {
                    break end;
                }
            }
        }
    };
    note(group, &tour);
    if let Some(member) = tour.stays() {
        client.stay_at(group, &member);
    }
    let answered = match (end, answer) {
        (End::Answered, Some((link, reply))) => {
            bridge::go_on(client, &link, ask, Answered::Reply(reply)).await
        }
        (End::Unavailable(unavailable), _) => Answered::Unavailable(unavailable),
        (End::Answered | End::Connected, _) => {
            Answered::Unavailable(unavailable(group, Cause::Closing))
        }
    };
    named(group, answered)
}

/// Clients know the group and not its members.
fn named(group: &Group, answered: Answered) -> Answered {
    match answered {
        Answered::Unavailable(it) => {
            Answered::Unavailable(Unavailable { server: group.name.to_string(), ..it })
        }
        answered @ Answered::Reply(_) => answered,
    }
}

/// Tells of a call that did not end where it began.
fn note(group: &Group, tour: &Tour) {
    let attempts = tour.attempts();
    if attempts.len() < 2 {
        return;
    }
    let told = |it: &tidegate_mcp::tour::Attempted| match (it.cause, it.outcome) {
        (Some(cause), _) => format!("{}: {cause}", it.server),
        (None, Some(outcome)) => format!("{}: {}", it.server, outcome.word()),
        (None, None) => format!("{}: answered", it.server),
    };
    let attempts: Vec<String> = attempts.iter().map(told).collect();
    let server: &Arc<str> = &group.name;
    tracing::debug!(server = &**server, attempts = attempts.join("; "), "a call went on");
}
