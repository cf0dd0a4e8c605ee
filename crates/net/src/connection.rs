//! A client's connection, on whichever listener it arrives: data and admin are served alike.
//!
//! | file | one idea |
//! |---|---|
//! | `listener.rs` | accepts connections, within a bound |
//! | `table.rs` | the open connections of a listener, and which one makes room for a new one |
//! | `activity.rs` | what a connection is doing, as its parts tell each other |
//! | `tls.rs`, `h2.rs` | what a secure listener presents; HTTP/2, which only it speaks |
//! | `client_io.rs` | its bytes, with limits on waiting for the client |
//! | `half_close.rs` | clients that send no more, and may still wait for their answer |
//! | `head_scan.rs`, `chunk_scan.rs` | a strict eye on HTTP/1.1 framing |
//! | `request_body.rs`, `answer_body.rs` | bodies that tell whether they were read, and sent |
//!
//! Rules kept here:
//! - A body that nobody read to its end closes an HTTP/1.1 connection after the answer: what
//!   follows on it cannot be trusted to begin where it seems to.
//! - At the drain an idle connection ends at once, one with a request under way after its answer,
//!   and one that has not asked anything yet is given a moment for its first request.

mod activity;
mod answer_body;
mod chunk_scan;
mod client_io;
mod h2;
mod half_close;
mod head_scan;
mod listener;
mod request_body;
mod table;
mod tls;

use std::convert::Infallible;
use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use http::{Extensions, HeaderMap, HeaderValue, Method, Request, Response, Version, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tidegate_runtime::{
    dormant::Dormant,
    phase::{Phase, reached},
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;

pub use self::activity::Activity;
use self::answer_body::AnswerBody;
use self::client_io::ClientIo;
pub use self::listener::Listener;
pub use self::request_body::RequestBody;
pub use self::tls::{Certificates, Presented, TlsProblem, TlsTexts};
use crate::client_body::ClientBody;

/// How long a connection that was just made may take for its first request, at the drain.
const FIRST_REQUEST_WITHIN: Duration = Duration::from_millis(250);

/// An answer that is being made.
pub type Answering = Pin<Box<dyn Future<Output = Response<ClientBody>>>>;

/// What answers the requests of a listener. The future is boxed, so that what answering takes is
/// gone when the answer has begun: a connection has room for its future for as long as it lives.
pub type Handler = Rc<dyn Fn(Request<RequestBody>) -> Answering>;

/// Whether closing the connection calls a request with these headers off: a client that closes its
/// side of it has gone then, and is not waited for.
pub type CancelRule = fn(&HeaderMap) -> bool;

/// What a connection may send before its request is understood.
#[derive(Clone, Copy, Debug)]
pub struct HeadLimits {
    pub bytes: usize,
}

/// What every connection of a listener is served with.
#[derive(Clone)]
pub struct Service {
    pub handler: Handler,
    pub limits: HeadLimits,
    pub is_cancelled_by_closing: CancelRule,
    pub phase: watch::Receiver<Phase>,
    /// What its connections are secured with; plain where it holds nothing.
    pub certificates: Arc<Certificates>,
}

/// The scheme of a connection without TLS.
const PLAIN: &str = "http";

/// The scheme of the urls that lead to the connection of a request, where it is not [`PLAIN`].
#[derive(Clone, Copy, Debug)]
struct Scheme(&'static str);

/// `http` or `https`, as the connection of a request is.
pub fn scheme(extensions: &Extensions) -> &'static str {
    extensions.get().map_or(PLAIN, |Scheme(scheme)| scheme)
}

impl Service {
    /// Serves one connection to its end, after the handshake if it is to be secure.
    async fn serve(&self, stream: TcpStream, activity: &Rc<Activity>) {
        let Some(presented) = self.certificates.get() else {
            return self.converse(stream, activity, PLAIN).await;
        };
        let secured = tokio::select! {
            secured = tls::handshake(stream, &presented) => secured,
            () = self.drain_and_grace() => None,
        };
        match secured {
            Some((stream, true)) => h2::converse(self, stream, activity).await,
            Some((stream, false)) => self.converse(stream, activity, "https").await,
            None => {}
        }
    }

    /// Speaks HTTP/1.1 to the end of a connection.
    pub async fn converse(
        &self,
        io: impl AsyncRead + AsyncWrite + Unpin + 'static,
        activity: &Rc<Activity>,
        scheme: &'static str,
    ) {
        let (handler, known) = (Rc::clone(&self.handler), Rc::clone(activity));
        let rule = self.is_cancelled_by_closing;
        let service = service_fn(move |request| answer((&handler, rule), &known, request, scheme));
        let io = ClientIo::new(io, Rc::clone(activity));
        let connection = http1::Builder::new()
            // `ClientIo` has the limits on waiting, for heads and between requests.
            .header_read_timeout(None)
            .max_header_size(self.limits.bytes)
            .max_buf_size(self.limits.bytes.max(8192))
            .serve_connection(TokioIo::new(io), service);
        tokio::pin!(connection);
        let may_close = pin!(self.may_close(activity));
        let may_close = Dormant::new(may_close);
        tokio::select! {
            biased;
            // A client that breaks its connection is its own affair.
            _ = connection.as_mut() => {}
            () = may_close => {
                connection.as_mut().graceful_shutdown();
                drop(connection.await);
            }
        }
    }
}

impl Service {
    /// Until the drain, and for whoever has just connected a moment longer: its request is on its
    /// way, and would be lost without a word.
    async fn may_close(&self, activity: &Activity) {
        reached(self.phase.clone(), Phase::Draining).await;
        // Whether it asked or not, its time is over.
        drop(tokio::time::timeout(FIRST_REQUEST_WITHIN, activity.asked()).await);
    }

    async fn drain_and_grace(&self) {
        reached(self.phase.clone(), Phase::Draining).await;
        tokio::time::sleep(FIRST_REQUEST_WITHIN).await;
    }
}

/// Has a request answered, and the connection closed after it if its body was not read.
fn answer(
    (handler, is_cancelled): (&Handler, CancelRule),
    activity: &Rc<Activity>,
    mut request: Request<Incoming>,
    scheme: &'static str,
) -> impl Future<Output = Result<Response<AnswerBody>, Infallible>> + use<> {
    let has_no_answer_body = request.method() == Method::HEAD;
    let version = request.version();
    let mut guard = activity.begin(version);
    activity.closing_cancels(is_cancelled(request.headers()));
    // What is not said is `http`: the first extension of a request costs three allocations.
    if scheme != PLAIN {
        request.extensions_mut().insert(Scheme(scheme));
    }
    let refusal = h2::check(&mut request);
    let (request, reading) = RequestBody::of(request);
    let answering = match refusal {
        Some(refusal) => Box::pin(std::future::ready(refusal)),
        None => handler(request),
    };
    async move {
        let mut response = answering.await;
        if version == Version::HTTP_2 {
            // There, a stream ends by itself and a connection has no such header.
            response.headers_mut().remove(header::CONNECTION);
        } else if !reading.has_ended() {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(header::CONNECTION, close);
        }
        if has_no_answer_body {
            guard.finish();
        }
        Ok(AnswerBody::around(response, guard))
    }
}
