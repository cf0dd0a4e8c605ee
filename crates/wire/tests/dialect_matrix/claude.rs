//! What Claude models of different ages refuse: forced tools, a last turn of their own, thinking
//! after something before it has changed.

use serde_json::{Value, json};
use tidegate_wire::convert::pair::DialectPair;
use tidegate_wire::convert::target::TargetProfile;
use tidegate_wire::dialect::Dialect;

/// What a model gets of a request, and which fields were noted.
fn sent(client: Dialect, model: &str, body: &Value) -> (Value, Vec<String>) {
    let pair = DialectPair::new(client, Dialect::AnthropicMessages).expect("two dialects");
    let target = TargetProfile { model, host: "api.anthropic.com" };
    let sent = pair.request(body.to_string().as_bytes(), &target, 1).expect("it is converted");
    let notes = sent.notes.as_slice().iter().map(|note| note.field.clone()).collect();
    (serde_json::from_slice(&sent.body).expect("JSON"), notes)
}

#[test]
fn only_models_that_can_be_forced_are() {
    let body = |choice: Value| {
        json!({"messages": [{"role": "user", "content": "hi"}], "max_tokens": 100,
            "tools": [{"type": "function", "function": {"name": "f"}}], "tool_choice": choice})
    };
    let named = json!({"type": "function", "function": {"name": "f"}});
    for (choice, forced) in
        [(json!("required"), json!({"type": "any"})), (named, json!({"type": "tool", "name": "f"}))]
    {
        for model in ["claude-sonnet-4-5", "claude-opus-4-8", "claude-haiku-5-5", "claude-opus-5"] {
            let (sent, notes) = sent(Dialect::OpenAiChat, model, &body(choice.clone()));
            assert_eq!(sent["tool_choice"], forced, "{model}");
            assert!(!notes.contains(&"tool_choice".to_owned()), "{model}");
            // These think by themselves, and would refuse to be forced while they do.
            let is_unasked = model.contains("-5-5") || model.ends_with("-5");
            let is_told = is_unasked && !model.contains("4-5");
            let told = is_told.then(|| json!({"type": "disabled"}));
            assert_eq!(sent.get("thinking").cloned(), told, "{model}");
        }
        for model in ["claude-opus-5-5", "claude-sonnet-5-5", "claude-fable-5-1"] {
            let (sent, notes) = sent(Dialect::OpenAiChat, model, &body(choice.clone()));
            assert_eq!(sent["tool_choice"], json!({"type": "auto"}), "{model}");
            assert!(notes.contains(&"tool_choice".to_owned()), "{model}");
            assert_eq!(sent.get("thinking"), None, "{model}");
        }
    }
}

#[test]
fn a_model_that_takes_no_last_turn_of_its_own_gets_one_of_the_users() {
    let body = json!({"messages": [{"role": "user", "content": "hi"},
        {"role": "assistant", "content": "Once"}], "max_tokens": 100});
    let roles = |model: &str| {
        let (sent, notes) = sent(Dialect::OpenAiChat, model, &body);
        let turns = sent["messages"].as_array().expect("turns").iter();
        let roles: Vec<String> = turns.map(|turn| turn["role"].to_string()).collect();
        (roles.join(" "), notes.contains(&"messages".to_owned()))
    };
    let two = "\"user\" \"assistant\"";
    assert_eq!(roles("claude-sonnet-4-5"), (two.to_owned(), false));
    for model in ["claude-opus-4-6", "claude-opus-4-7", "claude-sonnet-5", "claude-opus-5-5"] {
        assert_eq!(roles(model), (format!("{two} \"user\""), true), "{model}");
    }
}

#[test]
fn thinking_goes_along_while_nothing_before_it_has_changed() {
    let thinking = json!({"type": "reasoning", "summary": [],
        "encrypted_content": "tidegate:anthropic:proof:sig"});
    let say = |role: &str, text: &str| json!({"role": role, "content": text});
    let body = |late: Option<Value>| {
        let mut input = vec![say("user", "hi"), thinking.clone(), say("assistant", "yes")];
        input.extend(late);
        input.push(say("user", "go on"));
        json!({ "input": input })
    };
    let has_thinking = |model: &str, late: Option<Value>| {
        let (sent, notes) = sent(Dialect::OpenAiResponses, model, &body(late));
        let is_there = sent["messages"][1]["content"][0]["type"] == "thinking";
        assert_eq!(is_there, !notes.contains(&"thinking".to_owned()), "{model}: nothing is silent");
        is_there
    };
    let late = || Some(say("developer", "be brief"));
    for model in ["claude-opus-4-8", "claude-opus-5", "claude-opus-5-5", "claude-haiku-5-5"] {
        assert!(has_thinking(model, None), "{model}");
    }
    for (model, is_kept) in
        [("claude-opus-4-8", true), ("claude-opus-5-5", false), ("claude-haiku-5-5", false)]
    {
        assert_eq!(has_thinking(model, late()), is_kept, "{model}");
    }
}
