//! A run: the program, step by step, on the production core and the MCP crate's machines.
//!
//! Everything that takes time is an entry of one agenda. A step lets what is due now happen; a
//! step that waits (a call, a first list, an advance) moves the clock from entry to entry. Entries
//! may be stale: each says what it was about, and is dropped if that is gone.

mod audit;
mod calls;
mod groups;
mod keepalives;
mod lines;
mod reload;
mod sessions;

use std::{collections::BTreeMap, sync::Arc};

use indexmap::IndexMap;
use tidegate_core::{
    core::Core,
    settings::{Abilities, BackendSettings, Settings},
    time::{Millis, Now},
    transition::Notes,
};
use tidegate_mcp::{
    catalogue::Catalogue,
    health::{self, Reply},
    link::Generation,
    listing::Listing,
    names::{NamingSettings, ServerNames},
    session::{Contact, Session},
};

use self::{calls::Running, groups::Group, keepalives::Pinged, lines::Line};
use super::{
    Action, Deed, Mcp, ServerPlan, Step,
    trace::{CallTrace, McpStep, Totals},
    world::World,
};
use crate::{
    audit::Violation,
    rng::Rng,
    sequence::trace::{BreakerWord, HealthWord},
};

/// What a run gave, before it is judged.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) steps: Vec<McpStep>,
    pub(super) breakers: IndexMap<Arc<str>, BreakerWord>,
    pub(super) health: IndexMap<Arc<str>, HealthWord>,
    pub(super) totals: IndexMap<Arc<str>, Totals>,
    pub(super) list_changed: IndexMap<String, u64>,
    /// Invariants that were broken: always none, unless there is a bug.
    pub(super) violations: Vec<Violation>,
}

/// Runs the whole program.
pub(super) fn run(scenario: &Mcp, seed: u64) -> Run {
    let mut stage = Stage::new(scenario, seed);
    let steps = scenario.program.iter().map(|step| stage.step(step)).collect();
    let (breakers, health) = stage.states();
    stage.curtain();
    Run {
        steps,
        breakers,
        health,
        totals: stage.totals,
        list_changed: stage.list_changed,
        violations: stage.violations,
    }
}

/// One server: its config, what it is like, and what is known of it.
struct Server {
    plan: ServerPlan,
    world: World,
    listing: Option<Arc<Listing>>,
    contact: Contact,
}

/// One client session.
struct Client {
    /// Its places are those of the groups.
    session: Session,
    /// Its connections, in the order of the servers.
    lines: Vec<LineId>,
    /// The member of each group that holds its state.
    stays: Vec<Option<Arc<str>>>,
}

type LineId = u64;
type CallId = u64;

/// What falls due.
#[derive(Clone, Debug)]
enum Event {
    /// Something happens to a server.
    Deed(Arc<str>, Deed),
    /// A connect attempt ends, one way or another.
    ConnectEnds(lines::Attempt),
    /// A request is answered, if the server still is who got it.
    Reply { call: CallId, generation: Generation, incarnation: u64, reply: Reply },
    /// A call's time is over.
    CallDeadline(CallId),
    /// A keepalive may be due.
    KeepaliveDue(LineId),
    /// A keepalive ends.
    KeepaliveEnds(Pinged),
    /// A session may have to hear that its tools have changed.
    ListChanged(String),
}

struct Stage<'a> {
    scenario: &'a Mcp,
    core: Core,
    rng: Rng,
    notes: Notes,
    now: Now,
    servers: Vec<Server>,
    /// What clients see of the servers.
    groups: Vec<Group>,
    clients: IndexMap<String, Client>,
    lines: BTreeMap<LineId, Line>,
    calls: BTreeMap<CallId, Running>,
    /// Calls that have ended and whose step has not looked yet.
    ended: BTreeMap<CallId, CallTrace>,
    agenda: BTreeMap<(Now, u64), Event>,
    /// The latest number given to anything.
    number: u64,
    catalogue: Catalogue,
    totals: IndexMap<Arc<str>, Totals>,
    list_changed: IndexMap<String, u64>,
    /// Sessions that heard of a change during this step.
    told: Vec<String>,
    violations: Vec<Violation>,
}

impl<'a> Stage<'a> {
    fn new(scenario: &'a Mcp, seed: u64) -> Self {
        let servers: Vec<Server> = scenario.servers.iter().map(Server::new).collect();
        let groups = groups::of(scenario, &servers);
        let core = Core::new(&settings(scenario, &servers, &groups), seed);
        let totals = servers.iter().map(|it| (it.name(), Totals::default())).collect();
        let mut stage = Self {
            scenario,
            core,
            rng: Rng::new(seed),
            notes: Notes::default(),
            now: Now::ZERO,
            servers,
            groups,
            clients: IndexMap::new(),
            lines: BTreeMap::new(),
            calls: BTreeMap::new(),
            ended: BTreeMap::new(),
            agenda: BTreeMap::new(),
            number: 0,
            catalogue: Catalogue::default(),
            totals,
            list_changed: IndexMap::new(),
            told: Vec::new(),
            violations: Vec::new(),
        };
        stage.publish();
        stage
    }

    fn step(&mut self, step: &Step) -> McpStep {
        let (mut calls, mut tools) = (Vec::new(), None);
        let before = self.totals.clone();
        let (word, what) = words(&step.action);
        match &step.action {
            Action::Open { session } => {
                self.open(session);
                tools = Some(self.list(session));
            }
            Action::Call { session, tool, at_once } => calls = self.call(session, tool, *at_once),
            Action::List { session } => tools = Some(self.list(session)),
            Action::Find { session, query } => tools = Some(self.find(session, query)),
            Action::Close { session } => self.close(session),
            Action::Deed { server, deed, after } => {
                let at = self.now.after(after.as_ref().map_or(Millis::ZERO, |it| it.millis()));
                self.put(at, Event::Deed(Arc::clone(server), deed.clone()));
            }
            Action::Advance(span) => {
                let until = self.now.after(span.millis());
                self.play_until(until);
                self.now = until;
            }
            Action::Reload(servers) => self.reload(servers.as_deref()),
        }
        self.play_until(self.now);
        self.core.check_invariants(self.now);
        let (breaker_after, health_after) = self.states();
        McpStep {
            step: word,
            what,
            at_ms: self.now.0,
            calls,
            tools,
            told: std::mem::take(&mut self.told),
            keepalives: self.keepalives_since(&before),
            breaker_after,
            health_after,
        }
    }

    /// Lets happen what falls due up to a moment.
    fn play_until(&mut self, until: Now) {
        while self.play_next(until) {}
    }

    /// Lets the next thing happen, if it falls due up to a moment.
    fn play_next(&mut self, until: Now) -> bool {
        let Some(entry) = self.agenda.first_entry().filter(|it| it.key().0 <= until) else {
            return false;
        };
        let ((at, _), event) = entry.remove_entry();
        self.now = self.now.max(at);
        self.notes.transitions.clear();
        match event {
            Event::Deed(server, deed) => self.suffer(&server, &deed),
            Event::ConnectEnds(attempt) => self.connect_ends(attempt),
            Event::Reply { call, generation, incarnation, reply } => {
                self.replied(call, generation, incarnation, reply);
            }
            Event::CallDeadline(call) => self.call_deadline(call),
            Event::KeepaliveDue(line) => self.keepalive_due(line),
            Event::KeepaliveEnds(pinged) => self.keepalive_ends(pinged),
            Event::ListChanged(session) => self.tell(&session),
        }
        self.follow_health();
        true
    }

    fn put(&mut self, at: Now, event: Event) {
        let number = self.next_number();
        self.agenda.insert((at, number), event);
    }

    fn next_number(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    /// Something happens to a server; one that a reload removed suffers nothing.
    fn suffer(&mut self, server: &Arc<str>, deed: &Deed) {
        let Some(index) = self.place(server) else { return };
        self.servers[index].world.suffer(deed);
        match deed {
            Deed::Crash => self.break_lines(server),
            // A server that is up tells its clients that its tools have changed.
            Deed::Tools(_) => self.fetch_listing(index),
            Deed::Hang | Deed::LoseSession | Deed::Slow(_) | Deed::Heal => {}
        }
    }

    fn place(&self, server: &Arc<str>) -> Option<usize> {
        self.servers.iter().position(|it| it.plan.is(server))
    }

    fn totals(&mut self, server: &Arc<str>) -> &mut Totals {
        self.totals.entry(Arc::clone(server)).or_default()
    }

    /// The union of what is known of all servers, under the names that clients see.
    fn publish(&mut self) {
        let plain = |it: &Group| ServerNames::plain(&it.name);
        let settings = NamingSettings {
            naming: self.scenario.naming,
            servers: self.groups.iter().map(plain).collect(),
        };
        // Equivalent servers offer the same: the first that is known speaks for all.
        let listing =
            |it: &Group| it.members.iter().find_map(|member| self.servers[*member].listing.clone());
        let listings: Vec<_> = self.groups.iter().map(listing).collect();
        self.catalogue = Catalogue::new(&settings, &listings);
    }

    /// Breaker and health of every server, in the order of the config.
    fn states(&self) -> (IndexMap<Arc<str>, BreakerWord>, IndexMap<Arc<str>, HealthWord>) {
        let snapshot = self.core.snapshot(self.now);
        let health = |healthy| if healthy { HealthWord::Healthy } else { HealthWord::Unhealthy };
        let states = self.servers.iter().map(Server::name).zip(&snapshot.backends);
        states
            .map(|(id, it)| ((Arc::clone(&id), it.state.into()), (id, health(it.healthy))))
            .unzip()
    }

    /// The program is over: whatever is under way is called off, and nothing may be left.
    fn curtain(&mut self) {
        for call in std::mem::take(&mut self.calls).into_values() {
            self.called_off(call);
        }
        for session in self.clients.keys().cloned().collect::<Vec<_>>() {
            self.close(&session);
        }
        self.audit_end();
    }

    fn violate(&mut self, invariant: &'static str, sentence: String) {
        self.violations.push(Violation { invariant, at: self.now, sentence });
    }
}

impl Server {
    fn new(plan: &ServerPlan) -> Self {
        let world = World::new(plan.tools.clone());
        Self {
            listing: Some(world.listing(&plan.repeatable)),
            world,
            contact: Contact::Reached,
            plan: plan.clone(),
        }
    }

    fn name(&self) -> Arc<str> {
        Arc::clone(&self.plan.name)
    }
}

/// The servers as the core knows them: a backend and a route each, and a route for every group.
fn settings(scenario: &Mcp, servers: &[Server], groups: &[Group]) -> Settings {
    let within = Millis(scenario.waits.unknown.0.saturating_add(scenario.waits.child.0));
    let alone = (0..).zip(servers).map(|(at, it)| health::route(&it.plan.name, &[at]));
    let together = groups.iter().filter(|it| it.is_real(servers));
    let together = together.map(|it| health::route(&it.name, &it.members));
    Settings {
        backends: servers.iter().map(|it| backend(&it.plan, within)).collect(),
        routes: alone.chain(together).collect(),
        ..Settings::default()
    }
}

fn backend(plan: &ServerPlan, within: Millis) -> BackendSettings {
    BackendSettings {
        id: health::backend_id(&plan.name),
        identity: plan.name.to_string(),
        endpoint: None,
        keys: Vec::new(),
        health: plan.health.clone(),
        first_content_within: within,
        answer_within: within,
        abilities: Abilities::default(),
    }
}

/// The word of a step, and what it is about, as it was written.
fn words(action: &Action) -> (&'static str, String) {
    match action {
        Action::Open { session } => ("open", session.clone()),
        Action::Call { session, tool, at_once: 1 } => ("call", format!("{session} {tool}")),
        Action::Call { session, tool, at_once } => {
            ("call", format!("{session} {tool} x {at_once}"))
        }
        Action::List { session } => ("list", session.clone()),
        Action::Find { session, query } => ("find", format!("{session} \"{query}\"")),
        Action::Close { session } => ("close", session.clone()),
        Action::Advance(span) => ("advance", span.as_written().to_owned()),
        Action::Reload(None) => ("reload", String::new()),
        Action::Reload(Some(servers)) => {
            let names: Vec<&str> = servers.iter().map(|it| &*it.name).collect();
            ("reload", names.join(", "))
        }
        Action::Deed { server, deed, after } => {
            let (word, detail) = match deed {
                Deed::Crash => ("crash", String::new()),
                Deed::Hang => ("hang", String::new()),
                Deed::LoseSession => ("lose_session", String::new()),
                Deed::Slow(by) => ("slow", format!(" by {}", written(*by))),
                Deed::Tools(list) => ("tools", format!(" [{}]", list.join(", "))),
                Deed::Heal => ("heal", String::new()),
            };
            let after = after.as_ref().map(|it| format!(" after {}", it.as_written()));
            (word, format!("{server}{detail}{}", after.unwrap_or_default()))
        }
    }
}

fn written(span: Millis) -> String {
    tidegate_config::duration::written(span)
}
