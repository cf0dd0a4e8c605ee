//! Form 3: MCP sessions.
//!
//! A few servers, a program of sessions, calls and outages, and what is expected of it. The form
//! for questions about one session: which tools it sees, what a call hears when its server dies,
//! how often a connection is made again.
//!
//! The way of a file: `file` (as written) → `check` (what is wrong with it) → [`Mcp`] (what it
//! means) → `stage` (with the production core and the production `Hub`) → `judge` →
//! [`trace::McpTrace`] → `graph`, `table` or JSON.
//!
//! Rules kept here:
//! - Everything between clients and servers is production's `Hub`, which asks the production core:
//!   the simulator has no rule of its own about sessions, health or calls, and its numbers are what
//!   the `Hub` counts. Made up are only the clients and the servers, which speak MCP with it, and
//!   the time that things take: none, unless a server is slow or silent. A call that waits moves
//!   the clock, and whatever falls due meanwhile happens.
//! - All servers are up and their tools known at time 0.
//! - `find` shows what `find_tool` would answer without a model: what the `Hub` lists to the
//!   session, ranked by production's index, however near the tools are.

mod check;
mod file;
mod graph;
mod judge;
mod resolve;
mod stage;
mod table;
pub mod trace;
mod words;
mod world;

use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::Value;
use tidegate_config::{
    diagnostic::Diagnostic, document::Document, duration::Duration, source::Source,
};
use tidegate_core::{probe::ProbeSettings, settings::HealthSettings, time::Millis};
use tidegate_mcp::{
    keepalive::KeepaliveSettings,
    names::Naming,
    session::{Visibility, Waits},
};

use self::{
    file::{EraWord, ExpectFile, McpFile, StepExpectFile},
    trace::McpTrace,
};
use crate::{
    form::{Failure, Format, Origin, RenderOptions, checked},
    sequence::{glyphs::Glyphs, trace::Verdict},
};

/// An MCP scenario that can be run.
#[derive(Clone, Debug)]
pub struct Mcp {
    origin: Origin,
    name: String,
    about: String,
    visibility: Visibility,
    naming: Naming,
    waits: Waits,
    fresh_for: Millis,
    servers: Vec<ServerPlan>,
    /// Groups of servers, with their members in tier order.
    replicas: IndexMap<String, Vec<String>>,
    program: Vec<Step>,
    expect: ExpectFile,
}

/// One server, as its config and its maker have it.
#[derive(Clone, Debug)]
struct ServerPlan {
    name: Arc<str>,
    tools: Vec<String>,
    /// Own names of tools that may be called twice.
    repeatable: Vec<String>,
    /// Own names of tools that ask their client something.
    asks: Vec<String>,
    era: EraWord,
    max_calls: Option<usize>,
    /// How long it takes to answer `initialize`.
    initialize: Millis,
    keepalive: KeepaliveSettings,
    /// The params of the call that a keepalive makes, if it makes one.
    keepalive_call: Option<String>,
    health: HealthSettings,
    probe: ProbeSettings,
}

/// One step of the program.
#[derive(Clone, Debug)]
struct Step {
    action: Action,
    expect: StepExpectFile,
}

#[derive(Clone, Debug)]
enum Action {
    Open { session: String },
    Stateless { client: String },
    Call { session: String, tool: String, at_once: u32 },
    Answer { session: String },
    Retry { client: String },
    List { session: String },
    Find { session: String, query: String },
    Close { session: String },
    Probe { server: Arc<str> },
    Deed { server: Arc<str>, deed: Deed, after: Option<Duration> },
    Advance(Duration),
    Reload(Option<Vec<ServerPlan>>),
}

/// What happens to a server.
#[derive(Clone, Debug)]
enum Deed {
    Crash,
    Hang,
    LoseSession,
    Slow(Millis),
    Tools(Vec<String>),
    Era(EraWord),
    Heal,
}

/// What a run of an MCP scenario gave.
#[derive(Clone, Debug)]
pub struct McpReport {
    trace: McpTrace,
    failures: Vec<Failure>,
    replay: String,
}

impl Mcp {
    /// Decodes and checks a file: the scenario if there is no error, and every problem.
    #[must_use]
    pub fn read(
        document: &Document,
        source: &Source,
        origin: &Origin,
    ) -> (Option<Self>, Vec<Diagnostic>) {
        let (file, problems) = checked(document, |file: &McpFile, problems| {
            check::check(file, document, source, problems);
        });
        (file.map(|file| resolve::resolve(file, origin)), problems)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its line for humans; empty if it has none.
    #[must_use]
    pub fn about(&self) -> &str {
        &self.about
    }

    /// Runs it.
    #[must_use]
    pub fn run(&self, seed: u64) -> McpReport {
        let run = stage::run(self, seed);
        let failures = judge::judge(self, &run);
        let sentences = failures.iter().map(|failure| failure.sentence.clone()).collect();
        let trace = McpTrace {
            scenario: self.name.clone(),
            visibility: match self.visibility {
                Visibility::Session => "session",
                // A scenario's clients have sessions.
                Visibility::Live | Visibility::Request => "live",
            },
            seed,
            servers: self.servers.iter().map(|it| Arc::clone(&it.name)).collect(),
            steps: run.steps,
            final_breakers: run.breakers,
            final_health: run.health,
            totals: run.totals,
            list_changed: run.list_changed,
            expect: Verdict { passed: failures.is_empty(), failures: sentences },
        };
        McpReport { trace, failures, replay: self.origin.command(seed) }
    }
}

impl McpReport {
    /// Everything that happened.
    #[must_use]
    pub fn trace(&self) -> &McpTrace {
        &self.trace
    }

    /// The expectations that did not hold.
    #[must_use]
    pub fn failures(&self) -> &[Failure] {
        &self.failures
    }

    /// The command that gives this report again.
    #[must_use]
    pub fn replay(&self) -> &str {
        &self.replay
    }

    /// Its text, ending in a newline.
    #[must_use]
    pub fn render(&self, options: &RenderOptions) -> String {
        let glyphs = if options.ascii { Glyphs::ASCII } else { Glyphs::UNICODE };
        match options.format {
            Format::Graph => graph::graph(&self.trace, &glyphs, options.paint()),
            Format::Table => table::table(&self.trace, &glyphs),
            Format::Json => format!("{}\n", self.to_json()),
        }
    }

    /// Its stable JSON form.
    #[must_use]
    pub fn to_json(&self) -> Value {
        serde_json::to_value(&self.trace).expect("a trace of words, numbers and texts serializes")
    }
}
