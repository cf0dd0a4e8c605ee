//! The body of an upstream request: the client's bytes in up to three pieces, none copied.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};

/// A few pieces of bytes, sent one after the other.
#[derive(Clone, Debug, Default)]
pub struct SplicedBody {
    pieces: [Bytes; 3],
}

impl SplicedBody {
    pub fn new(pieces: [Bytes; 3]) -> Self {
        Self { pieces }
    }

    pub fn is_empty(&self) -> bool {
        self.pieces.iter().all(Bytes::is_empty)
    }

    pub fn len(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.remaining() as u64).sum()
    }

    /// What is left of each piece.
    pub(super) fn pieces(&self) -> [&[u8]; 3] {
        let [first, second, third] = &self.pieces;
        [first, second, third]
    }

    /// So many bytes have been sent.
    pub(super) fn advance(&mut self, mut count: usize) {
        for piece in &mut self.pieces {
            let of_this = count.min(piece.len());
            piece.advance(of_this);
            count -= of_this;
        }
    }
}

impl Body for SplicedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let pieces = &mut self.get_mut().pieces;
        let next = pieces.iter_mut().find(|piece| !piece.is_empty()).map(std::mem::take);
        Poll::Ready(next.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.len())
    }
}
