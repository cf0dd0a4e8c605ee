//! What one provider keeps for a client (responses, conversations, files, cached content, sealed
//! reasoning) keeps the request there, as a recorded reason, and never reaches another one.

use serde_json::{Value, json};
use tidegate_fakes::fake::{FakeServer, Script, Step};
use tidegate_testkit::{gate::Gate, http::Answer};

use crate::bed::{good, hits};

const RESPONSES: &str = "/v1/responses";
const MESSAGES: &str = "/v1/messages";

/// Providers `a` (anthropic), `o` (openai), `p` (openai) and `g` (gemini) in the order of `tiers`.
fn gate(tiers: &str, fakes: &[(&str, &str, &FakeServer)]) -> Gate {
    let providers: String = fakes
        .iter()
        .map(|(name, api, fake)| {
            let base = if *api == "openai" { "/v1" } else { "" };
            format!("  {name}: {{api: {api}, url: '{}{base}'}}\n", fake.url())
        })
        .collect();
    let yaml = format!(
        "listen: 127.0.0.1:0\nadmin: {{listen: '127.0.0.1:0'}}\nhealth: {{probe: {{every: 0s}}}}\n\
         providers:\n{providers}routes:\n  r: {{tiers: {tiers}}}\n"
    );
    Gate::start(&yaml, &[])
}

fn resolved(answer: &Answer) -> &str {
    answer.header("x-tidegate-resolved").unwrap_or_default()
}

fn response(more: Value) -> String {
    let mut body = json!({"model": "r", "input": "hi"});
    if let (Some(body), Value::Object(more)) = (body.as_object_mut(), more) {
        body.extend(more);
    }
    body.to_string()
}

fn failing() -> Script {
    Script::always(Step::status(500))
}

/// The decision of an answer, as the admin listener tells it.
fn decision(gate: &Gate, answer: &Answer) -> Value {
    let id = answer.header("x-tidegate-request-id").expect("every answer has one");
    gate.admin(&format!("/api/decisions/{id}")).json()
}

#[test]
fn a_response_is_continued_at_the_provider_that_gave_it() {
    for is_stream in [false, true] {
        let (o, p) = (good(), good());
        o.set_script(failing());
        let gate = gate("[[o/m], [p/m]]", &[("o", "openai", &o), ("p", "openai", &p)]);
        let first = gate.post(RESPONSES, &response(json!({"stream": is_stream})));
        assert_eq!((first.status, resolved(&first)), (200, "p/m"), "{}", first.text());
        let id = if is_stream {
            let text = first.text();
            let data = text.lines().find_map(|line| line.strip_prefix("data: ")).expect("an event");
            serde_json::from_str::<Value>(data).expect("JSON")["response"]["id"].clone()
        } else {
            first.json()["id"].clone()
        };
        o.set_script(Script::default());
        let before = hits(&o);
        let next = gate.post(RESPONSES, &response(json!({"previous_response_id": id})));
        assert_eq!((next.status, resolved(&next)), (200, "p/m"), "{}", next.text());
        assert_eq!(hits(&o), before, "no other provider hears of it");
        let state = &decision(&gate, &next)["plan"]["state"];
        let expected = json!({"kind": "previous_response", "provider": "p", "required": true});
        assert_eq!(*state, expected);
        let plain = gate.post(RESPONSES, &response(json!({})));
        assert_eq!(resolved(&plain), "o/m", "only what is held stays");
    }
}

#[test]
fn without_its_provider_a_held_response_is_a_clear_error_and_goes_nowhere_else() {
    let (o, a) = (good(), good());
    let gate = gate("[[o/m], [a/m]]", &[("o", "openai", &o), ("a", "anthropic", &a)]);
    let first = gate.post(RESPONSES, &response(json!({})));
    let id = first.json()["id"].clone();
    assert_eq!(resolved(&first), "o/m");
    o.set_script(Script::always(Step::of(tidegate_fakes::fake::Act::Reset)));
    let next = gate.post(RESPONSES, &response(json!({"previous_response_id": id})));
    assert_eq!(next.status, 503, "{}", next.text());
    let message = next.json()["error"]["message"].as_str().unwrap_or_default().to_owned();
    assert!(message.contains("`previous_response_id` names, which only `o` has"), "{message}");
    assert!(message.contains("send the whole conversation"), "{message}");
    assert_eq!(hits(&a), 0, "it is never converted");
    let whole = gate.post(RESPONSES, &response(json!({})));
    assert_eq!((whole.status, resolved(&whole)), (200, "a/m"), "{}", whole.text());
}

#[test]
fn an_answer_that_was_converted_is_held_by_nobody_and_cannot_be_continued_by_its_id() {
    let (o, a) = (good(), good());
    o.set_script(failing());
    let gate = gate("[[o/m], [a/m]]", &[("o", "openai", &o), ("a", "anthropic", &a)]);
    let first = gate.post(RESPONSES, &response(json!({})));
    assert_eq!((first.status, resolved(&first)), (200, "a/m"), "{}", first.text());
    let id = first.json()["id"].clone();
    o.set_script(Script::default());
    let (o_hits, a_hits) = (hits(&o), hits(&a));
    let next = gate.post(RESPONSES, &response(json!({"previous_response_id": id})));
    assert_eq!(next.status, 400, "{}", next.text());
    assert_eq!(next.json()["error"]["code"], "missing_ability");
    assert!(next.text().contains("send the whole conversation"), "{}", next.text());
    assert_eq!((hits(&o), hits(&a)), (o_hits, a_hits), "nobody is asked");
}

#[test]
fn state_of_an_unknown_id_is_looked_for_at_the_first_provider_of_its_dialect_only() {
    let (a, o, p) = (good(), good(), good());
    let gate = gate(
        "[[a/m], [o/m], [p/m]]",
        &[("a", "anthropic", &a), ("o", "openai", &o), ("p", "openai", &p)],
    );
    let states = [
        json!({"previous_response_id": "resp_elsewhere"}),
        json!({"conversation": {"id": "conv_1"}}),
        json!({"input": [{"type": "item_reference", "id": "msg_1"}]}),
        json!({"input": [{"role": "user", "content": [
            {"type": "input_file", "file_id": "file_1"}]}]}),
    ];
    for state in states {
        let answer = gate.post(RESPONSES, &response(state.clone()));
        assert_eq!((answer.status, resolved(&answer)), (200, "o/m"), "{state} {}", answer.text());
    }
    assert_eq!((hits(&a), hits(&p)), (0, 0));
    o.set_script(failing());
    let answer = gate.post(RESPONSES, &response(json!({"conversation": "conv_2"})));
    assert_eq!(answer.status, 500, "its provider's own error: {}", answer.text());
    assert_eq!((hits(&a), hits(&p)), (0, 0), "nobody else is asked");
}

#[test]
fn files_and_cached_content_stay_with_their_vendor_in_every_dialect() {
    let (o, a, g) = (good(), good(), good());
    let fakes = [("o", "openai", &o), ("a", "anthropic", &a), ("g", "gemini", &g)];
    let file = json!({"model": "r", "max_tokens": 9, "messages": [{"role": "user", "content": [
        {"type": "document", "source": {"type": "file", "file_id": "file_1"}}]}]});
    let cached = json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "cachedContent": "cachedContents/1"});
    let generate = "/v1beta/models/r:generateContent";
    let all = gate("[[o/m], [a/m], [g/m]]", &fakes);
    let answer = all.post(MESSAGES, &file.to_string());
    assert_eq!((answer.status, resolved(&answer)), (200, "a/m"), "{}", answer.text());
    let answer = all.post(generate, &cached.to_string());
    assert_eq!((answer.status, resolved(&answer)), (200, "g/m"), "{}", answer.text());
    assert_eq!(hits(&o), 0);
    let strangers = gate("[[o/m]]", &fakes);
    let answer = strangers.post(MESSAGES, &file.to_string());
    assert_eq!(answer.status, 400, "{}", answer.text());
    assert_eq!(answer.json()["error"]["type"], "invalid_request_error");
    assert!(answer.text().contains("`o/m` does not have the uploaded file"), "{}", answer.text());
    let answer = strangers.post(generate, &cached.to_string());
    assert_eq!(answer.json()["error"]["status"], "INVALID_ARGUMENT", "{}", answer.text());
    assert!(answer.text().contains("content of `cachedContent`"), "{}", answer.text());
    assert_eq!(hits(&o), 0);
}

/// A conversation in the middle of a tool loop, in the words of Messages.
fn tool_loop(signature: &str) -> String {
    json!({"model": "r", "max_tokens": 4000,
        "thinking": {"type": "enabled", "budget_tokens": 2000},
        "tools": [{"name": "see", "input_schema": {"type": "object"}}],
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "look", "signature": signature},
                {"type": "tool_use", "id": "toolu_1", "name": "see", "input": {"at": "sea"}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "waves"}]}]})
    .to_string()
}

#[test]
fn a_tool_loop_goes_on_at_another_provider_and_comes_back_with_its_reasoning() {
    let (a, o) = (good(), good());
    let gate = gate("[[o/m], [a/m]]", &[("a", "anthropic", &a), ("o", "openai", &o)]);
    let own = gate.post(MESSAGES, &tool_loop("sig-of-anthropic"));
    assert_eq!((own.status, resolved(&own)), (200, "a/m"), "{}", own.text());
    let state = decision(&gate, &own)["plan"]["state"].clone();
    assert_eq!((&state["kind"], &state["required"]), (&json!("sealed_reasoning"), &json!(false)));
    assert!(a.calls()[0].text().contains("sig-of-anthropic"), "as it came");

    a.set_script(failing());
    let elsewhere = gate.post(MESSAGES, &tool_loop("sig-of-anthropic"));
    assert_eq!((elsewhere.status, resolved(&elsewhere)), (200, "o/m"), "{}", elsewhere.text());
    let sent = o.calls()[0].text();
    assert!(!sent.contains("sig-of-anthropic"), "a seal is its vendor's only: {sent}");
    assert!(sent.contains("toolu_1") && sent.contains("waves"), "the loop goes on: {sent}");
    let lost = elsewhere.header("x-tidegate-lost").unwrap_or_default();
    assert!(lost.contains("signature") || lost.contains("thinking"), "it is told: {lost}");

    a.set_script(Script::default());
    let foreign = gate.post(MESSAGES, &tool_loop("tidegate:openai:content:enc"));
    assert_eq!(resolved(&foreign), "o/m", "reasoning of OpenAI's: {}", foreign.text());
    let back = gate.post(MESSAGES, &tool_loop("sig-of-anthropic"));
    assert_eq!((back.status, resolved(&back)), (200, "a/m"), "{}", back.text());
}
