//! Installs pinned packages under the target folder, with the ordinary clients of PyPI and npm and
//! with cargo; and programs that come as packages of Debian, for the whole machine.
//!
//! A folder that was finished carries a stamp: the text of the files that pin it. As long as they
//! say the same, it is used as it is; otherwise it is made anew, so half an installation is never
//! used.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use crate::say;

const PYTHON_HELP: &str = "install Python 3.11 or later with its venv module (Debian: \
                           `apt install python3 python3-venv`)";
const CARGO_HELP: &str = "are crates within reach, and is rustup's stable toolchain installed?";
const NODE_HELP: &str = "install Node.js 20 or later with npm";

/// Installs a Debian package where the program it brings is missing.
pub(crate) fn debian(program: &str, package: &str) -> anyhow::Result<()> {
    if Command::new(program).arg("--version").output().is_ok() {
        return Ok(());
    }
    say::line(&format!("installing Debian's {package}"));
    let help = format!("install {program} (Debian: `apt install {package}`)");
    let apt = |words: &[&str]| quietly(Command::new("apt-get").args(words), &help);
    let install = ["install", "-y", "--no-install-recommends", package];
    // A fresh machine may have no list of packages yet.
    apt(&install).or_else(|_| apt(&["update"]).and_then(|_| apt(&install)))?;
    Ok(())
}

/// The interpreter of an environment that has what `requirements.txt` pins.
pub(crate) fn python(sources: &Path, folder: &Path) -> anyhow::Result<PathBuf> {
    let wanted = sources.join("requirements.txt");
    let version = quietly(Command::new("python3").arg("--version"), PYTHON_HELP)?;
    let home = folder.join("python");
    let interpreter = home.join("bin").join("python");
    let stamp = format!("{version}{}", read(&wanted)?);
    once(&home, &stamp, || {
        quietly(Command::new("python3").args(["-m", "venv"]).arg(&home), PYTHON_HELP)?;
        let mut pip = Command::new(&interpreter);
        pip.args(["-m", "pip", "install", "--disable-pip-version-check", "-r"]).arg(&wanted);
        let help = format!("are the packages of `{}` within reach?", wanted.display());
        quietly(&mut pip, &help)?;
        Ok(())
    })?;
    Ok(interpreter)
}

/// A folder with the programs and the packages that `package-lock.json` pins beside them, which is
/// where node looks for packages.
pub(crate) fn node(sources: &Path, folder: &Path) -> anyhow::Result<PathBuf> {
    node_by(&["ci"], sources, folder)
}

/// The same where the lock file has the packages of this kind of machine only: `npm ci` refuses
/// such a file, `npm install` keeps to what it pins.
pub(crate) fn node_of_this_machine(sources: &Path, folder: &Path) -> anyhow::Result<PathBuf> {
    node_by(&["install", "--no-save"], sources, folder)
}

fn node_by(how: &[&str], sources: &Path, folder: &Path) -> anyhow::Result<PathBuf> {
    let home = folder.join("node");
    let version = quietly(Command::new("node").arg("--version"), NODE_HELP)?;
    let pins = ["package.json", "package-lock.json"];
    let texts: Vec<String> =
        pins.iter().map(|pin| read(&sources.join(pin))).collect::<anyhow::Result<_>>()?;
    once(&home, &format!("{version}{}", texts.concat()), || {
        for (pin, text) in pins.iter().zip(&texts) {
            write(&home.join(pin), text)?;
        }
        let mut npm = Command::new("npm");
        npm.args(how).args(["--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(&home);
        quietly(&mut npm, NODE_HELP)?;
        Ok(())
    })?;
    let whole = || format!("cannot copy the programs of `{}`", sources.display());
    for entry in fs::read_dir(sources).with_context(whole)? {
        let path = entry.with_context(whole)?.path();
        if path.extension().is_some_and(|extension| extension == "mjs") {
            fs::copy(&path, home.join(path.file_name().unwrap_or_default())).with_context(whole)?;
        }
    }
    Ok(home)
}

/// A subcommand of cargo, and the version of it that was tried.
pub(crate) struct CargoTool {
    pub(crate) command: &'static str,
    pub(crate) version: &'static str,
}

/// The folder with the program of a cargo subcommand, installed once.
pub(crate) fn cargo_tool(target: &Path, tool: &CargoTool) -> anyhow::Result<PathBuf> {
    let root = target.join("tools");
    let bin = root.join("bin");
    let package = format!("cargo-{}", tool.command);
    let found = Command::new(bin.join(&package)).args([tool.command, "--version"]).output();
    let has_version =
        found.is_ok_and(|it| String::from_utf8_lossy(&it.stdout).trim().ends_with(tool.version));
    if !has_version {
        say::line(&format!("installing {package} {} into {}", tool.version, root.display()));
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut install = Command::new(cargo);
        install.args(["install", "--locked", "--force", "--root"]).arg(&root);
        install.arg(format!("{package}@{}", tool.version));
        quietly(&mut install, CARGO_HELP)?;
    }
    Ok(bin)
}

/// The folder's file, with an error that names it.
pub(crate) fn read(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))
}

/// Makes `home` with `work`, unless it was finished for the same stamp.
fn once(home: &Path, stamp: &str, work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
    let kept = home.join("stamp");
    if fs::read_to_string(&kept).is_ok_and(|text| text == stamp) {
        return Ok(());
    }
    say::line(&format!("installing into {}", home.display()));
    if home.exists() {
        fs::remove_dir_all(home).with_context(|| format!("cannot empty `{}`", home.display()))?;
    }
    fs::create_dir_all(home).with_context(|| format!("cannot make `{}`", home.display()))?;
    work()?;
    write(&kept, stamp)
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write `{}`", path.display()))
}

/// Runs a command to its end and gives its output, which is shown only when it fails.
pub(crate) fn quietly(command: &mut Command, help: &str) -> anyhow::Result<String> {
    let line = format!("{command:?}");
    let done = command.stdin(Stdio::null()).output();
    let done = done.with_context(|| format!("cannot start {line}: {help}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if !done.status.success() {
        bail!("{line}: {}\n{}{}\n{help}", done.status, text(&done.stdout), text(&done.stderr));
    }
    Ok(text(&done.stdout))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::process::Command;

    use super::{once, quietly};

    #[test]
    fn an_installation_is_used_again_only_when_it_was_finished_for_the_same_pins() {
        let home = std::env::temp_dir().join(format!("tidegate-sdk-{}", std::process::id()));
        let runs = Cell::new(0);
        let install = |stamp: &str, is_good: bool| {
            once(&home, stamp, || {
                runs.set(runs.get() + 1);
                anyhow::ensure!(is_good, "broke off");
                Ok(())
            })
        };
        let results = [
            install("one", false).is_err(),
            install("one", true).is_ok(),
            install("one", true).is_ok(),
            install("two", true).is_ok(),
        ];
        drop(std::fs::remove_dir_all(&home));
        assert_eq!((results, runs.get()), ([true; 4], 3));
    }

    #[test]
    fn a_program_that_is_missing_is_an_error_that_says_what_to_install() {
        let missing = quietly(&mut Command::new("no-such-program"), "install it");
        let text = format!("{:#}", missing.expect_err("there is no such program"));
        assert!(text.contains("no-such-program") && text.contains("install it"), "{text}");
    }
}
