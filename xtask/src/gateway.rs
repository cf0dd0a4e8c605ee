//! The gateway's binary as the chores run it, in the tests' profile.
//!
//! Cargo chooses the features of dependencies by what it is asked to build, so the binary alone and
//! the binary beside all tests are two builds. Whoever runs one chore wants the first, which is the
//! smaller; `ci` has made the second already, and making both would take it five minutes.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

use crate::deny;
use crate::stage::Stage;

/// A built gateway, and the folder for what chores install and write.
pub(crate) struct Gateway {
    pub(crate) binary: PathBuf,
    pub(crate) target: PathBuf,
}

impl Gateway {
    /// Builds the gateway alone.
    pub(crate) fn build() -> anyhow::Result<Self> {
        Stage::cargo("build", &["build", "-p", "tidegate"]).run()?;
        Self::in_target()
    }

    /// The one that the tests of the workspace use in CI; built with all of them if it is not
    /// there. What is built for a second build is cut into other pieces, which takes other
    /// instructions, so it is built as CI does.
    pub(crate) fn of_tests() -> anyhow::Result<Self> {
        let build = Stage::cargo("build", &["test", "--workspace", "--no-run"]);
        build.with_env("CARGO_INCREMENTAL", "0").run()?;
        Self::in_target()
    }

    /// One that is there already: nothing is built.
    pub(crate) fn at(binary: &Path) -> anyhow::Result<Self> {
        let is_file = binary.is_file();
        ensure!(is_file, "`{}` is no file: build it first, or name no binary", binary.display());
        Ok(Self { binary: binary.to_owned(), target: Self::target_folder()? })
    }

    fn in_target() -> anyhow::Result<Self> {
        let target = Self::target_folder()?;
        Ok(Self { binary: target.join("debug").join("tidegate"), target })
    }

    /// Where cargo builds.
    pub(crate) fn target_folder() -> anyhow::Result<PathBuf> {
        let metadata = deny::metadata()?;
        let target = metadata["target_directory"].as_str();
        Ok(Path::new(target.context("cargo names no target folder")?).to_owned())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::Gateway;

    #[test]
    fn a_binary_that_is_named_is_used_as_it_is_and_must_be_there() {
        let own = std::env::current_exe().unwrap_or_default();
        let used = Gateway::at(&own).map(|it| it.binary);
        assert_eq!(used.unwrap_or_default(), own);
        let problem = Gateway::at(Path::new("no/such/tidegate")).map(|_| ());
        let problem = problem.err().map(|it| it.to_string()).unwrap_or_default();
        assert!(problem.contains("no/such/tidegate"), "{problem}");
    }
}
