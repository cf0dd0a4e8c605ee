//! Reads a Chat Completions request into the form.
//!
//! Rules:
//! - Instructions before the first other message are the system prompt; later ones stay in place.
//! - A `tool` message is a part of a user message: results of one turn stand together.
//! - What only an older revision knows (`functions`) or what no other dialect can answer (spoken
//!   answers) is refused, because leaving it out would change what the client gets.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::convert::bounds::{MAX_NAME, MAX_WORD};
use crate::convert::fault::{RequestFault, RequestResult};
use crate::convert::fields::{Fields, element_path};
use crate::convert::json_in::Json;
use crate::convert::mixed;
use crate::convert::notes::Notes;
use crate::convert::part::{
    CacheMark, Content, MediaSource, Part, Seal, ToolCall, ToolResult, Vendor,
};
use crate::convert::request::{
    Effort, GenerationRequest, MAX_TOOLS, OutputFormat, OutputSchema, Reasoning, Role, ToolChoice,
    ToolDefinition, ToolInput,
};
use crate::dialect::Dialect;

/// What is wrong with data of another form.
const NO_DATA: &str = "must be an address on the web or `data:` with a media type and base64";

/// Reads a request.
///
/// # Errors
/// It is wrong in its own dialect, or asks for what no other dialect can answer.
pub fn read_request(body: &[u8], notes: &mut Notes) -> RequestResult<GenerationRequest> {
    let mut fields = Fields::of_body(body)?;
    mixed::refuse(Dialect::OpenAiChat, |key| fields.has(key))?;
    let mut request = GenerationRequest::default();
    let mut free_text_calls = BTreeSet::new();
    for message in fields.objects("messages")? {
        read_message(message, &mut request, &mut free_text_calls, notes)?;
    }
    if request.system.is_empty() && request.messages.is_empty() {
        return Err(fields.fault("messages", "must not be empty"));
    }
    for field in ["functions", "function_call", "audio"] {
        if fields.take(field).is_some() {
            return Err(RequestFault::impossible(format!("`{field}`")));
        }
    }
    for tool in fields.objects_up_to("tools", MAX_TOOLS)? {
        request.tools.push(read_tool(tool, notes)?);
    }
    request.tool_choice = read_tool_choice(&mut fields, &mut request)?;
    request.parallel_tools = fields.boolean("parallel_tool_calls")?;
    read_sampling(&mut fields, &mut request)?;
    request.reasoning = read_effort(&mut fields)?;
    request.output = read_output(&mut fields)?;
    request.is_stream = fields.boolean("stream")?.unwrap_or_default();
    if let Some(mut options) = fields.object("stream_options")? {
        request.includes_usage = options.boolean("include_usage")?.unwrap_or_default();
    }
    request.user = fields.short("user", MAX_WORD)?;
    request.prompt_cache_key = fields.short("prompt_cache_key", MAX_WORD)?;
    fields.take("model");
    request.other = fields.rest();
    Ok(request)
}

fn read_sampling(fields: &mut Fields<'_>, request: &mut GenerationRequest) -> RequestResult<()> {
    let older = fields.count("max_tokens")?;
    let sampling = &mut request.sampling;
    sampling.max_tokens = fields.count("max_completion_tokens")?.or(older);
    sampling.temperature = fields.number("temperature")?;
    sampling.top_p = fields.number("top_p")?;
    sampling.top_k = fields.count("top_k")?;
    sampling.frequency_penalty = fields.number("frequency_penalty")?;
    sampling.presence_penalty = fields.number("presence_penalty")?;
    sampling.seed = fields.integer("seed")?;
    sampling.choices = fields.count("n")?;
    let alternatives = fields.count("top_logprobs")?;
    let is_wanted = fields.boolean("logprobs")?.unwrap_or_default();
    sampling.logprobs = is_wanted.then(|| alternatives.unwrap_or_default());
    sampling.stop = fields.stops("stop", true)?;
    Ok(())
}

fn read_effort(fields: &mut Fields<'_>) -> RequestResult<Option<Reasoning>> {
    let Some(word) = fields.string("reasoning_effort")? else { return Ok(None) };
    let effort = Effort::of_word(&word);
    let effort =
        effort.ok_or_else(|| fields.fault("reasoning_effort", "is no known level of effort"))?;
    Ok(Some(Reasoning { effort: Some(effort), budget_tokens: None, is_shown: true }))
}

fn read_output(fields: &mut Fields<'_>) -> RequestResult<OutputFormat> {
    let Some(mut format) = fields.object("response_format")? else {
        return Ok(OutputFormat::Text);
    };
    match format.required_string("type")?.as_str() {
        "text" => Ok(OutputFormat::Text),
        "json_object" => Ok(OutputFormat::Json),
        "json_schema" => {
            let inner = format.object("json_schema")?;
            let mut inner = inner.ok_or_else(|| format.fault("json_schema", "is missing"))?;
            Ok(OutputFormat::Schema(OutputSchema {
                name: inner.short("name", MAX_NAME)?.unwrap_or_else(|| "response".to_owned()),
                description: inner.string("description")?,
                is_strict: inner.boolean("strict")?,
                schema: inner.take("schema").unwrap_or_else(|| serde_json::json!({})),
            }))
        }
        _ => Err(format.fault("type", "must be `text`, `json_object` or `json_schema`")),
    }
}

fn read_tool(mut tool: Fields<'_>, notes: &mut Notes) -> RequestResult<ToolDefinition> {
    let kind = tool.string("type")?.unwrap_or_else(|| "function".to_owned());
    let is_free_text = match kind.as_str() {
        "function" => false,
        "custom" => true,
        _ => return Err(tool.fault("type", "must be `function` or `custom`")),
    };
    let cache = read_cache(&mut tool)?;
    let body = tool.object(&kind)?;
    let mut body = body.ok_or_else(|| tool.fault(&kind, "is missing"))?;
    let input = match is_free_text {
        false => ToolInput::Schema(read_schema(&mut body)?),
        true => ToolInput::FreeText(body.take("format")),
    };
    let name = body.required_name("name")?;
    let description = body.string("description")?;
    let is_strict = body.boolean("strict")?;
    body.note_rest(notes);
    tool.note_rest(notes);
    Ok(ToolDefinition { name, description, is_strict, input, cache })
}

fn read_schema(body: &mut Fields<'_>) -> RequestResult<Option<Value>> {
    match body.take("parameters") {
        Some(schema) if !schema.is_object() => Err(body.fault("parameters", "must be an object")),
        schema => Ok(schema),
    }
}

fn read_tool_choice(
    fields: &mut Fields<'_>,
    request: &mut GenerationRequest,
) -> RequestResult<Option<ToolChoice>> {
    let words = "must be `none`, `auto`, `required` or name a tool";
    match fields.take_json("tool_choice") {
        None => Ok(None),
        Some(Json::String(word)) => match word.as_str() {
            "auto" => Ok(Some(ToolChoice::Auto)),
            "none" => Ok(Some(ToolChoice::Disabled)),
            "required" | "any" => Ok(Some(ToolChoice::Required)),
            _ => Err(fields.fault("tool_choice", words)),
        },
        Some(value) => {
            let mut choice = Fields::new(fields.path("tool_choice"), value)?;
            let kind = choice.required_string("type")?;
            let Some(mut named) = choice.object(&kind)? else {
                return Err(choice.fault(&kind, "is missing"));
            };
            match kind.as_str() {
                "function" | "custom" => Ok(Some(ToolChoice::Named(named.required_name("name")?))),
                "allowed_tools" => read_allowed(named, request).map(Some),
                _ => Err(choice.fault("type", words)),
            }
        }
    }
}

/// A choice among some of the tools.
fn read_allowed(
    mut allowed: Fields<'_>,
    request: &mut GenerationRequest,
) -> RequestResult<ToolChoice> {
    let mut names = Vec::new();
    for mut tool in allowed.objects_up_to("tools", MAX_TOOLS)? {
        let kind = tool.required_string("type")?;
        let body = tool.object(&kind)?;
        let mut body = body.ok_or_else(|| tool.fault(&kind, "is missing"))?;
        names.push(body.required_name("name")?);
    }
    request.offer_only(&names);
    match allowed.required_string("mode")?.as_str() {
        "auto" => Ok(ToolChoice::Auto),
        "required" => Ok(ToolChoice::Required),
        _ => Err(allowed.fault("mode", "must be `auto` or `required`")),
    }
}

fn read_message(
    mut message: Fields<'_>,
    request: &mut GenerationRequest,
    free_text_calls: &mut BTreeSet<String>,
    notes: &mut Notes,
) -> RequestResult<()> {
    let role = message.required_string("role")?;
    match role.as_str() {
        "system" | "developer" => {
            let parts = read_content(&mut message, notes)?;
            if request.messages.is_empty() {
                request.system.extend(parts);
            } else {
                request.push(Role::System, parts);
            }
        }
        "user" => {
            let parts = read_content(&mut message, notes)?;
            request.push(Role::User, parts);
        }
        "assistant" => {
            let parts = read_assistant(&mut message, notes)?;
            for part in &parts {
                if let Content::ToolCall(call) = &part.content
                    && call.is_free_text
                {
                    free_text_calls.insert(call.id.clone());
                }
            }
            request.push(Role::Assistant, parts);
        }
        "tool" => {
            let call_id = message.required_id("tool_call_id")?;
            let content = read_content(&mut message, notes)?;
            let is_free_text = free_text_calls.contains(&call_id);
            let result = ToolResult { call_id, name: None, content, is_error: false, is_free_text };
            request.push(Role::User, vec![Part::new(Content::ToolResult(result))]);
        }
        _ => {
            let roles = "must be `system`, `developer`, `user`, `assistant` or `tool`";
            return Err(message.fault("role", roles));
        }
    }
    if message.take("name").is_some() {
        notes.dropped(message.path("name"), "names of participants do not cross dialects");
    }
    message.note_rest(notes);
    Ok(())
}

fn read_assistant(message: &mut Fields<'_>, notes: &mut Notes) -> RequestResult<Vec<Part>> {
    let mut parts = Vec::new();
    let thinking = match message.string("reasoning_content")? {
        Some(text) => Some(text),
        None => message.string("reasoning")?,
    };
    if let Some(text) = thinking.filter(|text| !text.is_empty()) {
        parts.push(Part::new(Content::Thinking { text, seal: None }));
    }
    parts.extend(read_content(message, notes)?);
    if let Some(text) = message.string("refusal")? {
        parts.push(Part::new(Content::Refusal(text)));
    }
    for call in message.objects("tool_calls")? {
        parts.push(Part::new(Content::ToolCall(read_tool_call(call)?)));
    }
    for field in ["function_call", "audio"] {
        if message.take(field).is_some() {
            notes.dropped(message.path(field), "no other dialect has it in its history");
        }
    }
    Ok(parts)
}

fn read_tool_call(mut call: Fields<'_>) -> RequestResult<ToolCall> {
    let id = call.required_id("id")?;
    let kind = call.string("type")?.unwrap_or_else(|| "function".to_owned());
    let body = call.object(&kind)?;
    let mut body = body.ok_or_else(|| call.fault(&kind, "is missing"))?;
    let is_free_text = kind == "custom";
    let key = if is_free_text { "input" } else { "arguments" };
    Ok(ToolCall {
        id,
        name: body.required_name("name")?,
        arguments: body.string(key)?.unwrap_or_default(),
        seal: read_signature(&mut call)?,
        is_free_text,
    })
}

/// Google's signature of a call, where its own layer for OpenAI's clients puts it.
fn read_signature(call: &mut Fields<'_>) -> RequestResult<Option<Seal>> {
    let Some(mut extra) = call.object("extra_content")? else { return Ok(None) };
    let Some(mut google) = extra.object("google")? else { return Ok(None) };
    let signature = google.string("thought_signature")?;
    Ok(signature.and_then(|data| Seal::read_field(Vendor::Google, data, false)))
}

/// The content of a message: a string, or a list of parts.
fn read_content(message: &mut Fields<'_>, notes: &mut Notes) -> RequestResult<Vec<Part>> {
    match message.take_json("content") {
        None => Ok(Vec::new()),
        Some(Json::String(text)) if text.is_empty() => Ok(Vec::new()),
        Some(Json::String(text)) => Ok(vec![Part::text(text)]),
        Some(Json::Array(values)) => {
            let base = message.path("content");
            let numbered = values.into_iter().enumerate();
            numbered
                .map(|(at, value)| read_part(Fields::new(element_path(&base, at), value)?, notes))
                .collect()
        }
        Some(_) => Err(message.fault("content", "must be a string or an array of parts")),
    }
}

fn read_part(mut part: Fields<'_>, notes: &mut Notes) -> RequestResult<Part> {
    let kind = part.required_string("type")?;
    let cache = read_cache(&mut part)?;
    let missing = |part: &Fields<'_>, key: &str| part.fault(key, "is missing");
    let content = match kind.as_str() {
        "text" => Content::Text(part.required_string("text")?),
        "refusal" => Content::Refusal(part.required_string("refusal")?),
        "image_url" => {
            let image = match part.take_json("image_url") {
                Some(Json::String(url)) => Json::Object(vec![("url".into(), Json::String(url))]),
                Some(value) => value,
                None => return Err(missing(&part, "image_url")),
            };
            let mut image = Fields::new(part.path("image_url"), image)?;
            let url = image.required_string("url")?;
            let source = MediaSource::of_url(url);
            let source = source.ok_or_else(|| image.fault("url", NO_DATA))?;
            Content::Image { source, detail: image.string("detail")? }
        }
        "file" => {
            let file = part.object("file")?;
            let mut file = file.ok_or_else(|| missing(&part, "file"))?;
            let name = file.string("filename")?;
            let source = match (file.string("file_data")?, file.string("file_id")?) {
                (Some(data), _) => {
                    MediaSource::of_url(data).ok_or_else(|| file.fault("file_data", NO_DATA))?
                }
                (None, Some(id)) => MediaSource::File { vendor: Vendor::OpenAi, id },
                (None, None) => return Err(missing(&file, "file_data")),
            };
            Content::Document { source, name }
        }
        "input_audio" => {
            let audio = part.object("input_audio")?;
            let mut audio = audio.ok_or_else(|| missing(&part, "input_audio"))?;
            let media_type = format!("audio/{}", audio.required_string("format")?);
            let data = audio.required_string("data")?;
            Content::Audio(MediaSource::Base64 { media_type, data })
        }
        _ => return Err(part.fault("type", "is no known type of content")),
    };
    part.note_rest(notes);
    Ok(Part { content, cache })
}

/// The marker that some servers of this dialect share with Messages.
fn read_cache(part: &mut Fields<'_>) -> RequestResult<Option<CacheMark>> {
    let Some(mut mark) = part.object("cache_control")? else { return Ok(None) };
    Ok(Some(CacheMark { ttl: mark.string("ttl")? }))
}
