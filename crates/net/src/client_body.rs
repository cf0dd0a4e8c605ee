//! What a client gets: a body of our own, an upstream's on its way through, or MCP events.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::mpsc;

/// The body of an answer.
pub enum ClientBody {
    /// All of it is here.
    Whole(VecDeque<Bytes>),
    /// It is still coming.
    Passing(Box<dyn Body<Data = Bytes, Error = Broke> + Unpin>),
    /// Events of an MCP session, for as long as there are any.
    Streaming(mpsc::Receiver<Bytes>),
}

/// The answer broke, and there is no way to say so inside it: the connection is aborted, never
/// ended cleanly.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the upstream's answer broke")]
pub struct Broke;

impl ClientBody {
    pub fn empty() -> Self {
        Self::Whole(VecDeque::new())
    }
}

impl From<Bytes> for ClientBody {
    fn from(bytes: Bytes) -> Self {
        Self::Whole(VecDeque::from([bytes]))
    }
}

impl Body for ClientBody {
    type Data = Bytes;
    type Error = Broke;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broke>>> {
        match self.get_mut() {
            Self::Whole(pieces) => Poll::Ready(pieces.pop_front().map(|it| Ok(Frame::data(it)))),
            Self::Passing(rest) => Pin::new(rest).poll_frame(cx),
            Self::Streaming(events) => {
                events.poll_recv(cx).map(|it| it.map(|it| Ok(Frame::data(it))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(pieces) => pieces.is_empty(),
            Self::Passing(_) | Self::Streaming(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(pieces) => {
                SizeHint::with_exact(pieces.iter().map(|it| it.len() as u64).sum())
            }
            Self::Passing(rest) => rest.size_hint(),
            Self::Streaming(_) => SizeHint::default(),
        }
    }
}
