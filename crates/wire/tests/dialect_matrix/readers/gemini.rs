//! Google Gemini.

use serde_json::Value;

use crate::asked::{Asked, Choice, Piece, Speaker, failed, list, schema, text};
use crate::seen::{Seen, SeenCall, SeenFrame, SeenUsage, count, must};

pub(crate) fn asked(body: &Value) -> Asked {
    let mut asked = Asked::default();
    let system: Vec<String> =
        list(&body["systemInstruction"]["parts"]).iter().map(|part| text(&part["text"])).collect();
    asked.system = system.join("\n\n");
    for content in list(&body["contents"]) {
        let speaker = if content["role"] == "model" { Speaker::Model } else { Speaker::User };
        assert_ne!(asked.turns.last().map(|last| last.0), Some(speaker), "turns alternate");
        asked.say(speaker, list(&content["parts"]).iter().map(piece).collect());
    }
    for function in list(&body["tools"][0]["functionDeclarations"]) {
        let given = function.get("parametersJsonSchema").or(function.get("parameters"));
        let input = schema(given.unwrap_or(&Value::Null));
        asked.tools.push((text(&function["name"]), text(&function["description"]), input));
    }
    let calling = &body["toolConfig"]["functionCallingConfig"];
    asked.choice = match (calling["mode"].as_str(), list(&calling["allowedFunctionNames"])) {
        (None, _) => None,
        (Some("NONE"), _) => Some(Choice::Never),
        (Some("ANY"), [name]) => Some(Choice::Named(text(name))),
        (Some("ANY"), _) => Some(Choice::Any),
        (Some(_), _) => Some(Choice::Auto),
    };
    let config = &body["generationConfig"];
    asked.max_tokens = config["maxOutputTokens"].as_u64();
    asked.stop = list(&config["stopSequences"]).iter().map(text).collect();
    asked.output_schema = config.get("responseJsonSchema").cloned();
    let is_json = config["responseMimeType"] == "application/json";
    assert_eq!(asked.output_schema.is_some(), is_json, "a schema goes with the media type");
    asked.thinks = config["thinkingConfig"].is_object();
    asked
}

fn piece(part: &Value) -> Piece {
    if let Some(data) = part.get("inlineData") {
        return Piece::Image(format!(
            "data:{};base64,{}",
            text(&data["mimeType"]),
            text(&data["data"])
        ));
    }
    if let Some(file) = part.get("fileData") {
        assert_eq!(file["mimeType"], "image/jpeg");
        return Piece::Image(text(&file["fileUri"]));
    }
    if let Some(call) = part.get("functionCall") {
        let (id, name) = (text(&call["id"]), text(&call["name"]));
        return Piece::Call { id, name, arguments: call["args"].clone() };
    }
    if let Some(result) = part.get("functionResponse") {
        assert!(result["name"].is_string(), "Gemini goes by the name");
        let said = match &result["response"] {
            Value::Object(map) if map.contains_key("error") => failed(&text(&map["error"])),
            Value::Object(map) => text(&map["result"]),
            other => other.to_string(),
        };
        return Piece::Result { id: text(&result["id"]), text: said };
    }
    Piece::Text(text(&part["text"]))
}

pub(crate) fn seen(body: &Value) -> Result<Seen, String> {
    let mut seen = Seen::default();
    read(body, &mut seen)?;
    must(!seen.stop.is_empty(), "no finish reason")?;
    Ok(seen)
}

fn read(body: &Value, seen: &mut Seen) -> Result<(), String> {
    must(body["responseId"].is_string(), "no `responseId`")?;
    must(body["modelVersion"].is_string(), "no `modelVersion`")?;
    seen.usage = usage(&body["usageMetadata"]).or(seen.usage);
    if let Some(reason) = body["promptFeedback"]["blockReason"].as_str() {
        seen.stop = format!("blocked: {reason}");
    }
    let Some(candidate) = body["candidates"].get(0) else { return Ok(()) };
    if candidate.get("content").is_some() {
        must(candidate["content"]["role"] == "model", "the role is not `model`")?;
    }
    for part in list(&candidate["content"]["parts"]) {
        if let Some(call) = part.get("functionCall") {
            must(call["args"].is_object(), "arguments that are no object")?;
            let (id, name) = (text(&call["id"]), text(&call["name"]));
            seen.calls.push(SeenCall { id, name, arguments: call["args"].clone() });
        } else if part["thought"] == true {
            seen.thinking.push_str(&text(&part["text"]));
        } else {
            seen.text.push_str(&text(&part["text"]));
        }
    }
    seen.stop.push_str(&text(&candidate["finishReason"]));
    seen.refusal.push_str(&text(&candidate["finishMessage"]));
    Ok(())
}

fn usage(usage: &Value) -> Option<SeenUsage> {
    let reasoning = count(&usage["thoughtsTokenCount"]);
    let found = SeenUsage {
        input: count(&usage["promptTokenCount"]),
        cached: count(&usage["cachedContentTokenCount"]),
        output: count(&usage["candidatesTokenCount"]) + reasoning,
        reasoning,
    };
    let total = count(&usage["totalTokenCount"]);
    (usage.is_object() && total == found.input + found.output).then_some(found)
}

pub(crate) fn error(body: &Value) -> Option<(String, String)> {
    let error = body.get("error")?;
    error["code"].is_u64().then(|| (text(&error["status"]), text(&error["message"])))
}

/// Chunks with new parts; the last one has the finish reason, and only it.
pub(crate) fn streamed(frames: &[SeenFrame]) -> Result<Seen, String> {
    let mut seen = Seen::default();
    for frame in frames {
        must(frame.name.is_none(), "a named event")?;
        must(seen.stop.is_empty() && seen.error.is_none(), "something after the end")?;
        let chunk = frame.json()?;
        seen.error = error(&chunk);
        if seen.error.is_none() {
            read(&chunk, &mut seen)?;
        }
    }
    must(!seen.stop.is_empty() || seen.error.is_some(), "the stream has no end")?;
    Ok(seen)
}
