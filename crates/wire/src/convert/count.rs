//! Counts of tokens between Anthropic's `count_tokens` and Gemini's `countTokens`.
//!
//! Both take what would be sent to generate an answer, so the request goes through the converters
//! of such requests and is then put into the form of the other endpoint:
//!
//! | | Anthropic | Gemini |
//! |---|---|---|
//! | request | the fields of Messages that are counted | `generateContentRequest` |
//! | answer | `input_tokens` | `totalTokens` |
//!
//! OpenAI's API counts at one of its own addresses only, and compatible servers do not count: a
//! request for a count is not sent there.

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::fault::{ReplyFault, RequestFault};
use super::fields::Fields;
use super::notes::Notes;
use super::pair::DialectPair;
use super::target::TargetProfile;
use crate::dialect::Dialect;

/// The fields of Messages that `count_tokens` takes; it answers 400 to others.
const COUNTED: [&str; 6] = ["model", "messages", "system", "tools", "tool_choice", "thinking"];

/// The question of an Anthropic client for Gemini.
pub(super) fn for_gemini(
    body: &[u8],
    target: &TargetProfile<'_>,
    notes: &mut Notes,
) -> Result<Bytes, RequestFault> {
    let converted = converted(Dialect::AnthropicMessages, Dialect::Gemini, body, target, notes)?;
    let mut request = Map::new();
    request.insert("model".into(), format!("models/{}", target.model).into());
    request.extend(converted.into_iter().filter(|(key, _)| key != "generationConfig"));
    Ok(json!({ "generateContentRequest": request }).to_string().into())
}

/// The question of a Gemini client for Anthropic.
pub(super) fn for_anthropic(
    body: &[u8],
    target: &TargetProfile<'_>,
    notes: &mut Notes,
) -> Result<Bytes, RequestFault> {
    let mut fields = Fields::of_body(body)?;
    let inner = fields.take("generateContentRequest");
    let inner = inner.or_else(|| fields.take("generate_content_request"));
    let body = match inner {
        Some(Value::Object(mut inner)) => {
            inner.shift_remove("model");
            Value::Object(inner)
        }
        Some(_) => {
            return Err(RequestFault::invalid("generateContentRequest", "must be an object"));
        }
        None => {
            fields.take("model");
            Value::Object(fields.rest())
        }
    };
    let body = body.to_string();
    let (client, spoken) = (Dialect::Gemini, Dialect::AnthropicMessages);
    let converted = converted(client, spoken, body.as_bytes(), target, notes)?;
    let counted = converted.into_iter().filter(|(key, _)| COUNTED.contains(&key.as_str()));
    Ok(Value::Object(counted.collect()).to_string().into())
}

/// A request for an answer, in the other dialect. Of its notes those count that are about what is
/// counted; settings of the answer are not.
fn converted(
    client: Dialect,
    spoken: Dialect,
    body: &[u8],
    target: &TargetProfile<'_>,
    notes: &mut Notes,
) -> Result<Map<String, Value>, RequestFault> {
    let pair = DialectPair::new(client, spoken)
        .ok_or_else(|| RequestFault::impossible("a count of tokens"))?;
    let converted = pair.request(body, target, 0)?;
    for note in converted.notes.as_slice().iter().filter(|it| is_counted(&it.field)) {
        notes.add(note.change, &note.field, note.why);
    }
    match serde_json::from_slice(&converted.body) {
        Ok(Value::Object(map)) => Ok(map),
        _ => Err(RequestFault::impossible("a count of tokens")),
    }
}

/// Whether a field is part of what is counted.
fn is_counted(field: &str) -> bool {
    const STARTS: [&str; 5] = ["messages", "contents", "system", "tools", "cache"];
    STARTS.iter().any(|start| field.starts_with(start))
}

/// The count in an answer of Gemini's, for a client of Anthropic's.
pub(super) fn from_gemini(body: &[u8]) -> Result<Bytes, ReplyFault> {
    let tokens = count(body, "totalTokens", "`totalTokens` is missing")?;
    Ok(json!({ "input_tokens": tokens }).to_string().into())
}

/// The count in an answer of Anthropic's, for a client of Gemini's.
pub(super) fn from_anthropic(body: &[u8]) -> Result<Bytes, ReplyFault> {
    let tokens = count(body, "input_tokens", "`input_tokens` is missing")?;
    Ok(json!({ "totalTokens": tokens }).to_string().into())
}

fn count(body: &[u8], key: &str, problem: &'static str) -> Result<u64, ReplyFault> {
    let answer: Value = serde_json::from_slice(body).map_err(|_| ReplyFault::NotJson)?;
    // Google leaves out what is zero.
    let found = match answer.get(key) {
        None if key == "totalTokens" && answer.is_object() => Some(0),
        found => found.and_then(Value::as_u64),
    };
    found.ok_or(ReplyFault::NotTheDialect { problem })
}
