//! What is counted of MCP: calls, sessions, keepalives, children.
//!
//! Labels are names of configured servers and words of closed sets (I15). Calls are few beside LLM
//! tokens, so series are looked up when they are counted.

use std::sync::atomic::{AtomicUsize, Ordering};

use prometheus::{
    HistogramOpts, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
};
use tidegate_core::time::Millis;

use super::{Metrics, families::registered, seconds};

/// Seconds: from a local server to the default timeout.
const KEEPALIVE_BUCKETS: &[f64] = &[0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0];

/// The families of MCP.
#[derive(Debug)]
pub(super) struct McpFamilies {
    calls: IntCounterVec,
    sessions: IntGauge,
    reinitialised: IntCounterVec,
    definitions_changed: IntCounterVec,
    definitions_skipped: IntCounterVec,
    starts: IntCounterVec,
    refused: IntCounterVec,
    retained: IntGauge,
    attempt: IntCounterVec,
    success: IntCounterVec,
    failure: IntCounterVec,
    latency: HistogramVec,
    auto_disabled: IntCounterVec,
    searches: IntCounterVec,
    search_model: IntGaugeVec,
    /// Which of [`MODEL_STATES`], counted from one; 0 without a model.
    model_state: AtomicUsize,
}

/// What a model of `mcp.search.model` can be.
const MODEL_STATES: [&str; 4] = ["loading", "encoding", "ready", "failed"];

impl McpFamilies {
    pub(super) fn new(registry: &Registry) -> Self {
        let counter = |name: &str, help: &str, labels: &[&str]| {
            let made = IntCounterVec::new(Opts::new(format!("tidegate_{name}"), help), labels);
            registered(registry, made.expect("the names in this file are valid"))
        };
        let sessions = IntGauge::new("tidegate_mcp_sessions", "Open MCP sessions of clients.");
        let retained = IntGauge::new(
            "tidegate_mcp_retained_bytes",
            "Bytes of MCP events on their way to clients, or kept for those that come back.",
        );
        let latency = HistogramOpts::new(
            "tidegate_keepalive_latency_seconds",
            "Time from a keepalive to its answer.",
        );
        let latency = HistogramVec::new(latency.buckets(KEEPALIVE_BUCKETS.to_vec()), &["server"]);
        let search_model = Opts::new(
            "tidegate_mcp_search_model",
            "1 for the state that the model of `mcp.search.model` is in; absent without one.",
        );
        let search_model = IntGaugeVec::new(search_model, &["state"]);
        Self {
            searches: counter(
                "mcp_searches_total",
                "Answers of `find_tool`, by what became of the model that the config names: `none` \
                 without one, `clear` where it was not needed, `used`, or `missing`.",
                &["model"],
            ),
            search_model: registered(registry, search_model.expect("the names are valid")),
            model_state: AtomicUsize::new(0),
            calls: counter(
                "mcp_calls_total",
                "Calls of MCP servers that have ended, by outcome.",
                &["server", "outcome"],
            ),
            sessions: registered(registry, sessions.expect("the name is valid")),
            retained: registered(registry, retained.expect("the name is valid")),
            reinitialised: counter(
                "mcp_reinitialised_total",
                "Connections to MCP servers that were lost and regained.",
                &["server"],
            ),
            definitions_changed: counter(
                "mcp_definitions_changed_total",
                "Tools, resources and prompts whose definition changed while it was offered.",
                &["server"],
            ),
            definitions_skipped: counter(
                "mcp_definitions_skipped_total",
                "Definitions that were left out because they break the protocol's schema.",
                &["server"],
            ),
            starts: counter(
                "mcp_child_starts_total",
                "Programs of stdio servers that were started.",
                &["server"],
            ),
            refused: counter(
                "mcp_refused_total",
                "What MCP clients were refused because a bound was reached, by what it was.",
                &["what"],
            ),
            attempt: counter("keepalive_attempt_total", "Keepalives sent or due.", &["server"]),
            success: counter("keepalive_success_total", "Keepalives answered.", &["server"]),
            failure: counter(
                "keepalive_failure_total",
                "Keepalives that brought no answer, by reason.",
                &["server", "reason"],
            ),
            latency: registered(registry, latency.expect("the name is valid")),
            auto_disabled: counter(
                "keepalive_auto_disabled_total",
                "Connections whose keepalive switched itself off after failing again and again.",
                &["server"],
            ),
        }
    }
}

impl Metrics {
    /// A call of a server ended.
    pub fn mcp_call(&self, server: &str, outcome: &'static str) {
        self.mcp.calls.with_label_values(&[server, outcome]).inc();
    }

    /// This many sessions are open.
    pub fn mcp_sessions(&self, count: usize) {
        self.mcp.sessions.set(count as i64);
    }

    /// The open sessions.
    pub fn mcp_session_count(&self) -> u64 {
        self.mcp.sessions.get().max(0) as u64
    }

    /// So many bytes more are held for clients, or fewer.
    pub fn mcp_retained(&self, bytes: i64) {
        self.mcp.retained.add(bytes);
    }

    /// A lost connection was regained.
    pub fn mcp_reinitialised(&self, server: &str) {
        self.mcp.reinitialised.with_label_values(&[server]).inc();
    }

    /// Definitions changed.
    pub fn mcp_definitions_changed(&self, server: &str, count: usize) {
        self.mcp.definitions_changed.with_label_values(&[server]).inc_by(count as u64);
    }

    /// Definitions were left out of a server's lists.
    pub fn mcp_definitions_skipped(&self, server: &str, count: usize) {
        self.mcp.definitions_skipped.with_label_values(&[server]).inc_by(count as u64);
    }

    /// A program was started.
    pub fn mcp_child_started(&self, server: &str) {
        self.mcp.starts.with_label_values(&[server]).inc();
    }

    /// A caller, or all of them, had as much of something as may be: a session, a program, a call,
    /// or an answer that nobody reads.
    pub fn mcp_refused(&self, what: &'static str) {
        self.mcp.refused.with_label_values(&[what]).inc();
    }

    /// A search was answered; `model` says what became of the model that the config names.
    pub fn mcp_search(&self, model: &'static str) {
        self.mcp.searches.with_label_values(&[model]).inc();
    }

    /// The state that the model of `mcp.search.model` is in; none without one.
    pub fn mcp_search_model(&self, state: Option<&'static str>) {
        let at = state.and_then(|state| MODEL_STATES.iter().position(|word| *word == state));
        self.mcp.model_state.store(at.map_or(0, |at| at + 1), Ordering::Relaxed);
        if at.is_none() {
            self.mcp.search_model.reset();
            return;
        }
        for (place, word) in MODEL_STATES.into_iter().enumerate() {
            self.mcp.search_model.with_label_values(&[word]).set(i64::from(Some(place) == at));
        }
    }

    /// The state that [`Metrics::mcp_search_model`] was told last.
    pub fn mcp_search_model_state(&self) -> Option<&'static str> {
        let at = self.mcp.model_state.load(Ordering::Relaxed).checked_sub(1)?;
        MODEL_STATES.get(at).copied()
    }

    /// A keepalive is due.
    pub fn keepalive_attempt(&self, server: &str) {
        self.mcp.attempt.with_label_values(&[server]).inc();
    }

    /// A keepalive was answered.
    pub fn keepalive_success(&self, server: &str, took: Millis) {
        self.mcp.success.with_label_values(&[server]).inc();
        self.mcp.latency.with_label_values(&[server]).observe(seconds(took));
    }

    /// A keepalive brought no answer.
    pub fn keepalive_failure(&self, server: &str, reason: &'static str) {
        self.mcp.failure.with_label_values(&[server, reason]).inc();
    }

    /// A connection's keepalive switched itself off.
    pub fn keepalive_disabled(&self, server: &str) {
        self.mcp.auto_disabled.with_label_values(&[server]).inc();
    }
}
