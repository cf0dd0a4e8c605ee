//! Fields of a request that are too long, too many or too nested: refused by name, in a short
//! sentence, and nothing is sent. What is long and allowed costs no more than its length.

use serde_json::{Value, json};
use tidegate_wire::convert::fault::RequestFault;

use crate::drive::Exchange;
use crate::spoken::Spoken;

/// What every provider of another dialect answers to this request of a client's.
fn refusals(client: Spoken, body: &Value) -> Vec<String> {
    let others = Spoken::ALL.into_iter().filter(|upstream| *upstream != client);
    let asked = others.map(|upstream| Exchange { client, upstream }.request(&bytes(body), false));
    asked.map(|sent| sent.err().expect("a refusal").to_string()).collect()
}

fn bytes(body: &Value) -> Vec<u8> {
    body.to_string().into_bytes()
}

fn check(client: Spoken, body: &Value, expected: &str) {
    for said in refusals(client, body) {
        assert_eq!(said, expected, "{client:?}");
    }
}

/// A text of so many bytes.
fn long(bytes: usize) -> String {
    "x".repeat(bytes)
}

const ID: &str = "has 1048576 bytes, and no more than 16384 are taken: shorten it";
const NAME: &str = "has 1048576 bytes, and no more than 1024 are taken: shorten it";

#[test]
fn ids_of_calls_have_a_bound() {
    let id = long(1 << 20);
    let function = json!({"name": "f", "arguments": "{}"});
    check(
        Spoken::Chat,
        &json!({"messages": [{"role": "assistant",
            "tool_calls": [{"id": id, "type": "function", "function": function}]}]}),
        &format!("`messages[0].tool_calls[0].id` {ID}"),
    );
    check(
        Spoken::Chat,
        &json!({"messages": [{"role": "tool", "tool_call_id": id, "content": "x"}]}),
        &format!("`messages[0].tool_call_id` {ID}"),
    );
    check(
        Spoken::Messages,
        &json!({"max_tokens": 1, "messages": [{"role": "assistant",
            "content": [{"type": "tool_use", "id": id, "name": "f", "input": {}}]}]}),
        &format!("`messages[0].content[0].id` {ID}"),
    );
    check(
        Spoken::Messages,
        &json!({"max_tokens": 1, "messages": [{"role": "user",
            "content": [{"type": "tool_result", "tool_use_id": id, "content": "x"}]}]}),
        &format!("`messages[0].content[0].tool_use_id` {ID}"),
    );
    check(
        Spoken::Responses,
        &json!({"input": [{"type": "function_call", "call_id": id, "name": "f",
            "arguments": "{}"}]}),
        &format!("`input[0].call_id` {ID}"),
    );
    check(
        Spoken::Responses,
        &json!({"input": [{"type": "function_call_output", "call_id": id, "output": "x"}]}),
        &format!("`input[0].call_id` {ID}"),
    );
    for part in [
        json!({"functionCall": {"id": id, "name": "f"}}),
        json!({"functionResponse": {"id": id, "name": "f", "response": {}}}),
    ] {
        let kind = part.as_object().and_then(|part| part.keys().next().cloned());
        let kind = kind.expect("one key");
        let body = json!({"contents": [{"parts": [part]}]});
        check(Spoken::Gemini, &body, &format!("`contents[0].parts[0].{kind}.id` {ID}"));
    }
}

#[test]
fn names_of_tools_have_a_bound_wherever_they_stand() {
    let name = long(1 << 20);
    let hi = json!([{"role": "user", "content": "hi"}]);
    let tool = json!({"type": "function", "function": {"name": name}});
    check(
        Spoken::Chat,
        &json!({"messages": hi, "tools": [tool]}),
        &format!("`tools[0].function.name` {NAME}"),
    );
    check(
        Spoken::Chat,
        &json!({"messages": hi, "tool_choice": tool}),
        &format!("`tool_choice.function.name` {NAME}"),
    );
    let call = json!({"id": "a", "type": "function", "function": {"name": name}});
    check(
        Spoken::Chat,
        &json!({"messages": [{"role": "assistant", "tool_calls": [call]}]}),
        &format!("`messages[0].tool_calls[0].function.name` {NAME}"),
    );
    check(
        Spoken::Messages,
        &json!({"max_tokens": 1, "messages": hi, "tools": [{"name": name}]}),
        &format!("`tools[0].name` {NAME}"),
    );
    check(
        Spoken::Messages,
        &json!({"max_tokens": 1, "messages": hi, "tool_choice": {"type": "tool", "name": name}}),
        &format!("`tool_choice.name` {NAME}"),
    );
    check(
        Spoken::Messages,
        &json!({"max_tokens": 1, "messages": [{"role": "assistant",
            "content": [{"type": "tool_use", "id": "a", "name": name, "input": {}}]}]}),
        &format!("`messages[0].content[0].name` {NAME}"),
    );
    check(
        Spoken::Responses,
        &json!({"input": "hi", "tools": [{"type": "function", "name": name}]}),
        &format!("`tools[0].name` {NAME}"),
    );
    check(
        Spoken::Responses,
        &json!({"input": "hi", "tool_choice": {"type": "function", "name": name}}),
        &format!("`tool_choice.name` {NAME}"),
    );
    check(
        Spoken::Gemini,
        &json!({"contents": [{"parts": [{"text": "hi"}]}],
            "tools": [{"functionDeclarations": [{"name": name}]}]}),
        &format!("`tools[0].functionDeclarations[0].name` {NAME}"),
    );
    check(
        Spoken::Gemini,
        &json!({"contents": [{"parts": [{"functionCall": {"name": name}}]}]}),
        &format!("`contents[0].parts[0].functionCall.name` {NAME}"),
    );
}

#[test]
fn stop_sequences_are_few_and_short() {
    let of = |stops: Value| {
        [
            (
                Spoken::Chat,
                "stop",
                json!({"messages": [{"role": "user", "content": "hi"}], "stop": stops}),
            ),
            (
                Spoken::Messages,
                "stop_sequences",
                json!({"messages": [{"role": "user", "content": "hi"}], "max_tokens": 1,
                    "stop_sequences": stops}),
            ),
            (
                Spoken::Gemini,
                "generationConfig.stopSequences",
                json!({"contents": [{"parts": [{"text": "hi"}]}],
                    "generationConfig": {"stopSequences": stops}}),
            ),
        ]
    };
    for (client, path, body) in of(json!(vec!["a"; 100_000])) {
        check(client, &body, &format!("`{path}` has more than 256 elements"));
    }
    for (client, path, body) in of(json!(["a", long(1 << 20)])) {
        let expected = "has 1048576 bytes, and no more than 4096 are taken: shorten it";
        check(client, &body, &format!("`{path}[1]` {expected}"));
    }
    for (client, _, body) in of(json!(["a", long(4096)])) {
        let upstream = if client == Spoken::Chat { Spoken::Gemini } else { Spoken::Chat };
        assert!(Exchange { client, upstream }.request(&bytes(&body), false).is_ok());
    }
}

#[test]
fn what_is_carried_under_its_own_name_has_a_bound() {
    let hi = json!([{"role": "user", "content": "hi"}]);
    let text = long(1 << 20);
    let user = "has 1048576 bytes, and no more than 4096 are taken: shorten it";
    for key in ["user", "prompt_cache_key"] {
        check(Spoken::Chat, &json!({"messages": hi, key: text}), &format!("`{key}` {user}"));
        check(Spoken::Responses, &json!({"input": "hi", key: text}), &format!("`{key}` {user}"));
    }
    check(
        Spoken::Messages,
        &json!({"messages": hi, "max_tokens": 1, "metadata": {"user_id": text}}),
        &format!("`metadata.user_id` {user}"),
    );
    let many: serde_json::Map<String, Value> =
        (0..10_000).map(|key| (format!("k{key}"), json!("v"))).collect();
    let carried = "is larger than the 65536 bytes that are taken: leave a part of it out";
    for key in ["metadata", "logit_bias"] {
        check(Spoken::Chat, &json!({"messages": hi, key: many}), &format!("`{key}` {carried}"));
    }
    check(
        Spoken::Responses,
        &json!({"input": "hi", "metadata": many}),
        &format!("`metadata` {carried}"),
    );
}

#[test]
fn a_refusal_is_short_whatever_it_quotes() {
    let word = long(1 << 20);
    let hi = json!([{"role": "user", "content": "hi"}]);
    let said = [
        (Spoken::Responses, json!({"input": [{"type": word}]})),
        (Spoken::Gemini, json!({"contents": [{"parts": [{word.clone(): 1}]}]})),
        (Spoken::Chat, json!({"messages": hi, "tools": [{"type": word}]})),
        (Spoken::Chat, json!({"messages": hi, "tool_choice": {"type": word}})),
        (
            Spoken::Chat,
            json!({"messages": [{"role": "assistant", "tool_calls": [
            {"id": "a", "type": word}]}]}),
        ),
    ];
    for (client, body) in said {
        for said in refusals(client, &body) {
            assert!(said.len() < 512, "{client:?} said {} bytes", said.len());
        }
    }
    let problem = RequestFault::impossible("ü".repeat(5000)).to_string();
    assert!(problem.len() < 512 && problem.contains('…'));
}

/// Each of these took the square of its length once: hours for a body that is allowed.
#[test]
fn long_requests_cost_no_more_than_their_length() {
    let many = 20_000;
    let mut parts: Vec<Value> = (many..2 * many)
        .map(|number| json!({"functionCall": {"id": format!("call_{number}"), "name": "f"}}))
        .collect();
    parts.extend((0..many).map(|_| json!({"functionCall": {"name": "f"}})));
    let body = json!({"contents": [{"role": "model", "parts": parts}]});
    let exchange = Exchange { client: Spoken::Gemini, upstream: Spoken::Chat };
    let sent = exchange.request(&bytes(&body), false).expect("it is converted");
    let sent = crate::spoken::parse(&sent.body);
    let calls = sent["messages"][0]["tool_calls"].as_array().expect("calls");
    let ids: std::collections::BTreeSet<&str> =
        calls.iter().filter_map(|call| call["id"].as_str()).collect();
    assert_eq!(ids.len(), 2 * many, "each call has an id of its own");

    let texts = vec![json!({"type": "text", "text": "a"}); many];
    let function = json!({"name": "f", "arguments": "{}"});
    let calls: Vec<Value> = (0..many)
        .map(|id| json!({"id": format!("c{id}"), "type": "function", "function": function}))
        .collect();
    let turn = json!({"role": "assistant", "content": texts, "tool_calls": calls});
    let exchange = Exchange { client: Spoken::Chat, upstream: Spoken::Gemini };
    assert!(exchange.request(&bytes(&json!({"messages": [turn]})), false).is_ok());

    let names: Vec<String> = (0..many).map(|field| format!("field{field}")).collect();
    let fields: serde_json::Map<String, Value> =
        names.iter().map(|name| (name.clone(), json!({"type": "string"}))).collect();
    let schema = json!({"type": "object", "properties": fields, "required": names,
        "additionalProperties": false});
    let body = json!({"input": "hi", "tools": [
        {"type": "function", "name": "f", "strict": true, "parameters": schema}]});
    let exchange = Exchange { client: Spoken::Responses, upstream: Spoken::Chat };
    let sent = exchange.request(&bytes(&body), false).expect("it is converted");
    assert_eq!(crate::spoken::parse(&sent.body)["tools"][0]["function"]["strict"], true);
}
