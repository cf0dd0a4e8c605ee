//! The config file's JSON Schema, and the reference made from it.
//!
//! Both come from the types in [`file`](crate::file), so they cannot disagree with what is
//! accepted. The generated files are committed under `docs/` and a test fails when they are stale.

mod reference;

use schemars::{generate::SchemaSettings, transform::RecursiveTransform};
use serde_json::{Value, json};

use crate::file::ConfigFile;

pub use self::reference::config_reference;

/// The JSON Schema (draft 2020-12) of the config file.
#[must_use]
pub fn json_schema() -> Value {
    let settings = SchemaSettings::draft2020_12().with_transform(RecursiveTransform(tidy));
    let mut schema = settings.into_generator().into_root_schema_for::<ConfigFile>();
    schema.insert("title".to_owned(), json!("Tidegate config"));
    schema.to_value()
}

/// The text of the schema file: indented, with a final newline.
#[must_use]
pub fn json_schema_text() -> String {
    format!("{:#}\n", json_schema())
}

/// "No default" is told by there being none, and a section's defaults stand at its own keys.
fn tidy(schema: &mut schemars::Schema) {
    let is_section = |default: &Value| default.as_object().is_some_and(|map| !map.is_empty());
    if schema.get("default").is_some_and(|default| default.is_null() || is_section(default)) {
        schema.remove("default");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every key of every section, as `Section.key` with its schema.
    fn keys(schema: &Value) -> Vec<(String, Value)> {
        let root = [("Config".to_owned(), schema.clone())];
        let sections = schema["$defs"].as_object().expect("sections").clone();
        let keys = root.into_iter().chain(sections).flat_map(|(section, schema)| {
            let properties = schema["properties"].as_object().cloned().unwrap_or_default();
            properties.into_iter().map(move |(key, schema)| (format!("{section}.{key}"), schema))
        });
        keys.collect()
    }

    #[test]
    fn every_key_has_a_meaning() {
        let keys = keys(&json_schema());
        assert!(keys.len() > 100, "only {} keys were found", keys.len());
        for (key, schema) in keys {
            let text = schema["description"].as_str().unwrap_or_default();
            assert!(text.ends_with('.'), "{key} has no doc line: {schema}");
        }
    }

    #[test]
    fn every_key_has_an_example_or_is_a_section() {
        let is_section = |schema: &Value| schema.to_string().contains("$defs");
        for (key, schema) in keys(&json_schema()) {
            let has_example = schema["examples"].as_array().is_some_and(|list| !list.is_empty());
            assert!(has_example || is_section(&schema), "{key} has no example: {schema}");
        }
    }

    #[test]
    fn the_schema_is_the_same_every_time() {
        assert_eq!(json_schema_text(), json_schema_text());
        assert_eq!(json_schema()["$schema"], "https://json-schema.org/draft/2020-12/schema");
    }
}
