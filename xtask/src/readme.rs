//! `cargo xtask readme`: the line with which the README says to install the gateway.
//!
//! The line is taken from the README, word for word, and run with two more words: a folder to
//! install into, and the tests' profile, since what is tried is the line and not the optimiser.
//! The program that it leaves must then play the README's first outage. It is a build of its own,
//! which takes minutes from nothing, so `nightly` runs it and `ci` does not.

use std::process::Command;

use anyhow::{Context, ensure};

use crate::gateway::Gateway;
use crate::install::{quietly, read};
use crate::stage::Stage;
use crate::{docs, say};

/// Installs the gateway as the README says, and runs it.
pub(crate) fn run() -> anyhow::Result<()> {
    let line = install_line(&read(&docs::root().join("README.md"))?)?;
    let folder = Gateway::target_folder()?.join("installed");
    let root = folder.to_string_lossy();
    let words: Vec<&str> = line.split(' ').skip(1).chain(["--debug", "--root", &root]).collect();
    Stage::cargo("install", &words).run()?;
    let binary = folder.join("bin").join("tidegate");
    let version = quietly(Command::new(&binary).arg("--version"), "the installed program")?;
    let outage = quietly(Command::new(&binary).args(["sim", "hard-outage"]), "its first outage")?;
    ensure!(outage.contains("every expectation held"), "the outage of the README ends otherwise");
    say::line(&format!("`{line}` installs {}", version.trim()));
    Ok(())
}

/// The line of the README that installs the gateway; `docs/install.md` has the same one.
fn install_line(readme: &str) -> anyhow::Result<String> {
    let spans = readme.split('`').skip(1).step_by(2);
    let line = spans.map(str::to_owned).find(|it| it.starts_with("cargo install "));
    line.context("the README does not say how to install the gateway")
}

#[cfg(test)]
mod tests {
    use super::install_line;
    use crate::{docs, install::read};

    const LINE: &str = "cargo install --path crates/tidegate --locked";

    #[test]
    fn the_readme_and_the_page_about_installing_have_the_same_line() {
        let readme = read(&docs::root().join("README.md")).expect("the README");
        assert_eq!(install_line(&readme).expect("a line"), LINE);
        let page = read(&docs::root().join("docs/install.md")).expect("the page");
        assert!(page.lines().any(|line| line == LINE), "docs/install.md has another line");
        assert!(install_line("nothing `cargo build`").is_err());
    }
}
