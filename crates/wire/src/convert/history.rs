//! Takes out of a request what only another vendor could read, where the target is of the client's
//! own dialect and gets the bytes as they came.
//!
//! An answer that was converted carries its thinking with another vendor's seal, marked as such
//! ([`super::part::Seal`]), and the client sends it back with the next request. A provider of the
//! client's dialect would refuse a seal that it did not make.
//!
//! Rules:
//! - A request without a mark is not touched, and not parsed: the search for the marks is all.
//! - Reasoning of a Responses client that OpenAI did not make goes, sealed or not, and so does a
//!   reference to it: OpenAI would look for it and find nothing.
//! - A call of a Gemini client that another vendor made is marked as Google documents it, for the
//!   models that refuse a call without a signature.
//! - With the mark, foreign thinking goes. If it led to the tool call whose result is being sent,
//!   Anthropic is asked without thinking, because it wants such a call to begin with its own.

use memchr::memmem;
use serde_json::{Map, Value};

use super::gemini::signature::FOREIGN_CALL;
use super::gemini::thinking::wants_signatures;
use super::part::FOREIGN_SEAL;
use super::responses::item::OWN_REASONING;
use crate::dialect::Dialect;

/// How a mark begins where a field is base64 (Gemini's).
const FOREIGN_BASE64: &str = "dGlkZWdhdGU6";

/// The request to this model without thinking of other vendors; `None` if it has none and stays as
/// it is.
#[must_use]
pub fn without_foreign_thinking(dialect: Dialect, model: &str, body: &[u8]) -> Option<Vec<u8>> {
    let marks: &[&str] = match dialect {
        Dialect::AnthropicMessages => &[FOREIGN_SEAL],
        Dialect::OpenAiResponses => &[FOREIGN_SEAL, OWN_REASONING],
        Dialect::Gemini => &[FOREIGN_BASE64],
        _ => return None,
    };
    let has = |mark: &&str| memmem::find(body, format!("\"{mark}").as_bytes()).is_some();
    marks.iter().find(|mark| has(mark))?;
    let mut request: Value = serde_json::from_slice(body).ok()?;
    let is_changed = match dialect {
        Dialect::AnthropicMessages => clean_messages(&mut request),
        Dialect::OpenAiResponses => clean_list(&mut request["input"], |item| {
            let is_own = item["id"].as_str().is_some_and(|id| id.starts_with(OWN_REASONING));
            match item["type"].as_str() {
                Some("reasoning") => is_own || is_foreign(&item["encrypted_content"]),
                Some("item_reference") => is_own,
                _ => false,
            }
        }),
        _ => clean_contents(&mut request, wants_signatures(model)),
    };
    is_changed.then(|| request.to_string().into_bytes())
}

fn is_foreign(value: &Value) -> bool {
    value
        .as_str()
        .is_some_and(|text| text.starts_with(FOREIGN_SEAL) || text.starts_with(FOREIGN_BASE64))
}

/// Takes the elements of a list that are foreign; whether there were any.
fn clean_list(list: &mut Value, is_out: impl Fn(&Value) -> bool) -> bool {
    let Value::Array(values) = list else { return false };
    let before = values.len();
    values.retain(|value| !is_out(value));
    values.len() < before
}

fn clean_messages(request: &mut Value) -> bool {
    let Some(messages) = request.get_mut("messages").and_then(Value::as_array_mut) else {
        return false;
    };
    let mut is_changed = false;
    for message in messages.iter_mut() {
        is_changed |= clean_list(&mut message["content"], |block| {
            is_foreign(&block["signature"])
                || (block["type"] == "redacted_thinking" && is_foreign(&block["data"]))
        });
    }
    messages.retain(|message| message["content"].as_array().is_none_or(|it| !it.is_empty()));
    if is_changed && calls_without_thinking(messages) && request["thinking"]["type"] == "enabled" {
        request.as_object_mut().map(|request| request.shift_remove("thinking"));
    }
    is_changed
}

/// Whether the last turn of the model called a tool, and no thinking came before it.
fn calls_without_thinking(messages: &[Value]) -> bool {
    let turn = messages.iter().rev().find(|message| message["role"] == "assistant");
    let has = |kind: &str| {
        let blocks = turn.and_then(|turn| turn["content"].as_array()).into_iter().flatten();
        blocks.into_iter().any(|block| block["type"] == kind)
    };
    has("tool_use") && !has("thinking") && !has("redacted_thinking")
}

fn clean_contents(request: &mut Value, wants_signatures: bool) -> bool {
    let mut is_changed = false;
    let contents = request.get_mut("contents").and_then(Value::as_array_mut);
    for content in contents.into_iter().flatten() {
        let parts = content.get_mut("parts").and_then(Value::as_array_mut);
        for part in parts.into_iter().flatten().filter_map(Value::as_object_mut) {
            let is_call =
                ["functionCall", "function_call"].iter().any(|key| part.contains_key(*key));
            for key in ["thoughtSignature", "thought_signature"] {
                is_changed |= clean_part(part, key, is_call && wants_signatures);
            }
        }
    }
    is_changed
}

fn clean_part(part: &mut Map<String, Value>, key: &str, is_signed_anyway: bool) -> bool {
    let is_out = part.get(key).is_some_and(is_foreign);
    if is_out && is_signed_anyway {
        part.insert(key.to_owned(), FOREIGN_CALL.into());
    } else if is_out {
        part.shift_remove(key);
    }
    is_out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cleaned(dialect: Dialect, request: &Value) -> Option<Value> {
        cleaned_for(dialect, "gemini-2.5-flash", request)
    }

    fn cleaned_for(dialect: Dialect, model: &str, request: &Value) -> Option<Value> {
        let body = without_foreign_thinking(dialect, model, request.to_string().as_bytes())?;
        Some(serde_json::from_slice(&body).expect("JSON"))
    }

    #[test]
    fn foreign_thinking_is_taken_out_and_own_thinking_stays() {
        let own = json!({ "type": "thinking", "thinking": "b", "signature": "sig" });
        let call = json!({ "type": "tool_use", "id": "t", "name": "f", "input": {} });
        let request = |thinking: &[Value]| {
            let mut blocks = thinking.to_vec();
            blocks.push(call.clone());
            json!({ "thinking": { "type": "enabled", "budget_tokens": 2000 }, "messages": [
                { "role": "user", "content": "Hi" },
                { "role": "assistant", "content": blocks } ] })
        };
        let foreign = json!({ "type": "thinking", "thinking": "a", "signature": "tidegate:none" });
        let hidden = json!({ "type": "redacted_thinking", "data": "tidegate:openai:content:x" });
        let messages = Dialect::AnthropicMessages;
        assert_eq!(
            cleaned(messages, &request(std::slice::from_ref(&own))),
            None,
            "stays as it came"
        );
        let both = request(&[foreign.clone(), own.clone()]);
        assert_eq!(cleaned(messages, &both), Some(request(&[own])));
        let alone = cleaned(messages, &request(&[foreign, hidden])).expect("it is cleaned");
        assert_eq!(alone["messages"][1]["content"], json!([call]));
        assert!(alone.get("thinking").is_none(), "the call has no thinking before it: {alone}");
        let quoted = json!({ "messages": [{ "role": "user", "content": "say \"tidegate: hi\"" }] });
        assert_eq!(cleaned(messages, &quoted), None);
    }

    #[test]
    fn other_dialects_lose_foreign_seals_too() {
        let item = |data: &str| json!({ "type": "reasoning", "encrypted_content": data });
        let request = json!({ "input": [item("tidegate:google:proof:x"), item("own")] });
        let expected = json!({ "input": [item("own")] });
        assert_eq!(cleaned(Dialect::OpenAiResponses, &request), Some(expected));
        let unsealed = json!({ "type": "reasoning", "id": "rs_tg_a_0", "summary": [] });
        let reference = json!({ "type": "item_reference", "id": "rs_tg_a_0" });
        let other = json!({ "type": "item_reference", "id": "rs_0123" });
        let request = json!({ "input": [unsealed, reference, other] });
        let expected = json!({ "input": [other] });
        assert_eq!(cleaned(Dialect::OpenAiResponses, &request), Some(expected));
        let mut part = json!({ "functionCall": { "name": "f" } });
        part["thoughtSignature"] = json!("dGlkZWdhdGU6eA==");
        let request = json!({ "contents": [{ "parts": [part] }] });
        let expected = json!({ "contents": [{ "parts": [{ "functionCall": { "name": "f" } }] }] });
        assert_eq!(cleaned(Dialect::Gemini, &request), Some(expected));
        let newer = cleaned_for(Dialect::Gemini, "gemini-3-pro-preview", &request);
        let signature = &newer.expect("it is cleaned")["contents"][0]["parts"][0];
        assert_eq!(signature["thoughtSignature"], FOREIGN_CALL);
    }
}
