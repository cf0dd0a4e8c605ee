//! Columns: each as wide as its widest cell, painted after they are laid out.

use tidegate_sim::paint::Tone;

use crate::look::Look;

/// On which side a column is flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// A table.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    columns: Vec<(&'static str, Align)>,
    spare: &'static [&'static str],
    rows: Vec<Row>,
}

/// One row, and a remark that stands behind it, or below where there is no room.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) cells: Vec<(Tone, String)>,
    pub(crate) remark: String,
}

/// The first column is not cut below this.
const NAME_MIN: usize = 12;

impl Table {
    pub(crate) fn new(columns: &[(&'static str, Align)]) -> Self {
        Self { columns: columns.to_vec(), spare: &[], rows: Vec::new() }
    }

    /// Columns that are left out, the first one first, before a name is cut.
    pub(crate) fn spare(mut self, columns: &'static [&'static str]) -> Self {
        self.spare = columns;
        self
    }

    pub(crate) fn push(&mut self, cells: Vec<(Tone, String)>, remark: String) {
        self.rows.push(Row { cells, remark });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The lines, none wider than the look's width, unless a single word is.
    pub(crate) fn lines(&self, look: Look) -> Vec<String> {
        let mut table = self.clone();
        for name in self.spare {
            let needed: usize = table.widths().iter().map(|width| width + 2).sum();
            if needed.saturating_sub(2) <= look.width {
                break;
            }
            table.remove(name);
        }
        table.fitted(look)
    }

    fn remove(&mut self, name: &str) {
        let Some(at) = self.columns.iter().position(|(it, _)| *it == name) else { return };
        self.columns.remove(at);
        for row in self.rows.iter_mut().filter(|row| row.cells.len() > at) {
            row.cells.remove(at);
        }
    }

    /// How wide the widest cell of each column is.
    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = self.columns.iter().map(|(name, _)| count(name)).collect();
        for row in &self.rows {
            for (width, (_, text)) in widths.iter_mut().zip(&row.cells) {
                *width = (*width).max(count(text));
            }
        }
        widths
    }

    fn fitted(&self, look: Look) -> Vec<String> {
        let mut widths = self.widths();
        let others: usize = widths.iter().skip(1).map(|width| width + 2).sum();
        if let Some(first) = widths.first_mut() {
            *first = (*first).min(look.width.saturating_sub(others).max(NAME_MIN));
        }
        let whole = widths.first().copied().unwrap_or(0) + others;
        let head = self.columns.iter().map(|(name, _)| (Tone::Quiet, (*name).to_owned()));
        let mut lines = vec![self.line(&head.collect::<Vec<_>>(), &widths, look)];
        for row in &self.rows {
            let mut line = self.line(&row.cells, &widths, look);
            if row.remark.is_empty() {
                lines.push(line);
            } else if whole + 2 + count(&row.remark) <= look.width {
                let shown: usize = row_width(&row.cells, &widths);
                line.push_str(&" ".repeat(whole.saturating_sub(shown) + 2));
                line.push_str(&row.remark);
                lines.push(line);
            } else {
                lines.push(line);
                let text = crate::words::filled(&row.remark, look.width.saturating_sub(4), 0);
                lines.extend(text.into_iter().map(|it| format!("    {it}")));
            }
        }
        lines
    }

    fn line(&self, cells: &[(Tone, String)], widths: &[usize], look: Look) -> String {
        let mut line = String::new();
        let last = cells.len().saturating_sub(1);
        for (index, ((tone, text), width)) in cells.iter().zip(widths).enumerate() {
            let text = fit(text, *width, look);
            let room = " ".repeat(width.saturating_sub(count(&text)));
            let painted = look.paint().apply(*tone, &text);
            let align = self.columns.get(index).map_or(Align::Left, |(_, align)| *align);
            match align {
                Align::Right => line.push_str(&format!("{room}{painted}")),
                Align::Left if index == last => line.push_str(&painted),
                Align::Left => line.push_str(&format!("{painted}{room}")),
            }
            if index != last {
                line.push_str("  ");
            }
        }
        line
    }
}

/// How many columns a row takes; the last of them has no room behind it if it is flush left.
fn row_width(cells: &[(Tone, String)], widths: &[usize]) -> usize {
    let last = cells.len().saturating_sub(1);
    let before: usize = widths.iter().take(last).map(|width| width + 2).sum();
    before
        + cells.last().map_or(0, |(_, text)| count(text)).max(widths.last().copied().unwrap_or(0))
}

/// A text of at most `width` characters. Both ends of a name tell it from its neighbours (the
/// provider in front, the size of the model behind), so the middle goes.
pub(crate) fn fit(text: &str, width: usize, look: Look) -> String {
    let length = count(text);
    if length <= width {
        return text.to_owned();
    }
    let kept = width.saturating_sub(1);
    let head: String = text.chars().take(kept.div_ceil(2)).collect();
    let tail: String = text.chars().skip(length - kept / 2).collect();
    format!("{head}{}{tail}", look.glyphs().cut)
}

pub(crate) fn count(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::{Align, Table, fit};
    use crate::look::Look;
    use tidegate_sim::paint::Tone;

    fn look(width: usize) -> Look {
        Look { width, is_ascii: false, has_colour: false }
    }

    #[test]
    fn names_that_are_cut_keep_both_ends() {
        assert_eq!(fit("openai/gpt-5-mini", 11, look(80)), "opena…-mini");
        assert_eq!(fit("openai/gpt-5-nano", 12, look(80)), "openai…-nano");
        assert_eq!(fit("short", 5, look(80)), "short");
    }

    #[test]
    fn spare_columns_go_before_a_name_is_cut() {
        let columns = [("NAME", Align::Left), ("P50", Align::Right), ("P95", Align::Right)];
        let mut table = Table::new(&columns).spare(&["P50", "P95"]);
        let cells = ["ebb/tide-small", "72ms", "240ms"];
        table.push(cells.map(|it| (Tone::Plain, it.to_owned())).into(), String::new());
        assert_eq!(table.lines(look(27))[1], "ebb/tide-small  72ms  240ms");
        assert_eq!(table.lines(look(26))[1], "ebb/tide-small  240ms");
        assert_eq!(table.lines(look(20))[1], "ebb/tide-small");
    }
}
