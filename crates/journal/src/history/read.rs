//! Reading the history file: on a connection of its own, never on a thread that serves.

use std::path::Path;

use rusqlite::{OptionalExtension, params, params_from_iter, types::Value};

use super::{
    rows::BETWEEN,
    schema::{HistoryProblem, open_named, open_to_read},
};
use crate::{
    api::{
        decision::{DecisionFull, DecisionShort},
        events::{ActionView, ReloadView, TransitionView},
    },
    question::{OlderPage, OlderQuestion},
};

/// Reads a page of decisions, newest first.
///
/// # Errors
/// The file cannot be read.
pub fn read_page(path: &Path, asked: &OlderQuestion) -> Result<OlderPage, HistoryProblem> {
    let connection = open_to_read(path)?;
    let (condition, mut values) = condition(asked);
    let limit = asked.question.limit;
    values.push(Value::from(limit as i64 + 1));
    let text =
        format!("SELECT row, body FROM decisions WHERE {condition} ORDER BY row DESC LIMIT ?");
    let mut statement = connection.prepare(&text)?;
    let mut rows = statement.query(params_from_iter(values))?;
    let mut found: Vec<(i64, DecisionShort)> = Vec::new();
    let mut has_more = false;
    while let Some(row) = rows.next()? {
        if found.len() >= limit {
            has_more = true;
            break;
        }
        let body: String = row.get(1)?;
        // A row that this version cannot read is no reason to show none.
        if let Ok(full) = serde_json::from_str::<DecisionFull>(&body) {
            found.push((row.get(0)?, full.short));
        }
    }
    let next_row = found.last().map(|(row, _)| *row).filter(|_| has_more);
    Ok(OlderPage { decisions: found.into_iter().map(|(_, it)| it).collect(), next_row })
}

/// The decision of a request.
///
/// # Errors
/// The file cannot be read.
pub fn find(path: &Path, id: &str) -> Result<Option<DecisionFull>, HistoryProblem> {
    let connection = open_to_read(path)?;
    let text = "SELECT body FROM decisions WHERE id = ?1 ORDER BY row DESC LIMIT 1";
    let body = connection.query_row(text, params![id], |row| row.get::<_, String>(0));
    let body = body.optional()?;
    Ok(body.and_then(|body| serde_json::from_str(&body).ok()))
}

/// The condition of a question, and its values in order.
fn condition(asked: &OlderQuestion) -> (String, Vec<Value>) {
    let mut parts = vec!["1".to_owned()];
    let mut values = Vec::new();
    let question = &asked.question;
    let mut add = |part: &str, list: Vec<Value>| {
        parts.push(part.to_owned());
        values.extend(list);
    };
    if let Some((instance, n)) = &asked.in_memory {
        let list = vec![Value::from(instance.clone()), Value::from(*n as i64)];
        add("NOT (instance = ? AND n > ?)", list);
    }
    if let Some(row) = asked.below_row {
        add("row < ?", vec![Value::from(row)]);
    }
    if let Some(since) = asked.since_unix_ms {
        add("at_unix_ms >= ?", vec![Value::from(since as i64)]);
    }
    if let Some(until) = asked.until_unix_ms {
        add("at_unix_ms < ?", vec![Value::from(until as i64)]);
    }
    let texts = [
        ("kind = ?", &question.kind),
        ("route = ?", &question.route),
        ("caller = ?", &question.caller),
        ("result = ?", &question.result),
    ];
    for (part, wanted) in texts {
        if let Some(wanted) = wanted {
            add(part, vec![Value::from(wanted.clone())]);
        }
    }
    if let Some(session) = question.session {
        add("session = ?", vec![Value::from(session.to_string())]);
    }
    if question.is_notable {
        add("notable", Vec::new());
    }
    let text = match (&question.backend, &question.outcome) {
        (Some(backend), Some(outcome)) => Some(format!("{BETWEEN}{backend}\t{outcome}{BETWEEN}")),
        (Some(backend), None) => Some(format!("{BETWEEN}{backend}\t")),
        (None, Some(outcome)) => Some(format!("\t{outcome}{BETWEEN}")),
        (None, None) => None,
    };
    if let Some(text) = text {
        add("instr(attempts, ?) > 0", vec![Value::from(text)]);
    }
    (parts.join(" AND "), values)
}

/// What a file holds of a stretch of time, all of one run of the gateway.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stretch {
    /// The requests, in the order of their beginning.
    pub decisions: Vec<DecisionFull>,
    /// Changes of state, in order.
    pub transitions: Vec<TransitionView>,
    /// What operators did, in order.
    pub actions: Vec<ActionView>,
    /// Reloads, in order.
    pub reloads: Vec<ReloadView>,
    /// Whether the stretch had another run of the gateway in it, which is left out.
    pub has_other_runs: bool,
    /// Rows that this version cannot read.
    pub unread: usize,
}

/// Reads a stretch of time; of several runs of the gateway the last one.
///
/// # Errors
/// The file is not ours, damaged, or cannot be read.
pub fn stretch(path: &Path, from_ms: u64, to_ms: u64) -> Result<Stretch, HistoryProblem> {
    let connection = open_named(path)?;
    let within = params![from_ms.min(i64::MAX as u64) as i64, to_ms.min(i64::MAX as u64) as i64];
    let text = "SELECT instance FROM decisions WHERE at_unix_ms >= ?1 AND at_unix_ms <= ?2 \
                GROUP BY instance ORDER BY max(row) DESC";
    let mut statement = connection.prepare(text)?;
    let instances = statement.query_map(within, |row| row.get::<_, String>(0))?;
    let instances: Vec<String> = instances.collect::<Result<_, _>>()?;
    let mut stretch = Stretch { has_other_runs: instances.len() > 1, ..Stretch::default() };
    let Some(instance) = instances.first() else { return Ok(stretch) };
    let within =
        params![from_ms.min(i64::MAX as u64) as i64, to_ms.min(i64::MAX as u64) as i64, instance];
    let text = "SELECT body FROM decisions WHERE at_unix_ms >= ?1 AND at_unix_ms <= ?2 \
                AND instance = ?3 ORDER BY at_unix_ms, n";
    let mut statement = connection.prepare(text)?;
    let mut rows = statement.query(within)?;
    while let Some(row) = rows.next()? {
        match serde_json::from_str(&row.get::<_, String>(0)?) {
            Ok(decision) => stretch.decisions.push(decision),
            Err(_) => stretch.unread += 1,
        }
    }
    let text = "SELECT name, body FROM events WHERE at_unix_ms >= ?1 AND at_unix_ms <= ?2 \
                AND instance = ?3 ORDER BY seq";
    let mut statement = connection.prepare(text)?;
    let mut rows = statement.query(within)?;
    while let Some(row) = rows.next()? {
        let (name, body): (String, String) = (row.get(0)?, row.get(1)?);
        match name.as_str() {
            "transition" => stretch.transitions.extend(serde_json::from_str(&body).ok()),
            "action" => stretch.actions.extend(serde_json::from_str(&body).ok()),
            "reload" => stretch.reloads.extend(serde_json::from_str(&body).ok()),
            _ => {}
        }
    }
    Ok(stretch)
}

/// The time of the last request in a file.
///
/// # Errors
/// The file is not ours, damaged, or cannot be read.
pub fn last_unix_ms(path: &Path) -> Result<Option<u64>, HistoryProblem> {
    let connection = open_named(path)?;
    let text = "SELECT max(at_unix_ms) FROM decisions";
    let last: Option<i64> = connection.query_row(text, [], |row| row.get(0))?;
    Ok(last.and_then(|it| u64::try_from(it).ok()))
}
