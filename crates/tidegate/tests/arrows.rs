//! The arrows between the crates of the workspace, as a test.
//!
//! [`MAY_IMPORT`] is the whole table, crates to come included. An arrow that is not in it makes
//! the test fail: adding one is a change of architecture and is made here on purpose, with a
//! reason in the commit. Arrows of tests and benches count like all others, the crate itself
//! aside: a test that needs a forbidden crate tests the wrong thing.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

/// Which crates of the workspace a crate may import.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("tidegate-core", &[]),
    ("tidegate-text", &[]),
    ("tidegate-config", &["tidegate-core", "tidegate-text"]),
    ("tidegate-init", &["tidegate-config"]),
    ("tidegate-wire", &["tidegate-core"]),
    ("tidegate-mcp", &["tidegate-core", "tidegate-text"]),
    // What the words of a config file mean to the Hub, for the gateway and the simulator.
    ("tidegate-mcp-settings", &["tidegate-core", "tidegate-config", "tidegate-mcp"]),
    ("tidegate-search", &[]),
    // Its example `fit` is about the search.
    ("tidegate-sentence", &["tidegate-search"]),
    // What a request of a dialect needs is the wire crate's to say, for a simulation too.
    (
        "tidegate-sim",
        &[
            "tidegate-core",
            "tidegate-config",
            "tidegate-wire",
            "tidegate-mcp",
            "tidegate-mcp-settings",
            "tidegate-search",
        ],
    ),
    ("tidegate-runtime", &["tidegate-core"]),
    // A client of the admin API: it knows the API's types, and draws what the simulator draws.
    (
        "tidegate-console",
        &[
            "tidegate-core",
            "tidegate-config",
            "tidegate-sim",
            "tidegate-runtime",
            "tidegate-journal",
            "tidegate-net",
        ],
    ),
    ("tidegate-journal", &["tidegate-core", "tidegate-runtime"]),
    ("tidegate-net", &["tidegate-config", "tidegate-text", "tidegate-runtime"]),
    ("tidegate-fakes", &["tidegate-config", "tidegate-runtime", "tidegate-wire"]),
    (
        "tidegate-telemetry",
        &[
            "tidegate-core",
            "tidegate-config",
            "tidegate-runtime",
            "tidegate-net",
            "tidegate-journal",
        ],
    ),
    // The gateway names things to its fleet; whoever serves gives the fleet ears.
    (
        "tidegate-fleet",
        &[
            "tidegate-core",
            "tidegate-config",
            "tidegate-runtime",
            "tidegate-net",
            "tidegate-journal",
        ],
    ),
    (
        "tidegate-gateway",
        &[
            "tidegate-core",
            "tidegate-config",
            "tidegate-text",
            "tidegate-wire",
            "tidegate-mcp",
            "tidegate-runtime",
            "tidegate-net",
            "tidegate-fakes",
            "tidegate-fleet",
            "tidegate-journal",
            "tidegate-telemetry",
        ],
    ),
    // The planes know the ground they share, and nothing of each other.
    (
        "tidegate-llm",
        &[
            "tidegate-core",
            "tidegate-config",
            "tidegate-wire",
            "tidegate-runtime",
            "tidegate-net",
            "tidegate-journal",
            "tidegate-gateway",
        ],
    ),
    (
        "tidegate-mcp-shell",
        &[
            "tidegate-core",
            "tidegate-config",
            "tidegate-text",
            "tidegate-wire",
            "tidegate-mcp",
            "tidegate-mcp-settings",
            "tidegate-search",
            "tidegate-sentence",
            "tidegate-runtime",
            "tidegate-net",
            "tidegate-fakes",
            "tidegate-journal",
            "tidegate-gateway",
        ],
    ),
    (
        "tidegate-operator",
        &[
            "tidegate-core",
            "tidegate-config",
            "tidegate-text",
            "tidegate-wire",
            "tidegate-mcp",
            "tidegate-runtime",
            "tidegate-net",
            "tidegate-journal",
            "tidegate-gateway",
        ],
    ),
    (
        "tidegate-server",
        &[
            "tidegate-core",
            "tidegate-config",
            "tidegate-wire",
            "tidegate-mcp",
            "tidegate-search",
            "tidegate-sentence",
            "tidegate-runtime",
            "tidegate-net",
            "tidegate-fleet",
            "tidegate-fakes",
            "tidegate-journal",
            "tidegate-gateway",
            "tidegate-llm",
            "tidegate-mcp-shell",
            "tidegate-operator",
            "tidegate-testkit",
        ],
    ),
    // Gateways and clients for the tests of the two that follow, and of the server itself.
    ("tidegate-testkit", &["tidegate-config", "tidegate-server"]),
    // What the server and the simulator stand on may be named by the binary too: it prints the
    // types of their interfaces.
    (
        "tidegate",
        &[
            "tidegate-server",
            "tidegate-sim",
            "tidegate-console",
            "tidegate-runtime",
            "tidegate-core",
            "tidegate-config",
            "tidegate-init",
            "tidegate-wire",
            "tidegate-mcp",
            "tidegate-search",
            "tidegate-sentence",
            "tidegate-fakes",
            "tidegate-journal",
            "tidegate-gateway",
            "tidegate-mcp-shell",
            "tidegate-operator",
            "tidegate-testkit",
        ],
    ),
    // Generated files are made from the types of these.
    ("xtask", &["tidegate-config", "tidegate-journal", "tidegate-sim"]),
];

/// The only crate the core may depend on outside of tests and loom runs.
const CORE_NEEDS: &[&str] = &["serde"];

#[test]
fn no_crate_imports_one_that_the_arrows_do_not_allow() {
    assert_eq!(forbidden_arrows(&metadata()), Vec::<String>::new());
}

#[test]
fn the_core_depends_on_serde_only() {
    assert_eq!(extra_needs_of_core(&metadata()), Vec::<String>::new());
}

#[test]
fn a_forbidden_arrow_and_an_unknown_crate_are_caught() {
    let sample = serde_json::json!({ "packages": [
        { "name": "tidegate-core", "dependencies": [{ "name": "tidegate-sim", "kind": "dev" }] },
        { "name": "tidegate-sim", "dependencies": [{ "name": "tidegate-core", "kind": null }] },
        { "name": "tidegate-extra", "dependencies": [] },
    ]});
    let expected = [
        "`tidegate-core` imports `tidegate-sim`, which no arrow allows",
        "`tidegate-extra` is not in the table of arrows",
    ];
    assert_eq!(forbidden_arrows(&sample), expected);
}

#[test]
fn a_second_dependency_of_the_core_is_caught_and_those_of_tests_and_loom_are_not() {
    let sample = serde_json::json!({ "packages": [{ "name": "tidegate-core", "dependencies": [
        { "name": "serde", "kind": null, "target": null },
        { "name": "rand", "kind": null, "target": null },
        { "name": "proptest", "kind": "dev", "target": null },
        { "name": "loom", "kind": null, "target": "cfg(loom)" },
    ]}]});
    assert_eq!(extra_needs_of_core(&sample), ["rand"]);
}

fn metadata() -> Value {
    let args = ["metadata", "--no-deps", "--format-version", "1"];
    let done = Command::new(env!("CARGO")).args(args).output().expect("cargo runs us");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    serde_json::from_slice(&done.stdout).expect("cargo metadata is JSON")
}

fn packages(metadata: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    packages.map(|one| (name(one), &one["dependencies"]))
}

fn name(value: &Value) -> &str {
    value["name"].as_str().expect("cargo metadata gives every package and dependency a name")
}

fn forbidden_arrows(metadata: &Value) -> Vec<String> {
    let members: BTreeSet<&str> = packages(metadata).map(|(name, _)| name).collect();
    let mut problems = Vec::new();
    for (importer, dependencies) in packages(metadata) {
        let Some((_, allowed)) = MAY_IMPORT.iter().find(|(name, _)| *name == importer) else {
            problems.push(format!("`{importer}` is not in the table of arrows"));
            continue;
        };
        for imported in dependencies.as_array().into_iter().flatten().map(name) {
            if members.contains(imported) && imported != importer && !allowed.contains(&imported) {
                problems.push(format!("`{importer}` imports `{imported}`, which no arrow allows"));
            }
        }
    }
    problems
}

fn extra_needs_of_core(metadata: &Value) -> Vec<&str> {
    let core = packages(metadata).find(|(name, _)| *name == "tidegate-core");
    let (_, dependencies) = core.expect("the workspace has a core");
    dependencies
        .as_array()
        .into_iter()
        .flatten()
        .filter(|one| one["kind"].is_null() && one["target"] != "cfg(loom)")
        .map(name)
        .filter(|name| !CORE_NEEDS.contains(name))
        .collect()
}
