//! One message to a collector: a connection, a request, its answer.
//!
//! Rules kept here:
//! - A connection serves one batch. Batches are seconds apart, so a kept one would save little and
//!   could be found dead.
//! - The whole exchange has a deadline, and of the answer only so much is read.
//! - Whether a message may be sent again is what OTLP says about the status.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::TokioIo;
use tidegate_net::upstream::connect;
use tidegate_runtime::task::{self, LocalExecutor, Owned};

use crate::destination::{Destination, Signal};

/// How long one message may take, connecting included. OTLP's own default.
const SEND_WITHIN: Duration = Duration::from_secs(10);
/// How much of an answer is read: it says at most how many records were refused.
const ANSWER_MAX: usize = 64 * 1024;
/// The statuses of gRPC after which OTLP sends again: cancelled, deadline exceeded, resource
/// exhausted, aborted, out of range, unavailable, data loss.
const GRPC_AGAIN: [&str; 7] = ["1", "4", "8", "10", "11", "14", "15"];

/// Why a message did not arrive.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SendFailed {
    /// A phrase without an address.
    pub(crate) why: String,
    pub(crate) may_retry: bool,
}

impl SendFailed {
    fn again(why: impl Into<String>) -> Self {
        Self { why: why.into(), may_retry: true }
    }
}

/// Sends a message.
pub(crate) async fn send(
    to: &Destination,
    signal: Signal,
    message: Bytes,
) -> Result<(), SendFailed> {
    let exchange = exchange(to, signal, message);
    match tokio::time::timeout(SEND_WITHIN, exchange).await {
        Ok(result) => result,
        Err(_) => Err(SendFailed::again(format!("no answer within {}s", SEND_WITHIN.as_secs()))),
    }
}

async fn exchange(to: &Destination, signal: Signal, message: Bytes) -> Result<(), SendFailed> {
    let connected = connect(&to.origin).await.map_err(|error| SendFailed::again(error.word()))?;
    let io = TokioIo::new(connected.io);
    let broken = |_| SendFailed::again("the connection broke");
    // The task that moves the bytes ends with this exchange.
    let _driver: Owned;
    let response = if to.is_grpc() || connected.is_h2 {
        let (mut sender, driver) = http2::handshake(LocalExecutor, io).await.map_err(broken)?;
        _driver = task::spawn_owned("collector", async { drop(driver.await) });
        sender.send_request(request(to, signal, message, true)).await
    } else {
        let (mut sender, driver) = http1::handshake(io).await.map_err(broken)?;
        _driver = task::spawn_owned("collector", async { drop(driver.await) });
        sender.send_request(request(to, signal, message, false)).await
    };
    let response = response.map_err(broken)?;
    match to.is_grpc() {
        true => judge_grpc(response).await,
        false => judge_http(response.status()),
    }
}

fn request(to: &Destination, signal: Signal, message: Bytes, is_h2: bool) -> Request<Full<Bytes>> {
    let path = to.path(signal);
    let body = if to.is_grpc() { framed(&message) } else { message };
    let mut request = Request::post("/").body(Full::new(body)).unwrap_or_default();
    let absolute = format!("{}://{}{path}", to.scheme, to.authority);
    // The parts come from a url that was read before.
    *request.uri_mut() = if is_h2 { absolute } else { path }.parse().unwrap_or_default();
    let headers = request.headers_mut();
    if !is_h2 && let Ok(host) = HeaderValue::try_from(&to.authority) {
        headers.insert(header::HOST, host);
    }
    let form = if to.is_grpc() { "application/grpc" } else { "application/x-protobuf" };
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(form));
    if to.is_grpc() {
        headers.insert(header::TE, HeaderValue::from_static("trailers"));
    }
    let agent = HeaderValue::from_static(concat!("tidegate/", env!("CARGO_PKG_VERSION")));
    headers.insert(header::USER_AGENT, agent);
    request
}

/// A message as gRPC frames it: not compressed, its length, itself.
fn framed(message: &[u8]) -> Bytes {
    let mut body = Vec::with_capacity(message.len() + 5);
    body.push(0);
    body.extend((message.len() as u32).to_be_bytes());
    body.extend(message);
    body.into()
}

async fn judge_grpc(response: Response<Incoming>) -> Result<(), SendFailed> {
    if response.status() != StatusCode::OK {
        return judge_http(response.status());
    }
    // An answer without a message has its status in the head.
    let (head, body) = response.into_parts();
    let read = Limited::new(body, ANSWER_MAX).collect().await;
    let read = read.map_err(|_| SendFailed::again("the answer broke"))?;
    let status = |headers: &HeaderMap| {
        headers.get("grpc-status").and_then(|it| it.to_str().ok()).map(str::to_owned)
    };
    let told = read.trailers().and_then(status).or_else(|| status(&head.headers));
    match told.as_deref() {
        Some("0") => Ok(()),
        Some(code) => {
            let shown: String = code.chars().filter(char::is_ascii_digit).take(3).collect();
            let may_retry = GRPC_AGAIN.contains(&code);
            Err(SendFailed {
                why: format!("the collector answered gRPC status {shown}"),
                may_retry,
            })
        }
        None => Err(SendFailed::again("the collector does not speak gRPC")),
    }
}

fn judge_http(status: StatusCode) -> Result<(), SendFailed> {
    if status.is_success() {
        return Ok(());
    }
    let may_retry = matches!(status.as_u16(), 429 | 502 | 503 | 504);
    Err(SendFailed { why: format!("the collector answered {}", status.as_u16()), may_retry })
}
