//! What a config says about MCP, as the Hub wants to hear it.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_config::file::{McpFile, ProbeFile, SeenServer, ServerFile, ToolList};
use tidegate_core::time::Millis;
use tidegate_gateway::live::Live;
use tidegate_mcp::{
    hub::{CallerRights, GroupSettings, HubSettings, ServerAccess, ServerKey, ServerSettings},
    names::{Naming, NamingSettings, ServerNames},
};
use tidegate_mcp_settings as meaning;
use tidegate_text::glob::Glob;

use super::{runtime::McpRuntime, servers::Servers};

/// How long a program may take to start and answer when one look is taken at it, and any server for
/// a page of a list: longer than most, shorter than a person who waits for a table.
const LOOK_WITHIN: Millis = Millis::seconds(20);

/// Which servers of a config are used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All of them.
    All,
    /// The one of this name, as a server that stands alone.
    Server(String),
}

impl Scope {
    fn includes(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Server(only) => only == name,
        }
    }
}

/// The Hub's settings by a config; `servers` follows it.
pub(crate) fn hub_settings(
    runtime: &McpRuntime,
    live: &Live,
    servers: &mut Servers,
    scope: &Scope,
) -> HubSettings {
    let mcp = &live.file.mcp;
    let files: Vec<(&String, &ServerFile)> =
        mcp.servers.iter().filter(|(name, _)| scope.includes(name)).collect();
    let known = servers.follow(runtime, live, files.iter().copied());
    let resolved: Vec<ServerSettings> = files
        .iter()
        .zip(known)
        .map(|((name, file), known)| server_settings(live, (name, file), known))
        .collect();
    HubSettings {
        groups: groups(mcp, &resolved, scope),
        servers: resolved,
        naming: match scope {
            Scope::All => naming(mcp),
            Scope::Server(name) => {
                let servers = vec![ServerNames::plain(name)];
                NamingSettings { naming: Naming::Prefix, servers }
            }
        },
        callers: callers(live),
        visibility: meaning::visibility(mcp.visibility),
        is_search: mcp.tools == ToolList::Search,
        sessions_max: mcp.session.max as usize,
        children_max: mcp.max_children as usize,
        idle: mcp.session.idle.millis(),
        call_timeout: match scope {
            Scope::All => mcp.call_timeout.millis(),
            Scope::Server(_) => mcp.call_timeout.millis().min(LOOK_WITHIN),
        },
        connect_timeout: mcp.connect_timeout.millis(),
        connect_wait: mcp.connect_wait.millis(),
        fresh_for: mcp.fresh_for.millis(),
        answered_within: mcp.answered_within.millis(),
        answer_max: meaning::answer_max(&live.file.limits),
    }
}

fn server_settings(
    live: &Live,
    (name, file): (&str, &ServerFile),
    (key, access, place): (ServerKey, ServerAccess, Arc<str>),
) -> ServerSettings {
    let layers = [live.file.health.probe.as_ref(), file.health.probe.as_ref()];
    let layers: Vec<&ProbeFile> = layers.into_iter().flatten().collect();
    ServerSettings {
        key,
        name: name.into(),
        access,
        place,
        max_calls: file.max_calls.max(1) as usize,
        keepalive: meaning::keepalive(&file.keepalive),
        keepalive_call: meaning::keepalive_call(&file.keepalive),
        probe: ProbeFile::resolve(&layers),
    }
}

/// What clients see, in the order of the config.
fn groups(mcp: &McpFile, servers: &[ServerSettings], scope: &Scope) -> Vec<GroupSettings> {
    let index = |name: &&str| servers.iter().position(|it| *it.name == **name);
    match scope {
        Scope::All => {
            let group = |seen: SeenServer<'_>| GroupSettings {
                name: seen.name.into(),
                members: seen.members.iter().filter_map(index).collect(),
            };
            mcp.seen().into_iter().map(group).collect()
        }
        Scope::Server(name) => {
            vec![GroupSettings { name: name.as_str().into(), members: vec![0] }]
        }
    }
}

fn callers(live: &Live) -> BTreeMap<Arc<str>, CallerRights> {
    let rights = |caller: &tidegate_gateway::caller::Caller| CallerRights {
        share: caller.share,
        servers: caller.servers().map(<[String]>::to_vec),
    };
    let mut callers = BTreeMap::new();
    for caller in live.callers.all() {
        // Of two keys with one name the first is the one that counts.
        callers.entry(Arc::clone(&caller.name)).or_insert_with(|| rights(caller));
    }
    callers
}

/// How the tools of a config are named.
#[must_use]
pub fn naming(mcp: &McpFile) -> NamingSettings {
    let globs = |texts: &[String]| texts.iter().map(|text| Glob::new(text)).collect::<Vec<_>>();
    // A group's tools are those of its first member.
    let seen = mcp.seen().into_iter();
    let seen = seen.filter_map(|it| Some((it.name, mcp.servers.get(*it.members.first()?)?)));
    let servers = seen.map(|(name, file)| ServerNames {
        name: name.to_owned(),
        include: file.include.as_deref().map(globs),
        exclude: globs(&file.exclude),
        rename: file.rename.iter().map(|(from, to)| (from.clone(), to.clone())).collect(),
    });
    NamingSettings { naming: meaning::naming(mcp.naming), servers: servers.collect() }
}
