//! `admin` and `keys`: who may reach the gateway.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::tls::TlsFile;
use crate::{address::Address, percent::Percent, secret::SecretRef};

/// Where the admin listener listens unless told otherwise.
const ADMIN_LISTEN: &str = "127.0.0.1:8701";

/// The admin listener: API and metrics.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AdminFile {
    /// Where the admin API and `/metrics` listen. Other than loopback only with `token`.
    #[schemars(example = &"127.0.0.1:8701")]
    pub listen: Address,
    /// The token of admin requests. Absent: loopback may read, and nobody may change anything.
    #[schemars(example = &"env:TIDEGATE_ADMIN_TOKEN")]
    pub token: Option<SecretRef>,
    /// TLS of the admin listener. Absent: plain HTTP/1.1.
    #[schemars(example = json!({"cert": "file:cert.pem", "key": "file:key.pem"}))]
    pub tls: Option<TlsFile>,
}

impl Default for AdminFile {
    fn default() -> Self {
        Self { listen: address(ADMIN_LISTEN), token: None, tls: None }
    }
}

/// Somebody who may call the data plane.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CallerFile {
    /// The name it has in logs.
    #[schemars(example = &"ci")]
    pub name: String,
    /// The key it sends.
    #[schemars(example = &"env:CI_KEY")]
    pub key: SecretRef,
    /// The routes it may use. Absent: all.
    #[schemars(example = json!(["fast"]))]
    pub routes: Option<Vec<String>>,
    /// The MCP servers it may use. Absent: all.
    #[schemars(example = json!(["github"]))]
    pub servers: Option<Vec<String>>,
    /// The part of the MCP bounds (sessions, programs, calls at once, answers kept for a client to
    /// come back for) that it may use. Absent: a quarter, or all of it if this is the only key.
    #[schemars(example = &"25%")]
    pub share: Option<Percent>,
}

/// An address that is written in this program.
pub(super) fn address(text: &str) -> Address {
    Address::parse(text).expect("the built-in addresses are addresses")
}
