//! One conversation with one MCP server, as raw messages: what every way to a server looks like
//! to the link that owns it.
//!
//! ```text
//!   link ── request / notice ──▶ Transport ──▶ server
//!   link ◀────────── Event ───── Transport ◀── server
//! ```
//! Rules kept here:
//! - A transport never interprets a message beyond its id; it never retries, and never decides
//!   about health.
//! - Every request ends: in a [`Event::Message`] that answers it, in [`Event::Unanswered`], or
//!   with the whole conversation in [`Event::Closed`]. Deadlines are the link's.
//! - Messages of one stream keep their order.
//! - Dropping a transport ends everything it owns: tasks, sockets, children.

use bytes::Bytes;
use tokio::sync::mpsc;

pub(crate) use tidegate_mcp::health::Failure;

/// Events that may wait for the link before the transport stops reading.
pub(crate) const EVENTS_AHEAD: usize = 64;
/// The largest message a server may send.
pub(crate) const MESSAGE_MAX: usize = 16 * 1024 * 1024;

/// What a transport tells its link.
#[derive(Debug)]
pub(crate) enum Event {
    /// A message of the server's.
    Message {
        /// One JSON-RPC message.
        bytes: Bytes,
        /// The request of ours on whose stream it came, where the transport has such streams.
        call: Option<u64>,
    },
    /// The server closed the stream of a request on purpose, and is asked again for the rest.
    Paused {
        /// The request's id.
        call: u64,
    },
    /// A request of ours will get no answer over this conversation.
    Unanswered {
        /// Its id.
        call: u64,
        /// What is known.
        failure: Failure,
    },
    /// The conversation is over; nothing follows. (HTTP: the server does not know the session any
    /// more. Child: it has exited.)
    Closed(Failure),
}

/// The receiving end of a conversation.
pub(crate) type Events = mpsc::Receiver<Event>;
