//! What the index knows of one tool: texts, cut to a bound, and a hash of them.
//!
//! A tool's own name is searched, not the one clients call it by: that repeats the server's, which
//! has a score of its own. Of an input schema only names and descriptions of parameters count; a
//! schema that is too large, too deep or broken costs the parameters, never the tool.

use std::sync::Arc;

use serde_json::value::RawValue;

use crate::{catalogue::Offered, listing::fingerprint, raw::Fields};

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
}

impl Document {
    /// Reads an offered tool. `server` is its server's name, `server_text` what that says about
    /// itself.
    #[must_use]
    pub fn of(offered: &Offered, server: &str, server_text: &str) -> Self {
        let fields = Fields::parse(&offered.raw, &[]).unwrap_or_default();
        let mut description = fields.text("title").unwrap_or_default();
        if let Some(text) = fields.text("description") {
            if !description.is_empty() {
                description.push_str(". ");
            }
            description.push_str(&text);
        }
        let mut parameters = String::new();
        if let Some(schema) = fields.get("inputSchema")
            && schema.get().len() <= SCHEMA_READ_MAX
        {
            gather(schema, DEPTH_MAX, &mut parameters);
        }
        Self {
            id: offered.name.clone(),
            server: cut(server, NAME_MAX).into(),
            server_text: cut(server_text, TEXT_MAX).into(),
            name: cut(&offered.own, NAME_MAX).into(),
            description: cut(&description, TEXT_MAX).into(),
            parameters: cut(&parameters, SCHEMA_MAX).into(),
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
        let mut texts = String::new();
        for (name, text) in parameters {
            push(name, &mut texts);
            push(text, &mut texts);
        }
        Self {
            id: format!("{server}/{name}").into(),
            server: cut(server, NAME_MAX).into(),
            server_text: Arc::default(),
            name: cut(name, NAME_MAX).into(),
            description: cut(description, TEXT_MAX).into(),
            parameters: cut(&texts, SCHEMA_MAX).into(),
        }
    }

    /// The same in every run: equal documents have equal hashes.
    #[must_use]
    pub fn hash(&self) -> u64 {
        let Self { id, server, server_text, name, description, parameters } = self;
        fingerprint(&[id, server, server_text, name, description, parameters])
    }
}

/// Names and descriptions of a schema's properties, theirs included.
fn gather(schema: &RawValue, depth: usize, texts: &mut String) {
    let Ok(fields) = Fields::of(schema, &[]) else { return };
    if let Some(items) = fields.get("items")
        && depth > 0
    {
        gather(items, depth - 1, texts);
    }
    let Some(properties) = fields.get("properties") else { return };
    let Ok(properties) = Fields::of(properties, &[]) else { return };
    for name in properties.names() {
        if texts.len() > SCHEMA_MAX {
            return;
        }
        push(name, texts);
        let Some(value) = properties.get(name) else { continue };
        if let Some(text) = Fields::of(value, &[]).ok().and_then(|inner| inner.text("description"))
        {
            push(&text, texts);
        }
        if depth > 0 {
            gather(value, depth - 1, texts);
        }
    }
}

fn push(text: &str, texts: &mut String) {
    texts.push_str(cut(text, TEXT_MAX));
    texts.push('\n');
}

/// The beginning of a text, cut between two characters.
pub(super) fn cut(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listing::Hints;

    fn read(raw: &str) -> Document {
        let offered = Offered {
            name: "github_search".into(),
            server: 0,
            own: "search".into(),
            raw: raw.into(),
            hints: Hints::default(),
            fingerprint: 0,
            has_hidden_text: false,
        };
        Document::of(&offered, "github", "issues and code")
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
