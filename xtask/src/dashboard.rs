//! `cargo xtask dashboard`: the page of the admin listener, in a real browser.
//!
//! Three parts: the types of `web/` (`tsc --checkJs`), the page against a mock of the operator API
//! and with its demo, and the page against a running gateway whose provider fails. The tests are in
//! `tests/dashboard`; their packages are installed under `target/dashboard`, and pictures of what
//! they saw are left in `target/dashboard/pictures`.
//!
//! `ci` runs only what needs no browser (`cargo xtask dashboard quick`).
//!
//! The browser is Debian's Chromium. Where it is missing, it is installed if that is possible, and
//! otherwise an error says what to install.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail};

use crate::counts::Counts;
use crate::gateway::Gateway;
use crate::install::{self, quietly};
use crate::process::Program;
use crate::{deny, docs, say};

const CHROMIUM: &str = "/usr/bin/chromium";
const CHROMIUM_HELP: &str = "install Chromium (Debian: `apt install chromium`)";
/// About fifty tests in a browser, which watch outages of minutes; a busy machine needs thrice the
/// time of an idle one.
const LIMIT: Duration = Duration::from_secs(1200);
const TYPES_HELP: &str = "the types of web/ do not fit together";

/// Checks the page in a browser; how many tests passed.
pub(crate) fn run() -> anyhow::Result<Counts> {
    Gateway::build()?;
    ensure_chromium()?;
    tests("run.mjs")
}

/// The part of it that needs no browser: the types, and the tests of the pure parts.
pub(crate) fn quick() -> anyhow::Result<Counts> {
    tests("unit.test.mjs")
}

fn tests(program: &str) -> anyhow::Result<Counts> {
    let metadata = deny::metadata()?;
    let target = metadata["target_directory"].as_str().context("cargo names no target folder")?;
    let target = Path::new(target);
    let sources = docs::root().join("tests").join("dashboard");
    let folder = target.join("dashboard");
    let node = install::node(&sources, &folder)?;
    check_types(&sources, &node)?;
    let mut command = Command::new("node");
    command
        .args(["--test-reporter=./reporter.mjs", program])
        .current_dir(node)
        .env("TIDEGATE_WEB_DIR", docs::root().join("web"))
        .env("TIDEGATE_BINARY", target.join("debug").join("tidegate"))
        .env("PICTURES", folder.join("pictures"));
    let (counts, is_good) = Program::new(command).within(LIMIT).run()?;
    say::line(&format!("dashboard: {counts}; pictures are in {}", folder.display()));
    if !is_good || counts == Counts::default() {
        bail!("the dashboard does not do what its tests say");
    }
    Ok(counts)
}

/// Runs the type checker over the page. The packages' own types lie under the target folder, so
/// the settings that name them are written there.
fn check_types(sources: &Path, node: &Path) -> anyhow::Result<()> {
    let web = docs::root().join("web");
    let settings = serde_json::json!({
        "extends": sources.join("tsconfig.json"),
        "compilerOptions": { "paths": {
            "preact": [node.join("node_modules/preact/src/index.d.ts")],
            "htm": [node.join("node_modules/htm/dist/htm.d.ts")],
        } },
        "files": [web.join("main.js"), web.join("demo").join("source.js")],
    });
    let written = node.join("tsconfig.json");
    fs::write(&written, settings.to_string())
        .context("cannot write the type checker's settings")?;
    let checker = node.join("node_modules").join(".bin").join("tsc");
    quietly(Command::new(checker).arg("-p").arg(written), TYPES_HELP)?;
    say::line("the types of web/ fit together");
    Ok(())
}

/// Installs Debian's Chromium where it is missing.
fn ensure_chromium() -> anyhow::Result<()> {
    if Path::new(CHROMIUM).exists() || std::env::var_os("CHROMIUM").is_some() {
        return Ok(());
    }
    say::line("installing chromium with apt-get");
    quietly(Command::new("apt-get").args(["update", "-q"]), CHROMIUM_HELP)?;
    let packages = ["install", "-y", "-q", "--no-install-recommends", "chromium"];
    quietly(Command::new("apt-get").args(packages), CHROMIUM_HELP)?;
    Ok(())
}
