//! The report of a run: lanes, counters, expectations, and the line that plays it again.
//!
//! Same plot, seed and options, same bytes: no clock, no terminal, no environment. A trace or a
//! closer view is made by playing the run again, so a report keeps neither.

mod json;
mod text;

use std::sync::Arc;

use serde_json::Value;
use tidegate_core::{
    breaker::State,
    time::{Millis, Now},
};

use super::{
    engine::{RunOptions, TimelineRun, run},
    judge::{Judgement, judge},
    painter::View,
    plot::Plot,
    tally::Tally,
    trace::TraceEntry,
};
use crate::{
    audit::Violation,
    form::{Failure, Format, RenderOptions},
    lanes::Picture,
};

/// What a run of a timeline gave.
#[derive(Clone, Debug)]
pub struct TimelineReport {
    plot: Arc<Plot>,
    seed: u64,
    tally: Tally,
    states: Vec<State>,
    replica_states: Vec<Vec<State>>,
    verdicts: Vec<Judgement>,
    violations: Vec<Violation>,
    failures: Vec<Failure>,
    decisions: Vec<String>,
}

/// A replay shows this much before and after the cause.
const MARGIN: Millis = Millis::seconds(5);

impl TimelineReport {
    pub(super) fn of(plot: &Arc<Plot>, seed: u64) -> Self {
        let options = RunOptions { audit: true, ..RunOptions::default() };
        let run = run(plot, seed, &options);
        Self::new(plot, seed, run)
    }

    fn new(plot: &Arc<Plot>, seed: u64, run: TimelineRun) -> Self {
        let verdicts = judge(plot, &run.tally);
        let of_violation = |it: &Violation| Failure {
            expectation: format!("invariant {}", it.invariant),
            sentence: format!(
                "invariant {} broken at {}: {}",
                it.invariant,
                super::trace::moment(it.at),
                it.sentence
            ),
        };
        let of_verdict = |it: &Judgement| Failure {
            expectation: it.wanted.clone(),
            sentence: format!("wanted: {}; got: {}", it.wanted, it.got),
        };
        let broken = run.violations.iter().map(of_violation);
        let missed = verdicts.iter().filter(|it| !it.holds).map(of_verdict);
        Self {
            failures: broken.chain(missed).collect(),
            plot: Arc::clone(plot),
            seed,
            tally: run.tally,
            states: run.states,
            replica_states: run.replica_states,
            decisions: run.decisions,
            verdicts,
            violations: run.violations,
        }
    }

    /// The expectations and invariants that did not hold.
    #[must_use]
    pub fn failures(&self) -> &[Failure] {
        &self.failures
    }

    /// The command that gives this report again; after a failure, the part of the trace that
    /// shows it.
    #[must_use]
    pub fn replay(&self) -> String {
        let mut command = self.plot.origin.command(self.seed);
        if let Some(config) = &self.plot.config {
            command.push_str(&format!(" -c {config}"));
        }
        let violation = self.violations.first().map(|it| (it.at, it.at));
        let missed = self.verdicts.iter().find(|it| !it.holds).and_then(|it| it.look_at);
        if let Some((first, last)) = violation.or(missed) {
            let from = Now(first.0.saturating_sub(MARGIN.0));
            let to = Now(last.after(MARGIN).0.div_ceil(1000) * 1000);
            let words = [super::judge::seconds(from), super::judge::seconds(to)];
            command.push_str(&format!(" --from {} --to {} --trace", words[0], words[1]));
        }
        command
    }

    /// Its text, ending in a newline.
    #[must_use]
    pub fn render(&self, options: &RenderOptions) -> String {
        let text = match (options.format, options.trace) {
            (Format::Json, false) => format!("{}\n", self.to_json()),
            (Format::Json, true) => json::lines(&self.trace(options)),
            (Format::Table, _) => text::table(self),
            (Format::Graph, true) => text::traced(self, &self.trace(options), options),
            (Format::Graph, false) => text::graph(self, options),
        };
        if options.ascii && options.format != Format::Json { text::to_ascii(&text) } else { text }
    }

    /// What was played.
    pub(super) fn plot(&self) -> &Plot {
        &self.plot
    }

    /// What was counted.
    pub(super) fn tally(&self) -> &Tally {
        &self.tally
    }

    /// The decision of each recorded request, one line each; nothing without a recording.
    #[must_use]
    pub fn decisions(&self) -> &[String] {
        &self.decisions
    }

    /// Its stable JSON form.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json::report(self)
    }

    /// Its lanes over the whole timeline, in slices of equal length.
    #[must_use]
    pub fn picture(&self) -> Picture {
        text::picture(self, &RenderOptions::default())
    }

    /// The view that options ask for; the whole timeline unless they say otherwise.
    fn view(&self, options: &RenderOptions) -> View {
        let end = Now(self.plot.lasts.0);
        let from = options.from.min(end);
        View { from, to: options.to.min(end).max(from) }
    }

    fn is_whole(&self, view: View) -> bool {
        view == View { from: Now::ZERO, to: Now(self.plot.lasts.0) }
    }

    /// The run once more, to see a part of it better.
    fn again(&self, view: View, trace: bool) -> TimelineRun {
        run(&self.plot, self.seed, &RunOptions { audit: false, trace, view: Some(view) })
    }

    fn trace(&self, options: &RenderOptions) -> Vec<TraceEntry> {
        // What is under way at the end of the timeline ends after it.
        let view = View { from: options.from, to: options.to.max(options.from) };
        self.again(view, true).tracer.entries
    }
}
