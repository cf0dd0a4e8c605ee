//! What a request says in the other dialect, field by field.

use serde_json::{Value, json};
use tidegate_wire::convert::fault::RequestFault;

use super::{CHAT, MESSAGES, convert};

const CLAUDE: &str = "claude-sonnet-4-5";

#[test]
fn a_chat_conversation_with_tools_becomes_messages() {
    let request = json!({
        "model": "fast", "max_tokens": 100, "temperature": 0.5, "stop": "END", "user": "u1",
        "messages": [
            { "role": "system", "content": "Be brief." },
            { "role": "developer", "content": [{ "type": "text", "text": "Speak English." }] },
            { "role": "user", "content": [
                { "type": "text", "text": "What is this?" },
                { "type": "image_url", "image_url": { "url": "data:image/png;base64,AAAA" } },
                { "type": "image_url", "image_url": { "url": "https://example.com/a.png" } },
                { "type": "file", "file": {
                    "filename": "a.pdf", "file_data": "data:application/pdf;base64,BBBB" } },
            ]},
            { "role": "assistant", "content": "Let me see.", "tool_calls": [
                { "id": "call.1", "type": "function",
                  "function": { "name": "look", "arguments": "{\"at\":{\"x\":1}}" } },
                { "id": "call_2", "type": "function",
                  "function": { "name": "now", "arguments": "" } },
            ]},
            { "role": "tool", "tool_call_id": "call.1", "content": "a cat" },
            { "role": "tool", "tool_call_id": "call_2",
              "content": [{ "type": "text", "text": "noon" }] },
            { "role": "user", "content": "Go on." },
        ],
        "tools": [
            { "type": "function", "function": { "name": "look", "description": "Looks.",
              "parameters": { "$defs": { "p": { "type": "number" } }, "type": "object",
                "properties": { "at": { "type": "object", "properties": {
                    "x": { "$ref": "#/$defs/p" }, "how": { "enum": ["a", "b"] } } } } } } },
            { "type": "function", "function": { "name": "now" } },
        ],
        "tool_choice": "required", "parallel_tool_calls": false,
    });
    let (sent, notes) = convert(CHAT, CLAUDE, &request).expect("it can be converted");
    assert_eq!(sent["model"], CLAUDE);
    assert_eq!(sent["max_tokens"], 100);
    assert_eq!(sent["temperature"], 0.5);
    assert_eq!(sent["stop_sequences"], json!(["END"]));
    assert_eq!(sent["metadata"], json!({ "user_id": "u1" }));
    assert_eq!(sent["system"][0]["text"], "Be brief.");
    assert_eq!(sent["system"][1]["text"], "Speak English.");
    let messages = sent["messages"].as_array().expect("a list");
    assert_eq!(messages.len(), 3, "{sent}");
    let user = &messages[0]["content"];
    assert_eq!(user[0], json!({ "type": "text", "text": "What is this?" }));
    let png = json!({ "type": "base64", "media_type": "image/png", "data": "AAAA" });
    assert_eq!(user[1], json!({ "type": "image", "source": png }));
    let url = json!({ "type": "url", "url": "https://example.com/a.png" });
    assert_eq!(user[2], json!({ "type": "image", "source": url }));
    assert_eq!(user[3]["source"]["media_type"], "application/pdf");
    assert_eq!(user[3]["title"], "a.pdf");
    let calls = &messages[1]["content"];
    assert_eq!(calls[0]["text"], "Let me see.");
    assert_eq!(
        calls[1],
        json!({ "type": "tool_use", "id": "call_1", "name": "look", "input": { "at": { "x": 1 } } })
    );
    assert_eq!(calls[2]["input"], json!({}));
    let results = &messages[2]["content"];
    assert_eq!(
        results[0],
        json!({ "type": "tool_result", "tool_use_id": "call_1", "content": "a cat" })
    );
    assert_eq!(results[1]["content"], "noon");
    assert_eq!(results[2]["text"], "Go on.");
    let tools = &sent["tools"];
    assert_eq!(tools[0]["input_schema"]["$defs"]["p"]["type"], "number");
    assert_eq!(tools[1]["input_schema"], json!({ "type": "object", "properties": {} }));
    assert_eq!(sent["tool_choice"], json!({ "type": "any", "disable_parallel_tool_use": true }));
    assert_eq!(notes, "");
}

#[test]
fn a_messages_conversation_with_tools_becomes_chat() {
    let request = json!({
        "model": "fast", "max_tokens": 100, "stop_sequences": ["A", "B", "C", "D", "E"],
        "top_k": 5, "stream": true, "metadata": { "user_id": "u1" },
        "system": [
            { "type": "text", "text": "One.", "cache_control": { "type": "ephemeral" } },
            { "type": "text", "text": "Two." },
        ],
        "messages": [
            { "role": "user", "content": "Look." },
            { "role": "assistant", "content": [
                { "type": "thinking", "thinking": "Hm.", "signature": "sig" },
                { "type": "text", "text": "Yes." },
                { "type": "tool_use", "id": "toolu_1", "name": "look", "input": { "x": [1] } },
                { "type": "tool_use", "id": "toolu_2", "name": "look", "input": {} },
            ]},
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "toolu_1", "is_error": true,
                  "content": [{ "type": "text", "text": "no file" }] },
                { "type": "tool_result", "tool_use_id": "toolu_2", "content": [
                    { "type": "text", "text": "a picture" },
                    { "type": "image", "source":
                        { "type": "base64", "media_type": "image/png", "data": "AA" } },
                ]},
                { "type": "text", "text": "Go on." },
            ]},
        ],
        "tools": [
            { "name": "look", "input_schema": { "type": "object" } },
            { "type": "web_search_20250305", "name": "web_search" },
        ],
        "tool_choice": { "type": "tool", "name": "look" },
    });
    let (sent, notes) = convert(MESSAGES, "gpt-4o", &request).expect("it can be converted");
    let messages = sent["messages"].as_array().expect("a list");
    assert_eq!(messages[0], json!({ "role": "system", "content": "One.\n\nTwo." }));
    assert_eq!(messages[1], json!({ "role": "user", "content": "Look." }));
    assert_eq!(messages[2]["content"], "Yes.");
    let arguments = messages[2]["tool_calls"][0]["function"]["arguments"].as_str();
    assert_eq!(arguments, Some("{\"x\":[1]}"));
    assert_eq!(
        messages[3],
        json!({ "role": "tool", "tool_call_id": "toolu_1", "content": "Error: no file" })
    );
    assert_eq!(messages[4]["content"], "a picture");
    assert_eq!(messages[5]["role"], "user");
    assert_eq!(messages[5]["content"][0]["image_url"]["url"], "data:image/png;base64,AA");
    assert_eq!(messages[5]["content"][1]["text"], "Go on.");
    assert_eq!(sent["max_completion_tokens"], 100);
    assert_eq!(sent["stop"], json!(["A", "B", "C", "D"]));
    assert_eq!(sent["stream_options"], json!({ "include_usage": true }));
    assert_eq!(sent["user"], "u1");
    assert_eq!(sent["tool_choice"]["function"]["name"], "look");
    assert_eq!(sent["tools"].as_array().map(Vec::len), Some(1));
    for lost in ["`web_search_20250305`", "`thinking`", "`top_k`", "`stop_sequences`", "`is_error`"]
    {
        assert!(notes.contains(lost), "{lost} in {notes}");
    }
    assert!(!sent.to_string().contains("Hm."), "thinking is never text: {sent}");
}

fn chat(more: &Value) -> Value {
    let mut request = json!({ "model": "m", "messages": [{ "role": "user", "content": "Hi" }] });
    for (key, value) in more.as_object().expect("an object") {
        request[key] = value.clone();
    }
    request
}

fn messages(more: &Value) -> Value {
    let mut request = chat(more);
    request["max_tokens"] = json!(50_000);
    request
}

#[test]
fn settings_are_clamped_or_dropped_with_a_note() {
    let request = chat(&json!({
        "temperature": 1.8, "top_p": 0.5, "seed": 4, "presence_penalty": 1, "logit_bias": {"1": 2},
        "stop": ["\n", "END"], "logprobs": true, "prompt_cache_key": "k",
    }));
    let (sent, notes) = convert(CHAT, CLAUDE, &request).expect("it can be converted");
    assert_eq!(sent["temperature"], 1.0);
    assert_eq!(sent["stop_sequences"], json!(["END"]));
    assert_eq!(sent["max_tokens"], 32_000);
    let lost = ["top_p", "seed", "presence_penalty", "logit_bias", "logprobs", "prompt_cache_key"];
    for field in lost {
        assert!(sent.get(field).is_none(), "{field}");
        assert!(notes.contains(&format!("dropped `{field}`")), "{field} in {notes}");
    }
    assert!(notes.contains("clamped `temperature`"), "{notes}");
    assert!(notes.contains("rewritten `max_tokens`"), "{notes}");
    let (sent, notes) =
        convert(MESSAGES, "gpt-5", &messages(&json!({ "temperature": 1 }))).expect("converted");
    assert!(sent.get("temperature").is_none() && notes.contains("`temperature`"), "{notes}");
}

#[test]
fn thinking_is_asked_for_as_the_target_knows_it() {
    let effort = chat(&json!({ "reasoning_effort": "high" }));
    let (sent, _) = convert(CHAT, CLAUDE, &effort).expect("converted");
    assert_eq!(sent["thinking"], json!({ "type": "enabled", "budget_tokens": 24_576 }));
    let (sent, _) = convert(CHAT, "claude-opus-4-6", &effort).expect("converted");
    assert_eq!(sent["thinking"], json!({ "type": "adaptive" }));
    assert_eq!(sent["output_config"], json!({ "effort": "high" }));
    let (sent, notes) = convert(CHAT, "claude-3-5-haiku-latest", &effort).expect("converted");
    assert!(sent.get("thinking").is_none() && notes.contains("does not think"), "{notes}");
    let budget = messages(&json!({ "thinking": { "type": "enabled", "budget_tokens": 4000 } }));
    let (sent, _) = convert(MESSAGES, "gpt-5-mini", &budget).expect("converted");
    assert_eq!(sent["reasoning_effort"], "medium");
    let (sent, notes) = convert(MESSAGES, "gpt-4o", &budget).expect("converted");
    assert!(sent.get("reasoning_effort").is_none() && notes.contains("`reasoning`"), "{notes}");
}

#[test]
fn a_tool_loop_from_elsewhere_goes_on_without_thinking() {
    let request = json!({
        "model": "m", "reasoning_effort": "low",
        "messages": [
            { "role": "user", "content": "Hi" },
            { "role": "assistant", "content": null, "reasoning_content": "Hm.", "tool_calls": [
                { "id": "c1", "type": "function",
                  "function": { "name": "f", "arguments": "{}" } }] },
            { "role": "tool", "tool_call_id": "c1", "content": "ok" },
        ],
        "tools": [{ "type": "function", "function": { "name": "f" } }],
    });
    let (sent, notes) = convert(CHAT, CLAUDE, &request).expect("converted");
    assert!(sent.get("thinking").is_none(), "{sent}");
    assert!(notes.contains("came from another provider"), "{notes}");
    assert!(!sent.to_string().contains("Hm."), "{sent}");
}

#[test]
fn json_answers_are_asked_for_in_both_directions() {
    let schema = json!({ "type": "object", "properties": { "n": {
        "type": "integer", "minimum": 1, "description": "A number." } }, "required": ["n"] });
    let format = json!({ "type": "json_schema", "json_schema": { "name": "a", "schema": schema } });
    let request = chat(&json!({ "response_format": format }));
    let (sent, notes) = convert(CHAT, CLAUDE, &request).expect("converted");
    let written = &sent["output_config"]["format"];
    assert_eq!(written["type"], "json_schema");
    assert_eq!(written["schema"]["additionalProperties"], false);
    let number = &written["schema"]["properties"]["n"];
    assert_eq!(number["description"], "A number. (minimum: 1)");
    assert!(number.get("minimum").is_none() && notes.contains("`minimum`"), "{notes}");
    let request = messages(&json!({ "output_config": { "format": {
        "type": "json_schema", "schema": schema } } }));
    let (sent, _) = convert(MESSAGES, "gpt-4o", &request).expect("converted");
    assert_eq!(sent["response_format"]["json_schema"]["schema"], schema);
    let request = chat(&json!({ "response_format": { "type": "json_object" } }));
    let (sent, notes) = convert(CHAT, CLAUDE, &request).expect("converted");
    assert!(sent["system"].as_str().is_some_and(|text| text.contains("JSON")), "{sent}");
    assert!(notes.contains("`response_format`"), "{notes}");
}

#[test]
fn cache_markers_reach_the_dialect_that_knows_them() {
    let text = json!({ "type": "text", "text": "Hi", "cache_control": { "type": "ephemeral" } });
    let request = json!({ "messages": [{ "role": "user", "content": [text] }] });
    let (sent, _) = convert(CHAT, CLAUDE, &request).expect("converted");
    let block = &sent["messages"][0]["content"][0];
    assert_eq!(block["cache_control"], json!({ "type": "ephemeral" }));
}

#[test]
fn a_choice_at_the_top_of_a_schema_is_rewritten() {
    let request = chat(&json!({ "tools": [{ "type": "function", "function": { "name": "f",
        "parameters": { "anyOf": [
            { "properties": { "a": { "type": "string" } }, "required": ["a"] },
            { "properties": { "b": { "type": "string" } } } ] } } }] }));
    let (sent, notes) = convert(CHAT, CLAUDE, &request).expect("converted");
    let schema = &sent["tools"][0]["input_schema"];
    assert_eq!(schema["type"], "object");
    assert!(schema.get("anyOf").is_none(), "{schema}");
    assert!(schema["properties"]["a"].is_object() && schema["properties"]["b"].is_object());
    assert!(notes.contains("rewritten `f`"), "{notes}");
}

#[test]
fn a_free_text_tool_becomes_one_with_a_single_field() {
    let request = chat(&json!({ "tools": [
        { "type": "custom", "custom": { "name": "patch", "description": "Patches." } }] }));
    let (sent, _) = convert(CHAT, CLAUDE, &request).expect("converted");
    assert_eq!(sent["tools"][0]["input_schema"]["required"], json!(["input"]));
}

#[test]
fn instructions_in_the_middle_move_to_the_system_prompt() {
    let request = json!({ "messages": [
        { "role": "assistant", "content": "Hello." },
        { "role": "system", "content": "Be kind." },
        { "role": "user", "content": "" },
        { "role": "user", "content": "Hi" },
    ]});
    let (sent, notes) = convert(CHAT, CLAUDE, &request).expect("converted");
    assert_eq!(sent["system"], "Be kind.");
    let roles: Vec<_> =
        sent["messages"].as_array().expect("a list").iter().map(|it| &it["role"]).collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
    assert!(notes.contains("system prompt"), "{notes}");
}

#[test]
fn what_cannot_be_said_is_refused_by_name() {
    let call = |arguments: &str| {
        json!({ "messages": [{ "role": "assistant", "tool_calls": [
            { "id": "c1", "type": "function",
              "function": { "name": "f", "arguments": arguments } }] }] })
    };
    let user = |content: Value| json!({ "messages": [{ "role": "user", "content": content }] });
    let cases = [
        (chat(&json!({ "n": 2 })), "more than one choice"),
        (chat(&json!({ "functions": [] })), "`functions`"),
        (call("{\"a\":"), "arguments of the tool call `c1`"),
        (call("[1]"), "must be a JSON object"),
        (json!({ "messages": [{ "role": "robot", "content": "x" }] }), "`messages[0].role`"),
        (json!({ "messages": [] }), "`messages` must not be empty"),
        (json!({ "messages": [{ "role": "user", "content": 5 }] }), "`messages[0].content`"),
        (user(json!([{ "type": "video" }])), "`messages[0].content[0].type`"),
        (
            user(
                json!([{ "type": "input_audio", "input_audio": { "data": "A", "format": "wav" } }]),
            ),
            "audio",
        ),
        (user(json!([{ "type": "file", "file": { "file_id": "f" } }])), "a file uploaded"),
        (chat(&json!({ "temperature": "hot" })), "`temperature` must be a number"),
        (chat(&json!({ "tools": [{ "type": "function" }] })), "`tools[0].function` is missing"),
        (json!([1]), "`body` must be an object"),
    ];
    for (request, expected) in cases {
        let fault = convert(CHAT, CLAUDE, &request).expect_err(expected).to_string();
        assert!(fault.contains(expected), "{expected} in {fault}");
    }
    let fault = convert(
        MESSAGES,
        "gpt-4o",
        &json!({ "messages": [
        { "role": "user", "content": [{ "type": "document",
          "source": { "type": "file", "file_id": "f" } }] }] }),
    );
    assert!(matches!(fault, Err(RequestFault::Impossible { .. })), "{fault:?}");
}

#[test]
fn newer_models_of_openai_get_no_effort_beside_tools_in_chat() {
    let thinking = json!({ "type": "enabled", "budget_tokens": 4000 });
    let tools = json!([{ "name": "f", "input_schema": { "type": "object" } }]);
    let with = messages(&json!({ "thinking": thinking, "tools": tools }));
    let without = messages(&json!({ "thinking": thinking }));
    for (model, expected) in [
        ("gpt-5.2", json!("medium")),
        ("gpt-5.4-mini", Value::Null),
        ("gpt-5.6-terra", json!("none")),
    ] {
        let (sent, notes) = convert(MESSAGES, model, &with).expect("converted");
        assert_eq!(sent["reasoning_effort"], expected, "{model}");
        let is_told = notes.contains("Responses API");
        assert_eq!(is_told, expected != "medium", "{model}: {notes}");
        let (sent, _) = convert(MESSAGES, model, &without).expect("converted");
        assert_eq!(sent["reasoning_effort"], "medium", "{model} without tools");
    }
    let plain = messages(&json!({ "tools": tools }));
    let (sent, notes) = convert(MESSAGES, "gpt-5.6", &plain).expect("converted");
    assert_eq!(sent["reasoning_effort"], "none", "it thinks unless it is told not to");
    assert!(!notes.contains("reasoning"), "nothing was asked for: {notes}");
}

#[test]
fn an_effort_without_thinking_is_told_as_lost() {
    let request = messages(&json!({ "output_config": { "effort": "low" } }));
    let (_, notes) = convert(MESSAGES, "gpt-5.1", &request).expect("converted");
    assert!(notes.contains("dropped `output_config.effort`"), "{notes}");
}

#[test]
fn a_thread_is_begun_with_a_note_and_never_continued() {
    let begun = messages(&json!({ "thread": { "type": "create" } }));
    let (sent, notes) = convert(MESSAGES, "gpt-5.1", &begun).expect("converted");
    assert!(sent.get("thread").is_none() && notes.contains("dropped `thread`"), "{notes}");
    let thread = json!({ "type": "continue", "previous_message_id": "msg_1" });
    let fault = convert(MESSAGES, "gpt-5.1", &messages(&json!({ "thread": thread })));
    assert!(matches!(fault, Err(RequestFault::Impossible { .. })), "{fault:?}");
}

#[test]
fn what_a_client_found_itself_reaches_every_provider_as_text() {
    let found = json!({ "type": "search_result", "source": "https://a.example", "title": "Tides",
        "content": [{ "type": "text", "text": "High water is at six." }],
        "citations": { "enabled": true } });
    let pieces = json!({ "type": "document", "source": { "type": "content", "content": [
        { "type": "text", "text": "one" }, { "type": "text", "text": "two" }] } });
    let request = json!({ "model": "m", "max_tokens": 9, "messages": [
        { "role": "user", "content": [found, pieces, { "type": "text", "text": "When?" }] }] });
    let (sent, notes) = convert(MESSAGES, "gpt-4.1", &request).expect("converted");
    let content = &sent["messages"][0]["content"];
    assert_eq!(content[0]["text"], "Tides\nhttps://a.example\nHigh water is at six.");
    assert_eq!(content[1]["text"], "one\ntwo");
    assert!(notes.contains("rewritten `search_result`"), "{notes}");
}
