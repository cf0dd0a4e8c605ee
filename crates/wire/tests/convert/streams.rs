//! What streams say in the other dialect, and in which order.

use bytes::Bytes;
use serde_json::Value;
use tidegate_wire::convert::context::ReplyContext;
use tidegate_wire::dialect::Dialect;

use super::{CHAT, MESSAGES, context, pair, parse};

pub(super) const CHAT_STREAM: &str = concat!(
    "data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"created\":3,\"model\":\"gpt\",",
    "\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n",
    "data: {\"id\":\"c1\",\"choices\":[{\"index\":0,",
    "\"delta\":{\"reasoning_content\":\"Hm\"}}]}\n\n",
    ": comment\n\n",
    "data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Good \"}}]}\n\n",
    "data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"däy\"}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"t0\",",
    "\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,",
    "\"function\":{\"arguments\":\"{\\\"a\\\":\"}}]}}]}\n\n",
    // The second call begins while the first is open.
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":1,\"id\":\"t1\",",
    "\"type\":\"function\",\"function\":{\"name\":\"g\",\"arguments\":\"{\\\"b\\\"\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,",
    "\"function\":{\"arguments\":\"1}\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":1,",
    "\"function\":{\"arguments\":\":2}\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":5,",
    "\"prompt_tokens_details\":{\"cached_tokens\":4}}}\n\n",
    "data: [DONE]\n\n",
);

pub(super) const MESSAGES_STREAM: &str = concat!(
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",",
    "\"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude\",\"content\":[],",
    "\"usage\":{\"input_tokens\":3,\"cache_read_input_tokens\":4,\"output_tokens\":1}}}\n\n",
    "event: ping\ndata: {\"type\":\"ping\"}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,",
    "\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,",
    "\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"Hm\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,",
    "\"delta\":{\"type\":\"signature_delta\",\"signature\":\"sig\"}}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":1,",
    "\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,",
    "\"delta\":{\"type\":\"text_delta\",\"text\":\"Good däy\"}}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":1}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":2,",
    "\"content_block\":{\"type\":\"tool_use\",\"id\":\"t0\",\"name\":\"f\",\"input\":{}}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":2,",
    "\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"a\\\":1}\"}}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":2}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":3,",
    "\"content_block\":{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"g\",\"input\":{}}}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":3}\n\n",
    "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":",
    "\"tool_use\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":9}}\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
);

/// The whole stream in the client's dialect, however it is cut.
pub(super) fn run(client: Dialect, target: Dialect, chunks: &[&[u8]]) -> String {
    run_with(client, target, chunks, &context())
}

fn run_with(client: Dialect, target: Dialect, chunks: &[&[u8]], context: &ReplyContext) -> String {
    let mut converter = pair(client, target).stream(context, 1 << 20);
    let mut out = Vec::new();
    for chunk in chunks {
        if converter.feed(Bytes::copy_from_slice(chunk), &mut out).is_err() {
            return String::from_utf8_lossy(&out).into_owned() + "FAULT";
        }
    }
    if converter.finish(&mut out).is_err() {
        out.extend_from_slice(b"FAULT");
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn data_of(stream: &str) -> Vec<Value> {
    let lines = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    lines.filter(|data| *data != "[DONE]").map(|data| parse(data.as_bytes())).collect()
}

/// The names of the events, a run of the same one once.
fn names_of(stream: &str) -> Vec<&str> {
    let mut names: Vec<_> =
        stream.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    names.dedup();
    names
}

#[test]
fn a_chat_stream_becomes_a_messages_stream_in_legal_order() {
    let stream = run(MESSAGES, CHAT, &[CHAT_STREAM.as_bytes()]);
    let block = ["content_block_start", "content_block_delta", "content_block_stop"];
    let mut order = vec!["message_start"];
    order.extend(block.repeat(4));
    order.extend(["message_delta", "message_stop"]);
    assert_eq!(names_of(&stream), order, "{stream}");
    let events = data_of(&stream);
    assert_eq!(events[0]["message"]["id"], "c1");
    let starts: Vec<_> = events.iter().filter(|it| it["type"] == "content_block_start").collect();
    let kinds: Vec<_> = starts.iter().map(|it| &it["content_block"]["type"]).collect();
    assert_eq!(kinds, ["thinking", "text", "tool_use", "tool_use"]);
    let indexes: Vec<_> = starts.iter().map(|it| &it["index"]).collect();
    assert_eq!(indexes, [0, 1, 2, 3]);
    let joined = |index: u64, key: &str| -> String {
        let deltas = events.iter().filter(|it| it["index"] == index);
        deltas.filter_map(|it| it["delta"][key].as_str()).collect()
    };
    assert_eq!(joined(0, "thinking"), "Hm");
    assert_eq!(joined(1, "text"), "Good däy");
    assert_eq!(joined(2, "partial_json"), "{\"a\":1}");
    assert_eq!(joined(3, "partial_json"), "{\"b\":2}");
    let last = &events[events.len() - 2];
    assert_eq!(last["delta"]["stop_reason"], "tool_use");
    assert_eq!(last["usage"]["input_tokens"], 5);
    assert_eq!(last["usage"]["cache_read_input_tokens"], 4);
    assert_eq!(last["usage"]["output_tokens"], 5);
}

/// A stop without its `message_stop` would pass for a whole chat stream that lacks `[DONE]` only.
#[test]
fn a_messages_stream_without_its_end_tells_no_client_that_it_stopped() {
    let end = MESSAGES_STREAM.find("event: message_stop").expect("its last event");
    let sign = "\"finish_reason\":\"tool_calls\"";
    let whole = run(CHAT, MESSAGES, &[MESSAGES_STREAM.as_bytes()]);
    assert!(whole.contains(sign), "{whole}");
    let cut = run(CHAT, MESSAGES, &[&MESSAGES_STREAM.as_bytes()[..end]]);
    assert!(!cut.contains(sign) && !cut.contains("[DONE]"), "{cut}");
}

#[test]
fn a_messages_stream_becomes_a_chat_stream_in_legal_order() {
    let stream = run(CHAT, MESSAGES, &[MESSAGES_STREAM.as_bytes()]);
    assert!(stream.ends_with("data: [DONE]\n\n"), "{stream}");
    assert_eq!(stream.matches("[DONE]").count(), 1);
    let chunks = data_of(&stream);
    assert_eq!(chunks[0]["choices"][0]["delta"]["role"], "assistant");
    assert!(chunks.iter().all(|it| it["id"] == "msg_1" && it["model"] == "claude"), "{stream}");
    let delta = |key: &str| -> String {
        chunks.iter().filter_map(|it| it["choices"][0]["delta"][key].as_str()).collect()
    };
    assert_eq!(delta("content"), "Good däy");
    assert_eq!(delta("reasoning_content"), "Hm");
    let arguments = |index: u64| -> String {
        let calls = chunks.iter().map(|it| &it["choices"][0]["delta"]["tool_calls"][0]);
        let calls = calls.filter(|call| call["index"] == index);
        calls.filter_map(|call| call["function"]["arguments"].as_str()).collect()
    };
    assert_eq!(arguments(0), "{\"a\":1}");
    assert_eq!(arguments(1), "{}", "a call without arguments is an empty object");
    let finish = &chunks[chunks.len() - 2]["choices"][0]["finish_reason"];
    assert_eq!(finish, "tool_calls");
    let usage = &chunks[chunks.len() - 1]["usage"];
    assert_eq!(usage["prompt_tokens"], 7);
    assert_eq!(usage["completion_tokens"], 9);
    let without = ReplyContext { includes_usage: false, ..context() };
    let stream = run_with(CHAT, MESSAGES, &[MESSAGES_STREAM.as_bytes()], &without);
    assert!(!stream.contains("usage") && stream.ends_with("data: [DONE]\n\n"), "{stream}");
}

#[test]
fn a_stream_that_breaks_off_gets_no_terminator() {
    for (client, target, stream, end) in [
        (MESSAGES, CHAT, CHAT_STREAM, "\"finish_reason\":\"tool"),
        (CHAT, MESSAGES, MESSAGES_STREAM, "event: message_stop"),
    ] {
        let cut = stream.find(end).expect("it has an end");
        let cut = stream[..cut].rfind("\n\n").expect("an event ends there") + 2;
        let converted = run(client, target, &[&stream.as_bytes()[..cut]]);
        assert!(!converted.contains("[DONE]"), "{converted}");
        assert!(!converted.contains("message_stop"), "{converted}");
    }
}

#[test]
fn a_chat_stream_without_its_last_formal_event_is_whole() {
    let stream = CHAT_STREAM.strip_suffix("data: [DONE]\n\n").expect("it ends so");
    let converted = run(MESSAGES, CHAT, &[stream.as_bytes()]);
    assert_eq!(converted, run(MESSAGES, CHAT, &[CHAT_STREAM.as_bytes()]));
}

#[test]
fn an_error_inside_a_stream_is_the_clients_error_event_and_the_end() {
    let error = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\
                 \"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    let stream =
        format!("{}{error}{MESSAGES_STREAM}", &MESSAGES_STREAM[..MESSAGES_STREAM.len() / 2]);
    let at = MESSAGES_STREAM[..MESSAGES_STREAM.len() / 2].rfind("\n\n").expect("an event") + 2;
    let stream = format!("{}{error}{}", &stream[..at], MESSAGES_STREAM);
    let converted = run(CHAT, MESSAGES, &[stream.as_bytes()]);
    let last = data_of(&converted).pop().expect("an event");
    assert_eq!(last["error"]["message"], "Overloaded");
    assert!(!converted.contains("[DONE]"), "{converted}");
    let error = "data: {\"error\":{\"message\":\"busy\",\"type\":\"rate_limit_error\"}}\n\n";
    let converted = run(MESSAGES, CHAT, &[error.as_bytes()]);
    assert!(converted.starts_with("event: error\ndata: {\"type\":\"error\""), "{converted}");
    assert!(converted.contains("rate_limit_error"), "{converted}");
}

#[test]
fn an_event_that_is_no_json_is_a_fault_after_what_was_good() {
    let stream = format!(
        "{}data: {{\"cho\n\n",
        &CHAT_STREAM[..CHAT_STREAM.find("data: {\"id\":\"c1\",\"choices\"").unwrap_or(0)]
    );
    let converted = run(MESSAGES, CHAT, &[stream.as_bytes()]);
    assert!(converted.starts_with("event: message_start"), "{converted}");
    assert!(converted.ends_with("FAULT"), "{converted}");
}

#[test]
fn a_call_of_a_free_text_tool_is_free_text_again() {
    let context = ReplyContext { free_text_tools: vec!["f".to_owned()], ..context() };
    let stream = MESSAGES_STREAM.replace("{\\\"a\\\":1}", "{\\\"input\\\":\\\"*** Begin\\\"}");
    let converted = run_with(CHAT, MESSAGES, &[stream.as_bytes()], &context);
    let chunks = data_of(&converted);
    let inputs = chunks
        .iter()
        .filter_map(|it| it["choices"][0]["delta"]["tool_calls"][0]["custom"]["input"].as_str());
    assert_eq!(inputs.collect::<String>(), "*** Begin");
}

#[test]
fn an_answer_of_calls_alone_has_no_text_not_even_an_empty_one() {
    let (start, rest) = MESSAGES_STREAM.split_once("event: content_block_start").expect("a block");
    let calls = rest
        .find("event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":2");
    let calls = &rest[calls.expect("the first call")..];
    let stream = format!("{start}{calls}");
    let first = |stream: &str| {
        let out = run(CHAT, MESSAGES, &[stream.as_bytes()]);
        let data =
            out.lines().next().and_then(|line| line.strip_prefix("data: ")).expect("a chunk");
        parse(data.as_bytes())["choices"][0]["delta"].clone()
    };
    assert_eq!(first(&stream), serde_json::json!({ "role": "assistant", "content": null }));
    let text = rest
        .find("event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":1");
    let text = format!("{start}{}", &rest[text.expect("the text")..]);
    assert_eq!(first(&text), serde_json::json!({ "role": "assistant", "content": "" }));
}
