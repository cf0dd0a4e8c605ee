//! What a run of the suite found: checks, each with a status, and what one run lost of another.
//!
//! The suite writes a file of checks per scenario. An id may come several times in one scenario,
//! so a check is known by its scenario, its id, its name and how many of that kind came before it.
//! Only `SUCCESS` is a pass: `INFO` and `SKIPPED` say that there was nothing to check.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::Context;
use serde_json::Value;

use crate::install::read;

/// What tells checks apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct CheckKey {
    scenario: String,
    id: String,
    name: String,
    /// How many checks like this one came before it.
    before: usize,
}

/// How a check ended.
#[derive(Clone, Debug, Default)]
struct Verdict {
    status: String,
    why: String,
}

impl Verdict {
    fn is_pass(&self) -> bool {
        self.status == "SUCCESS"
    }

    fn is_trouble(&self) -> bool {
        self.status == "FAILURE" || self.status == "WARNING"
    }
}

/// The checks of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Checks {
    all: BTreeMap<CheckKey, Verdict>,
}

impl Checks {
    /// Reads what the suite wrote: a folder per scenario, whose name ends with a time.
    pub(super) fn read(results: &Path) -> anyhow::Result<Self> {
        let mut checks = Self::default();
        let whole = || format!("cannot list `{}`", results.display());
        for entry in fs::read_dir(results).with_context(whole)? {
            let folder = entry.with_context(whole)?.path();
            let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let file = folder.join("checks.json");
            let found: Value = serde_json::from_str(&read(&file)?)
                .with_context(|| format!("`{}` is not JSON", file.display()))?;
            for check in found.as_array().into_iter().flatten() {
                checks.take(scenario_of(&name), check);
            }
        }
        Ok(checks)
    }

    /// Takes the checks of another run in, of other scenarios.
    pub(super) fn add(&mut self, other: Self) {
        self.all.extend(other.all);
    }

    fn take(&mut self, scenario: &str, check: &Value) {
        let text = |key: &str| check[key].as_str().unwrap_or_default().to_owned();
        let mut key = CheckKey {
            scenario: scenario.to_owned(),
            id: text("id"),
            name: text("name"),
            before: 0,
        };
        while self.all.contains_key(&key) {
            key.before += 1;
        }
        self.all.insert(key, Verdict { status: text("status"), why: text("errorMessage") });
    }

    /// How many checks passed.
    pub(super) fn passed(&self) -> usize {
        self.all.values().filter(|verdict| verdict.is_pass()).count()
    }

    /// How many checks failed.
    pub(super) fn failed(&self) -> usize {
        self.all.values().filter(|verdict| verdict.status == "FAILURE").count()
    }

    /// What passes here and not in the other run, and what only the other run has trouble with.
    pub(super) fn lost(&self, through: &Self) -> Vec<Loss> {
        let absent = Verdict { status: "absent".to_owned(), why: String::new() };
        let passes = self.all.iter().filter(|(_, direct)| direct.is_pass());
        let gone = passes
            .map(|(key, _)| (key, through.all.get(key).unwrap_or(&absent)))
            .filter(|(_, verdict)| !verdict.is_pass());
        let fresh = through.all.iter().filter(|(key, verdict)| {
            verdict.is_trouble()
                && self.all.get(key).is_none_or(|own| !own.is_pass() && !own.is_trouble())
        });
        gone.chain(fresh).map(|(key, verdict)| Loss::new(key, verdict)).collect()
    }

    /// Checks by scenario, id and status.
    #[cfg(test)]
    pub(super) fn of(checks: &[(&str, &str, &str)]) -> Self {
        let mut made = Self::default();
        for (scenario, id, status) in checks {
            let check = serde_json::json!({ "id": id, "name": id, "status": status });
            made.take(scenario, &check);
        }
        made
    }
}

/// A check that a gateway costs.
#[derive(Debug)]
pub(super) struct Loss {
    pub(super) scenario: String,
    pub(super) id: String,
    name: String,
    verdict: Verdict,
}

impl Loss {
    fn new(key: &CheckKey, verdict: &Verdict) -> Self {
        Self {
            scenario: key.scenario.clone(),
            id: key.id.clone(),
            name: key.name.clone(),
            verdict: verdict.clone(),
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scenario, id, name, verdict: Verdict { status, why } } = self;
        write!(out, "{scenario} {id} ({name}): {status} {why}")
    }
}

/// The scenario in a folder's name: `server-ping-2026-11-16T05-23-24-390Z` is about `ping`.
fn scenario_of(folder: &str) -> &str {
    const TIME: usize = "-2026-11-16T05-23-24-390Z".len();
    let end = folder.len().saturating_sub(TIME);
    let scenario = folder.get(..end).unwrap_or(folder);
    scenario.strip_prefix("server-").unwrap_or(scenario)
}

#[cfg(test)]
mod tests {
    use super::{Checks, scenario_of};

    #[test]
    fn a_folder_is_named_after_its_scenario_and_the_time() {
        assert_eq!(scenario_of("server-ping-2026-11-16T05-23-24-390Z"), "ping");
        assert_eq!(scenario_of("tools_call-2026-11-16T05-23-24-390Z"), "tools_call");
        assert_eq!(scenario_of("odd"), "");
    }

    #[test]
    fn only_a_success_is_a_pass() {
        let checks = Checks::of(&[
            ("ping", "a", "SUCCESS"),
            ("ping", "b", "INFO"),
            ("ping", "c", "FAILURE"),
            ("ping", "d", "SKIPPED"),
        ]);
        assert_eq!((checks.passed(), checks.failed()), (1, 1));
    }

    #[test]
    fn what_passed_and_does_not_is_lost_and_so_is_what_fails_only_now() {
        let direct = Checks::of(&[
            ("ping", "kept", "SUCCESS"),
            ("ping", "dull", "SUCCESS"),
            ("ping", "gone", "SUCCESS"),
            ("ping", "twice", "SUCCESS"),
            ("ping", "twice", "SUCCESS"),
            ("ping", "broken before", "FAILURE"),
            ("ping", "open", "INFO"),
        ]);
        let through = Checks::of(&[
            ("ping", "kept", "SUCCESS"),
            ("ping", "dull", "INFO"),
            ("ping", "twice", "SUCCESS"),
            ("ping", "broken before", "FAILURE"),
            ("ping", "open", "WARNING"),
            ("ping", "new", "FAILURE"),
            ("ping", "gained", "SUCCESS"),
        ]);
        let lost: Vec<_> = direct.lost(&through).iter().map(ToString::to_string).collect();
        let expected = [
            "ping dull (dull): INFO ",
            "ping gone (gone): absent ",
            "ping twice (twice): absent ",
            "ping new (new): FAILURE ",
            "ping open (open): WARNING ",
        ];
        assert_eq!(lost, expected);
        assert!(direct.lost(&direct).is_empty());
    }
}
