//! `cargo xtask bench mcp`: what a tool call costs through the gateway, beside FastMCP's proxy.
//!
//! The server behind both is the scripted one of the tests (`tidegate __fake-mcp`), whose one tool
//! echoes its arguments. CPU per call is taken with several sessions at once, latency with one.
//! The rules of [`super`] hold: rounds are interleaved, the best counts, one failed call voids it.

pub(super) mod client;
pub(super) mod figures;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Context, anyhow};

use self::client::Client;
use super::contender::free_port;
use super::usage::{self, Cores};
use super::{Options, built};
use crate::process::{self, Process, first_line};
use crate::{docs, install, say};

/// Sessions at once when CPU is measured: enough that none of them waits for the others' turns.
const SESSIONS: usize = 8;

/// Who is measured, and what was the best of it.
struct McpContender {
    name: &'static str,
    host: String,
    /// `None`: the server itself, whose CPU is nobody's overhead.
    pid: Option<u32>,
    best: McpBest,
}

#[derive(Clone, Copy, Debug)]
struct McpBest {
    cpu_us: f64,
    p50_us: f64,
    p99_us: f64,
}

/// Runs the comparison and prints it.
pub(super) fn run(options: &Options) -> anyhow::Result<()> {
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => built()?,
    };
    let folder = docs::root().join("target/bench");
    fs::create_dir_all(&folder).context("cannot make `target/bench`")?;
    let python = install::python(&docs::root().join("tests/mcp/python"), &folder.join("mcp"))?;
    let cores = Cores::of_this_machine();
    usage::pin_self(&cores)?;
    let (_server, server) = server(&binary, &folder)?;
    let (fastmcp, fastmcp_host) = fastmcp(&python, &cores, &server, &folder)?;
    let (gateway, gateway_host) = gateway(&binary, &cores, &server, &folder)?;
    let contender = |name, host: &str, pid| {
        let best = McpBest { cpu_us: f64::MAX, p50_us: f64::MAX, p99_us: f64::MAX };
        McpContender { name, host: host.trim_start_matches("http://").to_owned(), pid, best }
    };
    let mut contenders = [
        contender("direct", &server, None),
        contender("fastmcp", &fastmcp_host, Some(fastmcp.pid())),
        contender("tidegate", &gateway_host, Some(gateway.pid())),
    ];
    for round in 1..=options.rounds {
        say::line(&format!("round {round} of {}", options.rounds));
        for contender in &mut contenders {
            let name = contender.name;
            contender.round(options.load).with_context(|| format!("{name} failed"))?;
        }
    }
    say::line(&render(&contenders));
    Ok(())
}

/// The server that everything leads to; its address.
fn server(binary: &Path, folder: &Path) -> anyhow::Result<(Process, String)> {
    let mut command = Command::new(binary);
    command.args(["__fake-mcp", "--listen", "127.0.0.1:0"]);
    let mut process = Process::start(command, &folder.join("fake-mcp.log"))?;
    let url = process.wait_for(|log| first_line(log, "http://"))?;
    Ok((process, url.trim_end_matches("/mcp").to_owned()))
}

fn fastmcp(
    python: &Path,
    cores: &Cores,
    server: &str,
    folder: &Path,
) -> anyhow::Result<(Process, String)> {
    let port = free_port()?;
    let mut command = Command::new("taskset");
    command.args(["-c", &cores.contender]).arg(python);
    command.arg(docs::root().join("bench/fastmcp_proxy.py"));
    command.arg(format!("{server}/mcp")).arg(port.to_string());
    let mut process = Process::start(command, &folder.join("fastmcp.log"))?;
    let host = format!("127.0.0.1:{port}");
    process.wait_for(|_| std::net::TcpStream::connect(&host).ok().map(drop))?;
    Ok((process, host))
}

fn gateway(
    binary: &Path,
    cores: &Cores,
    server: &str,
    folder: &Path,
) -> anyhow::Result<(Process, String)> {
    let serve = gateway_command(binary, server, folder)?;
    let mut command = Command::new("taskset");
    command.args(["-c", &cores.contender]).arg(serve.get_program()).args(serve.get_args());
    process::gateway(command, &folder.join("gateway-mcp.log"))
}

/// The gateway with one thread for clients, in front of this server.
fn gateway_command(binary: &Path, server: &str, folder: &Path) -> anyhow::Result<Command> {
    let config = install::read(&docs::root().join("bench/mcp.yaml"))?
        .replace("@PORT@", &free_port()?.to_string())
        .replace("@ADMIN_PORT@", &free_port()?.to_string())
        .replace("@UPSTREAM@", &format!("{server}/mcp"));
    let written = folder.join("mcp.yaml");
    fs::write(&written, config).context("cannot write the gateway's config")?;
    let mut command = Command::new(binary);
    command.args(["serve", "--threads", "1", "-c"]).arg(&written);
    Ok(command)
}

impl McpContender {
    /// One round: CPU with several sessions, then latency with one.
    fn round(&mut self, load: Duration) -> anyhow::Result<()> {
        let cpu = || self.pid.map_or(Ok(0), usage::cpu_ns);
        let mut clients: Vec<Client> =
            (0..SESSIONS).map(|_| Client::open(&self.host)).collect::<anyhow::Result<_>>()?;
        let before = cpu()?;
        let calls = thread::scope(|scope| {
            let all: Vec<_> = clients
                .iter_mut()
                .map(|client| scope.spawn(|| calls_for(client, load).map(|it| it.len())))
                .collect();
            let join = |it: thread::ScopedJoinHandle<'_, anyhow::Result<usize>>| {
                it.join().map_err(|_| anyhow!("a session's thread broke"))?
            };
            all.into_iter().map(join).sum::<anyhow::Result<usize>>()
        })?;
        let spent_us = (cpu()? - before) as f64 / 1000.0;
        let mut took = calls_for(&mut Client::open(&self.host)?, load)?;
        took.sort_unstable();
        let best = &mut self.best;
        best.cpu_us = best.cpu_us.min(spent_us / calls as f64);
        best.p50_us = best.p50_us.min(percentile(&took, 50));
        best.p99_us = best.p99_us.min(percentile(&took, 99));
        Ok(())
    }
}

/// One call after the other; how long each took.
#[expect(clippy::disallowed_methods, reason = "a bench measures real time")]
fn calls_for(client: &mut Client, load: Duration) -> anyhow::Result<Vec<Duration>> {
    let mut took = Vec::new();
    let begun = std::time::Instant::now();
    while begun.elapsed() < load {
        let start = std::time::Instant::now();
        client.call()?;
        took.push(start.elapsed());
    }
    Ok(took)
}

fn percentile(sorted: &[Duration], percent: usize) -> f64 {
    let at = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(at).map_or(f64::MAX, |it| it.as_secs_f64() * 1e6)
}

fn render(contenders: &[McpContender; 3]) -> String {
    let [direct, peer, ours] = contenders.each_ref().map(|it| it.best);
    let rows = [
        ("cpu µs per call", peer.cpu_us, ours.cpu_us),
        ("added latency p50 µs", peer.p50_us - direct.p50_us, ours.p50_us - direct.p50_us),
        ("added latency p99 µs", peer.p99_us - direct.p99_us, ours.p99_us - direct.p99_us),
    ];
    let mut text = format!("\n{:24}{:>12}{:>12}{:>12}\n", "", "fastmcp", "tidegate", "ratio");
    for (name, peer, ours) in rows {
        text.push_str(&format!("{name:24}{peer:>12.1}{ours:>12.1}{:>12.3}\n", ours / peer));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::percentile;

    #[test]
    fn a_percentile_is_one_of_the_times() {
        let times: Vec<_> = (1..=100).map(Duration::from_micros).collect();
        assert!((percentile(&times, 50) - 51.0).abs() < 0.001);
        assert!((percentile(&times, 99) - 100.0).abs() < 0.001);
        assert!((percentile(&times[..1], 99) - 1.0).abs() < 0.001);
    }
}
