//! Streams after their first content: no retry, no splice, an explicit end (I8, I9).

use std::time::Duration;

use tidegate_fakes::fake::{Act, Step};
use tidegate_testkit::{gate::chat, http::End, time::eventually};

use crate::bed::{Setup, always, good, hits};

const SHORT: &str = "timeouts: {idle: 500ms}";

/// A stream that breaks after some tokens ends with an explicit error and no success marker.
fn check(step: Step, tokens: usize) {
    let (bad, spare) = (always(step.clone()), good());
    let gate = Setup { provider: SHORT, ..Setup::of(&[&bad, &spare]) }.start();
    let answer = gate.stream();
    assert_eq!(answer.status, 200, "{step:?}");
    assert_eq!(answer.tokens(), tokens, "{step:?}: {}", answer.text());
    assert!(answer.has_error_event(), "{step:?}: {}", answer.text());
    assert!(!answer.text().contains("[DONE]"), "{step:?}: {}", answer.text());
    assert_eq!(answer.end, End::Whole, "the error event is the end, not a torn connection");
    assert_eq!((hits(&bad), hits(&spare)), (1, 0), "never spliced: {step:?}");
    assert_eq!(gate.health("a/m")["consecutive_failures"], 1, "{step:?}");
}

#[test]
fn death_after_three_events_is_an_explicit_error() {
    check(Step::after(Act::Cut, 3).with_tokens(60, Duration::ZERO), 3);
}

#[test]
fn a_cut_at_token_40_of_60_keeps_the_40_and_says_so() {
    check(Step::after(Act::Cut, 40).with_tokens(60, Duration::ZERO), 40);
}

#[test]
fn a_stream_that_ends_without_its_terminator_is_an_error() {
    check(Step::after(Act::Truncate, 5).with_tokens(9, Duration::ZERO), 5);
}

#[test]
fn a_chat_that_lacks_its_done_only_is_whole_and_gets_it() {
    let fake = always(Step::of(Act::NoTerminator).with_tokens(7, Duration::ZERO));
    for hold in ["", "hold: {tokens: 100}"] {
        let gate = Setup { route: hold, ..Setup::of(&[&fake]) }.start();
        for _ in 0..4 {
            let answer = gate.stream();
            assert!(answer.is_whole_stream() && answer.tokens() == 7, "{}", answer.text());
            assert_eq!(answer.text().matches("[DONE]").count(), 1);
        }
        assert_eq!(gate.health("a/m")["consecutive_failures"], 0);
    }
}

#[test]
fn other_dialects_need_their_terminator() {
    let fake = always(Step::of(Act::NoTerminator).with_tokens(7, Duration::ZERO));
    let gate = Setup { api: "anthropic", ..Setup::of(&[&fake]) }.start();
    let answer = gate.post("/v1/messages", &chat("r", true));
    assert!(answer.has_error_event() && !answer.text().contains("message_stop"));
    let answer = Setup::of(&[&fake]).start().post("/v1/responses", RESPONSES);
    assert!(answer.has_error_event() && !answer.text().contains("response.completed"));
}

#[test]
fn a_stall_after_content_ends_with_the_idle_limit() {
    check(Step::after(Act::Stall, 4).with_tokens(9, Duration::ZERO), 4);
}

#[test]
fn an_upstreams_own_error_event_in_mid_stream_is_the_end() {
    check(Step::after(Act::ErrorEvent, 4).with_tokens(9, Duration::ZERO), 4);
}

#[test]
fn anthropics_streams_end_with_anthropics_error_event() {
    let bad = always(Step::after(Act::Cut, 3).with_tokens(9, Duration::ZERO));
    let gate = Setup { api: "anthropic", ..Setup::of(&[&bad]) }.start();
    let text = gate.post("/v1/messages", &chat("r", true)).text();
    assert!(text.contains("event: error\ndata: {\"type\":\"error\""), "{text}");
    assert!(!text.contains("message_stop"), "{text}");
}

const RESPONSES: &str = r#"{"model":"r","stream":true,"input":"hello"}"#;

#[test]
fn a_responses_stream_that_breaks_says_so_in_its_dialect_with_the_next_number() {
    let bad = always(Step::after(Act::Truncate, 3).with_tokens(9, Duration::ZERO));
    let gate = Setup::of(&[&bad]).start();
    let answer = gate.post("/v1/responses", RESPONSES);
    assert!(answer.has_error_event(), "{}", answer.text());
    assert!(!answer.text().contains("response.completed"));
    let numbers: Vec<u64> = answer
        .events()
        .iter()
        .filter_map(|data| serde_json::from_str::<serde_json::Value>(data).ok())
        .filter_map(|event| event["sequence_number"].as_u64())
        .collect();
    let expected: Vec<u64> = (0..answer.events().len() as u64).collect();
    assert_eq!(numbers, expected, "{}", answer.text());
}

#[test]
fn a_break_is_told_with_the_target_the_cause_and_the_request() {
    let bad = always(Step::after(Act::Truncate, 3).with_tokens(9, Duration::ZERO));
    let gates = [
        ("/v1/chat/completions", Setup::of(&[&bad]).start()),
        ("/v1/responses", Setup::of(&[&bad]).start()),
        ("/v1/messages", Setup { api: "anthropic", ..Setup::of(&[&bad]) }.start()),
    ];
    for (path, gate) in gates {
        let body = if path == "/v1/responses" { RESPONSES.to_owned() } else { chat("r", true) };
        let answer = gate.post(path, &body);
        let id = answer.header("x-tidegate-request-id").expect("an id").to_owned();
        let event = answer.events().pop().expect("an event");
        let event: serde_json::Value = serde_json::from_str(&event).expect("JSON");
        let message = event["error"]["message"].as_str().unwrap_or_default().to_owned();
        let expected = format!("the answer of `a/m` broke: the stream ended early (request {id})");
        assert_eq!(message, expected, "{path}");
    }
}

#[test]
fn an_event_after_content_that_is_no_json_is_a_break_and_not_handed_on() {
    check(Step::after(Act::Malformed, 3).with_tokens(9, Duration::ZERO), 3);
    let bad = always(Step::after(Act::Malformed, 3).with_tokens(9, Duration::ZERO));
    let answer = Setup::of(&[&bad]).start().stream();
    let is_json = |it: &String| serde_json::from_str::<serde_json::Value>(it).is_ok();
    assert!(answer.events().iter().all(is_json), "{}", answer.text());
}

#[test]
fn what_follows_a_terminator_is_not_released() {
    for act in [Act::DuplicateTerminator, Act::LateToken] {
        let fake = always(Step::of(act).with_tokens(5, Duration::ZERO));
        let gate = Setup::of(&[&fake]).start();
        let answer = gate.stream();
        assert!(answer.is_whole_stream(), "{act:?}: {}", answer.text());
        assert_eq!(answer.text().matches("[DONE]").count(), 1, "{act:?}");
        assert_eq!(answer.tokens(), 5, "{act:?}");
        assert_eq!(gate.health("a/m")["healthy"], true);
    }
}

#[test]
fn what_follows_a_terminator_in_the_chunk_of_the_first_content_is_not_released() {
    let text = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n";
    let done = "data: [DONE]\n\n";
    let stream = [text, done, text, done].concat();
    let raw = crate::nothing::raw_answer("200 OK", "text/event-stream", stream.as_bytes());
    let answer = crate::nothing::before_a_good_one(&raw).stream();
    assert_eq!(answer.text(), [text, done].concat());
}

#[test]
fn a_stream_without_content_that_ends_well_is_a_success() {
    let fake = always(Step::ok().with_tokens(0, Duration::ZERO));
    let gate = Setup::of(&[&fake]).start();
    let answer = gate.stream();
    assert!(answer.is_whole_stream(), "{}", answer.text());
    assert_eq!(gate.health("a/m")["last_error"], serde_json::Value::Null);
}

#[test]
fn s51_an_event_of_100_mb_is_capped_and_ends_with_an_error_event() {
    let huge = Step { size: Some(100 << 20), ..Step::after(Act::HugeEvent, 2) };
    let fake = always(huge.with_tokens(4, Duration::ZERO));
    let gate = Setup::of(&[&fake]).start();
    let answer = gate.stream();
    assert!(answer.body.len() < 20 << 20, "{} bytes", answer.body.len());
    assert!(answer.has_error_event() && !answer.text().contains("[DONE]"));
    assert_eq!(answer.end, End::Whole);
    eventually("the upstream is cancelled", || fake.counts().under_way == 0);
    assert_eq!(gate.health("a/m")["consecutive_failures"], 1);
}

#[test]
fn s51_an_event_of_100_mb_in_the_first_place_is_capped_too() {
    // Past what may be held the answer is committed (BEHAVIOUR 7), so it cannot fall over.
    let huge = Step { size: Some(100 << 20), ..Step::after(Act::HugeEvent, 0) };
    let bad = always(huge);
    let gate = Setup::of(&[&bad]).start();
    let answer = gate.stream();
    assert!(answer.body.len() < 20 << 20, "{} bytes", answer.body.len());
    assert!(answer.has_error_event());
    assert_eq!(gate.health("a/m")["consecutive_failures"], 1);
    assert!(
        gate.admin("/metrics").text().contains("tidegate_hold_overflow_total{target=\"a/m\"} 1")
    );
}

#[test]
fn an_event_of_a_few_mebibytes_passes_whole() {
    let large = Step { size: Some(5 << 20), ..Step::after(Act::HugeEvent, 2) };
    let fake = always(large.with_tokens(4, Duration::ZERO));
    let answer = Setup::of(&[&fake]).start().stream();
    assert!(answer.is_whole_stream());
    assert!(answer.body.len() > 5 << 20);
}

#[test]
fn a_plain_body_that_breaks_after_it_was_released_is_aborted() {
    let head =
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 3000000\r\n\r\n";
    let mut body = b"{\"text\":\"".to_vec();
    body.resize(2_000_000, b'a');
    let raw = crate::upstream::Raw::start(vec![head.to_vec(), body]);
    let fake = good();
    let mut setup = Setup::of(&[&fake]);
    setup.urls[0] = raw.url();
    let gate = setup.start();
    let answer = gate.chat();
    assert_eq!((answer.status, answer.end), (200, End::Broken));
    assert_eq!(gate.health("a/m")["consecutive_failures"], 1);
}

#[test]
fn a_stream_in_drops_of_a_few_bytes_arrives_byte_for_byte() {
    let whole = always(Step::ok().with_tokens(20, Duration::ZERO));
    let drip = Step { size: Some(7), token_gap: Duration::from_millis(1), ..Step::of(Act::Drip) };
    let drops = always(Step { tokens: Some(20), ..drip });
    let gate = |fake| Setup::of(&[fake]).start();
    let expected = gate(&whole).stream();
    let answer = gate(&drops).stream();
    assert!(answer.is_whole_stream(), "{}", answer.text());
    assert_eq!(answer.tokens(), expected.tokens());
}
