//! HTTP/2 with a client, after it was agreed on in the TLS handshake.
//!
//! Rules kept here:
//! - Streams, windows and header lists are bounded: a connection holds back what its client does
//!   not take, and cannot make the gateway hold more than a few MiB.
//! - A connection without a request for [`IDLE_FOR`] ends. So does one with an answer that the
//!   client has not taken any part of for [`WRITE_WITHIN`] (a window kept shut, S50), and one whose
//!   client breaks off requests faster than anybody who means them (S49). The client is told with
//!   GOAWAY, and has [`GOODBYE`] to finish.
//! - Floods of frames that cost an answer are bounded by the HTTP/2 library.

use std::convert::Infallible;
use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tidegate_runtime::{
    phase::{Phase, reached},
    task::LocalExecutor,
};
use tokio::io::{AsyncRead, AsyncWrite};

use super::answer_body::AnswerBody;
use super::h1::IDLE_FOR;
use super::h2_io::H2Io;
use super::write_watch::WRITE_WITHIN;
use super::{Activity, RequestBody, Service};
use crate::client_body::ClientBody;
use crate::fields::HEADERS_MAX;

const STREAMS_MAX: u32 = 100;
const STREAM_WINDOW: u32 = 64 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// What is held of an answer that its client does not take.
const SEND_BUFFER: usize = 64 * 1024;
/// Requests that were reset before the gateway looked at them.
const UNSEEN_RESETS_MAX: usize = 20;
/// Streams that the gateway had to reset because of what the client sent on them.
const FAULTY_STREAMS_MAX: usize = 64;
/// How often a connection is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// After GOAWAY, for what is still under way.
const GOODBYE: Duration = Duration::from_secs(5);

/// Serves one connection to its end.
pub(super) async fn converse(
    service: &Service,
    io: impl AsyncRead + AsyncWrite + Unpin + 'static,
    activity: &Rc<Activity>,
) {
    let (known, served) = (Rc::clone(activity), service.clone());
    let answering = service_fn(move |request| answer(&served, &known, request));
    let connection = http2::Builder::new(LocalExecutor)
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_header_list_size(u32::try_from(service.limits.bytes).unwrap_or(u32::MAX))
        .max_send_buf_size(SEND_BUFFER)
        .max_pending_accept_reset_streams(UNSEEN_RESETS_MAX)
        .max_local_error_reset_streams(FAULTY_STREAMS_MAX)
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(10))
        .serve_connection(TokioIo::new(H2Io::new(io, Rc::clone(activity))), answering);
    tokio::pin!(connection);
    let is_draining = tokio::select! {
        // A client that breaks its connection is its own affair.
        _ = connection.as_mut() => return,
        () = reached(service.phase.clone(), Phase::Draining) => true,
        () = outstayed(activity) => false,
    };
    connection.as_mut().graceful_shutdown();
    if is_draining {
        tokio::select! {
            _ = connection.as_mut() => return,
            () = outstayed(activity) => {}
        }
    }
    drop(tokio::time::timeout(GOODBYE, connection).await);
}

/// Until a connection has nothing more to do here.
async fn outstayed(activity: &Activity) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => {}
            () = activity.breaks_off_too_often() => return,
        }
        if activity.is_idle_for(IDLE_FOR) || activity.has_untaken_for(WRITE_WITHIN) {
            return;
        }
        activity.forgive();
    }
}

/// Has a request answered.
fn answer(
    service: &Service,
    activity: &Rc<Activity>,
    mut request: Request<Incoming>,
) -> impl Future<Output = Result<Response<AnswerBody>, Infallible>> + use<> {
    let has_no_answer_body = request.method() == Method::HEAD;
    let refusal = check(&mut request);
    let mut guard = service.begin(activity, &mut request, "https");
    let answering = match refusal {
        Some(refusal) => Box::pin(std::future::ready(refusal)),
        None => (service.handler)(request.map(RequestBody::over_h2)),
    };
    async move {
        let mut response = answering.await;
        // A stream ends by itself, and its connection has no such header.
        response.headers_mut().remove(header::CONNECTION);
        if has_no_answer_body {
            guard.finish();
        }
        Ok(AnswerBody::around(response, guard))
    }
}

/// What of a request only HTTP/2 can get wrong. The host is in its address there; one in the
/// headers too has to be the same, and then every later check sees it where HTTP/1.1 has it.
fn check(request: &mut Request<Incoming>) -> Option<Response<ClientBody>> {
    if request.headers().len() > HEADERS_MAX {
        return Some(refusal(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "too many headers"));
    }
    let authority = request.uri().authority().map(|it| HeaderValue::try_from(it.as_str()));
    let Some(Ok(authority)) = authority else { return None };
    match request.headers().get(header::HOST) {
        Some(host) if *host != authority => {
            Some(refusal(StatusCode::BAD_REQUEST, "`host` and `:authority` differ"))
        }
        _ => {
            request.headers_mut().insert(header::HOST, authority);
            None
        }
    }
}

fn refusal(status: StatusCode, message: &str) -> Response<ClientBody> {
    let body =
        serde_json::json!({ "error": { "type": "invalid_request_error", "message": message } });
    let mut response = Response::new(ClientBody::from(bytes::Bytes::from(body.to_string())));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}
