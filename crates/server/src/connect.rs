//! Asks everything a config leads to, once: every provider and every MCP server, all at once.
//!
//! For `check --connect`, and for commands that want the tools of a config's servers without a
//! gateway. It uses the very parts that serve: probes for providers, links for
//! servers. No listener is opened, and nothing is left behind.
//!
//! Rules kept here:
//! - Everything has its own deadline, so one that hangs delays nobody's row.
//! - Any HTTP answer means that a provider can be reached. It can be used only if it accepts its
//!   key and knows the path: a 401, 403 or 404 is what every request would meet.
//! - Causes are the fixed phrases that clients see too, never an address. Words of servers and
//!   programs come separately, with control characters escaped.
//!
//! Left to others: how it is shown.

mod hint;

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tidegate_config::{
    file::{McpFile, SeenServer},
    secret::Environment,
    source::Source,
    store_url::StoreUrl,
};
use tidegate_core::time::Millis;
use tidegate_gateway::{
    gateway::Gateway,
    live::Live,
    log::Overheard,
    prepare::{StartError, prepare},
    provider::{Target, any_model},
    worker::Worker,
};
use tidegate_llm::own_request::ask_route;
use tidegate_mcp::{
    catalogue::Catalogue,
    cause::Cause,
    listing::{Kind, Listing},
};
use tidegate_mcp_shell::{McpRuntime, NoVisit, all_left, naming, visit};
use tidegate_net::upstream::ConnectError;
use tidegate_operator::probe::{Silence, status_of};
use tidegate_runtime::clock::Clock;
use tidegate_search::{Document, Listed};
use tokio::task::{JoinSet, LocalSet};

/// How often a caller hears how far it is.
const TELL_EVERY: Duration = Duration::from_millis(100);

/// How the log begins to say of a server that its config is wrong.
const UNUSABLE: &str = "a server cannot be used as configured";

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Connected {
    /// Every provider, in the order of the config.
    pub providers: Vec<ProviderVisit>,
    /// Every MCP server, in the order of the config.
    pub servers: Vec<ServerVisit>,
    /// The fleet's store, if the config has one.
    pub store: Option<StoreVisit>,
    /// What is not offered because of something else.
    pub conflicts: Vec<Clash>,
    /// Definitions with characters that people do not see.
    pub hidden: Vec<Hidden>,
}

impl Connected {
    /// How many can be used, and how many there are.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        let providers = self.providers.iter().map(|it| it.refusal().is_none());
        let all = providers.chain(self.servers.iter().map(|it| it.answer.is_ok()));
        let all = all.chain(self.store.iter().map(|it| it.answer.is_ok()));
        all.fold((0, 0), |(up, all), is_up| (up + usize::from(is_up), all + 1))
    }
}

/// How a provider answered.
#[derive(Clone, Debug)]
pub struct ProviderVisit {
    /// Its name.
    pub name: String,
    /// How long it took.
    pub took: Millis,
    /// The HTTP status of its answer.
    pub answer: Result<u16, Trouble>,
    /// Whether a key was sent.
    pub has_key: bool,
}

impl ProviderVisit {
    /// Why it could not be used, if it could not.
    #[must_use]
    pub fn refusal(&self) -> Option<Trouble> {
        match &self.answer {
            Ok(status) => hint::of_status(*status, self.has_key),
            Err(trouble) => Some(trouble.clone()),
        }
    }
}

/// How the fleet's store answered.
#[derive(Clone, Debug)]
pub struct StoreVisit {
    /// Where it is, without a password.
    pub name: String,
    /// How long it took.
    pub took: Millis,
    /// Whether it can be used.
    pub answer: Result<(), Trouble>,
}

/// How a server answered.
#[derive(Clone, Debug)]
pub struct ServerVisit {
    /// Its name in the config.
    pub name: String,
    /// How long it took, its lists included.
    pub took: Millis,
    /// What it offers.
    pub answer: Result<Offer, Trouble>,
    /// What a log would have said meanwhile.
    pub remarks: Vec<String>,
}

/// What a server offers.
#[derive(Clone, Debug, Default)]
pub struct Offer {
    /// Its name for itself.
    pub name: Option<String>,
    /// Its version, as it says.
    pub version: Option<String>,
    /// The protocol version it speaks.
    pub protocol: String,
    /// How many tools it has.
    pub tools: usize,
    /// How many resources it lists.
    pub resources: usize,
    /// How many templates of resources it has.
    pub templates: usize,
    /// How many prompts it has.
    pub prompts: usize,
}

/// Why something could not be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// A fixed phrase.
    pub cause: String,
    /// What may help.
    pub hint: String,
}

/// A definition that is not offered because of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clash {
    /// `tools`, `prompts`, `resources`, `resource templates`.
    pub kind: String,
    /// The name that it would have.
    pub name: String,
    /// Whose it is.
    pub server: String,
    /// What that server calls it.
    pub own: String,
    /// Who has the name instead.
    pub winner: Option<String>,
    /// All of it as a sentence.
    pub sentence: String,
}

/// A definition with text that people do not see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hidden {
    /// `tools`, `prompts`, `resources`, `resource templates`.
    pub kind: String,
    /// Its name for clients, with such characters escaped.
    pub name: String,
    /// Whose it is.
    pub server: String,
}

/// How far it is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// How many have ended.
    pub ended: usize,
    /// Of how many.
    pub all: usize,
    /// How long it has been going on.
    pub since: Millis,
}

/// Asks everything; `told` hears several times a second how far it is. Blocks until all is done.
///
/// # Errors
/// The config is not sound, or a provider cannot be used as configured.
pub fn connect(
    source: &Source,
    environment: Arc<dyn Environment + Send + Sync>,
    told: impl FnMut(Progress),
) -> Result<Connected, StartError> {
    let visited = visit_all(source, environment, Whom::Everybody, told)?;
    let store = |live: &Live| live.store.as_ref().and_then(visit_store);
    let connected = visited.map(|(live, found)| {
        let store = store(&live);
        Connected { store, ..summed_up(&live, found) }
    });
    Ok(connected.unwrap_or_default())
}

/// Asks a fleet's store; `None` if the system has no runtime to ask with.
fn visit_store(url: &StoreUrl) -> Option<StoreVisit> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let clock = Clock::start();
    let answer = runtime.block_on(tidegate_fleet::check::store(url));
    let answer = answer
        .map_err(|problem| Trouble { cause: problem.to_string(), hint: problem.hint().to_owned() });
    let took = Millis(clock.now().0);
    Some(StoreVisit { name: url.to_string(), took, answer })
}

/// The tools of a config's MCP servers, as its gateway would name them, and how each server
/// answered. No provider is asked. `told` and blocking as for [`connect`].
///
/// # Errors
/// As for [`connect`].
pub fn tools(
    source: &Source,
    environment: Arc<dyn Environment + Send + Sync>,
    told: impl FnMut(Progress),
) -> Result<(Vec<Document>, Vec<ServerVisit>), StartError> {
    let Some((live, found)) = visit_all(source, environment, Whom::Servers, told)? else {
        return Ok((Vec::new(), Vec::new()));
    };
    let mcp = &live.file.mcp;
    let mut listings = vec![None; mcp.servers.len()];
    let mut visits = Vec::new();
    for visited in found {
        if let Visited::Server(place, visit, listing) = visited {
            listings[place] = listing;
            visits.push((place, visit));
        }
    }
    visits.sort_by_key(|(place, _)| *place);
    let (seen, listings) = as_seen(mcp, &listings);
    let catalogue = Catalogue::new(&naming(mcp), &listings);
    let document = |tool: &tidegate_mcp::catalogue::Offered| {
        let server = seen.get(tool.server)?.name;
        let words = listings.get(tool.server)?.as_ref()?.info.instructions.clone();
        let listed = Listed { id: &tool.name, name: &tool.own, definition: &tool.raw };
        Some(Document::of(&listed, server, &words.unwrap_or_default()))
    };
    let tools = catalogue.tools().iter().filter_map(document).collect();
    Ok((tools, visits.into_iter().map(|(_, visit)| visit).collect()))
}

/// Who is asked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whom {
    Everybody,
    Servers,
}

/// The config that was followed, and what every visit brought.
type Visits = (Arc<Live>, Vec<Visited>);

/// Nothing if the config leads nowhere.
fn visit_all(
    source: &Source,
    environment: Arc<dyn Environment + Send + Sync>,
    whom: Whom,
    told: impl FnMut(Progress),
) -> Result<Option<Visits>, StartError> {
    let (live, _) = prepare(source, None, &*environment, None)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(StartError::Thread)?;
    Ok(Some(LocalSet::new().block_on(&runtime, ask_all(live, environment, whom, told))))
}

/// What one visit brought, and its place in the config.
enum Visited {
    Provider(usize, ProviderVisit),
    Server(usize, ServerVisit, Option<Arc<Listing>>),
}

async fn ask_all(
    live: Live,
    environment: Arc<dyn Environment + Send + Sync>,
    whom: Whom,
    mut told: impl FnMut(Progress),
) -> Visits {
    let overheard = Rc::new(Overheard::begin());
    // Nobody listens: the addresses are asked for by nothing that runs here.
    let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
    let gateway = Arc::new(Gateway::new(live, Clock::start(), nowhere, nowhere));
    let live = gateway.live.load_full();
    let worker = Rc::new(Worker::new(Arc::clone(&gateway)));
    let runtime = McpRuntime::new(Rc::clone(&worker), ask_route(&worker), environment);
    let mut visits = JoinSet::new();
    let providers = live.file.providers.keys().enumerate();
    for (place, name) in providers.filter(|_| whom == Whom::Everybody) {
        let Some(target) = live.target(&any_model(name)).map(Arc::clone) else { continue };
        let worker = Rc::clone(&worker);
        visits.spawn_local(async move {
            Visited::Provider(place, ask_provider(&worker, &target).await)
        });
    }
    for (place, name) in live.file.mcp.servers.keys().enumerate() {
        let (runtime, name) = (Rc::clone(&runtime), name.clone());
        let overheard = Rc::clone(&overheard);
        visits.spawn_local(async move {
            let (visit, listing) = ask_server(&runtime, &name, &overheard).await;
            Visited::Server(place, visit, listing)
        });
    }
    let all = visits.len();
    let mut found = Vec::with_capacity(all);
    while found.len() < all {
        told(Progress { ended: found.len(), all, since: Millis(gateway.now().0) });
        match tokio::time::timeout(TELL_EVERY, visits.join_next()).await {
            Ok(Some(Ok(visited))) => found.push(visited),
            // A broken rule of ours is not a server that cannot be reached.
            Ok(Some(Err(error))) => std::panic::resume_unwind(error.into_panic()),
            Ok(None) => break,
            Err(_) => {}
        }
    }
    all_left(&runtime).await;
    (live, found)
}

async fn ask_provider(worker: &Worker, target: &Target) -> ProviderVisit {
    let (gateway, provider) = (&worker.gateway, &target.provider);
    let began = gateway.now();
    let has_key = target.credentials.iter().flatten().next().is_some();
    let live = gateway.live.load();
    let missing = live.file.providers.get(&*provider.name).and_then(hint::missing_key);
    let answer = match missing {
        // Without its key it is not used, so it is not asked either.
        Some(trouble) if !has_key => Err(trouble),
        _ => {
            let within = target.timeouts.connect.0.saturating_add(provider.probe.timeout.0);
            let asking = status_of(worker, target);
            match tokio::time::timeout(Duration::from_millis(within), asking).await {
                Ok(Ok(status)) => Ok(status.as_u16()),
                Ok(Err(silence)) => Err(hint::of_provider(cause_of(silence))),
                Err(_) => Err(hint::of_provider(Cause::TimedOut(Millis(within)))),
            }
        }
    };
    let (name, took) = (provider.name.to_string(), gateway.now().since(began));
    ProviderVisit { name, took, answer, has_key }
}

const fn cause_of(silence: Silence) -> Cause {
    match silence {
        Silence::Path => Cause::ConnectionFailed,
        Silence::Broken => Cause::ConnectionBroken,
        Silence::Connect(error) => match error {
            ConnectError::Dns => Cause::NameNotResolved,
            ConnectError::Private => Cause::PrivateAddress,
            ConnectError::Refused => Cause::ConnectionRefused,
            ConnectError::Failed => Cause::ConnectionFailed,
            ConnectError::Tls => Cause::TlsFailed,
            ConnectError::Shortage => Cause::Shortage,
        },
    }
}

async fn ask_server(
    runtime: &Rc<McpRuntime>,
    name: &str,
    overheard: &Overheard,
) -> (ServerVisit, Option<Arc<Listing>>) {
    let began = runtime.now();
    let live = runtime.live();
    let mcp = &live.file.mcp;
    let file = mcp.servers.get(name).expect("the names are those of the config");
    let visited = visit(runtime, name).await;
    let (answer, listing) = match visited {
        Ok(listing) => (Ok(offer(&listing)), Some(listing)),
        Err(no_visit) => (Err(trouble(no_visit, file.command.is_some())), None),
    };
    let took = runtime.now().since(began);
    let mut remarks = overheard.take(name);
    // What is wrong with the config is told once.
    remarks.retain(|remark| !remark.starts_with(UNUSABLE));
    (ServerVisit { name: name.to_owned(), took, answer, remarks }, listing)
}

fn trouble(no_visit: NoVisit, is_child: bool) -> Trouble {
    match no_visit {
        NoVisit::Unreached(cause) => hint::of_server(cause, is_child),
        NoVisit::Unusable(reason) => Trouble {
            // It begins with the server's name, which stands beside it.
            cause: reason.split_once("`: ").map_or(reason.clone(), |(_, why)| why.to_owned()),
            hint: "nothing is asked of it until this is mended".to_owned(),
        },
        NoVisit::NoLists => Trouble {
            cause: "its lists did not come".to_owned(),
            hint: "it can be reached, but `tools/list` and the like are not answered".to_owned(),
        },
    }
}

fn offer(listing: &Listing) -> Offer {
    let info = &listing.info;
    let said: Value = info
        .server_info
        .as_deref()
        .and_then(|json| serde_json::from_str(json.get()).ok())
        .unwrap_or_default();
    let text = |key: &str| said[key].as_str().map(shown).filter(|text| !text.is_empty());
    let count = |kind| listing.items(kind).len();
    Offer {
        name: text("name"),
        version: text("version"),
        protocol: shown(&info.version),
        tools: count(Kind::Tools),
        resources: count(Kind::Resources),
        templates: count(Kind::Templates),
        prompts: count(Kind::Prompts),
    }
}

fn summed_up(live: &Live, found: Vec<Visited>) -> Connected {
    let mcp = &live.file.mcp;
    let mut connected = Connected::default();
    let mut listings = vec![None; mcp.servers.len()];
    let (mut providers, mut servers) = (Vec::new(), Vec::new());
    for visited in found {
        match visited {
            Visited::Provider(place, visit) => providers.push((place, visit)),
            Visited::Server(place, visit, listing) => {
                listings[place] = listing;
                servers.push((place, visit));
            }
        }
    }
    providers.sort_by_key(|(place, _)| *place);
    servers.sort_by_key(|(place, _)| *place);
    connected.providers = providers.into_iter().map(|(_, visit)| visit).collect();
    connected.servers = servers.into_iter().map(|(_, visit)| visit).collect();
    let (seen, listings) = as_seen(mcp, &listings);
    let catalogue = Catalogue::new(&naming(mcp), &listings);
    connected.conflicts = catalogue
        .conflicts()
        .iter()
        .map(|it| Clash {
            kind: it.kind.to_string(),
            name: shown(&it.name),
            server: it.server.to_string(),
            own: shown(&it.own),
            winner: it.winner.as_ref().map(ToString::to_string),
            sentence: it.to_string(),
        })
        .collect();
    for kind in Kind::ALL {
        let flagged = catalogue.offers(kind).iter().filter(|it| it.has_hidden_text);
        connected.hidden.extend(flagged.filter_map(|it| {
            let server = seen.get(it.server)?.name.to_owned();
            let (kind, name) = (kind.to_string(), shown(&it.name));
            Some(Hidden { kind, name, server })
        }));
    }
    connected
}

/// What clients see of the servers, and what each of that offers: a group what the first of its
/// members does that answered.
fn as_seen<'a>(
    mcp: &'a McpFile,
    listings: &[Option<Arc<Listing>>],
) -> (Vec<SeenServer<'a>>, Vec<Option<Arc<Listing>>>) {
    let seen = mcp.seen();
    let listing = |server: &&str| listings.get(mcp.servers.get_index_of(*server)?)?.clone();
    let listings = seen.iter().map(|it| it.members.iter().find_map(listing)).collect();
    (seen, listings)
}

/// A server's words, fit to be shown.
fn shown(text: &str) -> String {
    const CHARS: usize = 128;
    text.chars().take(CHARS).flat_map(char::escape_debug).collect()
}
