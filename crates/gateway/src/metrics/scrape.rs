//! What is read at the moment of a scrape: gauges over the core's snapshot.
//!
//! They are made anew for every scrape, so two scrapes at once do not disturb each other and a
//! target that a reload dropped is gone at once.

use prometheus::proto::MetricFamily;
use prometheus::{IntGaugeVec, Opts, Registry};
use tidegate_core::{breaker::State, time::Now};

use super::families::registered;
use crate::{live::Live, status::InUse};

const STATES: [State; 3] = [State::Closed, State::HalfOpen, State::Open];

/// The gauges of this moment.
pub(super) fn gauges(live: &Live, now: Now) -> Vec<MetricFamily> {
    let registry = Registry::new();
    let gauge = |name: &str, help: &str, labels: &[&str]| {
        let made = IntGaugeVec::new(Opts::new(format!("tidegate_{name}"), help), labels);
        registered(&registry, made.expect("the names in this file are valid"))
    };
    let state = gauge(
        "backend_state",
        "The state of a target, endpoint or server: 1 for the one it is in, else 0.",
        &["backend", "state"],
    );
    let inflight = gauge("inflight", "Attempts under way.", &["target"]);
    let snapshot = live.core.snapshot(now);
    let states = snapshot.backends.iter().map(|it| (it.id.as_str(), it.state));
    let endpoints = snapshot.endpoints.iter().map(|it| (it.id.as_str(), it.state));
    for (id, current) in states.chain(endpoints) {
        for known in STATES {
            let series = state.with_label_values(&[id, known.word()]);
            series.set(i64::from(known == current));
        }
    }
    for backend in &snapshot.backends {
        inflight.with_label_values(&[backend.id.as_str()]).set(i64::from(backend.in_flight));
    }
    let standing = gauge(
        "backend_standing",
        "Whether a target or server is in use: 1 for what it is, else 0.",
        &["backend", "standing"],
    );
    for backend in &snapshot.backends {
        let current = InUse::of(live, backend);
        for known in InUse::ALL {
            let series = standing.with_label_values(&[backend.id.as_str(), known.word()]);
            series.set(i64::from(known == current));
        }
    }
    let sessions = gauge("sessions", "Sessions that have a pin.", &["route"]);
    for (route, count) in live.core.pin_counts(now) {
        if live.file.routes.contains_key(&**route) {
            sessions.with_label_values(&[&**route]).set(count as i64);
        }
    }
    let config = gauge("config_info", "The config that serves.", &["sha"]);
    config.with_label_values(&[live.fingerprint.as_str()]).set(1);
    registry.gather()
}
