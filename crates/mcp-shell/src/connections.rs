//! The connections to servers that there are, under the ids that the Hub gave them.
//!
//! Rules kept here:
//! - A connection is in the table from the effect that opens it until its last event, or until it
//!   is dropped. What is heard of one that is not, or that is closing, is nobody's business.
//! - Closing is a task that ends with its entry; whoever asked for it hears `Ended` in any case.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use tidegate_mcp::hub::{ConnectionId, Event, ServerKey};
use tidegate_runtime::task::{self, Owned};
use tokio::sync::mpsc;

use super::{
    carrier::Carrier,
    runtime::McpRuntime,
    servers::{IsOpen, OpenOptions, Servers},
    transport::{ConnectionEvent, EventSender, TransportEvent},
};

/// The connections, and what they tell.
pub(crate) struct Connections {
    table: BTreeMap<ConnectionId, Connection>,
    line: mpsc::Sender<TransportEvent>,
}

enum Connection {
    /// It is open, or about to be.
    Open(Carrier),
    Closing(#[expect(dead_code, reason = "it is dropped with the entry")] Owned),
}

impl Connections {
    /// None yet; they will tell their events over this line.
    pub(crate) fn new(line: mpsc::Sender<TransportEvent>) -> Self {
        Self { table: BTreeMap::new(), line }
    }

    /// Begins a connection. What is known of it at once goes to `caused`.
    pub(crate) fn open(
        &mut self,
        runtime: &McpRuntime,
        servers: &Servers,
        (connection, server): (ConnectionId, ServerKey),
        options: OpenOptions,
        caused: &mut VecDeque<Event>,
    ) {
        let events = EventSender::new(connection, self.line.clone());
        let event = match servers.open(runtime, server, options, events) {
            Ok((carrier, is_open)) => {
                self.table.insert(connection, Connection::Open(carrier));
                match is_open {
                    IsOpen::AtOnce => ConnectionEvent::Opened,
                    IsOpen::WhenTold => return,
                }
            }
            Err(failure) => ConnectionEvent::OpenFailed(failure),
        };
        caused.push_back(Event::Connection { connection, event });
    }

    /// What the Hub is to hear of what a connection told.
    pub(crate) fn heard(&mut self, runtime: &McpRuntime, told: TransportEvent) -> Option<Event> {
        let TransportEvent { connection, event } = told;
        let known = self.table.get(&connection)?;
        match (known, &event) {
            (Connection::Open(carrier), ConnectionEvent::Opened) => {
                if let Some(server) = carrier.program_of() {
                    runtime.gateway().metrics.mcp_child_started(server);
                }
            }
            (
                Connection::Open(_),
                ConnectionEvent::OpenFailed(_) | ConnectionEvent::Closed { .. },
            )
            | (Connection::Closing(_), ConnectionEvent::Ended) => {
                self.table.remove(&connection);
            }
            (Connection::Open(_), _) => {}
            (Connection::Closing(_), _) => return None,
        }
        Some(Event::Connection { connection, event })
    }

    /// Sends a request.
    pub(crate) fn send(
        &self,
        connection: ConnectionId,
        call: u64,
        message: Bytes,
        headers: Option<Vec<(String, String)>>,
    ) {
        self.with(connection, |carrier| carrier.request(call, message, headers.map(header_map)));
    }

    /// Does something with a connection that is open.
    pub(crate) fn with(&self, connection: ConnectionId, act: impl FnOnce(&Carrier)) {
        if let Some(Connection::Open(carrier)) = self.table.get(&connection) {
            act(carrier);
        }
    }

    /// Ends a connection in good order.
    pub(crate) fn close(&mut self, connection: ConnectionId, caused: &mut VecDeque<Event>) {
        match self.table.remove(&connection) {
            Some(Connection::Open(carrier)) => {
                let events = EventSender::new(connection, self.line.clone());
                let closing = task::spawn_owned("end of an mcp connection", async move {
                    carrier.close().await;
                    events.tell(ConnectionEvent::Ended).await;
                });
                self.table.insert(connection, Connection::Closing(closing));
            }
            Some(closing @ Connection::Closing(_)) => {
                self.table.insert(connection, closing);
            }
            None => {
                let event = ConnectionEvent::Ended;
                caused.push_back(Event::Connection { connection, event });
            }
        }
    }

    /// Ends a connection at once.
    pub(crate) fn abort(&mut self, connection: ConnectionId) {
        self.table.remove(&connection);
    }
}

fn header_map(pairs: Vec<(String, String)>) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(pairs.len());
    for (name, value) in pairs {
        // What cannot stand in a header was not made to.
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            headers.insert(name, value);
        }
    }
    headers
}
