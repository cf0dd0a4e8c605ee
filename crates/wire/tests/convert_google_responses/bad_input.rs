//! Requests that are refused, with what is wrong; answers that are none.

use serde_json::{Value, json};
use tidegate_wire::convert::fault::ReplyFault;
use tidegate_wire::convert::notes::Notes;
use tidegate_wire::convert::{gemini, responses};

use crate::target;

fn check_gemini(body: &Value, expected: &str) {
    let read =
        gemini::request_in::read_request(body.to_string().as_bytes(), false, &mut Notes::default());
    assert_eq!(read.expect_err("a refusal").to_string(), expected, "{body}");
}

fn check_responses(body: &Value, expected: &str) {
    let read =
        responses::request_in::read_request(body.to_string().as_bytes(), &mut Notes::default());
    assert_eq!(read.expect_err("a refusal").to_string(), expected, "{body}");
}

const REFUSED: &str = "cannot be sent in this target's dialect";

#[test]
fn what_refers_to_state_at_a_vendor_is_refused_by_name() {
    for key in ["previous_response_id", "conversation", "prompt"] {
        let body = json!({"input": "x", key: "resp_1"});
        check_responses(&body, &format!("`{key}`, which OpenAI keeps, {REFUSED}"));
    }
    check_responses(
        &json!({"input": [{"type": "item_reference", "id": "msg_1"}]}),
        &format!("an `item_reference`, which OpenAI keeps, {REFUSED}"),
    );
    check_gemini(
        &json!({"contents": [], "cachedContent": "cachedContents/1"}),
        &format!("`cachedContent`, which Google keeps, {REFUSED}"),
    );
}

#[test]
fn what_is_wrong_is_named() {
    check_responses(&json!({}), "`input` is missing");
    check_responses(&json!({"input": 5}), "`input` must be a string or an array");
    check_responses(
        &json!({"input": [{"role": "robot", "content": "x"}]}),
        "`input[0].role` must be `user`, `assistant`, `system` or `developer`",
    );
    check_responses(
        &json!({"input": [{"role": "user", "content": [{"type": "hologram"}]}]}),
        "`input[0].content[0].type` is not a kind of content that can be converted",
    );
    check_responses(&json!({"input": "x", "tools": [5]}), "`tools[0]` must be an object");
    check_gemini(
        &json!({"contents": [{"role": "robot", "parts": []}]}),
        "`contents[0].role` must be `user` or `model`",
    );
    check_gemini(
        &json!({"contents": [{"parts": [{"functionCall": {"name": "f", "args": "x"}}]}]}),
        "`contents[0].parts[0].functionCall.args` must be an object",
    );
    check_gemini(
        &json!({"contents": [], "generationConfig": {"temperature": "hot"}}),
        "`generationConfig.temperature` must be a number",
    );
}

#[test]
fn what_gemini_cannot_be_asked_is_refused() {
    let write = |body: Value, model: &str| {
        let mut notes = Notes::default();
        let request = responses::request_in::read_request(body.to_string().as_bytes(), &mut notes);
        let request = request.expect("a request");
        gemini::request_out::write_request(&request, &target(model), &mut notes)
            .map(|_| ())
            .map_err(|fault| fault.to_string())
    };
    let call = |arguments: &str| {
        json!({"input": [{"type": "function_call", "call_id": "a", "name": "f",
            "arguments": arguments}]})
    };
    assert_eq!(write(call(""), "gemini-2.5-pro"), Ok(()));
    assert_eq!(
        write(call("{not json"), "gemini-2.5-pro"),
        Err("`tool call` has arguments of `f` that are no JSON object".to_owned())
    );
    let lost = json!({"input": [{"type": "function_call_output", "call_id": "z", "output": ""}]});
    assert_eq!(
        write(lost, "gemini-2.5-pro"),
        Err("`tool result` answers the call `z`, which is not there".to_owned())
    );
    let file = json!({"input": [{"role": "user", "content": [
        {"type": "input_image", "file_id": "file-1"}]}]});
    let kept = format!("a file that another vendor keeps {REFUSED}");
    assert_eq!(write(file, "gemini-2.5-pro"), Err(kept));
    let both = json!({"input": "x", "tools": [{"type": "function", "name": "f"}],
        "text": {"format": {"type": "json_object"}}});
    assert!(write(both.clone(), "gemini-2.5-pro").is_err());
    assert_eq!(write(both, "gemini-3-pro-preview"), Ok(()));
}

#[test]
fn ten_thousand_tools_and_deep_schemas_are_refused() {
    let tool = json!({"type": "function", "name": "f", "parameters": {"type": "object"}});
    let body = json!({"input": "x", "tools": vec![tool; 10_000]});
    let mut notes = Notes::default();
    let request = responses::request_in::read_request(body.to_string().as_bytes(), &mut notes);
    let said = request.expect_err("a refusal").to_string();
    assert_eq!(said, "`tools` has more than 1024 elements");
    let deep = format!("{}{}", "{\"items\":".repeat(500), "1");
    let body = format!("{{\"input\":\"x\",\"tools\":[{deep}{}]}}", "}".repeat(500));
    let read = responses::request_in::read_request(body.as_bytes(), &mut notes);
    assert!(read.expect_err("a refusal").to_string().contains("recursion limit"));
}

#[test]
fn what_is_no_answer_is_the_targets_fault() {
    assert_eq!(gemini::reply_in::read_reply(b"<html>"), Err(ReplyFault::NotJson));
    assert!(gemini::reply_in::read_reply(b"{}").is_err());
    assert!(responses::reply_in::read_reply(b"{}").is_err());
    assert!(responses::reply_in::read_reply(br#"{"output":[],"status":"in_progress"}"#).is_err());
    let malformed = br#"{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL"}]}"#;
    let problem = "a malformed tool call";
    assert_eq!(gemini::reply_in::read_reply(malformed), Err(ReplyFault::NotTheDialect { problem }));
}
