//! Which dialect a request speaks, and what an event of its stream means.
//!
//! Before the first content of a stream a failure is invisible to the client; after its terminator
//! it is a success. So each event has a class, and the class is found by the event's name and a
//! look at the few bytes that decide, never by a tree.
//!
//! Rules (what is held back until the first content):
//! - Lifecycle: a role or an empty delta, `message_start`, the start of a block of every kind, a
//!   tool call's delta without arguments, the frames of the Responses API that only announce, the
//!   end of a block or a `finish_reason` alone.
//! - Content: a delta of text, arguments, thinking, reasoning or refusal that is not empty. Any
//!   text, list or object in a delta but its role or type counts, so a vendor's new one does too.
//! - Terminator: `[DONE]`, `message_stop`, `response.completed`, `response.incomplete`. Gemini has
//!   none: its chunks carry a `finishReason`, some versions in every chunk, and the stream ends.
//! - Error: ends the stream and is itself what the client may see; `response.failed` is one.
//! - Comments, pings and blank frames feed no timer.
//!
//! Conversion between dialects has its place beside this module ([`crate::convert`]).

use std::sync::LazyLock;

use memchr::memmem::Finder;

use crate::error_key::is_error;
use crate::frame::Frame;
use crate::gemini::{self, GeminiCall};
use crate::json::{Fault, Scanner, is_blank};

/// What a request speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// `/v1/chat/completions`.
    OpenAiChat,
    /// `/v1/completions`.
    OpenAiCompletions,
    /// `/v1/responses`.
    OpenAiResponses,
    /// `/v1/messages`.
    AnthropicMessages,
    /// JSON below `/v1/messages/`, such as `count_tokens`: Anthropic's errors, no streams.
    AnthropicJson,
    /// Any other JSON, such as embeddings: OpenAI's errors, no streams with a known end.
    Json,
    /// Gemini's `generateContent` and `streamGenerateContent`.
    Gemini,
    /// Any other path of Gemini's API, such as `countTokens`: Google's errors, no streams.
    GeminiJson,
}

/// What an event means for the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventClass {
    /// Announces; held until the first content.
    Lifecycle,
    /// Carries a part of the answer.
    Content,
    /// Ends the stream as the dialect wants it.
    Terminator,
    /// Ends the stream with an error of the upstream's.
    Error,
    /// A ping, a comment or a blank frame.
    Ping,
    /// Something this dialect does not know; held like a lifecycle event, and relayed.
    Other,
    /// Not JSON where JSON must stand ([`crate::watch`] finds it).
    Malformed,
}

static DELTA: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"delta\""));
static PARTS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"parts\""));
static TEXT: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"text\""));

impl Dialect {
    /// The dialect of a request path.
    #[must_use]
    pub fn of_path(path: &str) -> Self {
        match path {
            "/v1/chat/completions" => Self::OpenAiChat,
            "/v1/completions" => Self::OpenAiCompletions,
            "/v1/responses" => Self::OpenAiResponses,
            "/v1/messages" => Self::AnthropicMessages,
            _ if path.starts_with("/v1/messages/") => Self::AnthropicJson,
            _ if gemini::is_path(path) => {
                let generates = GeminiCall::of_path(path).is_some_and(|it| it.method.generates());
                if generates { Self::Gemini } else { Self::GeminiJson }
            }
            _ => Self::Json,
        }
    }

    /// Whether a stream is only whole when its terminator was seen, or, of Gemini's, which has no
    /// event of that kind, the reason why every candidate ended.
    #[must_use]
    pub const fn has_terminator(self) -> bool {
        !matches!(self, Self::Json | Self::AnthropicJson | Self::GeminiJson)
    }

    /// Whether every answer that does not stream is a JSON object.
    #[must_use]
    pub const fn answers_with_object(self) -> bool {
        !matches!(self, Self::Json)
    }

    /// Whether clients of this dialect expect Anthropic's shapes.
    #[must_use]
    pub const fn is_anthropic(self) -> bool {
        matches!(self, Self::AnthropicMessages | Self::AnthropicJson)
    }

    /// The class of an event. Of a frame that is not whole, what its beginning says.
    #[must_use]
    pub fn class(self, frame: &Frame<'_>) -> EventClass {
        let name = frame.name.unwrap_or_default();
        let Some(data) = frame.data() else { return EventClass::Ping };
        match self {
            Self::OpenAiChat => chat(name, &data, &DELTA),
            Self::OpenAiCompletions => chat(name, &data, &TEXT),
            Self::OpenAiResponses => responses(name, &data),
            Self::AnthropicMessages => messages(name, &data),
            Self::Gemini => gemini(name, &data),
            Self::AnthropicJson | Self::Json | Self::GeminiJson => plain(name, &data),
        }
    }
}

fn is_done(data: &[u8]) -> bool {
    data.trim_ascii() == b"[DONE]"
}

/// Chat and plain completions: chunks without a name, and `[DONE]`.
fn chat(name: &[u8], data: &[u8], key: &Finder<'_>) -> EventClass {
    if is_done(data) {
        EventClass::Terminator
    } else if name == b"error" || is_error(data) {
        EventClass::Error
    } else if values(data, key).any(carries) {
        EventClass::Content
    } else {
        EventClass::Lifecycle
    }
}

fn messages(name: &[u8], data: &[u8]) -> EventClass {
    let named = kind_of(name, data);
    match named {
        b"content_block_delta" if values(data, &DELTA).any(carries) => EventClass::Content,
        b"message_start"
        | b"content_block_start"
        | b"content_block_delta"
        | b"content_block_stop"
        | b"message_delta" => EventClass::Lifecycle,
        b"message_stop" => EventClass::Terminator,
        b"ping" => EventClass::Ping,
        b"error" => EventClass::Error,
        _ if is_error(data) => EventClass::Error,
        _ => EventClass::Other,
    }
}

/// What an event is called; `message` is the name of those without one.
fn kind_of<'a>(name: &'a [u8], data: &'a [u8]) -> &'a [u8] {
    if name.is_empty() || name == b"message" { type_of(data) } else { name }
}

fn responses(name: &[u8], data: &[u8]) -> EventClass {
    let named = kind_of(name, data);
    match named {
        b"response.completed" | b"response.incomplete" => EventClass::Terminator,
        b"response.failed" | b"response.cancelled" | b"error" => EventClass::Error,
        b"ping" | b"keepalive" => EventClass::Ping,
        _ if named.ends_with(b".delta") => {
            let has_content = values(data, &DELTA).any(carries);
            if has_content { EventClass::Content } else { EventClass::Lifecycle }
        }
        // What is done is repeated whole, so it counts even where no delta came before it.
        _ if named.ends_with(b".done") || named.ends_with(b".partial_image") => EventClass::Content,
        _ if named.starts_with(b"response.") => EventClass::Lifecycle,
        _ if is_error(data) => EventClass::Error,
        _ => EventClass::Other,
    }
}

/// Gemini: chunks without a name. A chunk without anything in its parts announces, or tells only
/// why the answer ended.
fn gemini(name: &[u8], data: &[u8]) -> EventClass {
    if name == b"error" || is_error(data) {
        EventClass::Error
    } else if values(data, &PARTS).any(|parts| any_part_carries(parts).unwrap_or(false)) {
        EventClass::Content
    } else {
        EventClass::Lifecycle
    }
}

/// Whether a list of parts has one that brings something. A part that breaks off is judged by what
/// is there.
fn any_part_carries(parts: &[u8]) -> Result<bool, Fault> {
    let mut scanner = Scanner::of_answer(parts);
    if scanner.peek() != Some(b'[') {
        return Ok(false);
    }
    let mut walk = scanner.enter(b'[')?;
    while scanner.next_element(&mut walk)? {
        if carries(scanner.rest()) {
            return Ok(true);
        }
        scanner.skip_value()?;
    }
    Ok(false)
}

fn plain(name: &[u8], data: &[u8]) -> EventClass {
    if is_done(data) {
        EventClass::Terminator
    } else if name == b"error" || is_error(data) {
        EventClass::Error
    } else {
        EventClass::Content
    }
}

/// The texts that start at the value of each key that `key` finds. Inside a string the quotes
/// would be escaped, so what is found is a key or a value of this name.
fn values<'a>(data: &'a [u8], key: &Finder<'_>) -> impl Iterator<Item = &'a [u8]> {
    let len = key.needle().len();
    key.find_iter(data).filter_map(move |at| {
        let rest = data[at + len..].trim_ascii_start().strip_prefix(b":")?;
        Some(rest.trim_ascii_start())
    })
}

/// Whether a value carries something: a string that is not empty, or an object with a field that
/// does, its role and type aside.
fn carries(value: &[u8]) -> bool {
    if value.first() != Some(&b'{') {
        return !is_blank(value);
    }
    // A text that breaks off is judged by what is there, and it carried nothing up to there.
    object_carries(value).unwrap_or(false)
}

fn object_carries(value: &[u8]) -> Result<bool, Fault> {
    let mut scanner = Scanner::of_answer(value);
    let mut walk = scanner.enter(b'{')?;
    while let Some(key) = scanner.next_key(&mut walk)? {
        if key.is("tool_calls") || key.is("function_call") {
            if brings_arguments(&mut scanner)? {
                return Ok(true);
            }
            continue;
        }
        let is_figure = !matches!(scanner.peek(), Some(b'"' | b'[' | b'{'));
        if !key.is("role") && !key.is("type") && !is_figure && !is_blank(scanner.rest()) {
            return Ok(true);
        }
        scanner.skip_value()?;
    }
    Ok(false)
}

/// Whether a tool call, or a list of them, brings a part of its arguments. Its id and name alone
/// announce: another target can still make the call instead.
fn brings_arguments(scanner: &mut Scanner<'_>) -> Result<bool, Fault> {
    match scanner.peek() {
        Some(b'[') => {
            let mut walk = scanner.enter(b'[')?;
            while scanner.next_element(&mut walk)? {
                if brings_arguments(scanner)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        Some(b'{') => {
            let mut walk = scanner.enter(b'{')?;
            while let Some(key) = scanner.next_key(&mut walk)? {
                let is_input = key.is("arguments") || key.is("input");
                if (is_input && !is_blank(scanner.rest())) || brings_arguments(scanner)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        _ => scanner.skip_value().map(|()| false),
    }
}

/// The `type` of an object, or nothing.
fn type_of(data: &[u8]) -> &[u8] {
    let find = || {
        let mut scanner = Scanner::of_answer(data);
        let mut walk = scanner.enter(b'{')?;
        while let Some(key) = scanner.next_key(&mut walk)? {
            if key.is("type") && scanner.peek() == Some(b'"') {
                let span = scanner.string()?.span();
                return Ok(&data[span.start + 1..span.end - 1]);
            }
            scanner.skip_value()?;
        }
        Ok::<&[u8], Fault>(&[])
    };
    find().unwrap_or_default()
}

#[cfg(test)]
mod tests;
