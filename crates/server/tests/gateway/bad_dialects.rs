//! Input that no vendor could make sense of, where the request has to be converted: a clear 400 in
//! the client's dialect that names the field, and nothing goes upstream, not even a half of it.

use serde_json::{Value, json};
use tidegate_fakes::fake::{FakeServer, Step};
use tidegate_testkit::{gate::Gate, http::Answer};

use crate::bed::{always, good, hits};

const CHAT: &str = "/v1/chat/completions";
const MESSAGES: &str = "/v1/messages";
const RESPONSES: &str = "/v1/responses";
const GEMINI: &str = "/v1beta/models/r:generateContent";

/// A gateway whose only target speaks another dialect than clients of this path.
fn stranger(path: &str, fake: &FakeServer) -> Gate {
    let (api, base, more) = match path {
        CHAT | RESPONSES => ("anthropic", "", ""),
        MESSAGES => ("openai", "/v1", ", serves: [responses]"),
        _ => ("openai", "/v1", ", serves: [chat]"),
    };
    Gate::start(
        &format!(
            "listen: 127.0.0.1:0\nadmin: {{listen: '127.0.0.1:0'}}\n\
             health: {{probe: {{every: 0s}}}}\nlimits: {{body: 4MiB}}\n\
             providers:\n  a: {{api: {api}, url: '{}{base}'{more}}}\n\
             routes:\n  r: {{tiers: [[a/m]]}}\n",
            fake.url()
        ),
        &[],
    )
}

/// Checks the shape of an error in a path's dialect and gives its message.
fn message(path: &str, answer: &Answer, status: u16) -> String {
    let body = answer.json();
    assert_eq!(answer.status, status, "{path}: {}", answer.text());
    match path {
        MESSAGES => {
            assert_eq!(body["type"], "error", "{body}");
            assert!(body["error"]["type"].is_string(), "{body}");
        }
        GEMINI => assert_eq!(body["error"]["code"], status, "{body}"),
        _ => assert!(body["error"]["code"].is_string(), "{body}"),
    }
    body["error"]["message"].as_str().unwrap_or_default().to_owned()
}

/// A request that is refused with a 400 whose message contains this.
fn check(path: &str, body: &Value, wanted: &str) {
    let fake = good();
    let gate = stranger(path, &fake);
    let said = message(path, &gate.post(path, &body.to_string()), 400);
    assert!(said.contains(wanted), "{path}: wanted `{wanted}`, got: {said}");
    assert_eq!(hits(&fake), 0, "{path}: {wanted}");
}

fn chat(messages: Value) -> Value {
    json!({"model": "r", "messages": messages})
}

#[test]
fn arguments_of_a_call_that_are_no_json_are_refused() {
    let call = json!({"id": "c", "type": "function",
        "function": {"name": "f", "arguments": "{\"a\": "}});
    let messages = json!([{"role": "user", "content": "hi"},
        {"role": "assistant", "content": null, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "x"}]);
    check(CHAT, &chat(messages), "arguments");
    let input = json!([{"role": "user", "content": "hi"},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "no json"},
        {"type": "function_call_output", "call_id": "c", "output": "x"}]);
    check(RESPONSES, &json!({"model": "r", "input": input}), "arguments");
}

#[test]
fn unknown_roles_are_refused_by_name() {
    check(CHAT, &chat(json!([{"role": "wizard", "content": "hi"}])), "messages[0].role");
    let body = json!({"model": "r", "max_tokens": 9,
        "messages": [{"role": "wizard", "content": "hi"}]});
    check(MESSAGES, &body, "messages[0].role");
    let body = json!({"model": "r", "input": [{"role": "wizard", "content": "hi"}]});
    check(RESPONSES, &body, "role");
    let body = json!({"contents": [{"role": "wizard", "parts": [{"text": "hi"}]}]});
    check(GEMINI, &body, "role");
}

#[test]
fn fields_of_another_dialect_are_refused_by_name() {
    let mut body = chat(json!([{"role": "user", "content": "hi"}]));
    body["max_output_tokens"] = json!(5);
    check(CHAT, &body, "`max_output_tokens` is a field of Responses");
    let body = json!({"model": "r", "max_tokens": 9, "input": "hi",
        "messages": [{"role": "user", "content": "hi"}]});
    check(MESSAGES, &body, "input");
    let body = json!({"model": "r", "input": "hi", "messages": []});
    check(RESPONSES, &body, "messages");
    let body = json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}], "messages": []});
    check(GEMINI, &body, "messages");
}

#[test]
fn ten_thousand_tools_are_refused() {
    let many = |tool: Value| Value::Array(vec![tool; 10_000]);
    let mut body = chat(json!([{"role": "user", "content": "hi"}]));
    body["tools"] = many(json!({"type": "function", "function": {"name": "f"}}));
    check(CHAT, &body, "tools");
    let mut body =
        json!({"model": "r", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]});
    body["tools"] = many(json!({"name": "f", "input_schema": {"type": "object"}}));
    check(MESSAGES, &body, "tools");
    let body = json!({"model": "r", "input": "hi",
        "tools": many(json!({"type": "function", "name": "f"}))});
    check(RESPONSES, &body, "tools");
    let tools = json!([{"functionDeclarations": many(json!({"name": "f"}))}]);
    let body = json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}], "tools": tools});
    check(GEMINI, &body, "tools");
}

#[test]
fn a_schema_deeper_than_json_may_be_is_refused() {
    let deep = |depth: usize| {
        let open = r#"{"type":"object","properties":{"a":"#.repeat(depth);
        let close = "}}".repeat(depth);
        format!("{open}{{}}{close}")
    };
    let hi = json!([{"role": "user", "content": "hi"}]);
    let parts = json!([{"role": "user", "parts": [{"text": "hi"}]}]);
    let bodies = [
        (
            CHAT,
            json!({"model": "r", "messages": hi,
                "tools": [{"type": "function", "function": {"name": "f", "parameters": "DEEP"}}]}),
        ),
        (
            MESSAGES,
            json!({"model": "r", "max_tokens": 9, "messages": hi,
                "tools": [{"name": "f", "input_schema": "DEEP"}]}),
        ),
        (
            RESPONSES,
            json!({"model": "r", "input": "hi",
                "tools": [{"type": "function", "name": "f", "parameters": "DEEP"}]}),
        ),
        (
            GEMINI,
            json!({"contents": parts,
                "tools": [{"functionDeclarations": [{"name": "f", "parameters": "DEEP"}]}]}),
        ),
    ];
    for (path, body) in bodies {
        let fake = good();
        let gate = stranger(path, &fake);
        let answer = gate.post(path, &body.to_string().replace("\"DEEP\"", &deep(100)));
        let said = message(path, &answer, 400);
        assert!(said.contains("128 levels of nesting"), "{path}: {said}");
        assert_eq!(hits(&fake), 0, "{path}");
        let answer = gate.post(path, &body.to_string().replace("\"DEEP\"", &deep(20)));
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    }
}

/// A request with one image of so many letters of base64.
fn with_image(path: &str, length: usize) -> Value {
    let data = "A".repeat(length);
    let url = format!("data:image/png;base64,{data}");
    match path {
        CHAT => {
            let image = json!([{"type": "image_url", "image_url": {"url": url}}]);
            chat(json!([{"role": "user", "content": image}]))
        }
        MESSAGES => {
            let source = json!({"type": "base64", "media_type": "image/png", "data": data});
            let block = json!([{"type": "image", "source": source}]);
            json!({"model": "r", "max_tokens": 9, "messages": [{"role": "user", "content": block}]})
        }
        RESPONSES => {
            let image = json!([{"type": "input_image", "image_url": url}]);
            json!({"model": "r", "input": [{"role": "user", "content": image}]})
        }
        _ => {
            let part = json!({"inlineData": {"mimeType": "image/png", "data": data}});
            json!({"contents": [{"role": "user", "parts": [part]}]})
        }
    }
}

#[test]
fn an_image_that_is_larger_than_a_body_may_be_is_refused_with_the_limit_the_setting_and_the_size() {
    for path in [CHAT, MESSAGES, RESPONSES, GEMINI] {
        let fake = good();
        let gate = stranger(path, &fake);
        let body = with_image(path, 5 * 1024 * 1024).to_string();
        let answer = gate.post(path, &body);
        let said = message(path, &answer, 413);
        for wanted in ["4194304 bytes", "`limits.body: 4MiB`", &format!("{} bytes", body.len())] {
            assert!(said.contains(wanted), "{path}: wanted `{wanted}`, got: {said}");
        }
        let error = &answer.json()["error"];
        match path {
            MESSAGES => assert_eq!(error["type"], "request_too_large"),
            GEMINI => assert_eq!(error["status"], "INVALID_ARGUMENT"),
            _ => assert_eq!(
                (error["type"].as_str(), error["code"].as_str()),
                (Some("invalid_request_error"), Some("request_too_large"))
            ),
        }
        assert_eq!(hits(&fake), 0, "{path}");
    }
}

/// What Anthropic says of an image that is within our limit and above its own.
fn large_image() -> Step {
    let message = "messages.0.content.0.image.source.base64: image exceeds 5 MB maximum: 8259148 \
        bytes > 5242880 bytes";
    let error = json!({"type": "invalid_request_error", "message": message});
    let text = json!({"type": "error", "error": error}).to_string();
    Step { text: Some(text), ..Step::status(400) }
}

#[test]
fn an_image_that_a_vendor_finds_too_large_is_offered_to_the_next_one() {
    for path in [CHAT, MESSAGES, RESPONSES, GEMINI] {
        let (small, large) = (always(large_image()), good());
        let providers = format!(
            "providers:\n  a: {{api: anthropic, url: '{}'}}\n  b: {{api: openai, url: '{}/v1'}}\n",
            small.url(),
            large.url()
        );
        let top = "listen: 127.0.0.1:0\nadmin: {listen: '127.0.0.1:0'}\n\
            health: {probe: {every: 0s}}\n";
        let both = format!("{top}{providers}routes:\n  r: {{tiers: [[a/m], [b/m]]}}\n");
        let gate = Gate::start(&both, &[]);
        let body = with_image(path, 1024).to_string();
        for _ in 0..5 {
            let answer = gate.post(path, &body);
            assert_eq!(answer.status, 200, "{path}: {}", answer.text());
            assert_eq!(answer.header("x-tidegate-resolved"), Some("b/m"), "{path}");
        }
        assert_eq!(hits(&small), 5, "{path}: it is no failure of the provider's, so it stays");
        let alone = format!("{top}{providers}routes:\n  r: {{tiers: [[a/m]]}}\n");
        let gate = Gate::start(&alone, &[]);
        let answer = gate.post(path, &body);
        assert_eq!(answer.status, 400, "{path}");
        let error = answer.json()["error"].clone();
        let said = error["message"].as_str().unwrap_or_default();
        assert!(said.contains("image exceeds 5 MB maximum"), "{path}: {error}");
        match path {
            GEMINI => assert_eq!(error["status"], "INVALID_ARGUMENT"),
            _ => assert_eq!(error["type"], "invalid_request_error", "{path}"),
        }
    }
}

#[test]
fn an_image_without_bytes_or_with_a_bad_address_is_refused() {
    let image = json!([{"type": "image_url", "image_url": {"url": "data:image/png,plain"}}]);
    check(CHAT, &chat(json!([{"role": "user", "content": image}])), "image_url");
    let block = json!([{"type": "image", "source": {"type": "base64", "data": 7}}]);
    let body =
        json!({"model": "r", "max_tokens": 9, "messages": [{"role": "user", "content": block}]});
    check(MESSAGES, &body, "source");
}

#[test]
fn a_conversation_in_which_nobody_says_anything_is_refused() {
    check(CHAT, &chat(json!([{"role": "user", "content": []}])), "`messages` says nothing");
    let body = json!({"model": "r", "max_tokens": 9, "messages": [
        {"role": "user", "content": []}]});
    check(MESSAGES, &body, "`messages` says nothing");
    check(RESPONSES, &json!({"model": "r", "input": []}), "`input` says nothing");
    for contents in [json!([]), json!([{"role": "user", "parts": []}])] {
        check(GEMINI, &json!({"contents": contents}), "`contents` says nothing");
    }
}

#[test]
fn an_answer_that_no_text_model_gives_is_refused() {
    let body = json!({"contents": [{"parts": [{"text": "hi"}]}],
        "generationConfig": {"responseModalities": ["TEXT", "IMAGE"]}});
    check(GEMINI, &body, "an answer other than text");
    let mut body = chat(json!([{"role": "user", "content": "hi"}]));
    body["audio"] = json!({"voice": "alloy", "format": "wav"});
    check(CHAT, &body, "audio");
}
