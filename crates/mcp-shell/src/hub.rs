//! The middle of the MCP thread: the servers, the clients' sessions, and what they share.
//!
//! Rules kept here:
//! - `initialize` is answered here and at once; nothing a server does can delay it.
//! - Sessions are bounded, and each caller's are (`admission`). An idle session is reaped, one with
//!   a call under way or an open stream never.
//! - What a caller may use is followed: a key that a reload narrows or removes binds its open
//!   sessions.
//! - Ids of sessions are 128 random bits of the system's, unrelated to any server's (S32).
//! - Catalogues are shared: one per profile, made when it is asked for and something has changed.

mod admission;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use serde_json::value::RawValue;
use tidegate_config::file::{self, McpFile, SeenServer};
use tidegate_core::time::Millis;
use tidegate_gateway::{
    caller::Caller,
    live::Live,
    log::{self, Refused},
};
use tidegate_mcp::{
    catalogue::{CAPABILITIES, Catalogue},
    listing::{Kind, Listing},
    message::{self, Fault, Id, Version},
    names::{Naming, NamingSettings, ServerNames},
    raw::{Fields, quoted},
    session::{Visibility, Waits},
    stateless::Envelope,
};
use tidegate_net::secret::random_hex;
use tidegate_runtime::task::{self, Owned};
use tidegate_text::glob::Glob;

pub(crate) use self::admission::CallTurn;
use self::admission::Calls;
use super::{
    client::{Client, Opening},
    door::{Answer, refusal},
    ground::Ground,
    group::Group,
    hello::{Hello, Profile, own_info},
    keeper,
    link::{Link, Owner},
    search::Indexes,
    server::Server,
};

/// Ways in which one caller's clients without a session introduce themselves. Each has connections
/// of its own, so they are few; the one idle for longest makes room.
const INTRODUCTIONS_MAX: usize = 16;
/// Catalogues that are kept: clients introduce themselves in a handful of ways, and one who varies
/// them for fun has its own made anew.
const CATALOGUES_MAX: usize = 64;
/// At the end of the gateway its own drain decides how long calls may go on.
const SHUTDOWN: Duration = Duration::from_secs(3600);

/// Servers, sessions, catalogues.
pub(crate) struct Hub {
    pub(crate) ground: Rc<Ground>,
    servers: RefCell<Vec<Kept>>,
    clients: RefCell<BTreeMap<String, Rc<Client>>>,
    /// Those who stand for clients without a session, by caller and introduction.
    stand_ins: RefCell<StandIns>,
    catalogues: RefCell<BTreeMap<Profile, Rc<Catalogue>>>,
    /// Calls under way.
    calls: Calls,
    /// What `find_tool` searches.
    pub(crate) indexes: Indexes,
    /// The config that is followed.
    followed: RefCell<Option<Arc<Live>>>,
}

/// By the name of the caller, and what it says of itself.
type StandIns = BTreeMap<(Arc<str>, Profile), Rc<Client>>;

/// A server, and the task that keeps an eye on it.
struct Kept {
    server: Rc<Server>,
    _keeper: Owned,
}

impl Hub {
    pub(crate) fn new(ground: Rc<Ground>) -> Rc<Self> {
        let hub = Rc::new(Self {
            ground,
            servers: RefCell::default(),
            clients: RefCell::default(),
            stand_ins: RefCell::default(),
            catalogues: RefCell::default(),
            calls: Calls::default(),
            indexes: Indexes::default(),
            followed: RefCell::default(),
        });
        hub.ground.set_hub(&hub);
        hub.follow();
        hub
    }

    /// Follows the config that serves, if it is another than before.
    pub(crate) fn follow(&self) {
        let live = self.ground.live();
        if self.followed.borrow().as_ref().is_some_and(|it| Arc::ptr_eq(it, &live)) {
            return;
        }
        let mcp = &live.file.mcp;
        self.ground.children.bound(mcp.max_children);
        let before = self.servers.take();
        let mut before: Vec<Option<Kept>> = before.into_iter().map(Some).collect();
        let mut servers = Vec::new();
        for kept in before.iter().flatten() {
            kept.server.follow_limits(&live);
        }
        for (name, file) in &mcp.servers {
            let is_it = |kept: &Option<Kept>| {
                let same = |it: &Kept| {
                    *it.server.name == **name && it.server.is_same(&self.ground, file, mcp)
                };
                kept.as_ref().is_some_and(same)
            };
            let kept = before.iter().position(is_it).and_then(|at| before[at].take());
            servers.push(kept.unwrap_or_else(|| {
                let server = Server::new(&self.ground, name, file, mcp);
                let home = Link::new(&self.ground, &server, Hello::own(), Owner::Gateway);
                *server.home.borrow_mut() = Some(Rc::clone(&home));
                let keeper = keeper::run(Rc::clone(&server), Rc::clone(&self.ground), home);
                let keeper = task::spawn_owned("mcp keeper", keeper);
                Kept { server, _keeper: keeper }
            }));
        }
        *self.servers.borrow_mut() = servers;
        *self.followed.borrow_mut() = Some(Arc::clone(&live));
        // Whoever has the config read again expects that lists are, too.
        self.servers().iter().for_each(|server| server.doubt_lists());
        self.catalogues.borrow_mut().clear();
        let groups = self.groups();
        for client in self.clients() {
            match live.callers.named(&client.caller().name) {
                Some(caller) => {
                    client.set_caller(caller);
                    client.reload(&groups);
                }
                // Its key is gone.
                None => self.end(&client),
            }
        }
        for gone in before.into_iter().flatten() {
            for link in gone.server.take_links() {
                link.stop();
                task::spawn("mcp farewell", async move { link.close().await });
            }
        }
    }

    /// The servers, in the order of the config.
    pub(crate) fn servers(&self) -> Vec<Rc<Server>> {
        self.servers.borrow().iter().map(|it| Rc::clone(&it.server)).collect()
    }

    /// What clients see of the servers, in the order of the config.
    pub(crate) fn groups(&self) -> Vec<Group> {
        let Some(live) = self.followed.borrow().clone() else { return Vec::new() };
        let servers = self.servers();
        let server = |name: &&str| servers.iter().find(|it| *it.name == **name).map(Rc::clone);
        let group = |seen: SeenServer<'_>| Group {
            name: seen.name.into(),
            servers: seen.members.iter().filter_map(server).collect(),
        };
        live.file.mcp.seen().into_iter().map(group).collect()
    }

    /// All clients, with a session or without.
    pub(crate) fn clients(&self) -> Vec<Rc<Client>> {
        let (clients, stand_ins) = (self.clients.borrow(), self.stand_ins.borrow());
        clients.values().chain(stand_ins.values()).map(Rc::clone).collect()
    }

    /// The session of this id.
    pub(crate) fn client(&self, id: &str) -> Option<Rc<Client>> {
        self.clients.borrow().get(id).map(Rc::clone)
    }

    /// Logs that a caller sent the id of another caller's session.
    pub(crate) fn tell_foreign_session(&self, caller: &str) {
        let gateway = &self.ground.worker.gateway;
        let refused = Refused {
            event: "foreign_session",
            caller,
            path: crate::PATH,
            route: "",
            request_id: "",
        };
        log::refused(&gateway.line_limit, gateway.now(), &refused);
    }

    /// Opens a session and answers.
    pub(crate) fn initialize(
        &self,
        id: &Id,
        params: Option<&RawValue>,
        caller: &Arc<Caller>,
    ) -> Answer {
        self.follow();
        let live = self.ground.live();
        let mcp = &live.file.mcp;
        if mcp.servers.is_empty() {
            return no_servers();
        }
        let Ok(params) = params.map_or(Ok(Fields::default()), |it| Fields::of(it, &[])) else {
            let fault = Fault::params(id, "params of `initialize` must be a plain object");
            return Answer::json(StatusCode::BAD_REQUEST, fault.to_answer());
        };
        if let Err(refused) = self.make_room(caller, mcp) {
            return refused;
        }
        let Some(session_id) = random_id() else {
            let broken = "the system gives no random numbers";
            return Answer::json(StatusCode::INTERNAL_SERVER_ERROR, refusal(broken));
        };
        let version = Version::negotiate(&params.text("protocolVersion").unwrap_or_default());
        let opening = Opening {
            id: session_id.clone(),
            caller: Arc::clone(caller),
            version,
            hello: Hello::of_client(&params, version),
            visibility: visibility(mcp),
            waits: waits(mcp),
        };
        let client = Client::open(&self.ground, opening, &self.groups());
        let result = greeting(&client, &self.catalogue(&client.hello));
        self.clients.borrow_mut().insert(session_id.clone(), client);
        self.count();
        let answer = Answer::json(StatusCode::OK, message::result(id, &result));
        Answer { session: Some(session_id), ..answer }
    }

    /// Whoever stands for a client without a session, as one request introduces it.
    pub(crate) fn stand_in(
        &self,
        caller: &Arc<Caller>,
        envelope: &Envelope,
    ) -> Result<Rc<Client>, Answer> {
        self.follow();
        let live = self.ground.live();
        let mcp = &live.file.mcp;
        if mcp.servers.is_empty() {
            return Err(no_servers());
        }
        let hello = Hello::of_envelope(envelope);
        let key = (Arc::clone(&caller.name), hello.profile);
        let known = self.stand_ins.borrow().get(&key).filter(|it| !it.is_over()).map(Rc::clone);
        if let Some(known) = known {
            let is_busy = known.is_busy();
            let busy = || Answer::busy("too many requests are under way; try again");
            return if is_busy { Err(busy()) } else { Ok(known) };
        }
        let is_own = |(name, _): &&(Arc<str>, Profile)| *name == caller.name;
        let count = self.stand_ins.borrow().keys().filter(is_own).count();
        let is_one = |it: &Client| it.hello.is_stateless();
        if count >= INTRODUCTIONS_MAX && !self.end_oldest_idle(caller, is_one) {
            return Err(Answer::busy("too many kinds of clients are at work; try again"));
        }
        self.make_room(caller, mcp)?;
        let opening = Opening {
            id: String::new(),
            caller: Arc::clone(caller),
            version: Version::LATEST,
            hello,
            visibility: Visibility::Request,
            waits: waits(mcp),
        };
        let client = Client::open(&self.ground, opening, &self.groups());
        self.stand_ins.borrow_mut().insert(key, Rc::clone(&client));
        Ok(client)
    }

    /// Whether any client wants to hear of a resource of a shared server.
    pub(crate) fn is_subscribed(&self, uri: &str) -> bool {
        self.clients().iter().any(|client| client.is_subscribed(uri))
    }

    /// Ends a session; calls under way may finish.
    pub(crate) fn end(&self, client: &Rc<Client>) {
        self.clients.borrow_mut().remove(&client.id);
        self.stand_ins.borrow_mut().retain(|_, it| !Rc::ptr_eq(it, client));
        self.count();
        let client = Rc::clone(client);
        task::spawn("end of an mcp session", async move { client.end().await });
    }

    /// Ends sessions that nobody has used for as long as the config allows.
    pub(crate) fn reap(&self) {
        let live = self.ground.live();
        let now = self.ground.now();
        let limit = live.file.mcp.session.idle.millis();
        for client in self.clients() {
            client.parked.sweep(now);
            if client.idle_since().is_some_and(|since| now.since(since) >= limit) {
                self.end(&client);
            }
        }
    }

    /// Everything that all servers offer clients of a kind.
    pub(crate) fn catalogue(&self, hello: &Hello) -> Rc<Catalogue> {
        if let Some(known) = self.catalogues.borrow().get(&hello.profile) {
            return Rc::clone(known);
        }
        // The config whose servers these are: the one that serves may be newer for a moment.
        let followed = self.followed.borrow().clone();
        let live = followed.unwrap_or_else(|| self.ground.live());
        let listing = |group: &Group| group.listing(hello);
        let listings: Vec<Option<Arc<Listing>>> = self.groups().iter().map(listing).collect();
        let catalogue = Rc::new(Catalogue::new(&naming(&live.file.mcp), &listings));
        let mut catalogues = self.catalogues.borrow_mut();
        if catalogues.len() >= CATALOGUES_MAX {
            catalogues.clear();
        }
        catalogues.insert(hello.profile, Rc::clone(&catalogue));
        drop(catalogues);
        catalogue
    }

    /// Whatever was made of all servers' lists is made anew when it is asked for.
    pub(crate) fn forget_catalogues(&self) {
        self.catalogues.borrow_mut().clear();
    }

    /// A server offers other things than before, or for the first time.
    pub(crate) fn offers_changed(
        &self,
        server: &Server,
        profile: Profile,
        is_changed: impl Fn(Kind) -> bool,
    ) {
        self.catalogues.borrow_mut().clear();
        let methods = Kind::ALL.into_iter().filter(|kind| is_changed(*kind)).map(Kind::changed);
        let mut methods: Vec<&str> = methods.collect();
        methods.dedup();
        for client in self.clients() {
            let place = client.place_of(server);
            let is_shown = place.is_some_and(|place| client.sees(place));
            if is_shown && server.profile_for(&client.hello) == profile {
                methods.iter().for_each(|method| client.notify(method, None));
            }
        }
    }

    /// A resource of a shared server was updated.
    pub(crate) fn resource_updated(&self, server: &Server, uri: &str, params: Option<&str>) {
        for client in self.clients() {
            if client.place_of(server).is_some() && client.is_subscribed(uri) {
                client.notify("notifications/resources/updated", params);
            }
        }
    }

    /// Probes a server now; `None` if there is none of this name, or nothing to probe it over.
    pub(crate) async fn probe(&self, name: &str) -> Option<bool> {
        let server = self.servers().into_iter().find(|it| &*it.name == name)?;
        keeper::probe(&server, &self.ground).await
    }

    /// Something changed that sessions may be waiting for.
    pub(crate) fn wake(&self) {
        self.clients().iter().for_each(|client| client.wake());
    }

    /// Everything ends, in good order.
    pub(crate) async fn close(&self) {
        let clients = self.clients();
        self.clients.borrow_mut().clear();
        self.stand_ins.borrow_mut().clear();
        self.count();
        let mut ending = tokio::task::JoinSet::new();
        for client in clients {
            ending.spawn_local(async move {
                let links = client.end_links(SHUTDOWN).await;
                for link in links {
                    link.close().await;
                }
            });
        }
        for kept in self.servers.take() {
            for link in kept.server.take_links() {
                link.stop();
                ending.spawn_local(async move { link.close().await });
            }
        }
        while ending.join_next().await.is_some() {}
    }

    fn count(&self) {
        self.ground.gateway().metrics.mcp_sessions(self.clients.borrow().len());
    }
}

/// The result of `initialize`.
fn greeting(client: &Client, catalogue: &Catalogue) -> String {
    let instructions = catalogue.instructions(|place| client.may_use(place));
    let instructions = instructions
        .map(|text| format!(r#","instructions":{}"#, quoted(&text)))
        .unwrap_or_default();
    format!(
        r#"{{"protocolVersion":"{}","capabilities":{CAPABILITIES},"serverInfo":{}{instructions}}}"#,
        client.version,
        own_info(),
    )
}

fn no_servers() -> Answer {
    Answer::json(StatusCode::NOT_FOUND, refusal("no MCP server is configured"))
}

/// 128 random bits.
pub(super) fn random_id() -> Option<String> {
    random_hex::<16>()
}

fn visibility(mcp: &McpFile) -> Visibility {
    match mcp.visibility {
        file::Visibility::Session => Visibility::Session,
        file::Visibility::Live => Visibility::Live,
    }
}

fn waits(mcp: &McpFile) -> Waits {
    Waits {
        known: mcp.connect_wait.millis(),
        unknown: mcp.connect_timeout.millis(),
        child: Millis(mcp.call_timeout.millis().0.max(mcp.connect_timeout.millis().0)),
        ..Waits::default()
    }
}

/// How the tools of a config are named.
pub fn naming(mcp: &McpFile) -> NamingSettings {
    let globs = |texts: &[String]| texts.iter().map(|text| Glob::new(text)).collect::<Vec<_>>();
    // A group's tools are those of its first member.
    let seen = mcp.seen().into_iter();
    let seen = seen.filter_map(|it| Some((it.name, mcp.servers.get(*it.members.first()?)?)));
    let servers = seen.map(|(name, file)| ServerNames {
        name: name.to_owned(),
        include: file.include.as_deref().map(globs),
        exclude: globs(&file.exclude),
        rename: file.rename.iter().map(|(from, to)| (from.clone(), to.clone())).collect(),
    });
    NamingSettings {
        naming: match mcp.naming {
            file::Naming::Prefix => Naming::Prefix,
            file::Naming::Priority => Naming::Priority,
            file::Naming::Manual => Naming::Manual,
        },
        servers: servers.collect(),
    }
}
