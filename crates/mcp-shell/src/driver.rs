//! Drives the Hub: tells it what happens, and does what it says.
//!
//! ```text
//!   requests of clients ─┐                      ┌─▶ connections: open, send, close
//!   events of transports ┼─▶ Hub::handle ─ Effect ┼─▶ clients: answers, events of streams
//!   the armed deadline  ─┘                      └─▶ searches, metrics, log, journal
//! ```
//! Rules kept here:
//! - One task owns the Hub and every table; nothing else tells it anything.
//! - What transports have said is told before anything else: a request is never sent over a
//!   connection that has said that it is over.
//! - Effects are carried out in order. What they cause at once is told after them, in order.
//! - One deadline is armed: the Hub's, or that of the kept connections or of a held answer if it is
//!   earlier. An armed one that has become too early is left to fire, and armed anew then.
//! - The config that serves is compared before every event, so that no request meets an older one.

mod dispatch;

use std::collections::VecDeque;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::time::{Millis, Now};
use tidegate_gateway::live::Live;
use tidegate_mcp::hub::{Effect, Env, Event, Hub, Retained};
use tidegate_runtime::clock::timer_now;
use tokio::sync::mpsc;
use tokio::time::Sleep;

use super::{
    clients::Clients,
    connections::Connections,
    elsewhere::{Elsewhere, next_told},
    event_body::ClientNews,
    handle::{Arrived, NewsOfClients},
    report,
    runtime::{McpRuntime, SystemRandom},
    search::Searches,
    servers::{OpenOptions, Servers},
    settings::{Scope, hub_settings},
    transport::{TransportEvent, events},
};

/// How often kept connections are looked at while there are any: they are idle for up to a minute.
const SWEEP_EVERY: Millis = Millis::seconds(10);

/// The Hub, and everything it speaks through.
pub(crate) struct Driver {
    runtime: Rc<McpRuntime>,
    hub: Hub,
    scope: Scope,
    /// The config that the Hub was told last.
    followed: Option<Arc<Live>>,
    pub(crate) servers: Servers,
    connections: Connections,
    told: mpsc::Receiver<TransportEvent>,
    clients: Clients,
    news: mpsc::UnboundedReceiver<ClientNews>,
    searches: Searches,
    /// Sessions that other replicas have; none without others.
    elsewhere: Option<Elsewhere>,
    /// What effects caused at once.
    caused: VecDeque<Event>,
    effects: Vec<Effect>,
    alarm: Pin<Box<Sleep>>,
    /// When the alarm rings; none if it is not armed.
    armed: Option<Now>,
    sweep_at: Option<Now>,
    is_closed: bool,
}

impl Driver {
    /// A Hub with the servers of the config that serves, as far as they are in scope.
    pub(crate) fn new(runtime: Rc<McpRuntime>, clients: NewsOfClients, scope: Scope) -> Self {
        let gateway = Arc::clone(runtime.gateway());
        let meter = move |bytes| gateway.metrics.mcp_retained(bytes);
        let (line, told) = events();
        let mut hub = Hub::new(Retained::new(Some(Arc::new(meter))));
        let fleet = runtime.fleet.clone().filter(|_| scope == Scope::All);
        let elsewhere = fleet.map(|fleet| {
            hub.share_sessions();
            Elsewhere::new(fleet, clients.sender.clone(), runtime.now())
        });
        let mut driver = Self {
            hub,
            elsewhere,
            scope,
            followed: None,
            servers: Servers::default(),
            connections: Connections::new(line),
            told,
            clients: Clients::new(clients.sender),
            news: clients.heard,
            searches: Searches::default(),
            caused: VecDeque::new(),
            effects: Vec::new(),
            alarm: Box::pin(tokio::time::sleep(Duration::ZERO)),
            armed: None,
            sweep_at: None,
            is_closed: false,
            runtime,
        };
        driver.follow();
        driver
    }

    /// The Hub.
    pub(crate) fn hub(&self) -> &Hub {
        &self.hub
    }

    /// Whether everything has ended after [`Event::Close`].
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Waits for the next thing that happens beside new requests, and tells it. Dropping this
    /// future loses nothing.
    pub(crate) async fn step(&mut self) {
        let gateway = Arc::clone(self.runtime.gateway());
        tokio::select! {
            Some(told) = self.told.recv() => {
                self.follow();
                self.hear_transport(told);
                self.catch_up();
                self.arm();
            }
            Some(news) = self.news.recv() => self.hear(news),
            (job, answer) = self.searches.next() => self.tell(Event::Searched { job, answer }),
            () = self.alarm.as_mut(), if self.armed.is_some() => self.ring(),
            () = gateway.changed.notified() => self.tell(Event::HealthChanged),
            told = next_told(&mut self.elsewhere) => self.hear_elsewhere(told),
        }
    }

    /// A client's request, or an operator's wish.
    pub(crate) fn take(&mut self, arrived: Arrived) {
        match arrived {
            Arrived::Request { request, answer, came } => {
                let Some((request, answer)) = self.here(request, answer, came) else { return };
                let (token, has_left) = (request.token, answer.is_closed());
                self.clients.wait(token, answer);
                self.tell(Event::Request(request));
                if has_left {
                    // That it left may have been heard before it came.
                    self.tell(Event::RequestGone { request: token });
                }
            }
            Arrived::Probe { token, server, answer } => {
                self.clients.wait_for_probe(token, answer);
                self.tell(Event::Probe { token, server });
            }
        }
    }

    fn hear(&mut self, news: ClientNews) {
        match news {
            ClientNews::RequestGone(request) => self.tell(Event::RequestGone { request }),
            ClientNews::ReaderGone(reader) => {
                self.clients.forget(reader);
                self.tell(Event::ReaderGone { reader });
            }
            ClientNews::Room(reader) => self.clients.has_room(&mut self.hub, reader),
        }
    }

    /// Tells what transports have said so far. They say nothing meanwhile: this is their thread.
    fn catch_up(&mut self) {
        while let Ok(told) = self.told.try_recv() {
            self.hear_transport(told);
        }
    }

    fn hear_transport(&mut self, told: TransportEvent) {
        if let Some(event) = self.connections.heard(&self.runtime, told) {
            self.handle(event);
        }
    }

    /// Tells the Hub what happened beside its connections, and does what it says.
    pub(crate) fn tell(&mut self, event: Event) {
        self.follow();
        self.catch_up();
        self.handle(event);
        self.arm();
    }

    /// Tells the Hub of the config that serves, if it is another than before.
    fn follow(&mut self) {
        // One look at one server ends with the config that it began with.
        let is_bound = self.followed.is_some() && self.scope != Scope::All;
        let serves = self.runtime.gateway().live.load();
        if is_bound || self.followed.as_ref().is_some_and(|it| Arc::ptr_eq(it, &serves)) {
            return;
        }
        let live = Arc::clone(&serves);
        self.runtime.children.bound(live.file.mcp.max_children);
        let settings = hub_settings(&self.runtime, &live, &mut self.servers, &self.scope);
        if self.scope == Scope::All {
            self.searches.follow(&self.runtime, &live);
        }
        self.followed = Some(live);
        self.handle(Event::Reload(Box::new(settings)));
    }

    fn handle(&mut self, event: Event) {
        let Some(live) = self.followed.clone() else { return };
        let mut next = Some(event);
        while let Some(event) = next {
            let (hub, effects, runtime) = (&mut self.hub, &mut self.effects, &self.runtime);
            let now = runtime.now();
            runtime.worker.with_notes(|notes| {
                let random = &mut SystemRandom { fleet: runtime.fleet.as_deref() };
                let mut env = Env { now, core: &live.core, notes, random };
                hub.handle(&mut env, event, effects);
            });
            let mut effects = std::mem::take(&mut self.effects);
            effects.drain(..).for_each(|effect| self.carry_out(&live, effect));
            self.effects = effects;
            self.answer_opened();
            next = self.caused.pop_front();
        }
    }

    fn carry_out(&mut self, live: &Arc<Live>, effect: Effect) {
        match effect {
            Effect::Open { connection, server, transport, within, caller, resume } => {
                let all = &self.runtime.children;
                let children = caller.map(|(name, share)| all.of(&name, share));
                let children = children.unwrap_or_else(|| all.clone());
                let options = OpenOptions { transport, within, children, resume };
                let (runtime, servers) = (&self.runtime, &self.servers);
                let which = (connection, server);
                self.connections.open(runtime, servers, which, options, &mut self.caused);
            }
            Effect::Send { connection, call, message, headers } => {
                self.connections.send(connection, call, message, headers);
            }
            Effect::Notify { connection, message } => {
                self.connections.with(connection, |carrier| carrier.notice(message));
            }
            Effect::Negotiated { connection, version } => {
                self.connections.with(connection, |carrier| carrier.negotiated(&version));
            }
            Effect::Forget { connection, call } => {
                self.connections.with(connection, |carrier| carrier.forget(call));
            }
            Effect::Close { connection } => self.connections.close(connection, &mut self.caused),
            Effect::Drop { connection } => self.connections.abort(connection),
            Effect::Answer { request, answer } => {
                let Some(answer) = self.hold_opened(request, answer) else { return };
                self.clients.answer(self.runtime.now(), request, answer);
            }
            Effect::Feed { reader } => self.clients.feed(&mut self.hub, reader),
            Effect::KeepOpen { reader } => self.clients.keep_open(reader),
            Effect::Search(job) => {
                let id = job.job;
                if let Some(answer) = self.searches.begin(&self.runtime, live, *job) {
                    self.caused.push_back(Event::Searched { job: id, answer });
                }
            }
            Effect::ProbeAnswer { token, passed } => self.clients.answer_probe(token, passed),
            Effect::Count(metric) => report::count(self.runtime.gateway(), &metric),
            Effect::Log(line) => report::log(self.runtime.gateway(), &line),
            Effect::Record(record) => report::record(&self.runtime.worker, &record),
            Effect::Closed => self.is_closed = true,
            Effect::SessionRecord { session, state } => {
                self.elsewhere.iter_mut().for_each(|it| it.changed(&session, &state));
            }
            Effect::SessionReleased { session, state } => {
                self.elsewhere.iter_mut().for_each(|it| it.released(&session, &state));
            }
            Effect::SessionEnded { session } => {
                self.elsewhere.iter_mut().for_each(|it| it.ended(&session));
            }
        }
    }

    /// The alarm has rung.
    fn ring(&mut self) {
        self.armed = None;
        let now = self.runtime.now();
        if self.sweep_at.is_some_and(|at| at <= now) {
            self.sweep_at = None;
            self.runtime.worker.pool.sweep();
        }
        self.clients.release_due(&mut self.hub, now);
        if let Some(elsewhere) = &mut self.elsewhere {
            elsewhere.renew_due(now);
        }
        match self.hub.next_wakeup().is_some_and(|at| at <= now) {
            true => self.tell(Event::Wakeup),
            false => self.arm(),
        }
    }

    /// Arms the alarm, unless it rings early enough.
    fn arm(&mut self) {
        let now = self.runtime.now();
        if self.sweep_at.is_none() && !self.runtime.worker.pool.is_empty() {
            self.sweep_at = Some(now.after(SWEEP_EVERY));
        }
        let renew_at = self.elsewhere.as_ref().map(Elsewhere::renew_at);
        let due = [self.hub.next_wakeup(), self.clients.next_release(), self.sweep_at, renew_at];
        let due = due.into_iter().flatten().min();
        let Some(due) = due else { return };
        if self.armed.is_none_or(|armed| due < armed) {
            self.armed = Some(due);
            let wait = Duration::from_millis(due.since(now).0);
            self.alarm.as_mut().reset(timer_now() + wait);
        }
    }
}
