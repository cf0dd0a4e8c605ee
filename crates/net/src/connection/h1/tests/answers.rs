//! How answers are sent: each part as soon as it is there, and never ended cleanly if they are not
//! whole.

use tokio::sync::mpsc;

use super::*;
use crate::client_body::Broke;

const GET: &str = "GET / HTTP/1.1\r\nhost: x\r\n\r\n";

/// A body of these pieces that says nothing of its length.
struct Pieces(Vec<Result<Bytes, Broke>>);

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = Broke;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Broke>>> {
        let next = if self.0.is_empty() { None } else { Some(self.0.remove(0)) };
        std::task::Poll::Ready(next.map(|piece| piece.map(http_body::Frame::data)))
    }
}

/// A listener whose every answer has these headers and pieces.
fn in_pieces(
    status: u16,
    headers: &'static [(&'static str, &'static str)],
    pieces: &'static [Result<&'static str, Broke>],
) -> Bed {
    Bed::instant(move || {
        let pieces = pieces.iter().map(|piece| piece.map(|it| Bytes::from_static(it.as_bytes())));
        let body = ClientBody::Passing(Box::new(Pieces(pieces.collect())));
        let mut response = Response::builder().status(status);
        for (name, value) in headers {
            response = response.header(*name, *value);
        }
        response.body(body).expect("a response")
    })
}

#[tokio::test]
async fn a_body_of_unknown_length_comes_in_chunks_and_the_connection_goes_on() {
    let said = in_pieces(200, &[], &[Ok("he"), Ok(""), Ok("llo")]).hear_text(&GET.repeat(2)).await;
    let one =
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n";
    assert_eq!(said, one.repeat(2));
}

#[tokio::test]
async fn a_client_of_http_1_0_gets_no_chunks() {
    let said = in_pieces(200, &[], &[Ok("he"), Ok("llo")])
        .hear_text("GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\nGET / HTTP/1.0\r\n\r\n")
        .await;
    assert_eq!(said, "HTTP/1.0 200 OK\r\nconnection: close\r\n\r\nhello");
    let known = Bed::instant(|| answer(200, "hello"));
    let said = known
        .hear_text("GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\nGET / HTTP/1.0\r\n\r\n")
        .await;
    let answer = "HTTP/1.0 200 OK\r\ncontent-length: 5\r\n";
    let expected = format!(
        "{answer}connection: keep-alive\r\n\r\nhello{answer}connection: close\r\n\r\nhello"
    );
    assert_eq!(said, expected);
}

#[tokio::test]
async fn answers_without_a_body_leave_the_connection_in_step() {
    let heads = "HEAD / HTTP/1.1\r\nhost: x\r\n\r\n".repeat(2);
    let said = in_pieces(200, &[("content-length", "5")], &[Ok("hello")]).hear_text(&heads).await;
    assert_eq!(said, "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n".repeat(2));
    for (status, line) in [(204, "204 No Content"), (304, "304 Not Modified")] {
        let said = in_pieces(status, &[], &[Ok("hello")]).hear_text(&GET.repeat(2)).await;
        assert_eq!(said, format!("HTTP/1.1 {line}\r\n\r\n").repeat(2));
    }
}

#[tokio::test]
async fn an_answer_that_is_not_as_long_as_announced_is_not_ended_cleanly() {
    let five: &[(&str, &str)] = &[("content-length", "5")];
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n";
    let short = in_pieces(200, five, &[Ok("he")]).hear_text(&GET.repeat(2)).await;
    assert_eq!(short, format!("{head}he"), "the second request is not answered");
    let long = in_pieces(200, five, &[Ok("hel"), Ok("lo!")]).hear_text(&GET.repeat(2)).await;
    assert_eq!(long, format!("{head}hel"));
    let broken = in_pieces(200, &[], &[Ok("he"), Err(Broke)]).hear_text(&GET.repeat(2)).await;
    assert_eq!(broken, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhe\r\n");
}

#[tokio::test]
async fn every_part_of_an_answer_leaves_as_soon_as_it_is_there() {
    let (sender, events) = mpsc::channel(1);
    let events = RefCell::new(Some(events));
    let bed = Bed::instant(move || {
        let body = ClientBody::Streaming(events.take().expect("one request"));
        Response::new(body)
    });
    let (mut ours, theirs) = duplex(ROOM);
    let client = async {
        ours.write_all(GET.as_bytes()).await.expect("there is room");
        let mut heard = [0; 512];
        let count = ours.read(&mut heard).await.expect("the head, before there is a body");
        assert!(heard[..count].ends_with(b"\r\n\r\n"));
        for event in ["one", "three"] {
            sender.send(Bytes::from_static(event.as_bytes())).await.expect("it is awaited");
            let count = ours.read(&mut heard).await.expect("the event");
            assert_eq!(heard[..count], *format!("{:x}\r\n{event}\r\n", event.len()).as_bytes());
        }
        drop(sender);
        let count = ours.read(&mut heard).await.expect("the end");
        assert_eq!(heard[..count], *b"0\r\n\r\n");
        drop(ours);
    };
    tokio::join!(client, bed.serve(theirs));
}

#[tokio::test]
async fn a_slow_reader_gets_all_of_a_long_answer() {
    let long: &'static str = "0123456789abcdef".repeat(20_000).leak();
    for is_whole in [true, false] {
        let bed = Bed::instant(move || match is_whole {
            true => answer(200, long),
            false => {
                let pieces = long.as_bytes().chunks(5000).map(|it| Ok(Bytes::from_static(it)));
                Response::new(ClientBody::Passing(Box::new(Pieces(pieces.collect()))))
            }
        });
        let (mut ours, theirs) = duplex(1000);
        let client = async {
            ours.write_all(GET.as_bytes()).await.expect("there is room");
            drop(ours.shutdown().await);
            let mut said = Vec::new();
            ours.read_to_end(&mut said).await.expect("an answer");
            said
        };
        let (said, ()) = tokio::join!(client, bed.serve(theirs));
        let mut response = httparse::Response::new(&mut []);
        let mut headers = [httparse::EMPTY_HEADER; 8];
        response = httparse::Response { headers: &mut headers, ..response };
        let head = response.parse(&said).expect("a head").unwrap();
        let mut body = bytes::BytesMut::from(&said[head..]);
        let mut framing = match is_whole {
            true => super::super::framing::RequestFraming::of_length(long.len() as u64),
            false => super::super::framing::RequestFraming::chunked(),
        };
        let taken = framing.take(&mut body).expect("sound");
        assert!(matches!(taken, super::super::framing::Taken::Data(data) if data == long));
        assert!(framing.has_ended() && body.is_empty());
    }
}
