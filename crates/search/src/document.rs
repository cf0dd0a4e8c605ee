//! What the index knows of one tool: texts, cut to a bound, and a hash of them.
//!
//! A tool's own name is searched, not the one clients call it by: that repeats the server's, which
//! has a score of its own. Of an input schema only names and descriptions of parameters count; a
//! schema that is too large, too deep or broken costs the parameters, never the tool.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use serde_json::{Value, value::RawValue};

use crate::{action::Effect, postings::hash};

/// Bytes of a description: longer ones are manuals, whose end says nothing about what a tool is.
pub const TEXT_MAX: usize = 16 * 1024;
/// Bytes of the texts taken from a schema.
pub const SCHEMA_MAX: usize = 64 * 1024;
/// Bytes of a schema that is looked into at all: reading is linear, but paid on every change.
const SCHEMA_READ_MAX: usize = 1024 * 1024;
/// Bytes of a name.
const NAME_MAX: usize = 512;
/// How deep parameters of parameters are looked at.
const DEPTH_MAX: usize = 3;

/// One tool, as it is searched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// What clients call it: breaks ties, and tells equal tools of two servers apart.
    pub id: Arc<str>,
    /// Its server's name.
    pub server: Arc<str>,
    /// What its server says about itself; may be empty.
    pub server_text: Arc<str>,
    /// Its own name, without any prefix.
    pub name: Arc<str>,
    /// Its title and description.
    pub description: Arc<str>,
    /// Names and descriptions of its parameters.
    pub parameters: Arc<str>,
    /// Names of its parameters alone.
    pub parameter_names: Arc<str>,
    /// Whether it reads or writes, where its server says so.
    pub effect: Effect,
}

/// A tool as its server lists it.
#[derive(Clone, Copy, Debug)]
pub struct Listed<'a> {
    /// What clients call it.
    pub id: &'a Arc<str>,
    /// Its own name, without any prefix.
    pub name: &'a str,
    /// The text of the JSON object that the server listed.
    pub definition: &'a str,
}

impl Document {
    /// Reads a listed tool. `server` is its server's name, `server_text` what that says about
    /// itself.
    #[must_use]
    pub fn of(listed: &Listed<'_>, server: &str, server_text: &str) -> Self {
        // The values are kept as text at first: a schema that cannot be read costs itself alone.
        let fields: BTreeMap<Cow<'_, str>, &RawValue> =
            serde_json::from_str(listed.definition).unwrap_or_default();
        let text = |name: &str| {
            let field = fields.get(name).copied().map(RawValue::get);
            field.and_then(|text| serde_json::from_str::<String>(text).ok()).unwrap_or_default()
        };
        let texts = [text("title"), text("description")];
        let texts: Vec<String> = texts.into_iter().filter(|text| !text.is_empty()).collect();
        let schema = fields.get("inputSchema").copied().map(RawValue::get);
        let schema = schema.filter(|text| text.len() <= SCHEMA_READ_MAX);
        let mut parameters = Parameters::default();
        if let Some(schema) = schema.and_then(|text| serde_json::from_str::<Value>(text).ok()) {
            parameters.gather(&schema, DEPTH_MAX);
        }
        Self {
            id: Arc::clone(listed.id),
            server: cut(server, NAME_MAX).into(),
            server_text: cut(server_text, TEXT_MAX).into(),
            name: cut(listed.name, NAME_MAX).into(),
            description: cut(&texts.join(". "), TEXT_MAX).into(),
            parameters: cut(&parameters.texts, SCHEMA_MAX).into(),
            parameter_names: cut(&parameters.names, SCHEMA_MAX).into(),
            effect: effect(fields.get("annotations").copied()),
        }
    }

    /// A document of plain texts, for tools that no server listed: `parameters` are pairs of name
    /// and description.
    #[must_use]
    pub fn plain<'a>(
        server: &str,
        name: &str,
        description: &str,
        parameters: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let mut read = Parameters::default();
        for (name, text) in parameters {
            read.push(name, Some(text));
        }
        Self {
            id: format!("{server}/{name}").into(),
            server: cut(server, NAME_MAX).into(),
            server_text: Arc::default(),
            name: cut(name, NAME_MAX).into(),
            description: cut(description, TEXT_MAX).into(),
            parameters: cut(&read.texts, SCHEMA_MAX).into(),
            parameter_names: cut(&read.names, SCHEMA_MAX).into(),
            effect: Effect::Unknown,
        }
    }

    /// The same in every run: equal documents have equal hashes.
    #[must_use]
    pub fn hash(&self) -> u64 {
        let Self {
            id,
            server,
            server_text,
            name,
            description,
            parameters,
            parameter_names,
            effect,
        } = self;
        let effect = match effect {
            Effect::Unknown => "",
            Effect::Reads => "reads",
            Effect::Writes => "writes",
        };
        hash(&[id, server, server_text, name, description, parameters, parameter_names, effect])
    }
}

/// What is read of parameters.
#[derive(Default)]
struct Parameters {
    /// Names and descriptions, a line each.
    texts: String,
    /// Names alone, a line each.
    names: String,
}

impl Parameters {
    /// Takes names and descriptions of a schema's properties, theirs included.
    fn gather(&mut self, schema: &Value, depth: usize) {
        if let Some(items) = schema.get("items")
            && depth > 0
        {
            self.gather(items, depth - 1);
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, value) in properties.into_iter().flatten() {
            if self.texts.len() > SCHEMA_MAX {
                return;
            }
            self.push(name, value.get("description").and_then(Value::as_str));
            if depth > 0 {
                self.gather(value, depth - 1);
            }
        }
    }

    fn push(&mut self, name: &str, description: Option<&str>) {
        let name = cut(name, TEXT_MAX);
        for text in [&mut self.names, &mut self.texts] {
            text.push_str(name);
            text.push('\n');
        }
        if let Some(description) = description {
            self.texts.push_str(cut(description, TEXT_MAX));
            self.texts.push('\n');
        }
    }
}

/// Whether a tool reads or writes, by the hints that its server gives.
fn effect(annotations: Option<&RawValue>) -> Effect {
    let read = annotations.and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
    let hint = |name: &str| read.as_ref()?.get(name)?.as_bool();
    match (hint("readOnlyHint"), hint("destructiveHint")) {
        (Some(true), _) => Effect::Reads,
        (Some(false), _) | (_, Some(true)) => Effect::Writes,
        _ => Effect::Unknown,
    }
}

/// The beginning of a text, cut between two characters.
pub(crate) fn cut(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(raw: &str) -> Document {
        let listed = Listed { id: &"github_search".into(), name: "search", definition: raw };
        Document::of(&listed, "github", "issues and code")
    }

    #[test]
    fn names_and_descriptions_of_parameters_are_read_at_every_level() {
        let found = read(
            r#"{"title":"Search","description":"Finds issues","inputSchema":{"properties":{
                "repo":{"description":"owner/name"},
                "filters":{"items":{"properties":{
                    "label":{"description":"a label","type":"string"}}}}
            }}}"#,
        );
        assert_eq!(&*found.description, "Search. Finds issues");
        assert_eq!(&*found.parameters, "repo\nowner/name\nfilters\nlabel\na label\n");
        assert_eq!(
            (&*found.id, &*found.name, &*found.server),
            ("github_search", "search", "github")
        );
    }

    #[test]
    fn hints_say_whether_a_tool_reads_or_writes() {
        let effect = |hints: &str| read(&format!(r#"{{"annotations":{hints}}}"#)).effect;
        assert_eq!(effect(r#"{"readOnlyHint":true,"destructiveHint":true}"#), Effect::Reads);
        assert_eq!(effect(r#"{"readOnlyHint":false}"#), Effect::Writes);
        assert_eq!(effect(r#"{"destructiveHint":true}"#), Effect::Writes);
        assert_eq!(effect(r#"{"destructiveHint":false}"#), Effect::Unknown);
        assert_eq!(effect("7"), Effect::Unknown);
    }

    #[test]
    fn a_broken_or_huge_schema_costs_only_the_parameters() {
        let words = "w ".repeat(SCHEMA_READ_MAX);
        let schema = format!(r#"{{"properties":{{"a":{{"description":"{words}"}}}}}}"#);
        let huge = format!(r#"{{"description":"x","inputSchema":{schema}}}"#);
        for raw in [r#"{"description":"x","inputSchema":[1]}"#, &huge] {
            assert_eq!((&*read(raw).description, &*read(raw).parameters), ("x", ""));
        }
        assert_eq!(&*read("no json").description, "");
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let found = Document::plain("s", "n", &"ü".repeat(TEXT_MAX), [("a", "b")]);
        assert!(found.description.len() <= TEXT_MAX && found.description.ends_with('ü'));
    }
}
