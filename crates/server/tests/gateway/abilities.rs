//! What a target cannot do is asked of another one; where nobody can, a 400 in the client's dialect
//! says who lacks what, and nobody is asked.

use serde_json::{Value, json};
use tidegate_testkit::{gate::Gate, http::Answer};

use crate::bed::{Setup, good, hits};

const CHAT: &str = "/v1/chat/completions";
const MESSAGES: &str = "/v1/messages";
const RESPONSES: &str = "/v1/responses";
const GEMINI: &str = "/v1beta/models/r:generateContent";

/// A gateway whose first target lacks an ability and whose second has it.
fn half(lacks: &str, fakes: [&tidegate_fakes::fake::FakeServer; 2]) -> Gate {
    let [a, b] = fakes.map(|fake| fake.url());
    let yaml = format!(
        "listen: 127.0.0.1:0\nadmin: {{listen: '127.0.0.1:0'}}\nhealth: {{probe: {{every: 0s}}}}\n\
         providers:\n  a: {{api: openai, url: '{a}/v1', targets: {{m: {{{lacks}}}}}}}\n  \
         b: {{api: openai, url: '{b}/v1'}}\nroutes:\n  r: {{tiers: [[a/m], [b/m]]}}\n"
    );
    Gate::start(&yaml, &[])
}

/// A request of each dialect that needs this ability, if the dialect has it.
fn requests(ability: &str) -> Vec<(&'static str, Value)> {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}},
        "required": ["a"], "additionalProperties": false});
    let chat = |more: Value, content: Value| {
        let body = json!({"model": "r", "messages": [{"role": "user", "content": content}]});
        (CHAT, joined(body, more))
    };
    let messages = |more: Value, content: Value| {
        let body = json!({"model": "r", "max_tokens": 4000,
            "messages": [{"role": "user", "content": content}]});
        (MESSAGES, joined(body, more))
    };
    let responses = |more: Value, content: Value| {
        let body = json!({"model": "r", "input": [{"role": "user", "content": content}]});
        (RESPONSES, joined(body, more))
    };
    let gemini = |more: Value, part: Value| {
        (GEMINI, joined(json!({"contents": [{"role": "user", "parts": [part]}]}), more))
    };
    let hi = || json!("hi");
    let text = || json!({"text": "hi"});
    let nothing = || json!({});
    match ability {
        "tools" => vec![
            chat(json!({"tools": [{"type": "function", "function": {"name": "f"}}]}), hi()),
            messages(json!({"tools": [{"name": "f", "input_schema": schema}]}), hi()),
            responses(json!({"tools": [{"type": "function", "name": "f"}]}), hi()),
            gemini(json!({"tools": [{"functionDeclarations": [{"name": "f"}]}]}), text()),
        ],
        "vision" => vec![
            chat(
                nothing(),
                json!([{"type": "image_url", "image_url": {"url": "https://x.example/i.png"}}]),
            ),
            messages(
                nothing(),
                json!([{"type": "image",
                    "source": {"type": "url", "url": "https://x.example/i.png"}}]),
            ),
            responses(
                nothing(),
                json!([{"type": "input_image", "image_url": "https://x.example/i.png"}]),
            ),
            gemini(nothing(), json!({"inlineData": {"mimeType": "image/png", "data": "AAAA"}})),
        ],
        "documents" => vec![
            chat(
                nothing(),
                json!([{"type": "file", "file": {"filename": "a.pdf",
                    "file_data": "data:application/pdf;base64,AAAA"}}]),
            ),
            messages(
                nothing(),
                json!([{"type": "document", "source": {"type": "base64",
                    "media_type": "application/pdf", "data": "AAAA"}}]),
            ),
            responses(
                nothing(),
                json!([{"type": "input_file", "filename": "a.pdf",
                    "file_data": "data:application/pdf;base64,AAAA"}]),
            ),
            gemini(
                nothing(),
                json!({"inlineData": {"mimeType": "application/pdf", "data": "AA=="}}),
            ),
        ],
        "json_schema" => vec![
            chat(
                json!({"response_format": {"type": "json_schema",
                    "json_schema": {"name": "n", "schema": schema}}}),
                hi(),
            ),
            messages(
                json!({"output_config": {"format": {"type": "json_schema", "schema": schema}}}),
                hi(),
            ),
            responses(
                json!({"text": {"format": {"type": "json_schema", "name": "n", "schema": schema}}}),
                hi(),
            ),
            gemini(
                json!({"generationConfig": {"responseMimeType": "application/json",
                    "responseSchema": schema}}),
                text(),
            ),
        ],
        "reasoning" => vec![
            chat(json!({"reasoning_effort": "high"}), hi()),
            messages(json!({"thinking": {"type": "enabled", "budget_tokens": 2000}}), hi()),
            responses(json!({"reasoning": {"effort": "high"}}), hi()),
            gemini(
                json!({"generationConfig": {"thinkingConfig": {"thinkingBudget": 2000}}}),
                text(),
            ),
        ],
        other => panic!("no such ability: {other}"),
    }
}

fn joined(mut body: Value, more: Value) -> Value {
    if let (Some(body), Value::Object(more)) = (body.as_object_mut(), more) {
        body.extend(more);
    }
    body
}

/// The error of an answer, which has the shape of the path's dialect.
fn error_of(path: &str, answer: &Answer) -> String {
    let body = answer.json();
    assert_eq!(answer.status, 400, "{path}: {}", answer.text());
    if path == MESSAGES {
        assert_eq!(
            (&body["type"], &body["error"]["type"]),
            (&json!("error"), &json!("invalid_request_error"))
        );
    } else if path == GEMINI {
        assert_eq!(
            (&body["error"]["code"], &body["error"]["status"]),
            (&json!(400), &json!("INVALID_ARGUMENT"))
        );
    } else {
        assert_eq!(body["error"]["code"], "missing_ability", "{path}: {body}");
    }
    body["error"]["message"].as_str().unwrap_or_default().to_owned()
}

const ABILITIES: [(&str, &str); 5] = [
    ("tools", "takes no tools"),
    ("vision", "takes no images"),
    ("documents", "takes no documents"),
    ("json_schema", "follows no JSON schema"),
    ("reasoning", "does not reason"),
];

#[test]
fn a_request_passes_over_the_target_that_cannot_do_what_it_needs() {
    for (ability, _) in ABILITIES {
        let (unable, able) = (good(), good());
        let gate = half(&format!("{ability}: false"), [&unable, &able]);
        for (path, body) in requests(ability) {
            let answer = gate.post(path, &body.to_string());
            assert_eq!(answer.status, 200, "{ability} {path}: {}", answer.text());
            assert_eq!(answer.header("x-tidegate-resolved"), Some("b/m"), "{ability} {path}");
        }
        assert_eq!(hits(&unable), 0, "{ability}");
        let plain = gate.chat();
        assert_eq!(plain.header("x-tidegate-resolved"), Some("a/m"), "{ability}: {}", plain.text());
    }
}

#[test]
fn a_400_in_the_clients_dialect_names_what_every_target_lacks() {
    for (ability, phrase) in ABILITIES {
        let (one, other) = (good(), good());
        let targets = format!("targets: {{m: {{{ability}: false}}}}");
        let gate = Setup { provider: &targets, ..Setup::of(&[&one, &other]) }.start();
        for (path, body) in requests(ability) {
            let message = error_of(path, &gate.post(path, &body.to_string()));
            assert!(message.contains(&format!("`a/m` {phrase}")), "{path}: {message}");
            assert!(message.contains(&format!("`b/m` {phrase}")), "{path}: {message}");
        }
        assert_eq!(hits(&one) + hits(&other), 0, "{ability}");
    }
}

#[test]
fn everything_that_a_target_lacks_is_named_at_once() {
    let fake = good();
    let targets = "targets: {m: {tools: false, json_schema: false, context: 4}}";
    let gate = Setup { provider: targets, ..Setup::of(&[&fake]) }.start();
    let (_, tools) = requests("tools").swap_remove(0);
    let (path, schema) = requests("json_schema").swap_remove(0);
    let message = error_of(path, &gate.post(path, &joined(tools, schema).to_string()));
    let expected = "`a/m` takes no tools and follows no JSON schema and has too short a context";
    assert!(message.contains(expected), "{message}");
    assert_eq!(hits(&fake), 0);
}

#[test]
fn a_family_that_is_known_not_to_take_images_is_passed_over_without_a_word_in_the_file() {
    let (old, new) = (good(), good());
    let yaml = Setup { tiers: "[[a/gpt-3.5-turbo], [b/gpt-5]]", ..Setup::of(&[&old, &new]) }.yaml();
    let gate = Gate::start(&yaml, &[]);
    for (path, body) in requests("vision") {
        let answer = gate.post(path, &body.to_string());
        assert_eq!(answer.header("x-tidegate-resolved"), Some("b/gpt-5"), "{}", answer.text());
    }
    assert_eq!(gate.chat().header("x-tidegate-resolved"), Some("a/gpt-3.5-turbo"));
}

#[test]
fn explain_reads_a_request_as_the_data_plane_does() {
    let (unable, able) = (good(), good());
    let gate = half("vision: false", [&unable, &able]);
    for (path, body) in requests("vision") {
        let question = json!({"path": path, "request": body, "model": "r"}).to_string();
        let explained = tidegate_testkit::exchange::Exchange::begin(
            gate.server.admin_address(),
            &tidegate_testkit::exchange::Ask {
                verb: "POST",
                path: "/api/explain",
                headers: "content-type: application/json\r\n".to_owned(),
                body: question.as_bytes(),
            },
        );
        let mut explained = explained.expect("an answer");
        explained.must_be(200, "explaining");
        let text = explained.text();
        let shown: Value = serde_json::from_str(&text).expect("JSON");
        let candidates = &shown["explanation"]["candidates"];
        assert_eq!(candidates[0]["verdict"], json!({"skipped": [{"lacks": "vision"}]}), "{text}");
        assert!(candidates[1]["verdict"]["chosen"].is_object(), "{text}");
    }
}
