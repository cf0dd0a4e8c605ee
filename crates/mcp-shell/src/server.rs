//! One configured server: the way to it, its limits, and what is known of it.
//!
//! Rules kept here:
//! - A server stays the same over a reload while its part of the config does; otherwise it is
//!   closed and made anew.
//! - A server that cannot be used as configured stops nothing: it is told once, and every session
//!   goes without it.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};
use tidegate_config::{
    file::{McpFile, ServerFile},
    secret::{Environment, SecretRef},
};
use tidegate_core::{
    outcome::OutcomeKind,
    time::{Millis, Now},
};
use tidegate_gateway::{caller::Caller, live::Live};
use tidegate_mcp::{
    cause::Cause,
    era::{Era, Eras},
    listing::{Changes, Kind},
    session::Contact,
    supervisor::{RestartSettings, Start, Supervisor},
};
use tidegate_runtime::rng;
use tokio::sync::Semaphore;

use super::{
    carrier::Carrier,
    ground::Ground,
    hello::{Hello, Profile},
    http::{HttpPlace, HttpTransport},
    link::Link,
    shelf::{Shelf, fetch},
    sse::SseTransport,
    stdio::{StdioSettings, StdioTransport, own_warden},
    transport::{Events, Failure},
};

/// One configured server.
pub(crate) struct Server {
    pub(crate) name: Arc<str>,
    /// As it was configured: whether a reload changed it.
    file: ServerFile,
    /// A digest of its secrets: one that was exchanged makes it another server.
    secrets: [u8; 32],
    way: Way,
    /// The largest message that is taken from it.
    answer_max: Rc<Cell<usize>>,
    pub(crate) call_timeout: Millis,
    pub(crate) connect_timeout: Millis,
    /// As many calls as it may have at once.
    pub(crate) turns: Semaphore,
    pub(crate) shelf: Shelf,
    /// The gateway's own connection: lists and probes; of a shared child, everything.
    pub(crate) home: RefCell<Option<Rc<Link>>>,
    /// The link that clients share where the server speaks the stateless era beside another.
    lane: RefCell<Option<Rc<Link>>>,
    /// What is known of the eras it speaks.
    eras: Cell<Eras>,
    /// Whether it speaks the transport before streamable HTTP.
    is_old: Cell<bool>,
    /// Whether an attempt to connect has ended since the start, and how the last one did.
    pub(crate) contact: Cell<Contact>,
    supervisor: RefCell<Supervisor>,
    ground: Weak<Ground>,
}

enum Way {
    Http(Rc<HttpPlace>),
    Child(StdioSettings),
    /// It cannot be used as configured, and why not.
    None(String),
}

impl Server {
    /// A server of the config. One that cannot be used is told of here, once.
    pub(crate) fn new(
        ground: &Rc<Ground>,
        name: &str,
        file: &ServerFile,
        mcp: &McpFile,
    ) -> Rc<Self> {
        let answer_max = Rc::new(Cell::new(answer_max(&ground.live())));
        let way = Way::new(ground, name, file, &answer_max);
        Rc::new(Self {
            name: name.into(),
            file: file.clone(),
            secrets: secrets(ground, file),
            way,
            answer_max,
            call_timeout: mcp.call_timeout.millis(),
            connect_timeout: mcp.connect_timeout.millis(),
            turns: Semaphore::new(file.max_calls.max(1) as usize),
            shelf: Shelf::default(),
            home: RefCell::default(),
            lane: RefCell::default(),
            eras: Cell::default(),
            is_old: Cell::default(),
            contact: Cell::default(),
            supervisor: RefCell::new(Supervisor::new(RestartSettings::default())),
            ground: Rc::downgrade(ground),
        })
    }

    /// Whether a config says the same of it.
    pub(crate) fn is_same(&self, ground: &Ground, file: &ServerFile, mcp: &McpFile) -> bool {
        self.file == *file
            && self.secrets == secrets(ground, file)
            && self.call_timeout == mcp.call_timeout.millis()
            && self.connect_timeout == mcp.connect_timeout.millis()
    }

    /// A reload may have changed the largest message that is taken from it.
    pub(crate) fn follow_limits(&self, live: &Live) {
        let max = answer_max(live);
        self.answer_max.set(max);
        if let Way::Http(place) = &self.way {
            place.set_answer_max(max);
        }
    }

    /// Its part of the config.
    pub(crate) fn file(&self) -> &ServerFile {
        &self.file
    }

    /// Whether it is a program of ours.
    pub(crate) fn is_child(&self) -> bool {
        matches!(self.way, Way::Child(_))
    }

    /// Whether one child serves every session.
    pub(crate) fn is_shared_child(&self) -> bool {
        matches!(self.way, Way::Child(_)) && self.file.shared
    }

    /// Whether every session has a child of its own.
    pub(crate) fn is_own_child(&self) -> bool {
        matches!(self.way, Way::Child(_)) && !self.file.shared
    }

    /// Whether it can be used as configured.
    pub(crate) fn is_usable(&self) -> bool {
        self.unusable().is_none()
    }

    /// Why it cannot be used as configured, if it cannot.
    pub(crate) fn unusable(&self) -> Option<&str> {
        match &self.way {
            Way::None(reason) => Some(reason),
            Way::Http(_) | Way::Child(_) => None,
        }
    }

    /// The profile under which a client is shown this server's lists.
    pub(crate) fn profile_for(&self, hello: &Hello) -> Profile {
        match self.is_shared_child() {
            true => Profile::own(),
            false => hello.profile_in(self.era_for(hello)),
        }
    }

    /// The era that is spoken with it on a client's behalf: the client's own if it can be.
    fn era_for(&self, hello: &Hello) -> Era {
        let eras = self.eras.get();
        match hello.era {
            Era::Sessions if eras.speaks(Era::Sessions) == Some(false) => Era::Stateless,
            Era::Stateless if eras.speaks(Era::Stateless) != Some(true) => Era::Sessions,
            era => era,
        }
    }

    /// What is known of the eras it speaks.
    pub(crate) fn eras(&self) -> Eras {
        self.eras.get()
    }

    /// What is known has changed. Clients are known to it by other profiles then.
    pub(crate) fn set_eras(&self, eras: Eras) {
        let hub = self.ground.upgrade().and_then(|ground| ground.hub());
        if let (true, Some(hub)) = (self.eras.replace(eras) != eras, hub) {
            hub.forget_catalogues();
        }
    }

    /// Whether it speaks the transport before streamable HTTP.
    pub(crate) fn is_old(&self) -> bool {
        self.is_old.get()
    }

    pub(crate) fn set_old(&self, is_old: bool) {
        self.is_old.set(is_old);
    }

    /// Finds out whether it speaks the stateless era, if a client does and nobody has asked yet.
    /// Nothing is known afterwards if the answer was unclear.
    pub(crate) async fn ask_era(self: &Rc<Self>, hello: &Hello) {
        if !self.must_ask_era(hello) {
            return;
        }
        // The gateway's own link asks as well, when it is first made.
        let home = self.home.borrow().clone();
        if let Some(home) = home {
            home.first_attempt().await;
        }
        if self.must_ask_era(hello)
            && let Some(lane) = self.lane()
        {
            drop(lane.bring_up(self.connect_timeout).await);
        }
    }

    /// Whether it has to be asked which era it speaks before a client can have a link.
    pub(crate) fn must_ask_era(&self, hello: &Hello) -> bool {
        let is_known = self.eras.get().speaks(Era::Stateless).is_some();
        hello.is_stateless() && !is_known && matches!(self.way, Way::Http(_))
    }

    /// The link to use on behalf of a client that is not to have one of its own: that of a shared
    /// program, or the one to a server without sessions.
    pub(crate) fn shared_link(self: &Rc<Self>, hello: &Hello) -> Option<Rc<Link>> {
        if self.is_child() {
            return self.home.borrow().clone().filter(|_| self.is_shared_child());
        }
        let is_known = self.eras.get().speaks(Era::Stateless) == Some(true);
        let is_stateless = self.era_for(hello) == Era::Stateless;
        if is_known && is_stateless { self.lane() } else { None }
    }

    /// The gateway's one link to a server of the stateless era: its own if that speaks it.
    fn lane(self: &Rc<Self>) -> Option<Rc<Link>> {
        let home = self.home.borrow().clone();
        if let Some(home) = home.filter(|home| home.is_stateless()) {
            return Some(home);
        }
        let ground = self.ground.upgrade()?;
        let mut lane = self.lane.borrow_mut();
        Some(Rc::clone(lane.get_or_insert_with(|| Link::lane(&ground, self))))
    }

    /// The gateway's own links, to be closed.
    pub(crate) fn take_links(&self) -> Vec<Rc<Link>> {
        let links = [self.home.borrow_mut().take(), self.lane.borrow_mut().take()];
        links.into_iter().flatten().collect()
    }

    /// Begins a conversation over the transport before streamable HTTP.
    pub(crate) async fn open_old(&self, ground: &Ground) -> Result<(Carrier, Events), Failure> {
        let Way::Http(place) = &self.way else {
            return Err(Failure::of(Cause::SwitchedOff, OutcomeKind::Cancelled));
        };
        let (pool, clock) = (Rc::clone(&ground.worker.pool), ground.gateway().clock);
        let opened = SseTransport::open(Rc::clone(place), pool, clock, self.connect_timeout).await;
        opened.map(|(transport, events)| (Carrier::Sse(transport), events))
    }

    /// How long `initialize` may take. A program may have to be fetched before it starts.
    pub(crate) fn initialize_within(&self) -> Millis {
        match self.way {
            Way::Child(_) => self.call_timeout.max(self.connect_timeout),
            Way::Http(_) | Way::None(_) => self.connect_timeout,
        }
    }

    /// Begins a conversation. A program counts among those of the caller that it is for.
    pub(crate) async fn open(
        &self,
        ground: &Ground,
        caller: Option<&Caller>,
    ) -> Result<(Carrier, Events), Failure> {
        match &self.way {
            Way::Http(place) => {
                let (pool, clock) = (Rc::clone(&ground.worker.pool), ground.gateway().clock);
                let place = Rc::clone(place);
                let (transport, events) =
                    HttpTransport::open(place, pool, clock, self.connect_timeout);
                Ok((Carrier::Http(transport), events))
            }
            Way::Child(settings) => {
                let now = ground.now();
                if let Start::Later { at, cause } = self.supervisor.borrow().may_start(now) {
                    // Its end was charged when it happened; waiting to start it again is no news.
                    let failure = Failure::of(cause, OutcomeKind::Cancelled);
                    return Err(Failure { retry_after: Some(at.since(now)), ..failure });
                }
                let all = &ground.children;
                let children = caller.map(|it| all.of(&it.name, it.share));
                let opened = StdioTransport::open(settings, &children.unwrap_or(all.clone())).await;
                let (transport, events) = opened.inspect_err(|failure| {
                    if failure.cause == Cause::CannotStart {
                        self.exited(now, "");
                    }
                    if failure.cause == Cause::TooManyChildren {
                        ground.gateway().metrics.mcp_refused("program");
                    }
                })?;
                ground.gateway().metrics.mcp_child_started(&self.name);
                Ok((Carrier::Stdio(transport), events))
            }
            Way::None(_) => Err(Failure::of(Cause::SwitchedOff, OutcomeKind::Cancelled)),
        }
    }

    /// A child that was started then ended by itself.
    pub(crate) fn exited(&self, started: Now, last_words: &str) {
        let Some(ground) = self.ground.upgrade() else { return };
        let start = self.supervisor.borrow_mut().exited(started, ground.now(), rng::draw());
        if let Start::Later { at, cause: Cause::CrashLoop } = start {
            let pause = at.since(ground.now()).0;
            tracing::warn!(
                server = &*self.name,
                pause_ms = pause,
                last_words,
                "a program keeps crashing"
            );
        }
    }

    /// When a child may be started again.
    pub(crate) fn may_start_at(&self, now: Now) -> Now {
        match self.supervisor.borrow().may_start(now) {
            Start::Now => now,
            Start::Later { at, .. } => at,
        }
    }

    /// A link to it is there: what it offers is looked at, unless it is known and nothing speaks
    /// against it. A server that was lost, or introduces itself otherwise, may have been deployed
    /// anew, which is a doubt about all of its lists.
    pub(crate) fn connected(self: &Rc<Self>, link: &Link) {
        let era = link.era();
        let is_again = link.machine.borrow().reinitialised() > 0;
        let is_another = |hello: &Hello| {
            let profile = hello.profile_in(era);
            link.info().is_some_and(|info| self.shelf.is_another(profile, &info))
        };
        if is_again || link.speaks_for().iter().any(is_another) {
            self.shelf.doubt();
        }
        for hello in link.speaks_for() {
            self.fetch_missing(link, &hello);
            self.refresh(link, &hello);
        }
    }

    /// Its lists may be out of date: they are fetched over the gateway's own connection, and for
    /// everybody else when they are used.
    pub(crate) fn doubt_lists(self: &Rc<Self>) {
        self.shelf.doubt();
        let home = self.home.borrow().clone();
        if let Some(home) = home {
            self.refresh(&home, &home.hello);
        }
    }

    /// A client uses its lists over this link: they are fetched again if they are due.
    pub(crate) fn refresh(self: &Rc<Self>, link: &Link, hello: &Hello) {
        let Some(ground) = self.ground.upgrade() else { return };
        let hello = if self.is_shared_child() { &link.hello } else { hello };
        let fresh_for = ground.live().file.mcp.fresh_for.millis();
        if self.shelf.is_due(hello.profile_in(link.era()), ground.now(), fresh_for) {
            fetch(self, link, hello, &Kind::ALL);
        }
    }

    /// The moment; that of the start when the gateway has gone.
    pub(crate) fn now(&self) -> Now {
        self.ground.upgrade().map_or(Now::ZERO, |ground| ground.now())
    }

    /// Has the lists for a client fetched over this link if they are not known.
    pub(crate) fn fetch_missing(self: &Rc<Self>, link: &Link, hello: &Hello) {
        if !self.shelf.knows(hello.profile_in(link.era())) {
            fetch(self, link, hello, &Kind::ALL);
        }
    }

    /// Waits until the lists that a client will see over this link are known, or cannot be had.
    pub(crate) async fn lists_known(&self, link: &Link, hello: &Hello) {
        let profile = hello.profile_in(link.era());
        let known = async {
            loop {
                let mut news = std::pin::pin!(self.shelf.news());
                news.as_mut().enable();
                if !self.shelf.is_fetching(profile) {
                    return;
                }
                news.await;
            }
        };
        let within = Duration::from_millis(self.call_timeout.0);
        drop(tokio::time::timeout(within, known).await);
    }

    /// What it offers to clients of a profile has changed, or it says so.
    pub(crate) fn offers_changed(&self, profile: Profile, changes: &Changes, announced: &[Kind]) {
        if let Some(hub) = self.ground.upgrade().and_then(|ground| ground.hub()) {
            hub.offers_changed(self, profile, |kind| {
                changes.touches(kind) || announced.contains(&kind)
            });
        }
    }

    /// Definitions were left out of its lists.
    pub(crate) fn count_skipped(&self, count: usize) {
        if let Some(ground) = self.ground.upgrade() {
            ground.gateway().metrics.mcp_definitions_skipped(&self.name, count);
        }
    }

    pub(crate) fn count_changed(&self, count: usize) {
        if let Some(ground) = self.ground.upgrade() {
            ground.gateway().metrics.mcp_definitions_changed(&self.name, count);
        }
    }
}

impl Way {
    fn new(ground: &Ground, name: &str, file: &ServerFile, answer_max: &Rc<Cell<usize>>) -> Self {
        let live = ground.live();
        let folder = live.folder.as_path();
        let environment = &*ground.environment;
        let mut file = std::borrow::Cow::Borrowed(file);
        if let Some(fake) = file.fake {
            file.to_mut().url = Some(ground.fakes.url(name, fake));
        }
        let made = if file.command.is_some() {
            let settings = child(name, &file, folder, environment);
            settings
                .map(|it| Self::Child(StdioSettings { answer_max: Rc::clone(answer_max), ..it }))
        } else {
            HttpPlace::new(name, &file, folder, environment, &ground.gateway().mark)
                .inspect(|place| place.set_answer_max(answer_max.get()))
                .map(|place| Self::Http(Rc::new(place)))
                .map_err(|it| it.to_string())
        };
        made.unwrap_or_else(|reason| {
            tracing::warn!(server = name, reason, "a server cannot be used as configured");
            Self::None(reason)
        })
    }
}

/// What a program needs to be started.
fn child(
    name: &str,
    file: &ServerFile,
    folder: &Path,
    environment: &dyn Environment,
) -> Result<StdioSettings, String> {
    let secret = |(key, value): (&String, &SecretRef)| {
        let resolved = value.resolve(environment, folder);
        let problem = |problem| format!("server `{name}`: env `{key}`: {problem}");
        resolved.map(|it| (key.clone(), it)).map_err(problem)
    };
    let env = file.env.iter().map(secret).collect::<Result<_, String>>()?;
    let warden = own_warden().map_err(|error| format!("server `{name}`: {error}"))?;
    let command = file.command.clone().unwrap_or_default();
    Ok(StdioSettings { name: name.into(), command, env, warden, answer_max: Rc::default() })
}

/// The largest message that a config takes from a server.
fn answer_max(live: &Live) -> usize {
    usize::try_from(live.file.limits.mcp_answer.0).unwrap_or(usize::MAX)
}

/// What the secrets of a server are now, without keeping them.
fn secrets(ground: &Ground, file: &ServerFile) -> [u8; 32] {
    let live = ground.live();
    let mut digest = Sha256::new();
    for (name, secret) in file.headers.iter().chain(&file.env) {
        digest.update(name.as_bytes());
        if let Ok(value) = secret.resolve(&*ground.environment, &live.folder) {
            digest.update(value.expose().as_bytes());
        }
        digest.update([0]);
    }
    digest.finalize().into()
}
