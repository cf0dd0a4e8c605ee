//! Form 2: a timeline of traffic, for questions a sequence cannot ask: load, latency, partial
//! failure, recovery time, cost.
//!
//! A tour, in the order a file meets it:
//! - `file`: what may be written; `check`: into a `Plot`, every problem at once.
//! - `script` and `course`: what a backend does, and what one attempt comes to.
//! - `engine`: the virtual clock that drives the production core, with the auditor beside it.
//! - `tally`, `painter`, `trace`: what is counted, drawn and told.
//! - `judge`: expectations; `report`: text and JSON.
//! - `recording`: exact arrivals that a gateway recorded; `decisions` and `compare`: whether they
//!   replay to the same decisions, and what differs under another config.
//!
//! Rules kept here: no rule of health or routing is written a second time; same file and seed,
//! same bytes, on any number of threads.

mod check;
pub mod compare;
mod course;
mod decisions;
mod engine;
mod file;
mod judge;
mod painter;
mod plot;
mod recording;
mod report;
mod script;
mod tally;
mod trace;

use std::sync::Arc;

use tidegate_config::{Config, diagnostic::Diagnostic, document::Document, source::Source};
use tidegate_core::route::Needs;

use self::{
    engine::{RunOptions, run},
    plot::Plot,
};
use crate::form::Origin;

pub use report::TimelineReport;

/// A timeline that can be run.
#[derive(Clone, Debug)]
pub struct Timeline {
    plot: Arc<Plot>,
}

impl Timeline {
    /// Decodes and checks a file: the timeline unless it has an error, and every problem.
    #[must_use]
    pub fn read(
        document: &Document,
        source: &Source,
        origin: &Origin,
    ) -> (Option<Self>, Vec<Diagnostic>) {
        let (plot, problems) = check::check(document, source, origin);
        (plot.map(|plot| Self { plot: Arc::new(plot) }), problems)
    }

    /// The same story with the routes and health settings of a config: its scripts are played, in
    /// order, by the targets of the config's default route (or first route), in tier order.
    ///
    /// # Errors
    /// A lowercase fragment that says why the config cannot be used.
    pub fn with_config(&self, name: &str, config: &Config) -> Result<Self, String> {
        let world = check::world_of_config(config).ok_or("the config has no route")?;
        Ok(Self { plot: Arc::new(self.plot.recast(name, world)) })
    }

    /// The same story of clients whose requests need this of a target.
    #[must_use]
    pub fn with_needs(&self, needs: Needs) -> Self {
        let mut plot = Plot::clone(&self.plot);
        plot.traffic.needs = needs;
        Self { plot: Arc::new(plot) }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.plot.name
    }

    /// Its line for humans; empty if it has none.
    #[must_use]
    pub fn about(&self) -> &str {
        &self.plot.about
    }

    /// Whether its requests are a recording.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        self.plot.recording.is_some()
    }

    /// Runs it, with every invariant checked after every step.
    #[must_use]
    pub fn run(&self, seed: u64) -> TimelineReport {
        TimelineReport::of(&self.plot, seed)
    }

    /// Runs it without checks or report, as fast as it goes, and says how many requests reached
    /// the gateway: for benches.
    #[must_use]
    pub fn run_unchecked(&self, seed: u64) -> u64 {
        run(&self.plot, seed, &RunOptions::default()).tally.sent
    }
}
