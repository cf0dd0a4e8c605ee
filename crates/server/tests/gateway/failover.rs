//! Failover before content: whatever one target does, the client gets the other's answer.

use std::time::Duration;

use serde_json::json;
use tidegate_fakes::fake::{Act, ErrorText, FakeServer, Script, Step};
use tidegate_testkit::{
    gate::chat,
    http::{Answer, End},
};

use crate::bed::{Setup, always, good, hits};
use crate::upstream::Raw;

/// Ten clients of a route whose first target has this fault: all are served by the second.
fn check(fault: &Step, is_stream: bool, most_hits: u64) {
    let (bad, spare) = (always(fault.clone()), good());
    let gate = Setup::of(&[&bad, &spare]).start();
    for number in 0..10 {
        let answer = if is_stream { gate.stream() } else { gate.chat() };
        assert_served(&answer, is_stream, &format!("client {number} of {fault:?}"));
        assert_eq!(answer.header("x-tidegate-resolved"), Some("b/m"), "{fault:?}");
    }
    let hits = hits(&bad);
    assert!((1..=most_hits).contains(&hits), "{hits} hits of {fault:?}");
}

pub fn assert_served(answer: &Answer, is_stream: bool, what: &str) {
    assert_eq!((answer.status, answer.end), (200, End::Whole), "{what}: {}", answer.text());
    assert!(!is_stream || answer.is_whole_stream(), "{what}: {}", answer.text());
}

#[test]
fn a_target_that_always_fails_costs_no_client_and_is_hit_three_times() {
    for status in [500, 503, 529, 502, 520, 424] {
        check(&Step::status(status), false, 3);
        check(&Step::status(status), true, 3);
    }
}

#[test]
fn a_broken_connection_before_the_head_falls_over() {
    for act in [Act::Close, Act::Reset, Act::NotHttp] {
        check(&Step::of(act), false, 3);
        check(&Step::of(act), true, 3);
    }
}

#[test]
fn a_stream_that_fails_before_its_first_content_falls_over() {
    for step in [
        Step::of(Act::Cut),
        Step::of(Act::Truncate),
        Step::of(Act::ErrorEvent),
        Step::after(Act::ErrorEvent, 0),
        Step::of(Act::ErrorBody),
        Step::of(Act::Malformed),
        Step::of(Act::Redirect),
    ] {
        check(&step, true, 3);
    }
}

#[test]
fn an_answer_that_fails_before_its_end_falls_over() {
    for act in [Act::Cut, Act::ErrorBody, Act::ErrorEvent, Act::Redirect] {
        check(&Step::of(act), false, 3);
    }
}

#[test]
fn an_error_body_after_a_200_is_seen_in_however_many_pieces_it_comes() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 44\r\n\r\n";
    let body = br#"{"error": {"message": "no", "code": "500"}} "#;
    assert_eq!(body.len(), 44);
    let raw = Raw::start(vec![head.to_vec(), body[..20].to_vec(), body[20..].to_vec()]);
    let spare = good();
    let mut setup = Setup::of(&[&spare, &spare]);
    setup.urls[0] = raw.url();
    let answer = setup.start().chat();
    assert_served(&answer, false, "an error in two pieces");
    assert_eq!(answer.header("x-tidegate-resolved"), Some("b/m"));
}

#[test]
fn html_gzip_garbage_and_empty_error_pages_fall_over() {
    for body in [ErrorText::Html, ErrorText::GzipGarbage, ErrorText::Empty, ErrorText::HalfJson] {
        check(&Step { body, ..Step::status(502) }, false, 3);
        check(&Step { body, ..Step::status(500) }, true, 3);
    }
}

#[test]
fn a_refused_connection_costs_no_client() {
    let (gone, spare) = (good(), good());
    let gate = Setup::of(&[&gone, &spare]).start();
    gone.stop();
    for _ in 0..10 {
        assert_served(&gate.chat(), false, "refused");
    }
    assert_eq!(hits(&spare), 10);
}

#[test]
fn a_callers_fault_is_relayed_once_as_it_came_and_charges_nobody() {
    for status in [400, 404, 409, 413, 422] {
        let text = format!("{{\"error\": {{\"message\": \"yours, {status}\"}}}}");
        let (first, spare) =
            (always(Step { text: Some(text.clone()), ..Step::status(status) }), good());
        let gate = Setup::of(&[&first, &spare]).start();
        for _ in 0..5 {
            let answer = gate.chat();
            assert_eq!((answer.status, answer.text()), (status, text.clone()));
            assert_eq!(answer.header("x-tidegate-attempts"), Some("1"));
            assert_eq!(answer.header("x-should-retry"), None, "the client may know better");
        }
        assert_eq!((hits(&first), hits(&spare)), (5, 0));
        assert_eq!(gate.health("a/m")["healthy"], true);
        assert_eq!(gate.health("a/m")["consecutive_failures"], 0);
    }
}

#[test]
fn of_two_equal_targets_one_always_overloaded_no_request_fails() {
    let (bad, spare) = (always(Step::status(503)), good());
    let gate = Setup { tiers: "[[a/m, b/m]]", ..Setup::of(&[&bad, &spare]) }.start();
    for number in 0..60 {
        assert_served(&gate.chat(), false, &format!("client {number}"));
    }
    assert!(hits(&bad) <= 3, "{} hits", hits(&bad));
}

#[test]
fn a_request_never_asks_the_same_target_twice() {
    let fakes = [always(Step::status(500)), always(Step::status(503)), always(Step::status(502))];
    let gate = Setup { tiers: "[[a/m, b/m, c/m]]", ..Setup::of(&fakes.each_ref()) }.start();
    let answer = gate.chat();
    assert_eq!(answer.header("x-tidegate-attempts"), Some("3"));
    assert_eq!(fakes.each_ref().map(hits), [1, 1, 1]);
}

#[test]
fn a_body_of_a_mebibyte_falls_over_whole() {
    let (bad, spare) = (always(Step::status(500)), good());
    let gate = Setup::of(&[&bad, &spare]).start();
    let prompt = "é".repeat(512 * 1024);
    let body = json!({"model": "r", "messages": [{"role": "user", "content": prompt}]});
    let answer = gate.post("/v1/chat/completions", &body.to_string());
    assert_served(&answer, false, "1 MiB");
    let sent = spare.calls()[0].text();
    assert_eq!(sent, body.to_string().replacen("\"r\"", "\"m\"", 1));
}

#[test]
fn with_both_tiers_down_every_target_is_asked_once_and_the_state_is_visible() {
    let fakes = [good(), good()];
    let gate = Setup::of(&fakes.each_ref()).start();
    for fake in fakes {
        fake.stop();
    }
    let answer = gate.chat();
    assert_eq!(answer.status, 503, "{}", answer.text());
    let error = answer.json()["error"].clone();
    assert_eq!(error["code"], "no_healthy_backend");
    let attempts = error["attempts"].as_array().cloned().unwrap_or_default();
    let of = |index: usize| (attempts[index]["target"].clone(), attempts[index]["outcome"].clone());
    assert_eq!(attempts.len(), 2);
    assert_eq!(of(0), (json!("a/m"), json!("transport")));
    assert_eq!(of(1), (json!("b/m"), json!("transport")));
    assert_eq!(answer.header("x-should-retry"), Some("false"));
    for _ in 0..3 {
        gate.chat();
    }
    assert_eq!(gate.get("/v1/health").json()["status"], "unhealthy");
    assert_eq!(gate.health("a/m")["healthy"], false);
}

#[test]
fn in_anthropics_dialect_the_final_error_has_anthropics_shape() {
    let gone = good();
    let gate = Setup { api: "anthropic", ..Setup::of(&[&gone]) }.start();
    gone.stop();
    let answer = gate.post("/v1/messages", &chat("r", false));
    assert_eq!(answer.status, 503);
    let body = answer.json();
    assert_eq!((&body["type"], body["error"]["type"].is_string()), (&json!("error"), true));
    assert_eq!(body["error"]["attempts"][0]["target"], "a/m", "{body}");
}

#[test]
fn the_last_error_an_upstream_gave_is_what_the_client_sees() {
    let text = r#"{"error": {"message": "words of b"}}"#.to_owned();
    let fakes =
        [always(Step::status(500)), always(Step { text: Some(text.clone()), ..Step::status(503) })];
    let gate = Setup::of(&fakes.each_ref()).start();
    let answer = gate.chat();
    assert_eq!((answer.status, answer.text()), (503, text));
    assert_eq!(answer.header("x-tidegate-resolved"), Some("b/m"));
    assert_eq!(answer.header("x-tidegate-attempts"), Some("2"));
    assert_eq!(answer.header("x-should-retry"), Some("false"));
    assert!(answer.header("x-tidegate-request-id").is_some_and(|id| id.starts_with("req_")));
}

#[test]
fn a_redirect_is_not_followed_and_ends_as_bad_gateway() {
    let bad = always(Step::of(Act::Redirect));
    let answer = Setup::of(&[&bad]).start().chat();
    assert_eq!(answer.status, 502, "{}", answer.text());
    assert_eq!(answer.header("location"), None);
}

#[test]
fn a_model_that_is_gone_moves_on_and_stays_out() {
    let gone = Step { body: ErrorText::ModelGone, ..Step::status(404) };
    let (bad, spare) = (always(gone), good());
    let gate = Setup::of(&[&bad, &spare]).start();
    for _ in 0..5 {
        assert_served(&gate.chat(), false, "model gone");
    }
    assert_eq!(hits(&bad), 1);
    assert_eq!(gate.health("a/m")["reason"], "model_gone");
}

#[test]
fn a_recovered_target_takes_traffic_again() {
    let (first, spare) =
        (FakeServer::start(Script::steps(vec![Step::status(500).times(3)])), good());
    let health = "open_for: 100ms, recovery_threshold: 1";
    let gate = Setup { health, ..Setup::of(&[&first, &spare]) }.start();
    for _ in 0..3 {
        assert_served(&gate.chat(), false, "while it fails");
    }
    assert_eq!(gate.chat().header("x-tidegate-resolved"), Some("b/m"), "it is open");
    tidegate_testkit::time::eventually("it is asked again", || {
        gate.chat().header("x-tidegate-resolved") == Some("a/m")
    });
    tidegate_testkit::time::pause(Duration::from_millis(1));
    assert_eq!(gate.health("a/m")["state"], "closed");
}

#[test]
fn a_plain_answer_that_only_its_connections_end_cuts_short_is_a_failover() {
    let whole = r#"{"id":"x","choices":[{"message":{"content":"hello"}}]}"#;
    for (head, cut, is_served_by) in [
        ("content-type: application/json\r\n", 20, "b/m"),
        ("", 20, "b/m"),
        ("content-type: application/json\r\n", 0, "a/m"),
        ("content-type: text/plain\r\n", 20, "b/m"),
        ("content-type: text/plain\r\n", 0, "a/m"),
    ] {
        let head = format!("HTTP/1.1 200 OK\r\nconnection: close\r\n{head}\r\n");
        let body = whole.as_bytes()[..whole.len() - cut].to_vec();
        let raw = crate::upstream::Raw::start(vec![head.clone().into_bytes(), body]);
        let spare = good();
        let mut setup = Setup::of(&[&spare, &spare]);
        setup.urls[0] = raw.url();
        let gate = setup.start();
        let answer = gate.chat();
        assert_eq!(answer.status, 200, "{head}");
        assert_eq!(answer.header("x-tidegate-resolved"), Some(is_served_by), "{head} cut {cut}");
        let failures = u64::from(is_served_by == "b/m");
        assert_eq!(gate.health("a/m")["consecutive_failures"], failures, "{head} cut {cut}");
    }
}
