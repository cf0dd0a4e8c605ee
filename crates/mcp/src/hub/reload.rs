//! A config that was read again, and health that changed.
//!
//! Rules kept here:
//! - A server stays the same over a reload while its key does; otherwise it is closed and made
//!   anew.
//! - What a caller may use is followed: a key that a reload narrows or removes binds its open
//!   sessions.
//! - Whoever has the config read again expects that lists are, too; so does a server that
//!   recovered: it may have been deployed anew.

use std::sync::Arc;

use tidegate_core::probe::ProbeClock;

use super::client::ServerSlot;
use super::ids::{ClientId, LinkId, ServerId};
use super::schedule::Task;
use super::server::{KeptServer, ServerGroup};
use super::settings::{GroupSettings, HubSettings};
use super::{Env, Hub};
use crate::{
    cause::Cause,
    health::{self, Standing},
    session::{Carried, News, Seat},
};

impl Hub {
    /// Follows a config.
    pub(super) fn reload(&mut self, env: &mut Env<'_>, settings: HubSettings) {
        let mut before = std::mem::take(&mut self.server_order);
        let timeouts = (settings.call_timeout, settings.connect_timeout);
        let mut added = Vec::new();
        for server in &settings.servers {
            let is_it = |id: &ServerId| {
                self.servers.get(*id).is_some_and(|it| it.settings.key == server.key)
            };
            if let Some(at) = before.iter().position(is_it) {
                let id = before.remove(at);
                if let Some(kept) = self.servers.get_mut(id) {
                    kept.settings = server.clone();
                }
                self.server_order.push(id);
                continue;
            }
            let clock = ProbeClock::new(server.probe, env.random.draw(), env.now);
            let id = self.servers.insert(KeptServer::new(server.clone(), timeouts, clock));
            let profile = Arc::clone(&self.own_profile);
            let home = self.link_for(env.now, id, None, profile);
            if let Some(kept) = self.servers.get_mut(id) {
                kept.home = Some(home);
            }
            self.server_order.push(id);
            added.push(id);
        }
        let order = &self.server_order;
        let group = |group: &GroupSettings| {
            let members = group.members.iter().filter_map(|at| order.get(*at).copied());
            let members: Vec<ServerId> = members.collect();
            let first = members.first().and_then(|it| self.servers.get(*it));
            let is_alone = first.is_some_and(|it| it.name == group.name);
            Arc::new(ServerGroup { name: Arc::clone(&group.name), members, is_alone })
        };
        self.groups = settings.groups.iter().map(group).collect();
        let callers = settings.callers.iter();
        self.callers = callers.map(|(name, it)| (Arc::clone(name), Arc::new(it.clone()))).collect();
        self.settings = settings;
        for id in self.server_order.clone() {
            self.doubt_lists(env, id);
        }
        self.catalogues.clear();
        for client in self.open_clients() {
            let Some(kept) = self.clients.get_mut(client) else { continue };
            match self.callers.get(&kept.caller) {
                Some(rights) => {
                    kept.rights = Arc::clone(rights);
                    self.reload_client(env, client);
                }
                // Its key is gone.
                None => self.end_client(env, client),
            }
        }
        before.into_iter().for_each(|gone| self.close_server(gone));
        for id in added {
            self.begin_look(env, id);
        }
        self.schedule.arm_by(Task::Reap, env.now.after(self.settings.idle));
        self.is_health_doubtful = true;
    }

    /// A server is not in the config any more.
    pub(super) fn close_server(&mut self, id: ServerId) {
        let Some(server) = self.servers.get_mut(id) else { return };
        for token in std::mem::take(&mut server.probe_tokens) {
            self.out.push(super::Effect::ProbeAnswer { token, passed: None });
        }
        let waiting: Vec<Task> = server.turn_queue.iter().map(|it| Task::Exchange(*it)).collect();
        let links = [server.home.take(), server.lane.take()];
        links.into_iter().flatten().for_each(|link| self.close_link(link));
        self.schedule.disarm(Task::Monitor(id));
        self.schedule.disarm(Task::ProbeEnd(id));
        self.servers.remove(id);
        self.schedule.wake_all(waiting);
    }

    /// The config of a client changed.
    fn reload_client(&mut self, env: &mut Env<'_>, id: ClientId) {
        let Some(client) = self.clients.get_mut(id) else { return };
        let rights = Arc::clone(&client.rights);
        let before = std::mem::take(&mut client.slots);
        let mut carried = Vec::new();
        let mut slots = Vec::new();
        for group in &self.groups {
            // It is the same as long as one of its servers is.
            let stays =
                |it: &ServerSlot| group.members.iter().any(|one| it.position(*one).is_some());
            let kept = before.iter().position(|it| it.group.name == group.name && stays(it));
            let link = |server: &ServerId| before.iter().find_map(|it| it.link_to(*server));
            let stays = kept.and_then(|at| before[at].stays);
            let stays = stays.filter(|server| group.members.contains(server));
            let is_allowed = rights.may_use(&group.name);
            // What its caller may not use any more is gone; what it may use now has to join.
            let kept = kept.filter(|at| before[*at].is_allowed == is_allowed);
            let links = group.members.iter().map(|it| link(it).filter(|_| is_allowed)).collect();
            slots.push(ServerSlot { group: Arc::clone(group), links, stays, is_allowed });
            carried.push(match kept {
                Some(at) => Carried::Kept(at),
                None => Carried::Added(self.arrival(env, group, &rights)),
            });
        }
        let is_kept = |link: &LinkId| {
            let server = self.links.get(*link).map(|it| it.server);
            let has = |it: &ServerSlot| {
                it.is_allowed && server.is_some_and(|server| it.position(server).is_some())
            };
            slots.iter().any(has)
        };
        let links = before.into_iter().flat_map(|it| it.links).flatten();
        let unwanted: Vec<LinkId> = links.filter(|link| !is_kept(link)).collect();
        unwanted.into_iter().for_each(|link| self.close_own_link(link));
        let Some(client) = self.clients.get_mut(id) else { return };
        client.slots = slots;
        let news = client.session.reload(env.now, &carried);
        let connecting: Vec<usize> = client.session.connecting().collect();
        self.note_record(id);
        self.client_turned(id);
        if news == News::Changed {
            self.tell_changes(id);
        }
        for (slot, carried) in carried.iter().enumerate() {
            if matches!(carried, Carried::Added(_)) && connecting.contains(&slot) {
                self.connect_slot(env, id, slot);
            }
        }
    }

    /// Looks whether the health of a server has changed: sessions follow it, and the lists of one
    /// that recovered are fetched anew.
    pub(super) fn look_at_health(&mut self, env: &mut Env<'_>) {
        self.is_health_doubtful = false;
        let mut next = None;
        let mut current = Vec::new();
        for id in &self.server_order {
            let Some(server) = self.servers.get(*id) else { continue };
            let standing = health::standing(env.core, &server.name, env.now);
            let trouble = match standing {
                Standing::Unhealthy(cause, span) => {
                    let at = span.map(|span| env.now.after(span));
                    next = [next, at].into_iter().flatten().min();
                    Some(cause)
                }
                Standing::SlotTaken => Some(Cause::Busy),
                Standing::Healthy | Standing::HalfOpenFree => None,
            };
            current.push((*id, trouble));
        }
        match next {
            // A moment that has come and changed nothing is looked at again in a moment.
            Some(at) => self.schedule.arm(Task::Health, at.max(env.now.after(HEALTH_AFTER))),
            None => self.schedule.disarm(Task::Health),
        }
        if current == self.standings {
            // A slot may have been taken and given back between two looks.
            return self.follow_late(env);
        }
        let before = std::mem::replace(&mut self.standings, current.clone());
        for (id, trouble) in &current {
            let was = before.iter().find(|(other, _)| other == id);
            if was.is_some_and(|(_, before)| before.is_some()) && trouble.is_none() {
                // What recovered may have been deployed anew.
                self.doubt_lists(env, *id);
            }
        }
        for client in self.open_clients() {
            let count = self.clients.get(client).map_or(0, |it| it.slots.len());
            (0..count).for_each(|slot| self.follow(env, client, slot));
        }
    }
}

impl Hub {
    /// Sessions that wait for the trial of a server look what became of it.
    fn follow_late(&mut self, env: &mut Env<'_>) {
        for client in self.open_clients() {
            let Some(kept) = self.clients.get(client) else { continue };
            let is_late = |slot: &usize| kept.session.seat(*slot) == Seat::Late;
            for slot in (0..kept.slots.len()).filter(is_late).collect::<Vec<_>>() {
                self.follow(env, client, slot);
            }
        }
    }
}

/// Two looks at health that nothing asked for are at least so far apart.
const HEALTH_AFTER: tidegate_core::time::Millis = tidegate_core::time::Millis(20);
