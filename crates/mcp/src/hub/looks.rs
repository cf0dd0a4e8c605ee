//! How long a client waits for servers that are still on their way.
//!
//! The session machine says how long ([`crate::session`]); whoever waits is looked at again when
//! something about the client's servers has changed, or when that time is over.

use std::sync::Arc;

use tidegate_core::time::Now;

use super::ids::ClientId;
use super::schedule::Task;
use super::server::ServerGroup;
use super::{Env, Hub};
use crate::{
    cause::Cause,
    session::{Caller, Entry, Known},
};

impl Hub {
    /// Whether a call may go to a server; whoever asks, if it has to wait for one that is still
    /// connecting.
    pub(super) fn enter(
        &mut self,
        env: &mut Env<'_>,
        client: ClientId,
        group: &ServerGroup,
        mut caller: Caller,
        task: Task,
    ) -> Result<Entry, Caller> {
        let slot = group.members.iter().find_map(|server| self.slot_of(client, *server));
        let Some(slot) = slot else { return Ok(Entry::Refused(Cause::Closing)) };
        if !caller.has_waited {
            // Only once: a connection that fails meanwhile is this call's failure.
            self.follow(env, client, slot);
        }
        let Some(kept) = self.clients.get_mut(client) else {
            return Ok(Entry::Refused(Cause::Closing));
        };
        match kept.session.entry(env.now, caller, slot) {
            Entry::Wait(until) => {
                caller.has_waited = true;
                kept.waiters.push(task);
                self.schedule.arm_by(task, until);
                Err(caller)
            }
            entry => Ok(entry),
        }
    }

    /// Whether a first look need not wait for servers that are still connecting.
    pub(super) fn first_look_of(
        &mut self,
        env: &mut Env<'_>,
        client: ClientId,
        has_begun: bool,
        task: Task,
    ) -> bool {
        let Some(kept) = self.clients.get(client) else { return true };
        let count = kept.slots.len();
        if !has_begun {
            if kept.visibility.follows_health() {
                (0..count).for_each(|slot| self.follow(env, client, slot));
            }
            if let Some(kept) = self.clients.get_mut(client) {
                kept.session.look(env.now);
            }
        }
        let Some(kept) = self.clients.get(client) else { return true };
        let waits = |slot| kept.session.may_wait(env.now, slot, self.known_at(client, slot));
        if let Some(until) = (0..count).filter_map(waits).max() {
            if let Some(kept) = self.clients.get_mut(client) {
                kept.waiters.push(task);
            }
            self.schedule.arm_by(task, until);
            return false;
        }
        let known: Vec<bool> =
            (0..count).map(|slot| self.known_at(client, slot).has_catalogue).collect();
        let Some(kept) = self.clients.get_mut(client) else { return true };
        kept.session.shown(|slot| known.get(slot).copied().unwrap_or_default());
        let profile = Arc::clone(&kept.profile);
        let links: Vec<_> = kept.links().map(|(_, link)| link).collect();
        for link in links {
            if let Some(server) = self.links.get(link).map(|it| it.server) {
                self.refresh(env, server, link, &profile);
            }
        }
        true
    }

    /// Whether no program of a session's own that nobody knows yet is still coming up.
    pub(super) fn are_children_up(
        &mut self,
        now: Now,
        client: ClientId,
        until: Now,
        task: Task,
    ) -> bool {
        let Some(kept) = self.clients.get(client) else { return true };
        let is_awaited = |slot: usize| {
            self.group_at(client, slot).is_some_and(|group| self.is_own_child(&group))
                && !self.known_at(client, slot).has_catalogue
        };
        if now.reached(until) || !kept.session.connecting().any(is_awaited) {
            return true;
        }
        if let Some(kept) = self.clients.get_mut(client) {
            kept.waiters.push(task);
        }
        self.schedule.arm_by(task, until);
        false
    }

    fn known_at(&self, client: ClientId, slot: usize) -> Known {
        let Some(kept) = self.clients.get(client) else { return Known::default() };
        let group = kept.slots.get(slot).map(|it| &it.group);
        group.map(|group| self.known(group, &kept.profile)).unwrap_or_default()
    }
}
