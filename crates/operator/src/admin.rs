//! The admin listener: metrics, the state of everything, and the few things an operator may do.
//!
//! A request meets, in this order: the guard of the data plane (host, origin, framing), the table
//! of paths (`paths.rs`), the token (`admin_token`), a bound on its body, and then `view.rs`, which
//! only reads, or `act.rs`, which changes something.
//!
//! Rules kept here:
//! - It has a listener of its own, loopback by default. Reading is open on loopback and needs the
//!   token anywhere else; changing needs the token everywhere (S35, S59).
//! - Nothing here is secret: what is shown comes from the core's snapshot, which holds names.
//! - Connections are few and bounded, and slow heads and bodies are cut off: they are served by the
//!   code that serves the data plane's (`tidegate_net::connection`).
//!
//! Left to others: the dashboard and the event stream.

use tidegate_gateway::{
    admin_token::AdminAccess,
    guard::check as check_request,
    log::{self, Access, Refused},
    metrics,
    worker::Worker,
};
use tidegate_net::{
    client_body::ClientBody,
    connection::{Answering, HeadLimits, Listener, RequestBody, Service, scheme},
    read_body::{Refusal, read_body},
};
use tidegate_runtime::phase::Phase;

mod act;
mod paths;
#[cfg(test)]
mod tests;
mod view;

use std::future::Future;
use std::net::TcpListener;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use serde_json::{Value, json};
use tidegate_config::secret::Environment;
use tidegate_core::time::Now;
use tokio::sync::watch;

use self::paths::{Endpoint, MatchedPath};

/// People, scrapers and a dashboard: far fewer than this.
const CONNECTIONS_MAX: usize = 256;
/// No admin request has a reason to have a larger head.
const HEAD_MAX: usize = 64 * 1024;
/// No admin request has a reason to be larger.
const BODY_MAX: u64 = 1 << 20;

/// What admin requests are answered from.
pub(crate) struct Admin {
    pub(crate) worker: Rc<Worker>,
    pub(crate) environment: Arc<dyn Environment + Send + Sync>,
    pub(crate) probe_server: ProbeServer,
}

/// Probes an MCP server now: whether it answered, if there is such a server. The MCP thread does
/// it, which only whoever starts both knows.
pub type ProbeServer = Box<dyn Fn(String) -> Pin<Box<dyn Future<Output = Option<bool>>>>>;

/// What an answer is made of: its status and its JSON.
type Answer = (StatusCode, Value);

/// Serves until the drain, and then until the last connection has ended.
pub(crate) async fn serve(
    admin: Admin,
    socket: TcpListener,
    phase: watch::Receiver<Phase>,
) -> std::io::Result<()> {
    let mut listener = Listener::new(socket, CONNECTIONS_MAX, service(Rc::new(admin), phase))?;
    listener.accept().await;
    listener.drained().await;
    Ok(())
}

fn service(admin: Rc<Admin>, phase: watch::Receiver<Phase>) -> Service {
    let certificates = Arc::clone(&admin.worker.gateway.tls.admin);
    let handler = move |request: Request<RequestBody>| -> Answering {
        let admin = Rc::clone(&admin);
        Box::pin(async move {
            let began = admin.worker.gateway.now();
            let (method, path) = (request.method().clone(), request.uri().path().to_owned());
            let answer = admin.answer(request).await;
            admin.log(&method, &path, answer.status(), began);
            answer
        })
    };
    let limits = HeadLimits { bytes: HEAD_MAX };
    Service {
        handler: Rc::new(handler),
        limits,
        is_cancelled_by_closing: |_| false,
        phase,
        certificates,
    }
}

impl Admin {
    fn log(&self, method: &Method, path: &str, status: StatusCode, began: Now) {
        let gateway = &self.worker.gateway;
        let access = Access {
            method,
            path,
            route: "",
            target: None,
            status: status.as_u16(),
            attempts: 0,
            took: gateway.now().since(began),
            request_id: "",
            caller: "",
        };
        log::access(&gateway.live.load().file.log, &access);
    }

    async fn answer(&self, request: Request<RequestBody>) -> Response<ClientBody> {
        let (head, body) = request.into_parts();
        let gateway = &self.worker.gateway;
        let listen = gateway.admin_address;
        let found = paths::find(&head.method, head.uri.path());
        let uri = paths::without_id(&head.uri, found.as_ref().ok());
        if let Err(Refusal { status, message }) =
            check_request(scheme(&head.extensions), listen, &head.method, &uri, &head.headers)
        {
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
        let access = found.as_ref().map_or(AdminAccess::Reads, |found| found.access);
        if let Err(message) = live.admin_token.permit(access, is_loopback, &head.headers) {
            let refused = Refused {
                event: "wrong_admin_token",
                caller: "",
                path: head.uri.path(),
                route: "",
                request_id: "",
            };
            log::refused(&gateway.line_limit, gateway.now(), &refused);
            let mut response = refuse(StatusCode::UNAUTHORIZED, message);
            let bearer = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, bearer);
            return response;
        }
        let found = match found {
            Ok(found) => found,
            Err(Refusal { status, message }) => return refuse(status, message),
        };
        let body = match read_body(&head.headers, body, BODY_MAX).await {
            Ok(body) => body,
            Err(Refusal { status, message }) => return refuse(status, message),
        };
        self.serve(found, &body).await
    }

    async fn serve(&self, found: MatchedPath, body: &Bytes) -> Response<ClientBody> {
        let gateway = &self.worker.gateway;
        let live = gateway.live.load_full();
        let answer = match found.endpoint {
            Endpoint::Page => return text("text/plain; charset=utf-8", view::PAGE.to_owned()),
            Endpoint::Metrics => {
                let text_of = gateway.metrics.render(&live, gateway.now());
                return text(metrics::CONTENT_TYPE, text_of);
            }
            Endpoint::Snapshot => view::snapshot(&live, &gateway.clock),
            Endpoint::Explain => view::explain(&live, &gateway.clock, body),
            Endpoint::Reload => act::read_again(gateway, &*self.environment),
            Endpoint::Backend(deed) => act::backend(self, deed, found.id.as_deref(), body).await,
        };
        let (status, value) = answer;
        respond(status, "application/json", value.to_string())
    }
}

/// An error of ours: what is wrong, as JSON.
fn error(status: StatusCode, message: &str) -> Answer {
    (status, json!({ "error": { "message": message } }))
}

fn refuse(status: StatusCode, message: &str) -> Response<ClientBody> {
    let (status, value) = error(status, message);
    respond(status, "application/json", value.to_string())
}

fn text(content_type: &'static str, text: String) -> Response<ClientBody> {
    respond(StatusCode::OK, content_type, text)
}

fn respond(status: StatusCode, content_type: &'static str, body: String) -> Response<ClientBody> {
    let mut response = Response::new(ClientBody::from(Bytes::from(body)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
