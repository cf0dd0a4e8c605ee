//! What is wrong with an MCP scenario's file beyond its shape: rules between keys and values.
//!
//! The program is walked in order, with the sessions that are open and the servers that are
//! configured at each step, so that a name is judged by what it can mean there. Every check adds
//! what it finds and goes on.

mod expect;
mod program;
mod replicas;

use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexMap;
use tidegate_config::{
    codes::config::{BAD_SETTING, KEEPALIVE_WITHOUT_TOOL},
    diagnostic::{Diagnostic, Problems, quoted},
    document::Document,
    file::{HealthFile, KeepaliveMethod, ProbeFile},
    path::KeyPath,
    source::Source,
    suggest,
};
use tidegate_core::{route::MEMBERS_MAX, time::Millis};
use tidegate_mcp::names::{NamingSettings, ServerNames};
use tidegate_mcp_settings::naming;

use super::file::{McpFile, ServerFile};
use crate::codes::{self, mcp};

/// Steps times servers, and keepalives in all: what a trace holds, and seconds of work.
const MAX_WORK: u64 = 1_000_000;

/// Adds everything that is wrong with the file.
pub(super) fn check(file: &McpFile, document: &Document, source: &Source, problems: &mut Problems) {
    let mut check = Check {
        file,
        document,
        source,
        problems,
        servers: file.servers.keys().cloned().collect(),
        ever: file.servers.keys().cloned().collect(),
        tools: BTreeMap::new(),
        open: BTreeMap::new(),
        opened: BTreeSet::new(),
        stateless: BTreeSet::new(),
        asked: BTreeSet::new(),
    };
    check.gather_tools();
    check.health(&file.health, None, &KeyPath::from("health"));
    check.servers(&file.servers, &KeyPath::from("servers"));
    check.replicas();
    check.size();
    check.program();
    check.expect();
}

struct Check<'a> {
    file: &'a McpFile,
    document: &'a Document,
    source: &'a Source,
    problems: &'a mut Problems,
    /// The servers at this point of the program, in order.
    servers: Vec<String>,
    /// The servers of the whole program so far.
    ever: BTreeSet<String>,
    /// All tools that a server ever has, by server.
    tools: BTreeMap<String, BTreeSet<String>>,
    /// The sessions that are open at this point, and the step that opened each.
    open: BTreeMap<String, usize>,
    /// The sessions of the whole program so far.
    opened: BTreeSet<String>,
    /// Those among the open ones that have no session.
    stateless: BTreeSet<String>,
    /// Those that have called something.
    asked: BTreeSet<String>,
}

impl Check<'_> {
    fn add(&mut self, diagnostic: Diagnostic, path: &KeyPath) {
        self.problems.add(diagnostic.at(self.document, path));
    }

    fn gather_tools(&mut self) {
        let reloads =
            self.file.program.iter().filter_map(|it| it.reload.as_ref()?.servers.as_ref());
        let servers = std::iter::once(&self.file.servers).chain(reloads).flatten();
        let configured = servers.map(|(name, it)| (name, &it.tools));
        let steps = self.file.program.iter().filter_map(|it| it.tools.as_ref());
        let changed = steps.map(|it| (&it.server, &it.list));
        for (server, tools) in configured.chain(changed) {
            self.tools.entry(server.clone()).or_default().extend(tools.iter().cloned());
        }
    }

    fn servers(&mut self, servers: &IndexMap<String, ServerFile>, path: &KeyPath) {
        if servers.is_empty() {
            let problem = Diagnostic::error(&codes::EMPTY_LIST, format!("`{path}` is empty"))
                .label("at least one server is needed")
                .help("write one as `github: { tools: [get_issue] }`");
            return self.add(problem, path);
        }
        if servers.len() > MEMBERS_MAX {
            let message = format!("{} servers: the most is {MEMBERS_MAX}", servers.len());
            self.add(Diagnostic::error(&codes::TOO_MUCH_WORK, message), path);
        }
        for (name, server) in servers {
            let path = path.key(name.as_str());
            if name.is_empty() {
                let problem = Diagnostic::error(&codes::EMPTY_NAME, "a server's name is empty");
                self.problems.add(problem.at_key(self.document, &path));
            }
            self.server(name, server, &path);
        }
    }

    fn server(&mut self, name: &str, server: &ServerFile, path: &KeyPath) {
        let tool = |tools: &[String], key: &str, check: &mut Self| {
            for (index, tool) in tools.iter().enumerate() {
                check.own_tool(name, tool, &path.key(key).index(index));
            }
        };
        tool(&server.idempotent, "idempotent", self);
        tool(&server.read_only, "read_only", self);
        tool(&server.asks, "asks", self);
        if server.max_calls == Some(0) {
            let path = path.key("max_calls");
            let message = format!("`{path}` must be at least 1");
            self.add(Diagnostic::error(&BAD_SETTING, message), &path);
        }
        self.tool_names(&server.tools, &path.key("tools"));
        self.keepalive(name, server, &path.key("keepalive"));
        self.health(&self.file.health, Some(&server.health), &path.key("health"));
    }

    /// A tool's name is some text, and stands once in a list.
    fn tool_names(&mut self, tools: &[String], path: &KeyPath) {
        let mut seen = BTreeSet::new();
        for (index, tool) in tools.iter().enumerate() {
            let path = path.index(index);
            if tool.is_empty() {
                let problem = Diagnostic::error(&codes::EMPTY_NAME, format!("`{path}` is empty"));
                self.add(problem, &path);
            } else if !seen.insert(tool) {
                let message = format!("the tool {} stands twice", quoted(tool));
                let problem = Diagnostic::error(&codes::DUPLICATE_SERVICE, message);
                self.add(problem.label("written again here"), &path);
            }
        }
    }

    /// A tool by its server's own name for it.
    fn own_tool(&mut self, server: &str, tool: &str, path: &KeyPath) {
        let known = self.tools.get(server);
        if known.is_some_and(|known| known.contains(tool)) {
            return;
        }
        let names = known.into_iter().flatten().map(String::as_str);
        let help = suggest::did_you_mean(tool, names, "tools of this server");
        let message = format!("`{path}` names a tool that the server never has: {}", quoted(tool));
        let problem = Diagnostic::error(&mcp::UNKNOWN_TOOL, message)
            .label("no tool of this server has this name")
            .maybe_help(help);
        self.add(problem, path);
    }

    fn keepalive(&mut self, name: &str, server: &ServerFile, path: &KeyPath) {
        let keepalive = &server.keepalive;
        let tool = keepalive.tool.as_ref().and_then(|tool| tool.name.as_deref());
        let tool = tool.filter(|name| !name.is_empty());
        if keepalive.method == Some(KeepaliveMethod::Tool) && tool.is_none() {
            let message = format!("`{path}` uses `method: tool` and names no tool");
            let problem = Diagnostic::error(&KEEPALIVE_WITHOUT_TOOL, message)
                .help("add `tool: {name: NAME}`, one of the server's tools");
            self.add(problem, &path.key("method"));
        }
        if let Some(tool) = tool {
            self.own_tool(name, tool, &path.key("tool").key("name"));
        }
        if keepalive.every.millis() == Millis::ZERO {
            let message = format!("`{path}.every` is zero");
            let problem = Diagnostic::error(&BAD_SETTING, message)
                .help("write `method: none` to switch it off");
            self.add(problem, &path.key("every"));
        }
        if keepalive.failures == 0 {
            let message = format!("`{path}.failures` must be at least 1");
            self.add(Diagnostic::error(&BAD_SETTING, message), &path.key("failures"));
        }
    }

    fn health(&mut self, top: &HealthFile, inner: Option<&HealthFile>, path: &KeyPath) {
        let layers: Vec<&HealthFile> = std::iter::once(top).chain(inner).collect();
        for problem in HealthFile::resolve(&layers).problems() {
            let path = path.key(problem.key);
            // What the top level has wrong is told there.
            if self.document.node(&path).is_some() {
                let message = format!("`{path}` {}", problem.rule);
                self.add(Diagnostic::error(&BAD_SETTING, message), &path);
            }
        }
    }

    /// Bounds on the trace and on the keepalives.
    fn size(&mut self) {
        let steps = self.file.program.len() as u64;
        let calls = self.file.program.iter().filter_map(|it| it.call.as_ref());
        let calls: u64 = calls.map(|it| u64::from(it.at_once)).sum();
        let reloads =
            self.file.program.iter().filter_map(|it| it.reload.as_ref()?.servers.as_ref());
        let configs = || std::iter::once(&self.file.servers).chain(reloads.clone());
        let servers = configs().map(|it| it.len() as u64).max().unwrap_or(0);
        let program = KeyPath::from("program");
        if steps.saturating_add(calls).saturating_mul(servers) > MAX_WORK {
            let message = format!(
                "{steps} steps and {calls} calls with {servers} servers: the most is {MAX_WORK} \
                 of both multiplied"
            );
            return self.add(Diagnostic::error(&codes::TOO_MUCH_WORK, message), &program);
        }
        let advances = self.file.program.iter().filter_map(|it| it.advance.as_ref());
        let waits = calls.saturating_mul(self.file.call_timeout.millis().0);
        let span = advances.map(|it| it.millis().0).fold(waits, u64::saturating_add);
        let sessions = self.file.program.iter().filter(|it| it.open.is_some()).count() as u64;
        let beat = |it: &ServerFile| {
            let keepalive = &it.keepalive;
            let shortest = keepalive.every.millis().scaled(1.0 - keepalive.jitter.fraction());
            (span / shortest.0.max(1)).saturating_mul(sessions)
        };
        let probes = |it: &ServerFile| {
            let written = [self.file.health.probe.as_ref(), it.health.probe.as_ref()];
            let written: Vec<&ProbeFile> = written.into_iter().flatten().collect();
            let every = ProbeFile::resolve(&written).every;
            if written.is_empty() || every == Millis::ZERO { 0 } else { span / every.0.max(1) }
        };
        let all = configs().flat_map(IndexMap::values).map(probes).fold(0, u64::saturating_add);
        if all > MAX_WORK {
            let message = format!("{all} probes: the most is {MAX_WORK}");
            let problem = Diagnostic::error(&codes::TOO_MUCH_WORK, message)
                .help("advance less, or write a longer `probe.every`");
            self.add(problem, &program);
        }
        let beats = configs().flat_map(IndexMap::values).map(beat).fold(0, u64::saturating_add);
        if beats > MAX_WORK {
            let message = format!("{beats} keepalives: the most is {MAX_WORK}");
            let problem = Diagnostic::error(&codes::TOO_MUCH_WORK, message)
                .help("advance less, or write a longer `keepalive.every`");
            self.add(problem, &program);
        }
    }

    /// The names of all tools that clients can ever see, with the servers of this moment.
    fn offered(&self) -> BTreeSet<String> {
        let seen = self.seen();
        let servers = seen.iter().map(|it| ServerNames::plain(it.name)).collect();
        let settings = NamingSettings { naming: naming(self.file.naming), servers };
        let tools = seen.iter().enumerate().flat_map(|(place, it)| {
            let own = it.members.iter().filter_map(|it| self.tools.get(*it)).flatten();
            own.map(move |tool| (place, tool))
        });
        tools.filter_map(|(place, tool)| settings.tool(place, tool)).collect()
    }
}
