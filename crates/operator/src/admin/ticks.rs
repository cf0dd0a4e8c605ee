//! Figures for event streams: what changed since the last time.

use std::collections::BTreeMap;

use tidegate_gateway::gateway::Gateway;
use tidegate_journal::api::{
    events::{BackendTick, McpTick, RouteTick, TickView},
    snapshot::{BackendView, MemberStats, MemberView, RouteView, SnapshotView},
};

use super::snapshot;

/// What the streams were told last.
#[derive(Debug, Default)]
pub(super) struct Ticks {
    backends: BTreeMap<String, BackendTick>,
    routes: BTreeMap<String, RouteTick>,
    last: Option<TickView>,
}

impl Ticks {
    /// The JSON of the next tick, if there is anything new.
    pub(super) fn next(&mut self, gateway: &Gateway) -> Option<String> {
        let taken = snapshot::take(gateway);
        let backends = self.changed_backends(&taken);
        let routes = self.changed_routes(&taken);
        let tick = TickView {
            at_unix_ms: taken.at_unix_ms,
            seq: taken.seq,
            status: taken.status,
            verdict: taken.verdict,
            totals: taken.totals,
            notable_omitted: gateway.journal.omitted(),
            sessions: taken.sessions,
            session_moves: taken.session_moves,
            backends,
            routes,
            mcp: McpTick { sessions: taken.mcp.sessions },
        };
        let is_same = self.last.as_ref().is_some_and(|last| {
            let at_unix_ms = tick.at_unix_ms;
            tick.backends.is_empty()
                && tick.routes.is_empty()
                && tick == TickView { at_unix_ms, backends: vec![], routes: vec![], ..last.clone() }
        });
        let json = (!is_same).then(|| serde_json::to_string(&tick).unwrap_or_default());
        self.last = Some(tick);
        json
    }

    fn changed_backends(&mut self, taken: &SnapshotView) -> Vec<BackendTick> {
        let tick = |it: &BackendView| BackendTick {
            id: it.id.clone(),
            state: it.state.clone(),
            healthy: it.healthy,
            in_flight: it.in_flight,
            re_entry_unix_ms: it.re_entry_unix_ms,
            stats: it.stats.clone(),
        };
        let all: BTreeMap<String, BackendTick> =
            taken.backends.iter().map(|it| (it.id.clone(), tick(it))).collect();
        let changed = all.values().filter(|it| self.backends.get(&it.id) != Some(it)).cloned();
        let changed = changed.collect();
        self.backends = all;
        changed
    }

    fn changed_routes(&mut self, taken: &SnapshotView) -> Vec<RouteTick> {
        let member = |it: &MemberView| MemberStats {
            target: it.target.clone(),
            share_percent: it.share_percent,
            attempts: it.attempts,
            failures: it.failures,
            rps: it.rps,
        };
        let tick = |it: &RouteView| RouteTick {
            name: it.name.clone(),
            resolves_to: it.resolves_to.clone(),
            stats: it.stats.clone(),
            tiers: it.tiers.iter().map(|tier| tier.iter().map(member).collect()).collect(),
        };
        let all: BTreeMap<String, RouteTick> =
            taken.routes.iter().map(|it| (it.name.clone(), tick(it))).collect();
        let changed = all.values().filter(|it| self.routes.get(&it.name) != Some(it)).cloned();
        let changed = changed.collect();
        self.routes = all;
        changed
    }
}
