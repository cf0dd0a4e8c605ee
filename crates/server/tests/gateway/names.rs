//! What a model name leads to, on every path.

use serde_json::{Value, json};
use tidegate_testkit::{gate::chat, http::Answer};

use crate::bed::{Setup, good, hits};

fn model_of(fake: &tidegate_fakes::fake::FakeServer) -> Vec<Value> {
    let value = |text: String| serde_json::from_str::<Value>(&text).expect("JSON arrives");
    fake.calls().iter().map(|call| value(call.text())["model"].clone()).collect()
}

#[test]
fn provider_and_model_can_be_asked_for_directly_and_do_not_fail_over() {
    let (first, second) = (good(), good());
    let gate = Setup::of(&[&first, &second]).start();
    let ask = |model: &str| gate.post("/v1/chat/completions", &chat(model, false));
    assert_eq!(ask("b/m").header("x-tidegate-resolved"), Some("b/m"));
    assert_eq!(ask("b/some/other:model").header("x-tidegate-resolved"), Some("b/some/other:model"));
    assert_eq!(model_of(&second), [json!("m"), json!("some/other:model")]);
    second.stop();
    let answer = ask("b/m");
    assert_eq!(answer.status, 503);
    assert_eq!(hits(&first), 0);
}

#[test]
fn an_unknown_model_is_a_404_that_lists_what_exists() {
    let fake = good();
    let gate = Setup::of(&[&fake]).start();
    let answer = gate.post("/v1/chat/completions", &chat("nobody/knows", false));
    assert_eq!(answer.status, 404);
    let error = answer.json()["error"].clone();
    assert_eq!(error["code"], "model_not_found");
    let message = error["message"].as_str().unwrap_or_default().to_owned();
    assert!(message.contains("nobody/knows") && message.contains('r'), "{message}");
    let answer = gate.post("/v1/chat/completions", "{\"model\":null}");
    assert_eq!(answer.status, 404, "null is like nothing at all");
    let message = answer.json()["error"]["message"].clone();
    assert!(message.as_str().is_some_and(|it| it.contains("no model was named")), "{message}");
    let answer = gate.post("/v1/messages", &chat("nobody", false));
    assert_eq!((answer.status, &answer.json()["type"]), (404, &json!("error")));
    assert_eq!(hits(&fake), 0);
}

#[test]
fn without_a_model_or_with_an_unknown_one_the_default_route_answers() {
    let fake = good();
    let gate = Setup { top: "default_route: r", ..Setup::of(&[&fake]) }.start();
    for body in [
        "{\"messages\":[]}",
        "{}",
        "{\"model\":\"gpt-unheard-of\",\"messages\":[]}",
        "{\"model\":null,\"messages\":[]}",
        "{\"model\":\"\"}",
    ] {
        let answer = gate.post("/v1/chat/completions", body);
        assert_eq!(answer.status, 200, "{body}: {}", answer.text());
    }
    assert_eq!(model_of(&fake), vec![json!("m"); 5]);
}

#[test]
fn every_listed_path_is_forwarded_as_it_came() {
    let fake = good();
    let gate = Setup::of(&[&fake]).start();
    for path in [
        "embeddings",
        "completions",
        "moderations",
        "images/generations",
        "rerank",
        "score",
        "classify",
        "ocr",
        "audio/speech",
    ] {
        let body = "{\"model\":\"r\",\"input\":\"x\",\"prompt\":\"x\"}";
        let answer = gate.post(&format!("/v1/{path}"), body);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    }
    let paths: Vec<String> = fake.calls().iter().map(|call| call.path.clone()).collect();
    assert_eq!(paths[0], "/v1/embeddings");
    assert_eq!(paths[3], "/v1/images/generations");
}

#[test]
fn anthropics_paths_and_version_reach_an_anthropic_provider() {
    let fake = good();
    let gate = Setup { api: "anthropic", ..Setup::of(&[&fake]) }.start();
    let ask =
        |path: &str, headers: &str| -> Answer { gate.post_with(path, headers, &chat("r", false)) };
    assert_eq!(ask("/v1/messages", "").status, 200);
    assert_eq!(ask("/v1/messages/count_tokens", "").status, 200);
    let headers = "anthropic-version: 2024-01-01\r\nanthropic-beta: tools\r\n";
    assert_eq!(ask("/v1/messages?beta=true", headers).status, 200);
    let calls = fake.calls();
    let paths: Vec<&str> = calls.iter().map(|call| call.path.as_str()).collect();
    assert_eq!(paths, ["/v1/messages", "/v1/messages/count_tokens", "/v1/messages?beta=true"]);
    assert_eq!(calls[0].header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(calls[2].header("anthropic-version"), Some("2024-01-01"));
    assert_eq!(calls[2].header("anthropic-beta"), Some("tools"));
}

#[test]
fn models_are_listed_in_the_shape_of_the_asking_sdk() {
    let fake = good();
    let gate = Setup::of(&[&fake]).start();
    let list = gate.get("/v1/models").json();
    let ids: Vec<&str> = list["data"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|it| it["id"].as_str())
        .collect();
    assert_eq!(ids, ["r", "a/m"]);
    let mut client = gate.client();
    client.send("GET", "/v1/models/a/m", "anthropic-version: 2023-06-01\r\n", b"");
    let model = client.answer().expect("an answer").json();
    assert_eq!((&model["type"], &model["id"]), (&json!("model"), &json!("a/m")));
}
