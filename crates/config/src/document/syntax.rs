//! Text that is not YAML: what is probably wrong with it, and what may be shown of it.
//!
//! A parser says where it stopped, which is often a line after the mistake, in words of its own.
//! The mistakes that people make are few (a tab, a wrong indentation, a missing colon or bracket),
//! so the lines around that place are looked at for each of them.
//!
//! Nothing is known about such a line's meaning, so every value on it may be a secret: only its
//! key and its punctuation are shown.

use crate::{
    codes,
    diagnostic::{Diagnostic, SHOWN_BYTES, Span, quoted},
    path::KeyPath,
    source::Source,
};

/// Longer words without a colon may be the rest of a value, and are not shown.
const MAX_KEY_BYTES: usize = 40;

/// No advice is given about longer lines, nor about what stands further above.
const MAX_LINE_BYTES: usize = 1000;
const MAX_LINES_ABOVE: usize = 1000;

/// The problem that a parser met at a byte, with a fix where the mistake is a common one.
pub(super) fn problem(source: &Source, path: &KeyPath, offset: usize, info: &str) -> Diagnostic {
    let lines = Lines::around(source, offset);
    let diagnostic = if let Some(tab) = lines.tab() {
        Diagnostic::error(&codes::NOT_YAML, "not YAML: a tab is used for indentation")
            .at_span(path, Span { start: tab, end: tab + 1 })
            .label("this is a tab")
            .help("indent with spaces: YAML does not allow tabs there")
    } else {
        let span = Span { start: offset, end: offset };
        let diagnostic = Diagnostic::error(&codes::NOT_YAML, format!("not YAML: {info}"))
            .at_span(path, span)
            .maybe_help(lines.advice());
        match lines.is_misplaced() {
            true => Diagnostic {
                message: "not YAML: the indentation of this line fits no section".to_owned(),
                ..diagnostic
            },
            false => diagnostic,
        }
    };
    hide_values(diagnostic, source)
}

/// Hides the values on the line of a problem in a file that could not be parsed.
pub(super) fn hide_values(diagnostic: Diagnostic, source: &Source) -> Diagnostic {
    let Some(span) = diagnostic.span else { return diagnostic };
    let (start, line) = source.line_at(span.start);
    // Of a very long line only the part around the problem is ever shown.
    let at = span.start.saturating_sub(start);
    let from = line.floor_char_boundary(at.saturating_sub(SHOWN_BYTES));
    let hidden = values(line, from).take_while(|(from, _)| *from < at + SHOWN_BYTES);
    let near = hidden.map(|(from, to)| Span { start: start + from, end: start + to });
    Diagnostic { hidden: near.collect(), ..diagnostic }
}

/// The words of a line that may be values, from a byte on: those after its first colon, or all of a
/// line without one, unless it is a single short word, which is a key whose colon is missing.
fn values(line: &str, from: usize) -> impl Iterator<Item = (usize, usize)> {
    let is_word = |c: char| !c.is_whitespace() && !"[]{}\"',:#&*!|>%@`-".contains(c);
    let trimmed = line.trim();
    let is_bare_key = trimmed.len() <= MAX_KEY_BYTES
        && trimmed.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    let mut at = match line.find(':') {
        Some(colon) => from.max(colon + 1),
        None if is_bare_key => line.len(),
        None => from,
    };
    std::iter::from_fn(move || {
        let start = at + line.get(at..)?.find(is_word)?;
        let rest = &line[start..];
        at = start + rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        Some((start, at))
    })
}

/// The line where a parser stopped, and its neighbours.
struct Lines<'a> {
    source: &'a Source,
    /// Where the line begins, and its text.
    line: (usize, &'a str),
    /// The line before it that says something.
    before: Option<&'a str>,
    /// How far the sections are indented that the line may belong to, outermost first.
    levels: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn around(source: &'a Source, offset: usize) -> Self {
        let line = source.line_at(offset);
        let says_something = |line: &&str| {
            let text = line.trim_start();
            !text.is_empty() && !text.starts_with('#')
        };
        let above = source.text().get(..line.0).unwrap_or_default();
        let mut levels = Vec::new();
        let lines_above = || above.lines().rev().take(MAX_LINES_ABOVE).filter(says_something);
        for earlier in lines_above() {
            let indent = indent(earlier);
            if levels.last().is_none_or(|inner| indent < *inner) {
                levels.push(indent);
            }
        }
        levels.reverse();
        Self { source, line, before: lines_above().next(), levels }
    }

    /// The first tab in the indentation of the line, or of the one after it.
    fn tab(&self) -> Option<usize> {
        let next = self.source.line_at(self.line.0 + self.line.1.len() + 1);
        [self.line, next].into_iter().find_map(|(start, line)| {
            let indentation = &line[..line.len() - line.trim_start().len()];
            indentation.find('\t').map(|at| start + at)
        })
    }

    /// Whether the line begins between two levels.
    fn is_misplaced(&self) -> bool {
        let indent = indent(self.line.1);
        let deepest = self.levels.last().copied().unwrap_or(0);
        indent < deepest && !self.levels.contains(&indent)
    }

    fn advice(&self) -> Option<String> {
        if self.line.1.len() > MAX_LINE_BYTES {
            return None;
        }
        let text = self.line.1.trim();
        let before = self.before.map(str::trim).unwrap_or_default();
        if self.is_misplaced() {
            let columns: Vec<String> = self.levels.iter().map(usize::to_string).collect();
            return Some(format!(
                "it is indented by {}, and the sections above it by {}: keys of one section have \
                 the same indentation",
                spaces(indent(self.line.1)),
                columns.join(", "),
            ));
        }
        let is_deeper = indent(self.line.1) > self.levels.last().copied().unwrap_or(0);
        if is_deeper && !before.contains(':') && !before.starts_with('-') {
            let key = quoted(&format!("{before}:"));
            return Some(format!("the line above may lack its colon: write {key}"));
        }
        if is_deeper && !before.ends_with([':', '-', '[', '{', ',', '|', '>']) {
            return Some(
                "it is indented deeper than the line above, which has a value already: give both \
                 lines the same indentation"
                    .to_owned(),
            );
        }
        let flow = |text: &str| text.matches(['[', '{']).count() > text.matches([']', '}']).count();
        if flow(before) || flow(text) {
            return Some("a bracket or brace is opened and not closed".to_owned());
        }
        if text.matches(": ").count() > 1 && !text.contains(['{', '"', '\'']) {
            return Some("put the value into quotes if it contains `: `".to_owned());
        }
        if text.matches('"').count() % 2 == 1 || text.matches('\'').count() % 2 == 1 {
            return Some("a quote is opened and not closed".to_owned());
        }
        None
    }
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

fn spaces(count: usize) -> String {
    if count == 1 { "1 space".to_owned() } else { format!("{count} spaces") }
}
