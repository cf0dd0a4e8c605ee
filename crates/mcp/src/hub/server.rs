//! One configured server, and what clients see as one server: it alone, or a group of them.
//!
//! Rules kept here:
//! - A group offers what the first of its members offers whose lists are known: they are
//!   equivalent, and names must not depend on health.
//! - What is known of a group is the best of what is known of its members.
//! - The era that is spoken with a server on a client's behalf is the client's own if it can be.

use std::collections::VecDeque;
use std::sync::Arc;

use tidegate_core::{
    probe::ProbeClock,
    time::{Millis, Now},
};

use super::Hub;
use super::event::RequestToken;
use super::ids::{ExchangeId, LinkId, ServerId};
use super::listings::ListingCache;
use super::monitor::Look;
use super::profile::{ClientProfile, ProfileKey};
use super::schedule::Task;
use super::settings::{ServerAccess, ServerSettings};
use crate::{
    cause::Cause,
    era::{Era, Eras},
    listing::Listing,
    session::{Contact, Known},
    supervisor::{RestartSettings, Start, Supervisor},
};

/// One configured server.
pub(super) struct KeptServer {
    pub(super) settings: ServerSettings,
    pub(super) name: Arc<str>,
    pub(super) call_timeout: Millis,
    pub(super) connect_timeout: Millis,
    /// How many more calls it may have at once, and who waits for one of them to end.
    pub(super) turns: usize,
    pub(super) turn_queue: VecDeque<ExchangeId>,
    pub(super) lists: ListingCache,
    /// The gateway's own connection: lists and probes; of a shared program, everything.
    pub(super) home: Option<LinkId>,
    /// The link that clients share where the server speaks the stateless era beside another.
    pub(super) lane: Option<LinkId>,
    /// What is known of the eras it speaks.
    pub(super) eras: Eras,
    /// Whether it speaks the transport before streamable HTTP.
    pub(super) is_legacy: bool,
    /// Whether an attempt to connect has ended since the start, and how the last one did.
    pub(super) contact: Contact,
    pub(super) supervisor: Supervisor,
    /// The gateway's own eye on it.
    pub(super) look: Look,
    pub(super) clock: ProbeClock,
    /// What the first look found.
    pub(super) first_look: Option<Result<(), Cause>>,
    pub(super) was_reached: bool,
    /// Operators who wait for the probe that is under way.
    pub(super) probe_tokens: Vec<RequestToken>,
}

impl KeptServer {
    pub(super) fn new(
        settings: ServerSettings,
        (call_timeout, connect_timeout): (Millis, Millis),
        clock: ProbeClock,
    ) -> Self {
        Self {
            name: Arc::clone(&settings.name),
            turns: settings.max_calls.max(1),
            settings,
            call_timeout,
            connect_timeout,
            turn_queue: VecDeque::new(),
            lists: ListingCache::default(),
            home: None,
            lane: None,
            eras: Eras::default(),
            is_legacy: false,
            contact: Contact::Untried,
            supervisor: Supervisor::new(RestartSettings::default()),
            look: Look::default(),
            clock,
            first_look: None,
            was_reached: false,
            probe_tokens: Vec::new(),
        }
    }

    /// Whether it is a program of ours.
    pub(super) fn is_child(&self) -> bool {
        matches!(self.settings.access, ServerAccess::Child { .. })
    }

    /// Whether one program serves every session.
    pub(super) fn is_shared_child(&self) -> bool {
        matches!(self.settings.access, ServerAccess::Child { is_shared: true })
    }

    /// Whether every session has a program of its own.
    pub(super) fn is_own_child(&self) -> bool {
        matches!(self.settings.access, ServerAccess::Child { is_shared: false })
    }

    /// Whether it can be used as configured.
    pub(super) fn is_usable(&self) -> bool {
        self.settings.access != ServerAccess::Unusable
    }

    /// How long `initialize` may take. A program may have to be fetched before it starts.
    pub(super) fn initialize_within(&self) -> Millis {
        if self.is_child() {
            self.call_timeout.max(self.connect_timeout)
        } else {
            self.connect_timeout
        }
    }

    /// The profile under which a client is shown its lists.
    pub(super) fn profile_for(&self, profile: &ClientProfile) -> ProfileKey {
        if self.is_shared_child() {
            ProfileKey::own()
        } else {
            profile.profile_in(self.era_for(profile))
        }
    }

    /// The era that is spoken with it on a client's behalf.
    pub(super) fn era_for(&self, profile: &ClientProfile) -> Era {
        match profile.era {
            Era::Sessions if self.eras.speaks(Era::Sessions) == Some(false) => Era::Stateless,
            Era::Stateless if self.eras.speaks(Era::Stateless) != Some(true) => Era::Sessions,
            era => era,
        }
    }

    /// Whether it has to be asked which era it speaks before a client can have a link.
    pub(super) fn must_ask_era(&self, profile: &ClientProfile) -> bool {
        let is_known = self.eras.speaks(Era::Stateless).is_some();
        let is_http = self.settings.access == ServerAccess::Http;
        profile.is_stateless() && !is_known && is_http
    }

    /// When a program may be started again.
    pub(super) fn may_start_at(&self, now: Now) -> Now {
        match self.supervisor.may_start(now) {
            Start::Now => now,
            Start::Later { at, .. } => at,
        }
    }
}

/// What clients see as one server.
#[derive(Debug)]
pub(super) struct ServerGroup {
    /// What clients call it.
    pub(super) name: Arc<str>,
    /// The servers behind it, in tier order; of a server that stands alone, itself.
    pub(super) members: Vec<ServerId>,
    /// Whether it is a server that stands alone.
    pub(super) is_alone: bool,
}

impl ServerGroup {
    /// The server, if it stands alone.
    pub(super) fn alone(&self) -> Option<ServerId> {
        self.members.first().copied().filter(|_| self.is_alone)
    }
}

impl Hub {
    pub(super) fn members<'a>(
        &'a self,
        group: &'a ServerGroup,
    ) -> impl Iterator<Item = &'a KeptServer> {
        group.members.iter().filter_map(|id| self.servers.get(*id))
    }

    /// The member of this name.
    pub(super) fn member_named(&self, group: &ServerGroup, name: &str) -> Option<ServerId> {
        let is_it = |id: &ServerId| self.servers.get(*id).is_some_and(|it| *it.name == *name);
        group.members.iter().copied().find(is_it)
    }

    /// Whether any member can be used as configured.
    pub(super) fn is_usable(&self, group: &ServerGroup) -> bool {
        self.members(group).any(KeptServer::is_usable)
    }

    /// Whether every session has a program of its own.
    pub(super) fn is_own_child(&self, group: &ServerGroup) -> bool {
        self.members(group).next().is_some_and(KeptServer::is_own_child)
    }

    /// How long it may take until one of them is there.
    pub(super) fn initialize_within(&self, group: &ServerGroup) -> Millis {
        let each = self.members(group).map(|it| it.initialize_within().0);
        Millis(each.fold(0, u64::saturating_add))
    }

    /// What it offers such a client, as far as that is known.
    pub(super) fn listing(
        &self,
        group: &ServerGroup,
        profile: &ClientProfile,
    ) -> Option<Arc<Listing>> {
        self.members(group).find_map(|it| it.lists.listing(it.profile_for(profile)))
    }

    /// What it says about itself to such a client; nothing before it was reached.
    pub(super) fn instructions(&self, group: &ServerGroup, profile: &ClientProfile) -> Arc<str> {
        let words = self.listing(group, profile).and_then(|it| it.info.instructions.clone());
        words.unwrap_or_default().into()
    }

    /// What is known of it.
    pub(super) fn known(&self, group: &ServerGroup, profile: &ClientProfile) -> Known {
        let has_catalogue = self.listing(group, profile).is_some();
        // As long as no lists are known, they may come from a member that nobody has tried.
        let best = match has_catalogue {
            true => [Contact::Reached, Contact::Untried],
            false => [Contact::Untried, Contact::Reached],
        };
        let has = |contact: &Contact| self.members(group).any(|it| it.contact == *contact);
        let contact = best.into_iter().find(has).unwrap_or(Contact::Failed);
        Known { contact, has_catalogue }
    }

    /// What is known of a server's eras has changed. Clients are known to it by other profiles
    /// then.
    pub(super) fn set_eras(&mut self, server: ServerId, eras: Eras) {
        let Some(server) = self.servers.get_mut(server) else { return };
        if server.eras != eras {
            server.eras = eras;
            self.catalogues.clear();
        }
    }

    /// The link to use on behalf of a client that is not to have one of its own: that of a shared
    /// program, or the one to a server without sessions.
    pub(super) fn shared_link(
        &mut self,
        now: Now,
        id: ServerId,
        profile: &ClientProfile,
    ) -> Option<LinkId> {
        let server = self.servers.get(id)?;
        if server.is_child() {
            return server.home.filter(|_| server.is_shared_child());
        }
        let is_known = server.eras.speaks(Era::Stateless) == Some(true);
        let is_stateless = server.era_for(profile) == Era::Stateless;
        if is_known && is_stateless { self.lane(now, id) } else { None }
    }

    /// The gateway's one link to a server of the stateless era: its own if that speaks it.
    pub(super) fn lane(&mut self, now: Now, id: ServerId) -> Option<LinkId> {
        let server = self.servers.get(id)?;
        if let Some(home) = server.home.filter(|home| self.is_stateless(*home)) {
            return Some(home);
        }
        if let Some(lane) = server.lane {
            return Some(lane);
        }
        let lane = self.new_link(now, id, None, Arc::clone(&self.own_profile), &[Era::Stateless]);
        self.servers.get_mut(id)?.lane = Some(lane);
        Some(lane)
    }

    /// Somebody who holds a turn at a server does not need it any more.
    pub(super) fn give_turn_back(&mut self, server: ServerId) {
        let Some(server) = self.servers.get_mut(server) else { return };
        server.turns += 1;
        if let Some(next) = server.turn_queue.front() {
            self.schedule.wake(Task::Exchange(*next));
        }
    }
}
