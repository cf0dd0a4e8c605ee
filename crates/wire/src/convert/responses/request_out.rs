//! Writes a request of the Responses API.
//!
//! Rules:
//! - Nothing is stored (`store: false`): the conversation comes whole with every request.
//! - Reasoning models take no temperature or `top_p`; those are dropped with a note.
//! - The API has no stop sequences, penalties, seed or `top_k`: dropped with a note.
//! - Thinking goes to OpenAI only as its own encrypted reasoning.

use serde_json::{Map, Value, json};

use super::content;
use super::request_in::NOT_KEPT;
use crate::convert::chat::request_out::MAX_LOGPROBS;
use crate::convert::fault::{RequestFault, RequestResult};
use crate::convert::json_out::{bytes, object};
use crate::convert::notes::Notes;
use crate::convert::part::{Content, Part, ToolCall, ToolResult, Vendor};
use crate::convert::request::{
    Effort, GenerationRequest, JSON_INSTRUCTION, Message, OutputFormat, Role, Sampling, ToolChoice,
    ToolDefinition, ToolInput,
};
use crate::convert::schema::{strict, tool_input};
use crate::convert::target::TargetProfile;

/// The least `max_output_tokens` that the API takes.
const LEAST_TOKENS: u64 = 16;

const NONE: &str = "the Responses API has no such field";

/// Writes the body.
///
/// # Errors
/// The API cannot be asked this.
pub fn write_request(
    request: &GenerationRequest,
    target: &TargetProfile<'_>,
    notes: &mut Notes,
) -> RequestResult<Vec<u8>> {
    let mut body = Map::new();
    body.insert("model".into(), target.model.into());
    let mut items = Vec::new();
    for message in &request.messages {
        turn(message, &mut items, notes)?;
    }
    let mut system: Vec<&str> = request.system.iter().filter_map(text_of).collect();
    if items.is_empty() {
        // The API wants an input; instructions alone are one.
        let content = json!([{"type": "input_text", "text": system.join("\n\n")}]);
        let (kind, role) = ("message".into(), "developer".into());
        items.push(object([("type", kind), ("role", role), ("content", content)]));
        system.clear();
    }
    body.insert("input".into(), items.into());
    if request.output == OutputFormat::Json && !request.mentions_json() {
        notes.rewritten("response_format", "OpenAI's JSON mode wants the word in the prompt");
        system.push(JSON_INSTRUCTION);
    }
    if !system.is_empty() {
        body.insert("instructions".into(), system.join("\n\n").into());
    }
    if request.has_cache_marks() {
        notes.dropped("cache_control", "OpenAI caches without being told");
    }
    body.insert("store".into(), false.into());
    if request.is_stream {
        body.insert("stream".into(), true.into());
    }
    tools(request, &mut body, notes);
    let mut include = Vec::new();
    sampling(&request.sampling, target, &mut body, &mut include, notes)?;
    reasoning(request, target, &mut body, &mut include, notes);
    if !include.is_empty() {
        body.insert("include".into(), include.into());
    }
    text_format(request, &mut body, notes);
    the_rest(request, &mut body, notes);
    Ok(bytes(&Value::Object(body)))
}

fn text_of(part: &Part) -> Option<&str> {
    match &part.content {
        Content::Text(text) if !text.is_empty() => Some(text),
        _ => None,
    }
}

/// Takes one message apart into items.
fn turn(message: &Message, items: &mut Vec<Value>, notes: &mut Notes) -> RequestResult<()> {
    let mut open: Vec<Value> = Vec::new();
    let role = match message.role {
        Role::System => "developer",
        Role::User => "user",
        Role::Assistant => "assistant",
    };
    let close = |open: &mut Vec<Value>, items: &mut Vec<Value>| {
        if !open.is_empty() {
            let content = std::mem::take(open);
            let (kind, role) = ("message".into(), role.into());
            items.push(object([("type", kind), ("role", role), ("content", content.into())]));
        }
    };
    for part in &message.parts {
        match &part.content {
            Content::ToolCall(call) => {
                close(&mut open, items);
                if call.seal.is_some() {
                    notes.dropped("signature", "another vendor's signature means nothing here");
                }
                items.push(call_item(call));
            }
            Content::ToolResult(result) => {
                close(&mut open, items);
                items.push(result_item(result, notes)?);
            }
            Content::Thinking { text, seal } => {
                let own = seal.as_ref().filter(|seal| seal.vendor == Vendor::OpenAi);
                let Some(seal) = own else {
                    notes.dropped("thinking", "another vendor's thinking means nothing here");
                    continue;
                };
                close(&mut open, items);
                let summary = json!({"type": "summary_text", "text": text});
                let summary = if text.is_empty() { json!([]) } else { json!([summary]) };
                items.push(json!({
                    "type": "reasoning", "summary": summary, "encrypted_content": seal.data,
                }));
            }
            Content::Text(text) if message.role == Role::Assistant => {
                open.push(json!({"type": "output_text", "text": text}));
            }
            Content::Refusal(text) => open.push(json!({"type": "refusal", "refusal": text})),
            _ if message.role == Role::Assistant => {
                notes.dropped("assistant message", "it may have text only");
            }
            _ => open.extend(content::written(part)?),
        }
    }
    close(&mut open, items);
    Ok(())
}

fn call_item(call: &ToolCall) -> Value {
    if call.is_free_text {
        return json!({"type": "custom_tool_call", "call_id": call.id, "name": call.name,
            "input": call.arguments});
    }
    let arguments = if call.arguments.is_empty() { "{}" } else { &call.arguments };
    json!({"type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments})
}

fn result_item(result: &ToolResult, notes: &mut Notes) -> RequestResult<Value> {
    let texts: Vec<&str> = result.content.iter().filter_map(text_of).collect();
    let has_text_only = result.content.iter().all(|part| matches!(part.content, Content::Text(_)));
    let mark = if result.is_error { "Error: " } else { "" };
    if result.is_error {
        notes.rewritten("is_error", "the Responses API says a failed call in its text");
    }
    let output = if has_text_only {
        Value::from(format!("{mark}{}", texts.join("\n")))
    } else {
        let mut parts = Vec::new();
        if result.is_error {
            parts.push(json!({"type": "input_text", "text": mark.trim_end()}));
        }
        for part in &result.content {
            parts.extend(content::written(part)?);
        }
        parts.into()
    };
    let kind = if result.is_free_text { "custom_tool_call_output" } else { "function_call_output" };
    let id = result.call_id.as_str();
    Ok(object([("type", kind.into()), ("call_id", id.into()), ("output", output)]))
}

fn tools(request: &GenerationRequest, body: &mut Map<String, Value>, notes: &mut Notes) {
    let mut list: Vec<Value> = request.tools.iter().map(|it| tool(it, notes)).collect();
    for hosted in &request.hosted_tools {
        if hosted.vendor == Vendor::OpenAi {
            list.push(hosted.definition.clone());
        } else {
            notes.dropped(format!("tools.{}", hosted.kind), "only its own vendor runs this tool");
        }
    }
    if list.is_empty() {
        return;
    }
    body.insert("tools".into(), list.into());
    if let Some(is_parallel) = request.parallel_tools {
        body.insert("parallel_tool_calls".into(), is_parallel.into());
    }
    let choice = match &request.tool_choice {
        None => return,
        Some(ToolChoice::Auto) => json!("auto"),
        Some(ToolChoice::Disabled) => json!("none"),
        Some(ToolChoice::Required) => json!("required"),
        Some(ToolChoice::Named(name)) => {
            let is_free = |tool: &&ToolDefinition| {
                tool.name == *name && matches!(tool.input, ToolInput::FreeText(_))
            };
            let kind =
                if request.tools.iter().any(|it| is_free(&it)) { "custom" } else { "function" };
            json!({"type": kind, "name": name})
        }
    };
    body.insert("tool_choice".into(), choice);
}

fn tool(tool: &ToolDefinition, notes: &mut Notes) -> Value {
    if tool.cache.is_some() {
        notes.dropped("cache_control", "OpenAI caches without being told");
    }
    let mut value = match &tool.input {
        ToolInput::Schema(schema) => {
            let schema = tool_input(schema.as_ref(), &tool.name, notes);
            // The API takes a tool for strict unless it is told otherwise; other dialects do not.
            let is_strict = strict(tool.is_strict, &schema, &tool.name, notes).unwrap_or_default();
            object([
                ("type", "function".into()),
                ("name", tool.name.as_str().into()),
                ("parameters", schema),
                ("strict", is_strict.into()),
            ])
        }
        ToolInput::FreeText(format) => {
            let mut value = json!({"type": "custom", "name": tool.name});
            if let Some(format) = format {
                value["format"] = format.clone();
            }
            value
        }
    };
    if let Some(description) = &tool.description {
        value["description"] = description.as_str().into();
    }
    value
}

fn sampling(
    sampling: &Sampling,
    target: &TargetProfile<'_>,
    body: &mut Map<String, Value>,
    include: &mut Vec<&'static str>,
    notes: &mut Notes,
) -> RequestResult<()> {
    if sampling.choices.is_some_and(|choices| choices > 1) {
        return Err(RequestFault::impossible("`n` above 1"));
    }
    if let Some(tokens) = sampling.max_tokens {
        if tokens < LEAST_TOKENS {
            notes.clamped("max_tokens", "the Responses API takes no less than 16");
        }
        body.insert("max_output_tokens".into(), tokens.max(LEAST_TOKENS).into());
    }
    let chances = [("temperature", sampling.temperature, 2.0), ("top_p", sampling.top_p, 1.0)];
    for (name, value, most) in chances {
        let Some(value) = value else { continue };
        if target.is_openai_reasoning_model() {
            notes.dropped(name, "this model takes none");
            continue;
        }
        if !(0.0..=most).contains(&value) {
            notes.clamped(name, "outside of what OpenAI takes");
        }
        body.insert(name.into(), value.clamp(0.0, most).into());
    }
    let absent = [
        ("top_k", sampling.top_k.is_some()),
        ("frequency_penalty", sampling.frequency_penalty.is_some()),
        ("presence_penalty", sampling.presence_penalty.is_some()),
        ("seed", sampling.seed.is_some()),
        ("stop", !sampling.stop.is_empty()),
    ];
    for (name, _) in absent.into_iter().filter(|(_, is_said)| *is_said) {
        notes.dropped(name, NONE);
    }
    if sampling.logprobs.is_some() && target.is_openai_reasoning_model() {
        notes.dropped("logprobs", "this model takes none");
    } else if let Some(alternatives) = sampling.logprobs {
        include.push("message.output_text.logprobs");
        if alternatives > MAX_LOGPROBS {
            notes.clamped("top_logprobs", "OpenAI tells at most twenty");
        }
        if alternatives > 0 {
            body.insert("top_logprobs".into(), alternatives.min(MAX_LOGPROBS).into());
        }
    }
    Ok(())
}

fn reasoning(
    request: &GenerationRequest,
    target: &TargetProfile<'_>,
    body: &mut Map<String, Value>,
    include: &mut Vec<&'static str>,
    notes: &mut Notes,
) {
    if target.is_openai_reasoning_model() {
        // Without it the model could not go on from its own thinking in the next turn.
        include.push("reasoning.encrypted_content");
    }
    let Some(reasoning) = &request.reasoning else { return };
    if target.is_openai_plain_model() {
        notes.dropped("reasoning", "this model does not think");
        return;
    }
    let effort = reasoning.effort.or(reasoning.budget_tokens.map(Effort::of_budget));
    let mut value = Map::new();
    if let Some(effort) = effort {
        value.insert("effort".into(), target.effort_word(effort, notes).into());
    }
    if reasoning.is_shown {
        value.insert("summary".into(), "auto".into());
    }
    if !value.is_empty() {
        body.insert("reasoning".into(), value.into());
    }
}

fn text_format(request: &GenerationRequest, body: &mut Map<String, Value>, notes: &mut Notes) {
    let format = match &request.output {
        OutputFormat::Text => return,
        OutputFormat::Json => json!({"type": "json_object"}),
        OutputFormat::Schema(output) => {
            let mut format = json!({
                "type": "json_schema", "name": output.name, "schema": output.schema,
            });
            if let Some(description) = &output.description {
                format["description"] = description.as_str().into();
            }
            let is_strict = strict(output.is_strict, &output.schema, &output.name, notes);
            if let Some(is_strict) = is_strict {
                format["strict"] = is_strict.into();
            }
            format
        }
    };
    body.insert("text".into(), json!({ "format": format }));
}

/// Carries the fields that mean the same here, and notes the others.
fn the_rest(request: &GenerationRequest, body: &mut Map<String, Value>, notes: &mut Notes) {
    if let Some(user) = &request.user {
        body.insert("user".into(), user.as_str().into());
    }
    if let Some(key) = &request.prompt_cache_key {
        body.insert("prompt_cache_key".into(), key.as_str().into());
    }
    for (key, value) in &request.other {
        let is_metadata =
            || value.as_object().is_some_and(|map| map.values().all(Value::is_string));
        let is_tier = || {
            let tiers = ["auto", "default", "flex", "scale", "priority"];
            value.as_str().is_some_and(|tier| tiers.contains(&tier))
        };
        match key.as_str() {
            "metadata" if is_metadata() => {}
            "service_tier" if is_tier() => {}
            "safety_identifier" | "prompt_cache_retention" => {}
            "verbosity" if value.is_string() => {
                body.entry("text").or_insert_with(|| json!({}))["verbosity"] = value.clone();
                continue;
            }
            "store" => {
                if *value == true {
                    notes.dropped("store", NOT_KEPT);
                }
                continue;
            }
            _ => {
                notes.dropped(key, NONE);
                continue;
            }
        }
        body.insert(key.clone(), value.clone());
    }
}
