//! `tidegate status --watch`: a screen that is drawn again when something changes.
//!
//! Rules kept here:
//! - A terminal gets one screen that is redrawn in place and left as it was found; a pipe gets one
//!   line per event, and with `--json` one JSON object per event.
//! - A stream that breaks is opened again after its last event; until then the screen says since
//!   when it is stale.
//! - Ctrl-C and SIGTERM end it within a fraction of a second.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};
use tidegate_console::client::AskError;
use tidegate_console::events::{Events, StreamEvent, Waited};
use tidegate_console::status::Status;
use tidegate_console::watch::{self, Watched};
use tidegate_console::words::{clock, span};
use tidegate_core::time::Now;
use tidegate_journal::api::decision::DecisionList;
use tidegate_journal::api::timeline::TimelineView;
use tidegate_runtime::clock::Clock;

use super::super::admin::{self, Gateway};
use super::NOTABLE;
use crate::exit::Exit;
use crate::printer::{Printer, Screen};

/// How often the lanes are asked for.
const LANES_EVERY_MS: u64 = 10_000;

/// Follows a gateway until somebody ends it.
pub(super) fn follow(gateway: &Gateway, is_json: bool, printer: &Printer) -> Exit {
    let is_over = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        drop(signal_hook::flag::register(signal, Arc::clone(&is_over)));
    }
    let events = match Events::open(&gateway.client) {
        Ok(events) => events,
        Err(error) => return gateway.explain(&error, printer),
    };
    let is_over = || is_over.load(Ordering::Relaxed);
    let ended = if is_json || !io::stdout().is_terminal() {
        lines(events, is_json, is_over, printer)
    } else {
        screen(gateway, events, is_over, printer)
    };
    match ended {
        Ok(()) => Exit::Interrupted,
        Err(error) => gateway.explain(&error, printer),
    }
}

/// One line per event, for a reader who is no terminal.
fn lines(
    mut events: Events<'_>,
    is_json: bool,
    is_over: impl Fn() -> bool,
    printer: &Printer,
) -> Result<(), AskError> {
    let look = admin::look(printer);
    let clock_of = Clock::start();
    let mut is_broken = false;
    while !is_over() && !printer.is_reader_gone() {
        match events.wait()? {
            Waited::Event(event) => {
                is_broken = false;
                let line = if is_json { Some(json_line(&event)) } else { text_line(&event, look) };
                if let Some(line) = line {
                    printer.result(&line);
                }
            }
            Waited::Broken(why) if !is_broken => {
                is_broken = true;
                let since = clock(clock_of.unix_ms());
                printer.note(&format!("stale since {since}: {why}; trying again every 2 s"));
            }
            Waited::Nothing | Waited::Broken(_) => {}
        }
    }
    Ok(())
}

fn json_line(event: &StreamEvent) -> String {
    json!({ "event": event.name, "id": event.id, "data": event.data }).to_string()
}

fn text_line(event: &StreamEvent, look: tidegate_console::look::Look) -> Option<String> {
    if event.name != "snapshot" {
        return watch::line(event, look);
    }
    let verdict = &event.data["verdict"];
    let text = |key: &str| verdict[key].as_str().unwrap_or_default().to_owned();
    Some(format!("{}. {}", text("headline"), text("sentence")))
}

/// What the screen is drawn from.
struct Shown {
    watched: Watched,
    timeline: Option<TimelineView>,
    /// When the lanes were asked for.
    lanes_at: Option<Now>,
    /// Since when nothing came, and why.
    stale: Option<(u64, String)>,
}

fn screen(
    gateway: &Gateway,
    mut events: Events<'_>,
    is_over: impl Fn() -> bool,
    printer: &Printer,
) -> Result<(), AskError> {
    let clock_of = Clock::start();
    let list: Option<DecisionList> = gateway.client.get(NOTABLE).ok();
    let failovers = list.map(|list| list.decisions).unwrap_or_default();
    let watched = Watched { failovers, ..Watched::default() };
    let mut shown = Shown { watched, timeline: None, lanes_at: None, stale: None };
    let screen = printer.screen();
    while !is_over() {
        let waited = events.wait()?;
        match waited {
            Waited::Event(event) => {
                shown.stale = None;
                shown.watched.apply(&event);
            }
            Waited::Broken(why) => {
                shown.stale.get_or_insert((clock_of.unix_ms(), why));
            }
            Waited::Nothing => {}
        }
        refresh(gateway, &mut shown, clock_of.now());
        draw(&screen, &shown, clock_of.unix_ms(), printer);
    }
    Ok(())
}

/// Asks for what events do not carry; a gateway that is gone is asked for nothing.
fn refresh(gateway: &Gateway, shown: &mut Shown, now: Now) {
    if shown.stale.is_some() {
        return;
    }
    let is_due = |at: Now| now.since(at).0 >= LANES_EVERY_MS;
    let needs = shown.watched.needs_snapshot;
    if needs && let Ok(snapshot) = gateway.client.get("/api/snapshot") {
        shown.watched.snapshot = Some(snapshot);
    }
    shown.watched.needs_snapshot = false;
    if needs || shown.lanes_at.is_none_or(is_due) {
        shown.timeline = gateway.client.get("/api/timeline").ok().or(shown.timeline.take());
        shown.lanes_at = Some(now);
    }
}

fn draw(screen: &Screen<'_>, shown: &Shown, now_unix_ms: u64, printer: &Printer) {
    let Some(snapshot) = &shown.watched.snapshot else { return };
    let status =
        Status { snapshot, failovers: &shown.watched.failovers, timeline: shown.timeline.as_ref() };
    let mut lines = Vec::new();
    match &shown.stale {
        Some((since, why)) => {
            let ago = span(now_unix_ms.saturating_sub(*since));
            lines.push(format!("stale since {} ({ago}): {why}; trying again", clock(*since)));
        }
        None => lines.push(format!("live at {}  (Ctrl-C ends)", clock(snapshot.at_unix_ms))),
    }
    lines.extend(status.lines(admin::look(printer)));
    screen.draw(&lines);
}
