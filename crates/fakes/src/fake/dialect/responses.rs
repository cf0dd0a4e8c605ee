//! OpenAI responses.
//!
//! Every event of a stream carries its sequence number, counted from 0 without a gap.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{Answer, CREATED, Events, typed};

pub(super) fn whole(answer: &Answer) -> Value {
    response(answer, "completed", json!([item(answer, "completed")]), usage(answer))
}

pub(super) fn events(answer: &Answer) -> Events {
    let mut count = 0_u64;
    let mut event = |mut value: Value| -> Bytes {
        value["sequence_number"] = json!(count);
        count += 1;
        typed(&value)
    };
    let begun = response(answer, "in_progress", json!([]), Value::Null);
    let place = json!({"item_id": item_id(answer), "output_index": 0});
    let mut opening = vec![
        event(json!({"type": "response.created", "response": begun})),
        event(json!({"type": "response.in_progress", "response": begun})),
        event(json!({"type": "response.output_item.added", "output_index": 0,
            "item": item(answer, "in_progress")})),
    ];
    let ping = event_at(2, json!({"type": "response.in_progress", "response": begun}));
    if answer.tool.is_none() {
        opening.push(event(with(
            &place,
            "response.content_part.added",
            json!({
            "content_index": 0, "part": text_part("")}),
        )));
    }
    let tokens: Vec<Bytes> = answer
        .pieces
        .iter()
        .map(|piece| {
            event(match answer.tool {
                None => with(
                    &place,
                    "response.output_text.delta",
                    json!({
                    "content_index": 0, "delta": piece, "logprobs": []}),
                ),
                Some(_) => {
                    with(&place, "response.function_call_arguments.delta", json!({"delta": piece}))
                }
            })
        })
        .collect();
    let text = answer.whole();
    let mut closing = match &answer.tool {
        None => vec![
            event(with(
                &place,
                "response.output_text.done",
                json!({
                "content_index": 0, "text": text, "logprobs": []}),
            )),
            event(with(
                &place,
                "response.content_part.done",
                json!({
                "content_index": 0, "part": text_part(&text)}),
            )),
        ],
        Some(name) => vec![event(with(
            &place,
            "response.function_call_arguments.done",
            json!({
            "name": name, "arguments": text}),
        ))],
    };
    closing.push(event(json!({"type": "response.output_item.done", "output_index": 0,
        "item": item(answer, "completed")})));
    let terminator = event(json!({"type": "response.completed", "response": whole(answer)}));
    Events { opening, tokens, closing, terminator, ping }
}

fn event_at(number: u64, mut value: Value) -> Bytes {
    value["sequence_number"] = json!(number);
    typed(&value)
}

/// An event about the one item of the answer.
fn with(place: &Value, kind: &str, more: Value) -> Value {
    let mut event = json!({"type": kind});
    for part in [place, &more] {
        for (key, value) in part.as_object().into_iter().flatten() {
            event[key] = value.clone();
        }
    }
    event
}

fn response(answer: &Answer, status: &str, output: Value, usage: Value) -> Value {
    json!({
        "id": format!("resp_fake{}", answer.number), "object": "response",
        "created_at": CREATED, "status": status, "background": false, "error": null,
        "incomplete_details": null, "instructions": null, "max_output_tokens": null,
        "model": answer.model, "output": output, "parallel_tool_calls": true,
        "previous_response_id": null, "reasoning": {"effort": null, "summary": null},
        "store": false, "temperature": 1.0, "text": {"format": {"type": "text"}},
        "tool_choice": "auto", "tools": [], "top_p": 1.0, "truncation": "disabled",
        "usage": usage, "user": null, "metadata": {},
    })
}

/// The one item of the answer: a message or a function call.
fn item(answer: &Answer, status: &str) -> Value {
    let is_done = status == "completed";
    match &answer.tool {
        None => {
            let content = if is_done { json!([text_part(&answer.whole())]) } else { json!([]) };
            json!({"id": item_id(answer), "type": "message", "status": status,
                "role": "assistant", "content": content})
        }
        Some(name) => {
            let arguments = if is_done { answer.whole() } else { String::new() };
            json!({"id": item_id(answer), "type": "function_call", "status": status,
                "call_id": format!("call_fake{}", answer.number), "name": name,
                "arguments": arguments})
        }
    }
}

fn text_part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

fn item_id(answer: &Answer) -> String {
    let kind = if answer.tool.is_some() { "fc" } else { "msg" };
    format!("{kind}_fake{}", answer.number)
}

fn usage(answer: &Answer) -> Value {
    json!({
        "input_tokens": answer.input_tokens,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": answer.output_tokens(),
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": answer.input_tokens + answer.output_tokens(),
    })
}
