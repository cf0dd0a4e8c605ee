//! What whole answers and errors say in the other dialect.

use serde_json::{Value, json};
use tidegate_wire::convert::fault::ReplyFault;

use super::{CHAT, MESSAGES, context, pair, parse};

fn to_chat(answer: &Value) -> Value {
    let answer = answer.to_string();
    parse(&pair(CHAT, MESSAGES).reply(answer.as_bytes(), &context()).expect("it can be read"))
}

fn to_messages(answer: &Value) -> Value {
    let answer = answer.to_string();
    parse(&pair(MESSAGES, CHAT).reply(answer.as_bytes(), &context()).expect("it can be read"))
}

#[test]
fn a_messages_answer_becomes_a_chat_completion() {
    let answer = to_chat(&json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude",
        "content": [
            { "type": "thinking", "thinking": "Hm.", "signature": "sig" },
            { "type": "text", "text": "Look: " }, { "type": "text", "text": "there." },
            { "type": "tool_use", "id": "t1", "name": "f", "input": { "a": { "b": 1 } } },
            { "type": "tool_use", "id": "t2", "name": "g", "input": {} },
        ],
        "stop_reason": "tool_use", "stop_sequence": null,
        "usage": { "input_tokens": 10, "cache_read_input_tokens": 5,
                   "cache_creation_input_tokens": 2, "output_tokens": 4 },
    }));
    assert_eq!(answer["id"], "msg_1");
    assert_eq!(answer["object"], "chat.completion");
    assert_eq!(answer["created"], 7);
    let message = &answer["choices"][0]["message"];
    assert_eq!(message["content"], "Look: there.");
    assert_eq!(message["reasoning_content"], "Hm.");
    assert_eq!(message["tool_calls"][0]["id"], "t1");
    assert_eq!(message["tool_calls"][0]["function"]["arguments"], "{\"a\":{\"b\":1}}");
    assert_eq!(message["tool_calls"][1]["function"]["arguments"], "{}");
    assert_eq!(answer["choices"][0]["finish_reason"], "tool_calls");
    assert_eq!(answer["usage"]["prompt_tokens"], 17);
    assert_eq!(answer["usage"]["total_tokens"], 21);
    assert_eq!(answer["usage"]["prompt_tokens_details"]["cached_tokens"], 5);
}

#[test]
fn a_chat_completion_becomes_a_messages_answer() {
    let answer = to_messages(&json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt",
        "choices": [{ "index": 0, "finish_reason": "tool_calls", "message": {
            "role": "assistant", "content": "Yes.", "reasoning_content": "Hm.",
            "tool_calls": [{ "id": "c1", "type": "function",
                "function": { "name": "f", "arguments": "{\"a\":[1,2]}" } }] } }],
        "usage": { "prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12,
            "prompt_tokens_details": { "cached_tokens": 4 },
            "completion_tokens_details": { "reasoning_tokens": 2 } },
    }));
    assert_eq!(answer["type"], "message");
    assert_eq!(answer["content"][0]["thinking"], "Hm.");
    assert_eq!(answer["content"][0]["signature"], "tidegate:none");
    assert_eq!(answer["content"][1], json!({ "type": "text", "text": "Yes." }));
    assert_eq!(
        answer["content"][2],
        json!({ "type": "tool_use", "id": "c1", "name": "f", "input": { "a": [1, 2] } })
    );
    assert_eq!(answer["stop_reason"], "tool_use");
    assert_eq!(answer["usage"]["input_tokens"], 5);
    assert_eq!(answer["usage"]["cache_read_input_tokens"], 4);
    assert_eq!(answer["usage"]["output_tokens"], 3);
}

#[test]
fn stop_reasons_cross_in_both_directions() {
    let cases = [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("tool_use", "tool_calls"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "content_filter"),
    ];
    for (reason, expected) in cases {
        let answer = to_chat(&json!({ "content": [], "stop_reason": reason }));
        assert_eq!(answer["choices"][0]["finish_reason"], expected, "{reason}");
    }
    let cases = [
        ("stop", "end_turn"),
        ("length", "max_tokens"),
        ("content_filter", "refusal"),
        ("tool_calls", "tool_use"),
    ];
    for (reason, expected) in cases {
        let message = json!({ "role": "assistant", "content": "a" });
        let answer =
            to_messages(&json!({ "choices": [{ "message": message, "finish_reason": reason }] }));
        assert_eq!(answer["stop_reason"], expected, "{reason}");
    }
    let refused = json!({ "role": "assistant", "content": null, "refusal": "No." });
    let answer =
        to_messages(&json!({ "choices": [{ "message": refused, "finish_reason": "stop" }] }));
    assert_eq!(answer["stop_reason"], "refusal");
    assert_eq!(answer["content"][0]["text"], "No.");
}

#[test]
fn an_answer_that_cannot_be_said_is_the_targets_fault() {
    let read = |body: &str| pair(MESSAGES, CHAT).reply(body.as_bytes(), &context());
    assert_eq!(read("<html>"), Err(ReplyFault::NotJson));
    assert!(read("{}").is_err());
    let call = json!({ "id": "c", "function": { "name": "f", "arguments": "{\"a\"" } });
    let message = json!({ "message": { "tool_calls": [call] } });
    assert!(read(&json!({ "choices": [message] }).to_string()).is_err());
}

#[test]
fn errors_keep_their_meaning() {
    let error = |status: u16, body: Value| {
        parse(&pair(CHAT, MESSAGES).error(status, body.to_string().as_bytes()))
    };
    let overloaded = json!({ "type": "error",
        "error": { "type": "overloaded_error", "message": "Overloaded" } });
    let written = error(529, overloaded);
    assert_eq!(written["error"]["message"], "Overloaded");
    assert_eq!(written["error"]["type"], "server_error");
    let back =
        |status: u16, body: &str| parse(&pair(MESSAGES, CHAT).error(status, body.as_bytes()));
    let limited = r#"{"error":{"message":"slow","type":"requests","code":"rate_limit_exceeded"}}"#;
    let written = back(429, limited);
    assert_eq!(written["type"], "error");
    assert_eq!(written["error"], json!({ "type": "rate_limit_error", "message": "slow" }));
    assert_eq!(back(401, "nope")["error"]["type"], "authentication_error");
    assert_eq!(back(401, "nope")["error"]["message"], "nope");
    let plain = back(502, "");
    assert_eq!(plain["error"]["message"], "the provider answered with status 502");
}
