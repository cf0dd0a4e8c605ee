//! OpenAI's older text completions.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{Answer, CREATED, Events, chat, data};

pub(super) fn whole(answer: &Answer) -> Value {
    let mut whole = part(answer, &answer.whole(), json!("stop"));
    whole["usage"] = chat::usage(answer);
    whole
}

pub(super) fn events(answer: &Answer) -> Events {
    let token = |piece: &String| data(&part(answer, piece, Value::Null));
    let mut closing = vec![data(&part(answer, "", json!("stop")))];
    if answer.wants_usage {
        let mut last = part(answer, "", Value::Null);
        last["choices"] = json!([]);
        last["usage"] = chat::usage(answer);
        closing.push(data(&last));
    }
    Events {
        opening: Vec::new(),
        tokens: answer.pieces.iter().map(token).collect(),
        closing,
        terminator: Bytes::from_static(b"data: [DONE]\n\n"),
        ping: data(&part(answer, "", Value::Null)),
    }
}

fn part(answer: &Answer, text: &str, reason: Value) -> Value {
    json!({
        "id": format!("cmpl-fake{}", answer.number), "object": "text_completion",
        "created": CREATED, "model": answer.model,
        "choices": [{"index": 0, "text": text, "logprobs": null, "finish_reason": reason}],
    })
}
