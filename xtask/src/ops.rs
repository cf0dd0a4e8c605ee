//! `cargo xtask ops`: the files of `ops/`, checked by the tools that will read them.
//!
//! - `promtool` checks the alert rules and runs their tests, and checks the names and types of what
//!   `/metrics` of a running demo says.
//! - `systemd-analyze verify` checks the unit, with the binary that was built in place of the
//!   installed one; it is left out where there is no systemd.
//!
//! It is no part of `ci`: `promtool` comes from a package of Debian, which is fetched and unpacked
//! under `target/tools` where it is not installed. Nothing is installed into the system.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};

use crate::gateway::Gateway;
use crate::install::{quietly, read};
use crate::process::{self, first_line};
use crate::{docs, say};

const PROMTOOL_HELP: &str = "install promtool (Debian: `apt install prometheus`)";
const SYSTEMD_HELP: &str = "systemd-analyze comes with systemd";
const CURL_HELP: &str = "install curl";

/// Checks every file of `ops/` that has a tool.
pub(crate) fn run() -> anyhow::Result<()> {
    let Gateway { binary, target } = Gateway::build()?;
    let folder = target.join("ops");
    fs::create_dir_all(&folder).context("cannot make a folder for logs")?;
    let promtool = promtool(&target)?;
    rules(&promtool)?;
    metrics(&promtool, &binary, &folder)?;
    unit(&binary, &folder)
}

/// `promtool`: the installed one, else one from Debian's package.
fn promtool(target: &Path) -> anyhow::Result<PathBuf> {
    let installed = PathBuf::from("promtool");
    if Command::new(&installed).arg("--version").output().is_ok() {
        return Ok(installed);
    }
    let home = target.join("tools").join("prometheus");
    let unpacked = home.join("usr").join("bin").join("promtool");
    if !unpacked.exists() {
        say::line(&format!("fetching Debian's package of Prometheus into {}", home.display()));
        fs::create_dir_all(&home).context("cannot make a folder for promtool")?;
        let mut fetch = Command::new("apt-get");
        quietly(fetch.args(["download", "prometheus"]).current_dir(&home), PROMTOOL_HELP)?;
        let mut packages = fs::read_dir(&home).context("cannot list the folder")?.flatten();
        let is_package = |path: &PathBuf| path.extension().is_some_and(|it| it == "deb");
        let package = packages.find_map(|it| Some(it.path()).filter(is_package));
        let package = package.context("no package was fetched")?;
        quietly(Command::new("dpkg-deb").arg("-x").arg(package).arg(&home), PROMTOOL_HELP)?;
    }
    Ok(unpacked)
}

fn rules(promtool: &Path) -> anyhow::Result<()> {
    let folder = docs::root().join("ops").join("prometheus");
    for args in [["check", "rules", "alerts.yaml"], ["test", "rules", "alerts.test.yaml"]] {
        quietly(Command::new(promtool).args(args).current_dir(&folder), PROMTOOL_HELP)?;
        say::line(&format!("promtool {}: ok", args.join(" ")));
    }
    Ok(())
}

/// Serves the demo, uses it, and shows promtool what it counts.
fn metrics(promtool: &Path, binary: &Path, folder: &Path) -> anyhow::Result<()> {
    let log = folder.join("demo.log");
    let mut serve = Command::new(binary);
    serve.args(["serve", "--demo", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]);
    let (_demo, api) = process::gateway(serve, &log)?;
    let admin = first_line(&read(&log)?, "  admin  http://");
    let admin = admin.as_deref().and_then(|line| line.split_whitespace().nth(1));
    let admin = admin.context("the demo says no admin address")?;
    let body = "{\"model\":\"demo\",\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}]}";
    let mut ask = curl();
    ask.args(["-H", "content-type: application/json", "-d", body]);
    quietly(ask.arg(format!("{api}/v1/chat/completions")), CURL_HELP)?;
    let scraped = quietly(curl().arg(format!("{admin}/metrics")), CURL_HELP)?;
    ensure!(scraped.contains("tidegate_requests_total"), "the demo counted no request");
    let mut check = Command::new(promtool);
    check.args(["check", "metrics"]).stdin(Stdio::piped());
    let mut check = check.spawn().context(PROMTOOL_HELP)?;
    let mut stdin = check.stdin.take().context("promtool takes no input")?;
    stdin.write_all(scraped.as_bytes()).context("promtool takes no input")?;
    drop(stdin);
    if !check.wait().context("promtool does not end")?.success() {
        bail!("promtool does not accept what /metrics says");
    }
    say::line(&format!("promtool check metrics: ok, {} lines", scraped.lines().count()));
    Ok(())
}

fn curl() -> Command {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--fail", "--max-time", "30"]);
    curl
}

fn unit(binary: &Path, folder: &Path) -> anyhow::Result<()> {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        say::line("systemd-analyze: not installed, so the unit is not checked");
        return Ok(());
    }
    let unit = read(&docs::root().join("ops").join("systemd").join("tidegate.service"))?;
    let here = folder.join("tidegate.service");
    let unit = unit.replace("/usr/bin/tidegate", &binary.to_string_lossy());
    fs::write(&here, unit).context("cannot write the unit to check")?;
    let mut verify = Command::new("systemd-analyze");
    quietly(verify.args(["verify", "--man=no"]).arg(&here), SYSTEMD_HELP)?;
    say::line("systemd-analyze verify: ok");
    Ok(())
}
