//! A recorded incident as a scenario file: exact arrivals, the config without secrets, and what
//! each backend did, as far as its attempts tell.
//!
//! Rules kept here:
//! - The file is complete in itself: it replays on any machine, without the gateway or its config.
//! - Nothing is made up. What is left out (MCP calls, requests that never had a route, models that
//!   the config does not name) is counted and told.
//! - Moments count from the beginning of the minute in which the record begins: windows that are
//!   cut at whole seconds stay where they were.

mod phases;

use serde_json::{Value, json};
use tidegate_config::{duration::written, source::MAX_BYTES};
use tidegate_core::time::Millis;
use tidegate_journal::api::{
    decision::{AttemptView, ChoiceView, DecisionFull},
    incident::IncidentView,
};

use crate::words::date;

/// The form of the documents that are understood.
pub const VERSION: u32 = 1;
/// The form of the recording that is written.
const RECORDING: u32 = 1;
/// Moments begin at a multiple of this.
const ALIGNED_MS: u64 = 60_000;

/// A scenario file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioText {
    /// The file.
    pub yaml: String,
    /// Requests in it.
    pub requests: usize,
    /// What the reader should know.
    pub notes: Vec<String>,
}

/// The scenario of an incident that a gateway told.
///
/// # Errors
/// The document has another form, or nothing happened in it.
pub fn scenario(incident: &IncidentView) -> Result<ScenarioText, String> {
    if incident.version != VERSION {
        return Err(format!(
            "the record has version {}, and this program reads version {VERSION}",
            incident.version
        ));
    }
    let origin = incident.base / ALIGNED_MS * ALIGNED_MS;
    let span = incident.to_unix_ms.saturating_sub(incident.from_unix_ms);
    let lasts = (incident.base - origin + span).max(1);
    let mut left_out = LeftOut::default();
    let requests: Vec<&DecisionFull> =
        incident.arrivals.iter().filter(|it| left_out.takes(it)).collect();
    if requests.is_empty() {
        return Err("no request of this time can be replayed".to_owned());
    }
    let rate = requests.len() as f64 * 1000.0 / span.max(1) as f64;
    let mut yaml = head(incident, &requests, (lasts, rate));
    yaml.push_str(&phases::backends(&requests, origin));
    yaml.push_str("recording:\n");
    yaml.push_str(&format!("  version: {RECORDING}\n"));
    if let Some(seed) = &incident.jitter_seed {
        yaml.push_str(&format!("  jitter_seed: {}\n", quoted(seed)));
    }
    let moment = |at: u64| at.saturating_sub(origin);
    let start = incident.start.iter().filter(|it| it.backend.contains('/')).map(
        |it| json!({ "backend": it.backend, "state": it.state, "until": it.until.map(moment) }),
    );
    list(&mut yaml, "start", start);
    let actions = incident.actions.iter().filter(|it| it.backend.contains('/')).map(|it| {
        let until = it.ttl_ms.map(|ttl| moment(it.at) + ttl);
        json!({ "at": moment(it.at), "deed": it.deed, "backend": it.backend, "until": until })
    });
    list(&mut yaml, "actions", actions);
    if let Some(probes) = &incident.probes {
        let probes = probes.iter().map(|it| {
            json!({ "at": moment(it.at), "n": it.n, "provider": it.provider, "status": it.status })
        });
        list(&mut yaml, "probes", probes);
    }
    list(&mut yaml, "arrivals", requests.iter().map(|it| arrival(it, origin)));
    if yaml.len() as u64 > MAX_BYTES {
        let (mib, most) = (yaml.len() >> 20, MAX_BYTES >> 20);
        return Err(format!(
            "the {} requests of this time take {mib} MiB, more than the {most} MiB of a scenario",
            requests.len()
        ));
    }
    Ok(ScenarioText { yaml, requests: requests.len(), notes: left_out.notes(incident) })
}

fn head(incident: &IncidentView, requests: &[&DecisionFull], (lasts, rate): (u64, f64)) -> String {
    let began = date(incident.from_unix_ms);
    let name = format!("incident-{}", began.replace([':', 'Z'], "").replace('T', "-"));
    let until = date(incident.to_unix_ms);
    let about = format!("{} requests recorded from {began} to {until}", requests.len());
    let config = serde_json::to_string_pretty(&without_nulls(&incident.config_file));
    let config = config.unwrap_or_default();
    let config: String = config.lines().map(|line| format!("  {line}\n")).collect();
    format!(
        "# Recorded by tidegate, without prompts, keys or addresses of clients.\n\
         # Replay it:  tidegate sim --replay FILE\n\
         # Compare:    tidegate sim --replay FILE --config candidate.yaml\n\
         scenario: {name}\nabout: {about}\nfor: {}\n\
         traffic: {{ rate: {rate:.3}/s, arrivals: recorded }}\n\
         # The config that served (sha {}), without secrets.\n\
         config: |\n{config}",
        written(Millis(lasts)),
        incident.config.sha,
    )
}

/// Keys that are not set are not written.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(key, value)| (key.clone(), without_nulls(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        other => other.clone(),
    }
}

/// A list with one item per line; JSON is YAML.
fn list(yaml: &mut String, name: &str, items: impl Iterator<Item = Value>) {
    let items: Vec<Value> = items.collect();
    if items.is_empty() {
        yaml.push_str(&format!("  {name}: []\n"));
        return;
    }
    yaml.push_str(&format!("  {name}:\n"));
    for item in items {
        yaml.push_str(&format!("    - {}\n", without_defaults(item)));
    }
}

/// Keys that stand for themselves, whatever their value.
const NEEDED: &[&str] = &["at", "ended", "status"];

/// What a reader takes for granted is not written: it is half of a recording.
fn without_defaults(value: Value) -> Value {
    let is_default = |value: &Value| match value {
        Value::Null | Value::Bool(false) => true,
        Value::Number(number) => number.as_u64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(true) | Value::Array(_) => false,
    };
    match value {
        Value::Object(map) => {
            let entries = map.into_iter().map(|(key, value)| (key, without_defaults(value)));
            let is_kept = |(key, value): &(String, Value)| {
                (NEEDED.contains(&key.as_str()) && !value.is_null()) || !is_default(value)
            };
            Value::Object(entries.filter(is_kept).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_defaults).collect()),
        other => other,
    }
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn arrival(it: &DecisionFull, origin: u64) -> Value {
    let short = &it.short;
    let plan = it.plan.as_ref();
    let needs = plan.map(|it| {
        let needs = &it.needs;
        json!({
            "tools": needs.tools,
            "vision": needs.vision,
            "documents": needs.documents,
            "json_schema": needs.json_schema,
            "reasoning": needs.reasoning,
            "context": needs.context,
            "protocol": needs.protocol,
            "kind": needs.kind,
            "converts_to": needs.converts_to,
        })
    });
    let attempts = short.attempts.iter().zip(&it.choices);
    let last = short.attempts.len().saturating_sub(1);
    let attempts: Vec<Value> = attempts
        .enumerate()
        .map(|(number, (attempt, choice))| {
            let released = it.released.at_ms.filter(|_| number == last).map(|ms| short.at + ms);
            recorded_attempt(short.at, attempt, choice, released, origin)
        })
        .collect();
    json!({
        "id": short.id,
        "at": short.at.saturating_sub(origin),
        "route": route(it),
        "session": short.session,
        "caller": short.caller,
        "stream": short.stream,
        "patience": plan.and_then(|it| it.patience_ms),
        "deadline": plan.map(|it| it.deadline_ms),
        "needs": needs,
        "attempts": attempts,
        "end": short.end,
        "status": short.status,
        "tokens": short.tokens.map(|it| it.input + it.output),
    })
}

/// The route, with the target where the client named one.
fn route(it: &DecisionFull) -> String {
    let target = it.choices.first().and_then(|it| it.candidates.first());
    match (it.short.route.as_str(), target) {
        ("direct", Some(target)) => format!("direct:{}", target.backend),
        (route, _) => route.to_owned(),
    }
}

fn recorded_attempt(
    began: u64,
    attempt: &AttemptView,
    choice: &ChoiceView,
    released: Option<u64>,
    origin: u64,
) -> Value {
    let exact = choice.exact.unwrap_or_default();
    let moment = |at: u64| at.saturating_sub(origin);
    let at = choice.at.unwrap_or(began + attempt.started_ms);
    let ended = exact.ended_at.unwrap_or(at + attempt.ms);
    json!({
        "backend": attempt.backend,
        "key": attempt.key,
        "at": moment(at),
        "n": exact.n,
        "draw": choice.draw,
        "rank": attempt.rank,
        "by": attempt.by,
        "pin": choice.pin,
        "trial": attempt.trial,
        "last_resort": attempt.last_resort,
        "head": exact.head_at.map(moment),
        "head_n": exact.head_n,
        "released": exact.released_at.or(released).map(moment),
        "released_n": exact.released_n,
        "committed": attempt.committed,
        "first_content": attempt.first_content_ms,
        "ended": moment(ended),
        "ended_n": exact.ended_n,
        "outcome": attempt.outcome,
        "status": attempt.status,
        "error_status": attempt.error_status,
        "retry_after": attempt.retry_after_ms,
        "left": exact.left,
    })
}

/// What a scenario cannot hold.
#[derive(Clone, Copy, Debug, Default)]
struct LeftOut {
    mcp: usize,
    refused: usize,
    unnamed: usize,
}

impl LeftOut {
    /// Whether a request is taken; else it is counted.
    fn takes(&mut self, it: &DecisionFull) -> bool {
        let is_unnamed = it.short.attempts.iter().any(|it| it.backend.ends_with("/*"));
        let is_unread = it.choices.iter().zip(&it.short.attempts).any(|(it, _)| it.draw.is_none());
        match (it.short.kind.as_str(), &it.plan) {
            ("mcp", _) => self.mcp += 1,
            (_, None) => self.refused += 1,
            _ if is_unnamed || is_unread => self.unnamed += 1,
            _ => return true,
        }
        false
    }

    fn notes(self, incident: &IncidentView) -> Vec<String> {
        let mut notes = Vec::new();
        let mut tell = |count: usize, what: &str| {
            if count > 0 {
                notes.push(format!("left out: {what} ({count})"));
            }
        };
        tell(self.mcp, "calls of MCP servers");
        tell(self.refused, "requests that were refused before they had a route");
        tell(self.unnamed, "requests for models that the config does not name");
        if !incident.complete {
            let since = date(incident.from_unix_ms);
            notes.push(format!("the record goes back to {since} only"));
        }
        if incident.dropped > 0 {
            notes.push(format!("{} records were dropped under load", incident.dropped));
        }
        if incident.reloads.iter().any(|it| it.ok) {
            notes.push("the config changed in this time: the latest one is in the file".to_owned());
        }
        notes
    }
}
