//! An HTTP/1.1 connection that runs inside the task that waits on it.
//!
//! Why it exists: hyper's connection is a future of its own. Spawned, it hands every response and
//! every chunk to another task, which costs a wake-up each and lets a stream's chunks through one
//! by one. Polled by whoever waits for the answer, chunks that came together leave together.
//!
//! Rules kept here:
//! - Nobody runs an idle connection: [`H1::is_usable`] looks whether the other side has closed it
//!   since.
//! - Dropped with an answer under way, it closes the socket at once.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, Connection, SendRequest};
use hyper_util::rt::TokioIo;

use super::{Io, SendError, SplicedBody};

/// A connection and the way to give it requests.
#[derive(Debug)]
pub struct H1 {
    sender: SendRequest<SplicedBody>,
    /// `None` once it is closed.
    connection: Option<Connection<TokioIo<Io>, SplicedBody>>,
}

impl H1 {
    pub async fn open(io: Io) -> Result<Self, hyper::Error> {
        let (sender, connection) = http1::handshake(TokioIo::new(io)).await?;
        Ok(Self { sender, connection: Some(connection) })
    }

    /// Whether another request can go out on it, as far as can be told without waiting.
    pub fn is_usable(&mut self) -> bool {
        // Nobody is to be woken: the answer is wanted now.
        self.drive(&mut Context::from_waker(Waker::noop()));
        self.connection.is_some() && self.sender.is_ready()
    }

    /// Sends a request and waits for the response head.
    pub async fn send(
        &mut self,
        request: Request<SplicedBody>,
    ) -> Result<Response<Incoming>, SendError> {
        let mut answer = pin!(self.sender.try_send_request(request));
        let answered = poll_fn(|cx| {
            self.drive(cx);
            answer.as_mut().poll(cx)
        });
        answered.await.map_err(SendError::from)
    }

    /// The next frame of the answer's body.
    pub fn poll_frame(
        &mut self,
        body: &mut Incoming,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        // Frames come from `drive` and from nowhere else, so the body itself has nobody to wake.
        let mut unheard = Context::from_waker(Waker::noop());
        if let Poll::Ready(frame) = Pin::new(&mut *body).poll_frame(&mut unheard) {
            return Poll::Ready(frame);
        }
        self.drive(cx);
        Pin::new(body).poll_frame(&mut unheard)
    }

    /// Lets the connection do what it can without waiting.
    fn drive(&mut self, cx: &mut Context<'_>) {
        if let Some(connection) = &mut self.connection
            && Pin::new(connection).poll(cx).is_ready()
        {
            // How it ended is told to whoever waits for the answer.
            self.connection = None;
        }
    }
}
