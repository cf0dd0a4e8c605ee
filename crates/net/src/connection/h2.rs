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

use std::rc::Rc;
use std::time::Duration;

use http::{HeaderValue, Request, Response, StatusCode, Version, header};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tidegate_runtime::{
    phase::{Phase, reached},
    task::LocalExecutor,
};
use tokio::io::{AsyncRead, AsyncWrite};

use super::client_io::{ClientIo, IDLE_FOR, WRITE_WITHIN};
use super::{Activity, Service, answer};
use crate::client_body::ClientBody;

const STREAMS_MAX: u32 = 100;
const STREAM_WINDOW: u32 = 64 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// What is held of an answer that its client does not take.
const SEND_BUFFER: usize = 64 * 1024;
/// The same as for HTTP/1.1.
pub(super) const HEADERS_MAX: usize = 100;
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
    let (handler, known) = (Rc::clone(&service.handler), Rc::clone(activity));
    let rule = service.is_cancelled_by_closing;
    let answering = service_fn(move |request| answer((&handler, rule), &known, request, "https"));
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
        .serve_connection(TokioIo::new(ClientIo::over_h2(io, Rc::clone(activity))), answering);
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

/// What of a request only HTTP/2 can get wrong. The host is in its address there; one in the
/// headers too has to be the same, and then every later check sees it where HTTP/1.1 has it.
pub(super) fn check(request: &mut Request<Incoming>) -> Option<Response<ClientBody>> {
    if request.version() != Version::HTTP_2 {
        return None;
    }
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
