//! What the MCP side needs of the fleet that its gateway belongs to: records of sessions in a
//! store, a way to other replicas, and what is told of sessions.
//!
//! The server has one made of the fleet's store and peer channel;
//! [`memory_fleet`](super::memory_fleet) is one for tests, of gateways in one process.
//!
//! Rules that an implementation keeps:
//! - "I do not know" is never "there is none".
//! - Every wait has a deadline, and none is waited for that is known to be away.
//! - At most one hop: what comes from another replica is never handed on.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http_body::Body as _;
use serde::{Deserialize, Serialize};
use tidegate_mcp::hub::{HttpMethod, McpRequest};
use tidegate_mcp::shared_session::{AbsentRecord, OwnerSigns};
use tokio::sync::mpsc;

use super::event_body::EventBody;

/// Something that is waited for.
pub type Later<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// One run of one replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replica {
    /// What ownership goes by: drawn at each start.
    pub instance: u128,
    /// How others reach it, if they can.
    pub peer_url: Option<String>,
    /// Its name, for people.
    pub name: String,
}

/// A session as the store has it.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredSession {
    /// Who has it; nobody after it was released.
    pub owner: Option<Replica>,
    /// How often it has had an owner.
    pub epoch: u64,
    /// What the next owner needs to go on.
    pub state: Bytes,
}

impl fmt::Debug for StoredSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { owner, epoch, .. } = self;
        write!(f, "StoredSession({owner:?}, {epoch})")
    }
}

/// What became of a lookup.
#[derive(Clone, Debug)]
pub enum LookedUp {
    /// The record.
    Found(StoredSession),
    /// There is none that can be read.
    Absent(AbsentRecord),
    /// Nobody can say, for this reason.
    Away(&'static str),
}

/// What became of an attempt to take a session over.
#[derive(Clone, Debug)]
pub enum TakenOver {
    /// It is this replica's.
    Won,
    /// Somebody was quicker, or it is gone.
    Lost,
    /// Nobody can say, for this reason.
    Away(&'static str),
}

/// Why a request was not answered by another replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotForwarded {
    /// The replica is gone: nobody listens there, or another one does. Nothing was sent.
    Gone,
    /// It cannot be reached, or says nothing. Nothing was sent.
    Unreachable,
    /// It does not have the session. Nothing was done.
    NotMine,
    /// It was handed the request, and nothing more was heard.
    Broken,
}

/// What is told of sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionNews {
    /// A replica took a session over.
    Claimed {
        /// Its id.
        session: Arc<str>,
        /// The epoch from now on.
        epoch: u64,
    },
    /// Something may have been told and not heard, or records may be lost: those of the sessions
    /// here are to be written again. One that is somebody else's by then is refused, and
    /// [`Claimed`](Self::Claimed) is told.
    Missed,
}

/// The fleet, as far as MCP sessions go.
pub trait SessionFleet: Send + Sync {
    /// This replica.
    fn me(&self) -> Replica;
    /// The id of a new session, from bits that nobody can guess.
    fn session_id(&self, random: &str) -> String;
    /// Whether this fleet gave a session that id.
    fn gave(&self, id: &str) -> bool;
    /// What a parked call is called, from bits that nobody can guess: it says whose it is.
    fn parked_id(&self, random: &str) -> Option<String>;
    /// Whose a parked call is, if this fleet named it.
    fn parked_at(&self, id: &str) -> Option<Replica>;
    /// The record of a session.
    fn load(&self, id: &str) -> Later<LookedUp>;
    /// Writes the record of a new session, and waits for it; false if it is not written yet.
    fn create(&self, id: &str, record: StoredSession) -> Later<bool>;
    /// Has a record written. If another replica has the session by then that is told.
    fn put(&self, id: &str, record: StoredSession);
    /// Makes a session this replica's, if its epoch is still the one that was seen.
    fn claim(&self, id: &str, seen: u64, record: StoredSession) -> Later<TakenOver>;
    /// Has a record deleted, unless it has a higher epoch.
    fn delete(&self, id: &str, epoch: u64);
    /// What the store knows of a replica that cannot be reached; nothing if it does not answer.
    fn signs_of(&self, instance: u128) -> Later<Option<OwnerSigns>>;
    /// Hands a request to another replica.
    fn forward(
        &self,
        to: &Replica,
        request: PeerRequest,
    ) -> Later<Result<PeerAnswer, NotForwarded>>;
    /// What is told of sessions. Asked for once.
    fn news(&self) -> mpsc::Receiver<SessionNews>;
}

/// A client's request on its way to the replica that has its session. The caller's key has been
/// checked; the owner checks that the session is that caller's.
#[derive(Clone, Debug)]
pub struct PeerRequest {
    /// Everything but its body.
    pub head: PeerRequestHead,
    /// The message.
    pub body: Bytes,
}

/// The head of a forwarded request.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PeerRequestHead {
    method: char,
    session: Option<String>,
    version: Option<String>,
    last_event: Option<String>,
    prefers_events: bool,
    headers: Vec<(String, String)>,
    caller: String,
}

/// The answer of another replica.
#[derive(Debug)]
pub struct PeerAnswer {
    /// Its head.
    pub head: PeerAnswerHead,
    /// Its body.
    pub body: PeerBody,
}

/// The head of a forwarded answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerAnswerHead {
    /// The HTTP status.
    pub status: u16,
    /// `retry-after`.
    pub retry_after: Option<u32>,
    /// Whether the body is a stream of events; otherwise it is JSON, or nothing.
    pub is_events: bool,
}

/// The body of another replica's answer, or of one for another replica.
#[derive(Debug)]
pub enum PeerBody {
    /// It is there; nothing once it was taken.
    Whole(Option<Bytes>),
    /// Events of a session here.
    Events(Box<SessionEvents>),
    /// It comes from elsewhere.
    Elsewhere(Box<dyn PeerPieces>),
}

/// A body that comes from elsewhere.
pub trait PeerPieces: Send + fmt::Debug {
    /// The next part; none if it broke. Giving up in the middle must lose nothing.
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<PeerPiece>> + Send + '_>>;
}

/// A stream of events of a session here.
#[derive(Debug)]
pub struct SessionEvents(pub(crate) EventBody);

impl PeerBody {
    /// The next part; none if it broke.
    pub async fn next(&mut self) -> Option<PeerPiece> {
        match self {
            Self::Whole(bytes) => {
                let bytes = bytes.take().filter(|it| !it.is_empty());
                Some(bytes.map_or(PeerPiece::End, PeerPiece::Bytes))
            }
            Self::Events(events) => {
                let frame = std::future::poll_fn(|cx| Pin::new(&mut events.0).poll_frame(cx)).await;
                match frame {
                    Some(Ok(frame)) => frame.into_data().ok().map(PeerPiece::Bytes),
                    Some(Err(_)) => None,
                    None => Some(PeerPiece::End),
                }
            }
            Self::Elsewhere(pieces) => pieces.next().await,
        }
    }
}

/// A part of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerPiece {
    /// Some of it.
    Bytes(Bytes),
    /// Nothing follows.
    End,
}

impl PeerRequest {
    /// A client's request, whole.
    pub(crate) fn of(request: &McpRequest) -> Self {
        let body = match &request.large {
            Some(large) => {
                let text = std::str::from_utf8(&request.body).unwrap_or_default();
                Bytes::from(large.put_back(text))
            }
            None => request.body.clone(),
        };
        let head = PeerRequestHead {
            method: match request.method {
                HttpMethod::Post => 'P',
                HttpMethod::Get => 'G',
                HttpMethod::Delete => 'D',
            },
            session: request.session.clone(),
            version: request.version.clone(),
            last_event: request.last_event.clone(),
            prefers_events: request.prefers_events,
            headers: request.headers.clone(),
            caller: request.caller.to_string(),
        };
        Self { head, body }
    }
}

impl PeerRequestHead {
    pub(crate) fn into_request(self, mut request: McpRequest) -> Option<McpRequest> {
        request.method = match self.method {
            'P' => HttpMethod::Post,
            'G' => HttpMethod::Get,
            'D' => HttpMethod::Delete,
            _ => return None,
        };
        request.session = self.session;
        request.version = self.version;
        request.last_event = self.last_event;
        request.prefers_events = self.prefers_events;
        request.headers = self.headers;
        request.caller = self.caller.into();
        Some(request)
    }
}
