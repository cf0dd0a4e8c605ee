//! Conversations with clients that are scripts, and what came of them.

mod against_hyper;
mod answers;
mod patience;
mod requests;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::BodyExt;
use tidegate_runtime::clock::timer_now;
use tidegate_runtime::phase::Phase;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::watch;

use crate::client_body::ClientBody;
use crate::connection::{
    Activity, Answering, Certificates, HeadLimits, RequestBody, Service, h1::BodyBroke,
};

/// Larger than any request or answer of these tests, so that neither side waits for the other.
const ROOM: usize = 1024 * 1024;
/// Larger than any head of these tests that is meant to be taken.
const HEAD_LIMIT: usize = 4096;

/// A request as its handler saw it; its body is missing if it broke.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    method: String,
    target: String,
    headers: Vec<(String, Vec<u8>)>,
    body: Option<Vec<u8>>,
}

impl Seen {
    fn of<B>(request: &Request<B>, body: Option<Vec<u8>>) -> Self {
        let (method, target) = (request.method().to_string(), request.uri().to_string());
        Self { method, target, headers: list(request.headers()), body }
    }
}

fn list(headers: &HeaderMap) -> Vec<(String, Vec<u8>)> {
    headers.iter().map(|(name, value)| (name.to_string(), value.as_bytes().to_vec())).collect()
}

/// A listener whose requests are answered by one function.
struct Bed {
    service: Service,
    seen: Rc<RefCell<Vec<Seen>>>,
    phase: watch::Sender<Phase>,
}

impl Bed {
    /// One that reads the body of a request and answers with it.
    fn echo() -> Self {
        let seen = Rc::new(RefCell::default());
        let log = Rc::clone(&seen);
        let mut bed = Self::of(move |mut request| {
            let log: Rc<RefCell<Vec<Seen>>> = Rc::clone(&log);
            Box::pin(async move {
                let body = request.body_mut().collect().await.ok().map(|it| it.to_bytes());
                let answer = answer(200, body.clone().unwrap_or_default());
                log.borrow_mut().push(Seen::of(&request, body.map(|it| it.to_vec())));
                answer
            })
        });
        bed.seen = seen;
        bed
    }

    /// One that answers like this.
    fn of(handler: impl Fn(Request<RequestBody>) -> Answering + 'static) -> Self {
        let (sender, phase) = watch::channel(Phase::Serving);
        let service = Service {
            handler: Rc::new(handler),
            limits: HeadLimits { bytes: HEAD_LIMIT },
            is_cancelled_by_closing: |_| false,
            phase,
            certificates: Arc::new(Certificates::default()),
            hand_over: None,
        };
        Self { service, seen: Rc::default(), phase: sender }
    }

    /// One that answers without a look at the body.
    fn instant(answer: impl Fn() -> Response<ClientBody> + 'static) -> Self {
        Self::of(move |_| Box::pin(std::future::ready(answer())))
    }

    /// Serves one end of a connection.
    async fn serve(&self, theirs: DuplexStream) {
        self.service.converse(theirs, &Activity::new(), "http").await;
    }

    /// All that a client hears which says these parts, one after the other, and sends no more.
    async fn hear(&self, parts: &[&[u8]]) -> String {
        let (ours, theirs) = duplex(ROOM);
        let (said, ()) = tokio::join!(say(ours, parts), self.serve(theirs));
        said
    }

    /// The same of a text that comes at once.
    async fn hear_text(&self, text: &str) -> String {
        self.hear(&[text.as_bytes()]).await
    }
}

/// Plays the client: each part is its own read for the other side.
async fn say(mut ours: DuplexStream, parts: &[&[u8]]) -> String {
    for part in parts {
        if ours.write_all(part).await.is_err() {
            break;
        }
        tokio::task::yield_now().await;
    }
    drop(ours.shutdown().await);
    let mut said = Vec::new();
    drop(ours.read_to_end(&mut said).await);
    without_dates(&said)
}

fn without_dates(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines = text.split("\r\n").filter(|line| !line.starts_with("date: "));
    lines.collect::<Vec<_>>().join("\r\n")
}

fn answer(status: u16, body: impl Into<Bytes>) -> Response<ClientBody> {
    let body = ClientBody::from(body.into());
    Response::builder().status(status).body(body).expect("a response")
}

/// Sets a mark when it is dropped.
struct DropMark(Rc<Cell<bool>>);

impl Drop for DropMark {
    fn drop(&mut self) {
        self.0.set(true);
    }
}
