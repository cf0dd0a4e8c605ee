//! The committed figures, and when a new one is too high.
//!
//! A compiler makes its own instructions, so figures are compared with those of the same compiler
//! only. There is one set per build: `optimised` (`--profile bench`) and `tests`, which CI counts.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use crate::{docs, say};

/// Where the figures are, below the root.
pub(super) const FILE: &str = "bench/instructions.json";

/// How much a case may grow. Two runs differ by less than one per cent.
pub(super) const GROWTH_PERCENT: u64 = 5;

/// Whether a count is too much more than the one known.
pub(super) fn has_grown(known: u64, counted: u64) -> bool {
    counted * 100 > known * (100 + GROWTH_PERCENT)
}

/// Instructions by case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Figures(BTreeMap<String, u64>);

impl Figures {
    pub(super) fn get(&self, case: &str) -> Option<u64> {
        self.0.get(case).copied()
    }

    pub(super) fn insert(&mut self, case: &str, count: u64) {
        self.0.insert(case.to_owned(), count);
    }
}

/// All that is committed.
#[derive(Clone, Debug, Default)]
pub(super) struct Baseline {
    builds: BTreeMap<String, Build>,
}

#[derive(Clone, Debug, Default)]
struct Build {
    compiler: String,
    figures: Figures,
}

impl Baseline {
    /// Reads the file.
    pub(super) fn read() -> anyhow::Result<Self> {
        let path = path();
        let text = fs::read_to_string(&path)
            .with_context(|| format!("cannot read `{}`", path.display()))?;
        Self::parse(&text).with_context(|| format!("`{FILE}` is not what this command writes"))
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let all: Value = serde_json::from_str(text).context("it is no JSON")?;
        let mut builds = BTreeMap::new();
        for (name, build) in all.as_object().context("it is no object")? {
            let compiler = build["compiler"].as_str().context("a build names no compiler")?;
            let mut figures = Figures::default();
            for (case, count) in build["cases"].as_object().context("a build has no cases")? {
                let count = count.as_u64().context("a count is a number")?;
                ensure!(count > 0, "a count of nothing");
                figures.insert(case, count);
            }
            builds.insert(name.clone(), Build { compiler: compiler.to_owned(), figures });
        }
        Ok(Self { builds })
    }

    /// The figures of a build, if this compiler made them.
    pub(super) fn of(&self, build: &str, compiler: &str) -> Option<&Figures> {
        let build = self.builds.get(build).filter(|it| it.compiler == compiler)?;
        Some(&build.figures)
    }

    /// With new figures for the cases that were counted. Those of another compiler are dropped.
    pub(super) fn with(mut self, build: &str, compiler: &str, new: Figures) -> Self {
        let mut figures = self.of(build, compiler).cloned().unwrap_or_default();
        figures.0.extend(new.0);
        let compiler = compiler.to_owned();
        self.builds.insert(build.to_owned(), Build { compiler, figures });
        self
    }

    pub(super) fn write(&self) -> anyhow::Result<()> {
        fs::write(path(), self.text()).with_context(|| format!("cannot write `{FILE}`"))?;
        say::line(&format!("written to {FILE}"));
        Ok(())
    }

    fn text(&self) -> String {
        let mut all = serde_json::Map::new();
        for (name, build) in &self.builds {
            let cases: serde_json::Map<String, Value> =
                build.figures.0.iter().map(|(case, count)| (case.clone(), json!(count))).collect();
            all.insert(name.clone(), json!({ "compiler": build.compiler, "cases": cases }));
        }
        format!("{:#}\n", Value::Object(all))
    }
}

fn path() -> PathBuf {
    docs::root().join(FILE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_may_grow_by_five_per_cent_and_no_more() {
        assert!(!has_grown(1000, 900) && !has_grown(1000, 1050));
        assert!(has_grown(1000, 1051));
    }

    #[test]
    fn figures_are_written_as_they_are_read_and_belong_to_one_compiler() {
        let mut figures = Figures::default();
        figures.insert("chat", 50_000);
        let text = Baseline::default().with("tests", "rustc 1", figures.clone()).text();
        let read = Baseline::parse(&text).expect("its own text");
        assert_eq!(read.of("tests", "rustc 1"), Some(&figures));
        assert_eq!(read.of("tests", "rustc 2"), None);
        assert_eq!(read.of("optimised", "rustc 1"), None);
        let mut more = Figures::default();
        more.insert("frame", 9);
        let both = read.clone().with("tests", "rustc 1", more.clone());
        assert_eq!(both.of("tests", "rustc 1").and_then(|it| it.get("chat")), Some(50_000));
        let other = read.with("tests", "rustc 2", more);
        assert_eq!(other.of("tests", "rustc 2").and_then(|it| it.get("chat")), None);
        assert!(Baseline::parse("{\"tests\": {\"compiler\": \"x\"}}").is_err());
        assert!(Baseline::parse(r#"{"tests":{"compiler":"x","cases":{"chat":0}}}"#).is_err());
    }

    #[test]
    fn the_committed_file_can_be_read() {
        Baseline::read().expect("it is committed");
    }
}
