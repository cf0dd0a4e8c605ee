//! Every metric family the gateway counts into: names, help texts, labels, buckets.
//!
//! This is the whole list of what grows by events; what is read at the moment of a scrape is in
//! `scrape.rs`. A name is `tidegate_<noun>_<unit>_total`, a gauge has no suffix.

use prometheus::core::Collector;
use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, Opts, Registry};

/// Seconds: from an embedding to the longest answer the default deadline allows.
const REQUEST_BUCKETS: &[f64] =
    &[0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0];
/// Seconds: from a small local model to the default limit on the first content.
const FIRST_TOKEN_BUCKETS: &[f64] =
    &[0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0];

/// The families, all in one registry.
#[derive(Debug)]
pub(super) struct Families {
    pub(super) registry: Registry,
    pub(super) transitions: IntCounterVec,
    pub(super) attempts: IntCounterVec,
    pub(super) started: IntCounterVec,
    pub(super) finished: IntCounterVec,
    pub(super) requests: IntCounterVec,
    pub(super) client_failures: IntCounterVec,
    pub(super) failovers: IntCounterVec,
    pub(super) request_seconds: HistogramVec,
    pub(super) first_token_seconds: HistogramVec,
    pub(super) probes: IntCounterVec,
    pub(super) tokens: IntCounterVec,
    pub(super) sessions_moved: IntCounterVec,
    pub(super) relaxed: IntCounterVec,
    pub(super) budget_spent: IntCounterVec,
    pub(super) hold_overflow: IntCounterVec,
    pub(super) resends: IntCounterVec,
    pub(super) records_dropped: IntCounterVec,
}

impl Families {
    pub(super) fn new() -> Self {
        let registry = Registry::new();
        let counter = |name: &str, help: &str, labels: &[&str]| {
            let made = IntCounterVec::new(Opts::new(format!("tidegate_{name}"), help), labels);
            registered(&registry, made.expect("the names in this file are valid"))
        };
        let histogram = |name: &str, help: &str, label: &str, buckets: &[f64]| {
            let options = HistogramOpts::new(format!("tidegate_{name}"), help);
            let made = HistogramVec::new(options.buckets(buckets.to_vec()), &[label]);
            registered(&registry, made.expect("the names in this file are valid"))
        };
        Self {
            transitions: counter(
                "transitions_total",
                "State changes of backends and keys.",
                &["backend", "from", "to", "reason"],
            ),
            attempts: counter(
                "attempts_total",
                "Attempts that have ended, by outcome.",
                &["route", "target", "outcome"],
            ),
            started: counter("attempts_started_total", "Attempts begun.", &["target"]),
            finished: counter("attempts_finished_total", "Attempts ended.", &["target"]),
            requests: counter(
                "requests_total",
                "Requests of clients that have ended.",
                &["route", "result"],
            ),
            client_failures: counter(
                "client_failures_total",
                "Requests without a whole answer through no fault of the client.",
                &["route", "reason"],
            ),
            failovers: counter(
                "failovers_total",
                "Hops of requests from one target to another, by the outcome behind it.",
                &["route", "from", "to", "reason"],
            ),
            request_seconds: histogram(
                "request_seconds",
                "Time from a request to the end of its answer.",
                "route",
                REQUEST_BUCKETS,
            ),
            first_token_seconds: histogram(
                "first_token_seconds",
                "Time from sending an attempt to its first content.",
                "target",
                FIRST_TOKEN_BUCKETS,
            ),
            probes: counter("probes_total", "Probes that have ended.", &["backend", "result"]),
            tokens: counter(
                "tokens_total",
                "Tokens as the answers tell their usage; cached ones are input too.",
                &["route", "target", "kind"],
            ),
            sessions_moved: counter(
                "sessions_moved_total",
                "Sessions that got another pin.",
                &["reason"],
            ),
            relaxed: counter(
                "relaxed_total",
                "Attempts at a rank above 0: window 1, breaker 2, exclusion 4, added up.",
                &["route", "rank"],
            ),
            budget_spent: counter(
                "budget_spent_total",
                "Requests that ended because the route's budget of hops was spent.",
                &["route"],
            ),
            resends: counter(
                "resends_total",
                "Requests sent again because their kept connection had been closed.",
                &["target"],
            ),
            records_dropped: counter(
                "records_dropped_total",
                "Records that were not kept: decisions by the journal, rows of the history file, \
                 lines of the audit log, requests that were not exported.",
                &["store"],
            ),
            hold_overflow: counter(
                "hold_overflow_total",
                "Answers released before their first content because the hold was full.",
                &["target"],
            ),
            registry,
        }
    }
}

/// Puts a family into a registry.
pub(super) fn registered<C: Collector + Clone + 'static>(registry: &Registry, family: C) -> C {
    registry.register(Box::new(family.clone())).expect("every family has a name of its own");
    family
}
