//! What a fake MCP server does with one message of its client.
//!
//! Rules kept here:
//! - A request ends in one [`Reply`]; a notification and an answer end in none.
//! - Whether the wire itself misbehaves is decided before anything is said ([`plan`]), since an
//!   HTTP status can only come first.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use super::script::{McpScript, Ping};
use super::talk::Talk;
use super::tool::ToolAct;
use super::{FakeMcp, call, lists, notification, stateless};

/// How a request ends.
#[derive(Debug)]
pub(super) enum Reply {
    /// With a result, as JSON text.
    Result(String),
    /// With an error.
    Error(i64, String),
    /// With text that is no message.
    Text(String),
    /// With nothing: it was cancelled, or the server died.
    Nothing,
    /// With a broken connection.
    Cut,
}

/// What will happen to a request.
#[derive(Debug)]
pub(super) enum Plan {
    /// It is answered.
    Answer(Option<ToolAct>),
    /// The connection is cut at once.
    Cut,
    /// It gets an HTTP status.
    Status { status: u16, retry_after: Option<String> },
}

/// Decides about a request; a tool's call is counted here.
pub(super) fn plan(fake: &FakeMcp, request: &Value) -> Plan {
    if let (true, Ping::Status(status)) = (request["method"] == "ping", fake.script.load().ping) {
        return Plan::Status { status, retry_after: None };
    }
    if request["method"] != "tools/call" {
        return Plan::Answer(None);
    }
    let script = fake.script.load();
    let name = request["params"]["name"].as_str().unwrap_or_default();
    let Some(tool) = script.tools.iter().find(|tool| tool.name == name) else {
        return Plan::Answer(None);
    };
    let act = tool.act(fake.record.call(name));
    if act != ToolAct::CutBefore {
        fake.record.delivered(name);
    }
    match act {
        ToolAct::CutBefore => Plan::Cut,
        ToolAct::Status { status, retry_after } => Plan::Status { status, retry_after },
        act => Plan::Answer(Some(act)),
    }
}

/// Answers a request; what is said before the answer goes to the stream.
pub(super) async fn answer(
    fake: &Arc<FakeMcp>,
    talk: &Arc<Talk>,
    stream: u64,
    request: &Value,
    act: Option<ToolAct>,
) -> Reply {
    let id = &request["id"];
    let Some(cancel) = talk.begin(id) else {
        fake.record.breach(format!("the id {id} was used twice"));
        return Reply::Error(-32600, "this id was used before".to_owned());
    };
    if !talk.is_introduced() && request["method"] != "ping" {
        fake.record.breach(format!("{} came before notifications/initialized", request["method"]));
    }
    let reply = tokio::select! {
        reply = by_method(fake, talk, stream, request, act) => reply,
        () = cancel.notified() => {
            fake.record.cancelled();
            Reply::Nothing
        }
        () = fake.death() => Reply::Nothing,
    };
    talk.end(id);
    reply
}

async fn by_method(
    fake: &Arc<FakeMcp>,
    talk: &Arc<Talk>,
    stream: u64,
    request: &Value,
    act: Option<ToolAct>,
) -> Reply {
    let script = fake.script.load_full();
    let params = &request["params"];
    match request["method"].as_str().unwrap_or_default() {
        "server/discover" if talk.is_stateless() => stateless::discover(&script),
        "ping" => ping(script.ping).await,
        "tools/call" => match act {
            Some(act) => call::perform(fake, talk, stream, params, act).await,
            None => Reply::Error(-32602, format!("Unknown tool: {}", params["name"])),
        },
        "tools/list" => lists::tools(&script, params),
        "resources/list" => lists::resources(&script, params),
        "resources/templates/list" => lists::templates(&script, params),
        "resources/read" => lists::read(&script, params),
        "resources/subscribe" => {
            talk.watch(params["uri"].as_str().unwrap_or_default());
            nothing_to_say()
        }
        "resources/unsubscribe" => {
            talk.unwatch(params["uri"].as_str().unwrap_or_default());
            nothing_to_say()
        }
        "prompts/list" => lists::prompts(&script, params),
        "prompts/get" => lists::prompt(&script, params),
        "completion/complete" => lists::complete(&script, params),
        "logging/setLevel" => {
            talk.set_level(params["level"].as_str().unwrap_or_default());
            nothing_to_say()
        }
        other => Reply::Error(-32601, format!("Method not found: {other}")),
    }
}

/// Takes a notification or an answer.
pub(super) fn hear(fake: &Arc<FakeMcp>, talk: &Arc<Talk>, message: Value) {
    match message["method"].as_str() {
        Some("notifications/initialized") => {
            talk.introduce();
            let flood = fake.script.load().flood;
            call::flood(talk, flood);
        }
        // One that has been answered meanwhile is no mistake of the client's.
        Some("notifications/cancelled") => drop(talk.cancel(&message["params"]["requestId"])),
        Some(_) => {}
        None => {
            let id = message["id"].clone();
            if !talk.heard(message) {
                fake.record.breach(format!("an answer to the request {id}, which nobody made"));
            }
        }
    }
}

/// What it can do.
pub(super) fn capabilities(script: &McpScript) -> Value {
    let mut capabilities = json!({"tools": {"listChanged": true}, "logging": {}});
    if !script.resources.is_empty() || !script.templates.is_empty() {
        capabilities["resources"] = json!({"subscribe": true, "listChanged": true});
    }
    if !script.prompts.is_empty() {
        capabilities["prompts"] = json!({"listChanged": true});
    }
    if !script.completions.is_empty() {
        capabilities["completions"] = json!({});
    }
    capabilities
}

/// Who it is.
pub(super) fn server_info(script: &McpScript) -> Value {
    json!({"name": script.name, "version": "1.0.0"})
}

/// What `initialize` is answered with.
pub(super) fn hello(script: &McpScript, version: &str) -> String {
    let mut hello = json!({
        "protocolVersion": version, "capabilities": capabilities(script),
        "serverInfo": server_info(script),
    });
    if let Some(instructions) = &script.instructions {
        hello["instructions"] = json!(instructions);
    }
    hello.to_string()
}

/// The revision a client and this server speak: the client's if the server knows it.
pub(super) fn version(script: &McpScript, hello: &Value) -> String {
    let wanted = hello["params"]["protocolVersion"].as_str().unwrap_or_default();
    let known = script.versions.iter().find(|version| *version == wanted);
    known.or(script.versions.first()).cloned().unwrap_or_else(|| "2025-11-25".to_owned())
}

/// A reply as a message; none if nothing is sent.
pub(super) fn message(id: &Value, reply: &Reply) -> Option<String> {
    match reply {
        Reply::Result(text) => Some(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{text}}}"#)),
        Reply::Error(code, text) => {
            let error = json!({"code": code, "message": text});
            Some(json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string())
        }
        Reply::Text(text) => Some(text.clone()),
        Reply::Nothing | Reply::Cut => None,
    }
}

/// Waits, so that the caller's stream stays open.
pub(super) async fn wait(ms: u64) {
    sleep(Duration::from_millis(ms)).await;
}

/// Tells everybody who watches a resource that it has changed.
pub(super) fn touch(fake: &FakeMcp, uri: &str) {
    let params = json!({"uri": uri});
    stateless::tell(fake, "notifications/resources/updated", Some(&params));
    let message = notification("notifications/resources/updated", Some(params));
    for talk in fake.talks().values().filter(|talk| talk.watches(uri)) {
        talk.tell(&message);
    }
}

async fn ping(ping: Ping) -> Reply {
    match ping {
        Ping::Answer => nothing_to_say(),
        Ping::Hang => std::future::pending().await,
        Ping::Error | Ping::Status(_) => Reply::Error(-32603, "no pings today".to_owned()),
        Ping::Unknown => Reply::Error(-32601, "Method not found: ping".to_owned()),
    }
}

fn nothing_to_say() -> Reply {
    Reply::Result("{}".to_owned())
}
