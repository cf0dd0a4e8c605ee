//! Lanes: what happened to backends over time, one row each, under one time axis.
//!
//! The picture is the same wherever time is shown, so it is drawn from plain data: a lane is a
//! name and a row of [`Cell`]s, and whoever has such data can draw it.
//!
//! ```text
//!           0s        2m        4m        6m
//! openai  ● ████████████████████████████████
//! claude  ● ██████████▓▓░░░░◐░░░░◐███████████
//! local   ● ············▁▁▂▂▂▂▂▂▁············
//!                       ▲2m31s opened
//! ```
//!
//! Rules kept here:
//! - Cells are merged or repeated to fit the width; what is bad in any of the merged cells shows.
//!   A trial shows over an open breaker, that over trouble, that over a quiet cell.
//! - A row is never wider than asked for. ASCII drawing uses ASCII alone.
//! - Nothing is known here of breakers or traffic: the caller says what a cell saw.

mod axis;
mod marks;

pub use marks::Mark;

use tidegate_core::{breaker::State, time::Now};

use crate::paint::{Paint, Tone};

/// What one backend saw in one slice of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// Its breaker was open at some moment.
    pub was_open: bool,
    /// Its breaker was half-open at some moment.
    pub was_half_open: bool,
    /// An attempt failed, or a window or exclusion was set.
    pub had_trouble: bool,
    /// Attempts that it got.
    pub attempts: u32,
    /// Attempts that all backends got.
    pub of: u32,
}

impl Cell {
    fn merge(self, other: Self) -> Self {
        Self {
            was_open: self.was_open | other.was_open,
            was_half_open: self.was_half_open | other.was_half_open,
            had_trouble: self.had_trouble | other.had_trouble,
            attempts: self.attempts.saturating_add(other.attempts),
            of: self.of.saturating_add(other.of),
        }
    }
}

/// One backend's row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// What to call it.
    pub name: String,
    /// Its state at the end of the row.
    pub state: State,
    /// Whether a quiet cell shows how much of the traffic it got, instead of "closed".
    pub shows_share: bool,
    /// Its cells, evenly spread over the time shown.
    pub cells: Vec<Cell>,
}

/// Lanes to draw, and the time they span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// The first moment shown.
    pub from: Now,
    /// The last moment shown.
    pub to: Now,
    /// The rows.
    pub lanes: Vec<Lane>,
    /// What to point at under the rows, in the order of time.
    pub marks: Vec<Mark>,
}

/// The characters of a picture.
#[derive(Clone, Copy, Debug)]
pub struct LaneGlyphs {
    closed: char,
    trouble: char,
    open: char,
    half_open: char,
    unused: char,
    shares: [char; 8],
    mark: char,
    states: [char; 3],
    /// An expectation that held.
    pub pass: char,
    /// One that did not.
    pub fail: char,
    /// Between facts on one line.
    pub dot: char,
    /// What stands for the rest of a text that is too long.
    pub cut: char,
}

impl LaneGlyphs {
    /// For terminals that show Unicode.
    pub const UNICODE: Self = Self {
        closed: '█',
        trouble: '▓',
        open: '░',
        half_open: '◐',
        unused: '·',
        shares: ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'],
        mark: '▲',
        states: ['●', '◐', '○'],
        pass: '✓',
        fail: '✗',
        dot: '·',
        cut: '…',
    };

    /// For all others.
    pub const ASCII: Self = Self {
        closed: '#',
        trouble: '%',
        open: '_',
        half_open: '?',
        unused: '.',
        shares: ['1', '2', '3', '4', '5', '6', '7', '8'],
        mark: '^',
        states: ['o', '?', 'x'],
        pass: '+',
        fail: 'x',
        dot: '|',
        cut: '~',
    };

    /// The set that a drawing option asks for.
    #[must_use]
    pub const fn of(is_ascii: bool) -> &'static Self {
        if is_ascii { &Self::ASCII } else { &Self::UNICODE }
    }

    /// The sign of a breaker's state.
    #[must_use]
    pub const fn state(&self, state: State) -> char {
        match state {
            State::Closed => self.states[0],
            State::HalfOpen => self.states[1],
            State::Open => self.states[2],
        }
    }

    fn cell(&self, cell: Cell, shows_share: bool) -> (Tone, char) {
        if cell.was_half_open {
            (Tone::Change, self.half_open)
        } else if cell.was_open {
            (Tone::Trouble, self.open)
        } else if cell.attempts == 0 && !cell.had_trouble {
            (Tone::Quiet, self.unused)
        } else if cell.had_trouble {
            (Tone::Trouble, self.trouble)
        } else if shows_share {
            let eighths = u64::from(cell.attempts) * 8 / u64::from(cell.of.max(1));
            (Tone::Good, self.shares[(eighths as usize).min(7)])
        } else {
            (Tone::Good, self.closed)
        }
    }
}

/// Fewer columns than this show nothing; a narrower terminal wraps.
const COLUMNS_MIN: usize = 16;
/// More columns than this say nothing new on the widest screen.
const COLUMNS_MAX: usize = 160;

/// Where the rows stand.
#[derive(Clone, Copy, Debug)]
struct Layout {
    name: usize,
    columns: usize,
}

impl Layout {
    /// Before the row: the name, a space, the state's sign, a space.
    const fn indent(self) -> usize {
        self.name + 3
    }
}

impl Picture {
    /// The picture as lines, none wider than `width` columns (if that is at least 24).
    #[must_use]
    pub fn draw(&self, width: usize, glyphs: &LaneGlyphs, paint: Paint) -> Vec<String> {
        let layout = self.layout(width);
        let mut lines = vec![axis::draw(self.from, self.to, layout.indent(), layout.columns)];
        for lane in &self.lanes {
            let name = fit(&lane.name, layout.name, glyphs);
            let cells = resample(&lane.cells, layout.columns);
            let row = paint.row(cells.into_iter().map(|cell| glyphs.cell(cell, lane.shows_share)));
            let state = paint.apply(tone_of(lane.state), &glyphs.state(lane.state).to_string());
            lines.push(format!("{name:<width$} {state} {row}", width = layout.name));
        }
        lines.extend(marks::draw(self, layout, glyphs));
        lines
    }

    /// A line that explains the characters that occur.
    #[must_use]
    pub fn legend(&self, glyphs: &LaneGlyphs) -> String {
        let has = |test: fn(&Cell) -> bool| self.lanes.iter().any(|it| it.cells.iter().any(test));
        let shares: String = [0, 3, 7].map(|eighth| glyphs.shares[eighth]).iter().collect();
        let entries = [
            (true, glyphs.closed.to_string(), "closed"),
            (has(|it| it.had_trouble), glyphs.trouble.to_string(), "failing"),
            (has(|it| it.was_open), glyphs.open.to_string(), "open"),
            (has(|it| it.was_half_open), glyphs.half_open.to_string(), "trial"),
            (has(|it| it.attempts == 0), glyphs.unused.to_string(), "unused"),
            (self.lanes.iter().any(|it| it.shows_share), shares, "share"),
        ];
        let shown = entries.iter().filter(|(occurs, ..)| *occurs);
        let words: Vec<String> = shown.map(|(_, sign, word)| format!("{sign} {word}")).collect();
        words.join("  ")
    }

    fn layout(&self, width: usize) -> Layout {
        let longest = self.lanes.iter().map(|it| it.name.chars().count()).max().unwrap_or(0);
        let name = longest.min(width / 3).max(1);
        let columns = width.saturating_sub(name + 3).clamp(COLUMNS_MIN, COLUMNS_MAX);
        Layout { name, columns }
    }
}

/// What a breaker's state means to a reader.
pub(crate) const fn tone_of(state: State) -> Tone {
    match state {
        State::Closed => Tone::Good,
        State::HalfOpen => Tone::Change,
        State::Open => Tone::Trouble,
    }
}

/// A text of at most `width` characters: the end of a name tells more than its beginning.
fn fit(text: &str, width: usize, glyphs: &LaneGlyphs) -> String {
    let count = text.chars().count();
    if count <= width {
        return text.to_owned();
    }
    let tail: String = text.chars().skip(count + 1 - width).collect();
    format!("{}{tail}", glyphs.cut)
}

/// The cells of each column: several merged, or one repeated.
fn resample(cells: &[Cell], columns: usize) -> Vec<Cell> {
    let count = cells.len();
    let column = |index: usize| {
        let start = index * count / columns;
        let end = ((index + 1) * count / columns).max(start + 1).min(count);
        cells.get(start..end).unwrap_or_default().iter().copied().fold(Cell::default(), Cell::merge)
    };
    (0..columns).map(column).collect()
}

#[cfg(test)]
mod tests;
