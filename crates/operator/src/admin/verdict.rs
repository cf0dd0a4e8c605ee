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
        sentence: sentence(now_unix_ms, figures, (backends, &broken), routes, next),
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
    (backends, broken): (&[BackendView], &[&BackendView]),
    routes: &[RouteView],
    next: Option<u64>,
) -> String {
    let mut sentences: Vec<String> = broken.iter().take(NAMED).map(|it| state_of(it)).collect();
    if broken.len() > NAMED {
        sentences.push(format!("{} more are not healthy.", broken.len() - NAMED));
    }
    // A backend that is healthy and not in use is no trouble, but whoever looks must know of it.
    let is_idle = |it: &&BackendView| it.standing != "active" && !is_named(broken, &it.id);
    let idle: Vec<&BackendView> = backends.iter().filter(is_idle).collect();
    sentences.extend(idle.iter().take(NAMED).map(|it| state_of(it)));
    if idle.len() > NAMED {
        sentences.push(format!("{} more are not in use.", idle.len() - NAMED));
    }
    let moved = figures.moves.declined;
    let is_affected = |route: &&RouteView| {
        let mut members = route.tiers.iter().flatten();
        members.any(|it| is_named(broken, &it.target) || is_named(&idle, &it.target))
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
        let who = first.map_or("the next backend", |it| it.id.as_str());
        sentences.push(format!("{who} is asked again in {}{needs}.", wait(seconds)));
    }
    if sentences.is_empty() {
        sentences.push("Nothing stands against any backend.".to_owned());
    }
    sentences.join(" ")
}

fn is_named(backends: &[&BackendView], id: &str) -> bool {
    backends.iter().any(|it| it.id == id)
}

/// What a backend is, and why.
fn state_of(it: &BackendView) -> String {
    let reason = it.action.as_ref().map(|it| it.reason.clone()).filter(|it| !it.is_empty());
    let (state, why) = match it.standing.as_str() {
        "drained" => ("drained by an operator", reason),
        "held" => ("held open by an operator", reason),
        "unconfigured" => ("skipped, because no key of its provider can be resolved", None),
        _ if it.state == "open" => ("open", it.why.clone()),
        _ if it.state == "half_open" => ("half-open and on trial", it.why.clone()),
        _ => ("not usable at the moment", it.why.clone()),
    };
    let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
    format!("{} is {state}{why}.", it.id)
}

/// A time to wait, as people say it: `45 s`, `30 min`, `23 h 59 min`.
pub(super) fn wait(seconds: u64) -> String {
    match seconds {
        0..=120 => format!("{seconds} s"),
        121..7_200 => format!("{} min", seconds.div_ceil(60)),
        _ => match (seconds / 3_600, seconds % 3_600 / 60) {
            (hours, 0) => format!("{hours} h"),
            (hours, minutes) => format!("{hours} h {minutes} min"),
        },
    }
}

fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::wait;

    #[test]
    fn a_wait_is_told_in_units_that_people_use() {
        let told = [0, 45, 120, 121, 600, 7_200, 86_399].map(wait);
        assert_eq!(told, ["0 s", "45 s", "120 s", "3 min", "10 min", "2 h", "23 h 59 min"]);
    }
}
