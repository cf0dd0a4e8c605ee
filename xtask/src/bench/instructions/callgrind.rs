//! A gateway under callgrind, whose counts are taken between requests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use crate::bench::journal;
use crate::install::quietly;
use crate::process::{self, Process};

const HELP: &str = "install valgrind (Debian: `apt install valgrind`)";

/// What one request took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted {
    pub(super) each: u64,
    /// The share of what records the request, where the case asks for it.
    pub(super) journal_percent: Option<f64>,
}

/// A gateway that is counted.
pub(super) struct CountedGateway {
    process: Process,
    /// Where callgrind writes; each dump adds a number.
    out: PathBuf,
    dumps: u32,
    /// Its address, as `http://host:port`.
    pub(super) url: String,
}

impl CountedGateway {
    /// Starts it with one thread; nothing is counted yet.
    pub(super) fn start(
        binary: &Path,
        folder: &Path,
        name: &str,
        config: &str,
    ) -> anyhow::Result<Self> {
        let file = folder.join(format!("instructions-{name}.yaml"));
        fs::write(&file, config).context("cannot write the config")?;
        let out = folder.join(format!("instructions-{name}.callgrind"));
        let mut serve = Command::new("valgrind");
        serve
            .args(["--tool=callgrind", "--instr-atstart=no"])
            .arg(format!("--callgrind-out-file={}", out.display()))
            .arg(binary)
            .args(["serve", "--threads", "1", "--config"])
            .arg(&file);
        let log = folder.join(format!("instructions-{name}.log"));
        let (process, url) = process::gateway(serve, &log).context(HELP)?;
        Ok(Self { process, out, dumps: 0, url })
    }

    /// What something takes, done so many times and twice as often; after a warm-up.
    pub(super) fn count_each(
        &mut self,
        times: u32,
        mut act: impl FnMut() -> anyhow::Result<()>,
    ) -> anyhow::Result<u64> {
        let mut repeat = |times: u32| (0..times).try_for_each(|_| act());
        repeat(times / 4)?;
        self.begin()?;
        repeat(times)?;
        let once = self.instructions()?;
        repeat(2 * times)?;
        let twice = self.instructions()?;
        Ok(twice.saturating_sub(once) / u64::from(times))
    }

    /// Begins to count.
    fn begin(&self) -> anyhow::Result<()> {
        self.control(&["-i", "on"])?;
        self.control(&["-z"])
    }

    /// The instructions since the last time.
    fn instructions(&mut self) -> anyhow::Result<u64> {
        self.control(&["-d"])?;
        self.dumps += 1;
        let text = fs::read_to_string(self.last_dump()).context("callgrind wrote no counts")?;
        total(&text).context("callgrind's counts have no total")
    }

    /// The share of the journal in the last dump.
    pub(super) fn journal_percent(&self) -> anyhow::Result<f64> {
        journal::percent_of(&self.last_dump())
    }

    fn last_dump(&self) -> PathBuf {
        PathBuf::from(format!("{}.{}", self.out.display(), self.dumps))
    }

    fn control(&self, words: &[&str]) -> anyhow::Result<()> {
        let mut command = Command::new("callgrind_control");
        let told = quietly(command.args(words).arg(self.process.pid().to_string()), HELP)?;
        ensure!(!told.contains("Error"), "callgrind_control: {told}");
        Ok(())
    }
}

/// The instructions of a dump.
fn total(text: &str) -> Option<u64> {
    let told = text.lines().find_map(|line| line.strip_prefix("totals: "))?;
    told.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::total;

    #[test]
    fn the_total_of_a_dump_is_read() {
        assert_eq!(total("version: 1\nfn=(1)\n+1 5\n\ntotals: 1234\n"), Some(1234));
        assert_eq!(total("version: 1\n"), None);
    }
}
