//! Kept connections to providers: one pool per thread, so that nothing is shared or locked.
//!
//! Rules kept here:
//! - Last in, first out: the warmest connection is used, and the others age out.
//! - Bounded: at most [`IDLE_MAX`] idle HTTP/1.1 connections per provider and thread, each for at
//!   most [`IDLE_FOR`]; HTTP/2 connections are shared (`h2.rs`). [`Pool::sweep`], called now and
//!   then, closes what is too old or was closed by the other side.
//! - A connection is kept when its answer has been read to the end ([`Pool::keep`]). After a
//!   stream's own terminator the end of the body is waited for, but not for long.
//! - A connection that rested is asked whether the other side has closed it, because what this
//!   thread last heard of it may be older than its end.
//! - A request that certainly was not sent is told apart: it may go out on another connection
//!   within the same attempt.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use hyper::client::conn::{TrySendError, http2};
use hyper_util::rt::{TokioIo, TokioTimer};
use tidegate_runtime::{clock::timer_now, task};
use tokio::time::{Instant, timeout};

use super::{
    ConnectError, Connected, Origin, RequestLines, SplicedBody, UpstreamBody, UpstreamError,
    connect,
    h1::H1,
    h2::{H2, H2s},
};

/// A burst's worth of connections to one provider from one thread.
const IDLE_MAX: usize = 256;
/// Providers and their load balancers close idle connections after about a minute or more; asking
/// on one that is about to close costs a connect.
const IDLE_FOR: Duration = Duration::from_secs(55);

/// A connection that was used a moment ago is not asked about: a system call for each request would
/// be the price, and an upstream that closes a connection lets it rest first.
const TRUSTED_FOR: Duration = Duration::from_millis(5);

/// The end of a body follows its last event at once, or the connection is not worth keeping.
const END_WITHIN: Duration = Duration::from_millis(500);

#[derive(Debug)]
struct Idle {
    h1: Box<H1>,
    since: Instant,
}

impl Idle {
    fn is_usable(&mut self, now: Instant) -> bool {
        let idle = now.duration_since(self.since);
        idle < IDLE_FOR && self.h1.is_usable() && (idle < TRUSTED_FOR || !self.h1.is_closed())
    }
}

/// The kept connections of one thread.
#[derive(Debug, Default)]
pub struct Pool {
    idle: RefCell<BTreeMap<Arc<str>, Vec<Idle>>>,
    h2: RefCell<BTreeMap<Arc<str>, H2s>>,
}

/// A connection that is ready for one request.
#[derive(Debug)]
pub enum Sender {
    H1(Box<H1>),
    H2(H2),
}

/// A connection checked out for one attempt.
#[derive(Debug)]
pub struct PooledConnection {
    pub sender: Sender,
    /// It has carried requests before, so the other side may have closed it by now.
    pub is_reused: bool,
    provider: Arc<str>,
}

/// Why a request brought no response head.
#[derive(Debug)]
pub enum SendError {
    /// Nothing was sent: the request can go out on another connection.
    NotSent,
    /// The connection broke before a head arrived.
    Broken(UpstreamError),
}

impl Pool {
    /// A kept connection, if there is a usable one.
    pub fn kept(&self, provider: &Arc<str>) -> Option<PooledConnection> {
        let h2 = self.h2.borrow().get(provider).and_then(H2s::kept);
        let sender = h2.map(Sender::H2).or_else(|| self.kept_h1(provider).map(Sender::H1))?;
        Some(PooledConnection { sender, is_reused: true, provider: Arc::clone(provider) })
    }

    /// A new connection.
    pub async fn fresh(
        self: &Rc<Self>,
        provider: &Arc<str>,
        place: &Origin,
    ) -> Result<PooledConnection, ConnectError> {
        let Connected { io, is_h2 } = connect(place).await?;
        self.handshake(provider, io, is_h2).await
    }

    /// Speaks HTTP over a connection that is already there.
    pub async fn handshake(
        self: &Rc<Self>,
        provider: &Arc<str>,
        io: super::Io,
        is_h2: bool,
    ) -> Result<PooledConnection, ConnectError> {
        let sender = if is_h2 {
            let (sender, connection) = http2::Builder::new(task::LocalExecutor)
                .timer(TokioTimer::new())
                .keep_alive_interval(Some(Duration::from_secs(30)))
                .keep_alive_timeout(Duration::from_secs(10))
                .handshake(TokioIo::new(io))
                .await
                .map_err(|_| ConnectError::Failed)?;
            task::spawn("upstream h2 connection", async move { drop(connection.await) });
            let mut h2 = self.h2.borrow_mut();
            Sender::H2(h2.entry(Arc::clone(provider)).or_default().share(sender))
        } else {
            Sender::H1(Box::new(H1::new(io)))
        };
        Ok(PooledConnection { sender, is_reused: false, provider: Arc::clone(provider) })
    }

    /// Keeps the connection of an answer that is complete for its client, as soon as the end of its
    /// body has been read; one that goes on talking is closed.
    pub fn keep(self: &Rc<Self>, mut answer: UpstreamBody) {
        if answer.has_ended() {
            return self.put_back(answer.into_lease());
        }
        let pool = Rc::clone(self);
        task::spawn("end of an answer", async move {
            let end = timeout(END_WITHIN, answer.data()).await;
            // A trailing comment or blank line is no reason to give up; a second one is.
            let end = match end {
                Ok(Some(Ok(_))) => timeout(END_WITHIN, answer.data()).await,
                end => end,
            };
            if matches!(end, Ok(None)) {
                pool.put_back(answer.into_lease());
            }
        });
    }

    fn put_back(&self, connection: PooledConnection) {
        let Sender::H1(mut h1) = connection.sender else { return };
        h1.rest();
        let mut idle = self.idle.borrow_mut();
        let kept = idle.entry(connection.provider).or_default();
        if kept.len() >= IDLE_MAX {
            kept.remove(0);
        }
        kept.push(Idle { h1, since: timer_now() });
    }

    /// Closes what has been idle for too long, or was closed by the other side meanwhile. Asking
    /// for a connection does so for its provider; this is for those that nobody asks for.
    pub fn sweep(&self) {
        let now = timer_now();
        self.idle.borrow_mut().retain(|_, kept| {
            kept.retain_mut(|it| it.is_usable(now));
            !kept.is_empty()
        });
        self.h2.borrow_mut().retain(|_, shared| shared.sweep());
    }

    /// Whether there is nothing to sweep.
    pub fn is_empty(&self) -> bool {
        self.idle.borrow().is_empty() && self.h2.borrow().is_empty()
    }

    /// Closes what is idle, at shutdown.
    pub fn clear(&self) {
        self.idle.borrow_mut().clear();
        self.h2.borrow_mut().clear();
    }

    fn kept_h1(&self, provider: &Arc<str>) -> Option<Box<H1>> {
        let mut idle = self.idle.borrow_mut();
        let kept = idle.get_mut(provider)?;
        let now = timer_now();
        while let Some(mut warmest) = kept.pop() {
            if warmest.is_usable(now) {
                return Some(warmest.h1);
            }
        }
        None
    }
}

impl PooledConnection {
    /// Sends a request and waits for the response head.
    pub async fn send(
        mut self,
        request: Request<SplicedBody>,
    ) -> Result<Response<UpstreamBody>, SendError> {
        match &mut self.sender {
            Sender::H1(h1) => {
                let response = h1.send(request).await?;
                Ok(response.map(|()| UpstreamBody::over_h1(self)))
            }
            Sender::H2(h2) => {
                let response = h2.send(request).await?;
                Ok(response.map(|body| UpstreamBody::over_h2(body, self)))
            }
        }
    }
}

/// A request in the form that its connection sends. HTTP/2's is in a box, so that what waits for an
/// answer over HTTP/1.1, and is moved about, does not have its size.
enum Prepared {
    Bytes(Bytes, SplicedBody),
    Request(Box<Request<SplicedBody>>),
}

impl PooledConnection {
    /// Sends a request and waits for the response head. What it borrows is not needed any more when
    /// this returns.
    pub fn send_lines(
        mut self,
        lines: RequestLines<'_>,
    ) -> impl Future<Output = Result<Response<UpstreamBody>, SendError>> + use<> {
        let prepared = match &self.sender {
            Sender::H1(_) => {
                let (head, body) = lines.written();
                Prepared::Bytes(head, body)
            }
            Sender::H2(_) => Prepared::Request(Box::new(lines.into_request())),
        };
        async move {
            match (&mut self.sender, prepared) {
                (Sender::H1(h1), Prepared::Bytes(head, body)) => {
                    let response = h1.send_written(head, body, false).await?;
                    Ok(response.map(|()| UpstreamBody::over_h1(self)))
                }
                (_, Prepared::Request(request)) => Box::pin(self.send(*request)).await,
                // It was prepared for the connection it is sent over.
                (Sender::H2(_), Prepared::Bytes(..)) => Err(SendError::NotSent),
            }
        }
    }
}

impl From<TrySendError<Request<SplicedBody>>> for SendError {
    fn from(mut error: TrySendError<Request<SplicedBody>>) -> Self {
        match error.take_message() {
            Some(_) => Self::NotSent,
            None => Self::Broken(UpstreamError::H2(error.into_error())),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::upstream::Io;

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_was_closed_is_not_used_though_nobody_has_heard_of_it_yet() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let (ours, theirs) = tokio::join!(TcpStream::connect(address), listener.accept());
        let (ours, (theirs, _)) = (ours.expect("it connects"), theirs.expect("it is accepted"));
        let (pool, provider): (Rc<Pool>, Arc<str>) = (Rc::default(), "one".into());
        let mut h1 = Box::new(H1::new(Io::Tcp(ours)));
        h1.rest();
        let since = timer_now();
        pool.idle.borrow_mut().insert(Arc::clone(&provider), vec![Idle { h1, since }]);
        tokio::time::advance(TRUSTED_FOR).await;
        // Nothing is awaited from here on, so this thread looks at no socket.
        drop(theirs);
        assert!(pool.kept(&provider).is_none());
    }
}
