//! The report as JSON: a documented type with keys in a stable order. Times are milliseconds.

use serde::Serialize;
use serde_json::Value;
use tidegate_core::hint::Heard;

use super::TimelineReport;
use crate::timeline::{
    tally::{BusTally, ReplicaTally},
    trace::TraceEntry,
};

/// The report of one run.
#[derive(Serialize)]
struct ReportJson<'a> {
    scenario: &'a str,
    about: &'a str,
    seed: u64,
    /// How long the timeline lasts.
    lasts_ms: u64,
    /// The config file it ran with, if one was named.
    config: Option<&'a str>,
    /// Who plays whom, if that has to be said.
    casting: &'a [String],
    /// What clients wanted.
    requests: u64,
    /// What reached the gateway: client retries are counted here.
    sent: u64,
    answered: u64,
    client_failures: u64,
    attempts: u64,
    /// Attempts per request that reached the gateway.
    amplification: f64,
    hops: u64,
    hops_refused: u64,
    last_resorts: u64,
    sessions_moved: u64,
    probes: u64,
    /// Requests that were sent again because their kept connection was closed; absent if none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    resends: Option<u64>,
    /// Client-visible time to the first content.
    wait_ms: WaitJson,
    /// In tier order.
    backends: Vec<BackendJson<'a>>,
    /// What went between replicas; absent without a fleet.
    #[serde(skip_serializing_if = "Option::is_none")]
    bus: Option<BusJson>,
    /// In a fleet, each replica by itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    replicas: Vec<ReplicaJson<'a>>,
    /// Openings and closings, in order; long runs list the first of them.
    turns: Vec<TurnJson<'a>>,
    expectations: Vec<ExpectationJson<'a>>,
    /// Invariants that were broken.
    invariants: Vec<InvariantJson<'a>>,
    expect: ExpectJson<'a>,
    replay: String,
}

#[derive(Serialize)]
struct WaitJson {
    p50: u64,
    p95: u64,
    max: u64,
}

#[derive(Serialize)]
struct BackendJson<'a> {
    id: &'a str,
    tier: usize,
    /// At the end: `closed`, `half_open` or `open`.
    state: &'static str,
    healthy: bool,
    /// First attempts of requests.
    firsts: u64,
    attempts: u64,
    answered: u64,
    failed: u64,
    /// Times it went from closed to open.
    opens: u64,
    first_open_ms: Option<u64>,
    last_close_ms: Option<u64>,
}

/// What replicas told each other.
#[derive(Serialize)]
struct BusJson {
    /// Hints that replicas told.
    told: u64,
    windows: u64,
    exclusions: u64,
    openings: u64,
    pins: u64,
    /// Copies that did not arrive.
    lost: u64,
    /// Copies that told something new.
    taken: u64,
    /// Copies that arrived.
    heard: u64,
}

#[derive(Serialize)]
struct ReplicaJson<'a> {
    /// From 1.
    replica: usize,
    /// Requests that reached it.
    sent: u64,
    /// In tier order.
    backends: Vec<ReplicaBackendJson<'a>>,
}

#[derive(Serialize)]
struct ReplicaBackendJson<'a> {
    id: &'a str,
    /// At the end.
    state: &'static str,
    attempts: u64,
    failed: u64,
    opens: u64,
}

#[derive(Serialize)]
struct TurnJson<'a> {
    at_ms: u64,
    backend: &'a str,
    what: &'a str,
}

#[derive(Serialize)]
struct ExpectationJson<'a> {
    wanted: &'a str,
    got: &'a str,
    held: bool,
}

#[derive(Serialize)]
struct InvariantJson<'a> {
    invariant: &'a str,
    at_ms: u64,
    seen: &'a str,
}

#[derive(Serialize)]
struct ExpectJson<'a> {
    passed: bool,
    failures: Vec<&'a str>,
}

pub(super) fn report(report: &TimelineReport) -> Value {
    serde_json::to_value(document(report)).expect("a report of numbers and texts serializes")
}

fn document(report: &TimelineReport) -> ReportJson<'_> {
    let (plot, tally) = (&*report.plot, &report.tally);
    let id = |backend: usize| plot.world.settings.backends[backend].id.as_str();
    let backend = |(backend, tier): (usize, usize)| {
        let tally = &tally.backends[backend];
        BackendJson {
            id: id(backend),
            tier,
            state: report.states[backend].word(),
            healthy: tally.is_healthy_at_end,
            firsts: tally.firsts,
            attempts: tally.attempts,
            answered: tally.answered,
            failed: tally.failed,
            opens: tally.opens,
            first_open_ms: tally.first_open.map(|at| at.0),
            last_close_ms: tally.last_close.map(|at| at.0),
        }
    };
    ReportJson {
        scenario: &plot.name,
        about: &plot.about,
        seed: report.seed,
        lasts_ms: plot.lasts.0,
        config: plot.config.as_deref(),
        casting: &plot.casting,
        requests: tally.requests,
        sent: tally.sent,
        answered: tally.answered,
        client_failures: tally.failures.count,
        attempts: tally.attempts,
        amplification: tally.amplification(),
        hops: tally.hops,
        hops_refused: tally.budget_spent,
        last_resorts: tally.last_resorts,
        sessions_moved: tally.sessions_moved,
        probes: tally.probes,
        resends: Some(tally.resends).filter(|it| *it > 0),
        wait_ms: WaitJson {
            p50: tally.waits.quantile(0.5).0,
            p95: tally.waits.quantile(0.95).0,
            max: tally.waits.max.0,
        },
        backends: plot.world.cast().into_iter().map(backend).collect(),
        bus: plot.fleet.is_some().then(|| bus(&tally.bus)),
        replicas: replicas(report),
        turns: tally
            .turns
            .iter()
            .map(|it| TurnJson { at_ms: it.at.0, backend: id(it.backend), what: &it.text })
            .collect(),
        expectations: report
            .verdicts
            .iter()
            .map(|it| ExpectationJson { wanted: &it.wanted, got: &it.got, held: it.holds })
            .collect(),
        invariants: report
            .violations
            .iter()
            .map(|it| InvariantJson { invariant: it.invariant, at_ms: it.at.0, seen: &it.sentence })
            .collect(),
        expect: ExpectJson {
            passed: report.failures.is_empty(),
            failures: report.failures.iter().map(|it| it.sentence.as_str()).collect(),
        },
        replay: report.replay(),
    }
}

fn bus(tally: &BusTally) -> BusJson {
    BusJson {
        told: tally.told,
        windows: tally.windows,
        exclusions: tally.exclusions,
        openings: tally.openings,
        pins: tally.pins,
        lost: tally.lost,
        taken: tally.heard[Heard::Taken as usize],
        heard: tally.heard.iter().sum(),
    }
}

fn replicas(report: &TimelineReport) -> Vec<ReplicaJson<'_>> {
    let plot = &report.plot;
    if plot.fleet.is_none() {
        return Vec::new();
    }
    let replica = |(number, tally): (usize, &ReplicaTally)| {
        let backend = |(backend, _): (usize, usize)| ReplicaBackendJson {
            id: &plot.world.settings.backends[backend].id,
            state: report.replica_states[number][backend].word(),
            attempts: tally.backends[backend].attempts,
            failed: tally.backends[backend].failed,
            opens: tally.backends[backend].opens,
        };
        let backends = plot.world.cast().into_iter().map(backend).collect();
        ReplicaJson { replica: number + 1, sent: tally.sent, backends }
    };
    report.tally.replicas.iter().enumerate().map(replica).collect()
}

/// A trace as JSON lines.
pub(super) fn lines(entries: &[TraceEntry]) -> String {
    let line = |entry: &TraceEntry| {
        let json = serde_json::to_string(entry).expect("an entry of numbers and texts serializes");
        format!("{json}\n")
    };
    entries.iter().map(line).collect()
}
