//! Answers that are none, and what is known of the request then.

use tidegate_core::{outcome::OutcomeKind, time::Millis};
use tidegate_mcp::cause::{Cause, Delivery};

use super::bed::{Piece, Reply, Server, Talk, event, local, note, result};
use crate::transport::{Failure, MESSAGE_MAX};

/// The failure that this reply leads to.
fn check(reply: fn() -> Reply, cause: Cause, delivery: Delivery, outcome: OutcomeKind) -> Failure {
    let (tell, told) = std::sync::mpsc::channel();
    local(async move {
        let server = Server::start(move |_| reply()).await;
        let mut talk = Talk::with(&server);
        talk.request(1, "tools/call");
        tell.send(talk.failure(1).await).expect("the test waits");
        assert_eq!(server.count(|_| true), 1, "nothing is sent twice");
    });
    let failure = told.recv().expect("a failure");
    assert_eq!((failure.cause, failure.delivery, failure.outcome), (cause, delivery, outcome));
    assert!(!failure.is_session_loss);
    failure
}

#[test]
fn statuses_are_classed_by_whose_fault_they_are() {
    use Delivery::{Maybe, Not};
    check(|| Reply::status(401, ""), Cause::AuthRejected, Not, OutcomeKind::AuthRejected);
    check(|| Reply::status(500, "oh"), Cause::Status(500), Maybe, OutcomeKind::ServerError);
    check(|| Reply::status(503, ""), Cause::Status(503), Maybe, OutcomeKind::Overloaded);
    check(|| Reply::status(404, ""), Cause::Status(404), Not, OutcomeKind::ClientFault);
    let reply = || Reply::status(307, "").with("location", "http://127.0.0.1:1/elsewhere");
    check(reply, Cause::Status(307), Not, OutcomeKind::ServerError);
}

#[test]
fn a_failure_in_words_of_the_protocol_is_told_apart() {
    let outcome = OutcomeKind::ServerError;
    let spoken: [fn() -> Reply; 2] = [
        || Reply::status(500, r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no"}}"#),
        || Reply::status(500, r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"no"}}"#),
    ];
    for reply in spoken {
        assert!(check(reply, Cause::Status(500), Delivery::Maybe, outcome).is_spoken);
    }
    let other: [fn() -> Reply; 3] = [
        || Reply::status(500, r#"{"error":"bad gateway"}"#),
        || Reply::status(500, "<html>"),
        || Reply::status(500, ""),
    ];
    for reply in other {
        assert!(!check(reply, Cause::Status(500), Delivery::Maybe, outcome).is_spoken);
    }
}

#[test]
fn a_rate_limit_says_when_to_come_back() {
    let reply = || Reply::status(429, "").with("retry-after", "7");
    let failure = check(reply, Cause::RateLimited, Delivery::Not, OutcomeKind::RateLimited);
    assert_eq!((failure.status, failure.retry_after), (Some(429), Some(Millis::seconds(7))));
}

#[test]
fn an_error_for_our_id_in_a_refusal_is_the_answer() {
    local(async {
        let body = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no such tool"}}"#;
        let server = Server::start(move |_| Reply::status(400, body)).await;
        let mut talk = Talk::with(&server);
        talk.request(1, "tools/call");
        let (message, call) = talk.message().await;
        assert_eq!((message.to_string().as_str(), call), (body, Some(1)));
    });
}

#[test]
fn what_is_not_mcp_is_malformed() {
    let (cause, delivery, outcome) = (Cause::Malformed, Delivery::Maybe, OutcomeKind::Transport);
    let replies: [fn() -> Reply; 8] = [
        || Reply::status(200, "<html>"),
        || Reply::status(200, "[1"),
        || Reply::status(200, "3"),
        || Reply::status(200, ""),
        || Reply::json(&result(1)).with("content-type", "text/html"),
        || Reply::json(&result(1)).with("content-encoding", "gzip"),
        || Reply::status(202, "").with("content-type", "text/plain"),
        || Reply::events(vec![Piece::Say("data: {\"id\":1\n\n".into())]),
    ];
    for reply in replies {
        check(reply, cause, delivery, outcome);
    }
}

#[test]
fn an_answer_to_another_request_is_told_and_is_none_to_ours() {
    local(async {
        let server = Server::start(|_| Reply::json(&result(99))).await;
        let mut talk = Talk::with(&server);
        talk.request(1, "tools/call");
        assert_eq!(talk.message().await, (result(99), Some(1)));
        assert_eq!(talk.failure(1).await.cause, Cause::Malformed);
    });
}

#[test]
fn an_answer_over_the_limit_is_not_read() {
    let (cause, delivery, outcome) = (Cause::TooLarge, Delivery::Maybe, OutcomeKind::ClientFault);
    let announced = || Reply::Answer {
        status: 200,
        headers: vec![
            ("content-type", "application/json".into()),
            ("content-length", (MESSAGE_MAX + 1).to_string()),
        ],
        body: vec![Piece::Say(" ".into()), Piece::Hang],
    };
    check(announced, cause, delivery, outcome);
    let endless = || Reply::Answer {
        status: 200,
        headers: vec![("content-type", "application/json".into())],
        body: (0..20).map(|_| Piece::Say(" ".repeat(1 << 20))).chain([Piece::Hang]).collect(),
    };
    check(endless, cause, delivery, outcome);
    let event = || {
        let pieces = (0..20).map(|_| Piece::Say(format!("data: {}\n", " ".repeat(1 << 20))));
        Reply::events(pieces.chain([Piece::Hang]).collect())
    };
    check(event, cause, delivery, outcome);
}

#[test]
fn a_stream_cut_before_the_answer_leaves_the_result_unknown() {
    local(async {
        let server = Server::start(|_| Reply::events(vec![event(&note(1)), Piece::Cut])).await;
        let mut talk = Talk::with(&server);
        talk.request(1, "tools/call");
        assert_eq!(talk.message().await, (note(1), Some(1)));
        let failure = talk.failure(1).await;
        assert_eq!((failure.cause, failure.delivery), (Cause::ConnectionBroken, Delivery::Maybe));
    });
}

#[test]
fn a_server_that_is_not_there_got_nothing() {
    local(async {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback binds");
        let port = listener.local_addr().expect("it is bound").port();
        drop(listener);
        let url = Some(format!("http://127.0.0.1:{port}/mcp"));
        let mut talk = Talk::by(&tidegate_config::file::ServerFile { url, ..Default::default() });
        talk.request(1, "tools/call");
        let failure = talk.failure(1).await;
        let told = (failure.cause, failure.delivery, failure.outcome);
        assert_eq!(told, (Cause::ConnectionRefused, Delivery::Not, OutcomeKind::Transport));
    });
}
