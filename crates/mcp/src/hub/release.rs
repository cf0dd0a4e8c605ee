//! A session leaves this replica: another one took it over, or is to.
//!
//! Rules kept here:
//! - Nothing is deleted at servers: their sessions are the next owner's. Programs end, since they
//!   are nobody else's.
//! - A session that was taken over goes at once: calls under way end by name.
//! - At the end of the gateway a session goes as soon as no call of it is under way; what is left
//!   when everything ends goes then.
//! - Whoever stands for a client without a session stays: it has nothing to hand over.

use std::sync::Arc;

use tidegate_core::{outcome::OutcomeKind, time::Millis};

use super::effect::Effect;
use super::ids::{CallId, ClientId, LinkId};
use super::schedule::Task;
use super::{Env, Hub};
use crate::{
    cause::{Cause, Delivery},
    health::Failure,
    message::{INTERNAL_ERROR, error_object},
};

/// Calls that end by name do so at once; whatever has not by then is dropped.
const GRACE: Millis = Millis::seconds(1);

impl Hub {
    /// Another replica owns a session.
    pub(super) fn let_go(&mut self, env: &mut Env<'_>, session: &str) {
        if let Some(client) = self.sessions.get(session).copied() {
            self.leave(env, client);
        }
    }

    /// The sessions are to go to other replicas.
    pub(super) fn release_all(&mut self, env: &mut Env<'_>) {
        self.is_releasing = true;
        let all: Vec<ClientId> = self.sessions.values().copied().collect();
        all.into_iter().for_each(|client| self.release_if_quiet(env, client));
    }

    /// A session is free for others once nothing of it is under way.
    pub(super) fn release_if_quiet(&mut self, env: &mut Env<'_>, client: ClientId) {
        if self.is_releasing && !self.calls.iter().any(|(_, it)| it.client == client) {
            self.release(env, client);
        }
    }

    /// A session is free for others.
    pub(super) fn release(&mut self, env: &mut Env<'_>, client: ClientId) {
        let Some((session, state)) = self.record_of(client) else { return };
        self.leave(env, client);
        self.out.push(Effect::SessionReleased { session, state });
    }

    /// A session is not here any more. Its servers are left as they are.
    fn leave(&mut self, env: &mut Env<'_>, id: ClientId) {
        let Some(client) = self.clients.get_mut(id) else { return };
        if std::mem::replace(&mut client.is_over, true) {
            return;
        }
        let session = Arc::clone(&client.id);
        self.unsubscribe_all(id);
        let Some(client) = self.clients.get_mut(id) else { return };
        let slots = std::mem::take(&mut client.slots);
        self.sessions.remove(&session);
        self.drop_record(id);
        self.count_sessions();
        // What only waits has no server to be named by; whoever asked one hears which.
        let own = self.calls.iter().filter(|(_, it)| it.client == id);
        let own: Vec<(CallId, bool)> =
            own.map(|(call, it)| (call, it.relay.exchange().is_some())).collect();
        for link in slots.into_iter().flat_map(|it| it.links).flatten() {
            self.leave_link(link);
        }
        for (call, _) in own.iter().filter(|(_, is_asking)| !is_asking) {
            let error = error_object(INTERNAL_ERROR, &Cause::Moved.to_string(), None);
            self.complete(env, *call, Err(error));
        }
        self.end_stream(Self::standing(id));
        self.schedule.arm(Task::Ending(id), env.now.after(GRACE));
        self.end_if_drained(env, id, false);
    }

    /// A client's own link is given up without a word to its server.
    fn leave_link(&mut self, id: LinkId) {
        let Some(link) = self.links.get(id).filter(|it| it.owner.is_some()) else { return };
        let is_child = self.servers.get(link.server).is_none_or(|it| it.is_child());
        self.stop_keepalive(id);
        self.stop_listening(id);
        self.drop_making(id);
        if let Some(link) = self.links.get_mut(id) {
            link.machine.close();
        }
        self.link_turned(id);
        let Some(link) = self.links.remove(id) else { return };
        self.schedule.wake_all(link.check.into_iter().flatten());
        self.schedule.wake_all(link.waiters);
        let Some((_, talk)) = link.talk else { return };
        let moved = Failure::of(Cause::Moved, OutcomeKind::Cancelled);
        self.finish(talk, Failure { delivery: Delivery::Maybe, ..moved });
        match is_child {
            true => self.close_connection(talk),
            false => self.drop_connection(talk),
        }
    }
}
