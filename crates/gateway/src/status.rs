//! What a gateway tells of itself on the data plane: health, routes, models, readiness.
//!
//! Pure functions from a config at work to JSON; nothing here touches a socket or changes
//! anything. Every answer is made from the core's snapshot and verdicts, so it cannot disagree
//! with what the next request will meet.
//!
//! Rules kept here:
//! - Backends are the config's: targets of routes and of `targets:`, and servers. What stands for
//!   all other models of a provider is not one of them.
//! - A caller sees the routes, targets and servers that it may use, and no others; the overall
//!   health it is told is that of what it sees.
//!
//! Left to others: `/health`, which says that the process lives and nothing else (S59).

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde_json::{Map, Value, json};
use tidegate_config::{file::RouteFile, glob};
use tidegate_core::{
    LastError,
    explain::{Explanation, Obstacle, Verdict},
    plan::RequestSpec,
    rank::Rank,
    route::Needs,
    snapshot::{BackendSnapshot, Reason, Snapshot},
    time::Now,
};
use tidegate_runtime::clock::Clock;
use tidegate_text::percent::decoded_name;
use tidegate_wire::{
    operation::needs_of_path,
    prospect::{CLIENT_DIALECTS, ClientDialect},
};

use super::guard::MODELS;
use crate::{caller::Caller, live::Live, log::rfc3339};

/// Where Gemini's clients ask about one model.
const GEMINI_MODELS: &str = "/v1beta/models/";

/// An answer: its status and its JSON.
pub type Answer = (StatusCode, Bytes);

/// Whether a path is one of those here.
pub fn is_path(path: &str) -> bool {
    ["/health", "/ready", "/v1/health", "/v1/routes", "/v1/models", "/v1beta/models"]
        .contains(&path)
        || path.starts_with(MODELS)
        || path.starts_with(GEMINI_MODELS)
}

/// Answers a `GET` of the paths here; `None` if the path is none of them.
pub fn get(
    live: &Live,
    clock: &Clock,
    path: &str,
    headers: &HeaderMap,
    caller: &Caller,
) -> Option<Answer> {
    let now = clock.now();
    let shape = Shape::of(path, headers);
    let found = match path {
        "/v1/health" => health(live, clock, now, caller),
        "/v1/routes" => routes(live, caller, clock, now),
        "/v1/models" | "/v1beta/models" => models(live, caller, shape),
        _ => {
            let id = path.strip_prefix(MODELS).or(path.strip_prefix(GEMINI_MODELS))?;
            let name = decoded_name(id).unwrap_or_else(|| id.to_owned());
            match model(live, caller, shape, &name) {
                Some(found) => found,
                None => return Some((StatusCode::NOT_FOUND, bytes(&shape.missing(&name)))),
            }
        }
    };
    Some((StatusCode::OK, bytes(&found)))
}

fn bytes(value: &Value) -> Bytes {
    value.to_string().into()
}

/// `GET /ready`: whether it makes sense to send requests here. Backends that are down do not
/// matter, since every replica has the same: a client is better off with an answer that says so.
pub fn ready(live: &Live, now: Now) -> Answer {
    let explained = |name: &String| explained(live, name, now);
    let has_candidate = |name: &String| explained(name).is_some_and(|it| it.rank.is_some());
    if !live.file.mcp.servers.is_empty() || live.file.routes.keys().any(has_candidate) {
        return (StatusCode::OK, bytes(&json!({ "status": "ready" })));
    }
    let reason = "no route has a target that is configured and switched on";
    let body = json!({ "status": "not_ready", "reason": reason });
    (StatusCode::SERVICE_UNAVAILABLE, bytes(&body))
}

/// `GET /v1/health`.
fn health(live: &Live, clock: &Clock, now: Now, caller: &Caller) -> Value {
    let snapshot = live.core.snapshot(now);
    let seen = shown(&snapshot).filter(|it| is_seen(live, caller, &it.id));
    let backends: Map<String, Value> =
        seen.map(|it| (it.id.clone(), backend(live, it, clock))).collect();
    let status = overall(live, &snapshot, now, caller);
    json!({ "status": status, "backends": backends })
}

/// Of what a caller may use. healthy: every backend is; degraded: every route still has a target
/// of rank 0; else unhealthy.
pub fn overall(live: &Live, snapshot: &Snapshot, now: Now, caller: &Caller) -> &'static str {
    let is_served = |name: &String| is_served(live, name, now);
    if !live.file.routes.keys().filter(|name| caller.may_use(name)).all(is_served) {
        "unhealthy"
    } else if shown(snapshot).filter(|it| is_seen(live, caller, &it.id)).all(|it| it.healthy) {
        "healthy"
    } else {
        "degraded"
    }
}

/// Whether a backend is one that a caller may use: a target of one of its routes, or one of its
/// servers, which may be known to it by the name of a group.
fn is_seen(live: &Live, caller: &Caller, backend: &str) -> bool {
    if let Some(server) = backend.strip_prefix(SERVER_PREFIX) {
        return caller.may_use_server(live.file.mcp.group_of(server).unwrap_or(server));
    }
    let has_target = |route: &RouteFile| route.tiers.iter().flatten().any(|it| it == backend);
    let mut routes = live.file.routes.iter();
    caller.may_use(backend) || routes.any(|(name, route)| caller.may_use(name) && has_target(route))
}

/// Whether a route has a target of rank 0 for clients of every dialect that it serves at all.
fn is_served(live: &Live, route: &str, now: Now) -> bool {
    let is_clear = |it: &Explanation| it.rank.is_some_and(Rank::is_clear);
    let is_clear_for = |client: ClientDialect| {
        let explained = explained_for(live, route, now, needs_of_path(client.path));
        explained.is_some_and(|it| is_clear(&it) || !has_able(&it))
    };
    explained(live, route, now).is_some_and(|it| is_clear(&it))
        && CLIENT_DIALECTS.into_iter().all(is_clear_for)
}

/// Whether some member could serve the request if nothing else stood against it.
fn has_able(explained: &Explanation) -> bool {
    let is_able = |verdict: &Verdict| match verdict {
        Verdict::Skipped(obstacles) => !obstacles.iter().any(|it| matches!(it, Obstacle::Lacks(_))),
        Verdict::Chosen { .. } | Verdict::Held => true,
    };
    explained.candidates.iter().any(|it| is_able(&it.verdict))
}

pub fn explained(live: &Live, route: &str, now: Now) -> Option<Explanation> {
    explained_for(live, route, now, Needs::default())
}

fn explained_for(live: &Live, route: &str, now: Now, needs: Needs) -> Option<Explanation> {
    let route = live.core.route(route)?;
    let spec = RequestSpec { needs, ..RequestSpec::default() };
    Some(live.core.explain(route, now, &spec, 0))
}

/// For clients of each dialect, the targets that their next request may be sent to first; empty
/// where it would be refused.
fn by_dialect(live: &Live, route: &str, now: Now) -> Map<String, Value> {
    let of = |client: ClientDialect| {
        let explained = explained_for(live, route, now, needs_of_path(client.path));
        let next = explained.as_ref().map(first_choices).unwrap_or_default();
        (client.word.to_owned(), json!(next))
    };
    CLIENT_DIALECTS.into_iter().map(of).collect()
}

/// What the id of an MCP server's backend begins with.
const SERVER_PREFIX: &str = "mcp:";

/// The backends of the config.
fn shown(snapshot: &Snapshot) -> impl Iterator<Item = &BackendSnapshot> {
    snapshot.backends.iter().filter(|it| !it.id.ends_with("/*"))
}

/// Whether a backend is in use, beside its health.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InUse {
    /// As its health allows.
    Active,
    /// Its provider has no usable key: it is skipped.
    Unconfigured,
    /// An operator drains it: it is skipped.
    Drained,
    /// An operator holds its breaker open.
    Held,
}

impl InUse {
    pub const ALL: [Self; 4] = [Self::Active, Self::Unconfigured, Self::Drained, Self::Held];

    pub fn of(live: &Live, it: &BackendSnapshot) -> Self {
        let provider = it.id.split_once('/').map_or("", |(provider, _)| provider);
        if live.unconfigured.contains(provider) {
            Self::Unconfigured
        } else if it.switched_off.is_some() {
            Self::Drained
        } else if it.reason == Some(Reason::Held) {
            Self::Held
        } else {
            Self::Active
        }
    }

    pub const fn word(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Unconfigured => "unconfigured",
            Self::Drained => "drained",
            Self::Held => "held",
        }
    }

    /// Why it is not in use.
    pub const fn why(self) -> Option<&'static str> {
        match self {
            Self::Active => None,
            Self::Unconfigured => Some("no key of its provider can be resolved"),
            Self::Drained => Some("an operator switched it off"),
            Self::Held => Some("an operator holds its breaker open"),
        }
    }
}

/// Why a backend is not in use, and until when, as fields of its own.
fn in_use(live: &Live, it: &BackendSnapshot, clock: &Clock) -> [(&'static str, Value); 3] {
    let in_use = InUse::of(live, it);
    let until = match in_use {
        InUse::Active | InUse::Unconfigured => None,
        InUse::Drained => it.switched_off.map(|it| it.until),
        InUse::Held => it.deadline,
    };
    let until = until.filter(|until| *until != Now::NEVER);
    [
        ("standing", in_use.word().into()),
        ("standing_reason", in_use.why().into()),
        ("standing_until_unix", until.map(|at| clock.unix_ms_of(at).div_ceil(1000)).into()),
    ]
}

fn backend(live: &Live, it: &BackendSnapshot, clock: &Clock) -> Value {
    let deadline = it.deadline.filter(|deadline| *deadline != Now::NEVER);
    let mut backend = json!({
        "state": it.state.word(),
        "healthy": it.healthy,
        "consecutive_failures": it.consecutive_failures,
        "last_error": it.last_error.as_ref().map(error_words),
        "last_check_unix": it.last_check.map(|at| clock.unix_ms_of(at) / 1000),
        // Rounded up: at the second that is told, it is over.
        "unhealthy_until_unix": deadline.map(|at| clock.unix_ms_of(at).div_ceil(1000)),
        "reason": it.reason.map(reason_word),
    });
    for (key, value) in in_use(live, it, clock) {
        backend[key] = value;
    }
    backend
}

fn error_words(error: &LastError) -> String {
    let word = error.outcome.map_or("probe_failed", |outcome| outcome.word());
    error.status.map_or_else(|| word.to_owned(), |status| format!("{word} ({status})"))
}

const fn reason_word(reason: Reason) -> &'static str {
    match reason {
        Reason::Mark(mark) => mark.word(),
        Reason::BreakerOpen => "breaker_open",
        Reason::Held => "held",
        Reason::EndpointOpen => "endpoint_open",
    }
}

/// `GET /v1/routes`: what each name resolves to at this moment.
fn routes(live: &Live, caller: &Caller, clock: &Clock, now: Now) -> Value {
    json!({ "routes": routes_of(live, clock, now, |name| caller.may_use(name)) })
}

/// The routes that `may_see` lets through.
pub fn routes_of(
    live: &Live,
    clock: &Clock,
    now: Now,
    may_see: impl Fn(&str) -> bool,
) -> Vec<Value> {
    let snapshot = live.core.snapshot(now);
    let health: BTreeMap<&str, &BackendSnapshot> =
        snapshot.backends.iter().map(|it| (it.id.as_str(), it)).collect();
    let routes = live.file.routes.iter().filter(|(name, _)| may_see(name));
    routes.map(|(name, file)| route(live, (clock, now), (name, file), &health)).collect()
}

/// The targets that the next request of a route may be sent to first.
pub fn first_choices(explained: &Explanation) -> Vec<&str> {
    let is_chosen = |verdict: &Verdict| matches!(verdict, Verdict::Chosen { .. });
    let candidates = &explained.candidates;
    let tier = candidates.iter().find(|it| is_chosen(&it.verdict)).map(|it| it.tier);
    let may_be_next = |verdict: &Verdict| !matches!(verdict, Verdict::Skipped(_));
    let next = candidates.iter().filter(|it| Some(it.tier) == tier && may_be_next(&it.verdict));
    next.map(|it| &*it.backend).collect()
}

fn route(
    live: &Live,
    (clock, now): (&Clock, Now),
    (name, file): (&String, &RouteFile),
    health: &BTreeMap<&str, &BackendSnapshot>,
) -> Value {
    let explained = explained(live, name, now);
    let next = explained.as_ref().map(first_choices).unwrap_or_default();
    let target = |id: &String| {
        let known = health.get(id.as_str());
        let mut target = json!({
            "target": id,
            "state": known.map(|it| it.state.word()),
            "healthy": known.map(|it| it.healthy),
            "reason": known.and_then(|it| it.reason).map(reason_word),
        });
        for (key, value) in known.into_iter().flat_map(|it| in_use(live, it, clock)) {
            target[key] = value;
        }
        target
    };
    let tiers: Vec<Vec<Value>> =
        file.tiers.iter().map(|tier| tier.iter().map(target).collect()).collect();
    json!({
        "name": name,
        "about": file.about,
        "match": file.matches,
        "pick": file.pick,
        "is_default": live.file.default_route.as_ref() == Some(name),
        // One of these is asked first; which one is up to the tactic.
        "resolves_to": next,
        // The same for clients of each dialect: a target that can serve some may not serve all.
        "resolves_by_dialect": by_dialect(live, name, now),
        "rank": explained.as_ref().and_then(|it| it.rank),
        "tiers": tiers,
    })
}

/// `GET /v1/models`: routes and known targets, in the shape of the client's SDK.
fn models(live: &Live, caller: &Caller, shape: Shape) -> Value {
    let names: Vec<(String, String)> = names(live, caller);
    let data: Vec<Value> = names.iter().map(|(id, owner)| shape.model(id, owner)).collect();
    match shape {
        Shape::Openai => json!({ "object": "list", "data": data }),
        Shape::Anthropic => json!({
            "data": data,
            "has_more": false,
            "first_id": names.first().map(|(id, _)| id),
            "last_id": names.last().map(|(id, _)| id),
        }),
        Shape::Google => json!({ "models": data }),
    }
}

/// `GET /v1/models/{id}`; `None` if there is no such model for this caller. A name that only the
/// default route takes is not one that exists.
fn model(live: &Live, caller: &Caller, shape: Shape, id: &str) -> Option<Value> {
    let listed = names(live, caller).into_iter().find(|(known, _)| known == id);
    if let Some((id, owner)) = listed {
        return Some(shape.model(&id, &owner));
    }
    let fits = |pattern: &String| glob::parse(pattern).is_ok_and(|glob| glob.matches(id));
    let matching = live.file.routes.iter().find(|(_, route)| route.matches.iter().any(fits));
    matching.filter(|(name, _)| caller.may_use(name)).map(|_| shape.model(id, OURS))
}

/// The owner of a route.
const OURS: &str = "tidegate";

/// What can be asked for, with its owner: routes first, each name once.
fn names(live: &Live, caller: &Caller) -> Vec<(String, String)> {
    let routes = live.file.routes.keys().map(|name| (name.clone(), OURS.to_owned()));
    let ids = live.core.backends().iter().map(|it| it.id().to_string());
    let targets = ids.filter_map(|id| {
        let owner = id.split_once('/').map(|(provider, _)| provider.to_owned())?;
        let is_target = live.target(&id).is_some_and(|target| target.model.is_some());
        let is_route = live.file.routes.contains_key(&id);
        (is_target && !is_route).then_some((id, owner))
    });
    routes.chain(targets).filter(|(id, _)| caller.may_use(id)).collect()
}

/// Whose SDK asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Openai,
    Anthropic,
    Google,
}

impl Shape {
    fn of(path: &str, headers: &HeaderMap) -> Self {
        // Google's newer SDKs ask below `/v1/` too, and are known by the headers of their own.
        let names_google = |name: &str| headers.contains_key(name);
        let is_googles = ["x-goog-api-client", "x-goog-api-key"].into_iter().any(names_google);
        if path.starts_with("/v1beta/") || is_googles {
            Self::Google
        } else if headers.contains_key("anthropic-version") {
            Self::Anthropic
        } else {
            Self::Openai
        }
    }

    fn missing(self, id: &str) -> Value {
        let message = format!("model `{id}` does not exist: `GET /v1/models` lists those that do");
        match self {
            Self::Openai => json!({ "error": {
                "message": message,
                "type": "invalid_request_error",
                "param": "model",
                "code": "model_not_found",
            }}),
            Self::Anthropic => json!({
                "type": "error",
                "error": { "type": "not_found_error", "message": message },
            }),
            Self::Google => json!({ "error": {
                "code": 404, "message": message, "status": "NOT_FOUND",
            }}),
        }
    }

    fn model(self, id: &str, owner: &str) -> Value {
        // When a model was made is not known here, and both SDKs want a time.
        match self {
            Self::Openai => {
                json!({ "id": id, "object": "model", "created": 0, "owned_by": owner })
            }
            Self::Anthropic => {
                json!({ "type": "model", "id": id, "display_name": id, "created_at": rfc3339(0) })
            }
            // The SDKs take the name as it is for a request.
            Self::Google => json!({
                "name": format!("models/{id}"), "displayName": id, "version": "",
                "description": format!("served by {owner}"),
                "supportedGenerationMethods":
                    ["generateContent", "streamGenerateContent", "countTokens"],
            }),
        }
    }
}

#[cfg(test)]
mod tests;
