//! Whether the sentence model that a config names can be used: it is loaded and tried.
//!
//! A gateway starts without it, and finds tools as if none were named; whoever checks a file wants
//! to know before.

use tidegate_config::diagnostic::Diagnostic;
use tidegate_config::path::KeyPath;
use tidegate_config::source::Source;
use tidegate_config::{Config, codes::config::SEARCH_MODEL, document};
use tidegate_sentence::Encoder;

/// What is wrong with the model of a sound config.
pub(super) fn problem(source: &Source, config: &Config) -> Option<Diagnostic> {
    let file = source.folder().join(config.file.mcp.search.model_file()?);
    let error = Encoder::load(&file).err()?;
    let path = KeyPath::from("mcp").key("search").key("model");
    let message = format!("`{path}`: {error}");
    let diagnostic = Diagnostic::error(&SEARCH_MODEL, message).help(error.advice());
    Some(match document::parse(source).document {
        Some(document) => diagnostic.at(&document, &path),
        None => diagnostic,
    })
}
