//! What one server offers, kept per profile, fetched once for everybody.
//!
//! Rules kept here:
//! - A listing is fetched over a connection that is there anyway, never per session: when a profile
//!   is first seen, after the server said that something changed, and when it is used and due
//!   ([`tidegate_mcp::freshness`]). There is one fetch at a time per server; concurrent wishes
//!   share it, and what changes meanwhile is fetched once more.
//! - The last listing is offered while the next one is fetched, and stays when that fails or the
//!   server is down: names depend on the config and not on health.
//! - Bounded: [`PROFILES_MAX`] profiles, of which the one unused for longest makes room.
//! - A definition that changed is told on, once (S39).

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tidegate_core::time::{Millis, Now};
use tidegate_mcp::{
    cause::Cause,
    era::Era,
    freshness::Freshness,
    listing::{Changes, Gather, Kind, Listing, ServerInfo, Shortfall},
    message::{METHOD_NOT_FOUND, Params},
};
use tidegate_runtime::task::{self, Owned};
use tokio::sync::Notify;

use super::{
    conversation::{Conversation, Reply, Voice},
    hello::{Hello, Profile},
    link::{Link, read_error},
    server::Server,
    transport::Failure,
};

/// Clients introduce themselves in a handful of ways.
const PROFILES_MAX: usize = 16;
/// After a server said that something changed: it often says so several times in a row.
const SETTLE: Duration = Duration::from_millis(50);

/// The listings of one server.
#[derive(Default)]
pub(crate) struct Shelf {
    by_profile: RefCell<BTreeMap<Profile, Entry>>,
    /// Counts looks.
    looks: Cell<u64>,
    /// A listing has arrived, or a fetch has failed.
    news: Notify,
    /// Held by the fetch that is under way.
    turn: Rc<tokio::sync::Mutex<()>>,
}

#[derive(Default)]
struct Entry {
    freshness: Freshness,
    /// The latest look.
    looked_at: Cell<u64>,
    /// Who looked first, and in which era: on whose behalf it is looked again.
    hello: Option<(Hello, Era)>,
    listing: Option<Arc<Listing>>,
    /// The fetch under way.
    fetching: Option<Owned>,
    /// Kinds that changed while it was under way.
    stale: Vec<Kind>,
    /// Kinds that the server said have changed: clients are told, whatever is found.
    announced: Vec<Kind>,
    /// What the last listing lacked: it is told once, and not at every fetch.
    shortfall: Shortfall,
}

impl Shelf {
    /// What a client of this profile is offered, as far as it is known.
    pub(crate) fn listing(&self, profile: Profile) -> Option<Arc<Listing>> {
        let shelf = self.by_profile.borrow();
        let look = self.looks.get() + 1;
        self.looks.set(look);
        let of = |profile| {
            let entry: &Entry = shelf.get(&profile)?;
            entry.looked_at.set(look);
            entry.listing.clone()
        };
        of(profile).or_else(|| of(Profile::own()))
    }

    /// Whether it is known what exactly this profile is offered.
    pub(crate) fn knows(&self, profile: Profile) -> bool {
        let shelf = self.by_profile.borrow();
        match shelf.get(&profile) {
            Some(entry) => entry.listing.is_some(),
            None => false,
        }
    }

    /// On whose behalf lists were fetched in an era.
    pub(crate) fn hellos_in(&self, era: Era) -> Vec<Hello> {
        let shelf = self.by_profile.borrow();
        let hellos = shelf.values().filter_map(|entry| entry.hello.as_ref());
        hellos.filter(|(_, other)| *other == era).map(|(hello, _)| hello.clone()).collect()
    }

    /// Every listing may be out of date.
    pub(crate) fn doubt(&self) {
        self.by_profile.borrow_mut().values_mut().for_each(|entry| entry.freshness.doubt());
    }

    /// Whether a listing that is known is to be fetched again, now that it is used.
    pub(crate) fn is_due(&self, profile: Profile, now: Now, fresh_for: Millis) -> bool {
        let shelf = self.by_profile.borrow();
        let known = shelf.get(&profile).filter(|it| it.listing.is_some() && it.fetching.is_none());
        known.is_some_and(|entry| entry.freshness.is_due(now, fresh_for))
    }

    /// Whether a server introduces itself otherwise than when its listing was fetched.
    pub(crate) fn is_another(&self, profile: Profile, info: &ServerInfo) -> bool {
        let shelf = self.by_profile.borrow();
        let listing = shelf.get(&profile).and_then(|entry| entry.listing.as_ref());
        listing.is_some_and(|listing| !listing.info.is_same(info))
    }

    /// Whether a fetch for this profile is under way.
    pub(crate) fn is_fetching(&self, profile: Profile) -> bool {
        self.by_profile.borrow().get(&profile).is_some_and(|entry| entry.fetching.is_some())
    }

    /// Waits for a fetch to end.
    pub(crate) fn news(&self) -> tokio::sync::futures::Notified<'_> {
        self.news.notified()
    }
}

/// Fetches over this link what is not known: everything, or the kinds that changed.
pub(crate) fn fetch(server: &Rc<Server>, link: &Link, hello: &Hello, kinds: &[Kind]) {
    let era = link.era();
    let profile = hello.profile_in(era);
    let Some(talk) = link.conversation() else { return };
    let Some(info) = link.info() else { return };
    let mut shelf = server.shelf.by_profile.borrow_mut();
    if !shelf.contains_key(&profile) && shelf.len() >= PROFILES_MAX && !make_room(&mut shelf) {
        return;
    }
    let entry = shelf.entry(profile).or_default();
    entry.hello.get_or_insert_with(|| (hello.clone(), era));
    if kinds.len() < Kind::ALL.len() {
        entry.announced.extend(kinds);
    }
    if entry.fetching.is_some() {
        entry.stale.extend(kinds);
        return;
    }
    let before = entry.listing.clone();
    let mut gather = match &before {
        Some(before) if kinds.len() < Kind::ALL.len() => Gather::again(before, kinds),
        _ => Gather::new((*info).clone()),
    };
    if let Some(before) = &before {
        gather.fall_back_on(Arc::clone(before));
    }
    if kinds.len() == Kind::ALL.len() {
        entry.freshness.begin();
    }
    if talk.is_stateless() && talk.is_http() {
        gather.check_headers();
    }
    let is_first = before.is_none();
    let turn = Rc::clone(&server.shelf.turn);
    let (hello, link) = (hello.clone(), link.downgrade());
    let fetching = Fetching { server: Rc::downgrade(server), link, profile, hello };
    entry.fetching = Some(task::spawn_owned("mcp listing", async move {
        if !is_first {
            tokio::time::sleep(SETTLE).await;
        }
        let _turn = turn.lock().await;
        fetching.run(&talk, gather).await;
    }));
}

/// Whether one listing could be put away: the one that nobody has looked at for longest.
fn make_room(shelf: &mut BTreeMap<Profile, Entry>) -> bool {
    let others = shelf.iter().filter(|(profile, _)| **profile != Profile::own());
    let idle = others.filter(|(_, entry)| entry.fetching.is_none());
    let oldest = idle.min_by_key(|(_, entry)| entry.looked_at.get());
    let oldest = oldest.map(|(profile, _)| *profile);
    oldest.and_then(|profile| shelf.remove(&profile)).is_some()
}

struct Fetching {
    server: Weak<Server>,
    link: Weak<Link>,
    profile: Profile,
    hello: Hello,
}

impl Fetching {
    async fn run(self, talk: &Rc<Conversation>, gather: Gather) {
        let Some(server) = self.server.upgrade() else { return };
        let gathered = gathered(&server, talk, gather, &self.hello).await;
        let changes = match gathered {
            Some((listing, shortfall)) => {
                let is_whole = shortfall.failed.is_empty();
                server.tell_shortfall(self.profile, shortfall);
                server.shelved(self.profile, listing).map(|changes| (changes, is_whole))
            }
            None => None,
        };
        let is_whole = changes.as_ref().is_some_and(|(_, is_whole)| *is_whole);
        let changes = changes.map(|(changes, _)| changes);
        let (stale, announced) = {
            let mut shelf = server.shelf.by_profile.borrow_mut();
            let Some(entry) = shelf.get_mut(&self.profile) else { return };
            match is_whole {
                true => entry.freshness.fetched(server.now()),
                false => entry.freshness.failed(server.now()),
            }
            if let Some(fetching) = entry.fetching.take() {
                fetching.detach();
            }
            (std::mem::take(&mut entry.stale), std::mem::take(&mut entry.announced))
        };
        if let (false, Some(link)) = (stale.is_empty(), self.link.upgrade()) {
            fetch(&server, &link, &self.hello, &stale);
        }
        server.shelf.news.notify_waiters();
        if let Some(changes) = changes {
            server.offers_changed(self.profile, &changes, &announced);
        }
    }
}

/// Follows the pages to their end; `None` if the server did not answer.
async fn gathered(
    server: &Server,
    talk: &Rc<Conversation>,
    gather: Gather,
    hello: &Hello,
) -> Option<(Listing, Shortfall)> {
    match pages(talk, gather, hello, server.call_timeout).await {
        Ok(gathered) => Some(gathered),
        // A session that ends takes its connection along; the list that is there stays.
        Err((_, failure)) if failure.cause == Cause::Closing => None,
        Err((kind, failure)) => {
            tracing::warn!(server = &*server.name, %kind, cause = %failure.cause, "no list");
            None
        }
    }
}

/// Follows the pages to their end. Every answer may take as long as `within`.
pub(super) async fn pages(
    talk: &Rc<Conversation>,
    mut gather: Gather,
    hello: &Hello,
    within: Millis,
) -> Result<(Listing, Shortfall), (Kind, Failure)> {
    while let Some(ask) = gather.ask() {
        let params = ask.params().and_then(|json| RawValue::from_string(json).ok());
        let params = Params::parse(params.as_deref()).unwrap_or_default();
        match talk.ask(ask.method(), params, Voice::of(hello), within).await {
            Reply::Answer(Ok(result)) => {
                let page = serde_json::from_slice::<&RawValue>(&result).ok();
                if page.is_none_or(|page| gather.page(page).is_err()) {
                    gather.failed();
                }
            }
            Reply::Answer(Err(error)) => {
                match read_error(&error).is_some_and(|it| it.code == METHOD_NOT_FOUND) {
                    true => gather.refused(),
                    false => gather.failed(),
                }
            }
            Reply::Failed(failure) if failure.cause == Cause::TooLarge => gather.too_large(),
            Reply::Failed(failure) => return Err((ask.kind, failure)),
        }
    }
    Ok(gather.finish())
}

impl Server {
    /// Tells what a listing lacks, unless the one before lacked the same.
    fn tell_shortfall(&self, profile: Profile, shortfall: Shortfall) {
        let mut shelf = self.shelf.by_profile.borrow_mut();
        let Some(entry) = shelf.get_mut(&profile).filter(|it| it.shortfall != shortfall) else {
            return;
        };
        if !shortfall.is_empty() {
            tracing::warn!(
                server = &*self.name,
                lacking = %shortfall,
                "a server's lists are not offered whole"
            );
            self.count_skipped(shortfall.skipped);
        }
        entry.shortfall = shortfall;
    }

    /// Puts a listing on the shelf; how it differs from the one before.
    fn shelved(&self, profile: Profile, listing: Listing) -> Option<Changes> {
        let mut shelf = self.shelf.by_profile.borrow_mut();
        // Until a profile has a listing of its own, it is shown the gateway's.
        let own = shelf.get(&Profile::own()).and_then(|entry| entry.listing.clone());
        let entry = shelf.get_mut(&profile)?;
        let before = entry.listing.replace(Arc::new(listing));
        let is_first = before.is_none();
        let after = entry.listing.as_ref()?;
        let changes = before.or(own).map(|before| before.diff(after)).unwrap_or_default();
        if !changes.changed.is_empty() && !is_first {
            let names: Vec<&str> = changes.changed.iter().map(|(_, key)| &**key).collect();
            tracing::warn!(
                server = &*self.name,
                names = names.join(", "),
                "definitions changed while they were offered"
            );
            self.count_changed(names.len());
        }
        Some(changes)
    }
}
