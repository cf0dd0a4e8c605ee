//! A provider behind TLS, with certificates made on the spot.
//!
//! What it speaks is decided by ALPN, from what it was started with. It answers chat requests well,
//! except for the next ones, if it was told so ([`Secure::next`]).

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, Version};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Barrier, watch};
use tokio_rustls::TlsAcceptor;

/// One that signs certificates.
pub struct Authority {
    issuer: rcgen::Issuer<'static, rcgen::KeyPair>,
    pub pem: String,
}

/// The certificate of a server, and its key.
pub struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Authority {
    pub fn new() -> Self {
        let mut params = rcgen::CertificateParams::new(Vec::new()).expect("no names to get wrong");
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = rcgen::KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("a certificate").pem();
        Self { issuer: rcgen::Issuer::new(params, key), pem }
    }

    /// A certificate for a host, good until the end of a year.
    pub fn sign(&self, host: &str, last_year: i32) -> Identity {
        let names = vec![host.to_owned()];
        let mut params = rcgen::CertificateParams::new(names).expect("a host's name");
        params.not_after = rcgen::date_time_ymd(last_year, 12, 31);
        let key = rcgen::KeyPair::generate().expect("a key");
        let signed = params.signed_by(&key, &self.issuer).expect("a certificate");
        let key = PrivatePkcs8KeyDer::from(key.serialize_der()).into();
        Identity { chain: vec![signed.der().clone()], key }
    }
}

/// What the provider does with a request.
#[derive(Clone)]
pub enum Act {
    /// Answers.
    Answer,
    /// Breaks off instead of a head: a reset stream in HTTP/2.
    Break,
    /// Sends three tokens and breaks off: a reset stream in HTTP/2.
    BreakAfterThree,
    /// Sends three tokens and then nothing.
    Stall,
    /// Sends the rest of its answer when so many others have come as far.
    Together(Arc<Barrier>),
    /// Answers, and says that this connection takes no more (GOAWAY in HTTP/2).
    Leave,
}

/// What it has seen.
#[derive(Default)]
pub struct Seen {
    pub connections: AtomicU64,
    pub requests: AtomicU64,
    pub h2_requests: AtomicU64,
    next: Mutex<VecDeque<Act>>,
}

/// A running provider; it ends with this value.
pub struct Secure {
    address: SocketAddr,
    pub seen: Arc<Seen>,
    is_over: watch::Sender<bool>,
}

impl Secure {
    /// Starts one that speaks these protocols, the first that the client has too.
    pub fn start(identity: Identity, protocols: &[&str]) -> Self {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the usual versions")
            .with_no_client_auth()
            .with_single_cert(identity.chain, identity.key)
            .expect("a key that fits");
        config.alpn_protocols = protocols.iter().map(|it| it.as_bytes().to_vec()).collect();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback has a port");
        let address = listener.local_addr().expect("it is bound");
        let seen: Arc<Seen> = Arc::default();
        let (is_over, over) = watch::channel(false);
        let known = Arc::clone(&seen);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime starts").block_on(accept(listener, acceptor, known, over));
        });
        Self { address, seen, is_over }
    }

    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// What it does with the next requests.
    pub fn next(&self, acts: impl IntoIterator<Item = Act>) {
        self.seen.next.lock().unwrap_or_else(PoisonError::into_inner).extend(acts);
    }

    /// Dies as a killed process does: every connection is gone at once, without a word.
    pub fn kill(&self) {
        self.is_over.send_replace(true);
    }
}

impl Drop for Secure {
    fn drop(&mut self) {
        self.kill();
    }
}

async fn accept(
    listener: std::net::TcpListener,
    acceptor: TlsAcceptor,
    seen: Arc<Seen>,
    mut over: watch::Receiver<bool>,
) {
    listener.set_nonblocking(true).expect("an option of a socket");
    let listener = TcpListener::from_std(listener).expect("a runtime is here");
    loop {
        let (tcp, _) = tokio::select! {
            accepted = listener.accept() => accepted.expect("loopback accepts"),
            // The runtime ends with this, and every task of it.
            _ = over.wait_for(|is_over| *is_over) => return,
        };
        tokio::spawn(converse(tcp, acceptor.clone(), Arc::clone(&seen)));
    }
}

async fn converse(tcp: TcpStream, acceptor: TlsAcceptor, seen: Arc<Seen>) {
    let Ok(tls) = acceptor.accept(tcp).await else { return };
    seen.connections.fetch_add(1, Ordering::Relaxed);
    let is_h2 = tls.get_ref().1.alpn_protocol() == Some(b"h2");
    let (leave, mut leaving) = watch::channel(false);
    let service = service_fn(move |request| answer(request, Arc::clone(&seen), leave.clone()));
    // Whether a client or this test breaks it, a broken connection is no failure here.
    macro_rules! until_done {
        ($connection:expr) => {{
            let mut connection = std::pin::pin!($connection);
            tokio::select! {
                _ = connection.as_mut() => return,
                left = leaving.wait_for(|it| *it) => drop(left),
            }
            connection.as_mut().graceful_shutdown();
            drop(connection.await);
        }};
    }
    if is_h2 {
        let mut builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        // What RFC 9113 asks servers to allow at least.
        builder.max_concurrent_streams(100);
        until_done!(builder.serve_connection(TokioIo::new(tls), service));
    } else {
        let builder = hyper::server::conn::http1::Builder::new();
        until_done!(builder.serve_connection(TokioIo::new(tls), service));
    }
}

async fn answer(
    request: Request<Incoming>,
    seen: Arc<Seen>,
    leave: watch::Sender<bool>,
) -> Result<Response<Reply>, Broken> {
    seen.requests.fetch_add(1, Ordering::Relaxed);
    if request.version() == Version::HTTP_2 {
        assert!(request.uri().authority().is_some() && !request.headers().contains_key("host"));
        seen.h2_requests.fetch_add(1, Ordering::Relaxed);
    }
    let act = seen.next.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let body = request.into_body().collect().await.map_err(|_| Broken)?.to_bytes();
    let is_stream = String::from_utf8_lossy(&body).contains("\"stream\":true");
    let act = act.unwrap_or(Act::Answer);
    match &act {
        Act::Break => return Err(Broken),
        Act::Leave => drop(leave.send_replace(true)),
        Act::Answer | Act::BreakAfterThree | Act::Stall | Act::Together(_) => {}
    }
    let kind = if is_stream { "text/event-stream" } else { "application/json" };
    let response = Response::builder().header("content-type", kind);
    Ok(response.body(Reply::new(is_stream, act)).expect("a sound head"))
}

/// The end of a body or of a request that was not meant to end.
#[derive(Debug)]
pub struct Broken;

impl std::fmt::Display for Broken {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("broken off, as the test asked")
    }
}

impl std::error::Error for Broken {}

impl From<Infallible> for Broken {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// How many tokens a stream has.
pub const TOKENS: usize = 10;

/// The body of an answer, piece by piece.
struct Reply {
    pieces: VecDeque<Bytes>,
    sent: usize,
    act: Act,
    waiting: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Reply {
    fn new(is_stream: bool, act: Act) -> Self {
        let token = r#"data: {"choices":[{"index":0,"delta":{"content":"x"}}]}"#;
        let whole = r#"{"object":"chat.completion","choices":[{"index":0,"finish_reason":"stop",
            "message":{"role":"assistant","content":"good morning"}}]}"#;
        let pieces = if is_stream {
            let finish = r#"data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
            let tokens = std::iter::repeat_n(token, TOKENS).chain([finish, "data: [DONE]"]);
            tokens.map(|it| Bytes::from(format!("{it}\n\n"))).collect()
        } else {
            VecDeque::from([Bytes::from_static(whole.as_bytes())])
        };
        Self { pieces, sent: 0, act, waiting: None }
    }
}

impl Body for Reply {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        if self.sent == 3 {
            match self.act.clone() {
                Act::BreakAfterThree => {
                    // A reset overtakes what is still on its way out.
                    let flushed = tokio::time::sleep(Duration::from_millis(200));
                    let waiting = self.waiting.get_or_insert_with(|| Box::pin(flushed));
                    std::task::ready!(waiting.as_mut().poll(cx));
                    return Poll::Ready(Some(Err(Broken)));
                }
                Act::Stall => return Poll::Pending,
                Act::Together(barrier) => {
                    let wait = async move { _ = barrier.wait().await };
                    let waiting = self.waiting.get_or_insert_with(|| Box::pin(wait));
                    std::task::ready!(waiting.as_mut().poll(cx));
                    self.act = Act::Answer;
                }
                Act::Answer | Act::Break | Act::Leave => {}
            }
        }
        self.sent += 1;
        Poll::Ready(self.pieces.pop_front().map(|piece| Ok(Frame::data(piece))))
    }
}
