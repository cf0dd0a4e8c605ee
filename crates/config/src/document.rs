//! YAML text as a tree of nodes that know where they stand.
//!
//! The one file that knows the YAML parser. Everything after it works on [`Node`]s and
//! [`KeyPath`]s, so the types that files decode into stay plain and still every problem has a
//! line and a column.
//!
//! Rules kept here:
//! - One document per file; an empty one is an empty map.
//! - Aliases are expanded. Nodes are counted and depth is bounded, so neither an alias bomb nor
//!   ten thousand brackets cost more than a diagnostic.
//! - A key stands once in a map, and is a word: the second one is reported and dropped.
//! - What YAML allows and a config does not need is refused by name: custom tags, merge keys.
//! - Scalars keep their text. What `5.4` or `true` means is decided by whoever wants the value
//!   (see `shape.rs`): as a model name it is text.

mod syntax;

use std::collections::BTreeMap;

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, StrInput};

use crate::{
    codes,
    diagnostic::{Diagnostic, Problems, Span, quoted},
    path::{KeyPath, Step},
    source::Source,
};

/// Nodes of one file, aliases expanded: far above any real config, reached in milliseconds.
const MAX_NODES: usize = 100_000;

/// A larger file may hold one node per so many of its bytes. The recording of a gateway has
/// hundreds of thousands, each about eight bytes long; what a small file expands to stays bounded.
const BYTES_PER_NODE: usize = 5;

/// Maps and lists inside one another.
const MAX_DEPTH: usize = 128;

const TOO_DEEP: &str = "nested deeper than 128 levels";

/// A YAML file as a tree.
#[derive(Clone, Debug)]
pub struct Document {
    root: Node,
    /// Values that were written and left out of the tree. Nobody knows what they mean.
    dropped: Vec<Span>,
}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub struct Node {
    /// The value's bytes; of a block map or list only its first key or item.
    pub span: Span,
    /// The value.
    pub kind: NodeKind,
}

/// What a [`Node`] holds.
#[derive(Clone, Debug)]
pub enum NodeKind {
    /// Nothing, `~` or `null`.
    Null,
    /// A word, number or text.
    Scalar {
        /// The text, escapes resolved.
        text: String,
        /// Whether it was written without quotes, so that it may be a number or a boolean.
        plain: bool,
    },
    /// A list.
    Seq(Vec<Node>),
    /// A map in file order.
    Map(Vec<Entry>),
}

/// One key of a map.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key stands.
    pub key_span: Span,
    /// Its value.
    pub value: Node,
}

/// What parsing gave: a document unless the text is not YAML or breaks a bound.
#[derive(Debug)]
pub struct Parsed {
    /// The tree, if there is one.
    pub document: Option<Document>,
    /// What is wrong; [`Diagnostic::is_unreadable`] tells whether it is YAML at all.
    pub problems: Vec<Diagnostic>,
}

/// Parses a file's text.
#[must_use]
pub fn parse(source: &Source) -> Parsed {
    if let Some(problem) = hidden_character(source.text()) {
        return Parsed { document: None, problems: vec![problem] };
    }
    let mut builder = Builder {
        events: Parser::new_from_str(source.text()),
        source,
        problems: Problems::default(),
        path: KeyPath::root(),
        anchors: BTreeMap::new(),
        nodes: 0,
        nodes_max: MAX_NODES.max(source.text().len() / BYTES_PER_NODE),
        dropped: Vec::new(),
    };
    let root = match builder.document() {
        Ok(root) => root,
        Err(fatal) => {
            builder.problems.add(*fatal);
            let problems = builder.problems.into_list().into_iter();
            let problems = problems.map(|it| syntax::hide_values(it, source).without_secrets(&[]));
            return Parsed { document: None, problems: problems.collect() };
        }
    };
    builder.dropped.sort_unstable_by_key(|span| span.start);
    let document = Document { root, dropped: builder.dropped };
    let problems = builder.problems.into_list().into_iter();
    let problems = problems.map(|it| it.without_secrets(&document.dropped)).collect();
    Parsed { document: Some(document), problems }
}

/// NUL ends the text for the parser and other controls are no YAML: refuse them by name, so that
/// half a file is never taken for the whole.
fn hidden_character(text: &str) -> Option<Diagnostic> {
    let hidden = |c: char| c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{85}');
    let (start, found) = text.char_indices().find(|(_, c)| hidden(*c))?;
    let message = format!("not YAML: control character U+{:04X}", u32::from(found));
    let span = Span { start, end: start + found.len_utf8() };
    Some(
        Diagnostic::error(&codes::NOT_YAML, message)
            .at_span(&KeyPath::root(), span)
            .label("this character cannot stand in YAML")
            .help("remove it, or write it as an escape inside double quotes"),
    )
}

impl Document {
    /// The outermost node.
    #[must_use]
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// Where values stand that are not part of the tree, such as that of a key's second mention.
    pub(crate) fn dropped(&self) -> &[Span] {
        &self.dropped
    }

    /// The node a path leads to.
    #[must_use]
    pub fn node(&self, path: &KeyPath) -> Option<&Node> {
        path.steps().iter().try_fold(&self.root, |node, step| node.child(step))
    }

    /// Where the value stands that a path leads to; for a block map or list its key.
    #[must_use]
    pub fn span_of(&self, path: &KeyPath) -> Option<Span> {
        let node = self.node(path)?;
        match &node.kind {
            NodeKind::Scalar { .. } => Some(node.span),
            NodeKind::Seq(_) | NodeKind::Map(_) | NodeKind::Null => {
                Some(self.key_span_of(path).unwrap_or(node.span))
            }
        }
    }

    /// Where the key stands that a path ends in; none if it ends in a list position.
    #[must_use]
    pub fn key_span_of(&self, path: &KeyPath) -> Option<Span> {
        let Some(Step::Key(key)) = path.steps().last() else { return None };
        let parent = self.node(&path.parent())?;
        parent.entries().iter().find(|entry| entry.key == *key).map(|entry| entry.key_span)
    }

    /// The span of the path, or of the nearest path above it that the file holds.
    #[must_use]
    pub fn nearest_span(&self, path: &KeyPath) -> Option<Span> {
        let mut path = path.clone();
        while !path.is_root() {
            if let Some(span) = self.span_of(&path) {
                return Some(span);
            }
            path.pop();
        }
        None
    }

    /// The keys of the map a path leads to, in file order; empty if there is no map.
    pub fn keys_at(&self, path: &KeyPath) -> impl Iterator<Item = &str> + Clone {
        let entries = self.node(path).map(Node::entries).unwrap_or_default();
        entries.iter().map(|entry| entry.key.as_str())
    }
}

/// Where in a document a problem stands. Here, as diagnostics know nothing of documents.
impl Diagnostic {
    /// Places it at the value that `path` leads to, or the nearest thing above it that exists.
    #[must_use]
    pub fn at(self, document: &Document, path: &KeyPath) -> Self {
        Self { span: document.nearest_span(path), path: path.clone(), ..self }
    }

    /// Places it at the key that `path` ends in, or the nearest thing above it that exists.
    #[must_use]
    pub fn at_key(self, document: &Document, path: &KeyPath) -> Self {
        let span = document.key_span_of(path).or_else(|| document.nearest_span(path));
        Self { span, path: path.clone(), ..self }
    }
}

impl Node {
    /// The keys of a map; empty for anything else.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        match &self.kind {
            NodeKind::Map(entries) => entries,
            NodeKind::Null | NodeKind::Scalar { .. } | NodeKind::Seq(_) => &[],
        }
    }

    /// The bytes of every key and value inside it, but for references to secrets, which are none.
    pub(crate) fn scalars(&self, into: &mut Vec<Span>) {
        match &self.kind {
            NodeKind::Null => {}
            NodeKind::Scalar { text, .. } if text.starts_with("env:") => {}
            NodeKind::Scalar { text, .. } if text.starts_with("file:") => {}
            NodeKind::Scalar { .. } => into.push(self.span),
            NodeKind::Seq(items) => items.iter().for_each(|item| item.scalars(into)),
            NodeKind::Map(entries) => {
                for entry in entries {
                    into.push(entry.key_span);
                    entry.value.scalars(into);
                }
            }
        }
    }

    fn child(&self, step: &Step) -> Option<&Self> {
        match (step, &self.kind) {
            (Step::Key(key), NodeKind::Map(entries)) => {
                entries.iter().find(|entry| entry.key == *key).map(|entry| &entry.value)
            }
            (Step::Index(index), NodeKind::Seq(items)) => items.get(*index),
            _ => None,
        }
    }
}

/// A problem that ends the parse; boxed because it travels up many frames.
type Fatal = Box<Diagnostic>;

/// An event with its bytes.
type Spanned<'a> = (Event<'a>, Span);

struct Builder<'a> {
    events: Parser<'a, StrInput<'a>>,
    source: &'a Source,
    problems: Problems,
    path: KeyPath,
    /// Finished anchored nodes and how many nodes each holds.
    anchors: BTreeMap<usize, (Node, usize)>,
    nodes: usize,
    nodes_max: usize,
    dropped: Vec<Span>,
}

impl<'a> Builder<'a> {
    fn document(&mut self) -> Result<Node, Fatal> {
        let empty = Node { span: Span::default(), kind: NodeKind::Map(Vec::new()) };
        let mut root = None;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamEnd => return Ok(root.unwrap_or(empty)),
                Event::DocumentStart(..) if root.is_some() => {
                    self.problems.add(
                        Diagnostic::error(&codes::MANY_DOCUMENTS, "more than one YAML document")
                            .at_span(&KeyPath::root(), span)
                            .label("a second document starts here")
                            .help("put each document into a file of its own"),
                    );
                    return Ok(root.unwrap_or(empty));
                }
                event if event.is_node() => {
                    let node = self.node((event, span), 0)?;
                    let is_empty = matches!(node.kind, NodeKind::Null);
                    root = Some(if is_empty { empty.clone() } else { node });
                }
                _ => {}
            }
        }
    }

    fn next(&mut self) -> Result<Spanned<'a>, Fatal> {
        match self.events.next_event() {
            Some(Ok((event, span))) => Ok((event, self.span(span))),
            Some(Err(error)) => {
                let start = error.marker().byte_offset().unwrap_or(0).min(self.source.text().len());
                // The parser's own bound is above ours, but it reads ahead.
                if matches!(error.kind(), ErrorKind::RecursionLimitExceeded) {
                    return Err(self.too_big(Span { start, end: start }, TOO_DEEP));
                }
                Err(Box::new(syntax::problem(self.source, &self.path, start, &error.info())))
            }
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn span(&self, span: granit_parser::Span) -> Span {
        let length = self.source.text().len();
        let range = span.byte_range().unwrap_or(0..0);
        Span { start: range.start.min(length), end: range.end.min(length) }
    }

    fn node(&mut self, (event, span): Spanned<'a>, depth: usize) -> Result<Node, Fatal> {
        let before = self.nodes;
        self.charge(1, span)?;
        if depth > MAX_DEPTH {
            return Err(self.too_big(span, TOO_DEEP));
        }
        self.refuse_tag(&event, span);
        let anchor = event.anchor_id();
        let node = match event {
            Event::Alias(id) => self.alias(id, span)?,
            Event::SequenceStart(..) => self.seq(span, depth)?,
            Event::MappingStart(..) => self.map(span, depth)?,
            Event::Scalar(text, style, _, tag) => {
                let is_text = tag.is_some_and(|tag| tag.is_yaml_core_schema_tag("str"));
                let plain = style == ScalarStyle::Plain && !is_text;
                let kind = match text.as_ref() {
                    "" | "~" | "null" | "Null" | "NULL" if plain => NodeKind::Null,
                    _ => NodeKind::Scalar { text: text.into_owned(), plain },
                };
                Node { span, kind }
            }
            _ => Node { span, kind: NodeKind::Null },
        };
        if let Some(id) = anchor {
            let size = self.nodes - before;
            self.charge(size, span)?;
            self.anchors.insert(id, (node.clone(), size));
        }
        Ok(node)
    }

    fn seq(&mut self, start: Span, depth: usize) -> Result<Node, Fatal> {
        let mut items: Vec<Node> = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::SequenceEnd) {
                let first = items.first().map(|item| item.span);
                return Ok(Node { span: whole(start, span, first), kind: NodeKind::Seq(items) });
            }
            if event.is_node() {
                self.path.push(Step::Index(items.len()));
                let item = self.node((event, span), depth + 1)?;
                self.path.pop();
                items.push(item);
            }
        }
    }

    fn map(&mut self, start: Span, depth: usize) -> Result<Node, Fatal> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut seen: BTreeMap<String, Span> = BTreeMap::new();
        loop {
            let (event, key_span) = self.next()?;
            if matches!(event, Event::MappingEnd) {
                let first = entries.first().map(|entry| entry.key_span);
                return Ok(Node {
                    span: whole(start, key_span, first),
                    kind: NodeKind::Map(entries),
                });
            }
            if !event.is_node() {
                continue;
            }
            let key = self.key((event, key_span), depth)?;
            let value_event = self.next_node()?;
            self.path.push(Step::Key(key.clone().unwrap_or_default()));
            let value = self.node(value_event, depth + 1)?;
            match key {
                Some(key) if !seen.contains_key(&key) => {
                    seen.insert(key.clone(), key_span);
                    entries.push(Entry { key, key_span, value });
                }
                again => {
                    value.scalars(&mut self.dropped);
                    if let Some((key, first)) = again.and_then(|key| seen.get_key_value(&key)) {
                        self.duplicate(key, key_span, *first);
                    }
                }
            }
            self.path.pop();
        }
    }

    /// The next event that is a node.
    fn next_node(&mut self) -> Result<Spanned<'a>, Fatal> {
        loop {
            let spanned = self.next()?;
            if spanned.0.is_node() || matches!(spanned.0, Event::StreamEnd) {
                return Ok(spanned);
            }
        }
    }

    /// A key as a word; none, and a problem, if it is not one.
    fn key(&mut self, (event, span): Spanned<'a>, depth: usize) -> Result<Option<String>, Fatal> {
        if let Event::Scalar(text, style, ..) = &event {
            let text = text.clone().into_owned();
            let is_merge = text == "<<" && *style == ScalarStyle::Plain;
            self.node((event, span), depth + 1)?;
            if is_merge {
                self.unsupported(span, "a merge key (`<<`)", "write the keys out");
                return Ok(None);
            }
            return Ok(Some(text));
        }
        let key = self.node((event, span), depth + 1)?;
        if let NodeKind::Scalar { text, .. } = key.kind {
            return Ok(Some(text));
        }
        self.unsupported(span, "a key that is a list or a map", "write a single word");
        Ok(None)
    }

    fn alias(&mut self, id: usize, span: Span) -> Result<Node, Fatal> {
        let Some((node, size)) = self.anchors.get(&id) else {
            self.unsupported(span, "an alias inside the value it names", "write the value out");
            return Ok(Node { span, kind: NodeKind::Null });
        };
        let (node, size) = (node.clone(), *size);
        self.charge(size, span)?;
        Ok(node)
    }

    /// Tags change what a value is; only `!!str` and its like say nothing surprising.
    fn refuse_tag(&mut self, event: &Event<'_>, span: Span) {
        if let Some(tag) = event.tag().filter(|tag| !tag.is_yaml_core_schema()) {
            let what = format!("the tag {}", quoted(&tag.original()));
            self.unsupported(span, &what, "remove it");
        }
    }

    fn charge(&mut self, nodes: usize, span: Span) -> Result<(), Fatal> {
        self.nodes = self.nodes.saturating_add(nodes);
        if self.nodes <= self.nodes_max {
            return Ok(());
        }
        let what = format!("more than {} values, aliases expanded", self.nodes_max);
        Err(self.too_big(span, &what))
    }

    fn too_big(&self, span: Span, what: &str) -> Fatal {
        let diagnostic =
            Diagnostic::error(&codes::TOO_COMPLEX, format!("the file is too complex: {what}"))
                .at_span(&self.path, span)
                .label("the bound is reached here")
                .help(
                    "a config or scenario never needs this: check that this is the file you meant",
                );
        Box::new(diagnostic)
    }

    fn unsupported(&mut self, span: Span, what: &str, help: &str) {
        let message = format!("{what} is not supported");
        self.problems.add(
            Diagnostic::error(&codes::UNSUPPORTED_YAML, message)
                .at_span(&self.path, span)
                .help(help),
        );
    }

    fn duplicate(&mut self, key: &str, again: Span, first: Span) {
        let message = format!("the key {} is written twice", quoted(key));
        self.problems.add(
            Diagnostic::error(&codes::DUPLICATE_KEY, message)
                .at_span(&self.path, again)
                .label("written again here")
                .help(format!(
                    "first written at {}; keep one of them",
                    self.source.location(first)
                )),
        );
    }
}

/// The bytes of a collection: from bracket to bracket, or the first child of a block one.
fn whole(start: Span, end: Span, first: Option<Span>) -> Span {
    if start.end > start.start {
        return Span { start: start.start, end: end.end.max(start.end) };
    }
    first.unwrap_or(start)
}

#[cfg(test)]
#[path = "document/tests.rs"]
mod tests;
