//! Where a request would go now, and why not elsewhere.

use tidegate_journal::api::explain::{WhatIf, WhatIfCandidate};
use tidegate_sim::paint::Tone;

use crate::{
    look::Look,
    words::{calm, filled, moment, until},
};

/// The answer, line by line.
#[must_use]
pub fn what_if(it: &WhatIf, now: u64, look: Look) -> Vec<String> {
    let candidates = &it.explanation.candidates;
    let chosen = candidates.iter().find(|it| word(it) == "chosen");
    let route = it.route.as_deref().or(it.server.as_deref()).map(calm).unwrap_or_default();
    let head = match chosen {
        Some(chosen) => {
            let model = it.asked_model.as_deref().map(|model| format!(" as {}", calm(model)));
            let place = format!("{}{}", calm(&chosen.backend), model.unwrap_or_default());
            format!("would go to  {place} (tier {}, route {route})", chosen.tier)
        }
        None => format!("would go nowhere: no target of {route} can be asked"),
    };
    let mut lines = vec![head];
    let width = candidates.iter().map(|it| it.backend.chars().count()).max().unwrap_or(0);
    for candidate in candidates {
        lines.extend(candidate_lines(candidate, width, (now, chosen), it, look));
    }
    lines
}

fn word(it: &WhatIfCandidate) -> &'static str {
    match it.verdict.as_str() {
        Some("held") => "held",
        _ if it.verdict.get("chosen").is_some() => "chosen",
        _ => "skipped",
    }
}

fn candidate_lines(
    it: &WhatIfCandidate,
    width: usize,
    (now, chosen): (u64, Option<&WhatIfCandidate>),
    of: &WhatIf,
    look: Look,
) -> Vec<String> {
    let word = word(it);
    let (tone, text) = match word {
        "chosen" => (Tone::Good, chosen_words(it, of)),
        "held" => (Tone::Quiet, held_words(it, chosen)),
        _ => (Tone::Trouble, skipped_words(it, now)),
    };
    let name = format!("{:<width$}", calm(&it.backend));
    let word = look.paint().apply(tone, &format!("{word:<7}"));
    let room = look.width.saturating_sub(width + 13).max(20);
    let mut rest = filled(&text, room, 0).into_iter();
    let first = rest.next().unwrap_or_default();
    let mut lines = vec![format!("  {name}  {word}  {first}")];
    lines.extend(rest.map(|line| format!("{}{line}", " ".repeat(width + 13))));
    lines
}

fn chosen_words(it: &WhatIfCandidate, of: &WhatIf) -> String {
    let is_last_resort = it.verdict["chosen"]["is_last_resort"] == true;
    let how = if is_last_resort { "a last resort: nothing is available" } else { "available" };
    let pin = match of.explanation.pin.as_str() {
        "honoured" => "; the session is pinned to it",
        "kept_while_full" | "kept_over_limit" => "; the session keeps its pin elsewhere",
        "declined" => "; the session was pinned elsewhere and moves",
        "expired" => "; the session's pin has expired",
        _ => "",
    };
    format!("tier {}, {how}{pin}", it.tier)
}

fn held_words(it: &WhatIfCandidate, chosen: Option<&WhatIfCandidate>) -> String {
    match chosen {
        Some(chosen) if chosen.tier < it.tier => {
            format!("tier {} is used only when tier {} has nothing available", it.tier, chosen.tier)
        }
        Some(_) => format!("tier {}: it could be asked, and another was picked", it.tier),
        None => format!("tier {}", it.tier),
    }
}

fn skipped_words(it: &WhatIfCandidate, now: u64) -> String {
    let mut parts: Vec<String> = it.obstacles.iter().map(|it| it.phrase.clone()).collect();
    if parts.is_empty() {
        parts.push("something stands against it".to_owned());
    }
    let since = it.since_unix_ms.filter(|at| *at > 0 && it.why.is_some());
    let since = since.map(|at| format!(" since {}", moment(now, at))).unwrap_or_default();
    let why = it.why.as_deref().map(|why| format!(": {}", calm(why))).unwrap_or_default();
    let re_entry = it.obstacles.iter().filter_map(|it| it.until_unix_ms).max();
    let re_entry = re_entry.filter(|at| *at > now);
    let re_entry = re_entry.map(|at| format!("; asked again in {}", until(now, at)));
    format!("{}{since}{why}{}", parts.join(" and "), re_entry.unwrap_or_default())
}
