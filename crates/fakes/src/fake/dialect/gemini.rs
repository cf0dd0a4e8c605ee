//! Google's Gemini: answers, chunks of a stream, counted tokens and embeddings.
//!
//! A stream has no event of its own for its end: the last chunk says why the answer ended, so it
//! stands for the terminator. Calls of tools come whole in one chunk.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{Answer, Ask, Events, data};

pub(super) fn whole(answer: &Answer) -> Value {
    let mut value = chunk(answer, &part(answer, &answer.whole()));
    value["candidates"][0]["finishReason"] = json!("STOP");
    value["usageMetadata"] = usage(answer);
    value
}

pub(super) fn events(answer: &Answer) -> Events {
    let token = |piece: &String| data(&chunk(answer, &part(answer, piece)));
    let tokens: Vec<Bytes> = match answer.tool {
        None => answer.pieces.iter().map(token).collect(),
        Some(_) => vec![token(&answer.whole())],
    };
    let empty = chunk(answer, &json!({"text": ""}));
    let mut last = empty.clone();
    last["candidates"][0]["finishReason"] = json!("STOP");
    last["usageMetadata"] = usage(answer);
    Events {
        opening: Vec::new(),
        tokens,
        closing: Vec::new(),
        terminator: data(&last),
        ping: data(&empty),
    }
}

/// The answer to `countTokens`.
pub(super) fn count(answer: &Answer) -> Value {
    json!({"totalTokens": answer.input_tokens,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": answer.input_tokens}]})
}

/// The answer to `embedContent`, or to a batch.
pub(super) fn embeddings(ask: &Ask, vector: &[f32], is_batch: bool) -> Value {
    let values = json!({ "values": vector });
    if is_batch {
        json!({"embeddings": vec![values; ask.inputs]})
    } else {
        json!({ "embedding": values })
    }
}

fn part(answer: &Answer, piece: &str) -> Value {
    match &answer.tool {
        None => json!({ "text": piece }),
        Some(name) => {
            // The pieces are the text of a JSON value that this program wrote.
            let args: Value = serde_json::from_str(piece).unwrap_or_default();
            let id = format!("call_fake{}", answer.number);
            json!({"functionCall": {"id": id, "name": name, "args": args}})
        }
    }
}

fn chunk(answer: &Answer, part: &Value) -> Value {
    json!({
        "candidates": [{"content": {"parts": [part], "role": "model"}, "index": 0}],
        "modelVersion": answer.model, "responseId": format!("fake{}", answer.number),
    })
}

fn usage(answer: &Answer) -> Value {
    json!({
        "promptTokenCount": answer.input_tokens,
        "candidatesTokenCount": answer.output_tokens(),
        "totalTokenCount": answer.input_tokens + answer.output_tokens(),
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": answer.input_tokens}],
    })
}
