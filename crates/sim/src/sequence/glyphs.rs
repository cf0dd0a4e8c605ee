//! The few characters that a sequence is drawn with, and texts made safe to print.

use std::borrow::Cow;

use super::words::{BreakerWord, HealthWord};
use crate::paint::{Paint, Tone};

/// The characters of one look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Glyphs {
    /// An answer that was committed whole.
    pub(crate) yes: &'static str,
    /// Anything else.
    pub(crate) no: &'static str,
    /// From one attempt to the next.
    pub(crate) arrow: &'static str,
    /// Time that passes.
    pub(crate) dots: &'static str,
}

impl Glyphs {
    /// For terminals that draw Unicode.
    pub(crate) const UNICODE: Self = Self { yes: "✓", no: "✗", arrow: "→", dots: "⋯" };
    /// For all others.
    pub(crate) const ASCII: Self = Self { yes: "+", no: "x", arrow: "->", dots: "..." };
}

/// A file's text as it may stand in a line: control characters, which could break the line or
/// drive a terminal, become `?`.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    if text.contains(char::is_control) {
        return text.replace(char::is_control, "?").into();
    }
    text.into()
}

/// `closed/healthy`, in the colour of what it means.
pub(crate) fn state(breaker: BreakerWord, health: HealthWord, paint: Paint) -> String {
    let tone = match (breaker, health) {
        (BreakerWord::Closed, HealthWord::Healthy) => Tone::Plain,
        (BreakerWord::HalfOpen, _) => Tone::Change,
        (BreakerWord::Open, _) | (_, HealthWord::Unhealthy) => Tone::Trouble,
    };
    paint.apply(tone, &format!("{}/{}", breaker.word(), health.word()))
}
