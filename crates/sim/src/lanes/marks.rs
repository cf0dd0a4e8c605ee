//! Marks under the rows: an arrow below a moment and a few words, as many lines as needed.

use tidegate_core::time::Now;

use super::{Glyphs, Layout, Picture, axis};

/// A moment to point at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// When.
    pub at: Now,
    /// What happened, in a few words.
    pub text: String,
}

/// More lines than this hide the rows they explain.
const LINES_MAX: usize = 5;
/// Between two marks of a line.
const GAP: usize = 2;

/// The lines of marks: each mark in the first line that has room for it.
pub(super) fn draw(picture: &Picture, layout: Layout, glyphs: &Glyphs) -> Vec<String> {
    let mut lines: Vec<Line> = Vec::new();
    let mut left_out = 0;
    for mark in &picture.marks {
        let column = axis::column(picture.from, picture.to, layout.columns, mark.at);
        let column = layout.indent() + column;
        let edge = layout.indent() + layout.columns;
        let placed = lines.iter_mut().any(|line| line.place(mark, column, edge, glyphs));
        if placed {
            continue;
        }
        let mut line = Line::default();
        if lines.len() < LINES_MAX && line.place(mark, column, edge, glyphs) {
            lines.push(line);
        } else {
            left_out += 1;
        }
    }
    let mut lines: Vec<String> = lines.into_iter().map(|line| line.text).collect();
    if left_out > 0 {
        let indent = " ".repeat(layout.indent());
        lines.push(format!("{indent}and {left_out} more: --trace shows each"));
    }
    lines
}

#[derive(Default)]
struct Line {
    text: String,
    used: usize,
}

impl Line {
    /// Writes the mark with its arrow at `column`, the words after it or, near the edge, before.
    fn place(&mut self, mark: &Mark, column: usize, edge: usize, glyphs: &Glyphs) -> bool {
        let length = mark.text.chars().count() + 1;
        let first_free = if self.used == 0 { 0 } else { self.used + GAP };
        let arrow = glyphs.mark;
        let (start, words) = if column + length <= edge {
            (column, format!("{arrow}{}", mark.text))
        } else if column + 1 >= length {
            (column + 1 - length, format!("{}{arrow}", mark.text))
        } else {
            (edge.saturating_sub(length), format!("{}{arrow}", mark.text))
        };
        if start < first_free || start + length > edge {
            return false;
        }
        self.text.push_str(&" ".repeat(start - self.used));
        self.text.push_str(&words);
        self.used = start + length;
        true
    }
}
