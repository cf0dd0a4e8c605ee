//! Reading a JSON Schema, as far as file types need it.
//!
//! Knows the keywords that schemars writes for plain types: `$ref`, `type`, `properties`,
//! `required`, `additionalProperties`, `items`, `enum`, `const`, `anyOf`, `oneOf`, `format`,
//! `minimum`, `maximum`. Other keywords are for editors and are left alone.

use serde_json::{Map, Value};

use super::scalar;
use crate::secret;

/// A reference may lead to a reference; a chain longer than this is a circle.
const MAX_REFERENCES: usize = 16;

/// A schema that takes anything.
static ANYTHING: Value = Value::Bool(true);

/// One schema inside a root schema.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schema<'a>(&'a Value);

/// What a schema asks for, in the order the decoder looks at it.
pub(super) enum Want<'a> {
    /// Whatever is there.
    Anything,
    /// One of several shapes.
    Choice(Vec<Schema<'a>>),
    /// One of several words.
    Words(Vec<&'a str>),
    /// One or more plain types.
    Plain,
}

impl<'a> Schema<'a> {
    pub(super) const fn new(value: &'a Value) -> Self {
        Self(value)
    }

    /// The schema that a `$ref` leads to; itself without one.
    pub(super) fn resolved(self, root: &'a Value) -> Self {
        let mut schema = self;
        for _ in 0..MAX_REFERENCES {
            let target = schema.text("$ref").and_then(|name| name.strip_prefix('#'));
            match target.and_then(|pointer| root.pointer(pointer)) {
                Some(value) => schema = Self(value),
                None => return schema,
            }
        }
        Self(&ANYTHING)
    }

    pub(super) fn want(self) -> Want<'a> {
        let branches = self.list("anyOf").or_else(|| self.list("oneOf"));
        if let Some(branches) = branches {
            let words: Option<Vec<&str>> = branches.iter().map(|branch| constant(branch)).collect();
            return match words {
                Some(words) => Want::Words(words),
                None => Want::Choice(branches.iter().map(Self).collect()),
            };
        }
        if let Some(words) = self.list("enum") {
            return Want::Words(words.iter().filter_map(Value::as_str).collect());
        }
        if let Some(word) = constant(self.0) {
            return Want::Words(vec![word]);
        }
        let is_plain = self.get("type").is_some() || self.format().is_some();
        if is_plain { Want::Plain } else { Want::Anything }
    }

    /// Whether one of its types is this one.
    pub(super) fn takes(self, name: &str) -> bool {
        match self.get("type") {
            Some(Value::String(one)) => one == name,
            Some(Value::Array(several)) => several.iter().any(|one| one == name),
            _ => false,
        }
    }

    pub(super) fn takes_scalar(self) -> bool {
        ["string", "integer", "number", "boolean"].iter().any(|name| self.takes(name))
    }

    /// What it takes, for a message.
    pub(super) fn noun(self) -> String {
        if let Some(format) = self.format().and_then(scalar::format_named) {
            return format.noun.to_owned();
        }
        let nouns = [
            ("object", "a map"),
            ("array", "a list"),
            ("string", "text"),
            ("integer", "a whole number"),
            ("number", "a number"),
            ("boolean", "`true` or `false`"),
        ];
        let taken: Vec<&str> =
            nouns.iter().filter(|(name, _)| self.takes(name)).map(|(_, noun)| *noun).collect();
        taken.join(" or ")
    }

    pub(super) fn format(self) -> Option<&'a str> {
        self.text("format")
    }

    pub(super) fn properties(self) -> Option<&'a Map<String, Value>> {
        self.get("properties").and_then(Value::as_object)
    }

    pub(super) fn is_required(self, key: &str) -> bool {
        self.required().any(|required| required == key)
    }

    pub(super) fn required(self) -> impl Iterator<Item = &'a str> {
        self.list("required").into_iter().flatten().filter_map(Value::as_str)
    }

    /// The schema of keys that are not listed; none if there may be no others.
    pub(super) fn others(self) -> Option<Self> {
        match self.get("additionalProperties") {
            Some(Value::Bool(false)) => None,
            Some(schema) => Some(Self(schema)),
            None => Some(Self(&ANYTHING)),
        }
    }

    pub(super) fn items(self) -> Self {
        Self(self.get("items").unwrap_or(&ANYTHING))
    }

    /// Whether a secret may stand anywhere inside a value of this schema.
    pub(super) fn holds_secrets(self, root: &'a Value) -> bool {
        self.holds_secrets_within(root, MAX_REFERENCES)
    }

    /// Schemas of files are trees, and far less deep than `levels`.
    fn holds_secrets_within(self, root: &'a Value, levels: usize) -> bool {
        let Some(levels) = levels.checked_sub(1) else { return true };
        let schema = self.resolved(root);
        let properties = schema.properties().into_iter().flatten().map(|(_, value)| Self(value));
        let branches = schema.list("anyOf").or_else(|| schema.list("oneOf"));
        let branches = branches.into_iter().flatten().map(Self);
        let others = schema.get("additionalProperties").filter(|it| it.is_object()).map(Self);
        let items = schema.get("items").map(Self);
        schema.format() == Some(secret::FORMAT)
            || properties
                .chain(branches)
                .chain(others)
                .chain(items)
                .any(|inner| inner.holds_secrets_within(root, levels))
    }

    /// The one key of a schema that is a map of exactly one key (a tagged shape).
    pub(super) fn only_key(self) -> Option<&'a str> {
        let properties = self.properties().filter(|properties| properties.len() == 1)?;
        let key = properties.keys().next()?;
        (self.is_required(key) && self.others().is_none()).then_some(key.as_str())
    }

    /// A bound of a number.
    pub(super) fn bound(self, name: &str) -> Option<&'a Value> {
        self.get(name).filter(|value| value.is_number())
    }

    fn get(self, name: &str) -> Option<&'a Value> {
        self.0.get(name)
    }

    fn text(self, name: &str) -> Option<&'a str> {
        self.get(name).and_then(Value::as_str)
    }

    fn list(self, name: &str) -> Option<&'a Vec<Value>> {
        self.get(name).and_then(Value::as_array)
    }
}

/// The one word that a schema takes.
fn constant(schema: &Value) -> Option<&str> {
    schema.get("const").and_then(Value::as_str)
}
