//! Threads of the Messages API: the vendor keeps the conversation, and a request brings only what
//! is new. Such a request means nothing to anybody else. It stays with its vendor, and where that
//! one cannot answer the client gets the vendor's own error for it, which makes the official SDKs
//! send the whole conversation; that can be answered anywhere.

use serde_json::{Value, json};
use tidegate_fakes::fake::{FakeServer, Script, Step};
use tidegate_testkit::{gate::Gate, http::Answer};

use crate::bed::{good, hits};

const MESSAGES: &str = "/v1/messages";

fn gate(tiers: &str, fakes: &[(&str, &str, &FakeServer)]) -> Gate {
    let providers: String = fakes
        .iter()
        .map(|(name, api, fake)| {
            let base = if *api == "openai" { "/v1" } else { "" };
            format!("  {name}: {{api: {api}, url: '{}{base}'}}\n", fake.url())
        })
        .collect();
    Gate::start(
        &format!(
            "listen: 127.0.0.1:0\nadmin: {{listen: '127.0.0.1:0'}}\n\
             health: {{probe: {{every: 0s}}}}\nproviders:\n{providers}\
             routes:\n  r: {{tiers: {tiers}}}\n"
        ),
        &[],
    )
}

fn asked(thread: Value) -> String {
    json!({"model": "r", "max_tokens": 9, "thread": thread,
        "messages": [{"role": "user", "content": "go on"}]})
    .to_string()
}

fn begun() -> String {
    asked(json!({"type": "create"}))
}

fn continued(id: &Value) -> String {
    asked(json!({"type": "continue", "previous_message_id": id}))
}

fn resolved(answer: &Answer) -> &str {
    answer.header("x-tidegate-resolved").unwrap_or_default()
}

/// The error after which an SDK sends the whole conversation.
fn check_replay(answer: &Answer) {
    let body = answer.json();
    assert_eq!(answer.status, 404, "{body}");
    assert_eq!(
        (&body["type"], &body["error"]["type"]),
        (&json!("error"), &json!("not_found_error"))
    );
    assert_eq!(body["error"]["details"], json!({"error_code": "thread_not_found"}));
    let message = body["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("send the whole conversation"), "{message}");
}

#[test]
fn a_thread_is_continued_at_the_provider_that_has_it() {
    for is_stream in [false, true] {
        let (a, b) = (good(), good());
        a.set_script(Script::always(Step::status(500)));
        let gate = gate("[[a/m], [b/m]]", &[("a", "anthropic", &a), ("b", "anthropic", &b)]);
        let mut first: Value = serde_json::from_str(&begun()).expect("JSON");
        first["stream"] = is_stream.into();
        let first = gate.post(MESSAGES, &first.to_string());
        assert_eq!((first.status, resolved(&first)), (200, "b/m"), "{}", first.text());
        let id = if is_stream {
            let text = first.text();
            let data = text.lines().find_map(|line| line.strip_prefix("data: ")).expect("an event");
            serde_json::from_str::<Value>(data).expect("JSON")["message"]["id"].clone()
        } else {
            first.json()["id"].clone()
        };
        a.set_script(Script::default());
        let before = hits(&a);
        let next = gate.post(MESSAGES, &continued(&id));
        assert_eq!((next.status, resolved(&next)), (200, "b/m"), "{}", next.text());
        assert_eq!(hits(&a), before, "nobody else is asked");
    }
}

#[test]
fn a_thread_is_never_continued_by_another_vendor() {
    let (a, o) = (good(), good());
    let gate = gate("[[a/m], [o/m]]", &[("a", "anthropic", &a), ("o", "openai", &o)]);
    let first = gate.post(MESSAGES, &begun());
    assert_eq!(resolved(&first), "a/m");
    let id = first.json()["id"].clone();
    for step in [Step::status(529), Step::of(tidegate_fakes::fake::Act::Reset)] {
        a.set_script(Script::always(step));
        check_replay(&gate.post(MESSAGES, &continued(&id)));
        assert_eq!(hits(&o), 0, "half a conversation goes nowhere");
    }
    let whole = gate.post(MESSAGES, &begun());
    assert_eq!((whole.status, resolved(&whole)), (200, "o/m"), "{}", whole.text());
    let lost = whole.header("x-tidegate-lost").unwrap_or_default();
    assert!(lost.contains("thread"), "{lost}");
    assert!(!o.calls()[0].text().contains("\"thread\""), "{}", o.calls()[0].text());
    check_replay(&gate.post(MESSAGES, &continued(&whole.json()["id"])));
}

#[test]
fn without_a_target_that_keeps_threads_the_client_is_asked_for_the_whole_conversation() {
    let o = good();
    let gate = gate("[[o/m]]", &[("o", "openai", &o)]);
    check_replay(&gate.post(MESSAGES, &continued(&json!("msg_1"))));
    assert_eq!(hits(&o), 0);
}

#[test]
fn where_nobody_else_could_answer_the_error_of_the_provider_is_told() {
    let a = good();
    a.set_script(Script::always(Step::status(529)));
    let gate = gate("[[a/m]]", &[("a", "anthropic", &a)]);
    let answer = gate.post(MESSAGES, &continued(&json!("msg_1")));
    assert_eq!(answer.status, 529, "{}", answer.text());
}
