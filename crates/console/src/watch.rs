//! A snapshot that is kept up to date from events.
//!
//! Figures come once a second as a `tick`; a change of state, an action or a reload changes reasons
//! that a tick does not carry, so the caller fetches a snapshot anew after one (`needs_snapshot`).

use serde_json::Value;
use tidegate_journal::api::{
    decision::DecisionShort,
    events::{MovedView, ReloadView, TickView, TransitionView},
    snapshot::SnapshotView,
};

use crate::{
    events::StreamEvent,
    look::Look,
    status::is_failover,
    words::{calm, clock},
};

/// Failovers that are kept.
const KEPT: usize = 20;

/// What is known.
#[derive(Clone, Debug, Default)]
pub struct Watched {
    /// The state; none before the first event.
    pub snapshot: Option<SnapshotView>,
    /// Failovers, newest first.
    pub failovers: Vec<DecisionShort>,
    /// Something happened that only a new snapshot tells in full.
    pub needs_snapshot: bool,
}

impl Watched {
    /// Takes over what an event tells; one that cannot be read changes nothing.
    pub fn apply(&mut self, event: &StreamEvent) {
        match event.name.as_str() {
            "snapshot" => {
                if let Some(snapshot) = read(&event.data) {
                    self.snapshot = Some(snapshot);
                    self.needs_snapshot = false;
                }
            }
            "tick" => {
                if let (Some(tick), Some(snapshot)) = (read(&event.data), &mut self.snapshot) {
                    take_over(snapshot, tick);
                }
            }
            "decision" => {
                let decision: Option<DecisionShort> = read(&event.data);
                if let Some(decision) = decision.filter(is_failover) {
                    self.failovers.insert(0, decision);
                    self.failovers.truncate(KEPT);
                }
            }
            "transition" | "action" | "reload" | "moved" | "gap" => self.needs_snapshot = true,
            _ => {}
        }
    }
}

fn read<T: for<'a> serde::Deserialize<'a>>(data: &Value) -> Option<T> {
    serde_json::from_value(data.clone()).ok()
}

fn take_over(snapshot: &mut SnapshotView, tick: TickView) {
    snapshot.at_unix_ms = tick.at_unix_ms;
    snapshot.seq = tick.seq;
    snapshot.status = tick.status;
    snapshot.verdict = tick.verdict;
    snapshot.totals = tick.totals;
    snapshot.sessions = tick.sessions;
    snapshot.session_moves = tick.session_moves;
    snapshot.mcp.sessions = tick.mcp.sessions;
    for news in tick.backends {
        let Some(known) = snapshot.backends.iter_mut().find(|it| it.id == news.id) else {
            continue;
        };
        known.state = news.state;
        known.healthy = news.healthy;
        known.in_flight = news.in_flight;
        known.re_entry_unix_ms = news.re_entry_unix_ms;
        known.stats = news.stats;
    }
    for news in tick.routes {
        let Some(known) = snapshot.routes.iter_mut().find(|it| it.name == news.name) else {
            continue;
        };
        known.resolves_to = news.resolves_to;
        known.stats = news.stats;
        for (tier, news) in known.tiers.iter_mut().zip(news.tiers) {
            for (member, news) in tier.iter_mut().zip(news) {
                member.share_percent = news.share_percent;
                member.attempts = news.attempts;
                member.failures = news.failures;
                member.rps = news.rps;
            }
        }
    }
}

/// An event as a line, for a reader who has no screen to draw on; none for mere figures.
#[must_use]
pub fn line(event: &StreamEvent, look: Look) -> Option<String> {
    let arrow = look.arrow();
    match event.name.as_str() {
        "transition" => {
            let it: TransitionView = read(&event.data)?;
            let change = format!("{} {arrow} {}", it.from, it.to).replace('_', "-");
            let (at, backend) = (clock(it.at_unix_ms), calm(&it.backend));
            Some(format!("{at} {backend}  {change}  {}", calm(&it.detail)))
        }
        "moved" => {
            let it: MovedView = read(&event.data)?;
            let to = if it.to.is_empty() { "nothing".to_owned() } else { it.to.join(", ") };
            Some(format!("{} {}  goes to {}", clock(it.at_unix_ms), calm(&it.route), calm(&to)))
        }
        "decision" => {
            let it: DecisionShort = read(&event.data)?;
            let wide = Look { width: usize::MAX, ..look };
            crate::status::failover_line(&it, wide)
        }
        "action" => {
            let it: tidegate_journal::api::events::ActionView = read(&event.data)?;
            let (at, backend) = (clock(it.at_unix_ms), calm(&it.backend));
            let reason = if it.reason.is_empty() { "no reason given" } else { &it.reason };
            Some(format!("{at} {backend}  {} by an operator: {}", it.deed, calm(reason)))
        }
        "reload" => {
            let it: ReloadView = read(&event.data)?;
            let words = if it.ok { "the config was read again" } else { "a config was refused" };
            Some(format!("{} {words}, sha {} serves", clock(it.at_unix_ms), calm(&it.sha)))
        }
        "gap" => Some(
            "events are missing here: the gateway was restarted, or too much happened".to_owned(),
        ),
        _ => None,
    }
}
