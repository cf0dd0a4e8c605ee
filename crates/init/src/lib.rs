//! A first config file: made from the keys of an environment, or from another product's config.
//!
//! | module | what it does |
//! |---|---|
//! | [`from_environment`] | known vendors whose keys are set, and the models of a local Ollama |
//! | [`import`] | a LiteLLM `config.yaml`, or the `mcpServers` JSON of a desktop client |
//! | [`draft`] | the config to be, and its text with comments |
//!
//! Rules kept here:
//! - A secret is never copied: a literal in another product's file becomes a reference `env:NAME`,
//!   and a [`Note`] says which variable to set.
//! - Whatever cannot be carried over gets a [`Note`] with its line and the reason.
//! - A finished draft loads without errors: parts that `tidegate check` would refuse are taken out,
//!   with a note.
//!
//! This crate reads no environment, opens no sockets and writes no files; the command does.
#![warn(missing_docs)]

pub mod draft;
mod environment;
mod import;
mod item;
mod json;
mod litellm;
mod mcp_servers;
mod notes;
mod scalar;
mod secrets;
mod vendor;

pub use crate::{
    environment::{Found, OLLAMA_URL, OllamaModels, from_environment, known_variables},
    import::{Imported, Refusal, import},
    notes::{Kind, Note},
};
