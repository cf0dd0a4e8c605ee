//! The text of a draft: block style for what has a name, flow style for what fits into a line.

use serde_json::{Map, Value};

use super::Draft;
use crate::scalar::scalar;

/// A list or map that would make a longer line is written over several.
const MAX_COLUMNS: usize = 96;

impl Draft {
    /// The text of the file.
    pub(super) fn text(&self) -> String {
        let mut out = String::new();
        comment(&self.heading, &mut out);
        for (key, value) in &self.tree {
            if !out.is_empty() {
                out.push('\n');
            }
            comment(self.comments.get(key).map(Vec::as_slice).unwrap_or_default(), &mut out);
            entry(key, value, 0, &mut out);
        }
        out
    }
}

fn comment(lines: &[String], out: &mut String) {
    for line in lines {
        out.push_str(format!("# {line}").trim_end());
        out.push('\n');
    }
}

fn entry(key: &str, value: &Value, indent: usize, out: &mut String) {
    let start = format!("{}{}:", " ".repeat(indent), scalar(key));
    match value {
        Value::Object(map) if is_block(map, indent, &start) => {
            out.push_str(&format!("{start}\n"));
            for (key, value) in map {
                entry(key, value, indent + 2, out);
            }
        }
        Value::Array(items) if is_tall(items, &start) => {
            out.push_str(&format!("{start}\n"));
            for item in items {
                out.push_str(&format!("{}- {}\n", " ".repeat(indent + 2), flow(item)));
            }
        }
        value => out.push_str(&format!("{start} {}\n", flow(value))),
    }
}

/// The named things of a file stand in blocks: sections, and each provider, route and server.
fn is_block(map: &Map<String, Value>, indent: usize, start: &str) -> bool {
    let has_map = map.values().any(Value::is_object);
    let width = start.len() + 1 + flow(&Value::Object(map.clone())).len();
    !map.is_empty() && (indent < 4 || has_map || width > MAX_COLUMNS)
}

fn is_tall(items: &[Value], start: &str) -> bool {
    let has_parts = items.iter().any(|item| item.is_array() || item.is_object());
    let width = start.len() + 1 + flow(&Value::Array(items.to_vec())).len();
    has_parts || width > MAX_COLUMNS
}

fn flow(value: &Value) -> String {
    match value {
        Value::String(text) => scalar(text),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", "))
        }
        Value::Object(map) if map.is_empty() => "{}".to_owned(),
        Value::Object(map) => {
            let entries =
                map.iter().map(|(key, value)| format!("{}: {}", scalar(key), flow(value)));
            format!("{{ {} }}", entries.collect::<Vec<_>>().join(", "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}
