//! The chores that are lists of stages: `ci` and `nightly`.
//!
//! `ci` is everything a change must pass, cheapest first, and stops at the first failure. It has
//! to stay below 35 minutes on two cores from an empty cache: whatever takes longer belongs into
//! `nightly`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::bench::instructions;
use crate::counts::Counts;
use crate::gateway::Gateway;
use crate::stage::{Stage, timed};
use crate::{conformance, dashboard, deny, docs, fleet, mcp, readme, say, sdk};

/// Names a folder of scenario files that must pass; unset: the stage has nothing to run.
const SCENARIOS: &str = "TIDEGATE_SCENARIOS";

/// How many seeds a nightly run gives every timeline example.
const NIGHTLY_SEEDS: &str = "100000";

/// How many cases a nightly run gives every property.
const NIGHTLY_CASES: &str = "20000";

/// Runs every check a change must pass.
#[expect(clippy::disallowed_methods, reason = "the closing line tells the minutes it all took")]
pub(crate) fn ci() -> anyhow::Result<()> {
    let start = std::time::Instant::now();
    let mut counts = Counts::default();
    Stage::cargo("format", &["fmt", "--all", "--check"]).run()?;
    timed("dependencies", "cargo xtask deny", deny::check)?;
    let clippy = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    Stage::cargo("clippy", &clippy).run()?;
    for stage in feature_sets(&deny::metadata()?) {
        stage.run()?;
    }
    fleet::have_store()?;
    counts.add(Stage::cargo("test", &["test", "--workspace", "--no-fail-fast"]).run()?);
    counts.add(sentence_model().run()?);
    counts.add(loom().run()?);
    let check = "cargo xtask bench instructions --check";
    timed("instructions", check, || instructions::run(&["--check"]))?;
    let gateway = Gateway::of_tests()?;
    counts.add(timed("sdk", "cargo xtask sdk", || sdk::run(&gateway))?);
    let quick = "cargo xtask dashboard quick";
    counts.add(timed("dashboard", quick, dashboard::quick)?);
    counts.add(timed("mcp", "cargo xtask mcp", || mcp::run(&gateway))?);
    counts.add(timed("conformance", "cargo xtask conformance", || conformance::run(&gateway))?);
    documentation().run()?;
    let folder = std::env::var_os(SCENARIOS).map(PathBuf::from);
    for stage in scenarios(&gateway.binary, folder)? {
        stage.run()?;
    }
    let minutes = start.elapsed().as_secs_f64() / 60.0;
    say::line(&format!("\nall stages passed in {minutes:.1} min: {counts}"));
    Ok(())
}

/// Runs the long versions: the tests with many cases and seeds, then every example with many
/// seeds through the release binary.
pub(crate) fn nightly() -> anyhow::Result<()> {
    let counts = Stage::cargo("long tests", &["test", "--workspace"])
        .with_env("PROPTEST_CASES", NIGHTLY_CASES)
        .with_env("TIDEGATE_SEEDS", NIGHTLY_SEEDS)
        .run()?;
    let sim =
        ["run", "--release", "-p", "tidegate", "--", "sim", "--all", "--seeds", NIGHTLY_SEEDS];
    Stage::cargo("seeds", &sim).run()?;
    timed("readme", "cargo xtask readme", readme::run)?;
    if deny::has_cargo_deny() {
        Stage::cargo("advisories", &["deny", "check", "advisories"]).run()?;
    } else {
        say::line("advisories: `cargo deny` is not installed, the dated copy was checked in `ci`");
    }
    say::line(&format!("\nnightly passed: {counts}"));
    Ok(())
}

/// A sentence model, which default builds leave out: loading one, and a gateway that runs one. The
/// whole workspace is named so that everything that does not know of it stays as it was built.
fn sentence_model() -> Stage {
    let features = "tidegate-sentence/onnx,tidegate-sentence/tiny,tidegate-server/model";
    let tests = ["--test", "loading", "--test", "search_model"];
    let args = ["test", "--workspace", "--features", features];
    Stage::cargo("sentence model", &[&args[..], &tests[..]].concat())
}

/// The interleaving tests of the core. `--cfg loom` changes every crate below them, so they get a
/// target folder of their own instead of throwing away everybody's build.
fn loom() -> Stage {
    let target = std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| "target".to_owned());
    let target = format!("{target}/loom");
    Stage::cargo(
        "loom",
        &["test", "-p", "tidegate-core", "--test", "loom", "--target-dir", &target],
    )
    .with_env("RUSTFLAGS", "--cfg loom")
}

fn documentation() -> Stage {
    // The binary shares its name with nobody's library, but its pages help no reader.
    let args = ["doc", "--no-deps", "--workspace", "--lib"];
    Stage::cargo("documentation", &args).with_env("RUSTDOCFLAGS", "-D warnings")
}

/// A crate with feature flags must also build with none and with all of them; the default set is
/// what the other stages build.
fn feature_sets(metadata: &serde_json::Value) -> Vec<Stage> {
    let members: BTreeSet<&str> = metadata["workspace_members"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(serde_json::Value::as_str)
        .collect();
    let mut stages = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let is_member = package["id"].as_str().is_some_and(|id| members.contains(id));
        let has_features = package["features"].as_object().is_some_and(|all| !all.is_empty());
        let Some(name) = package["name"].as_str().filter(|_| is_member && has_features) else {
            continue;
        };
        for set in ["--no-default-features", "--all-features"] {
            stages.push(Stage::cargo(&format!("{name} {set}"), &["check", "-p", name, set]));
        }
    }
    stages
}

/// One stage per scenario file in `folder`, so that a failure names the file.
fn scenarios(binary: &Path, folder: Option<PathBuf>) -> anyhow::Result<Vec<Stage>> {
    let Some(folder) = folder else { return Ok(Vec::new()) };
    let files = scenario_files(&folder)?;
    if files.is_empty() {
        bail!("no `*.yaml` in `{}`, which {SCENARIOS} names", folder.display());
    }
    let stage = |file: &PathBuf| {
        let path = file.to_string_lossy();
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        Stage::program(&format!("scenario {name}"), binary, &["sim", "--file", &path])
    };
    Ok(files.iter().map(stage).collect())
}

fn scenario_files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let whole = || format!("cannot list `{}`, which {SCENARIOS} names", folder.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(docs::root().join(folder)).with_context(whole)? {
        let path = entry.with_context(whole)?.path();
        if path.extension().is_some_and(|ext| ext == "yaml" || ext == "yml") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{feature_sets, scenarios};
    use crate::docs::root;

    #[test]
    fn a_member_with_features_is_built_with_none_and_with_all() {
        let metadata = serde_json::json!({
            "workspace_members": ["a", "b"],
            "packages": [
                { "id": "a", "name": "a", "features": {} },
                { "id": "b", "name": "b", "features": { "otlp": [] } },
                { "id": "c", "name": "c", "features": { "std": [] } },
            ],
        });
        let lines: Vec<_> = feature_sets(&metadata).iter().map(|one| one.repeat_line()).collect();
        let expected = [
            "cargo check --locked -p b --no-default-features",
            "cargo check --locked -p b --all-features",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_scenario_folder_that_is_missing_or_holds_none_is_an_error() {
        let scenarios = |folder| scenarios(Path::new("tidegate"), folder);
        assert!(scenarios(Some(root().join("no-such-folder"))).is_err());
        assert!(scenarios(Some(root().join(".cargo"))).is_err());
        assert!(scenarios(None).expect("nothing to list").is_empty());
    }
}
