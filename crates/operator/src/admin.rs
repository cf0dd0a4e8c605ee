//! The admin listener: metrics, the state of everything, and the few things an operator may do.
//!
//! A request meets, in this order: the guard of the data plane (host, origin, framing), the table
//! of paths (`paths.rs`), the token (`admin_token`) or a cookie, a bound on its body, and then a
//! file that only reads, or `act.rs`, which changes something.
//!
//! Rules kept here:
//! - It has a listener of its own, loopback by default. Reading is open on loopback and needs the
//!   token anywhere else; changing needs the token everywhere (S35, S59).
//! - Nothing here is secret: what is shown comes from the core's snapshot, which holds names.
//! - Connections are few and bounded, and slow heads and bodies are cut off: they are served by the
//!   code that serves the data plane's (`tidegate_net::connection`).
//!
//! A browser signs in once, for a cookie (`login.rs`), and follows one stream (`stream.rs`). The
//! files of the dashboard are in `page.rs`.

use tidegate_gateway::{
    admin_token::AdminAccess,
    fleet_view::fleet_view,
    guard::{check as check_request, event_of},
    log::{self, Access, Refused},
    metrics, report,
    worker::Worker,
};
use tidegate_net::{
    client_body::ClientBody,
    connection::{Answering, HeadLimits, Listener, RequestBody, Service, scheme},
    read_body::{Refusal, read_body},
};
use tidegate_runtime::phase::Phase;

mod act;
mod backend_story;
mod decisions;
mod incident;
mod login;
mod page;
mod paths;
mod query;
mod signing;
mod snapshot;
mod stream;
#[cfg(test)]
mod tests;
mod ticks;
mod timeline;
mod verdict;
mod view;

use std::future::Future;
use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header, request::Parts};
use serde::Serialize;
use serde_json::{Value, json};
use tidegate_config::secret::Environment;
use tidegate_core::time::Now;
use tokio::sync::watch;

use self::{
    login::{CookieUse, Logins},
    paths::{Endpoint, MatchedPath},
    query::Query,
    stream::Streams,
};

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
    phase: watch::Receiver<Phase>,
    streams: Streams,
    logins: Logins,
}

/// Probes an MCP server now: whether it answered, if there is such a server. The MCP thread does
/// it, which only whoever starts both knows.
pub type ProbeServer = Box<dyn Fn(String) -> Pin<Box<dyn Future<Output = Option<bool>>>>>;

/// What an answer is made of: its status and its JSON.
type Answer = (StatusCode, Value);

/// What a request is answered from, besides its body.
struct AskedFor {
    found: MatchedPath,
    head: Parts,
    /// What admitted it: `token` or `cookie`.
    by: &'static str,
}

/// Serves until the drain, and then until the last connection has ended.
pub(crate) async fn serve(admin: Admin, socket: TcpListener) -> std::io::Result<()> {
    let mut listener = Listener::new(socket, CONNECTIONS_MAX, service(Rc::new(admin)))?;
    listener.accept().await;
    listener.connections.drained().await;
    Ok(())
}

fn service(admin: Rc<Admin>) -> Service {
    let phase = admin.phase.clone();
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
        hand_over: None,
    }
}

impl Admin {
    pub(crate) fn new(
        worker: Rc<Worker>,
        environment: Arc<dyn Environment + Send + Sync>,
        probe_server: ProbeServer,
        phase: watch::Receiver<Phase>,
    ) -> Self {
        let (streams, logins) = (Streams::default(), Logins::default());
        Self { worker, environment, probe_server, phase, streams, logins }
    }

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

    fn tell_refusal(&self, event: Option<&'static str>, path: &str) {
        let Some(event) = event else { return };
        let refused = Refused { event, caller: "", path, route: "", request_id: "" };
        report::refused(&self.worker.gateway, &refused);
    }

    async fn answer(self: &Rc<Self>, request: Request<RequestBody>) -> Response<ClientBody> {
        let (head, body) = request.into_parts();
        let gateway = &self.worker.gateway;
        let listen = gateway.admin_address;
        let found = paths::find(&head.method, head.uri.path());
        let uri = paths::without_id(&head.uri, found.as_ref().ok());
        let scheme = scheme(&head.extensions);
        let checked = if is_own_page(scheme, listen, &head.headers) {
            let mut headers = head.headers.clone();
            headers.remove(header::ORIGIN);
            check_request(scheme, listen, &head.method, &uri, &headers)
        } else {
            check_request(scheme, listen, &head.method, &uri, &head.headers)
        };
        if let Err(refusal) = checked {
            self.tell_refusal(event_of(&refusal), head.uri.path());
            let Refusal { status, message } = refusal;
            let mut response = refuse(status, message);
            // Whatever follows on this connection cannot be trusted to begin where it seems to.
            if status == StatusCode::BAD_REQUEST {
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(header::CONNECTION, close);
            }
            return response;
        }
        if let Some(file) =
            page::asset(&head.method, head.uri.path(), &head.headers, &*self.environment)
        {
            return file;
        }
        let live = gateway.live.load_full();
        let is_loopback = listen.ip().to_canonical().is_loopback();
        // A path that does not exist is a secret of its own where even reading needs the token.
        let access = found.as_ref().map_or(AdminAccess::Reads, |found| found.access);
        let is_change = access == AdminAccess::Changes;
        let cookie = self.logins.check(gateway.now(), &live.admin_token, &head.headers, is_change);
        let by = if cookie == CookieUse::None { "token" } else { "cookie" };
        if cookie == CookieUse::Unsafe && !head.headers.contains_key(header::AUTHORIZATION) {
            self.tell_refusal(Some("csrf"), head.uri.path());
            let message = "with a cookie, send the header `x-tidegate-csrf: 1` too";
            return refuse(StatusCode::FORBIDDEN, message);
        }
        let by_token = || live.admin_token.permit(access, is_loopback, &head.headers);
        if let (true, Err(message)) = (cookie != CookieUse::Good, by_token()) {
            let is_page = found.is_ok_and(|found| found.endpoint == Endpoint::Page);
            // Whoever opens the page has not shown a wrong token: the page asks for one.
            let event = (!is_page).then_some("wrong_admin_token");
            self.tell_refusal(event, head.uri.path());
            let mut response = if is_page {
                page::index(StatusCode::UNAUTHORIZED, &*self.environment)
            } else {
                refuse(StatusCode::UNAUTHORIZED, message)
            };
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
        self.serve(AskedFor { found, head, by }, &body).await
    }

    async fn serve(self: &Rc<Self>, asked: AskedFor, body: &Bytes) -> Response<ClientBody> {
        let AskedFor { found, head, by } = asked;
        let gateway = &self.worker.gateway;
        let query = head.uri.query();
        let live = gateway.live.load_full();
        let answer = match found.endpoint {
            Endpoint::Page => return page::index(StatusCode::OK, &*self.environment),
            Endpoint::Metrics => {
                gateway.count_dropped();
                let text_of = gateway.metrics.render(&live, gateway.now());
                return text(metrics::CONTENT_TYPE, text_of);
            }
            Endpoint::Snapshot => json_of(&snapshot::take(gateway)),
            Endpoint::Events => {
                let last = head.headers.get("last-event-id").and_then(|it| it.to_str().ok());
                return match Query::read(query, &["after"]) {
                    Ok(query) => stream::open(self, last.or(query.get("after"))),
                    Err(problem) => refuse(StatusCode::BAD_REQUEST, &problem),
                };
            }
            Endpoint::Decisions => decisions::list(gateway, query).await,
            Endpoint::Decision => {
                decisions::one(gateway, found.id.as_deref().unwrap_or_default()).await
            }
            Endpoint::Timeline => timeline::timeline(gateway, query),
            Endpoint::Fleet => match fleet_view(gateway) {
                Some(fleet) => json_of(&fleet),
                None => {
                    error(StatusCode::NOT_FOUND, "this gateway stands alone: it has no `state`")
                }
            },
            Endpoint::Incident => incident::incident(gateway, query),
            Endpoint::Login => return self.sign_in(&live, &head, body),
            Endpoint::Logout => return self.sign_out(&head),
            Endpoint::Session => self.session(&live, &head),
            Endpoint::Explain => view::explain(gateway, body),
            Endpoint::Reload => act::read_again(gateway, &*self.environment),
            Endpoint::Backend(deed) => {
                act::backend(self, (deed, by), found.id.as_deref(), body).await
            }
        };
        let (status, value) = answer;
        respond(status, "application/json", value.to_string())
    }
}

/// Whether a request comes from a page that this listener served under the name it is asked by. On
/// loopback only loopback names count, which the guard knows; anywhere else a listener does not
/// know its names, and everything needs the token or a cookie of that very name.
fn is_own_page(scheme: &str, listen: SocketAddr, headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|it: &HeaderValue| it.to_str().ok());
    let is_once = headers.get_all(header::HOST).iter().count() == 1;
    let (Some(origin), Some(host)) = (text(header::ORIGIN), text(header::HOST)) else {
        return false;
    };
    let is_loopback = listen.ip().to_canonical().is_loopback();
    !is_loopback && is_once && origin.strip_prefix(scheme) == Some(&format!("://{host}"))
}

/// What a type of the API is as JSON.
fn json_of<T: Serialize>(shown: &T) -> Answer {
    match serde_json::to_value(shown) {
        Ok(value) => (StatusCode::OK, value),
        Err(_) => error(StatusCode::INTERNAL_SERVER_ERROR, "the answer cannot be written"),
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
