//! Effects of the `Hub`, carried out in a world without sockets.

use std::sync::Arc;

use tidegate_mcp::{
    hub::{CallRecord, ConnectionEvent, Effect, Event, Metric, Pulled, ReaderId, SearchAnswer},
    keepalive::Reason,
};

use super::{Stage, serve::Line};

impl Stage<'_> {
    /// Does what the `Hub` says. `is_own`: what came of an event of the gateway's own connection to
    /// a server, not of a client's.
    pub(super) fn carry_out(&mut self, effect: Effect, is_own: bool) {
        match effect {
            Effect::Open { connection, server, transport, caller, .. } => {
                let name = self.servers.iter().find(|it| it.key == server);
                let Some(name) = name.map(|it| Arc::clone(&it.plan.name)) else { return };
                let line = Line::new(name, transport, caller.is_none());
                self.connections.insert(connection, line);
                let event = ConnectionEvent::Opened;
                self.events.push_back(Event::Connection { connection, event });
            }
            Effect::Send { connection, call, message, .. } => {
                self.serve(connection, call, &message);
            }
            Effect::Notify { connection, message } => self.notified(connection, &message),
            Effect::Close { connection } => {
                self.connections.remove(&connection);
                let event = ConnectionEvent::Ended;
                self.events.push_back(Event::Connection { connection, event });
            }
            Effect::Drop { connection } => drop(self.connections.remove(&connection)),
            Effect::Forget { connection, call } => self.forget(connection, call),
            Effect::Answer { request, answer } => {
                self.answered(request, &answer.body);
                self.answers.insert(request, answer);
            }
            Effect::Feed { reader } => self.feed(reader),
            // A scenario's sessions see all tools: nothing is searched for.
            Effect::Search(job) => {
                let answer = SearchAnswer::Unknown;
                self.events.push_back(Event::Searched { job: job.job, answer });
            }
            Effect::Count(metric) => self.count(metric, is_own),
            Effect::Record(record) => self.recorded(*record),
            Effect::Closed => self.is_closed = true,
            Effect::Negotiated { .. }
            | Effect::KeepOpen { .. }
            | Effect::ProbeAnswer { .. }
            | Effect::SessionRecord { .. }
            | Effect::SessionReleased { .. }
            | Effect::SessionEnded { .. }
            | Effect::Log(_) => {}
        }
    }

    /// Hands a client what its stream has for it.
    fn feed(&mut self, reader: ReaderId) {
        loop {
            match self.hub.pull(reader) {
                Pulled::Event(event) => {
                    let text = String::from_utf8_lossy(&event).into_owned();
                    let session = self.readers.get(&reader).cloned().unwrap_or_default();
                    for data in text.lines().filter_map(|it| it.strip_prefix("data: ")) {
                        self.message_to_client(&session, data.as_bytes());
                    }
                }
                Pulled::Nothing => return,
                Pulled::Over => {
                    self.readers.remove(&reader);
                    return;
                }
            }
        }
    }

    fn count(&mut self, metric: Metric, is_own: bool) {
        match metric {
            // What the gateway keeps for its own lists and probes is no session's.
            Metric::Reinitialised(server) if !is_own => self.totals(&server).reinitialised += 1,
            Metric::KeepaliveAttempt(server) => self.totals(&server).keepalive.attempts += 1,
            Metric::KeepaliveSuccess(server, _) => self.totals(&server).keepalive.successes += 1,
            Metric::KeepaliveFailure(server, reason) => {
                let totals = &mut self.totals(&server).keepalive;
                totals.failures += 1;
                // The gateway counts what was due; a trace tells what was sent.
                totals.attempts = totals.attempts.saturating_sub(u64::from(reason == Reason::Open));
            }
            Metric::KeepaliveDisabled(server) => {
                self.totals(&server).keepalive.auto_disabled += 1;
            }
            _ => {}
        }
    }

    fn recorded(&mut self, record: CallRecord) {
        let Ok(id) = record.id.parse::<u64>() else { return };
        let id = self.retried.get(&id).copied().unwrap_or(id);
        if let Some(running) = self.calls.get_mut(&id) {
            running.record = Some(record);
        }
    }
}
