//! The body of an upstream's answer, together with the connection that it comes over.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body::{Body, Frame};
use hyper::body::Incoming;

use super::pool::{PooledConnection, Sender};

/// What is still to come of an answer. Dropped early, it closes an HTTP/1.1 connection and resets
/// an HTTP/2 stream.
#[derive(Debug)]
pub struct UpstreamBody {
    body: Incoming,
    connection: PooledConnection,
}

impl UpstreamBody {
    pub(super) fn new(body: Incoming, connection: PooledConnection) -> Self {
        Self { body, connection }
    }

    /// The next frame, or the end.
    pub fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        // Known without asking where the length was announced.
        if self.body.is_end_stream() {
            return Poll::Ready(None);
        }
        match &mut self.connection.sender {
            Sender::H1(h1) => h1.poll_frame(&mut self.body, cx),
            Sender::H2(_) => Pin::new(&mut self.body).poll_frame(cx),
        }
    }

    /// The next frame, or the end.
    pub async fn frame(&mut self) -> Option<Result<Frame<Bytes>, hyper::Error>> {
        poll_fn(|cx| self.poll_frame(cx)).await
    }

    /// Whether nothing more comes, as far as can be told without waiting. A frame that comes
    /// instead is lost: only for a body whose rest nobody wants.
    pub(super) fn has_ended(&mut self) -> bool {
        matches!(self.poll_frame(&mut Context::from_waker(Waker::noop())), Poll::Ready(None))
    }

    /// How much is still to come, if that was announced.
    pub fn exact_len(&self) -> Option<u64> {
        self.body.size_hint().exact()
    }

    /// The connection, of a body that was read to its end.
    pub(super) fn into_lease(self) -> PooledConnection {
        self.connection
    }
}
