//! The same answers to this client and to hyper's: generated ones, and ones with faults put in.
//!
//! Both must read the same. Where they differ, this client must be the stricter one: it may refuse
//! what hyper takes, but it must never take what hyper refuses or read something else.

use http_body_util::{BodyExt, Empty};
use hyper_util::rt::TokioIo;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::strategy::ValueTree;

use super::*;
use crate::mangled::{fault, parts, runtime};

/// Status, headers and body, or nothing if the answer was refused or broke.
type Reading = Option<(u16, Vec<(String, Vec<u8>)>, Vec<u8>)>;

async fn read_by_us(parts: &[&[u8]]) -> Reading {
    let exchange = exchange(get(), parts).await.ok()?;
    let body = exchange.body.ok()?;
    Some((exchange.response.status().as_u16(), list(exchange.response.headers()), body))
}

async fn read_by_hyper(parts: &[&[u8]]) -> Reading {
    let (ours, theirs) = duplex(ROOM);
    let script = say(theirs, parts, Ending::Close);
    let asked = async {
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(ours)).await.ok()?;
        let request = Request::get("/v1/models").header("host", "example.test");
        let request = request.body(Empty::<Bytes>::new()).expect("a request");
        let answer = async {
            let response = sender.send_request(request).await.ok()?;
            let (head, body) = response.into_parts();
            let body = body.collect().await.ok()?.to_bytes();
            Some((head.status.as_u16(), list(&head.headers), body.to_vec()))
        };
        let mut answer = std::pin::pin!(answer);
        let mut connection = std::pin::pin!(connection);
        tokio::select! {
            biased;
            answer = &mut answer => answer,
            _ = &mut connection => answer.await,
        }
    };
    tokio::join!(script, asked).1
}

fn list(headers: &http::HeaderMap) -> Vec<(String, Vec<u8>)> {
    headers.iter().map(|(name, value)| (name.to_string(), value.as_bytes().to_vec())).collect()
}

/// The head's other lines, right and wrong ones.
const LINES: &[&str] = &[
    "content-type: application/json",
    "content-length: 5",
    "content-length: 6",
    "content-length: 5, 5",
    "content-length: x",
    "Content-Length:5",
    "transfer-encoding: chunked",
    "Transfer-Encoding: gzip, chunked",
    "transfer-encoding: chunked, gzip",
    "transfer-encoding: identity",
    "connection: close",
    "connection: keep-alive",
    "x-empty:",
    "x-tab:\tv\t",
    "x-latin: caf\u{e9}",
    "x : space before the colon",
    " folded",
    "no colon",
];
const STATUS_LINES: &[&str] = &[
    "HTTP/1.1 200 OK",
    "HTTP/1.1 200",
    "HTTP/1.0 200 OK",
    "HTTP/1.1 204 No Content",
    "HTTP/1.1 304 Not Modified",
    "HTTP/1.1 500 Oh",
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK",
    "HTTP/1.1 103 Hints\r\nlink: x\r\n\r\nHTTP/1.1 429 Slow",
    "HTTP/1.2 200 OK",
    "HTTP/1.1 20 OK",
    "\r\nHTTP/1.1 200 OK",
];
const BODIES: &[&str] = &[
    "",
    "hello",
    "hello!",
    "5\r\nhello\r\n0\r\n\r\n",
    "5;ext=1\r\nhello\r\n1 \r\n!\r\n0\r\n\r\n",
    "2\r\nhe\r\n3\r\nllo\r\n0\r\nx-trailer: v\r\n\r\n",
    "2\r\nhe\r\n3\r\nllo\r\n0\r\nbad trailer\r\n\r\n",
    "A\r\n0123456789\r\n00\r\n\r\n",
    "5\nhello\n0\n\n",
    "5\r\nhello",
];

fn answers() -> impl Strategy<Value = Vec<u8>> {
    let lines = prop::collection::vec(select(LINES), 0..5);
    let faults = prop::collection::vec((any::<Index>(), fault()), 0..3);
    (select(STATUS_LINES), lines, select(BODIES), any::<bool>(), faults).prop_map(
        |(status, lines, body, has_bare_lf, faults)| {
            let end = if has_bare_lf && lines.len() == 3 { "\n" } else { "\r\n" };
            let lines: String = lines.iter().map(|line| format!("{line}{end}")).collect();
            let mut answer = format!("{status}\r\n{lines}\r\n{body}").into_bytes();
            for (at, fault) in faults {
                fault.put_into(&mut answer, at);
            }
            answer
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.max(3000)))]

    #[test]
    fn this_client_reads_what_hyper_reads_or_refuses_it(answer in answers()) {
        let (ours, theirs) = runtime().block_on(async {
            (read_by_us(&[&answer]).await, read_by_hyper(&[&answer]).await)
        });
        if ours.is_some() {
            prop_assert_eq!(ours, theirs, "{}", String::from_utf8_lossy(&answer));
        }
    }

    #[test]
    fn an_answer_means_the_same_however_it_is_cut(
        answer in answers(),
        cuts in prop::collection::vec(any::<Index>(), 0..6),
    ) {
        let parts = parts(&answer, &cuts);
        let (cut, whole) =
            runtime().block_on(async { (read_by_us(&parts).await, read_by_us(&[&answer]).await) });
        prop_assert_eq!(cut, whole);
    }

    #[test]
    fn bytes_that_are_no_answer_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        runtime().block_on(async { drop(read_by_us(&[&bytes]).await) });
    }
}

/// What is generated above is worth something only if much of it is read by both.
#[test]
fn a_good_part_of_the_generated_answers_is_read() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let runtime = runtime();
    let mut read = 0;
    for _ in 0..300 {
        let answer = answers().new_tree(&mut runner).expect("an answer").current();
        read += usize::from(runtime.block_on(read_by_us(&[&answer])).is_some());
    }
    assert!((60..290).contains(&read), "{read} of 300");
}

/// The two readings are compared by equality, which is worth nothing if neither reads anything.
#[test]
fn both_clients_read_a_plain_answer() {
    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nx: y\r\n\r\nhello";
    let (ours, theirs) =
        runtime().block_on(async { (read_by_us(&[answer]).await, read_by_hyper(&[answer]).await) });
    let headers = [("content-length", "5"), ("x", "y")];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec()));
    let expected = Some((200, headers.to_vec(), b"hello".to_vec()));
    assert_eq!((ours, theirs), (expected.clone(), expected));
}
