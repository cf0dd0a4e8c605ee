//! An answer's body; its connection is answering until it is gone.
//!
//! A client that has closed its side may be waiting for the rest or may have gone, and only a write
//! tells which. An answer in events that is silent is therefore given a comment now and then: a
//! client that has gone refuses it, and the answer is given up.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderValue, Response, header};
use http_body::{Body, Frame, SizeHint};

use super::activity::AnsweringGuard;
use super::half_close::{Beats, COMMENT};
use crate::client_body::ClientBody;

/// The body.
pub(super) struct AnswerBody {
    body: ClientBody,
    guard: AnsweringGuard,
    /// It is a stream of events without a length, so that comments can be added.
    takes_comments: bool,
    /// The last byte sent was the end of an event.
    is_between_events: bool,
    beats: Option<Beats>,
}

impl AnswerBody {
    /// The response with its body watched.
    pub(super) fn around(response: Response<ClientBody>, guard: AnsweringGuard) -> Response<Self> {
        let (head, body) = response.into_parts();
        let is_events = |value: &HeaderValue| value.as_bytes().starts_with(b"text/event-stream");
        let takes_comments = body.size_hint().exact().is_none()
            && head.headers.get(header::CONTENT_TYPE).is_some_and(is_events);
        let mut guard = guard;
        if body.is_end_stream() {
            guard.finish();
        }
        let watched = Self { body, guard, takes_comments, is_between_events: true, beats: None };
        Response::from_parts(head, watched)
    }

    /// A comment, if a client that has closed its side hears nothing.
    fn poll_comment(&mut self, cx: &mut Context<'_>) -> Poll<Frame<Bytes>> {
        let is_due =
            self.takes_comments && self.is_between_events && self.guard.activity().is_half_closed();
        if !is_due {
            return Poll::Pending;
        }
        ready!(self.beats.get_or_insert_with(Beats::new).poll_beat(cx));
        Poll::Ready(Frame::data(Bytes::from_static(COMMENT)))
    }
}

impl Body for AnswerBody {
    type Data = <ClientBody as Body>::Data;
    type Error = <ClientBody as Body>::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let this = self.get_mut();
        match Pin::new(&mut this.body).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(data) = frame.data_ref() {
                    this.is_between_events = data.ends_with(b"\n\n") || data.ends_with(b"\r\n\r\n");
                }
                this.guard.gave(true);
                if this.body.is_end_stream() {
                    this.guard.finish();
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(end) => {
                this.guard.finish();
                Poll::Ready(end)
            }
            Poll::Pending => {
                this.guard.gave(false);
                this.poll_comment(cx).map(|comment| Some(Ok(comment)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
