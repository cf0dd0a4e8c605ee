//! How a text looks: its width, its signs and its colours.
//!
//! A state is a sign, a word and a colour: any one of them is enough to read it.

use tidegate_core::breaker::State;
use tidegate_journal::api::snapshot::BackendView;
use tidegate_sim::{
    lanes::LaneGlyphs,
    paint::{Paint, Tone},
};

/// What the reader's terminal can show.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Columns.
    pub width: usize,
    /// Only ASCII characters.
    pub is_ascii: bool,
    /// Colour.
    pub has_colour: bool,
}

impl Look {
    /// How to paint.
    pub(crate) const fn paint(self) -> Paint {
        Paint { is_on: self.has_colour }
    }

    /// The signs of lanes and states.
    pub(crate) const fn glyphs(self) -> &'static LaneGlyphs {
        LaneGlyphs::of(self.is_ascii)
    }

    /// From one to the next.
    pub(crate) const fn arrow(self) -> &'static str {
        if self.is_ascii { "->" } else { "→" }
    }

    /// Between facts on one line.
    pub(crate) fn dot(self) -> String {
        format!(" {} ", self.glyphs().dot)
    }

    const fn off(self) -> &'static str {
        if self.is_ascii { "-" } else { "✕" }
    }

    /// The state of a backend: sign and word, and their colour.
    pub(crate) fn state(self, it: &BackendView) -> (Tone, String) {
        let off = |word: &str| (Tone::Change, format!("{} {word}", self.off()));
        match it.standing.as_str() {
            "drained" => off("drained"),
            "held" => off("held"),
            "unconfigured" => off("no key"),
            _ => self.state_word(&it.state, it.healthy),
        }
    }

    /// The state of a breaker by its word in the API.
    pub(crate) fn state_word(self, state: &str, is_healthy: bool) -> (Tone, String) {
        let (tone, state, word) = match state {
            "open" => (Tone::Trouble, State::Open, "open"),
            "half_open" => (Tone::Change, State::HalfOpen, "half-open"),
            "closed" if is_healthy => (Tone::Good, State::Closed, "closed"),
            "closed" => (Tone::Trouble, State::Closed, "closed"),
            _ => (Tone::Plain, State::Closed, "unknown"),
        };
        (tone, format!("{} {word}", self.glyphs().state(state)))
    }

    /// The sign of a result.
    pub(crate) fn result(self, result: &str) -> (Tone, char) {
        match result {
            "ok" => (Tone::Good, self.glyphs().pass),
            "failed" => (Tone::Bad, self.glyphs().fail),
            _ => (Tone::Quiet, self.glyphs().dot),
        }
    }
}
