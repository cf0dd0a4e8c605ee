//! Details of requests that the matrix has no row for, between every two dialects: documents, media
//! and lists in tool results, cache markers, and conversations made at random.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use crate::drive::{Exchange, SentRequest};
use crate::spoken::{Spoken, parse};

const PDF: &str = "JVBERi0xLjQK";
const PIXEL: &str = "iVBORw0KGgo=";

fn each(clients: &[Spoken], check: impl Fn(Exchange)) {
    for client in clients {
        for upstream in Spoken::ALL.into_iter().filter(|upstream| upstream != client) {
            check(Exchange { client: *client, upstream });
        }
    }
}

fn sent(exchange: Exchange, body: &Value) -> (Value, SentRequest) {
    let sent = exchange.request(body.to_string().as_bytes(), false);
    let sent = sent.unwrap_or_else(|fault| panic!("{exchange:?}: {fault}"));
    (parse(&sent.body), sent)
}

/// A user's message with this part.
fn says(client: Spoken, part: Value) -> Value {
    match client {
        Spoken::Chat => json!({"messages": [{"role": "user", "content": [part]}]}),
        Spoken::Messages => {
            json!({"max_tokens": 9, "messages": [{"role": "user", "content": [part]}]})
        }
        Spoken::Responses => json!({"input": [{"role": "user", "content": [part]}]}),
        Spoken::Gemini => json!({"contents": [{"role": "user", "parts": [part]}]}),
    }
}

/// The first part of the first message.
fn first_part(spoken: Spoken, body: &Value) -> Value {
    match spoken {
        Spoken::Responses => body["input"][0]["content"][0].clone(),
        Spoken::Gemini => body["contents"][0]["parts"][0].clone(),
        _ => body["messages"][0]["content"][0].clone(),
    }
}

#[test]
fn a_document_crosses_between_every_two() {
    let url = format!("data:application/pdf;base64,{PDF}");
    let document = |spoken| match spoken {
        Spoken::Chat => json!({"type": "file", "file": {"filename": "a.pdf", "file_data": url}}),
        Spoken::Responses => {
            json!({"type": "input_file", "filename": "a.pdf", "file_data": url})
        }
        Spoken::Messages => json!({"type": "document", "title": "a.pdf", "source":
            {"type": "base64", "media_type": "application/pdf", "data": PDF}}),
        Spoken::Gemini => json!({"inlineData": {"mimeType": "application/pdf", "data": PDF}}),
    };
    each(&Spoken::ALL, |exchange| {
        let (body, _) = sent(exchange, &says(exchange.client, document(exchange.client)));
        let found = first_part(exchange.upstream, &body);
        let mut expected = document(exchange.upstream);
        // Gemini has no name of a file: one is made up for those who want one.
        if exchange.client == Spoken::Gemini {
            match exchange.upstream {
                Spoken::Chat => expected["file"]["filename"] = json!("document.pdf"),
                Spoken::Responses => expected["filename"] = json!("document.pdf"),
                _ => drop(expected.as_object_mut().map(|map| map.shift_remove("title"))),
            }
        }
        assert_eq!(found, expected, "{exchange:?}");
    });
}

#[test]
fn a_document_by_its_address_crosses_or_is_refused_by_name() {
    let document = |spoken| match spoken {
        Spoken::Responses => json!({"type": "input_file", "file_url": "https://x.org/a.pdf"}),
        Spoken::Gemini => json!({"fileData":
            {"mimeType": "application/pdf", "fileUri": "https://x.org/a.pdf"}}),
        _ => json!({"type": "document", "source": {"type": "url", "url": "https://x.org/a.pdf"}}),
    };
    each(&[Spoken::Responses, Spoken::Messages, Spoken::Gemini], |exchange| {
        let body = says(exchange.client, document(exchange.client));
        if exchange.upstream == Spoken::Chat {
            let fault = exchange.request(body.to_string().as_bytes(), false);
            let fault = fault.err().expect("it is refused").to_string();
            assert!(fault.starts_with("a document by its address"), "{fault}");
        } else {
            let (body, _) = sent(exchange, &body);
            let found = first_part(exchange.upstream, &body);
            assert_eq!(found, document(exchange.upstream), "{exchange:?}");
        }
    });
}

/// A call, and its result of two texts and perhaps an image.
fn tool_result(client: Spoken, has_image: bool) -> Value {
    let mut body = match client {
        Spoken::Chat => json!({"messages": [{"role": "user", "content": "Hi"},
            {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function",
                "function": {"name": "look", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": [
                {"type": "text", "text": "one"}, {"type": "text", "text": "two"}]}]}),
        Spoken::Messages => json!({"max_tokens": 9, "messages": [{"role": "user", "content": "Hi"},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "c1", "name": "look", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [
                {"type": "text", "text": "one"}, {"type": "text", "text": "two"}]}]}]}),
        Spoken::Responses => json!({"input": [{"role": "user", "content": "Hi"},
            {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": [
                {"type": "input_text", "text": "one"}, {"type": "input_text", "text": "two"}]}]}),
        Spoken::Gemini => json!({"contents": [{"role": "user", "parts": [{"text": "Hi"}]},
            {"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "look"}}]},
            {"role": "user", "parts": [{"functionResponse": {"id": "c1", "name": "look",
                "response": {"result": "one\ntwo"}}}]}]}),
    };
    if has_image {
        let (list, image) = match client {
            Spoken::Messages => (
                &mut body["messages"][2]["content"][0]["content"],
                json!({"type": "image", "source":
                    {"type": "base64", "media_type": "image/png", "data": PIXEL}}),
            ),
            Spoken::Responses => (
                &mut body["input"][2]["output"],
                json!({"type": "input_image", "detail": "auto",
                    "image_url": format!("data:image/png;base64,{PIXEL}")}),
            ),
            _ => {
                let response = &mut body["contents"][2]["parts"][0]["functionResponse"];
                response["parts"] = json!([]);
                let image = json!({"inlineData": {"mimeType": "image/png", "data": PIXEL}});
                (&mut response["parts"], image)
            }
        };
        list.as_array_mut().expect("a list").push(image);
    }
    body
}

#[test]
fn a_list_of_texts_as_a_result_is_one_text_where_there_is_no_list() {
    each(&Spoken::ALL, |exchange| {
        let (body, _) = sent(exchange, &tool_result(exchange.client, false));
        let found = match exchange.upstream {
            Spoken::Chat => body["messages"][2]["content"].clone(),
            Spoken::Responses => body["input"][2]["output"].clone(),
            Spoken::Gemini => {
                body["contents"][2]["parts"][0]["functionResponse"]["response"]["result"].clone()
            }
            Spoken::Messages => {
                let content = &body["messages"][2]["content"][0]["content"];
                match content.as_array() {
                    None => content.clone(),
                    Some(blocks) => {
                        let texts: Vec<&str> =
                            blocks.iter().filter_map(|block| block["text"].as_str()).collect();
                        texts.join("\n").into()
                    }
                }
            }
        };
        assert_eq!(found, "one\ntwo", "{exchange:?}");
    });
}

#[test]
fn an_image_in_a_result_stands_where_the_provider_takes_one() {
    each(&[Spoken::Responses, Spoken::Messages, Spoken::Gemini], |exchange| {
        let (body, sent) = sent(exchange, &tool_result(exchange.client, true));
        let (found, is_moved) = match exchange.upstream {
            // A result is text; the image follows in a message of the user's.
            Spoken::Chat => (body["messages"][3]["content"][0]["image_url"]["url"].clone(), true),
            Spoken::Responses => {
                let parts = body["input"][2]["output"].as_array().expect("parts");
                (parts[parts.len() - 1]["image_url"].clone(), false)
            }
            Spoken::Messages => {
                let parts = &body["messages"][2]["content"][0]["content"];
                let parts = parts.as_array().expect("blocks");
                (parts[parts.len() - 1]["source"]["data"].clone(), false)
            }
            // The models before Gemini 3 take no files inside of a result.
            Spoken::Gemini => (body["contents"][2]["parts"][1]["inlineData"]["data"].clone(), true),
        };
        assert!(found.as_str().is_some_and(|it| it.ends_with(PIXEL)), "{exchange:?}: {body}");
        let is_noted = sent.notes.iter().any(|note| note.contains("result"));
        assert_eq!(is_noted, is_moved, "{exchange:?}: {:?}", sent.notes);
    });
}

#[test]
fn a_cache_marker_is_carried_or_noted_wherever_it_stands() {
    let mark = json!({"type": "ephemeral"});
    let plain = json!({"max_tokens": 9, "system": [{"type": "text", "text": "Be brief"}],
        "tools": [{"name": "look", "input_schema": {"type": "object"}}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
            {"role": "assistant", "content": [{"type": "text", "text": "Ho"},
                {"type": "tool_use", "id": "c1", "name": "look", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1",
                "content": [{"type": "text", "text": "one"}]}]}]});
    let places = [
        "/system/0",
        "/tools/0",
        "/messages/0/content/0",
        "/messages/1/content/0",
        "/messages/1/content/1",
        "/messages/2/content/0",
        "/messages/2/content/0/content/0",
    ];
    for place in places {
        let mut body = plain.clone();
        body.pointer_mut(place).expect("a place")["cache_control"] = mark.clone();
        each(&[Spoken::Messages], |exchange| {
            let (_, sent) = sent(exchange, &body);
            let is_noted = sent.notes.iter().any(|note| note.contains("`cache_control`"));
            assert!(is_noted, "{place} {exchange:?}: {:?}", sent.notes);
        });
    }
    let body = json!({"messages": [{"role": "user", "content": [
        {"type": "text", "text": "Hi", "cache_control": mark}]}]});
    let exchange = Exchange { client: Spoken::Chat, upstream: Spoken::Messages };
    let (body, _) = sent(exchange, &body);
    assert_eq!(body["messages"][0]["content"][0]["cache_control"], mark);
}

/// A conversation of a Chat client, made at random: texts, calls with their results, tools.
fn conversation() -> impl Strategy<Value = Value> {
    let text = "[a-zé\"\\\\\n {}]{1,20}[a-z]";
    let arguments = prop::collection::btree_map("[a-z]{1,5}", any::<i32>(), 0..3);
    let turn = (text, prop::collection::vec(arguments, 0..3), text);
    let turns = prop::collection::vec(turn, 1..5);
    let choice = select(vec![Value::Null, json!("auto"), json!("none"), json!("required")]);
    (turns, choice, 1..5000_u64, prop::option::of(text)).prop_map(
        |(turns, choice, max_tokens, system)| {
            let mut messages = Vec::new();
            messages.extend(system.map(|text| json!({"role": "system", "content": text})));
            for (at, (said, calls, result)) in turns.iter().enumerate() {
                messages.push(json!({"role": "user", "content": said}));
                let id = |number: usize| format!("call_{at}x{number}");
                let written: Vec<Value> = calls
                    .iter()
                    .enumerate()
                    .map(|(number, arguments)| {
                        json!({"id": id(number), "type": "function",
                            "function": {"name": "f", "arguments": json!(arguments).to_string()}})
                    })
                    .collect();
                if written.is_empty() {
                    messages.push(json!({"role": "assistant", "content": result}));
                    continue;
                }
                messages.push(json!({"role": "assistant", "tool_calls": written}));
                for number in 0..calls.len() {
                    let id = id(number);
                    messages.push(json!({"role": "tool", "tool_call_id": id, "content": result}));
                }
            }
            messages.push(json!({"role": "user", "content": "and?"}));
            let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
            let mut body = json!({"max_completion_tokens": max_tokens, "messages": messages,
                "tools": [{"type": "function", "function": {"name": "f", "description": "d",
                    "parameters": schema}}]});
            if !choice.is_null() {
                body["tool_choice"] = choice;
            }
            body
        },
    )
}

proptest! {
    #![proptest_config(crate::hostile::cases(24))]

    /// What a conversation asks is the same in every dialect, and after a way back.
    #[test]
    fn a_random_conversation_asks_the_same_there_and_back(body in conversation()) {
        let asked = Spoken::Chat.asked(&body);
        for near in Spoken::ALL {
            let first = Exchange { client: Spoken::Chat, upstream: near };
            let (near_body, _) = sent(first, &body);
            for far in Spoken::ALL {
                let (far_body, _) = sent(Exchange { client: near, upstream: far }, &near_body);
                let (back, _) = sent(Exchange { client: far, upstream: near }, &far_body);
                let mut found = near.asked(&back);
                // Which some dialects have to say.
                found.max_tokens = found.max_tokens.min(asked.max_tokens.map(|most| most.max(16)));
                let mut expected = asked.clone();
                expected.max_tokens = found.max_tokens;
                prop_assert_eq!(found, expected, "{:?} {:?}", near, far);
            }
        }
    }
}
