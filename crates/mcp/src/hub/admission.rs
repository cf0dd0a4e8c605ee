//! Whether a caller may have one more session: its fair share.
//!
//! Rules kept here ([`crate::shares`] has the arithmetic):
//! - At its limit of sessions, or of programs that sessions have for themselves, a caller's own
//!   session goes that has been idle for longest; never another caller's.
//! - With none idle, or with the whole full, the new session is refused: 503 and when to come back.
//! - A session that needs several programs opens if there is room for one of them; it goes without
//!   the others, by name.
//!
//! Also here: who stands for a client without a session.

use std::sync::Arc;

use super::client::{Client, Introduction};
use super::effect::{Effect, McpAnswer, Metric};
use super::endpoint::{no_servers, unknown_caller};
use super::ids::ClientId;
use super::profile::{ClientProfile, ProfileKey};
use super::record::FIRST_EPOCH;
use super::settings::CallerRights;
use super::{Env, Hub};
use crate::{
    message::Version,
    session::Visibility,
    shares::{Bound, Room, Used},
    stateless::Envelope,
};

/// Ways in which one caller's clients without a session introduce themselves. Each has connections
/// of its own, so they are few; the one idle for longest makes room.
const INTRODUCTIONS_MAX: usize = 16;

impl Hub {
    /// What a caller may do; none if it may not call any more.
    pub(super) fn rights_of(&self, caller: &Arc<str>) -> Option<Arc<CallerRights>> {
        self.callers.get(caller).map(Arc::clone)
    }

    /// The same introduction as that of another client, if there is one: it is kept once.
    pub(super) fn shared_profile(&self, profile: Arc<ClientProfile>) -> Arc<ClientProfile> {
        let same = |it: &&Arc<ClientProfile>| it.is_same(&profile);
        let known = self.clients.iter().map(|(_, it)| &it.profile).take(SHARED_LOOKS).find(same);
        known.map_or(profile, Arc::clone)
    }

    /// Makes room for one more session of a caller, at the cost of its own ones.
    pub(super) fn make_room(
        &mut self,
        env: &mut Env<'_>,
        caller: &Arc<str>,
        rights: &CallerRights,
    ) -> Result<(), McpAnswer> {
        let room = self.room_for_a_session(env, caller, rights);
        let room = room.and_then(|()| self.room_for_programs(env, caller, rights));
        room.map_err(|message| {
            self.out.push(Effect::Count(Metric::Refused("session")));
            McpAnswer::busy(message)
        })
    }

    fn room_for_a_session(
        &mut self,
        env: &mut Env<'_>,
        caller: &Arc<str>,
        rights: &CallerRights,
    ) -> Result<(), &'static str> {
        let bound = Bound::new(self.settings.sessions_max, rights.share);
        loop {
            let open = self.clients.iter().filter(|(_, it)| !it.is_over);
            let used = open.fold(Used::default(), |used, (_, it)| Used {
                all: used.all + 1,
                own: used.own + usize::from(it.caller == *caller),
            });
            match bound.room(used, 1) {
                Room::Free => return Ok(()),
                Room::OwnLimit if self.end_oldest_idle(env, caller, |_, _| true) => {}
                Room::OwnLimit => return Err("you have as many sessions as you may; end one"),
                Room::WholeFull => return Err("as many sessions are open as may be; try again"),
            }
        }
    }

    fn room_for_programs(
        &mut self,
        env: &mut Env<'_>,
        caller: &Arc<str>,
        rights: &CallerRights,
    ) -> Result<(), &'static str> {
        let needs_one = |it: &&Arc<super::server::ServerGroup>| {
            self.is_own_child(it) && self.is_usable(it) && rights.may_use(&it.name)
        };
        let needed = self.groups.iter().filter(needs_one).count();
        if needed == 0 {
            return Ok(());
        }
        let bound = Bound::new(self.settings.children_max, rights.share);
        loop {
            let open = self.clients.iter().filter(|(_, it)| !it.is_over);
            let used = open.fold(Used::default(), |used, (_, it)| {
                let children = self.children_of(it);
                let own = if it.caller == *caller { children } else { 0 };
                Used { all: used.all + children, own: used.own + own }
            });
            let room = bound.room(used, needed.min(bound.share));
            let has_children = |hub: &Self, it: &Client| hub.children_of(it) > 0;
            if room == Room::OwnLimit && self.end_oldest_idle(env, caller, has_children) {
                continue;
            }
            return match bound.room(used, 1) {
                Room::Free => Ok(()),
                Room::OwnLimit => Err("your sessions have as many programs as they may; end one"),
                Room::WholeFull => Err("as many programs run as may be; try again"),
            };
        }
    }

    /// Ends the session of a caller's that has been idle for longest, among those that fit.
    fn end_oldest_idle(
        &mut self,
        env: &mut Env<'_>,
        caller: &Arc<str>,
        fits: impl Fn(&Self, &Client) -> bool,
    ) -> bool {
        let own = self.clients.iter().filter(|(_, it)| !it.is_over && it.caller == *caller);
        let idle = own.filter(|(_, it)| fits(self, it));
        let idle = idle.filter_map(|(id, it)| Some((it.idle_order()?, id)));
        let oldest = idle.min_by_key(|(order, _)| *order).map(|(_, id)| id);
        if let Some(client) = oldest {
            self.end_client(env, client);
        }
        oldest.is_some()
    }

    /// Whoever stands for a client without a session, as one request introduces it.
    pub(super) fn stand_in(
        &mut self,
        env: &mut Env<'_>,
        caller: &Arc<str>,
        envelope: &Envelope,
    ) -> Result<ClientId, McpAnswer> {
        if self.settings.servers.is_empty() {
            return Err(no_servers());
        }
        let rights = self.rights_of(caller).ok_or_else(unknown_caller)?;
        let profile = ClientProfile::of_envelope(envelope);
        let key = (Arc::clone(caller), profile.key);
        let known = self.stand_ins.get(&key).copied();
        if let Some((id, known)) = known.and_then(|id| Some((id, self.clients.get(id)?))) {
            let busy = || McpAnswer::busy("too many requests are under way; try again");
            return if known.is_busy() { Err(busy()) } else { Ok(id) };
        }
        let is_own = |(name, _): &&(Arc<str>, ProfileKey)| name == caller;
        let count = self.stand_ins.keys().filter(is_own).count();
        let is_one = |_: &Self, it: &Client| it.profile.is_stateless();
        if count >= INTRODUCTIONS_MAX && !self.end_oldest_idle(env, caller, is_one) {
            return Err(McpAnswer::busy("too many kinds of clients are at work; try again"));
        }
        self.make_room(env, caller, &rights)?;
        let intro = Introduction {
            id: Arc::default(),
            caller: Arc::clone(caller),
            rights,
            version: Version::LATEST,
            profile: Arc::new(profile),
            visibility: Visibility::Request,
            epoch: FIRST_EPOCH,
        };
        let client = self.open_client(env, intro);
        self.stand_ins.insert(key, client);
        Ok(client)
    }
}

/// How many clients are looked at for one that introduced itself alike.
const SHARED_LOOKS: usize = 8;
