//! Gemini's `embedContent` and `batchEmbedContents`.

use serde_json::{Map, Value, json};

use super::{EmbeddingReply, EmbeddingRequest};
use crate::convert::fault::{ReplyFault, RequestFault};
use crate::convert::fields::{Fields, parsed, reply_object, take_list};
use crate::convert::gemini::spelling;
use crate::convert::notes::Notes;

/// Reads a client's request; the path says whether it is for one text.
///
/// # Errors
/// It is not a request of this dialect, or embeds something else than text.
pub fn read_request(body: &[u8], is_single: bool) -> Result<EmbeddingRequest, RequestFault> {
    let mut fields = Fields::new(String::new(), spelling::normal(parsed(body)?))?;
    let mut request = EmbeddingRequest { is_single, ..EmbeddingRequest::default() };
    if is_single {
        one(fields, &mut request)?;
    } else {
        for inner in fields.objects("requests")? {
            one(inner, &mut request)?;
        }
    }
    Ok(request)
}

fn one(mut fields: Fields<'_>, request: &mut EmbeddingRequest) -> Result<(), RequestFault> {
    let Some(mut content) = fields.object("content")? else {
        return Err(fields.fault("content", "is missing"));
    };
    let mut texts = Vec::new();
    for mut part in content.objects("parts")? {
        texts.push(part.required_string("text")?);
    }
    request.inputs.push(texts.join("\n"));
    request.dimensions = fields.count("outputDimensionality")?.or(request.dimensions);
    fields.take("model");
    request.other.extend(fields.rest());
    Ok(())
}

/// Writes a batch for a target.
#[must_use]
pub fn write_request(request: &EmbeddingRequest, model: &str, notes: &mut Notes) -> Vec<u8> {
    let one = |text: &String| {
        let mut value = json!({
            "model": format!("models/{model}"), "content": {"parts": [{"text": text}]},
        });
        if let Some(dimensions) = request.dimensions {
            value["outputDimensionality"] = dimensions.into();
        }
        value
    };
    for key in request.other.keys() {
        notes.dropped(key, "Gemini's embeddings have no such field");
    }
    let requests: Vec<Value> = request.inputs.iter().map(one).collect();
    json!({ "requests": requests }).to_string().into_bytes()
}

/// Reads a target's answer, of one text or of many.
///
/// # Errors
/// It is not an answer of this dialect.
pub fn read_reply(body: &[u8]) -> Result<EmbeddingReply, ReplyFault> {
    const WRONG: ReplyFault = ReplyFault::NotTheDialect { problem: "no embeddings" };
    let mut map = reply_object(body)?;
    let embeddings = match map.get_mut("embedding").map(Value::take) {
        Some(single) => vec![single],
        None if map.contains_key("embeddings") => take_list(&mut map, "embeddings"),
        None => return Err(WRONG),
    };
    let vector = |value: &Value| {
        let numbers = value["values"].as_array()?;
        numbers.iter().map(Value::as_f64).collect::<Option<Vec<f64>>>()
    };
    let vectors = embeddings.iter().map(vector).collect::<Option<Vec<_>>>();
    Ok(EmbeddingReply { vectors: vectors.ok_or(WRONG)?, input_tokens: 0 })
}

/// Writes an answer for the client.
#[must_use]
pub fn write_reply(reply: &EmbeddingReply, request: &EmbeddingRequest) -> Vec<u8> {
    let embedding = |vector: &Vec<f64>| json!({ "values": vector });
    let body = if request.is_single {
        let first = reply.vectors.first().map_or_else(|| json!({}), embedding);
        json!({ "embedding": first })
    } else {
        let all: Vec<Value> = reply.vectors.iter().map(embedding).collect();
        Value::Object(Map::from_iter([("embeddings".to_owned(), all.into())]))
    };
    body.to_string().into_bytes()
}
