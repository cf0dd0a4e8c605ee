//! The files under `docs/` that are made from the config types are fresh, and the example is sound.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tidegate_config::{
    diagnostic::Diagnostic,
    document::{Document, Node, NodeKind, parse},
    load,
    schema::{config_reference, json_schema, json_schema_text},
    secret::AssumedEnvironment,
    source::read_file,
};

fn docs(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

fn check_fresh(name: &str, generated: &str) {
    let committed = std::fs::read_to_string(docs(name)).unwrap_or_default();
    assert!(committed == generated, "docs/{name} is stale: run `cargo xtask docs`");
}

#[test]
fn the_schema_file_is_fresh() {
    check_fresh("tidegate.schema.json", &json_schema_text());
}

#[test]
fn the_reference_is_fresh() {
    check_fresh("config.md", &config_reference());
}

#[test]
fn the_example_has_no_problem_but_what_is_not_built() {
    let source = read_file(&docs("example.yaml")).expect("the example is there");
    let loaded = load(&source, &AssumedEnvironment);
    let is_built = |problem: &&Diagnostic| !problem.message.contains("in this version");
    let found: Vec<_> = loaded.diagnostics.iter().filter(is_built).collect();
    assert!(found.is_empty(), "{found:#?}");
    let config = loaded.config.expect("the example can be used");
    assert_eq!(config.settings.routes.len(), loaded.summary.routes);
}

#[test]
fn the_example_has_every_key_of_the_file() {
    let source = read_file(&docs("example.yaml")).expect("the example is there");
    let document: Document = parse(&source).document.expect("the example is YAML");
    let schema = json_schema();
    let mut unused: Vec<String> = all_keys(&schema);
    used_keys(&schema, &schema, "Config", document.root(), &mut unused);
    assert!(unused.is_empty(), "not in docs/example.yaml: {unused:?}");
}

/// Every key as `Section.key`.
fn all_keys(schema: &Value) -> Vec<String> {
    let sections = schema["$defs"].as_object().expect("sections");
    let named = sections.iter().map(|(name, section)| (name.as_str(), section));
    std::iter::once(("Config", schema))
        .chain(named)
        .flat_map(|(name, section)| {
            let keys = section["properties"].as_object().into_iter().flat_map(|map| map.keys());
            keys.map(move |key| format!("{name}.{key}"))
        })
        .collect()
}

/// Takes the keys that a node uses from the list.
fn used_keys(root: &Value, schema: &Value, name: &str, node: &Node, unused: &mut Vec<String>) {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.trim_start_matches("#/$defs/");
        return used_keys(root, &root["$defs"][name], name, node, unused);
    }
    for branch in schema["anyOf"].as_array().into_iter().flatten() {
        used_keys(root, branch, name, node, unused);
    }
    match &node.kind {
        NodeKind::Map(entries) => {
            for entry in entries {
                let property = &schema["properties"][&entry.key];
                if property.is_null() {
                    used_keys(root, &schema["additionalProperties"], name, &entry.value, unused);
                } else {
                    unused.retain(|key| *key != format!("{name}.{}", entry.key));
                    used_keys(root, property, name, &entry.value, unused);
                }
            }
        }
        NodeKind::Seq(items) => {
            for item in items {
                used_keys(root, &schema["items"], name, item, unused);
            }
        }
        NodeKind::Null | NodeKind::Scalar { .. } => {}
    }
}
