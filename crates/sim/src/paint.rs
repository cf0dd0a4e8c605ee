//! Colour of pictures: what a word or sign means, and how a terminal shows it.
//!
//! Rules kept here:
//! - Colour only repeats what signs and words say already: a picture without it says the same.
//! - Red means that a client was hurt or an expectation failed. A fault that failover handles is
//!   yellow.
//! - Painting comes after layout: it adds no visible characters.

use anstyle::{AnsiColor, Style};

/// What a piece of text means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// In order: an answer, a closed breaker, an expectation that held.
    Good,
    /// A fault that was handled: an open breaker, a failed attempt.
    Trouble,
    /// A half-open breaker, or time that passes.
    Change,
    /// A client was hurt, or an expectation failed.
    Bad,
    /// Nothing happened.
    Quiet,
    /// No meaning of its own.
    Plain,
}

/// Whether to paint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paint {
    /// Whether the reader's terminal shows colour.
    pub is_on: bool,
}

impl Paint {
    /// The text in the colour of its tone.
    #[must_use]
    pub fn apply(self, tone: Tone, text: &str) -> String {
        let Some(style) = tone.style().filter(|_| self.is_on && !text.is_empty()) else {
            return text.to_owned();
        };
        format!("{style}{text}{style:#}")
    }

    /// Characters with a tone each; neighbours of one tone share their escape codes.
    pub fn row(self, cells: impl Iterator<Item = (Tone, char)>) -> String {
        let (mut painted, mut run, mut run_tone) = (String::new(), String::new(), Tone::Plain);
        for (tone, sign) in cells {
            if tone != run_tone {
                painted.push_str(&self.apply(run_tone, &run));
                run.clear();
                run_tone = tone;
            }
            run.push(sign);
        }
        painted + &self.apply(run_tone, &run)
    }
}

impl Tone {
    fn style(self) -> Option<Style> {
        let colour = |colour: AnsiColor| Some(Style::new().fg_color(Some(colour.into())));
        match self {
            Self::Good => colour(AnsiColor::Green),
            Self::Trouble => colour(AnsiColor::Yellow),
            Self::Change => colour(AnsiColor::Cyan),
            Self::Bad => Some(Style::new().bold().fg_color(Some(AnsiColor::Red.into()))),
            Self::Quiet => Some(Style::new().dimmed()),
            Self::Plain => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Paint, Tone};

    #[test]
    fn painting_adds_escape_codes_only_and_only_when_it_is_on() {
        let cells =
            [(Tone::Good, 'a'), (Tone::Good, 'b'), (Tone::Trouble, 'c'), (Tone::Plain, 'd')];
        assert_eq!(Paint::default().row(cells.into_iter()), "abcd");
        let painted = Paint { is_on: true }.row(cells.into_iter());
        assert_eq!(painted, "\u{1b}[32mab\u{1b}[0m\u{1b}[33mc\u{1b}[0md");
    }
}
