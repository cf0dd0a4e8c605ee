//! Anthropic messages, and the counting of their tokens.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{Answer, Events, typed};

pub(super) fn whole(answer: &Answer) -> Value {
    let block = match &answer.tool {
        None => json!({"type": "text", "text": answer.whole()}),
        Some(name) => {
            // The pieces are the text of a JSON value that this program wrote.
            let input: Value = serde_json::from_str(&answer.whole()).unwrap_or_default();
            json!({"type": "tool_use", "id": tool_id(answer), "name": name, "input": input})
        }
    };
    let mut message = message(answer);
    message["content"] = json!([block]);
    message["stop_reason"] = reason(answer);
    message["usage"]["output_tokens"] = json!(answer.output_tokens());
    message
}

pub(super) fn count(answer: &Answer) -> Value {
    json!({"input_tokens": answer.input_tokens})
}

pub(super) fn events(answer: &Answer) -> Events {
    let block = match &answer.tool {
        None => json!({"type": "text", "text": ""}),
        Some(name) => {
            json!({"type": "tool_use", "id": tool_id(answer), "name": name, "input": {}})
        }
    };
    let delta = |piece: &String| match answer.tool {
        None => json!({"type": "text_delta", "text": piece}),
        Some(_) => json!({"type": "input_json_delta", "partial_json": piece}),
    };
    let token = |piece: &String| {
        typed(&json!({"type": "content_block_delta", "index": 0, "delta": delta(piece)}))
    };
    let ping = typed(&json!({"type": "ping"}));
    Events {
        opening: vec![
            typed(&json!({"type": "message_start", "message": message(answer)})),
            typed(&json!({"type": "content_block_start", "index": 0, "content_block": block})),
            ping.clone(),
        ],
        tokens: answer.pieces.iter().map(token).collect::<Vec<Bytes>>(),
        closing: vec![
            typed(&json!({"type": "content_block_stop", "index": 0})),
            typed(&json!({
                "type": "message_delta",
                "delta": {"stop_reason": reason(answer), "stop_sequence": null},
                "usage": {"output_tokens": answer.output_tokens()},
            })),
        ],
        terminator: typed(&json!({"type": "message_stop"})),
        ping,
    }
}

/// The message as it stands at the start of a stream.
fn message(answer: &Answer) -> Value {
    json!({
        "id": format!("msg_fake{}", answer.number), "type": "message", "role": "assistant",
        "model": answer.model, "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": {
            "input_tokens": answer.input_tokens, "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0, "output_tokens": 1, "service_tier": "standard",
        },
    })
}

fn reason(answer: &Answer) -> Value {
    json!(if answer.tool.is_some() { "tool_use" } else { "end_turn" })
}

fn tool_id(answer: &Answer) -> String {
    format!("toolu_fake{}", answer.number)
}
