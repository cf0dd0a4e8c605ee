//! Decisions as text, one line per request: what a recording and its replay are compared by.
//!
//! ```text
//! req_4f… demo | 1203 ebb/tide#1 rank 0 by tactic pin none -> overloaded 529 | … | answered 200
//! ```

use tidegate_core::{attempt::Finish, plan::Plan, time::Now};

/// What a line tells of one attempt.
pub(super) struct ChoiceLine<'a> {
    pub(super) at: Now,
    pub(super) backend: &'a str,
    /// The number of the key, from 1.
    pub(super) key: u16,
    pub(super) rank: u8,
    pub(super) by: &'a str,
    pub(super) pin: &'a str,
    pub(super) is_trial: bool,
    pub(super) is_last_resort: bool,
    pub(super) outcome: &'a str,
    pub(super) status: Option<u16>,
}

/// One attempt: when and how it was chosen, and how it ended.
pub(super) fn choice_line(it: &ChoiceLine<'_>) -> String {
    let trial = if it.is_trial { " trial" } else { "" };
    let last_resort = if it.is_last_resort { " last resort" } else { "" };
    let status = it.status.map(|status| format!(" {status}")).unwrap_or_default();
    format!(
        "{} {}#{} rank {} by {} pin {}{trial}{last_resort} -> {}{status}",
        it.at.0, it.backend, it.key, it.rank, it.by, it.pin, it.outcome
    )
}

/// A whole request.
pub(super) fn request_line<'a>(
    id: &str,
    route: &str,
    attempts: impl Iterator<Item = &'a str>,
    (end, status): (&str, u16),
) -> String {
    let mut line = format!("{id} {route}");
    for attempt in attempts {
        line.push_str(" | ");
        line.push_str(attempt);
    }
    line.push_str(&format!(" | {end} {status}"));
    line
}

/// The request that a plan has carried to its end.
pub(super) fn of_plan(id: &str, route: &str, plan: &Plan, finish: &Finish) -> String {
    let lines: Vec<String> = plan
        .attempts()
        .iter()
        .map(|it| {
            choice_line(&ChoiceLine {
                at: it.at,
                backend: plan.route().backend(it.candidate).id(),
                key: it.key.saturating_add(1),
                rank: it.rank.0,
                by: &word(it.by),
                pin: &word(it.pin),
                is_trial: it.is_trial,
                is_last_resort: it.is_last_resort,
                outcome: it.outcome.map_or("", |it| it.kind.word()),
                status: it.outcome.and_then(|it| it.status),
            })
        })
        .collect();
    let end = word(finish.end);
    request_line(id, route, lines.iter().map(String::as_str), (&end, finish.status))
}

fn word(it: impl serde::Serialize) -> String {
    let value = serde_json::to_value(it).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}
