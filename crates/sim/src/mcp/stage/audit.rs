//! The rules of MCP sessions that every run is checked for, from outside of the `Hub`.

use std::sync::Arc;

use serde_json::Value;
use tidegate_core::time::{Millis, Now};
use tidegate_mcp::{
    hub::{ConnectionId, Event, HubSizes},
    session::Visibility,
};

use super::{Stage, config};
use crate::audit::Violation;

/// A request of a session at a server that the session did not see when it opened. It is right only
/// if the session is told of the server.
pub(super) struct Suspicion {
    pub(super) session: String,
    server: Arc<str>,
    at: Now,
}

impl Stage<'_> {
    /// A tool call has reached a server. I10: what may change something reaches one server once;
    /// anything else reaches a server twice at most.
    pub(super) fn delivered(
        &mut self,
        server: &Arc<str>,
        connection: ConnectionId,
        params: &Value,
    ) {
        let Some(number) = params["arguments"]["call"].as_u64() else { return };
        let is_own = self.connections.get(&connection).is_some_and(|it| it.is_own);
        self.totals(server).requests += 1;
        let number = self.retried.get(&number).copied().unwrap_or(number);
        let own = params["name"].as_str().unwrap_or_default();
        let plan = self.place(server).map(|it| &self.servers[it].plan);
        let is_repeatable = plan.is_some_and(|it| it.repeatable.iter().any(|tool| tool == own));
        let Some(running) = self.calls.get_mut(&number) else { return };
        running.delivered.push(Arc::clone(server));
        let here = running.delivered.iter().filter(|it| *it == server).count();
        let (count, most) = if is_repeatable { (here, 2) } else { (running.delivered.len(), 1) };
        let session = running.session.clone();
        if count > most {
            self.violate("I10", format!("a call was delivered {count} times"));
        }
        if !is_own {
            self.suspect(&session, server);
        }
    }

    /// A server that is excluded from a session for its life is not reached by that session.
    fn suspect(&mut self, session: &str, server: &Arc<str>) {
        if self.scenario.visibility != Visibility::Session {
            return;
        }
        let groups = config::groups(self.scenario, &self.servers);
        let place = self.place(server);
        let group = groups.iter().find(|it| place.is_some_and(|place| it.members.contains(&place)));
        let Some(group) = group else { return };
        let Some(client) = self.clients.get(session).filter(|it| it.has_session()) else { return };
        let is_missing = client.seen.as_ref().is_some_and(|seen| !seen.contains(&group.name));
        let was_told = self.list_changed.get(session).is_some_and(|count| *count > 0);
        if is_missing && !was_told {
            let (session, server, at) = (session.to_owned(), Arc::clone(server), self.now);
            self.suspicions.push(Suspicion { session, server, at });
        }
    }

    /// Suspicions that nothing has dispelled in time.
    pub(super) fn judge_suspicions(&mut self, is_end: bool) {
        for it in std::mem::take(&mut self.suspicions) {
            if is_end || self.long_ago(it.at) {
                let (session, server) = (&it.session, &it.server);
                let sentence = format!("session `{session}` reached `{server}`, which it excludes");
                self.violate("MCP", sentence);
            } else {
                self.suspicions.push(it);
            }
        }
    }

    /// The program is over: everything ends in good order, and nothing may be left.
    pub(super) fn curtain(&mut self) {
        // Longer than news of a change may be held back.
        let settled = self.now.after(Millis::seconds(3));
        if !self.suspicions.is_empty() {
            self.play_until(settled);
            self.now = settled;
        }
        self.judge_suspicions(true);
        for client in self.clients.keys().cloned().collect::<Vec<_>>() {
            self.close(&client);
        }
        self.tell(Event::Close);
        let limit = self.now.after(Millis::minutes(10));
        while !self.is_closed && self.play_next(limit) {}
        let sizes = self.hub.sizes();
        if !self.is_closed || sizes != HubSizes::default() {
            self.violate("I14", format!("not everything has ended: {sizes:?}"));
        }
        let held = self.core.snapshot(self.now).backends.iter().map(|it| it.in_flight).sum::<u32>();
        if held > 0 {
            self.violate("I3", format!("{held} permits were not given back"));
        }
    }

    pub(super) fn violate(&mut self, invariant: &'static str, sentence: String) {
        self.violations.push(Violation { invariant, at: self.now, sentence });
    }
}
