//! A fake MCP server in the era without sessions (2026-07-28): every request says for itself who
//! asks, and is a conversation of its own.
//!
//! - `check`: what every request must say. `input`: questions in results, and the retry with their
//!   answers. `listen`: streams of `subscriptions/listen`. `requests`: those over stdio.
//!
//! Rules kept here:
//! - What a request must say is checked before anything is done, and refused with the status that
//!   the protocol has for it.
//! - A result says that it is complete, and who made it; lists and resources say how long they
//!   keep. What a script writes itself (`raw`) is not said twice.
//! - A client that closes the stream of a request has cancelled it. (stdio: `cancelled`.)

mod check;
mod input;
mod listen;
mod requests;

use std::sync::Arc;

use http::{HeaderMap, Response, StatusCode};
use serde_json::{Value, json};
use tidegate_runtime::task;

use super::FakeMcp;
use super::answer::{self, Plan, Reply};
use super::body::{Body, Cut, OnDrop};
use super::http::{HttpAnswer, SESSION, VERSION, opening, refused};
use super::script::{Era, McpScript};
use super::talk::{Out, STATELESS, Talk};
use super::tool::ToolAct;

pub(super) use listen::{Listener, tell};
pub(super) use requests::Requests;

/// What the keys in `_meta` begin with.
const PREFIX: &str = "io.modelcontextprotocol/";

/// What a request says in its `_meta` under a key of the protocol's.
fn meta<'a>(message: &'a Value, key: &str) -> &'a Value {
    &message["params"]["_meta"][format!("{PREFIX}{key}")]
}

/// Why a request is refused.
#[derive(Debug, PartialEq)]
pub(super) struct Refusal {
    status: StatusCode,
    code: i64,
    text: String,
    data: Option<Value>,
}

impl Refusal {
    fn new(code: i64, text: impl Into<String>) -> Self {
        let status = if code == -32601 { StatusCode::NOT_FOUND } else { StatusCode::BAD_REQUEST };
        Self { status, code, text: text.into(), data: None }
    }

    /// The answer that says so.
    pub(super) fn message(&self, id: &Value) -> String {
        let mut error = json!({"code": self.code, "message": self.text});
        if let Some(data) = &self.data {
            error["data"] = data.clone();
        }
        json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string()
    }

    fn response(&self, id: &Value) -> Response<Body> {
        Body::json(self.status, self.message(id))
    }
}

/// Whether a message belongs to this era, as far as the server speaks it.
pub(super) fn claims(script: &McpScript, headers: Option<&HeaderMap>, message: &Value) -> bool {
    let said = headers.and_then(|it| it.get(VERSION)).and_then(|it| it.to_str().ok());
    match (script.era, message["method"].as_str().unwrap_or_default()) {
        (Era::Sessions, _) => false,
        (Era::Stateless, _) => true,
        (Era::Both, "initialize") if message["params"]["protocolVersion"].is_string() => false,
        (Era::Both, "server/discover" | "subscriptions/listen") => true,
        (Era::Both, _) => {
            let is_other = |said: &str| !script.versions.iter().any(|known| known == said);
            !meta(message, "protocolVersion").is_null() || said.is_some_and(is_other)
        }
    }
}

/// What becomes of a request.
pub(super) enum RequestFate {
    /// It is refused.
    Refuse(Refusal),
    /// It opens a stream of what changes.
    Listen,
    /// It is answered, by a tool if it calls one.
    Answer(Option<ToolAct>),
    /// What it is answered with is known.
    Known(Reply),
    /// The connection is cut.
    Cut,
    /// It gets an HTTP status.
    Status { status: u16, retry_after: Option<String> },
}

/// Decides about a request. There are headers over HTTP only.
pub(super) fn course(fake: &FakeMcp, headers: Option<&HeaderMap>, message: &Value) -> RequestFate {
    let script = fake.script.load_full();
    if let Err(refusal) = check::check(&script, headers, message) {
        if matches!(refusal.code, -32602 | -32020) {
            fake.record.breach(format!("{}: {}", message["method"], refusal.text));
        }
        return RequestFate::Refuse(refusal);
    }
    if message["method"] == "subscriptions/listen" {
        return RequestFate::Listen;
    }
    if let Some(course) = input::course(fake, &script, message) {
        return course;
    }
    match answer::plan(fake, message) {
        Plan::Answer(act) => RequestFate::Answer(act),
        Plan::Cut => RequestFate::Cut,
        Plan::Status { status, retry_after } => RequestFate::Status { status, retry_after },
    }
}

/// Answers a request over HTTP.
pub(super) async fn post(fake: &Arc<FakeMcp>, headers: &HeaderMap, message: Value) -> HttpAnswer {
    if headers.contains_key(SESSION) {
        fake.record.breach(format!("{} came with a session id", message["method"]));
    }
    let script = fake.script.load_full();
    if message["method"] == "server/discover" {
        if let Some(status) = script.discover_status {
            return Ok(refused(status, None));
        }
        if let Some(instead) = opening(&script).await {
            return instead;
        }
    }
    let id = message["id"].clone();
    match course(fake, Some(headers), &message) {
        RequestFate::Refuse(refusal) => Ok(refusal.response(&id)),
        RequestFate::Cut => Err(Cut),
        RequestFate::Status { status, retry_after } => Ok(refused(status, retry_after)),
        RequestFate::Listen => {
            let talk = Talk::of_request(None);
            let Some(outs) = talk.attach(0, None, false) else { return Err(Cut) };
            let number = listen::open(fake, talk, &message);
            let served = Arc::clone(fake);
            let ending = OnDrop::new(move || drop(served.listeners().remove(&number)));
            Ok(Body::events_until(outs, ending))
        }
        RequestFate::Known(reply) => {
            let reply = dress(&script, "", reply);
            Ok(Body::json(StatusCode::OK, answer::message(&id, &reply).unwrap_or_default()))
        }
        RequestFate::Answer(act) => {
            let talk = Arc::new(of_request(&message));
            let Some(mut outs) = talk.attach(0, None, false) else { return Err(Cut) };
            carry_out(fake, &talk, message, act);
            let ending = OnDrop::new(move || _ = talk.cancel(&id));
            if !script.answers_json {
                return Ok(Body::events_until(outs, ending));
            }
            loop {
                match outs.recv().await {
                    Some(Out::Message(_, text)) if is_answer(&text) => {
                        return Ok(Body::json(StatusCode::OK, text));
                    }
                    // There is no stream for what is said before.
                    Some(Out::Message(..) | Out::Prime(_)) => {}
                    Some(Out::Cut) | None => return Err(Cut),
                }
            }
        }
    }
}

/// The conversation that a request is.
fn of_request(request: &Value) -> Talk {
    Talk::of_request(meta(request, "logLevel").as_str())
}

/// Carries a request out in a task of its own; everything is said on the stream 0 of its
/// conversation, which ends with the answer.
fn carry_out(fake: &Arc<FakeMcp>, talk: &Arc<Talk>, request: Value, act: Option<ToolAct>) {
    let (fake, talk) = (Arc::clone(fake), Arc::clone(talk));
    task::spawn("fake answer", async move {
        let reply = answer::answer(&fake, &talk, 0, &request, act).await;
        let method = request["method"].as_str().unwrap_or_default();
        let reply = dress(&fake.script.load(), method, reply);
        match answer::message(&request["id"], &reply) {
            Some(text) => talk.tell(&text),
            None if matches!(reply, Reply::Cut) => talk.cut(0),
            None => {}
        }
        talk.detach(0);
    });
}

fn is_answer(text: &str) -> bool {
    serde_json::from_str::<Value>(text).is_ok_and(|it| it["method"].is_null())
}

/// What `server/discover` is answered with.
pub(super) fn discover(script: &McpScript) -> Reply {
    let mut discover = json!({
        "supportedVersions": supported(script), "capabilities": answer::capabilities(script),
    });
    if let Some(instructions) = &script.instructions {
        discover["instructions"] = json!(instructions);
    }
    Reply::Result(discover.to_string())
}

/// The revisions it speaks, this era's first.
fn supported(script: &McpScript) -> Vec<&str> {
    let sessions = script.versions.iter().filter(|_| script.era == Era::Both);
    [STATELESS].into_iter().chain(sessions.map(String::as_str)).collect()
}

/// A reply as this era writes it.
pub(super) fn dress(script: &McpScript, method: &str, reply: Reply) -> Reply {
    match reply {
        Reply::Result(text) => Reply::Result(dressed(script, method, &text)),
        // A resource that is not there has another code in this era.
        Reply::Error(-32002, text) => Reply::Error(-32602, text),
        other => other,
    }
}

fn dressed(script: &McpScript, method: &str, text: &str) -> String {
    let mut more = Vec::new();
    if !text.contains(r#""resultType""#) {
        more.push(r#""resultType":"complete""#.to_owned());
    }
    let is_kept = matches!(
        method,
        "server/discover"
            | "tools/list"
            | "prompts/list"
            | "resources/list"
            | "resources/templates/list"
            | "resources/read"
    );
    if is_kept {
        let (ttl, scope) = (script.ttl_ms, json!(script.cache_scope));
        more.push(format!(r#""ttlMs":{ttl},"cacheScope":{scope}"#));
    }
    if !text.contains(r#""_meta""#) {
        let meta = json!({format!("{PREFIX}serverInfo"): answer::server_info(script)});
        more.push(format!(r#""_meta":{meta}"#));
    }
    let Some(open) = text.trim_end().strip_suffix('}') else { return text.to_owned() };
    let is_empty = open.trim_end().ends_with('{') && open.trim() == "{";
    let comma = if is_empty || more.is_empty() { "" } else { "," };
    format!("{open}{comma}{}}}", more.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_dressed_without_touching_what_it_says() {
        let script = McpScript { ttl_ms: 5, ..McpScript::default().named("f") };
        let info =
            r#""_meta":{"io.modelcontextprotocol/serverInfo":{"name":"f","version":"1.0.0"}}"#;
        let listed = dressed(&script, "tools/list", r#"{"tools":[ ],"x":1.0}"#);
        let kept = r#""ttlMs":5,"cacheScope":"public""#;
        let expected = format!(r#"{{"tools":[ ],"x":1.0,"resultType":"complete",{kept},{info}}}"#);
        assert_eq!(listed, expected);
        assert_eq!(dressed(&script, "x", "{}"), format!(r#"{{"resultType":"complete",{info}}}"#));
        let own = r#"{"resultType":"task","_meta":{}}"#;
        assert_eq!(dressed(&script, "tools/call", own), own);
    }

    #[test]
    fn a_server_of_both_eras_tells_them_apart_by_what_a_request_says() {
        let both = McpScript { era: Era::Both, ..McpScript::default() };
        let says = |method: &str, params: Value, header: Option<&str>| {
            let mut headers = HeaderMap::new();
            if let Some(header) = header {
                headers.insert(VERSION, header.parse().expect("a header"));
            }
            claims(&both, Some(&headers), &json!({"method": method, "params": params}))
        };
        let meta = json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "x"}});
        assert!(says("tools/list", meta, None) && says("server/discover", Value::Null, None));
        assert!(says("tools/list", Value::Null, Some("2026-07-28")));
        assert!(!says("tools/list", Value::Null, Some("2025-11-25")));
        assert!(!says("initialize", json!({"protocolVersion": "2025-11-25"}), None));
        assert!(!claims(&McpScript::default(), None, &json!({"method": "server/discover"})));
    }
}
