//! Writes the form as a Chat Completions request.
//!
//! Rules:
//! - Tool results become messages of their own, before the rest of their turn. They hold text only,
//!   so an image in one moves to the user message that follows.
//! - Thinking is never text. The servers that take it back get it (`servers`), others do not.
//! - A tool that takes free text becomes a function with the one field `input`.
//! - Settings that a model family is known to refuse are dropped with a note.

use serde_json::{Map, Value, json};

use super::reply_out::sign;
use crate::convert::fault::{RequestFault, RequestResult};
use crate::convert::json_out::{bytes, object};
use crate::convert::notes::Notes;
use crate::convert::part::{CacheMark, Content, MediaSource, Part, ToolCall, ToolResult};
use crate::convert::request::{
    Effort, GenerationRequest, JSON_INSTRUCTION, Message, OutputFormat, Role, ToolChoice,
    ToolDefinition, ToolInput,
};
use crate::convert::schema::{strict, tool_input};
use crate::convert::servers;
use crate::convert::target::{EffortBesideTools, TargetProfile};

/// The most stop sequences that the dialect allows.
const MAX_STOPS: usize = 4;

const TEXT_ONLY: &str = "it may have text and calls only";

const REASONS: &str = "reasoning models of OpenAI refuse it";

/// The most alternatives of a token that OpenAI tells.
pub(in crate::convert) const MAX_LOGPROBS: u64 = 20;

/// Fields of Responses that mean the same here.
const SHARED: [&str; 4] = ["metadata", "service_tier", "safety_identifier", "logit_bias"];

/// More of them, which only OpenAI's own API is known to take.
const SHARED_BY_OPENAI: [&str; 2] = ["verbosity", "prompt_cache_retention"];

/// Writes a request.
///
/// # Errors
/// It asks for what this dialect cannot say.
pub fn write_request(
    request: &GenerationRequest,
    target: &TargetProfile<'_>,
    notes: &mut Notes,
) -> RequestResult<Vec<u8>> {
    let mut body = Map::new();
    body.insert("model".into(), target.model.into());
    let mut messages = write_messages(request, target, notes)?;
    if request.output == OutputFormat::Json && !request.mentions_json() {
        notes.rewritten("response_format", "OpenAI's JSON mode wants the word in the prompt");
        messages.insert(0, json!({ "role": "system", "content": JSON_INSTRUCTION }));
    }
    body.insert("messages".into(), Value::Array(messages));
    write_tools(request, target, &mut body, notes);
    write_sampling(request, target, &mut body, notes)?;
    match &request.output {
        OutputFormat::Text => {}
        OutputFormat::Json => {
            body.insert("response_format".into(), json!({ "type": "json_object" }));
        }
        OutputFormat::Schema(output) => {
            let mut schema = json!({ "name": output.name, "schema": output.schema });
            if let Some(description) = &output.description {
                schema["description"] = json!(description);
            }
            let is_strict = strict(output.is_strict, &output.schema, &output.name, notes);
            if let Some(is_strict) = is_strict {
                schema["strict"] = json!(is_strict);
            }
            let format = json!({ "type": "json_schema", "json_schema": schema });
            body.insert("response_format".into(), format);
        }
    }
    if request.is_stream {
        body.insert("stream".into(), true.into());
        // Without it this dialect tells no usage, and the other dialects always do.
        body.insert("stream_options".into(), json!({ "include_usage": true }));
    }
    if let Some(user) = &request.user {
        body.insert("user".into(), user.as_str().into());
    }
    if let Some(key) = &request.prompt_cache_key {
        body.insert("prompt_cache_key".into(), key.as_str().into());
    }
    for (key, value) in &request.other {
        let is_openais = SHARED_BY_OPENAI.contains(&key.as_str());
        if SHARED.contains(&key.as_str()) || (is_openais && servers::is_openai(target)) {
            body.insert(key.clone(), value.clone());
        } else if is_openais {
            notes.dropped(key, "only OpenAI's own API is known to take it");
        } else {
            notes.dropped(key, "Chat Completions has no such field");
        }
    }
    servers::adapt(&mut body, target, notes);
    Ok(bytes(&Value::Object(body)))
}

fn write_messages(
    request: &GenerationRequest,
    target: &TargetProfile<'_>,
    notes: &mut Notes,
) -> RequestResult<Vec<Value>> {
    let has_marks = request.has_cache_marks();
    let keeps_marks = has_marks && servers::takes_cache_marks(target);
    let mut messages = Vec::with_capacity(request.messages.len() + 1);
    if !request.system.is_empty() {
        messages.push(write_system(&request.system, keeps_marks));
    }
    for message in &request.messages {
        match message.role {
            Role::System => messages.push(write_system(&message.parts, keeps_marks)),
            Role::User => write_user(message, keeps_marks, &mut messages, notes)?,
            Role::Assistant => messages.push(write_assistant(message, notes)),
        }
    }
    if has_marks && !keeps_marks {
        notes.dropped("cache_control", "Chat Completions caches without markers");
    } else if has_marks && has_other_marks(request) {
        notes.dropped("cache_control", "this provider takes it in parts of messages only");
    }
    Ok(messages)
}

/// Whether tools, their results or turns of the model are marked to be cached.
fn has_other_marks(request: &GenerationRequest) -> bool {
    let is_other = |message: &Message, part: &Part| match &part.content {
        Content::ToolResult(result) => {
            part.cache.is_some() || result.content.iter().any(|one| one.cache.is_some())
        }
        _ => part.cache.is_some() && message.role == Role::Assistant,
    };
    let has_other = |it: &Message| it.parts.iter().any(|part| is_other(it, part));
    request.tools.iter().any(|tool| tool.cache.is_some()) || request.messages.iter().any(has_other)
}

/// An instruction: one text, or parts where one of them is marked to be cached.
fn write_system(parts: &[Part], keeps_marks: bool) -> Value {
    let is_marked = keeps_marks && parts.iter().any(|part| part.cache.is_some());
    let content = match is_marked {
        false => joined_text(parts, "\n\n").into(),
        true => parts.iter().filter_map(marked_text).collect(),
    };
    object([("role", "system".into()), ("content", content)])
}

fn marked_text(part: &Part) -> Option<Value> {
    let Content::Text(text) = &part.content else { return None };
    let mut value = json!({ "type": "text", "text": text });
    mark(&mut value, part.cache.as_ref());
    Some(value)
}

/// Marks a part to be cached, as Messages does.
fn mark(value: &mut Value, cache: Option<&CacheMark>) {
    if let Some(cache) = cache {
        value["cache_control"] = json!({ "type": "ephemeral" });
        if let Some(ttl) = &cache.ttl {
            value["cache_control"]["ttl"] = json!(ttl);
        }
    }
}

/// The text of some parts as one string.
fn joined_text(parts: &[Part], between: &str) -> String {
    let texts = parts.iter().filter_map(|part| match &part.content {
        Content::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join(between)
}

fn write_user(
    message: &Message,
    keeps_marks: bool,
    messages: &mut Vec<Value>,
    notes: &mut Notes,
) -> RequestResult<()> {
    let mut parts = Vec::new();
    for part in &message.parts {
        match &part.content {
            Content::ToolResult(result) => {
                messages.push(write_tool_result(result, &mut parts, notes)?);
            }
            content => {
                let mut written = write_part(content, notes)?;
                let cache = part.cache.as_ref().filter(|_| keeps_marks);
                written.iter_mut().for_each(|value| mark(value, cache));
                parts.extend(written);
            }
        }
    }
    match parts.as_mut_slice() {
        [] => {}
        [only] if only["type"] == "text" && only.get("cache_control").is_none() => {
            let text = only["text"].take();
            messages.push(object([("role", "user".into()), ("content", text)]));
        }
        _ => messages.push(object([("role", "user".into()), ("content", parts.into())])),
    }
    Ok(())
}

fn write_tool_result(
    result: &ToolResult,
    moved: &mut Vec<Value>,
    notes: &mut Notes,
) -> RequestResult<Value> {
    let mut text = joined_text(&result.content, "\n");
    if result.is_error {
        notes.rewritten("is_error", "Chat Completions says a failed call in its text");
        text.insert_str(0, "Error: ");
    }
    for part in &result.content {
        if !matches!(part.content, Content::Text(_)) {
            notes
                .rewritten("tool_result.content", "media of tool results follow in a user message");
            moved.extend(write_part(&part.content, notes)?);
        }
    }
    let id = result.call_id.as_str();
    Ok(object([("role", "tool".into()), ("tool_call_id", id.into()), ("content", text.into())]))
}

/// One part of a user message. Thinking and calls, which no user says, are nothing.
fn write_part(content: &Content, notes: &mut Notes) -> RequestResult<Option<Value>> {
    let uploaded = || RequestFault::impossible("a file uploaded to another provider");
    Ok(Some(match content {
        Content::Text(text) | Content::Refusal(text) => json!({ "type": "text", "text": text }),
        Content::Image { source, detail } => {
            let mut image = json!({ "url": source.to_url().ok_or_else(uploaded)? });
            if let Some(detail) = detail {
                image["detail"] = json!(detail);
            }
            json!({ "type": "image_url", "image_url": image })
        }
        Content::Document { source: MediaSource::Text(text), .. } => {
            notes.rewritten("document", "Chat Completions takes a text document as text");
            json!({ "type": "text", "text": text })
        }
        Content::Document { source: MediaSource::Url { .. }, .. } => {
            return Err(RequestFault::impossible("a document by its address"));
        }
        Content::Document { source, name } => {
            let data = source.to_url().ok_or_else(uploaded)?;
            let name = name.as_deref().unwrap_or("document.pdf");
            json!({ "type": "file", "file": { "filename": name, "file_data": data } })
        }
        Content::Audio(MediaSource::Base64 { media_type, data }) => {
            let format = media_type.strip_prefix("audio/").unwrap_or(media_type);
            let format = if format == "mpeg" { "mp3" } else { format };
            json!({ "type": "input_audio", "input_audio": { "data": data, "format": format } })
        }
        Content::Audio(_) => return Err(RequestFault::impossible("audio by its address")),
        Content::Thinking { .. } | Content::ToolCall(_) | Content::ToolResult(_) => {
            return Ok(None);
        }
    }))
}

fn write_assistant(message: &Message, notes: &mut Notes) -> Value {
    let mut calls = Vec::new();
    let mut thinking: Option<String> = None;
    let mut refusal: Option<String> = None;
    for part in &message.parts {
        match &part.content {
            Content::ToolCall(call) => calls.push(write_tool_call(call)),
            Content::Refusal(text) => refusal.get_or_insert_default().push_str(text),
            Content::Thinking { text, .. } => thinking.get_or_insert_default().push_str(text),
            Content::Text(_) => {}
            Content::Image { .. }
            | Content::Document { .. }
            | Content::Audio(_)
            | Content::ToolResult(_) => notes.dropped("assistant message", TEXT_ONLY),
        }
    }
    let text = joined_text(&message.parts, "");
    let has_no_text = text.is_empty() && (!calls.is_empty() || refusal.is_some());
    let content = if has_no_text { Value::Null } else { Value::String(text) };
    let mut written = object([("role", "assistant".into()), ("content", content)]);
    if let Some(refusal) = refusal {
        written["refusal"] = json!(refusal);
    }
    if let Some(thinking) = thinking {
        written[servers::THINKING_FIELDS[0]] = thinking.into();
    }
    if !calls.is_empty() {
        written["tool_calls"] = Value::Array(calls);
    }
    written
}

fn write_tool_call(call: &ToolCall) -> Value {
    let arguments = if call.is_free_text {
        json!({ "input": call.arguments }).to_string()
    } else if call.arguments.is_empty() {
        "{}".to_owned()
    } else {
        call.arguments.clone()
    };
    let mut written = json!({
        "id": call.id,
        "type": "function",
        "function": { "name": call.name, "arguments": arguments },
    });
    sign(&mut written, call.seal.as_ref());
    written
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
        return;
    }
    let tools = request.tools.iter().map(|tool| write_tool(tool, notes)).collect();
    body.insert("tools".into(), Value::Array(tools));
    let choice = request.tool_choice.as_ref().map(|choice| match choice {
        ToolChoice::Auto => json!("auto"),
        ToolChoice::Disabled => json!("none"),
        ToolChoice::Required => json!("required"),
        ToolChoice::Named(name) => json!({ "type": "function", "function": { "name": name } }),
    });
    if let Some(choice) = choice {
        body.insert("tool_choice".into(), choice);
    }
    if request.parallel_tools.is_some() && target.is_of_o_series() {
        notes.dropped("parallel_tool_calls", REASONS);
    } else if let Some(is_parallel) = request.parallel_tools {
        body.insert("parallel_tool_calls".into(), is_parallel.into());
    }
}

fn write_tool(tool: &ToolDefinition, notes: &mut Notes) -> Value {
    let parameters = match &tool.input {
        ToolInput::Schema(schema) => tool_input(schema.as_ref(), &tool.name, notes),
        ToolInput::FreeText(format) => {
            notes.rewritten(&tool.name, "a free-text tool becomes a function with one field");
            if format.is_some() {
                notes.dropped("format", "it belongs to tools that take free text");
            }
            ToolDefinition::free_text_schema()
        }
    };
    let is_strict = strict(tool.is_strict, &parameters, &tool.name, notes);
    let mut function = object([("name", tool.name.as_str().into()), ("parameters", parameters)]);
    if let Some(description) = &tool.description {
        function["description"] = json!(description);
    }
    if let Some(is_strict) = is_strict {
        function["strict"] = json!(is_strict);
    }
    object([("type", "function".into()), ("function", function)])
}

fn write_sampling(
    request: &GenerationRequest,
    target: &TargetProfile<'_>,
    body: &mut Map<String, Value>,
    notes: &mut Notes,
) -> RequestResult<()> {
    let sampling = &request.sampling;
    if sampling.choices.unwrap_or(1) > 1 {
        return Err(RequestFault::impossible("more than one choice"));
    }
    let is_thinker = target.is_openai_reasoning_model();
    if let Some(max_tokens) = sampling.max_tokens {
        let key = if servers::wants_max_completion_tokens(target) {
            "max_completion_tokens"
        } else {
            "max_tokens"
        };
        body.insert(key.into(), max_tokens.into());
    }
    let figures = [
        ("temperature", sampling.temperature),
        ("top_p", sampling.top_p),
        ("frequency_penalty", sampling.frequency_penalty),
        ("presence_penalty", sampling.presence_penalty),
    ];
    for (key, figure) in figures {
        match figure {
            None => {}
            Some(_) if is_thinker => notes.dropped(key, REASONS),
            Some(figure) => {
                body.insert(key.into(), figure.into());
            }
        }
    }
    if sampling.top_k.is_some() {
        notes.dropped("top_k", "Chat Completions has no such field");
    }
    if let Some(seed) = sampling.seed {
        body.insert("seed".into(), seed.into());
    }
    if is_thinker && !sampling.stop.is_empty() {
        notes.dropped("stop", REASONS);
    } else if sampling.stop.len() > MAX_STOPS {
        notes.clamped("stop_sequences", "Chat Completions takes at most four");
    }
    if !is_thinker && !sampling.stop.is_empty() {
        let stops: Vec<_> = sampling.stop.iter().take(MAX_STOPS).collect();
        body.insert("stop".into(), json!(stops));
    }
    if is_thinker && sampling.logprobs.is_some() {
        notes.dropped("logprobs", REASONS);
    } else if let Some(alternatives) = sampling.logprobs {
        if alternatives > MAX_LOGPROBS {
            notes.clamped("top_logprobs", "OpenAI tells at most twenty");
        }
        body.insert("logprobs".into(), true.into());
        body.insert("top_logprobs".into(), alternatives.min(MAX_LOGPROBS).into());
    }
    write_effort(request, target, body, notes);
    Ok(())
}

fn write_effort(
    request: &GenerationRequest,
    target: &TargetProfile<'_>,
    body: &mut Map<String, Value>,
    notes: &mut Notes,
) {
    let asked = request
        .reasoning
        .and_then(|reasoning| reasoning.effort.or(reasoning.budget_tokens.map(Effort::of_budget)));
    let beside_tools = match request.tools.is_empty() {
        true => EffortBesideTools::Taken,
        false => target.effort_beside_tools(),
    };
    let is_asked = asked.is_some_and(|effort| effort != Effort::Off);
    match (beside_tools, asked) {
        (EffortBesideTools::Taken, Some(effort)) if target.is_openai_reasoning_model() => {
            let word = target.effort_word(effort, notes);
            body.insert("reasoning_effort".into(), word.into());
        }
        (EffortBesideTools::Taken, Some(effort)) => {
            let is_written = servers::write_effort(effort, target, body, notes);
            if !is_written && is_asked {
                notes.dropped("reasoning", "this model has no level of effort");
            }
        }
        (EffortBesideTools::Refused | EffortBesideTools::MustBeOff, _) => {
            if is_asked {
                notes.dropped("reasoning", "with tools it needs the Responses API for this model");
            }
            if beside_tools == EffortBesideTools::MustBeOff {
                body.insert("reasoning_effort".into(), "none".into());
            }
        }
        (EffortBesideTools::Taken, _) => {}
    }
}
