//! A request's body, over either version of HTTP.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::h1::{BodyBroke, Incoming};

/// The body.
pub struct RequestBody(Source);

/// Where it comes from.
enum Source {
    H1(Incoming),
    H2(hyper::body::Incoming),
}

impl RequestBody {
    pub(super) fn over_h1(incoming: Incoming) -> Self {
        Self(Source::H1(incoming))
    }

    pub(super) fn over_h2(incoming: hyper::body::Incoming) -> Self {
        Self(Source::H2(incoming))
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BodyBroke;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyBroke>>> {
        match &mut self.get_mut().0 {
            Source::H1(incoming) => {
                incoming.poll_data(cx).map(|data| data.map(|data| data.map(Frame::data)))
            }
            Source::H2(incoming) => {
                let frame = Pin::new(incoming).poll_frame(cx);
                frame.map(|frame| frame.map(|frame| frame.map_err(|_| BodyBroke)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Source::H1(incoming) => incoming.has_ended(),
            Source::H2(incoming) => incoming.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Source::H1(incoming) => {
                incoming.exact_len().map_or_else(SizeHint::default, SizeHint::with_exact)
            }
            Source::H2(incoming) => incoming.size_hint(),
        }
    }
}
