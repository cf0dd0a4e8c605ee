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

use serde_json::{Map, Value};

use super::ids::mark;
use super::notes::Notes;
use super::target::TargetProfile;

/// One row.
#[derive(Clone, Copy, Debug)]
struct ServerRow {
    /// What the host ends with.
    host: &'static str,
    /// Fields that it answers with an error.
    refuses: &'static [&'static str],
    /// Fields that have another name there.
    renames: &'static [(&'static str, &'static str)],
    /// How long an id of a tool call must be, in letters and digits.
    call_id_len: Option<usize>,
    /// Whether it wants the thinking of earlier turns back, as `reasoning_content`.
    takes_thinking: bool,
}

const PLAIN: ServerRow =
    ServerRow { host: "", refuses: &[], renames: &[], call_id_len: None, takes_thinking: false };

/// The fields of a message or delta that servers write thinking to, the first that is there
/// counts: DeepSeek and vLLM; OpenRouter, Groq, Ollama and newer versions of vLLM. Mistral writes
/// it into the list of its content instead.
pub(super) const THINKING_FIELDS: [&str; 2] = ["reasoning_content", "reasoning"];

/// The fields that hold `usage` where it is not at the top level: Groq's, in streams.
pub(super) const USAGE_PARENTS: [&str; 1] = ["x_groq"];

const SERVERS: [ServerRow; 5] = [
    ServerRow {
        // Answers 400 to a turn of its own that comes back without its thinking.
        host: "api.deepseek.com",
        refuses: &["logit_bias", "store", "metadata", "service_tier", "verbosity"],
        renames: &[("max_completion_tokens", "max_tokens")],
        takes_thinking: true,
        ..PLAIN
    },
    ServerRow {
        // Answers 422 to every field that it does not know.
        host: "api.mistral.ai",
        refuses: &[
            "stream_options",
            "logprobs",
            "top_logprobs",
            "logit_bias",
            "user",
            "metadata",
            "store",
            "service_tier",
            "reasoning_effort",
            "verbosity",
            "prompt_cache_key",
            "safety_identifier",
        ],
        renames: &[("seed", "random_seed"), ("max_completion_tokens", "max_tokens")],
        call_id_len: Some(9),
        ..PLAIN
    },
    ServerRow {
        host: "api.groq.com",
        refuses: &["logprobs", "top_logprobs", "logit_bias", "metadata", "store", "verbosity"],
        ..PLAIN
    },
    ServerRow {
        host: "api.cerebras.ai",
        refuses: &[
            "frequency_penalty",
            "presence_penalty",
            "logit_bias",
            "parallel_tool_calls",
            "service_tier",
        ],
        ..PLAIN
    },
    ServerRow {
        // Google's layer for OpenAI's clients answers 400 to every field that it does not know.
        host: "generativelanguage.googleapis.com",
        refuses: &["store", "metadata", "logit_bias", "prompt_cache_key", "safety_identifier"],
        ..PLAIN
    },
];

/// Adapts a request to the server at the target's host.
pub(super) fn adapt(body: &mut Map<String, Value>, target: &TargetProfile<'_>, notes: &mut Notes) {
    let is_there = |row: &&ServerRow| is_host(target.host, row.host);
    let row = SERVERS.iter().find(is_there).unwrap_or(&PLAIN);
    if !row.takes_thinking {
        drop_thinking(body, notes);
    }
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

/// Takes the thinking of earlier turns out.
fn drop_thinking(body: &mut Map<String, Value>, notes: &mut Notes) {
    let messages = body.get_mut("messages").and_then(Value::as_array_mut);
    for message in messages.into_iter().flatten().filter_map(Value::as_object_mut) {
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn adapted(host: &str, body: Value) -> (Value, Vec<String>) {
        let mut notes = Notes::default();
        let Value::Object(mut map) = body else { return (Value::Null, Vec::new()) };
        adapt(&mut map, &TargetProfile { model: "m", host }, &mut notes);
        let fields = notes.as_slice().iter().map(|note| note.field.clone()).collect();
        (Value::Object(map), fields)
    }

    #[test]
    fn a_server_gets_what_it_takes_under_its_own_names() {
        let body = json!({"seed": 1, "user": "u", "max_completion_tokens": 5, "temperature": 1});
        let (sent, notes) = adapted("api.mistral.ai", body.clone());
        assert_eq!(sent, json!({"random_seed": 1, "max_tokens": 5, "temperature": 1}));
        assert_eq!(notes, ["user"]);
        assert_eq!(adapted("eu.api.mistral.ai", body.clone()).0, sent);
        assert_eq!(adapted("notapi.mistral.ai", body.clone()).0, body, "another host");
        assert_eq!(adapted("127.0.0.1", body.clone()).0, body);
    }

    #[test]
    fn thinking_returns_to_who_wants_it_and_to_nobody_else() {
        let body = json!({"messages": [{"role": "assistant", "reasoning_content": "hm"}]});
        let (sent, notes) = adapted("api.deepseek.com", body.clone());
        assert_eq!((sent, notes.len()), (body.clone(), 0));
        for host in ["api.mistral.ai", "127.0.0.1"] {
            let (sent, notes) = adapted(host, body.clone());
            assert_eq!(sent, json!({"messages": [{"role": "assistant"}]}), "{host}");
            assert_eq!(notes, ["thinking"], "{host}");
        }
    }

    #[test]
    fn ids_of_calls_fit_and_still_meet_their_results() {
        let body = json!({"messages": [
            {"tool_calls": [{"id": "toolu_01ABCDEF"}, {"id": "call_2"}, {"id": "abc123DEF"}]},
            {"tool_call_id": "toolu_01ABCDEF"}]});
        let (sent, _) = adapted("api.mistral.ai", body);
        let calls = &sent["messages"][0]["tool_calls"];
        let first = calls[0]["id"].as_str().expect("an id");
        assert!(first.len() == 9 && first.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        assert_eq!(sent["messages"][1]["tool_call_id"], first);
        assert_ne!(calls[1]["id"], first);
        assert_eq!(calls[2]["id"], "abc123DEF");
    }
}
