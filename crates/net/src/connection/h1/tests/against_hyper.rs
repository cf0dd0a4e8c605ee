//! The same requests to this server and to hyper's: generated ones, and ones with faults put in.
//!
//! Both must read the same. Where they differ, this server must be the stricter one: it may refuse
//! what hyper takes, for one of the reasons in [`is_refused_for_a_reason`], but it must never take
//! what hyper refuses or read something else.

use std::convert::Infallible;

use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::strategy::ValueTree;

use super::*;
use crate::mangled::{fault, parts, runtime};

async fn read_by_us(parts: &[&[u8]]) -> Vec<Seen> {
    let (bed, began) = (Bed::echo(), timer_now());
    bed.hear(parts).await;
    assert_eq!(began.elapsed(), Duration::ZERO, "nothing more comes, so nothing is waited for");
    bed.seen.take()
}

async fn read_by_hyper(parts: &[&[u8]]) -> Vec<Seen> {
    let seen: Rc<RefCell<Vec<Seen>>> = Rc::default();
    let log = Rc::clone(&seen);
    let service = service_fn(move |mut request: Request<hyper::body::Incoming>| {
        let log = Rc::clone(&log);
        async move {
            let body = request.body_mut().collect().await.ok().map(|it| it.to_bytes());
            log.borrow_mut().push(Seen::of(&request, body.map(|it| it.to_vec())));
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::new())))
        }
    });
    let (ours, theirs) = duplex(ROOM);
    let connection = hyper::server::conn::http1::Builder::new()
        .half_close(true)
        .max_header_size(HEAD_LIMIT)
        .serve_connection(TokioIo::new(theirs), service);
    let _ends = tokio::join!(say(ours, parts), connection);
    seen.take()
}

/// Whether something in a conversation explains why this server refuses a request of it that hyper
/// took, the last one of these.
fn is_refused_for_a_reason(conversation: &[u8], taken: &[Seen]) -> bool {
    let text = String::from_utf8_lossy(conversation);
    let Some(refused) = taken.last() else { return false };
    let count = |seen: &Seen, name: &str| seen.headers.iter().filter(|it| it.0 == name).count();
    let value = |name: &str| refused.headers.iter().find(|it| it.0 == name).map(|it| &it.1);
    let has_coding = value("transfer-encoding").is_some();
    // hyper drops a length that stands beside an encoding, and one that is said twice.
    let lengths: usize = taken.iter().map(|it| count(it, "content-length")).sum();
    let has_dropped = text.to_ascii_lowercase().matches("content-length:").count() > lengths;
    has_dropped
        || count(refused, "host") != 1
        || count(refused, "content-length") + count(refused, "transfer-encoding") > 1
        || value("transfer-encoding").is_some_and(|it| !it.eq_ignore_ascii_case(b"chunked"))
        || value("content-length").is_some_and(|it| !it.iter().all(u8::is_ascii_digit))
        || text.contains("HTTP/1.0") && has_coding
        || text.contains('#')
        || !refused.target.starts_with(['/', '*', 'h'])
        || text.matches('\n').count() != text.matches("\r\n").count()
}

const REQUEST_LINES: &[&str] = &[
    "GET / HTTP/1.1",
    "POST /v1/chat?x=1 HTTP/1.1",
    "POST /v1/chat HTTP/1.1",
    "GET /a HTTP/1.0",
    "OPTIONS * HTTP/1.1",
    "GET http://example.test/a HTTP/1.1",
    "CONNECT example.test:80 HTTP/1.1",
    "GET /a#b HTTP/1.1",
    "GET  / HTTP/1.1",
    "GET / HTTP/1.2",
    "PRI * HTTP/2.0",
    "\r\nPUT / HTTP/1.1",
];
/// Other lines of a head, right and wrong ones.
const LINES: &[&str] = &[
    "content-type: application/json",
    "content-length: 5",
    "content-length: 0",
    "content-length: 5, 5",
    "content-length: +5",
    "Content-Length:5",
    "transfer-encoding: chunked",
    "Transfer-Encoding: Chunked",
    "Transfer-Encoding: gzip, chunked",
    "transfer-encoding: chunked, gzip",
    "transfer-encoding: identity",
    "connection: close",
    "connection: keep-alive",
    "expect: 100-continue",
    "upgrade: websocket\r\nconnection: upgrade",
    "host: example.test",
    "x-empty:",
    "x-tab:\tv\t",
    "x-latin: caf\u{e9}",
    "x : space before the colon",
    " folded",
    "no colon",
];
const BODIES: &[&str] = &[
    "",
    "hello",
    "5\r\nhello\r\n0\r\n\r\n",
    "5;ext=1\r\nhello\r\n1\r\n!\r\n0\r\n\r\n",
    "2\r\nhe\r\n3 \r\nllo\r\n0\r\n\r\n",
    "2\r\nhe\r\n3\r\nllo\r\n0\r\nx-trailer: v\r\n\r\n",
    "2\r\nhe\r\n3\r\nllo\r\n0\r\nbad trailer\r\n\r\n",
    "A\r\n0123456789\r\n00\r\n\r\n",
    "5\nhello\n0\n\n",
    "5\r\nhello",
];

/// A framing with a body that fits, in most cases.
fn framed() -> impl Strategy<Value = (&'static str, &'static str)> {
    let chunked = LINES[6];
    prop_oneof![
        2 => Just(("x: y", "")),
        2 => Just((LINES[1], BODIES[1])),
        3 => select(&BODIES[2..]).prop_map(move |body| (chunked, body)),
        1 => (select(LINES), select(BODIES)),
    ]
}

fn requests() -> impl Strategy<Value = Vec<u8>> {
    let first = prop_oneof![3 => select(&REQUEST_LINES[..4]), 1 => select(REQUEST_LINES)];
    let lines = prop_oneof![3 => Just(Vec::new()), 2 => prop::collection::vec(select(LINES), 1..3)];
    let end = prop_oneof![9 => Just("\r\n"), 1 => Just("\n")];
    let one = (first, lines, framed(), end).prop_map(|(first, lines, (framing, body), end)| {
        let lines: String = lines.iter().map(|line| format!("{line}{end}")).collect();
        format!("{first}\r\nhost: x\r\n{lines}{framing}\r\n\r\n{body}")
    });
    let faults =
        prop_oneof![Just(Vec::new()), prop::collection::vec((any::<Index>(), fault()), 1..3),];
    (prop::collection::vec(one, 1..3), faults).prop_map(|(requests, faults)| {
        let mut text = requests.concat().into_bytes();
        for (at, fault) in faults {
            fault.put_into(&mut text, at);
        }
        text
    })
}

/// Whether this server has read what hyper has, or less of it for a reason.
fn compared(text: &[u8], ours: &[Seen], theirs: &[Seen]) -> Result<(), TestCaseError> {
    for (at, taken) in ours.iter().enumerate() {
        let reading = theirs.get(at);
        // A body that broke for us may be whole for hyper, whose reader of chunks is lenient.
        let is_stricter = taken.body.is_none() && reading.is_some_and(|it| it.body.is_some());
        let expected = reading.cloned().map(|it| match is_stricter {
            true => Seen { body: None, ..it },
            false => it,
        });
        prop_assert_eq!(
            Some(taken),
            expected.as_ref(),
            "request {} of {:?}",
            at,
            text.escape_ascii().to_string()
        );
    }
    let is_broken = ours.last().is_some_and(|last| last.body.is_none());
    if let Some(more) = theirs.get(..=ours.len()).filter(|_| !is_broken) {
        let is_reasoned = is_refused_for_a_reason(text, more);
        prop_assert!(is_reasoned, "hyper took {:?} of {}", more.last(), text.escape_ascii());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.max(3000)))]

    #[test]
    fn this_server_reads_what_hyper_reads_or_refuses_it(text in requests()) {
        let (ours, theirs) = runtime().block_on(async {
            (read_by_us(&[&text]).await, read_by_hyper(&[&text]).await)
        });
        compared(&text, &ours, &theirs)?;
    }

    #[test]
    fn a_conversation_is_read_the_same_however_it_is_cut(
        text in requests(),
        cuts in prop::collection::vec(any::<Index>(), 0..6),
    ) {
        let parts = parts(&text, &cuts);
        let (cut, whole) =
            runtime().block_on(async { (read_by_us(&parts).await, read_by_us(&[&text]).await) });
        prop_assert_eq!(cut, whole);
    }

    #[test]
    fn bytes_that_are_no_request_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        runtime().block_on(async { drop(read_by_us(&[&bytes]).await) });
    }
}

/// What is generated above is worth something only if much of it is read by both.
#[test]
fn a_good_part_of_the_generated_requests_is_read() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let runtime = runtime();
    let (mut read, mut whole) = (0, 0);
    for _ in 0..300 {
        let text = requests().new_tree(&mut runner).expect("a request").current();
        let seen = runtime.block_on(read_by_us(&[&text]));
        read += usize::from(!seen.is_empty());
        whole +=
            usize::from(seen.iter().any(|it| it.body.as_ref().is_some_and(|it| !it.is_empty())));
    }
    assert!((60..290).contains(&read) && whole > 20, "{read} of 300, {whole} with a body");
}

/// Readings are compared by equality, which is worth nothing if neither server reads anything.
#[test]
fn both_servers_read_two_plain_requests() {
    let text = b"POST /a HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nhello\
        GET /b HTTP/1.1\r\nhost: x\r\n\r\n";
    let (ours, theirs) =
        runtime().block_on(async { (read_by_us(&[text]).await, read_by_hyper(&[text]).await) });
    assert_eq!(ours, theirs);
    let bodies: Vec<Option<Vec<u8>>> = ours.into_iter().map(|it| it.body).collect();
    assert_eq!(bodies, [Some(b"hello".to_vec()), Some(Vec::new())]);
}
