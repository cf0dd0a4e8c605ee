//! Streams: the one a server speaks on of its own accord, and those that are taken up again.

use std::cell::Cell;
use std::rc::Rc;

use http::Method;
use tidegate_mcp::cause::{Cause, Delivery};
use tidegate_runtime::clock::timer_now;

use super::bed::{Piece, Reply, Server, Talk, event, local, local_paused, note, result};

#[test]
fn what_a_server_says_of_its_own_accord_belongs_to_no_call() {
    local(async {
        let server = Server::start(|seen| match seen.method {
            Method::GET => Reply::events(vec![
                Piece::Say("data: garbage\n\n".into()),
                event(&note(1)),
                event(&note(2)),
                Piece::Hang,
            ]),
            _ if seen.is("notifications/initialized") => Reply::status(202, ""),
            _ => Reply::json(&result(seen.id())).with("mcp-session-id", "s-1"),
        })
        .await;
        let mut talk = Talk::with(&server);
        talk.initialise().await;
        assert_eq!(talk.message().await, (note(1), None));
        assert_eq!(talk.message().await, (note(2), None));
        let get = server.all(|seen| seen.method == Method::GET).remove(0);
        assert_eq!(get.header("accept"), Some("text/event-stream"));
        assert_eq!(get.header("mcp-session-id"), Some("s-1"));
        assert_eq!(get.header("mcp-protocol-version"), Some("2025-11-25"));
        // The server has seen `initialized` before it is listened to.
        let order: Vec<_> = server.all(|_| true).iter().map(|seen| seen.method.clone()).collect();
        assert_eq!(order, [Method::POST, Method::POST, Method::GET]);
        // The stream has a connection of its own, and calls go on over the kept one.
        talk.request(1, "tools/list");
        assert_eq!(talk.message().await.0, result(1));
        assert_eq!(server.accepted.get(), 2);
    });
}

#[test]
fn a_server_without_a_stream_of_its_own_is_asked_once() {
    for status in [404, 405, 400, 200] {
        local_paused(async move {
            let server = Server::start(move |seen| match seen.method {
                Method::GET => Reply::status(status, "no session stream found"),
                _ => Reply::json(&result(seen.id())).with("mcp-session-id", "s-1"),
            })
            .await;
            let mut talk = Talk::with(&server);
            talk.initialise().await;
            server.until(|server| server.count(|seen| seen.method == Method::GET) == 1).await;
            tokio::time::sleep(std::time::Duration::from_secs(600)).await;
            talk.request(1, "tools/list");
            assert_eq!(talk.message().await.0, result(1));
            assert_eq!(server.count(|seen| seen.method == Method::GET), 1, "{status}");
        });
    }
}

#[test]
fn a_stream_that_ends_is_opened_again_where_it_ended_and_ever_later_if_it_is_empty() {
    local_paused(async {
        let times = Rc::new(Cell::new(Vec::new()));
        let seen_at = Rc::clone(&times);
        let from = timer_now();
        let server = Server::start(move |seen| match seen.method {
            Method::GET => {
                let mut all = seen_at.take();
                all.push(from.elapsed());
                let is_first = all.len() == 1;
                seen_at.set(all);
                let first = || Piece::Say(format!("id: e-1\ndata: {}\n\n", note(1)));
                Reply::events(if is_first { vec![first()] } else { vec![] })
            }
            _ => Reply::json(&result(seen.id())).with("mcp-session-id", "s-1"),
        })
        .await;
        let mut talk = Talk::with(&server);
        talk.initialise().await;
        assert_eq!(talk.message().await, (note(1), None));
        let is_get = |seen: &super::bed::Seen| seen.method == Method::GET;
        server.until(|server| server.count(is_get) == 8).await;
        let gets = server.all(is_get);
        assert_eq!(gets[0].header("last-event-id"), None);
        assert!(gets[1..].iter().all(|get| get.header("last-event-id") == Some("e-1")));
        let waits: Vec<_> =
            times.take().windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect();
        for (wait, about) in waits.iter().zip([1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]) {
            let range = f64::max(1.0, about * 0.8)..=about * 1.2 + 0.01;
            assert!(range.contains(wait), "{waits:?}");
        }
    });
}

#[test]
fn a_call_whose_stream_was_closed_is_taken_up_where_it_ended() {
    local_paused(async {
        let server = Server::start(|seen| match seen.method {
            Method::POST => Reply::events(vec![
                Piece::Say("id: p-1\nretry: 2500\ndata:\n\n".into()),
                event(&note(1)),
            ]),
            // The second part ends early too, by a broken connection.
            _ if seen.header("last-event-id") == Some("p-1") => Reply::events(vec![
                Piece::Say(format!("id: p-2\ndata: {}\n\n", note(2))),
                Piece::Cut,
            ]),
            _ => Reply::events(vec![event(&result(5))]),
        })
        .await;
        let mut talk = Talk::with(&server);
        let from = timer_now();
        talk.request(5, "tools/call");
        assert_eq!(talk.message().await, (note(1), Some(5)));
        assert_eq!(talk.message().await, (note(2), Some(5)));
        assert_eq!(talk.message().await, (result(5), Some(5)));
        assert_eq!(from.elapsed().as_millis(), 5000);
        assert_eq!(talk.pauses, [5], "the server closed it once; the other time it broke");
        let gets = server.all(|seen| seen.method == Method::GET);
        let ids: Vec<_> = gets.iter().map(|get| get.header("last-event-id")).collect();
        assert_eq!(ids, [Some("p-1"), Some("p-2")]);
    });
}

#[test]
fn a_stream_that_has_nothing_more_is_not_asked_for_ever() {
    local_paused(async {
        let server = Server::start(|seen| match seen.method {
            Method::POST => Reply::events(vec![Piece::Say("id: p-1\ndata:\n\n".into())]),
            _ => Reply::events(vec![]),
        })
        .await;
        let mut talk = Talk::with(&server);
        talk.request(5, "tools/call");
        let failure = talk.failure(5).await;
        assert_eq!((failure.cause, failure.delivery), (Cause::ConnectionBroken, Delivery::Maybe));
        assert_eq!(server.count(|seen| seen.method == Method::GET), 5);
    });
}

#[test]
fn a_call_that_cannot_be_taken_up_may_have_been_carried_out() {
    for status in [404, 405] {
        local_paused(async move {
            let server = Server::start(move |seen| match seen.method {
                Method::POST if seen.id() == 0 => {
                    Reply::json(&result(0)).with("mcp-session-id", "s-1")
                }
                Method::POST => Reply::events(vec![Piece::Say("id: p-1\ndata:\n\n".into())]),
                _ => Reply::status(status, ""),
            })
            .await;
            let mut talk = Talk::with(&server);
            talk.request(0, "initialize");
            talk.message().await;
            talk.request(5, "tools/call");
            let failure = talk.failure(5).await;
            assert_eq!(failure.delivery, Delivery::Maybe);
            assert_eq!(failure.is_session_loss, status == 404);
        });
    }
}
