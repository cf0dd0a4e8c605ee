//! Who calls: the inbound keys.
//!
//! Rules kept here:
//! - Keys are compared as SHA-256 digests, in constant time and all of them, so that neither the
//!   key nor its place in the list can be measured (S6).
//! - Without `keys` everybody may call (and the listener is loopback: `check` sees to it).
//! - A key in the query string is refused (S9).

use std::path::Path;
use std::sync::Arc;

use http::HeaderMap;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tidegate_config::{file::ConfigFile, secret::Environment};

/// Somebody who may call.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) name: Arc<str>,
    routes: Option<Vec<String>>,
    servers: Option<Vec<String>>,
}

impl Caller {
    /// The gateway itself, which may use everything.
    pub(crate) fn own() -> Arc<Self> {
        Arc::new(Self { name: "tidegate".into(), routes: None, servers: None })
    }

    /// Whether it may use a route (`direct` requests name their target here).
    pub(crate) fn may_use(&self, route: &str) -> bool {
        self.routes.as_ref().is_none_or(|routes| routes.iter().any(|it| it == route))
    }

    /// Whether it may use an MCP server (or a group of them, by the group's name).
    pub(crate) fn may_use_server(&self, server: &str) -> bool {
        self.servers.as_ref().is_none_or(|servers| servers.iter().any(|it| it == server))
    }
}

/// Everybody who may call.
#[derive(Debug)]
pub(crate) struct Callers {
    /// `None`: everybody.
    keys: Option<Vec<([u8; 32], Arc<Caller>)>>,
    anyone: Arc<Caller>,
}

impl Callers {
    pub(crate) fn new(file: &ConfigFile, folder: &Path, environment: &dyn Environment) -> Self {
        let known = |file: &tidegate_config::file::CallerFile| {
            // A key that cannot be resolved opens nothing.
            let secret = file.key.resolve(environment, folder).ok()?;
            let caller = Caller {
                name: file.name.as_str().into(),
                routes: file.routes.clone(),
                servers: file.servers.clone(),
            };
            Some((digest(secret.expose().as_bytes()), Arc::new(caller)))
        };
        Self {
            keys: file.keys.as_ref().map(|keys| keys.iter().filter_map(known).collect()),
            anyone: Arc::new(Caller { name: "".into(), routes: None, servers: None }),
        }
    }

    /// Who sent these headers; `None` if nobody we know.
    pub(crate) fn who(&self, headers: &HeaderMap) -> Option<Arc<Caller>> {
        let Some(keys) = &self.keys else { return Some(Arc::clone(&self.anyone)) };
        let sent = digest(presented(headers)?);
        let mut found = None;
        for (key, caller) in keys {
            if bool::from(key.ct_eq(&sent)) {
                found = Some(caller);
            }
        }
        found.map(Arc::clone)
    }
}

/// The key in the headers, as either SDK sends it.
fn presented(headers: &HeaderMap) -> Option<&[u8]> {
    if let Some(value) = headers.get("x-api-key").or_else(|| headers.get("api-key")) {
        return Some(value.as_bytes());
    }
    let value = headers.get(http::header::AUTHORIZATION)?.as_bytes();
    let (scheme, key) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then_some(key.trim_ascii())
}

fn digest(key: &[u8]) -> [u8; 32] {
    Sha256::digest(key).into()
}
