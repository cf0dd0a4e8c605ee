//! A client's connection, on whichever listener it arrives: data and admin are served alike.
//!
//! | file | one idea |
//! |---|---|
//! | `listener.rs` | accepts connections, within a bound |
//! | `handover.rs` | connections that another thread serves |
//! | `table.rs` | the open connections of a listener, and which one makes room for a new one |
//! | `activity.rs` | what a connection is doing, as its parts tell each other |
//! | `h1.rs` | HTTP/1.1, in the task of the connection |
//! | `tls.rs`, `h2.rs`, `h2_io.rs` | what a secure listener presents; HTTP/2, only there |
//! | `write_watch.rs` | clients that do not take their answer |
//! | `half_close.rs` | clients that send no more, and may still wait for their answer |
//! | `request_body.rs`, `answer_body.rs` | a request's body; an answer's, which tells its end |
//!
//! Rules kept here:
//! - A body that nobody read to its end closes an HTTP/1.1 connection after the answer: what
//!   follows on it cannot be trusted to begin where it seems to.
//! - At the drain an idle connection ends at once, one with a request under way after its answer,
//!   and one that has not asked anything yet is given a moment for its first request.

mod activity;
mod answer_body;
mod h1;
mod h2;
mod h2_io;
mod half_close;
pub mod handover;
mod listener;
mod request_body;
mod table;
mod tls;
mod write_watch;

use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use http::{Extensions, HeaderMap, Request, Response};
use tidegate_runtime::{
    dormant::Dormant,
    phase::{Phase, reached},
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;

pub use self::activity::Activity;
use self::activity::AnsweringGuard;
pub use self::h1::BodyBroke;
use self::h1::Wire;
use self::handover::{FirstRequest, HandOver};
pub use self::listener::{ConnectionSet, Listener};
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
    /// Which connections go to another thread.
    pub hand_over: Option<HandOver>,
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
        match self.certificates.get() {
            None => self.converse(stream, activity, PLAIN).await,
            // In a box: a plain connection has no room for a handshake and HTTP/2 then.
            Some(presented) => Box::pin(self.serve_secure(stream, presented, activity)).await,
        }
    }

    async fn serve_secure(
        &self,
        stream: TcpStream,
        presented: Arc<Presented>,
        activity: &Rc<Activity>,
    ) {
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

    /// Speaks HTTP/1.1 to the end of a connection, or until it goes to another thread.
    pub async fn converse(
        &self,
        io: impl AsyncRead + AsyncWrite + Unpin + 'static,
        activity: &Rc<Activity>,
        scheme: &'static str,
    ) {
        let may_close = pin!(self.may_close(activity));
        h1::converse(self, Wire::new(io, activity), scheme, Dormant::new(may_close)).await;
    }

    /// Goes on with a connection of another thread.
    async fn go_on(&self, stream: TcpStream, first: FirstRequest, activity: &Rc<Activity>) {
        let may_close = pin!(self.may_close(activity));
        let wire = Wire::amid(stream, activity, first);
        h1::converse(self, wire, PLAIN, Dormant::new(may_close)).await;
    }

    /// A request is going to be answered, until the guard is dropped.
    fn begin<B>(
        &self,
        activity: &Rc<Activity>,
        request: &mut Request<B>,
        scheme: &'static str,
    ) -> AnsweringGuard {
        let guard = activity.begin(request.version());
        activity.closing_cancels((self.is_cancelled_by_closing)(request.headers()));
        // What is not said is `http`: the first extension of a request costs three allocations.
        if scheme != PLAIN {
            request.extensions_mut().insert(Scheme(scheme));
        }
        guard
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
