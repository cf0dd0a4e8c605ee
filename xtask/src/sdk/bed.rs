//! The scene of the SDK tests: two fake providers, one vendor of each dialect, and a gateway in
//! front of them.
//!
//! The providers also end with their stdin, that is with us, however we end.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use super::{KEY, NARROW_KEY};
use crate::install::read;
use crate::process::{self, Process, first_line};

/// The running scene.
pub(super) struct SdkBed {
    /// The gateway's address, without a path.
    pub(super) gateway: String,
    /// The first provider's.
    pub(super) ebb: String,
    /// The second provider's.
    pub(super) flow: String,
    log: PathBuf,
    _processes: Vec<Process>,
}

impl SdkBed {
    /// Starts the providers and a gateway with the config among the `sources`, in which `EBB_URL`,
    /// `FLOW_URL` and `VENDORS_URL` stand for their addresses.
    pub(super) fn start(binary: &Path, sources: &Path, folder: &Path) -> anyhow::Result<Self> {
        let mut processes = Vec::new();
        let mut provider = |name: &str, command: Command| -> anyhow::Result<String> {
            let mut process = Process::start(command, &folder.join(format!("{name}.log")))?;
            let url = process.wait_for(|log| first_line(log, "http://"))?;
            processes.push(process);
            Ok(url)
        };
        let fake = |name: &str| {
            let mut command = Command::new(binary);
            command.args(["__fake", "--name", name]);
            command
        };
        let (ebb, flow) = (provider("ebb", fake("ebb"))?, provider("flow", fake("flow"))?);
        let mut vendors = Command::new("python3");
        vendors.arg("-B").arg(sources.join("vendors.py"));
        let vendors = provider("vendors", vendors)?;
        let written = folder.join("tidegate.yaml");
        let text = read(&sources.join("gateway.yaml"))?
            .replace("EBB_URL", &ebb)
            .replace("FLOW_URL", &flow)
            .replace("VENDORS_URL", &vendors);
        fs::write(&written, text).context("cannot write the gateway's config")?;
        let mut command = Command::new(binary);
        command.arg("serve").arg("-c").arg(&written).env("TIDEGATE_SDK_KEY", KEY);
        command.env("TIDEGATE_SDK_NARROW_KEY", NARROW_KEY);
        command.env("TIDEGATE_SDK_UPSTREAM_KEY", "tg-upstream-key");
        let log = folder.join("gateway.log");
        let (process, gateway) = process::gateway(command, &log)?;
        processes.push(process);
        Ok(Self { gateway, ebb, flow, log, _processes: processes })
    }

    /// What the gateway printed.
    pub(super) fn gateway_log(&self) -> &Path {
        &self.log
    }
}
