//! What the dependency tree may hold.
//!
//! Rules:
//! - the core's only dependency is serde;
//! - no crate of [`BANNED`];
//! - one version per crate in what we ship, [`TWO_VERSIONS`] aside;
//! - a licence that [`LICENCES`] satisfy;
//! - no version that a known advisory is about ([`advisories`]).

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use anyhow::{Context, bail};
use serde_json::Value;

use crate::{advisories, say};

/// Crates we decided against, each with its reason.
const BANNED: &[(&str, &str)] = &[
    ("native-tls", "TLS is rustls"),
    ("openssl-sys", "TLS is rustls"),
    ("serde_yaml", "unmaintained; YAML is read in one file of crates/config"),
    ("serde_yml", "unsound; YAML is read in one file of crates/config"),
];

/// Crates that may be there twice, each with its reason.
const TWO_VERSIONS: &[(&str, &str)] =
    &[("cpufeatures", "sha2 and rand, which the client of the fleet's store needs, differ in it")];

/// Licences we accept, by their SPDX names.
const LICENCES: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Checks every rule and reports all that are broken at once.
pub(crate) fn check() -> anyhow::Result<()> {
    let core = cargo(&["tree", "-p", "tidegate-core", "-e", "normal", "--depth", "1"])?;
    let shipped = cargo(&["tree", "--workspace", "-e", "normal"])?;
    let mut problems = beyond_serde(&crates(&core));
    problems.extend(twice(&crates(&shipped)));
    let metadata = metadata()?;
    problems.extend(refused(&metadata));
    problems.extend(advisories::affected(&versions(&metadata)));
    if let Some(note) = advisories::staleness(today()) {
        say::line(&note);
    }
    if !problems.is_empty() {
        bail!("{}", problems.join("\n"));
    }
    Ok(())
}

/// Whether `cargo deny`, which reads the advisory database from the network, is installed.
pub(crate) fn has_cargo_deny() -> bool {
    output(&["deny", "--version"]).is_ok()
}

/// Name → versions of everything in the lock file, development dependencies included.
fn versions(metadata: &Value) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut found: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        if let (Some(name), Some(version)) = (package["name"].as_str(), package["version"].as_str())
        {
            found.entry(name).or_default().insert(version);
        }
    }
    found
}

/// Days since 1970-01-01.
#[expect(clippy::disallowed_methods, reason = "the age of the advisories is told")]
fn today() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |it| (it.as_secs() / 86_400) as i64)
}

/// `cargo metadata` of the whole tree, for the platform we run on and all others.
pub(crate) fn metadata() -> anyhow::Result<Value> {
    let text = output(&["metadata", "--locked", "--format-version", "1"])?;
    serde_json::from_str(&text).context("cargo metadata is not JSON")
}

fn cargo(tree: &[&str]) -> anyhow::Result<String> {
    let flat = ["--locked", "--prefix", "none", "--format", "{p}"];
    output(&tree.iter().chain(&flat).copied().collect::<Vec<_>>())
}

fn output(args: &[&str]) -> anyhow::Result<String> {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let done = Command::new(program).args(args).output().context("cannot start cargo")?;
    if !done.status.success() {
        bail!("cargo {}: {}", args.join(" "), String::from_utf8_lossy(&done.stderr));
    }
    String::from_utf8(done.stdout).context("cargo's output is not UTF-8")
}

/// Name → versions, from the flat lines `name v1.2.3 (path)` of `cargo tree`.
fn crates(tree: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut found: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for line in tree.lines() {
        let mut words = line.split_whitespace();
        if let (Some(name), Some(version)) = (words.next(), words.next()) {
            found.entry(name).or_default().insert(version);
        }
    }
    found
}

fn beyond_serde(core: &BTreeMap<&str, BTreeSet<&str>>) -> Vec<String> {
    core.keys()
        .filter(|name| !["tidegate-core", "serde"].contains(name))
        .map(|name| format!("`tidegate-core` depends on `{name}`; the core has serde only"))
        .collect()
}

fn twice(shipped: &BTreeMap<&str, BTreeSet<&str>>) -> Vec<String> {
    let is_listed = |name: &str| TWO_VERSIONS.iter().any(|(listed, _)| *listed == name);
    shipped
        .iter()
        .filter(|(name, versions)| versions.len() > 1 && !is_listed(name))
        .map(|(name, versions)| {
            let versions: Vec<_> = versions.iter().copied().collect();
            format!("`{name}` is there in {}; agree on one version", versions.join(" and "))
        })
        .collect()
}

fn refused(metadata: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = package["name"].as_str().unwrap_or("?");
        if let Some((_, reason)) = BANNED.iter().find(|(banned, _)| *banned == name) {
            problems.push(format!("`{name}` is banned: {reason}"));
        }
        match package["license"].as_str() {
            Some(licence) if accepts(licence) => {}
            Some(licence) => problems.push(format!("`{name}` has the licence `{licence}`")),
            None => problems.push(format!("`{name}` names no licence")),
        }
    }
    problems
}

/// Whether an SPDX expression can be met with [`LICENCES`]. `AND` binds tighter than `OR`; `/` is
/// an old way to write `OR`.
fn accepts(expression: &str) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    any_of(&mut rest) && rest.is_empty()
}

fn any_of(rest: &mut &[&str]) -> bool {
    let mut accepted = all_of(rest);
    while let [word, tail @ ..] = *rest
        && *word == "OR"
    {
        *rest = tail;
        accepted |= all_of(rest);
    }
    accepted
}

fn all_of(rest: &mut &[&str]) -> bool {
    let mut accepted = one(rest);
    while let [word, tail @ ..] = *rest
        && *word == "AND"
    {
        *rest = tail;
        accepted &= one(rest);
    }
    accepted
}

fn one(rest: &mut &[&str]) -> bool {
    match *rest {
        ["(", tail @ ..] => {
            *rest = tail;
            let accepted = any_of(rest);
            let [")", tail @ ..] = *rest else { return false };
            *rest = tail;
            accepted
        }
        [licence, "WITH", exception, tail @ ..] => {
            *rest = tail;
            LICENCES.contains(&format!("{licence} WITH {exception}").as_str())
        }
        [licence, tail @ ..] => {
            *rest = tail;
            LICENCES.contains(licence)
        }
        [] => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{accepts, beyond_serde, crates, refused, twice};

    #[test]
    fn a_licence_expression_is_read_with_its_parentheses() {
        for good in ["MIT", "MIT/Apache-2.0", "(MIT OR GPL-3.0) AND Unicode-3.0"] {
            assert!(accepts(good), "{good}");
        }
        for bad in ["GPL-3.0", "MIT AND GPL-3.0", "(MIT", "", "MIT) OR ISC"] {
            assert!(!accepts(bad), "{bad}");
        }
    }

    #[test]
    fn a_second_dependency_of_the_core_is_caught() {
        let tree = "tidegate-core v0.1.0 (/x)\nserde v1.0.0\nrand v0.9.0";
        assert_eq!(beyond_serde(&crates(tree)).len(), 1);
        assert!(beyond_serde(&crates("tidegate-core v0.1.0\nserde v1.0.0")).is_empty());
    }

    #[test]
    fn two_versions_of_a_crate_are_caught() {
        assert_eq!(twice(&crates("hyper v1.0.0\nhyper v2.0.0\nquote v1.0.0")).len(), 1);
        assert!(twice(&crates("hyper v2.0.0\nhyper v2.0.0 (*)")).is_empty());
    }

    #[test]
    fn a_banned_crate_and_a_missing_licence_are_caught() {
        let metadata = serde_json::json!({ "packages": [
            { "name": "serde_yaml", "license": "MIT" },
            { "name": "nameless", "license": null },
            { "name": "fine", "license": "MIT OR Apache-2.0" },
        ]});
        let problems = refused(&metadata);
        assert_eq!(problems.len(), 2, "{problems:?}");
    }
}
