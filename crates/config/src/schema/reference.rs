//! The config reference: a table per section, made from the schema.
//!
//! Sections come in the order in which they are first mentioned, from the top of the file inwards.
//! Values with a form of their own (durations, sizes, words) are explained once, at the end.

use std::fmt::Write;

use serde_json::Value;

use super::json_schema;

const HEAD: &str = "# The config file\n\n\
    Generated from the types that read the file: do not edit. `tidegate schema` prints the same as \
    JSON Schema.\n\n\
    Every key of a section may be left out unless its default says `needed`. A complete file is in \
    [example.yaml](example.yaml).\n";

/// The config reference as Markdown.
#[must_use]
pub fn config_reference() -> String {
    let schema = json_schema();
    let mut sections = vec![("the top level".to_owned(), &schema)];
    let mut values: Vec<(String, &Value)> = Vec::new();
    let mut at = 0;
    while at < sections.len() {
        let names = properties(sections[at].1).flat_map(|(_, property)| references(property));
        for name in names.collect::<Vec<_>>() {
            let target = &schema["$defs"][&name];
            let list = if target.get("properties").is_some() { &mut sections } else { &mut values };
            if !list.iter().any(|(known, _)| *known == name) {
                list.push((name, target));
            }
        }
        at += 1;
    }
    let mut out = HEAD.to_owned();
    for (name, section) in sections {
        push_section(&mut out, &name, section);
    }
    push_values(&mut out, &values);
    out
}

fn push_section(out: &mut String, name: &str, section: &Value) {
    let about = section["description"].as_str().unwrap_or_default();
    let needed = section["required"].as_array().cloned().unwrap_or_default();
    push(out, &format!("\n## {}\n\n{about}\n", title(name)));
    push(out, "| key | type | default | meaning | example |\n|---|---|---|---|---|");
    for (key, property) in properties(section) {
        let default = match property.get("default") {
            _ if needed.iter().any(|needed| needed == key) => "needed".to_owned(),
            Some(value) => code(value),
            None if property.get("$ref").is_some() => "see there".to_owned(),
            None => "–".to_owned(),
        };
        let example = property["examples"].get(0).map(code).unwrap_or_default();
        let meaning = property["description"].as_str().unwrap_or_default();
        let row = [format!("`{key}`"), type_of(property), default, meaning.to_owned(), example];
        let row = row.map(|cell| cell.replace('|', "\\|").replace('\n', " "));
        push(out, &format!("| {} |", row.join(" | ")));
    }
}

fn push_values(out: &mut String, values: &[(String, &Value)]) {
    push(out, "\n## Values");
    for (name, schema) in values {
        let about = schema["description"].as_str().unwrap_or_default();
        push(out, &format!("\n### {}\n\n{about}", title(name)));
        let words = schema["oneOf"].as_array().into_iter().flatten();
        let words: Vec<String> = words
            .filter_map(|word| {
                let meaning = word["description"].as_str()?;
                Some(format!("- `{}`: {meaning}", word["const"].as_str()?))
            })
            .collect();
        if !words.is_empty() {
            push(out, &format!("\n{}", words.join("\n")));
        }
        let examples: Vec<String> =
            schema["examples"].as_array().into_iter().flatten().map(code).collect();
        if !examples.is_empty() {
            push(out, &format!("\nExamples: {}.", examples.join(", ")));
        }
    }
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema["properties"].as_object().into_iter().flatten()
}

/// The names of the definitions that a schema refers to.
fn references(schema: &Value) -> Vec<String> {
    match schema {
        Value::Object(map) => map
            .iter()
            .flat_map(|(key, value)| match value.as_str().filter(|_| key == "$ref") {
                Some(reference) => vec![reference.trim_start_matches("#/$defs/").to_owned()],
                None => references(value),
            })
            .collect(),
        Value::Array(list) => list.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}

/// What a key takes, in a word or two.
fn type_of(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.trim_start_matches("#/$defs/");
        return format!("[{}](#{})", title(name), title(name).replace(' ', "-"));
    }
    if let Some(branches) = schema["anyOf"].as_array() {
        let real = branches.iter().filter(|branch| branch["type"] != "null");
        return real.map(type_of).collect::<Vec<_>>().join(" or ");
    }
    let name = match &schema["type"] {
        Value::Array(names) => names.iter().filter_map(Value::as_str).find(|name| *name != "null"),
        name => name.as_str(),
    };
    match name {
        Some("array") => format!("list of {}", type_of(&schema["items"])),
        Some("object") => match &schema["additionalProperties"] {
            inner @ Value::Object(_) => format!("map to {}", type_of(inner)),
            _ => "map".to_owned(),
        },
        Some("string") => "text".to_owned(),
        Some("integer") => "whole number".to_owned(),
        Some("number") => "number".to_owned(),
        Some("boolean") => "`true` or `false`".to_owned(),
        _ => "anything".to_owned(),
    }
}

fn code(value: &Value) -> String {
    match value {
        Value::String(text) => format!("`{text}`"),
        other => format!("`{other}`"),
    }
}

/// `RetryBudgetFile` as `retry budget`.
fn title(name: &str) -> String {
    let name = name.strip_suffix("File").or_else(|| name.strip_suffix("Word")).unwrap_or(name);
    let mut title = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !title.is_empty() {
            title.push(' ');
        }
        title.extend(c.to_lowercase());
    }
    title
}

fn push(out: &mut String, text: &str) {
    writeln!(out, "{text}").expect("writing to a String never fails");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_the_file_is_in_the_reference() {
        let text = config_reference();
        for key in ["failure_threshold", "max_hops", "keepalive", "anthropic", "`5m`", "needed"] {
            assert!(text.contains(key), "{key} is missing");
        }
        let schema = json_schema();
        let sections = schema["$defs"].as_object().expect("sections");
        for (name, section) in sections {
            let level = if section.get("properties").is_some() { "##" } else { "###" };
            assert!(text.contains(&format!("\n{level} {}\n", title(name))), "{name} is missing");
        }
    }
}
