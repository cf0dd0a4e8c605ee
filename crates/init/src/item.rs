//! A part of another product's file, with its key path and line, for notes about it.

use tidegate_config::{
    diagnostic::Span,
    document::{Document, Node, NodeKind},
    path::KeyPath,
    source::Source,
};

/// A value of the file.
#[derive(Clone, Debug)]
pub(crate) struct Item<'a> {
    source: &'a Source,
    node: &'a Node,
    /// Where its key stands; of a list item, the item.
    span: Span,
    pub(crate) path: KeyPath,
}

impl<'a> Item<'a> {
    /// The whole file.
    pub(crate) fn root(source: &'a Source, document: &'a Document) -> Self {
        let node = document.root();
        Self { source, node, span: node.span, path: KeyPath::root() }
    }

    /// The line it begins in.
    pub(crate) fn line(&self) -> usize {
        self.source.place(self.span.start).line
    }

    /// The value of a key, unless it is null.
    pub(crate) fn get(&self, key: &str) -> Option<Self> {
        let mut entries = self.entries();
        let at = entries.iter().position(|(name, _)| *name == key)?;
        Some(entries.swap_remove(at).1)
    }

    /// The keys of a map whose values are not null; empty for anything else.
    pub(crate) fn entries(&self) -> Vec<(&'a str, Self)> {
        let entries = self.node.entries().iter();
        let item = |entry: &'a tidegate_config::document::Entry| {
            let path = self.path.key(&entry.key);
            let span = entry.key_span;
            (entry.key.as_str(), Self { source: self.source, node: &entry.value, span, path })
        };
        let is_set = |item: &(&str, Self)| !matches!(item.1.node.kind, NodeKind::Null);
        entries.map(item).filter(is_set).collect()
    }

    /// The items of a list; empty for anything else.
    pub(crate) fn items(&self) -> Vec<Self> {
        let NodeKind::Seq(nodes) = &self.node.kind else { return Vec::new() };
        let item = |(at, node): (usize, &'a Node)| Self {
            source: self.source,
            node,
            span: node.span,
            path: self.path.index(at),
        };
        nodes.iter().enumerate().map(item).collect()
    }

    /// A scalar's text.
    pub(crate) fn text(&self) -> Option<&'a str> {
        match &self.node.kind {
            NodeKind::Scalar { text, .. } => Some(text),
            NodeKind::Null | NodeKind::Seq(_) | NodeKind::Map(_) => None,
        }
    }

    /// The texts of a list of scalars; none if it is anything else.
    pub(crate) fn texts(&self) -> Option<Vec<&'a str>> {
        match &self.node.kind {
            NodeKind::Seq(_) => self.items().iter().map(Self::text).collect(),
            NodeKind::Null | NodeKind::Scalar { .. } | NodeKind::Map(_) => None,
        }
    }

    /// A scalar that is a number of seconds or the like.
    pub(crate) fn number(&self) -> Option<f64> {
        self.text()?.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0)
    }

    /// A scalar that is `true` or `false`.
    pub(crate) fn flag(&self) -> Option<bool> {
        match self.text()?.to_ascii_lowercase().as_str() {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    /// Whether it is a map.
    pub(crate) fn is_map(&self) -> bool {
        matches!(self.node.kind, NodeKind::Map(_))
    }
}
