//! A server on loopback that does what a script says, and a conversation with it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, pending};
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tidegate_config::{file::ServerFile, secret::FixedEnvironment};
use tidegate_core::time::Millis;
use tidegate_net::upstream::Pool;
use tidegate_runtime::{clock::Clock, task};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::LocalSet;
use tokio::time::timeout;

use crate::{
    http::{HttpPlace, HttpTransport},
    transport::{ConnectionEvent, EventSender, Events, Failure},
};

/// Runs a test on a thread's own runtime; one that hangs fails.
pub(crate) fn local(test: impl Future<Output = ()>) {
    run(false, test);
}

/// The same with a clock that jumps to the next moment something waits for.
pub(crate) fn local_paused(test: impl Future<Output = ()>) {
    run(true, test);
}

fn run(is_paused: bool, test: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(is_paused).build().expect("a runtime");
    let limited = async { timeout(Duration::from_secs(3600), test).await.expect("no hang") };
    LocalSet::new().block_on(&runtime, limited);
}

/// A piece of a body.
pub(crate) enum Piece {
    Say(String),
    /// Wait for a word from the test.
    Wait(Rc<Notify>),
    /// Say nothing more and keep the connection open.
    Hang,
    /// Cut the connection, once what was said before is on its way.
    Cut,
    /// Cut it at once.
    CutNow,
}

/// What the script answers.
pub(crate) enum Reply {
    Answer {
        status: u16,
        headers: Vec<(&'static str, String)>,
        body: Vec<Piece>,
    },
    Silence,
    /// Close the connection instead.
    HangUp,
}

impl Reply {
    pub(crate) fn status(status: u16, body: &str) -> Self {
        let body = vec![Piece::Say(body.to_owned())];
        Self::Answer { status, headers: vec![("content-type", "application/json".into())], body }
    }

    pub(crate) fn json(body: &Value) -> Self {
        Self::status(200, &body.to_string())
    }

    pub(crate) fn events(body: Vec<Piece>) -> Self {
        let headers = vec![("content-type", "text/event-stream; charset=utf-8".into())];
        Self::Answer { status: 200, headers, body }
    }

    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        if let Self::Answer { headers, .. } = &mut self {
            headers.retain(|(known, _)| *known != name);
            headers.push((name, value.to_owned()));
        }
        self
    }
}

/// A message as an event.
pub(crate) fn event(message: &Value) -> Piece {
    Piece::Say(format!("event: message\ndata: {message}\n\n"))
}

/// The answer to a request.
pub(crate) fn result(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": {"n": id}})
}

/// A notification of the server's.
pub(crate) fn note(number: u64) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/x", "params": {"number": number}})
}

/// A request as the server saw it.
#[derive(Clone)]
pub(crate) struct Seen {
    pub(crate) method: Method,
    /// Path and query.
    pub(crate) target: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("text"))
    }

    pub(crate) fn id(&self) -> u64 {
        self.body["id"].as_u64().unwrap_or_default()
    }

    pub(crate) fn is(&self, method: &str) -> bool {
        self.body["method"] == method
    }
}

type Script = dyn Fn(&Seen) -> Reply;

/// The server.
pub(crate) struct Server {
    script: Box<Script>,
    pub(crate) seen: RefCell<Vec<Seen>>,
    pub(crate) accepted: Cell<usize>,
    pub(crate) open: Cell<usize>,
    changed: Notify,
    port: u16,
}

impl Server {
    pub(crate) async fn start(script: impl Fn(&Seen) -> Reply + 'static) -> Rc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback binds");
        let server = Rc::new(Self {
            script: Box::new(script),
            seen: RefCell::default(),
            accepted: Cell::new(0),
            open: Cell::new(0),
            changed: Notify::new(),
            port: listener.local_addr().expect("it is bound").port(),
        });
        let this = Rc::clone(&server);
        task::spawn("scripted server", async move {
            while let Ok((stream, _)) = listener.accept().await {
                this.accepted.set(this.accepted.get() + 1);
                this.open.set(this.open.get() + 1);
                let server = Rc::clone(&this);
                task::spawn("scripted connection", async move {
                    let served = Rc::clone(&server);
                    let service = service_fn(move |request| answer(Rc::clone(&served), request));
                    let http = hyper::server::conn::http1::Builder::new();
                    drop(http.serve_connection(TokioIo::new(stream), service).await);
                    server.open.set(server.open.get() - 1);
                    server.changed.notify_waiters();
                });
            }
        });
        server
    }

    /// Waits until something is so.
    pub(crate) async fn until(&self, is_so: impl Fn(&Self) -> bool) {
        loop {
            let changed = self.changed.notified();
            if is_so(self) {
                return;
            }
            changed.await;
        }
    }

    /// How many requests of this kind came.
    pub(crate) fn count(&self, of: impl Fn(&Seen) -> bool) -> usize {
        self.seen.borrow().iter().filter(|seen| of(seen)).count()
    }

    /// The requests of this kind.
    pub(crate) fn all(&self, of: impl Fn(&Seen) -> bool) -> Vec<Seen> {
        self.seen.borrow().iter().filter(|seen| of(seen)).cloned().collect()
    }

    /// Where it is, as the config would say.
    pub(crate) fn file(&self) -> ServerFile {
        let url = Some(format!("http://127.0.0.1:{}/mcp?a=b", self.port));
        ServerFile { url, ..ServerFile::default() }
    }
}

async fn answer(
    server: Rc<Server>,
    request: Request<Incoming>,
) -> Result<Response<Pieces>, io::Error> {
    let (head, body) = request.into_parts();
    let target = head.uri.to_string();
    assert!(target == "/mcp?a=b" || target.starts_with("/messages"), "{target}");
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let body = serde_json::from_slice(&body).unwrap_or_default();
    let seen = Seen { method: head.method, target, headers: head.headers, body };
    let reply = (server.script)(&seen);
    server.seen.borrow_mut().push(seen);
    server.changed.notify_waiters();
    let (status, headers, body) = match reply {
        Reply::Answer { status, headers, body } => (status, headers, body),
        Reply::Silence => return pending().await,
        Reply::HangUp => return Err(io::ErrorKind::ConnectionAborted.into()),
    };
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(name, value);
    }
    let pieces = Pieces { pieces: body.into(), waiting: None };
    Ok(response.body(pieces).expect("a valid response"))
}

struct Pieces {
    pieces: VecDeque<Piece>,
    waiting: Option<Pin<Box<dyn Future<Output = ()>>>>,
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        loop {
            if let Some(waiting) = &mut self.waiting {
                if waiting.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
                self.waiting = None;
            }
            return match self.pieces.pop_front() {
                None => Poll::Ready(None),
                Some(Piece::Say(text)) => Poll::Ready(Some(Ok(Frame::data(text.into())))),
                Some(Piece::CutNow) => Poll::Ready(Some(Err(io::ErrorKind::BrokenPipe.into()))),
                Some(Piece::Cut) => {
                    self.pieces.push_front(Piece::CutNow);
                    // The connection writes what it has when there is no more for a moment.
                    self.waiting = Some(Box::pin(tokio::task::yield_now()));
                    continue;
                }
                Some(Piece::Hang) => {
                    self.waiting = Some(Box::pin(pending()));
                    continue;
                }
                Some(Piece::Wait(word)) => {
                    self.waiting = Some(Box::pin(async move { word.notified().await }));
                    continue;
                }
            };
        }
    }
}

/// A conversation with a server.
pub(crate) struct Talk {
    pub(crate) transport: HttpTransport,
    pub(crate) events: Events,
    pub(crate) pool: Rc<Pool>,
    /// The calls whose streams were closed to be taken up again, in order.
    pub(crate) pauses: Vec<u64>,
    /// How often the server's name for the session was told.
    pub(crate) named: u32,
}

impl Talk {
    pub(crate) fn with(server: &Server) -> Self {
        Self::by(&server.file())
    }

    pub(crate) fn by(file: &ServerFile) -> Self {
        let place = Rc::new(place(file).expect("a usable server"));
        let pool = Rc::new(Pool::default());
        let (teller, events) = EventSender::alone();
        let limit = Millis::seconds(5);
        let transport = HttpTransport::open(place, Rc::clone(&pool), Clock::start(), limit, teller);
        Self { transport, events, pool, pauses: Vec::new(), named: 0 }
    }

    pub(crate) fn request(&self, call: u64, method: &str) {
        let message = json!({"jsonrpc": "2.0", "id": call, "method": method});
        self.transport.request(call, message.to_string().into(), None);
    }

    pub(crate) fn notice(&self, method: &str) {
        let message = json!({"jsonrpc": "2.0", "method": method});
        self.transport.notice(message.to_string().into());
    }

    /// Opens a session, as a link does.
    pub(crate) async fn initialise(&mut self) {
        self.request(0, "initialize");
        assert_eq!(self.message().await, (result(0), Some(0)));
        self.transport.negotiated("2025-11-25");
        self.notice("notifications/initialized");
    }

    /// The next event but pauses and the session's name, which are counted.
    pub(crate) async fn event(&mut self) -> ConnectionEvent {
        loop {
            match self.events.recv().await.expect("the transport lives") {
                ConnectionEvent::Paused { call } => self.pauses.push(call),
                ConnectionEvent::Named(_) => self.named += 1,
                event => return event,
            }
        }
    }

    pub(crate) async fn message(&mut self) -> (Value, Option<u64>) {
        match self.event().await {
            ConnectionEvent::Message { bytes, call } => {
                (serde_json::from_slice(&bytes).expect("JSON"), call)
            }
            other => panic!("{other:?} instead of a message"),
        }
    }

    pub(crate) async fn failure(&mut self, expected: u64) -> Failure {
        match self.event().await {
            ConnectionEvent::Unanswered { call, failure } if call == expected => failure,
            other => panic!("{other:?} instead of a failure of {expected}"),
        }
    }

    pub(crate) async fn closed(&mut self) -> Failure {
        match self.event().await {
            ConnectionEvent::Closed { failure, .. } => failure,
            other => panic!("{other:?} instead of the end"),
        }
    }
}

/// What the config makes of a server, with one secret known.
pub(crate) fn place(file: &ServerFile) -> Result<HttpPlace, String> {
    let environment = FixedEnvironment {
        variables: vec![("TOKEN".into(), "Bearer s3cret".into())],
        ..FixedEnvironment::default()
    };
    let mark = HeaderValue::from_static("00000000000000aa");
    HttpPlace::new("github", file, Path::new(""), &environment, &mark)
        .map_err(|error| error.to_string())
}
