//! A 2xx that is nothing: it costs no client an answer, and it is charged to its target.

use std::ops::Deref;

use serde_json::json;
use tidegate_fakes::fake::{Act, FakeServer, Step};
use tidegate_testkit::{
    gate::{Gate, chat},
    http::{Answer, End},
};

use crate::bed::{Setup, always, good};
use crate::failover::assert_served;
use crate::upstream::Raw;

/// An answer with a told length.
pub fn raw_answer(status: &str, content_type: &str, body: &[u8]) -> Raw {
    let label = match content_type {
        "" => String::new(),
        text => format!("content-type: {text}\r\n"),
    };
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\n{label}content-length: {length}\r\n\r\n");
    Raw::start(vec![[head.as_bytes(), body].concat()])
}

/// A gateway whose first target sends exactly this, and whose second is good.
pub struct BeforeAGoodOne {
    gate: Gate,
    _spare: FakeServer,
}

impl Deref for BeforeAGoodOne {
    type Target = Gate;

    fn deref(&self) -> &Gate {
        &self.gate
    }
}

pub fn before_a_good_one(raw: &Raw) -> BeforeAGoodOne {
    let spare = good();
    let mut setup = Setup::of(&[&spare, &spare]);
    setup.urls[0] = raw.url();
    BeforeAGoodOne { gate: setup.start(), _spare: spare }
}

fn check(status: &str, content_type: &str, body: &str) {
    let raw = raw_answer(status, content_type, body.as_bytes());
    let gate = before_a_good_one(&raw);
    let what = format!("{status} {content_type} {body:?}");
    for is_stream in [false, true] {
        let answer = if is_stream { gate.stream() } else { gate.chat() };
        assert_served(&answer, is_stream, &what);
        assert_eq!(answer.header("x-tidegate-resolved"), Some("b/m"), "{what}");
    }
    assert_eq!(gate.health("a/m")["consecutive_failures"], 2, "{what}");
}

#[test]
fn a_2xx_that_is_nothing_falls_over_and_is_charged() {
    check("200 OK", "application/json", "");
    check("200 OK", "application/json", " \n");
    check("200 OK", "application/json", "null");
    check("200 OK", "application/json", "{\"choices\":[{\"message\":{\"cont");
    check("200 OK", "application/json", "{\"choices\":[}]}");
    check("200 OK", "application/json", "[]");
    check("200 OK", "text/html", "<html><body>Sign in to the network</body></html>");
    check("200 OK", "", "OK");
    check("204 No Content", "", "");
    check("200 OK", "audio/mpeg", "{");
    check("200 OK", "text/event-stream", "");
    check("200 OK", "text/event-stream", ": nothing\n\n");
    let role = "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\"}}]}\n\n";
    check("200 OK", "text/event-stream", role);
    check("200 OK", "text/event-stream", "<html>busy</html>");
}

#[test]
fn when_every_target_answers_with_nothing_the_attempts_are_listed() {
    let raw = raw_answer("200 OK", "text/html", b"<html>busy</html>");
    let fake = good();
    let mut setup = Setup::of(&[&fake, &fake]);
    setup.urls = vec![raw.url(), raw.url()];
    let answer = setup.start().chat();
    assert_eq!(answer.status, 503, "{}", answer.text());
    let error = answer.json()["error"].clone();
    assert_eq!(error["type"], "no_healthy_backend");
    assert_eq!(error["attempts"].as_array().map(Vec::len), Some(2), "{error}");
    assert_eq!(error["attempts"][0]["outcome"], "server_error");
    assert_eq!(error["attempts"][0]["detail"], "a web page instead of JSON");
}

#[test]
fn an_error_of_zero_or_null_beside_a_valid_answer_is_none() {
    for error in ["0", "null", "false"] {
        let body = format!("{{\"error\":{error},\"choices\":[{{\"message\":{{}}}}]}}");
        let raw = raw_answer("200 OK", "application/json", body.as_bytes());
        let answer = before_a_good_one(&raw).chat();
        assert_eq!((answer.status, answer.text()), (200, body));
    }
}

#[test]
fn json_in_place_of_a_stream_is_a_success() {
    let body = br#"{"object":"chat.completion","choices":[{"message":{"content":"hi"}}]}"#;
    let raw = raw_answer("200 OK", "application/json", body);
    let gate = before_a_good_one(&raw);
    let answer = gate.stream();
    assert_eq!((answer.status, &answer.body[..]), (200, &body[..]));
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.header("x-tidegate-resolved"), Some("a/m"));
    assert_eq!(gate.health("a/m")["consecutive_failures"], 0);
}

const CHUNK: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"}}]}\n\n";
const DONE: &str = "data: [DONE]\n\n";

/// A stream under this label, with and without its end.
fn labelled(content_type: &str, end: &str) -> Answer {
    let stream = format!("\u{feff}\r\n{CHUNK}{end}");
    let raw = raw_answer("200 OK", content_type, stream.as_bytes());
    before_a_good_one(&raw).stream()
}

#[test]
fn a_stream_is_recognised_whatever_it_is_labelled() {
    for label in [
        "text/event-stream",
        "Text/Event-Stream",
        "text/event-stream;charset=utf-8",
        "text/plain",
        "application/octet-stream",
        "application/x-ndjson",
        "application/json",
        "",
    ] {
        let answer = labelled(label, DONE);
        assert_eq!((answer.tokens(), answer.end), (1, End::Whole), "{label}: {}", answer.text());
        assert!(answer.text().ends_with(DONE), "{label}: {}", answer.text());
        let shown = answer.header("content-type").unwrap_or_default().to_owned();
        assert!(shown.starts_with("text/event-stream"), "{label}: {shown}");
        let cut = labelled(label, "");
        assert_eq!(cut.status, 200, "{label}");
        assert!(cut.has_error_event() && cut.tokens() == 1, "{label}: {}", cut.text());
    }
}

#[test]
fn a_recognised_stream_is_delivered_as_it_comes() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n";
    let never = vec![b" ".to_vec(); 2000];
    let pieces = [vec![head.to_vec(), CHUNK[..3].into(), CHUNK[3..].into()], never].concat();
    let gate = before_a_good_one(&Raw::start(pieces));
    let mut client = gate.client();
    client.send("POST", "/v1/chat/completions", "", chat("r", true).as_bytes());
    client.read_until("\"hi\"").expect("the first content comes before the end");
}

#[test]
fn sound_is_handed_on_as_it_is_and_as_it_comes() {
    let sound = b"RIFF\x00\xff\x01";
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: audio/wav\r\ncontent-length: 1000\r\n\r\n";
    let raw = Raw::start(vec![head.to_vec(), sound.to_vec(), sound.to_vec()]);
    let gate = before_a_good_one(&raw);
    let body = json!({"model": "r", "input": "hello", "voice": "x"}).to_string();
    let answer = gate.post("/v1/audio/speech", &body);
    assert_eq!((answer.status, answer.end), (200, End::Broken), "a broken body is aborted");
    assert!(answer.body.starts_with(sound), "what came is released at once");
    assert_eq!(answer.header("content-type"), Some("audio/wav"));
    let empty = raw_answer("200 OK", "audio/wav", b"");
    let answer = before_a_good_one(&empty).post("/v1/audio/speech", &body);
    assert_eq!(answer.header("x-tidegate-resolved"), Some("b/m"), "silence is no sound");
}

#[test]
fn a_tool_call_without_arguments_falls_over() {
    let start = concat!(
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{}}\n\n",
        "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,",
        "\"content_block\":{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"f\",\"input\":{}}}\n\n",
        "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,",
        "\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"\"}}\n\n",
    );
    let raw = raw_answer("200 OK", "text/event-stream", start.as_bytes());
    let spare = always(Step::of(Act::Ok));
    let mut setup = Setup { api: "anthropic", ..Setup::of(&[&spare, &spare]) };
    setup.urls[0] = raw.url();
    let answer = setup.start().post("/v1/messages", &chat("r", true));
    assert_eq!(answer.header("x-tidegate-resolved"), Some("b/m"), "{}", answer.text());
    assert!(answer.text().contains("message_stop") && !answer.text().contains("tool_use"));
}

#[test]
fn an_encoding_that_was_not_asked_for_is_never_handed_on() {
    let bytes = b"\x1f\x8b\x08\0\0\0\0\0\0\x03";
    let encoded = |status: &str, kind: &str| {
        let length = bytes.len();
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-encoding: gzip\r\n\
             content-length: {length}\r\n\r\n"
        );
        Raw::start(vec![[head.as_bytes(), bytes].concat()])
    };
    for kind in ["application/json", "text/event-stream", "audio/wav"] {
        let gate = before_a_good_one(&encoded("200 OK", kind));
        assert_served(&gate.stream(), true, kind);
        assert_eq!(gate.health("a/m")["consecutive_failures"], 1, "{kind}");
    }
    let speech = json!({"model": "r", "input": "hello", "voice": "x"}).to_string();
    let gate = before_a_good_one(&encoded("200 OK", "audio/wav"));
    let answer = gate.post("/v1/audio/speech", &speech);
    assert_eq!(answer.header("x-tidegate-resolved"), Some("b/m"), "{}", answer.text());
    let answer = before_a_good_one(&encoded("400 Bad Request", "application/json")).chat();
    assert_eq!(answer.status, 400);
    let message = answer.json()["error"]["message"].as_str().unwrap_or_default().to_owned();
    assert!(message.contains("content-encoding"), "{message}");
}
