//! Answers to what an operator may do: `POST /api/backends/{id}/…` and `POST /api/reload`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The answer to `drain`, `hold`, `probe`, `reset` and `resume`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ActionReply {
    /// The backend.
    pub backend: String,
    /// What was done.
    pub done: String,
    /// Until when, of a drain or a hold.
    #[serde(default)]
    pub until_unix_ms: Option<u64>,
    /// What a probe brought: `passed` or `failed`.
    #[serde(default)]
    pub result: Option<String>,
}

/// The answer to a reload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReloadReply {
    /// Whether the file on disk serves now.
    pub reloaded: bool,
    /// The config that serves now.
    pub sha: String,
    /// Warnings about the new config, as `tidegate check` shows them.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// The keys that differ from before.
    #[serde(default)]
    pub changed: Vec<String>,
    /// Keys that only a restart puts in force.
    #[serde(default)]
    pub needs_restart: Vec<String>,
    /// Why it was refused, as `tidegate check` shows it.
    #[serde(default)]
    pub problems: Vec<String>,
}
