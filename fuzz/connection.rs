//! What must hold for any bytes that a client sends: the check behind the fuzz target `connection`
//! and behind the test that runs it over the committed seeds (`crates/net/tests/fuzzed.rs`).
//!
//! - Nothing panics, and a client that sends no more is not waited for.
//! - However the bytes are cut into pieces, the same requests are read and the same is answered.
//! - Every answer is whole, and nothing follows the one that says that it is the last.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use tidegate_net::client_body::ClientBody;
use tidegate_net::connection::{
    Activity, Answering, Certificates, HeadLimits, RequestBody, Service,
};
use tidegate_runtime::phase::Phase;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::sync::watch;

/// Conversations up to this length are cut at every byte, longer ones in steps of a few sizes.
const EVERY_CUT: usize = 160;
/// Small, so that heads that are too large are found.
const HEAD_LIMIT: usize = 512;
/// Each way is waited for so long, by a clock that runs only while nobody has anything to do.
const PATIENCE: Duration = Duration::from_secs(1);

/// A conversation: what was asked, line by line, and what was answered.
type Conversation = (Vec<String>, String);

/// Bytes that a client sends before it closes its side.
pub fn connection(data: &[u8]) {
    let whole = conversation(&[data]);
    check_answers(&whole.1);
    let steps = [1, 3, 64].map(|step| data.chunks(step).collect::<Vec<_>>());
    let halves = (1..data.len().min(EVERY_CUT + 1)).map(|at| vec![&data[..at], &data[at..]]);
    for parts in steps.into_iter().chain(halves.filter(|_| data.len() <= EVERY_CUT)) {
        assert_eq!(conversation(&parts), whole, "in {} parts", parts.len());
    }
}

fn conversation(parts: &[&[u8]]) -> Conversation {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    let held = async { tokio::time::timeout(PATIENCE, converse(parts)).await };
    runtime.block_on(held).expect("a client that sends no more is not waited for")
}

async fn converse(parts: &[&[u8]]) -> Conversation {
    let asked: Rc<RefCell<Vec<String>>> = Rc::default();
    let log = Rc::clone(&asked);
    let (_serving, phase) = watch::channel(Phase::Serving);
    let service = Service {
        handler: Rc::new(move |request| answer(request, Rc::clone(&log))),
        limits: HeadLimits { bytes: HEAD_LIMIT },
        is_cancelled_by_closing: |_| false,
        phase,
        certificates: Arc::new(Certificates::default()),
        hand_over: None,
    };
    let (mut ours, theirs) = duplex(1 << 20);
    let client = async move {
        for part in parts {
            // The other side may have heard enough.
            drop(ours.write_all(part).await);
            tokio::task::yield_now().await;
        }
        drop(ours.shutdown().await);
        let mut said = Vec::new();
        drop(ours.read_to_end(&mut said).await);
        String::from_utf8_lossy(&said).into_owned()
    };
    let activity = Activity::new();
    let (said, ()) = tokio::join!(client, service.converse(theirs, &activity, "http"));
    // Whether a client is told to go on depends on whether it has, and the date on the moment.
    let said = said.replace("HTTP/1.1 100 Continue\r\n\r\n", "");
    let lines = said.split("\r\n").filter(|line| !line.starts_with("date: "));
    (asked.take(), lines.collect::<Vec<_>>().join("\r\n"))
}

/// Answers with a few bytes: a path that begins with `/u` leaves the body unread.
fn answer(mut request: Request<RequestBody>, log: Rc<RefCell<Vec<String>>>) -> Answering {
    Box::pin(async move {
        let body = match request.uri().path().starts_with("/u") {
            true => None,
            false => request.body_mut().collect().await.ok().map(|it| it.to_bytes()),
        };
        let (method, uri, headers) = (request.method(), request.uri(), request.headers());
        log.borrow_mut().push(format!("{method} {uri} {headers:?} {body:?}"));
        Response::new(ClientBody::from(Bytes::from_static(b"ok")))
    })
}

/// Every answer has its length and its body, and nothing follows one that closes.
fn check_answers(said: &str) {
    let mut rest = said;
    while !rest.is_empty() {
        let (head, after) = rest.split_once("\r\n\r\n").expect("an answer has a head");
        assert!(head.starts_with("HTTP/1."), "{head:?}");
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.and_then(|it| it.parse().ok()).expect("answers have a length");
        // An answer to HEAD has a length and no body.
        let has_body = after.starts_with("ok");
        assert!(has_body || length == 0 || after.is_empty() || after.starts_with("HTTP/1."));
        rest = if has_body { &after[length..] } else { after };
        assert!(rest.is_empty() || !head.contains("connection: close"), "{rest:?} after {head:?}");
    }
}
