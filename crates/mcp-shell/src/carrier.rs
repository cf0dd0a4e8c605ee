//! The transports to a server, as one.

use bytes::Bytes;
use http::HeaderMap;

use super::{http::HttpTransport, sse::SseTransport, stdio::StdioTransport};

/// A transport at work.
pub(crate) enum Carrier {
    Http(HttpTransport),
    Sse(SseTransport),
    Stdio(StdioTransport),
}

impl Carrier {
    /// Sends a request. `heads` are the headers that repeat what it says, in the stateless era.
    pub(crate) fn request(&self, call: u64, message: Bytes, heads: Option<HeaderMap>) {
        match self {
            Self::Http(transport) => transport.request(call, message, heads),
            Self::Sse(transport) => transport.request(call, message),
            Self::Stdio(transport) => transport.request(call, message),
        }
    }

    /// Sends a notification or an answer.
    pub(crate) fn notice(&self, message: Bytes) {
        match self {
            Self::Http(transport) => transport.notice(message),
            Self::Sse(transport) => transport.notice(message),
            Self::Stdio(transport) => transport.notice(message),
        }
    }

    /// `initialize` was answered.
    pub(crate) fn negotiated(&self, version: &str) {
        match self {
            Self::Http(transport) => transport.negotiated(version),
            Self::Sse(transport) => transport.negotiated(version),
            Self::Stdio(transport) => transport.negotiated(version),
        }
    }

    /// Nobody waits for a request any more.
    pub(crate) fn forget(&self, call: u64) {
        match self {
            Self::Http(transport) => transport.forget(call),
            Self::Sse(transport) => transport.forget(call),
            Self::Stdio(transport) => transport.forget(call),
        }
    }

    /// The server's name, if it is a program that was started for it.
    pub(crate) fn program_of(&self) -> Option<&str> {
        match self {
            Self::Http(_) | Self::Sse(_) => None,
            Self::Stdio(transport) => Some(transport.name()),
        }
    }

    /// Ends the conversation in good order.
    pub(crate) async fn close(self) {
        match self {
            Self::Http(transport) => transport.close().await,
            Self::Sse(transport) => transport.close(),
            Self::Stdio(transport) => transport.close().await,
        }
    }
}
