//! What holds for every request, stream and cut.

use proptest::prelude::*;
use serde_json::{Value, json};
use tidegate_wire::convert::target::TargetProfile;

use super::streams::{CHAT_STREAM, MESSAGES_STREAM, run};
use super::{CHAT, MESSAGES, context, convert, pair};

#[test]
fn cutting_a_stream_at_any_byte_changes_nothing() {
    for (client, target, stream) in [
        (MESSAGES, CHAT, CHAT_STREAM.to_owned()),
        (CHAT, MESSAGES, MESSAGES_STREAM.to_owned()),
        (MESSAGES, CHAT, CHAT_STREAM.replace('\n', "\r\n")),
    ] {
        let bytes = stream.as_bytes();
        let whole = run(client, target, &[bytes]);
        for at in 1..bytes.len() {
            let (left, right) = bytes.split_at(at);
            assert_eq!(run(client, target, &[left, right]), whole, "cut at {at}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(run(client, target, &single), whole, "byte by byte");
    }
}

/// Whatever the bytes are, a conversion ends.
fn survives(bytes: &[u8]) {
    let profile = TargetProfile { model: "m", host: "h" };
    for (client, target) in [(CHAT, MESSAGES), (MESSAGES, CHAT)] {
        let pair = pair(client, target);
        drop(pair.request(bytes, &profile, 0));
        drop(pair.reply(bytes, &context()));
        drop(pair.error(400, bytes));
        run(client, target, &[bytes]);
    }
}

/// JSON that looks like a request or an answer more often than not.
fn any_json() -> impl Strategy<Value = Value> {
    let words = prop::sample::select(vec![
        "user",
        "assistant",
        "tool",
        "text",
        "function",
        "tool_use",
        "thinking",
        "auto",
        "{}",
        "",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        words.prop_map(Value::from),
    ];
    let keys = prop::sample::select(vec![
        "messages",
        "role",
        "content",
        "type",
        "text",
        "tools",
        "function",
        "name",
        "choices",
        "delta",
        "tool_calls",
        "index",
        "id",
        "arguments",
        "input",
        "source",
        "usage",
        "error",
        "message",
        "content_block",
        "stop",
        "thinking",
        "tool_choice",
        "system",
        "parameters",
    ]);
    leaf.prop_recursive(6, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((keys.clone(), inner), 0..6).prop_map(|fields| {
                Value::Object(fields.into_iter().map(|(key, it)| (key.to_owned(), it)).collect())
            }),
        ]
    })
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        survives(&bytes);
    }

    #[test]
    fn arbitrary_json_never_panics(value in any_json()) {
        survives(value.to_string().as_bytes());
        survives(format!("data: {value}\n\n").as_bytes());
    }

    /// What both dialects can say is the same after a journey to the other and back.
    #[test]
    fn a_request_that_goes_there_and_back_is_the_same(
        system in "[a-z ]{1,9}",
        turns in prop::collection::vec(("[a-z ]{1,9}", "[a-z_]{1,9}", "[a-z ]{1,9}"), 1..4),
        max_tokens in 1_u64..5000,
        stop in prop::collection::vec("[a-z]{1,5}", 0..4),
    ) {
        let mut messages = vec![json!({ "role": "system", "content": system })];
        for (at, (question, tool, answer)) in turns.iter().enumerate() {
            let id = format!("call_{at}");
            messages.push(json!({ "role": "user", "content": question }));
            let call = json!({ "id": id, "type": "function", "function": {
                "name": tool, "arguments": json!({ "q": question }).to_string() } });
            messages.push(json!({
                "role": "assistant", "content": answer, "tool_calls": [call] }));
            messages.push(json!({ "role": "tool", "tool_call_id": id, "content": answer }));
            messages.push(json!({ "role": "assistant", "content": question }));
        }
        messages.push(json!({ "role": "user", "content": "End." }));
        let mut request = json!({
            "model": "gpt-4o", "messages": messages, "max_completion_tokens": max_tokens,
            "tools": [{ "type": "function", "function": { "name": "f", "description": "F.",
                "parameters": { "type": "object", "properties": { "q": { "type": "string" } } },
            } }],
            "tool_choice": "auto",
        });
        if !stop.is_empty() {
            request["stop"] = json!(stop);
        }
        let (there, _) = convert(CHAT, "claude-sonnet-4-5", &request).expect("there");
        let (back, _) = convert(MESSAGES, "gpt-4o", &there).expect("back");
        prop_assert_eq!(back, request);
    }
}
