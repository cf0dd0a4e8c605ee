//! The scene of the MCP tests: something to read and to look at for the servers, and a gateway
//! that has all of them in its config.
//!
//! The server that is reached by HTTP is not started here: the programs kill it and start it
//! again. Here it is only given a port.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use super::{Installed, KEY, NARROW_KEY};
use crate::install::{quietly, read};
use crate::process::{self, Process};

/// The running scene.
pub(super) struct McpBed {
    gateway: String,
    log: PathBuf,
    /// What the servers of files and of git look at.
    files: PathBuf,
    repository: PathBuf,
    /// Where the programs say which servers do not start.
    switch: PathBuf,
    offered: PathBuf,
    everything: PathBuf,
    everything_url: String,
    /// What desktop clients start, and with which config.
    binary: PathBuf,
    config: PathBuf,
    _gateway: Process,
}

impl McpBed {
    /// Starts a gateway with a config of `sources`, in which words stand for what is only known
    /// here.
    pub(super) fn start(
        binary: &Path,
        (sources, config): (&Path, &str),
        folder: &Path,
        installed: &Installed,
    ) -> anyhow::Result<Self> {
        let (files, repository) = (folder.join("files"), folder.join("repository"));
        let switch = folder.join("switch");
        fresh(&switch)?;
        fresh(&files)?;
        fs::write(files.join("tide.txt"), "high water at noon\n").context("cannot write a file")?;
        fresh(&repository)?;
        commit(&repository)?;
        let everything_url = format!("http://127.0.0.1:{}", free_port()?);
        let bin = installed.node.join("node_modules").join(".bin");
        let python_bin = installed.python.parent().unwrap_or(folder);
        let mut config = read(&sources.join(config))?;
        for (word, path) in [
            ("NODE_BIN", &*bin),
            ("PYTHON_BIN", python_bin),
            ("FILES", &*files),
            ("REPOSITORY", &*repository),
            ("SWITCH", &*switch),
        ] {
            config = config.replace(word, &path.display().to_string());
        }
        config = config.replace("EVERYTHING_URL", &everything_url);
        let written = folder.join("tidegate.yaml");
        fs::write(&written, config).context("cannot write the gateway's config")?;
        let mut command = Command::new(binary);
        command.arg("serve").arg("-c").arg(&written);
        command.env("TIDEGATE_MCP_KEY", KEY).env("TIDEGATE_MCP_NARROW_KEY", NARROW_KEY);
        let log = folder.join("gateway.log");
        let (process, gateway) = process::gateway(command, &log)?;
        Ok(Self {
            gateway,
            log,
            files,
            repository,
            switch,
            offered: sources.join("offered.json"),
            everything: bin.join("mcp-server-everything"),
            everything_url,
            binary: binary.to_owned(),
            config: written,
            _gateway: process,
        })
    }

    /// What the gateway printed.
    pub(super) fn gateway_log(&self) -> &Path {
        &self.log
    }

    /// A command that finds the scene, with no proxy in between.
    pub(super) fn surround(&self, mut command: Command) -> Command {
        command
            .env("TIDEGATE_URL", &self.gateway)
            .env("TIDEGATE_KEY", KEY)
            .env("TIDEGATE_NARROW_KEY", NARROW_KEY)
            .env("FILES", &self.files)
            .env("REPOSITORY", &self.repository)
            .env("SWITCH", &self.switch)
            .env("OFFERED", &self.offered)
            .env("EVERYTHING", &self.everything)
            .env("EVERYTHING_URL", &self.everything_url)
            .env("TIDEGATE_BINARY", &self.binary)
            .env("TIDEGATE_CONFIG", &self.config)
            .env("NO_PROXY", "127.0.0.1")
            .env("no_proxy", "127.0.0.1");
        command
    }
}

/// An empty folder.
pub(super) fn fresh(folder: &Path) -> anyhow::Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)
            .with_context(|| format!("cannot empty `{}`", folder.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot make `{}`", folder.display()))
}

/// A repository with one commit.
pub(super) fn commit(folder: &Path) -> anyhow::Result<()> {
    const NOBODY: [&str; 4] = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.com"];
    let help = "install git";
    quietly(Command::new("git").args(["init", "-q"]).arg(folder), help)?;
    let mut commit = Command::new("git");
    commit.arg("-C").arg(folder).args(NOBODY);
    commit.args(["commit", "-q", "--allow-empty", "-m", "first light"]);
    quietly(&mut commit, help)?;
    Ok(())
}

/// A port that nobody listens on.
pub(super) fn free_port() -> anyhow::Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").context("no port is free")?;
    Ok(listener.local_addr().context("a listener has no address")?.port())
}
