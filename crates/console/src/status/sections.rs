//! The parts of a status below its verdict.

use tidegate_journal::api::{
    decision::{AttemptView, DecisionShort},
    snapshot::{BackendView, MemberView, RouteView, SnapshotView},
};
use tidegate_sim::paint::Tone;

use crate::{
    look::Look,
    table::{Align, Table, count, fit},
    words::{
        calm, clock, counted, filled, grouped, moment, percent, span, took, took_or_dash, until,
    },
};

const LEFT: Align = Align::Left;
const RIGHT: Align = Align::Right;

fn plain(text: impl Into<String>) -> (Tone, String) {
    (Tone::Plain, text.into())
}

/// Every target: state, figures, since when and why. Servers have a part of their own.
pub(super) fn backends(snapshot: &SnapshotView, look: Look) -> Vec<String> {
    let mut table = Table::new(&[
        ("TARGET", LEFT),
        ("STATE", LEFT),
        ("OK%", RIGHT),
        ("P50", RIGHT),
        ("P95", RIGHT),
        ("BUSY", RIGHT),
        ("SHARE", RIGHT),
        ("SINCE", RIGHT),
    ])
    .spare(&["P50", "SINCE", "BUSY"]);
    for it in snapshot.backends.iter().filter(|it| it.kind == "target") {
        let stats = &it.stats;
        let ok = stats.ok_percent.map_or_else(|| "-".to_owned(), percent);
        let cells = vec![
            plain(calm(&it.id)),
            look.state(it),
            plain(ok),
            plain(took_or_dash(stats.p50_ms)),
            plain(took_or_dash(stats.p95_ms)),
            plain(it.in_flight.to_string()),
            plain(format!("{:.0}%", stats.share_percent)),
            plain(span(snapshot.at_unix_ms.saturating_sub(it.since_unix_ms))),
        ];
        table.push(cells, remark(it, snapshot.at_unix_ms));
    }
    if table.is_empty() { Vec::new() } else { table.lines(look) }
}

/// Why a backend is not healthy, when it is asked again, and what an operator did.
pub(crate) fn remark(it: &BackendView, now: u64) -> String {
    let mut parts: Vec<String> = Vec::new();
    if !it.healthy || it.state != "closed" || it.standing != "active" {
        parts.extend(it.why.as_deref().or(it.standing_reason.as_deref()).map(calm));
    }
    if let Some(action) = it.action.as_ref().filter(|it| !it.reason.is_empty()) {
        parts.push(format!("\"{}\"", calm(&action.reason)));
    }
    let until_lease = it.standing_until_unix_ms.filter(|_| it.standing != "active");
    match (until_lease, it.re_entry_unix_ms) {
        (Some(at), _) if at > now => parts.push(format!("ends in {}", until(now, at))),
        (None, Some(at)) if at > now => parts.push(format!("asked again in {}", until(now, at))),
        _ if it.state == "half_open" => parts.push("on trial".to_owned()),
        _ => {}
    }
    parts.join("; ")
}

/// Every route: where its requests go, and its tiers with their shares.
pub(super) fn routes(snapshot: &SnapshotView, look: Look) -> Vec<String> {
    let mut lines = Vec::new();
    for route in &snapshot.routes {
        lines.extend(route_lines(route, look));
    }
    lines
}

fn route_lines(route: &RouteView, look: Look) -> Vec<String> {
    let to = match route.resolves_to.as_slice() {
        [] => look.paint().apply(Tone::Bad, "nothing left"),
        to => to.iter().map(|it| calm(it)).collect::<Vec<_>>().join(", "),
    };
    let mut facts = vec![format!("{:.1}/s", route.stats.rps)];
    if route.stats.failed > 0 {
        let words = format!("{} failed", grouped(route.stats.failed));
        facts.push(look.paint().apply(Tone::Bad, &words));
    }
    facts.push(counted(route.stats.hops, "hop"));
    facts.push(counted(route.stats.sessions, "session"));
    if route.stats.moved > 0 {
        facts.push(format!("{} moved", grouped(route.stats.moved)));
    }
    let head = format!("ROUTE {} {} {to}", calm(&route.name), look.arrow());
    let mut lines = filled(&head, look.width, 6);
    lines.push(format!("      {}", facts.join(&look.dot())));
    for (number, tier) in route.tiers.iter().enumerate() {
        let members: Vec<String> = tier.iter().map(|it| member(it, look)).collect();
        lines.push(format!("  tier {number}  {}", members.join("   ")));
    }
    // A tier of many targets is one per line rather than cut.
    lines.into_iter().flat_map(|line| broken(line, look)).collect()
}

fn member(it: &MemberView, look: Look) -> String {
    let state = it.state.as_deref().unwrap_or("closed");
    let (tone, words) = match it.standing.as_deref() {
        Some("drained" | "held" | "unconfigured") => {
            let off = if look.is_ascii { "-" } else { "✕" };
            (Tone::Change, off.to_owned())
        }
        _ => look.state_word(state, it.healthy.unwrap_or(true)),
    };
    let sign = words.split(' ').next().unwrap_or_default().to_owned();
    format!("{} {} {:.0}%", look.paint().apply(tone, &sign), calm(&it.target), it.share_percent)
}

/// A line, or its members below each other where it is too wide.
fn broken(line: String, look: Look) -> Vec<String> {
    if !line.starts_with("  tier") || visible(&line) <= look.width {
        return vec![line];
    }
    let indent = line.find(|sign: char| sign.is_ascii_digit()).unwrap_or(0) + 3;
    let mut parts = line.split("   ");
    let first = parts.next().unwrap_or_default().to_owned();
    let rest = parts.map(|part| format!("{}{}", " ".repeat(indent), part.trim_start()));
    std::iter::once(first).chain(rest).collect()
}

/// Columns that a painted text takes.
fn visible(text: &str) -> usize {
    let mut columns = 0;
    let mut is_code = false;
    for sign in text.chars() {
        match sign {
            '\u{1b}' => is_code = true,
            'm' if is_code => is_code = false,
            _ if !is_code => columns += 1,
            _ => {}
        }
    }
    columns
}

/// Whether a request hopped, failed, was refused, or was asked of a target against the odds. A
/// session that moved is no failover: its request went to one target, which answered.
pub(crate) fn is_failover(it: &DecisionShort) -> bool {
    it.hops > 0 || it.relaxed || it.result != "ok"
}

/// The latest requests that hopped, failed or were refused.
pub(super) fn failovers(list: &[DecisionShort], most: usize, look: Look) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for it in list.iter().filter(|it| is_failover(it)).take(most) {
        if lines.is_empty() {
            lines.push(look.paint().apply(Tone::Quiet, "FAILOVERS, newest first"));
        }
        lines.extend(failover(it, look));
    }
    lines
}

/// One request on a line: when, its attempts, how it ended, its id.
pub(super) fn failover(it: &DecisionShort, look: Look) -> Vec<String> {
    let attempts: Vec<String> = it.attempts.iter().map(attempt).collect();
    let story = match attempts.as_slice() {
        [] => it.client_failure.clone().unwrap_or_else(|| it.end.clone()),
        several => several.join(&format!(" {} ", look.arrow())),
    };
    let (tone, sign) = look.result(&it.result);
    let sign = look.paint().apply(tone, &sign.to_string());
    let line = format!("{} {sign} {story}", clock(it.at_unix_ms));
    let id = calm(&it.id);
    if visible(&line) + 2 + count(&id) <= look.width {
        return vec![format!("{line}  {id}")];
    }
    let mut lines = vec![fit_end(&line, look)];
    lines.push(format!("            {id}"));
    lines
}

/// A line that is too long loses its end.
fn fit_end(line: &str, look: Look) -> String {
    if visible(line) <= look.width {
        return line.to_owned();
    }
    filled(line, look.width, 12).join("\n")
}

/// An attempt: who, how it ended, how long it took.
pub(crate) fn attempt(it: &AttemptView) -> String {
    let ended = match (it.status, it.outcome.as_deref()) {
        (Some(status), Some("success")) => status.to_string(),
        (Some(status), Some(outcome)) => format!("{status} {outcome}"),
        (None, Some(outcome)) => outcome.to_owned(),
        (status, None) => status.map_or_else(|| "no answer".to_owned(), |it| it.to_string()),
    };
    format!("{} {} {}", calm(&it.target), ended.replace('_', " "), took(it.ms))
}

/// MCP servers and the sessions of their clients.
pub(super) fn servers(snapshot: &SnapshotView, look: Look) -> Vec<String> {
    let mut table = Table::new(&[
        ("MCP SERVER", LEFT),
        ("STATE", LEFT),
        ("TOOLS", RIGHT),
        ("CALLS", RIGHT),
        ("FAILED", RIGHT),
        ("P95", RIGHT),
        ("BUSY", RIGHT),
    ]);
    for it in &snapshot.mcp.servers {
        let backend = snapshot.backends.iter().find(|known| known.id == it.backend);
        let state =
            backend.map_or_else(|| look.state_word(&it.state, it.healthy), |it| look.state(it));
        let tools = it.tools.map_or_else(|| "-".to_owned(), |tools| tools.to_string());
        let cells = vec![
            plain(calm(&it.name)),
            state,
            plain(tools),
            plain(grouped(it.calls)),
            plain(grouped(it.failures)),
            plain(took_or_dash(it.p95_ms)),
            plain(it.in_flight.to_string()),
        ];
        let remark = backend.map(|it| remark(it, snapshot.at_unix_ms)).unwrap_or_default();
        table.push(cells, remark);
    }
    if table.is_empty() {
        return Vec::new();
    }
    let mut lines = table.lines(look);
    lines.push(format!("{} of MCP clients", counted(snapshot.mcp.sessions, "session")));
    let words = match snapshot.mcp.search_model.as_deref() {
        Some("failed") => "tools are found without `mcp.search.model`: `tidegate check` says why",
        Some("loading" | "encoding") => {
            "tools are found without `mcp.search.model` until it is ready"
        }
        _ => return lines,
    };
    lines.extend(filled(words, look.width, 2));
    lines
}

/// The callers who got no whole answer, or were refused.
pub(super) fn callers(snapshot: &SnapshotView, look: Look) -> Vec<String> {
    let hurt: Vec<String> = snapshot
        .callers
        .iter()
        .filter(|it| it.failed > 0)
        .map(|it| {
            let name = if it.name.is_empty() { "(no key)".to_owned() } else { calm(&it.name) };
            let of = counted(it.requests, "request");
            format!("{name}: {} failed of {of}", grouped(it.failed))
        })
        .collect();
    if hurt.is_empty() {
        return Vec::new();
    }
    let text = format!("CALLERS HURT {}", hurt.join(&look.dot()));
    let lines = filled(&text, look.width, 2);
    lines.into_iter().map(|line| look.paint().apply(Tone::Bad, &line)).collect()
}

/// Trouble with the record itself: an operator who relies on it must know.
pub(super) fn records(snapshot: &SnapshotView, look: Look) -> Vec<String> {
    let journal = &snapshot.journal;
    let stores = [("history", &journal.history), ("audit", &journal.audit)];
    let failed = stores.iter().filter(|(_, store)| store.status == "failed");
    let mut lines: Vec<String> = failed
        .map(|(name, store)| {
            let why = store.why.as_deref().map(calm).unwrap_or_default();
            let lost = match store.dropped {
                0 => String::new(),
                dropped => format!(" ({} lost)", counted(dropped, "record")),
            };
            fit(&format!("the {name} is not written: {why}{lost}"), 400, look)
        })
        .flat_map(|line| filled(&line, look.width, 2))
        .collect();
    if let Some(reload) = snapshot.last_reload.as_ref().filter(|it| !it.ok) {
        let words = format!(
            "the config on disk was refused at {}: `tidegate check` says why; sha {} serves",
            moment(snapshot.at_unix_ms, reload.at_unix_ms),
            snapshot.config.sha,
        );
        lines.extend(filled(&words, look.width, 2));
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tidegate_journal::api::decision::DecisionShort;

    use super::failovers;
    use crate::look::Look;

    fn decision(id: &str, hops: u32, result: &str) -> DecisionShort {
        let decision = json!({
            "id": id, "n": 1, "kind": "llm", "at": 0, "at_unix_ms": 0, "took_ms": 1, "route": "r",
            "path": "chat", "caller": "", "stream": false, "result": result, "status": 200,
            "end": "answered", "hops": hops, "relaxed": false, "notable": true, "pin": "declined",
            "attempts": [],
        });
        serde_json::from_value(decision).expect("a decision")
    }

    #[test]
    fn a_session_that_moved_is_not_listed_as_a_failover() {
        let list = [decision("req_moved", 0, "ok"), decision("req_hopped", 1, "ok")];
        let look = Look { width: 80, is_ascii: false, has_colour: false };
        let shown = failovers(&list, 6, look).join("\n");
        assert!(shown.contains("req_hopped") && !shown.contains("req_moved"), "{shown}");
        assert!(failovers(&list[..1], 6, look).is_empty());
        assert_eq!(failovers(&[decision("req_failed", 0, "failed")], 6, look).len(), 2);
    }
}
