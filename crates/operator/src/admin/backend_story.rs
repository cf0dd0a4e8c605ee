//! Why a backend is in its state: `POST /api/explain` with a backend, and the same for candidates.

use http::StatusCode;
use serde_json::Value;
use tidegate_core::explain::{Explanation, Verdict};
use tidegate_gateway::gateway::Gateway;
use tidegate_journal::{
    api::{explain::BackendStory, snapshot::BackendView},
    event::{Event, EventBody},
    question::Question,
};

use super::{Answer, error, json_of, snapshot, verdict::wait};

/// Changes of state that are told, the latest.
const CHANGES: usize = 20;
/// Requests that are told, the latest.
const RECENT: usize = 10;

/// Everything that is known of a backend.
pub(super) fn explain(gateway: &Gateway, id: &str) -> Answer {
    let Some(backend) = views(gateway).into_iter().find(|it| it.id == id) else {
        let message = format!("there is no backend `{id}`: `GET /api/snapshot` lists them");
        return error(StatusCode::NOT_FOUND, &message);
    };
    let renderer = gateway.journal.renderer();
    let (events, _) = gateway.journal.events();
    let provider = id.split_once('/').map_or("", |(provider, _)| provider);
    let concerns = |of: &str| {
        let key = of.split_once('#').map_or("", |(of, _)| of);
        of == id || (!provider.is_empty() && (of == provider || key == provider))
    };
    let newest = events.iter().rev();
    let change = |event: &std::sync::Arc<Event>| match &event.body {
        EventBody::Transition(it) if concerns(&it.backend) => {
            Some(renderer.transition(event.seq, it))
        }
        _ => None,
    };
    let action = |event: &std::sync::Arc<Event>| match &event.body {
        EventBody::Action(it) if concerns(&it.backend) => Some(renderer.action(event.seq, it)),
        _ => None,
    };
    let transitions: Vec<_> = newest.clone().filter_map(change).take(CHANGES).collect();
    let actions: Vec<_> = newest.filter_map(action).take(CHANGES).collect();
    let question = Question { backend: Some(id.to_owned()), limit: RECENT, ..Question::default() };
    let (found, _) = gateway.journal.decisions(&question);
    let recent: Vec<_> = found.iter().map(|(n, it)| renderer.short(*n, it)).collect();
    let sentence = sentence(gateway, &backend);
    json_of(&BackendStory { backend, transitions, actions, recent, sentence })
}

fn views(gateway: &Gateway) -> Vec<BackendView> {
    let live = gateway.live.load_full();
    let now = gateway.now();
    let core = live.core.snapshot(now);
    let figures = snapshot::figures(gateway, &live, &core, now);
    let shown = snapshot::shown(&core);
    shown.map(|it| snapshot::backend(gateway, &live, &figures, it, now)).collect()
}

fn sentence(gateway: &Gateway, it: &BackendView) -> String {
    let now = gateway.clock.unix_ms_of(gateway.now());
    let state = match it.standing.as_str() {
        "unconfigured" => "skipped, because no key of its provider can be resolved",
        "drained" => "drained by an operator",
        "held" => "held open by an operator",
        _ if it.state == "open" => "open",
        _ if it.state == "half_open" => "half-open: trials decide whether it closes",
        _ if it.healthy => "closed, and nothing stands against it",
        _ => "closed, but not usable at the moment",
    };
    let mut text = format!("{} is {state}", it.id);
    let since = now.saturating_sub(it.since_unix_ms) / 1000;
    text.push_str(&format!(", for {}", wait(since)));
    // Of what an operator does, the words above say it already.
    let is_leased = matches!(it.standing.as_str(), "drained" | "held");
    if let Some(why) = it.why.as_ref().filter(|_| !is_leased) {
        text.push_str(&format!(": {why}"));
    }
    text.push('.');
    if let Some(at) = it.re_entry_unix_ms {
        let seconds = at.saturating_sub(now).div_ceil(1000);
        text.push_str(&format!(" It is asked again in {}.", wait(seconds)));
    }
    if let Some(needs) = &it.needs {
        text.push_str(&format!(" It needs {needs} to close."));
    }
    text
}

/// Adds to each candidate of an explanation what stands against it in words, and since when.
pub(super) fn add_reasons(gateway: &Gateway, explanation: &Explanation, shown: &mut Value) {
    let renderer = gateway.journal.renderer();
    let views = views(gateway);
    let list = shown["explanation"]["candidates"].as_array_mut();
    for (candidate, value) in explanation.candidates.iter().zip(list.into_iter().flatten()) {
        let obstacles: Vec<_> = match &candidate.verdict {
            Verdict::Skipped(found) => found.iter().map(|it| renderer.obstacle(it)).collect(),
            Verdict::Chosen { .. } | Verdict::Held => Vec::new(),
        };
        let view = views.iter().find(|it| *it.id == *candidate.backend);
        value["obstacles"] = serde_json::to_value(obstacles).unwrap_or_default();
        value["why"] = view.and_then(|it| it.why.clone()).into();
        value["since_unix_ms"] = view.map(|it| it.since_unix_ms).into();
    }
}
