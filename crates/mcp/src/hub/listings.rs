//! What one server offers, kept per profile, fetched once for everybody.
//!
//! Rules kept here:
//! - A listing is fetched over a connection that is there anyway, never per session: when a profile
//!   is first seen, after the server said that something changed, and when it is used and due
//!   ([`crate::freshness`]). There is one fetch at a time per server; concurrent wishes share it,
//!   and what changes meanwhile is fetched once more.
//! - The last listing is offered while the next one is fetched, and stays when that fails or the
//!   server is down: names depend on the config and not on health.
//! - Bounded: [`PROFILES_MAX`] profiles, of which the one unused for longest makes room.
//! - A definition that changed is told on, once (S39).

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::value::RawValue;
use tidegate_core::time::{Millis, Now};

use super::connection::{Asker, Outbound, ServerReply};
use super::effect::{Effect, LogLine, Metric};
use super::ids::{ConnectionId, LinkId, ServerId};
use super::profile::{ClientProfile, ProfileKey};
use super::schedule::Task;
use super::{Env, Hub};
use crate::{
    cause::Cause,
    era::Era,
    freshness::Freshness,
    listing::{Changes, Gather, Kind, Listing, ServerInfo, Shortfall},
    message::{METHOD_NOT_FOUND, Params, read_error},
};

/// Clients introduce themselves in a handful of ways.
const PROFILES_MAX: usize = 16;
/// After a server said that something changed: it often says so several times in a row.
const SETTLE: Millis = Millis(50);

/// The listings of one server.
#[derive(Default)]
pub(super) struct ListingCache {
    by_profile: BTreeMap<ProfileKey, CachedListing>,
    /// Counts looks.
    looks: Cell<u64>,
    /// Who waits for a fetch to end.
    waiters: Vec<Task>,
    /// Whose fetch has the turn, and who waits for it.
    turn: Option<ProfileKey>,
    queue: VecDeque<ProfileKey>,
}

#[derive(Default)]
struct CachedListing {
    freshness: Freshness,
    /// The latest look.
    looked_at: Cell<u64>,
    /// Who looked first, and in which era: on whose behalf it is looked again.
    profile: Option<(Arc<ClientProfile>, Era)>,
    listing: Option<Arc<Listing>>,
    /// The fetch under way.
    fetching: Option<Box<Fetching>>,
    /// Kinds that changed while it was under way.
    stale: Vec<Kind>,
    /// Kinds that the server said have changed: clients are told, whatever is found.
    announced: Vec<Kind>,
    /// What the last listing lacked: it is told once, and not at every fetch.
    shortfall: Shortfall,
    /// Over which link, and when, a fetch that was never whole is tried again.
    retry: Option<(LinkId, Now)>,
}

struct Fetching {
    link: LinkId,
    talk: ConnectionId,
    profile: Arc<ClientProfile>,
    gather: Gather,
    stage: FetchStage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FetchStage {
    /// More may change in a moment.
    Settling(Now),
    /// Another fetch has the turn.
    Queued,
    /// This kind is being asked for.
    Asking(Kind),
}

impl Fetching {
    /// Whether the server was not asked anything yet.
    fn has_yet_to_ask(&self) -> bool {
        !matches!(self.stage, FetchStage::Asking(_))
    }
}

impl ListingCache {
    /// What a client of this profile is offered, as far as it is known.
    pub(super) fn listing(&self, profile: ProfileKey) -> Option<Arc<Listing>> {
        let look = self.looks.get() + 1;
        self.looks.set(look);
        let of = |profile| {
            let entry: &CachedListing = self.by_profile.get(&profile)?;
            entry.looked_at.set(look);
            entry.listing.clone()
        };
        of(profile).or_else(|| of(ProfileKey::own()))
    }

    /// Any listing that is known.
    pub(super) fn any_listing(&self) -> Option<Arc<Listing>> {
        self.by_profile.values().find_map(|entry| entry.listing.clone())
    }

    fn knows(&self, profile: ProfileKey) -> bool {
        self.by_profile.get(&profile).is_some_and(|entry| entry.listing.is_some())
    }

    /// On whose behalf lists were fetched in an era.
    pub(super) fn profiles_in(&self, era: Era) -> Vec<Arc<ClientProfile>> {
        let all = self.by_profile.values().filter_map(|entry| entry.profile.as_ref());
        all.filter(|(_, other)| *other == era).map(|(profile, _)| Arc::clone(profile)).collect()
    }

    /// Every listing may be out of date.
    fn doubt(&mut self) {
        self.by_profile.values_mut().for_each(|entry| entry.freshness.doubt());
    }

    /// Whether a listing that is known is to be fetched again, now that it is used.
    fn is_due(&self, profile: ProfileKey, now: Now, fresh_for: Millis) -> bool {
        let known = self.by_profile.get(&profile);
        let known = known.filter(|it| it.listing.is_some() && it.fetching.is_none());
        known.is_some_and(|entry| entry.freshness.is_due(now, fresh_for))
    }

    /// Whether a server introduces itself otherwise than when its listing was fetched.
    fn is_another(&self, profile: ProfileKey, info: &ServerInfo) -> bool {
        let listing = self.by_profile.get(&profile).and_then(|entry| entry.listing.as_ref());
        listing.is_some_and(|listing| !listing.info.is_same(info))
    }

    fn is_fetching(&self, profile: ProfileKey) -> bool {
        self.by_profile.get(&profile).is_some_and(|entry| entry.fetching.is_some())
    }

    /// Whether one listing could be put away: the one that nobody has looked at for longest.
    fn make_room(&mut self) -> bool {
        let others = self.by_profile.iter().filter(|(key, _)| **key != ProfileKey::own());
        let idle = others.filter(|(_, entry)| entry.fetching.is_none());
        let oldest = idle.min_by_key(|(_, entry)| entry.looked_at.get()).map(|(key, _)| *key);
        oldest.and_then(|key| self.by_profile.remove(&key)).is_some()
    }
}

impl Hub {
    /// A link to a server is there: what it offers is looked at, unless it is known and nothing
    /// speaks against it. A server that was lost, or introduces itself otherwise, may have been
    /// deployed anew, which is a doubt about all of its lists.
    pub(super) fn server_connected(&mut self, env: &mut Env<'_>, id: ServerId, link: LinkId) {
        let era = self.era_of(link);
        let speaks_for = self.speaks_for(link);
        let Some(kept) = self.links.get(link) else { return };
        let is_again = kept.machine.reinitialised() > 0;
        let info = kept.info.clone();
        let Some(server) = self.servers.get_mut(id) else { return };
        let is_another = |profile: &Arc<ClientProfile>| {
            let key = profile.profile_in(era);
            info.as_ref().is_some_and(|info| server.lists.is_another(key, info))
        };
        if is_again || speaks_for.iter().any(is_another) {
            server.lists.doubt();
        }
        for profile in speaks_for {
            self.fetch_missing(env, id, link, &profile);
            self.refresh(env, id, link, &profile);
        }
    }

    /// A server's lists may be out of date: they are fetched over the gateway's own connection, and
    /// for everybody else when they are used.
    pub(super) fn doubt_lists(&mut self, env: &mut Env<'_>, id: ServerId) {
        let Some(server) = self.servers.get_mut(id) else { return };
        server.lists.doubt();
        if let Some(home) = server.home {
            let profile = Arc::clone(&self.own_profile);
            self.refresh(env, id, home, &profile);
        }
    }

    /// A client uses a server's lists over this link: they are fetched again if they are due.
    pub(super) fn refresh(
        &mut self,
        env: &mut Env<'_>,
        id: ServerId,
        link: LinkId,
        profile: &Arc<ClientProfile>,
    ) {
        let Some(server) = self.servers.get(id) else { return };
        let own = self.links.get(link).map(|it| &it.profile);
        let profile = own.filter(|_| server.is_shared_child()).unwrap_or(profile);
        let key = profile.profile_in(self.era_of(link));
        if server.lists.is_due(key, env.now, self.settings.fresh_for) {
            let profile = Arc::clone(profile);
            self.fetch(env, id, link, &profile, &Kind::ALL);
        }
    }

    /// Has the lists for a client fetched over this link if they are not known.
    pub(super) fn fetch_missing(
        &mut self,
        env: &mut Env<'_>,
        id: ServerId,
        link: LinkId,
        profile: &Arc<ClientProfile>,
    ) {
        let key = profile.profile_in(self.era_of(link));
        if self.servers.get(id).is_some_and(|it| !it.lists.knows(key)) {
            self.fetch(env, id, link, profile, &Kind::ALL);
        }
    }

    /// Whether the lists that a client will see over this link are known, or cannot be had; if not,
    /// whoever asks is looked at again.
    pub(super) fn lists_known(
        &mut self,
        id: ServerId,
        link: LinkId,
        profile: &ClientProfile,
        task: Task,
    ) -> bool {
        let key = profile.profile_in(self.era_of(link));
        let Some(server) = self.servers.get_mut(id) else { return true };
        if !server.lists.is_fetching(key) {
            return true;
        }
        server.lists.waiters.push(task);
        false
    }

    /// Fetches over this link what is not known: everything, or the kinds that changed.
    pub(super) fn fetch(
        &mut self,
        env: &mut Env<'_>,
        id: ServerId,
        link: LinkId,
        profile: &Arc<ClientProfile>,
        kinds: &[Kind],
    ) {
        let era = self.era_of(link);
        let key = profile.profile_in(era);
        let Some(talk) = self.ready_talk(link) else { return };
        let Some(info) = self.links.get(link).and_then(|it| it.info.clone()) else { return };
        let checks_headers =
            self.connections.get(talk).is_some_and(|it| it.era == Era::Stateless && it.is_http);
        let Some(server) = self.servers.get_mut(id) else { return };
        let cache = &mut server.lists;
        let is_full = cache.by_profile.len() >= PROFILES_MAX;
        if !cache.by_profile.contains_key(&key) && is_full && !cache.make_room() {
            return;
        }
        let entry = cache.by_profile.entry(key).or_default();
        entry.profile.get_or_insert_with(|| (Arc::clone(profile), era));
        let is_whole = kinds.len() == Kind::ALL.len();
        if !is_whole {
            entry.announced.extend(kinds);
        }
        match entry.fetching.as_mut() {
            // Nothing was asked yet, so that what is asked in a moment is new enough.
            Some(fetching) if !is_whole && fetching.has_yet_to_ask() => {
                return fetching.gather.ask_also(kinds);
            }
            Some(_) => return entry.stale.extend(kinds),
            None => {}
        }
        let before = entry.listing.clone();
        let mut gather = match &before {
            Some(before) if !is_whole => Gather::again(before, kinds),
            _ => Gather::new((*info).clone()),
        };
        if let Some(before) = &before {
            gather.fall_back_on(Arc::clone(before));
        }
        if is_whole {
            entry.freshness.begin();
        }
        if checks_headers {
            gather.check_headers();
        }
        let stage = match before {
            None => FetchStage::Queued,
            Some(_) => FetchStage::Settling(env.now.after(SETTLE)),
        };
        let profile = Arc::clone(profile);
        entry.fetching = Some(Box::new(Fetching { link, talk, profile, gather, stage }));
        match stage {
            FetchStage::Settling(at) => self.schedule.arm(Task::Fetch(id, key), at),
            FetchStage::Queued | FetchStage::Asking(_) => {
                cache.queue.push_back(key);
                self.next_fetch(env, id);
            }
        }
    }

    /// Looks at a fetch that waits.
    pub(super) fn run_fetch(&mut self, env: &mut Env<'_>, id: ServerId, key: ProfileKey) {
        let Some(server) = self.servers.get_mut(id) else { return };
        let Some(entry) = server.lists.by_profile.get_mut(&key) else { return };
        let Some(fetching) = entry.fetching.as_mut() else {
            // A link that is lost by now fetches when it is made again.
            let due = entry.retry.take_if(|(_, at)| env.now.reached(*at));
            if let (Some((link, _)), Some((profile, _))) = (due, entry.profile.clone()) {
                self.fetch(env, id, link, &profile, &Kind::ALL);
            }
            return;
        };
        if let FetchStage::Settling(at) = fetching.stage
            && env.now.reached(at)
        {
            fetching.stage = FetchStage::Queued;
            server.lists.queue.push_back(key);
            self.next_fetch(env, id);
        }
    }

    /// The next fetch of a server has its turn, if none has.
    fn next_fetch(&mut self, env: &mut Env<'_>, id: ServerId) {
        let Some(server) = self.servers.get_mut(id) else { return };
        if server.lists.turn.is_none()
            && let Some(key) = server.lists.queue.pop_front()
        {
            server.lists.turn = Some(key);
            self.ask_page(env, id, key);
        }
    }

    /// Asks for the next page, or ends the fetch.
    fn ask_page(&mut self, env: &mut Env<'_>, id: ServerId, key: ProfileKey) {
        let Some(server) = self.servers.get_mut(id) else { return };
        let within = server.call_timeout;
        let entry = server.lists.by_profile.get_mut(&key);
        let Some(fetching) = entry.and_then(|it| it.fetching.as_mut()) else {
            return self.fetch_over(env, id, key, None);
        };
        let Some(ask) = fetching.gather.ask() else {
            return self.fetch_over(env, id, key, Some(Ok(())));
        };
        fetching.stage = FetchStage::Asking(ask.kind);
        let (talk, profile) = (fetching.talk, Arc::clone(&fetching.profile));
        let params = ask.params().and_then(|json| RawValue::from_string(json).ok());
        let params = Params::parse(params.as_deref()).unwrap_or_default();
        let asker = Asker::Page(id, key);
        let out = Outbound::own(ask.method(), params, profile, within, asker);
        self.send_request(env.now, talk, out);
    }

    /// A page came, or did not.
    pub(super) fn page_replied(
        &mut self,
        env: &mut Env<'_>,
        id: ServerId,
        key: ProfileKey,
        reply: ServerReply,
    ) {
        let Some(server) = self.servers.get_mut(id) else { return };
        let entry = server.lists.by_profile.get_mut(&key);
        let Some(fetching) = entry.and_then(|it| it.fetching.as_mut()) else { return };
        let FetchStage::Asking(kind) = fetching.stage else { return };
        let gather = &mut fetching.gather;
        match reply {
            ServerReply::Answer(Ok(result)) => {
                let page = serde_json::from_slice::<&RawValue>(&result).ok();
                if page.is_none_or(|page| gather.page(page).is_err()) {
                    gather.failed();
                }
            }
            ServerReply::Answer(Err(error)) => {
                match read_error(&error).is_some_and(|it| it.code == METHOD_NOT_FOUND) {
                    true => gather.refused(),
                    false => gather.failed(),
                }
            }
            ServerReply::Failed(failure) if failure.cause == Cause::TooLarge => gather.too_large(),
            ServerReply::Failed(failure) => {
                return self.fetch_over(env, id, key, Some(Err((kind, failure.cause))));
            }
        }
        self.ask_page(env, id, key);
    }

    /// A fetch has ended: with a listing, without one, or with nobody to keep it for.
    fn fetch_over(
        &mut self,
        env: &mut Env<'_>,
        id: ServerId,
        key: ProfileKey,
        end: Option<Result<(), (Kind, Cause)>>,
    ) {
        let Some(server) = self.servers.get_mut(id) else { return };
        server.lists.turn = None;
        let name = Arc::clone(&server.name);
        let entry = server.lists.by_profile.get_mut(&key);
        let fetching = entry.and_then(|it| it.fetching.take());
        let mut told = None;
        if let Some(fetching) = fetching {
            let Fetching { link, profile, gather, .. } = *fetching;
            let gathered = match end {
                Some(Ok(())) => Some(gather.finish()),
                // A session that ends takes its connection along; the list that is there stays.
                Some(Err((_, Cause::Closing))) | None => None,
                Some(Err((kind, cause))) => {
                    let server = Arc::clone(&name);
                    self.out.push(Effect::Log(LogLine::NoList { server, kind, cause }));
                    None
                }
            };
            let changes = gathered.and_then(|(listing, shortfall)| {
                let is_whole = shortfall.failed.is_empty();
                self.tell_shortfall(id, key, shortfall);
                self.keep_listing(id, key, listing).map(|changes| (changes, is_whole))
            });
            let is_whole = changes.as_ref().is_some_and(|(_, is_whole)| *is_whole);
            let server = self.servers.get_mut(id);
            let entry = server.and_then(|it| it.lists.by_profile.get_mut(&key));
            if let Some(entry) = entry {
                match is_whole {
                    true => entry.freshness.fetched(env.now),
                    false => entry.freshness.failed(env.now),
                }
                let retry = entry.freshness.retry_after();
                entry.retry = retry.map(|pause| (link, env.now.after(pause)));
                if let Some((_, at)) = entry.retry {
                    self.schedule.arm(Task::Fetch(id, key), at);
                }
                let stale = std::mem::take(&mut entry.stale);
                let announced = std::mem::take(&mut entry.announced);
                if !stale.is_empty() {
                    self.fetch(env, id, link, &profile, &stale);
                }
                told = changes.map(|(changes, _)| (changes, announced));
            }
        }
        self.next_fetch(env, id);
        if let Some(server) = self.servers.get_mut(id) {
            self.schedule.wake_all(server.lists.waiters.drain(..));
        }
        if let Some((changes, announced)) = told {
            self.offers_changed(id, key, |kind| changes.touches(kind) || announced.contains(&kind));
        }
    }

    /// Tells what a listing lacks, unless the one before lacked the same.
    fn tell_shortfall(&mut self, id: ServerId, key: ProfileKey, shortfall: Shortfall) {
        let Some(server) = self.servers.get_mut(id) else { return };
        let entry = server.lists.by_profile.get_mut(&key);
        let Some(entry) = entry.filter(|it| it.shortfall != shortfall) else { return };
        if !shortfall.is_empty() {
            let (server, lacking) = (Arc::clone(&server.name), shortfall.to_string());
            let counted = Metric::DefinitionsSkipped(Arc::clone(&server), shortfall.skipped);
            self.out.push(Effect::Log(LogLine::Shortfall { server, lacking }));
            self.out.push(Effect::Count(counted));
        }
        entry.shortfall = shortfall;
    }

    /// Keeps a listing; how it differs from the one before.
    fn keep_listing(&mut self, id: ServerId, key: ProfileKey, listing: Listing) -> Option<Changes> {
        let server = self.servers.get_mut(id)?;
        let by_profile = &mut server.lists.by_profile;
        // Until a profile has a listing of its own, it is shown the gateway's.
        let own = by_profile.get(&ProfileKey::own()).and_then(|entry| entry.listing.clone());
        let entry = by_profile.get_mut(&key)?;
        let before = entry.listing.replace(Arc::new(listing));
        let is_first = before.is_none();
        let after = entry.listing.as_ref()?;
        if key == ProfileKey::own() || own.is_none() {
            let count = after.items(Kind::Tools).len();
            let name = Arc::clone(&server.name);
            self.out.push(Effect::Count(Metric::ToolsOffered(name, count)));
        }
        // Whoever has joined without lists is told of the first ones, if those come late.
        let is_late = is_first && entry.freshness.retry_after().is_some();
        let nothing = || Arc::new(Listing::new(after.info.clone()));
        let before = before.or(own).or_else(|| is_late.then(nothing));
        let changes = before.map(|before| before.diff(after)).unwrap_or_default();
        if !changes.changed.is_empty() && !is_first {
            let names: Vec<&str> = changes.changed.iter().map(|(_, key)| &**key).collect();
            let server = Arc::clone(&server.name);
            let counted = Metric::DefinitionsChanged(Arc::clone(&server), names.len());
            let names = names.join(", ");
            self.out.push(Effect::Log(LogLine::DefinitionsChanged { server, names }));
            self.out.push(Effect::Count(counted));
        }
        Some(changes)
    }

    /// A server offers other things than before, or for the first time: whoever sees them is told.
    fn offers_changed(&mut self, id: ServerId, key: ProfileKey, is_changed: impl Fn(Kind) -> bool) {
        self.catalogues.clear();
        let methods = Kind::ALL.into_iter().filter(|kind| is_changed(*kind)).map(Kind::changed);
        let mut methods: Vec<&str> = methods.collect();
        methods.dedup();
        if methods.is_empty() {
            return;
        }
        for client in self.open_clients() {
            let slot = self.slot_of(client, id);
            let is_shown = slot.is_some_and(|slot| self.sees(client, slot));
            let Some(server) = self.servers.get(id) else { return };
            let profile = self.clients.get(client).map(|it| server.profile_for(&it.profile));
            if is_shown && profile == Some(key) {
                methods.iter().for_each(|method| self.notify_client(client, method, None));
            }
        }
    }
}
