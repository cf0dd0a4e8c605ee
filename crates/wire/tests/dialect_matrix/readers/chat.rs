//! OpenAI Chat Completions.

use serde_json::Value;

use crate::asked::{Asked, Choice, Piece, Speaker, list, parsed, schema, text};
use crate::seen::{Seen, SeenCall, SeenFrame, SeenUsage, count, must};

pub(crate) fn asked(body: &Value) -> Asked {
    let mut asked = Asked::default();
    for message in list(&body["messages"]) {
        match message["role"].as_str() {
            Some("system" | "developer") => asked.system = joined(&message["content"], "\n\n"),
            Some("user") => asked.say(Speaker::User, content(&message["content"])),
            Some("tool") => {
                let id = text(&message["tool_call_id"]);
                let said = joined(&message["content"], "\n");
                asked.say(Speaker::User, vec![Piece::Result { id, text: said }]);
            }
            _ => {
                let mut pieces = content(&message["content"]);
                pieces.extend(list(&message["tool_calls"]).iter().map(|call| Piece::Call {
                    id: text(&call["id"]),
                    name: text(&call["function"]["name"]),
                    arguments: parsed(&call["function"]["arguments"]),
                }));
                asked.say(Speaker::Model, pieces);
            }
        }
    }
    for tool in list(&body["tools"]) {
        let tool = &tool["function"];
        let input = schema(&tool["parameters"]);
        asked.tools.push((text(&tool["name"]), text(&tool["description"]), input));
    }
    asked.choice = match &body["tool_choice"] {
        Value::String(word) => Some(match word.as_str() {
            "none" => Choice::Never,
            "required" => Choice::Any,
            _ => Choice::Auto,
        }),
        Value::Object(named) => Some(Choice::Named(text(&named["function"]["name"]))),
        _ => None,
    };
    asked.parallel = body["parallel_tool_calls"].as_bool();
    asked.max_tokens = body["max_completion_tokens"].as_u64().or(body["max_tokens"].as_u64());
    asked.stop = list(&body["stop"]).iter().map(text).collect();
    let format = &body["response_format"]["json_schema"];
    asked.output_schema = format.get("schema").cloned();
    asked.thinks = body["reasoning_effort"].is_string();
    asked
}

fn joined(content: &Value, between: &str) -> String {
    match content {
        Value::String(said) => said.clone(),
        other => {
            let texts: Vec<String> = list(other).iter().map(|part| text(&part["text"])).collect();
            texts.join(between)
        }
    }
}

fn content(content: &Value) -> Vec<Piece> {
    if let Value::String(said) = content {
        return vec![Piece::Text(said.clone())];
    }
    let piece = |part: &Value| match part["type"].as_str() {
        Some("image_url") => Piece::Image(text(&part["image_url"]["url"])),
        _ => Piece::Text(text(&part["text"])),
    };
    list(content).iter().map(piece).collect()
}

pub(crate) fn seen(body: &Value) -> Result<Seen, String> {
    must(body["object"] == "chat.completion", "no `object`")?;
    must(body["id"].is_string() && body["created"].is_u64(), "no `id` or `created`")?;
    let choice = &body["choices"][0];
    let message = &choice["message"];
    must(message["role"] == "assistant", "the role is not `assistant`")?;
    let mut seen = Seen {
        text: text(&message["content"]),
        thinking: text(&message["reasoning_content"]),
        refusal: text(&message["refusal"]),
        stop: text(&choice["finish_reason"]),
        usage: usage(&body["usage"]),
        ..Seen::default()
    };
    for call in list(&message["tool_calls"]) {
        must(call["type"] == "function", "a call that is no function")?;
        seen.calls.push(SeenCall {
            id: text(&call["id"]),
            name: text(&call["function"]["name"]),
            arguments: parsed(&call["function"]["arguments"]),
        });
    }
    Ok(seen)
}

fn usage(usage: &Value) -> Option<SeenUsage> {
    let found = SeenUsage {
        input: count(&usage["prompt_tokens"]),
        cached: count(&usage["prompt_tokens_details"]["cached_tokens"]),
        output: count(&usage["completion_tokens"]),
        reasoning: count(&usage["completion_tokens_details"]["reasoning_tokens"]),
    };
    let total = count(&usage["total_tokens"]);
    (usage.is_object() && total == found.input + found.output).then_some(found)
}

pub(crate) fn error(body: &Value) -> Option<(String, String)> {
    let error = body.get("error")?;
    Some((text(&error["type"]), text(&error["message"])))
}

/// Role, deltas, one finish reason, then usage at most, then `[DONE]`.
pub(crate) fn streamed(frames: &[SeenFrame]) -> Result<Seen, String> {
    let mut seen = Seen::default();
    let mut arguments: Vec<String> = Vec::new();
    let mut id = None;
    let mut has_role = false;
    let mut is_done = false;
    for frame in frames {
        must(!is_done && seen.error.is_none(), "something after the end")?;
        must(frame.name.is_none(), "a named event")?;
        if frame.data == "[DONE]" {
            must(!seen.stop.is_empty(), "`[DONE]` without a finish reason")?;
            is_done = true;
            continue;
        }
        let chunk = frame.json()?;
        seen.error = error(&chunk);
        if seen.error.is_some() {
            continue;
        }
        must(chunk["object"] == "chat.completion.chunk", "no `object`")?;
        let known = id.get_or_insert_with(|| chunk["id"].clone());
        must(chunk["id"] == *known, "the id changes")?;
        seen.usage = usage(&chunk["usage"]).or(seen.usage);
        let Some(choice) = chunk["choices"].get(0) else { continue };
        must(seen.stop.is_empty(), "a choice after the finish reason")?;
        let delta = &choice["delta"];
        has_role |= delta["role"] == "assistant";
        must(has_role, "content before the role")?;
        seen.text.push_str(&text(&delta["content"]));
        seen.thinking.push_str(&text(&delta["reasoning_content"]));
        seen.refusal.push_str(&text(&delta["refusal"]));
        for call in list(&delta["tool_calls"]) {
            let at = usize::try_from(count(&call["index"])).expect("a small index");
            if at == seen.calls.len() {
                must(call["type"] == "function" && call["id"].is_string(), "a call without id")?;
                let (id, name) = (text(&call["id"]), text(&call["function"]["name"]));
                seen.calls.push(SeenCall { id, name, arguments: Value::Null });
                arguments.push(String::new());
            } else {
                must(at + 1 == seen.calls.len(), "the index of a call jumps")?;
                must(call.get("id").is_none(), "an id in the middle of a call")?;
            }
            arguments[at].push_str(&text(&call["function"]["arguments"]));
        }
        seen.stop = text(&choice["finish_reason"]);
    }
    must(is_done != seen.error.is_some(), "neither `[DONE]` nor an error ends the stream")?;
    for (call, arguments) in seen.calls.iter_mut().zip(arguments) {
        call.arguments = parsed(&arguments.into());
    }
    Ok(seen)
}
