//! Where a request would go, and why.
//!
//! Times of the core count from the gateway's start; next to each, under the same name with
//! `_unix_ms`, stands the wall-clock time. A moment that never comes is null there.

use std::sync::Arc;

use http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tidegate_core::{
    core::Core,
    explain::{Explanation, Verdict},
    plan::RequestSpec,
    route::{Needs, Route},
    time::Now,
    wire_format::{SentAs, WireFormat},
};
use tidegate_gateway::{gateway::Gateway, live::Live};
use tidegate_mcp::health;
use tidegate_runtime::{clock::Clock, rng};
use tidegate_wire::{
    convert::{
        exchange::{ConvertedCall, convert},
        fault::RequestFault,
    },
    gemini::GeminiCall,
    head::RequestHead,
    json::Fault,
    operation::needs_of_path,
};

use super::{Answer, backend_story, error};

/// Fields of the core that hold a moment.
const MOMENTS: &[&str] = &["at", "last_check", "deadline", "closed_since", "until", "free_from"];

/// What may be asked about.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Question {
    model: Option<String>,
    /// An MCP server, or a group of them, in place of a model.
    server: Option<String>,
    /// A backend in place of a model: why it is in its state.
    backend: Option<String>,
    session: String,
    caller: String,
    tools: bool,
    vision: bool,
    documents: bool,
    json_schema: bool,
    reasoning: bool,
    context: u64,
    /// The endpoint, such as `/v1/responses`.
    path: Option<String>,
    /// The body of a request, read as the data plane reads it: what it needs, its model, its
    /// session and the state that it refers to.
    request: Option<Map<String, Value>>,
}

impl Question {
    /// What the fields say that a target must be able to do.
    fn needs(&self) -> Needs {
        Needs {
            tools: self.tools,
            vision: self.vision,
            documents: self.documents,
            json_schema: self.json_schema,
            reasoning: self.reasoning,
            context: self.context,
            ..Needs::default()
        }
    }
}

/// The endpoint of a request that names none.
const CHAT: &str = "/v1/chat/completions";

/// Reads a body as the data plane does.
fn head_of<'a>(path: &'a str, body: &'a [u8]) -> Result<RequestHead<'a>, Fault> {
    match GeminiCall::of_path(path) {
        Some(call) => RequestHead::read_gemini(body, &call),
        None => RequestHead::read(body),
    }
}

/// `POST /api/explain`.
pub(super) fn explain(gateway: &Gateway, body: &[u8]) -> Answer {
    let (live, clock) = (&*gateway.live.load_full(), &gateway.clock);
    let question: Question = match question(body) {
        Ok(question) => question,
        Err(answer) => return answer,
    };
    if let Some(server) = &question.server {
        return explain_server(gateway, live, server);
    }
    if let Some(backend) = &question.backend {
        return backend_story::explain(gateway, backend);
    }
    let body = question.request.as_ref().map(|it| Value::Object(it.clone()).to_string());
    let path = question.path.as_deref().or(body.is_some().then_some(CHAT));
    let head = match body.as_ref().map(|body| head_of(path.unwrap_or(CHAT), body.as_bytes())) {
        Some(Err(fault)) => return error(StatusCode::BAD_REQUEST, &fault.to_string()),
        Some(Ok(head)) => Some(head),
        None => None,
    };
    let named = head.as_ref().and_then(|it| it.model.as_ref()).map(|it| &*it.name);
    let asked = question.model.as_deref().or(named);
    let resolved = match live.resolve(asked) {
        Ok(resolved) => resolved,
        Err(missing) => return error(StatusCode::NOT_FOUND, &missing.to_string()),
    };
    let ask = RequestSpec {
        caller: &question.caller,
        session: match (&*question.session, &head) {
            ("", Some(head)) => head.session.as_deref().unwrap_or_default(),
            (session, _) => session,
        },
        needs: path
            .map(needs_of_path)
            .unwrap_or_default()
            .and_of_body(head.as_ref().map_or_else(|| question.needs(), |it| it.needs)),
        state_id: head.as_ref().and_then(|it| it.state_id.as_deref()).unwrap_or_default(),
        ..RequestSpec::default()
    };
    let converts = |format: WireFormat, backend: &str| match (&body, live.target(backend)) {
        (Some(body), Some(target)) => {
            let path = path.unwrap_or(CHAT);
            let profile = target.profile(resolved.model);
            let now_unix_s = clock.unix_ms() / 1000;
            convert(path, body.as_bytes(), format, &profile, now_unix_s).map(Some)
        }
        _ => Ok(None),
    };
    let draw = rng::draw();
    let explained = explain_request(&live.core, resolved.route, clock.now(), ask, draw, converts);
    let ExplainedRequest { explanation, conversion, refusal } = explained;
    let lost = |it: ConvertedCall| {
        let fields = it.notes.as_slice().iter().map(|note| note.field.clone());
        json!({ "pair": it.pair, "lost": fields.collect::<Vec<_>>() })
    };
    let mut shown = json!({
        "model": asked,
        "route": resolved.label(),
        "asked_model": resolved.model,
        "explanation": serde_json::to_value(&explanation).unwrap_or_default(),
        "conversion": conversion.map(lost),
        "unconvertible": refusal.map(|it| it.to_string()),
    });
    add_wall_times(&mut shown, clock);
    backend_story::add_reasons(gateway, &explanation, &mut shown);
    (StatusCode::OK, shown)
}

/// What would become of a request.
struct ExplainedRequest {
    explanation: Explanation,
    /// The request as its target would get it, where it is converted.
    conversion: Option<ConvertedCall>,
    /// Why it could not be converted for a target that was left out therefore.
    refusal: Option<RequestFault>,
}

/// Explains as the data plane goes: a target for which the request cannot be converted is left out,
/// and the next one is chosen.
fn explain_request(
    core: &Core,
    route: &Route,
    now: Now,
    mut ask: RequestSpec<'_>,
    draw: u64,
    converts: impl Fn(WireFormat, &str) -> Result<Option<ConvertedCall>, RequestFault>,
) -> ExplainedRequest {
    let mut refusal = None;
    loop {
        let explanation = core.explain(route, now, &ask, draw);
        let chosen = explanation.candidates.iter();
        let mut chosen = chosen.filter(|it| matches!(it.verdict, Verdict::Chosen { .. }));
        let chosen = chosen.next().map(|it| Arc::clone(&it.backend));
        let sent_as = chosen.as_ref().and_then(|id| route.sent_as(id, &ask.needs));
        let (Some(id), Some(SentAs::Converted(format))) = (chosen, sent_as) else {
            return ExplainedRequest { explanation, conversion: None, refusal };
        };
        match converts(format, &id) {
            Ok(conversion) => return ExplainedRequest { explanation, conversion, refusal },
            Err(fault) => {
                refusal.get_or_insert(fault);
                ask.needs.converts_to = ask.needs.converts_to.without(format);
            }
        }
    }
}

/// Which server a new session's call would go to, and why.
fn explain_server(gateway: &Gateway, live: &Live, server: &str) -> Answer {
    let clock = &gateway.clock;
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
    backend_story::add_reasons(gateway, &explanation, &mut shown);
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

pub(super) fn add_wall_times(value: &mut Value, clock: &Clock) {
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
