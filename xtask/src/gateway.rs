//! The gateway's binary as the chores run it, in the tests' profile.
//!
//! Cargo chooses the features of dependencies by what it is asked to build, so the binary alone and
//! the binary beside all tests are two builds. Whoever runs one chore wants the first, which is the
//! smaller; `ci` has made the second already, and making both would take it five minutes.

use std::path::{Path, PathBuf};

use anyhow::Context;

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

    fn in_target() -> anyhow::Result<Self> {
        let metadata = deny::metadata()?;
        let target = metadata["target_directory"].as_str();
        let target = Path::new(target.context("cargo names no target folder")?).to_owned();
        Ok(Self { binary: target.join("debug").join("tidegate"), target })
    }
}
