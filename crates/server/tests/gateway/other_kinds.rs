//! Counts of tokens and embeddings between vendors, lists of models, Azure's addresses.

use serde_json::{Value, json};
use tidegate_testkit::gate::Gate;

use crate::bed::{always, good, hits};
use crate::upstream::Raw;

/// A provider that answers every request with this JSON.
fn answers(body: &Value) -> Raw {
    let body = body.to_string();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n",
        body.len()
    );
    Raw::start(vec![format!("{head}{body}").into_bytes()])
}

fn gate(api: &str, url: &str) -> Gate {
    let base = if api == "openai" { "/v1" } else { "" };
    Gate::start(
        &format!(
            "listen: 127.0.0.1:0\nadmin: {{listen: '127.0.0.1:0'}}\n\
             health: {{probe: {{every: 0s}}}}\n\
             providers:\n  a: {{api: {api}, url: '{url}{base}'}}\n\
             routes:\n  r: {{tiers: [[a/m]]}}\n"
        ),
        &[],
    )
}

#[test]
fn gemini_counts_tokens_for_a_client_of_anthropics_and_the_other_way_round() {
    let google = answers(&json!({"totalTokens": 31}));
    let body = json!({"model": "r", "messages": [{"role": "user", "content": "hi"}]}).to_string();
    let answer = gate("gemini", &google.url()).post("/v1/messages/count_tokens", &body);
    assert_eq!((answer.status, answer.json()), (200, json!({"input_tokens": 31})));
    assert_eq!(answer.header("x-tidegate-converted"), Some("anthropic-count>gemini-count"));

    let anthropic = answers(&json!({"input_tokens": 17}));
    let body = json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}).to_string();
    let count = "/v1beta/models/r:countTokens";
    let answer = gate("anthropic", &anthropic.url()).post(count, &body);
    assert_eq!((answer.status, answer.json()), (200, json!({"totalTokens": 17})));

    let openai = good();
    let gate = gate("openai", &openai.url());
    for (path, body) in [(count, body.as_str()), ("/v1/messages/count_tokens", r#"{"model":"r"}"#)]
    {
        let answer = gate.post(path, body);
        assert_eq!(answer.status, 400, "{}", answer.text());
        assert!(answer.text().contains("`a/m` speaks another protocol"), "{}", answer.text());
    }
    assert_eq!(hits(&openai), 0, "nobody there counts");
}

#[test]
fn a_count_fails_over_to_another_vendor() {
    let (down, up) =
        (always(tidegate_fakes::fake::Step::status(503)), answers(&json!({"totalTokens": 5})));
    let yaml = format!(
        "listen: 127.0.0.1:0\nadmin: {{listen: '127.0.0.1:0'}}\nhealth: {{probe: {{every: 0s}}}}\n\
         providers:\n  a: {{api: anthropic, url: '{}'}}\n  g: {{api: gemini, url: '{}'}}\n\
         routes:\n  r: {{tiers: [[a/m], [g/m]]}}\n",
        down.url(),
        up.url()
    );
    let body = json!({"model": "r", "messages": [{"role": "user", "content": "hi"}]}).to_string();
    let answer = Gate::start(&yaml, &[]).post("/v1/messages/count_tokens", &body);
    assert_eq!((answer.status, answer.json()), (200, json!({"input_tokens": 5})));
    assert_eq!(answer.header("x-tidegate-resolved"), Some("g/m"));
}

#[test]
fn embeddings_cross_between_openai_and_gemini_one_and_many() {
    let google = answers(&json!({"embeddings": [{"values": [0.5, 1.0]}, {"values": [1.5, 2.0]}]}));
    let body = json!({"model": "r", "input": ["a", "b"]}).to_string();
    let answer = gate("gemini", &google.url()).post("/v1/embeddings", &body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let data = &answer.json()["data"];
    assert_eq!((&data[0]["embedding"], &data[1]["index"]), (&json!([0.5, 1.0]), &json!(1)));
    let tokens = json!({"model": "r", "input": [1, 2, 3]}).to_string();
    let refused = gate("gemini", &google.url()).post("/v1/embeddings", &tokens);
    assert_eq!(refused.status, 400, "{}", refused.text());
    assert!(refused.text().contains("token numbers"), "{}", refused.text());
    assert_eq!(google.hits(), 1);

    let openai = answers(&json!({"object": "list", "model": "m", "data": [
        {"object": "embedding", "index": 0, "embedding": [0.25]}],
        "usage": {"prompt_tokens": 1, "total_tokens": 1}}));
    let gate = gate("openai", &openai.url());
    let content = json!({"parts": [{"text": "a"}]});
    let one = json!({ "content": content }).to_string();
    let answer = gate.post("/v1beta/models/r:embedContent", &one);
    assert_eq!(answer.json(), json!({"embedding": {"values": [0.25]}}), "{}", answer.text());
    let many = json!({"requests": [{"model": "models/r", "content": content}]}).to_string();
    let answer = gate.post("/v1beta/models/r:batchEmbedContents", &many);
    assert_eq!(answer.json(), json!({"embeddings": [{"values": [0.25]}]}), "{}", answer.text());
}

#[test]
fn models_are_listed_in_the_shape_of_the_dialect_that_asks() {
    let fake = good();
    let gate = gate("openai", &fake.url());
    let with = |path: &str, headers: &str| {
        let mut client = gate.client();
        client.send("GET", path, headers, b"");
        client.answer().expect("an answer").json()
    };
    assert_eq!(with("/v1/models", "")["object"], "list");
    assert_eq!(with("/v1/models", "")["data"][0]["object"], "model");
    let anthropic = with("/v1/models", "anthropic-version: 2023-06-01\r\n");
    assert_eq!(
        (&anthropic["data"][0]["type"], &anthropic["has_more"]),
        (&json!("model"), &json!(false))
    );
    assert_eq!(with("/v1beta/models", "")["models"][0]["name"], "models/r");
    let one = with("/v1/models/r", "anthropic-version: 2023-06-01\r\n");
    assert_eq!((&one["type"], &one["id"]), (&json!("model"), &json!("r")));
}

#[test]
fn azure_has_the_deployment_in_its_path_and_its_version_in_the_query() {
    let fake = good();
    let url = format!("{}/openai/deployments/{{model}}", fake.url());
    let yaml = format!(
        "listen: 127.0.0.1:0\nadmin: {{listen: '127.0.0.1:0'}}\nhealth: {{probe: {{every: 0s}}}}\n\
         providers:\n  az: {{api: openai, url: '{url}', key: env:K, auth: api-key, \
         query: {{api-version: 2024-10-21}}}}\n\
         routes:\n  r: {{tiers: [['az/gpt+4o']]}}\n"
    );
    let gate = Gate::start(&yaml, &[("K", "azure-key")]);
    gate.chat();
    gate.post("/v1/responses", r#"{"model":"r","input":"hi"}"#);
    gate.post(
        "/v1/messages",
        r#"{"model":"r","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}"#,
    );
    gate.post("/v1/embeddings", r#"{"model":"az/embed","input":"hi"}"#);
    let paths: Vec<String> = fake.calls().iter().map(|call| call.path.clone()).collect();
    let chat = "/openai/deployments/gpt%2B4o/chat/completions?api-version=2024-10-21";
    let embed = "/openai/deployments/embed/embeddings?api-version=2024-10-21";
    assert_eq!(paths, [chat, chat, chat, embed], "responses are converted to chat");
    assert_eq!(fake.calls()[0].header("api-key"), Some("azure-key"));
}
