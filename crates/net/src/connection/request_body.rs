//! A request's body that remembers whether it was read to its end.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Request;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

/// The body.
#[derive(Debug)]
pub struct RequestBody {
    incoming: Incoming,
    reading: Reading,
}

/// How far a body was read.
#[derive(Clone, Debug)]
pub(super) struct Reading(Rc<Cell<bool>>);

impl Reading {
    /// Whether nothing of it is left.
    pub(super) fn has_ended(&self) -> bool {
        self.0.get()
    }
}

impl RequestBody {
    /// A request with such a body, and what tells how far it was read.
    pub(super) fn of(request: Request<Incoming>) -> (Request<Self>, Reading) {
        let reading = Reading(Rc::new(Cell::new(request.body().is_end_stream())));
        let known = reading.clone();
        (request.map(|incoming| Self { incoming, reading }), known)
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = self.get_mut();
        let frame = Pin::new(&mut this.incoming).poll_frame(cx);
        if matches!(frame, Poll::Ready(None)) {
            this.reading.0.set(true);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
