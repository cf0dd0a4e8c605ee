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
use tidegate_core::{outcome::OutcomeKind, time::Millis};
use tidegate_mcp::cause::{Cause, Delivery};
use tokio::sync::mpsc;

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

/// How a request or a conversation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) cause: Cause,
    pub(crate) delivery: Delivery,
    /// What the core is told.
    pub(crate) outcome: OutcomeKind,
    /// The HTTP status, if there was one.
    pub(crate) status: Option<u16>,
    /// How long the server asks to be left alone.
    pub(crate) retry_after: Option<Millis>,
    /// The server has forgotten the session: a new `initialize` may help.
    pub(crate) is_session_loss: bool,
}

/// The receiving end of a conversation.
pub(crate) type Events = mpsc::Receiver<Event>;
