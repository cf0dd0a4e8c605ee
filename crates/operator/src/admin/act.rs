//! What an operator may change: the config, and for a while a backend.
//!
//! Rules kept here:
//! - What an operator does is logged with its reason, and ends by itself: after its `ttl` a drained
//!   backend is back, and a breaker that was held open is half-open. A drained backend is asked for
//!   nothing; one that is held open is still a last resort.
//! - A config that is not sound changes nothing; the answer says what is wrong and where.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use serde::Deserialize;
use serde_json::json;
use tidegate_config::{
    diagnostic::Diagnostic,
    duration,
    render::{Look, render},
    secret::Environment,
    source::{Source, read_file},
};
use tidegate_core::{
    hint::ACTION_MAX,
    snapshot::Reason,
    time::{Millis, Now},
    transition::Notes,
};
use tidegate_gateway::{
    gateway::Gateway,
    live::Live,
    prepare::StartError,
    provider::{Target, any_model},
    worker::Worker,
};
use tidegate_journal::event::{ActionRecord, EventBody, cut_reason};

use super::{Admin, Answer, error, paths::Deed, view::question};
use crate::{
    probe::{self, ProbeReply},
    reload::{self, ReloadCause},
};

/// Long enough to look at something, short enough to be forgotten about safely.
const TTL: Millis = Millis::minutes(10);

/// What the id of an MCP server begins with.
const SERVER: &str = "mcp:";

/// `POST /api/reload`.
pub(super) fn read_again(gateway: &Gateway, environment: &dyn Environment) -> Answer {
    let path = gateway.live.load().path.clone();
    let Some(path) = path else {
        return error(StatusCode::CONFLICT, "the built-in demo has no file that could be read");
    };
    let refused = |problems: Vec<String>| {
        let sha = gateway.live.load().fingerprint.clone();
        let body = json!({ "reloaded": false, "sha": sha, "problems": problems });
        (StatusCode::UNPROCESSABLE_ENTITY, body)
    };
    let source = match read_file(&path) {
        Ok(source) => source,
        Err(problem) => {
            reload::unreadable(gateway, &problem, ReloadCause::Api);
            return refused(vec![problem.to_string()]);
        }
    };
    match reload::reload(gateway, &source, environment, ReloadCause::Api) {
        Ok(done) => {
            let body = json!({
                "reloaded": true,
                "sha": done.fingerprint,
                "warnings": rendered(&source, &done.warnings),
                "changed": done.changed,
                "needs_restart": done.restart,
            });
            (StatusCode::OK, body)
        }
        Err(StartError::Config(problems)) => refused(rendered(&source, &problems)),
        Err(other) => refused(vec![other.to_string()]),
    }
}

fn rendered(source: &Source, diagnostics: &[Diagnostic]) -> Vec<String> {
    let look = Look { color: false, ascii: false };
    diagnostics.iter().map(|diagnostic| render(source, diagnostic, look)).collect()
}

/// What comes with an order.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Order {
    reason: String,
    ttl: Option<String>,
}

/// `POST /api/backends/{id}/…`.
pub(super) async fn backend(
    admin: &Admin,
    (deed, by): (Deed, &'static str),
    id: Option<&str>,
    body: &[u8],
) -> Answer {
    let id = id.unwrap_or_default();
    let order: Order = match question(body) {
        Ok(order) => order,
        Err(answer) => return answer,
    };
    let ttl = match order.ttl.as_deref().map_or(Ok(TTL), ttl_of) {
        Ok(ttl) => ttl,
        Err(problem) => return error(StatusCode::BAD_REQUEST, &format!("`ttl`: {problem}")),
    };
    let worker = &admin.worker;
    let gateway = &worker.gateway;
    let live = gateway.live.load_full();
    let now = gateway.now();
    let until = now.after(ttl);
    let mut answer = json!({ "backend": id, "done": deed.word() });
    let is_known = match deed {
        Deed::Drain => worker.with_notes(|notes| live.core.switch_off(now, id, Some(until), notes)),
        Deed::Reset => worker.with_notes(|notes| {
            live.core.switch_off(now, id, None, notes) && live.core.reset(now, id, notes)
        }),
        Deed::Resume => worker.with_notes(|notes| resume(&live, now, id, notes)),
        Deed::Hold => worker.with_notes(|notes| live.core.hold(now, id, until, notes)),
        Deed::Probe if id.starts_with(SERVER) => {
            let passed = (admin.probe_server)(id[SERVER.len()..].to_owned()).await;
            let word = passed.map(|passed| if passed { "passed" } else { "failed" });
            answer["result"] = word.into();
            word.is_some()
        }
        Deed::Probe => match target(&live, id) {
            None => false,
            Some(target) => {
                let Some(word) = probe(worker, target).await else {
                    let message = "there is no descriptor or port left to probe with";
                    return error(StatusCode::SERVICE_UNAVAILABLE, message);
                };
                answer["result"] = word.into();
                true
            }
        },
    };
    if !is_known {
        let message = format!("there is no backend `{id}`: `GET /api/snapshot` lists them");
        return error(StatusCode::NOT_FOUND, &message);
    }
    let until = ends_at(&live, now, id, deed);
    if let Some(until) = until {
        answer["until_unix_ms"] = gateway.clock.unix_ms_of(until).into();
    }
    gateway.changed.notify_one();
    let reason = Some(order.reason.as_str()).filter(|reason| !reason.is_empty());
    tracing::info!(backend = id, deed = deed.word(), reason, "an operator acted");
    let record = ActionRecord {
        at: now,
        deed: deed.word(),
        backend: id.into(),
        reason: cut_reason(&order.reason),
        until,
        result: ["passed", "failed"].into_iter().find(|it| answer["result"] == *it),
        by,
    };
    gateway.journal.event(now, EventBody::Action(Arc::new(record)));
    (StatusCode::OK, answer)
}

/// How long what an operator does may last.
fn ttl_of(text: &str) -> Result<Millis, String> {
    match duration::Duration::parse(text)?.millis() {
        Millis::ZERO => Err("a time of 0 changes nothing: write `10m`, for example".to_owned()),
        ttl if ttl > ACTION_MAX => {
            Err("at most `24h`: what is to last longer belongs into the config".to_owned())
        }
        ttl => Ok(ttl),
    }
}

/// When what an operator did ends. An earlier drain or hold that lasts longer is not cut short.
fn ends_at(live: &Live, now: Now, id: &str, deed: Deed) -> Option<Now> {
    let snapshot = live.core.snapshot(now);
    let backend = snapshot.backends.iter().find(|it| it.id == id)?;
    match deed {
        Deed::Drain => backend.switched_off.map(|it| it.until),
        Deed::Hold => backend.deadline,
        Deed::Reset | Deed::Probe | Deed::Resume => None,
    }
}

/// Ends what an operator began: a drain, and a hold. What stands against the backend by itself
/// stays.
fn resume(live: &Live, now: Now, id: &str, notes: &mut Notes) -> bool {
    let snapshot = live.core.snapshot(now);
    let held = snapshot.backends.iter().find(|it| it.id == id);
    let is_held = held.is_some_and(|it| it.reason == Some(Reason::Held));
    let is_known = live.core.switch_off(now, id, None, notes);
    if is_held { live.core.reset(now, id, notes) } else { is_known }
}

/// The target of this name, or any of the provider of this name.
fn target<'a>(live: &'a Live, id: &str) -> Option<&'a Arc<Target>> {
    live.target(id).or_else(|| live.target(&any_model(id)))
}

/// Probes the provider of a target at once; how it ended, if it got as far as the provider.
async fn probe(worker: &Rc<Worker>, target: &Arc<Target>) -> Option<&'static str> {
    let within = Duration::from_millis(target.provider.probe.timeout.0);
    let asking = probe::ask(Rc::clone(worker), Arc::clone(target));
    let reply = tokio::time::timeout(within, asking).await.unwrap_or(ProbeReply::Nothing);
    probe::learn(worker, worker.gateway.now(), target, reply);
    match reply {
        ProbeReply::Answer(_) => Some("passed"),
        ProbeReply::Nothing => Some("failed"),
        ProbeReply::OwnShortage => None,
    }
}
