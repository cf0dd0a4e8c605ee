//! Adds up the closing lines of `cargo test`.
//!
//! Cargo prints one `test result: ok. 12 passed; 0 failed; ...` per test binary and no sum. The
//! sum is what a reader wants at the end of a long run.

use std::fmt;

/// Tests that passed and failed so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    passed: u64,
    failed: u64,
}

impl Counts {
    /// Counts made elsewhere.
    pub(crate) fn of(passed: usize, failed: usize) -> Self {
        let count = |tests: usize| u64::try_from(tests).unwrap_or(u64::MAX);
        Self { passed: count(passed), failed: count(failed) }
    }

    /// Takes in one line of `cargo test`; anything but a closing line changes nothing.
    pub(crate) fn read(&mut self, line: &str) {
        let Some(rest) = line.trim_start().strip_prefix("test result: ") else { return };
        let Some((_, numbers)) = rest.split_once(". ") else { return };
        for part in numbers.split(';') {
            let mut words = part.split_whitespace();
            let (Some(count), Some(kind)) = (words.next(), words.next()) else { continue };
            let Ok(count) = count.parse::<u64>() else { continue };
            match kind {
                "passed" => self.passed = self.passed.saturating_add(count),
                "failed" => self.failed = self.failed.saturating_add(count),
                _ => {}
            }
        }
    }

    /// Adds the counts of another run.
    pub(crate) fn add(&mut self, other: Self) {
        self.passed = self.passed.saturating_add(other.passed);
        self.failed = self.failed.saturating_add(other.failed);
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} passed, {} failed", self.passed, self.failed)
    }
}

#[cfg(test)]
mod tests {
    use super::Counts;

    #[test]
    fn closing_lines_are_summed_and_other_lines_are_not() {
        let mut counts = Counts::default();
        for line in [
            "test breaker::opens ... ok",
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out",
            "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 4 filtered out",
            "the words test result: ok. 9 passed inside a line",
        ] {
            counts.read(line);
        }
        assert_eq!(counts.to_string(), "15 passed, 2 failed");
    }
}
