//! The clients: sessions, and clients without one, which say over HTTP what real ones say.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use serde_json::{Value, json};
use tidegate_config::file::SearchFile;
use tidegate_core::time::Now;
use tidegate_mcp::{
    hub::{Event, HttpMethod, McpAnswerBody, McpRequest, RequestToken},
    session::Visibility,
};
use tidegate_search::{Document, Index, Listed, Query};

use super::{Stage, answers::Running, config};
use crate::mcp::{trace::CallTrace, world::definition};

/// The version of the stateless era.
const STATELESS: &str = "2026-07-28";

/// One client.
pub(super) struct Client {
    /// The id of its session; none if it has no session.
    id: Option<String>,
    /// What it was asked, oldest first: the call, and the question or what is to come back with
    /// the retry.
    pub(super) questions: VecDeque<(u64, Value)>,
    /// The servers and groups whose tools it saw first.
    pub(super) seen: Option<BTreeSet<Arc<str>>>,
}

impl Client {
    fn new(id: Option<String>) -> Self {
        Self { id, questions: VecDeque::new(), seen: None }
    }

    pub(super) fn has_session(&self) -> bool {
        self.id.is_some()
    }
}

/// A tool as a client sees it.
struct SeenTool {
    name: Arc<str>,
    own: String,
    server: Arc<str>,
    /// As its server lists it.
    definition: Value,
}

/// What a search answers.
pub(super) struct FoundTools {
    /// The best first.
    pub(super) tools: Vec<String>,
    /// Whether the first of them is likely to be what was looked for.
    pub(super) is_good_match: bool,
}

impl Stage<'_> {
    /// A session opens.
    pub(super) fn open(&mut self, name: &str) {
        let id = self.next_number();
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": self.capabilities(),
                            "clientInfo": {"name": "client", "version": "1"}});
        let token = self.post(name, None, &request(id, "initialize", params), Vec::new());
        self.wait_while(|it| !it.answers.contains_key(&token));
        self.replies.remove(&id);
        let Some(session) = self.answers.remove(&token).and_then(|it| it.session) else {
            return self.violate("MCP", format!("no session was opened for `{name}`"));
        };
        self.list_changed.entry(name.to_owned()).or_default();
        self.clients.insert(name.to_owned(), Client::new(Some(session.clone())));
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let token = self.post(name, Some(&session), &ready, Vec::new());
        self.answers.remove(&token);
        // The stream on which it hears what belongs to no request.
        let mut stream = self.request(HttpMethod::Get);
        stream.session = Some(session);
        self.send(name, stream);
    }

    /// A client without a session comes; nobody knows of it until it asks for something.
    pub(super) fn introduce(&mut self, name: &str) {
        self.list_changed.entry(name.to_owned()).or_default();
        self.clients.insert(name.to_owned(), Client::new(None));
    }

    pub(super) fn close(&mut self, name: &str) {
        let Some(client) = self.clients.shift_remove(name) else { return };
        self.suspicions.retain(|it| it.session != name);
        if let Some(session) = client.id {
            let mut request = self.request(HttpMethod::Delete);
            request.session = Some(session);
            self.send(name, request);
        }
        self.calls.retain(|_, it| it.session != name);
    }

    /// The names of the tools that a client sees. What a list of a live session sets in motion and
    /// takes no time has happened when the client looks: it looks again.
    pub(super) fn list(&mut self, name: &str) -> Vec<String> {
        if self.scenario.visibility == Visibility::Live {
            self.list_once(name);
            self.play_until(self.now);
        }
        self.list_once(name)
    }

    /// The names of the tools that a client sees at its next look.
    pub(super) fn list_once(&mut self, name: &str) -> Vec<String> {
        let mut tools: Vec<String> = Vec::new();
        let mut cursor = Value::Null;
        loop {
            let params =
                if cursor.is_null() { json!({}) } else { json!({"cursor": cursor.clone()}) };
            let id = self.ask_for(name, "tools/list", params);
            self.wait_while(|it| !it.replies.contains_key(&id));
            let reply = self.replies.remove(&id).unwrap_or_default();
            let page = reply["result"]["tools"].as_array().cloned().unwrap_or_default();
            tools.extend(page.iter().filter_map(|it| Some(it["name"].as_str()?.to_owned())));
            cursor = reply["result"]["nextCursor"].clone();
            if cursor.is_null() {
                break;
            }
        }
        let named = self.tools();
        let is_seen = |it: &&SeenTool| tools.iter().any(|tool| **tool == *it.name);
        let seen = named.iter().filter(is_seen).map(|it| Arc::clone(&it.server)).collect();
        if let Some(client) = self.clients.get_mut(name) {
            client.seen.get_or_insert(seen);
        }
        tools
    }

    /// What `find_tool` answers a client: the best of the tools that the `Hub` lists to it, by
    /// production's index.
    pub(super) fn find(&mut self, name: &str, query: &str) -> FoundTools {
        let seen = self.list(name);
        let tools = self.tools();
        let read = |tool: &SeenTool| {
            let definition = tool.definition.to_string();
            let listed = Listed { id: &tool.name, name: &tool.own, definition: &definition };
            Document::of(&listed, &tool.server, "")
        };
        let index = Index::build(tools.iter().map(read).collect());
        let is_seen = |tool: usize| {
            tools.get(tool).is_some_and(|it| seen.iter().any(|name| **name == *it.name))
        };
        let query = Query { description: query, ..Query::default() };
        let found = index.search(&query, &is_seen, SearchFile::default().limit as usize);
        let names = found.hits.iter().filter_map(|hit| tools.get(hit.doc));
        let tools: Vec<String> = names.map(|it| it.name.to_string()).collect();
        FoundTools { is_good_match: found.has_good_match && !tools.is_empty(), tools }
    }

    /// So many calls of one tool at once, until all have ended or wait for their client.
    pub(super) fn call(&mut self, name: &str, tool: &str, at_once: u32) -> Vec<CallTrace> {
        let calls: Vec<u64> = (0..at_once)
            .map(|_| {
                let call = self.next_number();
                self.calls.insert(call, Running::new(name, tool, self.now));
                let params = json!({"name": tool, "arguments": {"call": call}});
                self.ask_with_id(name, call, "tools/call", params);
                call
            })
            .collect();
        self.finish(&calls)
    }

    /// The client of a session answers the oldest question.
    pub(super) fn answer(&mut self, name: &str) -> Vec<CallTrace> {
        let Some(client) = self.clients.get_mut(name) else { return Vec::new() };
        let session = client.id.clone();
        let Some((call, question)) = client.questions.pop_front() else { return Vec::new() };
        if let Some(running) = self.calls.get_mut(&call) {
            running.is_asked = false;
        }
        let result = json!({"action": "accept", "content": {}});
        let answer = json!({"jsonrpc": "2.0", "id": question, "result": result});
        self.post(name, session.as_deref(), &answer, Vec::new());
        self.finish(&[call])
    }

    /// A client without a session sends its request again, with what it was asked.
    pub(super) fn retry(&mut self, name: &str) -> Vec<CallTrace> {
        let Some(client) = self.clients.get_mut(name) else { return Vec::new() };
        let Some((asked, result)) = client.questions.pop_front() else { return Vec::new() };
        let Some(mut running) = self.calls.remove(&asked) else { return Vec::new() };
        (running.is_asked, running.reply, running.record) = (false, None, None);
        let answered = json!({"action": "accept", "content": {}});
        let keys = result["inputRequests"].as_object().map(|it| it.keys().cloned());
        let inputs: serde_json::Map<String, Value> =
            keys.into_iter().flatten().map(|key| (key, answered.clone())).collect();
        let params = json!({
            "name": running.tool,
            "arguments": {"call": asked},
            "requestState": result["requestState"],
            "inputResponses": inputs,
        });
        let call = self.next_number();
        self.retried.insert(asked, call);
        self.calls.insert(call, running);
        self.ask_with_id(name, call, "tools/call", params);
        self.finish(&[call])
    }

    /// Waits until calls have ended, or wait for their client, and tells how.
    fn finish(&mut self, calls: &[u64]) -> Vec<CallTrace> {
        self.wait_while(|it| {
            calls.iter().any(|call| it.calls.get(call).is_some_and(Running::is_waiting))
        });
        for call in calls {
            self.look_for_questions(*call);
        }
        calls.iter().filter_map(|call| self.traced(*call)).collect()
    }

    /// A client without a session is asked by the answer to its request.
    fn look_for_questions(&mut self, call: u64) {
        let Some(running) = self.calls.get_mut(&call) else { return };
        let Some((_, message)) = &running.reply else { return };
        let result = message["result"].clone();
        if result["resultType"] != "input_required" {
            return;
        }
        running.is_asked = true;
        if let Some(client) = self.clients.get_mut(&running.session) {
            client.questions.push_back((call, result));
        }
    }

    /// Asks for something; the id under which it is answered.
    fn ask_for(&mut self, name: &str, method: &str, params: Value) -> u64 {
        let id = self.next_number();
        self.ask_with_id(name, id, method, params);
        id
    }

    fn ask_with_id(&mut self, name: &str, id: u64, method: &str, mut params: Value) {
        let Some(client) = self.clients.get(name) else { return };
        if let Some(session) = client.id.clone() {
            self.post(name, Some(&session), &request(id, method, params), Vec::new());
            return;
        }
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": STATELESS,
            "io.modelcontextprotocol/clientInfo": {"name": "client", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": self.capabilities(),
        });
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let mut headers =
            vec![header("mcp-protocol-version", STATELESS), header("mcp-method", method)];
        if let Some(tool) = params["name"].as_str() {
            headers.push(header("mcp-name", tool));
        }
        self.post(name, None, &request(id, method, params), headers);
    }

    fn post(
        &mut self,
        name: &str,
        session: Option<&str>,
        message: &Value,
        headers: Vec<(String, String)>,
    ) -> RequestToken {
        let mut request = self.request(HttpMethod::Post);
        request.session = session.map(str::to_owned);
        request.version = headers.first().map(|(_, version)| version.clone());
        request.headers = headers;
        request.body = message.to_string().into();
        self.send(name, request)
    }

    fn request(&mut self, method: HttpMethod) -> McpRequest {
        McpRequest {
            token: RequestToken(self.next_number()),
            method,
            session: None,
            version: None,
            last_event: None,
            prefers_events: false,
            headers: Vec::new(),
            body: Default::default(),
            large: None,
            caller: "".into(),
        }
    }

    fn send(&mut self, name: &str, request: McpRequest) -> RequestToken {
        let token = request.token;
        self.senders.insert(token, name.to_owned());
        self.tell(Event::Request(Box::new(request)));
        token
    }

    /// An answer has begun: whose stream it is, if it is one.
    pub(super) fn answered(&mut self, request: RequestToken, body: &McpAnswerBody) {
        let name = self.senders.remove(&request).unwrap_or_default();
        match body {
            McpAnswerBody::Events(reader) => drop(self.readers.insert(*reader, name)),
            McpAnswerBody::Json(body) => self.message_to_client(&name, body),
            McpAnswerBody::Empty => {}
        }
    }

    /// What clients can do. One that could be asked says so only where somebody asks.
    fn capabilities(&self) -> Value {
        let asks = self.servers.iter().any(|it| !it.plan.asks.is_empty());
        if asks { json!({"elicitation": {}}) } else { json!({}) }
    }

    /// Every tool of every server, under the name that clients see, in the order of the config.
    fn tools(&self) -> Vec<SeenTool> {
        let groups = config::groups(self.scenario, &self.servers);
        let naming = config::naming(self.scenario, &groups);
        let mut tools: Vec<SeenTool> = Vec::new();
        for (place, group) in groups.iter().enumerate() {
            let servers = group.members.iter().map(|it| &self.servers[*it]);
            for (server, own) in
                servers.flat_map(|it| it.world.tools.iter().map(move |own| (it, own)))
            {
                let Some(name) = naming.tool(place, own) else { continue };
                if !tools.iter().any(|it| *it.name == name) {
                    let definition = definition(&server.plan, own);
                    let (name, own, server) = (name.into(), own.clone(), Arc::clone(&group.name));
                    tools.push(SeenTool { name, own, server, definition });
                }
            }
        }
        tools
    }

    /// The moment from which on a server that joined without a word would be wrong.
    pub(super) fn long_ago(&self, at: Now) -> bool {
        self.now.since(at).0 > 2000
    }
}

fn request(id: u64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}
