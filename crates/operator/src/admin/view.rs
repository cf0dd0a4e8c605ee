//! What the admin listener shows: the state of everything, and where a request would go.
//!
//! Times of the core count from the gateway's start; next to each, under the same name with
//! `_unix_ms`, stands the wall-clock time. A moment that never comes is null there.

use http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tidegate_core::{plan::RequestSpec, route::Needs, time::Now};
use tidegate_gateway::{caller::Caller, live::Live, status};
use tidegate_mcp::health;
use tidegate_runtime::{clock::Clock, rng};
use tidegate_wire::operation::needs_of_path;

use super::{Answer, error};

/// What a browser sees until there is a dashboard.
pub(super) const PAGE: &str = "\
tidegate

The dashboard is not built yet. What there is:
  GET  /metrics          Prometheus metrics
  GET  /api/snapshot     the state of everything, as JSON
  POST /api/explain      {\"model\": \"...\"} or {\"server\": \"...\"}: where a request would go
  POST /api/reload       read the config file again (needs the admin token)
";

/// Fields of the core that hold a moment.
const MOMENTS: &[&str] = &["at", "last_check", "deadline", "closed_since", "until", "free_from"];

/// `GET /api/snapshot`.
pub(super) fn snapshot(live: &Live, clock: &Clock) -> Answer {
    let now = clock.now();
    let core = live.core.snapshot(now);
    let status = status::overall(live, &core, now, &Caller::own());
    let Ok(Value::Object(mut shown)) = serde_json::to_value(&core) else {
        return error(StatusCode::INTERNAL_SERVER_ERROR, "the snapshot cannot be written");
    };
    shown.insert("status".to_owned(), status.into());
    shown.insert("version".to_owned(), env!("CARGO_PKG_VERSION").into());
    let file = live.path.as_ref().map(|path| path.display().to_string());
    shown.insert("config".to_owned(), json!({ "sha": live.fingerprint, "file": file }));
    shown.insert("started_unix_ms".to_owned(), clock.unix_ms_of(Now::ZERO).into());
    shown.insert("sessions".to_owned(), live.core.pin_count().into());
    shown.insert("routes".to_owned(), status::routes_of(live, clock, now, |_| true).into());
    let mut shown = Value::Object(shown);
    add_wall_times(&mut shown, clock);
    (StatusCode::OK, shown)
}

/// What may be asked about.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Question {
    model: Option<String>,
    /// An MCP server, or a group of them, in place of a model.
    server: Option<String>,
    session: String,
    caller: String,
    tools: bool,
    vision: bool,
    context: u64,
    /// The endpoint, such as `/v1/responses`.
    path: Option<String>,
}

/// `POST /api/explain`.
pub(super) fn explain(live: &Live, clock: &Clock, body: &[u8]) -> Answer {
    let question: Question = match question(body) {
        Ok(question) => question,
        Err(answer) => return answer,
    };
    if let Some(server) = &question.server {
        return explain_server(live, clock, server);
    }
    let resolved = match live.resolve(question.model.as_deref()) {
        Ok(resolved) => resolved,
        Err(missing) => return error(StatusCode::NOT_FOUND, &missing.to_string()),
    };
    let ask = RequestSpec {
        caller: &question.caller,
        session: &question.session,
        needs: Needs {
            tools: question.tools,
            vision: question.vision,
            context: question.context,
            ..question.path.as_deref().map(needs_of_path).unwrap_or_default()
        },
        ..RequestSpec::default()
    };
    let explanation = live.core.explain(resolved.route, clock.now(), &ask, rng::draw());
    let mut shown = json!({
        "model": question.model,
        "route": resolved.label(),
        "asked_model": resolved.model,
        "explanation": serde_json::to_value(&explanation).unwrap_or_default(),
    });
    add_wall_times(&mut shown, clock);
    (StatusCode::OK, shown)
}

/// Which server a new session's call would go to, and why.
fn explain_server(live: &Live, clock: &Clock, server: &str) -> Answer {
    let Some(route) = live.core.route(&health::route_name(server)) else {
        let message = format!("no MCP server, and no group of them, is named `{server}`");
        return error(StatusCode::NOT_FOUND, &message);
    };
    let explanation = live.core.explain(route, clock.now(), &RequestSpec::default(), rng::draw());
    let mut shown = json!({
        "server": server,
        "explanation": serde_json::to_value(&explanation).unwrap_or_default(),
    });
    add_wall_times(&mut shown, clock);
    (StatusCode::OK, shown)
}

/// The JSON of a body; nothing at all is an empty object.
pub(super) fn question<T: Default + for<'a> Deserialize<'a>>(body: &[u8]) -> Result<T, Answer> {
    if body.trim_ascii().is_empty() {
        return Ok(T::default());
    }
    // By way of an object: a list of the values alone, which serde would take, is too easy to get
    // wrong.
    let object = serde_json::from_slice::<Map<String, Value>>(body);
    object.and_then(|object| serde_json::from_value(object.into())).map_err(|problem| {
        let message = format!("the body is not the JSON that is taken here: {problem}");
        error(StatusCode::BAD_REQUEST, &message)
    })
}

fn add_wall_times(value: &mut Value, clock: &Clock) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| add_wall_times(item, clock)),
        Value::Object(object) => {
            object.values_mut().for_each(|value| add_wall_times(value, clock));
            add_to(object, clock);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn add_to(object: &mut Map<String, Value>, clock: &Clock) {
    for name in MOMENTS {
        let Some(moment) = object.get(*name).and_then(Value::as_u64) else { continue };
        let comes = Some(Now(moment)).filter(|moment| *moment != Now::NEVER);
        let wall = comes.map(|moment| clock.unix_ms_of(moment));
        object.insert(format!("{name}_unix_ms"), json!(wall));
    }
}
