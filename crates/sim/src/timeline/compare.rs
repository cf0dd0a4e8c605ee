//! A recording against its replay, and one replay against another.
//!
//! - [`Replayed`]: whether the core made the recorded decisions again, line by line.
//! - [`Comparison`]: what another config would have made of the same requests.

use schemars::{JsonSchema, schema_for};
use serde::Serialize;
use tidegate_core::time::{Millis, Now};

use super::{
    decisions::request_line, judge::short, recording::RecordedRequest, report::TimelineReport,
};
use crate::paint::{Paint, Tone};

/// Differences that are listed.
const LISTED: usize = 20;

/// Whether a recording replays to the same decisions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Replayed {
    /// Requests of the recording.
    pub requests: usize,
    /// Those whose decision came out the same, to the byte.
    pub same: usize,
    /// The first of those that did not.
    pub different: Vec<Difference>,
}

/// A request that was decided otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Difference {
    /// The decision in the record.
    pub recorded: String,
    /// The decision in the replay.
    pub replayed: String,
}

/// A number under two configs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Figure {
    /// What is counted.
    pub name: String,
    /// `count` or `ms`.
    pub unit: &'static str,
    /// With the config of the recording.
    pub before: u64,
    /// With the other config.
    pub after: u64,
    /// `better`, `worse`, `same`, or `other` where neither can be said.
    pub verdict: &'static str,
}

/// What another config would have made of the same requests.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Comparison {
    /// The recording.
    pub scenario: String,
    /// The other config.
    pub config: Option<String>,
    /// Whether the recording replays exactly with its own config: what the comparison rests on.
    pub replayed: Replayed,
    /// The numbers.
    pub figures: Vec<Figure>,
    /// Requests that were decided otherwise.
    pub decided_otherwise: usize,
    /// What the reader should know.
    pub notes: Vec<String>,
}

/// The schema of a comparison.
#[must_use]
pub fn schema_text() -> String {
    let schema = schema_for!(Comparison);
    let mut text = serde_json::to_string_pretty(&schema).expect("a schema is JSON");
    text.push('\n');
    text
}

fn recorded_line(it: &RecordedRequest) -> String {
    let attempts = it.attempts.iter().map(|it| it.line.as_str());
    request_line(&it.id, &it.route_name, attempts, (&it.end, it.status))
}

impl TimelineReport {
    /// The decisions of the recording, one line each; nothing without a recording.
    #[must_use]
    pub fn recorded_decisions(&self) -> Vec<String> {
        let recording = self.plot().recording.as_deref();
        recording.map(|it| it.arrivals.iter().map(recorded_line).collect()).unwrap_or_default()
    }

    /// Whether the recording was decided again as it had been; `None` without a recording.
    #[must_use]
    pub fn replayed(&self) -> Option<Replayed> {
        self.plot().recording.as_ref()?;
        let recorded = self.recorded_decisions();
        let pairs = recorded.iter().zip(self.decisions());
        let others = pairs.filter(|(recorded, replayed)| recorded != replayed);
        let count = others.clone().count();
        let different = others.take(LISTED).map(|(recorded, replayed)| Difference {
            recorded: recorded.clone(),
            replayed: replayed.clone(),
        });
        let requests = recorded.len();
        Some(Replayed { requests, same: requests - count, different: different.collect() })
    }
}

impl Comparison {
    /// Compares the replay of a recording with its own config to one with another; `None` if it is
    /// no recording.
    #[must_use]
    pub fn of(before: &TimelineReport, after: &TimelineReport) -> Option<Self> {
        let replayed = before.replayed()?;
        let (one, other) = (before.tally(), after.tally());
        let figure = |name: &str, before: u64, after: u64| Figure {
            name: name.to_owned(),
            unit: "count",
            before,
            after,
            verdict: less_is_better(before, after),
        };
        let failed = |report: &TimelineReport| {
            report.tally().backends.iter().map(|it| it.failed).sum::<u64>()
        };
        let mut figures = vec![
            figure("client failures", one.failures.count, other.failures.count),
            Figure {
                verdict: less_is_better(other.answered, one.answered),
                ..figure("answered", one.answered, other.answered)
            },
            figure("hops", one.hops, other.hops),
            figure("attempts", one.attempts, other.attempts),
            figure("failed attempts", failed(before), failed(after)),
            figure("last resorts", one.last_resorts, other.last_resorts),
            figure("session moves", one.sessions_moved, other.sessions_moved),
        ];
        let recording = before.plot().recording.as_deref();
        if recording.is_some_and(super::recording::Recording::has_tokens) {
            let tokens = figure("tokens of answered requests", one.tokens, other.tokens);
            figures.push(Figure { verdict: other_or_same(one.tokens, other.tokens), ..tokens });
        }
        figures.push(waits(before, after));
        figures.extend(open_times(before, after));
        let pairs = before.decisions().iter().zip(after.decisions());
        Some(Self {
            scenario: before.plot().name.clone(),
            config: after.plot().config.clone(),
            replayed,
            figures,
            decided_otherwise: pairs.filter(|(one, other)| one != other).count(),
            notes: after.plot().casting.clone(),
        })
    }

    /// The comparison as lines.
    #[must_use]
    pub fn lines(&self, paint: Paint) -> Vec<String> {
        let mut lines = vec![self.replayed.sentence()];
        let config = self.config.as_deref().unwrap_or("the same config");
        let otherwise = self.decided_otherwise;
        lines.push(format!("with {config}: {otherwise} requests are decided otherwise"));
        lines.extend(self.notes.iter().map(|note| format!("  {note}")));
        lines.push(String::new());
        let width = self.figures.iter().map(|it| it.name.chars().count()).max().unwrap_or(0);
        lines.push(format!("{:<width$}  {:>12}  {:>12}", "", "recorded", "candidate"));
        for it in &self.figures {
            let (before, after) = (it.shown(it.before), it.shown(it.after));
            let tone = match it.verdict {
                "better" => Tone::Good,
                "worse" => Tone::Bad,
                _ => Tone::Quiet,
            };
            let change = if it.before == it.after { String::new() } else { it.change() };
            let change = paint.apply(tone, &change);
            let line = format!("{:<width$}  {before:>12}  {after:>12}  {change}", it.name);
            lines.push(line.trim_end().to_owned());
        }
        lines
    }
}

impl Replayed {
    /// How exact the replay was.
    #[must_use]
    pub fn sentence(&self) -> String {
        let Self { requests, same, .. } = self;
        if requests == same {
            format!(
                "the recording replays exactly: all {requests} requests are decided as recorded"
            )
        } else {
            let rest = requests - same;
            format!(
                "{same} of {requests} requests replay as recorded, {rest} are decided otherwise"
            )
        }
    }
}

impl Figure {
    fn shown(&self, value: u64) -> String {
        if self.unit == "ms" { short(Millis(value)) } else { value.to_string() }
    }

    fn change(&self) -> String {
        let sign = if self.after > self.before { '+' } else { '-' };
        format!("{sign}{} {}", self.shown(self.after.abs_diff(self.before)), self.verdict)
    }
}

fn less_is_better(before: u64, after: u64) -> &'static str {
    match after.cmp(&before) {
        std::cmp::Ordering::Less => "better",
        std::cmp::Ordering::Equal => "same",
        std::cmp::Ordering::Greater => "worse",
    }
}

fn other_or_same(before: u64, after: u64) -> &'static str {
    if before == after { "same" } else { "other" }
}

fn waits(before: &TimelineReport, after: &TimelineReport) -> Figure {
    let p95 = |report: &TimelineReport| report.tally().waits.quantile(0.95).0;
    let (before, after) = (p95(before), p95(after));
    let verdict = less_is_better(before, after);
    Figure { name: "p95 wait for first content".to_owned(), unit: "ms", before, after, verdict }
}

/// How long each backend was not closed, of those that either config opened.
fn open_times(before: &TimelineReport, after: &TimelineReport) -> Vec<Figure> {
    let of = |report: &TimelineReport, id: &str| {
        let world = &report.plot().world;
        let place = world.settings.backends.iter().position(|it| it.id == id);
        let end = Now(report.plot().lasts.0);
        place.map_or(0, |place| report.tally().backends[place].open_until(end).0)
    };
    let mut ids: Vec<&str> = Vec::new();
    for report in [before, after] {
        for backend in &report.plot().world.settings.backends {
            if !ids.contains(&backend.id.as_str()) {
                ids.push(&backend.id);
            }
        }
    }
    let figure = |id: &str| {
        let (before, after) = (of(before, id), of(after, id));
        let verdict = other_or_same(before, after);
        Figure { name: format!("{id} not closed"), unit: "ms", before, after, verdict }
    };
    ids.into_iter().map(figure).filter(|it| it.before + it.after > 0).collect()
}
