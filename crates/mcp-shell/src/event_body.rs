//! A stream of events on its way to a client: from the MCP thread to the worker that writes it.
//!
//! Rules kept here:
//! - At most [`BATCHES_AHEAD`] times [`BATCH_MAX`] events wait for the client's connection: one
//!   that does not read holds back its own stream and nothing else.
//! - Events that are there together go together, and so does the end: each crossing between threads
//!   costs a wake-up, and each write to a client a system call. What is there when the answer
//!   begins goes with it; an answer that is over by then is no stream at all.
//! - A body that is dropped before its stream was over says so, once. One that was read to the end
//!   says nothing: the MCP thread has closed it.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame};
use tidegate_mcp::hub::{ReaderId, RequestToken};
use tidegate_net::client_body::Broke;
use tokio::sync::mpsc;

/// Batches that may wait for a client's connection.
const BATCHES_AHEAD: usize = 2;
/// Events in one of them.
pub(crate) const BATCH_MAX: usize = 16;

/// Events that are there together.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) events: VecDeque<Bytes>,
    /// Nothing follows.
    pub(crate) is_last: bool,
}

/// What the MCP thread hears of clients beside their requests.
#[derive(Debug)]
pub(crate) enum ClientNews {
    /// It has left before its answer began.
    RequestGone(RequestToken),
    /// It has left a stream.
    ReaderGone(ReaderId),
    /// Its connection has room again.
    Room(ReaderId),
}

/// The receiving end of a stream.
#[derive(Debug)]
pub(crate) struct EventBody {
    batches: mpsc::Receiver<Batch>,
    /// What is left of the latest one.
    current: Batch,
    reader: ReaderId,
    news: mpsc::UnboundedSender<ClientNews>,
}

impl EventBody {
    /// The body of a reader, which begins with these events, and where the others go.
    pub(crate) fn new(
        reader: ReaderId,
        first: Batch,
        news: mpsc::UnboundedSender<ClientNews>,
    ) -> (mpsc::Sender<Batch>, Self) {
        let (sender, batches) = mpsc::channel(BATCHES_AHEAD);
        (sender, Self { batches, current: first, reader, news })
    }
}

impl Body for EventBody {
    type Data = Bytes;
    type Error = Broke;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broke>>> {
        let this = self.get_mut();
        loop {
            if let Some(event) = this.current.events.pop_front() {
                return Poll::Ready(Some(Ok(Frame::data(event))));
            }
            if this.current.is_last {
                return Poll::Ready(None);
            }
            // Without a last batch the MCP thread has ended: so does the stream.
            let next = ready!(this.batches.poll_recv(cx));
            this.current = next.unwrap_or(Batch { is_last: true, ..Batch::default() });
        }
    }
}

impl Drop for EventBody {
    fn drop(&mut self) {
        if !self.current.is_last {
            // The MCP thread may have ended.
            drop(self.news.send(ClientNews::ReaderGone(self.reader)));
        }
    }
}
