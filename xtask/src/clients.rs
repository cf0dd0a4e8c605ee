//! `cargo xtask clients`: coding agents and command-line clients, unchanged, against the gateway.
//!
//! Codex, opencode, aider and llm run as a user runs them, through a first target that answers,
//! refuses, dies before its first content or dies in the middle of its stream. What each cell means
//! is written in `tests/clients/run.py`, which this chore prepares: it builds the binary and
//! installs the pinned clients under `target/clients`.
//!
//! It is no part of `ci`: the clients are several hundred megabytes to install, and some of them
//! wait for a minute between their own retries.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

use crate::counts::Counts;
use crate::process::Program;
use crate::stage::Stage;
use crate::{deny, docs, install, say};

/// Runs every client through every situation.
pub(crate) fn run() -> anyhow::Result<()> {
    Stage::cargo("build", &["build", "-p", "tidegate"]).run()?;
    let metadata = deny::metadata()?;
    let target = metadata["target_directory"].as_str().context("cargo names no target folder")?;
    let binary = Path::new(target).join("debug").join("tidegate");
    let sources = docs::root().join("tests").join("clients");
    let folder = Path::new(target).join("clients");
    install::node(&sources.join("node"), &folder)?;
    for name in ["aider", "llm"] {
        install::python(&sources.join(name), &folder.join(name))?;
    }
    let mut command = Command::new("python3");
    command.arg("-B").arg(sources.join("run.py")).arg(binary).arg(folder);
    let (counts, is_good) = Program::new(command).run()?;
    say::line(&format!("clients: {counts}"));
    if !is_good || counts == Counts::default() {
        bail!("a client was not served as it should be");
    }
    Ok(())
}
