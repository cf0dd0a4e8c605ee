//! Streams that break their own dialect's rules still become legal streams of the client's.

use serde_json::{Value, json};

use tidegate_wire::convert::context::ReplyContext;

use crate::drive::{Exchange, StreamEnding};
use crate::seen::Seen;
use crate::spoken::Spoken;

fn seen_by_all(upstream: Spoken, stream: &str) -> Vec<Seen> {
    let clients = Spoken::ALL.into_iter().filter(|client| *client != upstream);
    clients
        .map(|client| {
            let exchange = Exchange { client, upstream };
            let (released, ending) =
                exchange.stream(stream.as_bytes(), &ReplyContext::default(), usize::MAX);
            assert_eq!(ending, StreamEnding::Whole, "{exchange:?}");
            client.streamed(&released).unwrap_or_else(|problem| panic!("{exchange:?}: {problem}"))
        })
        .collect()
}

fn data(events: &[Value]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

fn named(events: &[Value]) -> String {
    let name = |event: &Value| event["type"].as_str().unwrap_or_default().to_owned();
    events.iter().map(|event| format!("event: {}\ndata: {event}\n\n", name(event))).collect()
}

#[test]
fn a_stream_of_nothing_but_its_end_is_an_empty_answer() {
    for seen in seen_by_all(Spoken::Chat, "data: [DONE]\n\n") {
        assert_eq!((seen.text.as_str(), seen.calls.len()), ("", 0));
    }
    let stream = named(&[json!({"type": "message_stop"})]);
    for seen in seen_by_all(Spoken::Messages, &stream) {
        assert_eq!(seen.text, "");
    }
}

#[test]
fn content_after_the_stop_and_text_inside_a_call_break_no_order() {
    let stream = named(&[
        json!({"type": "message_start", "message": {"id": "m", "model": "x"}}),
        json!({"type": "content_block_start", "index": 0,
            "content_block": {"type": "tool_use", "id": "t", "name": "f", "input": {}}}),
        json!({"type": "content_block_delta", "index": 0,
            "delta": {"type": "input_json_delta", "partial_json": "{\"a\":1}"}}),
        json!({"type": "content_block_delta", "index": 1,
            "delta": {"type": "text_delta", "text": "x"}}),
        json!({"type": "content_block_delta", "index": 0,
            "delta": {"type": "input_json_delta", "partial_json": "late"}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {}}),
        json!({"type": "content_block_delta", "index": 1,
            "delta": {"type": "text_delta", "text": "too late"}}),
        json!({"type": "message_stop"}),
    ]);
    for seen in seen_by_all(Spoken::Messages, &stream) {
        assert_eq!(seen.text, "x");
        assert_eq!(seen.calls[0].arguments, json!({"a": 1}));
    }
}

#[test]
fn a_stream_without_deltas_is_told_from_its_items() {
    let stream = named(&[
        json!({"type": "response.created", "response": {"id": "r", "model": "m"}}),
        json!({"type": "response.output_item.done", "output_index": 0, "item":
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}}),
        json!({"type": "response.output_item.done", "output_index": 1, "item":
            {"type": "message", "content": [{"type": "output_text", "text": "hello"}]}}),
        json!({"type": "response.output_item.added", "output_index": 2, "item":
            {"type": "function_call", "call_id": "c", "name": "f"}}),
        json!({"type": "response.output_item.done", "output_index": 2, "item":
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}}),
        json!({"type": "response.completed", "response": {"status": "completed", "output": []}}),
    ]);
    for seen in seen_by_all(Spoken::Responses, &stream) {
        assert_eq!((seen.thinking.as_str(), seen.text.as_str()), ("hm", "hello"));
        assert_eq!(seen.calls.len(), 1);
    }
}

#[test]
fn interleaved_calls_come_one_after_the_other() {
    let call = |index: u64, head: Value| {
        let mut call = head;
        call["index"] = json!(index);
        json!({"id": "c", "object": "chat.completion.chunk", "choices": [
            {"index": 0, "delta": {"role": "assistant", "tool_calls": [call]}}]})
    };
    let begin = |index: u64, name: &str| {
        let head = json!({"id": format!("id{index}"), "type": "function",
            "function": {"name": name, "arguments": "{\"n\":"}});
        call(index, head)
    };
    let go_on = |index: u64| call(index, json!({"function": {"arguments": format!("{index}}}")}}));
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]});
    let mut stream = data(&[begin(0, "f"), begin(1, "g"), go_on(1), go_on(0), end]);
    stream.push_str("data: [DONE]\n\n");
    for seen in seen_by_all(Spoken::Chat, &stream) {
        let names: Vec<&str> = seen.calls.iter().map(|call| call.name.as_str()).collect();
        assert_eq!(names, ["f", "g"]);
        assert_eq!(seen.calls[0].arguments, json!({"n": 0}));
        assert_eq!(seen.calls[1].arguments, json!({"n": 1}));
    }
}
