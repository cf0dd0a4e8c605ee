//! Every dialect: the right lifecycle, the right terminator, the answer in between.

use serde_json::{Value, json};
use tidegate_fakes::fake::{FakeServer, Script};

use crate::client::{Answer, End, ask, post};

const TOOLS: &str = "please use the tool";

fn body(path: &str, text: &str, is_stream: bool) -> Value {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    let messages = json!([{"role": "user", "content": text}]);
    let mut body = match path {
        "/v1/responses" => json!({"input": text, "tools": [
            {"type": "function", "name": "weather", "parameters": schema}]}),
        "/v1/messages" => json!({"messages": messages, "max_tokens": 9, "tools": [
            {"name": "weather", "input_schema": schema}]}),
        "/v1/completions" => json!({"prompt": text}),
        _ => json!({"messages": messages, "tools": [
            {"type": "function", "function": {"name": "weather", "parameters": schema}}]}),
    };
    body["model"] = json!("m1");
    body["stream"] = json!(is_stream);
    body
}

fn answered(path: &str, body: &Value) -> Answer {
    let server = FakeServer::start(Script::default().named("ebb"));
    let answer = post(server.address(), path, &body.to_string()).expect("an answer");
    assert_eq!((answer.status, answer.end), (200, End::Whole), "{path}");
    answer
}

fn stream(path: &str, text: &str) -> Answer {
    let answer = answered(path, &body(path, text, true));
    assert_eq!(answer.header("content-type"), Some("text/event-stream; charset=utf-8"));
    answer
}

/// All text that the events carry at this place.
fn joined(answer: &Answer, at: &str) -> String {
    let values = answer.events().into_iter().filter_map(|it| serde_json::from_str(it).ok());
    let texts = values.filter_map(|value: Value| Some(value.pointer(at)?.as_str()?.to_owned()));
    texts.collect()
}

const SAID: &str = "ebb as m1 heard: good morning";
const ARGUMENTS: &str = r#"{"city":"high tide"}"#;

#[test]
fn a_gemini_stream_has_text_reason_and_usage_in_its_last_chunk() {
    let text = "please use the tool";
    let contents = json!([{"role": "user", "parts": [{"text": "good morning"}]}]);
    let path = "/v1beta/models/m1:streamGenerateContent?alt=sse";
    let answer = answered(path, &json!({ "contents": contents }));
    assert_eq!(joined(&answer, "/candidates/0/content/parts/0/text"), SAID);
    assert_eq!(joined(&answer, "/candidates/0/finishReason"), "STOP");
    let last: Value = serde_json::from_str(answer.events().last().expect("events")).expect("JSON");
    assert_eq!(last["usageMetadata"]["candidatesTokenCount"], 6);
    let schema = json!({"type": "OBJECT", "properties": {"city": {"type": "STRING"}}});
    let tools = json!([{"functionDeclarations": [{"name": "weather", "parameters": schema}]}]);
    let contents = json!([{"role": "user", "parts": [{ "text": text }]}]);
    let body = json!({"contents": contents, "tools": tools});
    let whole = answered("/v1beta/models/m1:generateContent", &body);
    let value: Value = serde_json::from_str(&whole.body).expect("JSON");
    let call = &value["candidates"][0]["content"]["parts"][0]["functionCall"];
    assert_eq!((&call["name"], &call["args"]), (&json!("weather"), &json!({"city": "high tide"})));
}

#[test]
fn a_chat_stream_has_role_content_reason_and_done() {
    let answer = stream("/v1/chat/completions", "good morning");
    assert_eq!(joined(&answer, "/choices/0/delta/content"), SAID);
    assert_eq!(joined(&answer, "/choices/0/delta/role"), "assistant");
    assert_eq!(joined(&answer, "/choices/0/finish_reason"), "stop");
    assert_eq!(answer.events().last(), Some(&"[DONE]"));
    assert!(!answer.body.contains("usage"), "nobody asked for it");
}

#[test]
fn a_chat_stream_reports_usage_when_asked() {
    let mut body = body("/v1/chat/completions", "good morning", true);
    body["stream_options"] = json!({"include_usage": true});
    let answer = answered("/v1/chat/completions", &body);
    let events = answer.events();
    let last: Value = serde_json::from_str(events[events.len() - 2]).expect("JSON");
    assert_eq!(last["choices"], json!([]));
    assert_eq!(last["usage"]["completion_tokens"], 6);
    assert_eq!(events.last(), Some(&"[DONE]"));
}

#[test]
fn a_completions_stream_ends_with_done() {
    let answer = stream("/v1/completions", "good morning");
    assert_eq!(joined(&answer, "/choices/0/text"), SAID);
    assert_eq!(answer.events().last(), Some(&"[DONE]"));
}

#[test]
fn a_messages_stream_has_the_lifecycle_of_its_dialect() {
    let answer = stream("/v1/messages", "good morning");
    let types = answer.types();
    assert_eq!(types[..3], ["message_start", "content_block_start", "ping"]);
    assert!(types[3..types.len() - 3].iter().all(|it| it == "content_block_delta"));
    let end = ["content_block_stop", "message_delta", "message_stop"];
    assert_eq!(types[types.len() - 3..], end);
    assert_eq!(joined(&answer, "/delta/text"), SAID);
    assert!(answer.body.starts_with("event: message_start\ndata: {"));
}

#[test]
fn a_responses_stream_numbers_its_events_without_a_gap() {
    let answer = stream("/v1/responses", "good morning");
    assert_eq!(joined(&answer, "/delta"), SAID);
    let types = answer.types();
    assert_eq!(types.first().map(String::as_str), Some("response.created"));
    assert_eq!(types.last().map(String::as_str), Some("response.completed"));
    for (index, data) in answer.events().into_iter().enumerate() {
        let value: Value = serde_json::from_str(data).expect("JSON");
        assert_eq!(value["sequence_number"], index);
    }
}

#[test]
fn a_tool_is_called_in_every_dialect_streaming_and_not() {
    let cases = [
        ("/v1/chat/completions", "/choices/0/delta/tool_calls/0/function/arguments"),
        ("/v1/messages", "/delta/partial_json"),
        ("/v1/responses", "/delta"),
    ];
    for (path, at) in cases {
        assert_eq!(joined(&stream(path, TOOLS), at), ARGUMENTS, "{path}");
    }
    let cases = [
        ("/v1/chat/completions", "/choices/0/message/tool_calls/0/function/name"),
        ("/v1/messages", "/content/0/name"),
        ("/v1/responses", "/output/0/name"),
    ];
    for (path, at) in cases {
        let value = answered(path, &body(path, TOOLS, false)).json();
        assert_eq!(value.pointer(at), Some(&json!("weather")), "{path}");
    }
}

#[test]
fn a_whole_answer_has_text_and_usage() {
    let cases = [
        ("/v1/chat/completions", "/choices/0/message/content", "/usage/total_tokens"),
        ("/v1/completions", "/choices/0/text", "/usage/total_tokens"),
        ("/v1/responses", "/output/0/content/0/text", "/usage/output_tokens"),
        ("/v1/messages", "/content/0/text", "/usage/output_tokens"),
    ];
    for (path, text, usage) in cases {
        let value = answered(path, &body(path, "good morning", false)).json();
        assert_eq!(value.pointer(text), Some(&json!(SAID)), "{path}");
        assert!(value.pointer(usage).and_then(Value::as_u64) > Some(5), "{path}");
        assert_eq!(value["model"], "m1", "{path}");
    }
}

#[test]
fn tokens_are_counted_texts_embedded_and_anything_else_answered() {
    let count = answered("/v1/messages/count_tokens", &body("/v1/messages", "hello", false));
    assert!(count.json()["input_tokens"].as_u64() > Some(1));
    let input = json!({"model": "m1", "input": ["a", "b"], "encoding_format": "base64"});
    let embedded = answered("/v1/embeddings", &input).json();
    assert_eq!(embedded["data"][1]["embedding"], "AAAAPwAAgL4AAAA+AACAPw==");
    let other = answered("/v1/moderations", &json!({"model": "m1", "input": "hello"})).json();
    assert_eq!(other["text"], "ebb as m1 heard: hello");
}

#[test]
fn models_are_listed_in_the_shape_of_the_client() {
    let server = FakeServer::start(Script::default());
    let list = |headers, path| ask(server.address(), "GET", path, headers, "").expect("an answer");
    let openai = list("", "/v1/models").json();
    assert_eq!(openai["data"][0]["object"], "model");
    let anthropic = list("anthropic-version: 2023-06-01\r\n", "/v1/models").json();
    assert_eq!(
        (&anthropic["data"][0]["type"], &anthropic["has_more"]),
        (&json!("model"), &json!(false))
    );
    assert_eq!(list("", "/v1/models/fake-small").json()["id"], "fake-small");
    assert_eq!(list("", "/nothing/here").status, 404);
}
