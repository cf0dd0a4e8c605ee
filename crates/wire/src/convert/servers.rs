//! Servers that speak Chat Completions with differences, as data.
//!
//! Many servers take OpenAI's requests but refuse some fields, call them otherwise or are strict
//! where OpenAI is not. Each has one row of [`SERVERS`], found by the host of the provider's
//! address; a host without a row gets the plain dialect. A row holds only what the server refuses
//! or renames: fields that it ignores do no harm.
//!
//! Answers differ where OpenAI has no field for a thing: [`THINKING_FIELDS`] and [`USAGE_PARENTS`]
//! list the places, and whoever reads an answer looks at all of them, because an address tells
//! little about what runs behind it.
//!
//! Only converted requests are adapted. A request that keeps its dialect reaches the target as the
//! client wrote it.
//!
//! What was checked, when and against what is told in [`table`].

mod table;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};

use self::table::{LimitName, OPEN_EFFORTS, PLAIN, SERVERS, ServerRow, SignaturePlace};
use super::gemini::signature::FOREIGN_CALL;
use super::gemini::thinking::wants_signatures;
use super::ids::mark;
use super::notes::Notes;
use super::request::Effort;
use super::target::TargetProfile;

/// The fields of a message or delta that servers write thinking to, the first that is there
/// counts: DeepSeek and vLLM; OpenRouter, Groq, Ollama and newer versions of vLLM. Mistral writes
/// it into the list of its content instead.
pub(super) const THINKING_FIELDS: [&str; 2] = ["reasoning_content", "reasoning"];

/// The fields that hold `usage` where it is not at the top level: Groq's, in streams.
pub(super) const USAGE_PARENTS: [&str; 1] = ["x_groq"];

fn row_of(target: &TargetProfile<'_>) -> &'static ServerRow {
    SERVERS.iter().find(|row| is_host(target.host, row.host)).unwrap_or(&PLAIN)
}

/// Whether a limit of tokens has OpenAI's newer name there. OpenAI's thinking models refuse the
/// older one wherever they run.
pub(super) fn wants_max_completion_tokens(target: &TargetProfile<'_>) -> bool {
    target.is_openai_reasoning_model()
        || match row_of(target).limit {
            LimitName::Older => false,
            LimitName::Newer => true,
            LimitName::ByModel => !target.is_openai_plain_model() && !target.is_of_another_maker(),
        }
}

/// Whether the parts of messages may be marked to be cached there.
pub(super) fn takes_cache_marks(target: &TargetProfile<'_>) -> bool {
    row_of(target).takes_cache_marks
}

/// Whether it is OpenAI's own API, which has fields that no likeness knows.
pub(super) fn is_openai(target: &TargetProfile<'_>) -> bool {
    row_of(target).is_openai
}

/// Writes how much a model that is none of OpenAI's own services should think. Whether it could.
pub(super) fn write_effort(
    effort: Effort,
    target: &TargetProfile<'_>,
    body: &mut Map<String, Value>,
    notes: &mut Notes,
) -> bool {
    let row = row_of(target);
    if effort == Effort::Off && row.takes_thinking {
        body.insert("thinking".to_owned(), no_thinking());
        return true;
    }
    let levels = if row.efforts.is_empty() && target.is_open_reasoning_model() {
        OPEN_EFFORTS
    } else {
        row.efforts
    };
    // The next level above, so that nobody gets less than was asked for; else the highest.
    let at_least = levels.iter().find(|(level, _)| *level >= effort);
    let Some((level, word)) = at_least.or(levels.last()) else { return false };
    if *level != effort {
        notes.clamped("reasoning", "this provider has no such level of effort");
    }
    body.insert("reasoning_effort".to_owned(), (*word).into());
    true
}

/// Adapts a request to the server at the target's host.
pub(super) fn adapt(body: &mut Map<String, Value>, target: &TargetProfile<'_>, notes: &mut Notes) {
    let row = row_of(target);
    if !row.takes_thinking {
        drop_thinking(body, notes);
    } else if calls_without_thinking(body) {
        notes.dropped("reasoning", "the thinking that led to a tool call is another provider's");
        body.shift_remove("reasoning_effort");
        body.insert("thinking".to_owned(), no_thinking());
    }
    if row.is_openai {
        drop_unstored_metadata(body, notes);
    } else {
        say_refusals(body);
    }
    sign_calls(body, row.signature, target, notes);
    for key in row.refuses {
        if body.shift_remove(*key).is_some() {
            notes.dropped(key, "this provider refuses the field");
        }
    }
    for (key, name) in row.renames {
        if let Some(value) = body.shift_remove(*key) {
            body.insert((*name).to_owned(), value);
        }
    }
    if let Some(len) = row.call_id_len {
        let messages = body.get_mut("messages").and_then(Value::as_array_mut);
        for message in messages.into_iter().flatten() {
            rename_calls(message, len);
        }
    }
}

fn messages_of(body: &mut Map<String, Value>) -> impl Iterator<Item = &mut Map<String, Value>> {
    let messages = body.get_mut("messages").and_then(Value::as_array_mut);
    messages.into_iter().flatten().filter_map(Value::as_object_mut)
}

/// OpenAI answers 400 to `metadata` of what is not stored.
fn drop_unstored_metadata(body: &mut Map<String, Value>, notes: &mut Notes) {
    let is_stored = body.get("store").is_some_and(|store| store == true);
    if !is_stored && body.shift_remove("metadata").is_some() {
        notes.dropped("metadata", "Chat Completions takes it together with `store` only");
    }
}

/// Says refusals of earlier turns as text, for servers that have no field for them: some answer 400
/// to a message without content.
fn say_refusals(body: &mut Map<String, Value>) {
    for message in messages_of(body) {
        let Some(Value::String(refusal)) = message.shift_remove("refusal") else { continue };
        let before = message.get("content").and_then(Value::as_str).unwrap_or_default();
        let text = format!("{before}{refusal}");
        message.insert("content".to_owned(), text.into());
    }
}

/// Puts the signatures of calls where the server looks for them, and marks the first call of a
/// message that has none as Google documents it, for the models that refuse one without. Servers
/// that look nowhere get none.
fn sign_calls(
    body: &mut Map<String, Value>,
    place: Option<SignaturePlace>,
    target: &TargetProfile<'_>,
    notes: &mut Notes,
) {
    let is_wanted = place.is_some() && wants_signatures(target.model);
    for message in messages_of(body) {
        let calls = message.get_mut("tool_calls").and_then(Value::as_array_mut);
        let mut details = Vec::new();
        for (at, call) in calls.into_iter().flatten().enumerate() {
            let Some(fields) = call.as_object_mut() else { continue };
            let mut extra = fields.shift_remove("extra_content").unwrap_or_default();
            let own = extra["google"]["thought_signature"].take();
            let signature = match own {
                Value::String(own) if is_wanted => own,
                Value::String(_) => {
                    notes.dropped("signature", "another vendor's signature means nothing here");
                    continue;
                }
                _ if is_wanted && at == 0 => {
                    notes.rewritten("tool call", "another model's call was marked as such");
                    FOREIGN_CALL.to_owned()
                }
                _ => continue,
            };
            match place {
                Some(SignaturePlace::ReasoningDetails) => details.push(json!({
                    "type": "reasoning.encrypted", "data": signature, "id": fields.get("id"),
                    "format": "google-gemini-v1", "index": details.len(),
                })),
                _ => {
                    let extra = json!({ "google": { "thought_signature": signature } });
                    fields.insert("extra_content".to_owned(), extra);
                }
            }
        }
        if !details.is_empty() {
            message.insert("reasoning_details".to_owned(), details.into());
        }
    }
}

/// How a server that thinks by itself is told not to.
fn no_thinking() -> Value {
    json!({ "type": "disabled" })
}

/// Whether a call of the history has no thinking before it.
fn calls_without_thinking(body: &Map<String, Value>) -> bool {
    let messages = body.get("messages").and_then(Value::as_array).into_iter().flatten();
    messages.into_iter().any(|message| {
        message.get("tool_calls").is_some() && message.get(THINKING_FIELDS[0]).is_none()
    })
}

/// Takes the thinking of earlier turns out.
fn drop_thinking(body: &mut Map<String, Value>, notes: &mut Notes) {
    for message in messages_of(body) {
        if message.shift_remove(THINKING_FIELDS[0]).is_some() {
            notes.dropped("thinking", "this provider takes no thinking back");
        }
    }
}

/// Whether a host is this one or one below it.
fn is_host(host: &str, known: &str) -> bool {
    let rest = host.strip_suffix(known);
    rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// Gives calls, and the results that answer them, ids of the length that the server wants.
fn rename_calls(message: &mut Value, len: usize) {
    let calls = message.get_mut("tool_calls").and_then(Value::as_array_mut);
    let ids = calls.into_iter().flatten().filter_map(|call| call.get_mut("id"));
    for id in ids {
        rename(id, len);
    }
    if let Some(id) = message.get_mut("tool_call_id") {
        rename(id, len);
    }
}

fn rename(id: &mut Value, len: usize) {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let Some(text) = id.as_str() else { return };
    if text.len() == len && text.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return;
    }
    // A call and its result get the same name, and two calls different ones.
    let mut mark = mark(text.as_bytes());
    let mut name = String::with_capacity(len);
    for _ in 0..len {
        name.push(char::from(LETTERS[(mark & 31) as usize]));
        mark = mark.rotate_right(5);
    }
    *id = name.into();
}
