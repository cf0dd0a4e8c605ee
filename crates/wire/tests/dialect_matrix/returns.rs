//! There and back again: what both dialects can say survives A→B→A.

use serde_json::{Value, json};
use tidegate_wire::convert::context::ReplyContext;
use tidegate_wire::convert::history::without_foreign_thinking;
use tidegate_wire::dialect::Dialect;

use crate::drive::Exchange;
use crate::spoken::{Spoken, parse};

fn each(check: impl Fn(Spoken, Spoken)) {
    for near in Spoken::ALL {
        for far in Spoken::ALL.into_iter().filter(|far| *far != near) {
            check(near, far);
        }
    }
}

#[test]
fn a_request_there_and_back_asks_the_same() {
    let names = [
        "text",
        "system",
        "multi-turn",
        "image",
        "tool-call",
        "parallel-tools",
        "tool-result",
        "tool-choice",
        "thinking",
        "json-schema",
        "stop",
        "length",
    ];
    each(|near, far| {
        for name in names {
            let body = near.request(name, false);
            let there = Exchange { client: near, upstream: far };
            let back = Exchange { client: far, upstream: near };
            let sent = there.request(body.to_string().as_bytes(), false).expect("there");
            let returned = back.request(&sent.body, false).expect("back");
            let mut expected = near.asked(&body);
            if far == Spoken::Responses {
                expected.stop.clear();
            }
            // That several calls may come at once goes without saying in two dialects.
            let mut found = near.asked(&parse(&returned.body));
            if expected.parallel == Some(true) && found.parallel.is_none() {
                found.parallel = Some(true);
            }
            // Which is said there by a choice that means the same as none.
            if found.choice.is_none() && expected.choice == Some(crate::asked::Choice::Auto) {
                found.choice.clone_from(&expected.choice);
            }
            assert_eq!(found, expected, "{name} {near:?} {far:?}");
        }
    });
}

#[test]
fn an_answer_there_and_back_says_the_same() {
    let names = ["text", "tool-call", "parallel-tools", "thinking", "json-schema", "length"];
    let context = ReplyContext { includes_usage: true, ..ReplyContext::default() };
    each(|near, far| {
        for name in names {
            let there = Exchange { client: far, upstream: near };
            let back = Exchange { client: near, upstream: far };
            let body = near.sample(&format!("{name}.reply.json"));
            let mut expected = near.seen(&body).expect("a sample");
            let foreign = there.reply(&body, &context).expect("there");
            let returned = back.reply(&foreign, &context).expect("back");
            let found = near.seen(&returned).expect("a legal answer");
            forgive(&found, &mut expected);
            assert_eq!(found, expected, "{name} {near:?} {far:?}");
            let stream = near.sample(&format!("{name}.stream.sse"));
            let (foreign, _) = there.stream(&stream, &context, usize::MAX);
            let (returned, _) = back.stream(&foreign, &context, usize::MAX);
            let found = near.streamed(&returned).expect("a legal stream");
            assert_eq!(found, expected, "{name} {near:?} {far:?}, as a stream");
        }
    });
}

/// A call of Gemini's without an id gets one.
fn forgive(found: &crate::seen::Seen, expected: &mut crate::seen::Seen) {
    for (call, found) in expected.calls.iter_mut().zip(&found.calls) {
        if call.id.is_empty() {
            call.id.clone_from(&found.id);
        }
    }
}

/// Thinking with Anthropic's signature goes through a client of any dialect that can carry it.
#[test]
fn signatures_and_encrypted_reasoning_return_to_their_vendor() {
    let seals = [
        (Spoken::Messages, "signature", "EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds"),
        (Spoken::Responses, "encrypted_content", "gAAAAABoIPOEwhole"),
        (Spoken::Gemini, "thoughtSignature", "Cr8DAdHtim9Wmv4="),
    ];
    for (vendor, field, data) in seals {
        for client in [Spoken::Messages, Spoken::Responses, Spoken::Gemini] {
            if client == vendor {
                continue;
            }
            let exchange = Exchange { client, upstream: vendor };
            let body = vendor.sample("thinking.reply.json");
            let reply = exchange.reply(&body, &ReplyContext::default()).expect("an answer");
            let next = next_request(client, &parse(&reply));
            let sent = exchange.request(next.to_string().as_bytes(), false).expect("a request");
            let sent = parse(&sent.body).to_string();
            let expected = format!("\"{field}\":\"{data}\"");
            assert!(sent.contains(&expected), "{vendor:?} by {client:?}: {sent}");
        }
    }
}

/// A call that another vendor made goes back to Google's newer models, which want it signed, and to
/// its older ones.
#[test]
fn a_foreign_call_of_a_gemini_client_returns_to_google() {
    for upstream in [Spoken::Chat, Spoken::Responses, Spoken::Messages] {
        let exchange = Exchange { client: Spoken::Gemini, upstream };
        let body = upstream.sample("parallel-tools.reply.json");
        let reply = exchange.reply(&body, &ReplyContext::default()).expect("an answer");
        let stream = upstream.sample("parallel-tools.stream.sse");
        let (stream, _) = exchange.stream(&stream, &ReplyContext::default(), usize::MAX);
        let streamed: Vec<Value> = crate::seen::frames(&stream)
            .iter()
            .flat_map(|frame| {
                parse(frame.data.as_bytes())["candidates"][0]["content"]["parts"]
                    .as_array()
                    .cloned()
                    .unwrap_or_default()
            })
            .filter(|part| part.get("functionCall").is_some())
            .collect();
        let whole = parse(&reply)["candidates"][0]["content"]["parts"].clone();
        for parts in [whole, Value::Array(streamed)] {
            let next = json!({"contents": [{"role": "model", "parts": parts}]}).to_string();
            for (model, expected) in [
                ("gemini-3-pro-preview", json!("skip_thought_signature_validator")),
                ("gemini-2.5-flash", Value::Null),
            ] {
                let sent = without_foreign_thinking(Dialect::Gemini, model, next.as_bytes());
                let sent = parse(&sent.expect("it is rewritten"));
                let parts = &sent["contents"][0]["parts"];
                assert_eq!(parts[0]["thoughtSignature"], expected, "{upstream:?} {model}");
                assert_eq!(parts[1]["thoughtSignature"], Value::Null, "{upstream:?} {model}");
            }
        }
    }
}

/// A client that believes its items to be kept at OpenAI refers to them by their ids.
#[test]
fn a_reference_to_reasoning_that_nobody_keeps_is_left_out() {
    let exchange = Exchange { client: Spoken::Responses, upstream: Spoken::Gemini };
    let body = Spoken::Gemini.sample("parallel-tools.reply.json");
    let reply = parse(&exchange.reply(&body, &ReplyContext::default()).expect("an answer"));
    let mut items = vec![json!({"role": "user", "content": "Hi"})];
    for item in reply["output"].as_array().expect("items") {
        items.push(match item["type"].as_str() {
            Some("reasoning") => json!({"type": "item_reference", "id": item["id"]}),
            _ => item.clone(),
        });
    }
    assert!(items.iter().any(|item| item["type"] == "item_reference"), "{reply}");
    let next = json!({ "input": items }).to_string();
    for upstream in [Spoken::Chat, Spoken::Messages, Spoken::Gemini] {
        let exchange = Exchange { client: Spoken::Responses, upstream };
        let sent = exchange.request(next.as_bytes(), false).expect("a request");
        assert!(sent.notes.iter().any(|note| note.contains("`reasoning`")), "{:?}", sent.notes);
    }
    let native = without_foreign_thinking(Dialect::OpenAiResponses, "gpt-5.1", next.as_bytes());
    let native = String::from_utf8(native.expect("it is rewritten")).expect("text");
    assert!(!native.contains("item_reference"), "{native}");
    let kept = json!({"input": [{"type": "item_reference", "id": "msg_68b0"}]}).to_string();
    assert!(exchange.request(kept.as_bytes(), false).is_err());
}

/// The next request of a conversation whose last answer this was.
fn next_request(client: Spoken, reply: &Value) -> Value {
    let mut body = client.request("multi-turn", false);
    match client {
        Spoken::Messages => body["messages"][1]["content"] = reply["content"].clone(),
        Spoken::Gemini => body["contents"][1] = reply["candidates"][0]["content"].clone(),
        _ => {
            let mut items = vec![body["input"][0].clone()];
            items.extend(reply["output"].as_array().expect("items").clone());
            items.push(body["input"][2].clone());
            body["input"] = items.into();
        }
    }
    body
}
