//! `cargo xtask mutants [core | mcp] [--shard K/N] [FILE…]`: small faults put into the code one by
//! one, and which of them no test notices. With `--shard` every Nth fault, from the Kth on (K
//! counts from 0): all of them take hours.
//!
//! Every fault that survives is a rule that could be broken without a red test: it is killed by a
//! test or explained in CONTRIBUTING.md. The faults are those of `cargo mutants`, which the chore
//! installs; the tests are the crate's own, without the long random runs.
//!
//! Results are files under `target/mutants/CRATE/mutants.out`; the faults that survived are listed
//! at the end. The chore fails if fewer than 95 % of the faults that compile are noticed.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail, ensure};

use crate::install::{self, CargoTool};
use crate::{deny, docs, say};

const MUTANTS: CargoTool = CargoTool { command: "mutants", version: "27.1.0" };

/// The share of faults that tests must notice, in per cent.
const CAUGHT_MIN: usize = 95;

/// A crate whose rules are worth it, and the tests that hold them.
struct Subject {
    name: &'static str,
    package: &'static str,
    tests: &'static [&'static str],
}

const SUBJECTS: [Subject; 2] = [
    Subject {
        name: "core",
        package: "tidegate-core",
        tests: &["--lib", "--test", "behaviour", "--test", "model"],
    },
    Subject { name: "mcp", package: "tidegate-mcp", tests: &["--lib", "--tests"] },
];

/// Runs it over a crate, or over some of its files.
pub(crate) fn run(words: &[&str]) -> anyhow::Result<()> {
    let (name, rest) = match words {
        [] => ("core", words),
        [name, rest @ ..] => (*name, rest),
    };
    let (shard, files) = match rest {
        ["--shard", shard, files @ ..] => (Some(*shard), files),
        files => (None, files),
    };
    let Some(subject) = SUBJECTS.iter().find(|it| it.name == name) else {
        bail!("no mutants of `{name}`: say `core` or `mcp`");
    };
    let metadata = deny::metadata()?;
    let target = metadata["target_directory"].as_str().context("cargo names no target folder")?;
    let target = Path::new(target);
    let tools = install::cargo_tool(target, &MUTANTS)?;
    let folder = target.join("mutants").join(name);
    fs::create_dir_all(&folder).context("cannot make the folder of the results")?;
    let mut mutants = Command::new(tools.join("cargo-mutants"));
    mutants.arg("mutants").current_dir(docs::root());
    mutants.args(["--package", subject.package, "--jobs", "1", "--no-shuffle", "--output"]);
    mutants.arg(&folder);
    if let Some(shard) = shard {
        mutants.args(["--shard", shard, "--sharding", "round-robin"]);
    }
    for file in files {
        mutants.args(["--file", file]);
    }
    mutants.arg("--").args(subject.tests);
    // Fewer cases: a fault that only one history in thousands shows is not what this looks for.
    mutants.env("PROPTEST_CASES", "64").env_remove("CARGO_TARGET_DIR");
    // Every fault is built once and run for seconds: a quick build saves more than quick tests.
    for profile in ["DEV", "TEST"] {
        mutants.env(format!("CARGO_PROFILE_{profile}_OPT_LEVEL"), "0");
        mutants.env(format!("CARGO_PROFILE_{profile}_DEBUG"), "0");
    }
    let status = mutants.status().context("cannot start cargo mutants")?;
    let results = folder.join("mutants.out");
    let tally = Tally::read(&results)
        .with_context(|| format!("cargo mutants ended with {status} and left no results"))?;
    tally.report(&results)
}

/// What became of the faults.
struct Tally {
    caught: usize,
    /// Noticed, because the tests then never end.
    timed_out: usize,
    missed: Vec<String>,
}

impl Tally {
    fn read(results: &Path) -> anyhow::Result<Self> {
        let lines = |name: &str| -> anyhow::Result<Vec<String>> {
            let text = install::read(&results.join(name))?;
            Ok(text.lines().map(str::to_owned).collect())
        };
        Ok(Self {
            caught: lines("caught.txt")?.len(),
            timed_out: lines("timeout.txt")?.len(),
            missed: lines("missed.txt")?,
        })
    }

    /// The share that was noticed, in per cent, rounded down.
    fn caught_percent(&self) -> usize {
        let noticed = self.caught + self.timed_out;
        (100 * noticed).checked_div(noticed + self.missed.len()).unwrap_or(0)
    }

    fn report(&self, results: &Path) -> anyhow::Result<()> {
        for fault in &self.missed {
            say::line(&format!("no test notices: {fault}"));
        }
        let (noticed, percent) = (self.caught + self.timed_out, self.caught_percent());
        let all = noticed + self.missed.len();
        say::line(&format!("{noticed} of {all} noticed ({percent} %), see {}", results.display()));
        ensure!(percent >= CAUGHT_MIN, "fewer than {CAUGHT_MIN} % were noticed");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_faults_or_with_too_many_survivors_fails() {
        let tally = |caught, missed| Tally {
            caught,
            timed_out: 1,
            missed: vec!["a.rs:1:1: replace + with -".to_owned(); missed],
        };
        let nothing = Tally { caught: 0, timed_out: 0, missed: Vec::new() };
        let results = Path::new("mutants.out");
        assert!(nothing.report(results).is_err());
        assert!(tally(94, 5).report(results).is_ok());
        assert!(tally(93, 6).report(results).is_err());
    }
}
