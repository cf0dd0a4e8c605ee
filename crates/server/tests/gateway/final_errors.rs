//! What a client sees when no target has an answer: the upstream's own error, or every attempt.

use serde_json::{Value, json};
use tidegate_fakes::fake::{Act, FakeServer, Step};
use tidegate_testkit::{gate::chat, http::Answer};

use crate::bed::{Setup, always, good};
use crate::nothing::{before_a_good_one, raw_answer};

fn says(status: u16, text: &str) -> Step {
    let text = json!({"error": {"message": text}}).to_string();
    Step { text: Some(text), ..Step::status(status) }
}

fn error_inside(text: &str) -> Step {
    let text = json!({"error": {"message": text, "code": "x"}}).to_string();
    Step { text: Some(text), ..Step::of(Act::ErrorBody) }
}

fn asked(fakes: &[&FakeServer], is_stream: bool) -> Answer {
    let gate = Setup::of(fakes).start();
    if is_stream { gate.stream() } else { gate.chat() }
}

#[test]
fn an_error_before_a_death_after_the_head_is_what_the_client_sees() {
    let fakes = [always(says(500, "words of a")), always(Step::of(Act::Cut))];
    for is_stream in [false, true] {
        let answer = asked(&fakes.each_ref(), is_stream);
        assert_eq!(answer.status, 500, "{}", answer.text());
        assert_eq!(answer.json()["error"]["message"], "words of a");
        assert_eq!(answer.header("x-tidegate-attempts"), Some("2"));
        assert_eq!(answer.header("x-tidegate-resolved"), Some("a/m"), "whose words they are");
    }
}

#[test]
fn an_error_names_the_target_that_gave_it_also_if_a_refused_key_came_later() {
    let fakes = [always(says(500, "words of a")), always(says(401, "words of b"))];
    let answer = asked(&fakes.each_ref(), false);
    assert_eq!((answer.status, answer.header("x-tidegate-resolved")), (500, Some("a/m")));
    let redirected = [always(says(302, "")), always(says(401, ""))];
    let answer = asked(&redirected.each_ref(), false);
    assert_eq!((answer.status, answer.header("x-tidegate-resolved")), (502, Some("a/m")));
}

#[test]
fn an_error_inside_a_200_is_a_502_with_the_upstreams_words() {
    let fakes = [always(error_inside("words of a")), always(error_inside("words of b"))];
    for is_stream in [false, true] {
        let answer = asked(&fakes.each_ref(), is_stream);
        assert_eq!(answer.status, 502, "{}", answer.text());
        assert_eq!(answer.json()["error"]["message"], "words of b");
        assert_eq!(answer.header("x-should-retry"), Some("false"));
    }
}

#[test]
fn an_error_event_in_the_first_place_is_a_502_in_the_dialects_shape() {
    let fakes = [always(Step::of(Act::ErrorEvent)), always(Step::of(Act::ErrorEvent))];
    let responses = r#"{"model":"r","stream":true,"input":"hello"}"#.to_owned();
    for (path, api, body) in [
        ("/v1/chat/completions", "openai", chat("r", true)),
        ("/v1/responses", "openai", responses),
        ("/v1/messages", "anthropic", chat("r", true)),
    ] {
        let answer = Setup { api, ..Setup::of(&fakes.each_ref()) }.start().post(path, &body);
        assert_eq!(answer.status, 502, "{path}: {}", answer.text());
        assert_eq!(answer.header("content-type"), Some("application/json"), "{path}");
        assert!(answer.json()["error"]["message"].is_string(), "{path}: {}", answer.text());
    }
}

#[test]
fn two_deaths_after_the_head_are_a_503_that_lists_them() {
    let fakes = [always(Step::of(Act::Cut)), always(Step::of(Act::Cut))];
    for (path, api) in [("/v1/chat/completions", "openai"), ("/v1/messages", "anthropic")] {
        let gate = Setup { api, ..Setup::of(&fakes.each_ref()) }.start();
        let answer = gate.post(path, &chat("r", false));
        assert_eq!(answer.status, 503, "{path}: {}", answer.text());
        let body = answer.json();
        assert_eq!(body["error"]["type"], "no_healthy_backend", "{path}");
        assert_eq!(body["type"].is_string(), api == "anthropic", "{path}");
        let attempts = body["error"]["attempts"].as_array().cloned().unwrap_or_default();
        let told: Vec<&Value> = attempts.iter().map(|it| &it["target"]).collect();
        assert_eq!(told, ["a/m", "b/m"], "{path}");
        assert_eq!(
            (&attempts[0]["outcome"], &attempts[0]["status"]),
            (&json!("transport"), &json!(200))
        );
    }
}

#[test]
fn statuses_that_are_no_final_answer_fall_over_and_are_never_relayed() {
    for status in ["101 Switching Protocols", "999 Request denied"] {
        let raw = raw_answer(status, "application/json", b"{\"a\":1}");
        let gate = before_a_good_one(&raw);
        let answer = gate.chat();
        assert_eq!((answer.status, answer.header("x-tidegate-resolved")), (200, Some("b/m")));
        assert_eq!(gate.health("a/m")["consecutive_failures"], 1, "{status}");
        let fake = good();
        let mut setup = Setup::of(&[&fake]);
        setup.urls[0] = raw.url();
        assert_eq!(setup.start().chat().status, 502, "{status}");
    }
}

#[test]
fn a_single_candidate_keeps_the_retries_of_the_sdk() {
    for step in [Step::status(500), Step::of(Act::Close), Step::of(Act::ErrorBody)] {
        let fake = always(step.clone());
        assert_eq!(asked(&[&fake], false).header("x-should-retry"), None, "{step:?}");
        let spare = always(step.clone());
        assert_eq!(asked(&[&fake, &spare], false).header("x-should-retry"), Some("false"));
    }
}

#[test]
fn a_request_too_long_for_one_target_goes_on_to_a_larger_one() {
    use tidegate_fakes::fake::ErrorText;
    let small = always(Step { body: ErrorText::ContextLength, ..Step::status(400) });
    let large = good();
    let gate = Setup::of(&[&small, &large]).start();
    let answer = gate.chat();
    assert_eq!((answer.status, answer.header("x-tidegate-resolved")), (200, Some("b/m")));
    assert_eq!(gate.health("a/m")["consecutive_failures"], 0);
    let alone = asked(&[&small], false);
    assert_eq!(alone.status, 400, "{}", alone.text());
}
