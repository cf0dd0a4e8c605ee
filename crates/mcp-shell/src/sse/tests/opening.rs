//! How a conversation begins, and why it does not.

use http::Method;
use tidegate_config::secret::SecretRef;
use tidegate_core::{outcome::OutcomeKind, time::Millis};
use tidegate_mcp::cause::{Cause, Delivery};
use tidegate_runtime::clock::timer_now;

use super::{Talk, endpoint};
use crate::http::tests::bed::{Piece, Reply, Server, event, local, local_paused, note};
use crate::transport::Failure;

/// Why no conversation comes of this reply to the GET.
fn check(reply: fn() -> Reply, cause: Cause, outcome: OutcomeKind) -> Failure {
    let (tell, told) = std::sync::mpsc::channel();
    local(async move {
        let server = Server::start(move |_| reply()).await;
        let opened = Talk::by(&server.file()).await;
        tell.send(opened.err().expect("no conversation")).expect("the test waits");
        assert_eq!(server.count(|_| true), 1, "nothing is sent twice, and nothing elsewhere");
        server.until(|server| server.open.get() == 0).await;
    });
    let failure = told.recv().expect("a failure");
    let expected = (cause, Delivery::Not, outcome, false);
    let said = (failure.cause, failure.delivery, failure.outcome, failure.is_session_loss);
    assert_eq!(said, expected);
    failure
}

#[test]
fn messages_go_where_the_first_event_says_with_the_configured_headers() {
    local(async {
        let server = Server::start(|seen| match seen.method {
            Method::GET => Reply::events(vec![
                Piece::Say(": welcome\n\n".into()),
                event(&note(1)),
                endpoint("/messages?sessionId=s-1"),
                event(&note(2)),
                Piece::Hang,
            ]),
            _ => Reply::status(202, "Accepted"),
        })
        .await;
        let mut file = server.file();
        for (name, value) in [("Authorization", "env:TOKEN"), ("Accept", "text/html")] {
            file.headers.insert(name.into(), SecretRef::parse(value).expect("a reference"));
        }
        let mut talk = Talk::by(&file).await.expect("it opens");
        // What came before there was a place to answer to is nobody's.
        assert_eq!(talk.message().await, note(2));
        talk.notice("notifications/initialized");
        server.until(|server| server.count(|_| true) == 2).await;
        let seen = server.all(|_| true);
        assert_eq!((seen[0].method.clone(), seen[0].target.as_str()), (Method::GET, "/mcp?a=b"));
        assert_eq!(seen[0].header("accept"), Some("text/event-stream"));
        assert_eq!(seen[1].method, Method::POST);
        assert_eq!(seen[1].target, "/messages?sessionId=s-1");
        assert_eq!(seen[1].header("content-type"), Some("application/json"));
        for seen in seen {
            assert_eq!(seen.header("authorization"), Some("Bearer s3cret"));
            assert_eq!(seen.header("x-tidegate-passed"), Some("00000000000000aa"));
            assert_eq!(seen.header("mcp-session-id"), None);
        }
    });
}

#[test]
fn an_address_of_another_origin_is_malformed_and_never_asked() {
    let elsewhere = || Reply::events(vec![endpoint("http://127.0.0.1:1/messages"), Piece::Hang]);
    check(elsewhere, Cause::Malformed, OutcomeKind::Transport);
    let nowhere = || Reply::events(vec![endpoint("data:text/plain,x"), Piece::Hang]);
    check(nowhere, Cause::Malformed, OutcomeKind::Transport);
}

#[test]
fn a_refused_stream_says_why_and_a_redirect_is_not_followed() {
    check(|| Reply::status(401, ""), Cause::AuthRejected, OutcomeKind::AuthRejected);
    check(|| Reply::status(404, "no session"), Cause::Status(404), OutcomeKind::ClientFault);
    check(|| Reply::status(405, ""), Cause::Status(405), OutcomeKind::ClientFault);
    check(|| Reply::status(500, ""), Cause::Status(500), OutcomeKind::ServerError);
    let moved = || Reply::status(307, "").with("location", "/messages");
    check(moved, Cause::Status(307), OutcomeKind::ServerError);
    let busy = || Reply::status(429, "").with("retry-after", "7");
    let failure = check(busy, Cause::RateLimited, OutcomeKind::RateLimited);
    assert_eq!(failure.retry_after, Some(Millis::seconds(7)));
}

#[test]
fn what_is_no_such_stream_opens_nothing() {
    check(|| Reply::status(200, "{}"), Cause::Malformed, OutcomeKind::Transport);
    let ended = || Reply::events(vec![event(&note(1))]);
    check(ended, Cause::ConnectionBroken, OutcomeKind::Transport);
    let cut = || Reply::events(vec![Piece::Say(": hello\n\n".into()), Piece::Cut]);
    check(cut, Cause::ConnectionBroken, OutcomeKind::Transport);
    check(|| Reply::HangUp, Cause::ConnectionBroken, OutcomeKind::Transport);
    let endless = || {
        let pieces = (0..20).map(|_| Piece::Say(format!("data: {}\n", " ".repeat(1 << 20))));
        Reply::events(pieces.chain([Piece::Hang]).collect())
    };
    check(endless, Cause::TooLarge, OutcomeKind::ClientFault);
}

#[test]
fn a_server_that_names_no_address_is_left_when_the_time_for_a_connect_is_over() {
    for reply in [|| Reply::Silence, || Reply::events(vec![event(&note(1)), Piece::Hang])] {
        local_paused(async move {
            let server = Server::start(move |_| reply()).await;
            let from = timer_now();
            let failure = Talk::by(&server.file()).await.err().expect("no conversation");
            assert_eq!(from.elapsed().as_secs(), 5);
            let limit = Millis::seconds(5);
            let told = (failure.cause, failure.delivery, failure.outcome);
            assert_eq!(told, (Cause::TimedOut(limit), Delivery::Not, OutcomeKind::Timeout));
            server.until(|server| server.open.get() == 0).await;
        });
    }
}

#[test]
fn a_server_that_is_not_there_got_nothing() {
    local(async {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback binds");
        let port = listener.local_addr().expect("it is bound").port();
        drop(listener);
        let url = Some(format!("http://127.0.0.1:{port}/sse"));
        let file = tidegate_config::file::ServerFile { url, ..Default::default() };
        let failure = Talk::by(&file).await.err().expect("no conversation");
        assert_eq!((failure.cause, failure.delivery), (Cause::ConnectionRefused, Delivery::Not));
    });
}
