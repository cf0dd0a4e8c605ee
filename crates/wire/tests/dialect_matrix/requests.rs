//! Rules of requests that no cell of the matrix shows: what a vendor refuses is rewritten, noted or
//! refused, and history from elsewhere comes back to its vendor.

use serde_json::{Value, json};
use tidegate_wire::convert::context::ReplyContext;
use tidegate_wire::convert::fault::RequestFault;
use tidegate_wire::convert::target::TargetProfile;

use crate::drive::Exchange;
use crate::spoken::{Spoken, parse};

/// What a target with this model is sent, and the notes.
fn sent(
    client: Spoken,
    upstream: Spoken,
    model: &str,
    body: &Value,
) -> Result<(Value, String), RequestFault> {
    let pair = Exchange { client, upstream }.pair(false).expect("two dialects");
    let target = TargetProfile { model, host: upstream.model().1 };
    let sent = pair.request(body.to_string().as_bytes(), &target, 1)?;
    let notes: Vec<String> = sent.notes.as_slice().iter().map(ToString::to_string).collect();
    Ok((parse(&sent.body), notes.join("\n")))
}

fn usual(client: Spoken, upstream: Spoken, body: &Value) -> Result<(Value, String), RequestFault> {
    sent(client, upstream, upstream.model().0, body)
}

fn refusal(client: Spoken, upstream: Spoken, body: &Value) -> String {
    usual(client, upstream, body).expect_err("refused").to_string()
}

fn chat(fields: Value) -> Value {
    let mut body = json!({"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 50});
    for (key, value) in fields.as_object().expect("an object") {
        body[key] = value.clone();
    }
    body
}

#[test]
fn half_a_request_of_another_dialect_is_refused() {
    let messages = json!([{"role": "user", "content": "Hi"}]);
    let cases = [
        (Spoken::Chat, chat(json!({"system": "x"})), "`system` is a field of Messages"),
        (Spoken::Chat, chat(json!({"contents": []})), "`contents` is a field of Gemini"),
        (
            Spoken::Messages,
            json!({"max_tokens": 5, "messages": messages, "response_format": {"type": "text"}}),
            "`response_format` is a field of Chat Completions",
        ),
        (
            Spoken::Responses,
            json!({"input": "Hi", "messages": messages}),
            "`messages` is a field of Chat Completions",
        ),
        (
            Spoken::Gemini,
            json!({"contents": [{"parts": [{"text": "Hi"}]}], "max_tokens": 5}),
            "`max_tokens` is a field of Chat Completions",
        ),
    ];
    for (client, body, expected) in cases {
        for upstream in Spoken::ALL.into_iter().filter(|it| *it != client) {
            let said = refusal(client, upstream, &body);
            assert!(said.starts_with(expected), "{client:?} {upstream:?}: {said}");
        }
    }
}

#[test]
fn more_tools_than_anybody_takes_are_refused() {
    let tools: Vec<Value> = (0..1025)
        .map(|at| json!({"type": "function", "function": {"name": format!("f{at}")}}))
        .collect();
    let said = refusal(Spoken::Chat, Spoken::Gemini, &chat(json!({ "tools": tools })));
    assert_eq!(said, "`tools` has more than 1024 elements");
}

#[test]
fn data_that_nobody_could_read_is_refused() {
    let image = |url: &str| {
        chat(json!({"messages": [{"role": "user", "content": [
            {"type": "image_url", "image_url": {"url": url}}]}]}))
    };
    for url in ["data:image/png,abc", "data:;base64,abc", "data:"] {
        let said = refusal(Spoken::Chat, Spoken::Messages, &image(url));
        assert!(said.starts_with("`messages[0].content[0].image_url.url` must be"), "{said}");
    }
}

#[test]
fn a_document_of_text_is_text_for_messages_and_of_a_strange_type_refused() {
    let file = |data: &str| {
        chat(json!({"messages": [{"role": "user", "content": [
            {"type": "file", "file": {"filename": "a", "file_data": data}}]}]}))
    };
    let (body, _) =
        usual(Spoken::Chat, Spoken::Messages, &file("data:text/csv;base64,YSxi")).expect("a text");
    let source = &body["messages"][0]["content"][0]["source"];
    assert_eq!(*source, json!({"type": "text", "media_type": "text/plain", "data": "a,b"}));
    let said = refusal(Spoken::Chat, Spoken::Messages, &file("data:application/zip;base64,YSxi"));
    assert!(said.contains("a document of type `application/zip`"), "{said}");
}

#[test]
fn names_of_tools_that_a_vendor_refuses_are_sent_otherwise_and_come_back() {
    let long = format!("mcp__harbour__{}", "tide".repeat(15));
    let body = json!({"max_tokens": 5, "messages": [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "t1", "name": long, "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1"}]}],
        "tools": [{"name": long, "input_schema": {"type": "object"}}],
        "tool_choice": {"type": "tool", "name": long}});
    let exchange = Exchange { client: Spoken::Messages, upstream: Spoken::Chat };
    let sent = exchange.request(body.to_string().as_bytes(), false).expect("a request");
    let asked = parse(&sent.body);
    let name = asked["tools"][0]["function"]["name"].as_str().expect("a name");
    assert_eq!(name.len(), 63);
    assert_eq!(asked["tool_choice"]["function"]["name"], name);
    assert_eq!(asked["messages"][1]["tool_calls"][0]["function"]["name"], name);
    let stream = String::from_utf8(Spoken::Chat.sample("tool-call.stream.sse")).expect("text");
    let stream = stream.replace("get_tide", name);
    let (released, _) = exchange.stream(stream.as_bytes(), &sent.context, usize::MAX);
    let seen = Spoken::Messages.streamed(&released).expect("a stream");
    assert_eq!(seen.calls[0].name, long);
    let reply = String::from_utf8(Spoken::Chat.sample("tool-call.reply.json")).expect("text");
    let reply = reply.replace("get_tide", name);
    let reply = exchange.reply(reply.as_bytes(), &sent.context).expect("an answer");
    assert_eq!(Spoken::Messages.seen(&reply).expect("an answer").calls[0].name, long);
}

#[test]
fn openai_gets_schemas_that_it_takes() {
    let body = json!({"contents": [{"parts": [{"text": "Hi"}]}], "tools": [
        {"functionDeclarations": [{"name": "f", "parametersJsonSchema": {}}]}]});
    for upstream in [Spoken::Chat, Spoken::Responses] {
        let (sent, _) = usual(Spoken::Gemini, upstream, &body).expect("a request");
        let tool = &sent["tools"][0];
        let parameters = tool.get("parameters").or(tool["function"].get("parameters"));
        assert_eq!(parameters, Some(&json!({"type": "object", "properties": {}})));
    }
    let optional = json!({"type": "object", "properties": {"a": {"type": "string"}},
        "additionalProperties": false});
    let body = json!({"max_tokens": 5, "messages": [{"role": "user", "content": "Hi"}],
        "output_config": {"format": {"type": "json_schema", "schema": optional}}});
    let (sent, notes) = usual(Spoken::Messages, Spoken::Chat, &body).expect("a request");
    assert_eq!(sent["response_format"]["json_schema"]["strict"], false);
    assert!(notes.contains("strict mode wants every field required"), "{notes}");
}

#[test]
fn openais_json_mode_gets_its_word() {
    let body = json!({"contents": [{"parts": [{"text": "Hi"}]}],
        "generationConfig": {"responseMimeType": "application/json"}});
    let (sent, notes) = usual(Spoken::Gemini, Spoken::Chat, &body).expect("a request");
    assert_eq!(sent["messages"][0]["role"], "system");
    assert!(notes.contains("response_format"), "{notes}");
    let (sent, _) = usual(Spoken::Gemini, Spoken::Responses, &body).expect("a request");
    assert!(sent["instructions"].as_str().is_some_and(|it| it.contains("JSON")));
    let body = json!({"contents": [{"parts": [{"text": "Say it in JSON"}]}],
        "generationConfig": {"responseMimeType": "application/json"}});
    let (sent, notes) = usual(Spoken::Gemini, Spoken::Chat, &body).expect("a request");
    assert_eq!((&sent["messages"][0]["role"], notes.as_str()), (&json!("user"), ""));
}

#[test]
fn a_model_that_does_not_think_is_not_told_to() {
    let body = json!({"max_tokens": 5000, "messages": [{"role": "user", "content": "Hi"}],
        "thinking": {"type": "enabled", "budget_tokens": 2000}});
    for upstream in [Spoken::Chat, Spoken::Responses] {
        let (sent, notes) = sent(Spoken::Messages, upstream, "gpt-4.1", &body).expect("a request");
        assert!(sent.get("reasoning").is_none() && sent.get("reasoning_effort").is_none());
        assert!(notes.contains("dropped `reasoning`"), "{notes}");
    }
}

#[test]
fn sampling_out_of_range_is_clamped_and_said() {
    let body = chat(json!({"temperature": 1.7, "logprobs": true, "top_logprobs": 30, "seed": 7,
        "frequency_penalty": 1.0, "stop": ["a", "b", "c", "d", "e", "f"]}));
    let (sent_there, notes) = usual(Spoken::Chat, Spoken::Messages, &body).expect("a request");
    assert_eq!(sent_there["temperature"], 1.0);
    for field in ["temperature", "seed", "frequency_penalty", "logprobs"] {
        assert!(notes.contains(&format!("`{field}`")), "{field}: {notes}");
    }
    let (sent_there, notes) = usual(Spoken::Chat, Spoken::Gemini, &body).expect("a request");
    let config = &sent_there["generationConfig"];
    assert_eq!((&config["temperature"], &config["logprobs"]), (&json!(1.7), &json!(20)));
    assert_eq!(config["stopSequences"].as_array().map(Vec::len), Some(5));
    assert!(notes.contains("clamped `top_logprobs`") && notes.contains("clamped `stop`"));
    let (sent_there, notes) =
        sent(Spoken::Chat, Spoken::Responses, "gpt-4.1", &body).expect("a request");
    assert_eq!(
        (&sent_there["temperature"], &sent_there["top_logprobs"]),
        (&json!(1.7), &json!(20))
    );
    for field in ["seed", "frequency_penalty", "stop", "top_logprobs"] {
        assert!(notes.contains(&format!("`{field}`")), "{field}: {notes}");
    }
}

#[test]
fn calls_in_the_history_bring_their_tools_to_messages() {
    let body = chat(json!({"messages": [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "tool_calls": [{"id": "c", "type": "function",
            "function": {"name": "f", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c", "content": "x"}]}));
    let (sent, notes) = usual(Spoken::Chat, Spoken::Messages, &body).expect("a request");
    assert_eq!(sent["tools"][0]["name"], "f");
    assert_eq!(sent["tool_choice"], json!({"type": "none"}));
    assert!(notes.contains("`tools`"), "{notes}");
}

/// Codex may say something between a call and its result; Messages takes the result first.
#[test]
fn results_stand_before_the_words_of_their_turn_for_messages() {
    let body = json!({"input": [
        {"role": "user", "content": "Hi"},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"role": "user", "content": "be quick"},
        {"type": "function_call_output", "call_id": "c", "output": "x"}]});
    let (sent, _) = usual(Spoken::Responses, Spoken::Messages, &body).expect("a request");
    let blocks = &sent["messages"][2]["content"];
    assert_eq!(
        (&blocks[0]["type"], &blocks[1]["text"]),
        (&json!("tool_result"), &json!("be quick"))
    );
    let (sent, _) = usual(Spoken::Responses, Spoken::Chat, &body).expect("a request");
    assert_eq!(sent["messages"][2]["role"], "tool");
}

#[test]
fn ids_of_calls_that_openai_refuses_are_cut_at_both_ends() {
    let id = format!("toolu_{}", "x".repeat(70));
    let call = json!({"type": "tool_use", "id": id, "name": "f", "input": {}});
    let result = json!({"type": "tool_result", "tool_use_id": id, "content": "x"});
    let body = json!({"max_tokens": 5, "messages": [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]}]});
    let (sent, _) = usual(Spoken::Messages, Spoken::Chat, &body).expect("a request");
    let call = sent["messages"][1]["tool_calls"][0]["id"].as_str().expect("an id");
    assert_eq!((call.len(), &sent["messages"][2]["tool_call_id"]), (40, &json!(call)));
    let (sent, _) = usual(Spoken::Messages, Spoken::Responses, &body).expect("a request");
    let call = sent["input"][1]["call_id"].as_str().expect("an id");
    assert_eq!((call.len(), &sent["input"][2]["call_id"]), (64, &json!(call)));
    let (sent, _) = usual(Spoken::Messages, Spoken::Gemini, &body).expect("a request");
    assert_eq!(sent["contents"][1]["parts"][0]["functionCall"]["id"], id);
}

#[test]
fn fields_inside_messages_are_never_lost_silently() {
    let cases = [
        (Spoken::Chat, chat(json!({"messages": [{"role": "user", "content": "Hi", "mood": 1}]}))),
        (
            Spoken::Messages,
            json!({"max_tokens": 5, "messages": [{"role": "user", "content": [
                {"type": "text", "text": "Hi", "mood": 1}]}]}),
        ),
        (Spoken::Responses, json!({"input": [{"role": "user", "content": "Hi", "mood": 1}]})),
    ];
    for (client, body) in cases {
        let upstream = if client == Spoken::Chat { Spoken::Messages } else { Spoken::Chat };
        let (_, notes) = usual(client, upstream, &body).expect("a request");
        assert!(notes.contains("mood"), "{client:?}: {notes}");
    }
}

/// The first turn was Gemini's, with a signed call; the second goes there again.
#[test]
fn the_signature_of_a_call_returns_to_google_through_every_client() {
    let sample = Spoken::Gemini.sample("parallel-tools.reply.json");
    for client in [Spoken::Chat, Spoken::Responses, Spoken::Messages] {
        let exchange = Exchange { client, upstream: Spoken::Gemini };
        let reply = exchange.reply(&sample, &ReplyContext::default()).expect("an answer");
        let reply = parse(&reply);
        let user = json!({"role": "user", "content": "Hi"});
        let body = match client {
            Spoken::Chat => json!({"messages": [user, reply["choices"][0]["message"]]}),
            Spoken::Responses => {
                let mut items = vec![user];
                items.extend(reply["output"].as_array().expect("items").clone());
                json!({ "input": items })
            }
            _ => json!({"max_tokens": 5, "messages": [user,
                {"role": "assistant", "content": reply["content"]}]}),
        };
        let (sent, _) =
            sent(client, Spoken::Gemini, "gemini-3-pro-preview", &body).expect("a request");
        let parts = &sent["contents"][1]["parts"];
        assert_eq!(parts[0]["functionCall"]["name"], "get_tide", "{client:?}: {sent}");
        assert_eq!(parts[0]["thoughtSignature"], "Es8CCswCAb4=", "{client:?}: {sent}");
        assert!(parts[1].get("thoughtSignature").is_none(), "{client:?}: {sent}");
    }
}
