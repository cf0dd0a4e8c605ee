//! An OpenTelemetry collector for tests, over gRPC (HTTP/2 without TLS) or over HTTP/1.1, as
//! clients begin. `protobuf.rs` reads what it is sent; `cargo xtask otlp` has the same read by
//! OpenTelemetry's own Python packages.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};

use crate::protobuf::{Metric, Span, Told, metrics_of, resource_of, spans_of};

/// What it has received, and what it answers.
#[derive(Debug, Default)]
struct Received {
    spans: Vec<Span>,
    metrics: BTreeMap<String, Metric>,
    resource: Told,
    /// Everything as it came.
    bytes: Vec<u8>,
    paths: Vec<String>,
    /// What it answers instead of taking anything.
    refuses: Option<u16>,
}

/// A collector.
pub struct Collector {
    address: SocketAddr,
    received: Arc<Mutex<Received>>,
}

impl Collector {
    pub fn start() -> Self {
        Self::start_at("127.0.0.1:0")
    }

    pub fn start_at(address: &str) -> Self {
        let listener = TcpListener::bind(address).expect("loopback has a free port");
        listener.set_nonblocking(true).expect("a listener");
        let address = listener.local_addr().expect("it is bound");
        let received = Arc::new(Mutex::new(Received::default()));
        let of_thread = Arc::clone(&received);
        // The thread ends with the test process.
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(accept(listener, of_thread));
        });
        Self { address, received }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn refuse(&self, status: Option<u16>) {
        self.with(|it| it.refuses = status);
    }

    fn with<R>(&self, look: impl FnOnce(&mut Received) -> R) -> R {
        look(&mut self.received.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn spans(&self) -> Vec<Span> {
        self.with(|it| it.spans.clone())
    }

    pub fn paths(&self) -> Vec<String> {
        self.with(|it| it.paths.clone())
    }

    pub fn metric(&self, name: &str) -> Metric {
        self.with(|it| it.metrics.get(name).cloned()).unwrap_or_else(|| panic!("no {name}"))
    }

    pub fn metric_names(&self) -> Vec<String> {
        self.with(|it| it.metrics.keys().cloned().collect())
    }

    pub fn resource(&self) -> Told {
        self.with(|it| it.resource.clone())
    }

    /// Everything that came, as text with gaps.
    pub fn text(&self) -> String {
        self.with(|it| String::from_utf8_lossy(&it.bytes).into_owned())
    }
}

async fn accept(listener: TcpListener, received: Arc<Mutex<Received>>) {
    let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let received = Arc::clone(&received);
        tokio::spawn(async move {
            let mut first = [0; 3];
            drop(stream.peek(&mut first).await);
            let serve = service_fn(move |request| answer(request, Arc::clone(&received)));
            let io = TokioIo::new(stream);
            if &first == b"PRI" {
                let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                drop(server.serve_connection(io, serve).await);
            } else {
                let server = hyper::server::conn::http1::Builder::new();
                drop(server.serve_connection(io, serve).await);
            }
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    received: Arc<Mutex<Received>>,
) -> Result<Response<Reply>, Infallible> {
    let is_grpc = request.headers().get("content-type").is_some_and(|it| it == "application/grpc");
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await.map(|it| it.to_bytes()).unwrap_or_default();
    let mut received = received.lock().unwrap_or_else(PoisonError::into_inner);
    received.paths.push(path.clone());
    if let Some(status) = received.refuses {
        return Ok(response(StatusCode::from_u16(status).expect("a status"), is_grpc));
    }
    let message = if is_grpc { body.slice(5..) } else { body };
    received.bytes.extend(&message);
    if path.ends_with("/v1/traces") || path.contains("TraceService") {
        received.resource = resource_of(&message);
        received.spans.extend(spans_of(&message));
    } else {
        let metrics = metrics_of(&message).into_iter().map(|it| (it.name.clone(), it));
        received.metrics.extend(metrics);
    }
    Ok(response(StatusCode::OK, is_grpc))
}

fn response(status: StatusCode, is_grpc: bool) -> Response<Reply> {
    // An empty message, in a frame of gRPC's.
    let mut frames = VecDeque::from([Frame::data(Bytes::from_static(&[0; 5]))]);
    if is_grpc {
        let status = (HeaderName::from_static("grpc-status"), HeaderValue::from_static("0"));
        frames.push_back(Frame::trailers(HeaderMap::from_iter([status])));
    }
    let mut response = Response::new(Reply(frames));
    *response.status_mut() = status;
    if is_grpc {
        let form = HeaderValue::from_static("application/grpc");
        response.headers_mut().insert("content-type", form);
    }
    response
}

/// The body of an answer.
struct Reply(VecDeque<Frame<Bytes>>);

impl Body for Reply {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.pop_front().map(Ok))
    }
}
