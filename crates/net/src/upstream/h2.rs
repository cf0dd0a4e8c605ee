//! The HTTP/2 connections of one thread to one provider, each shared by many requests.
//!
//! Rules kept here:
//! - A connection carries at most [`STREAMS_MAX`] requests at a time; beyond that another one is
//!   opened. Otherwise requests past the server's own limit would wait behind long answers until
//!   the provider got the blame.
//! - The oldest with room is used, so the others run empty after a burst, and [`H2s::sweep`] closes
//!   them. One that is closed or going away is never used.

use std::rc::Rc;

use http::{Request, Response, header};
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;

use super::{SendError, SplicedBody};

/// Servers are asked by RFC 9113 (5.1.2) to allow no fewer.
const STREAMS_MAX: usize = 100;
/// Enough for 3 200 answers at a time; a connection beyond that is not shared.
const CONNECTIONS_MAX: usize = 32;

/// The shared connections, oldest first.
#[derive(Debug, Default)]
pub(super) struct H2s(Vec<H2>);

/// A connection, and a place on it for one request.
#[derive(Debug)]
pub struct H2 {
    sender: SendRequest<SplicedBody>,
    /// One for the list, and one for each request under way.
    seats: Rc<()>,
}

impl H2s {
    /// A place on a connection that has one.
    pub(super) fn kept(&self) -> Option<H2> {
        self.0
            .iter()
            .find(|it| !it.sender.is_closed() && it.under_way() < STREAMS_MAX)
            .map(H2::seat)
    }

    /// Shares a new connection, and gives the first place on it.
    pub(super) fn share(&mut self, sender: SendRequest<SplicedBody>) -> H2 {
        let fresh = H2 { sender, seats: Rc::new(()) };
        let seat = fresh.seat();
        self.0.retain(|it| !it.sender.is_closed());
        if self.0.len() < CONNECTIONS_MAX {
            self.0.push(fresh);
        }
        seat
    }

    /// Closes what is not needed; false if nothing is left.
    pub(super) fn sweep(&mut self) -> bool {
        self.0.retain(|it| !it.sender.is_closed());
        let mut is_oldest = true;
        self.0.retain(|it| std::mem::take(&mut is_oldest) || it.under_way() > 0);
        !self.0.is_empty()
    }
}

impl H2 {
    fn seat(&self) -> Self {
        Self { sender: self.sender.clone(), seats: Rc::clone(&self.seats) }
    }

    /// How many requests are under way, asked of the one in the list.
    fn under_way(&self) -> usize {
        Rc::strong_count(&self.seats) - 1
    }

    /// Sends a request and waits for the response head.
    pub(super) async fn send(
        &mut self,
        request: Request<SplicedBody>,
    ) -> Result<Response<Incoming>, SendError> {
        if self.sender.ready().await.is_err() {
            return Err(SendError::NotSent);
        }
        Ok(self.sender.try_send_request(absolute(request)).await?)
    }
}

/// HTTP/2 has no `host` header: scheme and authority are part of the address.
fn absolute(mut request: Request<SplicedBody>) -> Request<SplicedBody> {
    let host = request.headers_mut().remove(header::HOST);
    let authority = host.as_ref().and_then(|host| host.to_str().ok());
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    let uri = authority.and_then(|authority| format!("https://{authority}{path}").parse().ok());
    if let Some(uri) = uri {
        *request.uri_mut() = uri;
    }
    request
}
