//! A run: the program, step by step, on the production core and the production `Hub`.
//!
//! The stage is what the gateway's shell is to the `Hub`: it tells events, carries out effects and
//! keeps the clock. Its clients and servers speak MCP, message by message; what they say is made up
//! (`clients`, `serve`), what is made of it is not.
//!
//! Everything that takes time is an entry of one agenda, or a wake-up that the `Hub` asks for. A
//! step lets what is due now happen; a step that waits (a call, a first list, an advance) moves the
//! clock from one to the next. Where both are due at the same moment, the `Hub` comes first: an
//! answer that arrives at its deadline is late.

mod answers;
mod audit;
mod carry;
mod clients;
mod config;
mod serve;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use indexmap::IndexMap;
use serde_json::Value;
use tidegate_core::{
    core::Core,
    time::{Millis, Now},
    transition::Notes,
};
use tidegate_mcp::{
    health::Failure,
    hub::{
        ConnectionId, Env, Event, Hub, McpAnswer, Random, ReaderId, RequestToken, Retained,
        ServerKey,
    },
};

use self::{answers::Running, audit::Suspicion, clients::Client, serve::Line};
use super::{
    Action, Deed, Mcp, ServerPlan, Step,
    trace::{McpStep, StepKeepalives, Totals},
    words::words,
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
    stage.start();
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

/// One server: its config, and what it is like.
struct Server {
    plan: ServerPlan,
    key: ServerKey,
    world: World,
}

/// What falls due besides the `Hub`'s own wake-ups.
#[derive(Clone, Debug)]
enum Due {
    /// Something happens to a server.
    Deed(Arc<str>, Deed),
    /// What a server says arrives, if the server still is who said it.
    Output { connection: ConnectionId, incarnation: u64, output: ServerOutput },
}

/// What a server says to a request.
#[derive(Clone, Debug)]
enum ServerOutput {
    /// A message. One that answers `initialize` begins a session.
    Message { call: u64, message: Bytes, begins_session: bool },
    /// Nothing: a request fails.
    Failed { call: u64, failure: Failure },
    /// Nothing: nobody is there, unless somebody has come back by then.
    Nobody { call: u64, message: Bytes },
}

/// The simulator's draws, for whoever asks for random numbers.
struct Draws(Rng);

impl Random for Draws {
    fn draw(&mut self) -> u64 {
        self.0.draw()
    }

    fn secret_id(&mut self) -> Option<String> {
        Some(format!("{:016x}{:016x}", self.0.draw(), self.0.draw()))
    }
}

struct Stage<'a> {
    scenario: &'a Mcp,
    hub: Hub,
    core: Core,
    random: Draws,
    notes: Notes,
    now: Now,
    servers: Vec<Server>,
    next_key: u64,
    /// Nothing takes time before the program begins.
    is_starting: bool,
    connections: BTreeMap<ConnectionId, Line>,
    clients: IndexMap<String, Client>,
    /// Who sent each request that has no answer.
    senders: BTreeMap<RequestToken, String>,
    /// Answers of HTTP to requests.
    answers: BTreeMap<RequestToken, McpAnswer>,
    /// Answers to everything but calls, by id, until whoever asked has looked.
    replies: BTreeMap<u64, Value>,
    /// Whose streams they are.
    readers: BTreeMap<ReaderId, String>,
    /// Calls under way, and those that have ended and whose step has not looked yet, by id.
    calls: BTreeMap<u64, Running>,
    /// Calls that came back with what they were asked, by their number before.
    retried: BTreeMap<u64, u64>,
    suspicions: Vec<Suspicion>,
    /// Events that effects have caused.
    events: VecDeque<Event>,
    agenda: BTreeMap<(Now, u64), Due>,
    /// The latest number given to anything.
    number: u64,
    totals: IndexMap<Arc<str>, Totals>,
    list_changed: IndexMap<String, u64>,
    /// Sessions that heard of a change during this step.
    told: Vec<String>,
    violations: Vec<Violation>,
    is_closed: bool,
}

impl<'a> Stage<'a> {
    fn new(scenario: &'a Mcp, seed: u64) -> Self {
        let mut next_key = 0;
        let servers: Vec<Server> =
            scenario.servers.iter().map(|plan| Server::new(plan, &mut next_key)).collect();
        let core = Core::new(&config::core_settings(scenario, &servers), seed);
        let totals =
            servers.iter().map(|it| (Arc::clone(&it.plan.name), Totals::default())).collect();
        Self {
            scenario,
            hub: Hub::new(Retained::default()),
            core,
            random: Draws(Rng::new(seed)),
            notes: Notes::default(),
            now: Now::ZERO,
            servers,
            next_key,
            is_starting: true,
            connections: BTreeMap::new(),
            clients: IndexMap::new(),
            senders: BTreeMap::new(),
            answers: BTreeMap::new(),
            replies: BTreeMap::new(),
            readers: BTreeMap::new(),
            calls: BTreeMap::new(),
            retried: BTreeMap::new(),
            suspicions: Vec::new(),
            events: VecDeque::new(),
            agenda: BTreeMap::new(),
            number: 0,
            totals,
            list_changed: IndexMap::new(),
            told: Vec::new(),
            violations: Vec::new(),
            is_closed: false,
        }
    }

    /// Before time 0 every server has been reached, and its tools are known.
    fn start(&mut self) {
        let settings = config::hub_settings(self.scenario, &self.servers);
        self.tell(Event::Reload(Box::new(settings)));
        self.play_until(self.now);
        self.is_starting = false;
    }

    fn step(&mut self, step: &Step) -> McpStep {
        let (mut calls, mut tools, mut good_match) = (Vec::new(), None, None);
        let before = self.totals.clone();
        let (word, what) = words(&step.action);
        match &step.action {
            Action::Open { session } => {
                self.open(session);
                tools = Some(self.list_once(session));
            }
            Action::Stateless { client } => {
                self.introduce(client);
                tools = Some(self.list(client));
            }
            Action::Call { session, tool, at_once } => calls = self.call(session, tool, *at_once),
            Action::Answer { session } => calls = self.answer(session),
            Action::Retry { client } => calls = self.retry(client),
            Action::List { session } => tools = Some(self.list(session)),
            Action::Find { session, query } => {
                let found = self.find(session, query);
                (tools, good_match) = (Some(found.tools), Some(found.is_good_match));
            }
            Action::Close { session } => self.close(session),
            Action::Deed { server, deed, after } => {
                let at = self.now.after(after.as_ref().map_or(Millis::ZERO, |it| it.millis()));
                self.put(at, Due::Deed(Arc::clone(server), deed.clone()));
            }
            Action::Probe { server } => {
                let token = RequestToken(self.next_number());
                self.tell(Event::Probe { token, server: Arc::clone(server) });
            }
            Action::Advance(span) => {
                let until = self.now.after(span.millis());
                self.play_until(until);
                self.now = until;
            }
            Action::Reload(servers) => self.reload(servers.as_deref()),
        }
        self.play_until(self.now);
        self.answers.clear();
        self.judge_suspicions(false);
        self.core.check_invariants(self.now);
        let (breaker_after, health_after) = self.states();
        McpStep {
            step: word,
            what,
            at_ms: self.now.0,
            calls,
            tools,
            good_match,
            told: std::mem::take(&mut self.told),
            keepalives: self.keepalives_since(&before),
            breaker_after,
            health_after,
        }
    }

    /// Tells the `Hub` something, and carries out everything that follows at once.
    fn tell(&mut self, event: Event) {
        self.events.push_back(event);
        self.drain();
    }

    /// Tells everything that is waiting to be told, and what comes of it.
    fn drain(&mut self) {
        let mut effects = Vec::new();
        while let Some(event) = self.events.pop_front() {
            let about = match &event {
                Event::Connection { connection, .. } => Some(*connection),
                _ => None,
            };
            let is_own = about.and_then(|it| self.connections.get(&it)).is_some_and(|it| it.is_own);
            self.notes.transitions.clear();
            let Self { hub, core, now, notes, random, .. } = self;
            let mut env = Env { now: *now, core, notes, random };
            hub.handle(&mut env, event, &mut effects);
            for effect in effects.drain(..) {
                self.carry_out(effect, is_own);
            }
        }
    }

    /// Lets happen what falls due up to a moment.
    fn play_until(&mut self, until: Now) {
        while self.play_next(until) {}
    }

    /// Lets the next thing happen, if it falls due up to a moment.
    fn play_next(&mut self, until: Now) -> bool {
        let wakeup = self.hub.next_wakeup();
        let entry = self.agenda.first_key_value().map(|(key, _)| *key);
        let is_hub = wakeup.is_some_and(|wakeup| entry.is_none_or(|(at, _)| wakeup <= at));
        let due = if is_hub { wakeup } else { entry.map(|(at, _)| at) };
        let Some(at) = due.filter(|at| *at <= until) else { return false };
        self.now = self.now.max(at);
        if is_hub {
            self.tell(Event::Wakeup);
            return true;
        }
        let due = entry.and_then(|key| self.agenda.remove(&key));
        match due {
            Some(Due::Deed(server, deed)) => self.suffer(&server, &deed),
            Some(Due::Output { connection, incarnation, output }) => {
                self.heard(connection, incarnation, output);
            }
            None => {}
        }
        true
    }

    /// The next thing that happens, as long as something is wanted. False if nothing ever will.
    fn wait_while(&mut self, is_waiting: impl Fn(&Self) -> bool) {
        while is_waiting(self) && self.play_next(Now::NEVER) {}
    }

    fn put(&mut self, at: Now, due: Due) {
        let number = self.next_number();
        self.agenda.insert((at, number), due);
    }

    fn next_number(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    fn place(&self, server: &str) -> Option<usize> {
        self.servers.iter().position(|it| *it.plan.name == *server)
    }

    fn totals(&mut self, server: &Arc<str>) -> &mut Totals {
        self.totals.entry(Arc::clone(server)).or_default()
    }

    /// The config is read again: servers that stay keep their health, and their world.
    fn reload(&mut self, plans: Option<&[ServerPlan]>) {
        let same: Vec<ServerPlan> = self.servers.iter().map(|it| it.plan.clone()).collect();
        let plans = plans.unwrap_or(&same);
        let mut old = std::mem::take(&mut self.servers);
        let mut changed = Vec::new();
        for plan in plans {
            let place = old.iter().position(|it| it.plan.name == plan.name);
            let server = match place.map(|place| old.swap_remove(place)) {
                Some(mut kept) => {
                    if kept.plan.tools != plan.tools {
                        kept.world.tools.clone_from(&plan.tools);
                        changed.push(Arc::clone(&plan.name));
                    }
                    kept.plan = plan.clone();
                    kept
                }
                None => Server::new(plan, &mut self.next_key),
            };
            self.servers.push(server);
        }
        self.core =
            self.core.reload(self.now, &config::core_settings(self.scenario, &self.servers));
        let settings = config::hub_settings(self.scenario, &self.servers);
        self.tell(Event::Reload(Box::new(settings)));
        for server in changed {
            self.tell_of_tools(&server);
        }
    }

    /// Breaker and health of every server, in the order of the config.
    fn states(&self) -> (IndexMap<Arc<str>, BreakerWord>, IndexMap<Arc<str>, HealthWord>) {
        let snapshot = self.core.snapshot(self.now);
        let health = |healthy| if healthy { HealthWord::Healthy } else { HealthWord::Unhealthy };
        let names = self.servers.iter().map(|it| Arc::clone(&it.plan.name));
        let states = names.zip(&snapshot.backends);
        states
            .map(|(id, it)| ((Arc::clone(&id), it.state.into()), (id, health(it.healthy))))
            .unzip()
    }

    /// The keepalives since an earlier count, of servers that have something to show.
    fn keepalives_since(
        &self,
        before: &IndexMap<Arc<str>, Totals>,
    ) -> IndexMap<Arc<str>, StepKeepalives> {
        let of_server = |(name, totals): (&Arc<str>, &Totals)| {
            let earlier = before.get(name).copied().unwrap_or_default();
            let disabled = self.hub.keepalives_off(name) as u64;
            let step = totals.keepalive.since(earlier.keepalive, disabled);
            (step != StepKeepalives::default()).then(|| (Arc::clone(name), step))
        };
        self.totals.iter().filter_map(of_server).collect()
    }
}

impl Server {
    fn new(plan: &ServerPlan, next_key: &mut u64) -> Self {
        *next_key += 1;
        Self { key: ServerKey(*next_key), world: World::new(plan), plan: plan.clone() }
    }
}
