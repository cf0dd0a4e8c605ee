//! The fixture, and gateways in front of it.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use anyhow::Context;

use super::suite::Suite;
use crate::install::read;
use crate::process::{self, Process, first_line};

/// A gateway's servers, by the config that says so.
pub(super) struct Scene {
    /// Its results and logs are called so.
    pub(super) name: &'static str,
    config: &'static str,
    pub(super) title: &'static str,
}

/// The same fixture with ever more beside it: none of that may be noticed.
pub(super) const SCENES: [Scene; 3] = [
    Scene { name: "alone", config: "alone.yaml", title: "through a gateway" },
    Scene { name: "beside", config: "beside.yaml", title: "beside another server" },
    Scene { name: "dead", config: "dead.yaml", title: "and beside a dead one" },
];

/// A fixture that speaks another era than the suite: the gateway translates.
pub(super) const BRIDGED: Scene =
    Scene { name: "bridged", config: "alone.yaml", title: "of the other era" };

impl Scene {
    /// Starts the gateway; its address, as the suite wants it.
    pub(super) fn start(
        &self,
        binary: &Path,
        sources: &Path,
        folder: &Path,
        fixture: &Fixture,
    ) -> anyhow::Result<(Process, String)> {
        let config = read(&sources.join(self.config))?;
        let config = config.replace("FIXTURE_URL", &fixture.url);
        let config = config.replace("DEAD_URL", &format!("http://127.0.0.1:{}", unused_port()?));
        let written = folder.join(self.name).with_extension("yaml");
        fs::write(&written, config).context("cannot write a gateway's config")?;
        let mut command = Command::new(binary);
        command.arg("serve").arg("-c").arg(&written);
        let log = folder.join(format!("gateway-{}.log", self.name));
        let (process, address) = process::gateway(command, &log)?;
        // The suite takes a server by another name for one that is not local.
        Ok((process, format!("{}/mcp", address.replace("127.0.0.1", "localhost"))))
    }
}

/// The server that has everything the suite asks for.
pub(super) struct Fixture {
    /// Where it serves.
    pub(super) url: String,
    _process: Process,
}

impl Fixture {
    /// Starts it, serving `both` eras or one.
    pub(super) fn start(suite: &Suite, eras: &str, folder: &Path) -> anyhow::Result<Self> {
        let mut command = suite.ours("fixture.mjs");
        command.arg(eras);
        let log = folder.join(format!("fixture-{eras}.log"));
        let mut process = Process::start(command, &log)?;
        let url = process.wait_for(|log| first_line(log, "http://"))?;
        Ok(Self { url, _process: process })
    }
}

/// A port that nobody listens on.
fn unused_port() -> anyhow::Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").context("no port is free")?;
    Ok(listener.local_addr().context("a listener has no address")?.port())
}
