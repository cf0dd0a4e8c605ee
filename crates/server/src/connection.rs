//! A client's connection, on whichever listener it arrives: data and admin are served alike.
//!
//! | file | one idea |
//! |---|---|
//! | `listener.rs` | accepts connections, within a bound |
//! | `table.rs` | the open connections of a listener, and which one makes room for a new one |
//! | `activity.rs` | what a connection is doing, as its parts tell each other |
//! | `client_io.rs` | its bytes, with limits on waiting for the client |
//! | `half_close.rs` | clients that send no more, and may still wait for their answer |
//! | `head_scan.rs`, `chunk_scan.rs` | a strict eye on HTTP/1.1 framing |
//! | `request_body.rs`, `answer_body.rs` | bodies that tell whether they were read, and sent |
//!
//! Rules kept here:
//! - A body that nobody read to its end closes an HTTP/1.1 connection after the answer: what
//!   follows on it cannot be trusted to begin where it seems to.
//! - At the drain an idle connection ends at once, and one with a request under way after its
//!   answer.

mod activity;
mod answer_body;
mod chunk_scan;
mod client_io;
mod half_close;
mod head_scan;
mod listener;
mod request_body;
mod table;

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use http::{HeaderValue, Request, Response, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

pub(crate) use self::activity::Activity;
use self::answer_body::AnswerBody;
use self::client_io::ClientIo;
pub(crate) use self::listener::Listener;
pub(crate) use self::request_body::RequestBody;
use crate::{
    data::ClientBody,
    worker::{Phase, reached},
};

/// An answer that is being made.
pub(crate) type Answering = Pin<Box<dyn Future<Output = Response<ClientBody>>>>;

/// What answers the requests of a listener. The future is boxed, so that what answering takes is
/// gone when the answer has begun: a connection has room for its future for as long as it lives.
pub(crate) type Handler = Rc<dyn Fn(Request<RequestBody>) -> Answering>;

/// What a connection may send before its request is understood.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeadLimits {
    pub(crate) bytes: usize,
}

/// What every connection of a listener is served with.
#[derive(Clone)]
pub(crate) struct Service {
    pub(crate) handler: Handler,
    pub(crate) limits: HeadLimits,
    pub(crate) phase: watch::Receiver<Phase>,
}

impl Service {
    /// Serves one connection to its end.
    pub(crate) async fn converse(
        &self,
        io: impl AsyncRead + AsyncWrite + Unpin + 'static,
        activity: &Rc<Activity>,
    ) {
        let (handler, known) = (Rc::clone(&self.handler), Rc::clone(activity));
        let service = service_fn(move |request| answer(&handler, &known, request));
        let io = ClientIo::new(io, Rc::clone(activity));
        let connection = http1::Builder::new()
            // `ClientIo` has the limits on waiting, for heads and between requests.
            .header_read_timeout(None)
            .max_header_size(self.limits.bytes)
            .max_buf_size(self.limits.bytes.max(8192))
            .serve_connection(TokioIo::new(io), service);
        tokio::pin!(connection);
        tokio::select! {
            // A client that breaks its connection is its own affair.
            _ = connection.as_mut() => {}
            () = reached(self.phase.clone(), Phase::Draining) => {
                connection.as_mut().graceful_shutdown();
                drop(connection.await);
            }
        }
    }
}

/// Has a request answered, and the connection closed after it if its body was not read.
fn answer(
    handler: &Handler,
    activity: &Rc<Activity>,
    request: Request<Incoming>,
) -> impl Future<Output = Result<Response<AnswerBody>, Infallible>> + use<> {
    let guard = activity.begin(request.version());
    let (request, reading) = RequestBody::of(request);
    let answering = handler(request);
    async move {
        let mut response = answering.await;
        if !reading.has_ended() {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(header::CONNECTION, close);
        }
        Ok(AnswerBody::around(response, guard))
    }
}
