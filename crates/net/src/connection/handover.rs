//! A client's connection goes to another thread, and home again, between two of its requests.
//!
//! ```text
//!   home: the head of a request ──▶ the other thread: answers it, and those that follow
//!                  ▲                                  │
//!                  └────── one for other threads ◀────┘
//! ```
//! Why it exists: a thread that carries one kind of request alone is woken for each of them by the
//! thread that has the client's connection, and wakes that one for the answer. With the connection
//! on the same thread nobody is woken.
//!
//! Rules kept here:
//! - Only a plain connection of HTTP/1.1 goes, when the head of a request has come and nothing was
//!   done about it. Whatever was read goes with it.
//! - A connection goes when it has had so many requests answered: moving one costs about what one
//!   request saves, and many connections end after a few.
//! - The other thread has so many seats. Without a free one a connection is served where it is.
//! - None goes once the drain has begun.

use std::net::TcpStream;
use std::sync::Arc;

use bytes::BytesMut;
use http::Request;
use tokio::sync::mpsc::{self, Permit};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::h1::RequestHead;

/// Picks the requests that another thread should answer.
pub type HandOverRule = fn(&Request<()>) -> bool;

/// A way for connections to one thread.
#[derive(Clone, Debug)]
pub struct Way {
    line: mpsc::Sender<MovedConnection>,
    seats: Arc<Semaphore>,
}

/// Where they arrive.
#[derive(Debug)]
pub struct MovedConnections(mpsc::Receiver<MovedConnection>);

/// A way to a thread that has so many seats.
#[must_use]
pub fn way(seats: usize) -> (Way, MovedConnections) {
    let (line, arriving) = mpsc::channel(seats.max(1));
    (Way { line, seats: Arc::new(Semaphore::new(seats)) }, MovedConnections(arriving))
}

impl MovedConnections {
    /// The next one, once it comes. Giving up in the middle loses nothing.
    pub async fn next(&mut self) -> Option<MovedConnection> {
        self.0.recv().await
    }

    /// The next one, if it is there.
    pub fn take(&mut self) -> Option<MovedConnection> {
        self.0.try_recv().ok()
    }
}

/// Which connections of a listener go to another thread.
#[derive(Clone, Debug)]
pub struct HandOver {
    /// Picks the request with which a connection goes.
    pub rule: HandOverRule,
    /// Requests of the connection on this thread before that.
    pub after: u64,
    pub to: Way,
    /// What brings it home again; none for one that is on its way home.
    pub home: Option<Home>,
}

/// Where a connection goes back to, and with which request.
#[derive(Clone, Debug)]
pub struct Home {
    pub rule: HandOverRule,
    pub to: Way,
}

/// A connection on its way.
#[derive(Debug)]
pub struct MovedConnection {
    pub(super) stream: TcpStream,
    pub(super) first: FirstRequest,
    pub(super) home: Option<Home>,
    pub(super) seat: OwnedSemaphorePermit,
}

/// A request whose head has come, and what was read after it.
#[derive(Debug)]
pub(super) struct FirstRequest {
    pub(super) head: Box<RequestHead>,
    pub(super) rest: BytesMut,
}

impl HandOver {
    /// A free seat, if there is one.
    pub(super) fn seat(&self) -> Option<FreeSeat<'_>> {
        let seat = Arc::clone(&self.to.seats).try_acquire_owned().ok()?;
        Some(FreeSeat { place: self.to.line.try_reserve().ok()?, seat, home: self.home.as_ref() })
    }
}

/// A seat that waits for its connection.
pub(super) struct FreeSeat<'a> {
    place: Permit<'a, MovedConnection>,
    seat: OwnedSemaphorePermit,
    home: Option<&'a Home>,
}

impl FreeSeat<'_> {
    pub(super) fn give(self, stream: TcpStream, first: FirstRequest) {
        let (seat, home) = (self.seat, self.home.cloned());
        self.place.send(MovedConnection { stream, first, home, seat });
    }
}

#[cfg(test)]
mod tests;
