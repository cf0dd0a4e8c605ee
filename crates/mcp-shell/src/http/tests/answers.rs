//! What a request gets when all is well, and what it carries.

use std::rc::Rc;

use http::Method;
use serde_json::json;
use tidegate_config::{file::ServerFile, secret::SecretRef};
use tidegate_mcp::message::LARGE;
use tokio::sync::Notify;

use super::bed::{Piece, Reply, Server, Talk, event, local, note, place, result};
use crate::{http::reading, transport::ConnectionEvent};

#[test]
fn an_answer_in_json_is_told_as_it_came() {
    local(async {
        let server = Server::start(|seen| Reply::json(&result(seen.id()))).await;
        let mut talk = Talk::with(&server);
        talk.request(7, "tools/list");
        assert_eq!(talk.message().await, (result(7), Some(7)));
        let seen = server.all(|_| true).remove(0);
        assert_eq!((seen.method.clone(), seen.target.as_str()), (Method::POST, "/mcp?a=b"));
        assert_eq!(seen.header("accept"), Some("application/json, text/event-stream"));
        assert_eq!(seen.header("content-type"), Some("application/json"));
        assert_eq!(seen.header("mcp-session-id"), None);
        assert_eq!(seen.header("mcp-protocol-version"), None);
    });
}

#[test]
fn what_comes_before_an_answer_on_its_stream_is_told_in_order() {
    local(async {
        let word = Rc::new(Notify::new());
        let go = Rc::clone(&word);
        let server = Server::start(move |seen| {
            let split = result(seen.id()).to_string();
            let (first, second) = split.split_at(9);
            Reply::events(vec![
                Piece::Say(": hello\n\nevent: other\ndata: not ours\n\n".into()),
                event(&note(1)),
                event(&note(2)),
                Piece::Wait(Rc::clone(&go)),
                Piece::Say(format!("data: {first}")),
                Piece::Say(format!("{second}\r\n\r\n")),
            ])
        })
        .await;
        let mut talk = Talk::with(&server);
        talk.request(3, "tools/call");
        assert_eq!(talk.message().await, (note(1), Some(3)));
        assert_eq!(talk.message().await, (note(2), Some(3)));
        word.notify_one();
        assert_eq!(talk.message().await, (result(3), Some(3)));
    });
}

#[test]
fn a_batch_is_told_as_the_messages_in_it() {
    local(async {
        let server = Server::start(|seen| Reply::json(&json!([note(1), result(seen.id())]))).await;
        let mut talk = Talk::with(&server);
        talk.request(3, "tools/list");
        assert_eq!(talk.message().await, (note(1), Some(3)));
        assert_eq!(talk.message().await, (result(3), Some(3)));
    });
}

#[test]
fn a_large_batch_is_told_as_the_messages_in_it_and_its_answers_are_taken_out() {
    local(async {
        let text = "x".repeat(LARGE);
        let large = |id: u64| json!({"jsonrpc": "2.0", "id": id, "result": {"text": text}});
        let all = json!([note(1), large(99), large(3)]);
        let server = Server::start(move |_| Reply::json(&all)).await;
        let mut talk = Talk::with(&server);
        talk.request(3, "tools/list");
        assert_eq!(talk.message().await, (note(1), Some(3)));
        // What answers another request does not belong on this one's stream.
        let Some(ConnectionEvent::LargeAnswer(answer)) = talk.events.recv().await else {
            panic!("a large answer follows");
        };
        let expected = json!({"text": "x".repeat(LARGE)}).to_string();
        assert_eq!((answer.call, answer.outcome), (3, Ok(expected.into())));
    });
}

#[test]
fn session_and_version_are_carried_once_they_are_known() {
    local(async {
        let server = Server::start(|seen| match seen.method {
            Method::POST if seen.is("notifications/initialized") => Reply::status(202, ""),
            Method::POST => Reply::json(&result(seen.id())).with("mcp-session-id", "s-1"),
            _ => Reply::status(405, ""),
        })
        .await;
        let mut talk = Talk::with(&server);
        talk.initialise().await;
        talk.request(1, "tools/list");
        assert_eq!(talk.message().await.0, result(1));
        assert_eq!(talk.named, 1);
        let posts = server.all(|seen| seen.method == Method::POST);
        let methods: Vec<_> = posts.iter().map(|seen| seen.body["method"].clone()).collect();
        // A request does not overtake the notice before it.
        assert_eq!(methods, ["initialize", "notifications/initialized", "tools/list"]);
        assert_eq!(posts[0].header("mcp-session-id"), None);
        for post in &posts[1..] {
            assert_eq!(post.header("mcp-session-id"), Some("s-1"));
            assert_eq!(post.header("mcp-protocol-version"), Some("2025-11-25"));
        }
    });
}

#[test]
fn s33_a_request_carries_the_configured_headers_and_ours_only() {
    local(async {
        let server = Server::start(|seen| Reply::json(&result(seen.id()))).await;
        let mut file = server.file();
        for (name, value) in [
            ("Authorization", "env:TOKEN"),
            ("x-team", "blue"),
            ("Accept", "text/html"),
            ("mcp-session-id", "planted"),
        ] {
            file.headers.insert(name.into(), SecretRef::parse(value).expect("a reference"));
        }
        let mut talk = Talk::by(&file);
        talk.request(1, "ping");
        talk.message().await;
        let seen = server.all(|_| true).remove(0);
        let mut names: Vec<_> = seen.headers.keys().map(|name| name.as_str()).collect();
        names.sort_unstable();
        let expected = [
            "accept",
            "accept-encoding",
            "authorization",
            "content-length",
            "content-type",
            "host",
            "user-agent",
            "x-team",
            "x-tidegate-passed",
        ];
        assert_eq!(names, expected);
        assert_eq!(seen.header("authorization"), Some("Bearer s3cret"));
        assert_eq!(seen.header("accept"), Some("application/json, text/event-stream"));
        assert_eq!(seen.header("x-tidegate-passed"), Some("00000000000000aa"));
    });
}

#[test]
fn a_header_without_its_secret_makes_the_server_unusable_and_says_which() {
    let mut file = ServerFile { url: Some("http://h/mcp".into()), ..ServerFile::default() };
    assert!(place(&file).is_ok());
    let reference = SecretRef::parse("env:MISSING").expect("a reference");
    file.headers.insert("authorization".into(), reference);
    let said = place(&file).err();
    let expected = "server `github`: header `authorization`: \
                    the environment variable `MISSING` is not set";
    assert_eq!(said.as_deref(), Some(expected));
}

#[test]
fn an_answer_is_known_at_first_sight_or_by_reading_it() {
    let known = |text: &str| reading::answered(text.as_bytes()).ok();
    assert_eq!(known(r#"{"jsonrpc":"2.0","id":5,"result":{}}"#), Some(Some(5)));
    assert_eq!(known(r#"{"jsonrpc":"2.0","id":5,"error":{}}"#), Some(Some(5)));
    assert_eq!(known(r#"{ "result": {}, "id": 5, "jsonrpc": "2.0" }"#), Some(Some(5)));
    assert_eq!(known(r#"{"jsonrpc":"2.0","id":"5","result":{}}"#), Some(None));
    assert_eq!(known(r#"{"jsonrpc":"2.0","id":5,"method":"ping"}"#), Some(None));
    assert_eq!(known(r#"{"jsonrpc":"2.0","id":5.0,"result":{}}"#), Some(None));
    for broken in [r#"{"jsonrpc":"2.0","id":05,"result":{}}"#, r#"{"jsonrpc":"2.0","id":5"#, "{"] {
        assert_eq!(known(broken), None, "{broken}");
    }
    let huge = r#"{"jsonrpc":"2.0","id":99999999999999999999,"result":{}}"#;
    assert_eq!(known(huge), Some(None), "larger than any number of ours");
}
