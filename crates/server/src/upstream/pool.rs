//! Kept connections to providers: one pool per thread, so that nothing is shared or locked.
//!
//! Rules kept here:
//! - Last in, first out: the warmest connection is used, and the others age out.
//! - Bounded: at most [`IDLE_MAX`] idle HTTP/1.1 connections per provider and thread, each for at
//!   most [`IDLE_FOR`]; one HTTP/2 connection per provider and thread.
//! - A request that certainly was not sent comes back to the caller, who may use another
//!   connection for the same attempt.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response, header};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::time::Instant;

use super::{ConnectError, Connected, Pieces, Place, connect};
use crate::task;

/// A burst's worth of connections to one provider from one thread.
const IDLE_MAX: usize = 256;
/// Providers and their load balancers close idle connections after about a minute or more; asking
/// on one that is about to close costs a connect.
const IDLE_FOR: Duration = Duration::from_secs(55);

/// The end of a body follows its last event at once, or the connection is not worth keeping.
const END_WITHIN: Duration = Duration::from_millis(500);

#[derive(Debug)]
struct Idle {
    sender: http1::SendRequest<Pieces>,
    since: Instant,
}

/// The kept connections of one thread.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    idle: RefCell<BTreeMap<Arc<str>, Vec<Idle>>>,
    h2: RefCell<BTreeMap<Arc<str>, http2::SendRequest<Pieces>>>,
}

/// A connection that is ready for one request.
#[derive(Debug)]
pub(crate) enum Sender {
    H1(http1::SendRequest<Pieces>),
    H2(http2::SendRequest<Pieces>),
}

/// A connection checked out for one attempt.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) sender: Sender,
    /// It has carried requests before, so the other side may have closed it by now.
    pub(crate) is_reused: bool,
    provider: Arc<str>,
}

/// Why a request brought no response head.
#[derive(Debug)]
pub(crate) enum SendError {
    /// Nothing was sent: the request can go out on another connection.
    NotSent(Box<Request<Pieces>>),
    /// The connection broke before a head arrived.
    Broken(hyper::Error),
}

impl Pool {
    /// A kept connection, if there is a usable one.
    pub(crate) fn kept(&self, provider: &Arc<str>) -> Option<Lease> {
        let h2 = self.h2.borrow().get(provider).filter(|it| !it.is_closed()).cloned();
        let sender = h2.map(Sender::H2).or_else(|| self.kept_h1(provider).map(Sender::H1))?;
        Some(Lease { sender, is_reused: true, provider: Arc::clone(provider) })
    }

    /// A new connection.
    pub(crate) async fn fresh(
        self: &Rc<Self>,
        provider: &Arc<str>,
        place: &Place,
    ) -> Result<Lease, ConnectError> {
        let Connected { io, is_h2 } = connect(place).await?;
        self.handshake(provider, io, is_h2).await
    }

    /// Speaks HTTP over a connection that is already there.
    pub(crate) async fn handshake(
        self: &Rc<Self>,
        provider: &Arc<str>,
        io: super::Io,
        is_h2: bool,
    ) -> Result<Lease, ConnectError> {
        let io = TokioIo::new(io);
        let sender = if is_h2 {
            let (sender, connection) = http2::Builder::new(task::LocalExecutor)
                .timer(TokioTimer::new())
                .keep_alive_interval(Some(Duration::from_secs(30)))
                .keep_alive_timeout(Duration::from_secs(10))
                .handshake(io)
                .await
                .map_err(|_| ConnectError::Failed)?;
            task::spawn("upstream h2 connection", async move { drop(connection.await) });
            self.h2.borrow_mut().insert(Arc::clone(provider), sender.clone());
            Sender::H2(sender)
        } else {
            let (sender, connection) =
                http1::handshake(io).await.map_err(|_| ConnectError::Failed)?;
            task::spawn("upstream connection", async move { drop(connection.await) });
            Sender::H1(sender)
        };
        Ok(Lease { sender, is_reused: false, provider: Arc::clone(provider) })
    }

    /// Keeps a connection whose answer has been read to its end.
    pub(crate) fn keep(&self, lease: Lease) {
        let Sender::H1(sender) = lease.sender else { return };
        if sender.is_closed() {
            return;
        }
        let mut idle = self.idle.borrow_mut();
        let kept = idle.entry(lease.provider).or_default();
        if kept.len() >= IDLE_MAX {
            kept.remove(0);
        }
        kept.push(Idle { sender, since: Instant::now() });
    }

    /// Keeps a connection as soon as the end of an answer has been read that has nothing more to
    /// say; one that goes on talking is closed.
    pub(crate) fn keep_when_read(self: &Rc<Self>, lease: Lease, mut rest: Incoming) {
        if rest.is_end_stream() {
            return self.keep(lease);
        }
        let pool = Rc::clone(self);
        task::spawn("end of an answer", async move {
            let end = tokio::time::timeout(END_WITHIN, rest.frame()).await;
            // A trailing comment or blank line is no reason to give up; a second one is.
            let end = match end {
                Ok(Some(Ok(_))) => tokio::time::timeout(END_WITHIN, rest.frame()).await,
                end => end,
            };
            if matches!(end, Ok(None)) {
                pool.keep(lease);
            }
        });
    }

    /// Closes what has been idle for too long. Asking for a connection does so for its provider;
    /// this is for those that nobody asks for.
    pub(crate) fn sweep(&self) {
        self.idle.borrow_mut().retain(|_, kept| {
            kept.retain(Idle::is_usable);
            !kept.is_empty()
        });
        self.h2.borrow_mut().retain(|_, sender| !sender.is_closed());
    }

    /// Closes what is idle, at shutdown.
    pub(crate) fn clear(&self) {
        self.idle.borrow_mut().clear();
        self.h2.borrow_mut().clear();
    }

    fn kept_h1(&self, provider: &Arc<str>) -> Option<http1::SendRequest<Pieces>> {
        let mut idle = self.idle.borrow_mut();
        let kept = idle.get_mut(provider)?;
        kept.retain(Idle::is_usable);
        let warmest = kept.iter().rposition(|it| it.sender.is_ready())?;
        Some(kept.swap_remove(warmest).sender)
    }
}

impl Idle {
    fn is_usable(&self) -> bool {
        !self.sender.is_closed() && self.since.elapsed() < IDLE_FOR
    }
}

impl Lease {
    /// Sends a request and waits for the response head.
    pub(crate) async fn send(
        &mut self,
        request: Request<Pieces>,
    ) -> Result<Response<Incoming>, SendError> {
        let sent = match &mut self.sender {
            Sender::H1(sender) => {
                if sender.ready().await.is_err() {
                    return Err(SendError::NotSent(Box::new(request)));
                }
                sender.try_send_request(request).await
            }
            Sender::H2(sender) => {
                if sender.ready().await.is_err() {
                    return Err(SendError::NotSent(Box::new(request)));
                }
                sender.try_send_request(absolute(request)).await
            }
        };
        sent.map_err(|mut error| match error.take_message() {
            Some(request) => SendError::NotSent(Box::new(request)),
            None => SendError::Broken(error.into_error()),
        })
    }
}

/// HTTP/2 has no `host` header: scheme and authority are part of the address.
fn absolute(mut request: Request<Pieces>) -> Request<Pieces> {
    let host = request.headers_mut().remove(header::HOST);
    let authority = host.as_ref().and_then(|host| host.to_str().ok());
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    let uri = authority.and_then(|authority| format!("https://{authority}{path}").parse().ok());
    if let Some(uri) = uri {
        *request.uri_mut() = uri;
    }
    request
}
