//! Metrics: everything the gateway counts, behind typed methods.
//!
//! Why it exists: one place decides which series there are. The data plane says what happened and
//! never sees a label.
//!
//! Rules kept here:
//! - A label value is a name of the config or a word of an enum; nothing that a caller sends
//!   becomes one (I15, S53). Names that are not of the config are counted as `other`.
//! - Counting on the way of a request takes no lock and allocates nothing (`table.rs`). Failovers,
//!   relaxed choices and transitions, which are rare, look their series up under a read lock.
//! - The metrics follow the config: [`Metrics::follow`] is called when one begins to serve.
//!
//! Left to others: deciding when something happened, and serving the text (`admin.rs`).

mod families;
mod fleet;
mod labels;
mod mcp;
mod prune;
mod scrape;
mod table;
#[cfg(test)]
mod tests;

use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use prometheus::{TextEncoder, proto::MetricFamily};
use tidegate_core::{
    attempt::End,
    choice::PinUse,
    outcome::OutcomeKind,
    time::{Millis, Now},
};

use tidegate_fleet::fleet::Fleet;
use tidegate_journal::result::{ClientFailure, ClientVerdict};

use self::{families::Families, mcp::McpFamilies, table::Table};
use crate::live::Live;

pub use self::labels::ProbeResult;

/// The content type of [`Metrics::render`].
pub const CONTENT_TYPE: &str = prometheus::TEXT_FORMAT;

/// Everything that is counted.
#[derive(Debug)]
pub struct Metrics {
    families: Families,
    mcp: McpFamilies,
    table: ArcSwap<Table>,
    /// This replica's part in its fleet, if it has one.
    fleet: OnceLock<Arc<Fleet>>,
}

/// A state change as a metric tells it: words, and a name of the config.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeLabels<'a> {
    pub backend: &'a str,
    pub from: &'static str,
    pub to: &'static str,
    pub reason: &'static str,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Metrics that know no config yet.
    pub fn new() -> Self {
        let families = Families::new();
        let mcp = McpFamilies::new(&families.registry);
        let table = ArcSwap::from_pointee(Table::empty(&families));
        Self { families, mcp, table, fleet: OnceLock::new() }
    }

    /// A config begins to serve: its routes and targets get their series, and what it dropped
    /// loses its own.
    pub fn follow(&self, live: &Live) {
        self.table.store(Table::new(&self.families, live).into());
        prune::prune(&self.families, live);
    }

    /// An attempt begins.
    pub fn attempt_started(&self, backend_id: &str) {
        self.table.load().target(&self.families, backend_id).started.inc();
    }

    /// An attempt ended.
    pub fn attempt(&self, route: &str, backend_id: &str, outcome: OutcomeKind) {
        let table = self.table.load();
        table.target(&self.families, backend_id).finished.inc();
        table.pair(&self.families, route, backend_id).attempts[outcome as usize].inc();
    }

    /// An attempt's first content arrived.
    pub fn first_content(&self, backend_id: &str, took: Millis) {
        self.table
            .load()
            .target(&self.families, backend_id)
            .first_token_seconds
            .observe(seconds(took));
    }

    /// A request ended. `end` is its plan's; `None` if it never had one.
    /// Gives why its client was hurt, if it was.
    pub fn request(
        &self,
        route: &str,
        status: u16,
        end: Option<End>,
        took: Millis,
    ) -> Option<&'static str> {
        let table = self.table.load();
        let series = table.route(&self.families, route);
        let verdict = ClientVerdict::of(status, end);
        series.results[verdict.result as usize].inc();
        series.seconds.observe(seconds(took));
        if let Some(failure) = verdict.failure {
            series.failures[failure as usize].inc();
        }
        verdict.failure.map(ClientFailure::word)
    }

    /// A request went on from one target to another.
    pub fn failover(&self, route: &str, from: &str, to: &str, reason: OutcomeKind) {
        let table = self.table.load();
        let families = &self.families;
        let (from, to) = (&table.target(families, from).label, &table.target(families, to).label);
        let labels = [&table.route(families, route).label, from, to, reason.word()];
        families.failovers.with_label_values(&labels).inc();
    }

    /// An answer told its usage.
    pub fn tokens(&self, route: &str, backend_id: &str, input: u64, output: u64, cached: u64) {
        let table = self.table.load();
        let pair = table.pair(&self.families, route, backend_id);
        for (series, count) in pair.tokens.iter().zip([input, output, cached]) {
            // Usage is whatever an upstream writes: an absurd number must not wrap a counter.
            series.inc_by(count.min(TOKENS_MAX));
        }
    }

    /// A request was sent again because its kept connection had been closed.
    pub fn resend(&self, backend_id: &str) {
        self.table.load().target(&self.families, backend_id).resends.inc();
    }

    /// An answer was released early because the hold was full.
    pub fn hold_overflow(&self, backend_id: &str) {
        self.table.load().target(&self.families, backend_id).hold_overflow.inc();
    }

    /// An attempt was chosen at a rank above 0. (Rank 0 is counted by nobody.)
    pub fn relaxed(&self, route: &str, rank: u8) {
        if let Some(word) = RANKS.get(usize::from(rank)).filter(|_| rank > 0) {
            let table = self.table.load();
            let labels = [table.route(&self.families, route).label.as_str(), word];
            self.families.relaxed.with_label_values(&labels).inc();
        }
    }

    /// A request ended because the route's budget of hops was spent.
    pub fn budget_spent(&self, route: &str) {
        self.table.load().route(&self.families, route).budget_spent.inc();
    }

    /// What became of a session's pin; counted if it moved.
    pub fn session_moved(&self, reason: PinUse) {
        if let Some(word) = labels::moved(reason) {
            self.families.sessions_moved.with_label_values(&[word]).inc();
        }
    }

    /// A probe of a provider ended.
    pub fn probed(&self, provider: &str, result: ProbeResult) {
        self.families.probes.with_label_values(&[provider, result.word()]).inc();
    }

    /// A backend, endpoint or key changed.
    pub fn transition(&self, change: ChangeLabels<'_>) {
        let labels = [change.backend, change.from, change.to, change.reason];
        self.families.transitions.with_label_values(&labels).inc();
    }

    /// So many records in all were not kept by `journal`, `history`, `audit` or `telemetry`.
    pub fn records_dropped(&self, store: &'static str, total: u64) {
        let series = self.families.records_dropped.with_label_values(&[store]);
        series.inc_by(total.saturating_sub(series.get()));
    }

    /// Shows a replica's part in its fleet too.
    pub fn join(&self, fleet: Arc<Fleet>) {
        drop(self.fleet.set(fleet));
    }

    /// All of it.
    pub fn families(&self, live: &Live, now: Now) -> Vec<MetricFamily> {
        // A reload that nobody told of is noticed here at the latest.
        if self.table.load().fingerprint != live.fingerprint {
            self.follow(live);
        }
        let mut families = self.families.registry.gather();
        families.extend(scrape::gauges(live, now));
        families.extend(self.fleet.get().into_iter().flat_map(|it| fleet::families(it)));
        families.sort_by(|one, other| one.name().cmp(other.name()));
        families
    }

    /// All of it, in Prometheus' text format 0.0.4.
    pub fn render(&self, live: &Live, now: Now) -> String {
        // Encoding fails only on a family without series, and gathering leaves those out.
        TextEncoder::new().encode_to_string(&self.families(live, now)).unwrap_or_default()
    }
}

/// More tokens than any context window holds.
const TOKENS_MAX: u64 = 1 << 32;
/// The ranks there are, as words.
const RANKS: [&str; 8] = ["0", "1", "2", "3", "4", "5", "6", "7"];

fn seconds(span: Millis) -> f64 {
    span.0 as f64 / 1000.0
}
