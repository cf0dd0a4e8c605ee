//! Reads a Messages request into the form.
//!
//! Rules:
//! - A thinking block's signature may be another vendor's, marked so by the gateway when it wrote
//!   an earlier answer; see [`Seal`].
//! - Blocks that only the provider's own tools make (`server_tool_use` and their results) are left
//!   out of the history with a note, because no other vendor could read them.

use serde_json::Value;

use crate::convert::bounds::MAX_WORD;
use crate::convert::fault::{RequestFault, RequestResult};
use crate::convert::fields::{Fields, element_path};
use crate::convert::json_in::Json;
use crate::convert::mixed;
use crate::convert::notes::Notes;
use crate::convert::part::{
    CacheMark, Content, MediaSource, Part, Seal, ToolCall, ToolResult, Vendor,
};
use crate::convert::request::{
    Effort, GenerationRequest, HostedTool, MAX_TOOLS, OutputFormat, OutputSchema, Reasoning, Role,
    ToolChoice, ToolDefinition, ToolInput,
};
use crate::dialect::Dialect;

/// Reads a request.
///
/// # Errors
/// It is wrong in its own dialect.
pub fn read_request(body: &[u8], notes: &mut Notes) -> RequestResult<GenerationRequest> {
    let mut fields = Fields::of_body(body)?;
    mixed::refuse(Dialect::AnthropicMessages, |key| fields.has(key))?;
    if let Some(mut thread) = fields.object("thread")? {
        if thread.take("previous_message_id").is_some() {
            return Err(RequestFault::impossible("`thread`, which Anthropic keeps,"));
        }
        notes.dropped("thread", "no other provider keeps the conversation");
    }
    let mut request = GenerationRequest { includes_usage: true, ..GenerationRequest::default() };
    request.system = read_blocks(&mut fields, "system", notes)?;
    for mut message in fields.objects("messages")? {
        let role = match message.required_string("role")?.as_str() {
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "system" => Role::System,
            _ => return Err(message.fault("role", "must be `user` or `assistant`")),
        };
        let parts = read_blocks(&mut message, "content", notes)?;
        request.push(role, parts);
        message.note_rest(notes);
    }
    if request.messages.is_empty() {
        return Err(fields.fault("messages", "must not be empty"));
    }
    for tool in fields.objects_up_to("tools", MAX_TOOLS)? {
        read_tool(tool, &mut request, notes)?;
    }
    read_tool_choice(&mut fields, &mut request)?;
    read_sampling(&mut fields, &mut request)?;
    read_output(&mut fields, &mut request, notes)?;
    if let Some(mut metadata) = fields.object("metadata")? {
        request.user = metadata.short("user_id", MAX_WORD)?;
        metadata.note_rest(notes);
    }
    // A word that OpenAI has too, with other values.
    if fields.take("service_tier").is_some() {
        notes.dropped("service_tier", "service tiers differ between providers");
    }
    fields.take("model");
    request.other = fields.rest();
    Ok(request)
}

fn read_sampling(fields: &mut Fields<'_>, request: &mut GenerationRequest) -> RequestResult<()> {
    let sampling = &mut request.sampling;
    sampling.max_tokens = fields.count("max_tokens")?;
    sampling.temperature = fields.number("temperature")?;
    sampling.top_p = fields.number("top_p")?;
    sampling.top_k = fields.count("top_k")?;
    sampling.stop = fields.stops("stop_sequences", false)?;
    request.is_stream = fields.boolean("stream")?.unwrap_or_default();
    Ok(())
}

/// `thinking` and `output_config`, and the earlier `output_format`.
fn read_output(
    fields: &mut Fields<'_>,
    request: &mut GenerationRequest,
    notes: &mut Notes,
) -> RequestResult<()> {
    let mut reasoning = None;
    if let Some(mut thinking) = fields.object("thinking")? {
        let budget_tokens = thinking.count("budget_tokens")?;
        let is_shown = thinking.string("display")?.is_none_or(|word| word != "omitted");
        reasoning = Some(match thinking.required_string("type")?.as_str() {
            "disabled" => Reasoning { effort: Some(Effort::Off), ..Reasoning::default() },
            "enabled" => Reasoning { effort: None, budget_tokens, is_shown },
            // The least that models which always think take.
            "between_tools" => {
                Reasoning { effort: Some(Effort::Minimal), budget_tokens: None, is_shown }
            }
            _ => Reasoning { effort: Some(Effort::Medium), budget_tokens: None, is_shown },
        });
    }
    let mut format = fields.object("output_format")?;
    if let Some(mut config) = fields.object("output_config")? {
        let word = config.string("effort")?;
        let effort = word.as_deref().and_then(Effort::of_word);
        match &mut reasoning {
            Some(reasoning) if reasoning.effort != Some(Effort::Off) => {
                reasoning.effort = effort.or(reasoning.effort);
            }
            _ if word.is_some() => {
                notes.dropped("output_config.effort", "it is Anthropic's own without thinking");
            }
            _ => {}
        }
        format = config.object("format")?.or(format);
        config.note_rest(notes);
    }
    request.reasoning = reasoning;
    if let Some(mut format) = format {
        let schema = format.take("schema");
        let schema = schema.ok_or_else(|| format.fault("schema", "is missing"))?;
        request.output = OutputFormat::Schema(OutputSchema {
            name: "response".to_owned(),
            description: None,
            schema,
            is_strict: Some(true),
        });
    }
    Ok(())
}

fn read_tool(
    mut tool: Fields<'_>,
    request: &mut GenerationRequest,
    notes: &mut Notes,
) -> RequestResult<()> {
    if let Some(kind) = tool.string("type")?.filter(|kind| kind != "custom") {
        let mut definition = tool.rest();
        definition.insert("type".to_owned(), kind.clone().into());
        let (vendor, definition) = (Vendor::Anthropic, Value::Object(definition));
        request.hosted_tools.push(HostedTool { vendor, kind, definition });
        return Ok(());
    }
    let schema = tool.take("input_schema");
    if schema.as_ref().is_some_and(|schema| !schema.is_object()) {
        return Err(tool.fault("input_schema", "must be an object"));
    }
    request.tools.push(ToolDefinition {
        name: tool.required_name("name")?,
        description: tool.string("description")?,
        input: ToolInput::Schema(schema),
        is_strict: tool.boolean("strict")?,
        cache: read_cache(&mut tool)?,
    });
    tool.note_rest(notes);
    Ok(())
}

fn read_tool_choice(fields: &mut Fields<'_>, request: &mut GenerationRequest) -> RequestResult<()> {
    let Some(mut choice) = fields.object("tool_choice")? else { return Ok(()) };
    request.tool_choice = Some(match choice.required_string("type")?.as_str() {
        "auto" => ToolChoice::Auto,
        "any" => ToolChoice::Required,
        "none" => ToolChoice::Disabled,
        "tool" => ToolChoice::Named(choice.required_name("name")?),
        _ => return Err(choice.fault("type", "must be `auto`, `any`, `tool` or `none`")),
    });
    let is_single = choice.boolean("disable_parallel_tool_use")?;
    request.parallel_tools = is_single.map(|is_single| !is_single);
    Ok(())
}

/// A text, or a list of blocks.
fn read_blocks(fields: &mut Fields<'_>, key: &str, notes: &mut Notes) -> RequestResult<Vec<Part>> {
    match fields.take_json(key) {
        None => Ok(Vec::new()),
        Some(Json::String(text)) if text.is_empty() => Ok(Vec::new()),
        Some(Json::String(text)) => Ok(vec![Part::text(text)]),
        Some(Json::Array(values)) => {
            let base = fields.path(key);
            let mut parts = Vec::with_capacity(values.len());
            for (at, value) in values.into_iter().enumerate() {
                let block = Fields::new(element_path(&base, at), value)?;
                parts.extend(read_block(block, notes)?);
            }
            Ok(parts)
        }
        Some(_) => Err(fields.fault(key, "must be a string or an array of blocks")),
    }
}

fn read_block(mut block: Fields<'_>, notes: &mut Notes) -> RequestResult<Option<Part>> {
    let kind = block.required_string("type")?;
    let cache = read_cache(&mut block)?;
    let content = match kind.as_str() {
        "text" => Content::Text(block.required_string("text")?),
        "image" => Content::Image { source: read_source(&mut block, notes)?, detail: None },
        "document" => {
            note_citations(&mut block, notes)?;
            let name = block.string("title")?;
            Content::Document { source: read_source(&mut block, notes)?, name }
        }
        "thinking" => {
            let signature = block.string("signature")?.unwrap_or_default();
            let seal = Seal::read_field(Vendor::Anthropic, signature, false);
            Content::Thinking { text: block.string("thinking")?.unwrap_or_default(), seal }
        }
        "redacted_thinking" => {
            let seal = Seal::read_field(Vendor::Anthropic, block.required_string("data")?, true);
            Content::Thinking { text: String::new(), seal }
        }
        "tool_use" => {
            let input = block.take("input").unwrap_or_else(|| serde_json::json!({}));
            if !input.is_object() {
                return Err(block.fault("input", "must be an object"));
            }
            Content::ToolCall(ToolCall {
                id: block.required_id("id")?,
                name: block.required_name("name")?,
                arguments: input.to_string(),
                seal: None,
                is_free_text: false,
            })
        }
        "tool_result" => Content::ToolResult(ToolResult {
            call_id: block.required_id("tool_use_id")?,
            name: None,
            content: read_blocks(&mut block, "content", notes)?,
            is_error: block.boolean("is_error")?.unwrap_or_default(),
            is_free_text: false,
        }),
        "tool_reference" => {
            notes.rewritten(kind, "other dialects have it as text");
            let name = block.required_name("tool_name")?;
            Content::Text(format!("the tool `{name}` can be used"))
        }
        "search_result" => {
            note_citations(&mut block, notes)?;
            notes.rewritten(kind, "other dialects have it as text");
            Content::Text(read_search_result(&mut block, notes)?)
        }
        "server_tool_use" | "container_upload" => {
            notes.dropped(kind, "a block of a tool that its provider runs");
            return Ok(None);
        }
        _ if kind.ends_with("_tool_result") || kind.starts_with("mcp_tool") => {
            notes.dropped(kind, "a block of a tool that its provider runs");
            return Ok(None);
        }
        _ => return Err(block.fault("type", "is no known type of block")),
    };
    block.note_rest(notes);
    Ok(Some(Part { content, cache }))
}

/// A wish for citations, which stands under the same name as the citations of an answer.
fn note_citations(block: &mut Fields<'_>, notes: &mut Notes) -> RequestResult<()> {
    let path = block.path("citations");
    if let Some(mut wish) = block.object("citations")?
        && wish.boolean("enabled")? == Some(true)
    {
        notes.dropped(path, "no other dialect cites documents of the client's");
    }
    Ok(())
}

/// What the client found itself and gives to the model: its title, where it is from, its text.
fn read_search_result(block: &mut Fields<'_>, notes: &mut Notes) -> RequestResult<String> {
    let head = [block.string("title")?, block.string("source")?];
    let text = joined(read_blocks(block, "content", notes)?);
    let lines: Vec<String> = head.into_iter().flatten().chain(text).collect();
    Ok(lines.join("\n"))
}

/// The texts of some parts as one; none if there is something else among them.
fn joined(parts: Vec<Part>) -> Option<String> {
    let texts: Option<Vec<String>> = parts
        .into_iter()
        .map(|part| match part.content {
            Content::Text(text) => Some(text),
            _ => None,
        })
        .collect();
    texts.map(|texts| texts.join("\n"))
}

fn read_source(block: &mut Fields<'_>, notes: &mut Notes) -> RequestResult<MediaSource> {
    let source = block.object("source")?;
    let mut source = source.ok_or_else(|| block.fault("source", "is missing"))?;
    Ok(match source.required_string("type")?.as_str() {
        "base64" => MediaSource::Base64 {
            media_type: source.required_string("media_type")?,
            data: source.required_string("data")?,
        },
        "url" => MediaSource::Url { url: source.required_string("url")?, media_type: None },
        "text" => MediaSource::Text(source.required_string("data")?),
        "content" => {
            let text = joined(read_blocks(&mut source, "content", notes)?);
            let text = text.ok_or_else(|| RequestFault::impossible("a document with images"))?;
            MediaSource::Text(text)
        }
        "file" => {
            let id = source.required_string("file_id")?;
            MediaSource::File { vendor: Vendor::Anthropic, id }
        }
        _ => return Err(source.fault("type", "is no known type of source")),
    })
}

fn read_cache(fields: &mut Fields<'_>) -> RequestResult<Option<CacheMark>> {
    let Some(mut mark) = fields.object("cache_control")? else { return Ok(None) };
    Ok(Some(CacheMark { ttl: mark.string("ttl")? }))
}
