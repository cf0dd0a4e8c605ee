//! `cargo xtask mutants [core | mcp] [--woven] [--shard K/N] [FILE…]`: small faults put into the
//! code one by one, and which of them no test notices. With `--shard` every Nth fault, from the Kth
//! on (K counts from 0). With `--woven` only those that can be tried in one build.
//!
//! Every fault that survives is a rule that could be broken without a red test: it is killed by a
//! test or explained in CONTRIBUTING.md. The faults are those of `cargo mutants`, which the chore
//! installs; the tests are the crate's own and those of the simulator and the gateway that run
//! through it, without the long random runs.
//!
//! `cargo mutants` builds the crate once for each fault, which takes hours. The chore builds it
//! once for all of them ([`weave`]) and runs for each fault the tests that run through its function
//! ([`trial`]). Only what cannot be woven, faults in constants above all, is left to
//! `cargo mutants`.
//!
//! Results are files under `target/mutants/CRATE`; the faults that survived are listed at the end.
//! The chore fails if fewer than 95 % of the faults that compile are noticed.

mod build;
mod faults;
mod trial;
mod weave;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail, ensure};

use crate::install::{self, CargoTool};
use crate::{deny, docs, say};

use build::{Bed, Built};
use faults::Fault;
use trial::{Fate, Tests};

const MUTANTS: CargoTool = CargoTool { command: "mutants", version: "27.1.0" };

/// The share of faults that tests must notice, in per cent.
const CAUGHT_MIN: usize = 95;

/// A crate whose rules are worth it, and the tests that hold them.
struct Subject {
    name: &'static str,
    package: &'static str,
    tests: &'static [&'static str],
    /// Tests of other crates that run through this one. They are not used where a fault is built
    /// by itself.
    others: Others,
}

/// Tests of the simulator, which runs the rules in scenarios, and of the gateway over sockets.
struct Others {
    packages: &'static [&'static str],
    tests: &'static [&'static str],
}

/// The crate whose tests use sockets and the clock: a test of it may fail by chance, so what it
/// notices is tried twice.
const TIMED: &str = "tidegate-server";

const SUBJECTS: [Subject; 2] = [
    Subject {
        name: "core",
        package: "tidegate-core",
        tests: &["--lib", "--test", "behaviour", "--test", "model"],
        others: Others {
            packages: &["-p", "tidegate-sim"],
            tests: &["--test", "key_pins", "--test", "patience", "--test", "sequence"],
        },
    },
    Subject {
        name: "mcp",
        package: "tidegate-mcp",
        tests: &["--lib", "--test", "properties"],
        others: Others {
            packages: &["-p", "tidegate-sim", "-p", TIMED],
            tests: &["--test", "mcp", "--test", "mcp_properties"],
        },
    },
];

/// Runs it over a crate, or over some of its files.
pub(crate) fn run(words: &[&str]) -> anyhow::Result<()> {
    let (name, rest) = match words {
        [] => ("core", words),
        [name, rest @ ..] => (*name, rest),
    };
    let (is_woven_only, rest) = match rest {
        ["--woven", rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let Some(subject) = SUBJECTS.iter().find(|it| it.name == name) else {
        bail!("no mutants of `{name}`: say `core` or `mcp`");
    };
    let metadata = deny::metadata()?;
    let target = metadata["target_directory"].as_str().context("cargo names no target folder")?;
    let target = Path::new(target);
    let program = install::cargo_tool(target, &MUTANTS)?.join("cargo-mutants");
    let folder = target.join("mutants").join(name);
    fs::create_dir_all(&folder).context("cannot make the folder of the results")?;

    let faults = faults::list(&program, &selection(subject, rest))?;
    ensure!(!faults.is_empty(), "there are no faults in these files");
    say::line(&format!("{} faults of {}", faults.len(), subject.package));
    let bed = Bed::new(&folder)?;
    let built = bed.build(subject, &faults)?;
    let mut tally = try_woven(&faults, &built, &folder)?;
    let left = built.left.iter().map(|number| &faults[number - 1]).collect::<Vec<_>>();
    if is_woven_only {
        say::line(&format!("{} faults cannot be woven and are not tried", left.len()));
    } else if !left.is_empty() {
        say::line(&format!("{} faults are built one by one", left.len()));
        tally.add(one_by_one(&program, subject, &left, &folder)?);
    }
    tally.write(&folder)?;
    tally.report(&folder)
}

/// What `cargo mutants` is told of the crate, the shard and the files.
fn selection<'a>(subject: &Subject, words: &[&'a str]) -> Vec<&'a str> {
    let (shard, files) = match words {
        ["--shard", shard, files @ ..] => (Some(*shard), files),
        files => (None, files),
    };
    let mut selection = vec!["--package", subject.package];
    if let Some(shard) = shard {
        selection.extend(["--shard", shard, "--sharding", "round-robin"]);
    }
    selection.extend(files.iter().flat_map(|file| ["--file", file]));
    selection
}

fn try_woven(faults: &[Fault], built: &Built, folder: &Path) -> anyhow::Result<Tally> {
    let tests = Tests::learn(&built.programs, folder)?;
    let woven = built.function_of.len();
    say::line(&format!("{woven} faults are tried with {} tests", tests.len()));
    let mut tally = Tally::default();
    let name_of = |number: &usize| faults[number - 1].name.clone();
    tally.unviable.extend(built.unviable.iter().map(name_of));
    for (fault, function) in &built.function_of {
        let name = name_of(fault);
        match tests.try_fault(*fault, *function)? {
            Fate::Caught => tally.caught.push(name),
            Fate::TimedOut => tally.timed_out.push(name),
            Fate::Missed => {
                say::line(&format!("no test notices: {name}"));
                tally.missed.push(name);
            }
        }
    }
    Ok(tally)
}

/// Leaves faults to `cargo mutants`.
fn one_by_one(
    program: &Path,
    subject: &Subject,
    left: &[&Fault],
    folder: &Path,
) -> anyhow::Result<Tally> {
    let mut mutants = Command::new(program);
    mutants.args(["mutants", "--package", subject.package, "--jobs", "1", "--output"]).arg(folder);
    let files = left.iter().map(|it| it.file.as_str()).collect::<BTreeSet<_>>();
    mutants.args(files.into_iter().flat_map(|file| ["--file", file]));
    for fault in left {
        mutants.args(["--re", &format!("^{}$", escaped(&fault.name))]);
    }
    mutants.arg("--").args(subject.tests).current_dir(docs::root());
    mutants.env("PROPTEST_CASES", "64").env_remove("CARGO_TARGET_DIR");
    // Every fault is built once and run for seconds: a quick build saves more than quick tests.
    for profile in ["DEV", "TEST"] {
        mutants.env(format!("CARGO_PROFILE_{profile}_OPT_LEVEL"), "0");
        mutants.env(format!("CARGO_PROFILE_{profile}_DEBUG"), "0");
    }
    let status = mutants.status().context("cannot start cargo mutants")?;
    let results = folder.join("mutants.out");
    let mut tally = Tally::read(&results)
        .with_context(|| format!("cargo mutants ended with {status} and left no results"))?;
    // An expression may match more than the fault it was made of.
    tally.keep(|name| left.iter().any(|it| it.name == name));
    Ok(tally)
}

/// A name as a regular expression that only it matches.
fn escaped(name: &str) -> String {
    let escape = |it: char| {
        let is_plain = it.is_alphanumeric() || " _/:<>-,!=&'\"".contains(it);
        if is_plain { it.to_string() } else { format!("\\{it}") }
    };
    name.chars().map(escape).collect()
}

/// What became of the faults, by name.
#[derive(Default)]
struct Tally {
    caught: Vec<String>,
    /// Noticed, because the tests then never end.
    timed_out: Vec<String>,
    missed: Vec<String>,
    /// What does not compile.
    unviable: Vec<String>,
}

impl Tally {
    fn read(results: &Path) -> anyhow::Result<Self> {
        let lines = |name: &str| -> anyhow::Result<Vec<String>> {
            let text = install::read(&results.join(name))?;
            Ok(text.lines().map(str::to_owned).collect())
        };
        Ok(Self {
            caught: lines("caught.txt")?,
            timed_out: lines("timeout.txt")?,
            missed: lines("missed.txt")?,
            unviable: lines("unviable.txt")?,
        })
    }

    fn add(&mut self, other: Self) {
        self.caught.extend(other.caught);
        self.timed_out.extend(other.timed_out);
        self.missed.extend(other.missed);
        self.unviable.extend(other.unviable);
    }

    fn keep(&mut self, is_it: impl Fn(&str) -> bool) {
        let Self { caught, timed_out, missed, unviable } = self;
        for faults in [caught, timed_out, missed, unviable] {
            faults.retain(|it| is_it(it));
        }
    }

    fn write(&self, folder: &Path) -> anyhow::Result<()> {
        for (name, faults) in [
            ("caught.txt", &self.caught),
            ("timeout.txt", &self.timed_out),
            ("missed.txt", &self.missed),
            ("unviable.txt", &self.unviable),
        ] {
            let text: String = faults.iter().map(|it| format!("{it}\n")).collect();
            fs::write(folder.join(name), text).context("cannot write the results")?;
        }
        Ok(())
    }

    fn noticed(&self) -> usize {
        self.caught.len() + self.timed_out.len()
    }

    /// The share that was noticed, in per cent, rounded down.
    fn caught_percent(&self) -> usize {
        (100 * self.noticed()).checked_div(self.noticed() + self.missed.len()).unwrap_or(0)
    }

    fn report(&self, results: &Path) -> anyhow::Result<()> {
        for fault in &self.missed {
            say::line(&format!("no test notices: {fault}"));
        }
        let (noticed, percent) = (self.noticed(), self.caught_percent());
        let all = noticed + self.missed.len();
        let (endless, unviable) = (self.timed_out.len(), self.unviable.len());
        say::line(&format!(
            "{noticed} of {all} noticed ({percent} %), {endless} of them because the tests do not \
             end; {unviable} do not compile; see {}",
            results.display()
        ));
        ensure!(percent >= CAUGHT_MIN, "fewer than {CAUGHT_MIN} % were noticed");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_faults_or_with_too_many_survivors_fails() {
        let some = |number| vec!["a.rs:1:1: replace + with -".to_owned(); number];
        let tally = |caught, missed| Tally {
            caught: some(caught),
            timed_out: some(1),
            missed: some(missed),
            unviable: some(9),
        };
        let results = Path::new("results");
        assert!(Tally::default().report(results).is_err());
        assert!(tally(94, 5).report(results).is_ok());
        assert!(tally(93, 6).report(results).is_err());
    }

    #[test]
    fn a_fault_is_named_to_cargo_mutants_by_an_expression_that_matches_only_it() {
        assert_eq!(
            escaped("a.rs:1:2: replace * with + in X"),
            "a\\.rs:1:2: replace \\* with \\+ in X"
        );
    }
}
