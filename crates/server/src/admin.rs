//! The admin listener: metrics, the state of everything, and the few things an operator may do.
//!
//! A request meets, in this order: the guard of the data plane (host, origin, framing), the table
//! of paths (`paths.rs`), the token (`token.rs`), a bound on its body, and then `view.rs`, which
//! only reads, or `act.rs`, which changes something.
//!
//! Rules kept here:
//! - It has a listener of its own, loopback by default. Reading is open on loopback and needs the
//!   token anywhere else; changing needs the token everywhere (S35, S59).
//! - Nothing here is secret: what is shown comes from the core's snapshot, which holds names.
//! - Connections are few and bounded, and slow heads and bodies are cut off.
//!
//! Left to others: the dashboard and the event stream.

mod act;
mod paths;
#[cfg(test)]
mod tests;
mod token;
mod view;

use std::cell::Cell;
use std::convert::Infallible;
use std::net::TcpListener;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tidegate_config::secret::Environment;
use tokio::io::{AsyncRead, AsyncWrite};

use self::paths::{Found, Place};
pub(crate) use self::token::AdminToken;
use crate::{
    data::{check_request, read_body},
    gateway::Worker,
    metrics, task,
    worker::{Answering, ClientIo},
};

/// People, scrapers and a dashboard: far fewer than this.
const CONNECTIONS_MAX: usize = 256;
/// After a failed `accept` (out of descriptors, mostly), so that the loop does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// No admin request has a reason to be larger.
const BODY_MAX: u64 = 1 << 20;

/// What admin requests are answered from.
pub(crate) struct Admin {
    worker: Rc<Worker>,
    environment: Arc<dyn Environment + Send + Sync>,
}

/// What an answer is made of: its status and its JSON.
type Answer = (StatusCode, Value);

/// Serves until dropped.
pub(crate) async fn serve(
    worker: Rc<Worker>,
    listener: TcpListener,
    environment: Arc<dyn Environment + Send + Sync>,
) -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let admin = Rc::new(Admin { worker, environment });
    let open = Rc::new(Cell::new(0_usize));
    loop {
        match listener.accept().await {
            Ok((stream, _)) if open.get() < CONNECTIONS_MAX => {
                let (admin, open) = (Rc::clone(&admin), Open::new(&open));
                task::spawn("admin connection", async move {
                    let _open = open;
                    connection(&admin, stream).await;
                });
            }
            // Past the limit a connection is closed at once: better than one that hangs.
            Ok(_) => {}
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// Serves one connection to its end.
async fn connection(admin: &Rc<Admin>, io: impl AsyncRead + AsyncWrite + Unpin) {
    let answering = Answering::default();
    let service = service_fn(|request| {
        let (admin, guard) = (Rc::clone(admin), answering.begin());
        async move {
            let answer = admin.answer(request).await;
            drop(guard);
            Ok::<_, Infallible>(answer)
        }
    });
    // The same limits and the same eye on framing as on the data listener.
    let io = ClientIo::new(io, answering.clone());
    let served = http1::Builder::new()
        .header_read_timeout(None)
        .serve_connection(TokioIo::new(io), service)
        .await;
    // A client that breaks its connection is its own affair.
    drop(served);
}

/// Counts a connection while it is open.
struct Open(Rc<Cell<usize>>);

impl Open {
    fn new(count: &Rc<Cell<usize>>) -> Self {
        count.set(count.get() + 1);
        Self(Rc::clone(count))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl Admin {
    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (head, body) = request.into_parts();
        let gateway = &self.worker.gateway;
        let listen = gateway.admin_address;
        let found = paths::find(&head.method, head.uri.path());
        let uri = paths::without_id(&head.uri, found.as_ref().ok());
        if let Err((status, message)) = check_request(listen, &head.method, &uri, &head.headers) {
            let mut response = refuse(status, message);
            // Whatever follows on this connection cannot be trusted to begin where it seems to.
            if status == StatusCode::BAD_REQUEST {
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(header::CONNECTION, close);
            }
            return response;
        }
        let live = gateway.live.load_full();
        let is_loopback = listen.ip().to_canonical().is_loopback();
        // A path that does not exist is a secret of its own where even reading needs the token.
        let access = found.as_ref().map_or(paths::Access::Reads, |found| found.access);
        if let Err(message) = live.admin_token.permit(access, is_loopback, &head.headers) {
            let mut response = refuse(StatusCode::UNAUTHORIZED, message);
            let bearer = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, bearer);
            return response;
        }
        let found = match found {
            Ok(found) => found,
            Err((status, message)) => return refuse(status, message),
        };
        let body = match read_body(&head.headers, body, BODY_MAX).await {
            Ok(body) => body,
            Err((status, message)) => return refuse(status, message),
        };
        self.place(found, &body).await
    }

    async fn place(&self, found: Found, body: &Bytes) -> Response<Full<Bytes>> {
        let gateway = &self.worker.gateway;
        let live = gateway.live.load_full();
        let answer = match found.place {
            Place::Page => return text("text/plain; charset=utf-8", view::PAGE.to_owned()),
            Place::Metrics => {
                let text_of = gateway.metrics.render(&live, gateway.now());
                return text(metrics::CONTENT_TYPE, text_of);
            }
            Place::Snapshot => view::snapshot(&live, &gateway.clock),
            Place::Explain => view::explain(&live, &gateway.clock, body),
            Place::Reload => act::reload(gateway, &*self.environment),
            Place::Backend(deed) => {
                act::backend(&self.worker, deed, found.id.as_deref(), body).await
            }
        };
        let (status, value) = answer;
        respond(status, "application/json", value.to_string())
    }
}

/// An error of ours: what is wrong, as JSON.
fn error(status: StatusCode, message: &str) -> Answer {
    (status, json!({ "error": { "message": message } }))
}

fn refuse(status: StatusCode, message: &str) -> Response<Full<Bytes>> {
    let (status, value) = error(status, message);
    respond(status, "application/json", value.to_string())
}

fn text(content_type: &'static str, text: String) -> Response<Full<Bytes>> {
    respond(StatusCode::OK, content_type, text)
}

fn respond(status: StatusCode, content_type: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
