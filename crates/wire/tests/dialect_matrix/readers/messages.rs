//! Anthropic Messages.

use serde_json::Value;

use crate::asked::{Asked, Choice, Piece, Speaker, failed, list, parsed, schema, text};
use crate::seen::{Seen, SeenCall, SeenFrame, SeenUsage, count, must};

pub(crate) fn asked(body: &Value) -> Asked {
    let mut asked = Asked { system: joined(&body["system"], "\n\n"), ..Asked::default() };
    for message in list(&body["messages"]) {
        let speaker = if message["role"] == "user" { Speaker::User } else { Speaker::Model };
        assert_ne!(asked.turns.last().map(|last| last.0), Some(speaker), "turns alternate");
        let blocks = match &message["content"] {
            Value::String(said) => vec![Piece::Text(said.clone())],
            blocks => list(blocks).iter().map(piece).collect(),
        };
        asked.say(speaker, blocks);
    }
    for tool in list(&body["tools"]) {
        let input = schema(&tool["input_schema"]);
        assert_eq!(input["type"], "object", "the API wants an object");
        asked.tools.push((text(&tool["name"]), text(&tool["description"]), input));
    }
    let choice = &body["tool_choice"];
    asked.choice = match choice["type"].as_str() {
        None => None,
        Some("any") => Some(Choice::Any),
        Some("none") => Some(Choice::Never),
        Some("tool") => Some(Choice::Named(text(&choice["name"]))),
        Some(_) => Some(Choice::Auto),
    };
    asked.parallel = choice["disable_parallel_tool_use"].as_bool().map(|is_single| !is_single);
    asked.max_tokens = body["max_tokens"].as_u64();
    assert!(asked.max_tokens.is_some(), "the API requires `max_tokens`");
    asked.stop = list(&body["stop_sequences"]).iter().map(text).collect();
    asked.output_schema = body["output_config"]["format"].get("schema").cloned();
    asked.thinks = matches!(body["thinking"]["type"].as_str(), Some("enabled" | "adaptive"));
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

fn piece(block: &Value) -> Piece {
    match block["type"].as_str() {
        Some("image") => {
            let source = &block["source"];
            Piece::Image(match source["type"].as_str() {
                Some("url") => text(&source["url"]),
                _ => {
                    format!("data:{};base64,{}", text(&source["media_type"]), text(&source["data"]))
                }
            })
        }
        Some("tool_use") => Piece::Call {
            id: text(&block["id"]),
            name: text(&block["name"]),
            arguments: block["input"].clone(),
        },
        Some("tool_result") => {
            let said = joined(&block["content"], "\n");
            let said = if block["is_error"] == true { failed(&said) } else { said };
            Piece::Result { id: text(&block["tool_use_id"]), text: said }
        }
        _ => Piece::Text(text(&block["text"])),
    }
}

pub(crate) fn seen(body: &Value) -> Result<Seen, String> {
    must(body["type"] == "message" && body["role"] == "assistant", "no message")?;
    must(body["id"].as_str().is_some_and(|id| !id.is_empty()), "no `id`")?;
    let mut seen = Seen { stop: text(&body["stop_reason"]), ..Seen::default() };
    seen.usage = usage(&body["usage"]);
    for block in list(&body["content"]) {
        match block["type"].as_str() {
            Some("text") => seen.text.push_str(&text(&block["text"])),
            Some("thinking") => {
                must(block["signature"].is_string(), "thinking without a signature")?;
                seen.thinking.push_str(&text(&block["thinking"]));
            }
            Some("redacted_thinking") => {}
            Some("tool_use") => {
                must(block["input"].is_object(), "an input that is no object")?;
                let (id, name) = (text(&block["id"]), text(&block["name"]));
                seen.calls.push(SeenCall { id, name, arguments: block["input"].clone() });
            }
            _ => return Err(format!("a block of unknown kind: {block}")),
        }
    }
    Ok(seen)
}

fn usage(usage: &Value) -> Option<SeenUsage> {
    let cached = count(&usage["cache_read_input_tokens"]);
    let written = count(&usage["cache_creation_input_tokens"]);
    usage.is_object().then(|| SeenUsage {
        input: count(&usage["input_tokens"]) + cached + written,
        cached,
        output: count(&usage["output_tokens"]),
        reasoning: count(&usage["output_tokens_details"]["thinking_tokens"]),
    })
}

pub(crate) fn error(body: &Value) -> Option<(String, String)> {
    let is_error = body["type"] == "error";
    is_error.then(|| (text(&body["error"]["type"]), text(&body["error"]["message"])))
}

/// `message_start`, blocks one after the other, `message_delta`, `message_stop`.
pub(crate) fn streamed(frames: &[SeenFrame]) -> Result<Seen, String> {
    let mut seen = Seen::default();
    let mut blocks = 0;
    let mut open: Option<String> = None;
    let mut arguments = String::new();
    let mut is_signed = false;
    let (mut has_started, mut is_stopped) = (false, false);
    for frame in frames {
        let event = frame.json()?;
        must(!is_stopped && seen.error.is_none(), "something after the end")?;
        must(frame.name == event["type"].as_str().map(str::to_owned), "a name unlike its type")?;
        let kind = text(&event["type"]);
        must(has_started || kind == "message_start" || kind == "error", "no `message_start`")?;
        let is_block = kind.starts_with("content_block");
        must(!is_block || seen.stop.is_empty(), "a block after `message_delta`")?;
        match kind.as_str() {
            "message_start" => {
                must(!has_started, "a second `message_start`")?;
                has_started = true;
                let message = &event["message"];
                must(message["content"].as_array().is_some_and(Vec::is_empty), "content so early")?;
                must(message["usage"]["output_tokens"].is_u64(), "no usage at the start")?;
            }
            "content_block_start" => {
                must(open.is_none() && count(&event["index"]) == blocks, "blocks overlap")?;
                let block = &event["content_block"];
                open = Some(text(&block["type"]));
                (arguments, is_signed) = (String::new(), false);
                if block["type"] == "tool_use" {
                    let (id, name) = (text(&block["id"]), text(&block["name"]));
                    seen.calls.push(SeenCall { id, name, arguments: Value::Null });
                }
            }
            "content_block_delta" => {
                must(count(&event["index"]) == blocks, "a delta of another block")?;
                let delta = &event["delta"];
                match (open.as_deref(), delta["type"].as_str()) {
                    (Some("text"), Some("text_delta")) => seen.text += &text(&delta["text"]),
                    (Some("thinking"), Some("thinking_delta")) if !is_signed => {
                        seen.thinking += &text(&delta["thinking"]);
                    }
                    (Some("thinking"), Some("signature_delta")) => is_signed = true,
                    (Some("tool_use"), Some("input_json_delta")) => {
                        arguments += &text(&delta["partial_json"]);
                    }
                    other => return Err(format!("a delta where it does not belong: {other:?}")),
                }
            }
            "content_block_stop" => {
                must(count(&event["index"]) == blocks, "the end of another block")?;
                let ended = open.take();
                must(ended.is_some(), "the end of no block")?;
                must(ended.as_deref() != Some("thinking") || is_signed, "unsigned thinking")?;
                if let (Some("tool_use"), Some(call)) = (ended.as_deref(), seen.calls.last_mut()) {
                    let whole = if arguments.is_empty() { "{}" } else { &arguments };
                    call.arguments = parsed(&whole.into());
                }
                blocks += 1;
            }
            "message_delta" => {
                must(open.is_none(), "`message_delta` inside a block")?;
                seen.stop = text(&event["delta"]["stop_reason"]);
                seen.usage = usage(&event["usage"]);
            }
            "message_stop" => {
                must(!seen.stop.is_empty(), "`message_stop` without `message_delta`")?;
                is_stopped = true;
            }
            "error" => seen.error = error(&event),
            "ping" => {}
            _ => return Err(format!("an unknown event: {kind}")),
        }
    }
    must(is_stopped != seen.error.is_some(), "neither `message_stop` nor an error")?;
    Ok(seen)
}
