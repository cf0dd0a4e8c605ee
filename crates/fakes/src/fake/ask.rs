//! What a fake understands of a request.
//!
//! Rules kept here:
//! - Lenient: a field that is missing or of another type counts as absent. Only a body that is
//!   neither a JSON object nor a form is refused.
//! - [`Glance`] looks at the top of the body without building a tree, for benches; [`Ask`] reads
//!   what an answer echoes.
//!
//! Whether a request is *valid* for a vendor is not checked here.

mod gemini;

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tidegate_wire::{
    gemini::{GeminiCall, GeminiMethod},
    head::RequestHead,
};

/// Which shape the answer has, by the end of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    Chat,
    Completions,
    Responses,
    Messages,
    CountTokens,
    Embeddings,
    /// Gemini's answers, as one body or as a stream.
    Gemini,
    GeminiCount,
    GeminiEmbed,
    GeminiBatch,
    /// Text to audio: the answer is not JSON.
    Speech,
    /// Any other request, JSON or a form.
    Other,
}

impl Dialect {
    pub(super) fn of(path: &str) -> Self {
        let path = path.trim_end_matches('/');
        if let Some(call) = gemini_call(path) {
            return match call.method {
                GeminiMethod::GenerateContent | GeminiMethod::StreamGenerateContent => Self::Gemini,
                GeminiMethod::CountTokens => Self::GeminiCount,
                GeminiMethod::EmbedContent => Self::GeminiEmbed,
                GeminiMethod::BatchEmbedContents => Self::GeminiBatch,
            };
        }
        match () {
            () if path.ends_with("/chat/completions") => Self::Chat,
            () if path.ends_with("/completions") => Self::Completions,
            () if path.ends_with("/responses") => Self::Responses,
            () if path.ends_with("/messages") => Self::Messages,
            () if path.ends_with("/messages/count_tokens") => Self::CountTokens,
            () if path.ends_with("/embeddings") => Self::Embeddings,
            () if path.ends_with("/audio/speech") => Self::Speech,
            () => Self::Other,
        }
    }

    pub(super) const fn is_anthropic(self) -> bool {
        matches!(self, Self::Messages | Self::CountTokens)
    }

    pub(super) const fn is_google(self) -> bool {
        matches!(self, Self::Gemini | Self::GeminiCount | Self::GeminiEmbed | Self::GeminiBatch)
    }

    const fn can_stream(self) -> bool {
        matches!(
            self,
            Self::Chat | Self::Completions | Self::Responses | Self::Messages | Self::Gemini
        )
    }
}

/// The call that a path of Gemini's API names, below any base path.
pub(super) fn gemini_call(path: &str) -> Option<GeminiCall<'_>> {
    GeminiCall::of_path(&path[path.find("/v1beta/models/")?..])
}

/// The little that a plain fake needs to know.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Glance<'a> {
    #[serde(borrow)]
    pub(super) model: Option<Cow<'a, str>>,
    pub(super) stream: bool,
}

/// A request as far as an answer depends on it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ask {
    pub(super) dialect: Dialect,
    pub(super) model: String,
    pub(super) is_stream: bool,
    pub(super) wants_usage: bool,
    /// The tool to call, if the client asks for a call.
    pub(super) tool: Option<ToolCall>,
    /// The last thing that was said.
    pub(super) text: String,
    pub(super) images: usize,
    pub(super) input_tokens: u64,
    /// How many texts to embed.
    pub(super) inputs: usize,
    pub(super) wants_base64: bool,
}

/// A call of a tool that the client offers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ToolCall {
    pub(super) name: String,
    pub(super) arguments: Value,
}

/// In the last message, these words ask for a tool call.
const TOOL_MARK: &str = "use the tool";

/// The most texts that are embedded in one answer: OpenAI's own limit.
const MAX_INPUTS: usize = 2048;

impl Ask {
    /// Reads a request; none if the body is not a JSON object.
    pub(super) fn read(dialect: Dialect, body: &[u8]) -> Option<Self> {
        let Ok(Value::Object(mut root)) = serde_json::from_slice(body) else { return None };
        if dialect.is_google() {
            root = gemini::translated(&root);
        }
        let last = last_said(dialect, &root);
        let parts = last.get("content").unwrap_or(last);
        let text = text_of(parts);
        let is_stream = root.get("stream").and_then(Value::as_bool).unwrap_or_default();
        let usage = root.get("stream_options").and_then(|it| it.get("include_usage"));
        Some(Self {
            dialect,
            model: root.get("model").and_then(Value::as_str).unwrap_or_default().to_owned(),
            is_stream: is_stream && dialect.can_stream(),
            wants_usage: usage.and_then(Value::as_bool).unwrap_or_default(),
            tool: tool_call(&root, last, &text),
            images: images_in(parts),
            text,
            // About four bytes a token, as everybody estimates.
            input_tokens: body.len() as u64 / 4 + 1,
            inputs: root.get("input").and_then(Value::as_array).map_or(1, Vec::len).min(MAX_INPUTS),
            wants_base64: root.get("encoding_format").is_some_and(|it| it == "base64"),
        })
    }

    /// The same request with the model and the stream that its path names, as Gemini's does.
    pub(super) fn named_by(self, path: &str) -> Self {
        let Some(call) = gemini_call(path) else { return self };
        let is_stream = call.method == GeminiMethod::StreamGenerateContent;
        Self { model: call.model.to_owned(), is_stream, ..self }
    }

    /// Reads a request that is a form; none if it is no form with this boundary.
    pub(super) fn read_form(dialect: Dialect, body: &[u8], boundary: &[u8]) -> Option<Self> {
        let head = RequestHead::read_form(body, boundary).ok()?;
        let model = head.model.map(|model| model.name).unwrap_or_default();
        let text = format!("a form of {} bytes", body.len());
        Some(Self { text, ..Self::blank(dialect, &model, false) })
    }

    /// A request of which nothing is known but the way in.
    pub(super) fn blank(dialect: Dialect, model: &str, is_stream: bool) -> Self {
        Self {
            dialect,
            model: model.to_owned(),
            is_stream: is_stream && dialect.can_stream(),
            wants_usage: false,
            tool: None,
            text: String::new(),
            images: 0,
            input_tokens: 1,
            inputs: 1,
            wants_base64: false,
        }
    }
}

/// The last message, prompt or input.
fn last_said(dialect: Dialect, root: &Map<String, Value>) -> &Value {
    let key = match dialect {
        Dialect::Chat
        | Dialect::Messages
        | Dialect::CountTokens
        | Dialect::Gemini
        | Dialect::GeminiCount => "messages",
        Dialect::Completions => "prompt",
        Dialect::Responses
        | Dialect::Embeddings
        | Dialect::GeminiEmbed
        | Dialect::GeminiBatch
        | Dialect::Speech
        | Dialect::Other => "input",
    };
    match root.get(key) {
        Some(Value::Array(list)) => list.last().unwrap_or(&Value::Null),
        Some(one) => one,
        None => &Value::Null,
    }
}

/// All text of a message's content: a string, or parts.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part.get("text").or(part.get("content")));
            texts.filter_map(Value::as_str).collect::<Vec<_>>().join(" ")
        }
        // The result of a tool, as the Responses dialect gives it back.
        Value::Object(item) => {
            item.get("output").and_then(Value::as_str).unwrap_or_default().to_owned()
        }
        _ => String::new(),
    }
}

fn images_in(content: &Value) -> usize {
    let kinds = ["image_url", "image", "input_image"];
    let is_image = |part: &&Value| part.get("type").is_some_and(|it| kinds.iter().any(|k| it == k));
    content.as_array().map_or(0, |parts| parts.iter().filter(is_image).count())
}

fn tool_call(root: &Map<String, Value>, last: &Value, text: &str) -> Option<ToolCall> {
    let tools = root.get("tools").and_then(Value::as_array)?;
    let choice = root.get("tool_choice").unwrap_or(&Value::Null);
    if choice == "none" || choice.get("type").is_some_and(|kind| kind == "none") {
        return None;
    }
    let named = choice.get("name").or_else(|| choice.get("function")?.get("name"));
    let named = named.and_then(Value::as_str);
    let is_any = choice == "required" || choice.get("type").is_some_and(|kind| kind == "any");
    let is_user = last.get("role").is_none_or(|role| role == "user");
    if named.is_none() && !is_any && !(is_user && text.contains(TOOL_MARK)) {
        return None;
    }
    // Chat nests the function, the others do not.
    let functions = tools.iter().map(|tool| tool.get("function").unwrap_or(tool));
    let mut known = functions.filter(|tool| tool.get("name").is_some());
    let tool = known.find(|tool| named.is_none_or(|name| tool["name"] == name))?;
    let schema = tool.get("parameters").or(tool.get("input_schema")).unwrap_or(&Value::Null);
    Some(ToolCall { name: tool["name"].as_str()?.to_owned(), arguments: sample(schema) })
}

/// Arguments that fit a tool's schema, one level deep.
fn sample(schema: &Value) -> Value {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return json!({});
    };
    let value = |property: &Value| {
        if let Some(first) = property.get("enum").and_then(|it| it.get(0)) {
            return first.clone();
        }
        match property.get("type").and_then(Value::as_str) {
            Some("integer" | "number") => json!(1),
            Some("boolean") => json!(true),
            Some("array") => json!([]),
            Some("object") => json!({}),
            _ => json!("high tide"),
        }
    };
    properties.iter().map(|(name, property)| (name.clone(), value(property))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(dialect: Dialect, body: Value) -> Ask {
        Ask::read(dialect, body.to_string().as_bytes()).expect("an object")
    }

    #[test]
    fn the_path_tells_the_dialect() {
        let cases = [
            ("/v1/chat/completions", Dialect::Chat),
            ("/v1/completions", Dialect::Completions),
            ("/openai/v1/responses", Dialect::Responses),
            ("/v1/messages", Dialect::Messages),
            ("/v1/messages/count_tokens", Dialect::CountTokens),
            ("/v1/embeddings/", Dialect::Embeddings),
            ("/v1/audio/speech", Dialect::Speech),
            ("/v1/moderations", Dialect::Other),
            ("/v1beta/models/flash:streamGenerateContent", Dialect::Gemini),
            ("/base/v1beta/models/flash:countTokens", Dialect::GeminiCount),
            ("/v1beta/models/e:batchEmbedContents", Dialect::GeminiBatch),
            ("", Dialect::Other),
        ];
        for (path, dialect) in cases {
            assert_eq!(Dialect::of(path), dialect, "{path}");
        }
    }

    #[test]
    fn the_last_text_is_found_in_every_dialect() {
        let messages = json!({"messages": [
            {"role": "user", "content": "first"},
            {"role": "user", "content": [{"type": "text", "text": "last"}, {"type": "image"}]},
        ]});
        let chat = read(Dialect::Chat, messages.clone());
        assert_eq!((chat.text.as_str(), chat.images), ("last", 1));
        assert_eq!(read(Dialect::Messages, messages).text, "last");
        assert_eq!(read(Dialect::Responses, json!({"input": "last"})).text, "last");
        let items = json!({"input": [{"role": "user",
            "content": [{"type": "input_text", "text": "last"}]}]});
        assert_eq!(read(Dialect::Responses, items).text, "last");
        assert_eq!(read(Dialect::Completions, json!({"prompt": ["a", "last"]})).text, "last");
        assert_eq!(read(Dialect::Embeddings, json!({"input": ["a", "last"]})).inputs, 2);
    }

    #[test]
    fn a_tool_is_called_when_the_words_or_the_choice_ask_for_it() {
        let ask = |text: &str, choice: Value| {
            let schema = json!({"properties": {"city": {"type": "string"}}});
            let tools = json!([{"function": {"name": "weather", "parameters": schema}}]);
            let messages = json!([{"role": "user", "content": text}]);
            let body = json!({"tools": tools, "tool_choice": choice, "messages": messages});
            read(Dialect::Chat, body).tool.map(|tool| (tool.name, tool.arguments))
        };
        let called = Some(("weather".to_owned(), json!({"city": "high tide"})));
        assert_eq!(ask("please use the tool", Value::Null), called);
        assert_eq!(ask("hello", json!("required")), called);
        assert_eq!(ask("hello", json!({"function": {"name": "weather"}})), called);
        assert_eq!(ask("hello", Value::Null), None);
        assert_eq!(ask("please use the tool", json!("none")), None);
        assert_eq!(ask("hello", json!({"type": "tool", "name": "other"})), None);
    }

    #[test]
    fn a_body_that_makes_no_sense_is_refused_or_read_as_nothing() {
        let deep = "[".repeat(100_000);
        for body in ["", "[]", "3", "{", "\u{0}", deep.as_str()] {
            assert_eq!(Ask::read(Dialect::Chat, body.as_bytes()), None);
        }
        let odd = json!({"model": 3, "stream": "yes", "messages": {"a": 1}, "tools": [3, {}]});
        let ask = read(Dialect::Chat, odd);
        assert_eq!((ask.model.as_str(), ask.is_stream, ask.tool), ("", false, None));
    }
}
