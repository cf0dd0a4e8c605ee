//! The matrix: every client at every server, for everything that goes between them, directly and
//! through a gateway.
//!
//! Programs of each client's language try every cell and write down what came of it; here the scene
//! is set, and the cells are judged ([`cells`]) and drawn. The drawing is committed: a run whose
//! cells differ from it fails, so the page cannot go stale and no cell can be lost unnoticed.
//!
//! Rules kept here:
//! - The servers are data (`matrix.json`): what each is called, where it is, which tool shows what.
//! - Clients change what servers offer, and everybody hears of it. So the programs run one after
//!   the other, but for the inspector, which changes nothing.

mod cells;

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail, ensure};
use serde_json::{Map, Value};

use super::bed::{commit, free_port, fresh};
use super::{Installed, McpScene, inspector, node, python};
use crate::counts::Counts;
use crate::install::read;
use crate::process::{self, Process, Program, first_line};
use crate::{docs, say};
use cells::Cells;

/// The committed drawing.
const PAGE: &str = "docs/mcp-matrix.md";

/// Tries all cells: how many work, and how many are lost.
pub(super) fn run(scene: &McpScene<'_>, installed: &Installed) -> anyhow::Result<Counts> {
    let folder = scene.folder.join("matrix");
    fresh(&folder)?;
    let bed = MatrixBed::start(scene, installed, &folder)?;
    let records = folder.join("cells.jsonl");
    let about = folder.join("matrix.json");
    fs::write(&about, bed.about.to_string()).context("cannot write `matrix.json`")?;
    let surround = |mut command: Command| {
        command.env("MATRIX", &about).env("CELLS", &records).env("TIDEGATE_URL", &bed.gateway);
        command.env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1");
        // What belongs to other scenes: nothing of it is used in this one.
        command.env("OFFERED", scene.sources.join("offered.json"));
        command.env("EVERYTHING_URL", "http://127.0.0.1:1");
        for unused in ["TIDEGATE_KEY", "TIDEGATE_NARROW_KEY", "FILES", "REPOSITORY"] {
            command.env(unused, "");
        }
        command
    };
    let beside = surround(inspector(scene.sources, installed, "matrix.mjs"));
    let beside = Process::start(beside, &folder.join("inspector.log"))?;
    for (client, command) in [
        ("python", python(scene.sources, installed, "matrix.py")),
        ("node", node(&installed.node, "matrix.mjs")),
    ] {
        let (_, is_good) = Program::new(surround(command)).run()?;
        ensure!(is_good, "the matrix of {client} broke off");
    }
    ensure!(beside.wait()?.success(), "the matrix of the inspector broke off");
    judge(&bed.about, &read(&records)?, &folder)
}

/// Draws the cells, and compares with what is committed.
fn judge(about: &Value, records: &str, folder: &Path) -> anyhow::Result<Counts> {
    let cells = Cells::read(about, records)?;
    for lost in cells.lost() {
        say::line(&format!("lost: {lost}"));
    }
    let drawn = folder.join("matrix.md");
    let page = cells.page();
    fs::write(&drawn, &page).context("cannot write the page of the matrix")?;
    let (works, lost) = (cells.working(), cells.lost().len());
    let counts = Counts::of(works, lost);
    say::line(&format!("matrix: {counts}; {} have no such thing", cells.absent()));
    if lost > 0 {
        bail!(
            "{lost} cells of the matrix are lost; the gateway's log is in `{}`",
            folder.display()
        );
    }
    if read(&docs::root().join(PAGE)).ok().as_deref() != Some(&page) {
        bail!("`{PAGE}` is stale: look at `{}`, and copy it there", drawn.display());
    }
    Ok(counts)
}

/// The servers that are reached by HTTP, and a gateway that has all servers.
struct MatrixBed {
    /// `matrix.json` with everything put in.
    about: Value,
    gateway: String,
    _processes: Vec<Process>,
}

impl MatrixBed {
    fn start(scene: &McpScene<'_>, installed: &Installed, folder: &Path) -> anyhow::Result<Self> {
        let bin = installed.node.join("node_modules").join(".bin");
        let python_bin = installed.python.parent().unwrap_or(folder);
        let repository = folder.join("repository");
        fresh(&repository)?;
        commit(&repository)?;
        let text = read(&scene.sources.join("matrix.json"))?;
        let plain: Value = serde_json::from_str(&text).context("`matrix.json` is no JSON")?;
        let script = plain["own"].to_string();
        let mut words = BTreeMap::from([
            ("NODE_BIN".to_owned(), bin.display().to_string()),
            ("PYTHON_BIN".to_owned(), python_bin.display().to_string()),
            ("REPOSITORY".to_owned(), repository.display().to_string()),
            ("TIDEGATE".to_owned(), scene.binary.display().to_string()),
        ]);
        let mut processes = Vec::new();
        for (word, but) in entries(&plain["own_over_http"])? {
            let (process, url) = own(scene.binary, &plain["own"], but, &folder.join(word))?;
            processes.push(process);
            words.insert(word.clone(), url);
        }
        for (word, mode) in entries(&plain["npm_over_http"])? {
            let mode = mode.as_str().context("a mode is a word")?;
            let (process, url) = everything(&bin, mode, &folder.join(word))?;
            processes.push(process);
            words.insert(word.clone(), url);
        }
        let escaped = Value::from(script.as_str()).to_string();
        let about = filled(&text, &words).replace("OWN_SCRIPT", escaped.trim_matches('"'));
        let mut about: Value = serde_json::from_str(&about).context("`matrix.json` broke")?;
        let config = read(&scene.sources.join("matrix.yaml"))?;
        let config = filled(&config, &words).replace("OWN_SCRIPT", &script);
        let written = folder.join("tidegate.yaml");
        fs::write(&written, config).context("cannot write the gateway's config")?;
        let mut command = Command::new(scene.binary);
        command.arg("serve").arg("-c").arg(&written);
        let servers = about["servers"].as_object_mut().context("there are no servers")?;
        for (name, server) in servers {
            let key = format!("tg-matrix-{name}");
            command.env(format!("KEY_{}", name.to_uppercase().replace('-', "_")), &key);
            server["key"] = key.into();
        }
        let (process, gateway) = process::gateway(command, &folder.join("gateway.log"))?;
        processes.push(process);
        Ok(Self { about, gateway, _processes: processes })
    }
}

fn filled(text: &str, words: &BTreeMap<String, String>) -> String {
    words.iter().fold(text.to_owned(), |text, (word, value)| text.replace(word, value))
}

fn entries(value: &Value) -> anyhow::Result<&Map<String, Value>> {
    value.as_object().context("`matrix.json` lacks a part")
}

/// One of our own servers, listening.
fn own(binary: &Path, own: &Value, but: &Value, log: &Path) -> anyhow::Result<(Process, String)> {
    let mut script = own.clone();
    for (key, value) in entries(but)? {
        script[key] = value.clone();
    }
    let mut command = Command::new(binary);
    command.args(["__fake-mcp", "--listen", "127.0.0.1:0", "--script", &script.to_string()]);
    let mut process = Process::start(command, log)?;
    let url = process.wait_for(|log| first_line(log, "http://"))?;
    Ok((process, url))
}

/// The reference server of npm, listening.
fn everything(bin: &Path, mode: &str, log: &Path) -> anyhow::Result<(Process, String)> {
    let port = free_port()?;
    let mut command = Command::new("node");
    command.arg(bin.join("mcp-server-everything")).arg(mode).env("PORT", port.to_string());
    let mut process = Process::start(command, log)?;
    process.wait_for(|_| TcpStream::connect(("127.0.0.1", port)).is_ok().then_some(()))?;
    Ok((process, format!("http://127.0.0.1:{port}")))
}
