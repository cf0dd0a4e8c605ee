//! What a message consists of: text, media, thinking, tool calls and tool results.
//!
//! How the dialects spell each [`Content`]:
//!
//! | content | Chat | Messages | Responses | Gemini |
//! |---|---|---|---|---|
//! | `Text` | `text` part or string | `text` block | `input_text`, `output_text` | `text` |
//! | `Image` | `image_url` | `image` | `input_image` | `inlineData`, `fileData` |
//! | `Document` | `file` | `document` | `input_file` | `inlineData`, `fileData` |
//! | `Audio` | `input_audio` | – | `input_audio` | `inlineData`, `fileData` |
//! | `Thinking` | `reasoning_content` | `thinking` | `reasoning` item | part with `thought` |
//! | `ToolCall` | `tool_calls[]` | `tool_use` | `function_call` item | `functionCall` |
//! | `ToolResult` | message `tool` | `tool_result` | `function_call_output` | `functionResponse` |
//! | `Refusal` | `refusal` | stop reason only | `refusal` part | stop reason only |

use serde_json::Value;

/// One piece of a message.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// What it says.
    pub content: Content,
    /// A marker that the prompt up to here should be cached (`cache_control` of Messages, also
    /// known by some Chat servers). Other dialects cache without being told.
    pub cache: Option<CacheMark>,
}

/// A cache marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheMark {
    /// How long, such as `5m` or `1h`; the provider's default without it.
    pub ttl: Option<String>,
}

/// What a part says.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Plain text.
    Text(String),
    /// A picture.
    Image {
        /// Where its bytes are.
        source: MediaSource,
        /// OpenAI's `detail` (`low`, `high`, `auto`).
        detail: Option<String>,
    },
    /// A file such as a PDF.
    Document {
        /// Where its bytes are.
        source: MediaSource,
        /// Its file name or title.
        name: Option<String>,
    },
    /// Sound.
    Audio(MediaSource),
    /// What the model thought before it answered. Never written as text of the answer.
    Thinking {
        /// The readable part; may be empty where a vendor shows none.
        text: String,
        /// What proves to its vendor that the thinking is its own.
        seal: Option<Seal>,
    },
    /// A call of a tool by the model (assistant messages only).
    ToolCall(ToolCall),
    /// The result of a tool call (user messages only; before any other content of the message).
    ToolResult(ToolResult),
    /// The model declines to answer, in words.
    Refusal(String),
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// The call's id. Gemini may give none: its reader makes one that is unique in the request.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments as JSON text, as the model wrote them. OpenAI dialects carry the text itself;
    /// Messages and Gemini an object, so a writer of these parses it, and an empty text is `{}`.
    pub arguments: String,
    /// Gemini signs calls (`thoughtSignature` beside `functionCall`); nobody else does.
    pub seal: Option<Seal>,
    /// Whether the tool takes free text: `arguments` is then that text and not JSON (a `custom`
    /// tool of OpenAI's; written as `{"input": text}` for dialects without such tools).
    pub is_free_text: bool,
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResult {
    /// The id of the call.
    pub call_id: String,
    /// The tool's name where the dialect says it (Gemini). Writers that need it look it up with
    /// [`super::request::GenerationRequest::tool_names`].
    pub name: Option<String>,
    /// Text and images. Chat takes text only.
    pub content: Vec<Part>,
    /// Whether the call failed. Only Messages has a field for it; others say it in the content.
    pub is_error: bool,
    /// Whether it answers a free-text tool's call.
    pub is_free_text: bool,
}

/// Where the bytes of an image, document or sound are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MediaSource {
    /// Inside the request, as base64.
    Base64 {
        /// The media type, such as `image/png`.
        media_type: String,
        /// The bytes, encoded.
        data: String,
    },
    /// On the web.
    Url {
        /// Its address.
        url: String,
        /// Its media type, where the dialect says it.
        media_type: Option<String>,
    },
    /// Plain text inside the request (a text document of Messages).
    Text(String),
    /// A file that the client uploaded to one vendor; no other vendor can read it.
    File {
        /// Who has it.
        vendor: Vendor,
        /// Its id there.
        id: String,
    },
}

impl MediaSource {
    /// Reads an address, which may be a `data:` one with the bytes inside. `None` for a `data:`
    /// one without a media type or not in base64, which no vendor takes.
    #[must_use]
    pub fn of_url(url: String) -> Option<Self> {
        let inline = url.strip_prefix("data:").and_then(|rest| {
            let (head, data) = rest.split_once(',')?;
            let media_type = head.strip_suffix(";base64")?.split(';').next()?;
            if media_type.is_empty() {
                return None;
            }
            Some(Self::Base64 { media_type: media_type.to_owned(), data: data.to_owned() })
        });
        if inline.is_none() && url.starts_with("data:") {
            return None;
        }
        Some(inline.unwrap_or(Self::Url { url, media_type: None }))
    }

    /// The address, with the bytes inside where they came with the request. `None` for text and
    /// for uploaded files.
    #[must_use]
    pub fn to_url(&self) -> Option<String> {
        match self {
            Self::Base64 { media_type, data } => Some(format!("data:{media_type};base64,{data}")),
            Self::Url { url, .. } => Some(url.clone()),
            Self::Text(_) | Self::File { .. } => None,
        }
    }
}

/// Who makes the models behind a dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vendor {
    /// Chat Completions and Responses.
    OpenAi,
    /// Messages.
    Anthropic,
    /// Gemini.
    Google,
}

impl Vendor {
    const ALL: [Self; 3] = [Self::OpenAi, Self::Anthropic, Self::Google];

    const fn word(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Google => "google",
        }
    }
}

/// What stands before the data of a seal that lies in another vendor's field.
pub const FOREIGN_SEAL: &str = "tidegate:";

/// What stands in the place of a seal where a dialect wants one and the thinking has none, so that
/// such thinking is recognised when it returns.
pub const NO_SEAL: &str = "tidegate:none";

/// An opaque proof by which a vendor recognises its own thinking: `signature` and the `data` of
/// `redacted_thinking` in Messages, `encrypted_content` in Responses, `thoughtSignature` in Gemini.
///
/// Only its vendor can use it, so a writer of a request for another vendor drops it with a note.
/// A writer of an answer keeps it in the client's dialect by [`Seal::in_dialect_of`], so that it
/// returns with the next request and is good again at its vendor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seal {
    /// Whose it is.
    pub vendor: Vendor,
    /// The data, as the vendor wrote it.
    pub data: String,
    /// Whether the thinking itself is inside (`redacted_thinking`, encrypted reasoning).
    pub is_content: bool,
}

impl Seal {
    /// Reads the field of a dialect of `native`, which may hold another vendor's seal.
    #[must_use]
    pub fn read(native: Vendor, text: String, is_content: bool) -> Self {
        let foreign = text.strip_prefix(FOREIGN_SEAL).and_then(|rest| {
            let (word, data) = rest.split_once(':')?;
            let (kind, data) = data.split_once(':')?;
            let vendor = Vendor::ALL.into_iter().find(|vendor| vendor.word() == word)?;
            Some(Self { vendor, data: data.to_owned(), is_content: kind == "content" })
        });
        foreign.unwrap_or(Self { vendor: native, data: text, is_content })
    }

    /// Reads a field that may also be empty or say that there is no seal.
    #[must_use]
    pub fn read_field(native: Vendor, text: String, is_content: bool) -> Option<Self> {
        let is_none = text.is_empty() || text == NO_SEAL;
        (!is_none).then(|| Self::read(native, text, is_content))
    }

    /// What stands in the field of a dialect of `native`: the data itself, or marked as another's.
    #[must_use]
    pub fn in_dialect_of(&self, native: Vendor) -> String {
        if self.vendor == native {
            return self.data.clone();
        }
        let kind = if self.is_content { "content" } else { "proof" };
        format!("{FOREIGN_SEAL}{}:{kind}:{}", self.vendor.word(), self.data)
    }
}

impl Part {
    /// A part without a cache marker.
    #[must_use]
    pub const fn new(content: Content) -> Self {
        Self { content, cache: None }
    }

    /// Plain text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(Content::Text(text.into()))
    }
}

impl ToolCall {
    /// The arguments as an object, for dialects that want one: an empty text is an empty object,
    /// free text is its field `input`. `None` if they are no JSON object.
    #[must_use]
    pub fn arguments_object(&self) -> Option<Value> {
        if self.is_free_text {
            return Some(serde_json::json!({ "input": self.arguments }));
        }
        if self.arguments.trim().is_empty() {
            return Some(Value::Object(serde_json::Map::new()));
        }
        serde_json::from_str(&self.arguments).ok().filter(Value::is_object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_survives_a_foreign_dialect() {
        let seal = Seal { vendor: Vendor::Google, data: "a:b==".into(), is_content: true };
        let foreign = seal.in_dialect_of(Vendor::Anthropic);
        assert_eq!(foreign, "tidegate:google:content:a:b==");
        assert_eq!(Seal::read(Vendor::Anthropic, foreign, false), seal);
        assert_eq!(seal.in_dialect_of(Vendor::Google), "a:b==");
        let odd = Seal::read(Vendor::Anthropic, "tidegate:nobody:x".into(), false);
        assert_eq!(odd.vendor, Vendor::Anthropic);
        assert_eq!(Seal::read_field(Vendor::Anthropic, NO_SEAL.into(), false), None);
    }
}
