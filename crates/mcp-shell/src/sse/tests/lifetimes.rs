//! What lives how long: the stream, requests under way, everything after the end.

use std::cell::Cell;
use std::rc::Rc;

use http::Method;
use tidegate_core::outcome::OutcomeKind;
use tidegate_mcp::cause::{Cause, Delivery};
use tokio::sync::Notify;

use super::{Talk, endpoint};
use crate::http::tests::bed::{Piece, Reply, Server, event, local, local_paused, note};
use crate::transport::ConnectionEvent;

#[test]
fn the_end_of_the_stream_ends_the_conversation_and_nothing_is_sent_after_it() {
    for (end, is_cut) in [("ends", false), ("breaks", true)] {
        local(async move {
            let word = Rc::new(Notify::new());
            let go = Rc::clone(&word);
            let server = Server::start(move |seen| match seen.method {
                Method::GET => {
                    let mut pieces = vec![endpoint("/messages"), Piece::Wait(Rc::clone(&word))];
                    pieces.extend(is_cut.then_some(Piece::Cut));
                    Reply::events(pieces)
                }
                _ => Reply::status(202, ""),
            })
            .await;
            let mut talk = Talk::with(&server).await;
            talk.request(1, "tools/call");
            server.until(|server| server.count(|seen| seen.id() == 1) == 1).await;
            go.notify_one();
            let failure = talk.closed().await;
            let told = (failure.cause, failure.delivery, failure.outcome);
            let broken = (Cause::ConnectionBroken, Delivery::Maybe, OutcomeKind::Transport);
            assert_eq!(told, broken, "{end}");
            talk.request(2, "tools/call");
            talk.notice("notifications/cancelled");
            talk.pool.clear();
            server.until(|server| server.open.get() == 0).await;
            assert_eq!(server.count(|seen| seen.method == Method::GET), 1, "it is not reopened");
            assert_eq!(server.count(|seen| seen.method == Method::POST), 1);
        });
    }
}

#[test]
fn a_request_made_while_the_end_is_told_is_refused_unsent() {
    local_paused(async {
        let word = Rc::new(Notify::new());
        let go = Rc::clone(&word);
        let server = Server::start(move |seen| match seen.method {
            Method::GET => {
                Reply::events(vec![endpoint("/messages"), Piece::Wait(Rc::clone(&word))])
            }
            _ => Reply::Silence,
        })
        .await;
        let mut talk = Talk::with(&server).await;
        talk.request(1, "tools/call");
        server.until(|server| server.count(|seen| seen.id() == 1) == 1).await;
        go.notify_one();
        server.until(|server| server.open.get() == 1).await;
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        talk.request(2, "tools/call");
        assert_eq!(talk.failure(2).await.delivery, Delivery::Not);
        assert_eq!(talk.closed().await.delivery, Delivery::Maybe);
        assert_eq!(server.count(|seen| seen.id() == 2), 0);
    });
}

#[test]
fn a_message_over_the_limit_ends_the_conversation() {
    local(async {
        let server = Server::start(|seen| match seen.method {
            Method::GET => {
                let pieces =
                    (0..20).map(|_| Piece::Say(format!("data: {}\n", " ".repeat(1 << 20))));
                let pieces = [endpoint("/messages"), event(&note(1))].into_iter().chain(pieces);
                Reply::events(pieces.chain([Piece::Hang]).collect())
            }
            _ => Reply::status(202, ""),
        })
        .await;
        let mut talk = Talk::with(&server).await;
        assert_eq!(talk.message().await, note(1));
        let failure = talk.closed().await;
        assert_eq!((failure.cause, failure.delivery), (Cause::ConnectionBroken, Delivery::Maybe));
        server.until(|server| server.open.get() == 0).await;
    });
}

#[test]
fn a_forgotten_request_gives_its_connection_up_and_is_never_heard_of_again() {
    local(async {
        let server = Server::start(|seen| match seen.method {
            Method::GET => Reply::events(vec![endpoint("/messages"), Piece::Hang]),
            _ if seen.id() == 1 => Reply::Silence,
            _ => Reply::status(500, ""),
        })
        .await;
        let mut talk = Talk::with(&server).await;
        talk.request(1, "tools/call");
        server.until(|server| server.count(|seen| seen.id() == 1) == 1).await;
        talk.transport.forget(1);
        server.until(|server| server.open.get() == 1).await;
        talk.request(2, "tools/call");
        assert_eq!(talk.failure(2).await.cause, Cause::Status(500));
    });
}

#[test]
fn a_server_that_takes_no_notices_loses_the_conversation() {
    local_paused(async {
        let server = Server::start(|seen| match seen.method {
            Method::GET => Reply::events(vec![endpoint("/messages"), Piece::Hang]),
            _ => Reply::Silence,
        })
        .await;
        let mut talk = Talk::with(&server).await;
        for _ in 0..300 {
            talk.notice("notifications/progress");
        }
        assert_eq!(talk.closed().await.outcome, OutcomeKind::Timeout);
    });
}

#[test]
fn a_dropped_or_closed_conversation_leaves_no_socket_and_no_task() {
    for is_closed in [false, true] {
        local(async move {
            let posts = Rc::new(Cell::new(0));
            let counted = Rc::clone(&posts);
            let server = Server::start(move |seen| match seen.method {
                Method::GET => {
                    Reply::events(vec![endpoint("/messages"), event(&note(1)), Piece::Hang])
                }
                _ => {
                    counted.set(counted.get() + 1);
                    Reply::Silence
                }
            })
            .await;
            let mut talk = Talk::with(&server).await;
            assert_eq!(talk.message().await, note(1));
            for call in 1..=10 {
                talk.request(call, "tools/call");
            }
            server.until(|_| posts.get() == 10).await;
            assert_eq!(server.open.get(), 11);
            talk.notice("notifications/cancelled");
            if is_closed {
                talk.transport.close();
            } else {
                drop(talk.transport);
            }
            talk.pool.clear();
            server.until(|server| server.open.get() == 0).await;
            // Every sender is gone with its task.
            while let Some(event) = talk.events.recv().await {
                assert!(!matches!(event, ConnectionEvent::Closed { .. }), "nobody asked");
            }
        });
    }
}
