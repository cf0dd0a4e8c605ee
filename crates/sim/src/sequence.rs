//! Form 1: a sequence of requests.
//!
//! A few services, a script of faults for each, a program of requests and advances, and what is
//! expected of it. The form for questions about single requests: who is tried, in which order,
//! what the client sees, where the session sticks afterwards.
//!
//! The way of a file: `file` (as written) → `check` (what is wrong with it) → [`Sequence`] (what
//! it means) → `settings` (for the core) → `run` (with the `world`'s scripts) → `judge` →
//! [`trace::Trace`] → `graph`, `table` or JSON.
//!
//! Rules kept here:
//! - Every service has an endpoint and a key of its own. There are no bodies: a status alone says
//!   how an attempt ended. Requests stream and take no time.
//! - One draw per choice, so that a longer program begins like a shorter one.

mod check;
mod file;
pub(crate) mod glyphs;
mod graph;
mod judge;
mod resolve;
mod run;
mod settings;
mod table;
mod tactic;
pub mod trace;
mod words;
mod world;

use std::sync::Arc;

use serde_json::Value;
use tidegate_config::{
    diagnostic::Diagnostic, document::Document, file::PolicyFile, source::Source,
};
use tidegate_core::settings::Tactic;

use self::{
    file::{SequenceExpectFile, SequenceFile, SequenceStepFile},
    glyphs::Glyphs,
    tactic::TierLayout,
    trace::{Trace, Verdict},
    world::CallScript,
};
use crate::form::{Failure, Format, Origin, RenderOptions, checked};

/// A sequence that can be run.
#[derive(Clone, Debug)]
pub struct Sequence {
    origin: Origin,
    name: String,
    about: String,
    layout: TierLayout,
    tactic: Tactic,
    affinity_secs: u64,
    services: Vec<Service>,
    /// What each service does, in the order of the services.
    scripts: Vec<CallScript>,
    seed_pin: Option<SeedPin>,
    policy: PolicyFile,
    program: Vec<SequenceStepFile>,
    expect: SequenceExpectFile,
}

/// One service.
#[derive(Clone, Debug)]
struct Service {
    id: Arc<str>,
    tier: u32,
    inactive: bool,
    weight: u32,
}

/// A pin that exists at time 0.
#[derive(Clone, Debug)]
struct SeedPin {
    session: String,
    id: String,
}

/// What a run of a sequence gave.
#[derive(Clone, Debug)]
pub struct SequenceReport {
    trace: Trace,
    failures: Vec<Failure>,
    replay: String,
}

impl Sequence {
    /// Decodes and checks a file: the sequence if there is no error, and every problem.
    #[must_use]
    pub fn read(
        document: &Document,
        source: &Source,
        origin: &Origin,
    ) -> (Option<Self>, Vec<Diagnostic>) {
        let (file, problems) = checked(document, |file: &SequenceFile, problems| {
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
    pub fn run(&self, seed: u64) -> SequenceReport {
        let run = run::run(self, seed);
        let failures = judge::judge(&self.expect, &run);
        let sentences = failures.iter().map(|failure| failure.sentence.clone()).collect();
        let trace = Trace {
            rule: self.name.clone(),
            tactic: self.layout.word(),
            affinity_secs: self.affinity_secs,
            seed,
            services: self.services.iter().map(Service::label).collect(),
            steps: run.steps,
            final_breakers: run.breakers,
            final_health: run.health,
            expect: Verdict { passed: failures.is_empty(), failures: sentences },
        };
        SequenceReport { trace, failures, replay: self.origin.command(seed) }
    }
}

impl Service {
    /// `openai/gpt-5.4 (T0)`.
    fn label(&self) -> String {
        let inactive = if self.inactive { ",inactive" } else { "" };
        format!("{} (T{}{inactive})", self.id, self.tier)
    }
}

impl SequenceReport {
    /// Everything that happened.
    #[must_use]
    pub fn trace(&self) -> &Trace {
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
