//! The body of an upstream's answer, together with the connection that it comes over.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use http_body::Body;
use hyper::body::Incoming;

use super::UpstreamError;
use super::pool::{PooledConnection, Sender};

/// What is still to come of an answer. Dropped early, it closes an HTTP/1.1 connection and resets
/// an HTTP/2 stream.
#[derive(Debug)]
pub struct UpstreamBody {
    connection: PooledConnection,
    /// Over HTTP/2 the body is a value of its own; over HTTP/1.1 the connection reads it.
    h2: Option<Incoming>,
}

impl UpstreamBody {
    pub(super) fn over_h1(connection: PooledConnection) -> Self {
        Self { connection, h2: None }
    }

    pub(super) fn over_h2(body: Incoming, connection: PooledConnection) -> Self {
        Self { connection, h2: Some(body) }
    }

    /// The next bytes, or the end.
    pub fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, UpstreamError>>> {
        match (&mut self.connection.sender, &mut self.h2) {
            (Sender::H1(h1), _) => h1.poll_data(cx),
            (Sender::H2(_), Some(body)) => poll_incoming(body, cx),
            (Sender::H2(_), None) => Poll::Ready(None),
        }
    }

    /// The next bytes, or the end.
    pub async fn data(&mut self) -> Option<Result<Bytes, UpstreamError>> {
        poll_fn(|cx| self.poll_data(cx)).await
    }

    /// Most of the time nothing comes: what reading needs is not held while it waits.
    pub fn expect_silence(&mut self) {
        if let Sender::H1(h1) = &mut self.connection.sender {
            h1.expect_silence();
        }
    }

    /// Whether nothing more comes, as far as can be told without waiting. Bytes that come instead
    /// are lost: only for a body whose rest nobody wants.
    pub(super) fn has_ended(&mut self) -> bool {
        matches!(self.poll_data(&mut Context::from_waker(Waker::noop())), Poll::Ready(None))
    }

    /// How much is still to come, if that was announced.
    pub fn exact_len(&self) -> Option<u64> {
        match (&self.connection.sender, &self.h2) {
            (Sender::H1(h1), _) => h1.exact_len(),
            (Sender::H2(_), body) => body.as_ref().and_then(|it| it.size_hint().exact()),
        }
    }

    /// The connection, of a body that was read to its end.
    pub(super) fn into_lease(self) -> PooledConnection {
        self.connection
    }
}

/// The next bytes of an HTTP/2 body. Trailers say nothing to anybody here.
fn poll_incoming(
    body: &mut Incoming,
    cx: &mut Context<'_>,
) -> Poll<Option<Result<Bytes, UpstreamError>>> {
    loop {
        // Known without asking where the length was announced.
        if body.is_end_stream() {
            return Poll::Ready(None);
        }
        match ready!(Pin::new(&mut *body).poll_frame(cx)) {
            None => return Poll::Ready(None),
            Some(Err(error)) => return Poll::Ready(Some(Err(UpstreamError::H2(error)))),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Poll::Ready(Some(Ok(data)));
                }
            }
        }
    }
}
