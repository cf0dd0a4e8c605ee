//! Another product's file as a draft: which product it is, and what is wrong if it is none.

use std::fmt;

use tidegate_config::{
    diagnostic::Diagnostic,
    document::{Document, parse},
    source::Source,
};

use crate::{
    draft::Draft,
    item::Item,
    json, litellm, mcp_servers,
    notes::{Kind, Note, Notes},
    secrets::Variables,
};

/// A file that was understood.
#[derive(Debug)]
pub struct Imported {
    /// The product, in words.
    pub product: &'static str,
    /// The config to be.
    pub draft: Draft,
    /// What could not be carried over, and what changed, in the order of the file.
    pub notes: Vec<Note>,
}

/// Why a file was not understood.
#[derive(Debug)]
pub enum Refusal {
    /// It is not JSON; the text says where.
    NotJson(String),
    /// It is neither YAML nor JSON.
    NotYaml(Vec<Diagnostic>),
    /// It is one of them, but no product's config that is known.
    UnknownProduct,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotJson(problem) => write!(f, "not JSON: {problem}"),
            Self::NotYaml(problems) => {
                let first = problems.first().map_or("not YAML", |problem| &problem.message);
                f.write_str(first)
            }
            Self::UnknownProduct => f.write_str(
                "neither a LiteLLM config (`model_list`) nor a list of MCP servers (`mcpServers` \
                 or `servers`)",
            ),
        }
    }
}

/// Reads another product's file.
///
/// # Errors
/// Why it was not understood; no text of the file is repeated.
pub fn import(source: &Source) -> Result<Imported, Refusal> {
    let relaxed = json::relaxed(source.text());
    if relaxed.trim_start().starts_with(['{', '[']) {
        if let Err(error) = serde_json::from_str::<serde_json::Value>(&relaxed) {
            let place = format!("line {}, column {}", error.line(), error.column());
            return Err(Refusal::NotJson(format!("the mistake is near {place}")));
        }
        return read(&Source::new(source.name(), &relaxed));
    }
    read(source)
}

fn read(source: &Source) -> Result<Imported, Refusal> {
    let parsed = parse(source);
    let Some(document) = parsed.document else { return Err(Refusal::NotYaml(parsed.problems)) };
    let mut notes = Notes::default();
    for problem in &parsed.problems {
        let line = problem.span.map_or(1, |span| source.place(span.start).line);
        let path = problem.path.to_string();
        notes.add(Kind::NotCarriedOver, line, path, problem.message.clone());
    }
    let (product, draft) = product(source, &document, &mut notes)?;
    Ok(Imported { product, draft, notes: notes.into_list() })
}

fn product(
    source: &Source,
    document: &Document,
    notes: &mut Notes,
) -> Result<(&'static str, Draft), Refusal> {
    let root = Item::root(source, document);
    let mut variables = Variables::of(source.text());
    if root.get("model_list").is_some() || root.get("litellm_settings").is_some() {
        let draft = litellm::import(&root, &mut variables, notes);
        return Ok(("LiteLLM", draft));
    }
    // VS Code has the list in `mcp.json` at the top, in its settings under `mcp`.
    let nested = || root.get("mcp").and_then(|mcp| mcp.get("servers"));
    let servers = root.get("mcpServers").or_else(|| root.get("servers")).or_else(nested);
    let servers = servers.filter(Item::is_map).ok_or(Refusal::UnknownProduct)?;
    let draft = mcp_servers::import(&root, &servers, &mut variables, notes);
    Ok(("an MCP client", draft))
}
