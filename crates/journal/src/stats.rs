//! The figures of the last fifteen minutes: of routes, their targets, backends and callers.
//!
//! They are counted from decisions as these are collected, so nothing on the way of a request
//! touches them. Names are those of the config, so the tables are as large as it is; callers are
//! bounded besides. What a decision's route is called is looked up once per route, not once per
//! decision.

use std::sync::Arc;

use tidegate_core::{
    choice::PinUse,
    outcome::OutcomeKind,
    route::Route,
    time::{Millis, Now},
};

use crate::{
    api::snapshot::{BackendStats, CallerView, MemberStats, RouteStats, SessionMoves, TotalsView},
    decision::{Decision, McpAttempt},
    histogram::SpanHistogram,
    result::RequestResult,
    rolling::{BUCKETS, Rolling},
};

/// Buckets of the last minute, which rates are over.
const RATE_BUCKETS: usize = 6;
/// Callers that are told apart; those beyond are counted in the totals only.
const CALLERS_MAX: usize = 256;
/// Routes that are found without a look at their names.
const KNOWN_MAX: usize = 256;

/// Counts of a route, and of the gateway as a whole.
const REQUESTS: usize = 0;
const OK: usize = 1;
const CLIENT_FAULTS: usize = 2;
const CANCELLED: usize = 3;
const REFUSED: usize = 4;
const FAILED: usize = 5;
const HOPS: usize = 6;
const RELAXED: usize = 7;
const EXPIRED: usize = 8;
const DECLINED: usize = 9;
const MCP_CALLS: usize = 10;
const MCP_FAILED: usize = 11;
const REQUEST_COUNTS: usize = 12;

/// Counts of a backend, and of a target in a route.
const ATTEMPTS: usize = 0;
const FAILURES: usize = 1;
const ANSWERS: usize = 2;
const ATTEMPT_COUNTS: usize = 3;

/// Counts of a caller: requests, failed, MCP calls, refused.
const CALLER_COUNTS: usize = 4;

/// The figures.
#[derive(Debug, Default)]
pub(crate) struct Stats {
    totals: RequestSeries,
    routes: Vec<RouteSeries>,
    backends: Vec<BackendSeries>,
    callers: Vec<CallerSeries>,
    known: Vec<KnownRoute>,
}

#[derive(Debug, Default)]
struct RequestSeries {
    counts: Rolling<REQUEST_COUNTS>,
    spans: SpanHistogram,
}

#[derive(Debug)]
struct RouteSeries {
    label: Arc<str>,
    requests: RequestSeries,
    members: Vec<(Arc<str>, Rolling<ATTEMPT_COUNTS>)>,
}

#[derive(Debug)]
struct BackendSeries {
    id: Arc<str>,
    counts: Rolling<ATTEMPT_COUNTS>,
    spans: SpanHistogram,
    first_content: SpanHistogram,
}

#[derive(Debug)]
struct CallerSeries {
    name: Arc<str>,
    counts: Rolling<CALLER_COUNTS>,
    last: Now,
}

/// Where the figures of a route and of its candidates are.
#[derive(Debug)]
struct KnownRoute {
    route: Arc<Route>,
    place: usize,
    /// For each candidate: its place among the backends and among the route's members.
    candidates: Vec<(usize, usize)>,
}

impl Stats {
    /// Counts a decision.
    pub(crate) fn add(&mut self, decision: &Decision) {
        let at = decision.ended();
        self.add_caller(decision, at);
        if decision.mcp.is_some() {
            return self.add_mcp(decision, at);
        }
        self.totals.add(decision, at);
        let Some(plan) = &decision.plan else { return };
        let known = self.known(&plan.route, plan.label());
        let place = self.known[known].place;
        self.routes[place].requests.add(decision, at);
        for (attempt, record) in decision.log.iter().zip(&decision.records) {
            let candidate = usize::from(attempt.candidate);
            let Some(&(backend, member)) = self.known[known].candidates.get(candidate) else {
                continue;
            };
            let ended = attempt.ended_at.unwrap_or(at);
            let backend = &mut self.backends[backend];
            backend.add(ended, record.outcome, record.took, record.first_content);
            let (_, counts) = &mut self.routes[place].members[member];
            count_attempt(counts, ended, record.outcome);
        }
    }

    /// A config took the place of another: what it calls its routes is looked up again.
    pub(crate) fn forget_routes(&mut self) {
        self.known.clear();
    }

    fn known(&mut self, route: &Arc<Route>, label: &str) -> usize {
        if let Some(found) = self.known.iter().position(|it| Arc::ptr_eq(&it.route, route)) {
            return found;
        }
        if self.known.len() >= KNOWN_MAX {
            self.known.clear();
        }
        let place = self.route_place(label);
        let members: Vec<Arc<str>> = route.members().map(Arc::clone).collect();
        let candidates = members.iter().map(|id| {
            let backend = self.backend_place(id);
            (backend, self.routes[place].member_place(id))
        });
        let candidates = candidates.collect();
        self.known.push(KnownRoute { route: Arc::clone(route), place, candidates });
        self.known.len() - 1
    }

    fn route_place(&mut self, label: &str) -> usize {
        let found = self.routes.iter().position(|it| &*it.label == label);
        found.unwrap_or_else(|| {
            let requests = RequestSeries::default();
            self.routes.push(RouteSeries { label: label.into(), requests, members: Vec::new() });
            self.routes.len() - 1
        })
    }

    fn backend_place(&mut self, id: &Arc<str>) -> usize {
        let found = self.backends.iter().position(|it| it.id == *id);
        found.unwrap_or_else(|| {
            self.backends.push(BackendSeries {
                id: Arc::clone(id),
                counts: Rolling::default(),
                spans: SpanHistogram::default(),
                first_content: SpanHistogram::default(),
            });
            self.backends.len() - 1
        })
    }

    fn add_mcp(&mut self, decision: &Decision, at: Now) {
        let Some(mcp) = &decision.mcp else { return };
        if let Some(counts) = self.totals.counts.at(at) {
            counts[MCP_CALLS] += 1;
            counts[MCP_FAILED] += u32::from(decision.verdict.result == RequestResult::Failed);
        }
        for McpAttempt { backend, outcome, cause, began, took, .. } in &mcp.attempts {
            let place = self.backend_place(backend);
            let (backend, ended) = (&mut self.backends[place], began.after(*took));
            match (outcome, cause) {
                (Some(outcome), _) => backend.add(ended, *outcome, *took, None),
                // A server that could not even be asked failed the call all the same.
                (None, Some(_)) => backend.add_unanswered(ended),
                (None, None) => backend.add(ended, OutcomeKind::Cancelled, *took, None),
            }
        }
    }

    fn add_caller(&mut self, decision: &Decision, at: Now) {
        let name = &decision.caller;
        let is_it = |it: &CallerSeries| Arc::ptr_eq(&it.name, name) || it.name == *name;
        let place = match self.callers.iter().position(is_it) {
            Some(place) => place,
            None if self.callers.len() >= CALLERS_MAX => return,
            None => {
                let (name, counts) = (Arc::clone(name), Rolling::default());
                self.callers.push(CallerSeries { name, counts, last: at });
                self.callers.len() - 1
            }
        };
        let caller = &mut self.callers[place];
        caller.last = caller.last.max(at);
        if let Some([requests, failed, calls, refused]) = caller.counts.at(at) {
            let is_call = decision.mcp.is_some();
            *requests += u32::from(!is_call);
            *calls += u32::from(is_call);
            *failed += u32::from(decision.verdict.result == RequestResult::Failed);
            *refused += u32::from(decision.verdict.result == RequestResult::Refused);
        }
    }

    /// The figures of the gateway as a whole.
    pub(crate) fn totals(&self, now: Now) -> TotalsView {
        let counts = self.totals.counts.sums(now, BUCKETS);
        let recent = self.totals.counts.sums(now, RATE_BUCKETS);
        let [p50_ms, p95_ms] = self.totals.spans.quantiles(now, [0.5, 0.95]);
        TotalsView {
            requests: counts[REQUESTS],
            ok: counts[OK],
            client_faults: counts[CLIENT_FAULTS],
            failed: counts[FAILED],
            cancelled: counts[CANCELLED],
            refused: counts[REFUSED],
            hops: counts[HOPS],
            mcp_calls: counts[MCP_CALLS],
            mcp_failed: counts[MCP_FAILED],
            rps: rate(now, recent[REQUESTS] + recent[MCP_CALLS]),
            p50_ms,
            p95_ms,
        }
    }

    /// Requests and calls that failed in the last minute.
    pub(crate) fn recent_failures(&self, now: Now) -> u64 {
        let recent = self.totals.counts.sums(now, RATE_BUCKETS);
        recent[FAILED] + recent[MCP_FAILED]
    }

    /// The sessions that moved.
    pub(crate) fn session_moves(&self, now: Now) -> SessionMoves {
        let counts = self.totals.counts.sums(now, BUCKETS);
        let (expired, declined) = (counts[EXPIRED], counts[DECLINED]);
        SessionMoves { moved: expired + declined, expired, declined }
    }

    /// The figures of a route; pinned sessions are for others to say.
    pub(crate) fn route(&self, now: Now, label: &str) -> RouteStats {
        let Some(route) = self.routes.iter().find(|it| &*it.label == label) else {
            return RouteStats::default();
        };
        let counts = route.requests.counts.sums(now, BUCKETS);
        let recent = route.requests.counts.sums(now, RATE_BUCKETS);
        let [p50_ms, p95_ms] = route.requests.spans.quantiles(now, [0.5, 0.95]);
        RouteStats {
            requests: counts[REQUESTS],
            ok: counts[OK],
            failed: counts[FAILED],
            client_faults: counts[CLIENT_FAULTS],
            cancelled: counts[CANCELLED],
            hops: counts[HOPS],
            relaxed: counts[RELAXED],
            rps: rate(now, recent[REQUESTS]),
            p50_ms,
            p95_ms,
            sessions: 0,
            moved: counts[EXPIRED] + counts[DECLINED],
        }
    }

    /// The figures of a target in a route.
    pub(crate) fn member(&self, now: Now, label: &str, target: &str) -> MemberStats {
        let empty = || MemberStats { target: target.to_owned(), ..MemberStats::default() };
        let Some(route) = self.routes.iter().find(|it| &*it.label == label) else {
            return empty();
        };
        let sums = |counts: &Rolling<ATTEMPT_COUNTS>| counts.sums(now, BUCKETS);
        let all: u64 = route.members.iter().map(|(_, counts)| sums(counts)[ANSWERS]).sum();
        let Some((_, counts)) = route.members.iter().find(|(id, _)| &**id == target) else {
            return empty();
        };
        let own = sums(counts);
        MemberStats {
            target: target.to_owned(),
            share_percent: percent(own[ANSWERS], all).unwrap_or(0.0),
            attempts: own[ATTEMPTS],
            failures: own[FAILURES],
            rps: rate(now, counts.sums(now, RATE_BUCKETS)[ATTEMPTS]),
        }
    }

    /// The figures of a backend.
    pub(crate) fn backend(&self, now: Now, id: &str) -> BackendStats {
        let Some(backend) = self.backends.iter().find(|it| &*it.id == id) else {
            return BackendStats::default();
        };
        let counts = backend.counts.sums(now, BUCKETS);
        let all = self.backends.iter().filter(|it| is_server(&it.id) == is_server(id));
        let all: u64 = all.map(|it| it.counts.sums(now, BUCKETS)[ANSWERS]).sum();
        let [p50_ms, p95_ms] = backend.spans.quantiles(now, [0.5, 0.95]);
        let [first_content_p50_ms, first_content_p95_ms] =
            backend.first_content.quantiles(now, [0.5, 0.95]);
        BackendStats {
            attempts: counts[ATTEMPTS],
            failures: counts[FAILURES],
            answers: counts[ANSWERS],
            ok_percent: percent(counts[ANSWERS], counts[ANSWERS] + counts[FAILURES]),
            rps: rate(now, backend.counts.sums(now, RATE_BUCKETS)[ATTEMPTS]),
            p50_ms,
            p95_ms,
            first_content_p50_ms,
            first_content_p95_ms,
            share_percent: percent(counts[ANSWERS], all).unwrap_or(0.0),
        }
    }

    /// Attempts and failures of a backend per bucket, oldest first.
    pub(crate) fn lane(&self, now: Now, id: &str) -> (Vec<u64>, Vec<u64>) {
        let Some(backend) = self.backends.iter().find(|it| &*it.id == id) else {
            return (vec![0; BUCKETS], vec![0; BUCKETS]);
        };
        let counts = backend.counts.list(now);
        counts.map(|it| (u64::from(it[ATTEMPTS]), u64::from(it[FAILURES]))).unzip()
    }

    /// Requests, client failures and hops per bucket, oldest first.
    pub(crate) fn request_lanes(&self, now: Now) -> [Vec<u64>; 3] {
        // A client that is hurt by an MCP server is hurt: calls count as the verdict counts them.
        let lanes: [&[usize]; 3] = [&[REQUESTS, MCP_CALLS], &[FAILED, MCP_FAILED], &[HOPS]];
        lanes.map(|which| {
            let sum = |counts: &[u32]| which.iter().map(|it| u64::from(counts[*it])).sum();
            self.totals.counts.list(now).map(|counts| sum(&counts[..])).collect()
        })
    }

    /// The callers, busiest first. `unix_ms` gives a moment's wall-clock time.
    pub(crate) fn callers(&self, now: Now, unix_ms: impl Fn(Now) -> u64) -> Vec<CallerView> {
        let view = |it: &CallerSeries| {
            let [requests, failed, mcp_calls, refused] = it.counts.sums(now, BUCKETS);
            CallerView {
                name: it.name.to_string(),
                requests,
                failed,
                mcp_calls,
                refused,
                last_unix_ms: unix_ms(it.last),
            }
        };
        let mut callers: Vec<CallerView> = self.callers.iter().map(view).collect();
        callers.retain(|it| it.requests + it.mcp_calls > 0);
        callers.sort_by_key(|it| std::cmp::Reverse(it.requests + it.mcp_calls));
        callers
    }
}

impl RequestSeries {
    fn add(&mut self, decision: &Decision, at: Now) {
        let result = match decision.verdict.result {
            RequestResult::Ok => OK,
            RequestResult::ClientFault => CLIENT_FAULTS,
            RequestResult::Cancelled => CANCELLED,
            RequestResult::Refused => REFUSED,
            RequestResult::Failed => FAILED,
        };
        self.spans.add(at, decision.took);
        let Some(counts) = self.counts.at(at) else { return };
        counts[REQUESTS] += 1;
        counts[result] += 1;
        counts[HOPS] += decision.hops() as u32;
        counts[RELAXED] += u32::from(decision.is_relaxed());
        match decision.log.iter().next().map(|it| it.pin) {
            Some(PinUse::Expired) => counts[EXPIRED] += 1,
            Some(PinUse::Declined) => counts[DECLINED] += 1,
            _ => {}
        }
    }
}

impl RouteSeries {
    fn member_place(&mut self, id: &Arc<str>) -> usize {
        let found = self.members.iter().position(|(known, _)| known == id);
        found.unwrap_or_else(|| {
            self.members.push((Arc::clone(id), Rolling::default()));
            self.members.len() - 1
        })
    }
}

impl BackendSeries {
    fn add(&mut self, at: Now, outcome: OutcomeKind, took: Millis, first: Option<Millis>) {
        count_attempt(&mut self.counts, at, outcome);
        if outcome == OutcomeKind::Success {
            self.spans.add(at, took);
        }
        if let Some(first) = first {
            self.first_content.add(at, first);
        }
    }

    fn add_unanswered(&mut self, at: Now) {
        let Some(counts) = self.counts.at(at) else { return };
        counts[ATTEMPTS] += 1;
        counts[FAILURES] += 1;
    }
}

fn count_attempt(counts: &mut Rolling<ATTEMPT_COUNTS>, at: Now, outcome: OutcomeKind) {
    let Some(counts) = counts.at(at) else { return };
    counts[ATTEMPTS] += 1;
    match outcome {
        OutcomeKind::Success => counts[ANSWERS] += 1,
        OutcomeKind::ClientFault | OutcomeKind::Cancelled | OutcomeKind::TooLong => {}
        _ => counts[FAILURES] += 1,
    }
}

fn is_server(id: &str) -> bool {
    id.starts_with("mcp:")
}

/// Per second, over the last minute or since the start.
fn rate(now: Now, count: u64) -> f64 {
    let span_ms = now.0.clamp(1_000, RATE_BUCKETS as u64 * crate::rolling::BUCKET_MS);
    tenths(count as f64 * 1000.0 / span_ms as f64)
}

fn percent(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| tenths(part as f64 * 100.0 / whole as f64))
}

fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}
