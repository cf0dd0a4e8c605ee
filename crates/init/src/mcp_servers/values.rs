//! The values of `env` and `headers`: references stay references, secrets become references, and
//! only what is plainly neither is copied.

use serde_json::{Map, Value, json};

use crate::{
    item::Item,
    notes::Notes,
    secrets::{Variables, is_sensitive, looks_secret, variable_name},
};

/// What the values of one server need.
pub(super) struct Values<'a> {
    pub(super) server: &'a str,
    pub(super) variables: &'a mut Variables,
    pub(super) notes: &'a mut Notes,
}

/// What a value refers to.
#[derive(Debug, PartialEq, Eq)]
enum Reference<'a> {
    /// A variable of the environment.
    Variable(&'a str),
    /// What an editor asks its user for.
    Input(&'a str),
    /// Text with variables inside.
    Mixed,
}

impl Values<'_> {
    /// A program's environment.
    pub(super) fn of_environment(&mut self, item: &Item<'_>) -> Map<String, Value> {
        self.map(item, |name| name.to_owned())
    }

    /// Headers.
    pub(super) fn of_headers(&mut self, item: &Item<'_>) -> Map<String, Value> {
        let server = self.server.to_owned();
        self.map(item, |name| format!("{server}_{name}"))
    }

    fn map(&mut self, item: &Item<'_>, wanted: impl Fn(&str) -> String) -> Map<String, Value> {
        let mut values = Map::new();
        for (name, part) in item.entries() {
            match part.text() {
                Some("") => self.notes.drop(&part, "it is empty"),
                Some(text) => {
                    let value = self.value(name, text, &wanted(name), &part);
                    values.insert(name.to_owned(), json!(value));
                }
                None => self.notes.drop(&part, "it is not text"),
            }
        }
        values
    }

    /// The value to write for one that was read.
    fn value(&mut self, name: &str, text: &str, wanted: &str, part: &Item<'_>) -> String {
        match reference(text) {
            Some(Reference::Variable(variable)) => return format!("env:{variable}"),
            Some(Reference::Input(id)) => {
                let variable = variable_name(id);
                let reason = format!("the editor asks for it; set {variable} before the start");
                self.notes.change(part, reason);
                return format!("env:{variable}");
            }
            Some(Reference::Mixed) => {
                let variable = self.variables.stand_in(text, wanted);
                let reason = format!("set {variable} to the whole value: a reference stands alone");
                self.notes.change(part, reason);
                return format!("env:{variable}");
            }
            None => {}
        }
        let is_ours = text.starts_with("env:") || text.starts_with("file:");
        if is_sensitive(name) || looks_secret(text) || is_ours {
            let variable = self.variables.stand_in(text, wanted);
            let reason = format!(
                "a literal that may be a secret is not copied: set {variable} to the value in this \
                 line, and remove it from that file"
            );
            self.notes.change(part, reason);
            return format!("env:{variable}");
        }
        text.to_owned()
    }
}

/// `${env:NAME}` (Cursor, VS Code), `${NAME}` and `${NAME:-default}` (Claude Code), `${input:id}`
/// (VS Code), `os.environ/NAME` (LiteLLM).
fn reference(text: &str) -> Option<Reference<'_>> {
    if let Some(name) = text.strip_prefix("os.environ/") {
        return Some(Reference::Variable(name));
    }
    if !text.contains("${") {
        return None;
    }
    let inner = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    let Some(inner) = inner.filter(|inner| !inner.contains("${")) else {
        return Some(Reference::Mixed);
    };
    if let Some(id) = inner.strip_prefix("input:") {
        return Some(Reference::Input(id));
    }
    let name = inner.strip_prefix("env:").unwrap_or(inner);
    let name = name.split(":-").next().unwrap_or(name);
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_variable = !name.is_empty() && name.chars().all(is_name);
    Some(if is_variable { Reference::Variable(name) } else { Reference::Mixed })
}

#[cfg(test)]
mod tests {
    use super::{Reference, reference};

    #[test]
    fn each_products_way_to_name_a_variable_is_known() {
        assert_eq!(reference("${env:A_B}"), Some(Reference::Variable("A_B")));
        assert_eq!(reference("${A_B}"), Some(Reference::Variable("A_B")));
        assert_eq!(reference("${A_B:-x}"), Some(Reference::Variable("A_B")));
        assert_eq!(reference("os.environ/A_B"), Some(Reference::Variable("A_B")));
        assert_eq!(reference("${input:a-b}"), Some(Reference::Input("a-b")));
        assert_eq!(reference("Bearer ${A}"), Some(Reference::Mixed));
        assert_eq!(reference("${A}${B}"), Some(Reference::Mixed));
        assert_eq!(reference("${workspace folder}"), Some(Reference::Mixed));
        assert_eq!(reference("plain"), None);
    }
}
