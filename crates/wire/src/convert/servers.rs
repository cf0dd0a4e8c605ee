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
//! Checked on 17 November 2026:
//! - DeepSeek: its guide to the thinking mode, and answers quoted on GitHub (a call without its
//!   thinking is a 400; what another model thought is not there, so that it is told not to think).
//!   Not confirmed: that it refuses the fields of its row; reports show it ignoring unknown ones.
//! - Mistral: answers 422 quoted on GitHub for `stream_options`, `max_completion_tokens` and
//!   `reasoning_content`. Not confirmed: `metadata` and `prompt_cache_key`, which newer references
//!   may have, and the levels of effort (`none` and `high` for some models), so that none is sent.
//! - Groq: its page on OpenAI compatibility (`logprobs`, `top_logprobs`, `logit_bias`: 400) and its
//!   page on reasoning. Not confirmed: `metadata`, `store` and `verbosity`.
//! - Cerebras: its page on OpenAI compatibility, in an older copy. Not confirmed: whether newer
//!   versions take `parallel_tool_calls` and `service_tier`.
//! - Google's layer: answers quoted on GitHub for `store`, `seed` and the penalties. Not confirmed:
//!   `metadata`, `logit_bias` and the keys; an unknown name is always a 400 there.
//! - OpenRouter: its pages on reasoning. Ollama and vLLM have no host of their own; their documents
//!   list what they take, and nothing that is written here is refused by them.
//! - Azure is OpenAI's own API; which name the limit of tokens has is in [`super::target`].

use serde_json::{Map, Value, json};

use super::ids::mark;
use super::notes::Notes;
use super::request::Effort;
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
    /// Whether it wants the thinking of earlier turns back, as `reasoning_content`, and is told
    /// by `thinking` not to think.
    takes_thinking: bool,
    /// The levels of `reasoning_effort` that it takes for any model, in ascending order.
    efforts: &'static [(Effort, &'static str)],
}

const PLAIN: ServerRow = ServerRow {
    host: "",
    refuses: &[],
    renames: &[],
    call_id_len: None,
    takes_thinking: false,
    efforts: &[],
};

/// The levels of OpenAI's open models, wherever they run.
const OPEN_EFFORTS: &[(Effort, &str)] =
    &[(Effort::Low, "low"), (Effort::Medium, "medium"), (Effort::High, "high")];

/// The fields of a message or delta that servers write thinking to, the first that is there
/// counts: DeepSeek and vLLM; OpenRouter, Groq, Ollama and newer versions of vLLM. Mistral writes
/// it into the list of its content instead.
pub(super) const THINKING_FIELDS: [&str; 2] = ["reasoning_content", "reasoning"];

/// The fields that hold `usage` where it is not at the top level: Groq's, in streams.
pub(super) const USAGE_PARENTS: [&str; 1] = ["x_groq"];

const SERVERS: [ServerRow; 6] = [
    ServerRow {
        // Answers 400 to a call that comes back without its thinking, while it thinks.
        host: "api.deepseek.com",
        refuses: &["logit_bias", "store", "metadata", "service_tier", "verbosity"],
        renames: &[("max_completion_tokens", "max_tokens")],
        takes_thinking: true,
        efforts: &[(Effort::Low, "low"), (Effort::High, "high"), (Effort::Highest, "max")],
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
        refuses: &[
            "store",
            "metadata",
            "logit_bias",
            "prompt_cache_key",
            "safety_identifier",
            "seed",
            "frequency_penalty",
            "presence_penalty",
        ],
        efforts: OPEN_EFFORTS,
        ..PLAIN
    },
    ServerRow {
        // Makes of a level what the model behind it takes.
        host: "openrouter.ai",
        efforts: &[
            (Effort::Off, "none"),
            (Effort::Minimal, "minimal"),
            (Effort::Low, "low"),
            (Effort::Medium, "medium"),
            (Effort::High, "high"),
            (Effort::Highest, "xhigh"),
        ],
        ..PLAIN
    },
];

fn row_of(target: &TargetProfile<'_>) -> &'static ServerRow {
    SERVERS.iter().find(|row| is_host(target.host, row.host)).unwrap_or(&PLAIN)
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
    fn a_call_without_its_thinking_is_sent_to_who_is_told_not_to_think() {
        let call = json!({"role": "assistant", "tool_calls": [{"id": "a"}]});
        let own = json!({"role": "assistant", "tool_calls": [{"id": "a"}],
            "reasoning_content": "hm"});
        let body = |message: &Value| json!({"messages": [message], "reasoning_effort": "high"});
        let (sent, notes) = adapted("api.deepseek.com", body(&call));
        assert_eq!(sent["thinking"], json!({"type": "disabled"}));
        assert_eq!((sent.get("reasoning_effort"), notes), (None, vec!["reasoning".to_owned()]));
        let (sent, notes) = adapted("api.deepseek.com", body(&own));
        assert_eq!((sent, notes.len()), (body(&own), 0));
        let (sent, _) = adapted("api.mistral.ai", body(&call));
        assert_eq!(sent.get("thinking"), None, "it is DeepSeek's own field");
    }

    #[test]
    fn a_server_is_asked_for_a_level_of_effort_that_it_has() {
        let check = |host: &str, model: &str, effort: Effort, expected: Value, is_noted: bool| {
            let (mut body, mut notes) = (Map::new(), Notes::default());
            write_effort(effort, &TargetProfile { model, host }, &mut body, &mut notes);
            assert_eq!(Value::Object(body), expected, "{host} {model} {effort:?}");
            assert_eq!(!notes.as_slice().is_empty(), is_noted, "{host} {model} {effort:?}");
        };
        let word = |word: &str| json!({ "reasoning_effort": word });
        let off = json!({"thinking": {"type": "disabled"}});
        check("api.deepseek.com", "deepseek-v4-pro", Effort::Off, off, false);
        check("api.deepseek.com", "deepseek-v4-pro", Effort::Medium, word("high"), true);
        check("api.deepseek.com", "deepseek-v4-pro", Effort::Highest, word("max"), false);
        check("openrouter.ai", "z-ai/glm-5", Effort::Minimal, word("minimal"), false);
        check("api.groq.com", "openai/gpt-oss-120b", Effort::Highest, word("high"), true);
        check("127.0.0.1", "gpt-oss:20b", Effort::Low, word("low"), false);
        check("127.0.0.1", "llama3.3", Effort::Low, json!({}), false);
        let google = "generativelanguage.googleapis.com";
        check(google, "gemini-3.5-flash", Effort::Minimal, word("low"), true);
    }

    #[test]
    fn googles_layer_gets_no_name_that_it_does_not_know() {
        let body = json!({"seed": 1, "frequency_penalty": 0.5, "presence_penalty": 0.5, "n": 1});
        let (sent, notes) = adapted("generativelanguage.googleapis.com", body);
        assert_eq!(sent, json!({"n": 1}));
        assert_eq!(notes, ["seed", "frequency_penalty", "presence_penalty"]);
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
