//! The config to be: a tree of values in the order of the file, and its text with comments.

mod settle;
mod write;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::{item::Item, notes::Note};

/// A config that is being put together.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    tree: Map<String, Value>,
    /// The lines of the comment at the top.
    heading: Vec<String>,
    /// The comment above each top-level key.
    comments: BTreeMap<String, Vec<String>>,
    /// Where in another product's file a part comes from, by its place in the tree.
    origins: BTreeMap<String, (usize, String)>,
}

/// A config that `tidegate check` accepts.
#[derive(Debug)]
pub struct Finished {
    /// The text of the file.
    pub text: String,
    /// How many providers, routes and MCP servers it has.
    pub counts: Counts,
    /// The environment variables it refers to, in the order of the file.
    pub variables: Vec<String>,
    /// What was taken out because `tidegate check` would refuse it.
    pub notes: Vec<Note>,
}

/// How much a config holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Providers.
    pub providers: usize,
    /// Routes.
    pub routes: usize,
    /// MCP servers.
    pub servers: usize,
}

impl Draft {
    pub(crate) fn heading(&mut self, lines: &[&str]) {
        self.heading = lines.iter().map(|line| (*line).to_owned()).collect();
    }

    pub(crate) fn comment(&mut self, key: &str, lines: &[&str]) {
        let lines = lines.iter().map(|line| (*line).to_owned()).collect();
        self.comments.insert(key.to_owned(), lines);
    }

    /// Sets a key of the top level.
    pub(crate) fn set(&mut self, key: &str, value: Value) {
        self.tree.insert(key.to_owned(), value);
    }

    /// Adds a provider and gives its name: that of one with equal settings, if there is one, else
    /// `wanted`, with a number if another provider has that name.
    pub(crate) fn provider(&mut self, wanted: &str, settings: Value, from: &Item<'_>) -> String {
        let providers = section(&mut self.tree, &["providers"]);
        let is_ours = |name: &str| name == wanted || is_numbered(name, wanted);
        // What was said about its models since it was added does not make it another provider.
        let is_same = |it: &Value| {
            let mut it = it.clone();
            it.as_object_mut().map(|it| it.shift_remove("targets"));
            it == settings
        };
        let same = providers.iter().find(|(name, it)| is_ours(name) && is_same(it));
        if let Some((name, _)) = same {
            return name.clone();
        }
        let name = unused(providers, wanted);
        providers.insert(name.clone(), settings);
        self.origins.insert(format!("providers.{name}"), (from.line(), from.path.to_string()));
        name
    }

    /// Says something about one model of a provider.
    pub(crate) fn target(&mut self, provider: &str, model: &str, settings: Map<String, Value>) {
        if !settings.is_empty() {
            let targets = section(&mut self.tree, &["providers", provider, "targets"]);
            let target = targets.entry(model).or_insert_with(|| json!({}));
            for (key, value) in settings {
                target[key] = value;
            }
        }
    }

    /// Adds a route that comes from this line and key path.
    pub(crate) fn route(&mut self, name: &str, settings: Value, from: (usize, String)) {
        section(&mut self.tree, &["routes"]).insert(name.to_owned(), settings);
        self.origins.insert(format!("routes.{name}"), from);
    }

    /// Sets a key of `health`.
    pub(crate) fn health(&mut self, key: &str, value: Value) {
        section(&mut self.tree, &["health"]).insert(key.to_owned(), value);
    }

    /// Adds an MCP server and gives its name: the wanted one in characters that names may have.
    pub(crate) fn server(&mut self, wanted: &str, settings: Value, from: &Item<'_>) -> String {
        let servers = section(&mut self.tree, &["mcp", "servers"]);
        let name = unused(servers, &usable_name(wanted));
        servers.insert(name.clone(), settings);
        self.origins.insert(format!("mcp.servers.{name}"), (from.line(), from.path.to_string()));
        name
    }

    /// The routes, to be changed.
    pub(crate) fn routes(&mut self) -> &mut Map<String, Value> {
        section(&mut self.tree, &["routes"])
    }

    /// How much it holds.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let of = |value: Option<&Value>| value.and_then(Value::as_object).map_or(0, Map::len);
        Counts {
            providers: of(self.tree.get("providers")),
            routes: of(self.tree.get("routes")),
            servers: of(self.tree.get("mcp").and_then(|mcp| mcp.get("servers"))),
        }
    }

    /// The environment variables that the values refer to, in the order of the file.
    fn variables(&self) -> Vec<String> {
        let mut found = Vec::new();
        self.tree.values().for_each(|value| references(value, &mut found));
        found
    }
}

fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            let name = text.strip_prefix("env:").map(str::to_owned);
            found.extend(name.filter(|name| !found.contains(name)));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        Value::Object(map) => map.values().for_each(|item| references(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The map at a path, made where it is missing.
fn section<'a>(tree: &'a mut Map<String, Value>, path: &[&str]) -> &'a mut Map<String, Value> {
    let mut map = tree;
    for key in path {
        let value = map.entry(*key).or_insert_with(|| json!({}));
        if !value.is_object() {
            *value = json!({});
        }
        map = value.as_object_mut().expect("anything else was replaced by a map");
    }
    map
}

fn is_numbered(name: &str, wanted: &str) -> bool {
    let rest = name.strip_prefix(wanted).and_then(|rest| rest.strip_prefix('-'));
    rest.is_some_and(|number| number.parse::<u32>().is_ok())
}

fn unused(map: &Map<String, Value>, wanted: &str) -> String {
    let numbered = (2..).map(|number| format!("{wanted}-{number}"));
    let mut names = std::iter::once(wanted.to_owned()).chain(numbered);
    names.find(|name| !map.contains_key(name)).unwrap_or_else(|| wanted.to_owned())
}

/// A name in the characters that providers and servers may have, at most 60 of them so that a
/// number still fits behind it.
pub(crate) fn usable_name(name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let name: String = name.chars().map(|c| if fits(c) { c } else { '-' }).take(60).collect();
    let name = name.trim_matches('-');
    if name.is_empty() { "server".to_owned() } else { name.to_owned() }
}
