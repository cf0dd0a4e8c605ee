//! Maps: known keys, unknown keys, missing keys.

use serde_json::{Map, Value};

use super::{Walk, schema::Schema};
use crate::{
    codes,
    diagnostic::{Diagnostic, quoted},
    document::{Entry, Node, NodeKind},
    path::Step,
    suggest,
};

impl<'a> Walk<'a> {
    /// The value of a map; none if a key that it needs is missing or bad.
    pub(super) fn map(
        &mut self,
        schema: Schema<'a>,
        entries: &[Entry],
        node: &Node,
    ) -> Option<Value> {
        let mut values = Map::new();
        for (at, entry) in entries.iter().enumerate() {
            self.path.push(Step::Key(entry.key.clone()));
            let before = at.checked_sub(1).and_then(|at| entries.get(at));
            if let Some(value) = self.entry(schema, entry, before) {
                values.insert(entry.key.clone(), value);
            }
            self.path.pop();
        }
        let mut complete = true;
        for key in schema.required() {
            complete &= values.contains_key(key);
            if !entries.iter().any(|entry| entry.key == key) {
                self.missing(key, node);
            }
        }
        complete.then_some(Value::Object(values))
    }

    /// The value of one key; none if it is unknown, bad, or left empty where it may be left out.
    /// `before` is the key above it.
    fn entry(
        &mut self,
        schema: Schema<'a>,
        entry: &Entry,
        before: Option<&Entry>,
    ) -> Option<Value> {
        let known = schema.properties().and_then(|properties| properties.get(&entry.key));
        let Some(inner) = known.map(Schema::new).or_else(|| schema.others()) else {
            // A misspelt key may be one that holds a secret.
            entry.value.scalars(&mut self.secrets);
            self.unknown_key(schema, &entry.key, before);
            return None;
        };
        let may_be_left_out = known.is_some() && !schema.is_required(&entry.key);
        if may_be_left_out && matches!(entry.value.kind, NodeKind::Null) {
            return None;
        }
        self.node(inner, &entry.value)
    }

    fn unknown_key(&mut self, schema: Schema<'a>, key: &str, before: Option<&Entry>) {
        let known: Vec<&str> =
            schema.properties().into_iter().flatten().map(|(key, _)| key.as_str()).collect();
        let section = self.path.parent();
        let place = if section.is_root() { String::new() } else { format!(" in `{section}`") };
        let help = self
            .advice_on_key(schema, key, before)
            .or_else(|| suggest::did_you_mean(key, known.iter().copied(), "known keys"));
        let diagnostic =
            Diagnostic::error(&codes::UNKNOWN_KEY, format!("unknown key {}{place}", quoted(key)))
                .at_key(self.document, &self.path)
                .label("not a key of this section")
                .maybe_help(help);
        self.problems.add(diagnostic);
    }

    fn missing(&mut self, key: &str, node: &Node) {
        let place =
            if self.path.is_root() { "the file".to_owned() } else { format!("`{}`", self.path) };
        let diagnostic =
            Diagnostic::error(&codes::MISSING_KEY, format!("{place} has no key {}", quoted(key)))
                .label(format!("{} has to be written here", quoted(key)));
        self.report(diagnostic, node);
    }
}
