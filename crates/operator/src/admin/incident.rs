//! `GET /api/incident`: the last minutes, exactly enough to play them again.

use std::collections::BTreeMap;

use http::StatusCode;
use tidegate_config::redact::{redacted, without_addresses};
use tidegate_core::time::{Millis, Now};
use tidegate_gateway::gateway::Gateway;
use tidegate_journal::{
    api::incident::{IncidentView, ProbeView, StartState},
    event::EventBody,
    journal::{Numbered, window},
    question::Question,
};

use super::{Answer, error, json_of, query::Query, snapshot::config_view};

/// The form of the document.
const VERSION: u32 = 1;
/// Requests of one document: some tens of megabytes of JSON.
const ARRIVALS_MAX: usize = 20_000;

/// `GET /api/incident`.
pub(super) fn incident(gateway: &Gateway, query: Option<&str>) -> Answer {
    let last = Query::read(query, &["last"]).and_then(|query| query.span("last"));
    match last {
        Ok(last) => json_of(&recorded(gateway, last.unwrap_or(window()))),
        Err(problem) => error(StatusCode::BAD_REQUEST, &problem),
    }
}

fn recorded(gateway: &Gateway, last: Millis) -> IncidentView {
    let (journal, clock, now) = (&gateway.journal, &gateway.clock, gateway.now());
    let wanted = Now(now.0.saturating_sub(last.0));
    let size = journal.size();
    let question = Question { since: Some(wanted), limit: ARRIVALS_MAX, ..Question::default() };
    let (mut found, is_cut) = journal.decisions(&question);
    found.sort_by_key(|(n, decision)| (decision.at, *n));
    let oldest = found.first().map_or(now, |(_, decision)| decision.at);
    let kept_from = if is_cut { oldest } else { size.complete_since };
    let from = wanted.max(kept_from);
    let (events, before) = journal.events();
    let renderer = journal.renderer();
    let mut start: BTreeMap<String, StartState> = BTreeMap::new();
    let mut note = |it: &tidegate_journal::event::TransitionRecord| {
        let until = it.until.filter(|until| *until != Now::NEVER).map(|until| until.0);
        let backend = it.backend.to_string();
        if matches!(it.to, "closed" | "usable") {
            start.remove(&backend);
        } else {
            let state = StartState { backend: backend.clone(), state: it.to.to_owned(), until };
            start.insert(backend, state);
        }
    };
    before.iter().for_each(|it| note(it));
    let (mut transitions, mut actions, mut reloads) = (Vec::new(), Vec::new(), Vec::new());
    for event in &events {
        match &event.body {
            EventBody::Transition(it) if it.at < from => note(it),
            EventBody::Transition(it) => transitions.push(renderer.transition(event.seq, it)),
            EventBody::Action(it) if it.at >= from => {
                actions.push(renderer.action(event.seq, it));
            }
            EventBody::Reload(it) if it.at >= from => {
                reloads.push(renderer.reload(event.seq, it));
            }
            _ => {}
        }
    }
    let arrived = |(_, decision): &&Numbered| decision.at >= from;
    let arrivals = found.iter().filter(arrived).map(|(n, it)| renderer.full(*n, it)).collect();
    let live = gateway.live.load_full();
    let file = serde_json::to_value(&live.file).unwrap_or_default();
    let probes = journal.probes(from).into_iter().map(|it| ProbeView {
        at: it.at.0,
        n: it.n,
        provider: it.provider.to_string(),
        status: it.status,
    });
    IncidentView {
        version: VERSION,
        from_unix_ms: clock.unix_ms_of(from),
        to_unix_ms: clock.unix_ms_of(now),
        base: from.0,
        config: config_view(&live),
        config_file: without_addresses(redacted("", file)),
        jitter_seed: Some(format!("{:016x}", live.core.jitter_seed())),
        start: start.into_values().collect(),
        arrivals,
        transitions,
        actions,
        reloads,
        probes: Some(probes.collect()),
        complete: from <= wanted,
        dropped: size.dropped,
    }
}
