//! What the Hub wants done. Effects are carried out in order; none of them waits.
//!
//! Who owns what:
//! - A [`ConnectionId`] is made by [`Effect::Open`] and lives until the shell has told
//!   [`Closed`](super::ConnectionEvent::Closed), [`OpenFailed`](super::ConnectionEvent::OpenFailed)
//!   or [`Ended`](super::ConnectionEvent::Ended), or until [`Effect::Drop`].
//! - A [`ReaderId`] is made by an [`McpAnswerBody::Events`] and lives until
//!   [`pull`](super::Hub::pull) says that it is over, or [`Event::ReaderGone`](super::Event) was
//!   told.

use std::sync::Arc;

use bytes::Bytes;
use tidegate_core::{
    outcome::OutcomeKind,
    time::{Millis, Now},
};

use super::event::RequestToken;
use super::ids::{ConnectionId, ReaderId};
use super::record::ResumedUpstream;
use super::search::SearchJob;
use super::settings::ServerKey;
use crate::{cause::Cause, group_call::Attempted, keepalive::Reason, listing::Kind};

/// Something to do.
#[derive(Debug)]
pub enum Effect {
    /// Open a connection to a server. Over HTTP nothing is sent yet. The shell tells
    /// [`Opened`](super::ConnectionEvent::Opened) or
    /// [`OpenFailed`](super::ConnectionEvent::OpenFailed), within `within`.
    Open {
        /// What it is called from here on.
        connection: ConnectionId,
        /// To which server.
        server: ServerKey,
        /// Over which transport.
        transport: TransportKind,
        /// How long making the connection may take.
        within: Millis,
        /// On whose behalf, and which fraction of the programs that one may have; the gateway's
        /// own count in the whole only.
        caller: Option<(Arc<str>, f64)>,
        /// The session that another replica began there, over HTTP: it is greeted no more.
        resume: Option<Box<ResumedUpstream>>,
    },
    /// Send a request over a connection.
    Send {
        /// Which connection.
        connection: ConnectionId,
        /// Its number; the `id` of the message is the same.
        call: u64,
        /// The message.
        message: Bytes,
        /// The headers that repeat what it says, in the stateless era.
        headers: Option<Vec<(String, String)>>,
    },
    /// Send a notification, or the answer to a request of the server's. It is not overtaken by a
    /// request that is sent after it.
    Notify {
        /// Over which connection.
        connection: ConnectionId,
        /// The message.
        message: Bytes,
    },
    /// `initialize` was answered with this version: over HTTP it goes with every request from here
    /// on, and the server is listened to.
    Negotiated {
        /// On which connection.
        connection: ConnectionId,
        /// The version.
        version: String,
    },
    /// Nobody waits for a request any more. Over HTTP its stream is closed.
    Forget {
        /// On which connection.
        connection: ConnectionId,
        /// Its number.
        call: u64,
    },
    /// End a connection in good order: over HTTP the session is deleted, a program's stdin is
    /// closed. Nothing it says is told any more; [`Ended`](super::ConnectionEvent::Ended) is, when
    /// socket and program are gone.
    Close {
        /// Which one.
        connection: ConnectionId,
    },
    /// End a connection at once. Nothing of it is told any more.
    Drop {
        /// Which one.
        connection: ConnectionId,
    },
    /// Answer a client's HTTP request.
    Answer {
        /// Which one.
        request: RequestToken,
        /// With what.
        answer: McpAnswer,
    },
    /// A stream may have something for its reader: [`pull`](super::Hub::pull) it as far as the
    /// client connection has room, and again when it has room again.
    Feed {
        /// Which reader.
        reader: ReaderId,
    },
    /// A stream has been silent for long: send the comment `: still here`, if there is room.
    KeepOpen {
        /// To which reader.
        reader: ReaderId,
    },
    /// Rank tools, or describe or unwrap the two tools of search mode. Answered by
    /// [`Event::Searched`](super::Event::Searched), at once or later.
    Search(Box<SearchJob>),
    /// An operator's probe has ended: whether the server answered; none if there is no such server
    /// or no connection it could go over.
    ProbeAnswer {
        /// Which probe.
        token: RequestToken,
        /// Whether it passed.
        passed: Option<bool>,
    },
    /// What another replica needs to go on with a session has changed. Only of a Hub that
    /// [shares](super::Hub::share_sessions) its sessions.
    SessionRecord {
        /// The session's id.
        session: Arc<str>,
        /// A [`SessionRecord`](super::SessionRecord), written down.
        state: Bytes,
    },
    /// A session is free for another replica: its servers were left as they are.
    SessionReleased {
        /// The session's id.
        session: Arc<str>,
        /// A [`SessionRecord`](super::SessionRecord), written down.
        state: Bytes,
    },
    /// A session has ended for good: nobody goes on with it.
    SessionEnded {
        /// The session's id.
        session: Arc<str>,
    },
    /// Count something.
    Count(Metric),
    /// Write a line to the log.
    Log(LogLine),
    /// Record a call that has ended.
    Record(Box<CallRecord>),
    /// Everything has ended after [`Event::Close`](super::Event::Close).
    Closed,
}

/// The transports to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportKind {
    /// Streamable HTTP, or the pipes of a program: whatever the server is configured as.
    Configured,
    /// HTTP with server-sent events, of the first revision.
    LegacySse,
}

/// The answer to an HTTP request.
#[derive(Debug)]
pub struct McpAnswer {
    /// The HTTP status.
    pub status: u16,
    /// The session that was opened: `mcp-session-id`.
    pub session: Option<String>,
    /// When to come back, in seconds: `retry-after`.
    pub retry_after: Option<u32>,
    /// The body.
    pub body: McpAnswerBody,
}

/// The body of an answer.
#[derive(Debug)]
pub enum McpAnswerBody {
    /// None.
    Empty,
    /// `application/json`.
    Json(Bytes),
    /// `text/event-stream`: what is pulled for this reader.
    Events(ReaderId),
}

impl McpAnswer {
    /// An answer without a body.
    #[must_use]
    pub const fn empty(status: u16) -> Self {
        Self { status, session: None, retry_after: None, body: McpAnswerBody::Empty }
    }

    /// An answer of JSON.
    #[must_use]
    pub fn json(status: u16, body: impl Into<Bytes>) -> Self {
        let body = McpAnswerBody::Json(body.into());
        Self { status, session: None, retry_after: None, body }
    }

    /// A stream of events.
    #[must_use]
    pub const fn events(reader: ReaderId) -> Self {
        let body = McpAnswerBody::Events(reader);
        Self { status: 200, session: None, retry_after: None, body }
    }

    /// A refusal, as JSON-RPC tells errors that belong to no request.
    #[must_use]
    pub fn refusal(status: u16, message: &str) -> Self {
        Self::json(status, crate::message::error(None, -32600, message, None))
    }

    /// There is no room for it at the moment.
    #[must_use]
    pub fn busy(message: &str) -> Self {
        Self { retry_after: Some(RETRY_AFTER_S), ..Self::refusal(503, message) }
    }
}

/// When whoever was refused for want of room may try again, in seconds: calls end and sessions
/// become idle all the time.
const RETRY_AFTER_S: u32 = 5;

/// What is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Metric {
    /// So many sessions are open.
    Sessions(usize),
    /// A caller was refused for want of room: `session`, `call`, `program` or `answer`.
    Refused(&'static str),
    /// A request to a server ended.
    CallEnded {
        /// The server.
        server: Arc<str>,
        /// How: the label `outcome`.
        outcome: &'static str,
    },
    /// A lost session with a server was regained.
    Reinitialised(Arc<str>),
    /// Definitions were left out of a server's lists.
    DefinitionsSkipped(Arc<str>, usize),
    /// Definitions changed while they were offered.
    DefinitionsChanged(Arc<str>, usize),
    /// So many tools are offered by a server, to a client that declares nothing.
    ToolsOffered(Arc<str>, usize),
    /// A keepalive was due.
    KeepaliveAttempt(Arc<str>),
    /// A keepalive was answered, after this long.
    KeepaliveSuccess(Arc<str>, Millis),
    /// A keepalive failed.
    KeepaliveFailure(Arc<str>, Reason),
    /// Keepalive is off for a while.
    KeepaliveDisabled(Arc<str>),
    /// A probe ended.
    Probed {
        /// The server.
        server: Arc<str>,
        /// Whether it passed.
        passed: bool,
    },
}

/// A line of the log. Warnings but for those that say otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogLine {
    /// A server could not answer a client. Its rate is limited by the shell, per server.
    Unavailable {
        /// The server, or its group.
        server: String,
        /// What was asked.
        method: &'static str,
        /// The code that the client heard.
        code: &'static str,
        /// Why.
        cause: Cause,
        /// Whose request it was; empty if nobody's in particular.
        caller: Arc<str>,
    },
    /// A caller sent the id of another caller's session.
    ForeignSession {
        /// Who.
        caller: Arc<str>,
    },
    /// A program keeps crashing.
    CrashLoop {
        /// The server.
        server: Arc<str>,
        /// How long it is left alone.
        pause: Millis,
        /// What it said last.
        last_words: String,
    },
    /// A list could not be fetched.
    NoList {
        /// The server.
        server: Arc<str>,
        /// Which list.
        kind: Kind,
        /// Why.
        cause: Cause,
    },
    /// A server's lists are not offered whole.
    Shortfall {
        /// The server.
        server: Arc<str>,
        /// What is lacking.
        lacking: String,
    },
    /// Definitions changed while they were offered.
    DefinitionsChanged {
        /// The server.
        server: Arc<str>,
        /// Their names.
        names: String,
    },
    /// Keepalive is off for a while.
    KeepaliveOff {
        /// The server.
        server: Arc<str>,
        /// Why.
        reason: Reason,
    },
    /// Debug: something that only a person who looks for a cause wants to see.
    Debug {
        /// The server.
        server: Arc<str>,
        /// What happened.
        what: &'static str,
        /// More of it.
        detail: String,
    },
}

/// A call that has ended, for the journal.
#[derive(Clone, Debug)]
pub struct CallRecord {
    /// When it began and ended.
    pub began: Now,
    /// When it ended.
    pub ended: Now,
    /// Whose it was.
    pub caller: Arc<str>,
    /// In which session; empty without one.
    pub session: Arc<str>,
    /// The server, or group of servers, as clients know it.
    pub server: Arc<str>,
    /// What was asked.
    pub method: &'static str,
    /// The name of the tool or prompt, as the client wrote it.
    pub name: Option<String>,
    /// The id of the request, as the client wrote it.
    pub id: String,
    /// `_meta.traceparent` of the request: the client's place in a trace.
    pub trace_parent: Option<String>,
    /// The id of the record, if a server was told a span of it.
    pub trace_id: Option<u128>,
    /// The members that were asked, in order; empty unless it went to a group.
    pub attempts: Vec<Attempted>,
    /// How it ended.
    pub end: CallRecordEnd,
}

/// How a recorded call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallRecordEnd {
    /// A server answered, and this is what the answer says of it.
    Answered(OutcomeKind),
    /// No server did.
    Unavailable {
        /// The code that the client heard.
        code: &'static str,
        /// Why.
        cause: Cause,
    },
}
