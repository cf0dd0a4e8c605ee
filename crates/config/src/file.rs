//! The config file as it is written: one plain type per section, every key with its meaning.
//!
//! The types here are the file format, which is a public API. They say what may be written and
//! what is assumed where nothing is; what it *means* is worked out in `resolve.rs`, and which
//! combinations make no sense in `check.rs`.
//!
//! Rules kept here:
//! - Plain types only: no flatten, no untagged or internally tagged enums.
//! - Every key has a doc line, an example, and a default that the schema shows (the reference and
//!   the schema under `docs/` are made from these types; tests hold every key to this).
//! - Keys that are layered (health, timeouts, probes) are optional here; their defaults are in one
//!   place each.

mod caller;
mod health;
mod mcp;
mod policy;
mod provider;
mod route;
mod service;
mod state;
mod timeouts;
mod tls;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

pub use self::{
    caller::{AdminFile, CallerFile},
    health::{HealthFile, ProbeFile},
    mcp::{
        EmbeddingsFile, FakeServer, KeepaliveFile, KeepaliveMethod, McpFile, Naming, SearchFile,
        SeenServer, ServerFile, SessionFile, ToolCallFile, ToolList, Visibility,
    },
    policy::PolicyFile,
    provider::{Api, Auth, MODEL_PLACE, ProviderFile, Serves, TargetFile},
    route::{
        AffinityFile, HoldFile, LastResortFile, OnAuthErrorWord, Pick, PinWord, RetryBudgetFile,
        RouteFile,
    },
    service::{
        AuditFile, HistoryFile, LimitsFile, LogFile, LogFormat, LogLevel, ReloadFile, ShutdownFile,
        TelemetryFile,
    },
    state::{SecretList, StateFile},
    timeouts::{Timeouts, TimeoutsFile},
    tls::TlsFile,
};
use crate::address::Address;

/// Where the data plane listens unless told otherwise.
const LISTEN: &str = "127.0.0.1:8700";

/// The config file of a gateway. Every key may be left out.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ConfigFile {
    /// Where the data plane (`/v1/*`, `/mcp`) listens. Other than loopback only with `keys`.
    #[schemars(example = &"0.0.0.0:8700")]
    pub listen: Address,
    /// TLS of the data plane, with HTTP/2 and HTTP/1.1. Absent: plain HTTP/1.1.
    #[schemars(example = json!({"cert": "file:cert.pem", "key": "file:key.pem"}))]
    pub tls: Option<TlsFile>,
    /// The admin listener: API and metrics.
    pub admin: AdminFile,
    /// Who may call the data plane. Absent: everybody, and then only on loopback.
    #[schemars(example = json!([{"name": "ci", "key": "env:CI_KEY"}]))]
    pub keys: Option<Vec<CallerFile>>,
    /// How health is judged, for every backend; providers, targets and servers may say otherwise.
    pub health: HealthFile,
    /// LLM APIs by name.
    #[schemars(example = json!({"groq": {"api": "openai", "key": "env:GROQ_API_KEY"}}))]
    pub providers: IndexMap<String, ProviderFile>,
    /// Model names that clients ask for, and the targets behind them.
    #[schemars(example = json!({"fast": {"tiers": [["groq/llama-3.1-8b-instant"]]}}))]
    pub routes: IndexMap<String, RouteFile>,
    /// The route for a request without a model, or with an unknown name without a slash.
    #[schemars(example = &"fast")]
    pub default_route: Option<String>,
    /// MCP servers, and how their tools are offered.
    pub mcp: McpFile,
    /// What several gateways share through a store. docs/fleet.md says when that is worth it.
    /// Absent: this gateway stands alone.
    #[schemars(example = json!({"redis": "env:REDIS_URL", "secret": "env:TIDEGATE_FLEET_KEY"}))]
    pub state: Option<StateFile>,
    /// Decisions and transitions on disk.
    #[schemars(example = json!({"file": "tidegate.db", "keep": "168h"}))]
    pub history: Option<HistoryFile>,
    /// Who used which model or tool, as lines of a file.
    #[schemars(example = json!({"file": "audit.jsonl"}))]
    pub audit: Option<AuditFile>,
    /// Traces and metrics to an OpenTelemetry collector.
    #[schemars(example = json!({"otlp": "http://127.0.0.1:4317"}))]
    pub telemetry: Option<TelemetryFile>,
    /// Bounds on what the data plane accepts and holds.
    pub limits: LimitsFile,
    /// What is logged, and how.
    pub log: LogFile,
    /// How the file is read again while running.
    pub reload: ReloadFile,
    /// How the gateway ends.
    pub shutdown: ShutdownFile,
}

impl Default for ConfigFile {
    fn default() -> Self {
        Self {
            listen: caller::address(LISTEN),
            tls: None,
            admin: AdminFile::default(),
            keys: None,
            health: HealthFile::default(),
            providers: IndexMap::new(),
            routes: IndexMap::new(),
            default_route: None,
            mcp: McpFile::default(),
            state: None,
            history: None,
            audit: None,
            telemetry: None,
            limits: LimitsFile::default(),
            log: LogFile::default(),
            reload: ReloadFile::default(),
            shutdown: ShutdownFile::default(),
        }
    }
}
