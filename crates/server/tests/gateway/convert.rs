//! Requests that a provider of another dialect serves: what it gets, and what the client gets back.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_fakes::fake::{Act, FakeServer, Step};
use tidegate_testkit::{
    gate::{Gate, chat},
    http::Client,
};

use crate::bed::{always, good, hits};
use crate::upstream::Raw;

const CHAT: &str = "/v1/chat/completions";
const MESSAGES: &str = "/v1/messages";

/// Providers `a`, `b` … of these apis, each in a tier of its own, with a key.
fn gate(providers: &[(&str, String)]) -> Gate {
    let line = |((api, url), name): (&(&str, String), char)| {
        let base = if *api == "openai" { "/v1" } else { "" };
        format!("  {name}: {{api: {api}, url: '{url}{base}', key: 'env:KEY'}}\n")
    };
    let lines: String = providers.iter().zip('a'..='z').map(line).collect();
    let tiers: Vec<String> =
        ('a'..='z').take(providers.len()).map(|name| format!("[{name}/m]")).collect();
    let yaml = format!(
        "listen: 127.0.0.1:0\nadmin: {{listen: '127.0.0.1:0'}}\nhealth: {{probe: {{every: 0s}}}}\n\
         providers:\n{lines}routes:\n  r: {{tiers: [{}]}}\n",
        tiers.join(", ")
    );
    Gate::start(&yaml, &[("KEY", "sk-upstream")])
}

fn of(fake: &FakeServer, api: &'static str) -> (&'static str, String) {
    (api, fake.url())
}

fn messages(is_stream: bool) -> String {
    let content = json!([{ "role": "user", "content": "good morning" }]);
    json!({ "model": "r", "max_tokens": 50, "stream": is_stream, "messages": content }).to_string()
}

#[test]
fn a_chat_fails_over_to_anthropic() {
    for is_stream in [false, true] {
        let (bad, spare) = (always(Step::status(500)), good());
        let gate = gate(&[of(&bad, "openai"), of(&spare, "anthropic")]);
        let headers = "openai-beta: x\r\nauthorization: Bearer client\r\n";
        let answer = gate.post_with(CHAT, headers, &chat("r", is_stream));
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.header("x-tidegate-resolved"), Some("b/m"));
        assert_eq!(answer.header("x-tidegate-converted"), Some("openai-chat>anthropic"));
        if is_stream {
            assert!(answer.is_whole_stream(), "{}", answer.text());
            assert!(answer.tokens() > 0, "{}", answer.text());
            assert!(!answer.text().contains("message_start"), "{}", answer.text());
        } else {
            let body = answer.json();
            assert_eq!(body["object"], "chat.completion", "{body}");
            assert!(body["choices"][0]["message"]["content"].is_string(), "{body}");
            assert!(body["usage"]["total_tokens"].is_u64(), "{body}");
        }
        let call = spare.calls().remove(0);
        assert_eq!(call.path, MESSAGES);
        assert_eq!(call.header("x-api-key"), Some("sk-upstream"));
        assert_eq!(call.header("anthropic-version"), Some("2023-06-01"));
        assert_eq!((call.header("openai-beta"), call.header("authorization")), (None, None));
        let sent: Value = serde_json::from_str(&call.text()).expect("JSON");
        assert_eq!(sent["model"], "m");
        assert!(sent["max_tokens"].is_u64(), "{sent}");
    }
}

#[test]
fn a_message_fails_over_to_openai() {
    for is_stream in [false, true] {
        let (bad, spare) = (always(Step::of(Act::Close)), good());
        let gate = gate(&[of(&bad, "anthropic"), of(&spare, "openai")]);
        let headers = "anthropic-beta: x\r\nanthropic-version: 2023-06-01\r\n";
        let answer =
            gate.post_with(&format!("{MESSAGES}?beta=true"), headers, &messages(is_stream));
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.header("x-tidegate-converted"), Some("anthropic>openai-chat"));
        if is_stream {
            let text = answer.text();
            assert!(text.starts_with("event: message_start"), "{text}");
            assert_eq!(text.matches("event: message_stop").count(), 1, "{text}");
            assert!(text.contains("text_delta") && !text.contains("[DONE]"), "{text}");
        } else {
            assert_eq!(answer.json()["type"], "message", "{}", answer.text());
            assert_eq!(answer.json()["stop_reason"], "end_turn");
        }
        let call = spare.calls().remove(0);
        assert_eq!(call.path, CHAT, "without the client's query");
        assert_eq!(call.header("authorization"), Some("Bearer sk-upstream"));
        assert_eq!((call.header("anthropic-version"), call.header("anthropic-beta")), (None, None));
    }
}

#[test]
fn the_same_dialect_is_not_converted() {
    let fake = good();
    let gate = gate(&[of(&fake, "openai"), of(&fake, "anthropic")]);
    let body = "{ \"model\" : \"r\",\"messages\":[],\"x\":1.50 }";
    let answer = gate.post(CHAT, body);
    assert_eq!(answer.header("x-tidegate-converted"), None);
    assert_eq!(fake.calls().remove(0).text(), body.replace("\"r\"", "\"m\""));
}

const TOOL_STREAM: &str = concat!(
    "data: {\"id\":\"c1\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":",
    "\"assistant\",\"content\":\"Look.\"}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"t0\",",
    "\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,",
    "\"function\":{\"arguments\":\"1}\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":5}}\n\n",
    "data: [DONE]\n\n",
);

/// One that answers with these bytes as a stream, cut at a place.
fn raw(stream: &str, cut: usize) -> Raw {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let (left, right) = stream.as_bytes().split_at(cut);
    Raw::start(vec![head.as_bytes().to_vec(), left.to_vec(), right.to_vec()])
}

#[test]
fn tool_calls_stream_into_the_other_dialect() {
    for cut in [5, 150, 300, TOOL_STREAM.len() - 3] {
        let upstream = raw(TOOL_STREAM, cut);
        let gate = gate(&[("openai", upstream.url())]);
        let tools = json!([{ "name": "f", "input_schema": { "type": "object" } }]);
        let mut request: Value = serde_json::from_str(&messages(true)).expect("JSON");
        request["tools"] = tools;
        let text = gate.post(MESSAGES, &request.to_string()).text();
        let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
        let events: Vec<Value> =
            data.map(|data| serde_json::from_str(data).expect("JSON")).collect();
        let arguments: String =
            events.iter().filter_map(|event| event["delta"]["partial_json"].as_str()).collect();
        assert_eq!(arguments, "{\"a\":1}", "cut at {cut}: {text}");
        let last = &events[events.len() - 2];
        assert_eq!(last["delta"]["stop_reason"], "tool_use", "{text}");
        assert_eq!(last["usage"]["output_tokens"], 5, "{text}");
        assert_eq!(text.matches("event: message_stop").count(), 1, "{text}");
    }
}

#[test]
fn a_stream_that_breaks_is_an_error_in_the_clients_dialect() {
    for act in [Act::Cut, Act::Truncate, Act::ErrorEvent, Act::Malformed] {
        let step = Step::after(act, 3).with_tokens(9, Duration::ZERO);
        let fake = always(step.clone());
        let answer = gate(&[of(&fake, "anthropic")]).stream();
        assert_eq!((answer.status, answer.tokens()), (200, 3), "{act:?}: {}", answer.text());
        assert!(answer.has_error_event(), "{act:?}: {}", answer.text());
        assert!(!answer.text().contains("[DONE]"), "{act:?}: {}", answer.text());
        let fake = always(step);
        let text = gate(&[of(&fake, "openai")]).post(MESSAGES, &messages(true)).text();
        assert_eq!(text.matches("event: error").count(), 1, "{act:?}: {text}");
        assert!(!text.contains("message_stop"), "{act:?}: {text}");
    }
}

#[test]
fn what_goes_wrong_before_the_first_content_is_a_failover() {
    for act in [Act::Truncate, Act::ErrorEvent, Act::Malformed, Act::ErrorBody] {
        for is_stream in [false, true] {
            let (bad, spare) = (always(Step::after(act, 0)), good());
            let gate = gate(&[of(&bad, "anthropic"), of(&spare, "openai")]);
            let answer = gate.post(CHAT, &chat("r", is_stream));
            assert_eq!(answer.status, 200, "{act:?} {is_stream}: {}", answer.text());
            assert_eq!(answer.header("x-tidegate-resolved"), Some("b/m"), "{act:?} {is_stream}");
            assert_eq!(answer.header("x-tidegate-converted"), None, "{act:?} {is_stream}");
        }
    }
}

#[test]
fn an_error_keeps_its_status_and_gets_the_clients_shape() {
    for status in [400, 429, 529] {
        let fake = always(Step::status(status));
        let answer = gate(&[of(&fake, "anthropic")]).chat();
        assert_eq!(answer.status, status, "{}", answer.text());
        let body = answer.json();
        assert!(body["error"]["message"].is_string() && body.get("type").is_none(), "{body}");
        assert_eq!(answer.header("x-tidegate-converted"), Some("openai-chat>anthropic"));
        let answer = gate(&[of(&fake, "openai")]).post(MESSAGES, &messages(false));
        assert_eq!(answer.status, status, "{}", answer.text());
        assert_eq!(answer.json()["type"], "error", "{}", answer.text());
    }
}

#[test]
fn what_cannot_be_converted_goes_to_a_target_that_takes_it_or_is_refused_by_name() {
    let mut request: Value = serde_json::from_str(&chat("r", false)).expect("JSON");
    request["n"] = json!(2);
    let (first, second) = (good(), good());
    let mixed = gate(&[of(&first, "anthropic"), of(&second, "openai")]);
    let answer = mixed.post(CHAT, &request.to_string());
    assert_eq!(answer.header("x-tidegate-resolved"), Some("b/m"), "{}", answer.text());
    assert_eq!((hits(&first), hits(&second)), (0, 1));
    assert_eq!(answer.header("x-tidegate-attempts"), Some("1"), "nothing was sent to the first");
    let alone = gate(&[of(&first, "anthropic")]);
    let answer = alone.post(CHAT, &request.to_string());
    assert_eq!(answer.status, 400, "{}", answer.text());
    assert_eq!(answer.json()["error"]["code"], "missing_ability", "{}", answer.text());
    assert!(answer.text().contains("more than one choice"), "{}", answer.text());
    assert_eq!(hits(&first), 0);
}

#[test]
fn thinking_from_elsewhere_does_not_reach_a_provider_that_would_refuse_it() {
    let fake = good();
    let request = json!({ "model": "r", "max_tokens": 5, "messages": [
        { "role": "user", "content": "Hi" },
        { "role": "assistant", "content": [
            { "type": "thinking", "thinking": "Hm.", "signature": "tidegate:none" },
            { "type": "text", "text": "Hello." } ] },
        { "role": "user", "content": "Go on." } ] });
    let answer = gate(&[of(&fake, "anthropic")]).post(MESSAGES, &request.to_string());
    assert_eq!(answer.status, 200, "{}", answer.text());
    let sent: Value = serde_json::from_str(&fake.calls().remove(0).text()).expect("JSON");
    assert_eq!(sent["model"], "m");
    assert_eq!(sent["messages"][1]["content"], json!([{ "type": "text", "text": "Hello." }]));
}

#[test]
fn fields_that_do_not_cross_are_named() {
    let fake = good();
    let mut request: Value = serde_json::from_str(&chat("r", false)).expect("JSON");
    request["logit_bias"] = json!({ "50256": -100 });
    request["max_tokens"] = json!(5);
    let answer = gate(&[of(&fake, "anthropic")]).post(CHAT, &request.to_string());
    assert_eq!(answer.header("x-tidegate-lost"), Some("logit_bias"), "{}", answer.text());
}

/// What predicts a route and what serves it are one function.
#[test]
fn explain_calls_a_target_able_only_if_it_serves_the_request() {
    for api in ["openai", "anthropic"] {
        let fake = good();
        let gate = gate(&[of(&fake, api)]);
        for path in [CHAT, MESSAGES, "/v1/messages/count_tokens", "/v1/embeddings"] {
            let question = json!({ "model": "r", "path": path }).to_string();
            let mut client = Client::connect(gate.server.admin_address());
            let explained = client.post("/api/explain", &question).text();
            let is_able = !explained.contains("\"lacks\"");
            let status = gate.post(path, &messages(false)).status;
            assert_eq!(is_able, status != 400, "{api} {path}: {status} {explained}");
        }
    }
}
