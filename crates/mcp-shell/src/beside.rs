//! Large messages of servers, read beside the thread that serves all clients.
//!
//! Reading a message takes as long as it is large, and the MCP thread does it for everybody. What
//! is above [`LARGE`] is therefore read on a thread of its own kind, by every transport, and the
//! Hub gets the answer in it as a part of the message that needs no reading. At most [`AT_ONCE`] at
//! a time, because processors are everybody's.
//!
//! Left to others: what a message is to a transport (`http/reading.rs`, `stdio/conversation.rs`),
//! and large requests of clients (`large.rs`).

use bytes::Bytes;
use tidegate_mcp::message::LARGE;
use tokio::sync::Semaphore;

use crate::transport::{ConnectionEvent, LargeAnswer};

/// Large messages that are read at a time.
const AT_ONCE: usize = 2;

static TURNS: Semaphore = Semaphore::const_new(AT_ONCE);

/// What a large message was found to be.
#[derive(Debug)]
pub(crate) enum Received {
    /// The answer to a request of ours.
    Answer(LargeAnswer),
    /// Another message, which the Hub reads.
    Message {
        bytes: Bytes,
        /// The request that it answers in a form that only the Hub can judge.
        answered: Option<u64>,
    },
    /// No message.
    Garbage(Bytes),
}

/// Whether a message is read beside the MCP thread.
pub(crate) fn is_large(bytes: &[u8]) -> bool {
    bytes.len() > LARGE
}

/// Does something on another thread, in its turn; none if it could not be done.
pub(crate) async fn beside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let _turn = TURNS.acquire().await.ok()?;
    tokio::task::spawn_blocking(work).await.ok()
}

impl Received {
    /// Reads one message. `judge` says what one that is no answer answers nevertheless, or that it
    /// is no message.
    pub(crate) fn read(bytes: Bytes, judge: impl FnOnce(&[u8]) -> Result<Option<u64>, ()>) -> Self {
        if let Some(answer) = LargeAnswer::read(&bytes) {
            return Self::Answer(answer);
        }
        match judge(&bytes) {
            Ok(answered) => Self::Message { bytes, answered },
            Err(()) => Self::Garbage(bytes),
        }
    }

    /// The request of ours that it answers.
    pub(crate) fn answered(&self) -> Option<u64> {
        match self {
            Self::Answer(answer) => Some(answer.call),
            Self::Message { answered, .. } => *answered,
            Self::Garbage(_) => None,
        }
    }

    /// What its owner hears; nothing of what is no message. `call` is the request on whose stream
    /// it came, where there are such streams.
    pub(crate) fn into_event(self, call: Option<u64>) -> Option<ConnectionEvent> {
        match self {
            Self::Answer(answer) => Some(ConnectionEvent::LargeAnswer(answer)),
            Self::Message { bytes, .. } => Some(ConnectionEvent::Message { bytes, call }),
            Self::Garbage(_) => None,
        }
    }
}
