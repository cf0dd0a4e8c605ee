//! What lives how long: connections, calls nobody waits for, everything after the end.

use std::collections::BTreeSet;

use http::Method;
use tidegate_mcp::cause::{Cause, Delivery};

use super::bed::{Piece, Reply, Server, Talk, event, local, note, result};

#[test]
fn fifty_calls_at_once_use_fifty_connections_and_use_them_again() {
    local(async {
        let server = Server::start(|seen| {
            if seen.id() % 2 == 0 {
                Reply::json(&result(seen.id()))
            } else {
                Reply::events(vec![event(&result(seen.id()))])
            }
        })
        .await;
        let mut talk = Talk::with(&server);
        for round in 0..5 {
            let calls: BTreeSet<u64> = (round * 50..round * 50 + 50).collect();
            for &call in &calls {
                talk.request(call, "tools/call");
            }
            let mut answered = BTreeSet::new();
            while answered.len() < 50 {
                let (message, call) = talk.message().await;
                let call = call.expect("it came on a call's stream");
                assert_eq!(message, result(call));
                assert!(answered.insert(call));
            }
            assert_eq!(answered, calls);
        }
        assert_eq!(server.count(|_| true), 250);
        assert!(server.accepted.get() <= 50, "{} connections", server.accepted.get());
    });
}

#[test]
fn calls_one_after_the_other_use_one_connection() {
    local(async {
        let server = Server::start(|seen| Reply::json(&result(seen.id()))).await;
        let mut talk = Talk::with(&server);
        for call in 1..=20 {
            talk.request(call, "tools/call");
            talk.message().await;
        }
        assert_eq!(server.accepted.get(), 1);
    });
}

#[test]
fn a_kept_connection_that_was_closed_costs_nothing_but_a_new_one() {
    local(async {
        let server = Server::start(|seen| {
            let reply = Reply::json(&result(seen.id()));
            if seen.id() == 1 { reply.with("connection", "close") } else { reply }
        })
        .await;
        let mut talk = Talk::with(&server);
        for call in 1..=3 {
            talk.request(call, "tools/call");
            assert_eq!(talk.message().await.0, result(call));
        }
        assert_eq!((server.count(|_| true), server.accepted.get()), (3, 2));
    });
}

#[test]
fn a_request_that_may_have_arrived_is_not_sent_again() {
    local(async {
        let server = Server::start(|seen| match seen.id() {
            2 => Reply::HangUp,
            id => Reply::json(&result(id)),
        })
        .await;
        let mut talk = Talk::with(&server);
        talk.request(1, "tools/call");
        assert_eq!(talk.message().await.0, result(1));
        talk.request(2, "tools/call");
        let failure = talk.failure(2).await;
        assert_eq!((failure.cause, failure.delivery), (Cause::ConnectionBroken, Delivery::Maybe));
        assert_eq!((server.count(|seen| seen.id() == 2), server.accepted.get()), (1, 1));
    });
}

#[test]
fn a_forgotten_call_closes_its_connection_and_is_never_heard_of_again() {
    local(async {
        let server = Server::start(|seen| match seen.id() {
            1 => Reply::Silence,
            2 => Reply::events(vec![event(&note(1)), Piece::Hang]),
            id => Reply::json(&result(id)),
        })
        .await;
        let mut talk = Talk::with(&server);
        talk.request(1, "tools/call");
        talk.request(2, "tools/call");
        assert_eq!(talk.message().await, (note(1), Some(2)));
        server.until(|server| server.open.get() == 2 && server.count(|_| true) == 2).await;
        talk.transport.forget(1);
        server.until(|server| server.open.get() == 1).await;
        talk.transport.forget(2);
        server.until(|server| server.open.get() == 0).await;
        talk.request(3, "tools/call");
        assert_eq!(talk.message().await, (result(3), Some(3)));
    });
}

#[test]
fn a_dropped_conversation_leaves_no_socket_and_no_task() {
    local(async {
        let server = Server::start(|seen| match seen.method {
            Method::GET => Reply::events(vec![event(&note(1)), Piece::Hang]),
            _ if seen.is("initialize") => Reply::json(&result(0)).with("mcp-session-id", "s-1"),
            _ if seen.id() == 0 => Reply::status(202, ""),
            _ if seen.id() % 2 == 0 => Reply::Silence,
            _ => Reply::events(vec![event(&note(2)), Piece::Hang]),
        })
        .await;
        let mut talk = Talk::with(&server);
        talk.initialise().await;
        assert_eq!(talk.message().await, (note(1), None));
        for call in 1..=10 {
            talk.request(call, "tools/call");
        }
        server.until(|server| server.count(|seen| seen.id() > 0) == 10).await;
        assert_eq!(server.open.get(), 11);
        talk.notice("notifications/cancelled");
        drop(talk.transport);
        talk.pool.clear();
        server.until(|server| server.open.get() == 0).await;
        // Every sender is gone with its task.
        while talk.events.recv().await.is_some() {}
    });
}
