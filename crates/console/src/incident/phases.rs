//! What each backend did over time, from the attempts that were made: the part of a scenario that
//! answers for attempts that were not made.
//!
//! Attempts of a backend in the order of their choice are cut into runs of the same kind. A run is
//! a phase: its latency is the median of its attempts. A single odd attempt between two runs of one
//! kind is no phase of its own.

use std::collections::BTreeMap;

use tidegate_config::duration::written;
use tidegate_core::time::Millis;
use tidegate_journal::api::decision::{AttemptView, DecisionFull};

/// Tokens of an answer whose length is not known.
const TOKENS: u64 = 40;
/// A single attempt of another kind this soon between two of one kind is an exception.
const EXCEPTION: usize = 1;

/// One attempt, as far as a script cares.
#[derive(Clone, Copy, Debug)]
struct Seen {
    at: u64,
    kind: Kind,
    /// To the first content, or to the error.
    latency: u64,
    /// From the first content to the end.
    rest: u64,
    retry_after: Option<u64>,
}

/// What it met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Ok,
    Status(u16),
    Refuse,
    Hang,
    Truncate,
    ErrorEvent,
}

/// `backends:` of a scenario.
pub(super) fn backends(requests: &[&DecisionFull], origin: u64) -> String {
    let mut seen: BTreeMap<&str, Vec<Seen>> = BTreeMap::new();
    for request in requests {
        // Every member of the route is a backend of the world, asked or not.
        for candidate in request.choices.iter().flat_map(|it| &it.candidates) {
            seen.entry(&candidate.backend).or_default();
        }
        for it in &request.short.attempts {
            let at = (request.short.at + it.started_ms).saturating_sub(origin);
            seen.entry(&it.backend).or_default().extend(of(at, it));
        }
    }
    let mut yaml = String::from("backends:\n");
    for (id, mut list) in seen {
        list.sort_by_key(|it| it.at);
        let phases = phases(&list);
        let id = serde_json::Value::from(id);
        if phases.is_empty() {
            yaml.push_str(&format!("  {id}: []\n"));
            continue;
        }
        yaml.push_str(&format!("  {id}:\n"));
        for phase in phases {
            yaml.push_str(&format!("    - {phase}\n"));
        }
    }
    yaml
}

fn of(at: u64, it: &AttemptView) -> Option<Seen> {
    let kind = match (it.outcome.as_deref()?, it.error_status.or(it.status)) {
        ("success", _) => Kind::Ok,
        // What a client did says nothing about the backend.
        ("cancelled" | "client_fault" | "too_long", _) => return None,
        ("truncated", _) => Kind::Truncate,
        ("timeout", _) => Kind::Hang,
        ("transport", None) => Kind::Refuse,
        (_, Some(status @ 300..=599)) => Kind::Status(status),
        _ => Kind::ErrorEvent,
    };
    let latency = it.first_content_ms.unwrap_or(it.ms).min(it.ms);
    let retry_after = it.retry_after_ms;
    Some(Seen { at, kind, latency, rest: it.ms - latency, retry_after })
}

fn phases(list: &[Seen]) -> Vec<String> {
    let mut runs: Vec<Vec<Seen>> = Vec::new();
    for it in list {
        match runs.last_mut().filter(|run| run[0].kind == it.kind) {
            Some(run) => run.push(*it),
            None => runs.push(vec![*it]),
        }
    }
    // One odd attempt between two runs of one kind: those two are one.
    let mut merged: Vec<Vec<Seen>> = Vec::new();
    let mut rest = runs.into_iter().peekable();
    while let Some(run) = rest.next() {
        let around = merged.last().zip(rest.peek());
        let is_odd = run.len() <= EXCEPTION
            && around.is_some_and(|(before, after)| {
                before[0].kind == after[0].kind && before.len() + after.len() > 2 * EXCEPTION
            });
        match merged.last_mut() {
            Some(before) if is_odd || before[0].kind == run[0].kind => {
                before.extend(run.into_iter().filter(|_| !is_odd));
            }
            _ => merged.push(run),
        }
    }
    let phase = |(index, run): (usize, &Vec<Seen>)| {
        let at = if index == 0 { 0 } else { run[0].at };
        line(at, run)
    };
    merged.iter().enumerate().map(phase).collect()
}

fn line(at: u64, run: &[Seen]) -> String {
    let median = |of: fn(&Seen) -> u64| {
        let mut all: Vec<u64> = run.iter().map(of).collect();
        all.sort_unstable();
        all[all.len() / 2]
    };
    let at = written(Millis(at));
    let latency = written(Millis(median(|it| it.latency).max(1)));
    match run[0].kind {
        Kind::Ok => {
            let gap = median(|it| it.rest) / TOKENS;
            let gap = written(Millis(gap));
            format!(
                "{{ at: {at}, do: ok, latency: {latency}, tokens: {TOKENS}, token_gap: {gap} }}"
            )
        }
        Kind::Status(401 | 403) => format!("{{ at: {at}, do: auth, latency: {latency} }}"),
        Kind::Status(402) => format!("{{ at: {at}, do: exhausted, latency: {latency} }}"),
        Kind::Status(status) => {
            let retry = run.iter().filter_map(|it| it.retry_after).max();
            let retry = retry.map(|ms| format!(", retry_after: {}", written(Millis(ms))));
            let retry = retry.unwrap_or_default();
            format!("{{ at: {at}, do: status, status: {status}, latency: {latency}{retry} }}")
        }
        Kind::Refuse => format!("{{ at: {at}, do: refuse }}"),
        Kind::Hang => format!("{{ at: {at}, do: hang }}"),
        Kind::Truncate => format!("{{ at: {at}, do: truncate }}"),
        Kind::ErrorEvent => format!("{{ at: {at}, do: error_event }}"),
    }
}
