//! What the Hub is configured with: plain values, resolved by whoever reads the config.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_core::{probe::ProbeSettings, time::Millis};

use crate::{keepalive::KeepaliveSettings, names::NamingSettings, session::Visibility};

/// The config of the whole MCP side.
#[derive(Clone, Debug)]
pub struct HubSettings {
    /// The servers, in the order of the config.
    pub servers: Vec<ServerSettings>,
    /// What clients see: each server that stands alone and each group, in the order of the config.
    pub groups: Vec<GroupSettings>,
    /// How tools are named; its servers are the groups above, in the same order.
    pub naming: NamingSettings,
    /// Everybody who may call, by name. Without keys it is one, whose name is empty.
    pub callers: BTreeMap<Arc<str>, CallerRights>,
    /// Whether sessions follow health.
    pub visibility: Visibility,
    /// Whether clients see `find_tool` and `call_tool` instead of all tools.
    pub is_search: bool,
    /// Sessions at once.
    pub sessions_max: usize,
    /// Programs at once, as far as sessions are admitted by it. What really runs is bounded by
    /// the shell.
    pub children_max: usize,
    /// How long a session may be idle.
    pub idle: Millis,
    /// How long one call may take.
    pub call_timeout: Millis,
    /// How long connecting to a server may take.
    pub connect_timeout: Millis,
    /// How long a first list waits for servers whose lists are known.
    pub connect_wait: Millis,
    /// How old lists may become.
    pub fresh_for: Millis,
    /// A server without sessions that has said something within this time is not asked whether it
    /// is there when a session opens.
    pub answered_within: Millis,
    /// The largest message: also of a page of a list.
    pub answer_max: usize,
}

/// What the shell calls a server. A reload that leaves the server as it was gives it the same key;
/// another url, program, secret, limit or timeout is another key, and another server to the Hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerKey(pub u64);

/// One server.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// What the shell calls it.
    pub key: ServerKey,
    /// Its name in the config.
    pub name: Arc<str>,
    /// How it is reached.
    pub access: ServerAccess,
    /// Where it is, in a word that is the same on every replica that reaches the same server: a
    /// session with it goes on from another replica only there.
    pub place: Arc<str>,
    /// Calls at once.
    pub max_calls: usize,
    /// How idle connections to it are kept alive.
    pub keepalive: KeepaliveSettings,
    /// The params of the `tools/call` that a keepalive of [`Method::Tool`] sends.
    ///
    /// [`Method::Tool`]: crate::keepalive::Method::Tool
    pub keepalive_call: Option<String>,
    /// How it is probed.
    pub probe: ProbeSettings,
}

/// How a server is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerAccess {
    /// Over HTTP.
    Http,
    /// It is a program of ours, one for every session, or one that all share.
    Child {
        /// Whether one program serves every session.
        is_shared: bool,
    },
    /// It cannot be used as configured; every session goes without it.
    Unusable,
}

/// What clients see as one server: one that stands alone, or several equivalent ones.
#[derive(Clone, Debug)]
pub struct GroupSettings {
    /// What clients call it. A server that stands alone has the name of its only member.
    pub name: Arc<str>,
    /// Its members, as indexes of [`HubSettings::servers`], in the order of preference.
    pub members: Vec<usize>,
}

/// What one caller may do.
#[derive(Clone, Debug, PartialEq)]
pub struct CallerRights {
    /// The fraction of what is bounded that it may use.
    pub share: f64,
    /// The servers and groups that it may use; all of them if none are said.
    pub servers: Option<Vec<String>>,
}

impl CallerRights {
    /// Whether it may use a server, or a group, of this name.
    #[must_use]
    pub fn may_use(&self, name: &str) -> bool {
        self.servers.as_ref().is_none_or(|servers| servers.iter().any(|it| it == name))
    }
}

impl HubSettings {
    /// Nothing is configured.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            servers: Vec::new(),
            groups: Vec::new(),
            naming: NamingSettings::default(),
            callers: BTreeMap::new(),
            visibility: Visibility::Session,
            is_search: false,
            sessions_max: 0,
            children_max: 0,
            idle: Millis::ZERO,
            call_timeout: Millis::ZERO,
            connect_timeout: Millis::ZERO,
            connect_wait: Millis::ZERO,
            fresh_for: Millis::ZERO,
            answered_within: Millis::ZERO,
            answer_max: 0,
        }
    }
}
