//! Requests and streams that are odd but legal, between every two dialects.

use serde_json::{Value, json};
use tidegate_wire::convert::context::ReplyContext;

use crate::asked::{Choice, Piece};
use crate::drive::{Exchange, StreamEnding};
use crate::seen::Seen;
use crate::spoken::{Spoken, parse};

const PIXEL: &str = "iVBORw0KGgo=";

fn others(client: Spoken) -> impl Iterator<Item = Exchange> {
    let upstreams = Spoken::ALL.into_iter().filter(move |upstream| *upstream != client);
    upstreams.map(move |upstream| Exchange { client, upstream })
}

/// What each provider of another dialect is asked, and the notes.
fn sent(client: Spoken, body: &Value) -> Vec<(Spoken, Value, Vec<String>)> {
    let body = body.to_string();
    let of = |exchange: Exchange| {
        let sent = exchange.request(body.as_bytes(), false);
        let sent = sent.unwrap_or_else(|fault| panic!("{exchange:?}: {fault}"));
        (exchange.upstream, parse(&sent.body), sent.notes)
    };
    others(client).map(of).collect()
}

/// The same where it is refused everywhere with these words.
fn refused(client: Spoken, body: &Value, wanted: &str) {
    for exchange in others(client) {
        let Err(fault) = exchange.request(body.to_string().as_bytes(), false) else {
            panic!("{exchange:?}: it was sent")
        };
        assert!(fault.to_string().contains(wanted), "{exchange:?}: {fault}");
    }
}

#[test]
fn only_the_allowed_tools_are_offered() {
    let tool = |name: &str| json!({"type": "function", "function": {"name": name}});
    let allowed = json!({"mode": "required", "tools": [
        {"type": "function", "function": {"name": "a"}},
        {"type": "function", "function": {"name": "c"}}]});
    let body = json!({"messages": [{"role": "user", "content": "hi"}],
        "tools": [tool("a"), tool("b"), tool("c")],
        "tool_choice": {"type": "allowed_tools", "allowed_tools": allowed}});
    for (upstream, body, _) in sent(Spoken::Chat, &body) {
        let asked = upstream.asked(&body);
        let names: Vec<&str> = asked.tools.iter().map(|tool| tool.0.as_str()).collect();
        assert_eq!(names, ["a", "c"], "{upstream:?}");
        assert_eq!(asked.choice, Some(Choice::Any), "{upstream:?}");
    }
}

#[test]
fn an_image_among_the_instructions_moves_to_the_users_turn() {
    let url = format!("data:image/png;base64,{PIXEL}");
    let chat = json!({"messages": [
        {"role": "system", "content": [{"type": "text", "text": "Be brief."},
            {"type": "image_url", "image_url": {"url": url}}]},
        {"role": "user", "content": "hi"}]});
    let responses = json!({"input": [
        {"role": "developer", "content": [{"type": "input_text", "text": "Be brief."},
            {"type": "input_image", "image_url": url}]},
        {"role": "user", "content": "hi"}]});
    for (client, body) in [(Spoken::Chat, chat), (Spoken::Responses, responses)] {
        for (upstream, body, notes) in sent(client, &body) {
            let asked = upstream.asked(&body);
            assert_eq!(asked.system, "Be brief.", "{client:?} {upstream:?}");
            assert_eq!(body.to_string().matches(PIXEL).count(), 1, "{client:?} {upstream:?}");
            let system = [
                &body["system"],
                &body["instructions"],
                &body["systemInstruction"],
                &body["messages"][0]["content"],
            ];
            let is_there = system.iter().any(|it| it.to_string().contains(PIXEL));
            assert!(!is_there || upstream == Spoken::Messages, "{client:?} {upstream:?}: {body}");
            assert!(notes.iter().any(|note| note.contains("image")), "{upstream:?}: {notes:?}");
        }
    }
}

#[test]
fn an_image_that_a_model_made_stays_behind_with_a_note() {
    let image = json!({"inlineData": {"mimeType": "image/png", "data": PIXEL}});
    let body = json!({"contents": [
        {"role": "user", "parts": [{"text": "draw"}]},
        {"role": "model", "parts": [{"text": "here"}, image]},
        {"role": "user", "parts": [{"text": "thanks"}]}]});
    for (upstream, body, notes) in sent(Spoken::Gemini, &body) {
        assert!(!body.to_string().contains(PIXEL), "{upstream:?}: {body}");
        assert!(notes.iter().any(|note| note.contains("assistant")), "{upstream:?}: {notes:?}");
    }
}

#[test]
fn a_tool_that_was_found_is_named_in_the_result_of_the_search() {
    let body = json!({"max_tokens": 9, "tools": [
            {"name": "find", "input_schema": {"type": "object"}},
            {"name": "tide", "input_schema": {"type": "object"}, "defer_loading": true}],
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "t", "name": "find", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": [
                {"type": "tool_reference", "tool_name": "tide"}]}]}]});
    for (upstream, body, _) in sent(Spoken::Messages, &body) {
        let asked = upstream.asked(&body);
        assert_eq!(asked.tools.len(), 2, "{upstream:?}");
        let result = body.pointer(match upstream {
            Spoken::Responses => "/input/2/output",
            Spoken::Gemini => "/contents/2/parts/0/functionResponse/response/result",
            _ => "/messages/2/content",
        });
        assert!(result.is_some_and(|it| it.to_string().contains("tide")), "{upstream:?}: {body}");
    }
}

#[test]
fn a_video_by_its_address_is_refused_and_a_picture_is_known_by_its_name() {
    let part = |uri: &str| {
        let file = json!({"fileData": {"fileUri": uri}});
        json!({"contents": [{"role": "user", "parts": [{"text": "look"}, file]}]})
    };
    refused(Spoken::Gemini, &part("https://www.youtube.com/watch?v=1"), "video");
    refused(Spoken::Gemini, &part("https://youtu.be/1"), "video");
    refused(Spoken::Gemini, &part("https://example.com/a.mp4"), "video");
    for (upstream, body, _) in sent(Spoken::Gemini, &part("https://example.com/a.png?x=1")) {
        let asked = upstream.asked(&body);
        let is_image = |piece: &Piece| matches!(piece, Piece::Image(_));
        assert!(asked.turns[0].1.iter().any(is_image), "{upstream:?}: {body}");
    }
}

/// What clients of every other dialect see of a stream.
fn seen_by_all(upstream: Spoken, stream: &str) -> Vec<(Spoken, Seen)> {
    let context = ReplyContext { includes_usage: true, ..ReplyContext::default() };
    let clients = Spoken::ALL.into_iter().filter(|client| *client != upstream);
    clients
        .map(|client| {
            let exchange = Exchange { client, upstream };
            let whole = exchange.stream(stream.as_bytes(), &context, usize::MAX);
            assert_eq!(whole.1, StreamEnding::Whole, "{exchange:?}");
            assert_eq!(exchange.stream(stream.as_bytes(), &context, 1), whole, "{exchange:?}");
            let seen = client.streamed(&whole.0);
            (client, seen.unwrap_or_else(|problem| panic!("{exchange:?}: {problem}")))
        })
        .collect()
}

fn chunk(delta: Value) -> String {
    let chunk = json!({"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [
        {"index": 0, "delta": delta, "finish_reason": null}]});
    format!("data: {chunk}\n\n")
}

fn call(index: u64, call: Value) -> String {
    let mut call = call;
    call["index"] = json!(index);
    chunk(json!({"tool_calls": [call]}))
}

const CHAT_END: &str = "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{},\
    \"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n";

#[test]
fn an_empty_delta_of_a_call_that_is_over_is_no_call() {
    let begin = |index: u64, name: &str| {
        call(
            index,
            json!({"id": format!("id{index}"), "type": "function",
            "function": {"name": name, "arguments": ""}}),
        )
    };
    let more = |index: u64, text: &str| call(index, json!({"function": {"arguments": text}}));
    let stream = [
        chunk(json!({"role": "assistant", "content": ""})),
        begin(0, "f"),
        more(0, "{\"n\":0}"),
        begin(1, "g"),
        more(0, ""),
        more(1, "{\"n\":"),
        more(0, " "),
        call(0, json!({})),
        more(1, "1}"),
        more(1, ""),
        chunk(json!({})),
        CHAT_END.to_owned(),
    ]
    .concat();
    for (client, seen) in seen_by_all(Spoken::Chat, &stream) {
        let names: Vec<&str> = seen.calls.iter().map(|call| call.name.as_str()).collect();
        assert_eq!(names, ["f", "g"], "{client:?}");
        assert_eq!(seen.calls[0].arguments, json!({"n": 0}), "{client:?}");
        assert_eq!(seen.calls[1].arguments, json!({"n": 1}), "{client:?}");
    }
}

/// A good stream of each dialect, from the samples.
fn sample(spoken: Spoken, case: &str) -> String {
    String::from_utf8(spoken.sample(&format!("{case}.stream.sse"))).expect("text")
}

#[test]
fn comments_empty_events_and_blank_data_change_nothing() {
    for upstream in Spoken::ALL {
        for case in ["text", "parallel-tools", "thinking"] {
            let plain = sample(upstream, case).replace("\r\n", "\n");
            let noisy: String = plain
                .split("\n\n")
                .filter(|frame| !frame.trim().is_empty())
                .map(|frame| format!(": keep-alive\n\n\n\ndata:\n\ndata: \n\n{frame}\n\n"))
                .collect();
            let expected = seen_by_all(upstream, &plain);
            assert_eq!(seen_by_all(upstream, &noisy), expected, "{upstream:?} {case}");
            let returns = plain.replace('\n', "\r\n");
            assert_eq!(seen_by_all(upstream, &returns), expected, "{upstream:?} {case}");
        }
    }
}

#[test]
fn usage_that_is_told_twice_is_counted_once() {
    let usage = |output: u64| {
        let total = 10 + output;
        json!({"prompt_tokens": 10, "completion_tokens": output, "total_tokens": total})
    };
    let with_usage = |output: u64| {
        let chunk = json!({"id": "c", "model": "m", "choices": [
            {"index": 0, "delta": {"content": "hi "}}], "usage": usage(output)});
        format!("data: {chunk}\n\n")
    };
    let last = json!({"id": "c", "choices": [], "usage": usage(3)});
    let stop = json!({"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    let stream = [
        with_usage(1),
        with_usage(2),
        format!("data: {stop}\n\n"),
        format!("data: {last}\n\ndata: {last}\n\ndata: [DONE]\n\n"),
    ]
    .concat();
    for (client, seen) in seen_by_all(Spoken::Chat, &stream) {
        let usage = seen.usage.expect("a count");
        assert_eq!((usage.input, usage.output), (10, 3), "{client:?}");
        assert_eq!(seen.text, "hi hi ", "{client:?}");
    }
}

#[test]
fn two_messages_that_interleave_are_each_told_once() {
    let event = |value: Value| {
        format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap_or_default())
    };
    let delta = |item: u64, text: &str| {
        event(json!({"type": "response.output_text.delta", "output_index": item,
            "content_index": 0, "delta": text}))
    };
    let done = |item: u64, text: &str| {
        let content = json!([{"type": "output_text", "text": text}]);
        event(json!({"type": "response.output_item.done", "output_index": item,
            "item": {"type": "message", "role": "assistant", "content": content}}))
    };
    let stream = [
        event(json!({"type": "response.created", "response": {"id": "r", "model": "m"}})),
        delta(0, "a"),
        delta(1, "b"),
        done(0, "a"),
        done(1, "b"),
        event(json!({"type": "response.completed",
            "response": {"status": "completed", "output": []}})),
    ]
    .concat();
    for (client, seen) in seen_by_all(Spoken::Responses, &stream) {
        assert_eq!(seen.text, "ab", "{client:?}");
    }
}
