//! Rules of answers that no cell of the matrix shows.

use serde_json::{Value, json};
use tidegate_wire::convert::context::ReplyContext;

use crate::drive::Exchange;
use crate::seen::Seen;
use crate::spoken::{Spoken, parse};

fn between(client: Spoken, upstream: Spoken) -> Exchange {
    Exchange { client, upstream }
}

fn chat_answer(message: Value, reason: &str) -> Vec<u8> {
    json!({"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [
        {"index": 0, "message": message, "finish_reason": reason}]})
    .to_string()
    .into_bytes()
}

fn seen(client: Spoken, upstream: Spoken, body: &[u8]) -> Seen {
    let exchange = between(client, upstream);
    let body = exchange.reply(body, &ReplyContext::default()).expect("an answer");
    client.seen(&body).expect("a legal answer")
}

#[test]
fn a_call_that_the_limit_cut_is_told_as_cut() {
    let call = json!({"id": "c1", "type": "function",
        "function": {"name": "f", "arguments": "{\"a\":1}"}});
    let message = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    let cut = chat_answer(message.clone(), "length");
    assert_eq!(seen(Spoken::Messages, Spoken::Chat, &cut).stop, "max_tokens");
    assert_eq!(seen(Spoken::Gemini, Spoken::Chat, &cut).stop, "MAX_TOKENS");
    let plain = chat_answer(message, "stop");
    assert_eq!(seen(Spoken::Messages, Spoken::Chat, &plain).stop, "tool_use");
}

/// Gemini tells the input with every chunk, Messages at its start.
#[test]
fn the_input_that_gemini_tells_first_is_told_at_the_start_of_a_message() {
    let chunk = r#"{"candidates":[{"content":{"parts":[{"text":"a"}],"role":"model"},"index":0,
        "finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":1}}"#;
    let stream = format!("data: {}\n\n", chunk.replace('\n', ""));
    let exchange = between(Spoken::Messages, Spoken::Gemini);
    let (out, _) = exchange.stream(stream.as_bytes(), &ReplyContext::default(), usize::MAX);
    let first = &crate::seen::frames(&out)[0];
    let first = first.json().expect("JSON");
    assert_eq!(first["message"]["usage"]["input_tokens"], 7);
}

#[test]
fn thinking_under_two_names_is_told_once() {
    let message = json!({"role": "assistant", "content": "x", "reasoning": "hm",
        "reasoning_content": "hm"});
    let answer = chat_answer(message, "stop");
    assert_eq!(seen(Spoken::Messages, Spoken::Chat, &answer).thinking, "hm");
}

#[test]
fn readable_and_encrypted_reasoning_are_one_block_and_come_back_together() {
    let body = Spoken::Responses.sample("thinking.reply.json");
    let exchange = between(Spoken::Messages, Spoken::Responses);
    let plain = parse(&exchange.reply(&body, &ReplyContext::default()).expect("an answer"));
    let block = plain["content"][0].clone();
    assert_eq!(block["type"], "thinking");
    let request = json!({"max_tokens": 5, "messages": [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": [block, {"type": "text", "text": "a"}]},
        {"role": "user", "content": "b"}]});
    let sent = exchange.request(request.to_string().as_bytes(), false).expect("a request");
    let item = &parse(&sent.body)["input"][1];
    assert_eq!(item["type"], "reasoning");
    assert_eq!(item["encrypted_content"], "gAAAAABoIPOEwhole");
    assert_eq!(
        item["summary"][0]["text"],
        "Low water was at noon, so high water is about six hours earlier."
    );
}
