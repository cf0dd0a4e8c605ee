//! A stretch of a history file as an incident.
//!
//! A history holds requests, changes of state and actions. It holds neither the config nor the seed
//! of the jitter nor probes, so the config comes from its file, and open times may differ from the
//! record by their jitter.

use std::path::Path;

use serde_json::Value;
use tidegate_journal::{
    api::{incident::IncidentView, snapshot::ConfigView},
    history::{self, HistoryProblem},
};

use crate::incident::VERSION;

/// The time that is read where nobody says.
const USUAL_MS: u64 = 15 * 60 * 1000;

/// An incident, and what the reader should know of it.
#[derive(Clone, Debug)]
pub struct FromHistory {
    /// The record.
    pub incident: IncidentView,
    /// What is missing.
    pub notes: Vec<String>,
}

/// Reads the requests between two moments; absent ones mean the last fifteen minutes that the file
/// knows of. `config` is the config that served, without secrets.
///
/// # Errors
/// A sentence: the file is foreign, damaged, of another version, or has no request of that time.
pub fn read(
    path: &Path,
    (from, to): (Option<u64>, Option<u64>),
    config: Value,
) -> Result<FromHistory, String> {
    let told = |problem: HistoryProblem| match problem {
        HistoryProblem::Foreign => "the file is not a history of tidegate".to_owned(),
        other => other.to_string(),
    };
    let last = history::last_unix_ms(path).map_err(told)?;
    let last = last.ok_or_else(|| "the history has no request".to_owned())?;
    let to = to.unwrap_or_else(|| from.map_or(last, |from| from.saturating_add(USUAL_MS)));
    let from = from.unwrap_or_else(|| to.saturating_sub(USUAL_MS));
    let found = history::stretch(path, from, to).map_err(told)?;
    let Some(first) = found.decisions.first() else {
        return Err("the history has no request of this time".to_owned());
    };
    let started = first.short.at_unix_ms.saturating_sub(first.short.at);
    let base = from.saturating_sub(started);
    let end = found.decisions.iter().map(|it| it.short.at_unix_ms + it.short.took_ms).max();
    let sha = first.config_sha.clone().unwrap_or_default();
    let mut notes = vec![
        "a history has no probes and no seed of jitter: open times may differ a little".to_owned(),
    ];
    if found.has_other_runs {
        notes.push("the gateway was restarted in this time: its last run is taken".to_owned());
    }
    if found.unread > 0 {
        notes.push(format!("{} rows cannot be read by this version", found.unread));
    }
    let incident = IncidentView {
        version: VERSION,
        from_unix_ms: started + base,
        to_unix_ms: end.unwrap_or(to).max(started + base),
        base,
        config: ConfigView { sha, file: None },
        config_file: config,
        jitter_seed: None,
        start: Vec::new(),
        arrivals: found.decisions,
        transitions: found.transitions,
        actions: found.actions,
        reloads: found.reloads,
        probes: None,
        complete: true,
        dropped: 0,
    };
    Ok(FromHistory { incident, notes })
}
