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
use tidegate_console::fleet;
use tidegate_console::status::Status;
use tidegate_console::watch::{self, Watched};
use tidegate_console::words::{clock, span};
use tidegate_core::time::Now;
use tidegate_journal::api::decision::DecisionList;
use tidegate_journal::api::fleet::FleetView;
use tidegate_journal::api::timeline::TimelineView;
use tidegate_runtime::clock::Clock;

use super::super::admin::{self, Gateway};
use super::NOTABLE;
use crate::exit::Exit;
use crate::printer::{Printer, Screen};

/// How often the lanes are asked for.
const LANES_EVERY_MS: u64 = 10_000;
/// How often the fleet is asked for: as often as replicas look at each other.
const FLEET_EVERY_MS: u64 = 3_000;

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
        lines(gateway, events, is_json, is_over, printer)
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
    gateway: &Gateway,
    mut events: Events<'_>,
    is_json: bool,
    is_over: impl Fn() -> bool,
    printer: &Printer,
) -> Result<(), AskError> {
    let look = admin::look(printer);
    let clock_of = Clock::start();
    let mut is_broken = false;
    let mut fleet = FleetLook::default();
    while !is_over() && !printer.is_reader_gone() {
        if !is_broken && let Some(told) = fleet.look_again(gateway, clock_of.now()) {
            fleet_lines(&told, fleet.view.as_ref(), is_json, printer);
        }
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

/// The fleet as it was last seen; a gateway that stands alone is asked once.
#[derive(Default)]
struct FleetLook {
    view: Option<FleetView>,
    asked_at: Option<Now>,
    is_alone: bool,
}

impl FleetLook {
    /// Looks again if it is time to; what has changed, if anything has.
    fn look_again(&mut self, gateway: &Gateway, now: Now) -> Option<Vec<String>> {
        let is_due = self.asked_at.is_none_or(|at| now.since(at).0 >= FLEET_EVERY_MS);
        if self.is_alone || !is_due {
            return None;
        }
        self.asked_at = Some(now);
        match gateway.client.get::<FleetView>("/api/fleet") {
            Ok(view) => {
                let told = fleet::changes(self.view.as_ref(), &view);
                self.view = Some(view);
                Some(told).filter(|told| !told.is_empty())
            }
            Err(AskError::Refused { status: 404, .. }) => {
                self.is_alone = true;
                None
            }
            // The stream of events says what is wrong with the gateway.
            Err(_) => None,
        }
    }
}

fn fleet_lines(told: &[String], view: Option<&FleetView>, is_json: bool, printer: &Printer) {
    if is_json {
        let data = serde_json::to_value(view).unwrap_or_default();
        printer.result(&json!({ "event": "fleet", "id": null, "data": data }).to_string());
        return;
    }
    told.iter().for_each(|line| printer.result(line));
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
    fleet: FleetLook,
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
    let mut shown =
        Shown { watched, timeline: None, lanes_at: None, fleet: FleetLook::default(), stale: None };
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
    shown.fleet.look_again(gateway, now);
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
    if let Some(fleet) = &shown.fleet.view {
        lines.push(String::new());
        lines.extend(fleet::lines(fleet, admin::look(printer)));
    }
    screen.draw(&lines);
}
