//! Requests, their answers over the stream, and requests that are refused.

use std::cell::Cell;
use std::rc::Rc;

use http::Method;
use serde_json::json;
use tidegate_core::outcome::OutcomeKind;
use tidegate_mcp::{
    cause::{Cause, Delivery},
    message::LARGE,
};
use tokio::sync::Notify;

use super::{Talk, endpoint};
use crate::http::tests::bed::{
    Piece, Reply, Seen, Server, event, local, local_paused, note, result,
};
use crate::transport::ConnectionEvent;

/// A stream that names its address and then hangs; POSTs are answered by `post`.
fn quiet(post: impl Fn(&Seen) -> Reply + 'static) -> impl Fn(&Seen) -> Reply + 'static {
    move |seen| match seen.method {
        Method::GET => Reply::events(vec![endpoint("/messages"), Piece::Hang]),
        _ => post(seen),
    }
}

#[test]
fn an_answer_comes_over_the_stream_and_so_does_what_is_said_before_it() {
    for status in [202, 200] {
        local(async move {
            let asked = Rc::new(Notify::new());
            let go = Rc::clone(&asked);
            let server = Server::start(move |seen| match seen.method {
                Method::GET => Reply::events(vec![
                    endpoint("/messages"),
                    Piece::Wait(Rc::clone(&asked)),
                    event(&note(1)),
                    Piece::Say("event: other\ndata: not ours\n\ndata: garbage\n\n".into()),
                    event(&json!([note(2), result(7)])),
                    Piece::Hang,
                ]),
                _ => {
                    go.notify_one();
                    Reply::status(status, "Accepted")
                }
            })
            .await;
            let mut talk = Talk::with(&server).await;
            talk.request(7, "tools/call");
            assert_eq!(talk.message().await, note(1));
            assert_eq!(talk.message().await, note(2));
            assert_eq!(talk.message().await, result(7));
            let post = server.all(|seen| seen.method == Method::POST).remove(0);
            assert_eq!(post.body["id"], 7);
        });
    }
}

#[test]
fn a_large_answer_is_taken_out_of_its_message_and_keeps_its_place() {
    local(async {
        let server = Server::start(|seen| match seen.method {
            Method::GET => {
                let text = "x".repeat(LARGE);
                let large = json!({"jsonrpc": "2.0", "id": 7, "result": {"text": text}});
                let odd = json!({"jsonrpc": "2.0", "method": "m", "params": {"text": text}});
                let garbage = format!("data: {{{}\n\n", "y".repeat(LARGE));
                Reply::events(vec![
                    endpoint("/messages"),
                    event(&odd),
                    Piece::Say(garbage),
                    event(&large),
                    event(&note(2)),
                    Piece::Hang,
                ])
            }
            _ => Reply::status(202, ""),
        })
        .await;
        let mut talk = Talk::with(&server).await;
        assert_eq!(talk.message().await["method"], "m");
        let Some(ConnectionEvent::LargeAnswer(answer)) = talk.events.recv().await else {
            panic!("a large answer follows");
        };
        assert_eq!((answer.call, answer.outcome.map(|it| it.len())), (7, Ok(LARGE + 11)));
        assert_eq!(talk.message().await, note(2));
    });
}

#[test]
fn requests_and_notices_keep_their_order_and_say_the_version_once_it_is_agreed() {
    local(async {
        let server = Server::start(quiet(|_| Reply::status(202, ""))).await;
        let talk = Talk::with(&server).await;
        talk.request(0, "initialize");
        server.until(|server| server.count(|seen| seen.is("initialize")) == 1).await;
        talk.transport.negotiated("2024-11-05");
        talk.notice("notifications/initialized");
        talk.request(1, "tools/list");
        server.until(|server| server.count(|seen| seen.is("tools/list")) == 1).await;
        let posts = server.all(|seen| seen.method == Method::POST);
        let methods: Vec<_> = posts.iter().map(|seen| seen.body["method"].clone()).collect();
        assert_eq!(methods, ["initialize", "notifications/initialized", "tools/list"]);
        assert_eq!(posts[0].header("mcp-protocol-version"), None);
        assert_eq!(posts[1].header("mcp-protocol-version"), Some("2024-11-05"));
        assert_eq!(posts[2].header("mcp-protocol-version"), Some("2024-11-05"));
        // One connection for the stream, one for everything that is sent.
        assert_eq!(server.accepted.get(), 2);
    });
}

#[test]
fn a_refused_request_ends_alone_and_the_conversation_goes_on() {
    local(async {
        let server = Server::start(quiet(|seen| match seen.id() {
            1 => Reply::status(500, "oh"),
            2 => Reply::status(429, ""),
            3 => Reply::HangUp,
            4 => Reply::status(308, "").with("location", "/messages/there"),
            5 => Reply::status(400, "bad arguments"),
            _ => Reply::status(202, ""),
        }))
        .await;
        let mut talk = Talk::with(&server).await;
        use Delivery::{Maybe, Not};
        for (call, cause, delivery, outcome) in [
            (1, Cause::Status(500), Maybe, OutcomeKind::ServerError),
            (2, Cause::RateLimited, Not, OutcomeKind::RateLimited),
            (3, Cause::ConnectionBroken, Maybe, OutcomeKind::Transport),
            (4, Cause::Status(308), Not, OutcomeKind::ServerError),
            (5, Cause::Status(400), Not, OutcomeKind::ClientFault),
        ] {
            talk.request(call, "tools/call");
            let failure = talk.failure(call).await;
            let told = (failure.cause, failure.delivery, failure.outcome);
            assert_eq!(told, (cause, delivery, outcome));
            assert!(!failure.is_session_loss);
        }
        talk.request(6, "tools/call");
        server.until(|server| server.count(|seen| seen.id() == 6) == 1).await;
        assert_eq!(server.count(|seen| seen.target.contains("there")), 0);
    });
}

#[test]
fn an_error_for_our_id_in_a_refusal_is_the_answer() {
    local(async {
        let body = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no such tool"}}"#;
        let server = Server::start(quiet(move |_| Reply::status(400, body))).await;
        let mut talk = Talk::with(&server).await;
        talk.request(1, "tools/call");
        match talk.event().await {
            ConnectionEvent::Message { bytes, call } => {
                assert_eq!((&bytes[..], call), (body.as_bytes(), Some(1)))
            }
            other => panic!("{other:?} instead of the answer"),
        }
    });
}

#[test]
fn a_session_that_is_not_known_any_more_is_lost() {
    for (status, body) in [(404, "Could not find session"), (404, ""), (400, "Invalid session ID")]
    {
        local(async move {
            let server = Server::start(quiet(move |_| Reply::status(status, body))).await;
            let mut talk = Talk::with(&server).await;
            talk.request(1, "tools/call");
            let failure = talk.failure(1).await;
            assert!(failure.is_session_loss, "{status} {body}");
            assert_eq!(failure.delivery, Delivery::Not);
            assert!(talk.closed().await.is_session_loss);
        });
    }
}

#[test]
fn an_answered_request_does_not_wait_for_ever_for_its_post_to_be_taken() {
    local_paused(async {
        let asked = Rc::new(Notify::new());
        let go = Rc::clone(&asked);
        let server = Server::start(move |seen| match seen.method {
            Method::GET => Reply::events(vec![
                endpoint("/messages"),
                Piece::Wait(Rc::clone(&asked)),
                event(&result(1)),
                Piece::Hang,
            ]),
            _ => {
                go.notify_one();
                Reply::Silence
            }
        })
        .await;
        let mut talk = Talk::with(&server).await;
        talk.request(1, "tools/call");
        assert_eq!(talk.message().await, result(1));
        assert_eq!(server.open.get(), 2);
        server.until(|server| server.open.get() == 1).await;
        drop(talk);
    });
}

#[test]
fn a_post_that_is_taken_late_fails_no_request() {
    local_paused(async {
        let asked = Rc::new(Notify::new());
        let go = Rc::clone(&asked);
        let late = Rc::new(Cell::new(false));
        let is_late = Rc::clone(&late);
        let server = Server::start(move |seen| match seen.method {
            Method::GET => Reply::events(vec![
                endpoint("/messages"),
                Piece::Wait(Rc::clone(&asked)),
                event(&result(1)),
                Piece::Hang,
            ]),
            _ => {
                is_late.set(true);
                Reply::Answer {
                    status: 202,
                    headers: vec![("content-length", "1".into())],
                    body: vec![Piece::Hang],
                }
            }
        })
        .await;
        let mut talk = Talk::with(&server).await;
        talk.request(1, "tools/call");
        server.until(|_| late.get()).await;
        // Ten minutes are nothing to a server that works before it answers.
        let ten_minutes = std::time::Duration::from_secs(600);
        let heard = tokio::time::timeout(ten_minutes, talk.events.recv()).await;
        assert!(heard.is_err());
        go.notify_one();
        assert_eq!(talk.message().await, result(1));
    });
}
