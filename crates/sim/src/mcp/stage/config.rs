//! What a scenario's file means to the core and to the `Hub`: their settings, as the shell makes
//! them from a config file.
//!
//! Two limits of production are left open unless the file sets them, so that a program may wait and
//! call as it likes: sessions do not end when they are idle, and calls do not wait for a turn
//! (`max_calls`). Probes run where the file writes `health.probe`.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_config::file::{LimitsFile, McpFile, SeenServer};
use tidegate_core::{
    settings::{Abilities, BackendSettings, Settings},
    time::Millis,
};
use tidegate_mcp::{
    health,
    hub::{CallerRights, GroupSettings, HubSettings, ServerAccess, ServerSettings},
    names::{NamingSettings, ServerNames},
};
use tidegate_mcp_settings::answer_max;

use super::Server;
use crate::mcp::{Mcp, ServerPlan};

/// Longer than any program.
const FOR_EVER: Millis = Millis(u64::MAX / 4);
/// More than any program has at once.
const NO_LIMIT: usize = 1 << 20;

/// What clients see as one server.
pub(super) struct Group {
    pub(super) name: Arc<str>,
    /// The places of its servers, in tier order.
    pub(super) members: Vec<usize>,
}

impl Group {
    /// Whether the file groups it, instead of a server that stands alone.
    pub(super) fn is_real(&self, servers: &[Server]) -> bool {
        !servers.iter().any(|it| it.plan.name == self.name)
    }
}

/// What clients see of these servers.
pub(super) fn groups(scenario: &Mcp, servers: &[Server]) -> Vec<Group> {
    let names = servers.iter().map(|it| &*it.plan.name);
    let place = |member: &&str| names.clone().position(|it| it == *member);
    let group = |seen: SeenServer<'_>| Group {
        name: seen.name.into(),
        members: seen.members.iter().filter_map(place).collect(),
    };
    SeenServer::all(names.clone(), &scenario.replicas).into_iter().map(group).collect()
}

/// How tools are named.
pub(super) fn naming(scenario: &Mcp, groups: &[Group]) -> NamingSettings {
    let servers = groups.iter().map(|it| ServerNames::plain(&it.name)).collect();
    NamingSettings { naming: scenario.naming, servers }
}

/// The config as the `Hub` knows it.
pub(super) fn hub_settings(scenario: &Mcp, servers: &[Server]) -> HubSettings {
    let groups = groups(scenario, servers);
    let naming = naming(scenario, &groups);
    let everybody = CallerRights { share: 1.0, servers: None };
    HubSettings {
        servers: servers.iter().map(server).collect(),
        groups: groups
            .into_iter()
            .map(|it| GroupSettings { name: it.name, members: it.members })
            .collect(),
        naming,
        callers: BTreeMap::from([(Arc::from(""), everybody)]),
        visibility: scenario.visibility,
        is_search: false,
        sessions_max: NO_LIMIT,
        children_max: NO_LIMIT,
        idle: FOR_EVER,
        call_timeout: scenario.waits.child,
        connect_timeout: scenario.waits.unknown,
        connect_wait: scenario.waits.known,
        fresh_for: scenario.fresh_for,
        answered_within: McpFile::default().answered_within.millis(),
        answer_max: answer_max(&LimitsFile::default()),
    }
}

fn server(server: &Server) -> ServerSettings {
    let plan = &server.plan;
    ServerSettings {
        place: Arc::clone(&plan.name),
        key: server.key,
        name: Arc::clone(&plan.name),
        access: ServerAccess::Http,
        max_calls: plan.max_calls.unwrap_or(NO_LIMIT),
        keepalive: plan.keepalive,
        keepalive_call: plan.keepalive_call.clone(),
        probe: plan.probe,
    }
}

/// The servers as the core knows them: a backend and a route each, and a route for every group.
pub(super) fn core_settings(scenario: &Mcp, servers: &[Server]) -> Settings {
    let within = Millis(scenario.waits.unknown.0.saturating_add(scenario.waits.child.0));
    let groups = groups(scenario, servers);
    let alone = (0..).zip(servers).map(|(at, it)| health::route(&it.plan.name, &[at]));
    let together = groups.iter().filter(|it| it.is_real(servers));
    let together = together.map(|it| health::route(&it.name, &it.members));
    Settings {
        backends: servers.iter().map(|it| backend(&it.plan, within)).collect(),
        routes: alone.chain(together).collect(),
        ..Settings::default()
    }
}

fn backend(plan: &ServerPlan, within: Millis) -> BackendSettings {
    BackendSettings {
        id: health::backend_id(&plan.name),
        identity: plan.name.to_string(),
        endpoint: None,
        keys: Vec::new(),
        health: plan.health.clone(),
        first_content_within: within,
        answer_within: within,
        abilities: Abilities::default(),
        fleet_names: Vec::new(),
    }
}
