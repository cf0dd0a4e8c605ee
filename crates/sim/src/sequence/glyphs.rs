//! The few characters that a sequence is drawn with, and texts made safe to print.

use std::borrow::Cow;

/// The characters of one look.
#[derive(Clone, Copy, Debug)]
pub(super) struct Glyphs {
    /// An answer that was committed whole.
    pub(super) yes: &'static str,
    /// Anything else.
    pub(super) no: &'static str,
    /// From one attempt to the next.
    pub(super) arrow: &'static str,
    /// Time that passes.
    pub(super) dots: &'static str,
}

impl Glyphs {
    /// For terminals that draw Unicode.
    pub(super) const UNICODE: Self = Self { yes: "✓", no: "✗", arrow: "→", dots: "⋯" };
    /// For all others.
    pub(super) const ASCII: Self = Self { yes: "+", no: "x", arrow: "->", dots: "..." };
}

/// A file's text as it may stand in a line: control characters, which could break the line or
/// drive a terminal, become `?`.
pub(super) fn clean(text: &str) -> Cow<'_, str> {
    if text.contains(char::is_control) {
        return text.replace(char::is_control, "?").into();
    }
    text.into()
}
