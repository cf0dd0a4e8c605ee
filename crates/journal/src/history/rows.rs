//! Rows of the history file: written and dropped.

use rusqlite::{Connection, Statement, params};

use crate::{event::EventBody, record_queue::Record, render::Renderer};

/// What stands between the attempts of a row, and around a backend and its outcome: no name of a
/// config can contain a control character.
pub(super) const BETWEEN: char = '\n';

/// The statements of one batch, prepared once.
pub(super) struct RowWriter<'a> {
    decision: Statement<'a>,
    event: Statement<'a>,
    instance: &'a str,
}

impl<'a> RowWriter<'a> {
    /// For rows of this process.
    pub(super) fn new(connection: &'a Connection, instance: &'a str) -> rusqlite::Result<Self> {
        let decision = connection.prepare(
            "INSERT INTO decisions (id, instance, n, at_unix_ms, kind, route, caller, result, \
             session, notable, attempts, body) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        )?;
        let event = connection.prepare(
            "INSERT INTO events (instance, seq, at_unix_ms, name, body) \
             VALUES (?1, ?2, ?3, ?4, ?5)",
        )?;
        Ok(Self { decision, event, instance })
    }

    /// Writes one record.
    pub(super) fn insert(&mut self, renderer: &Renderer, record: &Record) -> rusqlite::Result<()> {
        match record {
            Record::Decision(n, decision) => {
                let full = renderer.full(*n, decision);
                let short = &full.short;
                let mut attempts = String::from(BETWEEN);
                for it in &short.attempts {
                    let outcome = it.outcome.as_deref().unwrap_or_default();
                    attempts.push_str(&format!("{}\t{outcome}{BETWEEN}", it.backend));
                }
                let body = serde_json::to_string(&full).unwrap_or_default();
                self.decision.execute(params![
                    short.id,
                    self.instance,
                    *n as i64,
                    short.at_unix_ms as i64,
                    short.kind,
                    short.route,
                    short.caller,
                    short.result,
                    short.session,
                    short.notable,
                    attempts,
                    body,
                ])?;
            }
            Record::Event(event) if matches!(event.body, EventBody::Decision(..)) => {}
            Record::Event(event) => {
                let body = event.json(|event| renderer.event(event));
                let at = renderer.clock.unix_ms_of(event.at) as i64;
                let (seq, name) = (event.seq as i64, event.body.name());
                self.event.execute(params![self.instance, seq, at, name, body])?;
            }
        }
        Ok(())
    }
}

/// Drops at most so many rows of each table that are older; how many went.
pub(super) fn forget(
    connection: &Connection,
    oldest_unix_ms: u64,
    most: usize,
) -> rusqlite::Result<usize> {
    let mut gone = 0;
    for table in ["decisions", "events"] {
        let mut statement = connection.prepare(&format!(
            "DELETE FROM {table} WHERE row IN \
             (SELECT row FROM {table} WHERE at_unix_ms < ?1 LIMIT ?2)"
        ))?;
        gone += statement.execute(params![oldest_unix_ms as i64, most as i64])?;
    }
    if gone > 0 {
        connection.execute_batch("PRAGMA incremental_vacuum(512)")?;
    }
    Ok(gone)
}
