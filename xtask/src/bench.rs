//! `cargo xtask bench`: how fast the parts and the whole are.
//!
//! | command | does |
//! |---|---|
//! | `bench core` | the benches of the core and the simulator |
//! | `bench gateway` | the gateway beside nginx, HAProxy, Envoy and LiteLLM, in one run ([`gateway`]) |
//! | `bench mcp` | a tool call through the gateway and through FastMCP's proxy ([`mcp`]) |
//! | `bench dashboards` | what fifty open dashboards cost the data plane ([`dashboards`]) |
//! | `bench mcp-figures` | system calls, memory and the time of large calls ([`mcp::figures`]) |
//! | `bench memory` | what a gateway, a connection and a stream hold at rest ([`memory`]) |
//! | `bench journal` | what the record of decisions costs, in instructions ([`journal`]) |
//! | `bench instructions` | how many instructions a request takes, case by case ([`instructions`]) |
//! | `bench` | the first two |
//!
//! Rules kept here, because a number without them is not honest:
//! - Contenders are measured in turn within every round, never one after the other, and the best
//!   round of each counts: what else the machine does then hits all of them alike.
//! - CPU time comes from the kernel's nanosecond count of the contender's threads.
//! - One failed request voids the whole run.
//! - Results are ratios; absolute times belong to one machine and one hour.

mod contender;
mod dashboards;
pub(crate) mod instructions;
mod journal;
mod mcp;
mod measure;
mod memory;
mod sse_mock;
mod stream;
mod table;
mod tools;
mod usage;
mod wrk;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};

use self::{
    contender::{Arena, Contender},
    measure::Runs,
    sse_mock::SseMock,
    tools::Tools,
};
use crate::{docs, say, stage::Stage};

const USAGE: &str = "usage: cargo xtask bench [core | gateway [--rounds N] [--seconds N] \
                     [--binary FILE] [--only cpu] | mcp [--rounds N] [--seconds N] \
                     [--binary FILE] | mcp-figures [--binary FILE] | \
                     dashboards [--rounds N] [--seconds N] [--binary FILE] | \
                     memory [--binary FILE] | journal [--binary FILE] | instructions …]";

/// Runs what the words after `bench` ask for.
pub(crate) fn run(words: &[&str]) -> anyhow::Result<()> {
    match words {
        [] => core().and_then(|()| gateway(&Options::default())),
        ["core"] => core(),
        ["gateway", rest @ ..] => gateway(&Options::read(rest)?),
        ["dashboards", rest @ ..] => dashboards::run(&Options::read(rest)?),
        ["memory", rest @ ..] => memory::run(&Options::read(rest)?),
        ["instructions", rest @ ..] => instructions::run(rest),
        ["journal", rest @ ..] => journal::run(&Options::read(rest)?),
        ["mcp", rest @ ..] => mcp::run(&Options::read(rest)?),
        ["mcp-figures", rest @ ..] => mcp::figures::run(&Options::read(rest)?),
        _ => bail!("{USAGE}"),
    }
}

/// The benches of the core and the simulator.
fn core() -> anyhow::Result<()> {
    Stage::cargo("bench", &["bench", "-p", "tidegate-core", "-p", "tidegate-sim"]).run()?;
    Ok(())
}

/// How a comparison is run.
#[derive(Clone, Debug)]
struct Options {
    rounds: u32,
    /// Of load, for one contender in one round.
    load: Duration,
    /// A gateway that is built already; else one is built.
    binary: Option<PathBuf>,
    /// Leave latency and streams out.
    is_cpu_only: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { rounds: 5, load: Duration::from_secs(2), binary: None, is_cpu_only: false }
    }
}

impl Options {
    fn read(words: &[&str]) -> anyhow::Result<Self> {
        let mut options = Self::default();
        for pair in words.chunks(2) {
            match *pair {
                ["--rounds", count] => options.rounds = count.parse().context(USAGE)?,
                ["--seconds", count] => {
                    options.load = Duration::from_secs(count.parse().context(USAGE)?);
                }
                ["--binary", file] => options.binary = Some(file.into()),
                ["--only", "cpu"] => options.is_cpu_only = true,
                _ => bail!("{USAGE}"),
            }
        }
        if options.rounds == 0 || options.load.is_zero() {
            bail!("a comparison needs at least one round of one second");
        }
        Ok(options)
    }
}

/// The gateway beside the others.
fn gateway(options: &Options) -> anyhow::Result<()> {
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => built()?,
    };
    let folder = docs::root().join("target/bench");
    std::fs::create_dir_all(&folder).context("cannot make `target/bench`")?;
    let tools = Tools::get(&folder)?;
    let cores = usage::Cores::of_this_machine();
    // The load, the upstreams and this process stay off the contender's core.
    usage::pin_self(&cores)?;
    let mock = SseMock::start()?;
    let upstream = contender::upstream(&tools, &folder)?;
    let upstreams = contender::Upstreams { plain: upstream.port, stream: mock.port };
    let arena = Arena { tools: &tools, folder: &folder, cores: &cores, upstreams };
    let mut contenders: Vec<Contender> = vec![arena.nginx()?, arena.envoy()?, arena.haproxy()?];
    if let Some(program) = &tools.litellm {
        contenders.push(arena.litellm(program)?);
    }
    contenders.push(arena.tidegate(&binary)?);
    say::line(&format!(
        "{} rounds of {} s each; the contender has core {}, everything else {}",
        options.rounds,
        options.load.as_secs(),
        cores.contender,
        cores.others,
    ));
    let runs = Runs { tools: &tools, upstream: &upstream, mock: &mock };
    let results = runs.all(&contenders, options)?;
    say::line(&table::render(&results));
    Ok(())
}

/// The release build of the gateway.
fn built() -> anyhow::Result<PathBuf> {
    Stage::cargo("build", &["build", "--release", "-p", "tidegate"]).run()?;
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| docs::root().join("target"), PathBuf::from);
    Ok(target.join("release/tidegate"))
}

#[cfg(test)]
mod tests {
    use super::Options;

    #[test]
    fn options_are_read_and_nonsense_is_refused() {
        let read = Options::read(&["--rounds", "9", "--seconds", "3"]).expect("both are options");
        assert_eq!((read.rounds, read.load.as_secs()), (9, 3));
        for words in [&["--rounds"][..], &["--rounds", "0"], &["--rounds", "x"], &["--speed", "1"]]
        {
            assert!(Options::read(words).is_err(), "{words:?}");
        }
    }
}
