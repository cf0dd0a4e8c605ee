//! The tree of a file into a plain type, along the type's own JSON Schema.
//!
//! A file type derives `serde::Deserialize` and `schemars::JsonSchema` with
//! `deny_unknown_fields`, and nothing else is needed: [`decode`] walks the tree and the schema side
//! by side, reports *every* unknown key, wrong type, missing key and bad value with its span, and
//! gives serde a value in which nothing is left to complain about.
//!
//! Rules kept here:
//! - The schema says what a scalar means. `model: 5.4` is text because text is wanted; numbers and
//!   booleans are read strictly, as in YAML's core schema.
//! - A key without a value (`headers:`) that may be left out counts as left out.
//! - A bad value is left out as well, where that can be, so that later checks still see the rest of
//!   the file. So a value may come back *with* errors: use it for further checks only.
//!   ([`decode`] says more.)
//! - Nothing that may be a secret is shown: not what stands where a secret belongs, and not the
//!   value of a key that the schema does not know, which may be a misspelt `key`.
//! - A choice of shapes (`anyOf`, `oneOf`) is made by the kind of node, then by the first shape
//!   without a problem.
//!
//! Not supported, and not to be used in file types: `flatten` and internal tags. Enums of words
//! and externally tagged enums (`{advance: 31s}`) are. Rules between keys are the caller's, with
//! key paths and [`Diagnostic::at`].

mod advice;
mod choice;
mod map;
mod scalar;
mod schema;

use schemars::{JsonSchema, generate::SchemaSettings};
use serde::de::DeserializeOwned;
use serde_json::Value;

use self::schema::{Schema, Want};
use crate::{
    codes,
    diagnostic::{Diagnostic, Problems, Span},
    document::{Document, Node, NodeKind},
    mask,
    path::{KeyPath, Step},
};

/// Decodes a document into a type, with every structural problem found.
///
/// - No error among the diagnostics: the value is there and complete.
/// - Errors and a value: parts that had problems are left out of it. Check it further, to report
///   more at once, but do not use it.
/// - Errors and no value: too much is wrong to go on.
#[must_use]
pub fn decode<T: DeserializeOwned + JsonSchema>(
    document: &Document,
) -> (Option<T>, Vec<Diagnostic>) {
    let Decoded { value, problems, secrets } = decode_all(document);
    let problems = problems.into_list().into_iter();
    (value, problems.map(|problem| problem.without_secrets(&secrets)).collect())
}

/// [`decode`], and where the secrets are.
pub(crate) fn decode_all<T: DeserializeOwned + JsonSchema>(document: &Document) -> Decoded<T> {
    let root = schema_of::<T>();
    let mut walk = Walk {
        definitions: &root,
        document,
        path: KeyPath::root(),
        problems: Problems::default(),
        secrets: document.dropped().to_vec(),
    };
    let value = walk.node(Schema::new(&root), document.root());
    let decoded = value.and_then(|value| walk.finish(value));
    let Walk { problems, mut secrets, .. } = walk;
    secrets.sort_unstable_by_key(|span| span.start);
    Decoded { value: decoded, problems, secrets }
}

fn schema_of<T: JsonSchema>() -> Value {
    SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>().to_value()
}

/// What decoding gave.
pub(crate) struct Decoded<T> {
    pub(crate) value: Option<T>,
    pub(crate) problems: Problems,
    /// Where secrets stand in the file itself, in file order; what shows the file leaves them out.
    pub(crate) secrets: Vec<Span>,
}

/// One pass over a document.
struct Walk<'a> {
    /// The root schema, which holds the `$defs`.
    definitions: &'a Value,
    document: &'a Document,
    /// Where the pass is.
    path: KeyPath,
    problems: Problems,
    secrets: Vec<Span>,
}

impl<'a> Walk<'a> {
    /// The value of a node; none, and a problem, if it does not fit the schema.
    fn node(&mut self, schema: Schema<'a>, node: &Node) -> Option<Value> {
        let schema = schema.resolved(self.definitions);
        match schema.want() {
            Want::Anything => Some(scalar::anything(node)),
            Want::Choice(branches) => self.choice(&branches, node),
            Want::Words(words) => self.word(&words, node),
            Want::Plain => self.plain(schema, node),
        }
    }

    /// A node whose schema names one or more plain types.
    fn plain(&mut self, schema: Schema<'a>, node: &Node) -> Option<Value> {
        match &node.kind {
            NodeKind::Map(entries) if schema.takes("object") => self.map(schema, entries, node),
            NodeKind::Seq(items) if schema.takes("array") => self.seq(schema, items),
            NodeKind::Null if schema.takes("null") => Some(Value::Null),
            NodeKind::Scalar { text, plain } if schema.takes_scalar() => {
                if scalar::is_literal_secret(schema, text) {
                    self.secrets.push(node.span);
                }
                match scalar::convert(schema, text, *plain) {
                    Ok(value) => Some(value),
                    Err(problem) => {
                        self.report_scalar(problem);
                        None
                    }
                }
            }
            _ => self.wrong_type(&[schema], &schema.noun(), node),
        }
    }

    fn seq(&mut self, schema: Schema<'a>, items: &[Node]) -> Option<Value> {
        let item_schema = schema.items();
        let mut values = Vec::with_capacity(items.len());
        let mut all_fit = true;
        for (index, item) in items.iter().enumerate() {
            self.path.push(Step::Index(index));
            match self.node(item_schema, item) {
                Some(value) => values.push(value),
                None => all_fit = false,
            }
            self.path.pop();
        }
        // Positions are addresses: a list without its third item would move the fourth.
        all_fit.then_some(Value::Array(values))
    }

    fn word(&mut self, words: &[&'a str], node: &Node) -> Option<Value> {
        let NodeKind::Scalar { text, .. } = &node.kind else {
            return self.wrong_type(&[], &scalar::one_of(words), node);
        };
        if words.contains(&text.as_str()) {
            return Some(Value::String(text.clone()));
        }
        let mut problem = scalar::unknown_word(text, words);
        if matches!(self.path.steps().last(), Some(Step::Key(key)) if mask::names_a_secret(key)) {
            self.secrets.push(node.span);
            problem.message = "the value is not one of the choices".to_owned();
        }
        self.report_scalar(problem);
        None
    }

    /// Reports a node of another kind than one of `schemas` takes.
    fn wrong_type(&mut self, schemas: &[Schema<'a>], wanted: &str, node: &Node) -> Option<Value> {
        let may_be_secret = schemas.iter().any(|schema| schema.holds_secrets(self.definitions));
        let found = if may_be_secret {
            node.scalars(&mut self.secrets);
            scalar::kind_of(node).to_owned()
        } else {
            scalar::noun_of(node)
        };
        // A value that may be a secret is not repeated in the advice either.
        let shown = if may_be_secret { &hidden_scalar(node) } else { node };
        let help = schemas.iter().find_map(|it| self.advice_on_type(*it, shown));
        let place =
            if self.path.is_root() { "the file".to_owned() } else { format!("`{}`", self.path) };
        let message = format!("{place}: expected {wanted}, found {found}");
        self.report(
            Diagnostic::error(&codes::WRONG_TYPE, message)
                .label(format!("expected {wanted}"))
                .maybe_help(help),
            node,
        );
        None
    }

    fn report_scalar(&mut self, problem: scalar::Problem) {
        let message = format!("`{}`: {}", self.path, problem.message);
        let diagnostic = Diagnostic::error(problem.code, message)
            .label(problem.label)
            .maybe_help(problem.help)
            .at(self.document, &self.path);
        self.problems.add(diagnostic);
    }

    fn report(&mut self, diagnostic: Diagnostic, node: &Node) {
        let placed = diagnostic.at(self.document, &self.path);
        let span = placed.span.or(Some(node.span));
        self.problems.add(Diagnostic { span, ..placed });
    }

    /// Serde's turn. What the walk let pass and serde refuses (a rule that the schema does not
    /// tell) is reported without a place.
    fn finish<T: DeserializeOwned>(&mut self, value: Value) -> Option<T> {
        match serde_json::from_value(value) {
            Ok(decoded) => Some(decoded),
            Err(error) => {
                if self.problems.count() == 0 {
                    self.problems.add(Diagnostic::error(&codes::BAD_VALUE, error.to_string()));
                }
                None
            }
        }
    }
}

/// The same kind of node with another text.
fn hidden_scalar(node: &Node) -> Node {
    let kind = match &node.kind {
        NodeKind::Scalar { plain, .. } => {
            NodeKind::Scalar { text: "env:NAME".to_owned(), plain: *plain }
        }
        other => other.clone(),
    };
    Node { span: node.span, kind }
}

#[cfg(test)]
mod tests;
