//! One connection to one MCP server, as raw messages: what every transport to a server looks like
//! to whoever owns it.
//!
//! ```text
//!   owner ── request / notice ──▶ transport ──▶ server
//!   owner ◀────── ConnectionEvent ─ transport ◀── server
//! ```
//! Rules kept here:
//! - A transport never interprets a message beyond its id; it never retries, and never decides
//!   about health.
//! - The first event is `Opened` or `OpenFailed`, but over Streamable HTTP, which is open at once.
//! - Every request ends: in a `Message` that answers it, in `Unanswered`, or with the whole
//!   connection in `Closed`. Deadlines are the owner's.
//! - Messages of one stream keep their order.
//! - Dropping a transport ends everything it owns: tasks, sockets, children.

use tidegate_mcp::hub::{ConnectionId, ids::TableId};
use tokio::sync::mpsc;

pub(crate) use tidegate_mcp::{
    health::Failure,
    hub::{ConnectionEvent, LargeAnswer},
};

/// Events that may wait for their owner before transports stop reading.
const EVENTS_AHEAD: usize = 256;
/// The largest message a server may send.
pub(crate) const MESSAGE_MAX: usize = 16 * 1024 * 1024;

/// An event, and the connection that it is about.
#[derive(Debug)]
pub(crate) struct TransportEvent {
    pub(crate) connection: ConnectionId,
    pub(crate) event: ConnectionEvent,
}

/// What all connections of one owner tell their events to.
pub(crate) fn events() -> (mpsc::Sender<TransportEvent>, mpsc::Receiver<TransportEvent>) {
    mpsc::channel(EVENTS_AHEAD)
}

/// Where one connection tells its events.
#[derive(Clone, Debug)]
pub(crate) struct EventSender {
    connection: ConnectionId,
    line: mpsc::Sender<TransportEvent>,
}

/// The events of an only connection.
#[derive(Debug)]
pub(crate) struct Events(mpsc::Receiver<TransportEvent>);

impl EventSender {
    /// For one connection of many.
    pub(crate) fn new(connection: ConnectionId, line: mpsc::Sender<TransportEvent>) -> Self {
        Self { connection, line }
    }

    /// For an only connection, and what hears its events.
    pub(crate) fn alone() -> (Self, Events) {
        let (line, told) = events();
        (Self { connection: ConnectionId::new(0, 0), line }, Events(told))
    }

    /// Tells an event; waits while its owner is behind.
    pub(crate) async fn tell(&self, event: ConnectionEvent) {
        // Nobody listens: the transport is about to be dropped.
        drop(self.line.send(TransportEvent { connection: self.connection, event }).await);
    }
}

impl Events {
    /// The next event; none when the transport is gone.
    pub(crate) async fn recv(&mut self) -> Option<ConnectionEvent> {
        self.0.recv().await.map(|told| told.event)
    }
}
