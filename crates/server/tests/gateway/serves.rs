//! Providers that serve only some endpoints: the others are never asked of them.

use tidegate_testkit::gate::{Gate, chat};

use crate::bed::{good, hits};

const RESPONSE: &str = r#"{"model":"r","input":"hello"}"#;
const EMBEDDING: &str = r#"{"model":"r","input":"hello"}"#;

/// Two providers behind a route, the first of which serves only what it says.
fn gate(serves: &str, urls: &[String]) -> Gate {
    let provider = |(url, name): (&String, char)| {
        let serves = if name == 'a' { serves } else { "" };
        format!("  {name}: {{api: openai, url: '{url}/v1', {serves}}}\n")
    };
    let providers: String = urls.iter().zip('a'..='z').map(provider).collect();
    let tiers = if urls.len() == 1 { "[[a/m]]" } else { "[[a/m], [b/m]]" };
    let yaml = format!(
        "listen: 127.0.0.1:0\nadmin: {{listen: '127.0.0.1:0'}}\n\
         health: {{probe: {{every: 0s}}}}\n\
         providers:\n{providers}routes:\n  r: {{tiers: {tiers}}}\n"
    );
    Gate::start(&yaml, &[])
}

#[test]
fn a_request_of_another_kind_goes_to_the_target_that_serves_it() {
    let (a, b) = (good(), good());
    let gate = gate("serves: [chat]", &[a.url(), b.url()]);
    for (path, body) in [
        ("/v1/embeddings", EMBEDDING.to_owned()),
        ("/v1/completions", r#"{"model":"r","prompt":"hello"}"#.to_owned()),
        ("/v1/moderations", RESPONSE.to_owned()),
    ] {
        let answer = gate.post(path, &body);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        assert_eq!(answer.header("x-tidegate-resolved"), Some("b/m"), "{path}");
        assert_eq!(answer.header("x-tidegate-attempts"), Some("1"), "{path}");
    }
    let answer = gate.post("/v1/chat/completions", &chat("r", false));
    assert_eq!(answer.header("x-tidegate-resolved"), Some("a/m"));
    assert_eq!(hits(&a), 1, "only what it serves");
    let answer = gate.post("/v1/responses", RESPONSE);
    assert_eq!(answer.header("x-tidegate-resolved"), Some("a/m"));
    let converted = answer.header("x-tidegate-converted");
    assert_eq!(converted, Some("openai-responses>openai-chat"), "as the chat that it serves");
    assert_eq!(gate.health("a/m")["healthy"], true, "not serving something is no ill health");
}

#[test]
fn where_no_target_serves_an_endpoint_the_client_is_told_why() {
    let a = good();
    let gate = gate("serves: [chat, embeddings]", &[a.url()]);
    for body in [RESPONSE.to_owned(), RESPONSE.replace("\"r\"", "\"a/any-model\"")] {
        let answer = gate.post("/v1/completions", &body);
        assert_eq!(answer.status, 400, "{}", answer.text());
        let error = &answer.json()["error"];
        assert_eq!(error["code"], "missing_ability", "{error}");
        let message = error["message"].as_str().expect("a message");
        assert!(message.ends_with("does not serve this endpoint"), "{message}");
        assert!(message.contains("`a/"), "{message}");
    }
    assert_eq!(hits(&a), 0);
    assert_eq!(gate.post("/v1/embeddings", EMBEDDING).status, 200);
}

#[test]
fn an_endpoint_of_no_name_is_served_as_other() {
    let a = good();
    let gate = gate("serves: [other]", &[a.url()]);
    assert_eq!(gate.post("/v1/moderations", RESPONSE).status, 200);
    assert_eq!(gate.chat().status, 400);
}

#[test]
fn an_explanation_for_an_endpoint_says_what_a_target_does_not_serve() {
    let (a, b) = (good(), good());
    let gate = gate("serves: [chat]", &[a.url(), b.url()]);
    let explain = |path: &str| {
        let body = format!("{{\"model\":\"r\",\"path\":\"{path}\"}}");
        let mut client = tidegate_testkit::http::Client::connect(gate.server.admin_address());
        let answer = client.post("/api/explain", &body);
        answer.json()["explanation"]["candidates"][0]["verdict"].clone()
    };
    assert_eq!(explain("/v1/completions"), serde_json::json!({"skipped": [{"lacks": "kind"}]}));
    assert_eq!(explain("/v1/chat/completions")["chosen"]["is_last_resort"], false);
}
