//! `cargo xtask bench memory`: what a gateway, a connection and a stream hold at rest.
//!
//! | figure | how |
//! |---|---|
//! | an idle gateway | resident memory with one thread and one target; its parts by `smaps_rollup` |
//! | an idle connection | before and after many connections of one chat each, which stay open |
//! | an idle stream | before and after many streams of one event each, which stay open |
//!
//! Upstream and client are this process. A stream has a connection on both sides.

use std::fs;
use std::io::BufReader;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::Context;

use super::instructions::{LISTENING, ROUTE, TurnClient, Upstream, provider};
use super::{Options, built, usage};
use crate::process::{self, Process};
use crate::{docs, say};

/// Connections or streams of which the memory is taken.
const MANY: usize = 400;
/// And before, for what the first ones leave behind.
const FEW: usize = 20;

/// Measures and prints.
pub(super) fn run(options: &Options) -> anyhow::Result<()> {
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => built()?,
    };
    let folder = docs::root().join("target/bench");
    fs::create_dir_all(&folder).context("cannot make `target/bench`")?;
    let figures = MemoryFigures { binary, folder };
    say::line(&figures.idle()?);
    let connection = figures.each(RestingGateway::connect)?;
    say::line(&format!("an idle connection after a chat: {connection:.1} KiB, goal 6"));
    let stream = figures.each(RestingGateway::stream)?;
    say::line(&format!("an idle stream: {stream:.1} KiB, goal 16"));
    Ok(())
}

struct MemoryFigures {
    binary: PathBuf,
    folder: PathBuf,
}

/// A gateway, what stands behind it, and what was opened at it.
struct RestingGateway {
    gateway: Process,
    upstream: Upstream,
    url: String,
    /// Clients, and the upstream's side of their streams.
    kept: Vec<(TurnClient, Option<BufReader<TcpStream>>)>,
}

impl MemoryFigures {
    fn start(&self) -> anyhow::Result<RestingGateway> {
        let upstream = Upstream::start()?;
        let provider = provider().replace("@UPSTREAM@", &upstream.port.to_string());
        let file = self.folder.join("memory.yaml");
        fs::write(&file, format!("{LISTENING}{provider}{ROUTE}"))
            .context("cannot write the config")?;
        let mut serve = Command::new(&self.binary);
        serve.args(["serve", "--threads", "1", "--config"]).arg(&file);
        let (gateway, url) = process::gateway(serve, &self.folder.join("memory.log"))?;
        Ok(RestingGateway { gateway, upstream, url, kept: Vec::new() })
    }

    fn idle(&self) -> anyhow::Result<String> {
        let resting = self.start()?;
        rest();
        let path = format!("/proc/{}/smaps_rollup", resting.gateway.pid());
        let parts = fs::read_to_string(path).context("the system tells no parts of memory")?;
        let kib = |name: &str| -> u64 {
            let line = parts.lines().find_map(|line| line.strip_prefix(name));
            let number = line.and_then(|it| it.split_whitespace().next()?.parse().ok());
            number.unwrap_or_default()
        };
        let (all, own) = (kib("Rss:"), kib("Anonymous:"));
        let mib = |kib: u64| kib as f64 / 1024.0;
        Ok(format!(
            "an idle gateway: {:.1} MiB, goal 8: {:.1} its own data, {:.1} pages of files",
            mib(all),
            mib(own),
            mib(all - own)
        ))
    }

    /// KiB for each of many that are opened.
    fn each(&self, open: fn(&mut RestingGateway) -> anyhow::Result<()>) -> anyhow::Result<f64> {
        let mut resting = self.start()?;
        let mut opened = |count: usize| -> anyhow::Result<u64> {
            (0..count).try_for_each(|_| open(&mut resting))?;
            rest();
            Ok(usage::memory_kib(resting.gateway.pid()))
        };
        let (before, after) = (opened(FEW)?, opened(MANY)?);
        Ok((after as f64 - before as f64) / MANY as f64)
    }
}

impl RestingGateway {
    /// A connection that stays open after its chat.
    fn connect(&mut self) -> anyhow::Result<()> {
        let mut client = TurnClient::connect(&self.url, "bench", false)?;
        client.chat(&mut self.upstream)?;
        self.kept.push((client, None));
        Ok(())
    }

    /// A stream that stays open after its first event.
    fn stream(&mut self) -> anyhow::Result<()> {
        let mut client = TurnClient::connect(&self.url, "bench", true)?;
        client.open_stream(&mut self.upstream)?;
        self.kept.push((client, self.upstream.set_aside()));
        Ok(())
    }
}

/// What is freed goes back to the system after a second.
#[expect(clippy::disallowed_methods, reason = "a chore waits in real time")]
fn rest() {
    thread::sleep(Duration::from_secs(4));
}
