//! `cargo xtask bench instructions`: how many instructions a request takes, case by case.
//!
//! The gateway runs under valgrind's callgrind. After a warm-up it answers N requests and then 2 N;
//! the difference, by N, is what one request takes, without whatever was constant. Client and
//! upstream are one thread of this process and take turns, so every request finds the gateway in
//! the same state. Instructions do not depend on what else the machine does; they leave out the
//! kernel, which is about half of the CPU time of a request.
//!
//! | words | does |
//! |---|---|
//! | | the optimised build with its names, beside the committed figures |
//! | `--write` | the same, and writes the figures into [`baseline::FILE`] |
//! | `--check [--write]` | what CI does: the build of the tests, fewer requests, fails at +5 % |
//! | `--sizes` | what a request takes as routes, targets and the like grow |
//! | `--binary FILE`, `--only CASE` | a binary that is there; one case |

mod baseline;
mod callgrind;
mod case;
mod exchange;
mod sizes;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};

use self::baseline::{Baseline, Figures};
use self::callgrind::Counted;
use self::case::Case;
pub(super) use self::case::{LISTENING, ROUTE, provider};
pub(super) use self::exchange::{TurnClient, Upstream};
use crate::gateway::Gateway;
use crate::install::{debian, quietly};
use crate::stage::Stage;
use crate::{docs, say};

const USAGE: &str = "usage: cargo xtask bench instructions [--check] [--write] [--sizes] \
                     [--binary FILE] [--only CASE]";

/// What is counted, and how.
#[derive(Clone, Debug, Default)]
struct Wish {
    is_check: bool,
    writes: bool,
    sizes: bool,
    binary: Option<PathBuf>,
    only: Option<String>,
}

impl Wish {
    fn read(words: &[&str]) -> anyhow::Result<Self> {
        let mut wish = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--check" => wish.is_check = true,
                "--write" => wish.writes = true,
                "--sizes" => wish.sizes = true,
                "--binary" => wish.binary = Some(words.next().context(USAGE)?.into()),
                "--only" => wish.only = Some((*words.next().context(USAGE)?).to_owned()),
                _ => bail!("{USAGE}"),
            }
        }
        Ok(wish)
    }

    /// The build whose figures are looked at.
    fn build(&self) -> &'static str {
        if self.is_check { "tests" } else { "optimised" }
    }

    fn cases(&self) -> anyhow::Result<Vec<Case>> {
        let mut cases = Case::all();
        match &self.only {
            Some(only) => cases.retain(|case| case.name == only),
            None => cases.retain(|case| !self.is_check || case.is_steady),
        }
        let names: Vec<&str> = Case::all().iter().map(|case| case.name).collect();
        ensure!(!cases.is_empty(), "there is no such case; there are: {}", names.join(", "));
        Ok(cases)
    }
}

/// Counts what the words ask for.
pub(crate) fn run(words: &[&str]) -> anyhow::Result<()> {
    let wish = Wish::read(words)?;
    debian("valgrind", "valgrind")?;
    let binary = match &wish.binary {
        Some(binary) => binary.clone(),
        None if wish.is_check => tests_build()?,
        None => optimised_build()?,
    };
    let folder = docs::root().join("target/bench");
    std::fs::create_dir_all(&folder).context("cannot make `target/bench`")?;
    if wish.sizes {
        return sizes::run(&binary, &folder);
    }
    let before = Baseline::read()?;
    let known = before.of(wish.build(), &compiler()?);
    if wish.is_check && !wish.writes && known.is_none() {
        say::line(&format!(
            "instructions: skipped, because the committed figures are of another compiler or \
             processor than {}; write new ones by `cargo xtask bench instructions --check --write`",
            compiler()?
        ));
        return Ok(());
    }
    let mut figures = Figures::default();
    let mut grown = Vec::new();
    for case in wish.cases()? {
        let times = if wish.is_check { case.times_in_ci } else { case.times };
        let counted = case.count(&binary, &folder, times)?;
        let known = known.and_then(|it| it.get(case.name));
        say::line(&line(&case, &counted, known));
        if known.is_some_and(|known| baseline::has_grown(known, counted.each)) {
            grown.push(case.name);
        }
        ensure!(
            known.is_some() || !wish.is_check || wish.writes,
            "`{}` has no figure for `{}`; `cargo xtask bench instructions --check --write` \
             writes one",
            baseline::FILE,
            case.name
        );
        figures.insert(case.name, counted.each);
        if let Some(percent) = counted.journal_percent {
            say::line(&format!(
                "    of which the journal: {percent:.2} % (`bench journal`: of the CPU)"
            ));
        }
    }
    if wish.writes {
        return before.with(wish.build(), &compiler()?, figures).write();
    }
    ensure!(
        grown.is_empty() || !wish.is_check,
        "more than {} % above the committed figures: {}; if it has to be, \
         `cargo xtask bench instructions --check --write` writes new ones",
        baseline::GROWTH_PERCENT,
        grown.join(", ")
    );
    Ok(())
}

fn line(case: &Case, counted: &Counted, known: Option<u64>) -> String {
    let beside = known.map_or_else(String::new, |known| {
        let change = 100.0 * (counted.each as f64 / known as f64 - 1.0);
        format!(", committed {known}, {change:+.2} %")
    });
    format!("{:<14} {:>9} instructions{beside}  ({})", case.name, counted.each, case.what)
}

/// The compiler, as it names itself: other compilers make other instructions. So do processors:
/// searches and copies choose theirs when they run. Valgrind shows programs the same processor on
/// every machine with AVX2; others are named.
fn compiler() -> anyhow::Result<String> {
    let told = quietly(Command::new("rustc").arg("--version"), "is rustc installed?")?;
    Ok(format!("{}{}", told.trim(), if has_avx2() { "" } else { ", without AVX2" }))
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    std::arch::is_x86_feature_detected!("avx2")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_avx2() -> bool {
    false
}

/// The optimised build, with its names.
fn optimised_build() -> anyhow::Result<PathBuf> {
    Stage::cargo("build", &["build", "--profile", "bench", "-p", "tidegate"]).run()?;
    Ok(target().join("release/tidegate"))
}

/// The build that the tests use.
fn tests_build() -> anyhow::Result<PathBuf> {
    Ok(Gateway::of_tests()?.binary)
}

fn target() -> PathBuf {
    let named = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    named.unwrap_or_else(|| Path::new(&docs::root()).join("target"))
}

#[cfg(test)]
mod tests {
    use super::Wish;

    #[test]
    fn words_are_read_and_nonsense_is_refused() {
        let wish = Wish::read(&["--check", "--only", "chat"]).expect("both are words");
        assert!(wish.is_check && !wish.writes);
        assert_eq!(wish.cases().expect("there is one").len(), 1);
        assert!(Wish::read(&["--only", "nothing"]).expect("a name").cases().is_err());
        for words in [&["--binary"][..], &["--fast"], &["--only"]] {
            assert!(Wish::read(words).is_err(), "{words:?}");
        }
    }
}
