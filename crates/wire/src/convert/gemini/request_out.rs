//! Writes a `generateContent` request; the path says the model and whether to stream.
//!
//! Rules:
//! - An instruction in the middle of the conversation moves to the system prompt, with a note.
//! - Thinking goes to Google only with Google's own signature; a signature without text belongs to
//!   the text or call that follows it.
//! - A result that is a JSON object is sent as it is, any other text as `{"result": text}`, an
//!   error as `{"error": text}`.
//! - Models before Gemini 3 cannot answer in JSON while they have tools: refused.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::spelling::without_nulls;
use super::{media_type, schema, signature, thinking};
use crate::convert::fault::{RequestFault, RequestResult};
use crate::convert::json_out::{bytes, object};
use crate::convert::notes::Notes;
use crate::convert::part::{Content, MediaSource, Part, Seal, ToolCall, ToolResult, Vendor};
use crate::convert::request::{
    GenerationRequest, OutputFormat, Role, Sampling, ToolChoice, ToolDefinition, ToolInput,
};
use crate::convert::target::TargetProfile;

/// The most stop sequences that Gemini takes.
const MAX_STOPS: usize = 5;

/// The most alternatives of a token that Gemini tells.
const MAX_LOGPROBS: u64 = 20;

/// Fields that newer models refuse, and what other dialects call them.
const PENALTIES: [(&str, &str); 2] =
    [("frequencyPenalty", "frequency_penalty"), ("presencePenalty", "presence_penalty")];

/// Writes the body.
///
/// # Errors
/// Gemini cannot be asked this.
pub fn write_request(
    request: &GenerationRequest,
    target: &TargetProfile<'_>,
    notes: &mut Notes,
) -> RequestResult<Vec<u8>> {
    let mut system: Vec<Value> = Vec::new();
    let mut contents: Vec<Value> = Vec::new();
    for part in &request.system {
        system.extend(text_of(part));
    }
    let names = request.tool_names();
    for message in &request.messages {
        if message.role == Role::System {
            notes.rewritten("messages", "an instruction was moved to the system prompt");
            system.extend(message.parts.iter().filter_map(text_of));
            continue;
        }
        let mut writer = PartsWriter {
            names: &names,
            target,
            notes,
            parts: Vec::new(),
            pending: None,
            has_called: false,
        };
        for part in &message.parts {
            writer.part(part)?;
        }
        let parts = writer.finish();
        let role = if message.role == Role::Assistant { "model" } else { "user" };
        push(&mut contents, role, parts);
    }
    if contents.is_empty() {
        // Gemini wants a conversation; instructions alone become what the user says.
        push(&mut contents, "user", std::mem::take(&mut system));
    }
    let mut body = Map::new();
    body.insert("contents".into(), contents.into());
    if !system.is_empty() {
        body.insert("systemInstruction".into(), object([("parts", system.into())]));
    }
    tools(request, &mut body, notes);
    let config = generation_config(request, target, notes)?;
    if !config.is_empty() {
        body.insert("generationConfig".into(), config.into());
    }
    note_the_rest(request, notes);
    Ok(bytes(&Value::Object(body)))
}

/// Adds a turn; Gemini wants roles to alternate.
fn push(contents: &mut Vec<Value>, role: &str, parts: Vec<Value>) {
    if parts.is_empty() {
        return;
    }
    if let Some(last) = contents.last_mut().filter(|last| last["role"] == role)
        && let Some(known) = last["parts"].as_array_mut()
    {
        known.extend(parts);
        return;
    }
    contents.push(object([("role", role.into()), ("parts", parts.into())]));
}

fn text_of(part: &Part) -> Option<Value> {
    match &part.content {
        Content::Text(text) if !text.is_empty() => Some(json!({ "text": text })),
        _ => None,
    }
}

/// Writes the parts of one message.
struct PartsWriter<'a> {
    /// The names of the tools by the ids of their calls.
    names: &'a BTreeMap<&'a str, &'a str>,
    target: &'a TargetProfile<'a>,
    notes: &'a mut Notes,
    parts: Vec<Value>,
    /// A signature that belongs to the next text or call.
    pending: Option<String>,
    /// Whether the message has a call already.
    has_called: bool,
}

impl PartsWriter<'_> {
    fn part(&mut self, part: &Part) -> RequestResult<()> {
        match &part.content {
            Content::Text(text) | Content::Refusal(text) => {
                if !text.is_empty() {
                    let mut value = json!({ "text": text });
                    self.sign(&mut value, None);
                    self.parts.push(value);
                }
            }
            Content::Image { source, detail } => {
                if detail.as_deref().is_some_and(|detail| detail != "auto") {
                    self.notes.dropped("detail", "Gemini has no such field");
                }
                let value = media(source, "image/jpeg", self.notes)?;
                self.parts.push(value);
            }
            Content::Document { source, name } => {
                if name.is_some() {
                    self.notes.dropped("filename", "Gemini has no such field");
                }
                let value = media(source, "application/pdf", self.notes)?;
                self.parts.push(value);
            }
            Content::Audio(source) => {
                let value = media(source, "audio/wav", self.notes)?;
                self.parts.push(value);
            }
            Content::Thinking { text, seal } => self.thinking(text, seal.as_ref()),
            Content::ToolCall(call) => self.call(call)?,
            Content::ToolResult(result) => self.result(result)?,
        }
        Ok(())
    }

    fn thinking(&mut self, text: &str, seal: Option<&Seal>) {
        let own = seal.filter(|seal| seal.vendor == Vendor::Google);
        match own {
            None => self.notes.dropped("thinking", "another vendor's thinking means nothing here"),
            Some(seal) if text.is_empty() => self.pending = Some(seal.data.clone()),
            Some(seal) => self.parts.push(json!({
                "text": text, "thought": true, "thoughtSignature": seal.data,
            })),
        }
    }

    fn call(&mut self, call: &ToolCall) -> RequestResult<()> {
        let Some(args) = call.arguments_object() else {
            let problem = format!("has arguments of `{}` that are no JSON object", call.name);
            return Err(RequestFault::invalid("tool call", problem));
        };
        let (id, name) = (call.id.as_str().into(), call.name.as_str().into());
        let call_value = object([("id", id), ("name", name), ("args", args)]);
        let mut value = object([("functionCall", call_value)]);
        self.sign(&mut value, call.seal.as_ref());
        // Of parallel calls Gemini signs the first only.
        let is_first = !std::mem::replace(&mut self.has_called, true);
        let is_signed = value.get("thoughtSignature").is_some();
        if is_first && !is_signed && thinking::wants_signatures(self.target.model) {
            self.notes.rewritten("tool call", "another model's call was marked as such");
            value["thoughtSignature"] = signature::FOREIGN_CALL.into();
        }
        self.parts.push(value);
        Ok(())
    }

    fn sign(&mut self, value: &mut Value, seal: Option<&Seal>) {
        let own = seal.filter(|seal| seal.vendor == Vendor::Google).map(|seal| seal.data.clone());
        if seal.is_some() && own.is_none() {
            self.notes.dropped("signature", "another vendor's signature means nothing here");
        }
        if let Some(data) = own.or(self.pending.take()) {
            value["thoughtSignature"] = data.into();
        }
    }

    fn result(&mut self, result: &ToolResult) -> RequestResult<()> {
        let called = self.names.get(result.call_id.as_str()).copied();
        let known = result.name.as_deref().or(called);
        let Some(name) = known else {
            let problem = format!("answers the call `{}`, which is not there", result.call_id);
            return Err(RequestFault::invalid("tool result", problem));
        };
        let mut texts: Vec<&str> = Vec::new();
        let mut files = Vec::new();
        for part in &result.content {
            match &part.content {
                Content::Text(more) => texts.push(more),
                Content::Image { source, .. } => {
                    files.push(media(source, "image/jpeg", self.notes)?)
                }
                Content::Document { source, .. } => {
                    files.push(media(source, "application/pdf", self.notes)?);
                }
                _ => self.notes.dropped("tool result", "Gemini takes text and files only"),
            }
        }
        let text = texts.join("\n");
        let parsed = serde_json::from_str::<Value>(&text).ok().filter(Value::is_object);
        let response = match parsed {
            _ if result.is_error => json!({ "error": text }),
            Some(object) => object,
            None => json!({ "result": text }),
        };
        let (id, name) = (result.call_id.as_str().into(), name.into());
        let answer = object([("id", id), ("name", name), ("response", response)]);
        let mut value = object([("functionResponse", answer)]);
        if thinking::wants_signatures(self.target.model) {
            if !files.is_empty() {
                value["functionResponse"]["parts"] = files.into();
            }
            self.parts.push(value);
        } else {
            // Models before Gemini 3 take text only as a result: files stand beside it.
            if !files.is_empty() {
                self.notes.rewritten("tool result", "its files stand beside it");
            }
            self.parts.push(value);
            self.parts.extend(files);
        }
        Ok(())
    }

    fn finish(mut self) -> Vec<Value> {
        if let Some(signature) = self.pending.take() {
            self.parts.push(json!({"text": "", "thoughtSignature": signature}));
        }
        self.parts
    }
}

fn media(source: &MediaSource, usual: &'static str, notes: &mut Notes) -> RequestResult<Value> {
    Ok(match source {
        MediaSource::Base64 { media_type, data } => {
            json!({"inlineData": {"mimeType": media_type, "data": data}})
        }
        MediaSource::Text(text) => json!({ "text": text }),
        MediaSource::Url { url, media_type } => {
            let guessed = || {
                notes.rewritten("url", "its media type was guessed from its name");
                media_type::of_url(url).unwrap_or(usual).to_owned()
            };
            let media_type = media_type.clone().unwrap_or_else(guessed);
            json!({"fileData": {"mimeType": media_type, "fileUri": url}})
        }
        MediaSource::File { vendor: Vendor::Google, id } => json!({"fileData": {"fileUri": id}}),
        MediaSource::File { .. } => {
            return Err(RequestFault::impossible("a file that another vendor keeps"));
        }
    })
}

fn tools(request: &GenerationRequest, body: &mut Map<String, Value>, notes: &mut Notes) {
    let mut list: Vec<Value> = Vec::new();
    if !request.tools.is_empty() {
        let functions = request.tools.iter().map(|tool| declaration(tool, notes));
        list.push(object([("functionDeclarations", functions.collect())]));
    }
    for tool in &request.hosted_tools {
        if tool.vendor == Vendor::Google {
            list.push(tool.definition.clone());
        } else {
            notes.dropped(format!("tools.{}", tool.kind), "only its own vendor runs this tool");
        }
    }
    if list.is_empty() {
        return;
    }
    body.insert("tools".into(), list.into());
    if request.parallel_tools == Some(false) {
        notes.dropped("parallel_tool_calls", "Gemini cannot be told to call one tool at a time");
    }
    let calling = match &request.tool_choice {
        None => return,
        Some(ToolChoice::Auto) => json!({"mode": "AUTO"}),
        Some(ToolChoice::Disabled) => json!({"mode": "NONE"}),
        Some(ToolChoice::Required) => json!({"mode": "ANY"}),
        Some(ToolChoice::Named(name)) => json!({"mode": "ANY", "allowedFunctionNames": [name]}),
    };
    if !request.tools.is_empty() {
        body.insert("toolConfig".into(), json!({"functionCallingConfig": calling}));
    }
}

fn declaration(tool: &ToolDefinition, notes: &mut Notes) -> Value {
    if tool.is_strict == Some(true) {
        notes.dropped("strict", "Gemini has no such field");
    }
    let schema = match &tool.input {
        ToolInput::Schema(schema) => {
            let schema = schema.as_ref().filter(|schema| !schema::is_empty(schema));
            schema.map(|schema| schema::written(schema, notes))
        }
        ToolInput::FreeText(format) => {
            if format.is_some() {
                notes.dropped("format", "Gemini has no tools that take free text");
            }
            Some(json!({"type": "object", "properties": {"input": {"type": "string"}},
                "required": ["input"]}))
        }
    };
    let map = Map::from_iter([
        ("name".to_owned(), Value::from(tool.name.as_str())),
        ("description".to_owned(), Value::from(tool.description.clone())),
        ("parametersJsonSchema".to_owned(), schema.unwrap_or_default()),
    ]);
    without_nulls(map)
}

fn generation_config(
    request: &GenerationRequest,
    target: &TargetProfile<'_>,
    notes: &mut Notes,
) -> RequestResult<Map<String, Value>> {
    let mut config = sampling(&request.sampling, notes)?;
    if thinking::refuses_penalties(target.model) {
        for (key, name) in PENALTIES {
            let said = config.shift_remove(key).and_then(|figure| figure.as_f64());
            if said.is_some_and(|figure| figure != 0.0) {
                notes.dropped(name, "this model refuses it");
            }
        }
    }
    if let Some(reasoning) = &request.reasoning
        && let Some(value) = thinking::written(target.model, reasoning, notes)
    {
        config.insert("thinkingConfig".into(), value);
    }
    let has_tools = !request.tools.is_empty();
    if request.output != OutputFormat::Text {
        if has_tools && !thinking::wants_signatures(target.model) {
            let what = "an answer in JSON together with tools (models before Gemini 3)";
            return Err(RequestFault::impossible(what));
        }
        config.insert("responseMimeType".into(), "application/json".into());
    }
    if let OutputFormat::Schema(output) = &request.output {
        if output.description.is_some() {
            notes.dropped("json_schema.description", "Gemini has no such field");
        }
        let schema = schema::written(&output.schema, notes);
        config.insert("responseJsonSchema".into(), schema);
    }
    Ok(config)
}

fn sampling(sampling: &Sampling, notes: &mut Notes) -> RequestResult<Map<String, Value>> {
    if sampling.choices.is_some_and(|choices| choices > 1) {
        return Err(RequestFault::impossible("`n` above 1"));
    }
    let mut limited = |name: &str, value: Option<f64>, least: f64, most: f64| {
        let value = value?;
        let inside = value.clamp(least, most);
        if inside != value {
            notes.clamped(name, "outside of what Gemini takes");
        }
        Some(inside)
    };
    let temperature = limited("temperature", sampling.temperature, 0.0, 2.0);
    let top_p = limited("top_p", sampling.top_p, 0.0, 1.0);
    let frequency = limited("frequency_penalty", sampling.frequency_penalty, -2.0, 2.0);
    let presence = limited("presence_penalty", sampling.presence_penalty, -2.0, 2.0);
    let seed = sampling.seed.and_then(|seed| i32::try_from(seed).ok());
    if seed.is_none() && sampling.seed.is_some() {
        notes.dropped("seed", "Gemini takes 32 bits");
    }
    if sampling.stop.len() > MAX_STOPS {
        notes.clamped("stop", "Gemini takes five");
    }
    let stop: Vec<&String> = sampling.stop.iter().take(MAX_STOPS).collect();
    if sampling.logprobs.is_some_and(|count| count > MAX_LOGPROBS) {
        notes.clamped("top_logprobs", "Gemini tells at most twenty");
    }
    let alternatives = sampling.logprobs.filter(|count| *count > 0);
    let map = Map::from_iter([
        ("maxOutputTokens".to_owned(), json!(sampling.max_tokens)),
        ("temperature".to_owned(), json!(temperature)),
        ("topP".to_owned(), json!(top_p)),
        ("topK".to_owned(), json!(sampling.top_k)),
        ("frequencyPenalty".to_owned(), json!(frequency)),
        ("presencePenalty".to_owned(), json!(presence)),
        ("seed".to_owned(), json!(seed)),
        ("stopSequences".to_owned(), if stop.is_empty() { Value::Null } else { json!(stop) }),
        ("responseLogprobs".to_owned(), json!(sampling.logprobs.map(|_| true))),
        ("logprobs".to_owned(), json!(alternatives.map(|count| count.min(MAX_LOGPROBS)))),
    ]);
    Ok(match without_nulls(map) {
        Value::Object(map) => map,
        _ => Map::new(),
    })
}

fn note_the_rest(request: &GenerationRequest, notes: &mut Notes) {
    const NONE: &str = "Gemini has no such field";
    if request.user.is_some() {
        notes.dropped("user", NONE);
    }
    if request.has_cache_marks() {
        notes.dropped("cache_control", "Gemini caches without being told");
    }
    if request.prompt_cache_key.is_some() {
        notes.dropped("prompt_cache_key", NONE);
    }
    for key in request.other.keys() {
        notes.dropped(key, NONE);
    }
}
