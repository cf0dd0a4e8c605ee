//! Replicas as processes, by the programs of `tests/fleet`: three behind HAProxy, used by the
//! official MCP clients, and what a fleet costs. Each program starts what it needs, and says what
//! came of it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use crate::gateway::Gateway;
use crate::install::{node, python};
use crate::{docs, say};

/// Three replicas behind HAProxy; the clients are those of `cargo xtask mcp`.
pub(super) fn run(gateway: &Gateway) -> anyhow::Result<()> {
    let sources = docs::root().join("tests").join("mcp").join("node");
    let packages = node(&sources, &gateway.target.join("mcp"))?;
    let copied = std::fs::copy(programs().join("sessions.mjs"), packages.join("sessions.mjs"));
    copied.context("cannot copy the program for node beside its packages")?;
    program(gateway, "sessions.py", &[&gateway.binary, &packages])
}

/// How a gateway that is measured was built: CPU time is judged of an optimised one only.
#[derive(Clone, Copy)]
pub(super) enum MeasuredBuild {
    OfTests,
    Optimised,
}

/// What a fleet costs, and how quick it is.
pub(super) fn measure(gateway: &Gateway, build: MeasuredBuild) -> anyhow::Result<()> {
    let optimised: &[&Path] = match build {
        MeasuredBuild::OfTests => &[],
        MeasuredBuild::Optimised => &[Path::new("optimised")],
    };
    program(gateway, "measure.py", &[&[gateway.binary.as_path()], optimised].concat())
}

fn programs() -> PathBuf {
    docs::root().join("tests").join("fleet")
}

/// Runs a program with the Python packages of `cargo xtask mcp`.
fn program(gateway: &Gateway, name: &str, args: &[&Path]) -> anyhow::Result<()> {
    let packages = docs::root().join("tests").join("mcp").join("python");
    let mut command = Command::new(python(&packages, &gateway.target.join("mcp"))?);
    command.arg(programs().join(name)).args(args);
    let status = command.status().with_context(|| format!("cannot run {name}"))?;
    ensure!(status.success(), "{name}: a claim does not hold: see above");
    say::line(&format!("{name}: all claims hold"));
    Ok(())
}
