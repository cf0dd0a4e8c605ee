//! Runs the tests against one fault after another: only those that run through the fault's
//! function, the quick ones first, and no more once one has failed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};

use super::build::TestProgram;
use super::weave::{CHOSEN, REACHED};
use crate::install;

/// Tests that take less run in one process.
const QUICK_MS: u64 = 200;
/// How long tests may take beside what they take without a fault, for a machine that has other
/// work to do.
const SPARE_S: u64 = 20;
/// How much slower a fault may make a test.
const SLOWER: u64 = 10;
/// What a test may take of memory, in KiB: some faults fill a list without end.
const MEMORY_KIB: u64 = 4 << 20;

/// What became of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Caught,
    /// The tests do not end: noticed as well.
    TimedOut,
    Missed,
}

/// A test and what it runs through.
struct Test {
    program: PathBuf,
    /// It uses sockets and the clock, and may fail by chance.
    is_timed: bool,
    name: String,
    took_ms: u64,
    functions: BTreeSet<usize>,
}

/// All tests of a crate.
pub(super) struct Tests {
    tests: Vec<Test>,
}

impl Tests {
    /// Runs each test by itself without a fault, to learn what it runs through.
    pub(super) fn learn(programs: &[TestProgram], folder: &Path) -> anyhow::Result<Self> {
        let reached = folder.join("reached.txt");
        let mut tests = Vec::new();
        for TestProgram { path: program, is_timed } in programs {
            let list = Command::new(program).args(["--list", "--format", "terse"]).output();
            let list = list.with_context(|| format!("cannot start {}", program.display()))?;
            let list = String::from_utf8_lossy(&list.stdout).into_owned();
            for name in list.lines().filter_map(|line| line.strip_suffix(": test")) {
                drop(std::fs::remove_file(&reached));
                let mut run = command(program, &[name], 600);
                run.env(REACHED, &reached);
                let done = run.output().context("cannot start a test")?;
                let text = String::from_utf8_lossy(&done.stdout);
                ensure!(done.status.success(), "`{name}` fails without a fault:\n{text}");
                let took_ms = took_ms(&text).context("a test does not say how long it took")?;
                if *is_timed && took_ms >= QUICK_MS {
                    // Tests that wait for the clock would take a minute for each fault.
                    continue;
                }
                // A test that runs through nothing of the crate leaves no file.
                let functions = install::read(&reached).unwrap_or_default();
                tests.push(Test {
                    program: program.clone(),
                    is_timed: *is_timed,
                    name: name.to_owned(),
                    took_ms,
                    functions: functions.lines().filter_map(|it| it.parse().ok()).collect(),
                });
            }
        }
        tests.sort_by_key(|it| it.took_ms);
        Ok(Self { tests })
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.tests.len()
    }

    /// Switches a fault on and runs the tests of its function.
    pub(super) fn try_fault(&self, fault: usize, function: usize) -> anyhow::Result<Fate> {
        let through = || self.tests.iter().filter(|it| it.functions.contains(&function));
        let mut quick: BTreeMap<&Path, Vec<&Test>> = BTreeMap::new();
        for test in through().filter(|it| it.took_ms < QUICK_MS) {
            quick.entry(&test.program).or_default().push(test);
        }
        let slow = through().filter(|it| it.took_ms >= QUICK_MS).map(|it| vec![it]);
        let mut groups: Vec<Vec<&Test>> = quick.into_values().collect();
        let cost = |group: &Vec<&Test>| {
            let is_timed = group.iter().any(|it| it.is_timed);
            (is_timed, group.iter().map(|it| it.took_ms).sum::<u64>())
        };
        groups.sort_by_key(cost);
        for group in groups.into_iter().chain(slow) {
            let is_timed = group.iter().any(|it| it.is_timed);
            let fate = run_group(&group, fault)?;
            let is_noticed = |fate: Fate| fate != Fate::Missed;
            if is_noticed(fate) && (!is_timed || is_noticed(run_group(&group, fault)?)) {
                return Ok(fate);
            }
        }
        Ok(Fate::Missed)
    }
}

fn run_group(group: &[&Test], fault: usize) -> anyhow::Result<Fate> {
    let Some(first) = group.first() else { return Ok(Fate::Missed) };
    let names: Vec<&str> = group.iter().map(|it| it.name.as_str()).collect();
    let took_ms: u64 = group.iter().map(|it| it.took_ms).sum();
    let mut run = command(&first.program, &names, SPARE_S + SLOWER * took_ms / 1000);
    run.env(CHOSEN, fault.to_string()).stdout(Stdio::null()).stderr(Stdio::null());
    let status = run.status().context("cannot start a test")?;
    Ok(match status.code() {
        Some(0) => Fate::Missed,
        // What `timeout` says.
        Some(124 | 137) => Fate::TimedOut,
        _ => Fate::Caught,
    })
}

/// Tests by name, with an end to time and memory. The first failure and the time of each test
/// are options that the tests' harness of the stable compiler has, but hides.
fn command(program: &Path, names: &[&str], limit_s: u64) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -v {MEMORY_KIB}; exec timeout -k 5 {limit_s} \"$@\"")]);
    command.arg("sh").arg(program);
    command.args(["-Zunstable-options", "--fail-fast", "--report-time", "--exact"]).args(names);
    command.env("RUSTC_BOOTSTRAP", "1").env("RUST_BACKTRACE", "0");
    // Fewer cases: a fault that only one history in thousands shows is not what this looks for.
    command.env("PROPTEST_CASES", "64").env("PROPTEST_MAX_SHRINK_ITERS", "0");
    command.env("TIDEGATE_SEEDS", "30");
    // What a fault breaks is no case to keep: the workspace stays as it is.
    command.env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1");
    command.env_remove(CHOSEN).env_remove(REACHED).stdin(Stdio::null());
    command
}

/// What `… ok <0.012s>` says, in milliseconds.
fn took_ms(text: &str) -> Option<u64> {
    let (_, rest) = text.split_once("... ok <")?;
    let (seconds, _) = rest.split_once("s>")?;
    let (whole, part) = seconds.split_once('.')?;
    Some(whole.parse::<u64>().ok()? * 1000 + part.get(..3)?.parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_test_is_read_from_what_the_harness_says() {
        assert_eq!(took_ms("test a::b ... ok <12.034s>\n"), Some(12_034));
        assert_eq!(took_ms("test a::b ... FAILED <0.034s>\n"), None);
    }
}
