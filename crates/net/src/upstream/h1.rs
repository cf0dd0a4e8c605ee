//! An HTTP/1.1 connection that runs inside the task that waits on it.
//!
//! Why it exists: a general client is a future of its own, with a channel between it and whoever
//! waits. Here the one who waits for the answer reads the socket, so an answer costs no wake-up of
//! another task, and chunks that came together leave together.
//!
//! Rules kept here:
//! - One request at a time. A request is written while its answer is read: a server that refuses a
//!   large body early is heard, and the connection is not used again (`is_kept`).
//! - Everything that comes from the other side is bounded: heads by [`head::HEAD_MAX`] and
//!   [`crate::fields::HEADERS_MAX`], interim answers by [`INTERIM_MAX`], reads by [`READ_MAX`].
//! - Nobody runs an idle connection: [`H1::is_usable`] looks whether the other side has closed it
//!   or sent something that nobody asked for.
//! - Dropped with an answer under way, it closes the socket at once.
//!
//! Left to others: deadlines and when to send again (the caller), how a head is read (`head.rs`)
//! and written (`write_head.rs`), where a body ends (`framing.rs`).

mod framing;
mod head;
#[cfg(test)]
mod tests;

mod write_head;

use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf, Bytes, BytesMut};
use http::{Method, Request, Response};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

use self::framing::{Framing, Step};
use self::head::Head;
pub(super) use self::write_head::written;
use super::{Io, SendError, SplicedBody, UpstreamError};

/// How much is read at once at first: an answer's head and a short body fit.
const READ_FIRST: usize = 8 * 1024;
/// A read may bring as little as this before another buffer is taken: the events of a stream come
/// one by one, and many of them fit into what is left of a buffer.
const READ_LEAST: usize = 1024;
/// How much is read at once at most, of a body that fills what was offered.
const READ_MAX: usize = 64 * 1024;
/// Answers that only announce another one (1xx); more than a few are nothing but a burden.
const INTERIM_MAX: usize = 16;

/// A connection, and what is known of the answer under way.
#[derive(Debug)]
pub struct H1 {
    io: Io,
    /// Read and not used yet.
    buffer: BytesMut,
    /// How much the next read may bring.
    read_size: usize,
    framing: Framing,
    /// Whether another request may follow the answer under way.
    is_kept: bool,
    /// Whether the answer under way is one that is silent for most of its life.
    is_quiet: bool,
}

/// A request on its way out.
struct Outgoing {
    head: Bytes,
    body: SplicedBody,
    /// Whether the other side may have seen any of it.
    is_begun: bool,
}

impl H1 {
    pub(super) fn new(io: Io) -> Self {
        let framing = Framing::ended();
        let (buffer, read_size) = (BytesMut::new(), READ_FIRST);
        Self { io, buffer, read_size, framing, is_kept: true, is_quiet: false }
    }

    /// Whether another request can go out on it, as far as can be told without waiting.
    pub(super) fn is_usable(&mut self) -> bool {
        if !self.is_kept || !self.framing.has_ended() || !self.buffer.is_empty() {
            return false;
        }
        // Nobody is to be woken: the answer is wanted now. Anything that comes, the end too, is
        // something that nobody asked for.
        let mut byte = [0];
        let cx = &mut Context::from_waker(Waker::noop());
        Pin::new(&mut self.io).poll_read(cx, &mut ReadBuf::new(&mut byte)).is_pending()
    }

    /// Whether the other side has closed the connection, as the system knows it.
    pub(super) fn is_closed(&self) -> bool {
        self.io.is_closed()
    }

    /// Gives back what an idle connection does not need.
    pub(super) fn rest(&mut self) {
        self.buffer = BytesMut::new();
        self.read_size = READ_FIRST;
        self.is_quiet = false;
    }

    /// The answer under way is silent for most of its life: no buffer is held while it is. The
    /// price is a buffer for each time that it says something.
    pub(super) fn expect_silence(&mut self) {
        self.is_quiet = true;
    }

    /// Sends a request and waits for the response head.
    pub(super) async fn send(
        &mut self,
        request: Request<SplicedBody>,
    ) -> Result<Response<()>, SendError> {
        let is_head_request = request.method() == Method::HEAD;
        let (parts, body) = request.into_parts();
        let Some(head) = write_head::request(&parts, body.len()) else {
            return Err(SendError::NotSent);
        };
        self.send_written(head, body, is_head_request).await
    }

    /// Sends a request whose head is bytes already, and waits for the response head.
    pub(super) async fn send_written(
        &mut self,
        head: Bytes,
        body: SplicedBody,
        is_head_request: bool,
    ) -> Result<Response<()>, SendError> {
        let mut outgoing = Outgoing { head, body, is_begun: false };
        let mut interim = 0;
        // Until the answer's framing is known, nothing of it may be taken for a body.
        self.framing = Framing::ended();
        self.is_kept = false;
        let head = poll_fn(|cx| self.poll_head(cx, &mut outgoing, &mut interim)).await?;
        self.framing = Framing::of(&head, is_head_request).map_err(SendError::Broken)?;
        let is_sent = outgoing.head.is_empty() && outgoing.body.is_empty();
        let is_delimited = self.framing.is_delimited() && !head.is_upgrade();
        self.is_kept = head.is_keep_alive && is_sent && is_delimited;
        Ok(head.response)
    }

    fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        outgoing: &mut Outgoing,
        interim: &mut usize,
    ) -> Poll<Result<Head, SendError>> {
        let written = self.poll_write(cx, outgoing);
        loop {
            if let Some(head) = head::parse(&mut self.buffer).map_err(SendError::Broken)? {
                // Another protocol was not asked for: who asked is told, as of any odd status.
                if !head.response.status().is_informational() || head.is_upgrade() {
                    return Poll::Ready(Ok(head));
                }
                *interim += 1;
                if *interim > INTERIM_MAX {
                    let error = UpstreamError::Malformed("too many interim answers");
                    return Poll::Ready(Err(SendError::Broken(error)));
                }
                continue;
            }
            let error = match self.poll_fill(cx) {
                Poll::Ready(Ok(0)) => UpstreamError::Ended,
                Poll::Ready(Ok(_)) => continue,
                Poll::Ready(Err(error)) => UpstreamError::Io(error),
                // A request that cannot be written may have an answer that says why: it is read
                // first. There is none, so the write's own failure is what is known.
                Poll::Pending => match written {
                    Poll::Ready(Err(error)) => UpstreamError::Io(error),
                    Poll::Ready(Ok(())) | Poll::Pending => return Poll::Pending,
                },
            };
            let is_unheard = !outgoing.is_begun && self.buffer.is_empty();
            let error = if is_unheard { SendError::NotSent } else { SendError::Broken(error) };
            return Poll::Ready(Err(error));
        }
    }

    /// Writes as much of the request as the socket takes.
    fn poll_write(&mut self, cx: &mut Context<'_>, out: &mut Outgoing) -> Poll<io::Result<()>> {
        while !out.head.is_empty() || !out.body.is_empty() {
            let [first, second, third] = out.body.pieces();
            let slices = [&out.head[..], first, second, third].map(IoSlice::new);
            let io = Pin::new(&mut self.io);
            let count = ready!(io.poll_write_vectored(cx, &slices))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            out.is_begun = true;
            let of_head = count.min(out.head.len());
            out.head.advance(of_head);
            out.body.advance(count - of_head);
        }
        Pin::new(&mut self.io).poll_flush(cx)
    }

    /// The next bytes of the answer's body, all that are ready in one piece; `None` at its end.
    pub(super) fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, UpstreamError>>> {
        loop {
            match self.framing.decode(&mut self.buffer) {
                Err(error) => return Poll::Ready(Some(Err(self.broken(error)))),
                Ok(Step::Data(data)) => return Poll::Ready(Some(Ok(data))),
                Ok(Step::Ended) => return Poll::Ready(None),
                Ok(Step::More) => {}
            }
            match ready!(self.poll_fill(cx)) {
                Ok(0) if self.framing.end_of_connection() => return Poll::Ready(None),
                Ok(0) => return Poll::Ready(Some(Err(self.broken(UpstreamError::Ended)))),
                Ok(_) => {}
                Err(error) => {
                    return Poll::Ready(Some(Err(self.broken(UpstreamError::Io(error)))));
                }
            }
        }
    }

    /// How many bytes of the body are still to come, if that was announced.
    pub(super) fn exact_len(&self) -> Option<u64> {
        self.framing.exact_len()
    }

    /// Nothing more is read of an answer that broke.
    fn broken(&mut self, error: UpstreamError) -> UpstreamError {
        self.framing = Framing::ended();
        self.is_kept = false;
        error
    }

    /// Reads what is there, into the buffer; 0 at the end of the connection.
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let least = if self.read_size > READ_FIRST { self.read_size } else { READ_LEAST };
        if self.buffer.capacity() - self.buffer.len() < least {
            self.buffer.reserve(self.read_size);
        }
        let offered = self.buffer.capacity() - self.buffer.len();
        let mut reading = pin!(self.io.read_buf(&mut self.buffer));
        // It keeps nothing between polls, so it need not be kept.
        let Poll::Ready(read) = reading.as_mut().poll(cx) else {
            if self.is_quiet && self.buffer.is_empty() {
                self.buffer = BytesMut::new();
            }
            return Poll::Pending;
        };
        let read = read?;
        if read == offered && offered >= self.read_size {
            // There is more where that came from.
            self.read_size = (2 * self.read_size).min(READ_MAX);
        }
        Poll::Ready(Ok(read))
    }
}
