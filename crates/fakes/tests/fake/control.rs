//! The control endpoints, and requests that make no sense.

use serde_json::json;
use tidegate_fakes::fake::{FakeServer, Script};

use crate::client::{ask, chat, post};

const CHAT: &str = "/v1/chat/completions";

#[test]
fn a_script_can_be_set_and_calls_read_over_http() {
    let server = FakeServer::start(Script::default());
    let at = server.address();
    let script = json!({"steps": [{"do": "status", "status": 503}]}).to_string();
    assert_eq!(post(at, "/__script", &script).expect("an answer").status, 204);
    assert_eq!(post(at, CHAT, &chat("m1", false)).expect("an answer").status, 503);
    let read = || ask(at, "GET", "/__calls", "", "").expect("an answer").json();
    let calls = read();
    assert_eq!((&calls["seen"], &calls["calls"][0]["path"]), (&json!(1), &json!(CHAT)));
    assert_eq!(calls["calls"][0]["body"], json!(chat("m1", false)));
    assert_eq!(ask(at, "DELETE", "/__calls", "", "").expect("an answer").status, 204);
    assert_eq!(read()["calls"], json!([]));
}

#[test]
fn a_bad_script_is_refused_and_the_old_one_stays() {
    let server = FakeServer::start(Script::default());
    let at = server.address();
    let answer = post(at, "/__script", r#"{"steps": [{"do": "explode"}]}"#).expect("an answer");
    assert_eq!(answer.status, 400);
    assert!(answer.json()["error"].as_str().is_some_and(|it| it.contains("`explode`")));
    assert_eq!(post(at, CHAT, &chat("m1", false)).expect("an answer").status, 200);
}

#[test]
fn a_request_that_makes_no_sense_gets_an_error_of_its_dialect() {
    let server = FakeServer::start(Script::default());
    let at = server.address();
    for body in ["", "[]", "{", "\u{7f}"] {
        let answer = post(at, "/v1/messages", body).expect("an answer");
        assert_eq!((answer.status, answer.json()["type"].as_str()), (400, Some("error")));
    }
    assert_eq!(ask(at, "PUT", CHAT, "", "{}").expect("an answer").status, 405);
}
