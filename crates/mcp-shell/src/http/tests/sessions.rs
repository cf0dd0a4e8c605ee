//! Sessions: lost, found lost by many at once, ended.

use std::cell::Cell;
use std::rc::Rc;

use http::Method;
use tidegate_core::outcome::OutcomeKind;
use tidegate_mcp::cause::{Cause, Delivery};
use tidegate_runtime::clock::timer_now;

use super::bed::{Reply, Seen, Server, Talk, event, local, local_paused, note, result};
use crate::transport::ConnectionEvent;

/// Initialises with a session; everything else is the test's.
fn with_session(rest: impl Fn(&Seen) -> Reply + 'static) -> impl Fn(&Seen) -> Reply + 'static {
    move |seen| match seen.method {
        Method::POST if seen.is("initialize") => {
            Reply::json(&result(seen.id())).with("mcp-session-id", "s-1")
        }
        Method::POST if seen.is("notifications/initialized") => Reply::status(202, ""),
        _ => rest(seen),
    }
}

fn check_loss(status: u16, body: &'static str) {
    local(async move {
        let server = Server::start(with_session(move |seen| match seen.method {
            Method::GET => Reply::status(405, ""),
            _ => Reply::status(status, body),
        }))
        .await;
        let mut talk = Talk::with(&server);
        talk.initialise().await;
        talk.request(1, "tools/call");
        let failure = talk.failure(1).await;
        assert!(failure.is_session_loss, "{status} {body}");
        let told = (failure.cause, failure.delivery, failure.status);
        assert_eq!(told, (Cause::SessionLost, Delivery::Not, Some(status)));
        let closed = talk.closed().await;
        assert!(closed.is_session_loss);
        assert_eq!(closed.delivery, Delivery::Maybe);
        // Nothing follows, and nobody is told of a session that is gone.
        talk.request(2, "tools/call");
        let sent = server.count(|_| true);
        talk.transport.close().await;
        assert!(talk.events.recv().await.is_none());
        assert_eq!(server.count(|_| true), sent);
    });
}

#[test]
fn a_session_the_server_does_not_know_is_lost_and_the_request_was_not_carried_out() {
    check_loss(404, "");
    check_loss(
        400,
        concat!(
            r#"{"jsonrpc":"2.0","error":{"code":-32000,"#,
            r#""message":"Bad Request: No valid session ID provided"},"id":null}"#
        ),
    );
    check_loss(401, "session expired");
    check_loss(503, "unknown session");
}

#[test]
fn many_calls_that_find_the_session_lost_each_hear_that_they_were_refused() {
    local(async {
        let server = Server::start(with_session(|seen| match seen.method {
            Method::GET => Reply::status(405, ""),
            _ => Reply::status(404, ""),
        }))
        .await;
        let mut talk = Talk::with(&server);
        talk.initialise().await;
        for call in 1..=20 {
            talk.request(call, "tools/call");
        }
        let mut refused = Vec::new();
        loop {
            match talk.event().await {
                ConnectionEvent::Unanswered { call, failure } => {
                    assert!(failure.is_session_loss && failure.delivery == Delivery::Not);
                    refused.push(call);
                }
                ConnectionEvent::Closed { failure, .. } => break assert!(failure.is_session_loss),
                other => panic!("{other:?}"),
            }
        }
        refused.sort_unstable();
        assert_eq!(refused, (1..=20).collect::<Vec<_>>());
    });
}

#[test]
fn a_call_that_hears_nothing_ends_with_the_lost_session_after_a_second() {
    local_paused(async {
        let server = Server::start(with_session(|seen| match seen.id() {
            1 => Reply::Silence,
            _ if seen.method == Method::GET => Reply::status(405, ""),
            _ => Reply::status(404, ""),
        }))
        .await;
        let mut talk = Talk::with(&server);
        talk.initialise().await;
        talk.request(1, "tools/call");
        server.until(|server| server.count(|seen| seen.id() == 1) == 1).await;
        talk.request(2, "tools/call");
        assert!(talk.failure(2).await.is_session_loss);
        let lost_at = timer_now();
        // Meanwhile nothing more is sent.
        talk.request(3, "tools/call");
        let failure = talk.failure(3).await;
        assert!(failure.is_session_loss && failure.delivery == Delivery::Not);
        assert_eq!(server.count(|seen| seen.id() == 3), 0);
        assert_eq!(talk.closed().await.delivery, Delivery::Maybe);
        assert_eq!(lost_at.elapsed().as_millis(), 1000);
    });
}

#[test]
fn a_refused_notice_tells_of_a_lost_session_and_of_nothing_else() {
    for (status, is_lost) in [(404, true), (500, false)] {
        local(async move {
            let server = Server::start(with_session(move |seen| match seen.method {
                Method::GET => Reply::status(405, ""),
                _ if seen.is("notifications/cancelled") => Reply::status(status, ""),
                _ => Reply::json(&result(seen.id())),
            }))
            .await;
            let mut talk = Talk::with(&server);
            talk.initialise().await;
            talk.notice("notifications/cancelled");
            if is_lost {
                assert!(talk.closed().await.is_session_loss);
            } else {
                talk.request(1, "tools/list");
                assert_eq!(talk.message().await.0, result(1));
            }
        });
    }
}

#[test]
fn a_server_that_takes_no_notices_loses_the_conversation() {
    local_paused(async {
        let server = Server::start(with_session(|_| Reply::Silence)).await;
        let mut talk = Talk::with(&server);
        talk.initialise().await;
        for _ in 0..300 {
            talk.notice("notifications/progress");
        }
        let failure = talk.closed().await;
        assert_eq!((failure.outcome, failure.is_session_loss), (OutcomeKind::Timeout, false));
    });
}

#[test]
fn a_session_that_is_closed_is_deleted_and_other_answers_to_that_are_taken() {
    for status in [200, 405, 500] {
        local(async move {
            let server = Server::start(with_session(move |seen| match seen.method {
                Method::GET => Reply::events(vec![event(&note(1)), super::bed::Piece::Hang]),
                _ => Reply::status(status, ""),
            }))
            .await;
            let mut talk = Talk::with(&server);
            talk.initialise().await;
            assert_eq!(talk.message().await, (note(1), None));
            talk.transport.close().await;
            let deletes = server.all(|seen| seen.method == Method::DELETE);
            assert_eq!(deletes.len(), 1);
            assert_eq!(deletes[0].header("mcp-session-id"), Some("s-1"));
            assert_eq!(deletes[0].header("mcp-protocol-version"), Some("2025-11-25"));
            talk.pool.clear();
            server.until(|server| server.open.get() == 0).await;
        });
    }
}

#[test]
fn a_server_that_does_not_answer_the_end_is_left_after_two_seconds() {
    local_paused(async {
        let server = Server::start(with_session(|_| Reply::Silence)).await;
        let mut talk = Talk::with(&server);
        talk.initialise().await;
        let from = timer_now();
        talk.transport.close().await;
        assert_eq!(from.elapsed().as_millis(), 2000);
    });
}

#[test]
fn without_a_session_nothing_is_deleted() {
    local(async {
        let server = Server::start(|seen| Reply::json(&result(seen.id()))).await;
        let mut talk = Talk::with(&server);
        talk.initialise().await;
        talk.transport.close().await;
        assert_eq!(server.count(|seen| seen.method == Method::DELETE), 0);
    });
}

#[test]
fn a_reopened_stream_that_finds_the_session_gone_ends_the_conversation() {
    local_paused(async {
        let opened = Rc::new(Cell::new(0));
        let counted = Rc::clone(&opened);
        let server = Server::start(with_session(move |_| {
            counted.set(counted.get() + 1);
            if counted.get() == 1 {
                Reply::events(vec![event(&note(1))])
            } else {
                Reply::status(404, "")
            }
        }))
        .await;
        let mut talk = Talk::with(&server);
        talk.initialise().await;
        assert_eq!(talk.message().await, (note(1), None));
        assert!(talk.closed().await.is_session_loss);
        assert_eq!(opened.get(), 2);
    });
}
