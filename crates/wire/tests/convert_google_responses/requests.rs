//! Requests: what is kept, rewritten and noted.

use serde_json::{Value, json};
use tidegate_wire::convert::fault::RequestFault;
use tidegate_wire::convert::notes::Notes;
use tidegate_wire::convert::request::GenerationRequest;
use tidegate_wire::convert::{gemini, responses};

use crate::{parsed, target};

fn read_gemini(body: &Value, notes: &mut Notes) -> Result<GenerationRequest, RequestFault> {
    gemini::request_in::read_request(body.to_string().as_bytes(), false, notes)
}

fn read_responses(body: &Value, notes: &mut Notes) -> Result<GenerationRequest, RequestFault> {
    responses::request_in::read_request(body.to_string().as_bytes(), notes)
}

fn to_gemini(request: &GenerationRequest, model: &str, notes: &mut Notes) -> Value {
    parsed(&gemini::request_out::write_request(request, &target(model), notes).expect("a request"))
}

fn to_responses(request: &GenerationRequest, model: &str, notes: &mut Notes) -> Value {
    parsed(
        &responses::request_out::write_request(request, &target(model), notes).expect("a request"),
    )
}

fn noted(notes: &Notes) -> Vec<&str> {
    notes.as_slice().iter().map(|note| &*note.field).collect()
}

/// A conversation in the middle of a tool loop, with everything that Gemini and the form share.
fn gemini_request() -> Value {
    json!({
        "contents": [
            {"role": "user", "parts": [{"text": "look"},
                {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
                {"inlineData": {"mimeType": "application/pdf", "data": "BBBB"}}]},
            {"role": "model", "parts": [
                {"text": "hm", "thought": true, "thoughtSignature": "c2ln"},
                {"text": "I will look"},
                {"functionCall": {"id": "a", "name": "see", "args": {"x": [1, 2]}},
                    "thoughtSignature": "c2lnMg=="},
                {"functionCall": {"id": "b", "name": "hear", "args": {}}}]},
            {"role": "user", "parts": [
                {"functionResponse": {"id": "a", "name": "see", "response": {"result": "dark"}}},
                {"functionResponse": {"id": "b", "name": "hear", "response": {"error": "deaf"}}},
                {"text": "go on"}]},
        ],
        "systemInstruction": {"parts": [{"text": "be brief"}]},
        "tools": [{"functionDeclarations": [
            {"name": "see", "description": "looks", "parametersJsonSchema": {"type": "object",
                "properties": {"x": {"type": "array", "items": {"type": "integer"}}}}},
            {"name": "hear"}]}],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["see"]}},
        "generationConfig": {"maxOutputTokens": 100, "temperature": 0.5, "topP": 0.9, "topK": 40,
            "frequencyPenalty": 0.5, "presencePenalty": -0.5, "seed": 7, "stopSequences": ["x"],
            "responseLogprobs": true, "logprobs": 3,
            "thinkingConfig": {"thinkingBudget": 2048, "includeThoughts": true}},
    })
}

#[test]
fn gemini_comes_back_as_it_went() {
    let mut notes = Notes::default();
    let body = gemini_request();
    let request = read_gemini(&body, &mut notes).expect("a request");
    assert_eq!(to_gemini(&request, "house-model", &mut notes), body);
    assert_eq!(noted(&notes), Vec::<&str>::new());
    let sent = to_gemini(&request, "gemini-2.5-flash", &mut notes);
    assert_eq!(noted(&notes), ["frequency_penalty", "presence_penalty"], "this one refuses them");
    let config = &sent["generationConfig"];
    assert!(config.get("frequencyPenalty").is_none() && config.get("presencePenalty").is_none());
}

/// The same conversation in the Responses API.
fn responses_request() -> Value {
    json!({
        "model": "house-model",
        "input": [
            {"type": "message", "role": "user", "content": [
                {"type": "input_text", "text": "look"},
                {"type": "input_image", "image_url": "data:image/png;base64,AAAA",
                    "detail": "auto"},
                {"type": "input_file", "filename": "a.pdf",
                    "file_data": "data:application/pdf;base64,BBBB"}]},
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}],
                "encrypted_content": "enc"},
            {"type": "message", "role": "assistant",
                "content": [{"type": "output_text", "text": "I will look"}]},
            {"type": "function_call", "call_id": "a", "name": "see", "arguments": "{\"x\":[1,2]}"},
            {"type": "custom_tool_call", "call_id": "b", "name": "patch", "input": "*** Begin"},
            {"type": "function_call_output", "call_id": "a", "output": "dark"},
            {"type": "custom_tool_call_output", "call_id": "b", "output": "done"},
            {"type": "message", "role": "user",
                "content": [{"type": "input_text", "text": "go on"}]},
        ],
        "instructions": "be brief",
        "store": false,
        "stream": true,
        "tools": [
            {"type": "function", "name": "see", "parameters": {"type": "object",
                "properties": {"x": {"type": "array"}}, "required": ["x"],
                "additionalProperties": false}, "strict": true, "description": "looks"},
            {"type": "custom", "name": "patch", "format": {"type": "text"}},
            {"type": "web_search"}],
        "parallel_tool_calls": false,
        "tool_choice": {"type": "custom", "name": "patch"},
        "max_output_tokens": 100,
        "temperature": 0.5,
        "top_p": 0.9,
        "top_logprobs": 3,
        "include": ["message.output_text.logprobs"],
        "reasoning": {"effort": "low", "summary": "auto"},
        "text": {"format": {"type": "json_schema", "name": "n",
            "schema": {"type": "object", "additionalProperties": false},
            "strict": true}, "verbosity": "low"},
        "user": "u",
        "prompt_cache_key": "k",
        "metadata": {"a": "b"},
    })
}

#[test]
fn responses_come_back_as_they_went() {
    let mut notes = Notes::default();
    let body = responses_request();
    let request = read_responses(&body, &mut notes).expect("a request");
    assert_eq!(to_responses(&request, "house-model", &mut notes), body);
    assert_eq!(noted(&notes), Vec::<&str>::new());
}

#[test]
fn a_tool_loop_of_responses_goes_on_at_gemini() {
    let mut notes = Notes::default();
    let mut body = responses_request();
    body["text"] = Value::Null;
    let request = read_responses(&body, &mut notes).expect("a request");
    let sent = to_gemini(&request, "gemini-3-pro-preview", &mut notes);
    assert_eq!(
        sent["contents"],
        json!([
            {"role": "user", "parts": [{"text": "look"},
                {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
                {"inlineData": {"mimeType": "application/pdf", "data": "BBBB"}}]},
            {"role": "model", "parts": [{"text": "I will look"},
                {"functionCall": {"id": "a", "name": "see", "args": {"x": [1, 2]}},
                    "thoughtSignature": "skip_thought_signature_validator"},
                {"functionCall": {"id": "b", "name": "patch", "args": {"input": "*** Begin"}}}]},
            {"role": "user", "parts": [
                {"functionResponse": {"id": "a", "name": "see", "response": {"result": "dark"}}},
                {"functionResponse": {"id": "b", "name": "patch", "response": {"result": "done"}}},
                {"text": "go on"}]},
        ])
    );
    let calling = &sent["toolConfig"]["functionCallingConfig"];
    assert_eq!(calling, &json!({"mode": "ANY", "allowedFunctionNames": ["patch"]}));
    assert_eq!(sent["generationConfig"]["thinkingConfig"]["thinkingLevel"], "low");
    let expected = ["thinking", "tools.web_search", "parallel_tool_calls", "strict", "format"];
    for field in expected {
        assert!(noted(&notes).contains(&field), "{field} in {notes:?}");
    }
}

#[test]
fn a_tool_loop_of_gemini_goes_on_at_responses_with_its_own_ids() {
    let mut notes = Notes::default();
    let body = json!({"contents": [
        {"role": "user", "parts": {"text": "twice"}},
        {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"n": 1}}},
            {"functionCall": {"name": "f", "args": {"n": 2}}}]},
        {"role": "function", "parts": [
            {"functionResponse": {"name": "f", "response": {"result": "one"}}},
            {"functionResponse": {"name": "f", "response": {"a": 1, "b": 2}}}]},
    ], "tools": {"function_declarations": {"name": "f", "parameters": {"type": "OBJECT",
        "properties": {"n": {"type": "INTEGER", "nullable": true}}}}},
    "safetySettings": [{"category": "x"}]});
    let request = read_gemini(&body, &mut notes).expect("a request");
    let sent = to_responses(&request, "gpt-5", &mut notes);
    assert_eq!(
        sent["input"],
        json!([
            {"type": "message", "role": "user",
                "content": [{"type": "input_text", "text": "twice"}]},
            {"type": "function_call", "call_id": "call_0", "name": "f", "arguments": "{\"n\":1}"},
            {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{\"n\":2}"},
            {"type": "function_call_output", "call_id": "call_0", "output": "one"},
            {"type": "function_call_output", "call_id": "call_1",
                "output": "{\"a\":1,\"b\":2}"},
        ])
    );
    let parameters = &sent["tools"][0]["parameters"]["properties"]["n"];
    assert_eq!(parameters, &json!({"type": ["integer", "null"]}));
    assert_eq!(sent["include"], json!(["reasoning.encrypted_content"]));
    assert_eq!(noted(&notes), ["safetySettings"]);
}

#[test]
fn instructions_in_the_middle_are_kept() {
    let mut notes = Notes::default();
    let body = json!({"input": [
        {"role": "developer", "content": "first"},
        {"role": "user", "content": "a"},
        {"role": "system", "content": "second"},
        {"role": "user", "content": "b"},
    ]});
    let request = read_responses(&body, &mut notes).expect("a request");
    let sent = to_gemini(&request, "gemini-2.5-pro", &mut notes);
    let system = json!({"parts": [{"text": "first"}, {"text": "second"}]});
    assert_eq!(sent["systemInstruction"], system);
    assert_eq!(
        sent["contents"],
        json!([{"role": "user", "parts": [{"text": "a"}, {"text": "b"}]}])
    );
    let native = to_responses(&request, "gpt-5", &mut notes);
    assert_eq!(native["input"][1]["role"], "developer");
}

#[test]
fn sampling_is_clamped_or_dropped_with_a_note() {
    let mut notes = Notes::default();
    let body = json!({"input": "x", "temperature": 3.0, "max_output_tokens": 4, "top_p": 0.5});
    let request = read_responses(&body, &mut notes).expect("a request");
    let sent = to_gemini(&request, "gemini-2.5-pro", &mut notes);
    assert_eq!(sent["generationConfig"]["temperature"], 2.0);
    assert_eq!(noted(&notes), ["temperature"]);
    let mut notes = Notes::default();
    let sent = to_responses(&request, "o4-mini", &mut notes);
    assert_eq!((&sent["temperature"], &sent["top_p"]), (&Value::Null, &Value::Null));
    assert_eq!(sent["max_output_tokens"], 16);
    assert_eq!(noted(&notes), ["max_tokens", "temperature", "top_p"]);
    let mut notes = Notes::default();
    let body = json!({"contents": [{"parts": [{"text": "x"}]}], "generationConfig": {
        "stopSequences": ["a"], "seed": 1, "topK": 40.0, "frequencyPenalty": 1}});
    let request = read_gemini(&body, &mut notes).expect("a request");
    to_responses(&request, "gpt-4.1", &mut notes);
    assert_eq!(noted(&notes), ["top_k", "frequency_penalty", "seed", "stop"]);
}

#[test]
fn json_answers_are_asked_for_in_both() {
    let mut notes = Notes::default();
    let body = json!({"contents": [{"parts": [{"text": "x"}]}], "generationConfig": {
        "responseMimeType": "application/json", "responseSchema": {"type": "OBJECT"}}});
    let request = read_gemini(&body, &mut notes).expect("a request");
    let sent = to_responses(&request, "gpt-4.1", &mut notes);
    let format = json!({"type": "json_schema", "name": "response", "schema": {"type": "object"}});
    assert_eq!(sent["text"], json!({ "format": format }));
    let sent = to_gemini(&request, "gemini-2.5-pro", &mut notes);
    assert_eq!(sent["generationConfig"]["responseJsonSchema"], json!({"type": "object"}));
}
