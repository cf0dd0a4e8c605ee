//! Arbitrary input: no bytes panic, and what a writer writes its reader reads.

use proptest::prelude::*;
use serde_json::{Value, json};
use tidegate_wire::convert::context::ReplyContext;
use tidegate_wire::convert::notes::Notes;
use tidegate_wire::convert::reply::{StopReason, TokenUsage};
use tidegate_wire::convert::stream::{ReadStream, StreamEvent};
use tidegate_wire::convert::{gemini, responses};

use crate::{events_of, parsed, stream_of, target};

/// JSON made of the words that the dialects know, in places where they do not belong.
fn any_json() -> impl Strategy<Value = Value> {
    let words = prop::sample::select(vec![
        "type",
        "role",
        "user",
        "model",
        "parts",
        "text",
        "message",
        "input",
        "content",
        "output",
        "functionCall",
        "functionResponse",
        "function_call",
        "function_call_output",
        "name",
        "arguments",
        "args",
        "call_id",
        "reasoning",
        "summary",
        "response.output_item.added",
        "response.output_item.done",
        "response.output_text.delta",
        "response.completed",
        "item",
        "response",
        "delta",
        "candidates",
        "finishReason",
        "STOP",
        "MAX_TOKENS",
        "usageMetadata",
        "tools",
        "functionDeclarations",
        "parameters",
        "generationConfig",
        "contents",
        "error",
        "promptFeedback",
        "blockReason",
        "thoughtSignature",
        "inlineData",
        "mimeType",
        "data",
        "response.function_call_arguments.delta",
        "response.created",
        "systemInstruction",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..100).prop_map(Value::from),
        words.clone().prop_map(Value::from),
        "[a-z{}\"é]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((words.clone(), inner), 0..6).prop_map(|fields| {
                fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
            }),
        ]
    })
}

fn readers() -> [Box<dyn ReadStream>; 2] {
    [
        Box::new(gemini::stream_in::GeminiStreamReader::default()),
        Box::new(responses::stream_in::ResponsesStreamReader::default()),
    ]
}

fn read_everything(body: &[u8]) {
    let mut notes = Notes::default();
    let requests = [
        gemini::request_in::read_request(body, false, &mut notes),
        responses::request_in::read_request(body, &mut notes),
    ];
    for request in requests.into_iter().flatten() {
        for model in ["gemini-2.5-pro", "gemini-3-pro", "gpt-5"] {
            let _ = gemini::request_out::write_request(&request, &target(model), &mut notes);
            let _ = responses::request_out::write_request(&request, &target(model), &mut notes);
        }
    }
    let replies = [gemini::reply_in::read_reply(body), responses::reply_in::read_reply(body)];
    for reply in replies.into_iter().flatten() {
        parsed(&gemini::reply_out::write_reply(&reply));
        parsed(&responses::reply_out::write_reply(&reply, &ReplyContext::default()));
    }
    parsed(&gemini::error::write_error(&gemini::error::read_error(500, body)));
}

fn write_everything(events: &[StreamEvent]) {
    stream_of(&mut gemini::stream_out::GeminiStreamWriter::default(), events.to_vec());
    let mut writer = responses::stream_out::ResponsesStreamWriter::new(ReplyContext::default());
    stream_of(&mut writer, events.to_vec());
}

/// A legal stream of the form.
fn legal_stream() -> impl Strategy<Value = Vec<StreamEvent>> {
    let text = "[a-zé\"\\\\\n]{1,8}";
    let call = (0_u8..9, 0_i64..99).prop_map(|(id, number)| {
        let start = StreamEvent::ToolCallStart {
            id: format!("call_{id}"),
            name: "f".into(),
            seal: None,
            is_free_text: false,
        };
        let arguments = json!({"n": number}).to_string();
        let (left, right) = arguments.split_at(3);
        vec![
            start,
            StreamEvent::ToolCallDelta(left.into()),
            StreamEvent::ToolCallDelta(right.into()),
            StreamEvent::ToolCallEnd,
        ]
    });
    let piece = prop_oneof![
        text.prop_map(|text| vec![StreamEvent::Text(text)]),
        text.prop_map(|text| vec![StreamEvent::Thinking(text)]),
        call,
    ];
    (prop::collection::vec(piece, 0..6), 0_u64..50).prop_map(|(pieces, count)| {
        let start = StreamEvent::Start { id: "r".into(), model: "m".into(), created_unix_s: None };
        let mut events = vec![start];
        events.extend(pieces.into_iter().flatten());
        let calls = events.iter().any(|event| matches!(event, StreamEvent::ToolCallEnd));
        let output = count;
        events.push(StreamEvent::Usage(TokenUsage { output, ..TokenUsage::default() }));
        let stop = if calls { StopReason::ToolUse } else { StopReason::EndOfTurn };
        events.extend([StreamEvent::Stop(stop), StreamEvent::End]);
        events
    })
}

/// The events with neighbours of one kind joined, and without what a dialect adds.
fn joined(events: Vec<StreamEvent>) -> Vec<StreamEvent> {
    let mut out: Vec<StreamEvent> = Vec::new();
    let mut usage = TokenUsage::default();
    for event in events {
        match (out.last_mut(), event) {
            (Some(StreamEvent::Text(left)), StreamEvent::Text(right))
            | (Some(StreamEvent::Thinking(left)), StreamEvent::Thinking(right))
            | (Some(StreamEvent::ToolCallDelta(left)), StreamEvent::ToolCallDelta(right)) => {
                left.push_str(&right);
            }
            (_, StreamEvent::Usage(later)) => usage.update(later),
            (_, StreamEvent::Start { id, model, .. }) => {
                out.push(StreamEvent::Start { id, model, created_unix_s: None });
            }
            (_, event) => out.push(event),
        }
    }
    out.push(StreamEvent::Usage(usage));
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn arbitrary_bytes_never_panic(body in prop::collection::vec(any::<u8>(), 0..200)) {
        read_everything(&body);
        for mut reader in readers() {
            if let Some(events) = events_of(&mut *reader, &[&body]) {
                write_everything(&events);
            }
        }
    }

    #[test]
    fn arbitrary_json_never_panics(values in prop::collection::vec(any_json(), 1..6)) {
        for value in &values {
            read_everything(value.to_string().as_bytes());
        }
        let stream: String = values.iter().map(|value| format!("data: {value}\n\n")).collect();
        for mut reader in readers() {
            if let Some(events) = events_of(&mut *reader, &[stream.as_bytes()]) {
                write_everything(&events);
            }
        }
    }

    #[test]
    fn what_is_written_is_read_again(events in legal_stream()) {
        let mut writer = responses::stream_out::ResponsesStreamWriter::new(ReplyContext::default());
        let written = stream_of(&mut writer, events.clone());
        let mut reader = responses::stream_in::ResponsesStreamReader::default();
        let read = events_of(&mut reader, &[&written]).expect("a stream");
        prop_assert_eq!(joined(read), joined(events.clone()));
        let mut writer = gemini::stream_out::GeminiStreamWriter::default();
        let written = stream_of(&mut writer, events.clone());
        let mut reader = gemini::stream_in::GeminiStreamReader::default();
        let read = events_of(&mut reader, &[&written]).expect("a stream");
        prop_assert_eq!(joined(read), joined(events));
    }
}
