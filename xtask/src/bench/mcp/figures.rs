//! `cargo xtask bench mcp-figures`: what tool calls and sessions take besides CPU time.
//!
//! | figure | how |
//! |---|---|
//! | system calls per call | strace counts a run of N calls and one of 2 N; the difference by N |
//! | memory of a session | resident memory before and after many sessions of one call each |
//! | the MCP thread's time for a large call | the kernel's count for that thread, the least of five |
//!
//! The last one bounds how long other clients wait for a large call of somebody else. Sessions are
//! counted with and without the client's open connection.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Context, anyhow, ensure};

use super::client::Client;
use super::{gateway_command, server};
use crate::bench::usage;
use crate::bench::{Options, built};
use crate::process::{self, Process};
use crate::{docs, say};

/// Calls of each session in the shorter run.
const CALLS: usize = 1000;
/// Sessions of which the memory is taken.
const SESSIONS: usize = 1000;
/// Bytes of text in a large call, which its answer repeats.
const LARGE: usize = 3_900_000;

pub(in crate::bench) fn run(options: &Options) -> anyhow::Result<()> {
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => built()?,
    };
    let folder = docs::root().join("target/bench");
    fs::create_dir_all(&folder).context("cannot make `target/bench`")?;
    let figures = McpFigures { binary, folder };
    for sessions in [1, 8] {
        let calls = figures.system_calls(sessions)?;
        say::line(&format!("system calls per call, {sessions} at a time: {calls:.2}"));
    }
    for (is_open, words) in [(false, "without"), (true, "with")] {
        let kib = figures.memory(is_open)?;
        say::line(&format!("memory of a session, {words} its connection: {kib:.1} KiB"));
    }
    let busy = figures.large_call()?;
    say::line(&format!("the MCP thread's time for a call of {LARGE} bytes: {busy:.1} ms"));
    Ok(())
}

struct McpFigures {
    binary: PathBuf,
    folder: PathBuf,
}

impl McpFigures {
    /// A gateway, perhaps inside another program, and its server.
    fn start(&self, wrapped_in: &[&str]) -> anyhow::Result<(Process, Process, String)> {
        let (server, url) = server(&self.binary, &self.folder)?;
        let serve = gateway_command(&self.binary, &url, &self.folder)?;
        let command = match wrapped_in {
            [] => serve,
            [program, words @ ..] => {
                let mut command = Command::new(program);
                command.args(words).arg(serve.get_program()).args(serve.get_args());
                command
            }
        };
        let (gateway, url) = process::gateway(command, &self.folder.join("mcp-figures.log"))?;
        Ok((server, gateway, url.trim_start_matches("http://").to_owned()))
    }

    fn system_calls(&self, sessions: usize) -> anyhow::Result<f64> {
        let shorter = self.counted(sessions, CALLS)?;
        let longer = self.counted(sessions, 2 * CALLS)?;
        Ok((longer as f64 - shorter as f64) / (sessions * CALLS) as f64)
    }

    /// All system calls of a gateway that answers so many calls of each session.
    fn counted(&self, sessions: usize, calls: usize) -> anyhow::Result<u64> {
        let counts = self.folder.join("mcp-figures.strace");
        let file = counts.to_str().context("the folder's name is no text")?;
        let (_server, gateway, host) =
            self.start(&["strace", "-f", "-c", "-o", file]).context("is `strace` installed?")?;
        let mut clients: Vec<Client> =
            (0..sessions).map(|_| Client::open(&host)).collect::<anyhow::Result<_>>()?;
        thread::scope(|scope| {
            let each = |client| scope.spawn(move || calls_of(client, calls));
            let all: Vec<_> = clients.iter_mut().map(each).collect();
            all.into_iter()
                .try_for_each(|it| it.join().map_err(|_| anyhow!("a session's thread broke"))?)
        })?;
        drop(clients);
        // strace writes its table when the gateway has ended.
        for pid in usage::family(gateway.pid()).into_iter().filter(|pid| *pid != gateway.pid()) {
            Command::new("kill").arg(pid.to_string()).status().context("cannot end a process")?;
        }
        gateway.wait()?;
        total(&fs::read_to_string(&counts).context("strace wrote no table")?)
    }

    /// Resident memory for each session.
    fn memory(&self, is_open: bool) -> anyhow::Result<f64> {
        let (_server, gateway, host) = self.start(&[])?;
        let mut kept = Vec::new();
        let mut sessions = |count: usize| -> anyhow::Result<()> {
            for _ in 0..count {
                let mut client = Client::open(&host)?;
                client.call()?;
                kept.extend(is_open.then_some(client));
            }
            // What is freed goes back to the system after a second.
            pause(Duration::from_secs(4));
            Ok(())
        };
        sessions(50)?;
        let before = usage::memory_kib(gateway.pid());
        sessions(SESSIONS)?;
        let after = usage::memory_kib(gateway.pid());
        Ok((after as f64 - before as f64) / SESSIONS as f64)
    }

    /// Milliseconds that the MCP thread runs for one large call.
    fn large_call(&self) -> anyhow::Result<f64> {
        let (_server, gateway, host) = self.start(&[])?;
        let mut client = Client::open(&host)?;
        let text = "x".repeat(LARGE);
        client.call_with(&text)?;
        let mut least = f64::MAX;
        for _ in 0..5 {
            let before = thread_ns(gateway.pid(), "mcp")?;
            client.call_with(&text)?;
            least = least.min((thread_ns(gateway.pid(), "mcp")? - before) as f64 / 1e6);
        }
        Ok(least)
    }
}

fn calls_of(client: &mut Client, calls: usize) -> anyhow::Result<()> {
    (0..calls).try_for_each(|_| client.call())
}

#[expect(clippy::disallowed_methods, reason = "a chore waits in real time")]
fn pause(span: Duration) {
    thread::sleep(span);
}

/// The sum under strace's table.
fn total(table: &str) -> anyhow::Result<u64> {
    let line = table.lines().rfind(|line| line.trim_end().ends_with(" total"));
    let count = line.and_then(|line| line.split_whitespace().nth(3)?.parse().ok());
    count.with_context(|| format!("no sum in strace's table:\n{table}"))
}

/// Nanoseconds that the thread of this name has run.
fn thread_ns(pid: u32, name: &str) -> anyhow::Result<u64> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).context("the gateway has gone")?;
    for thread in threads.flatten() {
        let text = |file: &str| fs::read_to_string(thread.path().join(file)).unwrap_or_default();
        if text("comm").trim() == name {
            let run = text("schedstat");
            let run = run.split(' ').next().and_then(|it| it.parse().ok());
            return run.context("the kernel counts no time of threads");
        }
    }
    ensure!(Path::new("/proc").exists(), "this figure needs Linux");
    Err(anyhow!("the gateway has no thread `{name}`"))
}

#[cfg(test)]
mod tests {
    use super::total;

    #[test]
    fn the_sum_is_read_from_straces_table_and_its_absence_is_an_error() {
        let table = "% time     seconds  usecs/call     calls    errors syscall\n\
                     ------ ----------- ----------- --------- --------- ----------------\n\
                      60.00    0.000600           1       400        12 epoll_wait\n\
                      40.00    0.000400           2       200           writev\n\
                     ------ ----------- ----------- --------- --------- ----------------\n\
                     100.00    0.001000           1       600        12 total\n";
        assert_eq!(total(table).expect("a sum"), 600);
        assert!(total("strace: killed").is_err());
    }
}
