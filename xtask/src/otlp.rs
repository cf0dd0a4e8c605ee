//! `cargo xtask otlp`: what the gateway exports, read by OpenTelemetry's own Python packages.
//!
//! It is no part of `ci`: the packages come from PyPI, into `target/otlp`.

use std::fs;
use std::process::Command;

use anyhow::Context;

use crate::gateway::Gateway;
use crate::install::{self, quietly};
use crate::{docs, say};

/// Starts gateways with a collector each, and checks what arrives.
pub(crate) fn run() -> anyhow::Result<()> {
    let Gateway { binary, target } = Gateway::build()?;
    let folder = target.join("otlp");
    fs::create_dir_all(&folder).context("cannot make a folder for the packages")?;
    let sources = docs::root().join("tests").join("otlp");
    let python = install::python(&sources, &folder)?;
    let mut check = Command::new(python);
    check.arg(sources.join("check.py")).arg(binary).arg(&folder);
    let told = quietly(&mut check, "the check itself failed: its last lines say where")?;
    say::line(told.trim_end());
    Ok(())
}
