//! Each row of the table, by what is sent to its host.

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

#[test]
fn azure_and_openai_get_the_limit_under_the_name_that_the_model_takes() {
    let check = |host: &str, model: &str, is_newer: bool| {
        let target = TargetProfile { model, host };
        assert_eq!(wants_max_completion_tokens(&target), is_newer, "{host} {model}");
    };
    check("api.openai.com", "gpt-4.1", true);
    for host in ["x.openai.azure.com", "x.cognitiveservices.azure.com", "x.services.ai.azure.com"] {
        check(host, "gpt-5.1", true);
        check(host, "my-deployment", true);
        check(host, "gpt-4o", false);
        for other in ["Kimi-K2.5", "Ministral-3B", "DeepSeek-V4", "mistral-large-3", "gpt-oss-120b"]
        {
            check(host, other, false);
        }
    }
    check("127.0.0.1", "gpt-5.1", true);
    check("127.0.0.1", "llama3.3", false);
    check("openrouter.ai", "openai/gpt-5.1", true);
}

#[test]
fn azure_gets_no_hint_that_is_younger_than_its_api() {
    let body = json!({"prompt_cache_key": "k", "safety_identifier": "s", "user": "u"});
    for host in ["x.openai.azure.com", "x.cognitiveservices.azure.com", "x.services.ai.azure.com"] {
        let (sent, notes) = adapted(host, body.clone());
        assert_eq!(sent, json!({"user": "u"}), "{host}");
        assert_eq!(notes, ["prompt_cache_key", "safety_identifier"], "{host}");
    }
    assert_eq!(adapted("api.openai.com", body.clone()).0, body);
}

#[test]
fn openai_gets_metadata_of_what_is_stored_only() {
    let body = json!({"metadata": {"a": "b"}});
    for host in ["api.openai.com", "x.openai.azure.com"] {
        let (sent, notes) = adapted(host, body.clone());
        assert_eq!((sent, notes), (json!({}), vec!["metadata".to_owned()]), "{host}");
        let stored = json!({"metadata": {"a": "b"}, "store": true});
        assert_eq!(adapted(host, stored.clone()).0, stored, "{host}");
    }
    assert_eq!(adapted("127.0.0.1", body.clone()).0, body, "likenesses have no such rule");
}

#[test]
fn a_refusal_is_a_text_where_there_is_no_field_for_it() {
    let message = |content: Value| {
        let message = json!({"role": "assistant", "content": content, "refusal": "No."});
        json!({ "messages": [message] })
    };
    let said = |text: &str| json!({"messages": [{"role": "assistant", "content": text}]});
    for host in ["127.0.0.1", "openrouter.ai", "api.groq.com"] {
        assert_eq!(adapted(host, message(Value::Null)).0, said("No."), "{host}");
        assert_eq!(adapted(host, message(json!("Hm. "))).0, said("Hm. No."), "{host}");
    }
    let body = message(Value::Null);
    assert_eq!(adapted("api.openai.com", body.clone()).0, body);
}

#[test]
fn a_call_is_signed_where_gemini_3_is_served_by_others() {
    let call = |id: &str, extra: Value| {
        let mut call = json!({"id": id, "type": "function", "function": {"name": "f"}});
        if !extra.is_null() {
            call["extra_content"] = extra;
        }
        call
    };
    let google = |signature: &str| json!({"google": {"thought_signature": signature}});
    let body = |calls: &[Value]| json!({"messages": [{"role": "assistant", "tool_calls": calls}]});
    let sent = |host: &str, model: &str, calls: &[Value]| {
        let mut notes = Notes::default();
        let Value::Object(mut map) = body(calls) else { panic!("an object") };
        adapt(&mut map, &TargetProfile { model, host }, &mut notes);
        (Value::Object(map)["messages"][0].clone(), notes.as_slice().len())
    };
    let (foreign, own) = (call("a", Value::Null), call("b", google("c2ln")));
    let (host, model) = ("generativelanguage.googleapis.com", "gemini-3.5-flash");
    let (message, notes) = sent(host, model, &[foreign.clone(), own.clone()]);
    assert_eq!(message["tool_calls"], json!([call("a", google(FOREIGN_CALL)), own]));
    assert_eq!(notes, 1);
    let (message, _) =
        sent("openrouter.ai", "google/gemini-3-pro-preview", std::slice::from_ref(&foreign));
    assert_eq!(message["tool_calls"], json!([foreign]));
    let detail = json!({"type": "reasoning.encrypted", "data": FOREIGN_CALL, "id": "a",
        "format": "google-gemini-v1", "index": 0});
    assert_eq!(message["reasoning_details"], json!([detail]));
    for (host, model) in [
        ("openrouter.ai", "anthropic/claude-opus-4.6"),
        (host, "gemini-2.5-flash"),
        ("127.0.0.1", "gemini-3.5-flash"),
    ] {
        let (message, notes) = sent(host, model, std::slice::from_ref(&foreign));
        assert_eq!(
            (message, notes),
            (body(std::slice::from_ref(&foreign))["messages"][0].clone(), 0),
            "{host}"
        );
        let (message, notes) = sent(host, model, std::slice::from_ref(&own));
        assert_eq!(message["tool_calls"], json!([call("b", Value::Null)]), "{host} {model}");
        assert_eq!(notes, 1, "a signature is lost with a note");
    }
}
