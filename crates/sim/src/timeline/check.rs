//! A file into a plot: every rule that its schema cannot tell, all problems at once.
//!
//! Rules kept here:
//! - Backends named anywhere are those under `backends` (or of the config, if one is named).
//! - A key that means nothing with its `do` is a problem, not ignored.
//! - A run ends: the number of requests and probes it takes is bounded before it starts.

mod config;
mod fleet;
mod phases;
mod settings;
mod wants;

pub(super) use config::world as world_of_config;

use std::path::Path;
use std::sync::Arc;

use tidegate_config::{
    codes::BAD_VALUE,
    diagnostic::{Diagnostic, Problems, quoted},
    document::Document,
    path::KeyPath,
    shape::decode,
    source::Source,
    suggest,
};
use tidegate_core::{route::Needs, time::Millis};
use tidegate_wire::operation::needs_of_path;

use super::{
    file::{ArrivalPattern, DialectWord, NeedWord, TimelineFile, TrafficFile},
    plot::{Plot, Traffic},
    recording::{self, Recording},
};
use crate::codes::timeline as codes;
use crate::form::Origin;

/// More requests than this take longer than anybody waits.
const REQUESTS_MAX: f64 = 50e6;
/// More probes than this likewise.
const PROBES_MAX: u64 = 20_000_000;
/// Each session costs memory.
const SESSIONS_MAX: u32 = 1_000_000;

/// A gateway ignores a shorter one.
const PATIENCE_MIN: Millis = Millis::seconds(1);

/// Collects problems with their places.
pub(super) struct ProblemCollector<'a> {
    document: &'a Document,
    problems: Problems,
    /// How many replicas the file has.
    replicas: u32,
}

impl ProblemCollector<'_> {
    pub(super) fn refuse(&mut self, path: &KeyPath, diagnostic: Diagnostic) {
        self.problems.add(diagnostic.at(self.document, path));
    }

    pub(super) fn refuse_key(&mut self, path: &KeyPath, diagnostic: Diagnostic) {
        self.problems.add(diagnostic.at_key(self.document, path));
    }

    /// The index of a name, or a problem with the nearest name that exists.
    pub(super) fn backend(&mut self, path: &KeyPath, id: &str, known: &[String]) -> Option<usize> {
        let found = known.iter().position(|name| name == id);
        // One that is written but could not be read has its own problem.
        let scripts = KeyPath::from("backends");
        let is_elsewhere = path.parent() != scripts;
        let is_written = is_elsewhere && self.document.keys_at(&scripts).any(|name| name == id);
        if found.is_none() && !is_written {
            let names = known.iter().map(String::as_str);
            let message = format!("`{path}`: no backend is called {}", quoted(id));
            let diagnostic = Diagnostic::error(&codes::UNKNOWN_BACKEND, message)
                .label("no backend has this name")
                .maybe_help(suggest::did_you_mean(id, names, "backends"));
            self.refuse(path, diagnostic);
        }
        found
    }
}

/// Reads a document as a timeline: a plot unless there is an error.
pub(super) fn check(
    document: &Document,
    source: &Source,
    origin: &Origin,
) -> (Option<Plot>, Vec<Diagnostic>) {
    let (file, found) = decode::<TimelineFile>(document);
    let replicas = file.as_ref().and_then(|it| it.replicas).unwrap_or(1);
    let mut collector = ProblemCollector { document, problems: Problems::default(), replicas };
    collector.problems.extend(found);
    let plot = file.and_then(|file| plot(&file, source.folder(), origin, &mut collector));
    let problems = collector.problems.into_list();
    (plot.filter(|_| !problems.iter().any(Diagnostic::is_error)), problems)
}

fn plot(
    file: &TimelineFile,
    folder: &Path,
    origin: &Origin,
    collector: &mut ProblemCollector<'_>,
) -> Option<Plot> {
    let lasts = file.lasts.millis();
    let traffic = traffic(&file.traffic, collector);
    bound_traffic(traffic.as_ref(), lasts, collector);
    let fleet = fleet::fleet(file, collector);
    let scripts = phases::scripts(&file.backends, lasts, collector);
    let mut world = settings::world(file, scripts, folder, collector);
    let recording = recorded(file, collector).zip(world.as_mut());
    let recording = recording.map(|(it, world)| it.resolved(world));
    if let Some(world) = &world {
        for probe in &world.probes {
            let replicas = u64::from(collector.replicas);
            let is_probed = probe.every > Millis::ZERO;
            if is_probed && (lasts.0 / probe.every.0).saturating_mul(replicas) > PROBES_MAX {
                let message = format!("this takes more than {PROBES_MAX} probes");
                let diagnostic = Diagnostic::error(&codes::TOO_LONG, message).help(
                    "shorten `for`, or switch probes off: `config: { probe: { every: 0s } }`",
                );
                collector.refuse(&KeyPath::from("for"), diagnostic);
                break;
            }
        }
    }
    let ids: Vec<String> = match &world {
        Some(world) => world.settings.backends.iter().map(|it| it.id.clone()).collect(),
        None => file.backends.keys().cloned().collect(),
    };
    let wants = wants::wants(&file.expect, &ids, collector);
    Some(Plot {
        name: file.scenario.clone().unwrap_or_else(|| origin.stem()),
        about: file.about.clone().unwrap_or_default(),
        origin: origin.clone(),
        config: None,
        casting: Vec::new(),
        lasts,
        traffic: traffic?,
        fleet,
        world: world?,
        wants,
        recording: recording.map(Arc::new),
    })
}

/// The recording of a file that has one.
fn recorded(file: &TimelineFile, collector: &mut ProblemCollector<'_>) -> Option<Recording> {
    let is_wanted = file.traffic.arrivals == ArrivalPattern::Recorded;
    let here = KeyPath::from("recording");
    let Some(written) = &file.recording else {
        if is_wanted {
            let message = "`traffic.arrivals: recorded` needs `recording`";
            let path = KeyPath::from("traffic").key("arrivals");
            let diagnostic = Diagnostic::error(&BAD_VALUE, message)
                .help("`tidegate sim --from-live 15m` writes a file with one");
            collector.refuse(&path, diagnostic);
        }
        return None;
    };
    if !is_wanted {
        let message = "`recording` is used only with `traffic.arrivals: recorded`";
        collector.refuse_key(&here, Diagnostic::error(&BAD_VALUE, message));
        return None;
    }
    match recording::read(written) {
        Ok(recording) => Some(recording),
        Err((place, words)) => {
            let message = format!("`recording.{place}`: {words}");
            let diagnostic = Diagnostic::error(&codes::BAD_RECORDING, message)
                .help("`tidegate sim --from-live 15m -o FILE` writes a new one");
            collector.refuse_key(&here, diagnostic);
            None
        }
    }
}

fn traffic(file: &TrafficFile, collector: &mut ProblemCollector<'_>) -> Option<Traffic> {
    let here = KeyPath::from("traffic");
    if file.sessions > SESSIONS_MAX {
        let message = format!("`traffic.sessions`: {} is more than {SESSIONS_MAX}", file.sessions);
        collector.refuse(&here.key("sessions"), Diagnostic::error(&BAD_VALUE, message));
    }
    if file.patience.as_ref().is_some_and(|it| it.millis() < PATIENCE_MIN) {
        let message = "`traffic.patience` is less than a second, which the gateway ignores";
        collector.refuse(&here.key("patience"), Diagnostic::error(&BAD_VALUE, message));
    }
    let rate = match rate(&file.rate) {
        Ok(rate) => rate,
        Err(problem) => {
            let message = format!("`traffic.rate`: {problem}");
            let diagnostic = Diagnostic::error(&BAD_VALUE, message)
                .label("expected a rate such as `20/s`")
                .help("write a number and `/s`, `/m`, `/h` or `/d`");
            collector.refuse(&here.key("rate"), diagnostic);
            return None;
        }
    };
    Some(Traffic {
        rate,
        is_even: file.arrivals == ArrivalPattern::Even,
        sessions: file.sessions,
        stream: file.stream.map_or(1.0, |share| share.fraction()),
        clients_retry: file.clients_retry,
        patience: file.patience.as_ref().map(|it| it.millis()),
        needs: needs(file),
    })
}

/// What the requests need: the data plane's own reading of their path, and what the file adds.
fn needs(file: &TrafficFile) -> Needs {
    let has = |word: NeedWord| file.needs.contains(&word);
    let body = Needs {
        tools: has(NeedWord::Tools),
        vision: has(NeedWord::Vision),
        documents: has(NeedWord::Documents),
        json_schema: has(NeedWord::JsonSchema),
        reasoning: has(NeedWord::Reasoning),
        ..Needs::default()
    };
    let path = file.dialect.map(DialectWord::path);
    path.map(needs_of_path).unwrap_or_default().and_of_body(body)
}

/// Requests per millisecond.
fn rate(text: &str) -> Result<f64, String> {
    let no_rate = || format!("{} is not a rate", quoted(text));
    let (number, unit) = text.trim().split_once('/').ok_or_else(no_rate)?;
    let is_number = !number.is_empty() && number.chars().all(|c| c.is_ascii_digit() || c == '.');
    let count: f64 = number.parse().ok().filter(|_| is_number).ok_or_else(no_rate)?;
    let unit_ms = match unit {
        "s" => 1000.0,
        "m" => 60_000.0,
        "h" => 3_600_000.0,
        "d" => 86_400_000.0,
        _ => return Err(format!("{} has an unknown unit {}", quoted(text), quoted(unit))),
    };
    let rate = count / unit_ms;
    if rate.is_finite() { Ok(rate) } else { Err(format!("{} is too large", quoted(text))) }
}

fn bound_traffic(traffic: Option<&Traffic>, lasts: Millis, collector: &mut ProblemCollector<'_>) {
    let Some(traffic) = traffic else { return };
    let per_request = 1.0 + f64::from(traffic.clients_retry);
    let requests = traffic.rate * lasts.0 as f64 * per_request;
    if requests > REQUESTS_MAX {
        let message = format!("this takes {requests:.0} requests, more than {REQUESTS_MAX:.0}");
        let diagnostic = Diagnostic::error(&codes::TOO_LONG, message)
            .label("too much at this rate")
            .help("lower `traffic.rate` or shorten `for`");
        collector.refuse(&KeyPath::from("for"), diagnostic);
    }
}

#[cfg(test)]
mod tests;
