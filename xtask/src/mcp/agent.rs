//! `cargo xtask mcp search`: an agent's loop over twelve real servers behind `tools: search`.
//!
//! Its servers are installed apart from those of `cargo xtask mcp`: they are many, and CI does
//! without them. The program is `tests/mcp/agent/loop.py`; it says what counts.

use std::process::Command;

use anyhow::bail;

use super::{Installed, bed::McpBed, sources};
use crate::counts::Counts;
use crate::gateway::Gateway;
use crate::install;
use crate::process::Program;
use crate::say;

/// Runs the loop; the sum of its tasks.
pub(crate) fn run() -> anyhow::Result<Counts> {
    let Gateway { binary, target } = Gateway::build()?;
    let (sources, folder) = (sources(), target.join("mcp"));
    let (sources, folder) = (sources.join("agent"), folder.join("agent"));
    let python = install::python(&sources, &folder)?;
    let node = install::node(&sources, &folder)?;
    let installed = Installed { python: python.clone(), inspector: node.clone(), node };
    let bed = McpBed::start(&binary, (&sources, "gateway.yaml"), &folder, &installed)?;
    let mut command = Command::new(python);
    command.arg("-B").arg(sources.join("loop.py"));
    let (counts, is_good) = Program::new(bed.surround(command)).run()?;
    say::line(&format!("agent: {counts}"));
    if !is_good || counts == Counts::default() {
        let log = bed.gateway_log().display().to_string();
        bail!("the agent's loop failed; the gateway's log is `{log}`");
    }
    Ok(counts)
}
