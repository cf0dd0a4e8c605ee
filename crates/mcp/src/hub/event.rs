//! What the Hub is told: everything that happens outside of it.
//!
//! Rules that whoever drives the Hub keeps:
//! - Events of one connection come in the order in which they happened; so do those of one client
//!   connection. Between different ones any order is fine.
//! - An event about an id that the Hub has given up is harmless: it changes nothing.
//! - After every event the deadline of [`next_wakeup`](super::Hub::next_wakeup) is armed anew; when
//!   it has come, [`Event::Wakeup`] is told. One that comes too early or twice is harmless.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::value::RawValue;

use super::ids::{ConnectionId, ReaderId};
use super::record::{Adoption, UpstreamSession};
use super::search::SearchAnswer;
use super::settings::HubSettings;
use crate::health::Failure;
use crate::message::{Message, put_back};

/// What happened.
#[derive(Debug)]
pub enum Event {
    /// The armed deadline has come.
    Wakeup,
    /// A client's HTTP request for the endpoint, whole. It gets exactly one
    /// [`Effect::Answer`](super::Effect::Answer) with its token.
    Request(Box<McpRequest>),
    /// The client of a request that has no answer yet has closed its side. Only requests without
    /// a session are given up for it.
    RequestGone {
        /// The token of the request.
        request: RequestToken,
    },
    /// The client connection that reads a stream is gone, or does not want to read any more.
    ReaderGone {
        /// Which one.
        reader: ReaderId,
    },
    /// Something about a connection to a server.
    Connection {
        /// Which one.
        connection: ConnectionId,
        /// What.
        event: ConnectionEvent,
    },
    /// The config was read again. Told before any request that the new config already let in.
    Reload(Box<HubSettings>),
    /// Something may have changed the health of servers that the Hub has not done itself: an
    /// operator switched one, or another replica told of it.
    HealthChanged,
    /// An operator wants a server probed now. Answered by
    /// [`Effect::ProbeAnswer`](super::Effect::ProbeAnswer).
    Probe {
        /// Under which the answer is told.
        token: RequestToken,
        /// The server's name.
        server: Arc<str>,
    },
    /// An [`Effect::Search`](super::Effect::Search) has its answer.
    Searched {
        /// Which one.
        job: u64,
        /// What came of it.
        answer: SearchAnswer,
    },
    /// This replica owns a session that another one opened: it goes on here, if there is room for
    /// it ([`holds`](super::Hub::holds) says so afterwards).
    Adopt(Box<Adoption>),
    /// Another replica owns this session now: it is let go at once. Calls under way end by name,
    /// and nothing is deleted at servers.
    LetGo {
        /// Its id.
        session: Arc<str>,
    },
    /// The gateway is about to end, and others may go on with its sessions: each is
    /// [released](super::Effect::SessionReleased) as soon as no call of it is under way.
    Release,
    /// The gateway ends: everything is to end in good order. When nothing is left,
    /// [`Effect::Closed`](super::Effect::Closed) is told.
    Close,
}

/// What the shell calls a request that waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestToken(pub u64);

/// What happened to a connection.
#[derive(Debug)]
pub enum ConnectionEvent {
    /// It is open: requests can be sent. (Over HTTP that is so at once.)
    Opened,
    /// It could not be opened; nothing follows.
    OpenFailed(Failure),
    /// The server gave its session a name, in the answer to `initialize`; told before that answer.
    Named(UpstreamSession),
    /// The server sent a message.
    Message {
        /// One JSON-RPC message.
        bytes: Bytes,
        /// The request of ours on whose stream it came, where the transport has such streams.
        call: Option<u64>,
    },
    /// The server sent the answer to a request of ours, and it is so large that the shell has read
    /// it beside the thread that serves all clients ([`LargeAnswer::read`]).
    LargeAnswer(LargeAnswer),
    /// The server closed the stream of a request on purpose, and is asked again for the rest.
    Paused {
        /// The request's number.
        call: u64,
    },
    /// A request of ours will get no answer over this connection.
    Unanswered {
        /// Its number.
        call: u64,
        /// What is known.
        failure: Failure,
    },
    /// It is over; nothing follows. (HTTP: the server does not know the session any more. Child:
    /// the program has ended.)
    Closed {
        /// Why.
        failure: Failure,
        /// What a program said last on its stderr, cleaned; empty over HTTP.
        last_words: String,
    },
    /// An [`Effect::Close`](super::Effect::Close) is done: socket and program are gone.
    Ended,
}

/// The answer to a request of ours, taken out of its message.
#[derive(Clone, Debug)]
pub struct LargeAnswer {
    /// The message.
    pub bytes: Bytes,
    /// The request's number.
    pub call: u64,
    /// The text of its `result`, or of its `error`.
    pub outcome: Result<Bytes, Bytes>,
}

impl LargeAnswer {
    /// Reads a message as the answer to a request of ours; none if it is anything else. It takes as
    /// long as the message is large.
    #[must_use]
    pub fn read(bytes: &Bytes) -> Option<Self> {
        let Ok(Message::Answer { id, outcome }) = Message::parse(bytes) else { return None };
        let call = id.and_then(|id| id.as_number())?;
        let part = |value: &RawValue| bytes.slice_ref(value.get().as_bytes());
        let outcome = outcome.map(part).map_err(part);
        Some(Self { bytes: bytes.clone(), call, outcome })
    }
}

/// The method of an HTTP request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpMethod {
    /// A message.
    Post,
    /// The standing stream, or the rest of one.
    Get,
    /// The session is to end.
    Delete,
}

/// A client's HTTP request, as far as HTTP itself has been checked: content types, size, host,
/// origin and key.
#[derive(Debug)]
pub struct McpRequest {
    /// Under which it is answered.
    pub token: RequestToken,
    /// Its method.
    pub method: HttpMethod,
    /// `mcp-session-id`.
    pub session: Option<String>,
    /// `mcp-protocol-version`.
    pub version: Option<String>,
    /// `last-event-id`.
    pub last_event: Option<String>,
    /// Both kinds of answers are accepted, and events were named first.
    pub prefers_events: bool,
    /// Every header that begins with `mcp-`, by its name in lower case.
    pub headers: Vec<(String, String)>,
    /// The message, or a batch of them; empty but for POST.
    pub body: Bytes,
    /// Arguments that are not in the body.
    pub large: Option<LargeArguments>,
    /// The name of the caller: one of [`HubSettings::callers`].
    pub caller: Arc<str>,
}

impl McpRequest {
    /// A message that is posted, without a header and by nobody.
    #[must_use]
    pub fn post(token: RequestToken, body: Bytes) -> Self {
        Self {
            token,
            method: HttpMethod::Post,
            session: None,
            version: None,
            last_event: None,
            prefers_events: false,
            headers: Vec::new(),
            body,
            large: None,
            caller: "".into(),
        }
    }
}

/// Arguments of a call that were set aside, so that nothing has to read them.
#[derive(Clone, Debug)]
pub struct LargeArguments {
    /// What stands in their place.
    pub token: String,
    /// Their text.
    pub arguments: Bytes,
}

impl LargeArguments {
    /// A message, or a part of one, with the arguments in their place.
    #[must_use]
    pub fn put_back(&self, message: &str) -> String {
        put_back(message, &self.token, self.text())
    }

    /// The text of the arguments.
    #[must_use]
    pub fn text(&self) -> &str {
        // It was a part of a message that has been read.
        std::str::from_utf8(&self.arguments).unwrap_or_default()
    }
}
