//! The four dialects: their samples and their readers.

use std::path::Path;

use serde_json::{Value, json};
use tidegate_wire::dialect::Dialect;

use crate::asked::Asked;
use crate::readers::{chat, gemini, messages, responses};
use crate::seen::{Seen, frames};

/// A dialect, as a client or as a provider speaks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spoken {
    Chat,
    Responses,
    Messages,
    Gemini,
}

impl Spoken {
    pub(crate) const ALL: [Self; 4] = [Self::Chat, Self::Responses, Self::Messages, Self::Gemini];

    pub(crate) const fn dialect(self) -> Dialect {
        match self {
            Self::Chat => Dialect::OpenAiChat,
            Self::Responses => Dialect::OpenAiResponses,
            Self::Messages => Dialect::AnthropicMessages,
            Self::Gemini => Dialect::Gemini,
        }
    }

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Chat => "Chat",
            Self::Responses => "Responses",
            Self::Messages => "Messages",
            Self::Gemini => "Gemini",
        }
    }

    /// A model of the provider's, and its host.
    pub(crate) const fn model(self) -> (&'static str, &'static str) {
        match self {
            Self::Chat | Self::Responses => ("gpt-5.1", "api.openai.com"),
            Self::Messages => ("claude-sonnet-4-5", "api.anthropic.com"),
            Self::Gemini => ("gemini-2.5-flash", "generativelanguage.googleapis.com"),
        }
    }

    /// The same for this request: OpenAI's reasoning models take no stop sequences in Chat
    /// Completions, so such a request is for one that does not reason.
    pub(crate) fn model_for(self, body: &[u8]) -> (&'static str, &'static str) {
        let (model, host) = self.model();
        let stops = String::from_utf8_lossy(body).contains("\"stop");
        if self == Self::Chat && stops { ("gpt-4.1", host) } else { (model, host) }
    }

    /// A file of `tests/dialects`.
    pub(crate) fn sample(self, file: &str) -> Vec<u8> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/dialects");
        let path = root.join(self.title().to_lowercase()).join(file);
        std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// The request of a case, with what its dialect wants for a stream.
    pub(crate) fn request(self, case: &str, is_stream: bool) -> Value {
        let mut body = parse(&self.sample(&format!("{case}.request.json")));
        if is_stream && self != Self::Gemini {
            body["stream"] = json!(true);
        }
        if is_stream && self == Self::Chat {
            body["stream_options"] = json!({"include_usage": true});
        }
        body
    }

    pub(crate) fn asked(self, body: &Value) -> Asked {
        match self {
            Self::Chat => chat::asked(body),
            Self::Responses => responses::asked(body),
            Self::Messages => messages::asked(body),
            Self::Gemini => gemini::asked(body),
        }
    }

    pub(crate) fn seen(self, body: &[u8]) -> Result<Seen, String> {
        let body = parse(body);
        match self {
            Self::Chat => chat::seen(&body),
            Self::Responses => responses::seen(&body),
            Self::Messages => messages::seen(&body),
            Self::Gemini => gemini::seen(&body),
        }
    }

    pub(crate) fn streamed(self, stream: &[u8]) -> Result<Seen, String> {
        let frames = frames(stream);
        match self {
            Self::Chat => chat::streamed(&frames),
            Self::Responses => responses::streamed(&frames),
            Self::Messages => messages::streamed(&frames),
            Self::Gemini => gemini::streamed(&frames),
        }
    }

    pub(crate) fn error(self, body: &[u8]) -> Option<(String, String)> {
        let body = parse(body);
        match self {
            Self::Chat => chat::error(&body),
            Self::Responses => responses::error(&body),
            Self::Messages => messages::error(&body),
            Self::Gemini => gemini::error(&body),
        }
    }
}

/// JSON that is known to be some.
pub(crate) fn parse(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).expect("JSON")
}
