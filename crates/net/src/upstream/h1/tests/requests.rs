//! What goes out.

use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

use super::*;

#[tokio::test]
async fn a_request_is_its_line_its_headers_and_its_body() {
    let sent = on_the_wire(post("{}")).await;
    let expected =
        "POST /v1/chat?x=1 HTTP/1.1\r\nhost: example.test\r\ncontent-length: 2\r\n\r\n{}";
    assert_eq!(sent, expected);
}

#[tokio::test]
async fn a_get_announces_no_body() {
    assert_eq!(on_the_wire(get()).await, "GET /v1/models HTTP/1.1\r\nhost: example.test\r\n\r\n");
}

#[tokio::test]
async fn a_length_that_is_set_is_not_set_twice() {
    let mut request = post("abc");
    request.headers_mut().insert("content-length", 3.into());
    let sent = on_the_wire(request).await;
    assert_eq!(sent.matches("content-length").count(), 1, "{sent}");
}

#[tokio::test]
async fn pieces_of_a_body_follow_each_other() {
    let body = SplicedBody::new(["one ".into(), "two ".into(), "three".into()]);
    let request = Request::post("/").header("host", "h").body(body).expect("a request");
    let sent = on_the_wire(request).await;
    assert!(sent.ends_with("content-length: 13\r\n\r\none two three"), "{sent}");
}

#[tokio::test]
async fn a_server_that_refuses_a_large_body_early_is_heard_and_not_asked_again() {
    let (ours, mut theirs) = duplex(64);
    let mut h1 = H1::new(Io::Inside(ours));
    let body = SplicedBody::new([vec![b'x'; 100_000].into(), Bytes::new(), Bytes::new()]);
    let request = Request::post("/").header("host", "h").body(body).expect("a request");
    let refusing = async {
        let mut some = [0; 10];
        theirs.read_exact(&mut some).await.expect("it begins");
        let answer = b"HTTP/1.1 413 Large\r\ncontent-length: 0\r\n\r\n";
        theirs.write_all(answer).await.expect("room for the answer");
    };
    let ((), response) = tokio::join!(refusing, h1.send(request));
    assert_eq!(response.expect("an answer").status(), 413);
    assert!(!h1.is_usable());
}

#[tokio::test]
async fn a_request_is_written_on_while_the_answer_is_awaited() {
    let (ours, mut theirs) = duplex(64);
    let mut h1 = H1::new(Io::Inside(ours));
    let body = SplicedBody::new([vec![b'x'; 10_000].into(), Bytes::new(), Bytes::new()]);
    let request = Request::post("/").header("host", "h").body(body).expect("a request");
    let reading = async {
        let mut all = Vec::new();
        while !all.ends_with(&[b'x'; 10_000]) {
            let mut some = [0; 50];
            let len = theirs.read(&mut some).await.expect("it goes on");
            all.extend_from_slice(&some[..len]);
        }
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
        theirs.write_all(answer).await.expect("room for the answer");
        theirs
    };
    let (_theirs, response) = tokio::join!(reading, h1.send(request));
    assert_eq!(response.expect("an answer").status(), 200);
    assert!(h1.is_usable());
}

#[tokio::test]
async fn on_a_connection_that_was_closed_nothing_was_sent() {
    let (ours, theirs) = duplex(64);
    let mut h1 = H1::new(Io::Inside(ours));
    assert!(h1.is_usable());
    drop(theirs);
    assert!(!h1.is_usable());
    assert!(matches!(h1.send(get()).await, Err(SendError::NotSent)));
}

#[tokio::test]
async fn a_connection_that_ends_after_the_request_broke() {
    let error = exchange(get(), &[]).await.expect_err("no answer");
    assert!(matches!(error, SendError::Broken(UpstreamError::Ended)), "{error:?}");
}
