//! A backend's state with its evidence, the lines of the config behind it, and its re-entry.

use tidegate_journal::api::{
    events::{ActionView, TransitionView},
    explain::BackendStory,
};
use tidegate_sim::paint::Tone;

use crate::{
    look::Look,
    status::{attempts_line, remark},
    words::{calm, counted, filled, moment, percent, span, took_or_dash, until},
};

/// Changes of state that are shown.
const CHANGES: usize = 8;
/// Requests that are shown.
const RECENT: usize = 5;

/// A setting that decides about a backend, with the place where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its key, such as `failure_threshold`.
    pub name: String,
    /// Its value.
    pub value: String,
    /// `tidegate.yaml:17`, or `the default`.
    pub place: String,
}

/// The story of a backend, line by line.
#[must_use]
pub fn backend(story: &BackendStory, settings: &[Setting], now: u64, look: Look) -> Vec<String> {
    let it = &story.backend;
    let (tone, state) = look.state(it);
    let since = span(now.saturating_sub(it.since_unix_ms));
    let head = format!("{}  {}  for {since}", calm(&it.id), look.paint().apply(tone, &state));
    let mut lines = vec![head];
    let remark = remark(it, now);
    if !remark.is_empty() {
        lines.extend(indented(&format!("why: {remark}"), look));
    }
    if let Some(at) = it.re_entry_unix_ms.filter(|at| *at > now) {
        let needs = it.needs.as_ref().map(|needs| format!("; it needs {needs} to close"));
        let words = format!(
            "asked again: at {}, in {}{}",
            moment(now, at),
            until(now, at),
            needs.unwrap_or_default()
        );
        lines.extend(indented(&words, look));
    } else if let Some(needs) = &it.needs {
        lines.extend(indented(
            &format!("asked again: trials are admitted now; it needs {needs} to close"),
            look,
        ));
    }
    lines.extend(indented(&figures(story, look), look));
    if !settings.is_empty() {
        let shown: Vec<String> =
            settings.iter().map(|it| format!("{} {} ({})", it.name, it.value, it.place)).collect();
        lines.extend(indented(&format!("config: {}", shown.join(&look.dot())), look));
    }
    section(&mut lines, "changes, newest first", look, &changes(story, now, look));
    section(&mut lines, "requests, newest first", look, &recent(story, look));
    lines.push(String::new());
    lines.push(format!("next: {}", next(story)));
    lines
}

fn figures(story: &BackendStory, look: Look) -> String {
    let (it, stats) = (&story.backend, &story.backend.stats);
    let ok = stats
        .ok_percent
        .map_or_else(|| "no attempt".to_owned(), |ok| format!("{} % ok", percent(ok)));
    let facts = [
        ok,
        counted(stats.attempts, "attempt"),
        counted(stats.failures, "failure"),
        format!("p50 {}", took_or_dash(stats.p50_ms)),
        format!("p95 {}", took_or_dash(stats.p95_ms)),
        format!("{} in flight", it.in_flight),
    ];
    format!("last 15 min: {}", facts.join(&look.dot()))
}

fn changes(story: &BackendStory, now: u64, look: Look) -> Vec<String> {
    let id = &story.backend.id;
    let change = |it: &TransitionView| {
        let whose =
            if it.backend == *id { String::new() } else { format!("{} ", calm(&it.backend)) };
        let words = format!("{} {} {}", it.from, look.arrow(), it.to).replace('_', "-");
        (it.seq, format!("{} {whose}{words}: {}", moment(now, it.at_unix_ms), calm(&it.detail)))
    };
    let action = |it: &ActionView| {
        let reason = if it.reason.is_empty() { "no reason given" } else { &it.reason };
        let words = format!("{} by an operator: {}", it.deed, calm(reason));
        (it.seq, format!("{} {words}", moment(now, it.at_unix_ms)))
    };
    let mut all: Vec<(u64, String)> = story.transitions.iter().map(change).collect();
    all.extend(story.actions.iter().map(action));
    all.sort_by_key(|one| std::cmp::Reverse(one.0));
    all.into_iter().take(CHANGES).map(|(_, line)| line).collect()
}

fn recent(story: &BackendStory, look: Look) -> Vec<String> {
    story.recent.iter().take(RECENT).map(|it| attempts_line(it, look)).collect()
}

fn next(story: &BackendStory) -> String {
    let id = calm(&story.backend.id);
    match story.backend.standing.as_str() {
        "drained" | "held" => format!("tidegate resume {id}"),
        "unconfigured" => "tidegate doctor".to_owned(),
        _ if story.backend.state != "closed" => format!("tidegate probe {id}"),
        _ => "tidegate status".to_owned(),
    }
}

fn section(lines: &mut Vec<String>, title: &str, look: Look, rows: &[String]) {
    if rows.is_empty() {
        return;
    }
    lines.push(String::new());
    lines.push(look.paint().apply(Tone::Quiet, title));
    for row in rows {
        let text = filled(row, look.width.saturating_sub(2), 4);
        lines.extend(text.into_iter().map(|it| format!("  {it}")));
    }
}

fn indented(text: &str, look: Look) -> Vec<String> {
    let text = filled(text, look.width.saturating_sub(2), 2);
    text.into_iter().map(|it| format!("  {it}")).collect()
}
