//! Gemini's API, from clients of it to providers of it: paths, keys, streams, errors, models.

use serde_json::{Value, json};
use tidegate_fakes::fake::{Act, FakeServer, Step};
use tidegate_testkit::{
    gate::Gate,
    http::{Answer, End},
};

use crate::bed::{Setup, always, good, hits};

const GENERATE: &str = "/v1beta/models/r:generateContent";
const STREAM: &str = "/v1beta/models/r:streamGenerateContent?alt=sse";

fn gate(fakes: &[&FakeServer]) -> Gate {
    Setup { api: "gemini", ..Setup::of(fakes) }.start()
}

fn says(text: &str) -> String {
    json!({"contents": [{"role": "user", "parts": [{"text": text}]}]}).to_string()
}

fn text_of(value: &Value) -> String {
    value["candidates"][0]["content"]["parts"][0]["text"].as_str().unwrap_or_default().to_owned()
}

fn chunks(answer: &Answer) -> Vec<Value> {
    let text = answer.text();
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).expect("JSON")).collect()
}

#[test]
fn the_path_reaches_the_target_with_its_own_model_and_key() {
    let fake = good();
    let gate = Setup {
        api: "gemini",
        provider: "key: env:K",
        variables: &[("K", "upstream-key")],
        ..Setup::of(&[&fake])
    }
    .start();
    let body = "{ \"contents\":[{\"parts\":[{\"text\":\"hi\"}]}], \"x\":1.50}";
    let headers = "x-goog-api-key: the-callers\r\ncontent-type: application/json\r\n";
    let answer = gate.post_with(GENERATE, headers, body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.header("x-tidegate-resolved"), Some("a/m"));
    assert!(text_of(&answer.json()).contains("as m heard: hi"), "{}", answer.text());
    let call = &fake.calls()[0];
    assert_eq!(call.path, "/v1beta/models/m:generateContent");
    assert_eq!(call.header("x-goog-api-key"), Some("upstream-key"));
    assert_eq!(call.text(), body, "the body stays as it came");
}

#[test]
fn a_stream_fails_over_and_ends_with_its_reason() {
    let (bad, fake) = (always(Step::status(503)), good());
    let gate = gate(&[&bad, &fake]);
    let answer = gate.post(STREAM, &says("hi"));
    assert_eq!((answer.status, answer.end), (200, End::Whole), "{}", answer.text());
    assert_eq!(answer.header("x-tidegate-resolved"), Some("b/m"));
    let chunks = chunks(&answer);
    let text: String = chunks.iter().map(text_of).collect();
    assert!(text.contains("as m heard: hi"), "{text}");
    let last = &chunks[chunks.len() - 1];
    assert_eq!(last["candidates"][0]["finishReason"], "STOP");
    assert!(fake.calls()[0].path.starts_with("/v1beta/models/m:streamGenerateContent"));
}

#[test]
fn a_stream_that_ends_without_a_reason_is_an_error_of_googles_shape() {
    for act in [Act::Cut, Act::Truncate] {
        let fake = always(Step::after(act, 2));
        let answer = gate(&[&fake]).post(STREAM, &says("hi"));
        let chunks = chunks(&answer);
        let last = &chunks[chunks.len() - 1];
        assert_eq!(answer.status, 200);
        assert_eq!(last["error"]["status"], "UNAVAILABLE", "{act:?}: {}", answer.text());
        let reasons = chunks.iter().filter(|it| it["candidates"][0]["finishReason"].is_string());
        assert_eq!(reasons.count(), 0);
    }
}

#[test]
fn an_error_before_content_moves_on_and_the_last_one_is_shown() {
    let fake = always(Step::status(429));
    let answer = gate(&[&fake]).post(GENERATE, &says("hi"));
    assert_eq!(
        (answer.status, &answer.json()["error"]["status"]),
        (429, &"RESOURCE_EXHAUSTED".into())
    );
}

#[test]
fn a_models_name_may_be_escaped_in_the_path() {
    let fake = good();
    let gate = gate(&[&fake]);
    for name in ["a%2Fm", "%61/m", "%72"] {
        let answer = gate.post(&format!("/v1beta/models/{name}:generateContent"), &says("hi"));
        assert_eq!(answer.status, 200, "{name}: {}", answer.text());
    }
    for call in fake.calls() {
        assert_eq!(call.path, "/v1beta/models/m:generateContent");
    }
}

#[test]
fn tokens_are_counted_and_texts_embedded_with_the_targets_name() {
    let fake = good();
    let gate = gate(&[&fake]);
    let count = gate.post("/v1beta/models/r:countTokens", &says("hi"));
    assert!(count.json()["totalTokens"].as_u64() > Some(0), "{}", count.text());
    let one = r#"{"model":"models/r","content":{"parts":[{"text":"a"}]}}"#;
    let embedded = gate.post("/v1beta/models/r:embedContent", one);
    assert!(embedded.json()["embedding"]["values"].is_array(), "{}", embedded.text());
    let many = r#"{"requests":[{"model":"models/r"},{"model":"models/r"}]}"#;
    let embedded = gate.post("/v1beta/models/r:batchEmbedContents", many);
    let count = embedded.json()["embeddings"].as_array().map(Vec::len);
    assert_eq!(count, Some(2), "{}", embedded.text());
    let sent = fake.calls();
    assert_eq!(sent[2].text(), many.replace("models/r", "models/m"));
}

#[test]
fn what_is_not_served_is_refused_in_googles_shape() {
    let fake = good();
    let gate = gate(&[&fake]);
    let plain = gate.post("/v1beta/models/r:streamGenerateContent", &says("hi"));
    assert_eq!(plain.status, 400);
    let message = plain.json()["error"]["message"].as_str().unwrap_or_default().to_owned();
    assert!(message.contains("alt=sse"), "{message}");
    let other = gate.post("/v1beta/models/r:predict", "{}");
    assert_eq!((other.status, &other.json()["error"]["status"]), (501, &"UNIMPLEMENTED".into()));
    let broken = gate.post(GENERATE, "[]");
    assert_eq!(
        (broken.status, &broken.json()["error"]["status"]),
        (400, &"INVALID_ARGUMENT".into())
    );
    let unknown = gate.post("/v1beta/models/nobody:generateContent", &says("hi"));
    assert_eq!((unknown.status, &unknown.json()["error"]["status"]), (404, &"NOT_FOUND".into()));
    let keyed = gate.post(&format!("{GENERATE}?key=secret"), &says("hi"));
    assert_eq!(keyed.status, 400, "keys in queries end up in logs");
    assert_eq!(hits(&fake), 0);
}

#[test]
fn models_are_listed_in_the_shape_that_googles_clients_expect() {
    let fake = good();
    let gate = gate(&[&fake]);
    let list = gate.get("/v1beta/models").json();
    let names: Vec<&str> = list["models"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|it| it["name"].as_str())
        .collect();
    assert_eq!(names, ["models/r", "models/a/m"]);
    let one = gate.get("/v1beta/models/r").json();
    assert_eq!(one["name"], "models/r");
    let none = gate.get("/v1beta/models/none");
    assert_eq!((none.status, &none.json()["error"]["status"]), (404, &"NOT_FOUND".into()));
}
