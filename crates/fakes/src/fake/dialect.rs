//! One answer in each dialect: as one body, or as the events of a stream.
//!
//! The shapes are those that the vendors' official SDKs take for granted, every required field
//! included. Ids and times are made up but differ between answers; no clock is read, so the same
//! answer is the same bytes on every run.

mod chat;
mod completions;
mod gemini;
mod messages;
mod other;
mod responses;

use bytes::Bytes;
use serde_json::Value;

use super::answer::Answer;
use super::ask::{Ask, Dialect};

pub(super) use other::{model, models};

/// When everything was created: a made-up second.
const CREATED: u64 = 1_760_000_000;

/// The events of one stream, in order.
#[derive(Clone, Debug)]
pub(super) struct Events {
    /// What comes before any content.
    pub(super) opening: Vec<Bytes>,
    /// One for each piece of the answer.
    pub(super) tokens: Vec<Bytes>,
    /// What comes after the last content: reason, usage.
    pub(super) closing: Vec<Bytes>,
    /// What says that the answer is whole.
    pub(super) terminator: Bytes,
    /// An event that carries nothing.
    pub(super) ping: Bytes,
}

/// An answer as a stream.
pub(super) fn events(dialect: Dialect, answer: &Answer) -> Events {
    match dialect {
        Dialect::Messages => messages::events(answer),
        Dialect::Responses => responses::events(answer),
        Dialect::Completions => completions::events(answer),
        Dialect::Gemini => gemini::events(answer),
        Dialect::Chat
        | Dialect::GeminiCount
        | Dialect::GeminiEmbed
        | Dialect::GeminiBatch
        | Dialect::CountTokens
        | Dialect::Embeddings
        | Dialect::Speech
        | Dialect::Other => chat::events(answer),
    }
}

/// An answer as one body.
pub(super) fn whole(ask: &Ask, answer: &Answer) -> Value {
    match ask.dialect {
        Dialect::Chat => chat::whole(answer),
        Dialect::Completions => completions::whole(answer),
        Dialect::Responses => responses::whole(answer),
        Dialect::Messages => messages::whole(answer),
        Dialect::CountTokens => messages::count(answer),
        Dialect::Embeddings => other::embeddings(ask, answer),
        Dialect::Gemini => gemini::whole(answer),
        Dialect::GeminiCount => gemini::count(answer),
        Dialect::GeminiEmbed => gemini::embeddings(ask, &other::VECTOR, false),
        Dialect::GeminiBatch => gemini::embeddings(ask, &other::VECTOR, true),
        Dialect::Speech | Dialect::Other => other::whole(answer),
    }
}

/// An event without a name, as OpenAI's chat streams have them.
pub(super) fn data(value: &Value) -> Bytes {
    Bytes::from(format!("data: {value}\n\n"))
}

/// An event whose name is its data's `type`.
pub(super) fn typed(value: &Value) -> Bytes {
    let name = value.get("type").and_then(Value::as_str).unwrap_or("message");
    Bytes::from(format!("event: {name}\ndata: {value}\n\n"))
}
