//! The formats that a request can be converted to, as far as routing cares.
//!
//! A request comes in one of them and can be converted to others. Which conversions exist is for
//! the wire crate to say ([`crate::route::Needs::converts_to`]); which one a target gets is decided
//! here, once, for the data plane, the simulator and every prediction.

use serde::{Deserialize, Serialize};

use crate::settings::{Kind, Protocol};

/// A format of requests for generated text, embeddings or counts of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WireFormat {
    /// OpenAI's chat completions.
    Chat,
    /// OpenAI's responses.
    Responses,
    /// Anthropic's messages.
    Messages,
    /// Google's `generateContent`.
    Gemini,
    /// OpenAI's embeddings.
    OpenAiEmbeddings,
    /// Google's `batchEmbedContents`.
    GeminiEmbeddings,
    /// Anthropic's `count_tokens`.
    MessagesCount,
    /// Google's `countTokens`.
    GeminiCount,
}

impl WireFormat {
    /// All of them, in the order in which a conversion is chosen.
    pub const ALL: [Self; 8] = [
        Self::Chat,
        Self::Responses,
        Self::Messages,
        Self::Gemini,
        Self::OpenAiEmbeddings,
        Self::GeminiEmbeddings,
        Self::MessagesCount,
        Self::GeminiCount,
    ];

    /// Whose protocol it belongs to.
    #[must_use]
    pub const fn protocol(self) -> Protocol {
        match self {
            Self::Chat | Self::Responses | Self::OpenAiEmbeddings => Protocol::OpenAi,
            Self::Messages | Self::MessagesCount => Protocol::Anthropic,
            Self::Gemini | Self::GeminiEmbeddings | Self::GeminiCount => Protocol::Gemini,
        }
    }

    /// The kind of request it is there, where the protocol has several.
    #[must_use]
    pub const fn kind(self) -> Option<Kind> {
        match self {
            Self::Chat => Some(Kind::Chat),
            Self::Responses => Some(Kind::Responses),
            Self::OpenAiEmbeddings => Some(Kind::Embeddings),
            Self::Messages
            | Self::Gemini
            | Self::GeminiEmbeddings
            | Self::MessagesCount
            | Self::GeminiCount => None,
        }
    }
}

/// A set of formats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WireFormats(u8);

impl WireFormats {
    /// These and one more.
    #[must_use]
    pub const fn with(self, format: WireFormat) -> Self {
        Self(self.0 | (1 << format as u8))
    }

    /// These but one.
    #[must_use]
    pub const fn without(self, format: WireFormat) -> Self {
        Self(self.0 & !(1 << format as u8))
    }

    /// Whether a format is among them.
    #[must_use]
    pub const fn has(self, format: WireFormat) -> bool {
        self.0 & (1 << format as u8) != 0
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0 == 0
    }
}

impl FromIterator<WireFormat> for WireFormats {
    fn from_iter<I: IntoIterator<Item = WireFormat>>(formats: I) -> Self {
        formats.into_iter().fold(Self::default(), Self::with)
    }
}

/// How a request is sent to a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SentAs {
    /// As it came.
    AsItCame,
    /// Converted to this format.
    Converted(WireFormat),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_that_is_named_twice_is_among_them_once() {
        let twice = WireFormats::default().with(WireFormat::Chat).with(WireFormat::Chat);
        assert!(twice.has(WireFormat::Chat));
        assert!(twice.without(WireFormat::Chat).is_empty());
    }
}
