//! OpenAI's `/v1/embeddings`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{EmbeddingReply, EmbeddingRequest};
use crate::convert::fault::{ReplyFault, RequestFault};
use crate::convert::fields::{Fields, count_of, reply_object, take_list, take_map};
use crate::convert::notes::Notes;

/// Reads a client's request.
///
/// # Errors
/// It is not a request of this dialect, or is made of token numbers.
pub fn read_request(body: &[u8]) -> Result<EmbeddingRequest, RequestFault> {
    let mut fields = Fields::of_body(body)?;
    let inputs = match fields.take("input") {
        None => return Err(fields.fault("input", "is missing")),
        Some(Value::String(text)) => vec![text],
        Some(Value::Array(values)) => {
            let mut texts = Vec::new();
            for value in values {
                match value {
                    Value::String(text) => texts.push(text),
                    _ => return Err(RequestFault::impossible("a list of token numbers")),
                }
            }
            texts
        }
        Some(_) => return Err(fields.fault("input", "must be a string or an array")),
    };
    let encoding = fields.string("encoding_format")?;
    let dimensions = fields.count("dimensions")?;
    // The target's own name replaces it.
    fields.take("model");
    Ok(EmbeddingRequest {
        inputs,
        dimensions,
        is_base64: encoding.as_deref() == Some("base64"),
        is_single: false,
        other: fields.rest(),
    })
}

/// Writes a request for a target.
#[must_use]
pub fn write_request(request: &EmbeddingRequest, model: &str, notes: &mut Notes) -> Vec<u8> {
    let mut body = json!({"model": model, "input": request.inputs, "encoding_format": "float"});
    if let Some(dimensions) = request.dimensions {
        body["dimensions"] = dimensions.into();
    }
    for key in request.other.keys() {
        notes.dropped(key, "OpenAI's embeddings have no such field");
    }
    body.to_string().into_bytes()
}

/// Reads a target's answer.
///
/// # Errors
/// It is not an answer of this dialect.
pub fn read_reply(body: &[u8]) -> Result<EmbeddingReply, ReplyFault> {
    const WRONG: ReplyFault = ReplyFault::NotTheDialect { problem: "no list of embeddings" };
    let mut map = reply_object(body)?;
    if !map.contains_key("data") {
        return Err(WRONG);
    }
    let mut numbered = Vec::new();
    for (at, value) in take_list(&mut map, "data").into_iter().enumerate() {
        let index = value["index"].as_u64().unwrap_or(at as u64);
        numbered.push((index, vector(&value["embedding"]).ok_or(WRONG)?));
    }
    numbered.sort_by_key(|(index, _)| *index);
    let usage = take_map(&mut map, "usage").unwrap_or_default();
    Ok(EmbeddingReply {
        vectors: numbered.into_iter().map(|(_, vector)| vector).collect(),
        input_tokens: count_of(&usage, "prompt_tokens"),
    })
}

/// A vector as a list of numbers, or as base64 of 32-bit floats.
fn vector(value: &Value) -> Option<Vec<f64>> {
    match value {
        Value::Array(numbers) => numbers.iter().map(Value::as_f64).collect(),
        Value::String(text) => {
            let bytes = STANDARD.decode(text).ok()?;
            let (floats, rest) = bytes.as_chunks::<4>();
            rest.is_empty()
                .then(|| floats.iter().map(|four| f64::from(f32::from_le_bytes(*four))).collect())
        }
        _ => None,
    }
}

/// Writes an answer for the client.
#[must_use]
pub fn write_reply(reply: &EmbeddingReply, request: &EmbeddingRequest, model: &str) -> Vec<u8> {
    let embedding = |vector: &Vec<f64>| {
        if !request.is_base64 {
            return json!(vector);
        }
        // The SDKs read 32-bit floats; what a wider number has beyond them is lost there too.
        let bytes: Vec<u8> =
            vector.iter().flat_map(|number| (*number as f32).to_le_bytes()).collect();
        json!(STANDARD.encode(bytes))
    };
    let data: Vec<Value> = reply
        .vectors
        .iter()
        .enumerate()
        .map(|(at, vector)| {
            json!({"object": "embedding", "index": at, "embedding": embedding(vector)})
        })
        .collect();
    let tokens = reply.input_tokens;
    json!({"object": "list", "data": data, "model": model,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens}})
    .to_string()
    .into_bytes()
}
