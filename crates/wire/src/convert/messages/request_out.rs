//! Writes the form as a Messages request.
//!
//! Rules:
//! - Turns alternate and the first is the user's: neighbours of one role are joined, instructions
//!   in the middle of the conversation move to the system prompt, with a note.
//! - Results of tools stand before anything else of their turn, which the API insists on.
//! - Empty texts are left out, because the API refuses them.
//! - Thinking goes along only with Anthropic's own seal; other thinking is dropped with a note.
//! - Of more than four cache markers the last four are kept, because the API refuses a fifth.
//! - Ids of calls keep to letters, digits, `_` and `-`, which is all the API allows.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::{schema, settings};
use crate::convert::fault::{RequestFault, RequestResult};
use crate::convert::json_out::{bytes, object};
use crate::convert::notes::Notes;
use crate::convert::part::{CacheMark, Content, MediaSource, Part, Seal, ToolCall, Vendor};
use crate::convert::request::{
    GenerationRequest, JSON_INSTRUCTION, OutputFormat, Role, ToolChoice, ToolDefinition, ToolInput,
};
use crate::convert::schema::tool_input;
use crate::convert::target::TargetProfile;

/// The most cache markers that the API takes.
const MAX_MARKS: usize = 4;

/// Writes a request.
///
/// # Errors
/// It asks for what this dialect cannot say, or a call's arguments are no object.
pub fn write_request(
    request: &GenerationRequest,
    target: &TargetProfile<'_>,
    notes: &mut Notes,
) -> RequestResult<Vec<u8>> {
    if request.sampling.choices.unwrap_or(1) > 1 {
        return Err(RequestFault::impossible("more than one choice"));
    }
    let mut body = Map::new();
    body.insert("model".into(), target.model.into());
    let mut system = write_all(&request.system, notes)?;
    let messages = write_messages(request, target, &mut system, notes)?;
    write_output(request, &mut system, &mut body, notes);
    if !system.is_empty() {
        body.insert("system".into(), simplest(system));
    }
    body.insert("messages".into(), Value::Array(messages));
    settings::write(request, target, &mut body, notes);
    write_tools(request, target, &mut body, notes);
    if request.is_stream {
        body.insert("stream".into(), true.into());
    }
    if let Some(user) = &request.user {
        body.insert("metadata".into(), json!({ "user_id": user }));
    }
    for key in request.other.keys() {
        notes.dropped(key, "Messages has no such field");
    }
    if request.has_cache_marks() {
        let mut left = MAX_MARKS;
        for key in ["messages", "system", "tools"] {
            body.get_mut(key).into_iter().for_each(|it| limit_marks(it, &mut left, notes));
        }
    }
    Ok(bytes(&Value::Object(body)))
}

/// Takes cache markers out from the front until no more than `left` are there: the last ones cover
/// the most.
fn limit_marks(value: &mut Value, left: &mut usize, notes: &mut Notes) {
    match value {
        Value::Array(values) => {
            values.iter_mut().rev().for_each(|it| limit_marks(it, left, notes));
        }
        Value::Object(block) => {
            if block.contains_key("cache_control") && *left == 0 {
                notes.clamped("cache_control", "Messages takes at most four markers");
                block.shift_remove("cache_control");
            } else if block.contains_key("cache_control") {
                *left -= 1;
            }
            if let Some(content) = block.get_mut("content") {
                limit_marks(content, left, notes);
            }
        }
        _ => {}
    }
}

/// A single plain text stands as a string, anything else as blocks.
fn simplest(mut blocks: Vec<Value>) -> Value {
    match blocks.as_mut_slice() {
        [only] if only["type"] == "text" && only.get("cache_control").is_none() => {
            only["text"].take()
        }
        _ => Value::Array(blocks),
    }
}

fn write_output(
    request: &GenerationRequest,
    system: &mut Vec<Value>,
    body: &mut Map<String, Value>,
    notes: &mut Notes,
) {
    match &request.output {
        OutputFormat::Text => {}
        OutputFormat::Json => {
            notes.rewritten("response_format", "Messages has no JSON mode; it is asked in words");
            system.push(json!({ "type": "text", "text": JSON_INSTRUCTION }));
        }
        OutputFormat::Schema(output) => {
            if output.description.is_some() {
                notes.dropped("json_schema.description", "Messages has no such field");
            }
            let schema = schema::answer(&output.schema, notes);
            let format = json!({ "type": "json_schema", "schema": schema });
            body.insert("output_config".into(), json!({ "format": format }));
        }
    }
}

fn write_messages(
    request: &GenerationRequest,
    target: &TargetProfile<'_>,
    system: &mut Vec<Value>,
    notes: &mut Notes,
) -> RequestResult<Vec<Value>> {
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::with_capacity(request.messages.len());
    let has_no_thinking = settings::refuses_thinking(request, target);
    for message in &request.messages {
        let mut blocks = write_all(&message.parts, notes)?;
        if has_no_thinking {
            let is_thinking =
                |block: &Value| block["type"] == "thinking" || block["type"] == "redacted_thinking";
            let before = blocks.len();
            blocks.retain(|block| !is_thinking(block));
            if blocks.len() < before {
                notes.dropped("thinking", "an instruction in the middle makes it invalid");
            }
        }
        if message.role == Role::Assistant {
            let before = blocks.len();
            blocks.retain(|block| block["type"] != "image" && block["type"] != "document");
            if blocks.len() < before {
                notes.dropped("assistant message", "it may have no images or files");
            }
        }
        let role = match message.role {
            Role::System => {
                notes.rewritten("messages", "an instruction moves to the system prompt");
                system.extend(blocks);
                continue;
            }
            Role::User => "user",
            Role::Assistant => "assistant",
        };
        match turns.last_mut() {
            _ if blocks.is_empty() => {}
            Some((last, earlier)) if *last == role => earlier.extend(blocks),
            _ => turns.push((role, blocks)),
        }
    }
    for (_, blocks) in &mut turns {
        blocks.sort_by_key(|block| block["type"] != "tool_result");
    }
    if turns.is_empty() && !system.is_empty() {
        notes.rewritten("messages", "Messages wants a message, so the system prompt is one");
        turns.push(("user", std::mem::take(system)));
    }
    if turns.first().is_some_and(|(role, _)| *role == "assistant") {
        notes.rewritten("messages", "Messages begins with the user, so an empty turn is added");
        turns.insert(0, ("user", vec![json!({ "type": "text", "text": "(continue)" })]));
    }
    let is_last_its_own = turns.last().is_some_and(|(role, _)| *role == "assistant");
    if is_last_its_own && !settings::takes_prefill(target) {
        notes.rewritten("messages", "this model answers the user, so an empty turn is added");
        turns.push(("user", vec![json!({ "type": "text", "text": "(continue)" })]));
    }
    if turns.is_empty() {
        return Err(RequestFault::invalid("messages", "must not be empty"));
    }
    Ok(turns
        .into_iter()
        .map(|(role, blocks)| object([("role", role.into()), ("content", simplest(blocks))]))
        .collect())
}

fn write_all(parts: &[Part], notes: &mut Notes) -> RequestResult<Vec<Value>> {
    let mut blocks = Vec::with_capacity(parts.len());
    for part in parts {
        if let Some(mut block) = write_block(&part.content, notes)? {
            if let Some(mark) = &part.cache {
                block["cache_control"] = write_cache(mark);
            }
            blocks.push(block);
        }
    }
    Ok(blocks)
}

fn write_block(content: &Content, notes: &mut Notes) -> RequestResult<Option<Value>> {
    Ok(Some(match content {
        Content::Text(text) | Content::Refusal(text) if text.is_empty() => return Ok(None),
        Content::Text(text) | Content::Refusal(text) => json!({ "type": "text", "text": text }),
        Content::Image { source, detail } => {
            if detail.as_deref().is_some_and(|detail| detail != "auto") {
                notes.dropped("image_url.detail", "Messages has no such field");
            }
            json!({ "type": "image", "source": write_source(source)? })
        }
        Content::Document { source, name } => {
            let mut block = json!({ "type": "document", "source": write_document(source)? });
            if let Some(name) = name {
                block["title"] = json!(name);
            }
            block
        }
        Content::Audio(_) => return Err(RequestFault::impossible("audio")),
        Content::Thinking { text, seal } => return Ok(write_thinking(text, seal.as_ref(), notes)),
        Content::ToolCall(call) => {
            if call.seal.is_some() {
                notes.dropped("signature", "another vendor's signature means nothing here");
            }
            write_call(call)?
        }
        Content::ToolResult(result) => {
            let content = write_all(&result.content, notes)?;
            let mut block = object([
                ("type", "tool_result".into()),
                ("tool_use_id", safe_id(&result.call_id).into()),
                ("content", simplest(content)),
            ]);
            if result.is_error {
                block["is_error"] = json!(true);
            }
            block
        }
    }))
}

fn write_thinking(text: &str, seal: Option<&Seal>, notes: &mut Notes) -> Option<Value> {
    match seal {
        Some(seal) if seal.vendor == Vendor::Anthropic && seal.is_content => {
            Some(json!({ "type": "redacted_thinking", "data": seal.data }))
        }
        Some(seal) if seal.vendor == Vendor::Anthropic => {
            Some(json!({ "type": "thinking", "thinking": text, "signature": seal.data }))
        }
        _ => {
            notes.dropped("thinking", "thinking of another provider does not cross");
            None
        }
    }
}

fn write_call(call: &ToolCall) -> RequestResult<Value> {
    let input = call.arguments_object().ok_or_else(|| {
        let param = format!("arguments of the tool call `{}`", call.id);
        RequestFault::invalid(param, "must be a JSON object")
    })?;
    let id = safe_id(&call.id);
    let name = call.name.as_str().into();
    Ok(object([("type", "tool_use".into()), ("id", id.into()), ("name", name), ("input", input)]))
}

/// An id that the API accepts; both ends of a call are changed alike.
fn safe_id(id: &str) -> String {
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
    id.chars().map(|letter| if is_allowed(letter) { letter } else { '_' }).collect()
}

/// The API takes PDF as base64 and any text as text.
fn write_document(source: &MediaSource) -> RequestResult<Value> {
    let MediaSource::Base64 { media_type, data } = source else { return write_source(source) };
    if media_type == "application/pdf" {
        return write_source(source);
    }
    let is_text = media_type.starts_with("text/") || media_type == "application/json";
    let bytes = STANDARD.decode(data).ok().filter(|_| is_text);
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    let Some(text) = text else {
        return Err(RequestFault::impossible(format!("a document of type `{media_type}`")));
    };
    Ok(json!({ "type": "text", "media_type": "text/plain", "data": text }))
}

fn write_source(source: &MediaSource) -> RequestResult<Value> {
    Ok(match source {
        MediaSource::Base64 { media_type, data } => {
            json!({ "type": "base64", "media_type": media_type, "data": data })
        }
        MediaSource::Url { url, .. } => json!({ "type": "url", "url": url }),
        MediaSource::Text(text) => {
            json!({ "type": "text", "media_type": "text/plain", "data": text })
        }
        MediaSource::File { vendor: Vendor::Anthropic, id } => {
            json!({ "type": "file", "file_id": id })
        }
        MediaSource::File { .. } => {
            return Err(RequestFault::impossible("a file uploaded to another provider"));
        }
    })
}

fn write_cache(mark: &CacheMark) -> Value {
    match &mark.ttl {
        Some(ttl) => json!({ "type": "ephemeral", "ttl": ttl }),
        None => json!({ "type": "ephemeral" }),
    }
}

fn write_tools(
    request: &GenerationRequest,
    target: &TargetProfile<'_>,
    body: &mut Map<String, Value>,
    notes: &mut Notes,
) {
    for tool in &request.hosted_tools {
        notes.dropped(&tool.kind, "a tool that another provider runs");
    }
    if request.tools.is_empty() {
        return write_called_tools(request, body, notes);
    }
    let tools = request.tools.iter().map(|tool| write_tool(tool, notes)).collect();
    body.insert("tools".into(), Value::Array(tools));
    let is_single = request.parallel_tools == Some(false);
    let mut choice = match &request.tool_choice {
        None if is_single => json!({ "type": "auto" }),
        None => return,
        Some(ToolChoice::Auto) => json!({ "type": "auto" }),
        Some(ToolChoice::Required | ToolChoice::Named(_)) if !settings::is_forcible(target) => {
            notes.rewritten("tool_choice", "this model decides itself whether to use a tool");
            json!({ "type": "auto" })
        }
        Some(ToolChoice::Required) => json!({ "type": "any" }),
        Some(ToolChoice::Disabled) => json!({ "type": "none" }),
        Some(ToolChoice::Named(name)) => json!({ "type": "tool", "name": name }),
    };
    if is_single && request.tool_choice != Some(ToolChoice::Disabled) {
        choice["disable_parallel_tool_use"] = json!(true);
    }
    body.insert("tool_choice".into(), choice);
}

/// The API refuses calls in the history of a request without tools, so the tools that were called
/// are listed and forbidden.
fn write_called_tools(
    request: &GenerationRequest,
    body: &mut Map<String, Value>,
    notes: &mut Notes,
) {
    let names: BTreeSet<&str> = request.calls().map(|call| call.name.as_str()).collect();
    if names.is_empty() {
        return;
    }
    notes.rewritten("tools", "Messages wants the tools of earlier calls listed");
    let empty = json!({ "type": "object", "properties": {} });
    let tool = |name: &&str| json!({ "name": name, "input_schema": empty });
    body.insert("tools".into(), names.iter().map(tool).collect());
    body.insert("tool_choice".into(), json!({ "type": "none" }));
}

fn write_tool(tool: &ToolDefinition, notes: &mut Notes) -> Value {
    let input = match &tool.input {
        ToolInput::Schema(schema) => tool_input(schema.as_ref(), &tool.name, notes),
        ToolInput::FreeText(format) => {
            notes.rewritten(&tool.name, "a free-text tool becomes one with a single field");
            if format.is_some() {
                notes.dropped("format", "Messages has no tools that take free text");
            }
            ToolDefinition::free_text_schema()
        }
    };
    if tool.is_strict == Some(true) {
        notes.dropped("strict", "the arguments of tools follow their schema without a promise");
    }
    let mut written = object([("name", tool.name.as_str().into()), ("input_schema", input)]);
    if let Some(description) = &tool.description {
        written["description"] = json!(description);
    }
    if let Some(mark) = &tool.cache {
        written["cache_control"] = write_cache(mark);
    }
    written
}
