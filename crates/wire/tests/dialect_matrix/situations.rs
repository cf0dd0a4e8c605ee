//! Situations of everyday use that once went wrong, or easily could: each is what a client sends or
//! a provider answers, and what must come of it.

use serde_json::{Value, json};
use tidegate_wire::convert::context::ReplyContext;
use tidegate_wire::convert::pair::DialectPair;
use tidegate_wire::convert::target::TargetProfile;
use tidegate_wire::dialect::Dialect;

use crate::drive::{Exchange, StreamEnding};
use crate::spoken::{Spoken, parse};

/// What a model of OpenAI's gets of a request of a Messages client, and which fields were noted.
fn sent(target: Dialect, model: &str, more: Value) -> (Value, Vec<String>) {
    let mut body = json!({"max_tokens": 100, "messages": [{"role": "user", "content": "hi"}]});
    body.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("fields"));
    let pair = DialectPair::new(Dialect::AnthropicMessages, target).expect("two dialects");
    let target = TargetProfile { model, host: "api.openai.com" };
    let sent = pair.request(body.to_string().as_bytes(), &target, 1).expect("it is converted");
    let notes = sent.notes.as_slice().iter().map(|note| note.field.clone()).collect();
    (serde_json::from_slice(&sent.body).expect("JSON"), notes)
}

#[test]
fn reasoning_models_of_openai_get_no_stop_sequences() {
    let stops = json!({"stop_sequences": ["a", "b", "c", "d", "e"]});
    for model in ["o3", "o4-mini", "gpt-5", "gpt-5-mini", "gpt-5.1"] {
        let (sent, notes) = sent(Dialect::OpenAiChat, model, stops.clone());
        assert_eq!((sent.get("stop"), notes), (None, vec!["stop".to_owned()]), "{model}");
    }
    let (sent, notes) = sent(Dialect::OpenAiChat, "gpt-4.1", stops);
    assert_eq!(sent["stop"], json!(["a", "b", "c", "d"]), "four are taken");
    assert_eq!(notes, ["stop_sequences"]);
}

#[test]
fn models_of_the_o_series_are_told_nothing_of_parallel_calls() {
    let single = json!({"tools": [{"name": "f"}],
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": true}});
    let (o_series, notes) = sent(Dialect::OpenAiChat, "o3-mini", single.clone());
    assert_eq!(o_series.get("parallel_tool_calls"), None);
    assert_eq!(notes, ["parallel_tool_calls"]);
    let (other, notes) = sent(Dialect::OpenAiChat, "gpt-5.1", single);
    assert_eq!((&other["parallel_tool_calls"], notes.len()), (&json!(false), 0));
}

#[test]
fn reasoning_models_of_openai_tell_no_probabilities() {
    let body = json!({"contents": [{"parts": [{"text": "hi"}]}],
        "generationConfig": {"responseLogprobs": true, "logprobs": 3}});
    for target in [Dialect::OpenAiChat, Dialect::OpenAiResponses] {
        let pair = DialectPair::new(Dialect::Gemini, target).expect("two dialects");
        for (model, is_taken) in [("gpt-4.1", true), ("gpt-5", false), ("o3", false)] {
            let profile = TargetProfile { model, host: "api.openai.com" };
            let sent = pair.request(body.to_string().as_bytes(), &profile, 1).expect("converted");
            let notes = sent.notes.as_slice();
            assert_eq!(notes.iter().any(|note| note.field == "logprobs"), !is_taken, "{model}");
            let sent: Value = serde_json::from_slice(&sent.body).expect("JSON");
            assert_eq!(sent.get("top_logprobs").is_some(), is_taken, "{model}");
        }
    }
}

/// Some servers behind Chat Completions give their calls no id. The client must be able to answer
/// each of them, in this turn and in later ones.
#[test]
fn calls_without_an_id_get_one_of_their_own() {
    let call = |name: &str| json!({"function": {"name": name, "arguments": "{}"}});
    let whole = json!({"id": "chatcmpl-1", "model": "m", "choices": [{"index": 0,
        "finish_reason": "tool_calls",
        "message": {"role": "assistant", "tool_calls": [call("f"), call("g")]}}]});
    let chunk = |delta: Value, reason: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
        let chunk = json!({"id": "chatcmpl-1", "model": "m", "choices": [choice]});
        format!("data: {chunk}\n\n")
    };
    let numbered = |index: u64, name: &str| {
        let mut call = call(name);
        call["index"] = index.into();
        chunk(json!({ "tool_calls": [call] }), Value::Null)
    };
    let end = chunk(json!({}), json!("tool_calls"));
    let stream = format!("{}{}{end}data: [DONE]\n\n", numbered(0, "f"), numbered(1, "g"));
    let context = ReplyContext::default();
    for client in [Spoken::Messages, Spoken::Responses, Spoken::Gemini] {
        let exchange = Exchange { client, upstream: Spoken::Chat };
        let reply = exchange.reply(whole.to_string().as_bytes(), &context).expect("an answer");
        let (streamed, ending) = exchange.stream(stream.as_bytes(), &context, 7);
        assert_eq!(ending, StreamEnding::Whole, "{client:?}");
        for answer in [reply, streamed] {
            let answer = String::from_utf8(answer).expect("text");
            for id in ["call_chatcmpl-1_0", "call_chatcmpl-1_1"] {
                assert!(answer.contains(&format!("\"{id}\"")), "{client:?} {id}: {answer}");
            }
        }
    }
}

/// Anthropic answers a fifth cache marker with a 400; the last ones cover the most.
#[test]
fn of_many_cache_markers_the_last_four_go_to_messages() {
    let mark = json!({"type": "ephemeral"});
    let said = |role: &str, text: &str| {
        let part = json!({"type": "text", "text": text, "cache_control": mark});
        json!({"role": role, "content": [part]})
    };
    let tool = json!({"type": "function", "function": {"name": "f"}, "cache_control": mark});
    let body = |turns: &[Value]| json!({"messages": turns, "tools": [tool], "max_tokens": 9});
    let pair = DialectPair::new(Dialect::OpenAiChat, Dialect::AnthropicMessages);
    let pair = pair.expect("two dialects");
    let target = TargetProfile { model: "claude-sonnet-4-5", host: "api.anthropic.com" };
    let marked = |turns: &[Value]| {
        let sent = pair.request(body(turns).to_string().as_bytes(), &target, 1).expect("converted");
        let notes = sent.notes.as_slice().iter().filter(|note| note.field == "cache_control");
        let sent: Value = serde_json::from_slice(&sent.body).expect("JSON");
        let has = |value: &Value| value.to_string().matches("cache_control").count();
        (has(&sent["tools"]), has(&sent["system"]), has(&sent["messages"]), notes.count())
    };
    let few = [said("system", "s"), said("user", "a"), said("assistant", "b")];
    assert_eq!(marked(&few), (1, 1, 2, 0), "they all fit");
    let turns = ["user", "assistant", "user", "assistant", "user"].map(|role| said(role, "x"));
    let many = [&[said("system", "s")], turns.as_slice()].concat();
    assert_eq!(marked(&many), (0, 0, 4, 1));
}

#[test]
fn openrouter_keeps_cache_markers_in_the_parts_of_messages() {
    let mark = json!({"type": "ephemeral", "ttl": "1h"});
    let body = json!({"max_tokens": 9, "model": "r",
        "system": [{"type": "text", "text": "Be brief.", "cache_control": mark}],
        "tools": [{"name": "f", "input_schema": {"type": "object"}, "cache_control": mark}],
        "messages": [{"role": "user", "content": [
            {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]}]});
    let pair = DialectPair::new(Spoken::Messages.dialect(), Spoken::Chat.dialect());
    let sent = |host: &str| {
        let target = TargetProfile { model: "anthropic/claude-opus-4.6", host };
        let sent = pair.expect("two dialects").request(body.to_string().as_bytes(), &target, 1);
        let sent = sent.expect("a request");
        let notes: Vec<String> = sent.notes.as_slice().iter().map(ToString::to_string).collect();
        (parse(&sent.body), notes)
    };
    let (kept, notes) = sent("openrouter.ai");
    let system = json!([{"type": "text", "text": "Be brief.", "cache_control": mark}]);
    assert_eq!(kept["messages"][0], json!({"role": "system", "content": system}));
    let user = json!([{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]);
    assert_eq!(kept["messages"][1], json!({"role": "user", "content": user}));
    assert!(notes.iter().any(|note| note.contains("cache_control")), "the tool's: {notes:?}");
    let (plain, notes) = sent("127.0.0.1");
    assert_eq!(plain["messages"][1], json!({"role": "user", "content": "hi"}));
    assert!(notes.iter().any(|note| note.contains("cache_control")), "{notes:?}");
}
