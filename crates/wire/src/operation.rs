//! What a request asks for, by its path: which paths are forwarded, and as what.
//!
//! A provider's key opens more than inference: files, fine-tuning, the keys of an organisation. So
//! only paths of this list are forwarded, and any other path below `/v1/` only to a provider whose
//! config says that it serves them too.
//!
//! Rules:
//! - A path is compared as it came. What it looks like after decoding does not matter, because a
//!   path with escapes is refused before anybody asks here.
//! - Files are uploaded as forms (`multipart/form-data`) to the paths of images and audio only.
//!
//! Left to others: which target serves a kind of request (the core), what a body says
//! ([`crate::head`]).

use tidegate_core::route::Needs;
use tidegate_core::settings::{Kind, Protocol};

use crate::convert::exchange::formats_for;
use crate::gemini;

/// What a POST asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// `/v1/chat/completions`.
    ChatCompletions,
    /// `/v1/responses`.
    Responses,
    /// `/v1/embeddings`.
    Embeddings,
    /// `/v1/completions`.
    Completions,
    /// `/v1/messages` and `/v1/messages/count_tokens`.
    Messages,
    /// Images and audio, which take JSON or a form.
    Media,
    /// Other known kinds of inference: [`RELAYED`].
    Relayed,
    /// Any other path below `/v1/`.
    Unlisted,
    /// Gemini's: `/v1beta/models/{model}:{method}`, or the same below `/v1/`.
    Gemini,
}

/// Known paths of inference that take JSON and are forwarded as they came.
pub const RELAYED: [&str; 5] =
    ["/v1/moderations", "/v1/rerank", "/v1/score", "/v1/classify", "/v1/ocr"];

/// Below these every path is one of inference.
pub const MEDIA: [&str; 2] = ["/v1/images/", "/v1/audio/"];

/// What a path asks of a target; nothing where it is none of inference.
#[must_use]
pub fn needs_of_path(path: &str) -> Needs {
    Operation::of_path(path).map_or_else(Needs::default, |operation| operation.needs(path))
}

impl Operation {
    /// The operation of a path, if it can have one.
    #[must_use]
    pub fn of_path(path: &str) -> Option<Self> {
        Some(match path {
            "/v1/chat/completions" => Self::ChatCompletions,
            "/v1/responses" => Self::Responses,
            "/v1/embeddings" => Self::Embeddings,
            "/v1/completions" => Self::Completions,
            "/v1/messages" | "/v1/messages/count_tokens" => Self::Messages,
            _ if RELAYED.contains(&path) => Self::Relayed,
            _ if MEDIA.iter().any(|start| path.starts_with(start)) => Self::Media,
            _ if gemini::is_path(path) => Self::Gemini,
            _ if path.starts_with("/v1/") => Self::Unlisted,
            _ => return None,
        })
    }

    /// What a target must be able to do to be sent a request for this path: to speak the client's
    /// protocol, or one that the request can be converted to.
    #[must_use]
    pub fn needs(self, path: &str) -> Needs {
        let (protocol, kind) = match self {
            Self::ChatCompletions => (Protocol::OpenAi, Some(Kind::Chat)),
            Self::Responses => (Protocol::OpenAi, Some(Kind::Responses)),
            Self::Embeddings => (Protocol::OpenAi, Some(Kind::Embeddings)),
            Self::Completions => (Protocol::OpenAi, Some(Kind::Completions)),
            Self::Messages => (Protocol::Anthropic, None),
            Self::Media | Self::Relayed => (Protocol::OpenAi, Some(Kind::Relayed)),
            Self::Unlisted if path.starts_with("/v1/messages/") => {
                (Protocol::Anthropic, Some(Kind::Other))
            }
            Self::Unlisted => (Protocol::OpenAi, Some(Kind::Other)),
            Self::Gemini => (Protocol::Gemini, None),
        };
        let converts_to = formats_for(path);
        Needs { protocol: Some(protocol), kind, converts_to, ..Needs::default() }
    }

    /// Whether a request may come as a form.
    #[must_use]
    pub const fn takes_forms(self) -> bool {
        matches!(self, Self::Media)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_of_inference_are_listed() {
        let cases = [
            ("/v1/chat/completions", Some(Operation::ChatCompletions)),
            ("/v1/messages/count_tokens", Some(Operation::Messages)),
            ("/v1/moderations", Some(Operation::Relayed)),
            ("/v1/ocr", Some(Operation::Relayed)),
            ("/v1/images/edits", Some(Operation::Media)),
            ("/v1/audio/transcriptions", Some(Operation::Media)),
            ("/v1/images", Some(Operation::Unlisted)),
            ("/v1/audio_keys", Some(Operation::Unlisted)),
            ("/v1/moderations/x", Some(Operation::Unlisted)),
            ("/v1/messages/batches", Some(Operation::Unlisted)),
            ("/v1/fine_tuning/jobs", Some(Operation::Unlisted)),
            ("/v1/organization/admin_api_keys", Some(Operation::Unlisted)),
            ("/v1beta/models/gemini-pro:generateContent", Some(Operation::Gemini)),
            ("/v1/models/gemini-pro:generateContent", Some(Operation::Gemini)),
            ("/v1", None),
            ("/V1/chat/completions", None),
            ("/v2/chat/completions", None),
        ];
        for (path, operation) in cases {
            assert_eq!(Operation::of_path(path), operation, "{path}");
        }
    }

    #[test]
    fn an_unlisted_path_needs_a_target_that_serves_others() {
        let needs = |path: &str| Operation::Unlisted.needs(path);
        let batches = needs("/v1/messages/batches");
        assert_eq!(batches.protocol, Some(Protocol::Anthropic));
        assert_eq!(batches.kind, Some(Kind::Other));
        assert_eq!(needs("/v1/fine_tuning/jobs").kind, Some(Kind::Other));
        assert_eq!(Operation::Media.needs("/v1/audio/speech").kind, Some(Kind::Relayed));
    }
}
