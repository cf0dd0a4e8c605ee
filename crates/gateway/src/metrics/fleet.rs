//! The series of a replica's part in its fleet, read at the moment of a scrape.

use prometheus::core::Collector;
use prometheus::proto::MetricFamily;
use prometheus::{Gauge, IntCounter, IntCounterVec, IntGauge, Opts, Registry};
use tidegate_core::hint::Heard;
use tidegate_fleet::{
    fleet::Fleet,
    stats::{FactKind, Rejected},
};

use super::families::registered;

/// The series of this moment.
pub(super) fn families(fleet: &Fleet) -> Vec<MetricFamily> {
    let registry = Registry::new();
    let stats = fleet.stats();
    let valid = "the names in this file are valid";
    let named = |name: &str, help: &str| Opts::new(format!("tidegate_fleet_{name}"), help);
    let gauge = |name: &str, help: &str, value: i64| {
        add(&registry, IntGauge::with_opts(named(name, help)).expect(valid)).set(value);
    };
    gauge("store_up", "Whether the fleet's store is there.", i64::from(stats.is_up()));
    gauge("queue", "Facts that wait to be told.", fleet.queued() as i64);
    let others = fleet.roster().replicas.len();
    gauge("replicas", "Replicas that are there, this one among them.", others as i64);
    let lag = Gauge::with_opts(named(
        "lag_seconds",
        "How long the last entry of the stream took from its writer to here.",
    ));
    add(&registry, lag.expect(valid)).set(stats.lag_ms() as f64 / 1000.0);
    let counter = |name: &str, help: &str, value: u64| {
        add(&registry, IntCounter::with_opts(named(name, help)).expect(valid)).inc_by(value);
    };
    counter(
        "dropped_total",
        "Facts that were dropped before they were told.",
        stats.dropped_count(),
    );
    counter("links_total", "How often the store was reached anew.", stats.link_count());
    counter("gaps_total", "How often something was missing on the stream.", stats.gap_count());
    let counters = |name: &str, help: &str, labels: &[&str]| {
        add(&registry, IntCounterVec::new(named(name, help), labels).expect(valid))
    };
    let told = counters("told_total", "Facts that were told.", &["fact"]);
    let heard = counters(
        "heard_total",
        "Facts that were heard, by what became of them.",
        &["fact", "result"],
    );
    for kind in FactKind::ALL {
        told.with_label_values(&[kind.word()]).inc_by(stats.told_count(kind));
        for result in Heard::ALL.into_iter().filter(|it| *it != Heard::Own) {
            let count = stats.heard_count(kind, result);
            heard.with_label_values(&[kind.word(), result.word()]).inc_by(count);
        }
    }
    let rejected =
        counters("rejected_total", "Values of the store that were not taken.", &["reason"]);
    for why in Rejected::ALL {
        rejected.with_label_values(&[why.word()]).inc_by(stats.rejected_count(why));
    }
    registry.gather()
}

fn add<T: Collector + Clone + 'static>(registry: &Registry, made: T) -> T {
    registered(registry, made)
}
