//! `cargo xtask clients`: coding agents and command-line clients, unchanged, against the gateway.
//!
//! Codex, opencode, aider and llm run as a user runs them, through a first target that answers,
//! refuses, dies before its first content or dies in the middle of its stream. What each cell means
//! is written in `tests/clients/run.py`. Codex, Claude Code, the Vercel AI SDK and LangChain run a
//! tool loop whose provider is killed between two turns and continued by one of another vendor;
//! that is `tests/clients/loop/run.py`. This chore builds the binary and installs the pinned
//! clients under `target/clients`. With names of clients it runs those only.
//!
//! It is no part of `ci`: the clients are several hundred megabytes to install, and some of them
//! wait for a minute between their own retries.

use std::process::Command;
use std::time::Duration;

use anyhow::bail;

use crate::counts::Counts;
use crate::gateway::Gateway;
use crate::process::Program;
use crate::{docs, install, say};

/// Who is in the situations, and who is in the tool loops.
const SITUATIONS: [&str; 4] = ["codex", "opencode", "aider", "llm"];
const LOOPS: [&str; 4] = ["codex", "claude", "ai", "langchain"];

/// How long all situations, or all loops, may take: well over a hundred runs of a client, of which
/// some wait for a minute between their own retries.
const LIMIT: Duration = Duration::from_secs(3600);

/// Runs every client through every situation and tool loop, or those that are named.
pub(crate) fn run(only: &[&str]) -> anyhow::Result<()> {
    if let Some(other) = only.iter().find(|it| !SITUATIONS.contains(it) && !LOOPS.contains(it)) {
        bail!("no client is called `{other}`: there are {SITUATIONS:?} and {LOOPS:?}");
    }
    let Gateway { binary, target } = Gateway::build()?;
    let sources = docs::root().join("tests").join("clients");
    let folder = target.join("clients");
    install::node_of_this_machine(&sources.join("node"), &folder)?;
    let is_asked = |name: &&str| only.is_empty() || only.contains(name);
    for name in ["aider", "llm"].iter().filter(|name| is_asked(name)) {
        install::python(&sources.join(name), &folder.join(name))?;
    }
    let mut failed = Vec::new();
    for (program, clients) in [("run.py", SITUATIONS), ("loop/run.py", LOOPS)] {
        let clients: Vec<&&str> = clients.iter().filter(|name| is_asked(name)).collect();
        if clients.is_empty() {
            continue;
        }
        let mut command = Command::new("python3");
        command.arg("-B").arg(sources.join(program)).arg(&binary).arg(&folder).args(clients);
        let (counts, is_good) = Program::new(command).within(LIMIT).run()?;
        say::line(&format!("{program}: {counts}"));
        if !is_good || counts == Counts::default() {
            failed.push(program);
        }
    }
    if !failed.is_empty() {
        bail!("a client was not served as it should be: {}", failed.join(" and "));
    }
    Ok(())
}
