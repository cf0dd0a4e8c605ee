//! Marks under the rows: an arrow below a moment and a few words, as many lines as needed.

use tidegate_core::time::Now;

use super::{LaneGlyphs, Layout, Picture, axis};

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
pub(super) fn draw(picture: &Picture, layout: Layout, glyphs: &LaneGlyphs) -> Vec<String> {
    let mut lines: Vec<MarkLine> = Vec::new();
    let mut left_out = 0;
    for mark in &picture.marks {
        let column = axis::column(picture.from, picture.to, layout.columns, mark.at);
        let column = layout.indent() + column;
        let edge = layout.indent() + layout.columns;
        let placed = lines.iter_mut().any(|line| line.place(mark, column, edge, glyphs));
        if placed {
            continue;
        }
        let mut line = MarkLine::default();
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
struct MarkLine {
    text: String,
    used: usize,
}

impl MarkLine {
    /// Writes the mark with its arrow at `column`: the words after it, or before it near the edge.
    /// Words that fit on neither side are cut on the wider side, so that the arrow always points at
    /// its moment.
    fn place(&mut self, mark: &Mark, column: usize, edge: usize, glyphs: &LaneGlyphs) -> bool {
        let length = mark.text.chars().count();
        let first_free = if self.used == 0 { 0 } else { self.used + GAP };
        let arrow = glyphs.mark;
        let (room_after, room_before) = (edge.saturating_sub(column + 1), column);
        let is_after = length <= room_after || (length > room_before && room_after >= room_before);
        let words = cut(&mark.text, if is_after { room_after } else { room_before }, glyphs);
        let words_length = words.chars().count();
        let start = if is_after { column } else { column - words_length };
        if start < first_free || column >= edge {
            return false;
        }
        self.text.push_str(&" ".repeat(start - self.used));
        let marked = if is_after { format!("{arrow}{words}") } else { format!("{words}{arrow}") };
        self.text.push_str(&marked);
        self.used = start + words_length + 1;
        true
    }
}

/// A text of at most `room` characters: its beginning says when and what.
fn cut(text: &str, room: usize, glyphs: &LaneGlyphs) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    let kept: String = text.chars().take(room.saturating_sub(1)).collect();
    format!("{kept}{}", glyphs.cut)
}
