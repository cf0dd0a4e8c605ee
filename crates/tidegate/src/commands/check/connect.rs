//! `tidegate check --connect`: can everything that the config names be reached and used?
//!
//! The findings of the offline check come first, then a row per provider and MCP server, then what
//! is not offered under its name. The asking is [`tidegate_server::connect`]'s.
//!
//! Rules kept here:
//! - Under everything that cannot be used stand the words of a log about it, and a hint.

use std::sync::Arc;

use anstyle::{AnsiColor, Style};
use serde_json::{Value, json};
use tidegate_config::secret::ProcessEnvironment;
use tidegate_config::source::Source;
use tidegate_server::connect::{Connected, Offer, Trouble, connect};

use super::report::{Report, plural};
use crate::asking::Asking;
use crate::exit::Exit;
use crate::printer::Printer;
use crate::wrap::fill;

/// Columns between a name and what follows.
const GAP: usize = 2;

/// Asks everything, and prints what was found after the findings of the offline check.
pub(super) fn run(is_json: bool, source: &Source, report: &Report, printer: &Printer) -> Exit {
    if !is_json {
        printer.result(&super::findings(source, report, printer));
    }
    let asking = Asking::begin(printer);
    let connected = connect(source, Arc::new(ProcessEnvironment), |it| asking.show(it));
    drop(asking);
    let connected = match connected {
        Ok(connected) => connected,
        Err(error) => {
            if is_json {
                let mut document = report.json(source);
                document["connect"] = json!({ "error": error.to_string() });
                printer.result(&format!("{document:#}"));
            } else {
                printer.error(&error.to_string());
            }
            return Exit::No;
        }
    };
    if is_json {
        let mut document = report.json(source);
        document["connect"] = document_of(&connected);
        printer.result(&format!("{document:#}"));
    } else {
        printer.result(&format!("\n{}", text(&connected, printer.width(), printer.is_ascii())));
    }
    let (usable, all) = connected.counts();
    if usable == all { Exit::Done } else { Exit::No }
}

/// One row: a name, whether it can be used, and words about it.
struct ConnectRow<'a> {
    name: &'a str,
    is_usable: bool,
    words: String,
    /// Lines below the row.
    below: Vec<String>,
}

/// The whole table, and what follows it.
fn text(connected: &Connected, width: usize, is_ascii: bool) -> String {
    let between = if is_ascii { ", " } else { " · " };
    let providers = connected.providers.iter().map(|it| match (it.refusal(), &it.answer) {
        (None, Ok(status)) => {
            let words = format!("{}{between}{}ms", answered(*status), it.took.0);
            ConnectRow { name: &it.name, is_usable: true, words, below: Vec::new() }
        }
        (Some(trouble), _) => failed(&it.name, &trouble, &[]),
        (None, Err(trouble)) => failed(&it.name, trouble, &[]),
    });
    let servers = connected.servers.iter().map(|it| match &it.answer {
        Ok(offer) => {
            let took = format!("{}ms", it.took.0);
            let words = [counts(offer), took, identity(offer)].join(between);
            ConnectRow { name: &it.name, is_usable: true, words, below: Vec::new() }
        }
        Err(trouble) => failed(&it.name, trouble, &it.remarks),
    });
    let store = connected.store.iter().map(|it| match &it.answer {
        Ok(()) => {
            let words = format!("can be used{between}{}ms", it.took.0);
            ConnectRow { name: &it.name, is_usable: true, words, below: Vec::new() }
        }
        Err(trouble) => failed(&it.name, trouble, &[]),
    });
    let (providers, servers): (Vec<_>, Vec<_>) = (providers.collect(), servers.collect());
    let store: Vec<_> = store.collect();
    let column =
        providers.iter().chain(&servers).chain(&store).map(|row| row.name.chars().count()).max();
    let column = column.unwrap_or(0);
    let mut out = String::new();
    for (title, rows) in
        [("providers", providers), ("MCP servers", servers), ("fleet's store", store)]
    {
        if !rows.is_empty() {
            out.push_str(&format!("{title}\n"));
            rows.iter().for_each(|row| out.push_str(&line(row, column, width, is_ascii)));
        }
    }
    out.push_str(&names(connected, width));
    let (usable, all) = connected.counts();
    let end = match all {
        0 => "nothing to connect to\n".to_owned(),
        _ if usable == all => "everything can be reached\n".to_owned(),
        _ => format!("{usable} of {all} can be used\n"),
    };
    out + &end
}

fn failed<'a>(name: &'a str, trouble: &Trouble, remarks: &[String]) -> ConnectRow<'a> {
    let mut below: Vec<String> = remarks.iter().map(|remark| format!("log: {remark}")).collect();
    below.push(format!("hint: {}", trouble.hint));
    ConnectRow { name, is_usable: false, words: trouble.cause.clone(), below }
}

fn line(row: &ConnectRow<'_>, column: usize, width: usize, is_ascii: bool) -> String {
    let (glyph, colour) = match (row.is_usable, is_ascii) {
        (true, false) => ("●", AnsiColor::Green),
        (true, true) => ("*", AnsiColor::Green),
        (false, false) => ("✕", AnsiColor::Red),
        (false, true) => ("x", AnsiColor::Red),
    };
    let style = Style::new().fg_color(Some(colour.into()));
    // Two spaces, the name, the gap, the glyph, a space.
    let indent = 2 + column + GAP + 2;
    let name = row.name;
    let words = filled(&row.words, indent, width);
    let mut out = format!("  {name:column$}  {style}{glyph}{style:#} {}", words.trim_start());
    for below in &row.below {
        out.push_str(&filled(below, indent, width));
    }
    out
}

/// Words between `indent` and `width`.
fn filled(words: &str, indent: usize, width: usize) -> String {
    let margin = " ".repeat(indent);
    let words: Vec<&str> = words.split_whitespace().collect();
    let room = width.saturating_sub(indent).max(20);
    fill(&words, room, 0).lines().map(|line| format!("{margin}{line}\n")).collect()
}

fn answered(status: u16) -> String {
    match status {
        200..=299 => "answers".to_owned(),
        _ => format!("answers; status {status}"),
    }
}

fn counts(offer: &Offer) -> String {
    let resources = offer.resources + offer.templates;
    let parts =
        [(offer.tools, "tool"), (resources, "resource"), (offer.prompts, "prompt")].into_iter();
    let shown = parts.filter(|(count, noun)| *count > 0 || *noun == "tool");
    shown.map(|(count, noun)| plural(count, noun)).collect::<Vec<_>>().join(", ")
}

fn identity(offer: &Offer) -> String {
    let said = [offer.name.as_deref(), offer.version.as_deref()];
    let said: Vec<&str> = said.into_iter().flatten().collect();
    format!("{} (protocol {})", said.join(" "), offer.protocol).trim().to_owned()
}

/// What is not offered under its name, and what holds text that people do not see.
fn names(connected: &Connected, width: usize) -> String {
    let mut out = String::new();
    if !connected.conflicts.is_empty() {
        out.push_str("names\n");
        for clash in &connected.conflicts {
            out.push_str(&filled(&clash.sentence, 2, width));
        }
    }
    if !connected.hidden.is_empty() {
        out.push_str("hidden text\n");
        for it in &connected.hidden {
            let sentence = format!(
                "{}: `{}` of `{}` holds characters that people do not see and models read",
                it.kind, it.name, it.server
            );
            out.push_str(&filled(&sentence, 2, width));
        }
    }
    out
}

/// The part of the one document of `--json`.
fn document_of(connected: &Connected) -> Value {
    let (usable, all) = connected.counts();
    let reached = connected.providers.iter().filter(|it| it.answer.is_ok()).count()
        + connected.servers.iter().filter(|it| it.answer.is_ok()).count();
    let providers = connected.providers.iter().map(|it| {
        let trouble = it.refusal();
        json!({
            "name": it.name,
            "reached": it.answer.is_ok(),
            "usable": trouble.is_none(),
            "status": it.answer.as_ref().ok(),
            "has_key": it.has_key,
            "cause": trouble.as_ref().map(|it| &it.cause),
            "hint": trouble.as_ref().map(|it| &it.hint),
            "took_ms": it.took.0,
        })
    });
    let servers = connected.servers.iter().map(|it| {
        let (offer, trouble) = (it.answer.as_ref().ok(), it.answer.as_ref().err());
        json!({
            "name": it.name,
            "reached": it.answer.is_ok(),
            "usable": it.answer.is_ok(),
            "tools": offer.map(|it| it.tools),
            "resources": offer.map(|it| it.resources),
            "templates": offer.map(|it| it.templates),
            "prompts": offer.map(|it| it.prompts),
            "server_name": offer.map(|it| &it.name),
            "server_version": offer.map(|it| &it.version),
            "protocol": offer.map(|it| &it.protocol),
            "cause": trouble.map(|it| &it.cause),
            "hint": trouble.map(|it| &it.hint),
            "remarks": it.remarks,
            "took_ms": it.took.0,
        })
    });
    let conflicts = connected.conflicts.iter().map(|it| {
        json!({
            "kind": it.kind,
            "name": it.name,
            "server": it.server,
            "own": it.own,
            "winner": it.winner,
            "sentence": it.sentence,
        })
    });
    let hidden = connected.hidden.iter();
    let hidden = hidden.map(|it| json!({"kind": it.kind, "name": it.name, "server": it.server}));
    let mut document = json!({
        "reached": reached,
        "usable": usable,
        "all": all,
        "providers": Value::from_iter(providers),
        "servers": Value::from_iter(servers),
        "conflicts": Value::from_iter(conflicts),
        "hidden_text": Value::from_iter(hidden),
    });
    if let Some(it) = &connected.store {
        let trouble = it.answer.as_ref().err();
        document["store"] = json!({
            "name": it.name,
            "usable": it.answer.is_ok(),
            "cause": trouble.map(|it| &it.cause),
            "hint": trouble.map(|it| &it.hint),
            "took_ms": it.took.0,
        });
    }
    document
}
