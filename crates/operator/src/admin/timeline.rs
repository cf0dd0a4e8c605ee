//! `GET /api/timeline`: one lane per backend, of states over time.
//!
//! A lane is worked out from the recorded changes. Half-open is a matter of reading, so no change
//! tells of it: an open breaker is half-open from its deadline on. Where several things stand
//! against a backend at once, the lane shows the heaviest: switched off, open or half-open (its own
//! breaker or its endpoint's, the worse), excluded, inside a window.

use http::StatusCode;
use std::sync::Arc;
use tidegate_core::time::Now;
use tidegate_gateway::gateway::Gateway;
use tidegate_journal::{
    api::timeline::{LaneView, MarkView, StateSpan, TimelineView},
    event::{Event, EventBody, TransitionRecord},
    figures::Figures,
    journal::window,
};

use super::{Answer, error, json_of, query::Query, snapshot::SERVER};

const BUCKET_MS: u64 = 10_000;

/// `GET /api/timeline`.
pub(super) fn timeline(gateway: &Gateway, query: Option<&str>) -> Answer {
    let query = Query::read(query, &["since", "buckets"]);
    let since = query.and_then(|it| it.moment("since", &gateway.clock, gateway.now()));
    match since {
        Ok(since) => json_of(&lanes(gateway, since)),
        Err(problem) => error(StatusCode::BAD_REQUEST, &problem),
    }
}

fn lanes(gateway: &Gateway, since: Option<Now>) -> TimelineView {
    let (clock, now) = (&gateway.clock, gateway.now());
    let live = gateway.live.load_full();
    let core = live.core.snapshot(now);
    let oldest = Now(now.0.saturating_sub(window().0));
    // Buckets begin at multiples of their width.
    let from = since.unwrap_or(oldest).max(oldest);
    let first_bucket = from.0 / BUCKET_MS;
    let buckets = (now.0 / BUCKET_MS - first_bucket + 1) as usize;
    let from = Now(first_bucket * BUCKET_MS);
    let (events, before) = gateway.journal.events();
    let changes: Vec<Arc<TransitionRecord>> =
        before.into_iter().chain(events.iter().filter_map(change)).collect();
    let targets: Vec<&str> = super::snapshot::shown(&core).map(|it| it.id.as_str()).collect();
    let (counts, [requests, failures, hops]) =
        Figures::lanes(&gateway.journal, now, targets.iter().copied());
    let tail = |list: &[u64]| list[list.len().saturating_sub(buckets)..].to_vec();
    let lane = |id: &str, kind: &str| {
        let (attempts, failures) = counts.get(id).cloned().unwrap_or_default();
        let spans = states(&changes, id, (from, now));
        LaneView {
            id: id.to_owned(),
            kind: kind.to_owned(),
            states: spans.iter().map(|it| it.view(clock)).collect(),
            attempts: tail(&attempts),
            failures: tail(&failures),
        }
    };
    let kind = |id: &str| if id.starts_with(SERVER) { "server" } else { "target" };
    let mut lanes: Vec<LaneView> = targets.iter().map(|id| lane(id, kind(id))).collect();
    lanes.extend(core.endpoints.iter().map(|it| lane(&it.id, "endpoint")));
    TimelineView {
        from_unix_ms: clock.unix_ms_of(from),
        to_unix_ms: clock.unix_ms_of(now),
        bucket_ms: BUCKET_MS,
        lanes,
        client_failures: tail(&failures),
        requests: tail(&requests),
        hops: tail(&hops),
        marks: events
            .iter()
            .filter(|it| it.at >= from)
            .filter_map(|it| mark(it, gateway))
            .collect(),
    }
}

fn change(event: &Arc<Event>) -> Option<Arc<TransitionRecord>> {
    match &event.body {
        EventBody::Transition(it) => Some(Arc::clone(it)),
        _ => None,
    }
}

fn mark(event: &Arc<Event>, gateway: &Gateway) -> Option<MarkView> {
    let (kind, text, ok) = match &event.body {
        EventBody::Reload(it) if it.is_taken => {
            ("reload", format!("config reloaded (sha {})", it.sha), true)
        }
        EventBody::Reload(it) => {
            let count = it.problems.len();
            ("reload", format!("config refused ({count} problems)"), false)
        }
        EventBody::Action(it) => {
            let reason = if it.reason.is_empty() { "" } else { ": " };
            ("action", format!("{} {}{reason}{}", it.deed, it.backend, it.reason), true)
        }
        EventBody::Moved(it) => {
            let to = if it.to.is_empty() { "nothing".to_owned() } else { it.to.join(", ") };
            ("moved", format!("{} → {to}", it.route), true)
        }
        EventBody::Transition(_) | EventBody::Decision(..) | EventBody::Security(_) => return None,
    };
    let at_unix_ms = gateway.clock.unix_ms_of(event.at);
    Some(MarkView { at_unix_ms, kind: kind.to_owned(), text, ok })
}

/// A state from a moment to another.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Span {
    from: Now,
    to: Now,
    state: &'static str,
    record: Option<Arc<TransitionRecord>>,
}

impl Span {
    fn view(&self, clock: &tidegate_runtime::clock::Clock) -> StateSpan {
        StateSpan {
            state: self.state.to_owned(),
            from_unix_ms: clock.unix_ms_of(self.from),
            to_unix_ms: clock.unix_ms_of(self.to),
            reason: self.record.as_ref().map(|it| it.reason.to_owned()),
            detail: self.record.as_ref().map(|it| it.detail.clone()),
        }
    }
}

/// The heavier a state, the larger.
fn weight(state: &str) -> u8 {
    match state {
        "off" => 5,
        "open" => 4,
        "half_open" => 3,
        "excluded" => 2,
        "window" => 1,
        _ => 0,
    }
}

/// The states of a backend between two moments, without a gap.
fn states(changes: &[Arc<TransitionRecord>], id: &str, (from, to): (Now, Now)) -> Vec<Span> {
    let provider = id.split_once('/').map_or("", |(provider, _)| provider);
    let of = |wanted: &str, scope: &str, is_breaker: bool| -> Vec<Arc<TransitionRecord>> {
        let is_it = |it: &&Arc<TransitionRecord>| {
            &*it.backend == wanted && it.scope == scope && it.is_breaker == is_breaker
        };
        changes.iter().filter(is_it).map(Arc::clone).collect()
    };
    let own_scope = if changes.iter().any(|it| &*it.backend == id && it.scope == "endpoint") {
        "endpoint"
    } else {
        "backend"
    };
    let mut spans = breaker_spans(&of(id, own_scope, true), to);
    spans.extend(breaker_spans(&of(provider, "endpoint", true), to));
    spans.extend(mark_spans(&of(id, own_scope, false), to));
    merged(&spans, (from, to))
}

/// The spans in which a breaker was not closed.
fn breaker_spans(changes: &[Arc<TransitionRecord>], end: Now) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut open: Option<(Now, Now, Arc<TransitionRecord>)> = None;
    let mut close = |open: Option<(Now, Now, Arc<TransitionRecord>)>, at: Now| {
        let Some((since, until, record)) = open else { return };
        let half_open_at = until.min(at);
        let record = Some(record);
        spans.push(Span { from: since, to: half_open_at, state: "open", record: record.clone() });
        if half_open_at < at {
            spans.push(Span { from: half_open_at, to: at, state: "half_open", record });
        }
    };
    for it in changes {
        let until = it.until.unwrap_or(Now::NEVER);
        match (it.to, &mut open) {
            // A failing probe moves the deadline.
            ("open", Some((_, known, _))) if it.from == "open" => *known = until,
            ("open", _) => close(open.replace((it.at, until, Arc::clone(it))), it.at),
            _ => close(open.take(), it.at),
        }
    }
    close(open, end);
    spans
}

/// The spans of windows, exclusions and switches.
fn mark_spans(changes: &[Arc<TransitionRecord>], end: Now) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for it in changes {
        if it.to == "usable" {
            let ended = spans.iter_mut().filter(|span| span.state == it.from && span.to > it.at);
            ended.for_each(|span| span.to = it.at);
        } else {
            let to = it.until.unwrap_or(Now::NEVER).min(end);
            let record = Some(Arc::clone(it));
            spans.push(Span { from: it.at, to, state: it.to, record });
        }
    }
    spans
}

/// The heaviest of all spans at each moment.
fn merged(spans: &[Span], (from, to): (Now, Now)) -> Vec<Span> {
    let mut cuts: Vec<Now> = spans.iter().flat_map(|it| [it.from, it.to]).collect();
    cuts.retain(|cut| from < *cut && *cut < to);
    cuts.extend([from, to]);
    cuts.sort_unstable();
    cuts.dedup();
    let mut merged: Vec<Span> = Vec::new();
    for (start, end) in cuts.iter().zip(cuts.iter().skip(1)) {
        let at_work = spans.iter().filter(|it| it.from <= *start && *end <= it.to);
        let heaviest = at_work.max_by_key(|it| weight(it.state));
        let (state, record) = heaviest.map_or(("closed", None), |it| (it.state, it.record.clone()));
        match merged.last_mut() {
            Some(last) if last.state == state && last.record == record => last.to = *end,
            _ => merged.push(Span { from: *start, to: *end, state, record }),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(at: u64, from: &'static str, to: &'static str, until: u64) -> Arc<TransitionRecord> {
        Arc::new(TransitionRecord {
            at: Now(at),
            backend: "a/b".into(),
            scope: "backend",
            from,
            to,
            reason: "r",
            detail: String::new(),
            until: Some(Now(until)),
            weight: "news",
            generation: None,
            evidence: None,
            status: None,
            key: None,
            is_breaker: matches!(to, "open" | "closed"),
        })
    }

    fn check(changes: &[Arc<TransitionRecord>], expected: &[(u64, &str)]) {
        let spans = states(changes, "a/b", (Now(0), Now(100)));
        let shown: Vec<(u64, &str)> = spans.iter().map(|it| (it.from.0, it.state)).collect();
        assert_eq!(shown, expected);
        let is_joined = spans.windows(2).all(|pair| pair[0].to == pair[1].from);
        assert!(is_joined && spans.last().is_some_and(|it| it.to == Now(100)), "{spans:?}");
    }

    #[test]
    fn a_lane_is_half_open_from_the_deadline_and_has_no_gap() {
        check(&[], &[(0, "closed")]);
        let opened = record(10, "closed", "open", 40);
        check(&[Arc::clone(&opened)], &[(0, "closed"), (10, "open"), (40, "half_open")]);
        let closed = record(60, "half_open", "closed", 0);
        let expected = [(0, "closed"), (10, "open"), (40, "half_open"), (60, "closed")];
        check(&[Arc::clone(&opened), closed], &expected);
        let extended = record(30, "open", "open", 55);
        check(&[Arc::clone(&opened), extended], &[(0, "closed"), (10, "open"), (55, "half_open")]);
        let reopened = record(50, "half_open", "open", 200);
        let expected = [(0, "closed"), (10, "open"), (40, "half_open"), (50, "open")];
        check(&[opened, reopened], &expected);
    }

    #[test]
    fn the_heaviest_state_is_shown_and_a_mark_ends_early_when_it_heals() {
        let window = record(5, "usable", "window", 80);
        let opened = record(10, "closed", "open", 40);
        let closed = record(40, "half_open", "closed", 0);
        let expected = [(0, "closed"), (5, "window"), (10, "open"), (40, "window"), (80, "closed")];
        check(&[Arc::clone(&window), opened, closed], &expected);
        let off = record(20, "usable", "off", 90);
        let on = record(30, "off", "usable", 0);
        let expected = [(0, "closed"), (5, "window"), (20, "off"), (30, "window"), (80, "closed")];
        check(&[window, off, on], &expected);
    }
}
