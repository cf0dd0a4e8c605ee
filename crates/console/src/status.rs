//! The state of a gateway on one screen: is anybody hurt, what is broken and why, where traffic
//! goes, when it heals.
//!
//! The order is that of the questions: the verdict first, then backends, routes, failovers, MCP
//! servers and the callers that were hurt. Parts with nothing to tell are left out.

mod lanes;
mod sections;

use tidegate_journal::api::{
    decision::DecisionShort,
    snapshot::{SnapshotView, VerdictView},
    timeline::TimelineView,
};
use tidegate_sim::paint::Tone;

use crate::{
    look::Look,
    words::{counted, filled, grouped, span, took},
};

/// What is shown.
#[derive(Clone, Copy, Debug)]
pub struct Status<'a> {
    /// The state.
    pub snapshot: &'a SnapshotView,
    /// Requests that are more than a plain answer of the first choice, newest first.
    pub failovers: &'a [DecisionShort],
    /// The lanes of the last minutes, where they are known.
    pub timeline: Option<&'a TimelineView>,
}

/// Failovers that are listed.
const FAILOVERS: usize = 6;

impl Status<'_> {
    /// The whole, line by line.
    #[must_use]
    pub fn lines(&self, look: Look) -> Vec<String> {
        let snapshot = self.snapshot;
        let mut lines = verdict(snapshot, look);
        let mut add = |part: Vec<String>| {
            if !part.is_empty() {
                lines.push(String::new());
                lines.extend(part);
            }
        };
        add(sections::backends(snapshot, look));
        add(sections::routes(snapshot, look));
        add(self.timeline.map(|it| lanes::lines(it, snapshot, look)).unwrap_or_default());
        add(sections::failovers(self.failovers, FAILOVERS, look));
        add(sections::servers(snapshot, look));
        add(sections::callers(snapshot, look));
        add(sections::records(snapshot, look));
        add(next(snapshot, look));
        lines
    }
}

/// One request on a line.
pub(crate) fn failover_line(it: &DecisionShort, look: Look) -> Option<String> {
    sections::failover(it, look).into_iter().next()
}

/// The same with its id behind it, however wide.
pub(crate) fn attempts_line(it: &DecisionShort, look: Look) -> String {
    let wide = Look { width: usize::MAX, ..look };
    sections::failover(it, wide).join("  ")
}

pub(crate) use sections::{attempt, is_failover, remark};

/// How bad it is: larger is worse.
#[must_use]
pub fn severity(level: &str) -> u8 {
    match level {
        "ok" => 0,
        "degraded" => 1,
        "hurt" => 2,
        _ => 3,
    }
}

/// The situation in a sentence, and the figures behind it.
fn verdict(snapshot: &SnapshotView, look: Look) -> Vec<String> {
    let it = &snapshot.verdict;
    let tone = match severity(&it.level) {
        0 => Tone::Good,
        1 => Tone::Trouble,
        _ => Tone::Bad,
    };
    let headline = look.paint().apply(tone, &format!("{}.", it.headline.trim_end_matches('.')));
    let mut lines = vec![headline];
    lines.extend(filled(&crate::words::calm(&it.sentence), look.width, 0));
    lines.extend(filled(&figures(snapshot, it, look), look.width, 0));
    lines
}

fn figures(snapshot: &SnapshotView, it: &VerdictView, look: Look) -> String {
    let window = snapshot.window_ms / 60_000;
    let latency = |name: &str, ms: Option<u64>| ms.map(|ms| format!("{name} {}", took(ms)));
    let mut parts = vec![format!(
        "{} failed of {} in {window} min",
        grouped(it.client_failures),
        counted(it.requests + snapshot.totals.mcp_calls, "request"),
    )];
    parts.push(format!("{:.1}/s", it.rps));
    parts.extend(latency("p50", it.p50_ms));
    parts.extend(latency("p95", it.p95_ms));
    parts
        .push(format!("up {}", span(snapshot.at_unix_ms.saturating_sub(snapshot.started_unix_ms))));
    parts.join(&look.dot())
}

/// What to type next.
fn next(snapshot: &SnapshotView, look: Look) -> Vec<String> {
    let first = match snapshot.verdict.broken.first() {
        Some(id) => format!("tidegate explain {}", crate::words::calm(id)),
        None => "tidegate status --watch".to_owned(),
    };
    filled(&format!("next: {first}"), look.width, 6)
}
