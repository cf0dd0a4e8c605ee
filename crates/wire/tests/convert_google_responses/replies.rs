//! Whole answers, in both directions.

use serde_json::{Value, json};
use tidegate_wire::convert::context::ReplyContext;
use tidegate_wire::convert::reply::{Reply, StopReason, TokenUsage};
use tidegate_wire::convert::{gemini, responses};

use crate::parsed;

fn gemini_reply(body: &Value) -> Reply {
    gemini::reply_in::read_reply(body.to_string().as_bytes()).expect("an answer")
}

fn responses_reply(body: &Value) -> Reply {
    responses::reply_in::read_reply(body.to_string().as_bytes()).expect("an answer")
}

fn gemini_body() -> Value {
    json!({
        "candidates": [{"content": {"parts": [
            {"text": "hm", "thought": true, "thoughtSignature": "c2ln"},
            {"text": "I look"},
            {"functionCall": {"id": "a", "name": "see", "args": {"x": 1}},
                "thoughtSignature": "c2lnMg=="},
            {"functionCall": {"id": "b", "name": "hear", "args": {}}}], "role": "model"},
            "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 22,
            "thoughtsTokenCount": 7, "cachedContentTokenCount": 4},
        "modelVersion": "gemini-2.5-pro", "responseId": "r1",
    })
}

#[test]
fn an_answer_of_gemini_comes_back_as_it_went() {
    let reply = gemini_reply(&gemini_body());
    assert_eq!(reply.stop, StopReason::ToolUse);
    let usage = TokenUsage { input: 10, cached: 4, cache_written: 0, output: 12, reasoning: 7 };
    assert_eq!(reply.usage, Some(usage));
    assert_eq!(parsed(&gemini::reply_out::write_reply(&reply)), gemini_body());
}

#[test]
fn a_client_of_responses_understands_gemini() {
    let context = ReplyContext { created_unix_s: 99, ..ReplyContext::default() };
    let body = parsed(&responses::reply_out::write_reply(&gemini_reply(&gemini_body()), &context));
    assert_eq!(body["status"], "completed");
    assert_eq!(body["created_at"], 99);
    assert_eq!(
        body["output"],
        json!([
            {"id": "rs_tg_r1_0", "type": "reasoning",
                "summary": [{"type": "summary_text", "text": "hm"}],
                "encrypted_content": "tidegate:google:proof:c2ln"},
            {"id": "msg_tg_r1_1", "type": "message", "status": "completed", "role": "assistant",
                "content": [{"type": "output_text", "text": "I look", "annotations": [],
                    "logprobs": []}]},
            {"id": "rs_tg_r1_2", "type": "reasoning", "summary": [],
                "encrypted_content": "tidegate:google:proof:c2lnMg=="},
            {"id": "fc_tg_r1_3", "type": "function_call", "status": "completed", "call_id": "a",
                "name": "see", "arguments": "{\"x\":1}"},
            {"id": "fc_tg_r1_4", "type": "function_call", "status": "completed", "call_id": "b",
                "name": "hear", "arguments": "{}"},
        ])
    );
    assert_eq!(
        body["usage"],
        json!({"input_tokens": 10,
            "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 0},
            "output_tokens": 12, "output_tokens_details": {"reasoning_tokens": 7},
            "total_tokens": 22})
    );
    let again = responses_reply(&body);
    assert_eq!(again.stop, StopReason::ToolUse);
    assert_eq!(again.usage, gemini_reply(&gemini_body()).usage);
}

#[test]
fn stop_reasons_have_their_words() {
    let of_gemini = |word: &str| {
        gemini_reply(&json!({"candidates": [{"content": {"parts": [{"text": "x"}]},
            "finishReason": word}]}))
    };
    let context = ReplyContext::default();
    for (word, stop, status, reason) in [
        ("STOP", StopReason::EndOfTurn, "completed", Value::Null),
        ("MAX_TOKENS", StopReason::Length, "incomplete", json!("max_output_tokens")),
        ("SAFETY", StopReason::ContentFilter, "incomplete", json!("content_filter")),
        ("RECITATION", StopReason::ContentFilter, "incomplete", json!("content_filter")),
    ] {
        let reply = of_gemini(word);
        assert_eq!(reply.stop, stop);
        let body = parsed(&responses::reply_out::write_reply(&reply, &context));
        assert_eq!(body["status"], status);
        assert_eq!(body["incomplete_details"]["reason"], reason);
        assert_eq!(responses_reply(&body).stop, stop);
        let shown = parsed(&gemini::reply_out::write_reply(&reply));
        let expected = if word == "RECITATION" { "SAFETY" } else { word };
        assert_eq!(shown["candidates"][0]["finishReason"], expected);
    }
}

#[test]
fn a_blocked_prompt_is_an_answer_of_the_filter() {
    let reply = gemini_reply(&json!({"promptFeedback": {"blockReason": "SAFETY"},
        "usageMetadata": {"promptTokenCount": 3}}));
    assert_eq!((reply.stop, reply.parts.len()), (StopReason::ContentFilter, 0));
}

#[test]
fn a_refusal_keeps_its_words() {
    let reply = responses_reply(&json!({"id": "r", "model": "m", "status": "completed",
        "output": [{"type": "message", "content": [{"type": "refusal", "refusal": "no"}]}]}));
    assert_eq!(reply.stop, StopReason::Refusal);
    let body = parsed(&gemini::reply_out::write_reply(&reply));
    let candidate = &body["candidates"][0];
    assert_eq!(
        (&candidate["finishReason"], &candidate["finishMessage"]),
        (&json!("SAFETY"), &json!("no"))
    );
}

#[test]
fn a_refusal_without_words_is_incomplete_for_a_client_of_responses() {
    let reply = Reply { stop: StopReason::Refusal, ..gemini_reply(&gemini_body()) };
    let body = parsed(&responses::reply_out::write_reply(&reply, &ReplyContext::default()));
    assert_eq!(body["status"], "incomplete");
    assert_eq!(body["incomplete_details"]["reason"], "content_filter");
}

#[test]
fn a_tool_of_free_text_is_called_with_free_text() {
    let mut reply = gemini_reply(&json!({"responseId": "r", "candidates": [{"content": {"parts": [
        {"functionCall": {"name": "patch", "args": {"input": "*** Begin"}}}]},
        "finishReason": "STOP"}]}));
    let free_text_tools = vec!["patch".to_owned()];
    let context = ReplyContext { free_text_tools, ..ReplyContext::default() };
    context.restore(&mut reply.parts);
    let body = parsed(&responses::reply_out::write_reply(&reply, &context));
    assert_eq!(
        body["output"][0],
        json!({"id": "ctc_tg_r_0", "type": "custom_tool_call", "status": "completed",
            "call_id": "call_r_0", "name": "patch", "input": "*** Begin"})
    );
}

#[test]
fn arguments_that_are_no_json_are_geminis_malformed_call() {
    let reply = responses_reply(&json!({"id": "r", "output": [{"type": "function_call",
        "call_id": "a", "name": "f", "arguments": "{oops"}]}));
    let body = parsed(&gemini::reply_out::write_reply(&reply));
    assert_eq!(body["candidates"][0]["finishReason"], "MALFORMED_FUNCTION_CALL");
}

#[test]
fn logprobs_cross() {
    let tokens = json!([{"token": "a", "logprob": -0.5, "bytes": [97],
        "top_logprobs": [{"token": "a", "logprob": -0.5, "bytes": [97]}]}]);
    let reply = responses_reply(&json!({"id": "r", "output": [{"type": "message", "content": [
        {"type": "output_text", "text": "a", "logprobs": tokens}]}]}));
    let body = parsed(&gemini::reply_out::write_reply(&reply));
    let chosen = &body["candidates"][0]["logprobsResult"]["chosenCandidates"];
    assert_eq!(chosen, &json!([{"token": "a", "logProbability": -0.5}]));
    assert_eq!(gemini_reply(&body).logprobs, tokens.as_array().cloned().unwrap_or_default());
}
