//! Reads a `generateContent` request.
//!
//! Rules:
//! - A call without an id gets `call_N`, where N counts the calls of the conversation; a result
//!   without one answers the first open call of its name.
//! - A result of one field `result` or `output` that is a text is that text, one of a text `error`
//!   is an error; any other is its JSON.
//! - A signature on plain text becomes a seal before it; [`super::request_out`] puts it back.
//! - `cachedContent` is state at Google: such a request cannot be served elsewhere.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::{Map, Value};

use super::{media_type, schema, signature, spelling, thinking};
use crate::convert::bounds::MAX_ID;
use crate::convert::fault::{RequestFault, RequestResult};
use crate::convert::fields::{Fields, parsed};
use crate::convert::json_in::Json;
use crate::convert::mixed;
use crate::convert::notes::Notes;
use crate::convert::part::{Content, MediaSource, Part, ToolCall, ToolResult, Vendor};
use crate::convert::request::{
    GenerationRequest, HostedTool, MAX_TOOLS, OutputFormat, OutputSchema, Role, Sampling,
    ToolChoice, ToolDefinition, ToolInput,
};
use crate::dialect::Dialect;

/// Reads a whole body; the path says whether to stream.
///
/// # Errors
/// It is not a request of this dialect, or refers to state at Google.
pub fn read_request(
    body: &[u8],
    is_stream: bool,
    notes: &mut Notes,
) -> RequestResult<GenerationRequest> {
    let value = parsed(body)?;
    let has = |key: &str| match &value {
        Json::Object(fields) => fields.iter().any(|it| it.0 == key && !it.1.is_null()),
        _ => false,
    };
    mixed::refuse(Dialect::Gemini, has)?;
    let mut fields = Fields::new(String::new(), spelling::normal(value))?;
    if fields.take("cachedContent").is_some() {
        return Err(RequestFault::impossible("`cachedContent`, which Google keeps,"));
    }
    let mut request =
        GenerationRequest { is_stream, includes_usage: true, ..GenerationRequest::default() };
    if let Some(instruction) = fields.take_json("systemInstruction") {
        request.system = system(fields.path("systemInstruction"), instruction)?;
    }
    let mut calls = KnownCalls::default();
    for content in fields.objects("contents")? {
        let (role, parts) = message(content, &mut calls, notes)?;
        request.push(role, parts);
    }
    for tool in fields.objects_up_to("tools", MAX_TOOLS)? {
        tools(tool, &mut request, notes)?;
    }
    if let Some(config) = fields.object("toolConfig")? {
        tool_choice(config, &mut request, notes)?;
    }
    let config = fields.object("generationConfig")?;
    // A body may repeat the model of the path.
    fields.take("model");
    request.other = fields.rest();
    if let Some(config) = config {
        generation_config(config, &mut request)?;
    }
    Ok(request)
}

fn system(path: String, instruction: Json<'_>) -> RequestResult<Vec<Part>> {
    if let Json::String(text) = instruction {
        return Ok(vec![Part::text(text)]);
    }
    let mut parts = Vec::new();
    for mut part in Fields::new(path, instruction)?.objects("parts")? {
        parts.push(Part::text(part.required_string("text")?));
    }
    Ok(parts)
}

/// The calls of the conversation so far, for ids that the client left out.
#[derive(Default)]
struct KnownCalls {
    ids: BTreeSet<String>,
    /// No call without an id gets a smaller number. It never goes back, because to look for a free
    /// one from the start for every call would take the square of their number.
    next: usize,
    /// Calls whose result was named by its id.
    answered: BTreeSet<String>,
    /// Calls by name, the first first, until a result without an id answers them.
    open: BTreeMap<String, VecDeque<String>>,
}

impl KnownCalls {
    fn add(&mut self, id: Option<String>, name: &str) -> String {
        let id = id.unwrap_or_else(|| {
            while self.ids.contains(&format!("call_{}", self.next)) {
                self.next += 1;
            }
            format!("call_{}", self.next)
        });
        self.next += 1;
        self.ids.insert(id.clone());
        self.open.entry(name.to_owned()).or_default().push_back(id.clone());
        id
    }

    /// The call that a result answers.
    fn answered(&mut self, id: Option<String>, name: &str) -> String {
        let open = self.open.entry(name.to_owned()).or_default();
        match id {
            Some(id) => {
                self.answered.insert(id.clone());
                id
            }
            None => match std::iter::from_fn(|| open.pop_front())
                .find(|id| !self.answered.contains(id))
            {
                Some(id) => id,
                None => {
                    let id = self.add(None, name);
                    self.open.remove(name);
                    id
                }
            },
        }
    }
}

fn message(
    mut content: Fields<'_>,
    calls: &mut KnownCalls,
    notes: &mut Notes,
) -> RequestResult<(Role, Vec<Part>)> {
    let role = match content.string("role")?.as_deref() {
        None | Some("user" | "function" | "") => Role::User,
        Some("model") => Role::Assistant,
        Some(_) => return Err(content.fault("role", "must be `user` or `model`")),
    };
    let mut parts = Vec::new();
    for fields in content.objects("parts")? {
        part(fields, calls, notes, &mut parts)?;
    }
    content.note_rest(notes);
    Ok((role, parts))
}

fn part(
    mut fields: Fields<'_>,
    calls: &mut KnownCalls,
    notes: &mut Notes,
    parts: &mut Vec<Part>,
) -> RequestResult<()> {
    let seal = fields.string("thoughtSignature")?.and_then(signature::read);
    let is_thought = fields.boolean("thought")?.unwrap_or_default();
    if let Some(mut call) = fields.object("functionCall")? {
        let name = call.required_name("name")?;
        let arguments = match call.take("args") {
            None => "{}".to_owned(),
            Some(args @ Value::Object(_)) => args.to_string(),
            Some(_) => return Err(call.fault("args", "must be an object")),
        };
        let id = calls.add(call.short("id", MAX_ID)?, &name);
        let call = ToolCall { id, name, arguments, seal, is_free_text: false };
        parts.push(Part::new(Content::ToolCall(call)));
    } else if let Some(result) = fields.object("functionResponse")? {
        parts.push(Part::new(Content::ToolResult(tool_result(result, calls, notes)?)));
    } else if let Some(source) = media(&mut fields, notes)? {
        parts.push(source);
    } else if let Some(text) = fields.string("text")? {
        if is_thought {
            parts.push(Part::new(Content::Thinking { text, seal }));
        } else {
            if seal.is_some() {
                parts.push(Part::new(Content::Thinking { text: String::new(), seal }));
            }
            if !text.is_empty() {
                parts.push(Part::text(text));
            }
        }
    } else {
        let rest = fields.rest();
        match rest.keys().next().map(String::as_str) {
            Some(kind @ ("executableCode" | "codeExecutionResult")) => {
                notes.dropped(kind, "code that Google ran means nothing to other vendors");
            }
            Some(kind) => {
                return Err(RequestFault::impossible(format!("a part of kind `{kind}`")));
            }
            None if seal.is_some() => {
                parts.push(Part::new(Content::Thinking { text: String::new(), seal }));
            }
            None => return Err(RequestFault::invalid("contents", "has an empty part")),
        }
        return Ok(());
    }
    fields.note_rest(notes);
    Ok(())
}

fn tool_result(
    mut fields: Fields<'_>,
    calls: &mut KnownCalls,
    notes: &mut Notes,
) -> RequestResult<ToolResult> {
    let name = fields.required_name("name")?;
    let id = fields.short("id", MAX_ID)?;
    let response = fields.take("response").unwrap_or(Value::Object(Map::new()));
    let (text, is_error) = result_text(response);
    let mut content = vec![Part::text(text)];
    for mut part in fields.objects("parts")? {
        content.extend(media(&mut part, notes)?);
        part.note_rest(notes);
    }
    fields.note_rest(notes);
    let call_id = calls.answered(id, &name);
    Ok(ToolResult { call_id, name: Some(name), content, is_error, is_free_text: false })
}

/// The text of a result, and whether it tells of an error.
fn result_text(response: Value) -> (String, bool) {
    if let Value::Object(map) = &response {
        let mut fields = map.iter();
        if let (Some((key, Value::String(text))), None) = (fields.next(), fields.next()) {
            match key.as_str() {
                "result" | "output" => return (text.clone(), false),
                "error" => return (text.clone(), true),
                _ => {}
            }
        }
    }
    (response.to_string(), false)
}

/// An image, document or sound.
fn media(fields: &mut Fields<'_>, notes: &mut Notes) -> RequestResult<Option<Part>> {
    let (media_type, source) = if let Some(mut data) = fields.object("inlineData")? {
        let media_type = data.required_string("mimeType")?;
        let bytes = data.required_string("data")?;
        data.note_rest(notes);
        (media_type.clone(), MediaSource::Base64 { media_type, data: bytes })
    } else if let Some(mut file) = fields.object("fileData")? {
        let told = file.string("mimeType")?;
        let url = file.required_string("fileUri")?;
        file.note_rest(notes);
        if media_type::is_video_page(&url) {
            return Err(RequestFault::impossible("video"));
        }
        let media_type = told.or_else(|| media_type::of_url(&url).map(str::to_owned));
        let is_stored = url.starts_with("https://generativelanguage.googleapis.com/");
        let source = match is_stored || !url.starts_with("http") {
            true => MediaSource::File { vendor: Vendor::Google, id: url },
            false => MediaSource::Url { url, media_type: media_type.clone() },
        };
        (media_type.unwrap_or_default(), source)
    } else {
        return Ok(None);
    };
    let kind = media_type.split('/').next().unwrap_or_default();
    Ok(Some(Part::new(match kind {
        "image" => Content::Image { source, detail: None },
        "audio" => Content::Audio(source),
        "video" => return Err(RequestFault::impossible("video")),
        _ => Content::Document { source, name: None },
    })))
}

fn tools(
    mut fields: Fields<'_>,
    request: &mut GenerationRequest,
    notes: &mut Notes,
) -> RequestResult<()> {
    let room = MAX_TOOLS.saturating_sub(request.tools.len());
    for mut function in fields.objects_up_to("functionDeclarations", room)? {
        let parameters = function.take("parameters").map(schema::read);
        let json_schema = function.take("parametersJsonSchema");
        request.tools.push(ToolDefinition {
            name: function.required_name("name")?,
            description: function.string("description")?,
            input: ToolInput::Schema(json_schema.or(parameters)),
            is_strict: None,
            cache: None,
        });
        function.note_rest(notes);
    }
    for (kind, settings) in fields.rest() {
        let definition = Value::Object(Map::from_iter([(kind.clone(), settings)]));
        request.hosted_tools.push(HostedTool { vendor: Vendor::Google, kind, definition });
    }
    Ok(())
}

fn tool_choice(
    mut config: Fields<'_>,
    request: &mut GenerationRequest,
    notes: &mut Notes,
) -> RequestResult<()> {
    let calling = config.object("functionCallingConfig")?;
    config.note_rest(notes);
    let Some(mut calling) = calling else { return Ok(()) };
    let names: Vec<String> = calling
        .list_up_to("allowedFunctionNames", MAX_TOOLS)?
        .into_iter()
        .filter_map(Json::into_text)
        .collect();
    let choice = match calling.string("mode")?.as_deref().map(str::to_ascii_uppercase).as_deref() {
        None | Some("MODE_UNSPECIFIED") => return Ok(()),
        Some("AUTO") => ToolChoice::Auto,
        Some("NONE") => ToolChoice::Disabled,
        Some("VALIDATED") => {
            notes.rewritten("toolConfig", "other vendors have no mode `VALIDATED`");
            if !names.is_empty() {
                request.offer_only(&names);
            }
            ToolChoice::Auto
        }
        Some("ANY") => match names.as_slice() {
            [name] => ToolChoice::Named(name.clone()),
            [] => ToolChoice::Required,
            _ => {
                request.offer_only(&names);
                ToolChoice::Required
            }
        },
        Some(_) => return Err(calling.fault("mode", "must be `AUTO`, `ANY` or `NONE`")),
    };
    request.tool_choice = Some(choice);
    calling.note_rest(notes);
    Ok(())
}

fn generation_config(mut config: Fields<'_>, request: &mut GenerationRequest) -> RequestResult<()> {
    let stop = config.stops("stopSequences", false)?;
    let wants_logprobs = config.boolean("responseLogprobs")?.unwrap_or_default();
    let alternatives = config.count("logprobs")?;
    request.sampling = Sampling {
        max_tokens: config.count("maxOutputTokens")?,
        temperature: config.number("temperature")?,
        top_p: config.number("topP")?,
        // Google's SDKs send a float.
        top_k: config.number("topK")?.map(|top_k| top_k as u64),
        frequency_penalty: config.number("frequencyPenalty")?,
        presence_penalty: config.number("presencePenalty")?,
        seed: config.integer("seed")?,
        stop,
        choices: config.count("candidateCount")?,
        logprobs: wants_logprobs.then(|| alternatives.unwrap_or_default()),
    };
    for kind in config.list("responseModalities")? {
        if kind.into_text().is_none_or(|kind| !kind.eq_ignore_ascii_case("text")) {
            return Err(RequestFault::impossible("a wish for an answer other than text"));
        }
    }
    if let Some(thinking) = config.object("thinkingConfig")? {
        let thinking = thinking.rest();
        request.reasoning = Some(thinking::read(&thinking));
        let rest = thinking.into_iter().filter(|(key, _)| !thinking::KNOWN.contains(&key.as_str()));
        let named = |(key, value)| (format!("generationConfig.thinkingConfig.{key}"), value);
        request.other.extend(rest.map(named));
    }
    let schema = config.take("responseJsonSchema").or(config.take("_responseJsonSchema"));
    let schema = schema.or(config.take("responseSchema").map(schema::read));
    let media_type = config.string("responseMimeType")?;
    request.output = match (media_type.as_deref(), schema) {
        (Some("application/json"), None) => OutputFormat::Json,
        (Some("application/json"), Some(schema)) => OutputFormat::Schema(OutputSchema {
            name: "response".to_owned(),
            description: None,
            schema,
            is_strict: None,
        }),
        (None | Some("text/plain"), None) => OutputFormat::Text,
        (Some("text/x.enum"), _) => {
            return Err(RequestFault::impossible("`responseMimeType: text/x.enum`"));
        }
        _ => {
            let problem = "must be `application/json` where a schema is given";
            return Err(config.fault("responseMimeType", problem));
        }
    };
    let named = |(key, value)| (format!("generationConfig.{key}"), value);
    request.other.extend(config.rest().into_iter().map(named));
    Ok(())
}
