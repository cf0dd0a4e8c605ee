//! `GET /api/snapshot`: the core's state with the journal's figures and reasons.

use std::collections::BTreeMap;

use serde_json::Value;
use tidegate_config::file::{HealthFile, ServerFile};
use tidegate_core::{
    breaker::State,
    snapshot::{BackendSnapshot, Reason, Snapshot},
    time::Now,
};
use tidegate_gateway::{
    caller::Caller,
    gateway::Gateway,
    live::Live,
    report,
    status::{self, InUse},
};
use tidegate_journal::{
    api::snapshot::{
        BackendStats, BackendView, ConfigView, GroupView, JournalView, McpView, RouteView,
        ServerView, SnapshotView,
    },
    event::TransitionRecord,
    figures::Figures,
    journal::window,
};

use super::{verdict, view::add_wall_times};

/// What the id of an MCP server's backend begins with.
pub(super) const SERVER: &str = "mcp:";

/// Takes a snapshot.
pub(super) fn take(gateway: &Gateway) -> SnapshotView {
    let live = gateway.live.load_full();
    let (clock, journal) = (&gateway.clock, &gateway.journal);
    let now = clock.now();
    let core = live.core.snapshot(now);
    let seq = journal.last_seq();
    let renderer = journal.renderer();
    let figures = figures(gateway, &live, &core, now);
    let status = status::overall(&live, &core, now, &Caller::own());
    let shown: Vec<&BackendSnapshot> = shown(&core).collect();
    let backends: Vec<BackendView> =
        shown.iter().map(|it| backend(gateway, &live, &figures, it, now)).collect();
    let routes = routes(gateway, &live, &figures, now);
    let size = journal.size();
    let reload = journal.last_reload();
    SnapshotView {
        at: now.0,
        at_unix_ms: clock.unix_ms_of(now),
        seq,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        instance: journal.instance().to_owned(),
        started_unix_ms: clock.unix_ms_of(Now::ZERO),
        window_ms: window().0,
        status: status.to_owned(),
        config: config_view(&live),
        last_reload: reload.map(|(seq, it)| renderer.reload(seq, &it)),
        verdict: verdict::of(status, clock.unix_ms_of(now), &figures, &backends, &routes),
        mcp: mcp(gateway, &live, &figures, &backends),
        totals: figures.totals,
        sessions: live.core.pin_count(),
        session_moves: figures.moves,
        backends,
        endpoints: values(&core.endpoints, gateway),
        keys: values(&core.keys, gateway),
        routes,
        callers: figures.callers,
        journal: JournalView {
            decisions: size.decisions,
            bytes: size.bytes,
            oldest_unix_ms: clock.unix_ms_of(size.complete_since),
            dropped: size.dropped,
            history: gateway.stores.history(),
            audit: gateway.stores.audit(),
            telemetry: gateway.stores.telemetry(),
        },
    }
}

pub(super) fn config_view(live: &Live) -> ConfigView {
    let file = live.path.as_ref().map(|path| path.display().to_string());
    ConfigView { sha: live.fingerprint.clone(), file }
}

/// The backends of the config.
pub(super) fn shown(core: &Snapshot) -> impl Iterator<Item = &BackendSnapshot> {
    core.backends.iter().filter(|it| !it.id.ends_with("/*"))
}

/// The figures of everything that a snapshot shows.
pub(super) fn figures(gateway: &Gateway, live: &Live, core: &Snapshot, now: Now) -> Figures {
    let routes = live.file.routes.iter();
    let routes = routes.map(|(name, route)| {
        let targets = route.tiers.iter().flatten().map(String::as_str).collect();
        (name.as_str(), targets)
    });
    let backends = shown(core).map(|it| it.id.as_str());
    Figures::read(&gateway.journal, (&gateway.clock, now), backends, routes)
}

fn values<T: serde::Serialize>(list: &[T], gateway: &Gateway) -> Vec<Value> {
    let value = |it: &T| {
        let mut value = serde_json::to_value(it).unwrap_or_default();
        add_wall_times(&mut value, &gateway.clock);
        value
    };
    list.iter().map(value).collect()
}

/// One backend.
pub(super) fn backend(
    gateway: &Gateway,
    live: &Live,
    figures: &Figures,
    it: &BackendSnapshot,
    now: Now,
) -> BackendView {
    let clock = &gateway.clock;
    let unix = |moment: Now| (moment != Now::NEVER).then(|| clock.unix_ms_of(moment));
    let value = |value: Option<Value>| {
        value.map(|mut value| {
            add_wall_times(&mut value, clock);
            value
        })
    };
    let in_use = InUse::of(live, it);
    let standing_until = match in_use {
        InUse::Active | InUse::Unconfigured => None,
        InUse::Drained => it.switched_off.map(|it| it.until),
        InUse::Held => it.deadline,
    };
    let story = story(gateway, it, now);
    let condition = live.core.condition(now, &it.id);
    let obstacles = condition.map(|it| it.obstacles).unwrap_or_default();
    let re_entry = obstacles.iter().filter_map(|it| it.re_entry());
    let re_entry = re_entry.chain(it.switched_off.map(|it| it.until));
    let re_entry = re_entry.filter(|at| *at > now && *at != Now::NEVER).min();
    let names = it.id.split_once('/').filter(|_| !it.id.starts_with(SERVER));
    let action = gateway.journal.last_action(&it.id);
    let is_leased = matches!(in_use, InUse::Drained | InUse::Held);
    let action = action.filter(|(_, action)| is_leased && action.until.is_some());
    let renderer = gateway.journal.renderer();
    BackendView {
        id: it.id.clone(),
        state: it.state.word().to_owned(),
        healthy: it.healthy,
        rank: it.rank.0,
        consecutive_failures: it.consecutive_failures,
        last_error: value(it.last_error.map(|it| serde_json::to_value(it).unwrap_or_default())),
        last_check: it.last_check.map(|at| at.0),
        last_check_unix_ms: it.last_check.map(|at| clock.unix_ms_of(at)),
        deadline: it.deadline.map(|at| at.0),
        deadline_unix_ms: it.deadline.and_then(unix),
        reason: it.reason.map(|it| serde_json::to_value(it).unwrap_or_default()),
        switched_off: value(it.switched_off.map(|it| serde_json::to_value(it).unwrap_or_default())),
        generation: it.generation,
        in_flight: it.in_flight,
        closed_since: it.closed_since.map(|at| at.0),
        closed_since_unix_ms: it.closed_since.map(|at| clock.unix_ms_of(at)),
        kind: if it.id.starts_with(SERVER) { "server" } else { "target" }.to_owned(),
        provider: names.map(|(provider, _)| provider.to_owned()),
        model: names.map(|(_, model)| model.to_owned()),
        standing: in_use.word().to_owned(),
        standing_reason: in_use.why().map(str::to_owned),
        standing_until_unix_ms: standing_until.and_then(unix),
        why: story.why,
        why_code: story.code.map(str::to_owned),
        since_unix_ms: clock.unix_ms_of(story.since),
        re_entry_unix_ms: re_entry.map(|at| clock.unix_ms_of(at)),
        needs: needs(live, it),
        action: action.map(|(seq, action)| renderer.action(seq, &action)),
        stats: figures.backends.get(&it.id).cloned().unwrap_or_default(),
    }
}

/// Why a backend is in its state, and since when.
struct Story {
    why: Option<String>,
    code: Option<&'static str>,
    since: Now,
}

fn story(gateway: &Gateway, it: &BackendSnapshot, now: Now) -> Story {
    let journal = &gateway.journal;
    let own = journal.latest(&it.id);
    let provider = it.id.split_once('/').map_or("", |(provider, _)| provider);
    let told = |record: &TransitionRecord, since: Now| Story {
        why: Some(record.detail.clone()),
        code: Some(record.reason),
        since,
    };
    if let Some(off) = &it.switched_off {
        let since = own.mark.filter(|it| it.to == "off").map_or(now, |it| it.at);
        let why = Some(report::mark_words(off.reason, None));
        return Story { why, code: Some(off.reason.word()), since };
    }
    if it.state != State::Closed {
        let is_open = |record: &&std::sync::Arc<TransitionRecord>| record.to == "open";
        let endpoint = journal.latest(provider).breaker;
        let own_open = own.breaker.as_ref().filter(is_open);
        let record = match it.reason {
            Some(Reason::EndpointOpen) => endpoint.as_ref().filter(is_open).or(own_open),
            _ => own_open.or(endpoint.as_ref().filter(is_open)),
        };
        let Some(record) = record else { return Story { why: None, code: None, since: now } };
        let half_open_at = record.until.filter(|_| it.state == State::HalfOpen);
        let since = half_open_at.filter(|at| *at <= now).unwrap_or(record.at);
        return told(record, since);
    }
    if let Some(Reason::Mark(reason)) = it.reason {
        let since = own.mark.as_ref().filter(|it| it.reason == reason.word()).map(|it| it.at);
        let error = it.last_error.map(|it| it.at);
        let status = it.last_error.and_then(|it| it.status);
        return Story {
            why: Some(report::mark_words(reason, status)),
            code: Some(reason.word()),
            since: since.or(error).unwrap_or(now),
        };
    }
    let healed = own.mark.filter(|it| it.to == "usable").map(|it| it.at);
    let since = it.closed_since.into_iter().chain(healed).max().unwrap_or(Now::ZERO);
    Story { why: None, code: None, since }
}

/// What closes a breaker, in words.
fn needs(live: &Live, it: &BackendSnapshot) -> Option<String> {
    if it.state == State::Closed {
        return None;
    }
    let file = &live.file;
    let mut layers: Vec<&HealthFile> = vec![&file.health];
    if let Some(server) = it.id.strip_prefix(SERVER) {
        layers.extend(file.mcp.servers.get(server).map(|it| &it.health));
    } else if let Some((provider, model)) = it.id.split_once('/') {
        let provider = file.providers.get(provider);
        layers.extend(provider.map(|it| &it.health));
        layers.extend(provider.and_then(|it| it.targets.get(model)).map(|it| &it.health));
    }
    let trials = HealthFile::resolve(&layers).recovery_threshold;
    Some(match trials {
        1 => "1 successful trial".to_owned(),
        _ => format!("{trials} successful trials in a row"),
    })
}

/// The routes with their tiers and figures.
pub(super) fn routes(
    gateway: &Gateway,
    live: &Live,
    figures: &Figures,
    now: Now,
) -> Vec<RouteView> {
    let pins: BTreeMap<&str, usize> =
        live.core.pin_counts(now).into_iter().map(|(name, count)| (&**name, count)).collect();
    let routes = status::routes_of(live, &gateway.clock, now, |_| true);
    routes.into_iter().filter_map(|route| with_figures(route, figures, &pins)).collect()
}

fn with_figures(
    mut route: Value,
    figures: &Figures,
    pins: &BTreeMap<&str, usize>,
) -> Option<RouteView> {
    let name = route["name"].as_str()?.to_owned();
    for member in route["tiers"].as_array_mut()?.iter_mut().filter_map(Value::as_array_mut) {
        for target in member.iter_mut().filter_map(Value::as_object_mut) {
            let id = target.get("target")?.as_str()?.to_owned();
            let stats = figures.members.get(&(name.clone(), id)).cloned().unwrap_or_default();
            target.insert("share_percent".to_owned(), stats.share_percent.into());
            target.insert("attempts".to_owned(), stats.attempts.into());
            target.insert("failures".to_owned(), stats.failures.into());
            target.insert("rps".to_owned(), stats.rps.into());
        }
    }
    let mut stats = figures.routes.get(&name).cloned().unwrap_or_default();
    stats.sessions = pins.get(name.as_str()).copied().unwrap_or(0) as u64;
    route["stats"] = serde_json::to_value(stats).ok()?;
    serde_json::from_value(route).ok()
}

fn mcp(gateway: &Gateway, live: &Live, figures: &Figures, backends: &[BackendView]) -> McpView {
    let file = &live.file.mcp;
    let server = |(name, file): (&String, &ServerFile)| {
        let id = format!("{SERVER}{name}");
        let known = backends.iter().find(|it| it.id == id);
        let nothing = BackendStats::default();
        let stats = figures.backends.get(&id).unwrap_or(&nothing);
        ServerView {
            name: name.clone(),
            state: known.map_or("closed", |it| &it.state).to_owned(),
            healthy: known.is_none_or(|it| it.healthy),
            transport: if file.url.is_some() { "http" } else { "stdio" }.to_owned(),
            tools: gateway.server_tools(name),
            calls: stats.attempts,
            failures: stats.failures,
            p50_ms: stats.p50_ms,
            p95_ms: stats.p95_ms,
            in_flight: known.map_or(0, |it| it.in_flight),
            backend: id,
        }
    };
    let groups = file
        .replicas
        .iter()
        .map(|(name, members)| GroupView { name: name.clone(), members: members.clone() });
    McpView {
        sessions: gateway.metrics.mcp_session_count(),
        servers: file.servers.iter().map(server).collect(),
        groups: groups.collect(),
        search_model: gateway.metrics.mcp_search_model_state().map(str::to_owned),
    }
}
