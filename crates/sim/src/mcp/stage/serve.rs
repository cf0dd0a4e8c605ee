//! The servers: what each says to a message, and what its connections meet.
//!
//! Rules kept here:
//! - A server that is gone refuses connections; one that is silent takes everything and says
//!   nothing; what a server said before it died does not arrive after it.
//! - A server with sessions knows those of its present epoch; `initialize` begins one when its
//!   answer arrives.
//! - A server of another era answers as real ones do: an error for a method that it does not know,
//!   and 405 for streamable HTTP where only the transport before it is spoken.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json, value::to_raw_value};
use tidegate_core::{outcome::OutcomeKind, time::Millis};
use tidegate_mcp::{
    cause::{Cause, Delivery},
    health::Failure,
    hub::{ConnectionEvent, ConnectionId, Event, TransportKind},
    message::{self, INVALID_PARAMS, Id, METHOD_NOT_FOUND},
    stateless::listen::{self, Filter},
};

use super::{Due, ServerOutput, Stage};
use crate::mcp::{Deed, file::EraWord, world::Mode};

/// What every request in flight hears when its server dies.
const BROKEN: Failure = Failure {
    delivery: Delivery::Maybe,
    ..Failure::of(Cause::ConnectionBroken, OutcomeKind::Transport)
};
/// Nobody listens.
const REFUSED: Failure = Failure::of(Cause::ConnectionRefused, OutcomeKind::Transport);
/// The transport is another one.
const NOT_ALLOWED: Failure = Failure::of(Cause::Status(405), OutcomeKind::ClientFault);
/// What a server says whose tools have changed.
const TOOLS_CHANGED: &str = "notifications/tools/list_changed";
/// The id of a server's question to a client.
const QUESTION: &str = "question";

/// One connection to one server.
pub(super) struct Line {
    server: Arc<str>,
    transport: TransportKind,
    /// It is the gateway's own, and no client's.
    pub(super) is_own: bool,
    /// The server's epoch when its session began: another one does not know this conversation.
    epoch: Option<u64>,
    /// Requests without an answer.
    open: BTreeSet<u64>,
    /// Calls whose client was asked something.
    asking: BTreeSet<u64>,
    /// Requests that stay open to hear that tools have changed.
    listening: BTreeSet<u64>,
}

impl Line {
    pub(super) fn new(server: Arc<str>, transport: TransportKind, is_own: bool) -> Self {
        let (open, asking, listening) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        Self { server, transport, is_own, epoch: None, open, asking, listening }
    }
}

impl Stage<'_> {
    /// A server gets a request.
    pub(super) fn serve(&mut self, connection: ConnectionId, call: u64, bytes: &Bytes) {
        let Some(line) = self.connections.get_mut(&connection) else { return };
        let Some(server) = self.servers.iter().find(|it| it.plan.name == line.server) else {
            return;
        };
        let Ok(message) = serde_json::from_slice::<Value>(bytes) else { return };
        let method = message["method"].as_str().unwrap_or_default().to_owned();
        let params = message["params"].clone();
        let world = &server.world;
        if world.mode == Mode::Down {
            let output = ServerOutput::Nobody { call, message: bytes.clone() };
            return self.say_at_once(connection, output);
        }
        let is_legacy = line.transport == TransportKind::LegacySse;
        if world.mode == Mode::Up && (world.era == EraWord::Sse) != is_legacy {
            let output = ServerOutput::Failed { call, failure: NOT_ALLOWED };
            return self.say_at_once(connection, output);
        }
        line.open.insert(call);
        let greets = matches!(method.as_str(), "initialize" | "server/discover");
        let is_stranger =
            world.era != EraWord::Stateless && !greets && line.epoch != Some(world.epoch);
        let is_up = world.mode == Mode::Up;
        let name = Arc::clone(&server.plan.name);
        let is_asked_back = world.era == EraWord::Stateless
            && is_listed(&server.plan.asks, &params)
            && params["inputResponses"].is_null();
        let is_taken = !(is_up && is_stranger) && is_of_era(world.era, &params) && !is_asked_back;
        if method == "tools/call" && is_taken {
            self.delivered(&name, connection, &params);
        }
        if !is_up {
            return;
        }
        self.reply(connection, call, (&method, &params), is_stranger);
    }

    /// Even what is said at once takes a moment: the client has gone on meanwhile.
    fn say_at_once(&mut self, connection: ConnectionId, output: ServerOutput) {
        let incarnation = self.incarnation(connection);
        self.put(self.now, Due::Output { connection, incarnation, output });
    }

    /// What a server that is up says, and when it arrives.
    fn reply(
        &mut self,
        connection: ConnectionId,
        call: u64,
        (method, params): (&str, &Value),
        is_stranger: bool,
    ) {
        let Some(line) = self.connections.get_mut(&connection) else { return };
        let Some(server) = self.servers.iter().find(|it| it.plan.name == line.server) else {
            return;
        };
        let (plan, world) = (&server.plan, &server.world);
        let is_stateless = world.era == EraWord::Stateless;
        let info = json!({"name": &*plan.name, "version": "1"});
        let offers = json!({"tools": {"listChanged": true}});
        let is_asking = is_listed(&plan.asks, params);
        let mut takes = world.delay;
        let answer = match method {
            _ if is_stranger => None,
            "server/discover" if is_stateless => {
                takes = takes.max(plan.initialize);
                Some(Ok(json!({"supportedVersions": ["2026-07-28"], "capabilities": offers,
                               "serverInfo": info})))
            }
            "initialize" if !is_stateless => {
                takes = takes.max(plan.initialize);
                Some(Ok(json!({"protocolVersion": "2025-11-25", "capabilities": offers,
                               "serverInfo": info})))
            }
            _ if !is_of_era(world.era, params) && method != "initialize" => {
                takes = Millis::ZERO;
                Some(Err((INVALID_PARAMS, "params._meta must be an object")))
            }
            "tools/list" => Some(Ok(world.tools(plan))),
            "ping" if !is_stateless => Some(Ok(json!({}))),
            listen::METHOD if is_stateless => return self.listen(connection, call, params),
            "tools/call" if is_stateless && is_asking && params["inputResponses"].is_null() => {
                let question = json!({"method": "elicitation/create", "params": question()});
                Some(Ok(json!({"resultType": "input_required", "requestState": "asked",
                               "inputRequests": {"sure": question}})))
            }
            "tools/call" => {
                if is_asking && !is_stateless {
                    line.asking.insert(call);
                    return self.ask(connection, call);
                }
                Some(Ok(json!({"content": [{"type": "text", "text": "done"}]})))
            }
            _ => {
                takes = Millis::ZERO;
                Some(Err((METHOD_NOT_FOUND, "method not found")))
            }
        };
        let incarnation = world.incarnation;
        let output = match answer {
            None => ServerOutput::Failed { call, failure: Failure::session_lost() },
            Some(answer) => {
                let message = match answer {
                    Ok(result) => json!({"jsonrpc": "2.0", "id": call, "result": result}),
                    Err((code, message)) => json!({"jsonrpc": "2.0", "id": call,
                        "error": {"code": code, "message": message}}),
                };
                let begins_session = method == "initialize";
                ServerOutput::Message { call, message: message.to_string().into(), begins_session }
            }
        };
        let takes = if self.is_starting { Millis::ZERO } else { takes };
        self.put(self.now.after(takes), Due::Output { connection, incarnation, output });
    }

    /// A server asks the client of a call something, in the middle of it.
    fn ask(&mut self, connection: ConnectionId, call: u64) {
        let question = json!({"jsonrpc": "2.0", "id": format!("{QUESTION}-{call}"),
            "method": "elicitation/create", "params": question()});
        let message = question.to_string().into();
        self.say_at_once(
            connection,
            ServerOutput::Message { call, message, begins_session: false },
        );
    }

    /// A request that stays open is acknowledged, and kept if it is about tools.
    fn listen(&mut self, connection: ConnectionId, call: u64, params: &Value) {
        let params = to_raw_value(params).ok();
        let Ok(filter) = Filter::read(params.as_deref()) else { return };
        let message = listen::acknowledgement(&filter, &Id::number(call)).into();
        if let Some(line) = self.connections.get_mut(&connection) {
            line.listening.extend(filter.tools.then_some(call));
        }
        self.say_at_once(
            connection,
            ServerOutput::Message { call, message, begins_session: false },
        );
    }

    fn incarnation(&self, connection: ConnectionId) -> u64 {
        let line = self.connections.get(&connection);
        let server = line.and_then(|line| self.place(&line.server));
        server.map_or(0, |it| self.servers[it].world.incarnation)
    }

    /// What a server said arrives, unless it fell silent or died meanwhile.
    pub(super) fn heard(
        &mut self,
        connection: ConnectionId,
        incarnation: u64,
        output: ServerOutput,
    ) {
        let Some(line) = self.connections.get_mut(&connection) else { return };
        let Some(server) = self.servers.iter().find(|it| it.plan.name == line.server) else {
            return;
        };
        let world = &server.world;
        let is_gone = world.mode != Mode::Up || world.incarnation != incarnation;
        match output {
            ServerOutput::Nobody { call, message } if world.mode != Mode::Down => {
                self.serve(connection, call, &message);
                self.drain();
            }
            ServerOutput::Nobody { call, .. } => {
                self.unanswered(connection, call, REFUSED);
                self.drain();
            }
            ServerOutput::Failed { .. } | ServerOutput::Message { .. } if is_gone => {}
            ServerOutput::Failed { call, failure } => {
                self.unanswered(connection, call, failure);
                self.drain();
            }
            ServerOutput::Message { call, message, begins_session } => {
                if begins_session {
                    line.epoch = Some(world.epoch);
                }
                if !line.asking.contains(&call) && !line.listening.contains(&call) {
                    line.open.remove(&call);
                }
                let event = ConnectionEvent::Message { bytes: message, call: Some(call) };
                self.tell(Event::Connection { connection, event });
            }
        }
    }

    /// A server gets a notification, or the answer to a question of its own.
    pub(super) fn notified(&mut self, connection: ConnectionId, message: &Bytes) {
        let Ok(message) = serde_json::from_slice::<Value>(message) else { return };
        let id = message["id"].as_str().and_then(|id| id.strip_prefix(QUESTION));
        let Some(call) = id.and_then(|id| id.trim_start_matches('-').parse::<u64>().ok()) else {
            return;
        };
        let Some(line) = self.connections.get_mut(&connection) else { return };
        if line.asking.remove(&call) && line.open.contains(&call) {
            let result = json!({"content": [{"type": "text", "text": "done"}]});
            let answer = json!({"jsonrpc": "2.0", "id": call, "result": result});
            let message = answer.to_string().into();
            self.say_at_once(
                connection,
                ServerOutput::Message { call, message, begins_session: false },
            );
        }
    }

    /// Nobody waits for a request any more.
    pub(super) fn forget(&mut self, connection: ConnectionId, call: u64) {
        if let Some(line) = self.connections.get_mut(&connection) {
            line.open.remove(&call);
            line.asking.remove(&call);
            line.listening.remove(&call);
        }
    }

    fn unanswered(&mut self, connection: ConnectionId, call: u64, failure: Failure) {
        self.forget(connection, call);
        let event = ConnectionEvent::Unanswered { call, failure };
        self.events.push_back(Event::Connection { connection, event });
    }

    /// Something happens to a server; one that a reload removed suffers nothing.
    pub(super) fn suffer(&mut self, server: &Arc<str>, deed: &Deed) {
        let Some(index) = self.place(server) else { return };
        self.servers[index].world.suffer(deed);
        match deed {
            Deed::Crash => self.break_lines(server),
            // A server that is up tells its clients that its tools have changed.
            Deed::Tools(_) => self.tell_of_tools(server),
            Deed::Hang | Deed::LoseSession | Deed::Slow(_) | Deed::Era(_) | Deed::Heal => {}
        }
    }

    /// A server died: everybody who was connected hears of it. A session's connection is over; a
    /// request that belongs to none breaks alone.
    fn break_lines(&mut self, server: &Arc<str>) {
        let lines = self.connections.iter().filter(|(_, it)| it.server == *server);
        for connection in lines.map(|(id, _)| *id).collect::<Vec<_>>() {
            let Some(line) = self.connections.get_mut(&connection) else { continue };
            let open = std::mem::take(&mut line.open);
            if line.epoch.is_some() {
                self.connections.remove(&connection);
                let event = ConnectionEvent::Closed { failure: BROKEN, last_words: String::new() };
                self.events.push_back(Event::Connection { connection, event });
                continue;
            }
            let is_stateless = line.epoch.is_none() && self.is_stateless(server);
            let failure = if is_stateless { BROKEN } else { REFUSED };
            for call in open {
                self.unanswered(connection, call, failure);
            }
        }
        self.drain();
    }

    fn is_stateless(&self, server: &Arc<str>) -> bool {
        let server = self.place(server).map(|it| &self.servers[it]);
        server.is_some_and(|it| it.world.era == EraWord::Stateless)
    }

    /// A server that is up tells everybody whom it knows that its tools have changed: in every
    /// session, and on every request that stays open for it.
    pub(super) fn tell_of_tools(&mut self, server: &Arc<str>) {
        let world = self.place(server).map(|it| &self.servers[it].world);
        let Some(world) = world.filter(|it| it.mode == Mode::Up) else { return };
        let is_stateless = world.era == EraWord::Stateless;
        let lines = self.connections.iter().filter(|(_, line)| line.server == *server);
        for (connection, line) in lines {
            let mut tell = |bytes: String, call| {
                let (connection, bytes) = (*connection, bytes.into());
                let event = ConnectionEvent::Message { bytes, call };
                self.events.push_back(Event::Connection { connection, event });
            };
            if is_stateless {
                for call in &line.listening {
                    tell(listen::tagged(TOOLS_CHANGED, None, &Id::number(*call)), Some(*call));
                }
            } else if line.epoch == Some(world.epoch) {
                tell(message::notification(TOOLS_CHANGED, None), None);
            }
        }
        self.drain();
    }
}

/// Whether a call is of one of these tools.
fn is_listed(tools: &[String], params: &Value) -> bool {
    params["name"].as_str().is_some_and(|name| tools.iter().any(|it| it == name))
}

/// What a tool asks.
fn question() -> Value {
    json!({"message": "sure?", "requestedSchema": {"type": "object", "properties": {}}})
}

/// Whether a request is in the words of an era: those without sessions carry an envelope.
fn is_of_era(era: EraWord, params: &Value) -> bool {
    let has_envelope = params["_meta"]["io.modelcontextprotocol/protocolVersion"].is_string();
    era != EraWord::Stateless || has_envelope
}
