//! A driver of the Hub in memory, and servers that answer by script.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};
use tidegate_core::{
    core::Core,
    draw::mix,
    outcome::OutcomeKind,
    probe::ProbeSettings,
    time::{Millis, Now},
    transition::Notes,
};

use crate::{
    cause::{Cause, Delivery},
    health::{Failure, tests::core_of},
    hub::{
        CallRecord, CallerRights, ConnectionEvent, ConnectionId, Effect, Env, Event, GroupSettings,
        HttpMethod, Hub, HubSettings, LogLine, McpAnswer, McpAnswerBody, McpRequest, Metric,
        Pulled, Random, ReaderId, RequestToken, Retained, SearchAnswer, ServerAccess, ServerKey,
        ServerSettings, TransportKind, UpstreamSession,
    },
    keepalive::KeepaliveSettings,
    names::{Naming, NamingSettings, ServerNames},
    session::Visibility,
};

use super::world::{Handed, World};

/// Random numbers that are the same in every run.
pub(super) struct Seeded(pub(super) u64);

impl Random for Seeded {
    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    fn secret_id(&mut self) -> Option<String> {
        Some(format!("{:016x}{:016x}", self.draw(), self.draw()))
    }
}

/// How a server treats whoever comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    Works,
    /// Nobody listens: connections break.
    Dead,
    /// It takes everything and says nothing.
    Silent,
    /// It has forgotten every session.
    Forgetful,
    /// It knows the transport of the first revision only.
    Legacy,
}

/// A server that answers by script.
pub(super) struct Scripted {
    pub(super) name: &'static str,
    pub(super) manner: Manner,
    pub(super) is_stateless: bool,
    pub(super) tools: Vec<Value>,
    /// Everything that was asked, by method.
    pub(super) asked: Vec<(String, Value)>,
    /// Calls that were not answered.
    pub(super) held: Vec<(ConnectionId, u64)>,
    /// What clients answered to its questions.
    pub(super) told: Vec<Value>,
    /// It answers the question for its tools with an HTTP error.
    pub(super) hides_tools: bool,
}

impl Scripted {
    pub(super) fn new(name: &'static str) -> Self {
        let schema = json!({"type": "object"});
        let tool = |name: &str, hints: Value| {
            let mut tool = json!({"name": name, "inputSchema": schema});
            tool["annotations"] = hints;
            tool
        };
        let tools = vec![
            tool("echo", json!({})),
            tool("read", json!({"readOnlyHint": true})),
            tool("wait", json!({})),
            tool("ask", json!({})),
        ];
        let (asked, held, told) = (Vec::new(), Vec::new(), Vec::new());
        let (manner, is_stateless) = (Manner::Works, false);
        let hides_tools = false;
        Self { name, manner, is_stateless, tools, asked, held, told, hides_tools }
    }

    pub(super) fn count(&self, method: &str) -> usize {
        self.asked.iter().filter(|(it, _)| it == method).count()
    }
}

/// The Hub, its world and a clock that a test moves.
pub(super) struct Bed {
    pub(super) hub: Hub,
    pub(super) core: Core,
    pub(super) now: Now,
    pub(super) notes: Notes,
    pub(super) random: Seeded,
    pub(super) servers: Vec<Scripted>,
    pub(super) settings: HubSettings,
    pub(super) connections: BTreeMap<ConnectionId, usize>,
    /// Connections over the transport of the first revision.
    legacy: BTreeSet<ConnectionId>,
    events: VecDeque<Event>,
    pub(super) next_token: u64,
    pub(super) answers: BTreeMap<RequestToken, McpAnswer>,
    /// Events that were pulled, and streams that are over.
    pub(super) streams: BTreeMap<ReaderId, Vec<String>>,
    pub(super) over: BTreeSet<ReaderId>,
    pub(super) opened: usize,
    pub(super) closed: usize,
    pub(super) metrics: Vec<Metric>,
    pub(super) logs: Vec<LogLine>,
    pub(super) records: Vec<CallRecord>,
    pub(super) probes: BTreeMap<RequestToken, Option<bool>>,
    /// How often each server was given each call that it may have carried out, by the number in
    /// the call's arguments.
    pub(super) delivered: BTreeMap<u64, Vec<&'static str>>,
    pub(super) is_closed: bool,
    /// Which of several Hubs this is, and what servers remember of all of them.
    pub(super) number: usize,
    pub(super) world: Rc<RefCell<World>>,
    /// What the Hub told of its sessions.
    pub(super) handed: Vec<Handed>,
}

pub(super) fn server_settings(at: usize, name: &str) -> ServerSettings {
    ServerSettings {
        key: ServerKey(at as u64),
        name: name.into(),
        access: ServerAccess::Http,
        place: name.into(),
        max_calls: 8,
        keepalive: KeepaliveSettings::default(),
        keepalive_call: None,
        probe: ProbeSettings::default(),
    }
}

impl Bed {
    /// Servers of these names that work, each alone, told to the Hub by [`Bed::start`].
    pub(super) fn new(names: &[&'static str]) -> Self {
        let settings = HubSettings {
            servers: names.iter().enumerate().map(|(at, it)| server_settings(at, it)).collect(),
            groups: names
                .iter()
                .enumerate()
                .map(|(at, it)| GroupSettings { name: (*it).into(), members: vec![at] })
                .collect(),
            naming: NamingSettings {
                naming: Naming::Prefix,
                servers: names.iter().map(|it| ServerNames::plain(it)).collect(),
            },
            callers: BTreeMap::from([(Arc::from(""), CallerRights { share: 1.0, servers: None })]),
            visibility: Visibility::Session,
            is_search: false,
            sessions_max: 16,
            children_max: 8,
            idle: Millis::minutes(30),
            call_timeout: Millis::seconds(60),
            connect_timeout: Millis::seconds(5),
            connect_wait: Millis(500),
            fresh_for: Millis::minutes(5),
            answered_within: Millis::seconds(5),
            answer_max: 1 << 20,
        };
        Self {
            hub: Hub::new(Retained::default()),
            core: core_of(names),
            now: Now(1_000_000),
            notes: Notes::default(),
            random: Seeded(7),
            servers: names.iter().map(|it| Scripted::new(it)).collect(),
            settings,
            connections: BTreeMap::new(),
            legacy: BTreeSet::new(),
            events: VecDeque::new(),
            next_token: 0,
            answers: BTreeMap::new(),
            streams: BTreeMap::new(),
            over: BTreeSet::new(),
            opened: 0,
            closed: 0,
            metrics: Vec::new(),
            logs: Vec::new(),
            records: Vec::new(),
            probes: BTreeMap::new(),
            delivered: BTreeMap::new(),
            is_closed: false,
            number: 0,
            world: Rc::default(),
            handed: Vec::new(),
        }
    }

    /// The servers of this bed as one group.
    pub(super) fn grouped(mut self) -> Self {
        let members = (0..self.settings.servers.len()).collect();
        let name = crate::health::tests::GROUP;
        self.settings.groups = vec![GroupSettings { name: name.into(), members }];
        self.settings.naming.servers = vec![ServerNames::plain(name)];
        self
    }

    pub(super) fn start(mut self) -> Self {
        self.reload();
        self
    }

    pub(super) fn reload(&mut self) {
        let settings = Box::new(self.settings.clone());
        self.tell(Event::Reload(settings));
    }

    /// Tells the Hub something, and does everything that follows at once.
    pub(super) fn tell(&mut self, event: Event) {
        self.events.push_back(event);
        let mut effects = Vec::new();
        while let Some(event) = self.events.pop_front() {
            let Self { hub, core, now, notes, random, .. } = self;
            let mut env = Env { now: *now, core, notes, random };
            hub.handle(&mut env, event, &mut effects);
            notes.transitions.clear();
            for effect in effects.drain(..) {
                self.carry_out(effect);
            }
        }
    }

    /// Lets time pass, with everything that becomes due meanwhile.
    pub(super) fn pass(&mut self, span: Millis) {
        let until = self.now.after(span);
        for _ in 0..100_000 {
            match self.hub.next_wakeup() {
                Some(at) if at <= until => {
                    self.now = self.now.max(at);
                    self.tell(Event::Wakeup);
                }
                _ => {
                    self.now = until;
                    return;
                }
            }
        }
        panic!("time stands still at {:?}", self.hub.next_wakeup());
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Open { connection, server, transport, resume, .. } => {
                let at = usize::try_from(server.0).expect("a small number");
                if let Some(session) = resume.and_then(|it| it.session) {
                    let talk = (self.number, connection);
                    self.world.borrow_mut().resume(talk, session.expose());
                }
                self.opened += 1;
                self.connections.insert(connection, at);
                if transport == TransportKind::LegacySse {
                    self.legacy.insert(connection);
                }
                self.events
                    .push_back(Event::Connection { connection, event: ConnectionEvent::Opened });
            }
            Effect::Send { connection, call, message, .. } => {
                self.serve(connection, call, &message);
            }
            Effect::Notify { connection, message } => {
                let at = self.connections[&connection];
                let message: Value = serde_json::from_slice(&message).expect("a message is JSON");
                match message["method"].as_str() {
                    Some(method) => {
                        let asked = (method.to_owned(), message["params"].clone());
                        self.servers[at].asked.push(asked);
                    }
                    None => self.servers[at].told.push(message),
                }
            }
            Effect::Close { connection } => {
                self.world.borrow_mut().delete((self.number, connection));
                self.connections.remove(&connection);
                self.closed += 1;
                self.events
                    .push_back(Event::Connection { connection, event: ConnectionEvent::Ended });
            }
            Effect::Drop { connection } => {
                self.connections.remove(&connection);
                self.closed += 1;
            }
            Effect::Answer { request, answer } => {
                if let McpAnswerBody::Events(reader) = answer.body {
                    self.streams.insert(reader, Vec::new());
                }
                let before = self.answers.insert(request, answer);
                assert!(before.is_none(), "{request:?} was answered twice");
            }
            Effect::Feed { reader } => self.feed(reader),
            Effect::Search(job) => {
                let found = json!({"found": job.view.catalogue.tools().len()}).to_string();
                let answer = SearchAnswer::Result(found);
                self.events.push_back(Event::Searched { job: job.job, answer });
            }
            Effect::ProbeAnswer { token, passed } => drop(self.probes.insert(token, passed)),
            Effect::Count(metric) => self.metrics.push(metric),
            Effect::Log(line) => self.logs.push(line),
            Effect::Record(record) => self.records.push(*record),
            Effect::Closed => self.is_closed = true,
            Effect::SessionRecord { session, state } => {
                self.handed.push(Handed::Record(session, state));
            }
            Effect::SessionReleased { session, state } => {
                self.handed.push(Handed::Released(session, state));
            }
            Effect::SessionEnded { session } => self.handed.push(Handed::Ended(session)),
            Effect::Negotiated { .. } | Effect::Forget { .. } | Effect::KeepOpen { .. } => {}
        }
    }

    fn feed(&mut self, reader: ReaderId) {
        loop {
            match self.hub.pull(reader) {
                Pulled::Event(event) => {
                    let text = String::from_utf8(event.to_vec()).expect("events are text");
                    self.streams.entry(reader).or_default().push(text);
                }
                Pulled::Nothing => return,
                Pulled::Over => {
                    self.over.insert(reader);
                    return;
                }
            }
        }
    }

    /// A server answers, as its script says.
    fn serve(&mut self, connection: ConnectionId, call: u64, message: &[u8]) {
        let at = self.connections[&connection];
        let message: Value = serde_json::from_slice(message).expect("a message is JSON");
        let method = message["method"].as_str().expect("a request").to_owned();
        let params = message["params"].clone();
        let server = &mut self.servers[at];
        server.asked.push((method.clone(), params.clone()));
        let talk = (self.number, connection);
        self.world.borrow_mut().hear(talk, call);
        let is_taken = matches!(server.manner, Manner::Works | Manner::Silent);
        if let Some(number) = params["arguments"]["n"].as_u64().filter(|_| is_taken) {
            self.delivered.entry(number).or_default().push(server.name);
            *self.world.borrow_mut().given.entry(number).or_default() += 1;
        }
        let failure = match server.manner {
            Manner::Works if server.hides_tools && method == "tools/list" => {
                Some(Failure::of(Cause::Status(500), OutcomeKind::ServerError))
            }
            Manner::Works => None,
            Manner::Silent => return,
            Manner::Legacy if self.legacy.contains(&connection) => None,
            Manner::Legacy => Some(Failure::of(Cause::Status(405), OutcomeKind::ClientFault)),
            Manner::Dead => Some(Failure::of(Cause::ConnectionRefused, OutcomeKind::Transport)),
            Manner::Forgetful if method == "initialize" => None,
            Manner::Forgetful => {
                server.manner = Manner::Works;
                Some(Failure::session_lost())
            }
        };
        if let Some(failure) = failure {
            let event = ConnectionEvent::Unanswered { call, failure };
            return self.events.push_back(Event::Connection { connection, event });
        }
        let settings = self.settings.servers.get(at);
        let is_http = settings.is_none_or(|it| it.access == ServerAccess::Http);
        let is_legacy = self.legacy.contains(&connection);
        if method == "initialize" && !server.is_stateless && is_http && !is_legacy {
            let session = UpstreamSession::new(&self.world.borrow_mut().begin(talk));
            let event = ConnectionEvent::Named(session);
            self.events.push_back(Event::Connection { connection, event });
        }
        let answer = match (method.as_str(), server.is_stateless) {
            ("initialize", false) => Ok(json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {"listChanged": true}, "logging": {}},
                "serverInfo": {"name": server.name, "version": "1"},
            })),
            ("server/discover", true) => Ok(json!({
                "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {"listChanged": true}},
                "serverInfo": {"name": server.name, "version": "1"},
            })),
            ("initialize", true) => Err(json!({"code": -32022, "message": "no sessions"})),
            ("tools/list", _) => Ok(json!({"tools": server.tools})),
            ("ping", false) => Ok(json!({})),
            ("subscriptions/listen", true) => return,
            ("tools/call", _) => match params["name"].as_str() {
                Some("wait") => {
                    server.held.push((connection, call));
                    return;
                }
                Some("ask") => {
                    server.held.push((connection, call));
                    let question = json!({"jsonrpc": "2.0", "id": 77,
                        "method": "elicitation/create", "params": {"message": "sure?"}});
                    return self.say(connection, &question, Some(call));
                }
                Some("need") if params["inputResponses"].is_null() => Ok(json!({
                    "resultType": "input_required",
                    "inputRequests": {"who": {"method": "elicitation/create", "params": {}}},
                    "requestState": "its own",
                })),
                _ => Ok(json!({"content": [{"type": "text", "text": server.name}]})),
            },
            _ => Err(json!({"code": -32601, "message": "method not found"})),
        };
        self.reply(connection, call, answer);
    }

    /// A server answers a call.
    pub(super) fn reply(
        &mut self,
        connection: ConnectionId,
        call: u64,
        answer: Result<Value, Value>,
    ) {
        let message = match answer {
            Ok(result) => json!({"jsonrpc": "2.0", "id": call, "result": result}),
            Err(error) => json!({"jsonrpc": "2.0", "id": call, "error": error}),
        };
        self.say(connection, &message, Some(call));
    }

    /// A server says something.
    pub(super) fn say(&mut self, connection: ConnectionId, message: &Value, call: Option<u64>) {
        let bytes = Bytes::from(message.to_string());
        let event = ConnectionEvent::Message { bytes, call };
        self.events.push_back(Event::Connection { connection, event });
    }

    /// Whatever was said is heard.
    pub(super) fn settle(&mut self) {
        self.tell(Event::Wakeup);
    }

    /// Every connection to a server breaks.
    pub(super) fn break_connections(&mut self, at: usize) {
        let own = self.connections.iter().filter(|(_, server)| **server == at);
        let own: Vec<ConnectionId> = own.map(|(id, _)| *id).collect();
        let failure = Failure {
            delivery: Delivery::Maybe,
            ..Failure::of(Cause::ConnectionBroken, OutcomeKind::Transport)
        };
        for connection in own {
            let event = ConnectionEvent::Closed { failure, last_words: String::new() };
            self.tell(Event::Connection { connection, event });
        }
    }

    /// A request that is not filled in.
    pub(super) fn request(&mut self) -> McpRequest {
        self.next_token += 1;
        McpRequest::post(RequestToken(self.next_token), Bytes::new())
    }

    /// Posts a message in a session; its token.
    pub(super) fn post(&mut self, session: &str, message: &Value) -> RequestToken {
        let mut request = self.request();
        request.session = (!session.is_empty()).then(|| session.to_owned());
        request.body = message.to_string().into();
        let token = request.token;
        self.tell(Event::Request(Box::new(request)));
        token
    }

    /// Sends a request of another method.
    pub(super) fn send(
        &mut self,
        method: HttpMethod,
        session: &str,
        last_event: Option<&str>,
    ) -> RequestToken {
        let mut request = self.request();
        (request.method, request.session) = (method, Some(session.to_owned()));
        request.last_event = last_event.map(str::to_owned);
        let token = request.token;
        self.tell(Event::Request(Box::new(request)));
        token
    }

    /// Posts a request without a session; its token.
    pub(super) fn post_stateless(
        &mut self,
        id: u64,
        method: &str,
        mut params: Value,
        capabilities: &Value,
    ) -> RequestToken {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        });
        let mut request = self.request();
        request.version = Some("2026-07-28".to_owned());
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        request.headers =
            vec![header("mcp-protocol-version", "2026-07-28"), header("mcp-method", method)];
        if let Some(name) = params["name"].as_str() {
            request.headers.push(header("mcp-name", name));
        }
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        request.body = message.to_string().into();
        let token = request.token;
        self.tell(Event::Request(Box::new(request)));
        token
    }

    /// Opens a session; its id.
    pub(super) fn open(&mut self) -> String {
        self.open_with(json!({}))
    }

    pub(super) fn open_with(&mut self, capabilities: Value) -> String {
        let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": capabilities,
            "clientInfo": {"name": "test", "version": "1"},
        }});
        let token = self.post("", &message);
        let answer = &self.answers[&token];
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.session.clone().expect("a session")
    }

    /// Calls a tool in a session; the token of the request.
    pub(super) fn call(&mut self, session: &str, id: u64, tool: &str) -> RequestToken {
        let params = json!({"name": tool, "arguments": {}, "_meta": {"progressToken": "p"}});
        let message = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        self.post(session, &message)
    }

    /// The names of all tools that a session sees.
    pub(super) fn tools(&mut self, session: &str) -> Vec<String> {
        let message = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/list"});
        let token = self.post(session, &message);
        if !self.answers.contains_key(&token) {
            self.pass(Millis::seconds(10));
        }
        let answer = self.whole(token);
        let tools = answer["result"]["tools"].as_array().expect("a list").clone();
        tools.iter().map(|it| it["name"].as_str().expect("a name").to_owned()).collect()
    }

    /// The body of an answer that came whole.
    pub(super) fn whole(&self, token: RequestToken) -> Value {
        match &self.answers[&token].body {
            McpAnswerBody::Json(bytes) => serde_json::from_slice(bytes).expect("JSON"),
            other => panic!("no whole answer: {other:?}"),
        }
    }

    /// The reader of an answer that is a stream.
    pub(super) fn reader(&self, token: RequestToken) -> ReaderId {
        match self.answers[&token].body {
            McpAnswerBody::Events(reader) => reader,
            ref other => panic!("no stream: {other:?}"),
        }
    }

    /// The messages on the stream that answers a request.
    pub(super) fn messages(&self, token: RequestToken) -> Vec<Value> {
        let events = &self.streams[&self.reader(token)];
        let data =
            events.iter().flat_map(|it| it.lines().filter_map(|it| it.strip_prefix("data: ")));
        data.map(|it| serde_json::from_str(it).expect("a message is JSON")).collect()
    }

    /// The last message on the stream that answers a request.
    pub(super) fn last(&self, token: RequestToken) -> Value {
        self.messages(token).last().expect("a message").clone()
    }
}
