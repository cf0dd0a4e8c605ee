//! Diagnostics as text: the file and line, the line itself, a caret, what to do.
//!
//! ```text
//! error[TG010]: unknown key `opne_for` in `health`
//!   ┌─ tidegate.yaml:2:3
//! 2 │   opne_for: 30s
//!   │   ^^^^^^^^ not a key of this section
//!   = help: did you mean `open_for`?
//! ```
//!
//! Rules kept here:
//! - Legible without colour; colour only repeats what the words say.
//! - One line of source per problem. A span over several lines is cut at the first line's end, and
//!   of a long line only the part around the span is shown.
//! - A secret that stands in the file is drawn as stars, and so is whatever looks like one.
//! - A tab is drawn as one space and control characters as `�`, so the caret stays under its text
//!   and a file cannot drive the terminal.
//!
//! Written by hand (and not with annotate-snippets) because the arrow and help lines of this look
//! cannot be set there.

use std::fmt::Write;

use anstyle::{AnsiColor, Style};

use crate::{
    diagnostic::{Diagnostic, SHOWN_BYTES, Severity, Span},
    mask,
    source::Source,
};

/// The longest piece of a source line that is shown, in characters.
const MAX_LINE_CHARS: usize = 100;

/// How much of the line is kept before the span when it has to be cut.
const LEAD_CHARS: usize = 30;

/// How diagnostics are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Use ANSI colours.
    pub color: bool,
    /// Draw with ASCII only.
    pub ascii: bool,
}

/// The text of one diagnostic, ending in a newline.
#[must_use]
pub fn render(source: &Source, diagnostic: &Diagnostic, look: Look) -> String {
    let pen = Pen { look };
    let mut out = String::new();
    let tone = match diagnostic.severity {
        Severity::Error => Style::new().fg_color(Some(AnsiColor::Red.into())).bold(),
        Severity::Warning => Style::new().fg_color(Some(AnsiColor::Yellow.into())).bold(),
    };
    let head = format!("{}[{}]", diagnostic.severity.word(), diagnostic.code.id);
    push_line(&mut out, &format!("{}: {}", pen.paint(tone, &head), diagnostic.message));
    let width = diagnostic
        .span
        .map_or(1, |span| draw_source(&mut out, source, diagnostic, Caret { tone, span }, pen));
    for help in &diagnostic.help {
        let mark = pen.paint(Style::new().fg_color(Some(AnsiColor::Cyan.into())), "= help:");
        push_line(&mut out, &format!("{:width$} {mark} {help}", ""));
    }
    out
}

/// The text of all diagnostics, separated by blank lines.
#[must_use]
pub fn render_all(source: &Source, diagnostics: &[Diagnostic], look: Look) -> String {
    let texts: Vec<String> =
        diagnostics.iter().map(|diagnostic| render(source, diagnostic, look)).collect();
    texts.join("\n")
}

struct Caret {
    tone: Style,
    span: Span,
}

/// Draws arrow, source line and caret; returns the width of the line number.
fn draw_source(
    out: &mut String,
    source: &Source,
    diagnostic: &Diagnostic,
    caret: Caret,
    pen: Pen,
) -> usize {
    let line_number = source.place(caret.span.start).line.to_string();
    let width = line_number.len();
    let piece = piece_of(source, caret.span, &diagnostic.hidden);
    let (arrow, bar) = if pen.look.ascii { ("-->", "|") } else { ("┌─", "│") };
    let dim = Style::new().fg_color(Some(AnsiColor::Blue.into()));
    let location = source.location(caret.span);
    push_line(out, &format!("{:width$} {} {location}", "", pen.paint(dim, arrow)));
    push_line(out, &format!("{} {}", pen.paint(dim, &format!("{line_number} {bar}")), piece.text));
    let marks = format!("{} {}", "^".repeat(piece.marked), diagnostic.label);
    let marks = pen.paint(caret.tone, marks.trim_end());
    let bar = pen.paint(dim, bar);
    push_line(out, &format!("{:width$} {bar} {:indent$}{marks}", "", "", indent = piece.before));
    width
}

/// The part of a source line that is shown.
struct Piece {
    text: String,
    /// Characters before the span.
    before: usize,
    /// Characters of the span on this line, at least one.
    marked: usize,
}

fn piece_of(source: &Source, span: Span, hidden: &[Span]) -> Piece {
    let (start, line) = source.line_at(span.start);
    let chars_up_to =
        |offset: usize| line.char_indices().take_while(|(at, _)| start + at < offset).count();
    let before = chars_up_to(span.start);
    let marked = chars_up_to(span.end).saturating_sub(before).max(1);
    let near = near(line, span.start - start);
    let suspicious = mask::secret_ranges(&line[near.clone()]);
    let is_hidden = |at: usize| {
        hidden.iter().any(|span| (span.start..span.end).contains(&(start + at)))
            || suspicious
                .iter()
                .any(|it| (it.start + near.start..it.end + near.start).contains(&at))
    };
    let drawn = |(at, c): (usize, char)| if is_hidden(at) { '*' } else { visible(c) };
    let length = line.chars().count();
    let (first, last) = if length <= MAX_LINE_CHARS {
        (0, length)
    } else {
        let first = before.saturating_sub(LEAD_CHARS).min(length);
        (first, (first + MAX_LINE_CHARS).min(length))
    };
    // Only what is shown is drawn: a line may have megabytes, and each may have thousands of
    // problems.
    let shown = line.char_indices().skip(first).take(last - first).map(drawn);
    let lead = (first > 0).then_some('…');
    let tail = (last < length).then_some('…');
    let text = lead.into_iter().chain(shown).chain(tail).collect();
    let before = before - first + usize::from(first > 0);
    let is_whole = first == 0 && last == length;
    let marked = if is_whole { marked } else { marked.min(MAX_LINE_CHARS - LEAD_CHARS) };
    Piece { text, before, marked }
}

/// The part of a line that may be shown: a line of megabytes is not searched for secrets whole.
fn near(line: &str, at: usize) -> std::ops::Range<usize> {
    let from = line.floor_char_boundary(at.saturating_sub(SHOWN_BYTES));
    let to = line.floor_char_boundary(at.saturating_add(SHOWN_BYTES).min(line.len()));
    from.min(to)..to
}

fn visible(c: char) -> char {
    match c {
        '\t' => ' ',
        c if c.is_control() => '\u{fffd}',
        c => c,
    }
}

#[derive(Clone, Copy)]
struct Pen {
    look: Look,
}

impl Pen {
    fn paint(self, style: Style, text: &str) -> String {
        if self.look.color { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }
}

fn push_line(out: &mut String, line: &str) {
    writeln!(out, "{}", line.trim_end()).expect("writing to a String never fails");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{codes, path::KeyPath};

    fn check(text: &str, marked: &str, expected: &str) {
        let source = Source::new("t.yaml", text);
        let start = text.find(marked).expect("the marked text is in the file");
        let span = Span { start, end: start + marked.len() };
        let diagnostic = Diagnostic::error(&codes::UNKNOWN_KEY, "wrong")
            .at_span(&KeyPath::root(), span)
            .label("here")
            .help("do that");
        let drawn = render(&source, &diagnostic, Look::default());
        let drawn = drawn.strip_prefix("error[TG010]: wrong\n").expect("the head comes first");
        assert_eq!(drawn, expected, "drawn:\n{drawn}");
    }

    #[test]
    fn the_caret_stands_under_its_text_after_tabs_and_umlauts() {
        check(
            "a: 1\nä:\t{ bad: 2 }\r\n",
            "bad",
            "  ┌─ t.yaml:2:6\n2 │ ä: { bad: 2 }\n  │      ^^^ here\n  = help: do that\n",
        );
    }

    #[test]
    fn a_long_line_is_cut_around_the_span() {
        let text = format!("a: {}BAD{}", "x".repeat(5000), "y".repeat(5000));
        let shown = format!("…{}BAD{}…", "x".repeat(30), "y".repeat(67));
        let caret = format!("{}^^^ here", " ".repeat(31));
        check(
            &text,
            "BAD",
            &format!("  ┌─ t.yaml:1:5004\n1 │ {shown}\n  │ {caret}\n  = help: do that\n"),
        );
    }

    #[test]
    fn a_span_of_several_lines_is_cut_at_the_first_and_escapes_are_disarmed() {
        check(
            "a: [\u{1b}[2J,\n  b]\n",
            "[\u{1b}[2J,\n  b]",
            "  ┌─ t.yaml:1:4\n1 │ a: [�[2J,\n  │    ^^^^^^ here\n  = help: do that\n",
        );
    }

    #[test]
    fn colour_changes_no_word() {
        let source = Source::new("t.yaml", "a: 1\n");
        let diagnostic = Diagnostic::warning(&codes::UNKNOWN_KEY, "wrong")
            .at_span(&KeyPath::root(), Span { start: 0, end: 1 });
        let plain = render(&source, &diagnostic, Look::default());
        let colored = render(&source, &diagnostic, Look { color: true, ascii: false });
        assert!(colored.contains("\u{1b}["));
        let mut stripped = String::new();
        let mut rest = colored.as_str();
        while let Some((before, after)) = rest.split_once('\u{1b}') {
            stripped.push_str(before);
            rest = after.split_once('m').expect("a colour sequence ends in m").1;
        }
        stripped.push_str(rest);
        assert_eq!(stripped, plain);
    }

    #[test]
    fn ascii_look_has_only_ascii() {
        let source = Source::new("t.yaml", "a: 1\n");
        let diagnostic = Diagnostic::error(&codes::UNKNOWN_KEY, "wrong")
            .at_span(&KeyPath::root(), Span { start: 0, end: 1 });
        assert!(render(&source, &diagnostic, Look { color: false, ascii: true }).is_ascii());
    }
}
