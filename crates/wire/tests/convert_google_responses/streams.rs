//! Streams: the order of events, tool arguments, ends, errors and cuts.

use serde_json::{Value, json};
use tidegate_wire::convert::api_error::ErrorType;
use tidegate_wire::convert::context::ReplyContext;
use tidegate_wire::convert::pair::DialectPair;
use tidegate_wire::convert::reply::StopReason;
use tidegate_wire::convert::stream::{StreamEvent, WriteStream};
use tidegate_wire::convert::{gemini, responses};
use tidegate_wire::dialect::Dialect;

use crate::{data_of, events_of, stream_of};

/// A stream of Gemini's: thinking, text in two chunks, two calls, usage.
pub(crate) fn gemini_stream() -> String {
    let chunk = |parts: Value| {
        let value = json!({"candidates": [{"content": {"parts": parts, "role": "model"},
            "index": 0}], "modelVersion": "gemini-2.5-pro", "responseId": "r1"});
        format!("data: {value}\r\n\r\n")
    };
    let last = json!({"candidates": [{"content": {"parts": [
        {"functionCall": {"name": "f", "args": {"é": "ü"}}, "thoughtSignature": "c2ln"},
        {"functionCall": {"name": "g"}}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 4,
            "thoughtsTokenCount": 5}});
    [
        chunk(json!([{"text": "hm", "thought": true}])),
        ": keepalive\r\n\r\n".to_owned(),
        chunk(json!([{"text": "He"}])),
        chunk(json!([{"text": "llo"}])),
        format!("data: {last}\r\n\r\n"),
    ]
    .concat()
}

fn to_responses(events: Vec<StreamEvent>) -> Vec<u8> {
    let mut writer = responses::stream_out::ResponsesStreamWriter::new(ReplyContext::default());
    stream_of(&mut writer, events)
}

fn gemini_events(stream: &str) -> Vec<StreamEvent> {
    let mut reader = gemini::stream_in::GeminiStreamReader::default();
    events_of(&mut reader, &[stream.as_bytes()]).expect("a stream")
}

fn responses_events(stream: &[u8]) -> Vec<StreamEvent> {
    let mut reader = responses::stream_in::ResponsesStreamReader::default();
    events_of(&mut reader, &[stream]).expect("a stream")
}

#[test]
fn a_stream_of_gemini_has_the_events_of_responses_in_order() {
    let written = data_of(&to_responses(gemini_events(&gemini_stream())));
    let names: Vec<&str> = written.iter().filter_map(|event| event["type"].as_str()).collect();
    let expected = [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.reasoning_summary_part.added",
        "response.reasoning_summary_text.delta",
        "response.reasoning_summary_text.done",
        "response.reasoning_summary_part.done",
        "response.output_item.done",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        // The signature of the call.
        "response.output_item.added",
        "response.output_item.done",
        "response.output_item.added",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.output_item.done",
        "response.output_item.added",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.output_item.done",
        "response.completed",
    ];
    assert_eq!(names, expected);
    for (number, event) in written.iter().enumerate() {
        assert_eq!(event["sequence_number"], number, "{event}");
    }
    let last = &written[written.len() - 1]["response"];
    let items: Vec<&Value> = written
        .iter()
        .filter(|event| event["type"] == "response.output_item.done")
        .map(|event| &event["item"])
        .collect();
    assert_eq!(last["output"].as_array().map(|it| it.iter().collect()), Some(items));
    assert_eq!(last["output"][1]["content"][0]["text"], "Hello");
    assert_eq!(last["output"][3]["arguments"], "{\"é\":\"ü\"}");
    assert_eq!(last["usage"]["output_tokens"], 9);
}

#[test]
fn a_stream_of_responses_has_the_chunks_of_gemini() {
    let stream = to_responses(gemini_events(&gemini_stream()));
    let mut writer = gemini::stream_out::GeminiStreamWriter::default();
    let chunks = data_of(&stream_of(&mut writer, responses_events(&stream)));
    let parts: Vec<&Value> =
        chunks.iter().map(|chunk| &chunk["candidates"][0]["content"]["parts"][0]).collect();
    assert_eq!(
        parts,
        [
            &json!({"text": "hm", "thought": true}),
            &json!({"text": "He"}),
            &json!({"text": "llo"}),
            &json!({"text": "", "thought": true, "thoughtSignature": "c2ln"}),
            &json!({"functionCall": {"id": "call_r1_0", "name": "f", "args": {"é": "ü"}},
                "thoughtSignature": "dGlkZWdhdGU6bm9uZQ=="}),
            &json!({"functionCall": {"id": "call_r1_1", "name": "g", "args": {}}}),
            &json!({"text": ""}),
        ]
    );
    let last = &chunks[chunks.len() - 1];
    assert_eq!(last["candidates"][0]["finishReason"], "STOP");
    assert_eq!(
        last["usageMetadata"],
        json!({"promptTokenCount": 3, "candidatesTokenCount": 4, "totalTokenCount": 12,
            "thoughtsTokenCount": 5})
    );
    let reasons =
        chunks.iter().filter(|chunk| chunk["candidates"][0]["finishReason"] != json!(null));
    assert_eq!(reasons.count(), 1, "only the last chunk has a reason");
}

#[test]
fn a_split_at_any_byte_changes_nothing() {
    let native = gemini_stream();
    let converted = to_responses(gemini_events(&native));
    let whole = gemini_events(&native);
    for cut in 0..native.len() {
        let (left, right) = native.as_bytes().split_at(cut);
        let mut reader = gemini::stream_in::GeminiStreamReader::default();
        assert_eq!(events_of(&mut reader, &[left, right]).as_ref(), Some(&whole), "at {cut}");
    }
    let whole = responses_events(&converted);
    for cut in 0..converted.len() {
        let (left, right) = converted.split_at(cut);
        let mut reader = responses::stream_in::ResponsesStreamReader::default();
        assert_eq!(events_of(&mut reader, &[left, right]).as_ref(), Some(&whole), "at {cut}");
    }
}

#[test]
fn a_cut_stream_has_no_end() {
    let is_ended = |events: &[StreamEvent]| {
        events.iter().any(|event| matches!(event, StreamEvent::End | StreamEvent::Stop(_)))
    };
    let native = gemini_stream();
    let until_last = native.rfind("data: ").expect("chunks");
    assert!(!is_ended(&gemini_events(&native[..until_last])));
    let converted = to_responses(gemini_events(&native));
    let text = String::from_utf8(converted).expect("text");
    let until_last = text.rfind("event: response.completed").expect("an end");
    let cut = responses_events(&text.as_bytes()[..until_last]);
    assert!(!is_ended(&cut));
    let half = to_responses(cut);
    assert!(!String::from_utf8_lossy(&half).contains("response.completed"));
}

#[test]
fn an_error_ends_a_stream_once() {
    let stream = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]}}]}\n\n\
        data: {\"error\":{\"code\":503,\"message\":\"busy\",\"status\":\"UNAVAILABLE\"}}\n\n\
        data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\n\n";
    let events = gemini_events(stream);
    let Some(StreamEvent::Error(error)) = events.last() else { panic!("{events:?}") };
    assert_eq!((error.error_type, error.status), (ErrorType::Overloaded, 503));
    let written = data_of(&to_responses(events.clone()));
    let last = &written[written.len() - 1];
    assert_eq!((&last["type"], &last["message"]), (&json!("error"), &json!("busy")));
    assert_eq!(last["sequence_number"], written.len() - 1);
    let failed = b"event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":\
        {\"error\":{\"code\":\"rate_limit_exceeded\",\"message\":\"slow\"}}}\n\n";
    let events = responses_events(failed);
    let Some(StreamEvent::Error(error)) = events.last() else { panic!("{events:?}") };
    assert_eq!(error.error_type, ErrorType::RateLimit);
    let mut writer = gemini::stream_out::GeminiStreamWriter::default();
    let mut out = stream_of(&mut writer, events);
    let value = json!({"error": {"code": 429, "message": "slow", "status": "RESOURCE_EXHAUSTED"}});
    assert_eq!(data_of(&out), [value]);
    writer.write(StreamEvent::Text("late".into()), &mut out);
    assert_eq!(data_of(&out).len(), 1, "nothing follows an error");
}

fn event(value: &Value) -> String {
    format!("data: {value}\n\n")
}

#[test]
fn calls_that_interleave_are_told_one_after_the_other() {
    let added = |at: u64, id: &str| {
        event(&json!({"type": "response.output_item.added", "output_index": at,
            "item": {"type": "function_call", "call_id": id, "name": "f"}}))
    };
    let delta = |at: u64, delta: &str| {
        event(&json!({"type": "response.function_call_arguments.delta", "output_index": at,
            "delta": delta}))
    };
    let done = |at: u64| {
        event(&json!({"type": "response.output_item.done", "output_index": at,
            "item": {"type": "function_call", "arguments": "{\"whole\":1}"}}))
    };
    let end = event(&json!({"type": "response.completed", "response": {"output": []}}));
    let stream = [
        added(0, "a"),
        added(1, "b"),
        delta(1, "{}"),
        delta(0, "[1"),
        delta(0, "]"),
        done(1),
        done(0),
        added(2, "c"),
        done(2),
        end,
    ]
    .concat();
    let told: Vec<String> = responses_events(stream.as_bytes())
        .into_iter()
        .filter_map(|event| match event {
            StreamEvent::ToolCallStart { id, .. } => Some(id),
            StreamEvent::ToolCallDelta(delta) => Some(delta),
            StreamEvent::ToolCallEnd => Some(".".to_owned()),
            StreamEvent::Stop(stop) => Some(format!("{stop:?}")),
            _ => None,
        })
        .collect();
    let expected = ["a", "[1", "]", ".", "b", "{}", ".", "c", "{\"whole\":1}", ".", "ToolUse"];
    assert_eq!(told, expected);
}

#[test]
fn an_answer_that_comes_only_in_the_last_event_is_told() {
    let stream = event(&json!({"type": "response.incomplete", "response": {"id": "r",
        "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"},
        "output": [{"type": "message", "content": [{"type": "output_text", "text": "hi"}]}]}}));
    let events = responses_events(stream.as_bytes());
    assert!(events.contains(&StreamEvent::Text("hi".into())));
    assert!(events.contains(&StreamEvent::Stop(StopReason::Length)));
}

#[test]
fn free_text_is_unwrapped_at_the_end_of_its_call() {
    let free_text_tools = vec!["patch".to_owned()];
    let context = ReplyContext { free_text_tools, ..ReplyContext::default() };
    let pair = DialectPair::new(Dialect::OpenAiResponses, Dialect::OpenAiChat).expect("a pair");
    let mut converter = pair.stream(&context, 1 << 20);
    let mut out = Vec::new();
    for delta in [
        json!({"tool_calls": [{"index": 0, "id": "a", "type": "function",
            "function": {"name": "patch", "arguments": "{\"input\":"}}]}),
        json!({"tool_calls": [{"index": 0, "function": {"arguments": "\"*** B\"}"}}]}),
    ] {
        let chunk = json!({"id": "c", "model": "m", "choices": [{"index": 0, "delta": delta}]});
        converter.feed(format!("data: {chunk}\n\n").into(), &mut out).expect("a good chunk");
    }
    let end =
        "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n";
    converter.feed(format!("{end}data: [DONE]\n\n").into(), &mut out).expect("a good end");
    let written = data_of(&out);
    let of_kind = |kind: &str| written.iter().filter(|it| it["type"] == kind).collect::<Vec<_>>();
    let deltas = of_kind("response.custom_tool_call_input.delta");
    assert_eq!(deltas.len(), 1);
    assert_eq!(deltas[0]["delta"], "*** B");
    assert_eq!(of_kind("response.output_item.done")[0]["item"]["input"], "*** B");
}
