//! The paths of Google's Gemini API: `/v1beta/models/{model}:{method}`.
//!
//! Gemini names the model and the method in the path, not in the body. So what other dialects
//! read from a body (the model, whether to stream) is read here.
//!
//! Rules:
//! - The method is what follows the last colon; a model's name may have colons and slashes, as
//!   names of routes and of `provider/model` do.
//! - The path of a target has the target's own name of the model, percent-encoded where a path
//!   cannot hold it as it is. Slashes and colons stay: Google's own names have them.
//!
//! Left to others: bodies ([`crate::head`]), streams ([`crate::dialect`]).

use std::fmt::Write as _;

/// What a client asks of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GeminiMethod {
    /// An answer as one body.
    GenerateContent,
    /// An answer as a stream of events, with `alt=sse` in the query.
    StreamGenerateContent,
    /// How many tokens a request has.
    CountTokens,
    /// The embedding of one text.
    EmbedContent,
    /// The embeddings of many.
    BatchEmbedContents,
}

impl GeminiMethod {
    /// Every method that is served.
    pub const ALL: [Self; 5] = [
        Self::GenerateContent,
        Self::StreamGenerateContent,
        Self::CountTokens,
        Self::EmbedContent,
        Self::BatchEmbedContents,
    ];

    /// Its name in a path.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::GenerateContent => "generateContent",
            Self::StreamGenerateContent => "streamGenerateContent",
            Self::CountTokens => "countTokens",
            Self::EmbedContent => "embedContent",
            Self::BatchEmbedContents => "batchEmbedContents",
        }
    }

    /// Whether it generates an answer, as one body or as a stream.
    #[must_use]
    pub const fn generates(self) -> bool {
        matches!(self, Self::GenerateContent | Self::StreamGenerateContent)
    }

    /// Whether it makes embeddings.
    #[must_use]
    pub const fn embeds(self) -> bool {
        matches!(self, Self::EmbedContent | Self::BatchEmbedContents)
    }
}

/// A model and a method, as a path names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GeminiCall<'a> {
    /// The model's name, as it stands in the path.
    pub model: &'a str,
    /// What is asked of it.
    pub method: GeminiMethod,
}

/// What a path begins with; Google serves the same methods under each version.
const PREFIXES: [&str; 3] = ["/v1beta/models/", "/v1/models/", "/v1alpha/models/"];

impl<'a> GeminiCall<'a> {
    /// Reads a path; none if it is not one of a known method.
    #[must_use]
    pub fn of_path(path: &'a str) -> Option<Self> {
        let below = PREFIXES.iter().find_map(|prefix| path.strip_prefix(prefix))?;
        let (model, name) = below.rsplit_once(':')?;
        let method = GeminiMethod::ALL.into_iter().find(|method| method.name() == name)?;
        (!model.is_empty()).then_some(Self { model, method })
    }
}

/// Whether a path belongs to Gemini's API, whatever its method is.
#[must_use]
pub fn is_path(path: &str) -> bool {
    let names_method = |below: &str| below.contains(':');
    path.starts_with("/v1beta/") || path.strip_prefix("/v1/models/").is_some_and(names_method)
}

/// The path of `method` for a model at a provider of Gemini's API.
#[must_use]
pub fn path_of(model: &str, method: GeminiMethod) -> String {
    let mut path = String::from("/v1beta/models/");
    for byte in model.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/:@".contains(&byte) {
            path.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(path, "%{byte:02X}");
        }
    }
    path.push(':');
    path.push_str(method.name());
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, expected: Option<(&str, GeminiMethod)>) {
        let found = GeminiCall::of_path(path).map(|call| (call.model, call.method));
        assert_eq!(found, expected, "{path}");
    }

    #[test]
    fn model_and_method_are_read_from_the_path() {
        let generate = GeminiMethod::GenerateContent;
        check("/v1beta/models/gemini-2.5-pro:generateContent", Some(("gemini-2.5-pro", generate)));
        check("/v1/models/gemini-2.5-pro:generateContent", Some(("gemini-2.5-pro", generate)));
        check(
            "/v1beta/models/ollama/qwen2.5:7b:streamGenerateContent",
            Some(("ollama/qwen2.5:7b", GeminiMethod::StreamGenerateContent)),
        );
        check("/v1beta/models/e:batchEmbedContents", Some(("e", GeminiMethod::BatchEmbedContents)));
        check("/v1beta/models/:generateContent", None);
        check("/v1beta/models/gemini-2.5-pro", None);
        check("/v1beta/models/gemini-2.5-pro:predictLongRunning", None);
        check("/v1beta/files", None);
    }

    #[test]
    fn every_method_is_found_at_the_path_that_is_made_for_it() {
        for method in GeminiMethod::ALL {
            let path = path_of("vendor/model:1", method);
            check(&path, Some(("vendor/model:1", method)));
        }
    }

    #[test]
    fn a_name_cannot_leave_its_place_in_the_path() {
        let path = path_of("a?b#c%d e", GeminiMethod::CountTokens);
        assert_eq!(path, "/v1beta/models/a%3Fb%23c%25d%20e:countTokens");
    }
}
