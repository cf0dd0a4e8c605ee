//! Bodies of a fake MCP server's answers: whole, or a stream of events.
//!
//! Rules kept here:
//! - What was said before a cut reaches the socket first: the body gives way once, so that the
//!   connection is flushed, before it fails.

use std::fmt::{self, Write as _};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body::Frame;

use super::talk::{Out, Outs};

/// Why a connection ended: on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the script breaks the connection here")]
pub(super) struct Cut;

/// The body of an answer.
#[derive(Debug)]
pub(super) enum Body {
    Whole(Option<Bytes>),
    Events(EventBody),
}

/// A stream of events as a body.
#[derive(Debug)]
pub(super) struct EventBody {
    /// What comes before everything else.
    first: Option<Bytes>,
    outs: Outs,
    has_ids: bool,
    is_cut: bool,
    /// What the end of the stream means, whoever ends it.
    _ending: Option<OnDrop>,
}

/// Something that is done when this is dropped.
pub(super) struct OnDrop(Option<Box<dyn FnOnce()>>);

impl OnDrop {
    pub(super) fn new(act: impl FnOnce() + 'static) -> Self {
        Self(Some(Box::new(act)))
    }
}

impl Drop for OnDrop {
    fn drop(&mut self) {
        if let Some(act) = self.0.take() {
            act();
        }
    }
}

impl fmt::Debug for OnDrop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnDrop")
    }
}

impl Body {
    pub(super) fn new(status: StatusCode, kind: &'static str, text: Bytes) -> Response<Self> {
        let mut response = Response::new(Self::Whole(Some(text)));
        *response.status_mut() = status;
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        response
    }

    pub(super) fn json(status: StatusCode, text: String) -> Response<Self> {
        Self::new(status, "application/json", text.into())
    }

    pub(super) fn status(status: StatusCode) -> Response<Self> {
        let mut response = Response::new(Self::Whole(None));
        *response.status_mut() = status;
        response
    }

    /// A stream of one event.
    pub(super) fn one_event(text: &str) -> Response<Self> {
        Self::new(StatusCode::OK, "text/event-stream", event(None, text))
    }

    /// A stream of events, for as long as somebody speaks.
    pub(super) fn events(outs: Outs, has_ids: bool) -> Response<Self> {
        Self::stream(EventBody { first: None, outs, has_ids, is_cut: false, _ending: None })
    }

    /// The same, with something that is done when the stream ends.
    pub(super) fn events_until(outs: Outs, ending: OnDrop) -> Response<Self> {
        let _ending = Some(ending);
        Self::stream(EventBody { first: None, outs, has_ids: false, is_cut: false, _ending })
    }

    /// The same, with an event before all others.
    pub(super) fn events_from(first: String, outs: Outs, ending: OnDrop) -> Response<Self> {
        let (first, _ending) = (Some(first.into()), Some(ending));
        Self::stream(EventBody { first, outs, has_ids: false, is_cut: false, _ending })
    }

    fn stream(events: EventBody) -> Response<Self> {
        let mut response = Self::new(StatusCode::OK, "text/event-stream", Bytes::new());
        *response.body_mut() = Self::Events(events);
        response
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        match &mut *self {
            Self::Whole(text) => Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
            Self::Events(EventBody { is_cut: true, .. }) => Poll::Ready(Some(Err(Cut))),
            Self::Events(EventBody { first: first @ Some(_), .. }) => {
                Poll::Ready(first.take().map(|first| Ok(Frame::data(first))))
            }
            Self::Events(EventBody { outs, has_ids, is_cut, .. }) => {
                match ready!(outs.poll_recv(cx)) {
                    None => Poll::Ready(None),
                    Some(Out::Prime(id)) => {
                        let text = format!("id: {id}\nretry: 50\ndata: \n\n");
                        Poll::Ready(Some(Ok(Frame::data(text.into()))))
                    }
                    Some(Out::Message(id, text)) => {
                        let id = has_ids.then_some(id.as_str());
                        Poll::Ready(Some(Ok(Frame::data(event(id, &text)))))
                    }
                    Some(Out::Cut) => {
                        *is_cut = true;
                        cx.waker().wake_by_ref();
                        Poll::Pending
                    }
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }
}

fn event(id: Option<&str>, text: &str) -> Bytes {
    let mut event = String::with_capacity(text.len() + 64);
    if let Some(id) = id {
        // Writing to a string cannot fail.
        let _ = writeln!(event, "id: {id}");
    }
    event.push_str("event: message\n");
    for line in text.split('\n') {
        let _ = writeln!(event, "data: {line}");
    }
    event.push('\n');
    event.into()
}
