//! `cargo xtask fleet`: several gateways and a real store, and the manifests to run them.
//!
//! - The tests of fleets (`crates/server/tests/fleet`), with Debian's `redis-server`, which is
//!   installed where it is missing.
//! - Three replicas behind HAProxy, installed likewise, with the official MCP clients (`sessions`):
//!   round robin, one replica killed, all of them restarted one after the other.
//! - What a fleet costs, and how quick it is (`measure`): how soon the others know of a 429, LLM
//!   requests beside a store in trouble, CPU time and the store's traffic, each against gateways
//!   without a store in the same run. `cargo xtask fleet measure [BINARY]` does only this, with
//!   the build of the tests or an optimised one.
//! - `kubernetes-validate` from PyPI checks every manifest of `ops/kubernetes` against the schemas
//!   of Kubernetes; what only extensions know is left to them.
//!
//! `ci` runs the tests too; the manifests are checked here only.

mod sessions;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use crate::gateway::Gateway;
use crate::install::{debian, python, quietly};
use crate::stage::Stage;
use crate::{deny, docs, say};

use self::sessions::MeasuredBuild;

const VALIDATE_HELP: &str = "the manifests are in `ops/kubernetes`";

/// Kinds that Kubernetes itself does not know.
const FOREIGN: [&str; 2] = ["kustomization.yaml", "service-monitor.yaml"];

/// Runs all of it.
pub(crate) fn run() -> anyhow::Result<()> {
    have_store()?;
    manifests()?;
    Stage::cargo("fleet", &["test", "-p", "tidegate-server", "--test", "fleet"]).run()?;
    debian("haproxy", "haproxy")?;
    let gateway = Gateway::build()?;
    sessions::run(&gateway)?;
    sessions::measure(&gateway, MeasuredBuild::OfTests)
}

/// Measures only.
pub(crate) fn measure(binary: Option<&str>) -> anyhow::Result<()> {
    have_store()?;
    match binary {
        Some(binary) => {
            sessions::measure(&Gateway::at(Path::new(binary))?, MeasuredBuild::Optimised)
        }
        None => sessions::measure(&Gateway::build()?, MeasuredBuild::OfTests),
    }
}

/// Installs `redis-server` where it is missing.
pub(crate) fn have_store() -> anyhow::Result<()> {
    debian("redis-server", "redis-server")
}

fn manifests() -> anyhow::Result<()> {
    let metadata = deny::metadata()?;
    let target = metadata["target_directory"].as_str().context("cargo names no target folder")?;
    let sources = docs::root().join("tests").join("kubernetes");
    let interpreter = python(&sources, &Path::new(target).join("kubernetes"))?;
    let validate = interpreter.with_file_name("kubernetes-validate");
    let folder = docs::root().join("ops").join("kubernetes");
    let files = fs::read_dir(&folder).context("cannot list the manifests")?.flatten();
    let is_foreign = |path: &PathBuf| FOREIGN.iter().any(|name| path.ends_with(name));
    let mut files: Vec<PathBuf> =
        files.map(|it| it.path()).filter(|path| !is_foreign(path)).collect();
    files.sort();
    ensure!(!files.is_empty(), "there are no manifests");
    quietly(Command::new(validate).arg("--strict").args(&files), VALIDATE_HELP)?;
    say::line(&format!("kubernetes-validate: {} files ok", files.len()));
    Ok(())
}
