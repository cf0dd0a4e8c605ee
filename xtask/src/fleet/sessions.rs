//! Three replicas behind HAProxy, used by the official MCP clients (`tests/fleet`): one program
//! starts the replicas, their store, a balancer and servers, and says what came of it.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};

use crate::install::{node, python};
use crate::stage::Stage;
use crate::{deny, docs, say};

/// Runs the program; the clients are those of `cargo xtask mcp`.
pub(super) fn run() -> anyhow::Result<()> {
    Stage::cargo("build", &["build", "-p", "tidegate"]).run()?;
    let metadata = deny::metadata()?;
    let target = metadata["target_directory"].as_str().context("cargo names no target folder")?;
    let clients = docs::root().join("tests").join("mcp");
    let folder = Path::new(target).join("mcp");
    let interpreter = python(&clients.join("python"), &folder)?;
    let packages = node(&clients.join("node"), &folder)?;
    let programs = docs::root().join("tests").join("fleet");
    let copied = std::fs::copy(programs.join("sessions.mjs"), packages.join("sessions.mjs"));
    copied.context("cannot copy the program for node beside its packages")?;
    let mut program = Command::new(interpreter);
    program.arg(programs.join("sessions.py"));
    program.arg(Path::new(target).join("debug").join("tidegate")).arg(packages);
    let status = program.status().context("cannot run the sessions program")?;
    ensure!(status.success(), "sessions over three replicas failed: see above");
    say::line("sessions over three replicas: all claims hold");
    Ok(())
}
