//! The cases: a config, what goes through it, and how often.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Context;
use serde_json::{Value, json};

use super::callgrind::{Counted, CountedGateway};
use super::exchange::{TurnClient, Upstream};
use crate::bench::mcp::client::Client;
use crate::process::{Process, first_line};

/// What goes through the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CaseLoad {
    /// Plain chats.
    Chat,
    /// Events of one stream, each when the one before has arrived.
    Events,
    /// Streams of so many events that are there at once.
    ReadyStreams(u32),
    /// Tool calls.
    Calls,
}

/// One case.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) what: &'static str,
    pub(super) load: CaseLoad,
    /// What the config has besides; `@UPSTREAM@` is the upstream's port.
    pub(super) config: String,
    pub(super) times: u32,
    pub(super) times_in_ci: u32,
    /// Whether the count is the same however busy the machine is, so that CI can compare it.
    pub(super) is_steady: bool,
    /// Whether the journal's share is told.
    pub(super) tells_journal: bool,
}

/// Where a counted gateway listens, and that it asks nobody by itself.
pub(in crate::bench) const LISTENING: &str = "listen: 127.0.0.1:0\n\
    admin: { listen: \"127.0.0.1:0\" }\nhealth: { probe: { every: 0s } }\n";
/// A key as long as real ones are: what is looked for in every answer, in all of its spellings.
const KEY: &str = "sk-bench-0123456789abcdefghijklmnopqrstuvwxyz-0123456789";
/// The one route of most cases.
pub(in crate::bench) const ROUTE: &str = "routes: { bench: { tiers: [[p/bench]] } }\n";

impl Case {
    fn new(name: &'static str, what: &'static str, load: CaseLoad) -> Self {
        let (times, times_in_ci) = match load {
            CaseLoad::Chat | CaseLoad::Calls => (1000, 150),
            CaseLoad::Events => (2000, 300),
            CaseLoad::ReadyStreams(_) => (300, 50),
        };
        Self {
            name,
            what,
            load,
            config: format!("{}{ROUTE}", provider()),
            times,
            times_in_ci,
            is_steady: true,
            tells_journal: false,
        }
    }

    pub(super) fn all() -> Vec<Self> {
        let chat = Self::new("chat", "a plain chat of 2 KiB", CaseLoad::Chat);
        let frame = Self::new("frame", "an event of a stream, by itself", CaseLoad::Events);
        let ready = CaseLoad::ReadyStreams(60);
        let ready = Self::new("ready-60", "a stream of 60 events that are there at once", ready);
        let mut access = Self::new("access-log", "`chat` with the access log on", CaseLoad::Chat);
        access.config.push_str("log: { access: true }\n");
        let mut tiers =
            Self::new("tiers-100", "`chat` with 100 targets not needed", CaseLoad::Chat);
        tiers.config = with_targets(100);
        let mut call = Self::new("mcp-call", "an MCP tool call", CaseLoad::Calls);
        call.config = "mcp: { servers: { upstream: { url: \"@MCP@\" } } }\n".to_owned();
        // Two threads wake each other, the more often the busier the machine is.
        call.is_steady = false;
        vec![Self { tells_journal: true, ..chat }, frame, ready, access, tiers, call]
    }

    /// A plain chat under another config.
    pub(super) fn chat(config: String) -> Self {
        Self { config, ..Self::new("chat", "", CaseLoad::Chat) }
    }

    /// Counts it.
    pub(super) fn count(
        &self,
        binary: &Path,
        folder: &Path,
        times: u32,
    ) -> anyhow::Result<Counted> {
        let mut upstream = Upstream::start()?;
        let mut config = LISTENING.to_owned();
        config.push_str(&self.config.replace("@UPSTREAM@", &upstream.port.to_string()));
        let mut mcp = None;
        if self.load == CaseLoad::Calls {
            let (process, url) = fake_mcp(binary, folder, &json!({"tools": [{"name": "echo"}]}))?;
            config = config.replace("@MCP@", &url);
            mcp = Some(process);
        }
        let mut gateway = CountedGateway::start(binary, folder, self.name, &config)?;
        let each = match self.load {
            CaseLoad::Calls => {
                let mut client = Client::open(gateway.url.trim_start_matches("http://"))?;
                gateway.count_each(times, || client.call())?
            }
            load => {
                let is_stream = load != CaseLoad::Chat;
                let mut client = TurnClient::connect(&gateway.url, "bench", is_stream)?;
                if load == CaseLoad::Events {
                    client.open_stream(&mut upstream)?;
                }
                gateway.count_each(times, || match load {
                    CaseLoad::ReadyStreams(events) => client.ready_stream(&mut upstream, events),
                    CaseLoad::Events => client.next_event(&mut upstream),
                    CaseLoad::Chat | CaseLoad::Calls => client.chat(&mut upstream),
                })?
            }
        };
        drop(mcp);
        let percent = self.tells_journal.then(|| gateway.journal_percent()).transpose()?;
        Ok(Counted { each, journal_percent: percent })
    }
}

/// The providers of most cases: one, called `p`.
pub(in crate::bench) fn provider() -> String {
    format!("providers: {{ {} }}\n", provider_at("p", "@UPSTREAM@"))
}

/// A provider of this name at a port.
pub(super) fn provider_at(name: &str, port: &str) -> String {
    format!("{name}: {{ api: openai, url: \"http://127.0.0.1:{port}/v1\", key: {KEY} }}")
}

/// An MCP server of this script, and its url.
pub(super) fn fake_mcp(
    binary: &Path,
    folder: &Path,
    script: &Value,
) -> anyhow::Result<(Process, String)> {
    let mut command = Command::new(binary);
    // In a file: the system bounds how long an argument is.
    let file = folder.join("fake-mcp.json");
    fs::write(&file, script.to_string()).context("cannot write the server's script")?;
    command.args(["__fake-mcp", "--listen", "127.0.0.1:0", "--script-file"]).arg(&file);
    let mut process = Process::start(command, &folder.join("fake-mcp.log"))?;
    let url = process.wait_for(|log| first_line(log, "http://"))?;
    Ok((process, url.trim_end().to_owned()))
}

/// A config whose route has a target that answers, and so many in tiers below it.
pub(super) fn with_targets(more: u32) -> String {
    let tiers: Vec<String> = (0..more.div_ceil(10))
        .map(|tier| {
            let count = (more - 10 * tier).min(10);
            let targets: Vec<String> = (0..count).map(|it| format!("p/t{tier}-{it}")).collect();
            format!(", [{}]", targets.join(", "))
        })
        .collect();
    format!("{}routes: {{ bench: {{ tiers: [[p/bench]{}] }} }}\n", provider(), tiers.concat())
}
