//! OpenAI chat completions.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{Answer, CREATED, Events, data};

pub(super) fn whole(answer: &Answer) -> Value {
    let (message, reason) = match &answer.tool {
        None => (
            json!({"role": "assistant", "content": answer.whole(), "refusal": null,
                "annotations": []}),
            "stop",
        ),
        Some(name) => (
            json!({"role": "assistant", "content": null, "refusal": null, "tool_calls": [{
                "id": call_id(answer), "type": "function",
                "function": {"name": name, "arguments": answer.whole()},
            }]}),
            "tool_calls",
        ),
    };
    json!({
        "id": id(answer), "object": "chat.completion", "created": CREATED,
        "model": answer.model,
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": reason}],
        "usage": usage(answer), "system_fingerprint": "fp_fake",
    })
}

pub(super) fn events(answer: &Answer) -> Events {
    let opening = match &answer.tool {
        None => vec![delta(answer, json!({"role": "assistant", "content": "", "refusal": null}))],
        Some(name) => {
            let call = json!({"index": 0, "id": call_id(answer), "type": "function",
                "function": {"name": name, "arguments": ""}});
            vec![delta(answer, json!({"role": "assistant", "content": null, "tool_calls": [call]}))]
        }
    };
    let token = |piece: &String| match answer.tool {
        None => delta(answer, json!({"content": piece})),
        Some(_) => {
            let call = json!({"index": 0, "function": {"arguments": piece}});
            delta(answer, json!({"tool_calls": [call]}))
        }
    };
    let reason = if answer.tool.is_some() { "tool_calls" } else { "stop" };
    let mut closing = vec![chunk(answer, json!({}), json!(reason))];
    if answer.wants_usage {
        let mut last = base(answer);
        last["choices"] = json!([]);
        last["usage"] = usage(answer);
        closing.push(data(&last));
    }
    Events {
        opening,
        tokens: answer.pieces.iter().map(token).collect(),
        closing,
        terminator: Bytes::from_static(b"data: [DONE]\n\n"),
        ping: delta(answer, json!({"role": "assistant", "content": ""})),
    }
}

fn delta(answer: &Answer, delta: Value) -> Bytes {
    chunk(answer, delta, Value::Null)
}

fn chunk(answer: &Answer, delta: Value, reason: Value) -> Bytes {
    let mut chunk = base(answer);
    chunk["choices"] =
        json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": reason}]);
    if answer.wants_usage {
        chunk["usage"] = Value::Null;
    }
    data(&chunk)
}

fn base(answer: &Answer) -> Value {
    json!({
        "id": id(answer), "object": "chat.completion.chunk", "created": CREATED,
        "model": answer.model, "system_fingerprint": "fp_fake",
    })
}

pub(super) fn usage(answer: &Answer) -> Value {
    json!({
        "prompt_tokens": answer.input_tokens, "completion_tokens": answer.output_tokens(),
        "total_tokens": answer.input_tokens + answer.output_tokens(),
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0,
            "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0},
    })
}

fn id(answer: &Answer) -> String {
    format!("chatcmpl-fake{}", answer.number)
}

fn call_id(answer: &Answer) -> String {
    format!("call_fake{}", answer.number)
}
