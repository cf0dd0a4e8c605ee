//! Reads a request of the Responses API.
//!
//! Rules:
//! - `instructions` and the instructions before the first other item are the system prompt.
//! - Items of tools that OpenAI runs (web search and the like) mean nothing elsewhere and are
//!   dropped with a note; items of tools that need their vendor's model are refused.
//! - What refers to state at OpenAI is refused, each by its name.

use serde_json::Value;

use super::content;
use super::item::OWN_REASONING;
use crate::convert::bounds::{MAX_NAME, MAX_WORD};
use crate::convert::fault::{RequestFault, RequestResult};
use crate::convert::fields::{Fields, element_path};
use crate::convert::json_in::Json;
use crate::convert::mixed;
use crate::convert::notes::Notes;
use crate::convert::part::{Content, Part, Seal, ToolCall, ToolResult, Vendor};
use crate::convert::request::{
    Effort, GenerationRequest, HostedTool, MAX_TOOLS, OutputFormat, OutputSchema, Reasoning, Role,
    Sampling, ToolChoice, ToolDefinition, ToolInput,
};
use crate::dialect::Dialect;

/// Why nothing is stored.
pub(super) const NOT_KEPT: &str = "an answer that was converted is kept by nobody";

/// Fields that refer to what OpenAI keeps.
const STATE: [&str; 3] = ["previous_response_id", "conversation", "prompt"];

/// Items of tools that OpenAI ran by itself.
const HOSTED_ITEMS: [&str; 6] = [
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "image_generation_call",
    "mcp_list_tools",
    "mcp_call",
];

/// Reads a whole body.
///
/// # Errors
/// It is not a request of this dialect, or refers to state at OpenAI.
pub fn read_request(body: &[u8], notes: &mut Notes) -> RequestResult<GenerationRequest> {
    let mut fields = Fields::of_body(body)?;
    mixed::refuse(Dialect::OpenAiResponses, |key| fields.has(key))?;
    for key in STATE {
        if fields.take(key).is_some() {
            return Err(RequestFault::impossible(format!("`{key}`, which OpenAI keeps,")));
        }
    }
    if fields.boolean("background")?.unwrap_or_default() {
        return Err(RequestFault::impossible("`background`"));
    }
    let mut request = GenerationRequest {
        is_stream: fields.boolean("stream")?.unwrap_or_default(),
        includes_usage: true,
        parallel_tools: fields.boolean("parallel_tool_calls")?,
        user: fields.short("user", MAX_WORD)?,
        prompt_cache_key: fields.short("prompt_cache_key", MAX_WORD)?,
        ..GenerationRequest::default()
    };
    if let Some(text) = fields.string("instructions")?.filter(|text| !text.is_empty()) {
        request.system.push(Part::text(text));
    }
    input(&mut fields, &mut request, notes)?;
    for tool in fields.objects_up_to("tools", MAX_TOOLS)? {
        self::tool(tool, &mut request, notes)?;
    }
    tool_choice(&mut fields, &mut request, notes)?;
    request.reasoning = reasoning(&mut fields)?;
    request.output = output(&mut fields, &mut request)?;
    let alternatives = fields.count("top_logprobs")?;
    let mut wants_logprobs = false;
    for word in fields.list("include")? {
        match word.into_text().as_deref() {
            Some("message.output_text.logprobs") => wants_logprobs = true,
            // Whatever a provider encrypts is kept anyway.
            Some("reasoning.encrypted_content") => {}
            _ => notes.dropped("include", "only OpenAI's own tools and items have it"),
        }
    }
    request.sampling = Sampling {
        max_tokens: fields.count("max_output_tokens")?,
        temperature: fields.number("temperature")?,
        top_p: fields.number("top_p")?,
        logprobs: alternatives.or(wants_logprobs.then_some(0)),
        ..Sampling::default()
    };
    if fields.boolean("store")? == Some(true) {
        notes.dropped("store", NOT_KEPT);
    }
    for key in ["model", "stream_options"] {
        // They say nothing about the answer itself.
        fields.take(key);
    }
    let verbosity = request.other.clone();
    request.other = fields.rest();
    request.other.extend(verbosity);
    Ok(request)
}

fn input(
    fields: &mut Fields<'_>,
    request: &mut GenerationRequest,
    notes: &mut Notes,
) -> RequestResult<()> {
    match fields.take_json("input") {
        None => Err(fields.fault("input", "is missing")),
        Some(Json::String(text)) => {
            request.push(Role::User, vec![Part::text(text)]);
            Ok(())
        }
        Some(Json::Array(items)) => {
            for (at, value) in items.into_iter().enumerate() {
                item(Fields::new(element_path("input", at), value)?, request, notes)?;
            }
            Ok(())
        }
        Some(_) => Err(fields.fault("input", "must be a string or an array")),
    }
}

fn item(
    mut fields: Fields<'_>,
    request: &mut GenerationRequest,
    notes: &mut Notes,
) -> RequestResult<()> {
    let kind = fields.string("type")?.unwrap_or_else(|| "message".to_owned());
    match kind.as_str() {
        "message" => return message(fields, request, notes),
        "function_call" | "custom_tool_call" => {
            let is_free_text = kind == "custom_tool_call";
            let key = if is_free_text { "input" } else { "arguments" };
            let call = ToolCall {
                id: fields.required_id("call_id")?,
                name: fields.required_name("name")?,
                arguments: fields.required_string(key)?,
                seal: None,
                is_free_text,
            };
            request.push(Role::Assistant, vec![Part::new(Content::ToolCall(call))]);
        }
        "function_call_output" | "custom_tool_call_output" => {
            let result = ToolResult {
                call_id: fields.required_id("call_id")?,
                name: None,
                content: content::read(&mut fields, "output", notes)?,
                is_error: false,
                is_free_text: kind == "custom_tool_call_output",
            };
            request.push(Role::User, vec![Part::new(Content::ToolResult(result))]);
        }
        "reasoning" => {
            let part = thinking(&mut fields)?;
            request.push(Role::Assistant, vec![part]);
        }
        hosted if HOSTED_ITEMS.contains(&hosted) => {
            notes.dropped(hosted, "a tool that OpenAI ran means nothing to other vendors");
            return Ok(());
        }
        "item_reference"
            if fields.string("id")?.is_some_and(|id| id.starts_with(OWN_REASONING)) =>
        {
            notes.dropped("reasoning", "the client refers to it by an id, and nobody keeps it");
            return Ok(());
        }
        "item_reference" => {
            return Err(RequestFault::impossible("an `item_reference`, which OpenAI keeps,"));
        }
        other => return Err(RequestFault::impossible(format!("an item of type `{other}`"))),
    }
    fields.note_rest(notes);
    Ok(())
}

fn message(
    mut fields: Fields<'_>,
    request: &mut GenerationRequest,
    notes: &mut Notes,
) -> RequestResult<()> {
    let role = fields.required_string("role")?;
    let parts = content::read(&mut fields, "content", notes)?;
    match role.as_str() {
        "user" => request.push(Role::User, parts),
        "assistant" => request.push(Role::Assistant, parts),
        "system" | "developer" if request.messages.is_empty() => request.system.extend(parts),
        "system" | "developer" => request.push(Role::System, parts),
        _ => {
            let problem = "must be `user`, `assistant`, `system` or `developer`";
            return Err(fields.fault("role", problem));
        }
    }
    fields.note_rest(notes);
    Ok(())
}

/// A reasoning item: its summary or text, and the encrypted reasoning itself.
fn thinking(fields: &mut Fields<'_>) -> RequestResult<Part> {
    let mut text = String::new();
    for key in ["content", "summary"] {
        // Where both are there, the text is more than its summary.
        if !text.is_empty() {
            break;
        }
        for mut part in fields.objects(key)? {
            if !text.is_empty() {
                text.push_str("\n\n");
            }
            text.push_str(&part.required_string("text")?);
        }
    }
    let seal = fields.string("encrypted_content")?;
    let seal = seal.map(|data| Seal::read(Vendor::OpenAi, data, true));
    Ok(Part::new(Content::Thinking { text, seal }))
}

fn tool(
    mut fields: Fields<'_>,
    request: &mut GenerationRequest,
    notes: &mut Notes,
) -> RequestResult<()> {
    let kind = fields.required_string("type")?;
    let input = match kind.as_str() {
        "function" => {
            let schema = fields.take("parameters");
            if schema.as_ref().is_some_and(|schema| !schema.is_object()) {
                return Err(fields.fault("parameters", "must be an object"));
            }
            ToolInput::Schema(schema)
        }
        "custom" => ToolInput::FreeText(fields.take("format")),
        _ => {
            let mut definition = fields.rest();
            definition.insert("type".to_owned(), kind.clone().into());
            let definition = Value::Object(definition);
            request.hosted_tools.push(HostedTool { vendor: Vendor::OpenAi, kind, definition });
            return Ok(());
        }
    };
    request.tools.push(ToolDefinition {
        name: fields.required_name("name")?,
        description: fields.string("description")?,
        input,
        is_strict: fields.boolean("strict")?,
        cache: None,
    });
    fields.note_rest(notes);
    Ok(())
}

fn tool_choice(
    fields: &mut Fields<'_>,
    request: &mut GenerationRequest,
    notes: &mut Notes,
) -> RequestResult<()> {
    let Some(value) = fields.take_json("tool_choice") else { return Ok(()) };
    if let Json::String(word) = &value {
        request.tool_choice =
            Some(mode(word).ok_or_else(|| {
                fields.fault("tool_choice", "must be `auto`, `none` or `required`")
            })?);
        return Ok(());
    }
    let mut choice = Fields::new(fields.path("tool_choice"), value)?;
    request.tool_choice = match choice.required_string("type")?.as_str() {
        "function" | "custom" => Some(ToolChoice::Named(choice.required_name("name")?)),
        "allowed_tools" => {
            let word = choice.required_string("mode")?;
            let mut names = Vec::new();
            for mut tool in choice.objects_up_to("tools", MAX_TOOLS)? {
                names.extend(tool.short("name", MAX_NAME)?);
            }
            request.offer_only(&names);
            mode(&word)
        }
        _ => {
            notes.dropped("tool_choice", "only its own vendor runs this tool");
            None
        }
    };
    Ok(())
}

fn mode(word: &str) -> Option<ToolChoice> {
    Some(match word {
        "auto" => ToolChoice::Auto,
        "none" => ToolChoice::Disabled,
        "required" => ToolChoice::Required,
        _ => return None,
    })
}

fn reasoning(fields: &mut Fields<'_>) -> RequestResult<Option<Reasoning>> {
    let Some(mut reasoning) = fields.object("reasoning")? else { return Ok(None) };
    let effort = match reasoning.string("effort")? {
        None => None,
        Some(word) => Some(Effort::of_word(&word).ok_or_else(|| {
            reasoning.fault("effort", "must be `none`, `minimal`, `low`, `medium` or `high`")
        })?),
    };
    let summary = reasoning.string("summary")?.or(reasoning.string("generate_summary")?);
    let is_shown = summary.is_some();
    if effort.is_none() && !is_shown {
        return Ok(None);
    }
    Ok(Some(Reasoning { effort, budget_tokens: None, is_shown }))
}

fn output(fields: &mut Fields<'_>, request: &mut GenerationRequest) -> RequestResult<OutputFormat> {
    let Some(mut text) = fields.object("text")? else { return Ok(OutputFormat::Text) };
    if let Some(verbosity) = text.take("verbosity") {
        request.other.insert("verbosity".to_owned(), verbosity);
    }
    let Some(mut format) = text.object("format")? else { return Ok(OutputFormat::Text) };
    Ok(match format.required_string("type")?.as_str() {
        "text" => OutputFormat::Text,
        "json_object" => OutputFormat::Json,
        "json_schema" => OutputFormat::Schema(OutputSchema {
            name: format.required_name("name")?,
            description: format.string("description")?,
            schema: format.take("schema").ok_or_else(|| format.fault("schema", "is missing"))?,
            is_strict: format.boolean("strict")?,
        }),
        _ => {
            let problem = "must be `text`, `json_object` or `json_schema`";
            return Err(format.fault("type", problem));
        }
    })
}
