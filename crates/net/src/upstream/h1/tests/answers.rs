//! Answers as servers send them, and as they should not.

use std::future::poll_fn;
use std::task::Poll;

use super::*;
use crate::fields::HEADERS_MAX;
use crate::upstream::h1::head::HEAD_MAX;

/// What an answer comes to: its status and body, and whether the connection is used again.
async fn read(answer: &str) -> Result<(u16, String, bool), &'static str> {
    read_request(get(), answer).await
}

async fn read_request(
    request: Request<SplicedBody>,
    answer: &str,
) -> Result<(u16, String, bool), &'static str> {
    let whole = answer.as_bytes();
    let at_once = judged(exchange(request, &[whole]).await);
    // However it is cut, it means the same.
    let bytes: Vec<&[u8]> = whole.chunks(1).collect();
    if whole.len() < 2000 {
        let method =
            if answer.contains("(to HEAD)") { http::Method::HEAD } else { http::Method::GET };
        let mut request = get();
        *request.method_mut() = method;
        assert_eq!(judged(exchange(request, &bytes).await), at_once, "byte by byte");
    }
    at_once
}

fn judged(exchange: Result<Exchange, SendError>) -> Result<(u16, String, bool), &'static str> {
    let word = |error: UpstreamError| match error {
        UpstreamError::Malformed(rule) => rule,
        UpstreamError::Ended => "ended",
        UpstreamError::Io(_) | UpstreamError::H2(_) => "failed",
    };
    let exchange = exchange.map_err(|error| match error {
        SendError::NotSent => "not sent",
        SendError::Broken(error) => word(error),
    })?;
    let status = exchange.response.status().as_u16();
    let body = exchange.body.map_err(word)?;
    Ok((status, String::from_utf8(body).expect("text"), exchange.h1.is_kept))
}

fn whole(status: u16, body: &str, is_kept: bool) -> Result<(u16, String, bool), &'static str> {
    Ok((status, body.to_owned(), is_kept))
}

#[tokio::test]
async fn a_body_ends_where_its_framing_says() {
    let cases = [
        ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello", whole(200, "hello", true)),
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", whole(200, "", true)),
        ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhellomore", whole(200, "hello", true)),
        ("HTTP/1.1 200 OK\r\ncontent-length: 5, 5\r\n\r\nhello", whole(200, "hello", true)),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
            whole(200, "abcde", true),
        ),
        ("HTTP/1.1 200 OK\r\n\r\nto the end", whole(200, "to the end", false)),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\nto the end",
            whole(200, "to the end", false),
        ),
        ("HTTP/1.1 204 No\r\ncontent-length: 5\r\n\r\n", whole(204, "", true)),
        ("HTTP/1.1 304 Not\r\ntransfer-encoding: chunked\r\n\r\n", whole(304, "", true)),
    ];
    for (answer, expected) in cases {
        assert_eq!(read(answer).await, expected, "{answer}");
    }
}

#[tokio::test]
async fn an_answer_to_head_has_no_body() {
    let mut request = get();
    *request.method_mut() = http::Method::HEAD;
    let answer = "HTTP/1.1 200 OK (to HEAD)\r\ncontent-length: 5\r\n\r\n";
    assert_eq!(read_request(request, answer).await, whole(200, "", true));
}

#[tokio::test]
async fn a_connection_is_used_again_only_if_both_sides_are_sure() {
    let cases = [
        ("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 1\r\n\r\na", false),
        ("HTTP/1.1 200 OK\r\nconnection: x, Close\r\ncontent-length: 1\r\n\r\na", false),
        ("HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\na", false),
        ("HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 1\r\n\r\na", true),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n\
             1\r\na\r\n0\r\n\r\n",
            false,
        ),
    ];
    for (answer, is_kept) in cases {
        assert_eq!(read(answer).await, whole(200, "a", is_kept), "{answer}");
    }
}

#[tokio::test]
async fn bytes_that_nobody_asked_for_end_a_connection() {
    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\naHTTP/1.1 200 OK\r\n\r\n";
    let mut exchange = exchange_with(get(), &[answer], Ending::StayOpen).await.expect("an answer");
    assert!(!exchange.h1.is_usable());
    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na";
    let mut exchange = exchange_with(get(), &[answer], Ending::StayOpen).await.expect("an answer");
    assert!(exchange.h1.is_usable());
}

#[tokio::test]
async fn interim_answers_are_passed_over() {
    let interim = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nlink: x\r\n\r\n";
    let answer = format!("{interim}HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na");
    assert_eq!(read(&answer).await, whole(200, "a", true));
    let many = "HTTP/1.1 102 Processing\r\n\r\n".repeat(40) + &answer;
    assert_eq!(read(&many).await, Err("too many interim answers"));
    let upgrade = "HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\nbytes of another protocol";
    assert_eq!(read(upgrade).await, whole(101, "", false));
}

#[tokio::test]
async fn framing_that_could_mean_two_things_is_refused() {
    let chunked =
        |body: &str| format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{body}");
    let long_extension = chunked(&format!("1;{}\r\na\r\n0\r\n\r\n", "x".repeat(20_000)));
    let long_trailer = chunked(&format!("0\r\nx: {}\r\n\r\n", "x".repeat(20_000)));
    let cases = [
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab".to_owned(),
            "the lengths do not agree",
        ),
        ("HTTP/1.1 200 OK\r\ncontent-length: +1\r\n\r\na".to_owned(), "the length is no number"),
        ("HTTP/1.1 200 OK\r\ncontent-length: \r\n\r\na".to_owned(), "the length is no number"),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n\r\na".to_owned(),
            "the length is no number",
        ),
        (
            "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n".to_owned(),
            "an encoding that HTTP/1.0 does not know",
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: \u{e9}, chunked\r\n\r\n0\r\n\r\n".to_owned(),
            "the encoding is no word",
        ),
        (chunked("x\r\na\r\n0\r\n\r\n"), "the size of a chunk is no number"),
        (chunked("\r\na\r\n0\r\n\r\n"), "the size of a chunk is no number"),
        (chunked("1\na\r\n0\r\n\r\n"), "the size of a chunk is no number"),
        (chunked("1 2\r\na\r\n0\r\n\r\n"), "the size of a chunk is no number"),
        (chunked("0000000000000001\r\na\r\n0\r\n\r\n"), "the size of a chunk is no number"),
        (chunked("1;a\nb\r\na\r\n0\r\n\r\n"), "a chunk extension ends early"),
        (chunked("1\r\nab\r\n0\r\n\r\n"), "a chunk is longer than announced"),
        (chunked("1\r\na\n0\r\n\r\n"), "a chunk is longer than announced"),
        (chunked("0\r\n\n"), "the trailer is not HTTP"),
        (chunked("0\r\nno field\r\n\r\n"), "the trailer is not HTTP"),
        (chunked("1\r\na\r\n0\r\n"), "ended"),
        (chunked("5\r\nabc"), "ended"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nabc".to_owned(), "ended"),
        (long_extension, "chunk extensions are too long"),
        (long_trailer, "the trailer is too long"),
    ];
    for (answer, rule) in cases {
        assert_eq!(read(&answer).await, Err(rule), "{answer:.80}");
    }
}

#[tokio::test]
async fn extensions_and_trailers_are_read_and_not_handed_on() {
    let answer = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\
                  1;name=\"v\"\r\na\r\n2 \t;x\r\nbc\r\n0\r\nx-sum: 1\r\ny: \r\n\r\n";
    assert_eq!(read(answer).await, whole(200, "abc", true));
}

#[tokio::test]
async fn heads_are_bounded_and_strict() {
    let many: String = (0..=HEADERS_MAX).map(|at| format!("h{at}: v\r\n")).collect();
    let long = format!("x: {}\r\n", "v".repeat(HEAD_MAX));
    let cases = [
        (format!("HTTP/1.1 200 OK\r\n{many}\r\n"), "there are too many headers"),
        (format!("HTTP/1.1 200 OK\r\n{long}\r\n"), "the head is too long"),
        (format!("HTTP/1.1 200 OK\r\nx: {}", "v".repeat(2 * HEAD_MAX)), "the head is too long"),
        ("HTTP/2.0 200 OK\r\n\r\n".to_owned(), "the version is not HTTP/1.0 or HTTP/1.1"),
        ("HTTP/1.1 2000 OK\r\n\r\n".to_owned(), "the status is no status"),
        ("HTTP/1.1 099 OK\r\n\r\n".to_owned(), "the status is no status"),
        ("HTTP/1.1 200 OK\r\nname : v\r\n\r\n".to_owned(), "the head is not HTTP"),
        ("HTTP/1.1 200 OK\r\nname: v\r\n folded\r\n\r\n".to_owned(), "the head is not HTTP"),
        ("HTTP/1.1 200 OK\r\nno colon\r\n\r\n".to_owned(), "the head is not HTTP"),
        ("<html>\r\n\r\n".to_owned(), "the version is not HTTP/1.0 or HTTP/1.1"),
        ("HTTP/1.1 200 OK\r\nx: v\r\n".to_owned(), "ended"),
    ];
    for (answer, rule) in cases {
        assert_eq!(read(&answer).await, Err(rule), "{answer:.80}");
    }
}

#[tokio::test]
async fn chunks_that_came_together_leave_together() {
    let chunks: String = (0..60).map(|at| format!("6\r\nd: {at:02}\n\r\n")).collect();
    let answer = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{chunks}0\r\n\r\n");
    let exchange = exchange(get(), &[answer.as_bytes()]).await.expect("an answer");
    assert_eq!(exchange.pieces, 1);
    let expected: String = (0..60).map(|at| format!("d: {at:02}\n")).collect();
    assert_eq!(exchange.body.expect("whole"), expected.as_bytes());
}

#[tokio::test]
async fn an_answer_that_is_silent_holds_no_buffer_and_goes_on() {
    let (ours, mut theirs) = duplex(ROOM);
    let mut h1 = H1::new(Io::Inside(ours));
    let begun = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n";
    theirs.write_all(begun).await.expect("there is room");
    h1.send(get()).await.expect("a head");
    h1.expect_silence();
    let first = poll_fn(|cx| h1.poll_data(cx)).await.expect("not the end").expect("bytes");
    assert_eq!(&first[..], b"hello");
    let waits = poll_fn(|cx| Poll::Ready(h1.poll_data(cx).is_pending())).await;
    assert!(waits);
    assert_eq!(h1.buffer.capacity(), 0);
    theirs.write_all(b"5\r\nagain\r\n").await.expect("there is room");
    let second = poll_fn(|cx| h1.poll_data(cx)).await.expect("not the end").expect("bytes");
    assert_eq!(&second[..], b"again");
}
