//! The class of every kind of event, dialect by dialect.

use super::EventClass::{Content, Error, Lifecycle, Other, Ping, Terminator};
use super::*;
use crate::frame::Extent;

fn check(dialect: Dialect, rows: &[(&str, EventClass)]) {
    for (raw, expected) in rows {
        let raw = format!("{raw}\n\n");
        let frame = Frame::parse(raw.as_bytes(), Extent::Whole, false);
        assert_eq!(dialect.class(&frame), *expected, "{raw}");
    }
}

fn typed(dialect: Dialect, rows: &[(&str, EventClass)]) {
    for (data, expected) in rows {
        let name = String::from_utf8_lossy(type_of(data.as_bytes())).into_owned();
        let named = format!("event: {name}\ndata: {data}");
        let unnamed = format!("data: {data}");
        check(dialect, &[(&named, *expected), (&unnamed, *expected)]);
    }
}

#[test]
fn paths_have_their_dialect() {
    let rows = [
        ("/v1/chat/completions", Dialect::OpenAiChat),
        ("/v1/completions", Dialect::OpenAiCompletions),
        ("/v1/responses", Dialect::OpenAiResponses),
        ("/v1/messages", Dialect::AnthropicMessages),
        ("/v1/messages/count_tokens", Dialect::AnthropicJson),
        ("/v1/embeddings", Dialect::Json),
        ("/v1/messagesx", Dialect::Json),
        ("/v1beta/models/flash:generateContent", Dialect::Gemini),
        ("/v1beta/models/flash:streamGenerateContent", Dialect::Gemini),
        ("/v1beta/models/flash:countTokens", Dialect::GeminiJson),
        ("/v1beta/files", Dialect::GeminiJson),
    ];
    for (path, dialect) in rows {
        assert_eq!(Dialect::of_path(path), dialect, "{path}");
    }
}

#[test]
fn chat_chunks_have_their_class() {
    check(
        Dialect::OpenAiChat,
        &[
            (r#"data: {"choices":[{"index":0,"delta":{"role":"assistant"}}]}"#, Lifecycle),
            (r#"data: {"choices":[{"delta":{"role":"assistant","content":""}}]}"#, Lifecycle),
            (
                r#"data: {"choices":[{"delta":{"content":"","tool_calls":[],"refusal":null}}]}"#,
                Lifecycle,
            ),
            (r#"data: {"choices":[{"delta":{"content":"Hi"}}],"error":null}"#, Content),
            (r#"data: {"choices":[ { "delta" : { "content" : "Hi" } } ]}"#, Content),
            (
                r#"data: {"choices":[{"delta":{"content":"","index":0,"is_last":false}}]}"#,
                Lifecycle,
            ),
            (r#"data: {"choices":[{"delta":{"reasoning_content":"hm"}}]}"#, Content),
            (r#"data: {"choices":[{"delta":{"content":null,"reasoning":"hm"}}]}"#, Content),
            (r#"data: {"choices":[{"delta":{"refusal":"no"}}]}"#, Content),
            (r#"data: {"choices":[{"delta":{}},{"index":1,"delta":{"content":"b"}}]}"#, Content),
            (r#"data: {"choices":[{"delta":{},"finish_reason":"stop"}]}"#, Lifecycle),
            (r#"data: {"choices":[],"usage":{"prompt_tokens":1}}"#, Lifecycle),
            (r#"data: {"choices":[{"delta":{"content":"\"error\":1"}}]}"#, Content),
            ("data: [DONE]", Terminator),
            ("data:[DONE] ", Terminator),
            (r#"data: {"error":{"message":"x"}}"#, Error),
            (r#"data: {"choices":[{"delta":{"content":"a"}}],"error":{"code":502}}"#, Error),
            ("event: error\ndata: {}", Error),
            (": keep-alive", Ping),
            ("", Ping),
            ("retry: 5", Ping),
        ],
    );
}

#[test]
fn completion_chunks_have_their_class() {
    check(
        Dialect::OpenAiCompletions,
        &[
            (r#"data: {"choices":[{"text":"","index":0}]}"#, Lifecycle),
            (r#"data: {"object":"text","choices":[{"text":"a","index":0}]}"#, Content),
            ("data: [DONE]", Terminator),
        ],
    );
}

#[test]
fn message_events_have_their_class() {
    typed(
        Dialect::AnthropicMessages,
        &[
            (r#"{"type":"message_start","message":{"content":[]}}"#, Lifecycle),
            (r#"{"type":"content_block_stop","index":0}"#, Lifecycle),
            (r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#, Lifecycle),
            (r#"{"type":"message_stop"}"#, Terminator),
            (r#"{"type":"ping"}"#, Ping),
            (r#"{"type":"error","error":{"type":"overloaded_error"}}"#, Error),
            (r#"{"type":"novelty"}"#, Other),
        ],
    );
    check(Dialect::AnthropicMessages, &[(r#"data: {"error":{"message":"x"}}"#, Error)]);
}

#[test]
fn a_tool_call_announces_until_its_arguments_come() {
    let whole = r#"[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":A}}]"#;
    for (delta, expected) in [
        (r#"{"tool_calls":[{"index":0}]}"#.to_owned(), Lifecycle),
        (format!(r#"{{"tool_calls":{}}}"#, whole.replace('A', r#""""#)), Lifecycle),
        (
            format!(
                r#"{{"role":"assistant","content":null,"tool_calls":{}}}"#,
                whole.replace('A', "null")
            ),
            Lifecycle,
        ),
        (format!(r#"{{"tool_calls":{}}}"#, whole.replace('A', r#""{\"""#)), Content),
        (
            r#"{"tool_calls":[{"index":0},{"index":1,"function":{"arguments":"x"}}]}"#.to_owned(),
            Content,
        ),
        (
            r#"{"tool_calls":[{"type":"custom","custom":{"name":"f","input":"x"}}]}"#.to_owned(),
            Content,
        ),
        (r#"{"function_call":{"name":"f","arguments":""}}"#.to_owned(), Lifecycle),
        (r#"{"function_call":{"arguments":"{"}}"#.to_owned(), Content),
    ] {
        let data = format!(r#"data: {{"choices":[{{"index":0,"delta":{delta}}}]}}"#);
        check(Dialect::OpenAiChat, &[(&data, expected)]);
    }
}

#[test]
fn a_block_that_starts_announces_whatever_its_kind() {
    for block in [
        r#"{"type":"text","text":""}"#,
        r#"{"type":"text","text":"a"}"#,
        r#"{"type":"thinking","thinking":"","signature":""}"#,
        r#"{"type":"tool_use","id":"t","name":"f","input":{}}"#,
        r#"{"type":"server_tool_use","id":"t","name":"f","input":{"a":1}}"#,
        r#"{"type":"redacted_thinking","data":"x"}"#,
    ] {
        let data = format!(r#"{{"type":"content_block_start","index":0,"content_block":{block}}}"#);
        typed(Dialect::AnthropicMessages, &[(&data, Lifecycle)]);
    }
}

#[test]
fn an_event_named_message_is_known_by_its_type() {
    let stop = "event: message\ndata: {\"type\":\"message_stop\"}";
    check(Dialect::AnthropicMessages, &[(stop, Terminator)]);
    let done = "event: message\ndata: {\"type\":\"response.completed\"}";
    check(Dialect::OpenAiResponses, &[(done, Terminator)]);
}

#[test]
fn a_delta_of_a_block_carries_unless_it_is_empty() {
    for (delta, expected) in [
        (r#"{"type":"text_delta","text":"a"}"#, Content),
        (r#"{"type":"text_delta","text":""}"#, Lifecycle),
        (r#"{"type":"input_json_delta","partial_json":"{"}"#, Content),
        (r#"{"type":"input_json_delta","partial_json":""}"#, Lifecycle),
        (r#"{"type":"thinking_delta","thinking":"h"}"#, Content),
    ] {
        let data = format!(r#"{{"type":"content_block_delta","index":0,"delta":{delta}}}"#);
        typed(Dialect::AnthropicMessages, &[(&data, expected)]);
    }
}

#[test]
fn response_events_have_their_class() {
    typed(
        Dialect::OpenAiResponses,
        &[
            (r#"{"type":"response.created","response":{"error":null}}"#, Lifecycle),
            (r#"{"type":"response.in_progress"}"#, Lifecycle),
            (r#"{"type":"response.output_item.added","item":{"type":"message"}}"#, Lifecycle),
            (r#"{"type":"response.content_part.added","part":{"text":""}}"#, Lifecycle),
            (r#"{"type":"response.output_text.delta","delta":"Hi"}"#, Content),
            (r#"{"type":"response.output_text.delta","delta":""}"#, Lifecycle),
            (r#"{"type":"response.function_call_arguments.delta","delta":"{"}"#, Content),
            (r#"{"type":"response.reasoning_summary_text.delta","delta":"h"}"#, Content),
            (r#"{"type":"response.refusal.delta","delta":"no"}"#, Content),
            (r#"{"type":"response.output_item.done","item":{}}"#, Content),
            (r#"{"type":"response.completed","response":{"error":null}}"#, Terminator),
            (r#"{"type":"response.incomplete"}"#, Terminator),
            (r#"{"type":"response.failed","response":{"error":{"code":"x"}}}"#, Error),
            (r#"{"type":"error","code":"x","message":"m"}"#, Error),
            (r#"{"type":"novelty"}"#, Other),
        ],
    );
    check(Dialect::OpenAiResponses, &[(r#"data: {"error":{"message":"x"}}"#, Error)]);
}

#[test]
fn other_streams_carry_content_in_every_event() {
    check(
        Dialect::Json,
        &[(r#"data: {"x":1}"#, Content), ("data: [DONE]", Terminator), (": c", Ping)],
    );
}

#[test]
fn the_beginning_of_a_long_event_tells_its_class() {
    let start = |dialect: Dialect, raw: &str| {
        dialect.class(&Frame::parse(raw.as_bytes(), Extent::Start, false))
    };
    let chat = r#"data: {"choices":[{"delta":{"content":"aaaa"#;
    assert_eq!(start(Dialect::OpenAiChat, chat), Content);
    let completed = "event: response.completed\ndata: {\"response\":{\"out";
    assert_eq!(start(Dialect::OpenAiResponses, completed), Terminator);
    let delta = r#"data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"a"#;
    assert_eq!(start(Dialect::AnthropicMessages, delta), Content);
}

#[test]
fn chunks_of_gemini_have_their_class() {
    let parts =
        |parts: &str| format!(r#"data: {{"candidates":[{{"content":{{"parts":[{parts}]}}}}]}}"#);
    let text = parts(r#"{"text":"a"}"#);
    let thought = parts(r#"{"text":"a","thought":true}"#);
    let call = parts(r#"{"functionCall":{"name":"f","args":{}}}"#);
    let empty = parts(r#"{"text":""}"#);
    let second = parts(r#"{"text":""},{"text":"b"}"#);
    let nothing = parts("");
    check(
        Dialect::Gemini,
        &[
            (&text, Content),
            (&thought, Content),
            (&call, Content),
            (&second, Content),
            (&empty, Lifecycle),
            (&nothing, Lifecycle),
            (r#"data: {"candidates":[{"finishReason":"STOP"}],"usageMetadata":{}}"#, Lifecycle),
            (r#"data: {"promptFeedback":{"blockReason":"SAFETY"}}"#, Lifecycle),
            (r#"data: {"error":{"code":503,"status":"UNAVAILABLE"}}"#, Error),
            (": keepalive", Ping),
        ],
    );
}
