//! From a sound file to what it means: nothing is optional any more.

use indexmap::IndexMap;
use tidegate_config::{
    duration::Duration,
    file::{HealthFile, ProbeFile},
};
use tidegate_core::{probe::ProbeSettings, time::Millis};
use tidegate_mcp::session::Waits;
use tidegate_mcp_settings as meaning;

use super::{
    Action, Deed, Mcp, ServerPlan, Step,
    file::{McpFile, ServerFile, StepFile},
};
use crate::form::Origin;

/// The meaning of a file in which `check` found no error.
pub(super) fn resolve(file: McpFile, origin: &Origin) -> Mcp {
    let health = &file.health;
    let program = file.program.into_iter().filter_map(|it| step(it, health)).collect();
    Mcp {
        origin: origin.clone(),
        name: file.scenario.unwrap_or_else(|| origin.stem()),
        about: file.about.unwrap_or_default(),
        visibility: meaning::visibility(file.visibility),
        naming: meaning::naming(file.naming),
        waits: Waits {
            known: file.connect_wait.millis(),
            unknown: file.connect_timeout.millis(),
            child: file.call_timeout.millis(),
            ..Waits::default()
        },
        fresh_for: file.fresh_for.millis(),
        servers: servers(&file.servers, health),
        replicas: file.replicas,
        program,
        expect: file.expect,
    }
}

fn servers(servers: &IndexMap<String, ServerFile>, health: &HealthFile) -> Vec<ServerPlan> {
    let plan = |(name, file): (&String, &ServerFile)| ServerPlan {
        name: name.as_str().into(),
        tools: file.tools.clone(),
        repeatable: file.idempotent.iter().chain(&file.read_only).cloned().collect(),
        asks: file.asks.clone(),
        era: file.era,
        max_calls: file.max_calls,
        initialize: file.initialize.as_ref().map_or(Millis::ZERO, Duration::millis),
        keepalive: meaning::keepalive(&file.keepalive),
        keepalive_call: meaning::keepalive_call(&file.keepalive),
        health: HealthFile::resolve(&[health, &file.health]),
        probe: probe(&[health, &file.health]),
    };
    servers.iter().map(plan).collect()
}

/// How a server is probed: not at all unless a file says so.
fn probe(layers: &[&HealthFile]) -> ProbeSettings {
    let written: Vec<&ProbeFile> = layers.iter().filter_map(|it| it.probe.as_ref()).collect();
    match written.as_slice() {
        [] => ProbeSettings { every: Millis::ZERO, ..ProbeSettings::default() },
        written => ProbeFile::resolve(written),
    }
}

/// A step with exactly one action: others were reported.
fn step(file: StepFile, health: &HealthFile) -> Option<Step> {
    let after = file.after;
    let deed =
        |server: String, deed| Action::Deed { server: server.into(), deed, after: after.clone() };
    let actions = [
        file.open.map(|session| Action::Open { session }),
        file.call.map(|it| Action::Call {
            session: it.session,
            tool: it.tool,
            at_once: it.at_once,
        }),
        file.stateless.map(|client| Action::Stateless { client }),
        file.answer.map(|session| Action::Answer { session }),
        file.retry.map(|client| Action::Retry { client }),
        file.probe.map(|server| Action::Probe { server: server.into() }),
        file.era.map(|it| deed(it.server, Deed::Era(it.is))),
        file.list.map(|session| Action::List { session }),
        file.find.map(|it| Action::Find { session: it.session, query: it.query }),
        file.close.map(|session| Action::Close { session }),
        file.advance.map(Action::Advance),
        file.crash.map(|server| deed(server, Deed::Crash)),
        file.hang.map(|server| deed(server, Deed::Hang)),
        file.lose_session.map(|server| deed(server, Deed::LoseSession)),
        file.slow.map(|it| deed(it.server, Deed::Slow(it.by.millis()))),
        file.tools.map(|it| deed(it.server, Deed::Tools(it.list))),
        file.heal.map(|server| deed(server, Deed::Heal)),
        file.reload.map(|it| Action::Reload(it.servers.map(|it| servers(&it, health)))),
    ];
    let action = actions.into_iter().flatten().next()?;
    Some(Step { action, expect: file.expect.unwrap_or_default() })
}
