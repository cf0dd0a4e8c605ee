//! A choice of shapes: optional values, tagged shapes, "a list or a map", "a number or a text".

use serde_json::Value;

use super::{
    Walk, scalar,
    schema::{Schema, Want},
};
use crate::{
    codes,
    diagnostic::{Diagnostic, Problems},
    document::{Node, NodeKind},
    suggest,
};

impl<'a> Walk<'a> {
    /// The value of a node under `anyOf` or `oneOf`.
    pub(super) fn choice(&mut self, branches: &[Schema<'a>], node: &Node) -> Option<Value> {
        let branches: Vec<Schema<'a>> =
            branches.iter().map(|branch| branch.resolved(self.definitions)).collect();
        let fitting: Vec<Schema<'a>> =
            branches.iter().copied().filter(|branch| fits(*branch, node)).collect();
        match fitting.as_slice() {
            [] => {
                let nouns: Vec<String> = branches.iter().map(|branch| noun(*branch)).collect();
                let nouns: Vec<&str> =
                    nouns.iter().map(String::as_str).filter(|noun| !noun.is_empty()).collect();
                self.wrong_type(&branches, &nouns.join(" or "), node)
            }
            [only] => self.node(*only, node),
            several if several.iter().all(|branch| branch.only_key().is_some()) => {
                self.tagged(several, node)
            }
            several => self.first_without_problem(several, node),
        }
    }

    /// A map of one key, where the key says which shape its value has.
    fn tagged(&mut self, branches: &[Schema<'a>], node: &Node) -> Option<Value> {
        let tags = || branches.iter().filter_map(|branch| branch.only_key());
        let [entry] = node.entries() else {
            let tags: Vec<&str> = tags().collect();
            let wanted = format!("exactly one of {}", scalar::one_of(&tags));
            return self.wrong_type(branches, &wanted, node);
        };
        let chosen = branches.iter().find(|branch| branch.only_key() == Some(&entry.key));
        if let Some(branch) = chosen {
            return self.node(*branch, node);
        }
        let tags: Vec<&str> = tags().collect();
        let message = format!("unknown key {}", crate::diagnostic::quoted(&entry.key));
        let path = self.path.key(entry.key.clone());
        entry.value.scalars(&mut self.secrets);
        self.problems.add(
            Diagnostic::error(&codes::UNKNOWN_KEY, message)
                .at_key(self.document, &path)
                .label(format!("expected {}", scalar::one_of(&tags)))
                .maybe_help(suggest::did_you_mean(&entry.key, tags.iter().copied(), "known keys")),
        );
        None
    }

    /// Tries the shapes in order; if none is without a problem, the last one's problems count.
    fn first_without_problem(&mut self, branches: &[Schema<'a>], node: &Node) -> Option<Value> {
        let outside = std::mem::take(&mut self.problems);
        let mut outcome = None;
        for branch in branches {
            self.problems = Problems::default();
            outcome = self.node(*branch, node);
            if self.problems.count() == 0 {
                break;
            }
        }
        let inside = std::mem::replace(&mut self.problems, outside);
        self.problems.absorb(inside);
        outcome
    }
}

/// Whether a node is of a kind that a schema takes.
fn fits(schema: Schema<'_>, node: &Node) -> bool {
    match schema.want() {
        Want::Anything | Want::Choice(_) => true,
        Want::Words(_) => matches!(node.kind, NodeKind::Scalar { .. }),
        Want::Plain => match &node.kind {
            NodeKind::Null => schema.takes("null"),
            NodeKind::Scalar { .. } => schema.takes_scalar(),
            NodeKind::Seq(_) => schema.takes("array"),
            NodeKind::Map(_) => schema.takes("object"),
        },
    }
}

fn noun(schema: Schema<'_>) -> String {
    match schema.want() {
        Want::Words(words) => scalar::one_of(&words),
        Want::Anything | Want::Choice(_) | Want::Plain => schema.noun(),
    }
}
