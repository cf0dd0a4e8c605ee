//! The situation in a sentence: is anybody hurt, what is broken, where traffic went, when it heals.

use tidegate_journal::{
    api::snapshot::{BackendView, RouteView, VerdictView},
    figures::Figures,
};

/// Backends that are named; more are counted.
const NAMED: usize = 3;

/// Works it out from what a snapshot shows.
pub(super) fn of(
    status: &str,
    now_unix_ms: u64,
    figures: &Figures,
    backends: &[BackendView],
    routes: &[RouteView],
) -> VerdictView {
    let totals = &figures.totals;
    let broken: Vec<&BackendView> =
        backends.iter().filter(|it| !it.healthy || it.state != "closed").collect();
    let client_failures = totals.failed + totals.mcp_failed;
    let level = if status == "unhealthy" {
        "down"
    } else if figures.recent_failures > 0 {
        "hurt"
    } else if !broken.is_empty() {
        "degraded"
    } else {
        "ok"
    };
    let next = broken.iter().filter_map(|it| it.re_entry_unix_ms).min();
    let next = next.filter(|at| *at > now_unix_ms);
    VerdictView {
        level: level.to_owned(),
        headline: headline(level, client_failures),
        sentence: sentence(now_unix_ms, figures, &broken, routes, next),
        client_failures,
        requests: totals.requests,
        rps: totals.rps,
        p50_ms: totals.p50_ms,
        p95_ms: totals.p95_ms,
        broken: broken.iter().map(|it| it.id.clone()).collect(),
        sessions_moved: figures.moves.declined,
        next_re_entry_unix_ms: next,
    }
}

fn headline(level: &str, failures: u64) -> String {
    let failed = format!("{} in 15 min", counted(failures, "client failure"));
    match (level, failures) {
        ("ok", 0) => "Everything is healthy, no client was hurt".to_owned(),
        ("ok", _) => format!("Everything is healthy again, {failed}"),
        ("degraded", 0) => "Degraded, no client hurt".to_owned(),
        ("degraded", _) => format!("Degraded, no client hurt in the last minute, {failed}"),
        ("hurt", _) => format!("Clients are hurt: {failed}"),
        (_, 0) => "A route has no healthy target left, no client was hurt yet".to_owned(),
        _ => format!("A route has no healthy target left, {failed}"),
    }
}

fn sentence(
    now_unix_ms: u64,
    figures: &Figures,
    broken: &[&BackendView],
    routes: &[RouteView],
    next: Option<u64>,
) -> String {
    let mut sentences = Vec::new();
    for it in broken.iter().take(NAMED) {
        let why = it.why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        let state = match it.standing.as_str() {
            "drained" => "drained by an operator",
            "held" => "held open by an operator",
            _ if it.state == "open" => "open",
            _ if it.state == "half_open" => "half-open and on trial",
            _ => "not usable at the moment",
        };
        sentences.push(format!("{} is {state}{why}.", it.id));
    }
    if broken.len() > NAMED {
        sentences.push(format!("{} more are not healthy.", broken.len() - NAMED));
    }
    let moved = figures.moves.declined;
    let is_affected = |route: &&RouteView| {
        let mut members = route.tiers.iter().flatten();
        members.any(|it| broken.iter().any(|broken| broken.id == it.target))
    };
    let to: Vec<String> = routes
        .iter()
        .filter(is_affected)
        .map(|route| match route.resolves_to.as_slice() {
            [] => format!("`{}` has nowhere to go", route.name),
            to => format!("`{}` goes to {}", route.name, to.join(" and ")),
        })
        .collect();
    if !to.is_empty() {
        let shown = to.iter().take(NAMED).cloned().collect::<Vec<_>>().join("; ");
        let sessions = match moved {
            0 => String::new(),
            _ => format!(", {} moved", counted(moved, "session")),
        };
        sentences.push(format!("{shown}{sessions}."));
    }
    if let Some(next) = next {
        let seconds = (next - now_unix_ms).div_ceil(1000);
        let first = broken.iter().find(|it| it.re_entry_unix_ms == Some(next));
        let needs = first.and_then(|it| it.needs.as_ref());
        let needs = needs.map(|needs| format!("; it needs {needs}")).unwrap_or_default();
        sentences.push(format!("The next re-entry is in {seconds} s{needs}."));
    }
    if sentences.is_empty() {
        sentences.push("Nothing stands against any backend.".to_owned());
    }
    sentences.join(" ")
}

fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
