//! `cargo xtask sdk`: the vendors' official SDKs, unchanged, against the real gateway.
//!
//! What clients depend on is not our idea of a wire format but what the SDKs make of it: which
//! error they raise, whether they retry, what they take for the end of a stream. So the programs
//! under `tests/sdk/` use the SDKs as a user does, with a base url and a key, and this chore sets
//! the scene: it builds the binary, installs the SDKs ([`mod@install`]), starts fake providers and
//! a gateway in front of them ([`bed`]), and runs the programs.
//!
//! Rules kept here:
//! - Nothing is skipped: what is missing is an error that says what to install.
//! - Whatever happens, every process that was started is ended.
//! - Everything installed stays under `target/sdk`, and is installed again only when the files that
//!   pin it change.

mod bed;

use std::process::Command;

use anyhow::bail;

use crate::counts::Counts;
use crate::gateway::Gateway;
use crate::process::Program;
use crate::{docs, install, say};

use bed::SdkBed;

/// The keys the gateway takes: one for everything, one for a single route.
const KEY: &str = "tg-sdk-key";
const NARROW_KEY: &str = "tg-sdk-narrow-key";

/// Runs the programs of both languages; the sum of their tests.
pub(crate) fn run(gateway: &Gateway) -> anyhow::Result<Counts> {
    let sources = docs::root().join("tests").join("sdk");
    let folder = gateway.target.join("sdk");
    let python = install::python(&sources.join("python"), &folder)?;
    let node = install::node(&sources.join("node"), &folder)?;
    let bed = SdkBed::start(&gateway.binary, &sources, &folder)?;

    let mut python_command = Command::new(python);
    python_command.arg("-B").arg("run.py").current_dir(sources.join("python"));
    let mut node_command = Command::new("node");
    node_command.args(["--test-reporter=./reporter.mjs", "run.mjs"]).current_dir(node);
    let mut sum = Counts::default();
    let mut failed = Vec::new();
    for (language, command) in [("python", python_command), ("node", node_command)] {
        let (counts, is_good) = Program::new(surrounded(command, &bed)).run()?;
        say::line(&format!("{language}: {counts}"));
        if !is_good || counts == Counts::default() {
            failed.push(language);
        }
        sum.add(counts);
    }
    if !failed.is_empty() {
        let log = bed.gateway_log().display().to_string();
        bail!("the programs in {} failed; the gateway's log is `{log}`", failed.join(" and "));
    }
    Ok(sum)
}

/// A command that finds the scene and nothing else: no proxy in between, no setting of a
/// developer's own SDK.
fn surrounded(mut command: Command, bed: &SdkBed) -> Command {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if ["OPENAI_", "ANTHROPIC_"].iter().any(|prefix| text.starts_with(prefix)) {
            command.env_remove(&name);
        }
    }
    command
        .env("TIDEGATE_URL", &bed.gateway)
        .env("TIDEGATE_KEY", KEY)
        .env("TIDEGATE_NARROW_KEY", NARROW_KEY)
        .env("EBB_URL", &bed.ebb)
        .env("FLOW_URL", &bed.flow)
        .env("NO_PROXY", "127.0.0.1")
        .env("no_proxy", "127.0.0.1");
    command
}
