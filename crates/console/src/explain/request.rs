//! A request's decision: every choice with its verdicts, every attempt with its timing, the end.

use tidegate_journal::api::decision::{
    AttemptView, CandidateView, ChoiceView, DecisionFull, DecisionShort,
};
use tidegate_sim::paint::Tone;

use crate::{
    look::Look,
    words::{calm, date, filled, took, until},
};

/// The decision, line by line.
#[must_use]
pub fn request(it: &DecisionFull, look: Look) -> Vec<String> {
    let mut lines = head(it, look);
    for (number, choice) in it.choices.iter().enumerate() {
        lines.push(String::new());
        lines.push(choice_title(number, choice, &it.short));
        let width = choice.candidates.iter().map(|it| it.backend.chars().count()).max();
        for candidate in &choice.candidates {
            lines.extend(verdict(candidate, width.unwrap_or(0), it.short.at_unix_ms, look));
        }
        if let Some(attempt) = it.short.attempts.get(number) {
            lines.extend(attempt_lines(attempt, look));
        }
    }
    // Calls of MCP servers have attempts without choices that are recorded.
    for attempt in it.short.attempts.iter().skip(it.choices.len()) {
        lines.extend(attempt_lines(attempt, look));
    }
    lines.push(String::new());
    lines.extend(end(it, look));
    lines
}

fn head(it: &DecisionFull, look: Look) -> Vec<String> {
    let short = &it.short;
    let (tone, sign) = look.result(&short.result);
    let sign = look.paint().apply(tone, &sign.to_string());
    let result = short.result.replace('_', " ");
    let mut lines = vec![format!("{}  {sign} {result}, status {}", calm(&short.id), short.status)];
    let mut facts = vec![date(short.at_unix_ms), format!("took {}", took(short.took_ms))];
    facts.extend(short.first_content_ms.map(|ms| format!("first content after {}", took(ms))));
    if !short.route.is_empty() {
        facts.push(format!("route {}", calm(&short.route)));
    }
    facts.extend(short.model.as_deref().map(|model| format!("model {}", calm(model))));
    facts.extend(short.tool.as_deref().map(|tool| format!("tool {}", calm(tool))));
    if !short.caller.is_empty() {
        facts.push(format!("caller {}", calm(&short.caller)));
    }
    facts.extend(short.session.as_deref().map(|session| format!("session {}", calm(session))));
    facts.push(if short.stream { "streamed" } else { "not streamed" }.to_owned());
    facts.extend(it.config_sha.as_deref().map(|sha| format!("config {}", calm(sha))));
    if let Some(tokens) = &short.tokens {
        facts.push(format!("{} tokens in, {} out", tokens.input, tokens.output));
    }
    let facts = filled(&facts.join(&look.dot()), look.width.saturating_sub(2), 2);
    lines.extend(facts.into_iter().map(|line| format!("  {line}")));
    lines
}

fn choice_title(number: usize, choice: &ChoiceView, short: &DecisionShort) -> String {
    let after = choice.at.map(|at| at.saturating_sub(short.at));
    let after = after.map(|ms| format!(" after {}", took(ms))).unwrap_or_default();
    let by = match choice.by.as_deref() {
        Some("pin") => ", by the session's pin",
        Some("next_key") => ", the target's next key",
        _ => "",
    };
    let pin = match choice.pin.as_deref() {
        Some("declined") => "; the session leaves its target",
        Some("expired") => "; the session's pin had expired",
        _ => "",
    };
    match &choice.chosen {
        Some(_) => format!("choice {}{after}{by}{pin}", number + 1),
        None => format!("choice {}: nothing is left", number + 1),
    }
}

fn verdict(it: &CandidateView, width: usize, at_unix_ms: u64, look: Look) -> Vec<String> {
    let tone = match it.verdict.as_str() {
        "chosen" => Tone::Good,
        "skipped" => Tone::Trouble,
        _ => Tone::Quiet,
    };
    let mut why: Vec<String> = it
        .obstacles
        .iter()
        .map(|it| {
            let until = it.until_unix_ms.filter(|at| *at > at_unix_ms);
            let until = until.map(|at| format!(", for {} more", until_words(at_unix_ms, at)));
            format!("{}{}", it.phrase, until.unwrap_or_default())
        })
        .collect();
    match it.verdict.as_str() {
        "held" if why.is_empty() => why.push("another came first".to_owned()),
        "tried" => why.push("this request had asked it".to_owned()),
        "taken" => why.push("another request took its only slot".to_owned()),
        _ => {}
    }
    let name = format!("{:<width$}", calm(&it.backend));
    let word = look.paint().apply(tone, &format!("{:<7}", it.verdict));
    let text =
        format!("tier {}{}{}", it.tier, if why.is_empty() { "" } else { ": " }, why.join(", "));
    let room = look.width.saturating_sub(width + 13).max(20);
    let mut rest = filled(&text, room, 0).into_iter();
    let first = rest.next().unwrap_or_default();
    let mut lines = vec![format!("  {name}  {word}  {first}")];
    lines.extend(rest.map(|line| format!("{}{line}", " ".repeat(width + 13))));
    lines
}

fn until_words(from: u64, at: u64) -> String {
    until(from, at)
}

fn attempt_lines(it: &AttemptView, look: Look) -> Vec<String> {
    let mut facts = vec![crate::status::attempt(it)];
    facts.extend(it.first_content_ms.map(|ms| format!("first content {}", took(ms))));
    if !it.detail.is_empty() {
        facts.push(calm(&it.detail));
    }
    facts.extend(it.key.filter(|key| *key > 1).map(|key| format!("key {key}")));
    facts.extend(it.retry_after_ms.map(|ms| format!("retry after {}", took(ms))));
    if it.trial {
        facts.push("a trial".to_owned());
    }
    if it.last_resort {
        facts.push("a last resort".to_owned());
    }
    if it.resent {
        facts.push("sent again over a fresh connection".to_owned());
    }
    facts.extend(it.converted.as_deref().map(|pair| format!("converted {}", calm(pair))));
    let text = format!("{} {}", look.arrow(), facts.join(&look.dot()));
    let text = filled(&text, look.width.saturating_sub(2), 4);
    text.into_iter().map(|line| format!("  {line}")).collect()
}

fn end(it: &DecisionFull, look: Look) -> Vec<String> {
    let by = it.short.answered_by.as_deref().map(|by| format!(" by {}", calm(by)));
    let mut words = match it.released.what.as_str() {
        "attempt" => format!("answered{} with {}", by.unwrap_or_default(), it.answer.status),
        "own_error" => format!("the gateway answered {} itself", it.answer.status),
        _ => "nobody was there to be answered".to_owned(),
    };
    if let Some(code) = &it.answer.code {
        words.push_str(&format!(" {} (tidegate explain {})", calm(code), calm(code)));
    }
    if let Some(message) = &it.answer.message {
        words.push_str(&format!(": {}", calm(message)));
    }
    if let Some(failure) = &it.short.client_failure {
        words.push_str(&format!("; the client was hurt: {}", failure.replace('_', " ")));
    }
    let tone = if it.short.client_failure.is_some() { Tone::Bad } else { Tone::Plain };
    let lines = filled(&words, look.width, 2);
    let mut lines: Vec<String> =
        lines.into_iter().map(|line| look.paint().apply(tone, &line)).collect();
    for conversion in &it.conversion {
        for note in &conversion.notes {
            let text = format!(
                "{} {} of attempt {}: {}",
                note.change,
                calm(&note.field),
                conversion.attempt + 1,
                calm(&note.why)
            );
            lines.extend(filled(&text, look.width, 2));
        }
    }
    lines
}
